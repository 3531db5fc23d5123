/* The ARM run-time ABI's names. Division returns two 64-bit values, in r0:r1 and r2:r3, which C cannot say. */
#include "suite.h"

#define DIVMOD(name, divide)                                                                                           \
    __attribute__((naked)) void name(void) {                                                                           \
        __asm__("push {r4, lr}\n\tsub sp, sp, #16\n\tadd r4, sp, #8\n\tstr r4, [sp]\n\tbl " #divide                    \
                "\n\tldr r2, [sp, #8]\n\tldr r3, [sp, #12]\n\tadd sp, sp, #16\n\tpop {r4, pc}");                       \
    }

DIVMOD(__aeabi_uldivmod, __udivmoddi4)
DIVMOD(__aeabi_ldivmod, __divmoddi4)

#ifdef WITH_FLOAT
/* These take and return a double in integer registers, whatever the rest of the program does. */
#define SOFT __attribute__((pcs("aapcs")))

double __floatdidf(int64_t value);
double __floatundidf(uint64_t value);
uint64_t __fixunsdfdi(double value);
int64_t __fixdfdi(double value);

SOFT double __aeabi_l2d(int64_t value) {
    return __floatdidf(value);
}

SOFT double __aeabi_ul2d(uint64_t value) {
    return __floatundidf(value);
}

SOFT uint64_t __aeabi_d2ulz(double value) {
    return __fixunsdfdi(value);
}

SOFT int64_t __aeabi_d2lz(double value) {
    return __fixdfdi(value);
}
#endif

void __aeabi_memcpy(void *to, const void *from, size_t size) {
    memcpy(to, from, size);
}

void __aeabi_memmove(void *to, const void *from, size_t size) {
    memmove(to, from, size);
}

/* The order of the arguments is the ABI's, not memset's. */
void __aeabi_memset(void *to, size_t size, int value) {
    memset(to, value, size);
}

void __aeabi_memclr(void *to, size_t size) {
    memset(to, 0, size);
}
