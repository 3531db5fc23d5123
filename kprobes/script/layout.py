"""How values lie in a program's memory.

Numbers are in the host's byte order; structures and arrays are bytes as the guest has them. Strings
are zero up to the end of their room, which is a multiple of 8 bytes: so that they can be copied and
compared word by word.
"""

from __future__ import annotations

from typing import Final

from . import types
from .types import ValueType

#: bytes of a log2 histogram: one row for negative numbers, then buckets
WORD: Final = 8


def size_of(type: ValueType, word: int = WORD) -> int:
    """Return the bytes of a value: of a string with its NUL, of a buffer or call stack with the
    word in front that counts; 0 for VoidType() and structures whose size is not known.

    Args:
        type: the value's type.
        word: bytes of a pointer: 8 in the program's own memory, the guest's within structures and
            arrays.
    """
    if isinstance(type, (types.IntegerType, types.EnumType, types.FloatType)):
        return type.bits // 8
    if isinstance(type, types.BooleanType):
        return 1
    if isinstance(type, types.PointerType):
        return word
    if isinstance(type, types.StringType):
        return type.size
    if isinstance(type, types.ArrayType):
        return type.count * size_in_guest(type.element, word)
    if isinstance(type, types.StructType):
        return type.size
    if isinstance(type, types.BufferType):
        return 8 + type.size
    if isinstance(type, (types.TupleType, types.RecordType)):
        parts = members(type)
        return _up(max((at + room_of(part) for at, part in parts), default=0), alignment(type))
    if isinstance(type, types.StackType):
        return 8 + 8 * type.limit
    if isinstance(type, types.TextType):
        return 24 if type.kind == "inet" else 16
    return _aggregate(type)


def size_in_guest(type: ValueType, word: int) -> int:
    """Return the bytes that a member takes within a guest's structure.

    `char s[5]` is a StringType of 6, with its NUL, and takes 5.

    Args:
        type: the member's type.
        word: bytes of the guest's pointers.
    """
    return type.size - 1 if isinstance(type, types.StringType) else size_of(type, word)


def room_of(type: ValueType) -> int:
    """Return the bytes that are kept for a value in the program's memory: a multiple of 8 for all
    but numbers, which take their own size.
    """
    size = size_of(type)
    return size if is_number(type) else _up(size, 8)


def _aggregate(type: ValueType) -> int:
    """Return the bytes that the value of an aggregate takes in a map; 0 for VoidType()."""
    if isinstance(type, types.HistogramType):
        return 8 * rows(type)
    if isinstance(type, types.LinearHistogramType):
        return 8 * ((type.high - type.low) // type.step + 2)
    if isinstance(type, types.TimeSeriesType):
        return 32 * type.intervals
    if isinstance(type, (types.AverageType, types.StatsType, types.MinimumType, types.MaximumType)):
        return 16
    if isinstance(type, types.VoidType):
        return 0
    return 8


def rows(type: types.HistogramType) -> int:
    """Return the number of rows of a log2 histogram: one for negative numbers, one for each
    bucket.
    """
    return 1 + ((65 - type.bits) << type.bits)


def is_number(type: ValueType) -> bool:
    """Return True for types whose values fit into a register."""
    return isinstance(
        type, (types.IntegerType, types.BooleanType, types.EnumType, types.PointerType)
    )


def width(type: ValueType) -> tuple[int, bool]:
    """Return (bits, signed) of a number's type; (64, False) for a pointer and any other type."""
    if isinstance(type, (types.IntegerType, types.EnumType)):
        return type.bits, type.signed
    return (8, False) if isinstance(type, types.BooleanType) else (64, False)


def alignment(type: ValueType) -> int:
    """Return how a value is aligned in a program's memory: its offset is a multiple of so many
    bytes.
    """
    if is_number(type):
        return size_of(type)
    if isinstance(type, (types.TupleType, types.RecordType)):
        return max((alignment(part) for _, part in members(type)), default=1)
    return 8


def members(type: types.TupleType | types.RecordType) -> list[tuple[int, ValueType]]:
    """Return (offset in bytes, type) of each part of a tuple or record, in order."""
    parts = (
        type.items
        if isinstance(type, types.TupleType)
        else tuple(field.type for field in type.fields)
    )
    out = list[tuple[int, ValueType]]()
    at = 0
    for part in parts:
        at = _up(at, alignment(part))
        out.append((at, part))
        at += room_of(part)
    return out


def stated(type: ValueType, word: int = WORD) -> int:
    """Return the bytes of a value as `sizeof` states them.

    Tuples and records are packed as bpftrace packs them: strings need no alignment there,
    structures and arrays that of their parts.

    Args:
        type: the value's type.
        word: bytes of a pointer.
    """
    return _packed(type, word)[0]


def _packed(type: ValueType, word: int) -> tuple[int, int]:
    """Return (bytes, alignment in bytes) of a value in a tuple as bpftrace lays it out.

    Args:
        type: the value's type.
        word: bytes of a pointer.
    """
    if isinstance(type, (types.StringType, types.BufferType)):
        return size_of(type, word), 1
    if isinstance(type, types.StructType):
        return type.size, max((_packed(field.type, word)[1] for field in type.fields), default=1)
    if isinstance(type, types.ArrayType):
        return size_of(type, word), _packed(type.element, word)[1]
    if isinstance(type, (types.TupleType, types.RecordType)):
        parts = (
            type.items
            if isinstance(type, types.TupleType)
            else tuple(field.type for field in type.fields)
        )
        end, widest = 0, 1
        for part in parts:
            size, step = _packed(part, word)
            end = _up(end, step) + size
            widest = max(widest, step)
        return _up(end, widest), widest
    size = size_of(type, word)
    return size, max(1, min(8, size)) if is_number(type) else 8


def record(fields: list[tuple[str, ValueType]]) -> types.RecordType:
    """Return the type of a record with these fields, in order."""
    places = members(types.TupleType(tuple(type for _, type in fields)))
    return types.RecordType(
        tuple(
            types.RecordField(name, type, at)
            for (name, type), (at, _) in zip(fields, places, strict=True)
        )
    )


def _up(number: int, step: int) -> int:
    """Return a number rounded up to a multiple of `step`."""
    return -(-number // step) * step
