/* A router's console: it asks for the password, and then says how packets to an address are sent. No C library. Built by
 * build.py for MIPS, as an image at the address where such a CPU starts, without a symbol. The chip is like Atheros's
 * AR7100: a 16550 with its registers 4 bytes apart, and a register that resets it.
 */
#include <stdint.h>

#define KEEP __attribute__((noinline, used))
#define UART ((volatile uint32_t *)0xb8020000)
#define RESET (*(volatile uint32_t *)0xb8060008)
#define LINE 40

struct route {
    uint32_t net, mask;
    const char *port;
};

static const struct route routes[] = {
    {0x0a000000, 0xff000000, "lan1"}, {0x0a140000, 0xffff0000, "lan2"}, {0xc0a80000, 0xffff0000, "wlan"},
    {0, 0, "wan"},
};
static char line[LINE];
static uint32_t wrong, lookups;

KEEP static char receive(void) {
    while (!(UART[5] & 1))
        ;
    return (char)UART[0];
}

KEEP static void send(const char *text) {
    for (; *text; text++) {
        while (!(UART[5] & 0x20))
            ;
        UART[0] = (uint8_t)*text;
    }
}

KEEP static uint32_t read_line(char *to, uint32_t size) {
    uint32_t length = 0;
    for (char c = receive(); c != '\n'; c = receive())
        if (length + 1 < size)
            to[length++] = c;
    to[length] = 0;
    return length;
}

KEEP static int same(const char *one, const char *other) {
    while (*one && *one == *other)
        one++, other++;
    return *one == *other;
}

KEEP static int login(void) {
    while (wrong < 3) {
        send("password: ");
        read_line(line, LINE);
        if (same(line, "3Com!2009"))
            return 1;
        wrong++;
        send("wrong\n");
    }
    return 0;
}

KEEP static uint32_t address_of(const char *text) {
    uint32_t address = 0, part = 0;
    for (;; text++) {
        if (*text >= '0' && *text <= '9') {
            part = part * 10 + (uint32_t)(*text - '0');
            continue;
        }
        address = address << 8 | (part & 0xff);
        part = 0;
        if (!*text)
            return address;
    }
}

KEEP static const struct route *find_route(uint32_t address) {
    const struct route *best = &routes[3];
    for (uint32_t n = 0; n < 4; n++)
        if ((address & routes[n].mask) == routes[n].net && routes[n].mask > best->mask)
            best = &routes[n];
    lookups++;
    return best;
}

KEEP int start(void) {
    if (login()) {
        send("welcome\n");
        while (read_line(line, LINE)) {
            send(line);
            send(" is sent to ");
            send(find_route(address_of(line))->port);
            send("\n");
        }
    }
    RESET = 1;
    for (;;)
        ;
}

/* Where the CPU starts: in memory that is not cached, at the image's first byte. */
__asm__(".pushsection .reset, \"ax\", @progbits\n"
        "    lui $sp, 0x8001\n"
        "    j start\n"
        "    .popsection\n");
