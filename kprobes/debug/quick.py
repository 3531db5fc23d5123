"""Scans of units and tables of lines in C, where this process has host code:
kprobes/native/dwarf.c.

What the C code finds unusual, or damaged, it leaves to scan.py and units.py, which do the same
slowly.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Iterator
from functools import cache
from mmap import mmap
from typing import Any, Final

from .. import native
from .scan import TYPES, Header, NamedType, Sections, UnitContents

_FUNCTIONS, _TYPES = 1, 2  #: what is wanted, as dwarf.c has it
_SHAPES: Final = 1 << 14
_ATTRIBUTES: Final = 1 << 16
#: bytes of dwarf.c's structures
_SHAPE, _ATTRIBUTE, _DECLARED, _FUNCTION, _TYPE, _SCOPE, _LINE = 56, 24, 48, 24, 64, 40, 40
_RANGE: Final = 24
_LEAST_RANGE: Final = 8  #: bytes of a range in .debug_aranges, whose addresses have four
_LEAST_ENTRY: Final = 3  #: bytes of an entry that has a name, or code
_MOST_SEEN: Final = 1 << 24


def _address(data: Any) -> int:
    """Return where the contents of a bytes object, or of an array, are; the caller keeps it."""
    if isinstance(data, array):
        return data.buffer_info()[0]
    if isinstance(data, mmap):
        return ctypes.addressof(ctypes.c_char.from_buffer(data))
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


@cache
def _function(name: str) -> Any:
    """Return a function of dwarf.c that takes the address of its words."""
    return native.function(name, ctypes.c_longlong, ctypes.c_void_p)


class _Words:
    """The words that a function of dwarf.c is called with, by name."""

    def __init__(self, structure: str) -> None:
        self._places = native.words(structure)
        self._words = array("Q", bytes(8 * len(self._places)))
        self._kept: dict[str, Any] = {}

    def __setitem__(self, name: str, value: int) -> None:
        self._words[self._places[name]] = value

    def __getitem__(self, name: str) -> int:
        return self._words[self._places[name]]

    def section(self, name: str, data: bytes) -> None:
        """Give a section: its address, and its bytes."""
        self._kept[name] = data
        self[name] = _address(data)
        self[f"{name}_size"] = len(data)

    def room(self, name: str, count: int, size: int) -> None:
        """Give room for some structures, where there is not enough yet.

        Args:
            name: of the word that has its address.
            count: of structures.
            size: bytes of one.
        """
        if len(self._kept.get(name, b"")) < count * size:
            self._kept[name] = mmap(-1, count * size)  # pages that nobody writes take no memory
            self[name] = _address(self._kept[name])
        self[f"{name}_room"] = count

    def found(self, name: str, size: int) -> memoryview:
        """Return the words of the structures that were found.

        Args:
            name: of the word that has their address.
            size: bytes of one.
        """
        return memoryview(self._kept[name])[: self[f"{name}_count"] * size].cast("Q")

    def call(self, function: str) -> bool:
        """Call a function. False: what it is to do is left to Python."""
        return bool(_function(function)(self._words.buffer_info()[0]) == 0)


class QuickScanner:
    """Scans the units of one file, as UnitScanner does."""

    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self._words = words = _Words("unit")
        words.section("info", sections.info)
        words.section("abbrev", sections.abbrev)
        words.section("strings", sections.strings)
        words.section("line_strings", sections.line_strings)
        words["big"] = sections.order == "big"
        words.room("shapes", _SHAPES, _SHAPE)
        words.room("attributes", _ATTRIBUTES, _ATTRIBUTE)

    def note_once(self) -> None:
        """Leave out types that are found again, from now on."""
        self._words._kept.pop("seen", None)
        self._words["seen_count"] = 0
        room = 1 << max(len(self._sections.info) // 64, 1 << 10).bit_length()
        self._words.room("seen", min(room, _MOST_SEEN), 8)

    def scan(
        self, header: Header, tables: tuple[bytes, bytes], deep: bool, types: bool
    ) -> UnitContents | None:
        """Return the functions and types of a unit; None: it has something unusual, or is damaged.

        Args:
            header: the unit's.
            tables: its table of addresses, and that of its strings' offsets; b"": it has none.
            deep: also what stands within functions.
            types: types are wanted, and not functions.
        """
        words = self._words
        words.section("addresses", tables[0])
        words.section("texts", tables[1])
        words["unit"] = header.offset
        words["first"] = header.first
        words["end"] = header.end
        words["table"] = header.abbrev
        words["version"] = header.version
        words["address"] = header.address
        words["word"] = header.word
        words["deep"] = deep
        words["wanted"] = _TYPES if types else _FUNCTIONS
        most = (header.end - header.first) // _LEAST_ENTRY + 2
        if types:
            words.room("declared", 1 << (most // 2).bit_length(), _DECLARED)
            words.room("types", most, _TYPE)
            words.room("scopes", most, _SCOPE)
        else:
            words.room("functions", most, _FUNCTION)
        for name in ("functions", "types", "scopes"):
            words[f"{name}_count"] = 0
        if not words.call("dwarf_unit"):
            return None
        found = UnitContents()
        if types:
            found.types += self._types()
        else:
            pieces = iter(words.found("functions", _FUNCTION))
            found.functions += zip(pieces, pieces, pieces, strict=True)
        return found

    def _types(self) -> Iterator[NamedType]:
        """Yield the types that the scan has found, each with the scopes around it."""
        sections = self._sections
        held = (b"", sections.info, sections.strings, sections.line_strings)
        scopes = [""]
        for around, section, at, size, _ in struct.iter_unpack(
            "5Q", self._words.found("scopes", _SCOPE).cast("B")
        ):
            name = held[section][at : at + size].decode("utf-8", "backslashreplace")
            scopes.append(f"{scopes[around]}{name}::")
        for tag, scope, section, at, size, offset, length, line in struct.iter_unpack(
            "8Q", self._words.found("types", _TYPE).cast("B")
        ):
            name = held[section][at : at + size].decode("utf-8", "backslashreplace")
            yield NamedType(TYPES[tag], scopes[scope], name, offset, length, line)


def quick_scanner(sections: Sections) -> QuickScanner | None:
    """Return what scans a file's units in C; None where this process has no host code."""
    return QuickScanner(sections) if sections.info and native.available() else None


