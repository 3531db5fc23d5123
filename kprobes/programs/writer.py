"""The writer of a program's LLVM IR: values, registers, memory, the environment."""

from __future__ import annotations

from typing import Final, Protocol

from attrs import define, field, frozen

from . import isa
from .isa import Instruction
from .places import PlaceKind, Places

# words of the environment that are not the program's: address of the code, address of the next
# environment
HEADER: Final = 2
#: what a word of the environment is: ("map", index), ("value", index), ("call", helper's number),
#: ("format", slot of the helper's call), ...
Slot = tuple[str, int]
#: word of the environment: 1 when what was called of Python has raised something
FAILED: Final[Slot] = ("failed", 0)


class ContextSource(Protocol):
    """The source of a context's words, where the context is not memory behind r1."""

    def load(self, writer: IrWriter, offset: int, size: int) -> str:
        """Write a read of the context, and return the name of the value, an i64.

        Args:
            writer: writes the function.
            offset: bytes from the context's beginning.
            size: bytes.
        """

    def address(self, writer: IrWriter) -> str:
        """Write what r1 is at the start, and return its name, an i64."""


class Inline(Protocol):
    """Writes helpers as code."""

    def __call__(self, w: IrWriter, pc: int, number: int, /) -> str | None:
        """Write a helper's code.

        Args:
            w: writes the function.
            pc: slot of the call.
            number: the helper's number.

        Returns:
            Name of its result; None, with nothing written: the environment's ("call", number) is
            called.
        """


def no_inline(writer: IrWriter, pc: int, number: int) -> str | None:
    """Return None: every helper is called."""
    return None


@frozen(kw_only=True)
class CodeTarget:
    """The properties of the code's machine that the IR depends on.

    Attributes:
        bits: bits of a pointer.
        order: byte order of its memory.
        program_order: byte order of the program's memory; where they differ, accesses are swapped.
        divides: bits of the widest numbers that it has instructions to divide.
        shifts: bits of the widest numbers that it has instructions to shift by a register.
        atomic: True where atomic operations are atomic; False: they are a load, a computation and a
            store.
        alone: True where the code calls nothing: all is put into one function.
        asks: True where, with `alone`, there is a function that has the host read guest memory.
    """

    bits: int = 64
    order: isa.Order = "little"
    program_order: isa.Order = "little"
    divides: int = 64
    shifts: int = 64
    atomic: bool = True
    alone: bool = False
    asks: bool = False

    @property
    def swapped(self) -> bool:
        """True where the machine's byte order is not the program's."""
        return self.order != self.program_order


@define
class IrModule:
    """The IR of one program, while it is written.

    Attributes:
        code: the instructions.
        places: what registers point at.
        target: the machine.
        inline: writes helpers.
        context: where the context's words are; None: it is memory.
        slots: words of the environment in use -> their places in it.
        support: functions that others call, by name.
    """

    code: tuple[Instruction, ...]
    places: Places
    target: CodeTarget
    inline: Inline
    context: ContextSource | None
    slots: dict[Slot, int] = field(factory=dict)
    support: dict[str, str] = field(factory=dict)

    def slot(self, what: Slot) -> int:
        """Return the offset in bytes of a word in the environment; a new word gets the next one.

        Args:
            what: what the word is.
        """
        return 8 * self.slots.setdefault(what, HEADER + len(self.slots))

    def need(self, name: str, text: str) -> None:
        """Add a function that others call to the module, unless it is there.

        Args:
            name: its name.
            text: its IR.
        """
        self.support.setdefault(name, text)


