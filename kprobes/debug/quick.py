"""Scans of units, lines and address ranges in C, where this host can run it: native/dwarf.c.

Where the C code meets something unusual or damaged, functions return None, and the caller reads
with the slower Python of scan.py and lines.py.
"""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from mmap import mmap
from typing import Any, Final, NamedTuple

from .. import native
from .scan import TYPES, Header, NamedType, Sections, UnitContents
from .section import SectionWindow, buffer_of

_FUNCTIONS, _TYPES, _COPIES = 1, 2, 4  #: what is wanted, as dwarf.c has it
_SHAPES: Final = 1 << 14
_ATTRIBUTES: Final = 1 << 16
#: bytes of dwarf.c's structures
_SHAPE, _ATTRIBUTE, _DECLARED, _FUNCTION, _TYPE, _SCOPE, _LINE = 64, 40, 48, 24, 64, 40, 40
_RANGE: Final = 24
_ORIGIN, _COPY, _PLACE = 16, 40, 104
_PLACE_WORDS: Final = _PLACE // 8
_LEAST_ORIGIN: Final = 256  #: bytes of a file's entries for each that has one name
_SCOPES_AROUND: Final = 1 << 20
_SCOPE_WORDS: Final = _SCOPE // 8
_LEAST_RANGE: Final = 8  #: bytes of a range in .debug_aranges, whose addresses have four
_LEAST_ENTRY: Final = 3  #: bytes of an entry that has a name, or code
_MOST_SEEN: Final = 1 << 24
_MOST_LINES: Final = 1 << 20  #: rows of one source file in one unit
_ELSEWHERE: Final = 5  #: section of a name that C does not read
_LEVELS: Final = 64  #: of inlined copies and blocks around an address, on average


def _address(data: Any) -> int:
    """Return the host address of an object's contents; the caller must keep the object alive.

    Args:
        data: bytes, an array, a map, or a SectionWindow.
    """
    if isinstance(data, array):
        return data.buffer_info()[0]
    if isinstance(data, SectionWindow):
        return _address(data.data) + data.start
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

    def describe(self, sections: Sections, header: Header, tables: tuple[bytes, bytes]) -> None:
        """Set the words that describe a unit.

        Args:
            sections: of the file.
            header: the unit's.
            tables: (its part of .debug_addr, its part of .debug_str_offsets); b"": it has none.
        """
        self.section("addresses", tables[0])
        self.section("texts", tables[1])
        self.section("ranges", sections.ranges if header.version < 5 else sections.range_lists)
        self["unit"] = header.offset
        self["first"] = header.first
        self["end"] = header.end
        self["table"] = header.abbrev
        self["version"] = header.version
        self["address"] = header.address
        self["word"] = header.word

    def call(self, function: str) -> bool:
        """Call a C function with these words.

        Args:
            function: its name.

        Returns:
            True: it has done its work; False: the caller must do it in Python.
        """
        return bool(_function(function)(self._words.buffer_info()[0]) == 0)


def _unit_words(sections: Sections) -> _Words:
    """Return the argument structure of scans of a file's units, without those of a unit.

    Args:
        sections: of the file.
    """
    words = _Words("unit")
    words.section("info", sections.info)
    words.section("abbrev", sections.abbrev)
    words.section("strings", sections.strings)
    words.section("line_strings", sections.line_strings)
    words.section("alternative", sections.alternative)
    words["big"] = sections.order == "big"
    words.provide_buffer("shapes", _SHAPES, _SHAPE)
    words.provide_buffer("attributes", _ATTRIBUTES, _ATTRIBUTE)
    return words


def _most_entries(header: Header) -> int:
    """Return how many entries that have a name or code a unit may have."""
    return (header.end - header.first) // _LEAST_ENTRY + 2


