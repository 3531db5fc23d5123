/* Functions that take the place of functions of the engine's library. They are put there by
 * translator.py, noting.py and outside.py in kprobes/machine/unicorn/host.
 *
 * The library has one such function for each kind of guest, and calls do not say which guest they
 * are for. So here is one for each, too, told apart by its number: STAMP_n(X) makes n copies of X.
 */
#include "words.h"

#define STAMP_4(X, n) X(n##0) X(n##1) X(n##2) X(n##3)
#define STAMP_16(X, n) STAMP_4(X, n##0) STAMP_4(X, n##1) STAMP_4(X, n##2) STAMP_4(X, n##3)
#define STAMP_64(X, n) STAMP_16(X, n##0) STAMP_16(X, n##1) STAMP_16(X, n##2) STAMP_16(X, n##3)
#define STAMP_256(X, n) STAMP_64(X, n##0) STAMP_64(X, n##1) STAMP_64(X, n##2) STAMP_64(X, n##3)

#define GUESTS 16 /* library.GUESTS */
#define NUMBER(n) GUEST##n,
enum { STAMP_16(NUMBER, _) };
#undef NUMBER

/* --- in place of the functions by which translators read instructions
 *
 * Some instructions, reserved ones mostly, end the process when they are translated. The translator
 * reads others instead, which raise the exception of an undefined instruction. */

#define INSTRUCTION_SPARC64 0 /* ILLTRAP */
#define INSTRUCTION_M68K 0xFE00 /* of a coprocessor that is not there: line F */
#define INSTRUCTION_S390X 0 /* no instruction: an operation exception */

#define INSTRUCTION_SPARC 0 /* UNIMP */

EXPORT u32 (*sparc_instruction)(void *environment, u64 address);
EXPORT u32 (*sparc64_instruction)(void *environment, u64 address);

enum { STDA = 0x17, LDSTUBA = 0x1D, SWAPA = 0x1F, LDFA = 0x30, LDDFA = 0x33 }; /* op3 */

/* Loads from and stores to an alternate address space whose number is in the instruction. The
 * engine's functions for them end the process at numbers that they take for impossible: 80 on V8,
 * and there the MMU's block copy (17) and block fill (1F) in another size; on V9 the two-word spaces
 * (E2, E3, EA, EB), which LDTXA alone may name. Where %asi has the number (V9), it is not seen here. */
static int names_space(u32 instruction) { return instruction >> 30 == 3 && !(instruction >> 13 & 1); }

static int is_deadly_sparc(u32 instruction)
{
    u32 op3 = instruction >> 19 & 0x3F, space = instruction >> 5 & 0xFF;
    int is_store = (op3 & 4) != 0, is_swap = op3 == LDSTUBA || op3 == SWAPA;
    if (!names_space(instruction) || op3 >> 4 != 1)
        return 0;
    return space == 0x80 || (space == 0x17 && (op3 == STDA || is_swap)) ||
           (space == 0x1F && is_store && op3 != STDA);
}

static int is_deadly_v9_access(u32 instruction)
{
    u32 op3 = instruction >> 19 & 0x3F, space = instruction >> 5 & 0xFF;
    return names_space(instruction) && (space & 0xF6) == 0xE2 &&
           (op3 == LDSTUBA || op3 == LDFA || op3 == LDDFA);
}

EXPORT u32 read_sparc(void *environment, u64 address)
{
    u32 instruction = sparc_instruction(environment, address);
    return is_deadly_sparc(instruction) ? INSTRUCTION_SPARC : instruction;
}

/* BPr, MOVr and FMOVr have a condition on a register, of three bits. 000 and 100 are reserved (The
 * SPARC Architecture Manual, Version 9, appendix A), and are not in the translator's table. */
