.globl _start
_start: ldr x0, =0x40100000
 mov sp, x0
 bl body
