"""The type that holds values of two types, and how types are called in messages."""

from __future__ import annotations

from attrs import frozen

from . import layout, types
from .types import Integer, ValueType


@frozen
class Flexible(Integer):
    """The type of a literal that is not negative: it takes the sign of what it meets."""


def literal(value: int) -> Integer:
    """Return the type of an integer literal: the smallest signed one that holds it."""
    if value >= 1 << 63:
        return Integer(64, False)
    kind = Flexible if value >= 0 else Integer
    for bits in (8, 16, 32):
        if -(1 << bits - 1) <= value < 1 << bits - 1:
            return kind(bits, True)
    return kind(64, True)


def settled(type: ValueType) -> ValueType:
    """Return a type without Flexible: the sign of its literals does not depend on others any
    more.
    """
    if isinstance(type, Flexible):
        return Integer(type.bits, type.signed)
    if isinstance(type, types.Tuple):
        return types.Tuple(tuple(settled(item) for item in type.items))
    if isinstance(type, types.Record):
        return layout.record([(field.name, settled(field.type)) for field in type.fields])
    return type


def both(a: Integer, b: Integer) -> Integer:
    """Return the integer type that holds numbers of two; int64 where none does.

    Args:
        a: the one type; a Flexible takes the sign of the other.
        b: the other.
    """
    bits = max(a.bits, b.bits)
    if isinstance(a, Flexible) and isinstance(b, Flexible):
        return Flexible(bits, True)
    if isinstance(a, Flexible) or isinstance(b, Flexible):
        rigid = b if isinstance(a, Flexible) else a
        return Integer(bits, rigid.signed)
    if a.signed == b.signed:
        return Integer(bits, a.signed)
    signed, unsigned = (a, b) if a.signed else (b, a)
    if signed.bits > unsigned.bits:
        return Integer(signed.bits, True)
    return Integer(min(64, 2 * unsigned.bits), True)


def promoted(a: ValueType, b: ValueType) -> ValueType | None:
    """Return the type that holds values of two types.

    Args:
        a: the one type.
        b: the other.

    Returns:
        None: there is none.
    """
    if a == b:
        return a
    if isinstance(a, Integer) and isinstance(b, Integer):
        return both(a, b)
    if isinstance(a, types.Enumeration) and isinstance(b, Integer):
        return both(Integer(a.bits, a.signed), b)
    if isinstance(b, types.Enumeration) and isinstance(a, Integer):
        return both(a, Integer(b.bits, b.signed))
    if type(a) is not type(b):
        return None
    if isinstance(a, types.String) and isinstance(b, types.String):
        return types.String(max(a.size, b.size))
    if isinstance(a, types.Buffer) and isinstance(b, types.Buffer):
        return types.Buffer(max(a.size, b.size))
    if isinstance(a, types.Tuple) and isinstance(b, types.Tuple) and len(a.items) == len(b.items):
        items = [promoted(x, y) for x, y in zip(a.items, b.items, strict=True)]
        return types.Tuple(tuple(x for x in items if x is not None)) if None not in items else None
    if isinstance(a, types.Record) and isinstance(b, types.Record):
        return _records(a, b)
    if (
        isinstance(a, types.Stack)
        and isinstance(b, types.Stack)
        and (a.user, a.mode) == (b.user, b.mode)
    ):
        return types.Stack(a.user, a.mode, max(a.limit, b.limit))
    if isinstance(a, types.Aggregate) and hasattr(a, "signed") and _unsigned(a) == _unsigned(b):
        return a if a.signed else b
    if isinstance(a, types.Symbol) and isinstance(b, types.Symbol):
        return types.Symbol(True)  # kernel and user are one guest
    if (
        isinstance(a, types.Pointer)
        and isinstance(b, types.Pointer)
        and types.Nothing() in (a.target, b.target)
    ):
        return b if a.target == types.Nothing() else a
    return None


def _unsigned(type: ValueType) -> object:
    """Return what two aggregates have in common if they differ in sign only."""
    return (builtin_type(type), getattr(type, "interval", 0), getattr(type, "intervals", 0))


def builtin_type(value: object) -> str:
    """Return the name of a value's Python class."""
    return value.__class__.__name__


def _records(a: types.Record, b: types.Record) -> ValueType | None:
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


_AGGREGATES = {
    "Count": "count_t",
    "Sum": "sum_t",
    "Average": "avg_t",
    "Minimum": "min_t",
    "Maximum": "max_t",
    "Stats": "stats_t",
    "Histogram": "hist_t",
    "LinearHistogram": "lhist_t",
    "TimeSeries": "tseries_t",
}


def base_name(kind: ValueType) -> str:
    """Return a type's name for messages, without the types that it consists of: "int",
    "pointer".
    """
    names = {
        types.String: "string",
        types.Pointer: "pointer",
        types.Array: "array",
        types.Tuple: "tuple",
        types.Record: "record",
        types.Boolean: "bool",
        types.Buffer: "buffer",
    }
    if isinstance(kind, (Integer, types.Enumeration)):
        return "int"
    return names.get(type(kind), name_of(kind))


def name_of(type: ValueType | None) -> str:
    """Return a type as bpftrace's messages write it."""
    if type is None or isinstance(type, types.Nothing):
        return "none" if type is None else "void"
    if isinstance(type, Integer):
        return f"{'' if type.signed else 'u'}int{type.bits}"
    if isinstance(type, types.Boolean):
        return "bool"
    if isinstance(type, types.Enumeration):
        return f"enum {type.name}"
    if isinstance(type, types.Floating):
        return "float" if type.bits == 32 else "double"
    if isinstance(type, types.String):
        return f"string[{type.size}]"
    if isinstance(type, types.Buffer):
        return f"buffer[{type.size}]"
    if isinstance(type, types.Pointer):
        return f"{name_of(type.target)} *"
    if isinstance(type, types.Array):
        return f"{name_of(type.element)}[{type.count}]"
    if isinstance(type, types.Tuple):
        return f"({','.join(name_of(item) for item in type.items)})"
    if isinstance(type, types.Record):
        return f"({','.join(f'{field.name}={name_of(field.type)}' for field in type.fields)})"
    if isinstance(type, types.Structure):
        return type.name
    if isinstance(type, types.Symbol):
        return "usym_t" if type.user else "ksym_t"
    if isinstance(type, types.Stack):
        return "ustack" if type.user else "kstack"
    if isinstance(type, types.Text):
        return type.kind
    name = _AGGREGATES[builtin_type(type)]
    signed = getattr(type, "signed", True)
    return name if signed or isinstance(type, types.TimeSeries) else f"u{name}"
