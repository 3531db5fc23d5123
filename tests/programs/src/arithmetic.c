/* Integer arithmetic: widths, signs, carries, shifts by variable amounts, bit tricks. */
#include "suite.h"

KEEP static uint32_t rotate_left(uint32_t value, uint32_t by) {
    by &= 31;
    return by ? value << by | value >> (32 - by) : value;
}

KEEP static uint64_t rotate_left64(uint64_t value, uint32_t by) {
    by &= 63;
    return by ? value << by | value >> (64 - by) : value;
}

uint32_t test_arith32(uint32_t seed) {
    uint32_t a = seed, b = seed * 7 + 3, hash = 0;
    for (int n = 0; n < 12; n++) {
        uint32_t sum = a + b, carry = sum < a, difference = a - b, borrow = a < b;
        hash = mix(hash, sum + carry);
        hash = mix(hash, difference - borrow);
        hash = mix(hash, a * b);
        hash = mix(hash, (uint32_t)((uint64_t)a * b >> 32));
        hash = mix(hash, (uint32_t)(uint64_t)((int64_t)(int32_t)a * (int32_t)b >> 31));
        hash = mix(hash, (int32_t)a < (int32_t)b ? a & ~b : a | (b ^ 0x5a5a5a5a));
        b = next_random(&a);
    }
    return hash;
}

uint32_t test_arith64(uint32_t seed) {
    uint64_t a = seed | (uint64_t)~seed << 32, b = 0x123456789abcdef1u ^ seed;
    uint32_t hash = 0;
    for (int n = 0; n < 10; n++) {
        hash = mix64(hash, a + b);
        hash = mix64(hash, a - b);
        hash = mix64(hash, a * b);
        hash = mix64(hash, (a & b) ^ (a | ~b));
        hash = mix(hash, (a < b) + 2 * ((int64_t)a < (int64_t)b) + 4 * (a == b));
        hash = mix64(hash, 0 - a);
        a = a * 6364136223846793005u + 1442695040888963407u;
        b ^= a >> 29;
    }
    return hash;
}

uint32_t test_divide32(uint32_t seed) {
    uint32_t state = seed, hash = 0;
    for (int n = 0; n < 12; n++) {
        uint32_t a = next_random(&state), b = (next_random(&state) >> (n * 2)) | 1;
        int32_t c = (int32_t)(b & 0xffffff) - 0x7fffff;
        if (c == 0)
            c = 5;
        hash = mix(hash, a / b);
        hash = mix(hash, a % b);
        hash = mix(hash, (uint32_t)((int32_t)(a >> 1) / c));
        hash = mix(hash, (uint32_t)((int32_t)a / 2 % c));
        hash = mix(hash, a / 10 + a % 1000 + (uint32_t)((int32_t)a / -7));
    }
    return hash;
}

uint32_t test_divide64(uint32_t seed) {
    uint32_t state = seed, hash = 0;
    for (int n = 0; n < 4; n++) {
        uint64_t high = next_random(&state), a = high << 32 | next_random(&state), b;
        high = next_random(&state);
        b = (high << 32 | next_random(&state)) >> (n * 14) | 1;
        int64_t c = n & 1 ? -(int64_t)(b >> 2) - 1 : (int64_t)(b >> 2) + 1;
        hash = mix64(hash, a / b);
        hash = mix64(hash, a % b);
        hash = mix64(hash, (uint64_t)((int64_t)(a >> 1) / c));
        hash = mix64(hash, (uint64_t)(-(int64_t)(a >> 1) % c));
        hash = mix64(hash, a / 10 + a % 1000003);
    }
    return hash;
}

uint32_t test_shifts(uint32_t seed) {
    uint32_t hash = 0;
    uint64_t wide = (uint64_t)seed * 0x9e3779b97f4a7c15u + 0xfedcba9876543210u;
    for (uint32_t n = 0; n < 64; n += 5) {
        uint32_t word = (uint32_t)(wide >> 16);
        hash = mix(hash, word << (n & 31));
        hash = mix(hash, word >> (n & 31));
        hash = mix(hash, (uint32_t)((int32_t)word >> (n & 31)));
        hash = mix(hash, rotate_left(word, n));
        hash = mix64(hash, wide << n);
        hash = mix64(hash, wide >> n);
        hash = mix64(hash, (uint64_t)((int64_t)wide >> n));
        hash = mix64(hash, rotate_left64(wide, n + seed));
        wide ^= (uint64_t)hash << 3;
    }
    return hash;
}

/* Sign and zero extension of every narrow type, through memory and through registers. */
uint32_t test_narrow(uint32_t seed) {
    volatile int8_t s8 = (int8_t)seed;
    volatile uint8_t u8 = (uint8_t)(seed >> 3);
    volatile int16_t s16 = (int16_t)(seed * 3);
    volatile uint16_t u16 = (uint16_t)(seed * 5 + 0xff00);
    volatile int32_t s32 = (int32_t)(seed ^ 0x80000000);
    uint32_t hash = 0;
    for (int n = 0; n < 9; n++) {
        hash = mix(hash, (uint32_t)(s8 + u8));
        hash = mix(hash, (uint32_t)(s16 * s8));
        hash = mix64(hash, (uint64_t)(int64_t)s32 + u16);
        hash = mix64(hash, (uint64_t)((int64_t)s16 * 0x100000 ^ s8));
        s8 = (int8_t)(s8 * 3 + 1);
        u8 = (uint8_t)(u8 + s16);
        s16 = (int16_t)(s16 ^ u16 >> 2);
        u16 = (uint16_t)(u16 * 257 + u8);
        s32 = (int32_t)((uint32_t)s32 + hash);
    }
    return hash;
}

KEEP static uint32_t count_bits(uint32_t value) {
    value -= value >> 1 & 0x55555555;
    value = (value & 0x33333333) + (value >> 2 & 0x33333333);
    return ((value + (value >> 4)) & 0x0f0f0f0f) * 0x01010101 >> 24;
}

KEEP static uint32_t swap_bytes(uint32_t value) {
    return value >> 24 | (value >> 8 & 0xff00) | (value << 8 & 0xff0000) | value << 24;
}

KEEP static uint32_t reverse_bits(uint32_t value) {
    uint32_t result = 0;
    for (int n = 0; n < 32; n++, value >>= 1)
        result = result << 1 | (value & 1);
    return result;
}

KEEP static uint32_t leading_zeros(uint32_t value) {
    uint32_t count = 0;
    if (value == 0)
        return 32;
    for (; !(value & 0x80000000); value <<= 1)
        count++;
    return count;
}

KEEP static uint32_t square_root(uint32_t value) {
    uint32_t root = 0;
    for (uint32_t bit = 1u << 30; bit; bit >>= 2) {
        uint32_t trial = root + bit;
        root >>= 1;
        if (value >= trial) {
            value -= trial;
            root += bit;
        }
    }
    return root;
}

uint32_t test_bits(uint32_t seed) {
    uint32_t hash = 0;
    for (int n = 0; n < 5; n++) {
        uint32_t value = next_random(&seed) >> (n * 5);
        hash = mix(hash, count_bits(value));
        hash = mix(hash, swap_bytes(value));
        hash = mix(hash, reverse_bits(value));
        hash = mix(hash, leading_zeros(value));
        hash = mix(hash, square_root(value));
        hash = mix(hash, value & (0 - value));
        hash = mix(hash, value & (value - 1));
    }
    return hash;
}
