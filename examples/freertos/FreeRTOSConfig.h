/* FreeRTOS for a Cortex-M3 that executes one instruction a cycle: a tick every 1,000 instructions. */
#pragma once

#define configCPU_CLOCK_HZ 1000000
#define configTICK_RATE_HZ 1000
#define configUSE_PREEMPTION 1
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 1
#define configUSE_IDLE_HOOK 1
#define configUSE_TICK_HOOK 0
#define configMAX_PRIORITIES 4
#define configMINIMAL_STACK_SIZE 96
#define configTOTAL_HEAP_SIZE 8192
#define configMAX_TASK_NAME_LEN 12
#define configTICK_TYPE_WIDTH_IN_BITS TICK_TYPE_WIDTH_32_BITS
#define configIDLE_SHOULD_YIELD 1
#define configCHECK_FOR_STACK_OVERFLOW 0
#define configUSE_MUTEXES 1
#define configUSE_MALLOC_FAILED_HOOK 0
#define configKERNEL_INTERRUPT_PRIORITY 0xF0
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0x50
#define INCLUDE_vTaskDelay 1
#define INCLUDE_vTaskSuspend 1
