"""Objects for a kernel read registers of one architecture from the context: refused, with what to do."""

from __future__ import annotations

import pytest

from kprobes import Kprobes, Program, ProgramError, UnicornMachine
from kprobes.programs.object.clang import compiled

pytest.importorskip("ziglang")

#: whose -> (structure, a member, as kernels' headers for user space have them)
LAYOUTS = {
    "x86's": ("pt_regs", "unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, "
              "flags, sp, ss;", "di"),
    "x86's, older": ("pt_regs", "unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, "
                     "orig_rax, rip, cs, eflags, rsp, ss;", "rdi"),
    "arm64's": ("user_pt_regs", "unsigned long long regs[31], sp, pc, pstate;", "regs[0]"),
    "arm64's, the kernel's own": ("pt_regs", "union { struct { unsigned long long regs[31], sp, pc, pstate; }; }; int x;",
                                  "regs[0]"),
    "arm's": ("pt_regs", "unsigned long uregs[18];", "uregs[0]"),
    "s390's": ("user_pt_regs", "unsigned long args[1]; struct { unsigned long mask, addr; } psw; unsigned long gprs[16];",
               "gprs[2]"),
    "PowerPC's": ("pt_regs", "unsigned long gpr[32], nip, msr, orig_gpr3, ctr, link;", "gpr[3]"),
    "MIPS's": ("pt_regs", "unsigned long long regs[32], lo, hi, cp0_epc, cp0_badvaddr;", "regs[4]"),
    "RISC-V's": ("user_regs_struct", "unsigned long pc, ra, sp, gp, tp, t0, t1, t2, s0, s1, a0, a1, a2, a3, a4, a5, a6, a7;",
                 "a0"),
    "LoongArch's": ("user_pt_regs", "unsigned long regs[32], orig_a0, csr_era, csr_badv;", "regs[4]"),
    "SPARC's": ("pt_regs", "unsigned long u_regs[16], tstate, tpc, tnpc;", "u_regs[8]"),
    "a kernel's": ("pt_regs", "unsigned long a, b;", "b"),
}
SOURCE = """
static long (*const bpf_ktime_get_ns)(void) = (void *)5;
struct NAME { MEMBERS };
typedef const struct NAME bpf_user_pt_regs_t;
static __attribute__((noinline)) long deeper(TYPE *regs) { return regs->ONE + bpf_ktime_get_ns(); }
__attribute__((section("kprobe/f"), used)) int reads(TYPE *ctx) { return ctx->ONE; }
__attribute__((section("kprobe/f"), used)) int calls(void *ctx) { return deeper(ctx); }
__attribute__((section("kprobe/f"), used)) int counts(TYPE *ctx) { return bpf_ktime_get_ns() != 0; }
"""


@pytest.mark.parametrize("by_typedef", [False, True])
@pytest.mark.parametrize("whose", LAYOUTS)
def test_a_kernel_s_registers_are_refused(whose: str, by_typedef: bool) -> None:
    """Where they are read, in a function of the program's own, too; a program that does not look is good."""
    name, members, one = LAYOUTS[whose]
    kind = "bpf_user_pt_regs_t" if by_typedef else f"struct {name}"
    text = SOURCE.replace("TYPE", kind).replace("NAME", name).replace("MEMBERS", members).replace("ONE", one)
    program = Program.from_elf(compiled(text, "foreign.c"))
    machine = UnicornMachine.from_code(bytes.fromhex("9090909090c3"), arch="i386", symbols={"f": 0x10000})
    with Kprobes(machine) as k:
        for part in ("reads", "calls"):
            wanted = f"takes the context for {whose.split(',', maxsplit=1)[0]} struct {name}.*kprobes/bpf.h"
            with pytest.raises(ProgramError, match=wanted) as caught:
                k.attach(program[part])
            assert "foreign.c" in str(caught.value)  # with the source line
        with k.attach(program["counts"]) as a:
            machine.call("f")
            assert a.runs == 1
    raw = bytes(range(200))
    assert program["reads"].run(raw) == program["reads"].run(raw, "interpreter") != 0  # there it is what is given


@pytest.mark.parametrize("declared", [
    "#include <kprobes/bpf.h>", "struct pt_regs;\n#define PT_REGS_IP(ctx) (((unsigned long long *)(ctx))[104])",
    "struct pt_regs { unsigned long long r[104], pc; };\n#define PT_REGS_IP(ctx) ((ctx)->pc)",
    "struct my_context { unsigned long long x[105]; };\n#define pt_regs my_context\n#define PT_REGS_IP(ctx) ((ctx)->x[104])"])
def test_what_is_ours_is_accepted(declared: str) -> None:
    """Our structure, a part of it, one that is only declared, and one of another name."""
    text = f'{declared}\n__attribute__((section("kprobe/f"), used)) int p(struct pt_regs *ctx) {{ return PT_REGS_IP(ctx); }}'
    Program.from_elf(compiled(text, "ours.c")).verify()
