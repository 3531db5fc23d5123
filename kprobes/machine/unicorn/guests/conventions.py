"""How guests make Linux's system calls, and by which interrupt Unicorn reports them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen


@frozen(kw_only=True)
class Convention:
    """How a guest makes a system call (syscall(2), "Architecture calling conventions").

    Attributes:
        table: what the list of numbers calls the architecture.
        interrupt: number of the engine's interrupt.
        number: register of the call's number.
        args: registers of the arguments.
        result: register of the result.
        stack: byte offset of the fifth argument from the stack pointer; 0: it is in a register.
        failed: what tells of an error: "" (a negative result), "a3", "so" (of CR0), "carry".
        inline: the number may stand in the instruction's last byte.
        block: mmap() gets the address of a block of its arguments; mmap2() does not.
        descriptor: set_thread_area() gets the address of a descriptor: its number, then the base.
        private: calls that are in no list: number -> name.
    """

    table: str
    interrupt: int
    number: str
    args: str
    result: str
    stack: int = 0
    failed: str = ""
    inline: bool = False
    block: bool = False
    descriptor: bool = False
    private: Mapping[int, str] = field(factory=dict)


_ARM = Convention(
    table="arm",
    interrupt=2,
    number="r7",
    args="r0 r1 r2 r3 r4 r5",
    result="r0",
    block=True,
    private={0xF0005: "set_tls"},
)
_ARM64 = Convention(table="arm64", interrupt=2, number="x8", args="x0 x1 x2 x3 x4 x5", result="x0")
_O32 = Convention(
    table="mipso32",
    interrupt=17,
    number="v0",
    args="a0 a1 a2 a3",
    result="v0",
    stack=16,
    failed="a3",
)
_N64 = Convention(
    table="mips64", interrupt=17, number="v0", args="a0 a1 a2 a3 a4 a5", result="v0", failed="a3"
)
_PPC = Convention(
    table="powerpc", interrupt=8, number="r0", args="r3 r4 r5 r6 r7 r8", result="r3", failed="so"
)
_PPC64 = Convention(
    table="powerpc64", interrupt=8, number="r0", args="r3 r4 r5 r6 r7 r8", result="r3", failed="so"
)
_RISCV = "a0 a1 a2 a3 a4 a5"
_SPARC = "o0 o1 o2 o3 o4 o5"
CONVENTIONS: Mapping[str, Convention] = {
    "x86_64": Convention(
        table="x86_64", interrupt=256, number="rax", args="rdi rsi rdx r10 r8 r9", result="rax"
    ),
    "i386": Convention(
        table="i386",
        interrupt=0x80,
        number="eax",
        args="ebx ecx edx esi edi ebp",
        result="eax",
        block=True,
        descriptor=True,
    ),
    "arm": _ARM,
    "armeb": _ARM,
    "arm64": _ARM64,
    "arm64be": _ARM64,
    **dict.fromkeys(("mips", "mipsel", "mips32r6", "mips32r6el"), _O32),
    **dict.fromkeys(("mips64", "mips64el", "mips64r6", "mips64r6el"), _N64),
    "ppc": _PPC,
    "ppc64": _PPC64,
    "ppc64le": _PPC64,
    "riscv32": Convention(table="riscv32", interrupt=8, number="a7", args=_RISCV, result="a0"),
    "riscv64": Convention(table="riscv64", interrupt=8, number="a7", args=_RISCV, result="a0"),
    "s390x": Convention(
        table="s390x",
        interrupt=2,
        number="r1",
        args="r2 r3 r4 r5 r6 r7",
        result="r2",
        inline=True,
        block=True,
    ),
    "sparc": Convention(
        table="sparc", interrupt=0x90, number="g1", args=_SPARC, result="o0", failed="carry"
    ),
    "sparc64": Convention(
        table="sparc64", interrupt=0x16D, number="g1", args=_SPARC, result="o0", failed="carry"
    ),
    "m68k": Convention(
        table="m68k", interrupt=32, number="d0", args="d1 d2 d3 d4 d5 a0", result="d0", block=True
    ),
}


def convention_of(name: str) -> Convention | None:
    """Return how an architecture's processes make system calls; None: Linux has none there."""
    return CONVENTIONS.get(name)
