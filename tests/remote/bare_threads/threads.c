/* Two threads that call one function, of a program without a C library: for architectures whose threads
   do not take turns. Exit status 7 where both have come to their ends. */
#define ROUNDS 40
#define THREAD 0x50f00 /* CLONE_VM, _FS, _FILES, _SIGHAND, _THREAD, _SYSVSEM: QEMU wants them all */

#if defined(__alpha__)
#define CLONE 312
#define EXIT 1
#define EXIT_GROUP 405
#define YIELD 334
#elif defined(__sparc__)
#define CLONE 217
#define EXIT 1
#define EXIT_GROUP 188
#define YIELD 245
#elif defined(__hppa__)
#define CLONE 120
#define EXIT 1
#define EXIT_GROUP 222
#define YIELD 158
#elif defined(__m68k__)
#define CLONE 120
#define EXIT 1
#define EXIT_GROUP 247
#define YIELD 158
#elif defined(__sh__)
#define CLONE 120
#define EXIT 1
#define EXIT_GROUP 252
#define YIELD 158
#endif

/* Inlined: a new thread has no frame to return from. */
__attribute__((always_inline)) static inline long call(long number, long first, long second)
{
#if defined(__alpha__)
    register long v0 __asm__("$0") = number;
    register long a0 __asm__("$16") = first;
    register long a1 __asm__("$17") = second;
    register long a2 __asm__("$18") = 0;
    register long a3 __asm__("$19") = 0;
    register long a4 __asm__("$20") = 0;
    __asm__ volatile("callsys" : "+r"(v0), "+r"(a3), "+r"(a4) : "r"(a0), "r"(a1), "r"(a2) : "memory");
    return v0;
#elif defined(__sparc__)
    register long g1 __asm__("g1") = number;
    register long o0 __asm__("o0") = first;
    register long o1 __asm__("o1") = second;
#if defined(__arch64__)
    __asm__ volatile("ta 0x6d" : "+r"(o0), "+r"(o1) : "r"(g1) : "memory", "cc");
#else
    __asm__ volatile("ta 0x10" : "+r"(o0), "+r"(o1) : "r"(g1) : "memory", "cc");
#endif
    return o1 == 1 && number == CLONE ? 0 : o0; /* o1: 1 in the child */
#elif defined(__hppa__)
    register long r26 __asm__("r26") = first;
    register long r25 __asm__("r25") = second;
    register long r24 __asm__("r24") = 0;
    register long r28 __asm__("r28");
    __asm__ volatile("copy %4, %%r20\n\tble 0x100(%%sr2, %%r0)\n\tnop" : "=r"(r28), "+r"(r26), "+r"(r25), "+r"(r24)
                     : "r"(number) : "r1", "r2", "r19", "r20", "r21", "r22", "r23", "r29", "r31", "memory");
    return r28;
#elif defined(__m68k__)
    register long d0 __asm__("d0") = number;
    register long d1 __asm__("d1") = first;
    register long d2 __asm__("d2") = second;
    __asm__ volatile("trap #0" : "+d"(d0) : "d"(d1), "d"(d2) : "memory");
    return d0;
#elif defined(__sh__)
    register long r3 __asm__("r3") = number;
    register long r0 __asm__("r0");
    register long r4 __asm__("r4") = first;
    register long r5 __asm__("r5") = second;
    __asm__ volatile("trapa #0x12" : "=z"(r0) : "r"(r3), "r"(r4), "r"(r5) : "memory");
    return r0;
#endif
}

static volatile long done;
static char stack[65536] __attribute__((aligned(64)));

__attribute__((noinline)) long work(long number, long round)
{
    __asm__ volatile("" : "+r"(number));
    return number * 1000 + round;
}

/* A function: gcc 12 for SH leaves the load out of a loop. */
__attribute__((noinline)) static long finished(void)
{
    return done;
}

__attribute__((noinline, noreturn)) static void second(void)
{
    long sum = 0;
    for (long round = 0; round < ROUNDS; round++)
        sum += work(2, round);
    done = sum;
    for (;;)
        call(EXIT, 0, 0);
}

__attribute__((noreturn)) void start(void)
{
    long top = (long)(stack + sizeof stack / 2);
#if defined(__arch64__)
    top -= 2047;
#endif
    if (call(CLONE, THREAD, top) == 0)
        second();
    for (long round = 0; round < ROUNDS; round++)
        work(1, round);
    while (!finished())
        call(YIELD, 0, 0);
    for (;;)
        call(EXIT_GROUP, 7, 0);
}

#if defined(__alpha__)
__asm__(".globl _start\n_start: br $27, 1f\n1: ldgp $29, 0($27)\n\tlda $27, start\n\tjsr $26, ($27)");
#elif defined(__hppa__)
__asm__(".globl _start\n_start: b start\n\tldo 64(%r30), %r30");
#elif defined(__sh__)
__asm__(".globl _start\n_start: mov.l 1f, r0\n\tjmp @r0\n\tnop\n\t.align 2\n1: .long start");
#elif defined(__sparc__)
__asm__(".globl _start\n_start: ba start\n\tnop");
#elif defined(__m68k__)
__asm__(".globl _start\n_start: jra start");
#endif
