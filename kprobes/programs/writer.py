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
        """Emit IR that reads a part of the context; return the value's name, an i64.

        Args:
            writer: writer of the IR of the current function.
            offset: bytes from the context's beginning.
            size: bytes that are read: 1, 2, 4 or 8.
        """

    def address(self, writer: IrWriter) -> str:
        """Emit IR for the value that r1 has at the program's start; return its name, an i64."""


class Inline(Protocol):
    """Emits IR for helpers in place of calls of them."""

    def __call__(self, w: IrWriter, pc: int, number: int, /) -> str | None:
        """Emit IR that does what a helper does.

        Args:
            w: writer of the IR of the current function.
            pc: slot of the call.
            number: Linux's number of the helper.

        Returns:
            Name of its result; None, with nothing written: the environment's ("call", number) is
            called.
        """


def no_inline(writer: IrWriter, pc: int, number: int) -> str | None:
    """Return None: no helper is inlined, all are called. An Inline; its arguments are not used."""
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
        asks: True where, with `alone`, there is a function at which the guest stops: there the host
            reads guest memory for the program, or calls Python.
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
        code: the program's eBPF instructions, one for each slot.
        places: what registers point at, at each slot.
        target: the machine that the IR is for.
        inline: emits IR for helpers in place of calls.
        context: emits reads of the context; None: the context is memory at r1.
        slots: what a word of the environment is -> its index among the words, header included;
            filled as IR is emitted.
        support: name of a support function -> its IR; filled as IR is emitted.
    """

    code: tuple[Instruction, ...]
    places: Places
    target: CodeTarget
    inline: Inline
    context: ContextSource | None
    slots: dict[Slot, int] = field(factory=dict)
    support: dict[str, str] = field(factory=dict)

    def slot(self, what: Slot) -> int:
        """Return the offset in bytes of a word in the environment; a new word is put at the end.

        Args:
            what: what the word is: (kind, number), such as ("map", 0).
        """
        return 8 * self.slots.setdefault(what, HEADER + len(self.slots))

    def need(self, name: str, text: str) -> None:
        """Add a support function to the module, unless it has one of that name.

        Args:
            name: the function's name.
            text: IR of the whole function.
        """
        self.support.setdefault(name, text)


class IrWriter:
    """Writes the LLVM IR of one function of a program, line by line.

    Nothing is executed or compiled here: methods append lines of IR. Values and pointers are
    given, and returned, by their names in the IR: `%v1`.

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
        """Append an IR instruction that has a result; return the result's name.

        Args:
            text: the IR instruction without `name =`: "add i64 %v1, 8".
        """
        self._names += 1
        name = f"%v{self._names}"
        self.lines.append(f"  {name} = {text}")
        return name

    def append(self, text: str) -> None:
        """Append an IR instruction that has no result, such as a store or a branch."""
        self.lines.append(f"  {text}")

    def allocate(self, size: int) -> str:
        """Have the function allocate bytes on its stack as it begins; return the pointer's name.

        Args:
            size: how many bytes.
        """
        name = f"%room{len(self.rooms)}"
        self.rooms.append(f"  {name} = alloca [{size} x i8], align 16")
        return name

    def counter(self, value: int) -> str:
        """Return the IR name of the pointer to the function's only counter, an i64 on its stack.

        Args:
            value: what the counter begins with each time that the function is called; looked at
                in the first call of this method only.
        """
        if not self._counter:
            self._counter = self.allocate(8)
            self.rooms.append(f"  store i64 {value}, ptr {self._counter}")
        return self._counter

    def label(self) -> str:
        """Return a fresh label, without its percent sign."""
        self._names += 1
        return f"b{self._names}"

    def start_block(self, label: str) -> None:
        """Append a label: the instructions that follow are the block that branches to it enter."""
        self.lines.append(f"{label}:")

    # --- values

    def get(self, register: int, bits: int = 64) -> str:
        """Emit IR that reads a register of the program; return the value's name.

        Args:
            register: number of the eBPF register, 0 to 10.
            bits: how many of its lower bits are read.
        """
        value = self.emit(f"load i64, ptr %r{register}")
        return value if bits == 64 else self.emit(f"trunc i64 {value} to i{bits}")

    def put(self, register: int, value: str, bits: int = 64) -> None:
        """Emit IR that writes a value to a register of the program, zero-extended to 64 bits.

        Args:
            register: number of the eBPF register, 0 to 10.
            value: IR name of the value.
            bits: bits of the value.
        """
        if bits < 64:
            value = self.emit(f"zext i{bits} {value} to i64")
        self.append(f"store i64 {value}, ptr %r{register}")

    def word(self, what: Slot) -> str:
        """Emit IR that reads a word of the environment; return the value's name, an i64.

        The word must not change while the program runs: LLVM may load it once.

        Args:
            what: what the word is; a new word is put at the environment's end.
        """
        at = self.emit(f"getelementptr i8, ptr %env, i64 {self.module.slot(what)}")
        known = ", !range !0" if what[0] in ("map", "value") else ""
        return self.emit(f"load i64, ptr {at}, !invariant.load !1{known}")

    def pointer(self, value: str) -> str:
        """Emit IR that casts an address, an i64, to a pointer; return the pointer's name."""
        return self.emit(f"inttoptr i64 {value} to ptr")

    def address(self, pc: int, register: int, offset: int = 0) -> str:
        """Emit IR that makes a pointer of a register and an offset; return the pointer's name.

        Args:
            pc: slot of the eBPF instruction that uses it: there the register may be known to point
                into the frame.
            register: number of the eBPF register with the address.
            offset: bytes that are added.
        """
        place = self.module.places.at(pc, register)
        if place.kind is PlaceKind.FRAME:
            return self.emit(
                f"getelementptr i8, ptr %frame, i64 {isa.STACK_SIZE + place.offset + offset}"
            )
        value = self.get(register)
        return self.pointer(self.emit(f"add i64 {value}, {offset}") if offset else value)

    def load(self, pointer: str, bits: int, align: int = 1) -> str:
        """Emit IR that loads a number in the program's byte order; return its name.

        Args:
            pointer: IR name of the pointer to it.
            bits: bits of the value.
            align: bytes of which the address is a multiple.
        """
        return self.swap(self.emit(f"load i{bits}, ptr {pointer}, align {align}"), bits)

    def store(self, value: str, pointer: str, bits: int, align: int = 1) -> None:
        """Emit IR that stores a number in the program's byte order.

        Args:
            value: IR name of the value.
            pointer: IR name of the pointer to where it is stored.
            bits: bits of the value.
            align: bytes of which the address is a multiple.
        """
        self.append(f"store i{bits} {self.swap(value, bits)}, ptr {pointer}, align {align}")

    def swap(self, value: str, bits: int) -> str:
        """Emit IR that converts a value between the target's and the program's byte order.

        Args:
            value: IR name of the value.
            bits: bits of the value.

        Returns:
            IR name of the converted value; `value` itself where both orders are the same.
        """
        return self.reversed(value, bits) if self.module.target.swapped else value

    def reversed(self, value: str, bits: int) -> str:
        """Emit IR that reverses a value's bytes; return the result's name.

        Args:
            value: IR name of the value.
            bits: bits of the value; 8: nothing is emitted, and `value` is returned.
        """
        return (
            value if bits == 8 else self.emit(f"call i{bits} @llvm.bswap.i{bits}(i{bits} {value})")
        )
