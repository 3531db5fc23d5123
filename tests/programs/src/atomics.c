/* Atomic operations: exclusive loads and stores, or one locked instruction, as the machine has it. */
#include "suite.h"

PLAIN_ON_SH

static uint32_t counter;
static uint32_t lock;
static uint32_t shared[2];

KEEP static uint32_t add_if_below(uint32_t *at, uint32_t by, uint32_t limit) {
    uint32_t seen = __atomic_load_n(at, __ATOMIC_RELAXED);
    do {
        if (seen >= limit)
            return 0;
    } while (!__atomic_compare_exchange_n(at, &seen, seen + by, 1, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return 1;
}

uint32_t test_atomics(uint32_t seed) {
    uint32_t hash = seed, expected;
    __atomic_store_n(&counter, seed, __ATOMIC_RELEASE);
    for (uint32_t n = 0; n < 5; n++) {
        hash = mix(hash, __atomic_fetch_add(&counter, seed + n, __ATOMIC_SEQ_CST));
        hash = mix(hash, __atomic_fetch_sub(&counter, n * 9, __ATOMIC_ACQ_REL));
        hash = mix(hash, __atomic_fetch_or(&counter, 1u << (n * 3), __ATOMIC_RELAXED));
        hash = mix(hash, __atomic_fetch_and(&counter, ~(16u << n), __ATOMIC_SEQ_CST));
        hash = mix(hash, __atomic_fetch_xor(&counter, hash, __ATOMIC_SEQ_CST));
        hash = mix(hash, __atomic_exchange_n(&counter, hash >> 3, __ATOMIC_ACQUIRE));
        expected = n & 1 ? hash >> 3 : ~(hash >> 3);
        hash = mix(hash, __atomic_compare_exchange_n(&counter, &expected, n, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
        hash = mix(hash, expected);
        hash = mix(hash, add_if_below(&counter, 7, 0x80000000));
    }
    return mix(hash, __atomic_load_n(&counter, __ATOMIC_ACQUIRE));
}

KEEP static void acquire(uint32_t *at) {
    while (__atomic_exchange_n(at, 1, __ATOMIC_ACQUIRE))
        ;
}

KEEP static void release(uint32_t *at) {
    __atomic_store_n(at, 0, __ATOMIC_RELEASE);
}

uint32_t test_spinlock(uint32_t seed) {
    shared[0] = seed;
    shared[1] = 0;
    for (uint32_t n = 0; n < 6; n++) {
        acquire(&lock);
        shared[n & 1] += n * seed;
        release(&lock);
    }
    return mix(mix(shared[0], shared[1]), lock);
}
