"""The source of the hooks that count: instructions, and blocks. See source.py."""

from __future__ import annotations

#: A hook on every instruction: its data is the count, then how many ranges do not count, and where they are. See
#: ../clock.py.
TICK = {
    "x86_64": """
        mov r8, [rcx + 8]; mov r9, [rcx + 16]
        next: test r8, r8; je count
        mov rax, rsi; sub rax, [r9]; cmp rax, [r9 + 8]; jb none
        add r9, 16; dec r8; jmp next
        count: inc qword ptr [rcx]
        none: ret""",
    "aarch64": """
        ldr x4, [x3, #8]; ldr x5, [x3, #16]
        next: cbz x4, count
        ldp x6, x7, [x5]; sub x6, x1, x6; cmp x6, x7; b.lo none
        add x5, x5, #16; sub x4, x4, #1; b next
        count: ldr x4, [x3]; add x4, x4, #1; str x4, [x3]
        none: ret""",
}
#: A hook on every block: counts it in a table of four words each (address, count, place for edges or -1, size), and the
#: edge to it. Its data: table, multiplier, mask, the place before, edges, where the table ends, and whom to call for a
#: new one. See ../blockcounts.py.
BLOCK = {
    "x86_64": """
        mov r8, [rcx]; mov rax, rsi; imul rax, [rcx + 8]; shr rax, 32; and rax, [rcx + 16]; shl rax, 5; add rax, r8
        next: mov r9, [rax]; cmp r9, rsi; jne other
        inc qword ptr [rax + 8]
        mov r9, [rax + 16]; test r9, r9; js none
        mov r10, [rcx + 24]; xor r10, r9; mov r11, [rcx + 32]; inc byte ptr [r11 + r10]
        shr r9, 1; mov [rcx + 24], r9
        none: ret
        other: inc r9; jz new
        add rax, 32; cmp rax, [rcx + 40]; jb next
        mov rax, r8; jmp next
        new: jmp qword ptr [rcx + 48]""",
    "aarch64": """
        ldp x4, x5, [x3]; mul x6, x1, x5; lsr x6, x6, #32; ldr x5, [x3, #16]; and x6, x6, x5; add x6, x4, x6, lsl #5
        next: ldr x7, [x6]; cmp x7, x1; b.ne other
        ldp x7, x8, [x6, #8]; add x7, x7, #1; str x7, [x6, #8]
        tbnz x8, #63, none
        ldp x9, x10, [x3, #24]; eor x9, x9, x8; ldrb w11, [x10, x9]; add w11, w11, #1; strb w11, [x10, x9]
        lsr x8, x8, #1; str x8, [x3, #24]
        none: ret
        other: cmn x7, #1; b.eq new
        add x6, x6, #32; ldr x8, [x3, #40]; cmp x6, x8; b.lo next
        mov x6, x4; b next
        new: ldr x8, [x3, #48]; br x8""",
}
