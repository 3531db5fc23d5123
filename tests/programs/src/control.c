/* Jump tables, interpreters, nested loops. */
#include "suite.h"

PLAIN_ON_SH

KEEP static uint32_t step(uint32_t which, uint32_t value) {
    switch (which) {
    case 0: return value + 1;
    case 1: return value * 3;
    case 2: return value ^ 0x1234;
    case 3: return value >> 3;
    case 4: return value << 5;
    case 5: return ~value;
    case 6: return value - 77;
    case 7: return value | 0x80;
    case 8: return value & 0xfffffff7;
    case 9: return value / 3;
    case 10: return value % 1000;
    case 11: return 0 - value;
    case 12: return value * value;
    case 13: return value ^ value >> 16;
    case 14: return value + which;
    case 15: return value << 16 | value >> 16;
    default: return which;
    }
}

/* Far apart: compares, not a table. */
KEEP static uint32_t sparse(uint32_t which) {
    switch (which) {
    case 3: return 30;
    case 77: return 7;
    case 1000: return 11;
    case 65536: return 16;
    case 0x80000001: return 31;
    default: return which >> 1;
    }
}

uint32_t test_switch(uint32_t seed) {
    static const uint32_t sparse_cases[] = {3, 77, 1000, 65536, 0x80000001, 5};
    uint32_t hash = seed;
    for (uint32_t n = 0; n < 24; n++)
        hash = mix(hash, step((seed + n * 5) % 18, hash));
    for (size_t n = 0; n < COUNT(sparse_cases); n++)
        hash = mix(hash, sparse(sparse_cases[n]));
    return hash;
}

enum opcode { HALT, PUSH, LOAD, STORE, ADD, SUB, MUL, XOR, SHL, DUP, DROP, SWAP, JUMP, JUMP_IF, LESS };

/* x = seed; i = 0; do { x = x * 5 ^ i; i = i + 1; } while (i < 9); result (x << 3) - x */
static const uint8_t program[] = {
    PUSH, 0, STORE, 1,
    LOAD, 0, PUSH, 5, MUL, LOAD, 1, XOR, DUP, STORE, 0, DROP,
    LOAD, 1, PUSH, 1, ADD, STORE, 1,
    PUSH, 9, LOAD, 1, SWAP, LESS, JUMP_IF, 4,
    JUMP, 35, PUSH, 99, LOAD, 0, PUSH, 3, SHL, LOAD, 0, SUB, HALT,
};

KEEP static uint32_t interpret(const uint8_t *code, uint32_t input) {
    uint32_t stack[8], variables[2] = {input, 0}, *top = stack, pc = 0, kept;
    for (;;) {
        switch (code[pc++]) {
        case HALT: return top[-1];
        case PUSH: *top++ = code[pc++]; break;
        case LOAD: *top++ = variables[code[pc++]]; break;
        case STORE: variables[code[pc++]] = *--top; break;
        case ADD: top--; top[-1] += *top; break;
        case SUB: top--; top[-1] -= *top; break;
        case MUL: top--; top[-1] *= *top; break;
        case XOR: top--; top[-1] ^= *top; break;
        case SHL: top--; top[-1] <<= *top & 31; break;
        case DUP: *top = top[-1]; top++; break;
        case DROP: top--; break;
        case SWAP: kept = top[-1]; top[-1] = top[-2]; top[-2] = kept; break;
        case JUMP: pc = code[pc]; break;
        case JUMP_IF: pc = *--top ? code[pc] : pc + 1; break;
        case LESS: top--; top[-1] = top[-1] < *top; break;
        default: return 0;
        }
    }
}

uint32_t test_interpreter(uint32_t seed) {
    return interpret(program, seed);
}

/* The same idea with labels as values: an indirect jump after every operation. */
KEEP static uint32_t threaded(const uint8_t *code, uint32_t value) {
    static const void *const labels[] = {&&halt, &&increment, &&double_it, &&invert, &&fold, &&rotate};
    goto *labels[*code++];
increment:
    value += 1;
    goto *labels[*code++];
double_it:
    value *= 2;
    goto *labels[*code++];
invert:
    value = ~value;
    goto *labels[*code++];
fold:
    value ^= value >> 7;
    goto *labels[*code++];
rotate:
    value = value << 9 | value >> 23;
    goto *labels[*code++];
halt:
    return value;
}

uint32_t test_threaded(uint32_t seed) {
    uint8_t code[20];
    for (size_t n = 0; n < COUNT(code) - 1; n++)
        code[n] = (uint8_t)(1 + (next_random(&seed) >> 16) % 5);
    code[COUNT(code) - 1] = 0;
    return threaded(code, seed);
}

/* Backward and forward conditional branches, break and continue, a counted inner loop: primes and Collatz. */
uint32_t test_loops(uint32_t seed) {
    uint32_t hash = seed, n = seed % 40 + 3;
    for (uint32_t candidate = 2; candidate < 40; candidate++) {
        uint32_t divisor;
        for (divisor = 2; divisor * divisor <= candidate; divisor++)
            if (candidate % divisor == 0)
                break;
        if (divisor * divisor <= candidate)
            continue;
        hash = mix(hash, candidate);
    }
    for (int steps = 0; n != 1 && steps < 30; steps++) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        hash = mix(hash, n);
    }
    return hash;
}
