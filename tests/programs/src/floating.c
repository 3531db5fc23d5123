/* Floating point. Values are dyadic or rounded coarsely, so a machine with wider registers gives the same checksum. */
#include "suite.h"

KEEP static float polynomial(float x, float a, float b, float c) {
    return (a * x + b) * x + c;
}

uint32_t test_float(uint32_t seed) {
    uint32_t hash = seed;
    float x = (float)(int32_t)(seed % 64) * 0.25f;
    for (int n = 0; n < 8; n++) {
        float y = polynomial(x, 0.5f, -3.0f, (float)n);
        hash = mix(hash, (uint32_t)(int32_t)(y * 16.0f));
        hash = mix(hash, (uint32_t)(x < y) | (uint32_t)(x == y) << 1 | (uint32_t)(x >= 4.0f) << 2);
        x = x > 10.0f ? x - 9.5f : -x + 1.75f * (float)n;
    }
    return hash;
}

KEEP static double square_root(double value) {
    double root = value > 1 ? value : 1;
    for (int n = 0; n < 14; n++)
        root = (root + value / root) * 0.5;
    return root;
}

KEEP static double twelve_doubles(double a, double b, int c, double d, double e, float f, double g, double h, double i,
                                  double j, uint32_t k, double l) {
    return a + b * 2 + c * 4 + d * 8 + e * 16 + (double)f * 32 + g - h + i * j - k + l;
}

uint32_t test_double(uint32_t seed) {
    uint32_t hash = seed;
    for (int n = 1; n < 5; n++) {
        double x = (seed % 1000) * 0.125 + n;
        hash = mix(hash, (uint32_t)(square_root(x) * 1024.0 + 0.5));
        hash = mix(hash, (uint32_t)(int32_t)twelve_doubles(x, -x, n, x + 1, 2.5, 0.75f, x * x, 3, n, 4.5, seed % 9, -1));
        hash = mix(hash, (uint32_t)(1000000.0 / x + 0.25));
    }
    return hash;
}

struct vector {
    double x, y;
};

KEEP static struct vector add(struct vector a, struct vector b) {
    return (struct vector){a.x + b.x, a.y - b.y};
}

uint32_t test_convert(uint32_t seed) {
    struct vector v = {(double)seed, -(double)(int32_t)seed};
    union {
        float number;
        uint32_t bits;
    } word;
    union {
        double number;
        uint64_t bits;
    } pair;
    uint32_t hash = seed;
    for (int n = 0; n < 4; n++) {
        v = add(v, (struct vector){n * 0.5, 1.25});
        pair.number = v.x;
        word.number = (float)(seed & 0xffffff) * 0.0625f;
        hash = mix64(hash, pair.bits);
        hash = mix(hash, word.bits);
        hash = mix64(hash, (uint64_t)(int64_t)(v.y * 8.0));
        hash = mix64(hash, (uint64_t)(v.x * 1048576.0));
        pair.number = (double)(int64_t)((uint64_t)seed << 20) + (double)(uint16_t)seed;
        hash = mix64(hash, pair.bits);
        seed = seed * 3 + 1;
    }
    return hash;
}
