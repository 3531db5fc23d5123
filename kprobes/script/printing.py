"""Values as text and as JSON, in bpftrace's own words.

Text is `str` in which bytes that are not UTF-8 stand as surrogates (`errors="surrogateescape"`):
encoded again in the same way, the guest's bytes come out unchanged.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .types import (
    ArrayType,
    AverageType,
    BooleanType,
    BufferType,
    CountType,
    EnumType,
    FloatType,
    IntegerType,
    MaximumType,
    MinimumType,
    PointerType,
    RecordType,
    StackFrame,
    StackType,
    StatsType,
    StringType,
    StructType,
    SumType,
    SymbolType,
    TextType,
    TupleType,
    ValueType,
    VoidType,
)

#: Types whose Python value is a plain int and that print as a number.
NUMBERS = (IntegerType, CountType, SumType, MinimumType, MaximumType)
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def encode(text: str) -> bytes:
    """Return the bytes that `text` stands for."""
    return text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """Return `data` as text that `encode` turns back into the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def divide(dividend: int, divisor: int) -> int:
    """Return a quotient as C computes it, truncated towards zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def average(value: tuple[int, int]) -> int:
    """Return the mean of an `AverageType` or `StatsType` value (total, count); 0 of no numbers."""
    total, count = value
    return divide(total, count) if count else 0


def symbolic(type: ValueType, value: Any) -> str:
    """Return the text of a pointer, in hexadecimal, or of an enumeration's value: its member's
    name, or else the value as an unsigned number.

    Args:
        type: a `PointerType` or an `EnumType`.
        value: its int.
    """
    if isinstance(type, PointerType):
        return f"0x{value:x}"
    assert isinstance(type, EnumType)
    mask = (1 << type.bits) - 1
    return type.members.get(value) or str(value & mask)


def escaped_buffer(data: bytes, keep_ascii: bool = True) -> str:
    r"""Return `data` with `\x00` for each byte, or for those outside of printable ASCII.

    Args:
        data: the bytes.
        keep_ascii: True leaves printable characters as they are; a backslash is one.
    """
    return "".join(
        chr(byte) if keep_ascii and 32 <= byte <= 126 else f"\\x{byte:02x}" for byte in data
    )


def _frame(type: StackType, frame: StackFrame) -> str:
    """Return the line of a frame in a call stack, with its newline.

    A name is a symbol with an offset, a symbol alone for an inlined function, which is marked as
    such, or the address where no symbol is known.

    Args:
        type: the stack's type, whose mode says what is shown: "raw": the address; "perf": address,
            name, and the image of a user's stack; else name and, where known, source line.
        frame: the frame.
    """
    if type.mode == "raw":
        return f"{frame.address:x}\n"
    name = f"0x{frame.address:x}"
    if frame.symbol is not None:
        name = frame.symbol if frame.inlined else f"{frame.symbol}+{frame.offset}"
    if type.mode == "perf":
        where = "inlined" if frame.inlined else frame.image or "[unknown]"
        shown = f" ({where})" if type.user or frame.inlined else ""
        return f"\t{frame.address:x} {name}{shown}\n"
    mark = "[inlined] " if frame.inlined else ""
    source = f"@{frame.source}" if frame.source else ""
    return f"        {mark}{name}{source}\n"


def stack_text(type: StackType, frames: Sequence[StackFrame]) -> str:
    """Return a call stack as text: an empty line, then a line for each frame.

    Args:
        type: the stack's type, whose mode says what is shown.
        frames: its frames, innermost first.
    """
    return "\n" + "".join(_frame(type, frame) for frame in frames)


def pieces(type: ValueType, value: Any, plus: bool = False, div: int = 1) -> list[str]:
    """Return the text of a value as the pieces in which bpftrace writes it.

    A field width of `printf` pads only the first piece. The text of None, and of a value of a void
    or floating-point type, is "null".

    Args:
        type: the value's type; not a histogram or time series.
        value: the Python value that `types` describes.
        plus: True writes a `+` before signed numbers that are not negative.
        div: divides numbers before they are shown.
    """
    if value is None or isinstance(type, (VoidType, FloatType)):
        return ["null"]
    return _PIECES[type.__class__](type, value, plus, div)


def text(type: ValueType, value: Any, div: int = 1) -> str:
    """Return a value's text; "null" for None, and for a void or floating-point type.

    Args:
        type: the value's type; not a histogram or time series.
        value: the Python value that `types` describes.
        div: divides numbers before they are shown.
    """
    return "".join(pieces(type, value, div=div))


def _number_pieces(type: Any, value: int, plus: bool, div: int) -> list[str]:
    """Return the text of a number, in pieces: one.

    Args:
        type: the number's type.
        value: the number.
        plus: True where a signed number that is not negative gets a plus sign.
        div: divides it.
    """
    number = divide(value, div)
    signed = getattr(type, "signed", False)
    return [f"{number:+d}" if plus and signed else str(number)]


def _average_pieces(type: AverageType, value: tuple[int, int], plus: bool, div: int) -> list[str]:
    """Return the text of a mean, in pieces.

    Args:
        type: the type of avg().
        value: (total, count).
        plus: True where a signed number that is not negative gets a plus sign.
        div: divides the mean.
    """
    return _number_pieces(type, average(value), plus, div)


def _stats_pieces(type: StatsType, value: tuple[int, int], plus: bool, div: int) -> list[str]:
    """Return the text of count, mean and total, in pieces.

    Args:
        type: the type of stats().
        value: (total, count).
        plus: True where the numbers of a signed type get a plus sign unless they are negative.
        div: divides the mean.
    """
    number = IntegerType(64, type.signed)
    total, count = value
    parts = (
        ("count", _number_pieces(number, count, plus, 1)),
        ("average", _number_pieces(number, average(value), plus, div)),
        ("total", _number_pieces(number, total, plus, 1)),
    )
    return _named_pieces(parts)


def _named_pieces(parts: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Return the text of parts with names: `{ .a = 1, .b = 2 }`."""
    if not parts:
        return ["{}"]
    found = ["{ "]
    for index, (name, texts) in enumerate(parts):
        found.append(f", .{name} = " if index else f".{name} = ")
        found.extend(texts)
    found.append(" }")
    return found


