"""Structures and arrays as columns of Arrow, and back: each value is the same afterwards.

A column of Arrow's has one type. What has none in common (variants of a Rust enumeration,
structures without members, integers of more than 64 bits) is a column of JSON texts, whose field
says so in its metadata.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from ..debug.whole import Members

if TYPE_CHECKING:
    import pyarrow

_MARK: Final = {b"kprobes": b"json"}  #: metadata of a field whose texts are JSON
_DEEPEST: Final = 64  #: levels of a JSON text that are read


def column(name: str, values: Sequence[Any]) -> tuple[pyarrow.Field, pyarrow.Array]:
    """Return a column of values that may have others within, and the field that describes it.

    Args:
        name: of the column.
        values: numbers, texts, Members, tuples; None for what is missing.
    """
    import pyarrow

    made = _array(values)
    if made is None:
        texts = [None if value is None else json.dumps(value) for value in values]
        made = pyarrow.array(texts, pyarrow.string())
        return pyarrow.field(name, made.type, metadata=_MARK), made
    return pyarrow.field(name, made.type), made


def _array(values: Sequence[Any]) -> pyarrow.Array | None:
    """Return the values as an array of the one type of Arrow's that fits all; None: there is
    none.
    """
    import pyarrow

    present = [value for value in values if value is not None]
    kinds = {type(value) for value in present}
    if not kinds:
        return pyarrow.nulls(len(values))
    if len(kinds) > 1:
        return None
    kind = kinds.pop()
    if kind is int:
        return _integers(values, min(present), max(present))
    if issubclass(kind, dict):
        return _structures(values, present)
    if kind is tuple:
        return _lists(values)
    if kind is str:
        return pyarrow.array(values, pyarrow.string()) if all(map(_is_unicode, present)) else None
    return pyarrow.array(values, pyarrow.bool_() if kind is bool else pyarrow.float64())


def _integers(values: Sequence[int | None], lowest: int, highest: int) -> pyarrow.Array | None:
    """Return the values as an array of the integers of Arrow's that hold `lowest` to `highest`;
    None: these have too many bits.
    """
    import pyarrow

    if lowest >= -(1 << 63) and highest < 1 << 63:
        return pyarrow.array(values, pyarrow.int64())
    return pyarrow.array(values, pyarrow.uint64()) if lowest >= 0 and highest < 1 << 64 else None


def _is_unicode(text: str) -> bool:
    """Return True where a text has no halves of characters, which UTF-8 has no bytes for."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _structures(values: Sequence[Any], present: Sequence[dict[str, Any]]) -> pyarrow.Array | None:
    """Return a column of structures, with a field for each member.

    Args:
        values: structures by member's name, and None for what is missing.
        present: those that are not missing, one at least.

    Returns:
        The column; None where they have no members, not all the same in the same order, or names
        that are no Unicode.
    """
    import pyarrow

    names = [*present[0]]
    if not names or not all(map(_is_unicode, names)) or any([*value] != names for value in present):
        return None
    columns = [
        column(name, [None if value is None else value[name] for value in values]) for name in names
    ]
    missing = pyarrow.array([value is None for value in values])
    return pyarrow.StructArray.from_arrays(
        [array for _, array in columns], fields=[field for field, _ in columns], mask=missing
    )


def _lists(values: Sequence[Any]) -> pyarrow.Array:
    """Return an Arrow array of lists; the elements of all lists together are a column().

    Args:
        values: tuples; None for what is missing.
    """
    import pyarrow

    field, items = column("item", [each for value in values for each in value or ()])
    ends = accumulate([len(value or ()) for value in values], initial=0)
    # a list begins at its offset, and where that is missing, so is the list
    gone = [*(value is None for value in values), False]
    offsets = [None if missing else end for end, missing in zip(ends, gone, strict=True)]
    return pyarrow.ListArray.from_arrays(
        pyarrow.array(offsets, pyarrow.int32()), items, type=pyarrow.list_(field)
    )


def kept(values: Sequence[Any], field: pyarrow.Field) -> list[Any]:
    """Convert the values of a column to what records have.

    Args:
        values: what the column's to_pylist() gives.
        field: the column's, or that of a member or of an array's elements.
    """
    return [_kept(value, field) for value in values]


def is_nested(field: pyarrow.Field) -> bool:
    """Return True where values of a column have others within."""
    import pyarrow

    return pyarrow.types.is_nested(field.type) or _is_json(field)


def _is_json(field: pyarrow.Field) -> bool:
    """Return True where a column has JSON texts for values."""
    return (field.metadata or {}).get(b"kprobes") == b"json"


def _kept(value: Any, field: pyarrow.Field) -> Any:
    """Return a value of a column as records have it.

    Lists become tuples, structures Members; the text of a column of JSON is parsed, and stays as it
    is where it is damaged. Any other value is returned as it is.

    Args:
        value: as Arrow's to_pylist() gives it.
        field: the field of the column, or of the member or element that the value is.
    """
    if isinstance(value, str) and _is_json(field):
        try:
            return _of_json(json.loads(value), 0)
        except (ValueError, RecursionError):  # a damaged file's, which is shown as it is
            return value
    if isinstance(value, list):
        return tuple([_kept(each, field.type.value_field) for each in value])
    if isinstance(value, dict):
        return Members({each.name: _kept(value[each.name], each) for each in field.type})
    return value


def _of_json(value: Any, depth: int) -> Any:
    """Convert a value that json.loads() gave: lists become tuples, objects become Members, any
    other stays as it is.

    Args:
        value: the value.
        depth: how many lists and objects are around it; 0: none.

    Raises:
        ValueError: `depth` is beyond what a value of a record can have.
    """
    if depth > _DEEPEST:
        raise ValueError
    if isinstance(value, list):
        return tuple([_of_json(each, depth + 1) for each in value])
    if isinstance(value, dict):
        return Members({name: _of_json(each, depth + 1) for name, each in value.items()})
    return value
