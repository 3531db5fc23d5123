"""Types of fetched values, and the table of their styles.

A style is what types of any width have in common: their names, how their values are read, shown,
compared and exported. All that asks so looks into STYLES, so a new type is one row of it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from attrs import field, frozen

from ..symbols import CONTROLS, Symbols

Scalar = int | float | str | None
#: of debug information's types also structures and arrays of arrays: Members, and tuples of
#: anything
Value = Scalar | tuple[Any, ...] | Mapping[str, Any]

#: quote around a text -> how characters are shown there: the whole is a string as Python and C
#: write it
_WITHIN: Final = {
    "": CONTROLS,
    **{quote: CONTROLS | {ord(char): "\\" + char for char in ("\\", quote)} for quote in "\"'"},
}


@frozen(kw_only=True)
class Type:
    """How a word, or memory, is understood and shown.

    Attributes:
        name: as written, without the array's count.
        style: a key of STYLES, which say what the type's values are: "u", "s" or "x" (integers
            without and with a sign, and shown in hexadecimal), "f" (floating-point numbers), "char"
            (a character), "string" (text in memory), "symbol" or "symstr" (an address, as its name;
            that as a string), "value" (what debug information tells).
        bits: width of the number in bits.
        size: bytes in memory.
        shift: bits below the number, which do not count.
        count: elements of an array; 0: not an array.
        limit: bytes of a string at most; 0: up to its NUL.
    """

    name: str
    style: str
    bits: int
    size: int
    shift: int = 0
    count: int = 0
    limit: int = 0

    @property
    def is_integer(self) -> bool:
        """Whether values, or an array's elements, are integers."""
        return STYLES[self.style].values == "integer"

    @property
    def is_signed(self) -> bool:
        """Whether values are integers whose highest bit is their sign."""
        return STYLES[self.style].signed

    @property
    def is_hexadecimal(self) -> bool:
        """Whether values are integers that are shown in hexadecimal."""
        return STYLES[self.style].hexadecimal

    @property
    def is_float(self) -> bool:
        """Whether values are floating-point numbers."""
        return STYLES[self.style].values == "float"

    @property
    def is_string(self) -> bool:
        """Whether what is read is text in memory, up to its NUL."""
        return STYLES[self.style].read == "string"

    @property
    def is_whole(self) -> bool:
        """Whether Python reads the value, as debug information says."""
        return STYLES[self.style].read == "whole"

    @property
    def is_word(self) -> bool:
        """Whether what is read is a number, of which the value is made."""
        return STYLES[self.style].read == "word"

    @property
    def is_ambiguous(self) -> bool:
        """Whether values may be equal and yet be shown otherwise, as 0.0 and -0.0 are."""
        return STYLES[self.style].values in ("float", "whole")

    def show(self, value: Value) -> str:
        """Return a value as ftrace prints it; "(fault)" for None, which is unreadable memory."""
        if isinstance(value, tuple):
            return f"{{{','.join(map(self.show, value))}}}"
        if value is None:
            return "(fault)"
        if isinstance(value, Mapping):
            return (
                f"{{{','.join(f'{name}={self.show(member)}' for name, member in value.items())}}}"
            )
        if isinstance(value, float):
            return shown_float(value, self.bits)
        style = STYLES[self.style]
        if isinstance(value, int):
            return hex(value) if style.hexadecimal else str(value)
        return style.quote + value.translate(_WITHIN[style.quote]) + style.quote


def shown_float(value: float, bits: int) -> str:
    """Return a floating-point number with as few digits as tell it apart from its neighbours.

    Args:
        value: the number.
        bits: of its type: 32 or 64.
    """
    if bits == 32 and math.isfinite(value):
        for digits in range(6, 10):
            text = f"{value:.{digits}g}"
            if struct.pack("<f", float(text)) == struct.pack("<f", value):
                return text
    return f"{value!r}".removesuffix(".0")


def converter(type: Type, symbols: Symbols) -> Callable[[int], Scalar]:
    """Return the function from a word of the guest to the value that a type makes of it.

    Args:
        type: of the value.
        symbols: name addresses, for types that show them by name.
    """
    style = STYLES[type.style]
    if style.converter is not None:
        return style.converter(type, symbols)
    return _signed(type) if style.signed else _unsigned(type)


# --- from a word to a value: each returns the function that does it


def _unsigned(type: Type) -> Callable[[int], Scalar]:
    """Return a function that cuts a type's bits out of a word, as an unsigned number."""
    mask = (1 << type.bits) - 1
    shift = type.shift
    return lambda word: word >> shift & mask


def _signed(type: Type) -> Callable[[int], Scalar]:
    """Return a function that cuts a type's bits out of a word; the highest of them is the sign."""
    mask = (1 << type.bits) - 1
    shift = type.shift
    sign = 1 << type.bits - 1
    return lambda word: ((word >> shift & mask) ^ sign) - sign


