"""How stubs of GDB's remote protocol show an architecture's registers and breakpoints.

It is the row that `arch/<family>/stub.py` has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from attrs import field, frozen

__all__ = ["RegisterPart", "StubFacts", "StubRegister", "file_of", "row_of"]


@frozen
class StubRegister:
    """A register of a stub.

    Attributes:
        name: as the stub calls it.
        number: in p and P packets.
        size: bytes.
    """

    name: str
    number: int
    size: int


@frozen
class RegisterPart:
    """Where a stub has one of the architecture's registers: in which of its own, and in which bits.

    Attributes:
        name: the stub's register.
        low: its lowest bit that counts.
        width: how many of its bits count; 0: all above `low`.
        place: lowest bit of the architecture's register that they stand for.
    """

    name: str
    low: int = 0
    width: int = 0
    place: int = 0


@frozen(kw_only=True)
class StubFacts:
    """Properties of a stub that are not as the architecture's manual says.

    Attributes:
        file: registers in the order in which a stub sends them that describes none; (): every stub
            describes them.
        parts: register of the architecture -> where the stub has it, where their names differ.
        nullified: the stub's register, and its bits that say that the next instruction does
            nothing.
        taken: register that QEMU's stub (10) does not take as it shows it -> the bytes that it
            takes for those shown.
        kinds: bytes of an instruction -> GDB's word for the breakpoint that goes there ("Breakpoint
            Kinds"); empty:
            `Arch.insn_align`.
        nop: an instruction that does nothing, as in memory, where branches may wait for their delay
            slot; b"": they do not.
        kernel: register, its bits, and their value with which QEMU shows a kernel's own memory.
        program: register, its bits, and their value with which QEMU shows a program's memory to a
            kernel.
        takes_pc: True where "c address" of a process writes all that a write of pc does: no npc,
            mode or delay slot.
        qemu: QEMU's name of the architecture; "": the architecture's own.
        qemu_cpu: CPU model without which QEMU does not run what the architecture's compilers make.
    """

    MODULE: ClassVar[str] = "stub"

    file: tuple[StubRegister, ...] = ()
    parts: Mapping[str, RegisterPart] = field(factory=dict)
    nullified: tuple[str, int] | None = None
    taken: Mapping[str, Callable[[bytes], bytes]] = field(factory=dict)
    kinds: Mapping[int, int] = field(factory=dict)
    nop: bytes = b""
    kernel: tuple[str, int, int] | None = None
    program: tuple[str, int, int] | None = None
    takes_pc: bool = False
    qemu: str = ""
    qemu_cpu: str = ""


def file_of(word: int, *groups: str) -> tuple[StubRegister, ...]:
    """Return the registers of a stub, numbered in order from 0.

    Args:
        word: bytes of a register whose group names no size.
        groups: each "SIZE NAME NAME ...": bytes of a register, 0 for `word`.
    """
    out: list[StubRegister] = []
    for group in groups:
        size, *names = group.split()
        out += [StubRegister(name, len(out) + n, int(size) or word) for n, name in enumerate(names)]
    return tuple(out)


def row_of(prefix: str, first: int, last: int, step: int = 1) -> str:
    """Return the names of a row of registers as text: "r0 r1 r2" from ("r", 0, 2).

    Args:
        prefix: what names begin with.
        first: number of the first.
        last: number of the last.
        step: from a number to the next.
    """
    return " ".join(f"{prefix}{n}" for n in range(first, last + 1, step))
