"""Shows maps, variables and records of eBPF programs as text and as JSON."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..controls import CONTROLS
from ..programs.maps import Map, MapType, StackTraces
from ..script.histograms import Bound, Rows, histogram_text

Describe = Callable[[int], str]

_DATA: Final = (".data", ".rodata", ".bss")
#: names of arrays that are counts by powers of two
_LOGARITHMIC: Final = re.compile(r"hist|slots|dist", re.IGNORECASE)
_SUFFIXES: Final = ("", "K", "M", "G", "T", "P", "E")
#: entries of a map that are shown
MOST: Final = 4096


def is_data(name: str) -> bool:
    """Whether a map, by its name, is a section of variables, or `.session`, which programs
    share.
    """
    return name.startswith(".") and (name == ".session" or name.startswith(_DATA))


def lines(name: str, m: Map, describe: Describe) -> Iterator[str]:
    """Yield the lines that show a map as bpftrace does: entries by their values, at most the last
    MOST and how many more there are, histograms drawn.

    A histogram is an array of numbers whose name says so (_LOGARITHMIC), or an entry whose
    structure has an array `slots`.

    Args:
        name: the map's name.
        m: the map; of a kind that has no entries, such as a ring buffer, there are no lines.
        describe: a guest address -> its name, for stack traces.
    """
    if isinstance(m, StackTraces):
        for number in sorted(m):
            yield f"{name}[{number}]:"
            yield from (f"    {describe(address)}" for address in m[number])
        return
    if not isinstance(m, Mapping):
        return
    if (
        m.type in (MapType.ARRAY, MapType.PERCPU_ARRAY)
        and _LOGARITHMIC.search(name)
        and (counts := _counts(m))
    ):
        yield from _drawn(name, counts)
        return
    for key, value in _ordered(m):
        shown = name if m.type is MapType.ARRAY and m.max_entries == 1 else f"{name}[{text(key)}]"
        slots = _slots(value)
        if slots is not None:
            yield from _drawn(shown, slots)
        else:
            yield f"{shown}: {text(value)}"
    if len(m) > MOST:
        yield f"{name}: {len(m) - MOST:,} more entries"


def _ordered(m: Any) -> list[tuple[Any, Any]]:
    """Return the entries of a map that are shown, at most the last MOST, as (key, value).

    Arrays keep their order, without entries that are 0 unless they have only one entry. Other maps
    are sorted by value if all their values are integers, else by key.

    Args:
        m: the map.
    """
    found = [(key, m[key]) for key in list(m)]
    if m.type in (MapType.ARRAY, MapType.PERCPU_ARRAY):
        found = [(key, value) for key, value in found if m.max_entries == 1 or not _is_zero(value)]
    elif all(isinstance(value, int) for _, value in found):
        found.sort(key=lambda entry: (entry[1], _rank(entry[0])))
    else:
        found.sort(key=lambda entry: _rank(entry[0]))
    return found[-MOST:]


def _rank(key: Any) -> tuple[int, Any]:
    """Return what keys are sorted by: numbers by size, structures and rows part by part, others as
    text.
    """
    if isinstance(key, int):
        return 0, key
    if isinstance(key, (tuple, list, ctypes.Array)):
        return 1, tuple(_rank(one) for one in key)
    if isinstance(key, ctypes.Structure):
        return 1, tuple(_rank(getattr(key, name)) for name in _shown(key))
    return 2, text(key)


def _is_zero(value: Any) -> bool:
    """Whether all bytes of a value are 0; of a list, of all its values."""
    if isinstance(value, list):
        return all(_is_zero(one) for one in value)
    if isinstance(value, (ctypes.Structure, ctypes.Union)):
        return not any(bytes(value))
    return not any(value) if isinstance(value, bytes) else not value


def _counts(m: Any) -> list[int] | None:
    """Return the numbers of an array map, those of all CPUs added up.

    Returns:
        None: its values are no numbers, or it has a single entry.
    """
    values = [m[index] for index in range(len(m))]
    if m.percpu:
        values = [sum(one) if all(isinstance(n, int) for n in one) else None for one in values]
    return values if len(values) > 1 and all(isinstance(one, int) for one in values) else None


def _slots(value: Any) -> list[int] | None:
    """Return the counts in a structure's array member `slots`; None: it has none."""
    slots = getattr(value, "slots", None) if isinstance(value, ctypes.Structure) else None
    return [int(one) for one in slots] if isinstance(slots, ctypes.Array) else None


