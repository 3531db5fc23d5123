"""Split DWARF: units whose entries the compiler has put into .dwo files, or a linker into a .dwp.

What stays in the program are skeleton units: their addresses, lines, and the name of the .dwo file.
Here the units of those files are put behind the program's own, so that whoever reads DWARF finds
ordinary units. Their entries keep their sizes, and so all references in them stay right; where
their tables lie now is written into a copy of their abbreviations (DW_FORM_implicit_const: the
abbreviation has the value, and the entry no byte of it). Of DWARF 5 no byte of an entry is changed;
of DWARF 4 the offsets of lists of code and locations are (split_gnu.py).

Source: DWARF 5, sections 3.1.2, 3.1.3, 7.3.2 to 7.3.5.
"""

from __future__ import annotations

import io
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import define, evolve, field, frozen
from elftools.dwarf.dwarfinfo import DebugSectionDescriptor
from elftools.elf.elffile import ELFFile

from .file import DAMAGE, contents
from .pieces import spans
from .scan import Header, Sections, headers, leb, type_headers
from .section import buffer_of
from .split_gnu import COLUMNS, FORMS, ListMover, may_be_of_gnu, number_of_unit

#: bytes of a file that is read
_LARGEST: Final = 1 << 30
#: DW_UT: kinds of units
_SKELETON, _SPLIT_COMPILE, _SPLIT_TYPE = 0x04, 0x05, 0x06
#: DW_AT: attributes of a unit's first entry that are added
_LOW_PC, _STMT_LIST, _STR_OFFSETS_BASE, _ADDR_BASE, _RNGLISTS_BASE, _LOCLISTS_BASE = (
    0x11,
    0x10,
    0x72,
    0x73,
    0x74,
    0x8C,
)
#: DW_AT: offsets into sections that nobody reads here: lines' own is replaced, macros, views of
#: lines
_UNREAD: Final = {_STMT_LIST, 0x79, 0x2137}
_IMPLICIT_CONST: Final = 0x21
#: DW_FORM: offsets into sections that are elsewhere now: strp, sec_offset, line_strp, ref_addr
_SEC_OFFSET: Final = 0x17
_INTO_SECTIONS: Final = {0x0E, _SEC_OFFSET, 0x1F, 0x10}
#: DW_SECT: number of a column in a .dwp's index -> the section
_COLUMNS: Final = {
    1: "info",
    3: "abbrev",
    4: "line",
    5: "loclists",
    6: "str_offsets",
    8: "rnglists",
}
_NAMES: Final = {*_COLUMNS.values(), *COLUMNS.values(), "str", "cu_index", "tu_index"}


@frozen
class _Contribution:
    """The contents of a .dwo file, or the part of a .dwp that came from it.

    Attributes:
        sections: name without `.debug_` and `.dwo` -> contents.
        strings: contents of .debug_str.dwo, which the units of a .dwp share.
    """

    sections: dict[str, bytes] = field(repr=False)
    strings: bytes = field(repr=False)


def join_split_units(info: Any, path: str, sections: Sections, units: Sequence[Header]) -> None:
    """Append the units of .dwo files and of the .dwp to a program's debug information.

    A unit whose file is missing, damaged, or of another build stays a skeleton: its lines are
    known, its types and variables are not.

    Args:
        info: pyelftools' DWARFInfo of the program, from which nothing has been read yet; its
            sections are replaced by longer ones.
        path: of the program; "": not known.
        sections: of the program.
        units: headers of the program's units.
    """
    skeletons = [*_skeletons(sections, units)]
    if not skeletons:
        return
    package = _package(path)
    joined = _Joined(info, sections.order)
    for header, number in skeletons:
        with suppress(*DAMAGE):
            unit = info.get_CU_at(header.offset)
            found = package.units.get(number) or _dwo_file(unit, path)
            if found is not None:
                joined.add(unit, number, found)
    for part in package.types:
        with suppress(*DAMAGE):
            joined.add_types(part)
    joined.store()


