/* Call sites: the hooks that the engine calls there, and the functions that these call.
 *
 * A hook is called as hook(uc, address, size, data) by the host's C ABI. Guest addresses are
 * compared, never followed; guest memory is touched only inside a block whose bounds were checked.
 */
#include "way.h"

EXPORT const char site_words[] = SITE_WORDS(NAME);
EXPORT const char calls_words[] = CALLS_WORDS(NAME);

static __attribute__((noinline)) void call_function(struct site *site)
{
    struct calls *calls = calls_of(site);
    calls->inside++;
    ((site_function)site->function)(site);
    calls->inside--;
}

static inline void execute_site(struct site *site)
{
    struct environment *quick = (struct environment *)site->quick;
    if (!quick || REASONS_OF_HITS(calls_of(site)))
        return call_function(site);
    /* `inside` is for another thread that stops the run, and waits 1 ms at least: by then a brief
     * program is over */
    site->hits++;
    quick->run(quick);
}

/* A hook on an area of call sites (struct area). */
EXPORT void serve(void *uc, u64 address, u32 size, struct area *area)
{
    u64 offset = address - area->start;
    if (offset % 8 || offset >= area->size || !area->sites[offset / 8])
        return;
    execute_site(area->sites[offset / 8]);
}

/* A hook on one instruction of the guest's text, which is its own call site. */
EXPORT void here(void *uc, u64 address, u32 size, struct site *site)
{
    execute_site(site);
}

/* A site's function: count the hit, and do nothing else. */
EXPORT void count(struct site *site)
{
    if (REASONS_OF_HITS(calls_of(site)))
        return ask_python(site);
    site->hits++;
}

static inline void run_all(struct environment *first)
{
    for (struct environment *one = first; one; one = one->next)
        one->run(one);
}

/* A site's function: run the programs there one after the other, then `after`. */
EXPORT void program(struct site *site)
{
    if (REASONS_OF_HITS(calls_of(site)))
        return ask_python(site);
    run_all((struct environment *)site->program);
    if (!site->after) {
        site->hits++;
        return;
    }
    site->ran = 1;
    ((site_function)site->after)(site);
    site->ran = 0;
}

/* A site's `returned`: run programs at the return of a followed call. */
EXPORT void back(struct site *site)
{
    site->returns++;
    run_all((struct environment *)site->back);
}

/* --- following calls from a function's entry to its return
 *
 * Guests differ in where the return address is (kprobes.machine.unicorn.host.hostcode.WHERE) and in
 * how wide a word is. FRAME: the stack pointer. PLACE: host address of the return address, 0 where
 * it is in no block that is known. OUT, IN: between the word there and the return address.
 */
#define FRAME_cell     (*(WORD_ *)calls->sp)
#define FRAME_stack    FRAME_cell
#define FRAME_swapped  FRAME_cell
#define FRAME_window   ((WORD_)(*(WORD_ *)(*(u64 *)calls->sp + calls->sp_at) + calls->sp_bias))
#define PLACE_cell     ((WORD_ *)calls->link)
#define PLACE_window   ((WORD_ *)(*(u64 *)calls->link + calls->link_at))
#define PLACE_stack \
    ((WORD_ *)(frame - calls->stack < calls->room ? frame - calls->stack + calls->host : 0))
#define PLACE_swapped  PLACE_stack
#define OUT_cell(word)     ((WORD_)((word) + calls->bias))
#define OUT_window         OUT_cell
#define OUT_stack(word)    ((WORD_)(word))
#define OUT_swapped(word)  SWAP_(word)
#define IN_cell(link)      ((WORD_)((link) - calls->bias))
#define IN_window          IN_cell
#define IN_stack(link)     ((WORD_)(link))
#define IN_swapped(link)   SWAP_(link)

static inline void push(struct calls *calls, struct site *site, u64 frame, u64 link)
{
    *(struct call *)calls->top = (struct call){frame, link, site};
    calls->top += sizeof(struct call);
    site->spare--;
}

static inline int may_follow(struct calls *calls, struct site *site)
{
    return !ANY_REASON(calls) && calls->top != calls->limit && site->spare;
}

/* enter: a function's entry whose call is followed. ask: the same where `entered` has the say. It
 * finds the return address as the guest left it, and answers 1 when it has
 *      put the trampoline in its place.
 * leave: the trampoline. The youngest call returns, if its frame is the one that does.
 * leave_reloaded: where a return loads the register itself, it has been put right, and what shows
 * the trampoline is
 *      out of the ordinary.
 */
