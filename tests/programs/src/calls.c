/* Calling conventions: registers, pairs, stack, structures, variable arguments, pointers, tail calls. */
#include "suite.h"

KEEP uint32_t sum_of_12(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f, uint32_t g, uint32_t h,
                        uint32_t i, uint32_t j, uint32_t k, uint32_t l) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l;
}

KEEP uint32_t narrow_of_11(int8_t a, uint8_t b, int16_t c, uint16_t d, int32_t e, uint64_t f, int8_t g, uint16_t h,
                           int8_t i, int16_t j, const char *k) {
    uint32_t hash = mix(mix((uint32_t)a, b), (uint32_t)c);
    hash = mix64(mix(mix(hash, d), (uint32_t)e), f);
    hash = mix(mix(mix(hash, (uint32_t)g), h), (uint32_t)i);
    return mix(mix(hash, (uint32_t)j), (uint32_t)k[1]);
}

uint32_t test_many_args(uint32_t seed) {
    uint32_t s = seed, hash = 0;
    for (int n = 0; n < 3; n++) {
        hash = mix(hash, sum_of_12(s, s + 1, s ^ 2, s * 3, s - 4, s + 5, s | 6, s & 7, s + 8, s << 9, s >> 10, ~s));
        hash = mix(hash, narrow_of_11((int8_t)s, (uint8_t)(s >> 1), (int16_t)(s >> 2), (uint16_t)(s >> 3), (int32_t)s,
                                      (uint64_t)s << 20, (int8_t)(s >> 4), (uint16_t)(s >> 5), (int8_t)(s >> 6),
                                      (int16_t)(s >> 7), "kprobes"));
        next_random(&s);
    }
    return hash;
}

/* On 32-bit machines each 64-bit argument is a pair, and may have to skip a register to start at an even one. */
KEEP uint64_t mixed_widths(uint32_t a, uint64_t b, uint32_t c, int64_t d, uint32_t e, uint64_t f, uint64_t g) {
    return (uint64_t)a * 3 + b * 5 + (uint64_t)c * 7 + (uint64_t)d * 11 + (uint64_t)e * 13 + (f ^ g << 1);
}

KEEP uint64_t pairs_first(uint64_t a, uint32_t b, uint64_t c) {
    return (a >> 4) - c + b;
}

uint32_t test_args64(uint32_t seed) {
    uint64_t wide = (uint64_t)seed << 33 ^ 0x0123456789abcdefu;
    uint32_t hash = 0;
    for (int n = 0; n < 4; n++) {
        wide = mixed_widths(seed, wide, seed + 1, -(int64_t)(wide >> 3), seed * 5, wide << 3, ~wide);
        hash = mix64(hash, wide);
        hash = mix64(hash, pairs_first(wide, seed, wide >> 9));
        next_random(&seed);
    }
    return hash;
}

struct byte_pair {
    uint8_t first;
    uint16_t second;
};

struct point {
    int32_t x, y;
};

struct range {
    uint64_t start;
    uint32_t size;
};

struct matrix {
    uint32_t cell[3][4];
};

KEEP struct byte_pair make_pair(uint32_t value) {
    return (struct byte_pair){(uint8_t)value, (uint16_t)(value >> 7)};
}

KEEP struct point rotate_point(struct point p, struct byte_pair by) {
    return (struct point){p.y - by.first, by.second - p.x};
}

KEEP struct range grow(struct range range, uint32_t by) {
    return (struct range){range.start - by, range.size + 2 * by};
}

uint32_t test_structs(uint32_t seed) {
    struct point p = {(int32_t)(seed & 0xffff), -100};
    struct range r = {(uint64_t)seed << 12 | 0xabc, 16};
    uint32_t hash = 0;
    for (int n = 0; n < 6; n++) {
        struct byte_pair pair = make_pair(next_random(&seed));
        p = rotate_point(p, pair);
        r = grow(r, pair.first);
        hash = mix(mix(hash, (uint32_t)p.x), (uint32_t)p.y);
        hash = mix(mix64(hash, r.start), r.size);
    }
    return hash;
}