def _skeletons(sections: Sections, units: Sequence[Header]) -> Iterator[tuple[Header, bytes]]:
    """Yield (header, DWO id) of a program's skeleton units; the id is 8 bytes.

    Args:
        sections: of the program.
        units: headers of the program's units.
    """
    old = may_be_of_gnu(sections)
    for header in units:
        if header.kind == _SKELETON:
            yield header, _number(sections.info, header)
        elif old and header.version < 5:
            with suppress(*DAMAGE):
                number = number_of_unit(sections, header)
                if number is not None:
                    yield header, number


# --- where they are


def _dwo_file(unit: Any, path: str) -> _Contribution | None:
    """Read the .dwo file that a skeleton unit names.

    The first of these that exists is taken: the path at which the compiler wrote the file, and the
    name with and without its folders in the folder of the program. Whether the file is of the
    same build is not checked here, but by _Joined.add().

    Args:
        unit: the skeleton unit.
        path: path of the program; "": not known.

    Returns:
        The file's sections; None: there is no such file, or the unit names none.

    Raises:
        errors in DAMAGE: the file is damaged.
    """
    top = unit.get_top_DIE()
    name = _path_in(top, "DW_AT_dwo_name") or _path_in(top, "DW_AT_GNU_dwo_name")
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
    """Return the path that an attribute of an entry gives; "" where it has none.

    Args:
        die: the entry.
        attribute: its name, "DW_AT_dwo_name".
    """
    found = die.attributes.get(attribute)
    return "" if found is None else os.fsdecode(found.value)


