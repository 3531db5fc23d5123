"""Fetch plans: closures made once, so that a hit only reads."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

from attrs import frozen

from ..errors import GuestFault, Unsupported
from ..regs import Regs
from ..symbols import Symbols
from ._event import Plan, Read, Saved
from ._styles import Scalar, Type, Value, converter


@frozen
class Word:
    """The source of a word, as data, for code that makes something else of it than a closure.

    Attributes:
        kind: "register" (name), "argument" (number, from 0), "saved" (number of the argument at
            entry), "kept" (number of the place among all that is kept at entry; only Python has
            it), "result", "sp", "stack" (number of the word), "value" (number), "memory" (at the
            word `base` plus number), "comm" (the task's name), "variable" (only Python finds it).
        number: see kind.
        name: see kind.
        base: see kind.
    """

    kind: str
    number: int = 0
    name: str = ""
    base: Word | None = None


@frozen(kw_only=True)
class Fetch:
    """A parsed fetch.

    Attributes:
        word: fetches its word.
        tree: the word, as data.
        where: gives its address; None: it does not lie in memory.
        base: of memory: what gives the word that its address counts from, the same as data, and how
            many bytes it is behind that.
        value: reads what is no word, as floating-point numbers and structures; None: it is a word.
        literal: text that is always the same; None: it is none.
        text: gives text at a hit; None: it is none.
        steps: of the fetch, as Linux counts them.
    """

    word: Read
    tree: Word
    where: Read | None = None
    #: of memory: the word that its address counts from, and how far it is behind that
    base: tuple[Read, Word, int] | None = None
    value: Plan | None = None
    literal: str | None = None
    text: Callable[[Regs], str] | None = None
    steps: int = 1


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


def saved_argument(slot: int) -> Read:
    """Return a function that gives, at a return, a value that was kept at the function's entry.

    Args:
        slot: index of the value among those that the return event keeps.
    """

    def read(regs: Regs, saved: Saved) -> Any:
        """Return the value that was kept. Raises GuestFault: it could not be read at the entry."""
        value = saved[slot]
        if value is None:
            raise GuestFault("the argument was unreadable at function entry", access="read")
        return value

    return read


def memory(base: Read, tree: Word, offset: int, mask: int, steps: int) -> Fetch:
    """Return the fetch of a word in memory.

    Args:
        base: function that gives, at a hit, the address that `offset` is counted from.
        tree: the same address as data, for programs.
        offset: bytes from there to the word.
        mask: the guest's greatest address; sums wrap there.
        steps: number of steps of the fetch, as Linux counts and limits them.
    """

    def where(regs: Regs, saved: Saved) -> int:
        return base(regs, saved) + offset & mask

    return Fetch(
        word=lambda regs, saved: regs.word(where(regs, saved)),
        tree=Word("memory", offset, base=tree),
        where=where,
        base=(base, tree, offset),
        steps=steps,
    )


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
    word = source.word
    where = source.where

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
