"""Split DWARF 5: units whose entries the compiler has put into .dwo files, or a linker into a .dwp.

What stays in the program are skeleton units: their addresses, lines, and the name of the .dwo file.
Here the units of those files are put behind the program's own, so that whoever reads DWARF finds
ordinary units. No byte of their entries is changed, and so all references in them stay right; where
their tables lie now is written into a copy of their abbreviations (DW_FORM_implicit_const: the
abbreviation has the value, and the entry no byte of it).

Source: DWARF 5, sections 3.1.2, 3.1.3, 7.3.2 to 7.3.5.
"""

from __future__ import annotations

import io
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from attrs import define, field, frozen
from elftools.dwarf.dwarfinfo import DebugSectionDescriptor
from elftools.elf.elffile import ELFFile

from .file import DAMAGE
from .pieces import spans
from .scan import Header, Sections, headers, leb

#: bytes of a file that is read
_LARGEST: Final = 1 << 30
#: DW_UT: kinds of units
_SKELETON, _SPLIT_COMPILE, _SPLIT_TYPE = 0x04, 0x05, 0x06
#: DW_AT: attributes of a unit's first entry that are added
_LOW_PC, _STMT_LIST, _STR_OFFSETS_BASE, _ADDR_BASE, _RNGLISTS_BASE, _LOCLISTS_BASE = (
    0x11, 0x10, 0x72, 0x73, 0x74, 0x8C)
#: DW_AT: offsets into sections that nobody reads here: lines' own is replaced, macros, views of lines
_UNREAD: Final = {_STMT_LIST, 0x79, 0x2137}
_IMPLICIT_CONST: Final = 0x21
#: DW_FORM: offsets into sections that are elsewhere now: strp, sec_offset, line_strp, ref_addr
_INTO_SECTIONS: Final = {0x0E, 0x17, 0x1F, 0x10}
#: DW_SECT: number of a column in a .dwp's index -> the section
_COLUMNS: Final = {1: "info", 3: "abbrev", 4: "line", 5: "loclists", 6: "str_offsets", 8: "rnglists"}
_NAMES: Final = (*_COLUMNS.values(), "str")


@frozen
class _Contribution:
    """The contents of a .dwo file, or the part of a .dwp that came from it.

    Attributes:
        sections: name without `.debug_` and `.dwo` -> contents.
        strings: contents of .debug_str.dwo, which the units of a .dwp share.
    """

    sections: dict[str, bytes] = field(repr=False)
    strings: bytes = field(repr=False)


def join_split_units(info: Any, path: str, sections: Sections) -> None:
    """Put the units of .dwo files and of the .dwp behind a program's own.

    A unit whose file is missing, damaged, or of another build stays a skeleton: its lines are
    known, its types and variables are not.

    Args:
        info: pyelftools' view of the program, which nobody has read of yet.
        path: of the program; "": not known.
        sections: of the program.
    """
    skeletons = [h for h in headers(sections) if h.kind == _SKELETON]
    if not skeletons:
        return
    package = _package(path)
    joined = _Joined(info, sections.order)
    for header in skeletons:
        with suppress(*DAMAGE):
            unit = info.get_CU_at(header.offset)
            number = _number(sections.info, header)
            found = package.get(number) or _dwo_file(unit, path)
            if found is not None:
                joined.add(unit, number, found)
    joined.store()


# --- where they are


def _dwo_file(unit: Any, path: str) -> _Contribution | None:
    """Return what the .dwo file of a skeleton unit has; None where it is not found.

    It is looked for where the compiler has written it, then beside the program.
    """
    top = unit.get_top_DIE()
    name = _path_in(top, "DW_AT_dwo_name")
    if not name:
        return None
    home = os.path.dirname(os.path.realpath(path)) if path else ""
    places = [os.path.join(_path_in(top, "DW_AT_comp_dir"), name)]
    if home:
        places += [os.path.join(home, name), os.path.join(home, os.path.basename(name))]
    for place in places:
        data = _contents(place)
        if data is not None:
            sections = _dwo_sections(data)
            return _Contribution(sections, sections.pop("str", b""))
    return None


