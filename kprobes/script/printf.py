"""`printf` of scripts: what its conversions mean, and what is wrong with a format's arguments.

bpftrace formats by C++ streams, not by C's printf, and so do these: precision counts for
nothing, `*` takes no argument, zeros come before the sign, and numbers without a length
modifier are cut to 32 bits.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from .gfp import gfp_text
from .printing import encode, escaped_buffer, number, pieces, text
from .types import (
    BooleanType,
    BufferType,
    EnumType,
    FloatType,
    IntegerType,
    PointerType,
    ValueType,
    VoidType,
)

_CONVERSION = re.compile(
    r"%(?P<left>-?)(?P<plus>\+?) ?(?P<prefix>#?)(?P<zeros>0?)(?P<width>\*|\d{1,9})?"
    r"(?:\.(?:\*|\d+))?(?P<length>[hlLjzt]*)(?P<letter>[diouxXeEfFGaAcspn%]|gr|g|rh|rx|r)",
    re.ASCII,
)
#: Length modifier -> bits of the number that are shown.
_BITS = {"hh": 8, "h": 16, "l": 64, "ll": 64, "j": 64, "z": 64, "t": 64}
_INTEGERS = (IntegerType, EnumType, BooleanType, PointerType)
#: Conversion -> the types that it takes; None for all.
_TAKES: dict[str, tuple[type[ValueType], ...] | None] = {
    **dict.fromkeys(("d", "i", "u", "o", "x", "X", "c", "p", "gr"), _INTEGERS),
    **dict.fromkeys(("r", "rx", "rh"), (BufferType,)),
    "s": None,
}


@attrs.frozen
class Conversion:
    """A conversion of a format: `%-5lx`.

    Attributes:
        letter: what follows the length: `d`, `s`, `rx` ...
        length: `hh`, `h`, `l`, `ll`, `j`, `z`, `t`, or "".
        width: the least number of bytes; 0 for any.
        left: True puts the padding behind the text.
        plus: True writes a `+` before signed numbers that are not negative.
        prefix: True writes `0x` or `0` before hexadecimal or octal numbers.
        fill: the padding, a space or `0`.
    """

    letter: str
    length: str
    width: int
    left: bool
    plus: bool
    prefix: bool
    fill: str

    def _padded(self, text: str) -> str:
        """Return text padded to the conversion's width, which counts bytes."""
        padding = self.fill * (self.width - len(encode(text)))
        return text + padding if self.left else padding + text

    def _cut(self, value: int, signed: bool) -> int:
        """Return a number cut to the bits of the length modifier, 32 without one.

        Args:
            value: the number.
            signed: True where the result is a signed number.
        """
        bits = _BITS.get(self.length, 32)
        low = value & ((1 << bits) - 1)
        return low - (1 << bits) if signed and low >> (bits - 1) else low

    def _integer(self, value: int) -> str:
        """Return an integer as the conversion shows it, cut to the bits of the length modifier.

        Only `%d` and `%i` have a sign; only hexadecimal and octal numbers other than 0 a prefix.
        """
        if self.letter in "di":
            return f"{self._cut(value, True):{'+' if self.plus else ''}d}"
        shown = self._cut(value, False)
        if self.letter == "u":
            return str(shown)
        prefix = (
            "" if not (self.prefix and shown) else {"o": "0", "x": "0x", "X": "0X"}[self.letter]
        )
        return prefix + format(shown, self.letter)

    def apply(self, type: ValueType, value: Any) -> str:
        """Return `value` as the conversion shows it.

        What it cannot show is said in the text: `!{invalid integer conversion: hi}`. Of a text in
        several pieces, such as a tuple, only the first piece is padded to the width.

        Args:
            type: the value's type.
            value: the Python value that `types` describes.
        """
        if self.letter in ("r", "rx", "rh") and isinstance(type, BufferType):
            if self.letter == "rh":
                return self._padded(value.hex(" "))
            return self._padded(escaped_buffer(value, keep_ascii=self.letter == "r"))
        if self.letter in ("s", "r", "rx", "rh"):
            first, *rest = pieces(type, value, self.plus)
            return "".join([self._padded(first), *rest])
        shown = None if value is None else number(type, value)
        if self.letter == "gr":
            if shown is None or isinstance(type, BooleanType):
                return f"!{{invalid GFP flags conversion: {text(type, value)}}}"
            return self._padded(gfp_text(shown & ((1 << 64) - 1)))
        if shown is None:
            return f"!{{invalid integer conversion: {text(type, value)}}}"
        if self.letter == "c":
            return self._padded(bytes([shown & 0xFF]).decode("utf-8", "surrogateescape"))
        if self.letter == "p":
            address = shown & ((1 << 64) - 1)
            return self._padded(f"0x{address:x}" if address else "0")
        return self._padded(self._integer(shown))


