"""Events as programs: a hit becomes a record of a ring buffer without asking Python.

A record is a row of u64: for return events the return address; fault bits; then a value for each element of each
argument, as it was fetched and zero-extended, or STRING bytes of text. Fault bits are counted from 0: for each argument
one that says that its address could not be had, then one for each of its elements.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from typing import Final

from attrs import frozen

from ..arch._base import Arch, Order
from ..errors import ProgramError
from ..programs import isa
from ..programs.context import ARGUMENT, PC, RESULT, SP, WORDS
from ..programs.isa import Instruction, lddw
from ..programs.maps import Map, MapType, Spec, create
from ..programs.program import Program
from ..symbols import Symbols
from ._event import Argument, Event, Scalar, Value
from ._plans import Word, converter

#: bytes of a string in a record, its NUL included
STRING: Final = 512
#: bytes of the ring buffer; the largest record
RING, LARGEST = 1 << 20, 1 << 16
_READ, _READ_STRING, _RESERVE, _SUBMIT = 113, 115, 131, 132
_SIZES: Final = {1: isa.B, 2: isa.H, 4: isa.W, 8: isa.DW}


def why_not(event: Event) -> str:
    """Why an event's hits need Python, as one clause; empty where a program can do it."""
    trees = [tree for arg in event.args for tree in _walk(arg.source.tree)]
    if any(tree.kind == "saved" for tree in trees):
        return "arguments of a return event are kept from the entry on"
    if _Layout(event).size > LARGEST:
        return f"a record takes more than {LARGEST} bytes"
    return ""


def _walk(tree: Word) -> Iterator[Word]:
    yield tree
    if tree.base is not None:
        yield from _walk(tree.base)


class _Layout:
    """Where things are in a record. places: for each argument (its first fault bit, its first byte)."""

    def __init__(self, event: Event) -> None:
        self.returns = 8 * (event.kind == "r")
        bits = sum(1 + _elements(arg) for arg in event.args)
        self.words = (bits + 63) // 64
        self.places: list[tuple[int, int]] = []
        bit, at = 0, self.returns + 8 * self.words
        for arg in event.args:
            self.places.append((bit, at))
            bit, at = bit + 1 + _elements(arg), at + _elements(arg) * _width(arg)
        self.size = max(at, 8)


def _elements(arg: Argument) -> int:
    return 0 if arg.source.literal is not None else max(arg.type.count, 1)


def _width(arg: Argument) -> int:
    return STRING if arg.type.style == "string" else 8


@frozen
class EventProgram:
    """A program for an event, and what its records mean.

    Attributes:
        event: the event. program: what to attach, at the event's place. ring: its records.
    """

    event: Event
    program: Program
    ring: Map
    _layout: _Layout
    _symbols: Symbols

    def decode(self, record: bytes) -> tuple[tuple[Value, ...], int]:
        """(the arguments' values, as Event.fetch() gives them; the return address, 0 for other events)."""
        layout = self._layout
        faults = int.from_bytes(record[layout.returns:layout.returns + 8 * layout.words], sys.byteorder)
        places = zip(self.event.args, layout.places, strict=True)
        values = [self._value(arg, record, faults >> bit, at) for arg, (bit, at) in places]
        return tuple(values), struct.unpack_from("=Q", record)[0] if layout.returns else 0

    def _value(self, arg: Argument, record: bytes, faults: int, at: int) -> Value:
        if arg.source.literal is not None:
            return str(arg.source.literal)
        if faults & 1:
            return None
        show, width = self._text if arg.type.style == "string" else self._number(arg), _width(arg)
        pieces = (record[at + n * width:at + (n + 1) * width] for n in range(_elements(arg)))
        elements = [None if faults >> 1 + n & 1 else show(piece) for n, piece in enumerate(pieces)]
        return tuple(elements) if arg.type.count else elements[0]

    def _number(self, arg: Argument) -> Callable[[bytes], Scalar]:
        convert = converter(arg.type, self._symbols)
        return lambda raw: convert(int.from_bytes(raw, sys.byteorder))

    @staticmethod
    def _text(raw: bytes) -> str:
        return raw.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def compiled(event: Event, arch: Arch, symbols: Symbols) -> EventProgram:
    """The program of an event. ProgramError: it needs Python, see why_not()."""
    why = why_not(event)
    if why:
        raise ProgramError(why, program=event.name, hint="its hits are fetched by Event.fetch()")
    ring = create(Spec(type=MapType.RINGBUF, name=event.name, max_entries=RING))
    layout = _Layout(event)
    code = _Writer(arch, layout).write(event)
    program = Program.from_instructions(code, maps={event.name: ring}, name=event.name, order=sys.byteorder)
    return EventProgram(event, program, ring, layout, symbols)


