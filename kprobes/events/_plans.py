"""Fetch plans: closures made once, so that a hit only reads."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from attrs import frozen

from ..errors import GuestFault, Unsupported
from ..regs import Regs
from ..symbols import Symbols
from ._event import Plan, Read, Saved, Scalar, Type, Value


@frozen
class Word:
    """The source of a word, for whoever makes something else of it than a closure.

    kind: "register" (name), "argument" (number, from 0), "saved" (argument at entry), "result", "sp", "stack" (number),
    "value" (number), "memory" (at the word `base` plus number).
    """

    kind: str
    number: int = 0
    name: str = ""
    base: Word | None = None


@frozen(kw_only=True)
class Source:
    """A parsed fetch: `word` reads its word, `where` gives its address when it lies in memory. steps: what Linux
    counts.

    tree: the word, as data. value: reads what is no word, as a type of style "f" or "value" has it. literal, text: it
    is text, always the same or as a hit finds it.
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
    """The name of the guest task, at most 15 bytes: what machine.cpu_task gives where that is text."""
    task = regs.task
    return task.encode(errors="backslashreplace")[:15].decode(errors="ignore") if isinstance(task, str) else "guest"


def pid(regs: Regs) -> int:
    """The number of the guest task, 32 bits; made of its identity where that is no number."""
    task = regs.task
    return (task if isinstance(task, int) else zlib.crc32(repr(task).encode())) & 0xFFFF_FFFF


def saved_argument(slot: int) -> Read:
    def read(regs: Regs, saved: Saved) -> Any:
        value = saved[slot]
        if value is None:
            raise GuestFault("the argument was unreadable at function entry", access="read")
        return value
    return read


def memory(base: Read, tree: Word, offset: int, mask: int, steps: int) -> Source:
    def where(regs: Regs, saved: Saved) -> int:
        return base(regs, saved) + offset & mask
    return Source(word=lambda regs, saved: regs.word(where(regs, saved)),
                  tree=Word("memory", offset, base=tree), where=where, base=(base, tree, offset), steps=steps)


def converter(type: Type, symbols: Symbols) -> Callable[[int], Scalar]:
    mask, shift, sign = (1 << type.bits) - 1, type.shift, 1 << type.bits - 1
    if type.style in ("symbol", "symstr"):
        return symbols.describe
    if type.style == "char":
        return lambda word: chr(word & mask)
    if type.style == "f":
        unpack = struct.Struct("<f" if type.bits == 32 else "<d").unpack
        size = type.size
        return lambda word: float(unpack((word & mask).to_bytes(size, "little"))[0])
    if type.style == "s":
        return lambda word: ((word >> shift & mask) ^ sign) - sign
    return lambda word: word >> shift & mask


def _string(regs: Regs, address: int, limit: int) -> str:
    """The text at an address. limit: bytes that it has at most; 0: up to its NUL."""
    found = regs.read_cstr(address, limit) if limit else regs.read_cstr(address)
    return found.decode("utf-8", "backslashreplace")


def _whole(value: Plan) -> Plan:
    """A plan of what Python reads as a whole; what cannot be read is None."""
    def read(regs: Regs, saved: Saved) -> Value:
        try:
            return value(regs, saved)
        except (GuestFault, Unsupported):
            return None
    return read


def plan(source: Source, type: Type, symbols: Symbols) -> Plan:
    if source.value is not None:
        return _whole(source.value)
    convert, size, word, where = converter(type, symbols), type.size, source.word, source.where

    def element(regs: Regs, address: int) -> Scalar:
        try:
            if type.style == "string":  # an array of strings is an array of pointers
                return _string(regs, regs.word(address) if type.count else address, type.limit)
            return convert(regs.word(address, size))
        except GuestFault:
            return None

    def read(regs: Regs, saved: Saved) -> Value:
        try:
            if where is None:
                return convert(word(regs, saved))
            start = where(regs, saved)
        except GuestFault:
            return None
        return tuple([element(regs, start + offset) for offset in offsets]) if offsets else element(regs, start)

    offsets = range(0, type.count * size, size)
    if source.text is not None:
        text = source.text
        return lambda regs, saved: text(regs)
    return read if source.literal is None else lambda regs, saved: source.literal