def _fields_pieces(type: Any, value: Mapping[str, Any], plus: bool, div: int) -> list[str]:
    """Return the text of a structure or record, in pieces.

    Args:
        type: its type.
        value: name -> value.
        plus: True where signed numbers that are not negative get a plus sign.
        div: divides numbers.
    """
    return _named_pieces(
        [(field.name, pieces(field.type, value[field.name], plus, div)) for field in type.fields]
    )


def _tuple_pieces(type: TupleType, value: Sequence[Any], plus: bool, div: int) -> list[str]:
    """Return the text of a tuple, in pieces.

    Args:
        type: the tuple's type.
        value: its items.
        plus: True where signed numbers that are not negative get a plus sign.
        div: divides numbers.
    """
    found = ["("]
    for index, (item_type, item) in enumerate(zip(type.items, value, strict=True)):
        if index:
            found.append(", ")
        found.extend(pieces(item_type, item, plus, div))
    found.append(")")
    return found


def _array_pieces(type: ArrayType, value: Sequence[Any], plus: bool, div: int) -> list[str]:
    """Return the text of an array, in pieces.

    Args:
        type: the array's type.
        value: its elements.
        plus: True where signed numbers that are not negative get a plus sign.
        div: divides numbers.
    """
    found = ["["]
    for index, item in enumerate(value):
        if index:
            found.append(",")
        found.extend(pieces(type.element, item, plus, div))
    found.append("]")
    return found


_PIECES: dict[type[ValueType], Callable[[Any, Any, bool, int], list[str]]] = {
    **dict.fromkeys(NUMBERS, _number_pieces),
    ArrayType: _array_pieces,
    AverageType: _average_pieces,
    BooleanType: lambda type, value, plus, div: ["true" if value else "false"],
    BufferType: lambda type, value, plus, div: [escaped_buffer(value)],
    EnumType: lambda type, value, plus, div: [symbolic(type, value)],
    PointerType: lambda type, value, plus, div: [symbolic(type, value)],
    RecordType: _fields_pieces,
    StackType: lambda type, value, plus, div: [stack_text(type, value)],
    StatsType: _stats_pieces,
    StringType: lambda type, value, plus, div: [decode(value)],
    StructType: _fields_pieces,
    SymbolType: lambda type, value, plus, div: [value],
    TextType: lambda type, value, plus, div: [value],
    TupleType: _tuple_pieces,
}


def json_text(text: str) -> str:
    r"""Return `text` as a JSON string with the escapes that bpftrace writes.

    Bytes of 0x80 and above come out as on x86, where `char` is signed: `\uffffffe4`.
    """
    found = []
    for byte in encode(text):
        character = chr(byte)
        if byte >= 0x80:
            found.append(f"\\uffffff{byte:02x}")
        elif byte < 0x20 and character not in _ESCAPES:
            found.append(f"\\u{byte:04x}")
        else:
            found.append(_ESCAPES.get(character, character))
    return f'"{"".join(found)}"'


