"""x86_64: user code in 64-bit mode. System V calling convention."""

from __future__ import annotations

import re

from .._base import (
    Abi,
    Arch,
    Files,
    Insn,
    Order,
    OutOfLine,
    Pointers,
    Registers,
    Results,
    Walking,
)
from .displace import reaching
from .interrupts import CONTROLLER
from .rows import TRAPS, Mode, jump, landing, linkage
from .shape import FS, GS, deciding, measure

LOW = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi")  # by number
HIGH = tuple(f"r{n}" for n in range(8, 16))
XMM = tuple(f"xmm{n}" for n in range(16))
ST = tuple(f"st{n}" for n in range(8))
SEGMENTS = ("cs", "ss", "ds", "es", "fs", "gs")

REGISTERS = Registers(
    names=("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *HIGH, "rip", "rflags",
           *SEGMENTS, "fs_base", "gs_base", *XMM, "mxcsr", *ST, "fpcw", "fpsw", "fptag"),
    pc="rip", sp="rsp", flags="rflags",
    aliases={**{name[1:]: name for name in LOW}, "ip": "rip", "flags": "rflags"},
    widths={**dict.fromkeys((*SEGMENTS, "fpcw", "fpsw", "fptag"), 16), "mxcsr": 32,
            **dict.fromkeys(XMM, 128), **dict.fromkeys(ST, 80)}, reals=frozenset(XMM),
)
MODE = Mode(64, LOW + HIGH, {FS: "fs_base", GS: "gs_base"})


def relocate(insn: Insn, to: int) -> bytes:
    """Return the instruction's body for address `to`, with its rip-relative operand where it was;
    one without such an operand as it is.

    Raises:
        OutOfReach: the operand is more than 2 GiB away.
    """
    return (
        insn.body
        if insn.operand is None
        else reaching(insn.body, measure(insn.body, wide=True), insn.operand, to)
    )


OPENS = re.compile(rb"\xf3\x0f\x1e\xfa|\x55\x48\x89\xe5")  #: ENDBR64; PUSH RBP, MOV RBP, RSP

X86_64 = Arch(
    package="kprobes.arch.x86",
    name="x86_64", bits=64, order=Order.LITTLE, insn_align=1, max_insn=15, regs=REGISTERS,
    traps=TRAPS,
    decode=MODE.decode,
    abi=Abi(args=("rdi", "rsi", "rdx", "rcx", "r8", "r9"), returns=("rax", "rdx"),
            results=Results(registers=16, memory=16, wide=True),
            stack_args=8, stack_align=16,
            thread="fs_base"),
    linkage=linkage(8), jump=jump(64), out_of_line=OutOfLine(relocate=relocate, max_displaced=26),
    pointers=Pointers(code_address=landing(bytes.fromhex("f30f1efa")), direct=True),  # ENDBR64
    walking=Walking(opens={0: OPENS}, decide=lambda insn: deciding(insn.raw, True)),
    files=Files(machines=((62, 64, "little"),)),
    interrupts=CONTROLLER,
)

ARCHES = (X86_64,)
