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

/* The finalizer of MurmurHash3 (public domain): each bit of the address changes each bit of the result. */
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
    if (!counts(address, data))
        return;
    u64 place = mixed(address) & data->mask;
    add(data->map + (data->before ^ place));
    data->before = place >> 1;
}

/* A hook on every comparison: counts how many bytes are equal, from the highest one on; a counter for each number.
 * bits: of the operands. */
EXPORT void compared(void *uc, u64 address, u64 one, u64 other, u32 bits, struct edges *data)
{
    if (bits < 16 || bits > 64 || !counts(address, data))
        return;
    u64 differs = bits < 64 ? (one ^ other) & ((1ull << bits) - 1) : one ^ other;
    u64 place = mixed(~address);
    for (u32 left = bits; left > 8; left -= 8) {
        if (differs >> (left - 8))
            return;
        add(data->map + (++place & data->mask));
    }
}