def rows_of(
    data: bytes, start: int, end: int, facts: dict[str, int], big: bool
) -> memoryview | None:
    """Return the rows of a program of lines that have code: five words each, of `struct line`.

    Args:
        data: contents of .debug_line.
        start: offset of the program behind its header.
        end: offset behind it.
        facts: words of dwarf.c's `struct program` that its header has.
        big: numbers are big-endian.

    Returns:
        The rows; None: there is no host code, or the program has something unusual.
    """
    if not 0 <= start <= end <= len(data) or not native.available():
        return None
    words = _Words("program")
    words._kept["data"] = data
    words["data"] = _address(data)
    words["start"] = start
    words["end"] = end
    words["big"] = big
    for name, value in facts.items():
        words[name] = value & (1 << 64) - 1
    words.room("rows", end - start + 1, _LINE)
    return words.found("rows", _LINE) if words.call("dwarf_lines") else None


def quick_ranges(data: bytes, big: bool) -> memoryview | None:
    """Return start, end and the unit's offset of each range in .debug_aranges, by address.

    Args:
        data: contents of the section.
        big: numbers are big-endian.

    Returns:
        The numbers, of 64 bits; None: there is no host code, or a range is unusual.
    """
    if not data or not native.available():
        return None
    words = _Words("listing")
    words.section("data", data)
    words["big"] = big
    words.room("ranges", len(data) // _LEAST_RANGE + 1, _RANGE)
    return words.found("ranges", _RANGE) if words.call("dwarf_ranges") else None
