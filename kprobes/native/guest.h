/* The guest as code of the host sees it: registers where the engine keeps them, and memory that the
 * machine has mapped. Also the words of a registers object (hits.c makes its class).
 */
#ifndef KPROBES_GUEST_H
#define KPROBES_GUEST_H
#include "python.h"
#include "words.h"

#define OBJECT(word) ((PyObject *)(word))

/* Where a register's value is. base: address of the word, or of a pointer to a window of words;
 * then the word is `offset` bytes behind where that points. size: bytes of the word, 4 or 8; 0:
 * nowhere. */
#define PLACE_WORDS(X) X(base) X(offset) X(windowed) X(size)
struct place { PLACE_WORDS(WORD) };

static inline u64 value_at(const struct place *place)
{
    u64 address = place->windowed ? *(u64 *)place->base + place->offset : place->base;
    return place->size == 8 ? *(u64 *)address : *(u32 *)address;
}

/* The registers that handlers read most, of one CPU. Python makes and keeps it.
 *
 *   bias, mask     of the stack pointer: what is added to its register, and cut
 *   arguments      how many of `argument` are known
 *   swapped        guest words in memory are in the other byte order than this host's
 *   blocks         table of the guest's memory: how many rows, and where; a row is guest address,
 *                  bytes, host address
 *   first          bytes from the stack pointer to the first argument on the stack
 *   on_stack       1: arguments are words of the stack
 *   word           bytes of a guest's word
 *   step           bytes from one word of the stack to the next, as regs.stack() counts
 */
#define ARGUMENTS 8
#define VIEW_WORDS(X) \
    X(bias) X(mask) X(arguments) X(swapped) X(blocks) X(first) X(on_stack) X(word) X(step)
struct view { VIEW_WORDS(WORD) struct place sp, result, argument[ARGUMENTS]; };

/* The words of a registers object, behind those of its class in Python. */
#define REGS_AT 512
struct regs { u64 reported, target, is_reported, is_sent; struct view *view; };

static inline struct regs *regs_of(PyObject *object)
{
    return (struct regs *)((char *)object + REGS_AT);
}

static inline u64 stack_pointer(const struct view *view)
{
    return (value_at(&view->sp) + view->bias) & view->mask;
}

/* Host address of `size` bytes of guest memory; 0 where they are in no block that is known. A
 * guest's numbers are only compared: a difference that is too large is not below a size. */
static inline u8 *find(const struct view *view, u64 address, u64 size)
{
    const u64 *header = (const u64 *)view->blocks;
    if (!header)
        return 0;
    const u64 *row = (const u64 *)header[1];
    for (u64 count = header[0]; count; count--, row += 3) {
        u64 offset = address - row[0];
        if (offset < row[1])
            return row[1] - offset >= size ? (u8 *)row[2] + offset : 0;
    }
    return 0;
}

/* One of the guest's words; 0 where it cannot be had here. A word of the guest's may stand at any
 * address. */
static inline int load(const struct view *view, u64 address, u64 *value)
{
    u8 *at = find(view, address, view->word);
    if (!at)
        return 0;
    if (view->word == 8) {
        typedef u64 __attribute__((aligned(1), may_alias)) unaligned;
        *value = view->swapped ? __builtin_bswap64(*(unaligned *)at) : *(unaligned *)at;
    } else {
        typedef u32 __attribute__((aligned(1), may_alias)) unaligned;
        *value = view->swapped ? __builtin_bswap32(*(unaligned *)at) : *(unaligned *)at;
    }
    return 1;
}

#endif
