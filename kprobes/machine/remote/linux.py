"""How a process asks Linux: registers and numbers of the system call ABIs (syscall(2), "Architecture calling
conventions")."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen


@frozen(kw_only=True)
class Calls:
    """How a process asks Linux for memory."""

    code: str  #: the instructions, as hexadecimal digits of their bytes
    number: str  #: register of the call's number; "" where that is in the instruction
    args: tuple[str, ...]
    result: str
    map: int
    unmap: int
    anonymous: int = 0x20
    on_stack: int = 0  #: byte offset of the fifth argument from the stack pointer (MIPS o32)
    #: mmap takes the address of a block of its arguments; the number stands in the instruction (s390x)
    block: bool = False
    delay: str = ""  #: bytes that must follow


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_MIPS = Calls(code="0000000c", number="v0", args=_names("a0 a1 a2 a3"), result="v0", map=4090, unmap=4091,
              anonymous=0x800, on_stack=16)
_MIPS64 = Calls(code="0000000c", number="v0", args=_names("a0 a1 a2 a3 a4 a5"), result="v0", map=5009, unmap=5011,
                anonymous=0x800)
_PPC = Calls(code="44000002", number="r0", args=_names("r3 r4 r5 r6 r7 r8"), result="r3", map=90, unmap=91)
_RISCV = Calls(code="00000073", number="a7", args=_names("a0 a1 a2 a3 a4 a5"), result="a0", map=222, unmap=215)
_LOONGARCH = Calls(code="002b0000", number="r11", args=_names("r4 r5 r6 r7 r8 r9"), result="r4", map=222, unmap=215)
_ALPHA = Calls(code="00000083", number="r0", args=_names("r16 r17 r18 r19 r20 r21"), result="r0", map=71, unmap=73,
               anonymous=0x10)
_SH = Calls(code="c316", number="r3", args=_names("r4 r5 r6 r7 r0 r1"), result="r0", map=192, unmap=91)
_ARM = Calls(code="ef000000", number="r7", args=_names("r0 r1 r2 r3 r4 r5"), result="r0", map=192, unmap=91)
# BTI jc first: the program is at an instruction that a branch leads to, and its page may be guarded
_ARM64 = Calls(code="d50324df d4000001", number="x8", args=_names("x0 x1 x2 x3 x4 x5"), result="x0", map=222, unmap=215)
_SPARC = Calls(code="91d02010", number="g1", args=_names("o0 o1 o2 o3 o4 o5"), result="o0", map=71, unmap=73,
               delay="01000000")
_PARISC = Calls(code="e4008200", number="r20", args=_names("r26 r25 r24 r23 r22 r21"), result="r28", map=90, unmap=91,
                anonymous=0x10, delay="08000240")
#: architecture -> its calls. The code of those with words is written in the order of their instructions
LINUX: Mapping[str, Calls] = {
    "x86_64": Calls(code="0f05", number="rax", args=_names("rdi rsi rdx r10 r8 r9"), result="rax", map=9, unmap=11),
    "i386": Calls(code="cd80", number="eax", args=_names("ebx ecx edx esi edi ebp"), result="eax", map=192, unmap=91),
    "arm": _ARM, "armeb": _ARM, "arm64": _ARM64, "arm64be": _ARM64, "ppc": _PPC, "ppc64": _PPC, "ppc64le": _PPC,
    "riscv32": _RISCV, "riscv64": _RISCV, "loongarch64": _LOONGARCH, "alpha": _ALPHA, "parisc": _PARISC,
    "sh4": _SH, "sh4eb": _SH,
    **dict.fromkeys(("mips", "mipsel", "mips32r6", "mips32r6el"), _MIPS),
    **dict.fromkeys(("mips64", "mips64el", "mips64r6", "mips64r6el"), _MIPS64),
    "s390x": Calls(code="0a", number="", args=("r2", "r3"), result="r2", map=90, unmap=91, block=True),
    "sparc": _SPARC, "sparc64": evolve(_SPARC, code="91d0206d"),
    "m68k": Calls(code="4e40", number="d0", args=_names("d1 d2 d3 d4 d5 a0"), result="d0", map=192, unmap=91),
}
#: architecture -> numbers of exit() and exit_group(), where QEMU 10 can tell of them alone: of those below 1024
EXITS: Mapping[str, tuple[int, int]] = {
    "x86_64": (60, 231), "i386": (1, 252), **dict.fromkeys(("arm", "armeb", "s390x"), (1, 248)),
    **dict.fromkeys(("arm64", "arm64be", "riscv32", "riscv64", "loongarch64"), (93, 94)),
    **dict.fromkeys(("ppc", "ppc64", "ppc64le"), (1, 234))}
#: architecture -> number of clone(). QEMU 10 has no clone3(), and tells of no call above 1023 (MIPS)
CLONES: Mapping[str, int] = {
    "x86_64": 56, **dict.fromkeys(("i386", "arm", "armeb", "s390x", "ppc", "ppc64", "ppc64le"), 120),
    **dict.fromkeys(("arm64", "arm64be", "riscv32", "riscv64", "loongarch64"), 220)}
#: architecture -> numbers of exit(), exit_group() and clone(), where QEMU 10 tells of all calls or of none: MIPS's
#: begin at 4000 and 5000. Each call then costs two stops
AMONG_ALL: Mapping[str, tuple[int, int, int]] = {
    **dict.fromkeys(("mips", "mipsel", "mips32r6", "mips32r6el"), (4001, 4246, 4120)),
    **dict.fromkeys(("mips64", "mips64el", "mips64r6", "mips64r6el"), (5058, 5205, 5055))}