def _character(type: Type, symbols: Symbols) -> Callable[[int], Scalar]:
    """Return a function from a word to the character whose number its lowest bits are."""
    mask = (1 << type.bits) - 1
    return lambda word: chr(word & mask)


def _float(type: Type, symbols: Symbols) -> Callable[[int], Scalar]:
    """Return a function that takes a word's lowest bits for a floating-point number of IEEE 754."""
    mask = (1 << type.bits) - 1
    size = type.size
    unpack = struct.Struct("<f" if type.bits == 32 else "<d").unpack
    return lambda word: float(unpack((word & mask).to_bytes(size, "little"))[0])


def _symbol(type: Type, symbols: Symbols) -> Callable[[int], Scalar]:
    """Return a function from an address to its symbol's name and offset."""
    return symbols.describe


# --- the styles


def _widths(letter: str, *bits: int) -> dict[str, int]:
    """Return the names of types, a letter with a number of bits, and these bits."""
    return {f"{letter}{width}": width for width in bits}


@frozen(kw_only=True)
class Style:
    """The properties that all types of one style have.

    Attributes:
        name: of the style; recordings in files have it.
        names: names of types in definitions -> bits of their values; 0: of the guest's word.
        written: the names, as messages list them; "": definitions cannot name it.
        values: what values are: "integer", "float", "text", or "whole": whatever debug information
            says, as structures. Integers are words of a trace's records and have Arrow's and
            Perfetto's types of integers; texts become their strings, and wholes structures.
        read: what is read in the guest: "word": a number; "string": text in memory, up to its NUL;
            "whole": what Python finds.
        converter: (type, symbols) -> function from the word to the value, where `read` is "word"
            and values are no integers; None: there is nothing to convert. Integers are a word's
            bits, as `signed` says: programs and machines cut them out by themselves.
        signed: values are integers with a sign.
        hexadecimal: values are integers shown in hexadecimal.
        quote: what stands around a text: one of the keys of _WITHIN.
        compared: what filters compare, an expression of Python for a value `{}`; "": nothing. A
            number that is compared is the word's bits, as programs have it.
        compared_as_text: filters compare with texts; False: with numbers.
        printf: printf()'s conversion, with `{long}` for the L of 8 bytes.
        beside_record: a binary record has the value as text behind its fields.
    """

    name: str
    names: Mapping[str, int] = field(factory=dict)
    written: str = ""
    values: Literal["integer", "float", "text", "whole"]
    read: Literal["word", "string", "whole"] = "word"
    converter: Callable[[Type, Symbols], Callable[[int], Scalar]] | None = None
    signed: bool = False
    hexadecimal: bool = False
    quote: str = '"'
    compared: str = ""
    compared_as_text: bool = False
    printf: str
    beside_record: bool = False

    def __attrs_post_init__(self) -> None:
        wanted = self.read == "word" and self.values != "integer"
        if (self.converter is not None) != wanted:
            raise ValueError(
                f"a style of {self.values} values, read as a {self.read}: a converter is "
                f"{'missing' if wanted else 'given, and would be ignored'}"
            )


#: name of a style -> the style, in the order in which messages list them
STYLES: Final[dict[str, Style]] = {
    style.name: style
    for style in (
        Style(
            name="u",
            names=_widths("u", 8, 16, 32, 64),
            written="u8..u64",
            values="integer",
            compared="{}",
            printf="%{long}u",
        ),
        Style(
            name="s",
            names=_widths("s", 8, 16, 32, 64),
            written="s8..s64",
            values="integer",
            signed=True,
            compared="{}",
            printf="%{long}d",
        ),
        Style(
            name="x",
            names=_widths("x", 8, 16, 32, 64),
            written="x8..x64",
            values="integer",
            hexadecimal=True,
            compared="{}",
            printf="0x%{long}x",
        ),
        Style(
            name="f",
            names=_widths("f", 32, 64),
            written="f32 f64",
            values="float",
            converter=_float,
            printf="%f",
        ),
        Style(
            name="char",
            names={"char": 8},
            written="char",
            values="text",
            converter=_character,
            quote="'",
            compared="ord({})",
            printf="'%c'",
        ),
        Style(
            name="string",
            names={"string": 0, "ustring": 0},
            written="string",
            values="text",
            read="string",
            compared="{}",
            compared_as_text=True,
            printf='\\"%s\\"',
            beside_record=True,
        ),
        Style(
            name="symbol",
            names={"symbol": 0},
            written="symbol",
            values="text",
            converter=_symbol,
            quote="",
            compared="{}",
            compared_as_text=True,
            printf="%pS",
        ),
        Style(
            name="symstr",
            names={"symstr": 0},
            written="symstr",
            values="text",
            converter=_symbol,
            compared="{}",
            compared_as_text=True,
            printf='\\"%s\\"',
            beside_record=True,
        ),
        Style(name="value", values="whole", read="whole", printf="%s", beside_record=True),
    )
}
