"""Readers of text files that name addresses: nm's output and what looks like it, linkers' maps,
lists that other tools export.

A format's reader (_nm, _linker ...) takes the lines of a file, and yields its symbols. Lines that
it does not know are passed over.
"""

from __future__ import annotations

import contextlib
import csv
import json
import re
from collections.abc import Callable, Iterator

from ._symbol import Symbol

FUNCTIONS, OBJECTS = "tTwWiuV", "dDbBrRgGsScCnNvA"
_NM = re.compile(
    r"\s*(?:[^:\s]+:)?([0-9a-fA-F]{4,16})\s+(?:([0-9a-fA-F]{4,16})\s+)?([A-Za-z])\s+(\S+)"
    r"(?:\s+\[(\S+)\])?\s*$"
)
_MAP_SECTION = re.compile(r"\s?(\.[\w.$-]+)\s*(?:0x[0-9a-fA-F]+\s+0x[0-9a-fA-F]+.*)?$")
_MAP_SYMBOL = re.compile(r"\s+0x([0-9a-fA-F]{4,16})\s+([A-Za-z_.$][^\s=()]*)\s*$")
_LLD = re.compile(r"\s*([0-9a-fA-F]+)\s+[0-9a-fA-F]+\s+([0-9a-fA-F]+)\s+\d+ (\s*)(\S.*)$")
_IDA_SEGMENT = re.compile(
    r"\s*([0-9A-Fa-f]{4}):([0-9A-Fa-f]{8,16})\s+[0-9A-Fa-f]+H\s+(\S+)\s+(CODE|DATA|BSS|CONST)\b"
)
_IDA_NAME = re.compile(r"\s*([0-9A-Fa-f]{4}):([0-9A-Fa-f]{8,16})\s+(\S+)\s*$")
_IDC_FUNCTION = re.compile(r"\s*add_func\((0x[0-9A-Fa-f]{1,16})[,)]")
_IDC_NAME = re.compile(
    r'\s*(?:set_name|MakeName|MakeNameEx)\((0x[0-9A-Fa-f]{1,16}),\s*("(?:[^"\\]|\\.)*")'
)
_NUMBER = re.compile(r"(?:0x)?([0-9a-fA-F]{3,16})h?$")
_COLUMNS = {
    "name": ("name", "function name", "label", "symbol"),
    "address": ("address", "location", "start", "entry point", "offset"),
    "size": ("size", "length", "function size"),
    "type": ("type", "symbol type"),
}


def _nm(lines: list[str]) -> Iterator[Symbol]:
    """Yield the symbols of nm's output: lines of an address, perhaps a size, a letter, the name,
    and perhaps [module]. Lines with letters of other things than functions and data are left out.
    An absolute symbol without a size gets one of 1 byte.
    """
    for line in lines:
        found = _NM.match(line)
        if found and found[3] in FUNCTIONS + OBJECTS:
            # an absolute value covers nothing: it may be an offset of a processor's data
            size = int(found[2] or "0", 16) or (1 if found[3] == "A" else 0)
            yield Symbol(
                found[4],
                int(found[1], 16),
                size,
                found[5] or "",
                kind=_kind(found[3] in FUNCTIONS),
            )


def _linker(lines: list[str]) -> Iterator[Symbol]:
    """Yield the symbols of a linker's map.

    GNU ld writes input sections, and below each the symbols in it; lld addresses, sizes and names
    in columns; ld's symbols have size 0. A symbol is a function if its section's name begins as one
    of code does (.text, .init, .fini, .plt); else it is an object.
    """
    code = False
    for line in lines:
        section = _MAP_SECTION.match(line)
        symbol = _MAP_SYMBOL.match(line)
        columns = _LLD.match(line)
        if section:
            code = section[1].startswith((".text", ".init", ".fini", ".plt"))
        elif symbol:
            yield Symbol(symbol[2], int(symbol[1], 16), kind=_kind(code))
        elif columns and not columns[3]:
            code = columns[4].startswith((".text", ".init", ".fini", ".plt"))
        elif columns and len(columns[3]) >= 16:
            yield Symbol(
                columns[4].strip(), int(columns[1], 16), int(columns[2], 16), kind=_kind(code)
            )


def _ida(lines: list[str]) -> Iterator[Symbol]:
    """Yield the symbols of IDA's map file: segments with their starts, then names as
    segment:offset. A symbol is a function if its segment's class is CODE; else it is an object.
    Names in a segment that was not listed before are left out.
    """
    segments: dict[str, tuple[int, bool]] = {}
    for line in lines:
        segment, name = _IDA_SEGMENT.match(line), _IDA_NAME.match(line)
        if segment:
            segments[segment[1]] = int(segment[2], 16), segment[4] == "CODE"
        elif name and name[1] in segments:
            start, code = segments[name[1]]
            yield Symbol(name[3], start + int(name[2], 16), kind=_kind(code))


def _idc(lines: list[str]) -> Iterator[Symbol]:
    """Yield the symbols of an IDC script that sets names; those of addresses where it has added a
    function before are functions, others objects.
    """
    functions: set[int] = set()
    for line in lines:
        function, name = _IDC_FUNCTION.match(line), _IDC_NAME.match(line)
        if function:
            functions.add(int(function[1], 16))
        elif name:
            address = int(name[1], 16)
            with contextlib.suppress(ValueError):
                yield Symbol(str(json.loads(name[2])), address, kind=_kind(address in functions))


