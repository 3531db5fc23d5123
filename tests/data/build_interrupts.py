"""Rebuild interrupts.txt, guests that take interrupts: `python tests/data/build_interrupts.py`.

Each computes a number in a loop that calls a function, with an interrupt handler that counts in memory. Assembled by
zig (tests/programs/build.py has the version). A line: architecture, base address, code in hex, symbols.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "programs"))

CORTEXM = """
    .syntax unified
    .thumb
    .word 0x20001000, start
    .rept 14
    .word handler
    .endr
    .rept 4
    .word handler
    .endr
    .thumb_func
start:
    movs r4, #1
    movs r5, #0
loop:
    mov r0, r4
    mov r1, r5
    bl step
    mov r4, r0
    cmp r0, #3
    ite hi
    addhi r4, r4, #1
    addls r4, r4, #2
    adds r5, #1
    cmp r5, #20
    bne loop
    ldr r1, =0x20000104
    str r4, [r1]
done:
    wfi
    b done
    .thumb_func
step:
    push {r4, lr}
    movs r2, #5
    mul r0, r0, r2
    add r0, r0, r1
    pop {r4, pc}
step_end:
    .thumb_func
handler:
    ldr r0, =0x20000100
    ldr r1, [r0]
    adds r1, r1, #1
    str r1, [r0]
    cmp r1, #0
    bx lr
handler_end:
    .ltorg
"""
ARM = """
    .syntax unified
    .arm
    .word 0, 0, 0, 0, 0, 0
    b handler
    b handler
start:
    ldr r0, =0x10000
    mcr p15, 0, r0, c12, c0, 0
    cps #0x12
    ldr sp, =0x20800
    cps #0x13
    ldr sp, =0x21000
    cpsie i
    mov r4, #1
    mov r5, #0
loop:
    mov r0, r4
    mov r1, r5
    bl step
    mov r4, r0
    adds r5, r5, #1
    cmp r5, #20
    bne loop
    cpsid i
    ldr r1, =0x20104
    str r4, [r1]
    cpsie i
done:
    wfi
    b done
step:
    push {r4, lr}
    mov r2, #5
    mul r3, r0, r2
    add r0, r3, r1
    pop {r4, pc}
step_end:
handler:
    push {r0, r1}
    ldr r0, =0x20100
    ldr r1, [r0]
    adds r1, r1, #1
    str r1, [r0]
    cmp r1, #0
    pop {r0, r1}
    subs pc, lr, #4
handler_end:
    .ltorg
"""
ARM64 = """
start:
    ldr x0, =vectors
    msr vbar_el1, x0
    ldr x0, =0x21000
    mov sp, x0
    msr daifclr, #2
    mov x4, #1
    mov x5, #0
loop:
    mov x0, x4
    mov x1, x5
    bl step
    mov x4, x0
    add x5, x5, #1
    cmp x5, #20
    b.ne loop
    ldr x1, =0x20104
    str w4, [x1]
done:
    wfi
    b done