KEEP struct matrix scale(struct matrix m, uint32_t by) {
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 4; column++)
            m.cell[row][column] = m.cell[row][column] * by + (uint32_t)(row * column);
    return m;
}

KEEP uint32_t trace(int shift, struct matrix m, struct point p) {
    return m.cell[0][0] + (m.cell[1][1] >> shift) + m.cell[2][2] * (uint32_t)p.x + m.cell[2][3] - (uint32_t)p.y;
}

uint32_t test_big_structs(uint32_t seed) {
    struct matrix m, copy;
    uint32_t hash = 0;
    for (int n = 0; n < 12; n++)
        m.cell[n / 4][n % 4] = next_random(&seed);
    for (int n = 1; n < 4; n++) {
        copy = m;
        m = scale(m, (uint32_t)n + 2);
        hash = mix(hash, trace(n, m, (struct point){n, -n}) ^ trace(1, copy, (struct point){1, 1}));
    }
    return hash;
}

KEEP uint32_t sum_of(int count, ...) {
    va_list arguments;
    uint32_t sum = 0;
    va_start(arguments, count);
    for (int n = 0; n < count; n++)
        sum = sum * 3 + va_arg(arguments, uint32_t);
    va_end(arguments);
    return sum;
}

/* kinds: one letter for each argument: w word, d double word, p pointer to a word. */
KEEP uint32_t sum_by_kind(const char *kinds, ...) {
    va_list arguments, again;
    uint32_t hash = 0;
    va_start(arguments, kinds);
    va_copy(again, arguments);
    for (; *kinds; kinds++) {
        if (*kinds == 'w')
            hash = mix(hash, va_arg(arguments, uint32_t));
        else if (*kinds == 'd')
            hash = mix64(hash, va_arg(arguments, uint64_t));
        else
            hash = mix(hash, *va_arg(arguments, const uint32_t *));
    }
    hash = mix(hash, va_arg(again, uint32_t));
    va_end(again);
    va_end(arguments);
    return hash;
}

uint32_t test_varargs(uint32_t seed) {
    uint64_t wide = (uint64_t)seed << 31 | 5;
    uint32_t hash = sum_of(0);
    hash = mix(hash, sum_of(1, seed));
    hash = mix(hash, sum_of(4, seed, seed + 1, seed * 2, ~seed));
    hash = mix(hash, sum_of(11, seed, 1, 2, 3, 4, 5, 6, 7, 8, 9, seed ^ 10));
    hash = mix(hash, sum_by_kind("wdpwddwpd", seed, wide, &seed, 7, wide + 1, ~wide, seed + 9, &hash, wide << 2));
    return hash;
}

struct text {
    char *at, *end;
};

static void put_char(struct text *text, char c) {
    if (text->at < text->end)
        *text->at++ = c;
}

