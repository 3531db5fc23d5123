/* The guest program of the README: small functions worth probing, no C library.
 *
 * Built for two machines by build.py; the executables are part of the repository, so nobody needs a compiler.
 * `_start` is an ordinary function that returns main()'s result: 0 when every check passes, else the number of the
 * first check that failed.
 */
#include <stddef.h>
#include <stdint.h>

#define KEEP __attribute__((noinline, used)) /* stays a function of its own, so that it can be probed */

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    unsigned char *target = to;
    const unsigned char *source = from;
    while (size--)
        *target++ = *source++;
    return to;
}

void *memset(void *to, int value, size_t size) {
    unsigned char *target = to;
    while (size--)
        *target++ = (unsigned char)value;
    return to;
}

/* ---- CRC-32, as zlib computes it: crc32(0, "hello", 5) == 0x3610a686 ---- */

static uint32_t crc_table[256];

KEEP void crc32_make_table(void) {
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t word = n;
        for (int bit = 0; bit < 8; bit++)
            word = word & 1 ? 0xedb88320u ^ (word >> 1) : word >> 1;
        crc_table[n] = word;
    }
}

KEEP uint32_t crc32(uint32_t crc, const unsigned char *buf, size_t len) {
    if (buf == NULL)
        return 0;
    if (crc_table[1] == 0)
        crc32_make_table();
    crc = ~crc;
    while (len--)
        crc = crc_table[(crc ^ *buf++) & 0xff] ^ (crc >> 8);
    return ~crc;
}

/* ---- A hash table of strings, entries from a fixed pool ---- */

#define BUCKETS 16
#define POOL 32
#define KEY_SIZE 16

struct entry {
    struct entry *next;
    int32_t value;
    char key[KEY_SIZE];
};

static struct entry pool[POOL];
static struct entry *free_list;
static struct entry *buckets[BUCKETS];

KEEP size_t string_length(const char *text) {
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

KEEP int string_equal(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

KEEP void table_init(void) {
    free_list = NULL;
    for (int n = POOL - 1; n >= 0; n--) {
        pool[n].next = free_list;
        free_list = &pool[n];
    }
    for (int n = 0; n < BUCKETS; n++)
        buckets[n] = NULL;
}

static struct entry **table_slot(const char *key) {
    uint32_t hash = crc32(0, (const unsigned char *)key, string_length(key));
    struct entry **slot = &buckets[hash % BUCKETS];
    while (*slot && !string_equal((*slot)->key, key))
        slot = &(*slot)->next;
    return slot;
}

/* 0: stored; -1: the key is too long; -2: the pool is empty. */
KEEP int table_insert(const char *key, int32_t value) {
    size_t length = string_length(key);
    if (length >= KEY_SIZE)
        return -1;
    struct entry **slot = table_slot(key);
    if (!*slot) {
        struct entry *fresh = free_list;
        if (!fresh)
            return -2;
        free_list = fresh->next;
        fresh->next = NULL;
        memcpy(fresh->key, key, length + 1);
        *slot = fresh;
    }
    (*slot)->value = value;
    return 0;
}

KEEP int32_t table_lookup(const char *key, int32_t missing) {
    struct entry *found = *table_slot(key);
    return found ? found->value : missing;
}

/* 1: removed; 0: there was no such key. */
KEEP int table_delete(const char *key) {
    struct entry **slot = table_slot(key);
    struct entry *found = *slot;
    if (!found)
        return 0;
    *slot = found->next;
    found->next = free_list;
    free_list = found;
    return 1;
}

/* ---- A parser: "width=640, depth=0x18, scale=-3" fills the table ---- */

enum token { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_EQUALS, TOKEN_COMMA, TOKEN_BAD };

struct reader {
    const char *at;
    char name[KEY_SIZE];
    int32_t number;
};

static int is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int digit_of(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return 99;
}

/* Reads [-]decimal or [-]0xhex; moves *text behind it. */
KEEP int32_t parse_integer(const char **text) {
    const char *at = *text;
    int negative = *at == '-';
    int base = 10;
    uint32_t value = 0;
    at += negative;
    if (at[0] == '0' && at[1] == 'x') {
        base = 16;
        at += 2;
    }
    for (; digit_of(*at) < base; at++)
        value = value * (uint32_t)base + (uint32_t)digit_of(*at);
    *text = at;
    return (int32_t)(negative ? 0 - value : value);
}

KEEP enum token next_token(struct reader *reader) {
    size_t length = 0;
    while (*reader->at == ' ')
        reader->at++;
    switch (*reader->at) {
    case '\0':
        return TOKEN_END;
    case '=':
        reader->at++;
        return TOKEN_EQUALS;
    case ',':
        reader->at++;
        return TOKEN_COMMA;
    case '-':
    case '0': case '1': case '2': case '3': case '4':
    case '5': case '6': case '7': case '8': case '9':
        reader->number = parse_integer(&reader->at);
        return TOKEN_NUMBER;
    default:
        break;
    }
    while (is_name(*reader->at) && length < KEY_SIZE - 1)
        reader->name[length++] = *reader->at++;
    reader->name[length] = '\0';
    return length ? TOKEN_NAME : TOKEN_BAD;
}

/* Returns the number of settings stored, or minus (1 + the offset of the error). */
KEEP int parse_settings(const char *text) {
    struct reader reader = {.at = text};
    int stored = 0;
    for (;;) {
        enum token token = next_token(&reader);
        if (token == TOKEN_END)
            return stored;
        if (token != TOKEN_NAME || next_token(&reader) != TOKEN_EQUALS || next_token(&reader) != TOKEN_NUMBER)
            break;
        if (table_insert(reader.name, reader.number) != 0)
            break;
        stored++;
        token = next_token(&reader);
        if (token == TOKEN_END)
            return stored;
        if (token != TOKEN_COMMA)
            break;
    }
    return -1 - (int)(reader.at - text);
}

/* ---- Recursion ---- */

KEEP uint32_t fib(uint32_t n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

KEEP uint32_t ackermann(uint32_t m, uint32_t n) {
    if (m == 0)
        return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

/* ---- The checks ---- */

static const char settings[] = "width=640, height=480, depth=0x18, scale=-3";

static int check_crc(void) {
    static const unsigned char hello[] = "hello";
    if (crc32(0, hello, 5) != 0x3610a686u)
        return 1;
    return crc32(crc32(0, hello, 2), hello + 2, 3) != 0x3610a686u ? 2 : 0;
}

static int check_table(void) {
    table_init();
    if (parse_settings(settings) != 4 || parse_settings("a=1,=2") != -6)
        return 3;
    if (table_lookup("width", 0) != 640 || table_lookup("depth", 0) != 24 || table_lookup("scale", 0) != -3)
        return 4;
    if (table_insert("width", 641) != 0 || table_lookup("width", 0) != 641)
        return 5;
    if (!table_delete("height") || table_delete("height") || table_lookup("height", -1) != -1)
        return 6;
    return table_insert("a_name_that_is_too_long", 1) == -1 ? 0 : 7;
}

static int check_recursion(void) {
    return fib(10) != 55 ? 8 : ackermann(2, 3) != 9 ? 9 : 0;
}

KEEP int main(void) {
    int failed = check_crc();
    if (!failed)
        failed = check_table();
    return failed ? failed : check_recursion();
}

int _start(void) {
    return main();
}
