/* Hooks that count or look: instructions, blocks, marked instructions, and accesses to marked
 * memory. */
#include "words.h"

/* A hook on every instruction: counts those that are in none of the library's own ranges. See
 * clock.py. */
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
 * The table is hashed by the address, with the next free row for who finds his taken; it is never
 * full. A free row's address is all ones: then `fresh` is called, as this hook was. A second table
 * of the same kind has the edges by the addresses of both blocks, where `arcs` is not 0; `new_arc`
 * is called for a new one.
 */
struct row { u64 address, count, place, size; };
struct arc { u64 from, to, count; };
struct blocks {
    struct row *table;
    u64 multiplier, mask, before;
    u8 *edges;
    struct row *end;
    void (*fresh)(void *, u64, u32, struct blocks *);
    struct arc *arcs;
    u64 arcs_mask, last;
    void (*new_arc)(u64, u64);
};

#define NONE (~0ull)

static void follow_arc(struct blocks *data, u64 address)
{
    u64 from = data->last;
    data->last = address;
    if (from == NONE)
        return;
    u64 place = ((from * data->multiplier ^ address) * data->multiplier >> 32) & data->arcs_mask;
    while (data->arcs[place].from != from || data->arcs[place].to != address) {
        if (data->arcs[place].from == NONE) {
            data->new_arc(from, address);
            return;
        }
        place = (place + 1) & data->arcs_mask;
    }
    data->arcs[place].count++;
}

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
    if (data->arcs)
        follow_arc(data, address);
}

/* A hook on a range of instructions of which some are marked: calls `called` for these, and moves
 * the guest to what that answers. See marks.py. */
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

/* A hook on accesses to a range of memory that has a mark for each byte: calls `called`, as this
 * hook was called, for an access that touches a byte whose mark is not 0. A write of bytes that are
 * only marked as unwritten takes these marks away, and calls nothing. See watches.py.
 */
#define UNWRITTEN 0x80
#define UC_MEM_WRITE 17
struct marked_memory {
    u64 start, size;
    u8 *marks;
    void (*called)(void *, int, u64, int, long long, u64);
    u64 number;
};

EXPORT void marked_access(void *uc, int kind, u64 address, u32 size, long long value,
                          struct marked_memory *data)
{
    u64 offset = address - data->start, bytes = size;
    if (offset >= data->size) { /* it begins in front of the range, and may reach into it */
        u64 before = data->start - address;
        if (before >= bytes)
            return;
        bytes -= before;
        offset = 0;
    }
    if (bytes > data->size - offset)
        bytes = data->size - offset;
    u8 *marks = data->marks + offset, all = 0;
    for (u64 n = 0; n < bytes; n++)
        all |= marks[n];
    if (!all)
        return;
    if (kind == UC_MEM_WRITE && all == UNWRITTEN)
        for (u64 n = 0; n < bytes; n++)
            marks[n] = 0;
    else
        data->called(uc, kind, address, size, value, data->number);
}