class IrWriter:
    """Writes one function. Values and pointers are given by their names in the IR.

    Attributes:
        module: the program's IR.
        entry: slot where the function begins.
        lines: the IR so far.
        rooms: the instructions that allocate its memory.
    """

    def __init__(self, module: IrModule, entry: int) -> None:
        """Begin a function.

        Args:
            module: the program's IR.
            entry: slot where the function begins.
        """
        self.module = module
        self.entry = entry
        self.lines: list[str] = []
        self.rooms: list[str] = []
        self._names = 0
        self._counter = ""

    def emit(self, text: str) -> str:
        """Write an instruction with a result; return the result's name.

        Args:
            text: the instruction without `name =`.
        """
        self._names += 1
        name = f"%v{self._names}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        self.lines.append(f"  {text}")

    def room(self, size: int) -> str:
        """Allocate bytes on the function's stack; return the pointer's name."""
        name = f"%room{len(self.rooms)}"
        self.rooms.append(f"  {name} = alloca [{size} x i8], align 16")
        return name

    def counter(self, value: int) -> str:
        """Return the name of the pointer to the function's only counter, an i64.

        Args:
            value: what it begins with, where it is new.
        """
        if not self._counter:
            self._counter = self.room(8)
            self.rooms.append(f"  store i64 {value}, ptr {self._counter}")
        return self._counter

    def label(self) -> str:
        """Return a fresh label, without its percent sign."""
        self._names += 1
        return f"b{self._names}"

    def begin(self, label: str) -> None:
        """Begin a block of code at a label."""
        self.lines.append(f"{label}:")

    # --- values

    def get(self, register: int, bits: int = 64) -> str:
        """Write a read of a register; return the name of its value, or of its lower bits."""
        value = self.emit(f"load i64, ptr %r{register}")
        return value if bits == 64 else self.emit(f"trunc i64 {value} to i{bits}")

    def put(self, register: int, value: str, bits: int = 64) -> None:
        """Write a value to a register, zero-extended.

        Args:
            register: its number.
            value: name of the value.
            bits: bits of the value.
        """
        if bits < 64:
            value = self.emit(f"zext i{bits} {value} to i64")
        self.do(f"store i64 {value}, ptr %r{register}")

    def word(self, what: Slot) -> str:
        """Write a read of a word of the environment, and return the name of the value, an i64.

        It stays as it is while the program runs, so LLVM need not load it twice.

        Args:
            what: what the word is; a new one gets the next offset.
        """
        at = self.emit(f"getelementptr i8, ptr %env, i64 {self.module.slot(what)}")
        known = ", !range !0" if what[0] in ("map", "value") else ""
        return self.emit(f"load i64, ptr {at}, !invariant.load !1{known}")

    def pointer(self, value: str) -> str:
        """Write a cast of an address to a pointer; return the pointer's name."""
        return self.emit(f"inttoptr i64 {value} to ptr")

    def address(self, pc: int, register: int, offset: int = 0) -> str:
        """Write the sum of a register and an offset, and return the name of the pointer.

        Args:
            pc: slot of the instruction.
            register: its number.
            offset: bytes.
        """
        place = self.module.places.at(pc, register)
        if place.kind is PlaceKind.FRAME:
            return self.emit(
                f"getelementptr i8, ptr %frame, i64 {isa.STACK_SIZE + place.offset + offset}"
            )
        value = self.get(register)
        return self.pointer(self.emit(f"add i64 {value}, {offset}") if offset else value)

    def load(self, pointer: str, bits: int, align: int = 1) -> str:
        """Write a load as the program sees it, swapped where byte orders differ; return its name.

        Args:
            pointer: where from.
            bits: bits of the value.
            align: bytes of which the address is a multiple.
        """
        return self.swap(self.emit(f"load i{bits}, ptr {pointer}, align {align}"), bits)

    def store(self, value: str, pointer: str, bits: int, align: int = 1) -> None:
        """Write a store as the program sees it, swapped where byte orders differ.

        Args:
            value: name of the value.
            pointer: where to.
            bits: bits of the value.
            align: bytes of which the address is a multiple.
        """
        self.do(f"store i{bits} {self.swap(value, bits)}, ptr {pointer}, align {align}")

    def swap(self, value: str, bits: int) -> str:
        """Return the name of a value as it lies in memory: reversed where byte orders differ."""
        return self.reversed(value, bits) if self.module.target.swapped else value

    def reversed(self, value: str, bits: int) -> str:
        """Write a reversal of a value's bytes; return its name.

        Args:
            value: name of the value.
            bits: bits of the value.
        """
        return (
            value if bits == 8 else self.emit(f"call i{bits} @llvm.bswap.i{bits}(i{bits} {value})")
        )