def json_number(number: int) -> str:
    """Return an integer as JSON: as a string where a double cannot hold it exactly."""
    return str(number) if int(float(number)) == number else f'"{number}"'


def json(type: ValueType, value: Any, div: int = 1) -> str:
    """Return a value as JSON; `null` for None, and for a void or floating-point type.

    Args:
        type: the value's type; not a histogram or time series.
        value: the Python value that `types` describes.
        div: divides numbers before they are shown.
    """
    if value is None or isinstance(type, (VoidType, FloatType)):
        return "null"
    return _JSON[type.__class__](type, value, div)


def _json_object(parts: Sequence[tuple[str, str]]) -> str:
    """Return a JSON object of parts, which are JSON already."""
    return "{" + ", ".join(f"{json_text(name)}: {value}" for name, value in parts) + "}"


def _json_fields(type: Any, value: Mapping[str, Any], div: int) -> str:
    """Return a structure or record as a JSON object.

    Args:
        type: its type.
        value: name -> value.
        div: divides numbers.
    """
    return _json_object(
        [(field.name, json(field.type, value[field.name], div)) for field in type.fields]
    )


def _json_stats(type: StatsType, value: tuple[int, int], div: int) -> str:
    """Return count, mean and total as a JSON object.

    Args:
        type: not used.
        value: (total, count).
        div: divides the mean.
    """
    total, count = value
    numbers = (
        ("count", count),
        ("average", divide(average(value), div)),
        ("total", total),
    )
    return _json_object([(name, json_number(number)) for name, number in numbers])


def _json_items(texts: Sequence[str]) -> str:
    """Return a JSON array of parts, which are JSON already."""
    return "[" + ",".join(texts) + "]"


def _json_buffer(type: BufferType, value: bytes, div: int) -> str:
    """Return bytes as a JSON array of signed numbers. `type` and `div` are not used."""
    signed = (byte - 256 if byte >= 128 else byte for byte in value)
    return _json_items([str(byte) for byte in signed])


def _json_tuple(type: TupleType, value: Sequence[Any], div: int) -> str:
    """Return a tuple as a JSON array.

    Args:
        type: the tuple's type.
        value: its items.
        div: divides numbers.
    """
    return _json_items(
        [json(item_type, item, div) for item_type, item in zip(type.items, value, strict=True)]
    )


_JSON: dict[type[ValueType], Callable[[Any, Any, int], str]] = {
    **dict.fromkeys(NUMBERS, lambda type, value, div: json_number(divide(value, div))),
    ArrayType: lambda type, value, div: _json_items([json(type.element, x, div) for x in value]),
    AverageType: lambda type, value, div: json_number(divide(average(value), div)),
    BooleanType: lambda type, value, div: "true" if value else "false",
    BufferType: _json_buffer,
    EnumType: lambda type, value, div: json_number(value & ((1 << type.bits) - 1)),
    PointerType: lambda type, value, div: json_number(value),
    RecordType: _json_fields,
    StackType: lambda type, value, div: json_text(stack_text(type, value)),
    StatsType: _json_stats,
    StringType: lambda type, value, div: json_text(decode(value)),
    StructType: _json_fields,
    SymbolType: lambda type, value, div: json_text(value),
    TextType: lambda type, value, div: json_text(value),
    TupleType: _json_tuple,
}


def number(type: ValueType, value: Any) -> int | None:
    """Return the integer that `printf`'s %d and its like see in a value; None: it is no number.

    Args:
        type: the value's type; of an average the number is the mean.
        value: the Python value that `types` describes.
    """
    if isinstance(type, (*NUMBERS, BooleanType, EnumType, PointerType)):
        return int(value)
    if isinstance(type, AverageType):
        return average(value)
    return None


def zero(type: ValueType) -> Any:
    """Return the value of `type` whose bytes are all zero; None for aggregates with rows or
    intervals and for types without values.
    """
    if isinstance(type, (*NUMBERS, EnumType, PointerType)):
        return 0
    if isinstance(type, (RecordType, StructType)):
        return {field.name: zero(field.type) for field in type.fields}
    if isinstance(type, TupleType):
        return tuple(zero(item) for item in type.items)
    if isinstance(type, ArrayType):
        return [zero(type.element)] * type.count
    return _ZEROS.get(type.__class__)


_ZEROS: dict[type[ValueType], Any] = {
    AverageType: (0, 0),
    BooleanType: False,
    BufferType: b"",
    StackType: (),
    StatsType: (0, 0),
    StringType: b"",
    SymbolType: "0x0",
    TextType: "",
}
