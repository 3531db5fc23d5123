/* Three tasks under FreeRTOS: `producer` sends numbers through a queue, `consumer` adds them up and prints each on a serial port (PL011),
 * `cruncher` computes all the time. The board is switched off when the last number has come. Built by build.py.
 */
#include "FreeRTOS.h"
#include "queue.h"
#include "task.h"

#define UART_DATA (*(volatile uint32_t *)0x40000000)
#define UART_MASK (*(volatile uint32_t *)0x40000038)
#define UART_CLEAR (*(volatile uint32_t *)0x40000044)
#define NVIC_ENABLE (*(volatile uint32_t *)0xE000E100)
#define NVIC_PRIORITY5 (*(volatile uint8_t *)0xE000E405)
#define POWER (*(volatile uint8_t *)0x40001000)
#define KEEP __attribute__((noinline, used))
#define NUMBERS 12

static QueueHandle_t queue;
volatile uint32_t total, crunched, received;

void *memset(void *to, int value, size_t size) {
    for (uint8_t *at = to; size--;)
        *at++ = (uint8_t)value;
    return to;
}

void *memcpy(void *to, const void *from, size_t size) {
    const uint8_t *next = from;
    for (uint8_t *at = to; size--;)
        *at++ = *next++;
    return to;
}

KEEP void print(const char *text, uint32_t number) {
    while (*text)
        UART_DATA = (uint8_t)*text++;
    char digits[10];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        UART_DATA = (uint8_t)digits[--count];
    UART_DATA = '\n';
}

/* a byte has come over the serial port */
KEEP void uart_handler(void) {
    received += UART_DATA;
    UART_CLEAR = 0x7FF;
}

KEEP void produce(uint32_t number) {
    xQueueSend(queue, &number, portMAX_DELAY);
}

KEEP void consume(uint32_t number) {
    total += number;
    print("got ", number);
}

static void producer(void *unused) {
    (void)unused;
    for (uint32_t number = 1; number <= NUMBERS; number++) {
        produce(number * number);
        vTaskDelay(2);
    }
    vTaskSuspend(NULL);
}

static void consumer(void *unused) {
    (void)unused;
    uint32_t number;
    for (int count = 0; count < NUMBERS; count++) {
        xQueueReceive(queue, &number, portMAX_DELAY);
        consume(number);
    }
    print("total ", total);
    POWER = 0;
    for (;;)
        ;
}

static void cruncher(void *unused) {
    (void)unused;
    for (uint32_t n = 0; n < 1500; n++) {
        crunched = crunched * 31 + n;
        if (n % 300 == 299)
            vTaskDelay(1);
    }
    vTaskSuspend(NULL);
}

void vApplicationIdleHook(void) {
    __asm volatile("wfi");
}

extern char data_start[], data_end[], data_in_flash[];

void reset(void) {
    memcpy(data_start, data_in_flash, (size_t)(data_end - data_start));
    UART_MASK = 0x10;
    NVIC_PRIORITY5 = 0x80;
    NVIC_ENABLE = 1 << 5;
    queue = xQueueCreate(4, sizeof(uint32_t));
    xTaskCreate(producer, "producer", configMINIMAL_STACK_SIZE, NULL, 2, NULL);
    xTaskCreate(consumer, "consumer", configMINIMAL_STACK_SIZE, NULL, 3, NULL);
    xTaskCreate(cruncher, "cruncher", configMINIMAL_STACK_SIZE, NULL, 1, NULL);
    vTaskStartScheduler();
}

extern void vPortSVCHandler(void), xPortPendSVHandler(void), xPortSysTickHandler(void);

__attribute__((section(".vectors"), used)) static const void *const vectors[16 + 6] = {
    (void *)0x20008000, (void *)reset, [11] = (void *)vPortSVCHandler, [14] = (void *)xPortPendSVHandler,
    [15] = (void *)xPortSysTickHandler, [16 + 5] = (void *)uart_handler,
};
