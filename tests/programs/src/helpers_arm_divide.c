/* 32-bit division for ARM processors before it was an instruction. Linked only there. */
#include "suite.h"

static uint32_t divide(uint32_t dividend, uint32_t divisor, uint32_t *remainder) {
    uint32_t quotient = 0, rest = 0;
    for (int bit = 31; bit >= 0; bit--) {
        uint32_t carry = rest >> 31;
        rest = rest << 1 | (dividend >> bit & 1);
        quotient <<= 1;
        if (carry || rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    *remainder = rest;
    return quotient;
}

static uint32_t magnitude(int32_t value) {
    return value < 0 ? 0 - (uint32_t)value : (uint32_t)value;
}

/* The quotient in r0, the remainder in r1: as one 64-bit value that is the same pair of registers. */
static uint64_t pair(uint32_t r0, uint32_t r1) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return (uint64_t)r0 << 32 | r1;
#else
    return (uint64_t)r1 << 32 | r0;
#endif
}

uint64_t __aeabi_uidivmod(uint32_t dividend, uint32_t divisor) {
    uint32_t rest, quotient = divide(dividend, divisor, &rest);
    return pair(quotient, rest);
}

uint64_t __aeabi_idivmod(int32_t dividend, int32_t divisor) {
    uint32_t rest, quotient = divide(magnitude(dividend), magnitude(divisor), &rest);
    return pair((dividend < 0) != (divisor < 0) ? 0 - quotient : quotient, dividend < 0 ? 0 - rest : rest);
}

uint32_t __aeabi_uidiv(uint32_t dividend, uint32_t divisor) {
    uint32_t rest;
    return divide(dividend, divisor, &rest);
}

int32_t __aeabi_idiv(int32_t dividend, int32_t divisor) {
    uint32_t rest, quotient = divide(magnitude(dividend), magnitude(divisor), &rest);
    return (int32_t)((dividend < 0) != (divisor < 0) ? 0 - quotient : quotient);
}
