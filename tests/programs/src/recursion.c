/* Functions that call themselves, each other, and through a pointer. */
#include "suite.h"

KEEP uint32_t fib(uint32_t n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

KEEP uint32_t ackermann(uint32_t m, uint32_t n) {
    if (m == 0)
        return n + 1;
    return ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}

uint32_t test_fib(uint32_t seed) {
    return mix(fib(7 + seed % 4), seed);
}

uint32_t test_ackermann(uint32_t seed) {
    return mix(ackermann(2, 1 + seed % 4), seed);
}

typedef int (*comparator)(const uint32_t *, const uint32_t *);

KEEP static int ascending(const uint32_t *a, const uint32_t *b) {
    return (*a > *b) - (*a < *b);
}

KEEP static int by_low_byte(const uint32_t *a, const uint32_t *b) {
    int low = (int)(*a & 0xff) - (int)(*b & 0xff);
    return low ? low : ascending(a, b);
}

KEEP static void swap(uint32_t *a, uint32_t *b) {
    uint32_t kept = *a;
    *a = *b;
    *b = kept;
}

KEEP static void quicksort(uint32_t *items, int count, comparator compare) {
    int last = 0;
    if (count < 2)
        return;
    swap(&items[0], &items[count / 2]);
    for (int n = 1; n < count; n++)
        if (compare(&items[n], &items[0]) < 0)
            swap(&items[++last], &items[n]);
    swap(&items[0], &items[last]);
    quicksort(items, last, compare);
    quicksort(items + last + 1, count - last - 1, compare);
}

uint32_t test_quicksort(uint32_t seed) {
    static const comparator comparators[] = {ascending, by_low_byte};
    uint32_t items[24], hash = 0;
    for (size_t which = 0; which < COUNT(comparators); which++) {
        for (size_t n = 0; n < COUNT(items); n++)
            items[n] = next_random(&seed) >> 8;
        quicksort(items, COUNT(items), comparators[which]);
        for (size_t n = 0; n < COUNT(items); n++)
            hash = mix(hash, items[n]);
    }
    return hash;
}

KEEP static uint32_t hofstadter_male(uint32_t n);

KEEP static uint32_t hofstadter_female(uint32_t n) {
    return n == 0 ? 1 : n - hofstadter_male(hofstadter_female(n - 1));
}

static uint32_t hofstadter_male(uint32_t n) {
    return n == 0 ? 0 : n - hofstadter_female(hofstadter_male(n - 1));
}

uint32_t test_mutual(uint32_t seed) {
    uint32_t n = 5 + seed % 5;
    return mix(mix(seed, hofstadter_male(n)), hofstadter_female(n));
}
