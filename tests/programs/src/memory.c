/* Byte and string routines over buffers at every alignment. */
#include "suite.h"

KEEP size_t strlen(const char *text) {
    const char *end = text;
    while (*end)
        end++;
    return (size_t)(end - text);
}

KEEP int strcmp(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return (int)(uint8_t)*a - (int)(uint8_t)*b;
}

KEEP char *strrev(char *text) {
    for (char *left = text, *right = text + strlen(text); left < right; left++) {
        char kept = *left;
        *left = *--right;
        *right = kept;
    }
    return text;
}

KEEP const char *strchr_or_end(const char *text, char wanted) {
    while (*text && *text != wanted)
        text++;
    return text;
}

/* Reads [-]digits; stores where it stopped. */
KEEP int32_t parse_integer(const char *text, const char **end) {
    int negative = *text == '-';
    uint32_t value = 0;
    for (text += negative; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint32_t)(*text - '0');
    *end = text;
    return (int32_t)(negative ? 0 - value : value);
}

static uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t size) {
    for (const uint8_t *at = bytes; size--; at++)
        hash = mix(hash, *at);
    return hash;
}

uint32_t test_memory(uint32_t seed) {
    static uint8_t from[48];
    uint8_t to[48];
    for (size_t n = 0; n < sizeof from; n++)
        from[n] = (uint8_t)(next_random(&seed) >> 20);
    memset(to, (int)(seed & 0xff), sizeof to);
    memcpy(to + 1, from + seed % 4, 13);
    memcpy(to + 16 + seed % 3, from + 5, 8);
    memmove(to + 3, to, 20);
    memmove(to + 20, to + 22 + seed % 5, 15);
    memset(to + 30, 0x5a, seed % 7);
    uint32_t order = memcmp(to, from, sizeof to) < 0 ? 1 : 2;
    return mix(hash_bytes(order, to, sizeof to), (uint32_t)memcmp(from, from, sizeof from));
}

uint32_t test_strings(uint32_t seed) {
    static const char list[] = "17,-4,900,kprobes,0,-65536,z";
    char word[12];
    uint32_t hash = seed;
    for (const char *at = list; *at;) {
        const char *end = strchr_or_end(at, ','), *stopped;
        size_t length = (size_t)(end - at);
        hash = mix(hash, (uint32_t)parse_integer(at, &stopped) + (uint32_t)(end - stopped));
        memcpy(word, at, length);
        word[length] = '\0';
        word[0] = (char)('a' + (seed + length) % 26);
        hash = hash_bytes(hash, strrev(word), strlen(word));
        hash = mix(hash, strcmp(word, "kprobes") < 0 ? 1 : strcmp(word, word) == 0 ? 2 : 3);
        at = *end ? end + 1 : end;
    }
    return hash;
}