static int is_deadly_sparc64(u32 instruction)
{
    u32 op = instruction >> 30, op2 = instruction >> 22 & 7, op3 = instruction >> 19 & 0x3F;
    if (op == 0)
        return op2 == 3 && !(instruction >> 25 & 3); /* BPr */
    if (op == 3)
        return is_deadly_v9_access(instruction);
    if (op != 2 || instruction >> 10 & 3)
        return 0;
    return op3 == 0x2F || (op3 == 0x35 && (instruction >> 5 & 31) - 5 < 3); /* MOVr, FMOVr */
}

EXPORT u32 read_sparc64(void *environment, u64 address)
{
    u32 instruction = sparc64_instruction(environment, address);
    return is_deadly_sparc64(instruction) ? INSTRUCTION_SPARC64 : instruction;
}

/* A guest whose translator reads all parts of an instruction by one function: first parts are those
 * that are asked for from one place, `caller`. That is where the first part of a block is asked for
 * from; `cpu` and `address` are of the last block that began before that was known. */
struct first_parts { void *caller; char *cpu; u64 address; };
static struct first_parts m68k_first, s390x_first;

/* A CPU's registers are at this distance from the CPU or nearer. */
#define CPU_SIZE 0x40000

static int is_first_part(struct first_parts *first, void *caller, void *environment, u64 address)
{
    if (!first->caller && address == first->address &&
        (u64)((char *)environment - first->cpu) < CPU_SIZE)
        first->caller = caller;
    return caller == first->caller;
}

/* Note a block that begins; its address is its first member. */
static void note_block(struct first_parts *first, void *cpu, u64 address)
{
    if (!first->caller) {
        first->cpu = cpu;
        first->address = address;
    }
}

EXPORT u32 (*m68k_word)(void *environment, u32 address);

/* FBcc and FScc have a condition of six bits, of which the highest is reserved; and a data register
 * holds no extended, double or packed number (M68000 Family Programmer's Reference Manual, 5). */
static int is_deadly_m68k(void *environment, u32 address, u32 word)
{
    u32 second, format;
    if ((word & 0xFFA0) == 0xF2A0) /* FBcc.W, FBcc.L */
        return 1;
    if ((word & 0xFFC0) != 0xF240 && (word & 0xFFF8) != 0xF200)
        return 0;
    second = m68k_word(environment, address + 2);
    if (word & 0x40) /* FScc, FDBcc, FTRAPcc */
        return second >> 5 & 1;
    format = second >> 10 & 7;
    switch (second >> 13) {
    case 2: return format == 2 || format == 3 || format == 5; /* from a data register */
    case 3: return format == 2 || format == 3 || format == 5 || format == 7; /* to one */
    default: return 0;
    }
}

EXPORT u32 read_m68k(void *environment, u32 address)
{
    void *caller = __builtin_return_address(0);
    u32 word = m68k_word(environment, address);
    if (!is_first_part(&m68k_first, caller, environment, address))
        return word;
    return is_deadly_m68k(environment, address, word & 0xFFFF) ? INSTRUCTION_M68K : word;
}

EXPORT u32 (*s390x_half)(void *environment, u64 address);

/* SET CLOCK, and ROTATE THEN AND SELECTED BITS that only tests (z/Architecture Principles of
 * Operation): not reserved, but the translator cannot make them. */
static int is_deadly_s390x(void *environment, u64 address, u32 half)
{
    if (half == 0xB204)
        return 1;
    return half >> 8 == 0xEC && (s390x_half(environment, address + 4) & 0xFF) == 0x54 &&
           s390x_half(environment, address + 2) & 0x8000;
}

EXPORT u32 read_s390x(void *environment, u64 address)
{
    void *caller = __builtin_return_address(0);
    u32 half = s390x_half(environment, address);
    if (!is_first_part(&s390x_first, caller, environment, address))
        return half;
    return is_deadly_s390x(environment, address, half & 0xFFFF) ? INSTRUCTION_S390X : half;
}

/* --- in place of a guest's translator: it makes blocks of at most `most` instructions */

