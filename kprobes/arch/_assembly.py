"""How an architecture's assembly text is read and written: the row that `arch/<family>/assembly.py`
has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from attrs import frozen

__all__ = ["AssemblyText", "CapstoneMode"]


@frozen
class CapstoneMode:
    """Capstone's mode of an architecture, by its own names.

    Attributes:
        arch: as in CS_ARCH_x.
        modes: as in CS_MODE_x, separated by spaces.
        other: the mode besides for code whose mode bits are not 0; "": none.
    """

    arch: str
    modes: str
    other: str = ""


def no_register(operand: str) -> bool:
    """Return False: the default of `is_register`, where a plain number never names a register."""
    return False


def same_name(name: str, bits: int) -> tuple[str, int]:
    """Return (name, 0): the default of `register`, where assemblers name registers as `Registers`
    does.

    Args:
        name: as in assembly.
        bits: of a word; not used.
    """
    return name, 0


@frozen(kw_only=True)
class AssemblyText:
    """How assemblers and disassemblers write an architecture's code.

    Attributes:
        capstone: how Capstone disassembles it; None: it does not.
        keystone: Keystone's names of the architecture and its modes, as in KS_ARCH_x and KS_MODE_x;
            (): it has none.
        is_register: (operand) -> whether a number in it means a register.
        register: (a register's name in assembly, bits of a word) -> the name in `Registers` of the
            one that holds it ("": it is always 0), and how many bits above that one's lowest it
            begins.
    """

    MODULE: ClassVar[str] = "assembly"

    capstone: CapstoneMode | None = None
    keystone: tuple[str, ...] = ()
    is_register: Callable[[str], bool] = no_register
    register: Callable[[str, int], tuple[str, int]] = same_name
