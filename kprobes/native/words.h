/* What Python and this library share: words of 64 bits, in structures that Python allocates and
 * fills.
 *
 * Each list is expanded twice: as the members of a structure, and as the text by which Python finds
 * a word's place (kprobes.native). So there is one order, and it is this one.
 */
#ifndef KPROBES_WORDS_H
#define KPROBES_WORDS_H

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#define WORD(name) u64 name;
#define NAME(name) #name " "

/* A call site: an address in guest memory, and what to do when the guest executes it.
 *
 *   function   called by the engine's hook, with the site: a function of this library, or `python`
 *   hits       number of executions that were served without `python`
 *   python     a ctypes callback, the service in Python: it can serve every execution
 *   spare      how many more calls that begin here may be followed
 *   calls      struct calls of the guest's CPU
 *   entered    (site) -> 1 if a call that begins here is followed; called at a function's entry
 *   returned   (site), called when a call that was followed from here returns
 *   program    environment of the first program that runs here
 *   quick      environment of the program here where that is all that is done, and it is brief: it
 *              runs without `function`; 0: it does not
 *   after      (site), called behind the programs; 0: nothing is, the hit is counted
 *   ran        1 while `after` runs: the programs have run for this hit
 *   back       environment of the first program that runs at the return
 *   returns    number of returns that were served without `python`
 *   usual      struct usual of a hit whose handler this library calls
 *   at_return  struct usual of a return whose handler this library calls
 */
#define SITE_WORDS(X) \
    X(function) X(hits) X(python) X(spare) X(calls) X(entered) X(returned) X(program) X(after) \
    X(ran) X(back) X(returns) X(usual) X(at_return) X(quick)
struct site { SITE_WORDS(WORD) };

/* The followed calls of one CPU, and the gate that every site of that CPU looks at first.
 *
 *   gate       bytes, each a reason why Python is to be asked; see
 *              kprobes.machine.unicorn.host.hostcode
 *   top, base, limit   the stack of struct call: first free, first, end
 *   sp         address of the stack pointer's cell; in a window, of the pointer to the window
 *   link       the same of the return address's register
 *   trampoline where followed calls return, mode bits included
 *   pushed     bytes that a return pops
 *   stack, room, host   the block that the stack is in: guest address, bytes at which a word
 *                       begins, host address
 *   frame, target   of the call that `entered` and `returned` are about: stack pointer at entry,
 *                   return address
 *   inside     hooks that have not returned
 *   bias       added to the register's value: the return address
 *   sp_at, sp_bias, link_at   in a window: bytes to the stack pointer, what is added to it, bytes
 *                             to the return address
 *   way        struct way: how the return address is put and compared
 */
#define CALLS_WORDS(X) \
    X(gate) X(top) X(base) X(limit) X(sp) X(link) X(trampoline) X(pushed) X(stack) X(room) X(host) \
    X(frame) X(target) X(inside) X(bias) X(sp_at) X(sp_bias) X(link_at) X(way)
struct calls { CALLS_WORDS(WORD) };

/* A call being followed: stack pointer at entry, return address, the site it began at. */
struct call { u64 frame, link; struct site *site; };

/* The sites of an area: its guest address and size, then a site or 0 for every eight bytes. */
struct area { u64 start, size; struct site *sites[]; };

/* What a program is called with: its code, the next program's environment; the rest is the
 * program's own. */
struct environment { void (*run)(struct environment *); struct environment *next; };

typedef void (*site_function)(struct site *);

static inline struct calls *calls_of(struct site *site) { return (struct calls *)site->calls; }

/* The gate's last reason, guest tasks, only matters where calls are followed. */
#define ANY_REASON(calls) ((calls)->gate)
#define REASONS_OF_HITS(calls) ((u32)(calls)->gate)

static inline void ask_python(struct site *site) { ((site_function)site->python)(site); }

#endif
