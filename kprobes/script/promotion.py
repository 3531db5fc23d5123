"""The type that holds values of two types, and how types are called in messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from . import layout, types
from .types import IntegerType, ValueType


@frozen
class Flexible(IntegerType):
    """The type of a literal that is not negative: it takes the sign of what it meets."""


def literal(value: int) -> IntegerType:
    """Return the type of an integer literal: the smallest signed one that holds it.

    From 2**63 on it is the unsigned one of 64 bits. Below, the type of a number that is not
    negative is Flexible: it takes the sign of the other operand.
    """
    if value >= 1 << 63:
        return IntegerType(64, False)
    kind = Flexible if value >= 0 else IntegerType
    for bits in (8, 16, 32):
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return kind(bits, True)
    return kind(64, True)


def settled(type: ValueType) -> ValueType:
    """Return a type in which each Flexible is replaced by the plain integer type of its size and
    sign.

    A literal's type is Flexible while its sign may still follow the other operand. Items of tuples
    and fields of records are replaced too; any other type is returned itself.
    """
    if isinstance(type, Flexible):
        return IntegerType(type.bits, type.signed)
    if isinstance(type, types.TupleType):
        return types.TupleType(tuple(settled(item) for item in type.items))
    if isinstance(type, types.RecordType):
        return layout.record([(field.name, settled(field.type)) for field in type.fields])
    return type


def both(a: IntegerType, b: IntegerType) -> IntegerType:
    """Return the integer type that holds the numbers of two types.

    For a signed and an unsigned type that is a signed one that is wider than the unsigned one, but
    64 bits are the most.

    Args:
        a: the one type; a Flexible takes the sign of the other.
        b: the other.
    """
    bits = max(a.bits, b.bits)
    if isinstance(a, Flexible) and isinstance(b, Flexible):
        return Flexible(bits, True)
    if isinstance(a, Flexible) or isinstance(b, Flexible):
        rigid = b if isinstance(a, Flexible) else a
        return IntegerType(bits, rigid.signed)
    if a.signed == b.signed:
        return IntegerType(bits, a.signed)
    signed, unsigned = (a, b) if a.signed else (b, a)
    if signed.bits > unsigned.bits:
        return IntegerType(signed.bits, True)
    return IntegerType(min(64, 2 * unsigned.bits), True)


def promoted(a: ValueType, b: ValueType) -> ValueType | None:
    """Return the type that holds values of two types.

    Equal types give that type; an integer and another one, or an enumeration, the integer of
    both(); strings, buffers and stacks of one kind the longer one; tuples and records are joined
    part by part; of a pointer and a `void *` the pointer counts, of aggregates that only differ in
    sign the signed one, of a kernel's and a user's symbol the latter.

    Args:
        a: the one type.
        b: the other.

    Returns:
        None: there is none.
    """
    if a == b:
        return a
    if isinstance(a, IntegerType) and isinstance(b, IntegerType):
        return both(a, b)
    if isinstance(a, types.EnumType) and isinstance(b, IntegerType):
        return both(IntegerType(a.bits, a.signed), b)
    if isinstance(b, types.EnumType) and isinstance(a, IntegerType):
        return both(a, IntegerType(b.bits, b.signed))
    if type(a) is not type(b):
        return None
    if isinstance(a, types.StringType) and isinstance(b, types.StringType):
        return types.StringType(max(a.size, b.size))
    if isinstance(a, types.BufferType) and isinstance(b, types.BufferType):
        return types.BufferType(max(a.size, b.size))
    if (
        isinstance(a, types.TupleType)
        and isinstance(b, types.TupleType)
        and len(a.items) == len(b.items)
    ):
        items = [promoted(x, y) for x, y in zip(a.items, b.items, strict=True)]
        return (
            types.TupleType(tuple(x for x in items if x is not None)) if None not in items else None
        )
    if isinstance(a, types.RecordType) and isinstance(b, types.RecordType):
        return _records(a, b)
    if (
        isinstance(a, types.StackType)
        and isinstance(b, types.StackType)
        and (a.user, a.mode) == (b.user, b.mode)
    ):
        return types.StackType(a.user, a.mode, max(a.limit, b.limit))
    if isinstance(a, types.AggregateType) and hasattr(a, "signed") and _unsigned(a) == _unsigned(b):
        return a if a.signed else b
    if isinstance(a, types.SymbolType) and isinstance(b, types.SymbolType):
        return types.SymbolType(True)  # kernel and user are one guest
    if (
        isinstance(a, types.PointerType)
        and isinstance(b, types.PointerType)
        and types.VoidType() in (a.target, b.target)
    ):
        return b if a.target == types.VoidType() else a
    return None


def _unsigned(type: ValueType) -> object:
    """Return a key of an aggregate's type without its sign: equal for types that differ in sign
    only.
    """
    return (type.__class__, getattr(type, "interval", 0), getattr(type, "intervals", 0))


def _records(a: types.RecordType, b: types.RecordType) -> ValueType | None:
    """Return the type that holds records of two types, with the fields in the first one's order.

    Args:
        a: the one type.
        b: the other.

    Returns:
        None: the names of their fields differ, or no type holds the values of a field.
    """
    there = {field.name: field.type for field in b.fields}
    if there.keys() != {field.name for field in a.fields}:
        return None
    fields = list[tuple[str, ValueType]]()
    for field in a.fields:
        part = promoted(field.type, there[field.name])
        if part is None:
            return None
        fields.append((field.name, part))
    return layout.record(fields)


_AGGREGATES: Final[Mapping[type[ValueType], str]] = {
    types.CountType: "count_t",
    types.SumType: "sum_t",
    types.AverageType: "avg_t",
    types.MinimumType: "min_t",
    types.MaximumType: "max_t",
    types.StatsType: "stats_t",
    types.HistogramType: "hist_t",
    types.LinearHistogramType: "lhist_t",
    types.TimeSeriesType: "tseries_t",
}


def base_name(kind: ValueType) -> str:
    """Return a type's name for messages, without the types that it consists of: "int", "pointer",
    "tuple"; of a type that does not consist of others what name_of() gives.
    """
    names = {
        types.StringType: "string",
        types.PointerType: "pointer",
        types.ArrayType: "array",
        types.TupleType: "tuple",
        types.RecordType: "record",
        types.BooleanType: "bool",
        types.BufferType: "buffer",
    }
    if isinstance(kind, (IntegerType, types.EnumType)):
        return "int"
    return names.get(type(kind), name_of(kind))


def name_of(type: ValueType | None) -> str:
    """Return a type as bpftrace's messages write it: `uint64`, `string[5]`, `int8 *`,
    `(int64,string[3])`, `ksym_t`; "none" for None.
    """
    if type is None or isinstance(type, types.VoidType):
        return "none" if type is None else "void"
    if isinstance(type, IntegerType):
        return f"{'' if type.signed else 'u'}int{type.bits}"
    if isinstance(type, types.BooleanType):
        return "bool"
    if isinstance(type, types.EnumType):
        return f"enum {type.name}"
    if isinstance(type, types.FloatType):
        return "float" if type.bits == 32 else "double"
    if isinstance(type, types.StringType):
        return f"string[{type.size}]"
    if isinstance(type, types.BufferType):
        return f"buffer[{type.size}]"
    if isinstance(type, types.PointerType):
        return f"{name_of(type.target)} *"
    if isinstance(type, types.ArrayType):
        return f"{name_of(type.element)}[{type.count}]"
    if isinstance(type, types.TupleType):
        return f"({','.join(name_of(item) for item in type.items)})"
    if isinstance(type, types.RecordType):
        return f"({','.join(f'{field.name}={name_of(field.type)}' for field in type.fields)})"
    if isinstance(type, types.StructType):
        return type.name
    if isinstance(type, types.SymbolType):
        return "usym_t" if type.user else "ksym_t"
    if isinstance(type, types.StackType):
        return "ustack" if type.user else "kstack"
    if isinstance(type, types.TextType):
        return type.kind
    name = _AGGREGATES[type.__class__]
    signed = getattr(type, "signed", True)
    return name if signed or isinstance(type, types.TimeSeriesType) else f"u{name}"
