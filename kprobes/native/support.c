/*
 * What compiled eBPF programs call: helpers that are machine code, and what they share.
 *
 * `python -m kprobes.native.build` compiles this file to LLVM IR, once for each row of its table.
 * kprobes/programs/support.py puts those functions that a program calls beside the program's own,
 * and LLVM compiles both together, for this computer or for a guest. See docs/compiled-programs.md.
 *
 *   GUEST    1: the code runs in a guest. There is no engine to call. There is one CPU: nothing is
 *            atomic. The guest may have written over maps: a number in a map is looked at before it
 *            is used, and each loop over a map ends by itself.
 *   SWAPPED  1: the program's byte order is not that of the memory where the code runs. Maps are
 *            in the program's byte order, everything else in the memory's own.
 *
 * Addresses are 64-bit numbers, also where a pointer has 32 bits. A guest's address is only
 * compared, never followed: the guest chooses it.
 *
 * HAZARD: the code must be one piece without data or library calls. So there are no tables, no
 * struct assignments and no static variables, and for guests no division of 64-bit numbers and no
 * 64-bit shifts by a variable (SPARC V8). HAZARD: functions call none but INSIDE and ASIDE ones.
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
typedef __UINTPTR_TYPE__ word; /* as large as a pointer */

/* A word at an address that need not be aligned. */
struct unaligned {
    u64 value;
} __attribute__((packed));

/* Part of other functions in this file. */
#define INSIDE static inline __attribute__((always_inline))
/* Always part of its caller in a program: it depends on arguments that are constants there. */
#define SPECIAL __attribute__((always_inline))
/*
 * For what is rare: on the host never part of its caller, and it saves all registers, so that its
 * caller need not save any. Guests' code is one function.
 */
#if GUEST
#define ASIDE INSIDE
#else
#define ASIDE __attribute__((noinline, preserve_most))
#endif
#define UNROLLED _Pragma("clang loop unroll(full)")

#define POINTER(type, address) ((type *)(word)(address))
#define EFAULT 14

/* A number of a map, as the program sees it, and the way back. */
#if SWAPPED
#define MAP32(value) __builtin_bswap32(value)
#define MAP64(value) __builtin_bswap64(value)
#else
#define MAP32(value) (value)
#define MAP64(value) (value)
#endif

/* What LLVM may take for true. In guests' code it costs more than it saves. */
#if GUEST
#define KNOWN(condition)
#else
#define KNOWN(condition) __builtin_assume(condition)
#endif

/* On the host Python reads rings while a program writes them. */
#if GUEST
#define LOAD(from) (*(from))
#define STORE(to, value) (*(to) = (value))
#else
#define LOAD(from) __atomic_load_n(from, __ATOMIC_ACQUIRE)
#define STORE(to, value) __atomic_store_n(to, value, __ATOMIC_RELEASE)
#endif

/* ---- memory ---- */

/* Copy memory that does not overlap. HAZARD: neither side need be aligned. */
INSIDE void copy_bytes(u8 *to, const u8 *from, u64 size)
{
    if (size == 8) { /* the usual constant: without a loop */
        ((struct unaligned *)to)->value = ((const struct unaligned *)from)->value;
        return;
    }
    for (; size >= 8; size -= 8, to += 8, from += 8)
        ((struct unaligned *)to)->value = ((const struct unaligned *)from)->value;
    for (; size; size--)
        *to++ = *from++;
}

void copy(u8 *to, const u8 *from, u64 size)
{
    copy_bytes(to, from, size);
}

/* Zero memory. HAZARD: were it not volatile, LLVM would make a call of memset() of the loop. */
INSIDE void clear(volatile u8 *to, u64 size)
{
    for (u64 n = 0; n < size; n++)
        to[n] = 0;
}

/* Guest memory that the code itself reaches: `bytes` from the address `start` on are at `host`. */
struct block {
    u64 start;
    u64 bytes;
    u64 host;
};

