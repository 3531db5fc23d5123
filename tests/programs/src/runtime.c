/* What a compiler may call without being asked. */
#include "suite.h"

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    uint8_t *target = to;
    const uint8_t *source = from;
    while (size--)
        *target++ = *source++;
    return to;
}

void *memmove(void *to, const void *from, size_t size) {
    uint8_t *target = to;
    const uint8_t *source = from;
    if (target <= source)
        return memcpy(to, from, size);
    while (size--)
        target[size] = source[size];
    return to;
}

void *memset(void *to, int value, size_t size) {
    uint8_t *target = to;
    while (size--)
        *target++ = (uint8_t)value;
    return to;
}

int memcmp(const void *left, const void *right, size_t size) {
    const uint8_t *a = left, *b = right;
    for (; size--; a++, b++)
        if (*a != *b)
            return *a < *b ? -1 : 1;
    return 0;
}
