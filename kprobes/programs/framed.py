"""Programs that run in the guest, in a detour: what they read of registers is in the frame that the
detour has made on the guest's stack.

Nothing of the host's is asked, so a hit costs no stop. See guest.py for what such code is, and
machine.detours for the frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from attrs import frozen

from ..arch._base import Arch
from ..errors import Unsupported
from .code import Code
from .guest import _compiled, machine_code
from .llvm import COUNT, NOTHING
from .site import part, word, word_at
from .writer import IrWriter, Slot

#: words of the environment: the probe's address
PC = ("pc", 0)


class DetourFrame(Protocol):
    """A detour's. above: bytes from the frame to where the stack pointer was. offset: where a
    register is; None: nowhere.
    """

    @property
    def above(self) -> int: ...
    def offset(self, name: str) -> int | None: ...


class DetourGuest(Protocol):
    """A guest that has detours. reads: programs may read memory there."""

    arch: Arch
    reads: bool

    @property
    def saving(self) -> DetourFrame: ...


class FrameContext:
    """The context of a program in a detour. reads: names of the registers that it reads, when the
    IR is made.
    """

    def __init__(self, arch: Arch, frame: DetourFrame) -> None:
        self._arch = arch
        self._frame = frame
        self.reads: set[str] = set()

    def load(self, w: IrWriter, offset: int, size: int) -> str:
        """Part of a word. The verifier lets no read pass that crosses words."""
        if w.entry:
            raise Unsupported("a function of the program's own looks at the context",
                              hint="read what it needs in the program itself, or let it be inlined")
        return part(w, word(w, self._arch, self, offset // 8), offset % 8, size)

    def address(self, w: IrWriter) -> str:
        """The frame's: nobody looks there by it."""
        if w.module.places.escapes:
            raise Unsupported(
                "it takes the context for memory",
                hint="read words of it at places that are constant",
            )
        return "%a1"

    def sp(self, w: IrWriter) -> str:
        return w.emit(f"and i64 {w.emit(f'add i64 %a1, {self._frame.above}')}, {self._arch.mask}")

    def linkage(self, w: IrWriter, index: int) -> str:
        linkage = self._arch.linkage
        assert linkage is not None
        return (
            self.register(w, linkage.register, index)
            if linkage.register
            else word_at(w, self._arch, self.sp(w), 0)
        )

    def register(self, w: IrWriter, name: str, index: int) -> str:
        name = self._arch.regs.aliases.get(name, name)
        if name == self._arch.regs.pc:
            return w.word(PC)
        return self.sp(w) if name == self._arch.regs.sp else self._saved(w, name)

    def _saved(self, w: IrWriter, name: str) -> str:
        at = self._frame.offset(name)
        if at is None:
            raise Unsupported(
                f"detours of {self._arch.name} do not save {name}", hint="read general registers"
            )
        self.reads.add(name)
        bits = self._arch.bits
        base = w.emit("inttoptr i64 %a1 to ptr")
        value = w.emit(f"load i{bits}, ptr {w.emit(f'getelementptr i8, ptr {base}, i64 {at}')}")
        return value if bits == 64 else w.emit(f"zext i{bits} {value} to i64")


@frozen
class Framed:
    """A program for detours. text: machine code of (environment, frame). slots: the environment's
    words after the header. reads: registers that must be in the frame.
    """

    text: bytes
    slots: tuple[Slot, ...]
    reads: frozenset[str]


def compiled(code: Code, guest: DetourGuest, cleared: Mapping[int, int]) -> Framed:
    """Return the program for detours. Unsupported: only the host can do it, or LLVM has no such
    target.
    """
    around = FrameContext(guest.arch, guest.saving)
    text, slots = _compiled(code, guest.arch, cleared, around, asks=True)
    if not guest.reads and ("blocks", 0) in slots:
        raise Unsupported("it reads memory, and nobody knows what a kernel has mapped",
                          hint="read registers and arguments that are in registers")
    return Framed(text, slots, frozenset(around.reads))


def asked(arch: Arch) -> bytes:
    """Return the function by which programs have the host read: where it is called, the guest
    stops.
    """
    return machine_code(NOTHING, arch)


def counting(arch: Arch) -> Framed:
    """Return a program that counts itself, and does nothing else."""
    return Framed(machine_code(COUNT, arch), (), frozenset())