struct blocks {
    u64 count;
    u64 table; /* address of struct block[count] */
};

/*
 * Find where guest memory is; 0 where no block has all of it.
 *
 * HAZARD: a sum of the guest's numbers may wrap. A difference that has wrapped is not below a size.
 */
INSIDE u64 find(const struct blocks *blocks, u64 at, u64 size)
{
    const struct block *table = POINTER(const struct block, blocks->table);
    u64 count = blocks->count;

    for (word n = 0; n < count; n++) {
        u64 offset = at - table[n].start;

        if (offset < table[n].bytes && size <= table[n].bytes - offset)
            return table[n].host + offset;
    }
    return 0;
}

#if GUEST

/* What a guest asks its host for: see kprobes/machine/remote/hostreads.py. */
struct question {
    u64 at; /* also the host's answer, where that is a number */
    u64 to;
    u64 size;
    u64 error; /* the host's answer: 0, or something else where there is no such memory */
};

typedef void stop_function(struct question *);

/*
 * In the place of a size: the host is to call Python, or to tell a number. It has a list of
 * functions for both; `at` is the index.
 */
#define WAKE ((u64)1 << 32)
#define TELL ((u64)2 << 32)

/* Stop with WAKE or TELL; the number that is told. `reader`: the function where the guest stops. */
INSIDE u64 stop(u64 reader, u64 what, u64 index)
{
    struct question question;

    question.at = index;
    question.to = 0;
    question.size = what;
    question.error = 0;
    POINTER(stop_function, reader)(&question);
    return question.at;
}

void wake(u64 reader, u64 index)
{
    stop(reader, WAKE, index);
}

/* bpf_get_current_pid_tgid(). `known`: 0 where there are several threads, so only the host knows. */
u64 task(u64 known, u64 reader, u64 index)
{
    return known ? known : stop(reader, TELL, index);
}

#define CLOCK_MONOTONIC 1

struct timespec {
    long seconds;
    long ns;
};

typedef int time_function(int clock, struct timespec *);

/* bpf_ktime_get_ns(). `gettime`: a clock_gettime() of the guest's; 0: the host tells the time. */
u64 clock(u64 gettime, u64 reader, u64 index)
{
    struct timespec now;

    if (!gettime)
        return stop(reader, TELL, index);
    POINTER(time_function, gettime)(CLOCK_MONOTONIC, &now);
    return (u64)now.seconds * 1000000000 + now.ns;
}

/* bpf_get_current_comm(): a name of up to 15 bytes, in two words. */
void comm(u8 *to, u64 size, u64 first, u64 second)
{
    u64 words[2];

    words[0] = first;
    words[1] = second;
    for (u64 n = 0; n < size; n++)
        to[n] = n < 15 && n + 1 < size ? ((const u8 *)words)[n] : 0;
}

/* bpf_get_prandom_u32(): Marsaglia's xorshift64*. `state` is never 0. */
u64 random(u64 *state)
{
    u64 x = *state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1D >> 32;
}

/* Ask the host for guest memory. `reader`: a function at which the guest stops, or 0: none. */
INSIDE u32 ask(u64 engine, u64 reader, u64 at, u8 *to, u64 size)
{
    struct question question;

    if (!reader)
        return 1;
    question.at = at;
    question.to = (word)to;
    question.size = size;
    question.error = 1;
    POINTER(stop_function, reader)(&question);
    return (u32)question.error;
}

#else

typedef u32 read_function(u64 engine, u64 at, u8 *to, u64 size);

/* Ask the engine for guest memory; 0, or its error. `reader` is its uc_mem_read(). */
INSIDE u32 ask(u64 engine, u64 reader, u64 at, u8 *to, u64 size)
{
    return POINTER(read_function, reader)(engine, at, to, size);
}

#endif

/* Read guest memory that is in no block; 0, or -EFAULT and zeros. */
ASIDE s64 read_elsewhere(u64 engine, u64 reader, u64 at, u8 *to, u64 size)
{
    if (size && ask(engine, reader, at, to, size)) {
        clear(to, size);
        return -EFAULT;
    }
    return 0;
}

