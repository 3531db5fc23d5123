"""The order in which a map's items are printed, and which of them with `print(@, top)`."""

from collections.abc import Sequence
from typing import Any

from .printing import average
from .types import (
    AverageType,
    CountType,
    EnumType,
    HistogramType,
    IntegerType,
    LinearHistogramType,
    MaximumType,
    MinimumType,
    StatsType,
    StringType,
    SumType,
    TupleType,
    ValueType,
)

Item = tuple[Any, Any]
_INTEGERS = (IntegerType, EnumType)
_U64 = (1 << 64) - 1


def _memory_order(type: ValueType | None, key: Any) -> Any:
    """Return a sort key that orders keys as their bytes lie in memory of a little-endian machine.

    Args:
        type: type of the key.
        key: the key; b"" is returned for one that is no number, bytes or tuple.
    """
    if isinstance(key, int):
        bits = getattr(type, "bits", 64)
        return (key & ((1 << bits) - 1)).to_bytes(bits // 8, "little")
    if isinstance(key, bytes):
        return key
    if isinstance(type, TupleType):
        return b"".join(
            _memory_order(item_type, item)
            for item_type, item in zip(type.items, key, strict=True)
            if isinstance(item, (int, bytes, tuple))
        )
    return b""


def _sort_by_key(type: ValueType | None, items: list[Item]) -> list[Item]:
    """Return items sorted by their keys' integers and strings, field by field.

    Args:
        type: type of the keys.
        items: (key, value); those whose keys are equal in these fields keep their order. They are
            returned as they are where keys have another type, such as a record.
    """
    if isinstance(type, (*_INTEGERS, StringType)):
        return sorted(items, key=lambda item: item[0])
    if not isinstance(type, TupleType):
        return items
    places = [
        index
        for index, field in enumerate(type.items)
        if isinstance(field, (*_INTEGERS, StringType))
    ]
    return sorted(items, key=lambda item: tuple(item[0][place] for place in places))


def ordered(key: ValueType | None, value: ValueType, items: Sequence[Item]) -> list[Item]:
    """Return the items of a map in the order of printing.

    Numbers and aggregations stand in ascending order of the value (averages by the mean, minima and
    maxima as unsigned), histograms by their total and then by the key's bytes, all else in order of
    the key. Other items that are equal keep their order.

    Args:
        key: type of the keys; None for a scalar map.
        value: type of the values.
        items: (key, value) in the map's own order.
    """
    found = list(items)
    if isinstance(value, (IntegerType, EnumType, CountType, SumType)):
        return sorted(found, key=lambda item: item[1])
    if isinstance(value, (MinimumType, MaximumType)):
        return sorted(found, key=lambda item: item[1] & _U64)
    if isinstance(value, (AverageType, StatsType)):
        return sorted(found, key=lambda item: average(item[1]))
    if isinstance(value, (HistogramType, LinearHistogramType)):
        return sorted(found, key=lambda item: (sum(item[1]), _memory_order(key, item[0])))
    return _sort_by_key(key, found)


def topmost(items: list[Item], top: int) -> list[Item]:
    """Return the last `top` items; all where `top` is 0."""
    return items[-top:] if top else items
