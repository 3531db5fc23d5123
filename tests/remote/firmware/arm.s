.globl _start
_start: ldr sp, =0x40100000
 bl body