def _json(lines: list[str]) -> Iterator[Symbol]:
    """Yield the symbols of a JSON list of objects with name and address, or of one object of names
    to addresses.

    Nothing is yielded where the JSON is damaged or is neither; objects without a name or a sound
    address are left out. A symbol is a function, or an object where its "type" is "data"; a "size"
    that makes no sense is 0.
    """
    try:
        found = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        found = [{"name": name, "address": address} for name, address in found.items()]
    for row in found if isinstance(found, list) else ():
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            continue
        address, size = (_whole(row.get(key)) for key in ("address", "size"))
        if address is not None:
            yield Symbol(
                row["name"], address, size or 0, kind=_kind(row.get("type", "function") != "data")
            )


def _whole(value: object) -> int | None:
    """Return a JSON value as an address of 64 bits; None where it is none.

    Args:
        value: a number, or text such as "0x10".
    """
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = int(value[:40], 0)
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64
        else None
    )


def _table(lines: list[str]) -> Iterator[Symbol]:
    """Yield the symbols of a table, whose header names its columns, or of lines of two or three
    words.

    Such a line has an address and a name in either order, which is a function's, or name, address,
    and "f" (a function) or "l" (an object). Lines without a number are passed over.
    """
    delimiter = "\t" if any("\t" in line for line in lines[:20]) else ","
    rows = _rows(lines, delimiter)
    header = [cell.lower() for cell in rows[0]] if rows else []
    columns = {
        key: next((header.index(name) for name in names if name in header), -1)
        for key, names in _COLUMNS.items()
    }
    if columns["name"] >= 0 and columns["address"] >= 0:
        for row in rows[1:]:
            yield from _row(row, columns)
        return
    for line in lines:
        words = line.replace(",", " ").split()
        if len(words) == 3 and words[2] in ("f", "l"):  # for Ghidra's ImportSymbolsScript
            value = _NUMBER.match(words[1])
            if value:
                yield Symbol(words[0], int(value[1], 16), kind=_kind(words[2] == "f"))
        elif len(words) == 2:
            name, number = (words[1], words[0]) if _NUMBER.match(words[0]) else (words[0], words[1])
            value = _NUMBER.match(number)
            if value:
                yield Symbol(name, int(value[1], 16))


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    """Return the cells of a table, row by row; of a damaged table the rows in front of the damage.

    Args:
        lines: the table's text.
        delimiter: the character between cells.
    """
    rows: list[list[str]] = []
    # Python 3.10 takes no NUL, and every one no cell of more than 128 KiB
    with contextlib.suppress(csv.Error):
        for row in csv.reader(
            (line.replace("\0", "\N{REPLACEMENT CHARACTER}") for line in lines), delimiter=delimiter
        ):
            rows.append([cell.strip() for cell in row])
    return rows


def _row(row: list[str], columns: dict[str, int]) -> Iterator[Symbol]:
    """Yield the symbol of a table's row; nothing where the row has no address or no name.

    Addresses are hexadecimal; so is a size, unless it consists of decimal digits and does not begin
    with 0. The symbol is a function unless the row has a type without "func" in it; else an object.

    Args:
        row: the cells.
        columns: "address", "name", "size" and "type" -> index of the cell; -1: the table has no
            such column.
    """

    def cell(key: str) -> str:
        at = columns[key]
        return row[at] if 0 <= at < len(row) else ""

    address = _NUMBER.match(cell("address").rpartition(":")[2])
    size = re.match(r"(?:0x)?([0-9a-fA-F]+)$", cell("size"))
    if address and cell("name"):
        ten = cell("size").isdecimal() and not cell("size").startswith("0")
        length = 0 if size is None else int(size[1], 10 if ten else 16)
        yield Symbol(
            cell("name"),
            int(address[1], 16),
            length,
            kind=_kind(not cell("type") or "func" in cell("type").lower()),
        )


def _kind(code: bool) -> str:
    """Return "func" for code, "object" for data."""
    return "func" if code else "object"


_READERS: dict[str, Callable[[list[str]], Iterator[Symbol]]] = {
    "nm": _nm,
    "map": _linker,
    "ida": _ida,
    "idc": _idc,
    "json": _json,
    "table": _table,
}
FORMATS = ("elf", "btf", *_READERS)  #: what read_names() knows
_SIGNS = (
    ("idc", "static main"),
    ("json", '"address"'),
    ("ida", "Publics by "),
    ("map", "Linker script and memory map"),
    ("map", "Memory Configuration"),
    ("map", " VMA "),
)


def names_in(text: str, format: str | None) -> Iterator[Symbol]:
    """Yield the symbols that a text names.

    Args:
        text: the contents of the file.
        format: one of FORMATS, but for "elf" and "btf"; None: the format that the text looks like,
            a table if it looks like none.
    """
    lines = text.splitlines()
    if format is None:
        found = next((name for name, sign in _SIGNS if sign in text[:100_000]), None)
        format = found or (
            "nm"
            if sum(bool(_NM.match(line)) for line in lines[:200]) > len(lines[:200]) // 3
            else "table"
        )
    yield from _READERS[format](lines)
