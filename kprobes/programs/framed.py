"""Programs that run in the guest, in a detour.

They read registers from the frame that the detour has made on the guest's stack. A hit asks nothing
of the host, so it costs no stop. guest.py says what such code is, and machine.detours what frames
are.
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
    """The frame that a detour makes on the guest's stack: where it saves registers."""

    @property
    def above(self) -> int:
        """Bytes from the frame to where the stack pointer was."""

    def offset(self, name: str) -> int | None:
        """Return the offset in bytes of a register in the frame; None: it is not saved."""


class DetourGuest(Protocol):
    """A guest that has detours.

    Attributes:
        arch: its architecture.
        reads: True where programs may read guest memory there.
    """

    arch: Arch
    reads: bool

    @property
    def saving(self) -> DetourFrame:
        """The frame of its detours."""


class FrameContext:
    """Emits IR by which a program in a detour reads its context from the detour's frame.

    Attributes:
        reads: names of the registers that the program reads, once the IR is made.
    """

    def __init__(self, arch: Arch, frame: DetourFrame) -> None:
        """Prepare; nothing is emitted yet.

        Args:
            arch: the guest's architecture.
            frame: layout of the frame of the guest's detours.
        """
        self._arch = arch
        self._frame = frame
        self.reads: set[str] = set()

    def load(self, w: IrWriter, offset: int, size: int) -> str:
        """Emit IR for a read of the context, and return the name of the value, an i64.

        Args:
            w: writer of the IR of the current function.
            offset: bytes from the context's beginning.
            size: bytes; the verifier lets no read pass that crosses words.

        Raises:
            Unsupported: the read is in a function that the program calls, or is of a register that
                detours do not save.
        """
        if w.entry:
            raise Unsupported(
                "a function of the program's own looks at the context",
                hint="read what it needs in the program itself, or let it be inlined",
            )
        return part(w, word(w, self._arch, self, offset // 8), offset % 8, size)

    def address(self, w: IrWriter) -> str:
        """Return the IR name of the value of r1 at the program's start: the frame's address.

        The program may copy this value, but not read memory by it.

        Args:
            w: writer of the IR of the current function.

        Raises:
            Unsupported: the program uses the context as memory.
        """
        if w.module.places.escapes:
            raise Unsupported(
                "it takes the context for memory",
                hint="read words of it at places that are constant",
            )
        return "%a1"

    def sp(self, w: IrWriter) -> str:
        """Emit IR that computes the stack pointer as it was before the detour; return its name.

        Args:
            w: writer of the function's IR.
        """
        return w.emit(f"and i64 {w.emit(f'add i64 %a1, {self._frame.above}')}, {self._arch.mask}")

    def linkage(self, w: IrWriter, index: int) -> str:
        """Emit IR for a read of the return address at a function's entry, and return the name of
        the value, an i64.

        Called where a program reads the context's word that stands for the return address.

        Args:
            w: writer of the IR of the current function.
            index: number of the context's word, which is not used.
        """
        linkage = self._arch.linkage
        assert linkage is not None
        return (
            self.register(w, linkage.register, index)
            if linkage.register
            else word_at(w, self._arch, self.sp(w), 0)
        )

    def register(self, w: IrWriter, name: str, index: int) -> str:
        """Emit IR for a read of a register as it was before the detour; return the i64's name.

        The stack pointer is computed, and pc comes from the environment; others are read from the
        frame.

        Args:
            w: writer of the IR of the current function.
            name: the register, or an alias of it.
            index: number of the context's word, which is not used.

        Raises:
            Unsupported: detours do not save the register.
        """
        name = self._arch.regs.aliases.get(name, name)
        if name == self._arch.regs.pc:
            return w.word(PC)
        return self.sp(w) if name == self._arch.regs.sp else self._saved(w, name)

    def _saved(self, w: IrWriter, name: str) -> str:
        """Emit IR for a read of a register from the frame, and return the name of the i64.

        Args:
            w: writer of the IR of the current function.
            name: the register; added to `reads`.

        Raises:
            Unsupported: detours do not save it.
        """
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
    """A program that was compiled to run in a guest's detours.

    Attributes:
        text: machine code of a function of (environment, frame).
        slots: what each word of the environment behind the header is: (kind, number).
        reads: names of the registers that it reads from the frame.
    """

    text: bytes
    slots: tuple[Slot, ...]
    reads: frozenset[str]


def compiled(code: Code, guest: DetourGuest, cleared: Mapping[int, int]) -> Framed:
    """Compile a program for detours.

    Args:
        code: the program.
        guest: the guest in whose detours it runs.
        cleared: first slot of a function -> bytes of its stack that are zeroed as it begins.

    Returns:
        Machine code, what the words of its environment are, and the names of the registers that it
        reads from the detour's frame.

    Raises:
        Unsupported: the program does what only the host can do, reads guest memory where `guest`
            does not allow it, or LLVM has no such target.
    """
    around = FrameContext(guest.arch, guest.saving)
    text, slots = _compiled(code, guest.arch, cleared, around, asks=True)
    if not guest.reads and ("blocks", 0) in slots:
        raise Unsupported(
            "it reads memory, and it is not known what a kernel has mapped",
            hint="read registers and arguments that are in registers",
        )
    return Framed(text, slots, frozenset(around.reads))


def asked(arch: Arch) -> bytes:
    """Return the machine code of an empty function, by which programs ask the host for memory.

    The machine stops the guest where this function is called, and reads guest memory for the
    program.
    """
    return machine_code(NOTHING, arch)


def counting(arch: Arch) -> Framed:
    """Return a program that adds 1 to its environment's count of runs, and does nothing else."""
    return Framed(machine_code(COUNT, arch), (), frozenset())
