"""Scans of units, lines and address ranges in C, where this host can run it: native/dwarf.c.

Where the C code meets something unusual or damaged, functions return None, and the caller reads
with the slower Python of scan.py and lines.py.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from mmap import mmap
from typing import Any, Final

from .. import native
from .scan import TYPES, Header, NamedType, Sections, UnitContents

_FUNCTIONS, _TYPES = 1, 2  #: what is wanted, as dwarf.c has it
_SHAPES: Final = 1 << 14
_ATTRIBUTES: Final = 1 << 16
#: bytes of dwarf.c's structures
_SHAPE, _ATTRIBUTE, _DECLARED, _FUNCTION, _TYPE, _SCOPE, _LINE = 64, 32, 48, 24, 64, 40, 40
_RANGE: Final = 24
_SCOPE_WORDS: Final = _SCOPE // 8
_LEAST_RANGE: Final = 8  #: bytes of a range in .debug_aranges, whose addresses have four
_LEAST_ENTRY: Final = 3  #: bytes of an entry that has a name, or code
_MOST_SEEN: Final = 1 << 24


def _address(data: Any) -> int:
    """Return the host address of an object's contents; the caller must keep the object alive.

    Args:
        data: bytes, an array, or a map.
    """
    if isinstance(data, array):
        return data.buffer_info()[0]
    if isinstance(data, mmap):
        return ctypes.addressof(ctypes.c_char.from_buffer(data))
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


@cache
def _function(name: str) -> Any:
    """Return a C function of dwarf.c as a callable: (host address of its words) -> 0 for success.

    Args:
        name: of the C function.
    """
    return native.function(name, ctypes.c_longlong, ctypes.c_void_p)


class _Words:
    """The argument structure of a function of dwarf.c: 64-bit words, accessed by name.

    It keeps alive the sections and result buffers to which words point.

    Args:
        structure: name of the C structure, which gives the words' names.
    """

    def __init__(self, structure: str) -> None:
        self._places = native.words(structure)
        self._words = array("Q", bytes(8 * len(self._places)))
        self._kept: dict[str, Any] = {}

    def __setitem__(self, name: str, value: int) -> None:
        self._words[self._places[name]] = value

    def __getitem__(self, name: str) -> int:
        return self._words[self._places[name]]

    def section(self, name: str, data: bytes) -> None:
        """Set the words `name` and `name_size` to a section's host address and bytes.

        Args:
            name: of the word.
            data: the section, which is kept alive.
        """
        self._kept[name] = data
        self[name] = _address(data)
        self[f"{name}_size"] = len(data)

    def provide_buffer(self, name: str, count: int, size: int) -> None:
        """Provide a result buffer: set the words `name` and `name_room`. A larger one from before
        is kept.

        Args:
            name: of the word that has its address.
            count: of structures that fit.
            size: bytes of one structure.
        """
        if len(self._kept.get(name, b"")) < count * size:
            self._kept[name] = mmap(-1, count * size)  # pages that nobody writes take no memory
            self[name] = _address(self._kept[name])
        self[f"{name}_room"] = count

    def found(self, name: str, size: int) -> memoryview:
        """Return the structures that the C function has written into a result buffer, as 64-bit
        words.

        Args:
            name: of the word that has the buffer's address; `name_count` says how many there are.
            size: bytes of one structure.
        """
        return memoryview(self._kept[name])[: self[f"{name}_count"] * size].cast("Q")

    def call(self, function: str) -> bool:
        """Call a C function with these words.

        Args:
            function: its name.

        Returns:
            True: it has done its work; False: the caller must do it in Python.
        """
        return bool(_function(function)(self._words.buffer_info()[0]) == 0)


class QuickScanner:
    """Scans the units of one file in C; a replacement of UnitScanner, which is slower.

    Args:
        sections: of the file.
    """

    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self._words = words = _Words("unit")
        words.section("info", sections.info)
        words.section("abbrev", sections.abbrev)
        words.section("strings", sections.strings)
        words.section("line_strings", sections.line_strings)
        words["big"] = sections.order == "big"
        words.provide_buffer("shapes", _SHAPES, _SHAPE)
        words.provide_buffer("attributes", _ATTRIBUTES, _ATTRIBUTE)

    def note_once(self) -> None:
        """From now on, report each type only the first time that it is found. Types seen are
        forgotten.
        """
        self._words._kept.pop("seen", None)
        self._words["seen_count"] = 0
        room = 1 << max(len(self._sections.info) // 64, 1 << 10).bit_length()
        self._words.provide_buffer("seen", min(room, _MOST_SEEN), 8)

    def scan(
        self, header: Header, tables: tuple[bytes, bytes], deep: bool, types: bool
    ) -> UnitContents | None:
        """Return the functions or the types of a unit.

        Args:
            header: the unit's.
            tables: (its part of .debug_addr, its part of .debug_str_offsets); b"": it has none.
            deep: True: also what stands within functions.
            types: True: types are wanted; False: functions are.

        Returns:
            None: the unit has something unusual, or is damaged.
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
            words.provide_buffer("declared", 1 << (most // 2).bit_length(), _DECLARED)
            words.provide_buffer("types", most, _TYPE)
            words.provide_buffer("scopes", most, _SCOPE)
        else:
            words.provide_buffer("functions", most, _FUNCTION)
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
        # the scan has reached all texts: they are read where they lie
        parts = (b"", sections.info, sections.strings, sections.line_strings)
        held = [memoryview(part) for part in parts]
        scopes = ScopeNames(self._words.found("scopes", _SCOPE), held)
        for tag, scope, section, at, size, offset, length, line in struct.iter_unpack(
            "8Q", self._words.found("types", _TYPE).cast("B")
        ):
            name = str(held[section][at : at + size], "utf-8", "backslashreplace")
            yield NamedType(TYPES[tag], scopes[scope], name, offset, length, line)


class ScopeNames(dict[int, str]):
    """The texts of scopes, `geo::` and `geo::Shape::`, by their numbers. A text is made when it is
    asked for: most scopes have no types of their own.
    """

    def __init__(self, rows: memoryview, held: Sequence[memoryview]) -> None:
        """Keep what the scan has found of scopes.

        Args:
            rows: words of dwarf.c's `struct scope`, of the scopes from number 1 on.
            held: sections that names are in, by the numbers that dwarf.c gives them.
        """
        super().__init__({0: ""})
        self._rows = rows
        self._held = held

    def __missing__(self, number: int) -> str:
        """Return the text of a scope that was not asked for before, and keep it.

        Args:
            number: of the scope, as dwarf.c counts them, from 1.
        """
        first = (number - 1) * _SCOPE_WORDS
        around, section, at, size = self._rows[first : first + 4]
        name = str(self._held[section][at : at + size], "utf-8", "backslashreplace")
        self[number] = made = f"{self[around]}{name}::"
        return made


def quick_scanner(sections: Sections) -> QuickScanner | None:
    """Return a scanner in C for a file's units; None where this host cannot run it."""
    return QuickScanner(sections) if sections.info and native.available() else None


def rows_of(
    data: bytes, start: int, end: int, facts: dict[str, int], big: bool
) -> memoryview | None:
    """Execute a line program in C; return the rows that have code.

    Args:
        data: contents of .debug_line.
        start: offset of the program, behind its header.
        end: offset behind it.
        facts: values of the header, by their names in dwarf.c's `struct program`.
        big: True: numbers are big-endian.

    Returns:
        Five words a row (start, end, file, line, is_stmt); None: this host cannot run it, or the
        program has something unusual.
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
    words.provide_buffer("rows", end - start + 1, _LINE)
    return words.found("rows", _LINE) if words.call("dwarf_lines") else None


def quick_ranges(data: bytes, big: bool) -> memoryview | None:
    """Read .debug_aranges in C.

    Args:
        data: contents of the section.
        big: True: numbers are big-endian.

    Returns:
        start, end and the unit's offset of one range after the other, by address, as 64-bit words;
        None: this host cannot run it, or a range is unusual.
    """
    if not data or not native.available():
        return None
    words = _Words("listing")
    words.section("data", data)
    words["big"] = big
    words.provide_buffer("ranges", len(data) // _LEAST_RANGE + 1, _RANGE)
    return words.found("ranges", _RANGE) if words.call("dwarf_ranges") else None
