"""i386: user code in 32-bit protected mode with flat segments. The cdecl calling convention: all
arguments on the stack.
"""

from __future__ import annotations

import re

from .._addresses import following
from .._base import Abi, Arch, Files, Order, OutOfLine, Pointers, Registers, Results, Walking
from . import addresses, interrupts
from .rows import TRAPS, Mode, jump, landing, linkage
from .shape import deciding

GENERAL = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")  # by number
XMM = tuple(f"xmm{n}" for n in range(8))
ST = tuple(f"st{n}" for n in range(8))
SEGMENTS = ("cs", "ss", "ds", "es", "fs", "gs")

REGISTERS = Registers(
    names=("eax", "ebx", "ecx", "edx", "esi", "edi", "ebp", "esp", "eip", "eflags", *SEGMENTS,
           *XMM, "mxcsr", *ST, "fpcw", "fpsw", "fptag"),
    pc="eip", sp="esp", flags="eflags",
    aliases={**{name[1:]: name for name in GENERAL}, "ip": "eip", "flags": "eflags"},
    widths={**dict.fromkeys((*SEGMENTS, "fpcw", "fpsw", "fptag"), 16), **dict.fromkeys(XMM, 128),
            **dict.fromkeys(ST, 80)}, reals=frozenset(XMM),
)
MODE = Mode(32, GENERAL, {})  # Unicorn does not show the bases of fs and gs in this mode

OPENS = re.compile(rb"\xf3\x0f\x1e\xfb|\x55\x89\xe5")  #: ENDBR32; PUSH EBP, MOV EBP, ESP

I386 = Arch(
    package="kprobes.arch.x86",
    name="i386", bits=32, order=Order.LITTLE, insn_align=1, max_insn=15, regs=REGISTERS,
    traps=TRAPS,
    decode=MODE.decode,
    abi=Abi(args=(), returns=("eax", "edx"), results=Results(registers=0, memory=0), stack_args=4,
            stack_align=16),
    linkage=linkage(4), jump=jump(32), out_of_line=OutOfLine(max_displaced=11),
    pointers=Pointers(code_address=landing(bytes.fromhex("f30f1efb")), direct=True),  # ENDBR32
    walking=Walking(opens={0: OPENS}, decide=lambda insn: deciding(insn.raw, False),
                    follow=following(addresses.use, 32, addresses.begins)),
    files=Files(machines=((3, 32, "little"),)),
    interrupts=interrupts.CONTROLLER,
)

ARCHES = (I386,)
