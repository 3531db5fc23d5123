/* Firmware of a radio on a big-endian MIPS, to fuzz: frames come out of its receiver's registers. No C library.
 *
 * A frame is a kind, a length, that many bytes. Built by build.py as a raw image.
 *
 *   1  a beacon: the bytes are a name
 *   2  a fragment: an offset, a flag (1: the last one), then bytes of a message that is put together. What lies behind
 *      the message is checked by a sum of 8 bits
 */
#include <stdint.h>

#define RECEIVER 0xbf000000u
#define STATUS (*(volatile uint32_t *)(RECEIVER + 0)) /* bit 0: a byte has come */
#define DATA (*(volatile uint32_t *)(RECEIVER + 4))   /* the next byte; reading takes it */
#define KEEP __attribute__((noinline, used))

struct message {
    uint8_t bytes[128];
    int (*done)(const uint8_t *bytes);
};

static struct message message;
static char name[32];

KEEP int sum(const uint8_t *bytes) {
    int total = 0;
    for (int n = 0; n < 128; n++)
        total += bytes[n];
    return total;
}

KEEP int take_beacon(uint8_t length) {
    if (length >= sizeof name)
        return -1;
    for (uint8_t n = 0; n < length; n++)
        name[n] = (char)DATA;
    name[length] = 0;
    return 0;
}

KEEP int take_fragment(uint8_t length) {
    if (length < 2)
        return -1;
    uint8_t offset = (uint8_t)DATA, last = (uint8_t)DATA;
    uint8_t end = offset + (length - 2);
    if (end > sizeof message.bytes)
        return -1;
    for (unsigned n = offset; n < offset + length - 2u; n++)
        message.bytes[n] = (uint8_t)DATA;
    return last == 1 ? message.done(message.bytes) : 0;
}

/* Take one frame from the receiver. 0: there is none. */
KEEP int receive(void) {
    if (!(STATUS & 1))
        return 0;
    uint8_t kind = (uint8_t)DATA, length = (uint8_t)DATA;
    if (kind == 1)
        return take_beacon(length) + 2;
    if (kind == 2)
        return take_fragment(length) + 2;
    return 1;
}

KEEP void start(void) {
    message.done = sum;
    for (;;)
        receive();
}

__attribute__((naked, used, section(".text.reset"))) void reset(void) {
    __asm__ volatile("lui $sp, 0x8001\n"
                     "lui $t9, %hi(start)\n"
                     "addiu $t9, $t9, %lo(start)\n"
                     "jr $t9\n"
                     "nop\n");
}