class _Writer:
    """Writes one program. r6: context, r7: record, r9: address of an argument."""

    def __init__(self, arch: Arch, layout: _Layout) -> None:
        self._arch, self._layout, self._word = arch, layout, arch.bits // 8
        self._code: list[Instruction] = []
        self._jumps: list[tuple[int, str]] = []
        self._labels: dict[str, int] = {}

    def write(self, event: Event) -> list[Instruction]:
        op, layout = self._op, self._layout
        op(isa.MOV | isa.X | isa.ALU64, 6, 1)
        self._code += lddw(1, 0, isa.MAP, 0)
        op(isa.MOV | isa.ALU64, 2, imm=layout.size)
        op(isa.MOV | isa.ALU64, 3)
        op(isa.CALL | isa.JMP, imm=_RESERVE)
        self._jump(isa.JEQ | isa.JMP, "end", 0)
        op(isa.MOV | isa.X | isa.ALU64, 7, 0)
        for word in range(layout.words):
            op(isa.MEM | isa.DW | isa.ST, 7, 0, layout.returns + 8 * word)
        if layout.returns:
            self._context(3, PC)
            op(isa.MEM | isa.DW | isa.STX, 7, 3)
        for number, (arg, (bit, at)) in enumerate(zip(event.args, layout.places, strict=True)):
            if arg.source.literal is None:
                self._argument(arg, number, bit, at)
        op(isa.MOV | isa.X | isa.ALU64, 1, 7)
        op(isa.MOV | isa.ALU64, 2)
        op(isa.CALL | isa.JMP, imm=_SUBMIT)
        self._labels["end"] = len(self._code)
        op(isa.MOV | isa.ALU64, 0)
        op(isa.EXIT | isa.JMP)
        for pc, label in self._jumps:
            i = self._code[pc]
            self._code[pc] = Instruction(i.opcode, i.dst, i.src, self._labels[label] - pc - 1, i.imm)
        return self._code

    def _op(self, opcode: int, dst: int = 0, src: int = 0, offset: int = 0, imm: int = 0) -> None:
        self._code.append(Instruction(opcode, dst, src, offset, imm))

    def _jump(self, opcode: int, label: str, dst: int = 0) -> None:
        self._jumps.append((len(self._code), label))
        self._op(opcode, dst)

    def _argument(self, arg: Argument, number: int, bit: int, at: int) -> None:
        """One argument into the record, or its fault bits."""
        failed = f"argument {number}"
        if arg.source.where is None:
            self._fetch(arg.source.tree, failed)
            self._op(isa.MEM | isa.DW | isa.STX, 7, 3, at)
        else:
            self._address(arg.source.tree, failed)
            self._op(isa.MOV | isa.X | isa.ALU64, 9, 3)
            for n in range(_elements(arg)):
                self._element(arg, f"{number} {n}", n, bit + 1 + n, at + n * _width(arg))
        self._failing(failed, bit)

    def _element(self, arg: Argument, name: str, n: int, bit: int, at: int) -> None:
        """One element at r9, or its fault bit."""
        failed = f"element {name}"
        self._op(isa.MOV | isa.X | isa.ALU64, 3, 9)
        self._add(n * arg.type.size)
        if arg.type.style == "string":
            if arg.type.count:  # an array of strings is an array of pointers
                self._load(self._word, failed)
            self._into_record(at, STRING, _READ_STRING)
            self._jump(isa.JSLT | isa.JMP, failed, 0)
        else:
            self._load(arg.type.size, failed)
            self._op(isa.MEM | isa.DW | isa.STX, 7, 3, at)
        self._failing(failed, bit)

    def _failing(self, failed: str, bit: int) -> None:
        """What is done where something jumps to `failed`, and not otherwise: a fault bit."""
        if any(label == failed for _, label in self._jumps):
            self._jump(isa.JA | isa.JMP, f"{failed} done")
            self._labels[failed] = len(self._code)
            self._fault(bit)
            self._labels[f"{failed} done"] = len(self._code)

    def _fault(self, bit: int) -> None:
        where = self._layout.returns + bit // 64 * 8
        self._op(isa.MEM | isa.DW | isa.LDX, 1, 7, where)
        self._code += lddw(2, 1 << (bit % 64))
        self._op(isa.OR | isa.X | isa.ALU64, 1, 2)
        self._op(isa.MEM | isa.DW | isa.STX, 7, 1, where)

    # --- words: all into r3

    def _fetch(self, tree: Word, failed: str) -> None:
        names, aliases = self._arch.regs.names, self._arch.regs.aliases
        if tree.kind == "memory":
            self._address(tree, failed)
            self._load(self._word, failed)
        elif tree.kind == "value":
            self._code += lddw(3, tree.number)
        elif tree.kind == "register":
            self._context(3, names.index(aliases.get(tree.name, tree.name)))
        elif tree.kind == "argument":
            self._call_argument(tree.number, failed)
        elif tree.kind == "stack":
            self._on_stack(tree.number * self._word, failed)
        else:
            self._context(3, {"result": RESULT, "sp": SP}[tree.kind])

    def _call_argument(self, n: int, failed: str) -> None:
        abi = self._arch.abi
        assert abi is not None
        if n < len(abi.args):
            self._context(3, ARGUMENT + n)
        else:
            self._on_stack(abi.stack_args + (n - len(abi.args)) * self._word, failed)

    def _on_stack(self, offset: int, failed: str) -> None:
        self._context(3, SP)
        self._add(offset)
        self._load(self._word, failed)

    def _context(self, register: int, word: int) -> None:
        assert word < WORDS
        self._op(isa.MEM | isa.DW | isa.LDX, register, 6, 8 * word)

    def _address(self, tree: Word, failed: str) -> None:
        """The address that a word in memory is at."""
        assert tree.base is not None
        self._fetch(tree.base, failed)
        self._add(tree.number)

    def _add(self, offset: int) -> None:
        """Add to r3, as wide as the guest's addresses."""
        if -(1 << 31) <= offset < 1 << 31:
            self._op(isa.ADD | isa.ALU64, 3, imm=offset)
        else:
            self._code += lddw(2, offset & isa.U64)
            self._op(isa.ADD | isa.X | isa.ALU64, 3, 2)
        if self._arch.bits == 32:
            self._op(isa.MOV | isa.X | isa.ALU, 3, 3)

    def _load(self, size: int, failed: str) -> None:
        """r3: the number of `size` bytes at the guest address r3."""
        self._op(isa.MOV | isa.X | isa.ALU64, 1, 10)
        self._op(isa.ADD | isa.ALU64, 1, imm=-8)
        self._op(isa.MOV | isa.ALU64, 2, imm=size)
        self._op(isa.CALL | isa.JMP, imm=_READ)
        self._jump(isa.JNE | isa.JMP, failed, 0)
        self._op(isa.MEM | _SIZES[size] | isa.LDX, 3, 10, -8)
        if size > 1:
            self._op(isa.END | (isa.X if self._arch.order is Order.BIG else isa.K) | isa.ALU, 3, imm=8 * size)

    def _into_record(self, at: int, size: int, helper: int) -> None:
        self._op(isa.MOV | isa.X | isa.ALU64, 1, 7)
        self._op(isa.ADD | isa.ALU64, 1, imm=at)
        self._op(isa.MOV | isa.ALU64, 2, imm=size)
        self._op(isa.CALL | isa.JMP, imm=helper)