/* bpf_probe_read(): 0, or -EFAULT and zeros. `blocks` is the address of struct blocks. */
s64 read(u8 *to, u64 size, u64 at, u64 blocks, u64 engine, u64 reader)
{
    u64 host = find(POINTER(const struct blocks, blocks), at, size);

    if (host) {
        copy_bytes(to, POINTER(const u8, host), size);
        return 0;
    }
    return read_elsewhere(engine, reader, at, to, size);
}

/*
 * bpf_probe_read_str(): the length with the NUL, or -EFAULT and zeros.
 *
 * HAZARD: a string may end where a mapping does. So no piece that is read crosses a line of LINE
 * bytes.
 */
#define LINE 256

s64 read_string(u8 *to, u64 size, u64 at, u64 blocks, u64 engine, u64 reader)
{
    u8 buffer[LINE] __attribute__((aligned(16)));
    u64 last = size - 1;
    u64 n = 0;

    if (!size)
        return 0;
    while (n < last) {
        u64 line = LINE - ((at + n) & (LINE - 1));
        u64 count = last - n < line ? last - n : line;
        u64 host = find(POINTER(const struct blocks, blocks), at + n, count);
        const u8 *from = POINTER(const u8, host);
        u64 end = n + count;

        if (!host) {
            if (ask(engine, reader, at + n, buffer, count)) {
                clear(to, size);
                return -EFAULT;
            }
            from = buffer;
        }
#if !GUEST /* a word without a NUL at a time; many guests have no unaligned loads */
        while (end - n >= 8) {
            u64 eight = ((const struct unaligned *)from)->value;

            if ((eight - 0x0101010101010101) & ~eight & 0x8080808080808080)
                break;
            ((struct unaligned *)(to + n))->value = eight;
            from += 8; /* at `n` */
            n += 8;
        }
#endif
        /* One index for both. HAZARD: nothing need be there, so no pointer is subtracted from. */
        from = POINTER(const u8, (word)from - n);
        for (; n < end; n++) {
            to[n] = from[n];
            if (!to[n])
                return n + 1;
        }
    }
    to[last] = 0;
    return size;
}

/* ---- numbers ---- */

/*
 * Divide unsigned numbers, a bit at a time; `by` is not 0. For CPUs without such an instruction,
 * where LLVM would call a library.
 */
INSIDE u64 divide(u64 number, u64 by, int want_rest)
{
    u64 quotient = 0;
    u64 rest = 0;

    for (int bit = 0; bit < 64; bit++) {
        int over = rest >> 63; /* of 65 bits */

        rest = rest << 1 | number >> 63;
        number <<= 1;
        quotient <<= 1;
        if (over || rest >= by) {
            rest -= by;
            quotient |= 1;
        }
    }
    return want_rest ? rest : quotient;
}

u64 quotient(u64 number, u64 by)
{
    return divide(number, by, 0);
}

u64 rest(u64 number, u64 by)
{
    return divide(number, by, 1);
}

#if !GUEST

/* ---- the engine and the host ---- */

typedef int register_function(u64 engine, int number, void *value);

/*
 * Read a register by the engine's uc_reg_read(): its lower 64 bits.
 *
 * HAZARD: the engine writes as many bytes as the register has, up to 64.
 */
u64 engine_register(u64 engine, u64 reader, int number)
{
    u64 value[8] __attribute__((aligned(16)));

    value[0] = 0;
    POINTER(register_function, reader)(engine, number, value);
    return value[0];
}

#define CLOCK_MONOTONIC 1

struct timespec {
    s64 seconds;
    s64 ns;
};

typedef int time_function(int clock, struct timespec *);

/*
 * The host's clock, as a machine's programs read it: see kprobes/programs/hostclock.py.
 *
 * CLOCK_MONOTONIC is read by the C library, in some 25 ns. For SPAN ticks of the CPU's counter
 * after such a reading, the counter tells how much later it is, in 10.
 */
