"""Types of arguments, and numbers, as definitions write them."""

from __future__ import annotations

import re
from typing import NoReturn, Protocol

from ..arch._base import Arch
from ._styles import STYLES, Type

MAX_ARRAY = 64
DIGITS = 22  #: of 2^64 - 1, in octal


class TypeContext(Protocol):
    """The definition that is parsed, as types need it.

    Attributes:
        arch: the guest's architecture.
    """

    arch: Arch

    def fail(self, kind: str, at: int, *facts: object) -> NoReturn:
        """Raise the EventError of a kind at a column; facts fill its message."""

    def need(self, condition: object, kind: str, at: int, *facts: object) -> None:
        """Raise the EventError of a kind unless a condition is true."""

    def count(self, text: str, at: int, most: int, bad: str, big: str, value: int | None) -> int:
        """Return `value` if it is a number from 1 to `most`.

        Args:
            text: the number as written, for errors.
            at: its column.
            most: the greatest.
            bad: kind of the error for 0, and for what is no number.
            big: kind of the error beyond `most`.
            value: the number that the text is; None: it is none.

        Raises:
            EventError: the value is None, 0, or greater than `most`.
        """


def integer_of(text: str) -> int | None:
    """Return the unsigned integer that a text is in C: decimal, octal (0...) or hexadecimal
    (0x...).

    Args:
        text: the text, without a sign; there may be any number of zeros in front.

    Returns:
        The integer; None: the text is none, or the integer has more than 64 bits.
    """
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
    """Return the unsigned integer that a text is in C's decimal, octal (0...) or hex (0x...).

    It may begin with `+`, as in Linux.

    Args:
        text: the text.

    Returns:
        The integer; None: the text is none, or the integer has more than 64 bits.
    """
    return integer_of(text.removeprefix("+"))


def signed_of(text: str) -> int | None:
    """Return the integer that a text is in C's decimal, octal (0...) or hexadecimal (0x...).

    It may begin with `+` or `-`, and there may be any number of zeros in front. Its absolute value
    has at most 64 bits: -0xffffffffffffffff is taken, as the address arithmetic of fetches wraps.

    Args:
        text: the text.

    Returns:
        The integer; None: the text is none, or it is too large.
    """
    value = integer_of(text[text[:1] in ("+", "-") :])
    if value is None:
        return None
    return -value if text[0] == "-" else value


def type_of(around: TypeContext, text: str, at: int) -> Type:
    """Return the type of a name: u8, s16, x32[4], f64, b4@2/8, char, string, ustring, symbol,
    symstr.

    Args:
        around: the definition that is parsed.
        text: the name.
        at: its column.

    Raises:
        EventError: there is no such type, or its bits or its count are wrong.
    """
    name, bracket, rest = text.partition("[")
    count = _array(around, rest, at + len(name) + 1) if bracket else 0
    for style in STYLES.values():
        if name in style.names:
            bits = style.names[name] or around.arch.bits
            return Type(name=name, style=style.name, bits=bits, size=bits // 8, count=count)
    bit_field, _, container = name.partition("/")
    whole = unsigned_of(container)
    if name[:1] != "b" or whole not in (8, 16, 32, 64):
        around.fail("BAD_TYPE", at, name)
    width, _, low = bit_field[1:].partition("@")
    wide = integer_of(width)
    shift = integer_of(low)
    if not wide or shift is None or wide + shift > whole:
        around.fail("BAD_BITFIELD", at, name)
    return Type(name=name, style="u", bits=wide, shift=shift, size=whole // 8, count=count)


def _array(around: TypeContext, text: str, at: int) -> int:
    """Parse the rest of an array type, `COUNT]`, and return the count, 1 to MAX_ARRAY.

    Args:
        around: the definition that is parsed.
        text: what stands behind the opening bracket.
        at: column of `text`.

    Raises:
        EventError: the bracket is not closed, something follows it, or there is no such count.
    """
    digits, close, rest = text.partition("]")
    around.need(close, "ARRAY_NO_CLOSE", at + len(text))
    around.need(not rest, "BAD_ARRAY_SUFFIX", at + len(digits) + 1, rest)
    return around.count(
        digits, at, MAX_ARRAY, "BAD_ARRAY_NUM", "ARRAY_TOO_BIG", unsigned_of(digits)
    )