def _path_in(die: Any, attribute: str) -> str:
    found = die.attributes.get(attribute)
    return "" if found is None else os.fsdecode(found.value)


def _contents(path: str) -> bytes | None:
    """Return a file's contents; None where there is none that can be read.

    The name is a guest's, who may have written a pipe's or a device's.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            return None
        with open(path, "rb") as file:
            return file.read(_LARGEST)
    except (OSError, ValueError):
        return None


def _dwo_sections(data: bytes) -> dict[str, bytes]:
    """Return the sections of a .dwo or .dwp file: name without `.debug_` and `.dwo` -> contents."""
    found: dict[str, bytes] = {}
    for section in ELFFile(io.BytesIO(data)).iter_sections():
        name = section.name.removeprefix(".debug_").removesuffix(".dwo")
        if name == "info":  # each type unit (-fdebug-types-section) is in a section of its own
            found[name] = found.get(name, b"") + section.data()
        elif name in _NAMES or name == "cu_index":
            found.setdefault(name, section.data())
    return found


def _package(path: str) -> dict[bytes, _Contribution]:
    """Return what a program's .dwp has: the number of a unit -> its part; empty where there is none.

    It is `PROGRAM.dwp`, and for `PROGRAM.debug` also that of the program.
    """
    base = path.removesuffix(".debug")
    for place in dict.fromkeys((f"{path}.dwp", f"{base}.dwp")):
        data = _contents(place) if path else None
        if data is not None:
            with suppress(*DAMAGE):
                return dict(_parts(data))
    return {}


def _parts(data: bytes) -> Iterator[tuple[bytes, _Contribution]]:
    """Yield (number of a unit, its part) of a .dwp.

    Source: DWARF 5, section 7.3.5.3: a table of hashed numbers, one of rows, the columns' sections,
    then for each row where its part of each section begins, and how many bytes it has.
    """
    sections = _dwo_sections(data)
    strings = sections.get("str", b"")
    index = sections.get("cu_index", b"")
    mark = "<" if data[5] == 1 else ">"  # EI_DATA
    version, columns, units, slots = struct.unpack_from(mark + "HxxIII", index)
    if version != 5 or 12 * slots + 4 * columns * (2 * units + 1) + 16 > len(index):
        return
    numbers = [index[at:at + 8] for at in range(16, 16 + 8 * slots, 8)]
    rows = struct.unpack_from(f"{mark}{slots}I", index, 16 + 8 * slots)
    at = 16 + 12 * slots
    names = [_COLUMNS.get(column) for column in struct.unpack_from(f"{mark}{columns}I", index, at)]
    starts = at + 4 * columns
    sizes = starts + 4 * columns * units
    for number, row in zip(numbers, rows, strict=True):
        if not 1 <= row <= units:
            continue
        row_at = 4 * columns * (row - 1)
        start = struct.unpack_from(f"{mark}{columns}I", index, starts + row_at)
        size = struct.unpack_from(f"{mark}{columns}I", index, sizes + row_at)
        part = {
            name: sections[name][first:first + many]
            for name, first, many in zip(names, start, size, strict=True)
            if name in sections
        }
        yield number, _Contribution(part, strings)


# --- joining


@define
class _GrownSection:
    """A section of the program, and what is put behind it.

    Attributes:
        chunks: its contents, in order.
        size: bytes of all.
    """

    chunks: list[bytes]
    size: int

    def append(self, data: bytes) -> int:
        """Put data behind it. Return the offset at which it begins."""
        at = self.size
        self.chunks.append(data)
        self.size += len(data)
        return at


class _Joined:
    """The sections of a program, with those of its split units behind them."""

    def __init__(self, info: Any, order: Any) -> None:
        self._info = info
        self._order = order
        self._grown: dict[str, _GrownSection] = {}
        self._strings: dict[int, tuple[bytes, int]] = {}  # id of strings -> (they, where they begin)

    def add(self, skeleton: Any, number: bytes, part: _Contribution) -> None:
        """Append the units of a contribution.

        Args:
            skeleton: the program's unit for them.
            number: the 8 bytes that a skeleton and its split unit have in common.
            part: what the .dwo file has.

        Raises:
            what is in DAMAGE: it is damaged, of another build, or refers to sections by offsets.
        """
        data = part.sections["info"]
        units = [
            (header, bytearray(data[header.offset:header.end]))
            for header in headers(Sections(data, b"", b"", b"", self._order))
        ]
        split = [
            (header, unit)
            for header, unit in units
            if header.kind == _SPLIT_TYPE or (header.kind == _SPLIT_COMPILE and _number(data, header) == number)
        ]
        if all(header.kind != _SPLIT_COMPILE for header, _ in split):
            raise ValueError("the .dwo file is of another build")
        tables = {}  # (offset of abbreviations, number of the first entry's) -> their parts
        for header, _ in split:
            key = header.abbrev, leb(data, header.first)[0]
            tables[key] = _split_table(part.sections["abbrev"], *key)
        bases = _constants(self._add_tables(skeleton, part, units[0][0].word))
        abbreviations = {
            key: self._append("abbrev", before + bases + behind) for key, (before, behind) in tables.items()
        }
        for header, unit in split:
            table = abbreviations[header.abbrev, leb(data, header.first)[0]]
            # behind the length (4 or 12 bytes), version, kind and bytes of an address
            at = 8 if header.word == 4 else 16
            unit[at:at + header.word] = table.to_bytes(header.word, self._order)
            place = self._append("info", bytes(unit))
            if header.kind == _SPLIT_COMPILE:
                self._list_code(skeleton, place, header)

    def store(self) -> None:
        """Give pyelftools the sections that have grown."""
        for name, grown in self._grown.items():
            data = b"".join(grown.chunks)
            section = DebugSectionDescriptor(io.BytesIO(data), f".debug_{name}", None, len(data), 0)
            setattr(self._info, f"debug_{name}_sec", section)

    def _append(self, name: str, data: bytes) -> int:
        """Put data behind a section. Return the offset at which it begins."""
        grown = self._grown.get(name)
        if grown is None:
            section = getattr(self._info, f"debug_{name}_sec")
            own = b"" if section is None else section.stream.getvalue()
            grown = self._grown[name] = _GrownSection([own], len(own))
        return grown.append(data)

    def _add_tables(self, skeleton: Any, part: _Contribution, word: int) -> dict[int, int]:
        """Put the tables of a contribution behind the program's.

        Args:
            skeleton: the program's unit for it.
            part: the contribution.
            word: bytes of an offset.

        Returns:
            DW_AT of a unit's first entry -> its value.
        """
        length = 4 if word == 4 else 12
        top = skeleton.get_top_DIE().attributes
        bases = {}
        if "DW_AT_addr_base" in top:
            bases[_ADDR_BASE] = top["DW_AT_addr_base"].value
        if "DW_AT_low_pc" in top:
            bases[_LOW_PC] = top["DW_AT_low_pc"].value
        files = part.sections.get("line")
        if not files and "DW_AT_stmt_list" in top:
            files = self._files(top["DW_AT_stmt_list"].value)
        if files:
            bases[_STMT_LIST] = self._append("line", files)
        if part.sections.get("str_offsets"):
            moved = self._moved_strings(part, length + 4, word)
            bases[_STR_OFFSETS_BASE] = self._append("str_offsets", moved) + length + 4
        # behind the header: length, version, bytes of an address and of a segment, number of offsets
        if part.sections.get("rnglists"):
            bases[_RNGLISTS_BASE] = self._append("rnglists", part.sections["rnglists"]) + length + 8
        if part.sections.get("loclists"):
            bases[_LOCLISTS_BASE] = self._append("loclists", part.sections["loclists"]) + length + 8
        return bases

    def _files(self, at: int) -> bytes:
        """Return a line table's files without its lines, which the skeleton has already: its header.

        Args:
            at: offset of the table in the program's .debug_line.

        Source: DWARF 5, section 6.2.4.
        """
        data: bytes = self._info.debug_line_sec.stream.getvalue()
        word, length = (8, 12) if data[at:at + 4] == b"\xff" * 4 else (4, 4)
        behind_length = at + length
        header = behind_length + 4  # version, bytes of an address, bytes of a segment
        size = int.from_bytes(data[header:header + word], self._order)
        kept = data[behind_length:header + word + size]
        return _length_of(kept, word, self._order) + kept

    def _moved_strings(self, part: _Contribution, header: int, word: int) -> bytes:
        """Return a table of strings' offsets that finds them behind the program's.

        Args:
            part: whose table it is.
            header: bytes of the table's header.
            word: bytes of an offset.
        """
        strings = part.strings
        if id(strings) not in self._strings:
            self._strings[id(strings)] = strings, self._append("str", strings)
        start = self._strings[id(strings)][1]
        data = part.sections["str_offsets"]
        many = (len(data) - header) // word
        form = f"{'<' if self._order == 'little' else '>'}{many}{'I' if word == 4 else 'Q'}"
        offsets = struct.unpack_from(form, data, header)
        return data[:header] + struct.pack(form, *[start + offset for offset in offsets])

    def _list_code(self, skeleton: Any, place: int, header: Header) -> None:
        """Say in .debug_aranges that the code of a skeleton is a split unit's as well.

        Both are listed, as a table that knows one of them is not asked for the other.

        Args:
            skeleton: the program's unit.
            place: offset of the split unit.
            header: of the split unit, where it came from.
        """
        order, word, size = self._order, header.word, header.address
        code = [*spans(skeleton.get_top_DIE(), skeleton)]
        pairs = [number for start, end in code for number in (start, end - start)] + [0, 0]
        listed = b"".join(number.to_bytes(size, order) for number in pairs)
        length = 4 if word == 4 else 12
        padding = b"\0" * (-(length + 4 + word) % (2 * size))
        for offset in (skeleton.cu_offset, place):
            body = (2).to_bytes(2, order) + offset.to_bytes(word, order) + bytes([size, 0]) + padding + listed
            self._append("aranges", _length_of(body, word, order) + body)


def _length_of(body: bytes, word: int, order: Any) -> bytes:
    """Return the length that stands before a unit or a table.

    Args:
        body: what follows.
        word: bytes of an offset: 4, or 8 in the format of 64 bits.
        order: "little" or "big".
    """
    told = len(body).to_bytes(word, order)
    return told if word == 4 else b"\xff" * 4 + told


def _number(data: bytes, header: Header) -> bytes:
    """Return the 8 bytes that a skeleton and its split unit have in common: the end of the header."""
    return data[header.first - 8:header.first]


def _split_table(data: bytes, at: int, first: int) -> tuple[bytes, bytes]:
    """Return a unit's abbreviations in two parts, between which attributes of one can be added.

    Args:
        data: .debug_abbrev.
        at: offset of the unit's.
        first: number of the one that is added to.

    Raises:
        ValueError: there is none of this number, or entries have offsets into sections.
        IndexError: they are damaged.
    """
    start = at
    middle = 0
    while True:
        code, at = leb(data, at)
        if not code:
            break
        _, at = leb(data, at)
        at += 1  # whether there are entries in it
        while True:
            end = at
            name, at = leb(data, at)
            form, at = leb(data, at)
            if form == _IMPLICIT_CONST:
                _, at = leb(data, at)
            if not name and not form:
                break
            if form in _INTO_SECTIONS and name not in _UNREAD:
                raise ValueError(f"attribute {name:#x} is an offset into a section")
        if code == first:
            middle = end
    if not middle:
        raise ValueError("the first entry has no abbreviation")
    return data[start:middle], data[middle:at]


def _constants(values: dict[int, int]) -> bytes:
    """Return attributes, as an abbreviation has them whose values are in it (signed LEB128)."""
    return b"".join(_leb_of(name) + _leb_of(_IMPLICIT_CONST) + _leb_of(value, signed=True)
                    for name, value in values.items())


def _leb_of(number: int, signed: bool = False) -> bytes:
    """Return a number that is not negative as LEB128.

    Args:
        number: the number.
        signed: True for signed LEB128, where a bit of the last byte is the sign.
    """
    out = bytearray()
    while number >= (0x40 if signed else 0x80):
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
