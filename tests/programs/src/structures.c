/* Linked data, tables, globals in .data, .rodata and .bss. */
#include "suite.h"

PLAIN_ON_SH

struct node {
    struct node *next;
    uint32_t value;
};

static struct node nodes[16]; /* .bss */

KEEP static struct node *list_make(uint32_t seed, size_t count) {
    struct node *head = NULL;
    for (size_t n = 0; n < count; n++) {
        nodes[n] = (struct node){head, next_random(&seed) >> 8};
        head = &nodes[n];
    }
    return head;
}

KEEP static struct node *list_reverse(struct node *head) {
    struct node *reversed = NULL;
    while (head) {
        struct node *next = head->next;
        head->next = reversed;
        reversed = head;
        head = next;
    }
    return reversed;
}

KEEP static struct node *list_insert_sorted(struct node *head, struct node *fresh) {
    struct node **link = &head;
    while (*link && (*link)->value < fresh->value)
        link = &(*link)->next;
    fresh->next = *link;
    *link = fresh;
    return head;
}

KEEP static uint32_t list_hash(const struct node *head, uint32_t hash) {
    for (; head; head = head->next)
        hash = mix(hash, head->value);
    return hash;
}

uint32_t test_list(uint32_t seed) {
    struct node *head = list_reverse(list_make(seed, COUNT(nodes))), *sorted = NULL;
    uint32_t hash = list_hash(head, seed);
    while (head) {
        struct node *next = head->next;
        sorted = list_insert_sorted(sorted, head);
        head = next;
    }
    return list_hash(sorted, hash);
}

struct entry {
    struct entry *next;
    uint32_t key;
    uint16_t value;
};

static struct {
    struct entry *buckets[8];
    struct entry pool[20];
    struct entry *unused;
    uint32_t used;
} table;

static struct entry **table_slot(uint32_t key) {
    struct entry **slot = &table.buckets[(key * 2654435761u) >> 29];
    while (*slot && (*slot)->key != key)
        slot = &(*slot)->next;
    return slot;
}

KEEP static int table_insert(uint32_t key, uint16_t value) {
    struct entry **slot = table_slot(key), *fresh = *slot;
    if (!fresh) {
        fresh = table.unused;
        if (!fresh)
            return -1;
        table.unused = fresh->next;
        *fresh = (struct entry){NULL, key, 0};
        *slot = fresh;
        table.used++;
    }
    fresh->value = value;
    return 0;
}

KEEP static int table_lookup(uint32_t key) {
    struct entry *found = *table_slot(key);
    return found ? found->value : -1;
}

KEEP static int table_delete(uint32_t key) {
    struct entry **slot = table_slot(key), *found = *slot;
    if (!found)
        return 0;
    *slot = found->next;
    found->next = table.unused;
    table.unused = found;
    table.used--;
    return 1;
}

uint32_t test_hash_table(uint32_t seed) {
    uint32_t hash = seed, state = seed;
    memset(&table, 0, sizeof table);
    for (size_t n = 0; n < COUNT(table.pool); n++) {
        table.pool[n].next = table.unused;
        table.unused = &table.pool[n];
    }
    for (uint32_t n = 0; n < 30; n++) {
        uint32_t key = (next_random(&state) >> 24) % 31;
        hash = mix(hash, (uint32_t)table_insert(key, (uint16_t)(n * 2500)));
        if (n % 3 == 0)
            hash = mix(hash, (uint32_t)table_delete(key ^ 3));
        hash = mix(hash, (uint32_t)table_lookup(key ^ 1));
    }
    return mix(hash, table.used);
}

/* The first half of the nibble table; the rest follows from it: a CRC is linear. */
static const uint32_t crc_nibbles[] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                       0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c};

KEEP uint32_t crc32(uint32_t crc, const uint8_t *bytes, size_t size) {
    for (crc = ~crc; size--; bytes++) {
        crc ^= *bytes;
        for (int nibble = 0; nibble < 2; nibble++) {
            uint32_t low = crc & 15;
            crc = crc >> 4 ^ (low < 8 ? crc_nibbles[low] : crc_nibbles[low - 8] ^ 0xedb88320);
        }
    }
    return ~crc;
}

uint32_t test_crc(uint32_t seed) {
    uint8_t bytes[33] = "hello";
    uint32_t hash = crc32(0, bytes, 5) == 0x3610a686 ? 0 : 1; /* as zlib has it */
    for (size_t n = 0; n < sizeof bytes; n++)
        bytes[n] = (uint8_t)(next_random(&seed) >> 24);
    for (size_t n = 0; n < 3; n++)
        hash = crc32(hash, bytes + n, 11 * n + 7);
    return hash;
}

struct record {
    const char *name;
    int16_t delta;
    uint32_t *counter;
};

uint32_t counter_a = 5, counter_b;       /* .data and .bss, visible outside */
static uint8_t history[64];              /* .bss */
static uint64_t wide_global = 0x100000001; /* .data */
static const struct record records[] = { /* holds addresses: filled in by the linker */
    {"up", 3, &counter_a}, {"down", -2, &counter_b}, {"far", 1000, &counter_a}, {"back", -999, &counter_b}};

KEEP static void touch(const struct record *record, uint32_t at) {
    *record->counter += (uint32_t)record->delta;
    history[at % sizeof history] ^= (uint8_t)record->name[0];
    wide_global = wide_global * 3 + *record->counter;
}

/* Leaves every global as it found it, so a second call gives the same result. */
uint32_t test_globals(uint32_t seed) {
    uint32_t hash = seed, kept_a = counter_a, kept_b = counter_b;
    uint64_t kept_wide = wide_global;
    for (uint32_t n = 0; n < 14; n++)
        touch(&records[(seed + n * 7) >> 1 & 3], seed * n);
    hash = mix64(mix(mix(hash, counter_a), counter_b), wide_global);
    for (size_t n = 0; n < sizeof history; n++)
        hash = mix(hash, history[n]);
    memset(history, 0, sizeof history);
    counter_a = kept_a;
    counter_b = kept_b;
    wide_global = kept_wide;
    return hash;
}
