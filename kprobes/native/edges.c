/* Hooks that fill a fuzzer's map. See kprobes/machine/unicorn/edgemap.py. */
#include "words.h"

struct span { u64 start, size; };
struct edges {
    u8 *map;
    u64 mask, before;
    u64 own;            /* how many spans are the library's own code: not counted */
    struct span *ours;
    u64 chosen;         /* how many spans are counted; 0: all but those */
    struct span *theirs;
    u64 block;          /* the block that is executed */
    u64 order;          /* subtractions since it began */
};

static int within(u64 address, struct span *span, u64 spans)
{
    for (; spans; spans--, span++)
        if (address - span->start < span->size)
            return 1;
    return 0;
}

static int counts(u64 address, struct edges *data)
{
    if (within(address, data->ours, data->own))
        return 0;
    return !data->chosen || within(address, data->theirs, data->chosen);
}

/* The finalizer of MurmurHash3 (public domain): each bit of the address changes each bit of the
 * result. */
static u64 mixed(u64 address)
{
    address = (address ^ address >> 33) * 0xff51afd7ed558ccdull;
    address = (address ^ address >> 33) * 0xc4ceb9fe1a85ec53ull;
    return address ^ address >> 33;
}

/* A counter goes from 255 to 1: one that was counted is never 0. */
static void add(u8 *counter)
{
    u8 count = *counter + 1;
    *counter = count + !count;
}

/* A hook on every block: counts the edge to it. */
EXPORT void edge(void *uc, u64 address, u32 size, struct edges *data)
{
    data->block = address;
    data->order = 0;
    if (!counts(address, data))
        return;
    u64 place = mixed(address) & data->mask;
    add(data->map + (data->before ^ place));
    data->before = place >> 1;
}

/* Counts how many bytes of two values are equal, from the highest one on; a counter for each
 * number. bits: of the values. */
static void count_equal(u64 address, u64 one, u64 other, u32 bits, struct edges *data)
{
    u64 differs = bits < 64 ? (one ^ other) & ((1ull << bits) - 1) : one ^ other;
    u64 place = mixed(~address);
    for (u32 left = bits; left > 8; left -= 8) {
        if (differs >> (left - 8))
            return;
        add(data->map + (++place & data->mask));
    }
}

/* A hook on every comparison that the engine reports. bits: of the operands. */
EXPORT void compared(void *uc, u64 address, u64 one, u64 other, u32 bits, struct edges *data)
{
    if (bits >= 16 && bits <= 64 && counts(address, data))
        count_equal(address, one, other, bits, data);
}

/* A hook on every subtraction, where the engine does not say which instruction it is of: its number
 * in its block does. It stands above the bits that addresses of guest code have. */
EXPORT void subtracted(void *uc, u64 address, u64 one, u64 other, u32 bits, struct edges *data)
{
    data->order++;
    if (bits >= 16 && bits <= 64 && counts(data->block, data))
        count_equal(data->block ^ data->order << 48, one, other, bits, data);
}

/* One side of a comparison: the sum of registers (addresses of their words; 0: none) and a
 * constant; `memory` 1: what guest memory has there. */
struct value { u64 base, index, constant, memory; };
/* What an instruction compares. bits: 0 where it does not. A free row's address is all ones. */
struct instruction { u64 address, bits; struct value one, other; };
/* Instructions that were looked at. See comparisons.py.
 *
 *   multiplier, mask, table   rows, hashed by the address, with the next free row for who finds his
 *                             taken
 *   fresh       called for an instruction that is not in the table, as the hook was
 *   wide        1: a register's word has 64 bits, else 32
 *   swapped     1: guest memory has the other byte order than this processor
 *   blocks      rows of guest memory, see blocktable.py: their number, and where they are
 */
struct instructions {
    struct edges *edges;
    u64 multiplier, mask;
    struct instruction *table;
    void (*fresh)(void *, u64, u32, struct instructions *);
    u64 wide, swapped;
    struct { u64 count; struct { u64 start, size, host; } *rows; } *blocks;
};

static u64 word_at(u64 place, u64 wide)
{
    if (!place)
        return 0;
    return wide ? *(u64 *)place : *(u32 *)place;
}

/* 1: `found` is the value; 0: memory is not known there. */
static int value_of(struct value *value, u64 bits, struct instructions *data, u64 *found)
{
    u64 sum = word_at(value->base, data->wide) + word_at(value->index, data->wide)
              + value->constant;
    *found = sum;
    if (!value->memory)
        return 1;
    if (!data->wide)
        sum = (u32)sum;
    for (u64 n = 0; n < data->blocks->count; n++) {
        u64 offset = sum - data->blocks->rows[n].start, size = data->blocks->rows[n].size;
        if (offset >= size || size - offset < bits / 8)
            continue;
        u8 *bytes = (u8 *)data->blocks->rows[n].host + offset;
        *found = 0;
        for (u64 at = 0; at < bits / 8; at++)
            *found = *found << 8 | bytes[data->swapped ? at : bits / 8 - 1 - at];
        return 1;
    }
    return 0;
}

/* The row of an instruction, or the free one that it may get. */
static struct instruction *row_of(u64 address, struct instructions *data)
{
    u64 place = address * data->multiplier >> 32;
    while (data->table[place & data->mask].address != address
           && data->table[place & data->mask].address != ~0ull)
        place++;
    return data->table + (place & data->mask);
}

/* A hook on every instruction: counts equal bytes of those that compare. */
EXPORT void compares(void *uc, u64 address, u32 size, struct instructions *data)
{
    struct instruction *row = row_of(address, data);
    if (row->address != address) {
        data->fresh(uc, address, size, data);
        row = row_of(address, data);
        if (row->address != address) /* Python has failed */
            return;
    }
    u64 one, other;
    if (row->bits && value_of(&row->one, row->bits, data, &one)
        && value_of(&row->other, row->bits, data, &other)
        && counts(address, data->edges))
        count_equal(address, one, other, (u32)row->bits, data->edges);
}
