"""Files that name functions and data, as other tools read them. _names reads each of these
formats.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from ..errors import ImageError
from ._symbol import Symbol


def _ghidra(symbols: list[Symbol]) -> str:
    """Return lines for Ghidra's ImportSymbolsScript: name, address, and f for a function or l for a
    label.
    """
    return "".join(
        f"{_word(s.name)} {s.address:#x} {'f' if s.kind != 'object' else 'l'}\n" for s in symbols
    )


def _ida(symbols: list[Symbol]) -> str:
    """Return a script in IDC, IDA's own language, which names the symbols' addresses.

    The script also makes IDA have a function at each symbol that is not data.
    """
    lines = []
    for s in symbols:
        name = json.dumps(s.name)
        if s.kind != "object":
            lines.append(f"  add_func({s.address:#x});")
        lines.append(f"  set_name({s.address:#x}, {name}, SN_NOWARN | SN_FORCE);")
    return "#include <idc.idc>\n\nstatic main() {\n" + "\n".join(lines) + "\n}\n"


def _binja(symbols: list[Symbol]) -> str:
    """Return the symbols as a list in JSON; a line of Binary Ninja's Python console reads it, see
    docs/discover.md.
    """
    rows = [
        {
            "name": s.name,
            "address": s.address,
            "size": s.size,
            "type": "function" if s.kind != "object" else "data",
        }
        for s in symbols
    ]
    return json.dumps(rows, indent=1) + "\n"


def _map(symbols: list[Symbol]) -> str:
    """Return lines as nm -S prints them."""
    return "".join(
        f"{s.address:016x} {s.size:016x} {'T' if s.kind != 'object' else 'D'} {_word(s.name)}\n"
        for s in symbols
    )


def _word(name: str) -> str:
    """Return a name without blanks: "_" stands for them, and for an empty name."""
    return "_".join(name.split()) or "_"


_WRITERS: dict[str, Callable[[list[Symbol]], str]] = {
    "ghidra": _ghidra,
    "ida": _ida,
    "binja": _binja,
    "map": _map,
}
EXPORTS = tuple(_WRITERS)  #: what write_names() knows


def write_names(symbols: Iterable[Symbol], format: str) -> str:
    """Return the text of a file that names symbols, by address.

    Args:
        symbols: what is named; imports are left out.
        format: one of EXPORTS.

    Raises:
        ImageError: there is no such format.
    """
    if format not in _WRITERS:
        raise ImageError(f"no format {format!r}", hint=f"there are: {', '.join(EXPORTS)}")
    named = [s for s in symbols if s.kind != "import"]
    return _WRITERS[format](sorted(named, key=lambda s: (s.address, s.name)))
