"""Assembly of call sites where programs run: part of source.py. The site's words are at rax or x4."""

#: The environments of the site's programs, each run in turn by its first word; the second is the next one. Then what
#: follows the call: it counts the hit, or asks Python, who learns by `ran` that the programs have had their turn.
PROGRAM = {
    "x86_64": """
        mov r8, [rax + {calls}]; cmp dword ptr [r8 + {gate}], 0; jne python
        push rbx; push r12; sub rsp, 8
        mov rbx, rax; mov r12, [rax + {program}]
        again: mov rdi, r12; call qword ptr [r12]; mov r12, [r12 + 8]; test r12, r12; jne again
        mov rax, rbx; add rsp, 8; pop r12; pop rbx
        cmp qword ptr [rax + {after}], 0; jne follow
        inc qword ptr [rax + {hits}]
        ret
        follow: mov qword ptr [rax + {ran}], 1
        push rax; call qword ptr [rax + {after}]; pop rax
        mov qword ptr [rax + {ran}], 0
        ret
        python: jmp qword ptr [rax + {python}]""",
    "aarch64": """
        ldr x5, [x4, #{calls}]; ldr w6, [x5, #{gate}]; cbnz w6, python
        stp x29, x30, [sp, #-32]!; stp x19, x20, [sp, #16]
        mov x19, x4; ldr x20, [x4, #{program}]
        again: mov x0, x20; ldr x6, [x20]; blr x6; ldr x20, [x20, #8]; cbnz x20, again
        mov x4, x19
        ldr x6, [x4, #{after}]; cbnz x6, follow
        ldr x7, [x4, #{hits}]; add x7, x7, #1; str x7, [x4, #{hits}]
        b done
        follow: mov x7, #1; str x7, [x4, #{ran}]; blr x6; str xzr, [x19, #{ran}]
        done: ldp x19, x20, [sp, #16]; ldp x29, x30, [sp], #32; ret
        python: ldr x5, [x4, #{python}]; br x5""",
}
#: What `leave` calls where programs run at the return. The words of the site that the call came by are at rdx, x7.
BACK = {
    "x86_64": """
        inc qword ptr [rdx + {returns}]
        push rbx; mov rbx, [rdx + {back}]
        again: mov rdi, rbx; call qword ptr [rbx]; mov rbx, [rbx + 8]; test rbx, rbx; jne again
        pop rbx; ret""",
    "aarch64": """
        ldr x6, [x7, #{returns}]; add x6, x6, #1; str x6, [x7, #{returns}]
        stp x19, x30, [sp, #-16]!; ldr x19, [x7, #{back}]
        again: mov x0, x19; ldr x6, [x19]; blr x6; ldr x19, [x19, #8]; cbnz x19, again
        ldp x19, x30, [sp], #16; ret""",
}
