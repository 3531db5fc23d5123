"""Types of arguments, and numbers, as definitions write them."""

from __future__ import annotations

import re
from typing import NoReturn, Protocol

from ..arch._base import Arch
from ._event import Type

MAX_ARRAY = 64
DIGITS = 22  #: of 2^64 - 1, in octal


class Around(Protocol):
    """The definition that is parsed."""

    arch: Arch

    def fail(self, kind: str, at: int, *facts: object) -> NoReturn: ...
    def need(self, condition: object, kind: str, at: int, *facts: object) -> None: ...
    def count(self, text: str, at: int, most: int, bad: str, big: str, value: int | None) -> int: ...


def integer_of(text: str) -> int | None:
    """An unsigned 64-bit integer as C writes it, with as many zeros in front as there are; None: it is none."""
    found = re.fullmatch(r"0x([0-9a-f]+)|0([0-7]*)|([1-9][0-9]*)", text, re.ASCII | re.IGNORECASE)
    if found is None:
        return None
    base = 10
    if found[1] is not None:
        base = 16
    elif found[2] is not None:
        base = 8
    digits = "".join(filter(None, found.groups())).lstrip("0")
    if len(digits) > DIGITS:  # int() takes its time, or refuses
        return None
    value = int(digits or "0", base)
    return value if value < 1 << 64 else None


def unsigned_of(text: str) -> int | None:
    """An unsigned 64-bit integer that may begin with `+`, as Linux takes where a number stands by itself; None: it
    is none."""
    return integer_of(text.removeprefix("+"))


def signed_of(text: str) -> int | None:
    """An integer of at most 64 bits that may begin with `+` or `-`; None: it is none."""
    value = integer_of(text[text[:1] in ("+", "-"):])
    if value is None:
        return None
    return -value if text[0] == "-" else value


def type_of(around: Around, text: str, at: int) -> Type:
    """A type, of its name: u8, x32[4], b4@2/8, string. EventError."""
    name, bracket, rest = text.partition("[")
    count = _array(around, rest, at + len(name) + 1) if bracket else 0
    plain = re.fullmatch(r"([usx])(8|16|32|64)|char|u?string|symbol|symstr", name)
    if plain:
        bits = int(plain[2] or (8 if name == "char" else around.arch.bits))
        return Type(name=name, style=plain[1] or name.removeprefix("u"), bits=bits, size=bits // 8, count=count)
    if name in ("f32", "f64"):
        return Type(name=name, style="f", bits=int(name[1:]), size=int(name[1:]) // 8, count=count)
    bit_field, _, container = name.partition("/")
    whole = unsigned_of(container)
    if name[:1] != "b" or whole not in (8, 16, 32, 64):
        around.fail("BAD_TYPE", at, name)
    width, _, low = bit_field[1:].partition("@")
    wide, shift = integer_of(width), integer_of(low)
    if not wide or shift is None or wide + shift > whole:
        around.fail("BAD_BITFIELD", at, name)
    return Type(name=name, style="u", bits=wide, shift=shift, size=whole // 8, count=count)


def _array(around: Around, text: str, at: int) -> int:
    digits, close, rest = text.partition("]")
    around.need(close, "ARRAY_NO_CLOSE", at + len(text))
    around.need(not rest, "BAD_ARRAY_SUFFIX", at + len(digits) + 1, rest)
    return around.count(digits, at, MAX_ARRAY, "BAD_ARRAY_NUM", "ARRAY_TOO_BIG", unsigned_of(digits))