KEEP static void put_number(struct text *text, uint64_t value, uint32_t base, int width) {
    char digits[24];
    int count = 0;
    do {
        digits[count++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    for (; width > count; width--)
        put_char(text, '0');
    while (count)
        put_char(text, digits[--count]);
}

/* %c %s %d %u %x %q (64-bit decimal) %%, with one digit of width. Returns the length; no NUL. */
KEEP int format(char *buffer, size_t size, const char *pattern, ...) {
    struct text text = {buffer, buffer + size};
    va_list arguments;
    va_start(arguments, pattern);
    for (; *pattern; pattern++) {
        int width = 0;
        if (*pattern != '%') {
            put_char(&text, *pattern);
            continue;
        }
        if (pattern[1] >= '0' && pattern[1] <= '9')
            width = *++pattern - '0';
        switch (*++pattern) {
        case 'c':
            put_char(&text, (char)va_arg(arguments, int));
            break;
        case 's':
            for (const char *s = va_arg(arguments, const char *); *s; s++)
                put_char(&text, *s);
            break;
        case 'd': {
            int value = va_arg(arguments, int);
            if (value < 0)
                put_char(&text, '-');
            put_number(&text, value < 0 ? 0 - (uint32_t)value : (uint32_t)value, 10, width);
            break;
        }
        case 'u':
            put_number(&text, va_arg(arguments, uint32_t), 10, width);
            break;
        case 'x':
            put_number(&text, va_arg(arguments, uint32_t), 16, width);
            break;
        case 'q':
            put_number(&text, va_arg(arguments, uint64_t), 10, width);
            break;
        default:
            put_char(&text, *pattern);
        }
    }
    va_end(arguments);
    return (int)(text.at - buffer);
}

uint32_t test_printf(uint32_t seed) {
    char buffer[80];
    uint32_t hash = 0;
    int length = format(buffer, sizeof buffer, "%s=%d %u 0x%8x %c%c %q %3d %% %s", "seed", (int)(seed ^ 0xfffff000), seed,
                        seed * 77, 'a' + (int)(seed % 26), '!', (uint64_t)seed * seed << 9, (int)(seed & 15), "end");
    for (int n = 0; n < length; n++)
        hash = mix(hash, (uint8_t)buffer[n]);
    return hash;
}

typedef uint32_t (*operation)(uint32_t, uint32_t);

KEEP static uint32_t add(uint32_t a, uint32_t b) { return a + b; }
KEEP static uint32_t subtract(uint32_t a, uint32_t b) { return a - b; }
KEEP static uint32_t multiply(uint32_t a, uint32_t b) { return a * b; }
KEEP static uint32_t exclusive(uint32_t a, uint32_t b) { return a ^ b; }

static operation operations[] = {add, subtract, multiply, exclusive}; /* in .data: read at run time */

KEEP static operation choose(uint32_t by) {
    return operations[by % COUNT(operations)];
}

KEEP static uint32_t fold(operation by, const uint32_t *items, size_t count, uint32_t start) {
    while (count--)
        start = by(start, *items++);
    return start;
}

uint32_t test_pointers(uint32_t seed) {
    uint32_t items[6], hash = seed;
    for (size_t n = 0; n < COUNT(items); n++)
        items[n] = next_random(&seed);
    for (uint32_t n = 0; n < 8; n++)
        hash = mix(hash, fold(choose(seed + n * 3), items, COUNT(items), n));
    return hash;
}

KEEP static uint32_t odd_steps(uint32_t n, uint32_t sum);

/* At -O2 these are jumps, not calls: the stack stays flat. */
KEEP static uint32_t even_steps(uint32_t n, uint32_t sum) {
    return n == 0 ? sum : odd_steps(n - 1, sum * 3 + 1);
}

static uint32_t odd_steps(uint32_t n, uint32_t sum) {
    return n == 0 ? ~sum : even_steps(n - 1, sum ^ n << 5);
}

KEEP static uint32_t dispatch(uint32_t by, uint32_t a, uint32_t b) {
    return operations[by % COUNT(operations)](b, a);
}

uint32_t test_tail_calls(uint32_t seed) {
    uint32_t hash = even_steps(3 + seed % 4, seed);
    for (uint32_t n = 0; n < 4; n++)
        hash = mix(hash, dispatch(n, hash + 1, seed));
    return hash;
}

KEEP static uint32_t checksum(const uint8_t *bytes, size_t size) {
    uint32_t hash = 0;
    while (size--)
        hash = mix(hash, *bytes++);
    return hash;
}

/* A frame whose size is known only at run time. */
KEEP static uint32_t on_stack(size_t size, uint32_t seed) {
    uint8_t *bytes = __builtin_alloca(size);
    for (size_t n = 0; n < size; n++)
        bytes[n] = (uint8_t)(next_random(&seed) >> 24);
    return checksum(bytes, size);
}

uint32_t test_alloca(uint32_t seed) {
    return mix(on_stack(1 + seed % 30, seed), on_stack(40, seed + 1));
}
