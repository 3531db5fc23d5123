/* 64-bit arithmetic for 32-bit machines, under the names the compilers call. Linked only there. */
#include "suite.h"

PLAIN_ON_SH

uint64_t __udivmoddi4(uint64_t dividend, uint64_t divisor, uint64_t *remainder) {
    uint64_t quotient = 0, rest = 0;
    uint32_t small = (uint32_t)dividend, by = (uint32_t)divisor;
    if (small == dividend && by == divisor) {
        if (remainder)
            *remainder = small % by;
        return small / by;
    }
    for (int bit = small == dividend ? 31 : 63; bit >= 0; bit--) {
        uint32_t carry = (uint32_t)(rest >> 63);
        rest = rest << 1 | (dividend >> bit & 1);
        quotient <<= 1;
        if (carry || rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    if (remainder)
        *remainder = rest;
    return quotient;
}

uint64_t __udivdi3(uint64_t dividend, uint64_t divisor) {
    return __udivmoddi4(dividend, divisor, NULL);
}

uint64_t __umoddi3(uint64_t dividend, uint64_t divisor) {
    uint64_t rest;
    __udivmoddi4(dividend, divisor, &rest);
    return rest;
}

static uint64_t magnitude(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

int64_t __divmoddi4(int64_t dividend, int64_t divisor, int64_t *remainder) {
    uint64_t rest, quotient = __udivmoddi4(magnitude(dividend), magnitude(divisor), &rest);
    *remainder = (int64_t)(dividend < 0 ? 0 - rest : rest);
    return (int64_t)((dividend < 0) != (divisor < 0) ? 0 - quotient : quotient);
}

int64_t __divdi3(int64_t dividend, int64_t divisor) {
    int64_t rest;
    return __divmoddi4(dividend, divisor, &rest);
}

int64_t __moddi3(int64_t dividend, int64_t divisor) {
    int64_t rest;
    __divmoddi4(dividend, divisor, &rest);
    return rest;
}

/* The shifts are made of 32-bit halves, so that none of them becomes a call to itself. */
union halves {
    uint64_t whole;
    struct {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        uint32_t high, low;
#else
        uint32_t low, high;
#endif
    };
};

uint64_t __ashldi3(uint64_t value, int by) {
    union halves v = {value};
    if (by & 32)
        v.high = v.low << (by & 31), v.low = 0;
    else if (by)
        v.high = v.high << by | v.low >> (32 - by), v.low <<= by;
    return v.whole;
}

uint64_t __lshrdi3(uint64_t value, int by) {
    union halves v = {value};
    if (by & 32)
        v.low = v.high >> (by & 31), v.high = 0;
    else if (by)
        v.low = v.low >> by | v.high << (32 - by), v.high >>= by;
    return v.whole;
}

int64_t __ashrdi3(int64_t value, int by) {
    union halves v = {(uint64_t)value};
    if (by & 32)
        v.low = (uint32_t)((int32_t)v.high >> (by & 31)), v.high = (uint32_t)((int32_t)v.high >> 31);
    else if (by)
        v.low = v.low >> by | v.high << (32 - by), v.high = (uint32_t)((int32_t)v.high >> by);
    return (int64_t)v.whole;
}

/* Schoolbook, on 16-bit digits of the low halves. */
uint64_t __muldi3(uint64_t left, uint64_t right) {
    union halves a = {left}, b = {right}, product;
    uint32_t al = a.low & 0xffff, ah = a.low >> 16, bl = b.low & 0xffff, bh = b.low >> 16;
    uint32_t low = al * bl, middle = ah * bl + (low >> 16), other = al * bh + (middle & 0xffff);
    product.low = other << 16 | (low & 0xffff);
    product.high = ah * bh + (middle >> 16) + (other >> 16) + a.low * b.high + a.high * b.low;
    return product.whole;
}

#ifdef WITH_FLOAT
double __floatdidf(int64_t value) {
    return (double)(int32_t)(value >> 32) * 4294967296.0 + (double)(uint32_t)value;
}

double __floatundidf(uint64_t value) {
    return (double)(uint32_t)(value >> 32) * 4294967296.0 + (double)(uint32_t)value;
}

uint64_t __fixunsdfdi(double value) {
    uint32_t high = (uint32_t)(value * (1.0 / 4294967296.0));
    return (uint64_t)high << 32 | (uint32_t)(value - (double)high * 4294967296.0);
}

int64_t __fixdfdi(double value) {
    return value < 0 ? (int64_t)(0 - __fixunsdfdi(-value)) : (int64_t)__fixunsdfdi(value);
}
#endif
