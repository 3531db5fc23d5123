/* Every test of this build, one after the other, and the entry point. */
#include "suite.h"

extern inline uint32_t mix(uint32_t hash, uint32_t value);
extern inline uint32_t mix64(uint32_t hash, uint64_t value);
extern inline uint32_t next_random(uint32_t *state);

#define ADDRESS(name) test_##name,

static uint32_t (*const tests[])(uint32_t) = {
    EVERY_TEST(ADDRESS)
#ifdef WITH_SETJMP
    SETJMP_TESTS(ADDRESS)
#endif
#ifdef WITH_ATOMICS
    ATOMIC_TESTS(ADDRESS)
#endif
#ifdef WITH_FLOAT
    FLOAT_TESTS(ADDRESS)
#endif
};

KEEP uint32_t run_all(uint32_t seed) {
    uint32_t hash = seed;
    for (size_t n = 0; n < COUNT(tests); n++)
        hash = mix(hash, tests[n](seed + (hash & 7)));
    return hash;
}

/* Returns like any function: the machine gives it a return address. */
int _start(void) {
    return (int)run_all(1);
}