class QuickScanner:
    """Scans the units of one file in C; a replacement of UnitScanner, which is slower.

    Args:
        sections: of the file.
    """

    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self._words = _unit_words(sections)

    def note_once(self) -> None:
        """From now on, report each type only the first time that it is found. What was found before
        this call does not count.
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
        words.describe(self._sections, header, tables)
        words["deep"] = deep
        words["wanted"] = _TYPES if types else _FUNCTIONS
        most = _most_entries(header)
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
        held = _sections_of_names(self._sections)
        scopes = ScopeNames(self._words.found("scopes", _SCOPE), held)
        for tag, scope, section, at, size, offset, length, line in struct.iter_unpack(
            "8Q", self._words.found("types", _TYPE).cast("B")
        ):
            name = _text_in(held, section, at, size)
            yield NamedType(TYPES[tag], scopes[scope], name, offset, length, line)


def _sections_of_names(sections: Sections) -> list[memoryview]:
    """Return the sections that names are in, by the numbers that dwarf.c gives them.

    Args:
        sections: of the file, unpacked as far as names are wanted.
    """
    parts = (
        b"",
        sections.info,
        sections.strings,
        sections.line_strings,
        b"",
        b"",
        sections.alternative,
    )
    return [memoryview(buffer_of(part)) for part in parts]


def _text_in(held: Sequence[memoryview], section: int, at: int, size: int) -> str:
    """Return a name that a scan in C has found.

    Args:
        held: what _sections_of_names() has returned.
        section: index in `held`.
        at: offset in the section.
        size: bytes.
    """
    return str(held[section][at : at + size], "utf-8", "backslashreplace")


def may_name_template(name: str) -> bool:
    """Whether a function's name may stand for all instances of a template: a name without template
    arguments, and not of an operator, in whose name `<` is no begin of arguments.

    Args:
        name: of the function, without scopes.
    """
    return "<" not in name and not name.startswith("operator")


class InlinedCopy(NamedTuple):
    """An inlined copy of a function, as a scan in C has found it.

    Attributes:
        offset: of its entry.
        function: offset of the entry of the function that it stands in.
        scopes: namespaces and classes around the inlined function: "geo::".
        address: link address at which it begins; None: the entry tells it otherwise.
    """

    offset: int
    function: int
    scopes: str
    address: int | None


class CopyScanner:
    """Finds the inlined copies of functions of one name in the units of a file, in C."""

    def __init__(self, sections: Sections, name: str) -> None:
        """Prepare; nothing is read yet.

        Args:
            sections: of the file.
            name: of the functions, without scopes.
        """
        self._sections = sections
        self._held = _sections_of_names(sections)
        self._words = words = _unit_words(sections)
        words.section("asked", name.encode("utf-8", "surrogatepass"))
        words["templates"] = may_name_template(name)
        words["wanted"] = _COPIES
        most = max(len(sections.info) // _LEAST_ORIGIN, 1 << 12)
        words.provide_buffer("origins", 1 << most.bit_length(), _ORIGIN)
        words.provide_buffer("scopes", _SCOPES_AROUND, _SCOPE)

    @property
    def known(self) -> int:
        """Number of entries of functions of the name that units had until now."""
        return self._words["origins_count"]

    @property
    def may_be_of_others(self) -> bool:
        """Whether the unit scanned last may have copies of functions of other units."""
        return bool(self._words["elsewhere"])

    def scan(self, header: Header, tables: tuple[bytes, bytes]) -> list[InlinedCopy] | None:
        """Return the copies in a unit of all functions of the name that are known.

        A function that only a later unit names is not known yet.

        Args:
            header: the unit's.
            tables: (its part of .debug_addr, its part of .debug_str_offsets); b"": it has none.

        Returns:
            None: the unit has something unusual, or is damaged.
        """
        words = self._words
        words.describe(self._sections, header, tables)
        words.provide_buffer("copies", _most_entries(header), _COPY)
        if not words.call("dwarf_copies"):
            return None
        scopes = ScopeNames(words.found("scopes", _SCOPE), self._held)
        rows = struct.iter_unpack("5Q", words.found("copies", _COPY).cast("B"))
        return [
            InlinedCopy(offset, function, scopes[scope], address if is_told else None)
            for offset, function, scope, is_told, address in rows
        ]


class AddressScope(NamedTuple):
    """The function and the inlined copy that an address of code is in.

    Attributes:
        start: link address at which the function is entered.
        end: link address behind the range of its code that has `start`.
        function: its name.
        block: offset of the entry of the innermost inlined copy around the address; 0: none is.
        inlined: name of the function that is inlined there; "": none is, or it has no name.
    """

    start: int
    end: int
    function: str
    block: int
    inlined: str


class PlaceScanner:
    """Finds the inlined copies around addresses of one file, in C."""

    def __init__(self, sections: Sections, name_of: Callable[[int], str]) -> None:
        """Prepare; nothing is read yet.

        Args:
            sections: of the file, unpacked.
            name_of: returns the name of the entry at an offset, "": it has none. Called for names
                that C cannot read; raises errors in DAMAGE.
        """
        self._name_of = name_of
        self._sections = sections
        self._names: dict[tuple[int, ...], str] = {}  # by the words of dwarf.c's `struct name`
        self._held = _sections_of_names(sections)
        self._words = _unit_words(sections)
        self._words["wanted"] = _COPIES

    def scan(
        self, header: Header, tables: tuple[bytes, bytes], wanted: Sequence[tuple[int, int]]
    ) -> dict[int, AddressScope]:
        """Return the places of addresses of a unit; those of which C cannot say it are left out.

        Args:
            header: the unit's.
            tables: (its part of .debug_addr, its part of .debug_str_offsets); b"": it has none.
            wanted: (offset of the entry of the function that has code at an address, the address),
                ascending.

        Returns:
            address -> its place.

        Raises:
            any error of the `name_of` given to the constructor.
        """
        words = self._words
        words.describe(self._sections, header, tables)
        words.provide_buffer("places", len(wanted), _PLACE)
        words.provide_buffer("held", _LEVELS * len(wanted), 4)
        words["places_count"] = len(wanted)
        rows = words.found("places", _PLACE)
        rows[0::_PLACE_WORDS] = array("Q", [address for _, address in wanted])
        rows[1::_PLACE_WORDS] = array("Q", [function for function, _ in wanted])
        rows[2::_PLACE_WORDS] = array("Q", bytes(8 * len(wanted)))
        found: dict[int, AddressScope] = {}
        if not words.call("dwarf_places"):
            return found
        known: dict[tuple[int, ...], AddressScope] = {}  # by the words that it is made of
        for row in struct.iter_unpack(f"{_PLACE_WORDS}Q", rows.cast("B")):
            if not row[2]:
                continue
            key = row[3:6] + row[7:]
            scope = known.get(key)
            if scope is None:
                scope = known[key] = self._scope(row)
            if scope.function:
                found[row[0]] = scope
        return found

    def _scope(self, row: tuple[int, ...]) -> AddressScope:
        """Return what an address is in.

        Args:
            row: words of dwarf.c's `struct place`.

        Raises:
            any error of the `name_of` given to the constructor.
        """
        start, end, block = row[3:6]
        names: tuple[tuple[int, ...], ...] = row[7:10], row[10:13] if block else (0, 0, 0)
        for name in names:
            if name not in self._names:
                self._names[name] = self._text(*name)
        owner, inlined = map(self._names.__getitem__, names)
        return AddressScope(start, end, owner, block, inlined)

    def _text(self, section: int, at: int, size: int) -> str:
        """Return a name; "": there is none. The arguments are the words of dwarf.c's `struct name`.

        Raises:
            any error of the `name_of` given to the constructor.
        """
        return (
            self._name_of(at) if section == _ELSEWHERE else _text_in(self._held, section, at, size)
        )


class SourceCode(NamedTuple):
    """A piece of code of a line of some source file.

    Attributes:
        start: link address of the first byte.
        line: number of the line; 0: of none.
        is_stmt: a statement begins there.
    """

    start: int
    line: int
    is_stmt: bool


class LineScanner:
    """Finds the lines of a source file in the units of one file, in C."""

    def __init__(self, sections: Sections, path: str, line: int) -> None:
        """Prepare; nothing is read yet.

        Args:
            sections: of the file, unpacked.
            path: of the source file, or the end of its path.
            line: number of the line; 0: all are wanted.
        """
        self._sections = sections
        self._words = words = _unit_words(sections)
        words.section("asked", path.encode("utf-8", "surrogateescape"))
        words.section("lines", sections.lines)
        words["line"] = line
        words.provide_buffer("rows", min(len(sections.lines) + 1, _MOST_LINES), _LINE)

    def scan(self, header: Header, tables: tuple[bytes, bytes]) -> list[SourceCode] | None:
        """Return the code of the wanted lines in a unit.

        Args:
            header: the unit's.
            tables: (its part of .debug_addr, its part of .debug_str_offsets); b"": it has none.

        Returns:
            None: the unit has something unusual, or is damaged.
        """
        words = self._words
        words.describe(self._sections, header, tables)
        if not words.call("dwarf_source"):
            return None
        rows = words.found("rows", _LINE)
        return [*map(SourceCode, rows[0::5], rows[3::5], map(bool, rows[4::5]))]


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
        name = _text_in(self._held, section, at, size)
        self[number] = made = f"{self[around]}{name}::"
        return made


def quick_scanner(sections: Sections) -> QuickScanner | None:
    """Return a scanner in C for a file's units; None where this host cannot run it."""
    return QuickScanner(sections) if sections.info and native.available() else None


def copy_scanner(sections: Sections, name: str) -> CopyScanner | None:
    """Return a scanner in C for inlined copies; None where this host cannot run it.

    Args:
        sections: of the file, unpacked.
        name: of the functions, without scopes.
    """
    return CopyScanner(sections, name) if sections.info and native.available() else None


def place_scanner(sections: Sections, name_of: Callable[[int], str]) -> PlaceScanner | None:
    """Return a scanner in C for places of addresses; None where this host cannot run it.

    Args:
        sections: of the file, unpacked.
        name_of: returns the name of the entry at an offset.
    """
    return PlaceScanner(sections, name_of) if sections.info and native.available() else None


def line_scanner(sections: Sections, path: str, line: int) -> LineScanner | None:
    """Return a scanner in C for the lines of a source file; None where this host cannot run it.

    Args:
        sections: of the file, unpacked.
        path: of the source file, or the end of its path.
        line: number of the line; 0: all are wanted.
    """
    return LineScanner(sections, path, line) if sections.lines and native.available() else None


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