step:
    str x30, [sp, #-16]!
    mov x2, #5
    mul x0, x0, x2
    add x0, x0, x1
    ldr x30, [sp], #16
    ret
step_end:
    .ltorg
    .balign 0x800
vectors:
    .space 0x280
handler:
    stp x0, x1, [sp, #-16]!
    ldr x0, =0x20100
    ldr w1, [x0]
    adds w1, w1, #1
    str w1, [x0]
    ldp x0, x1, [sp], #16
    eret
handler_end:
    .ltorg
"""
RISCV = """
start:
    la t0, handler
    csrw mtvec, t0
    li sp, 0x21000
    li t0, 0x888
    csrw mie, t0
    csrsi mstatus, 8
    li s0, 1
    li s1, 0
loop:
    mv a0, s0
    mv a1, s1
    jal step
    mv s0, a0
    addi s1, s1, 1
    li t0, 20
    bne s1, t0, loop
    li t0, 0x20104
    sw s0, 0(t0)
done:
    wfi
    j done
step:
    addi sp, sp, -16
    sw ra, 0(sp)
    slli t1, a0, 2
    add a0, a0, t1
    add a0, a0, a1
    lw ra, 0(sp)
    addi sp, sp, 16
    ret
step_end:
    .balign 4
handler:
    addi sp, sp, -16
    sw t0, 0(sp)
    sw t1, 4(sp)
    li t0, 0x20100
    lw t1, 0(t0)
    addi t1, t1, 1
    sw t1, 0(t0)
    lw t0, 0(sp)
    lw t1, 4(sp)
    addi sp, sp, 16
    mret
handler_end:
"""
MIPS = """
    .set noreorder
    .set noat
start:
    lui $t0, 0x8001
    mtc0 $t0, $15, 1
    li $t0, 0x0000ff01
    mtc0 $t0, $12
    ehb
    lui $sp, 0x8002
    ori $sp, $sp, 0x1000
    li $s0, 1
    li $s1, 0
loop:
    move $a0, $s0
    jal step
    move $a1, $s1
    move $s0, $v0
    addiu $s1, $s1, 1
    li $t0, 20
    bne $s1, $t0, loop
    nop
    lui $t0, 0x8002
    sw $s0, 0x104($t0)
done:
    wait
    b done
    nop
step:
    addiu $sp, $sp, -16
    sw $ra, 0($sp)
    sll $v0, $a0, 2
    addu $v0, $v0, $a0
    addu $v0, $v0, $a1
    lw $ra, 0($sp)
    jr $ra
    addiu $sp, $sp, 16
step_end:
    .org 0x180
handler:
    lui $k0, 0x8002
    lw $k1, 0x100($k0)
    addiu $k1, $k1, 1
    sw $k1, 0x100($k0)
    eret
handler_end:
"""
PPC = """
    .org 0x500
handler:
    stw 0, -8(1)
    stw 3, -12(1)
    lis 3, 2
    lwz 0, 0x100(3)
    addic 0, 0, 1
    stw 0, 0x100(3)
    lwz 0, -8(1)
    lwz 3, -12(1)
    rfi
handler_end:
    .org 0x900
    b handler
    .org 0x1000
start:
    lis 1, 2
    ori 1, 1, 0x1000
    mfmsr 3
    ori 3, 3, 0x8000
    li 4, 0x40
    andc 3, 3, 4
    mtmsr 3
    li 14, 1
    li 15, 0
loop:
    mr 3, 14
    mr 4, 15
    bl step
    mr 14, 3
    addi 15, 15, 1
    cmpwi 15, 20
    bne loop
    lis 5, 2
    stw 14, 0x104(5)
done:
    b done
step:
    mflr 0
    stwu 1, -16(1)
    stw 0, 20(1)
    mulli 3, 3, 5
    add 3, 3, 4
    lwz 0, 20(1)
    mtlr 0
    addi 1, 1, 16
    blr
step_end:
"""
X86 = """
start:
    mov $0x21000, %R(sp)
    lgdt gdtr
    lidt idtr
    JUMP
there:
    mov $0x10, %R(ax)
    mov %R(ax), %ss
    sti
    mov $1, %esi
    xor %edi, %edi
loop:
    call step
    inc %edi
    cmp $20, %edi
    jne loop
    mov %esi, 0x20104
done:
    hlt
    jmp done
step:
    push %R(bx)
    mov %esi, %ebx
    lea (%R(bx),%R(bx),4), %esi
    add %edi, %esi
    pop %R(bx)
    ret
step_end:
handler:
    push %R(ax)
    mov $0x20100, %eax
    incl (%R(ax))
    pop %R(ax)
    IRET
handler_end:
    .balign 8
gdt:
    .quad 0, CODE, 0x00cf93000000ffff
gdtr:
    .word 23
    POINTER gdt
    .balign 8
idtr:
    .word 0x21 * GATE - 1
    POINTER idt
    .balign 16
idt:
    .space 0x20 * GATE
    .word handler - start + 0x0000, 8, 0x8e00, 1
    .quad 0
"""


def _x86(bits: int) -> str:
    wide = bits == 64
    words = {"%R(": "%r" if wide else "%e", "IRET": "iretq" if wide else "iret", "POINTER": ".quad" if wide else ".long",
             "CODE": "0x00af9b000000ffff" if wide else "0x00cf9b000000ffff", "GATE": "16" if wide else "8",
             "JUMP": "push $8\n push $there\n lretq" if wide else "ljmp $8, $there"}
    text = X86
    for old, new in words.items():
        text = text.replace(old, new)
    for name in ("sp", "ax", "bx"):
        text = text.replace(f"{name})", name)
    return text


NAMES = ("start", "loop", "done", "step", "step_end", "handler", "handler_end")
GUESTS = {
    "cortexm": (0x08000000, "thumb-freestanding-eabi -mcpu=cortex_m3", CORTEXM),
    "arm": (0x10000, "arm-freestanding-eabi -mcpu=cortex_a15", ARM),
    "arm64": (0x10000, "aarch64-freestanding-none", ARM64),
    "riscv32": (0x10000, "riscv32-freestanding-none", RISCV),
    "riscv64": (0x10000, "riscv64-freestanding-none", RISCV),
    "mips": (0x80010000, "mips-freestanding-eabi -mcpu=mips32r2", MIPS),
    "mipsel": (0x80010000, "mipsel-freestanding-eabi -mcpu=mips32r2", MIPS),
    "mips32r6el": (0x80010000, "mipsel-freestanding-eabi -mcpu=mips32r6", MIPS),
    "arm64be": (0x10000, "aarch64_be-freestanding-none", ARM64),
    "ppc": (0, "powerpc-freestanding-eabi", PPC),
    "i386": (0x10000, "x86-freestanding-none", _x86(32)),
    "x86_64": (0x10000, "x86_64-freestanding-none", _x86(64)),
}


def main() -> None:
    from build import zig_command
    from elftools.elf.elffile import ELFFile

    lines = []
    with tempfile.TemporaryDirectory() as folder:
        source, script, out = Path(folder, "guest.s"), Path(folder, "guest.ld"), Path(folder, "guest.elf")
        for name, (base, target, text) in GUESTS.items():
            source.write_text(text)
            script.write_text(f"SECTIONS {{ .text {base:#x} : {{ *(.text*) }} /DISCARD/ : {{ *(.ARM.*) *(.MIPS.*) *(.reginfo) *(.comment) }} }}")
            subprocess.run([*zig_command(), "-target", *target.split(), "-nostdlib", "-static", "-o", str(out),
                            f"-Wl,-T,{script}", "-Wl,--entry=0", "-w", "-Wl,--build-id=none", str(source)], check=True)
            with out.open("rb") as file:
                elf = ELFFile(file)
                code = elf.get_section_by_name(".text").data()
                symbols = {s.name: s["st_value"] & ~(name == "cortexm") for s in
                           elf.get_section_by_name(".symtab").iter_symbols()
                           if s.name in NAMES}
            lines.append(" ".join((name, f"{base:#x}", code.hex(),
                                   *(f"{key}={value:#x}" for key, value in symbols.items()))))
    (HERE / "interrupts.txt").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
