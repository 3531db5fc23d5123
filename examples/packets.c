/* A guest to fuzz: a parser of packets with four planted bugs, no C library.
 *
 * A packet is two bytes "KP", then records: a type, a length, that many bytes. Built by build.py for several machines.
 *
 *   'N'  a name is copied to a buffer of 16 bytes: a length above 127 is taken for a negative one, and not refused
 *   'T'  a number in a table: below its start for negative ones
 *   'R'  a reference to another record, as in a DNS name: two may refer to each other
 *   'S'  steps of a loop: 0 does not end
 */
#include <stddef.h>
#include <stdint.h>

#define KEEP __attribute__((noinline, used))

const char *names[4] = {"zero", "one", "two", "three"};
int seen[4];

KEEP void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    unsigned char *target = to;
    const unsigned char *source = from;
    while (size--)
        *target++ = *source++;
    return to;
}

KEEP int take_name(const uint8_t *data, int8_t length) {
    volatile char name[16];
    if (length > 15)
        return -1;
    for (uint8_t n = 0; n != (uint8_t)length; n++)
        name[n] = (char)data[n];
    return name[0];
}

KEEP int take_number(const uint8_t *data, uint8_t length) {
    if (length < 3)
        return -1;
    int number = (int8_t)data[0] * 65536 + data[1] * 256 + data[2];
    if (number > 3)
        return -1;
    return names[number][0];
}

KEEP int follow(const uint8_t *packet, size_t size, uint8_t at) {
    volatile uint8_t copy[512];
    if (at + 2u >= size || packet[at] != 'R')
        return at;
    copy[at] = packet[at + 2];
    return follow(packet, size, copy[at]) + 1;
}

KEEP int step(uint8_t by) {
    int count = 0;
    for (volatile uint8_t n = 0; n < 200; n += by)
        count++;
    return count;
}

KEEP int parse(const uint8_t *packet, size_t size) {
    int records = 0;
    if (size < 2 || packet[0] != 'K' || packet[1] != 'P')
        return -1;
    for (size_t at = 2; at + 2 < size;) {
        uint8_t type = packet[at], length = packet[at + 1];
        const uint8_t *data = packet + at + 2;
        if (type == 'N')
            seen[0] = take_name(data, (int8_t)length);
        else if (type == 'T')
            seen[1] = take_number(data, length);
        else if (type == 'R')
            seen[2] = follow(packet, size, (uint8_t)at);
        else if (type == 'S' && length == 1)
            seen[3] = step(data[0]);
        records++;
        at += 2 + length;
    }
    return records;
}

int _start(void) {
    static const uint8_t packet[] = "KPN\5hello";
    return parse(packet, sizeof packet - 1) == 1 ? 0 : 1;
}