struct clock {
    u64 gettime; /* the C library's clock_gettime() */
    u64 counter; /* 1: the counter of ticks goes evenly, and is the same on all CPUs */
    u64 ticks;   /* the last reading: the counter's, and the clock's */
    u64 ns;
    u64 rate; /* ns in 2**32 ticks; 0: not known yet */
    u64 last; /* what was told last */
};

#define SPAN (1u << 21)  /* ticks */
#define QUICK 500        /* ticks that a reading may take, else something came between */
#define LONG (1ull << 31) /* ticks, and ns: after so many the rate is not measured */

/* Read the clock itself, and measure the rate of the counter since the last reading. */
ASIDE u64 read_clock(struct clock *clock)
{
    struct timespec now;
    u64 before = 0;
    u64 after = 0;
    u64 ns;

    /* HAZARD: AArch64 refuses programs the counter that LLVM takes there; `counter` is 0. */
    if (clock->counter)
        before = __builtin_readcyclecounter();
    POINTER(time_function, clock->gettime)(CLOCK_MONOTONIC, &now);
    ns = now.seconds * 1000000000 + now.ns;
    if (clock->counter) {
        after = __builtin_readcyclecounter();
        if (after - before < QUICK) {
            u64 ticks = before + (after - before) / 2;
            u64 elapsed = ticks - clock->ticks;
            u64 passed = ns - clock->ns;

            if (elapsed < SPAN) /* too short to measure the rate by: the first readings */
                return ns;
            if (elapsed < LONG && passed < LONG)
                clock->rate = (passed << 32) / elapsed;
            clock->ticks = ticks;
            clock->ns = ns;
        }
    }
    return ns;
}

/* bpf_ktime_get_ns(): ns of CLOCK_MONOTONIC. It does not go back. */
u64 clock(u64 address)
{
    struct clock *clock = POINTER(struct clock, address);
    u64 ns;
    u64 elapsed;

    if (clock->rate && (elapsed = __builtin_readcyclecounter() - clock->ticks) < SPAN)
        ns = clock->ns + (elapsed * clock->rate >> 32);
    else
        ns = read_clock(clock);
    if (ns < clock->last)
        ns = clock->last;
    clock->last = ns;
    return ns;
}

#endif

/* ---- records: see kprobes/programs/maps/ring.py ---- */

struct ring {
    u64 consumer;
    u64 producer;
    u64 mask;
    u64 lost;
    u64 more[4];
    u8 data[];
};

struct record {
    u32 length;
    u32 cpu;
    u8 data[];
};

#define BUSY (1u << 31)      /* in a record's length: it is not complete */
#define DISCARDED (1u << 30) /* and: it is passed over */

/* Bytes of a ring that a record takes. */
INSIDE u64 record_size(u64 bytes)
{
    return (bytes + sizeof(struct record) + 7) & -8ull;
}

/*
 * Begin a record of `bytes` of data; the address of the data, or 0: there is no room, and it counts
 * as lost.
 *
 * `size` is the ring's, a constant. `overwrite`: the oldest complete records make room. HAZARD:
 * Python reads a record as soon as the producer's position is behind it, so that is told last.
 */
SPECIAL u64 reserve(u64 map, u64 bytes, u64 cpu, u64 size, u32 overwrite)
{
    struct ring *ring = POINTER(struct ring, map);
    u64 total = record_size(bytes);
    u64 producer = MAP64(ring->producer);
    u64 after = producer + total;

    while (total <= size) {
        u64 consumer = MAP64(LOAD(&ring->consumer));
        struct record *oldest;
        u32 length;

        if (after - consumer <= size) {
            struct record *record = (struct record *)(ring->data + (word)(producer & (size - 8)));

            record->length = MAP32((u32)bytes | BUSY);
            record->cpu = MAP32((u32)cpu);
            STORE(&ring->producer, MAP64(after));
            return (word)record->data;
        }
        /* HAZARD: a guest may have written over the positions. */
        if (!overwrite || producer - consumer > size)
            break;
        oldest = (struct record *)(ring->data + (word)(consumer & (size - 8)));
        length = MAP32(oldest->length);
        if (length & BUSY)
            break;
        if (!(length & DISCARDED))
            ring->lost = MAP64(MAP64(ring->lost) + 1);
        STORE(&ring->consumer, MAP64(consumer + record_size(length & ~(BUSY | DISCARDED))));
    }
    ring->lost = MAP64(MAP64(ring->lost) + 1);
    return 0;
}