EXPORT struct {
    void (*theirs)(void *cpu, void *block, int instructions);
    u64 most;
} translators[GUESTS];

#define M68K GUEST_03
#define S390X GUEST_30

#define TRANSLATE(n)                                                                               \
    static void translate##n(void *cpu, void *block, int instructions)                             \
    {                                                                                              \
        int most = (int)translators[GUEST##n].most;                                                \
        if (GUEST##n == M68K)                                                                      \
            note_block(&m68k_first, cpu, *(u32 *)block);                                           \
        if (GUEST##n == S390X)                                                                     \
            note_block(&s390x_first, cpu, *(u64 *)block);                                          \
        translators[GUEST##n].theirs(cpu, block, instructions < most ? instructions : most);       \
    }
STAMP_16(TRANSLATE, _)
#undef TRANSLATE
#define TRANSLATE(n) translate##n,
EXPORT void (*const translate[])(void *, void *, int) = {STAMP_16(TRANSLATE, _)};

/* --- in place of a function that the engine asks before it reports an exception: a word is kept,
 * as it is now */

#define NOTES 256
#define NUMBER(n) NOTE##n,
enum { STAMP_256(NUMBER, _) };
#undef NUMBER
EXPORT struct { const u64 *source; int (*onward)(void *, int); u64 note; } notes[NOTES];

#define TAKE_NOTE(n)                                                                               \
    static int take_note##n(void *uc, int number)                                                  \
    {                                                                                              \
        notes[NOTE##n].note = *notes[NOTE##n].source;                                              \
        return notes[NOTE##n].onward ? notes[NOTE##n].onward(uc, number) : 0;                      \
    }
STAMP_256(TAKE_NOTE, _)
#undef TAKE_NOTE
#define TAKE_NOTE(n) take_note##n,
EXPORT int (*const take_note[])(void *, int) = {STAMP_256(TAKE_NOTE, _)};

/* --- stops by other threads: see outside.py
 *
 * Each engine has a row. Rows are in pieces: behind the last row of a piece there is 0, and the
 * address of the next piece.
 *
 *   handle   the engine's handle, or outside.FREE
 *   cpu      its CPU, from its first run on
 *   asked    1: another thread asks that it stop
 *   deaf     1: such requests have to wait
 */
struct engine { u64 handle; void *cpu; u64 asked, deaf; };

/* What the two functions of a guest know.
 *
 *   theirs   the library's own function
 *   look     where the guest's look begins: what translated code calls to learn whether it is to
 *            leave
 *   rows     the first piece of rows
 *   exit     cpu_exit: has the engine look
 *   stop     uc_emu_stop
 *   block    finds the translation that an address is in
 *   code     bytes from a translation to the address of its code
 */
#define ABOUT_WORDS(X) X(theirs) X(look) X(rows) X(exit) X(stop) X(block) X(code)
EXPORT const char about_words[] = ABOUT_WORDS(NAME);
struct about { ABOUT_WORDS(WORD) };
EXPORT struct about executing[GUESTS];
/* Symbols and their pages, as the assembler of this kind of object file has them. */
#ifdef __APPLE__
#define AS_IN_C(name) __asm__(#name) /* without the underscore that C's names have there */
#define PAGE_OF "leaving_rows@PAGE"
#define REST_OF "leaving_rows@PAGEOFF"
#else
#define AS_IN_C(name)
#define PAGE_OF "leaving_rows"
#define REST_OF ":lo12:leaving_rows"
#endif

extern struct about leaving_rows[] AS_IN_C(leaving_rows);
/* Not exported: assembly names it. */
__attribute__((used, visibility("hidden"))) struct about leaving_rows[GUESTS];
EXPORT struct about *const leaving = leaving_rows;

/* Of the library's build that is known (known.py): how long a look is; from the handle to what says
 * that a hook has stopped the run, to its error, and to the translator's words. */
#define LOOK 192
#define STOPPED 0x56D
#define FAILED 0x590
#define TRANSLATOR 0x300

static struct engine *next_of(struct engine *row)
{
    row++;
    return row->handle ? row : (struct engine *)row->cpu;
}

/* On an AArch64 host another thread could otherwise see the engine made to look before it sees that
 * somebody asks for that, and before what ends the run. */
#ifdef __aarch64__
#define FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#else
#define FENCE() ((void)0)
#endif

/* True where something in front of `at` in a block's code, which begins at `code`, calls what the
 * call in front of `at` does. The arguments of calls say nothing: how the engine is named depends
 * on where it is, and in delay slots the other one is not constant. */
#ifdef __x86_64__
/* A relative call (E8), or one through a word (FF 15), which a block's calls of a function share.
 * */
static int called_before(const u8 *code, const u8 *at, const struct about *about)
{
    const u8 *target = at + *(const int *)(at - 4);
    for (; code < at; code++)
        if (code + *(const int *)(code - 4) == target && code[-5] == at[-5])
            return 1;
    return 0;
}
#define SHORTEST_CALL 5
#else
/* BL; or BLR X30 behind ADRP and ADD, or behind LDR of a word. */
static int called_before(const u8 *code, const u8 *at, const struct about *about)
{
    u64 look = about->look;
    for (const u32 *word = (const u32 *)code; (const u8 *)word < at - 4; word++) {
        u64 here = (u64)word;
        if (*word == (0x94000000 | ((look - here) >> 2 & 0x3FFFFFF)))
            return 1;
        if (*word != 0xD63F03C0)
            continue;
        if ((word[-1] & 0xFF00001F) == 0x5800001E) {
            long long distance = (long long)((u64)word[-1] << 40) >> 45 << 2;
            if (*(const u64 *)(here - 4 + distance) == look)
                return 1;
        } else if (word[-1] == (0x910003DE | (u32)(look & 0xFFF) << 10)) {
            u64 pages = (look >> 12) - ((here - 8) >> 12);
            u32 low = (u32)(pages & 3) << 29;
            u32 high = (u32)(pages >> 2 & 0x7FFFF) << 5;
            if (word[-2] == (0x9000001E | low | high))
                return 1;
        }
    }
    return 0;
}
#define SHORTEST_CALL 0
#endif

/* Leaving a block: 1 if it is a look that leaves, not the block's first, and only as another thread
 * asks; then that look is to return. At its first the engine comes out, between two instructions.
 *
 * back: where translated code goes on. in_look: where the function that leaves was called.
 * frame_back: where that one returns to.
 */
static int look_goes_on(void *cpu, u64 back, const struct about *about, u64 in_look, u64 frame_back)
    AS_IN_C(look_goes_on);
__attribute__((used)) static int look_goes_on(void *cpu, u64 back, const struct about *about,
                                              u64 in_look, u64 frame_back)
{
    if (in_look - about->look >= LOOK)
        return 0;
    struct engine *row = (struct engine *)about->rows;
    while (row && row->cpu != cpu)
        row = next_of(row);
    if (!row)
        return 0;
    FENCE();
    if (!row->asked || *(u32 *)(row->handle + FAILED) || *(u8 *)(row->handle + STOPPED)
        || frame_back != back)
        return 0;
    const u8 *block = ((const u8 *(*)(void *, u64))about->block)(
        *(void **)(row->handle + TRANSLATOR), back);
    if (!block) /* its translation has gone: its end is near */
        return 1;
    const u8 *code = *(const u8 *const *)(block + about->code);
    if (called_before(code + SHORTEST_CALL, (const u8 *)back, about))
        return 1;
#ifdef __aarch64__
    ((void (*)(void *))about->exit)(cpu);
#endif
    return 0;
}

static void leave_a_block(void) AS_IN_C(leave_a_block);

/* look_goes_on() needs its caller's frame, and answers by leaving that in its place: its epilogue,
 * written out. */
#ifdef __x86_64__
#define LEAVE_BLOCK(n)                                                                             \
    __attribute__((naked)) static void leave_block##n(void)                                        \
    {                                                                                              \
        __asm__("lea leaving_rows + %c0(%%rip), %%rdx\n jmp leave_a_block"                         \
                :: "i"(GUEST##n * sizeof(struct about)));                                          \
    }
__attribute__((naked, used)) static void leave_a_block(void)
{
    __asm__("mov (%rsp), %rcx\n"
            "mov 0x20(%rsp), %r8\n"
            "push %rdi\n push %rsi\n push %rdx\n"
            "call look_goes_on\n"
            "pop %rdx\n pop %rsi\n pop %rdi\n"
            "test %eax, %eax\n"
            "jnz 1f\n"
            "jmp *(%rdx)\n"
            "1: add $0x20, %rsp\n ret");
}
#else
#define LEAVE_BLOCK(n)                                                                             \
    __attribute__((naked)) static void leave_block##n(void)                                        \
    {                                                                                              \
        __asm__("adrp x2, " PAGE_OF " + %c0\n add x2, x2, " REST_OF " + %c0\n b leave_a_block"     \
                :: "i"(GUEST##n * sizeof(struct about)));                                          \
    }
__attribute__((naked, used)) static void leave_a_block(void)
{
    __asm__("mov x3, x30\n"
            "ldr x4, [sp, #8]\n"
            "stp x0, x1, [sp, #-32]!\n stp x2, x30, [sp, #16]\n"
            "bl look_goes_on\n"
            "mov w9, w0\n"
            "ldp x2, x30, [sp, #16]\n ldp x0, x1, [sp], #32\n"
            "cbnz w9, 1f\n"
            "ldr x16, [x2]\n br x16\n"
            "1: ldp x19, x20, [sp, #16]\n ldp x29, x30, [sp], #0x20\n ret");
}
#endif
STAMP_16(LEAVE_BLOCK, _)
#undef LEAVE_BLOCK
#define LEAVE_BLOCK(n) leave_block##n,
EXPORT void (*const leave_block[])(void) = {STAMP_16(LEAVE_BLOCK, _)};

static int heard(struct engine *row)
{
    return row->asked && !row->deaf;
}

/* Execute blocks. A thread that has asked for a stop before that begins is heeded at the first
 * block; when the engine has come out of it, the run is stopped. */
static int execute(void *uc, void *cpu, struct about *about)
{
    int (*theirs)(void *, void *) = (int (*)(void *, void *))about->theirs;
    struct engine *row = (struct engine *)about->rows;
    while (row && row->handle != (u64)uc)
        row = next_of(row);
    if (!row)
        return theirs(uc, cpu);
    if (row->cpu != cpu)
        __atomic_store_n(&row->cpu, cpu, __ATOMIC_SEQ_CST);
    FENCE();
    if (heard(row))
        ((void (*)(void *))about->exit)(cpu);
    int result = theirs(uc, cpu);
    FENCE();
    if (heard(row)) {
        row->asked = 0;
        ((int (*)(void *))about->stop)(uc);
    }
    return result;
}

#define EXECUTE(n) \
    static int execute##n(void *uc, void *cpu) { return execute(uc, cpu, &executing[GUEST##n]); }
STAMP_16(EXECUTE, _)
#undef EXECUTE
#define EXECUTE(n) execute##n,
EXPORT int (*const execute_blocks[])(void *, void *) = {STAMP_16(EXECUTE, _)};

/* What another thread calls; all threads see the one before the other. */
EXPORT void stop_soon(struct engine *row, void (*exit)(void *))
{
    __atomic_store_n(&row->asked, 1, __ATOMIC_SEQ_CST);
    void *cpu = __atomic_load_n(&row->cpu, __ATOMIC_SEQ_CST);
    if (cpu)
        exit(cpu);
}
