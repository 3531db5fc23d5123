"""DWARF's numbers of registers, by the ABIs' documents; None: a number that stands for nothing that we show."""

from __future__ import annotations

from ..arch._base import Arch

_X86_64 = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
           "r15", "rip")
_I386 = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip")
_PARISC = (None, *(f"r{n}" for n in range(1, 32)))  # r0 has no name
_OWN: dict[str, tuple[str | None, ...]] = {"x86_64": _X86_64, "i386": _I386, "parisc": _PARISC}
_LINK = {65: "lr"}  # of PowerPC
CALL_FRAME = 160  #: s390x: bytes from the stack pointer at a call to what its ABI calls the canonical frame address


def register(arch: Arch, number: int) -> str | None:
    """Most ABIs count as the instruction set does, which is the order of our names."""
    if arch.name in _OWN:
        return _OWN[arch.name][number] if number < len(_OWN[arch.name]) else None
    if arch.name.startswith("ppc") and number in _LINK:
        return _LINK[number]
    return arch.regs.names[number] if number < (16 if arch.name.startswith(("s390", "m68k", "arm-")) else 32) else None


def sp_at_call(arch: Arch, cfa: int) -> int:
    """The stack pointer register of the caller, of the callee's canonical frame address."""
    return cfa - (CALL_FRAME if arch.name.startswith("s390") else arch.regs.sp_bias) & arch.mask


def pairs_are_known(arch: Arch) -> bool:
    """False where LLVM writes the registers of a pair in the other order than the ABI has them: on big-endian ARM."""
    return arch.bits == 64 or arch.order.value == "little" or not arch.name.startswith("arm")


def has_windows(arch: Arch) -> bool:
    """True where DW_CFA_GNU_window_save says that a function has a register window of its own; elsewhere that number
    stands for something else."""
    return arch.name.startswith("sparc")