/* Complete a record, whose data are at an address. `discard` is 0 or DISCARDED. */
void commit(u64 data, u32 discard)
{
    struct record *record = POINTER(struct record, data - sizeof(struct record));

    STORE(&record->length, MAP32((MAP32(record->length) & ~BUSY) | discard));
}

/* ---- hash tables: see kprobes/programs/maps/hash.py ---- */

#define WORDS 8 /* of a key, and of all values of an entry, for which the code has no loop */
#define NOWHERE (~(word)0)
#define USED 1
#define GOLDEN 0x9E3779B97F4A7C15

struct table {
    u64 count; /* entries in use */
    u64 free;  /* the first entry on the list of free ones: its number plus 1, or 0 */
    u64 fresh; /* entries from this number on have never been used */
    u64 seed;
    u64 more[4];
    u32 index[]; /* an entry's number plus 1, or 0 */
};

struct entry {
    u32 home;    /* the slot where the search for its key begins; of a free entry: the next one */
    u32 state;
    u64 words[]; /* the key's, then the values' */
};

/* What table_find() leaves for the other two. */
struct found {
    word slot;   /* of the index that has the entry, or where it would be, or NOWHERE */
    word home;
    word number; /* the entry's, from 0 */
};

/*
 * A table's constants: words of a key, slots of the index less 1, bytes from the table to its
 * entries, bytes of an entry, and how many entries there are. A loop over the first words is
 * UNROLLED: once `words` is known, what is left of it is straight code, and the loop over the other
 * words is gone where there are none.
 */
#define SHAPE u32 words, word mask, word entries, word entry_size, word most

INSIDE struct entry *entry_of(u64 map, word number, word entries, word entry_size)
{
    return POINTER(struct entry, (word)map + entries + number * entry_size);
}

#if GUEST

/*
 * bpf_map_next_key() of this library: copy the key of the first entry in use from `cursor` on; its
 * number plus 1, or 0 and zeros. HAZARD: the guest may have written over `fresh`.
 */
SPECIAL u64 table_next(u64 map, u8 *to, u32 cursor, u32 size, word entries, word entry_size, u32 most)
{
    u64 used = MAP64(POINTER(const struct table, map)->fresh);
    u32 fresh = used < most ? (u32)used : most;

    for (u32 n = cursor; n < fresh; n++) {
        struct entry *entry = entry_of(map, n, entries, entry_size);

        if (entry->state) {
            copy_bytes(to, (const u8 *)entry->words, size);
            return (u64)n + 1;
        }
    }
    clear(to, size);
    return 0;
}

#endif

/* Read a key of more than WORDS words, as table_find() wants it. */
void table_key(u64 *to, const u8 *from, u64 words)
{
    for (u64 n = 0; n < words; n++)
        to[n] = MAP64(((const struct unaligned *)from)[n].value);
}

INSIDE u64 hashed(u64 hash, u64 word)
{
    hash = (hash ^ word) * GOLDEN;
    return hash ^ hash >> 29;
}

/*
 * Find a key's entry: its address, or 0. The key is padded with zeros to words, in the program's
 * byte order. `seed` is the table's: on the host it does not change, and two searches for a key
 * need one hash.
 *
 * HAZARD: in a guest there need not be an empty slot, nor such an entry as a slot says.
 */