#define FOLLOWING(where, bits)                                                                     \
    EXPORT void enter_##where##_##bits(struct site *site)                                          \
    {                                                                                              \
        struct calls *calls = calls_of(site);                                                      \
        if (!may_follow(calls, site))                                                              \
            return ask_python(site);                                                               \
        u64 frame = FRAME_##where;                                                                 \
        WORD_ *place = PLACE_##where;                                                              \
        if (!place)                                                                                \
            return ask_python(site);                                                               \
        u64 link = OUT_##where(*place);                                                            \
        if (link == calls->trampoline)                                                             \
            return ask_python(site);                                                               \
        *place = IN_##where(calls->trampoline);                                                    \
        push(calls, site, frame, link);                                                            \
        site->hits++;                                                                              \
    }                                                                                              \
    EXPORT void ask_##where##_##bits(struct site *site)                                            \
    {                                                                                              \
        struct calls *calls = calls_of(site);                                                      \
        if (!may_follow(calls, site))                                                              \
            return ask_python(site);                                                               \
        u64 frame = FRAME_##where;                                                                 \
        WORD_ *place = PLACE_##where;                                                              \
        if (!place)                                                                                \
            return ask_python(site);                                                               \
        u64 link = OUT_##where(*place);                                                            \
        if (link == calls->trampoline)                                                             \
            return ask_python(site);                                                               \
        calls->frame = frame;                                                                      \
        calls->target = link;                                                                      \
        site->hits++;                                                                              \
        if (((int (*)(struct site *))site->entered)(site))                                         \
            push(calls, site, calls->frame, calls->target);                                        \
    }                                                                                              \
    /* Put the trampoline in the place of the return address that `ask` found. 0: that has         \
     * been changed meanwhile, and nothing was done. */                                            \
    static int show_##where##_##bits(struct calls *calls)                                          \
    {                                                                                              \
        u64 frame = calls->frame;                                                                  \
        (void)frame;                                                                               \
        WORD_ *place = PLACE_##where;                                                              \
        if (!place || OUT_##where(*place) != (WORD_)calls->target)                                 \
            return 0;                                                                              \
        *place = IN_##where(calls->trampoline);                                                    \
        return 1;                                                                                  \
    }                                                                                              \
    /* 1 if the code at the trampoline returns to calls->target by itself. */                      \
    static int unmoved_##where##_##bits(struct calls *calls)                                       \
    {                                                                                              \
        if (calls->pushed)                                                                         \
            return (WORD_)(FRAME_##where - calls->pushed) == (WORD_)calls->frame;                  \
        u64 frame = calls->frame;                                                                  \
        (void)frame;                                                                               \
        WORD_ *place = PLACE_##where;                                                              \
        return OUT_##where(*place) == (WORD_)calls->target;                                        \
    }                                                                                              \
    EXPORT const struct way way_##where##_##bits = {                                               \
        show_##where##_##bits, unmoved_##where##_##bits};                                          \
    LEAVING(leave_##where##_##bits, where, 0)

#define LEAVING(name, where, reloaded)                                                             \
    EXPORT void name(struct site *site)                                                            \
    {                                                                                              \
        struct calls *calls = calls_of(site);                                                      \
        struct call *call = (struct call *)calls->top - 1;                                         \
        if (ANY_REASON(calls) || calls->top == calls->base)                                        \
            return ask_python(site);                                                               \
        u64 frame = (WORD_)(FRAME_##where - calls->pushed);                                        \
        WORD_ *place = PLACE_##where;                                                              \
        if (frame != call->frame || !place)                                                        \
            return ask_python(site);                                                               \
        if ((OUT_##where(*place) == calls->trampoline) == reloaded)                                \
            return ask_python(site);                                                               \
        calls->frame = frame;                                                                      \
        calls->target = call->link;                                                                \
        if (!reloaded)                                                                             \
            *place = IN_##where(call->link);                                                       \
        calls->top = (u64)call;                                                                    \
        call->site->spare++;                                                                       \
        ((site_function)call->site->returned)(call->site);                                         \
    }

#define WORD_ u32
#define SWAP_ __builtin_bswap32
FOLLOWING(cell, 32)
FOLLOWING(window, 32)
FOLLOWING(stack, 32)
FOLLOWING(swapped, 32)
LEAVING(leave_reloaded_cell_32, cell, 1)
LEAVING(leave_reloaded_window_32, window, 1)
#undef WORD_
#undef SWAP_
#define WORD_ u64
#define SWAP_ __builtin_bswap64
FOLLOWING(cell, 64)
FOLLOWING(window, 64)
FOLLOWING(stack, 64)
FOLLOWING(swapped, 64)
LEAVING(leave_reloaded_cell_64, cell, 1)
LEAVING(leave_reloaded_window_64, window, 1)
