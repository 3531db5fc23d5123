/* Firmware for a Cortex-M3 with a serial port: it answers each line with the line in capitals and its checksum, and switches the board off
 * at an empty one. No C library. Built by build.py into firmware.bin, which is part of the repository, as are its symbols.
 */
#include <stdint.h>

#define KEEP __attribute__((noinline, used)) /* stays a function of its own, so that it can be probed */

struct uart {
    volatile uint32_t status; /* bit 0: a byte has come; bit 1: one may be sent */
    volatile uint32_t data;
};
#define UART ((struct uart *)0x40000000)
#define POWER (*(volatile uint8_t *)0x40001000) /* a byte; 0 switches off */
#define LINE 32

static char line[LINE];
static uint32_t lines;

KEEP char uart_receive(void) {
    while (!(UART->status & 1))
        ;
    return (char)UART->data;
}

KEEP void uart_send(char c) {
    while (!(UART->status & 2))
        ;
    UART->data = (uint8_t)c;
}

KEEP uint32_t read_line(void) {
    uint32_t length = 0;
    for (;;) {
        char c = uart_receive();
        if (c == '\n')
            return length;
        if (length < LINE)
            line[length++] = c;
    }
}

KEEP uint8_t checksum(const char *text, uint32_t length) {
    uint8_t sum = 0;
    while (length--)
        sum = (uint8_t)(sum * 31 + (uint8_t)*text++);
    return sum;
}

static void send_digit(uint32_t digit) {
    uart_send((char)(digit < 10 ? '0' + digit : 'a' + digit - 10));
}

KEEP void answer(uint32_t length) {
    for (uint32_t i = 0; i < length; i++)
        uart_send(line[i] >= 'a' && line[i] <= 'z' ? (char)(line[i] - 32) : line[i]);
    uint8_t sum = checksum(line, length);
    uart_send(' ');
    send_digit(sum >> 4);
    send_digit(sum & 15);
    uart_send('\n');
}

KEEP void reset(void) {
    for (;;) {
        uint32_t length = read_line();
        if (!length)
            break;
        lines++;
        answer(length);
    }
    POWER = 0;
    for (;;)
        ;
}

__attribute__((section(".vectors"), used)) static const void *const vectors[] = {(void *)0x20001000, (void *)reset};