SPECIAL u64 table_find(u64 map, const u64 *key, struct found *found, u64 seed, SHAPE)
{
    struct table *table = POINTER(struct table, map);
    u64 hash = seed;
    word slot;

    UNROLLED for (u32 n = 0; n < WORDS; n++)
        if (n < words)
            hash = hashed(hash, key[n]);
    for (u32 n = WORDS; n < words; n++)
        hash = hashed(hash, key[n]);
    slot = (word)(hash >> 32) & mask;
    found->home = slot;
    do {
        word number = MAP32(table->index[slot]);

        if (!number) {
            found->slot = slot;
            return 0;
        }
        if (!GUEST || number - 1 < most) {
            struct entry *entry = entry_of(map, number - 1, entries, entry_size);
            int same = 1;

            UNROLLED for (u32 n = 0; n < WORDS; n++)
                if (n < words)
                    same &= MAP64(entry->words[n]) == key[n];
            for (u32 n = WORDS; n < words && same; n++)
                same = MAP64(entry->words[n]) == key[n];
            if (same) {
                found->slot = slot;
                found->number = number - 1;
                KNOWN(entry);
                return (word)entry;
            }
        }
        slot = (slot + 1) & mask;
    } while (!GUEST || slot != found->home);
    found->slot = NOWHERE;
    return 0;
}

/* Make an entry, its values zeros, for a key that was not found: its address; 0: none is left. */
SPECIAL u64 table_insert(u64 map, const u64 *key, const struct found *found, SHAPE)
{
    struct table *table = POINTER(struct table, map);
    u64 free = MAP64(table->free);
    struct entry *entry;
    word number;

    if (GUEST && found->slot == NOWHERE)
        return 0;
    if (free) {
        if (GUEST && free - 1 >= most)
            return 0;
        number = (word)free - 1;
        entry = entry_of(map, number, entries, entry_size);
        table->free = MAP64((u64)MAP32(entry->home));
    } else {
        u64 fresh = MAP64(table->fresh);

        if (fresh >= most)
            return 0;
        number = (word)fresh;
        entry = entry_of(map, number, entries, entry_size);
        table->fresh = MAP64(fresh + 1);
    }
    entry->home = MAP32((u32)found->home);
    entry->state = MAP32((u32)USED);
    UNROLLED for (u32 n = 0; n < 2 * WORDS; n++)
        if (sizeof(struct entry) + 8 * n < entry_size)
            entry->words[n] = n < words ? MAP64(key[n]) : 0;
    for (u32 n = 2 * WORDS; sizeof(struct entry) + 8 * n < entry_size; n++)
        entry->words[n] = n < words ? MAP64(key[n]) : 0;
    table->index[found->slot] = MAP32((u32)number + 1);
    table->count = MAP64(MAP64(table->count) + 1);
    KNOWN(entry);
    return (word)entry;
}

/* Free the entry that was found, and close the gap in the index. */
SPECIAL void table_remove(u64 map, const struct found *found, SHAPE)
{
    struct table *table = POINTER(struct table, map);
    struct entry *entry = entry_of(map, found->number, entries, entry_size);
    word gap = found->slot;
    word slot = gap;

    entry->home = MAP32((u32)MAP64(table->free));
    entry->state = 0;
    table->free = MAP64((u64)found->number + 1);
    table->count = MAP64(MAP64(table->count) - 1);
    for (;;) {
        word number;
        word home;

        slot = (slot + 1) & mask;
        if (GUEST && slot == found->slot) /* all of the index was looked at */
            break;
        number = MAP32(table->index[slot]);
        if (GUEST ? number - 1 >= most : !number)
            break;
        home = MAP32(entry_of(map, number - 1, entries, entry_size)->home);
        if (((slot - home) & mask) >= ((slot - gap) & mask)) { /* it may stand in the gap */
            table->index[gap] = MAP32((u32)number);
            gap = slot;
        }
    }
    table->index[gap] = 0;
}
