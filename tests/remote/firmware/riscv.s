.globl _start
_start: li sp, 0x80100000
 csrr t0, mhartid
 slli t0, t0, 12
 sub sp, sp, t0
 call body
