/* The test functions: uint32_t test_xxx(uint32_t seed) returns a checksum that depends on the seed and on nothing else:
 * not on byte order, not on the size of a pointer, not on the optimisation level. */
#ifndef SUITE_H
#define SUITE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__clang__)
#define KEEP __attribute__((noinline, used)) /* a real function with a real call, at every optimisation level */
#else
#define KEEP __attribute__((noipa, used))
#endif

/* gcc 12.2 for SuperH loses comparisons, from -Og on: functions below this are not optimised there. */
#if defined(__sh__)
#define PLAIN_ON_SH _Pragma("GCC optimize(\"O0\")")
#else
#define PLAIN_ON_SH
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Inlined when optimising; otherwise the one copy in run_all.c is called. */
inline uint32_t mix(uint32_t hash, uint32_t value) {
    hash = (hash ^ value) * 0x01000193u;
    return hash << 13 | hash >> 19;
}

inline uint32_t mix64(uint32_t hash, uint64_t value) {
    return mix(mix(hash, (uint32_t)value), (uint32_t)(value >> 32));
}

inline uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state;
}

#define EVERY_TEST(X)                                                                                                  \
    X(arith32) X(arith64) X(divide32) X(divide64) X(shifts) X(narrow) X(bits)                                          \
    X(fib) X(ackermann) X(quicksort) X(mutual)                                                                         \
    X(many_args) X(args64) X(structs) X(big_structs) X(varargs) X(printf) X(pointers) X(tail_calls) X(alloca)          \
    X(switch) X(interpreter) X(threaded) X(loops)                                                                      \
    X(memory) X(strings) X(list) X(hash_table) X(crc) X(globals)
#define SETJMP_TESTS(X) X(setjmp)
#define ATOMIC_TESTS(X) X(atomics) X(spinlock)
#define FLOAT_TESTS(X) X(float) X(double) X(convert)

#define DECLARE(name) uint32_t test_##name(uint32_t seed);
EVERY_TEST(DECLARE) SETJMP_TESTS(DECLARE) ATOMIC_TESTS(DECLARE) FLOAT_TESTS(DECLARE)
uint32_t run_all(uint32_t seed);

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *left, const void *right, size_t size);

#endif
