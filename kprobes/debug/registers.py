"""DWARF's numbers of registers, and what else an ABI says to debug information (DwarfFacts)."""

from __future__ import annotations

from ..arch._base import Arch
from ..arch._dwarf import DwarfFacts
from ..arch._rows import row

USUAL = DwarfFacts()
X87_SIZE = 10  #: bytes of a register of x87
#: id() of an architecture, which is kept beside -> its facts: each frame of a stack asks many times
_asked: dict[int, tuple[Arch, DwarfFacts]] = {}


def facts(arch: Arch) -> DwarfFacts:
    """Return what the architecture's ABI says to debug information; USUAL where it says nothing."""
    known = _asked.get(id(arch))
    if known is None:
        known = _asked[id(arch)] = arch, row(arch, DwarfFacts) or USUAL
    return known[1]


def register(arch: Arch, number: int) -> str | None:
    """Return the name of the register that a DWARF number stands for.

    Most ABIs count as the instruction set does, which is the order of `Registers.names`.

    Args:
        arch: the architecture.
        number: the DWARF number.

    Returns:
        The name; None: the number stands for no register that machines have.
    """
    known = facts(arch)
    if number in known.others:
        return known.others[number]
    if known.numbers is not None:
        return known.numbers[number] if number < len(known.numbers) else None
    return arch.regs.names[number] if number < known.general else None


def sp_at_call(arch: Arch, cfa: int) -> int:
    """Return the value of the caller's stack pointer register at a call.

    Args:
        arch: the architecture.
        cfa: canonical frame address of the function that is called.
    """
    known = facts(arch)
    return cfa - (arch.regs.sp_bias if known.call_frame is None else known.call_frame) & arch.mask


def pairs_are_known(arch: Arch) -> bool:
    """Whether all compilers describe a value in two registers in the ABI's order."""
    return not facts(arch).pairs_reversed


def has_windows(arch: Arch) -> bool:
    """Whether DW_CFA_GNU_window_save means that a function has a register window of its own
    (SPARC).
    """
    return facts(arch).windows


def real_registers(arch: Arch) -> str:
    """Return where a floating-point number shorter than its register lies in the register.

    Returns:
        "low" (the register's lowest bytes), "high", "double" (a number of 4 bytes is kept as one of
        8), "word" (as "low", and a number of 8 bytes is in two registers), or "": not known.
    """
    return facts(arch).reals


def is_x87(arch: Arch, number: int) -> bool:
    """Whether a DWARF number stands for a register of x87, which has all numbers in 80 bits."""
    return number in facts(arch).x87


def is_real(arch: Arch, number: int) -> bool:
    """Whether a DWARF number stands for a floating-point or vector register."""
    known = facts(arch)
    return known.first_real <= number and number in known.others and known.others[number] != "lr"