def _drawn(name: str, counts: list[int]) -> Iterator[str]:
    """Yield the lines of a histogram by powers of two, and an empty one at the end; only the name
    where all counts are 0.

    Args:
        name: the histogram's name.
        counts: number n counts values from 2**n on, number 0 those below 2.
    """
    used = [n for n, count in enumerate(counts) if count]
    yield f"{name}:"
    if not used:
        return
    first, last = used[0], used[-1]
    shown = Rows(
        _power(first) if first else Bound(0, "0", False),
        tuple(_power(n + 1) for n in range(first, last + 1)),
        tuple(counts[first : last + 1]),
    )
    yield from histogram_text(shown).splitlines()
    yield ""


def _power(exponent: int) -> Bound:
    """Return the bound 2**exponent of a histogram's row, whose text is such as "4K"."""
    decade, rest = divmod(exponent, 10)
    return Bound(1 << exponent, f"{1 << rest}{_SUFFIXES[min(decade, 6)]}", False)


def text(value: Any) -> str:
    """Return a key or value of a map as text.

    Structures are shown by their members, lists in brackets, bytes as text if they are text, else
    in hexadecimal. Control characters are escaped.
    """
    if isinstance(value, (ctypes.Structure, ctypes.Union)):
        members = ", ".join(f".{name} = {text(getattr(value, name))}" for name in _shown(value))
        return f"{{ {members} }}"
    if isinstance(value, (list, tuple, ctypes.Array)):
        return f"[{', '.join(text(one) for one in value)}]"
    if isinstance(value, bytes):
        return _bytes(value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).translate(CONTROLS)


def _shown(value: Any) -> tuple[str, ...]:
    """Return the names of a structure's members that are shown; () where its type does not tell."""
    return tuple(getattr(type(value), "_shown", ()))


def _bytes(raw: bytes) -> str:
    """Return bytes as the text up to a NUL where only NULs follow; else, or where all are NULs, in
    hexadecimal. Control characters of the text are escaped.
    """
    head, _, tail = raw.partition(b"\0")
    if not any(tail) and (head or not raw):
        return head.decode("utf-8", "backslashreplace").translate(CONTROLS)
    return raw.hex(" ")


def plain(value: Any) -> Any:
    """Return a key or value of a map as json.dumps() takes it: structures as dicts, bytes
    as text.
    """
    if isinstance(value, (ctypes.Structure, ctypes.Union)):
        return {name: plain(getattr(value, name)) for name in _shown(value)}
    if isinstance(value, (list, tuple, ctypes.Array)):
        return [plain(one) for one in value]
    return text(value) if isinstance(value, bytes) else value


def as_json(name: str, m: Any, describe: Describe) -> str | None:
    """Return a map as a JSON object of one line.

    Args:
        name: the map's name.
        m: the map.
        describe: a guest address -> its name, for stack traces.

    Returns:
        The object: "type", "name" and "data". That maps keys, as text, to values, at most the last
        MOST entries, and of an array with several entries only those that are not 0; of stack
        traces, numbers to the names of their addresses. None: the map is of a kind that has no
        entries.
    """
    if isinstance(m, StackTraces):
        data: Any = {
            str(number): [describe(address) for address in m[number]] for number in sorted(m)
        }
    elif isinstance(m, Mapping):
        data = {text(key): plain(value) for key, value in _ordered(m)}
    else:
        return None
    return json.dumps({"type": "map", "name": name, "data": data})


def record_type(types: Mapping[str, Any], size: int) -> Any:
    """Return the structure that a ring buffer's record is, by its size.

    It is the only one of that size; of several, the only one whose name has "event", "data" or
    "record" in it.

    Args:
        types: name -> structure, of the object's debug information.
        size: bytes of a record.

    Returns:
        The structure; None: it is not known.
    """
    fitting = [types[name] for name in types if ctypes.sizeof(types[name]) == size]
    if len(fitting) > 1:
        fitting = [one for one in fitting if re.search(r"event|data|record", one.__name__)]
    return fitting[0] if len(fitting) == 1 else None
