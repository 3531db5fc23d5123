/* Hooks that count: instructions, blocks, and marked instructions. */
#include "words.h"

/* A hook on every instruction: counts those that are in none of the library's own ranges. See clock.py. */
struct range { u64 start, size; };
struct tick { u64 count, ranges; struct range *range; };

EXPORT void tick(void *uc, u64 address, u32 size, struct tick *data)
{
    struct range *range = data->range;
    for (u64 n = data->ranges; n; n--, range++)
        if (address - range->start < range->size)
            return;
    data->count++;
}

/* A hook on every block: counts it, and the edge to it. See blockcounts.py.
 *
 * The table is hashed by the address, with the next free row for who finds his taken; it is never full. A free row's
 * address is all ones: then `fresh` is called, as this hook was.
 */
struct row { u64 address, count, place, size; };
struct blocks {
    struct row *table;
    u64 multiplier, mask, before;
    u8 *edges;
    struct row *end;
    void (*fresh)(void *, u64, u32, struct blocks *);
};

EXPORT void block(void *uc, u64 address, u32 size, struct blocks *data)
{
    struct row *row = data->table + ((address * data->multiplier >> 32) & data->mask);
    while (row->address != address) {
        if (row->address == ~0ull)
            return data->fresh(uc, address, size, data);
        if (++row == data->end)
            row = data->table;
    }
    row->count++;
    if ((long long)row->place < 0) /* a block of the library's own */
        return;
    data->edges[data->before ^ row->place]++;
    data->before = row->place >> 1;
}

/* A hook on a range of instructions of which some are marked: calls `called` for these, and moves the guest to what that
 * answers. See marks.py. */
struct marks {
    u64 start;
    u64 (*called)(void *, u64);
    int (*write)(void *, int, const u64 *);
    u64 pc;
    u8 marked[];
};

EXPORT void marked(void *uc, u64 address, u32 size, struct marks *data)
{
    if (!data->marked[address - data->start])
        return;
    u64 target = data->called(uc, address);
    if (target != ~0ull)
        data->write(uc, (int)data->pc, &target);
}
