"""Fetch plans: closures made once, so that a hit only reads."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from attrs import field, frozen

from ..errors import GuestFault, Unsupported
from ..regs import Regs
from ..symbols import Symbols
from ._event import Plan, Read, Saved
from ._styles import Scalar, Type, Value, converter


@frozen
class Word:
    """The source of a word, a tree. It is walked once for each target: by reader() for Python, by
    _writer for programs, by _recording for what a machine records by itself.

    Attributes:
        kind: "register" (name), "argument" (number, from 0), "saved" (an argument as it was at
            entry: number, place), "kept" (what Python has kept at entry: place), "result", "sp",
            "stack" (number of the word), "value" (number), "memory" (at the word `base` plus
            number, cut by `mask`), "comm" (the task's name, no word), "variable" (what `read`
            finds; only Python does).
        number: see kind.
        name: see kind.
        base: see kind.
        place: index of the word among those that a return event keeps at entry.
        mask: the guest's greatest address; sums wrap there.
        read: see kind.
    """

    kind: str
    number: int = 0
    name: str = ""
    base: Word | None = None
    place: int = 0
    mask: int = 0
    read: Read | None = field(default=None, eq=False, repr=False)


def reader(tree: Word) -> Read:
    """Return the function of (registers, saved values) that fetches a word at a hit."""
    number = tree.number
    name = tree.name
    match tree.kind:
        case "register":
            return lambda regs, saved: regs[name]
        case "argument":
            return lambda regs, saved: regs.arg(number)
        case "saved" | "kept":
            return _kept(tree.place)
        case "result":
            return lambda regs, saved: regs.return_value
        case "sp":
            return lambda regs, saved: regs.sp
        case "stack":
            return lambda regs, saved: regs.stack(number)
        case "memory":
            where = address_reader(tree)
            return lambda regs, saved: regs.word(where(regs, saved))
        case "variable":
            assert tree.read is not None
            return tree.read
    return lambda regs, saved: number


def address_reader(tree: Word) -> Read:
    """Return the function of (registers, saved values) that gives, at a hit, the address of a word
    in memory.
    """
    assert tree.base is not None
    base = reader(tree.base)
    offset = tree.number
    mask = tree.mask
    return lambda regs, saved: base(regs, saved) + offset & mask


@frozen(kw_only=True)
class Fetch:
    """A parsed fetch.

    Attributes:
        tree: the source of its word.
        value: reads what is no word, as floating-point numbers and structures; None: it is a word.
        literal: text that is always the same; None: it is none.
        text: gives text at a hit; None: it is none.
        steps: of the fetch, as Linux counts them.
    """

    tree: Word
    value: Plan | None = None
    literal: str | None = None
    text: Callable[[Regs], str] | None = None
    steps: int = 1

    @property
    def in_memory(self) -> bool:
        """Whether what is fetched lies in memory, so that there may be text and arrays."""
        return self.tree.kind == "memory"


def comm(regs: Regs) -> str:
    """Return the name of the guest's task, cut to 15 bytes.

    The name is machine.cpu_task where that is a str, else "guest".

    Args:
        regs: the registers, which know the task.
    """
    task = regs.task
    return (
        task.encode(errors="backslashreplace")[:15].decode(errors="ignore")
        if isinstance(task, str)
        else "guest"
    )


def pid(regs: Regs) -> int:
    """Return the number of the guest's task, 32 bits.

    Of a task that is no integer it is a checksum.

    Args:
        regs: the registers, which know the task.
    """
    task = regs.task
    return (task if isinstance(task, int) else zlib.crc32(repr(task).encode())) & 0xFFFF_FFFF


def _kept(place: int) -> Read:
    """Return a function that gives, at a return, a value that was kept at the function's entry.

    Args:
        place: index of the value among those that the return event keeps.
    """

    def read(regs: Regs, saved: Saved) -> Any:
        """Return the value that was kept. Raises GuestFault: it could not be read at the entry."""
        value = saved[place]
        if value is None:
            raise GuestFault("the argument was unreadable at function entry", access="read")
        return value

    return read


def memory(base: Word, offset: int, mask: int, steps: int) -> Fetch:
    """Return the fetch of a word in memory.

    Args:
        base: the address that `offset` is counted from.
        offset: bytes from there to the word.
        mask: the guest's greatest address; sums wrap there.
        steps: number of steps of the fetch, as Linux counts and limits them.
    """
    return Fetch(tree=Word("memory", offset, base=base, mask=mask), steps=steps)


def _string(regs: Regs, address: int, limit: int) -> str:
    """Return the text at an address.

    Args:
        regs: the registers, through which memory is read.
        address: of the first byte.
        limit: bytes that it has at most; 0: up to its NUL.
    """
    found = regs.read_cstr(address, limit) if limit else regs.read_cstr(address)
    return found.decode("utf-8", "backslashreplace")


def _whole(value: Plan) -> Plan:
    """Return a function that calls `value` at a hit, and gives None where guest memory cannot be
    read, the compiler has not kept the value, or its format is not known.
    """

    def read(regs: Regs, saved: Saved) -> Value:
        """Return the value; None: it cannot be read."""
        try:
            return value(regs, saved)
        except (GuestFault, Unsupported):
            return None

    return read


def plan(source: Fetch, type: Type, symbols: Symbols) -> Plan:
    """Return the function of (registers, saved values) that gives an argument's value at a hit.

    The function gives None where guest memory cannot be read. For an array it gives a tuple, in
    which elements that cannot be read are None.

    Args:
        source: the parsed fetch.
        type: of the value.
        symbols: name addresses, for types whose values are names.
    """
    if source.value is not None:
        return _whole(source.value)
    convert = converter(type, symbols)
    size = type.size
    is_string = type.is_string
    word = reader(source.tree)
    where = address_reader(source.tree) if source.in_memory else None

    def element(regs: Regs, address: int) -> Scalar:
        """Return one value at an address; None: memory cannot be read."""
        try:
            if is_string:  # an array of strings is an array of pointers
                return _string(regs, regs.word(address) if type.count else address, type.limit)
            return convert(regs.word(address, size))
        except GuestFault:
            return None

    def read(regs: Regs, saved: Saved) -> Value:
        """Return the argument's value; None: memory cannot be read. Arrays are tuples."""
        try:
            if where is None:
                return convert(word(regs, saved))
            start = where(regs, saved)
        except GuestFault:
            return None
        return (
            tuple([element(regs, start + offset) for offset in offsets])
            if offsets
            else element(regs, start)
        )

    offsets = range(0, type.count * size, size)
    if source.text is not None:
        text = source.text
        return lambda regs, saved: text(regs)
    return read if source.literal is None else lambda regs, saved: source.literal
