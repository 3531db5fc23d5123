/* setjmp and longjmp as the compiler makes them: control leaves several frames at once. */
#include "suite.h"

static void *checkpoint[8];
static volatile uint32_t depth_reached;

KEEP static uint32_t dive(uint32_t depth, uint32_t limit) {
    depth_reached = depth;
    if (depth == limit)
        __builtin_longjmp(checkpoint, 1);
    return dive(depth + 1, limit) + 1;
}

KEEP static uint32_t attempt(uint32_t limit) {
    volatile uint32_t before = limit * 3;
    if (__builtin_setjmp(checkpoint) == 0)
        return dive(0, limit);
    return before + depth_reached;
}

uint32_t test_setjmp(uint32_t seed) {
    uint32_t hash = seed;
    for (uint32_t n = 0; n < 3; n++)
        hash = mix(hash, attempt((seed + n) % 5));
    return hash;
}
