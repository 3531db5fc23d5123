/* Functions with frames, types and locals, for stacks and debug information: see build_debug.py. No C library. */
#define KEEP __attribute__((noinline, used))

enum kind { PLAIN, HASHED = 7 };

struct entry {
    struct entry *next;
    int value;
    char key[16];
    unsigned flag : 3, rest : 5;
};

typedef struct table {
    unsigned count;
    struct entry *first;
    enum kind kind;
    union { unsigned char bytes[4]; unsigned word; } u;
    long long wide;
} table_t;

static struct entry pool[8];
table_t the_table = {0, 0, HASHED, {{1, 2, 3, 4}}, -5};
volatile int sink;

static inline int squared(int x) { return x * x + sink; }

KEEP int leaf(table_t *table, int depth) {
    sink = squared(depth);
    return (int)table->count + depth;
}

KEEP int walk(table_t *table, int depth) {
    volatile char room[40];
    room[depth] = (char)depth;
    int found = depth == 0 ? leaf(table, 3) : walk(table, depth - 1);
    return found + room[depth];
}

KEEP int table_insert(table_t *table, const char *key, int value) {
    struct entry *entry = &pool[table->count % 8];
    int n = 0;
    for (; key[n] && n < 15; n++)
        entry->key[n] = key[n];
    entry->value = value;
    entry->flag = 5;
    entry->next = table->first;
    table->first = entry;
    table->count++;
    sink = squared(n);
    return n;
}

KEEP int many(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j) {
    return walk(&the_table, 2) + a + b + c + d + e + f + g + h + 2 * i + 3 * j;
}

KEEP int outer(int depth) {
    int length = table_insert(&the_table, "width", 640);
    return walk(&the_table, depth) + length;
}

void _start(void) { sink = outer(2) + many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10); }