def _contents(path: str) -> bytes | None:
    """Read a regular file of at most _LARGEST bytes; the path comes from a guest and may name a
    device.

    Returns:
        None: there is no such file, it is larger, or it cannot be read.
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
    """Return the sections of a .dwo or .dwp file that are used here: name without `.debug_` and
    `.dwo` -> contents. Several of .debug_info or .debug_types are joined.

    Args:
        data: contents of the file.

    Raises:
        errors in DAMAGE: the file is damaged.
    """
    found: dict[str, bytes] = {}
    for section in ELFFile(io.BytesIO(data)).iter_sections():
        name = section.name.removeprefix(".debug_").removesuffix(".dwo")
        if name in (
            "info",
            "types",
        ):  # each type unit (-fdebug-types-section) is in a section of its own
            found[name] = found.get(name, b"") + section.data()
        elif name in _NAMES:
            found.setdefault(name, section.data())
    return found


@frozen
class _Package:
    """The contents of a .dwp.

    Attributes:
        units: DWO id of a compilation unit (8 bytes) -> its part of the .dwp.
        types: the parts of type units.
    """

    units: dict[bytes, _Contribution] = field(factory=dict)
    types: list[_Contribution] = field(factory=list)


def _package(path: str) -> _Package:
    """Read a program's .dwp: `PROGRAM.dwp`, and for `PROGRAM.debug` also that of the program.

    Args:
        path: of the program; "": not known.

    Returns:
        An empty _Package where there is no .dwp, or it is damaged.
    """
    base = path.removesuffix(".debug")
    for place in dict.fromkeys((f"{path}.dwp", f"{base}.dwp")):
        data = _contents(place) if path else None
        if data is not None:
            with suppress(*DAMAGE):
                sections = _dwo_sections(data)
                mark = "<" if data[5] == 1 else ">"  # EI_DATA
                units = dict(_parts(sections, sections.get("cu_index", b""), mark))
                types = [part for _, part in _parts(sections, sections.get("tu_index", b""), mark)]
                return _Package(units, types)
    return _Package()


def _parts(
    sections: dict[str, bytes], index: bytes, mark: str
) -> Iterator[tuple[bytes, _Contribution]]:
    """Yield the units that one index of a .dwp lists, each with its part of the sections.

    Nothing is yielded where the index is empty, cut off, or of another version than 2 and 5.
    Source: DWARF 5, section 7.3.5.3: a table of hashed numbers, one of rows, the columns' sections,
    then for each row where its part of each section begins, and how many bytes it has.

    Args:
        sections: of the .dwp: name -> contents.
        index: contents of .debug_cu_index or .debug_tu_index.
        mark: the byte order as struct has it, "<" or ">".

    Yields:
        (the unit's DWO id or type signature: 8 bytes, the contents of its sections).
    """
    if not index:
        return
    strings = sections.get("str", b"")
    version, columns, units, slots = struct.unpack_from(mark + "IIII", index)
    if version != 2:  # DWARF 5 has a number of 2 bytes
        version = struct.unpack_from(mark + "H", index)[0]
    known = {2: COLUMNS, 5: _COLUMNS}.get(version)
    if known is None or 12 * slots + 4 * columns * (2 * units + 1) + 16 > len(index):
        return
    numbers = [index[at : at + 8] for at in range(16, 16 + 8 * slots, 8)]
    rows = struct.unpack_from(f"{mark}{slots}I", index, 16 + 8 * slots)
    at = 16 + 12 * slots
    names = [known.get(column) for column in struct.unpack_from(f"{mark}{columns}I", index, at)]
    starts = at + 4 * columns
    sizes = starts + 4 * columns * units
    for number, row in zip(numbers, rows, strict=True):
        if not 1 <= row <= units:
            continue
        row_at = 4 * columns * (row - 1)
        start = struct.unpack_from(f"{mark}{columns}I", index, starts + row_at)
        size = struct.unpack_from(f"{mark}{columns}I", index, sizes + row_at)
        part = {
            name: sections[name][first : first + many]
            for name, first, many in zip(names, start, size, strict=True)
            if name in sections
        }
        yield number, _Contribution(part, strings)


# --- joining


@define
class _GrownSection:
    """A section of the program, and data that is appended to it.

    Attributes:
        chunks: its contents, in order.
        size: bytes of all chunks.
    """

    chunks: list[bytes]
    size: int

    def append(self, data: bytes) -> int:
        """Append data. Return the offset at which it begins."""
        at = self.size
        self.chunks.append(data)
        self.size += len(data)
        return at


class _Joined:
    """The sections of a program, to which those of its split units are appended.

    Args:
        info: pyelftools' DWARFInfo of the program.
        order: the byte order, "little" or "big".
    """

    def __init__(self, info: Any, order: Any) -> None:
        self._info = info
        self._order = order
        self._grown: dict[str, _GrownSection] = {}
        self._strings: dict[
            int, tuple[bytes, int]
        ] = {}  # id of strings -> (they, where they begin)
        self._known: dict[tuple[str, bytes], int] = {}  # (section, data) -> where the data begin

    def add(self, skeleton: Any, number: bytes, part: _Contribution) -> None:
        """Append the split unit of a skeleton, and the type units that come with it.

        Args:
            skeleton: the skeleton unit, pyelftools' view.
            number: its DWO id, 8 bytes.
            part: sections of the .dwo file, or the unit's part of the .dwp.

        Raises:
            errors in DAMAGE: it is damaged, of another build, or refers to sections by offsets.
        """
        units = [*_units(part, self._order)]
        own = [unit for unit in units if unit.kind == _SPLIT_COMPILE and unit.number == number]
        if not own:
            raise ValueError("the .dwo file is of another build")
        self._add(skeleton, part, own + [unit for unit in units if unit.kind == _SPLIT_TYPE])

    def add_types(self, part: _Contribution) -> None:
        """Append the type units in a part of a .dwp.

        Args:
            part: sections that have them.

        Raises:
            errors in DAMAGE: it is damaged, or refers to sections by offsets.
        """
        units = [unit for unit in _units(part, self._order) if unit.kind == _SPLIT_TYPE]
        if units:
            self._add(None, part, units)

    def _add(self, skeleton: Any, part: _Contribution, units: list[_SplitUnit]) -> None:
        """Append units, and the tables that they need. If tables of abbreviations cannot be used,
        nothing is appended.

        Args:
            skeleton: the skeleton unit; None for type units of a .dwp.
            part: the sections that the units come from.
            units: at least one.

        Raises:
            errors in DAMAGE: they are damaged, or refer to sections by offsets.
        """
        tables = {}  # (offset of abbreviations, number of the first entry's) -> their parts
        for unit in units:
            key = unit.header.abbrev, leb(unit.sections.info, unit.header.first)[0]
            tables[key] = _split_table(part.sections["abbrev"], *key, unit.header.version)
        moved = self._moved_units(skeleton, part, units)
        bases = self._add_tables(skeleton, part, units[0].header)
        lines = {kind: self._lines(skeleton, part, kind) for kind in {unit.kind for unit in units}}
        placed: dict[tuple[int, int, int], int] = {}
        for unit, data in zip(units, moved, strict=True):
            header = unit.header
            key = header.abbrev, leb(unit.sections.info, header.first)[0]
            own = (*key, unit.kind)
            if own not in placed:
                before, behind = tables[key]
                constants = _constants({**bases, **lines[unit.kind]})
                placed[own] = self._append("abbrev", before + constants + behind)
            table = placed[own]
            # behind the length (4 or 12 bytes) and the version; in DWARF 5 also kind and bytes of
            # an address
            at = (4 if header.word == 4 else 12) + (4 if header.version == 5 else 2)
            data[at : at + header.word] = table.to_bytes(header.word, self._order)
            place = self._append(unit.section, bytes(data))
            if unit.kind == _SPLIT_COMPILE:
                self._list_code(skeleton, place, header)

    def _moved_units(
        self, skeleton: Any, part: _Contribution, units: list[_SplitUnit]
    ) -> list[bytearray]:
        """Return a copy of each unit's bytes; in DWARF 4 with new offsets of its lists.

        In DWARF 4 the lists of locations are appended to the program's .debug_loc.

        Args:
            skeleton: the skeleton unit; None for type units of a .dwp.
            part: the sections that the units come from.
            units: at least one.
        """
        entries = [
            bytearray(unit.sections.info[unit.header.offset : unit.header.end]) for unit in units
        ]
        if skeleton is None or units[0].header.version == 5:
            return entries
        top = skeleton.get_top_DIE().attributes
        first = _number_in(top, "DW_AT_GNU_addr_base")
        addresses = self._info.debug_addr_sec
        mover = ListMover(
            b"" if addresses is None else contents(addresses)[first:],
            part.sections.get("loc", b""),
            _number_in(top, "DW_AT_GNU_ranges_base"),
            self._order,
            units[0].header.address,
            _number_in(top, "DW_AT_low_pc"),
        )
        lists = bytearray()
        at = self._append("loc", b"")
        for unit, data in zip(units, entries, strict=True):
            if unit.kind == _SPLIT_COMPILE:
                mover.move(unit.sections, unit.header, data, lists, at)
        self._append("loc", bytes(lists))
        return entries

    def store(self) -> None:
        """Replace pyelftools' sections by those that have grown. Called once, at the end."""
        for name, grown in self._grown.items():
            data = b"".join(map(buffer_of, grown.chunks))
            section = DebugSectionDescriptor(io.BytesIO(data), f".debug_{name}", None, len(data), 0)
            setattr(self._info, f"debug_{name}_sec", section)

    def _append(self, name: str, data: bytes) -> int:
        """Append data to a section of the program, and return the offset at which it begins.

        Args:
            name: of the section, without `.debug_`.
            data: the bytes.
        """
        grown = self._grown.get(name)
        if grown is None:
            section = getattr(self._info, f"debug_{name}_sec")
            own = b"" if section is None else contents(section)
            grown = self._grown[name] = _GrownSection([own], len(own))
        return grown.append(data)

    def _add_tables(self, skeleton: Any, part: _Contribution, header: Header) -> dict[int, int]:
        """Append the tables of strings and lists of a contribution to the program's.

        Args:
            skeleton: the skeleton unit; None for type units of a .dwp.
            part: the sections that have the tables.
            header: of one of the units.

        Returns:
            DW_AT (as DW_AT_str_offsets_base) -> the value that the unit's first entry is to have.
        """
        top = {} if skeleton is None else skeleton.get_top_DIE().attributes
        bases = {}
        for name in ("DW_AT_addr_base", "DW_AT_GNU_addr_base"):
            if name in top:
                bases[_ADDR_BASE] = top[name].value
        if "DW_AT_low_pc" in top:
            bases[_LOW_PC] = top["DW_AT_low_pc"].value
        # the header: length, version; in DWARF 4 there is none
        length = 4 if header.word == 4 else 12
        before = length + 4 if header.version == 5 else 0
        if part.sections.get("str_offsets"):
            moved = self._moved_strings(part, before, header.word)
            bases[_STR_OFFSETS_BASE] = self._placed("str_offsets", moved) + before
        # behind the header: length, version, bytes of an address and of a segment, number of
        # offsets
        if part.sections.get("rnglists"):
            bases[_RNGLISTS_BASE] = self._append("rnglists", part.sections["rnglists"]) + length + 8
        if part.sections.get("loclists"):
            bases[_LOCLISTS_BASE] = self._append("loclists", part.sections["loclists"]) + length + 8
        return bases

    def _lines(self, skeleton: Any, part: _Contribution, kind: int) -> dict[int, int]:
        """Append a table of file names, without lines, to the program's .debug_line.

        Args:
            skeleton: the skeleton unit, whose files a compilation unit uses; None for types.
            part: the sections whose files a type unit uses.
            kind: DW_UT of the units.

        Returns:
            DW_AT_stmt_list -> the table's offset; {} where there is no table.
        """
        files = part.sections.get("line")
        if skeleton is not None and (kind == _SPLIT_COMPILE or not files):
            top = skeleton.get_top_DIE().attributes
            if "DW_AT_stmt_list" in top:
                files = self._files(top["DW_AT_stmt_list"].value)
        return {_STMT_LIST: self._placed("line", files)} if files else {}

    def _placed(self, name: str, data: bytes) -> int:
        """Return the offset of data in a section; append the data the first time.

        Args:
            name: of the section, without `.debug_`.
            data: the bytes; the same bytes have the same offset.
        """
        key = name, data
        if key not in self._known:
            self._known[key] = self._append(name, data)
        return self._known[key]

    def _files(self, at: int) -> bytes:
        """Return the header of a line table, with its length, as a table that has files and no
        lines.

        The lines are left out: the skeleton has them. Source: DWARF 5 and DWARF 4, section 6.2.4.

        Args:
            at: offset of the table in the program's .debug_line.
        """
        data: bytes = contents(self._info.debug_line_sec)
        word, length = (8, 12) if data[at : at + 4] == b"\xff" * 4 else (4, 4)
        behind_length = at + length
        version = int.from_bytes(data[behind_length : behind_length + 2], self._order)
        # behind the version, and in DWARF 5 bytes of an address, bytes of a segment
        header = behind_length + (4 if version == 5 else 2)
        size = int.from_bytes(data[header : header + word], self._order)
        kept = data[behind_length : header + word + size]
        return _length_of(kept, word, self._order) + kept

    def _moved_strings(self, part: _Contribution, header: int, word: int) -> bytes:
        """Append a contribution's strings once, and return its table of offsets, adjusted to their
        place.

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
        """Append tables to .debug_aranges: the skeleton's code, listed for the split unit and the
        skeleton.

        Both are listed, since readers take a unit that the section names to be listed completely.

        Args:
            skeleton: the skeleton unit.
            place: offset of the split unit in the program's .debug_info.
            header: of the split unit, where it came from.
        """
        order, word, size = self._order, header.word, header.address
        code = [*spans(skeleton.get_top_DIE(), skeleton)]
        pairs = [number for start, end in code for number in (start, end - start)] + [0, 0]
        listed = b"".join(number.to_bytes(size, order) for number in pairs)
        length = 4 if word == 4 else 12
        padding = b"\0" * (-(length + 4 + word) % (2 * size))
        for offset in (skeleton.cu_offset, place):
            body = (
                (2).to_bytes(2, order)
                + offset.to_bytes(word, order)
                + bytes([size, 0])
                + padding
                + listed
            )
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
    """Return the DWO id of a skeleton or split unit of DWARF 5: the last 8 bytes of its header.

    Args:
        data: the section that has the unit.
        header: the unit's.
    """
    return data[header.first - 8 : header.first]


def _number_in(attributes: Any, name: str) -> int:
    """Return the value of a unit's attribute, an integer; 0 where there is none.

    Args:
        attributes: name -> attribute, as pyelftools has them.
        name: of the attribute.
    """
    return int(attributes[name].value) if name in attributes else 0


@frozen
class _SplitUnit:
    """A unit of a .dwo file or of a part of a .dwp.

    Attributes:
        header: its header; offsets are in `sections.info`.
        kind: DW_UT.
        section: "info", or "types" of DWARF 4.
        number: its DWO id, 8 bytes; b"" of types.
        sections: those that it is in; `info` is the section that has the unit.
    """

    header: Header
    kind: int
    section: str
    number: bytes
    sections: Sections = field(repr=False)


def _units(part: _Contribution, order: Any) -> Iterator[_SplitUnit]:
    """Yield the split units of a file: those of .debug_info in their order, then the type units of
    .debug_types. Units of other kinds are left out.

    Args:
        part: the sections of a .dwo file, or of one unit of a .dwp.
        order: "little" or "big", the byte order.
    """
    info, types, abbrev = (part.sections.get(name, b"") for name in ("info", "types", "abbrev"))
    sections = Sections(info, abbrev, b"", b"", order, types)
    for header in headers(sections):
        if header.kind == _SPLIT_COMPILE:
            yield _SplitUnit(header, header.kind, "info", _number(info, header), sections)
        elif header.kind == _SPLIT_TYPE:
            yield _SplitUnit(header, header.kind, "info", b"", sections)
        elif header.version < 5:
            number = number_of_unit(sections, header)
            if number is not None:
                yield _SplitUnit(header, _SPLIT_COMPILE, "info", number, sections)
    in_types = evolve(sections, info=types)
    for header in type_headers(sections):
        yield _SplitUnit(header, _SPLIT_TYPE, "types", b"", in_types)


def _split_table(data: bytes, at: int, first: int, version: int) -> tuple[bytes, bytes]:
    """Return a table of abbreviations in two parts; between them attributes of one can be added.

    Args:
        data: contents of .debug_abbrev.
        at: offset of the table.
        first: number of the abbreviation that attributes are to be added to.
        version: of DWARF; forms of version 4 become those that version 5 has for the same.

    Returns:
        (the bytes up to the end of that abbreviation's attributes, the bytes from there on).

    Raises:
        ValueError: there is none of this number, or entries have offsets into sections.
        IndexError: the table is damaged.
    """
    refused = _INTO_SECTIONS if version == 5 else _INTO_SECTIONS - {_SEC_OFFSET}
    out = bytearray()
    middle = 0
    while True:
        start = at
        code, at = leb(data, at)
        if not code:
            break
        _, at = leb(data, at)
        at += 1  # whether there are entries in it
        out += data[start:at]
        while True:
            start = at
            name, at = leb(data, at)
            behind_name = at
            form, at = leb(data, at)
            behind_form = at
            if form == _IMPLICIT_CONST:
                _, at = leb(data, at)
            if not name and not form:
                break
            if form in refused and name not in _UNREAD:
                raise ValueError(f"attribute {name:#x} is an offset into a section")
            form = FORMS.get(form, form) if version < 5 else form
            out += data[start:behind_name] + _leb_of(form) + data[behind_form:at]
        if code == first:
            middle = len(out)
        out += data[start:at]
    if not middle:
        raise ValueError("the first entry has no abbreviation")
    return bytes(out[:middle]), bytes(out[middle:]) + b"\0"


def _constants(values: dict[int, int]) -> bytes:
    """Return attributes with constant values, as bytes of an abbreviation (DW_FORM_implicit_const).

    Args:
        values: DW_AT -> value.
    """
    return b"".join(
        _leb_of(name) + _leb_of(_IMPLICIT_CONST) + _leb_of(value, signed=True)
        for name, value in values.items()
    )


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