def _conversion(match: re.Match[str]) -> Conversion:
    """Return the conversion that a match of _CONVERSION is."""
    width = match["width"]
    return Conversion(
        letter=match["letter"],
        length=match["length"],
        width=int(width) if width and width != "*" else 0,
        left=bool(match["left"]),
        plus=bool(match["plus"]),
        prefix=bool(match["prefix"]),
        fill="0" if match["zeros"] else " ",
    )


@attrs.frozen
class Format:
    """A parsed format.

    Attributes:
        texts: what stands before each conversion and behind the last; one more than these.
        conversions: the conversions, in the order of the arguments.
    """

    texts: tuple[str, ...]
    conversions: tuple[Conversion, ...]

    @classmethod
    def parse(cls, format: str) -> "Format":
        """Parse a format. Unknown conversions stay in it as text; `%%` becomes `%`."""
        texts = [""]
        conversions = []
        end = 0
        for match in _CONVERSION.finditer(format):
            texts[-1] += format[end : match.start()]
            end = match.end()
            if match["letter"] == "%":
                texts[-1] += "%"
                continue
            conversions.append(_conversion(match))
            texts.append("")
        texts[-1] += format[end:]
        return cls(tuple(texts), tuple(conversions))

    def problem(
        self, types: Sequence[ValueType], name_of: Callable[[ValueType], str]
    ) -> str | None:
        """Check a format against the types of its arguments.

        Args:
            types: types of the arguments behind the format.
            name_of: writes a type as messages do: `string[3]`.

        Returns:
            What is wrong, in bpftrace's words; None: nothing is.
        """
        counts = f"({len(types)} supplied, {len(self.conversions)} expected)"
        if len(types) < len(self.conversions):
            return f"not enough arguments for format string {counts}"
        if len(types) > len(self.conversions):
            return f"too many arguments for format string {counts}"
        for type, conversion in zip(types, self.conversions, strict=True):
            if isinstance(type, (VoidType, FloatType)):
                return f"unable to print none type for specifier: {conversion.letter}"
            if conversion.letter not in _TAKES:
                return f"unsupported format specifier: {conversion.letter}"
            taken = _TAKES[conversion.letter]
            if taken is not None and not isinstance(type, taken):
                return (
                    f"unsupported format specifier for type '{name_of(type)}': {conversion.letter}"
                )
        return None

    def apply(self, arguments: Sequence[tuple[ValueType, Any]]) -> str:
        """Return the text with the arguments in it.

        Args:
            arguments: type and value of each.
        """
        found = [self.texts[0]]
        for conversion, (type, value), behind in zip(
            self.conversions, arguments, self.texts[1:], strict=True
        ):
            found.append(conversion.apply(type, value))
            found.append(behind)
        return "".join(found)


def check(
    format: str, types: Sequence[ValueType], name_of: Callable[[ValueType], str]
) -> str | None:
    """Check a format against the types of its arguments.

    Args:
        format: the text.
        types: types of the arguments.
        name_of: writes a type as messages do: `string[3]`.

    Returns:
        What is wrong, in bpftrace's words; None: nothing is.
    """
    return Format.parse(format).problem(types, name_of)
