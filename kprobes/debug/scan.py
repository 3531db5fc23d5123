"""Passes over a unit's entries without making objects: which functions have code, which types
exist.

pyelftools takes some 20 microseconds an entry; a file has hundreds of thousands. This skips entries
that are not asked for by the sizes of their attributes.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, Final, Literal, NamedTuple, overload

from attrs import define, evolve, field, frozen

#: what global variables have before the name, which no type can have
VARIABLE: Final = "="
#: DW_TAG: of types and variables that have names people ask for -> what C writes before the name
TYPES: Final = {
    0x13: "struct ",
    0x02: "struct ",
    0x17: "union ",
    0x04: "enum ",
    0x16: "",
    0x24: "",
    0x34: VARIABLE,
}
_SUBPROGRAM: Final = 0x2E
_MEMBER: Final = 0x0D  #: static members of DWARF 4 are declared as members
_VARIABLE: Final = 0x34
_CODE: Final = {_SUBPROGRAM, 0x0B}  #: functions and blocks, in which types and functions may be
#: namespace, structure, class, union, module: what functions and types may be in
_SCOPES: Final = {0x39, 0x13, 0x02, 0x17, 0x1E}
#: DW_AT: attributes that are looked at
_SIBLING, _NAME, _LOW, _HIGH, _DECLARATION, _RANGES, _BYTES, _LINE = (
    0x01,
    0x03,
    0x11,
    0x12,
    0x3C,
    0x55,
    0x0B,
    0x3B,
)
_SPECIFICATION: Final = 0x47
_ORIGIN: Final = 0x31  #: DW_AT_abstract_origin
#: DW_FORM of references to entries of other units: ref_addr, ref_sup4, ref_sup8, ref_sig8,
#: GNU_ref_alt
_REFERENCES_OUT: Final = {0x10, 0x1C, 0x24, 0x20, 0x1F20}
_WANTED: Final = {
    _SIBLING,
    _NAME,
    _LOW,
    _HIGH,
    _DECLARATION,
    _RANGES,
    _BYTES,
    _LINE,
    _SPECIFICATION,
}
_INDIRECT, _IMPLICIT = 0x16, 0x21
#: DW_FORM: bytes of those that always have as many
_FIXED: Final = {
    0x05: 2,
    0x06: 4,
    0x07: 8,
    0x0B: 1,
    0x0C: 1,
    0x11: 1,
    0x12: 2,
    0x13: 4,
    0x14: 8,
    0x19: 0,
    0x1C: 4,
    0x1E: 16,
    0x20: 8,
    0x21: 0,
    0x24: 8,
    0x25: 1,
    0x26: 2,
    0x27: 3,
    0x28: 4,
    0x29: 1,
    0x2A: 2,
    0x2B: 3,
    0x2C: 4,
}
#: of as many bytes as an offset has: strp, sec_offset, strp_sup, line_strp, GNU_ref_alt,
#: GNU_strp_alt
_OFFSETS: Final = {0x0E, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21}
#: LEB128: sdata, udata, ref_udata, strx, addrx, loclistx, rnglistx, GNU_addr_index, GNU_str_index
_LEB: Final = {0x0D, 0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02}
_BLOCKS: Final = {0x0A: 1, 0x03: 2, 0x04: 4}  #: bytes of a block's length
_BLOCK, _EXPRLOC, _STRING, _ADDRESS, _REF_ADDR, _SDATA = 0x09, 0x18, 0x08, 0x01, 0x10, 0x0D
_ADDRX: Final = {0x1B, 0x1F01, 0x29, 0x2A, 0x2B, 0x2C}
_STRX: Final = {0x1A, 0x1F02, 0x25, 0x26, 0x27, 0x28}
_LONG: Final = 0xFFFF_FFFF  #: length of a unit in the 64-bit format
_USUAL_UNITS: Final = {0x01, 0x03}  #: DW_UT: compile, partial: nothing is behind the header
_MOST_DEEP: Final = 1 << 16


@frozen
class Sections:
    """The sections of a file that scanning reads.

    Attributes:
        info, abbrev, strings, line_strings: the sections' bytes.
        order: "little" or "big".
        types: of .debug_types (DWARF 4).
        ranges: of .debug_ranges (before DWARF 5).
        range_lists: of .debug_rnglists (DWARF 5).
        lines: of .debug_line.
        alternative: of .debug_str of the alternative file (dwz -m); empty without one.
    """

    info: bytes = field(repr=False)
    abbrev: bytes = field(repr=False)
    strings: bytes = field(repr=False)
    line_strings: bytes = field(repr=False)
    order: Any
    types: bytes = field(repr=False, default=b"")
    ranges: bytes = field(repr=False, default=b"")
    range_lists: bytes = field(repr=False, default=b"")
    lines: bytes = field(repr=False, default=b"")
    alternative: bytes = field(repr=False, default=b"")


@frozen
class Header:
    """A unit's header.

    Attributes:
        offset: of the unit in its section.
        first: offset of its first entry.
        end: offset behind it.
        version: of DWARF.
        abbrev: offset of its abbreviations.
        address: bytes of an address.
        word: bytes of an offset.
        kind: DW_UT of the unit; 0 before DWARF 5.
    """

    offset: int
    first: int
    end: int
    version: int
    abbrev: int
    address: int
    word: int
    kind: int


class NamedType(NamedTuple):
    """A type's definition, or a global variable's.

    Attributes:
        tag: what C writes before the name: "struct ", or ""; VARIABLE before a variable's.
        scopes: namespaces and classes around it: "geo::".
        name: of the type.
        offset: of its entry.
        size: bytes; 0 where it is not told.
        line: of its declaration; 0 where it is not told.
    """

    tag: str
    scopes: str
    name: str
    offset: int
    size: int
    line: int


@define
class UnitContents:
    """The functions and types of a unit.

    Attributes:
        functions: (start, end, offset of the entry), link addresses; (0, 0, offset) of one whose
            code is a list of ranges.
        types: definitions of types and global variables that have names.
    """

    functions: list[tuple[int, int, int]] = field(factory=list)
    types: list[NamedType] = field(factory=list)


@frozen
class _Shape:
    """A decoded abbreviation: what entries with its number look like.

    Attributes:
        tag: DW_TAG.
        children: True where entries within this one follow.
        size: bytes of all attributes; -1: they differ, and each attribute has to be skipped.
        attributes: (DW_AT, DW_FORM, constant in the abbreviation) of each.
        interesting: True where an entry has to be looked at, and cannot just be skipped.
    """

    tag: int
    children: bool
    size: int
    attributes: tuple[tuple[int, int, int], ...]
    interesting: bool


class UnitScanner:
    """Scans the units of one file, in Python; decodes each table of abbreviations once.

    Args:
        sections: of the file.
    """

    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self._shapes: dict[tuple[int, int, int, int], dict[int, _Shape]] = {}

    def scan(
        self,
        header: Header,
        address: Callable[[int], int],
        text: Callable[[int], bytes],
        deep: bool = False,
    ) -> UnitContents:
        """Return the functions and types of a unit.

        Args:
            header: the unit's.
            address: index in the unit's table of addresses -> the address.
            text: index in the unit's table of strings -> the string.
            deep: True: also what stands within functions: nested functions, and types of their own.

        Raises:
            IndexError, ValueError, struct.error: the file is damaged.
        """
        return _Walk(self._sections, header, self._of(header), address, text, deep).run()

    def has_no_code(self, header: Header) -> bool:
        """Whether a unit cannot have code, by its abbreviations alone.

        That is so where neither the unit's first entry nor a function has an address or ranges.

        Args:
            header: the unit's.

        Raises:
            IndexError, KeyError: its abbreviations are damaged.
        """
        shapes = self._of(header)
        code, _ = leb(self._sections.info, header.first)
        with_code = [
            shapes[code],
            *[shape for shape in shapes.values() if shape.tag == _SUBPROGRAM],
        ]
        return not any(
            name in (_LOW, _RANGES) for shape in with_code for name, _, _ in shape.attributes
        )

    def has_originals_elsewhere(self, header: Header) -> bool:
        """Whether entries of a unit may be copies of entries in other units, by its abbreviations.

        Args:
            header: the unit's.

        Raises:
            IndexError: its abbreviations are damaged.
        """
        return any(
            name in (_ORIGIN, _SPECIFICATION) and form in _REFERENCES_OUT
            for shape in self._of(header).values()
            for name, form, _ in shape.attributes
        )

    def fields(self, header: Header, forms: Set[int]) -> Iterator[tuple[int, int, int]]:
        """Find all attributes of a unit's entries whose values have one of some forms.

        Args:
            header: the unit's.
            forms: DW_FORM of those that are wanted.

        Yields:
            (DW_AT, DW_FORM, offset of the value in the section) of each attribute.

        Raises:
            IndexError, KeyError, ValueError: the file is damaged.
        """
        return _Walk(self._sections, header, self._of(header), _number, _no_text, False).fields(
            forms
        )

    def first_fields(self, header: Header, forms: Set[int]) -> list[tuple[int, int, int]]:
        """Find the attributes of a unit's first entry whose values have one of some forms.

        Args:
            header: the unit's.
            forms: DW_FORM of those that are wanted.

        Returns:
            (DW_AT, DW_FORM, offset of the value in the section) of each.
        """
        walk = _Walk(self._sections, header, self._of(header), _number, _no_text, False)
        code, at = leb(self._sections.info, header.first)
        return [*walk.fields_of(at, self._of(header)[code], forms)]

    def _of(self, header: Header) -> dict[int, _Shape]:
        """Return the abbreviations of a unit: number -> shape; each table is read once."""
        key = (header.abbrev, header.version, header.address, header.word)
        if key not in self._shapes:
            self._shapes[key] = dict(_shapes(self._sections.abbrev, header))
        return self._shapes[key]


def _number(number: int) -> int:
    """Return the number itself. Given as `address` where a walk needs no table of addresses."""
    return number


def _no_text(number: int) -> bytes:
    """Return b"". Given as `text` where a walk needs no table of strings."""
    return b""


def leb(data: bytes, at: int) -> tuple[int, int]:
    """Decode an unsigned LEB128 number.

    Args:
        data: the section.
        at: offset of the number's first byte.

    Returns:
        (the number, the offset behind it).

    Raises:
        IndexError: the section ends within the number.
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _shapes(data: bytes, header: Header) -> Any:
    """Decode the table of abbreviations of a unit; yield (number, shape) of each.

    Args:
        data: contents of .debug_abbrev.
        header: the unit's, which says where the table begins and how wide values are.

    Raises:
        IndexError: the table is cut off.
    """
    at = header.abbrev
    while True:
        code, at = leb(data, at)
        if not code:
            return
        tag, at = leb(data, at)
        children = bool(data[at])
        at += 1
        attributes = []
        while True:
            name, at = leb(data, at)
            form, at = leb(data, at)
            constant = 0
            if form == _IMPLICIT:
                constant, at = leb(data, at)
            if not name and not form:
                break
            attributes.append((name, form, constant))
        sizes = [_size(form, header) for _, form, _ in attributes]
        size = -1 if None in sizes else sum(each or 0 for each in sizes)
        names = {name for name, _, _ in attributes}
        interesting = (
            tag in TYPES
            or tag in _SCOPES
            or (children and _SIBLING in names)
            or (tag == _SUBPROGRAM and bool(names & {_LOW, _RANGES}))
            or (tag == _MEMBER and _DECLARATION in names)
        )
        yield code, _Shape(tag, children, size, tuple(attributes), interesting)


def _size(form: int, header: Header) -> int | None:
    """Return the bytes that a value of a form takes; None: not all take the same, or there is no
    such form.

    Args:
        form: a DW_FORM.
        header: of the unit, which says how wide offsets and addresses are.
    """
    if form in _OFFSETS:
        return header.word
    if form == _ADDRESS:
        return header.address
    if form == _REF_ADDR:
        return header.address if header.version <= 2 else header.word
    return _FIXED.get(form)


class _Walk:
    """One walk through the entries of one unit.

    Args:
        sections: the file's.
        header: the unit's.
        shapes: the unit's abbreviations, number -> shape.
        address: index in the unit's table of addresses -> the address.
        text: index in the unit's table of strings -> the string.
        deep: True: also what stands within functions.
    """

    def __init__(
        self,
        sections: Sections,
        header: Header,
        shapes: dict[int, _Shape],
        address: Callable[[int], int],
        text: Callable[[int], bytes],
        deep: bool,
    ) -> None:
        self._sections = sections
        self._header = header
        self._shapes = shapes
        self._address = address
        self._text = text
        self._deep = deep
        self._found = UnitContents()
        #: offset of the declaration of a type or variable -> (scopes around it, its name)
        self._declared: dict[int, tuple[str, str]] = {}

    def run(self) -> UnitContents:
        """Pass over all entries of the unit, and return its functions and types; without `deep`
        entries within functions are skipped.

        Raises:
            IndexError, KeyError, ValueError, struct.error: the file is damaged.
        """
        data, shapes, end = self._sections.info, self._shapes, self._header.end
        at = self._header.first
        depth = 0
        inside = 0  # depth of a function whose entries are passed over; 0: none
        scopes: list[tuple[int, str]] = []  # (depth, name) of those around
        while at < end:
            start = at
            code = data[at]
            at += 1
            if code >= 0x80:
                code, at = leb(data, start)
            if not code:
                depth -= 1
                if depth <= 0:
                    break
                if inside and depth <= inside:
                    inside = 0
                if scopes and depth <= scopes[-1][0]:
                    scopes.pop()
                continue
            shape = shapes[code]
            walked = self._deep and shape.tag in _CODE
            if inside or not (shape.interesting or walked):
                at = at + shape.size if shape.size >= 0 else self._behind(at, shape)
                if shape.children:
                    inside = inside or (depth if depth else 0)
                    depth += 1
                continue
            values, at = self._values(at, shape)
            name = self._entry(start, shape, values, scopes)
            if not shape.children:
                continue
            if shape.tag in _SCOPES:
                scopes.append((depth, name))
            elif depth and not walked:
                if _SIBLING in values:
                    at = values[_SIBLING][1] + self._header.offset
                    if at <= start:
                        raise ValueError("an entry's sibling stands before it")
                    continue
                inside = depth
            depth += 1
        return self._found

    def fields(self, forms: Set[int]) -> Iterator[tuple[int, int, int]]:
        """Yield (DW_AT, DW_FORM, offset of the value) of attributes whose values have one of some
        forms.

        Args:
            forms: DW_FORM of those that are wanted.
        """
        data = self._sections.info
        at = self._header.first
        while at < self._header.end:
            code, at = leb(data, at)
            if not code:
                continue
            shape = self._shapes[code]
            if shape.size >= 0 and not any(form in forms for _, form, _ in shape.attributes):
                at += shape.size
                continue
            yield from self.fields_of(at, shape, forms)
            at = self._behind(at, shape)

    def fields_of(self, at: int, shape: _Shape, forms: Set[int]) -> Iterator[tuple[int, int, int]]:
        """Yield (DW_AT, DW_FORM, offset of the value) of an entry's attributes that have one of
        some forms.

        Args:
            at: offset of the entry's first attribute, behind the number of its abbreviation.
            shape: the abbreviation.
            forms: DW_FORM of those that are wanted.
        """
        for name, form, _ in shape.attributes:
            if form in forms:
                yield name, form, at
            at = self._skipped(at, form)

    def _entry(
        self,
        start: int,
        shape: _Shape,
        values: dict[int, tuple[int, Any]],
        scopes: list[tuple[int, str]],
    ) -> str:
        """Record the function, type or variable that an entry defines, in `_found`; return its
        name.

        A declaration is remembered in `_declared`, for a definition that refers to it.

        Args:
            start: offset of the entry in the section.
            shape: its abbreviation.
            values: DW_AT -> (DW_FORM, value).
            scopes: (depth, name) of the namespaces and types around it.

        Returns:
            The name; "": it has none, or is a function.
        """
        name = ""
        if shape.tag != _SUBPROGRAM and _NAME in values:
            name = self._string(*values[_NAME]).decode("utf-8", "backslashreplace")
        if shape.tag == _SUBPROGRAM and _DECLARATION not in values:
            if _RANGES in values:
                self._found.functions.append((0, 0, start))
            elif _LOW in values and _HIGH in values:
                low = self._located(*values[_LOW])
                form, high = values[_HIGH]
                high = (
                    self._located(form, high) if form == _ADDRESS or form in _ADDRX else low + high
                )
                self._found.functions.append((low, high, start))
        around = "".join(f"{scope}::" for _, scope in scopes if scope)
        if _DECLARATION in values:
            self._declared[start] = around, name
            return name
        declared = name
        if (
            _SPECIFICATION in values
        ):  # a definition may stand elsewhere, and need not say its name again
            form, place = values[_SPECIFICATION]
            if form not in _REFERENCES_OUT:
                declaration = self._header.offset + place
                around, declared = self._declared.get(declaration, (around, name))
        unwanted = self._deep and shape.tag == _VARIABLE  # functions' own are found by their blocks
        name = name or declared
        if name and shape.tag in TYPES and not unwanted:
            size, line = (values.get(which, (0, 0))[1] for which in (_BYTES, _LINE))
            self._found.types.append(NamedType(TYPES[shape.tag], around, name, start, size, line))
        return name

    def _located(self, form: int, value: int) -> int:
        """Return an address from an attribute's value.

        Args:
            form: DW_FORM of the value.
            value: an index in the unit's table of addresses, or the address itself, as `form`
                tells.
        """
        return self._address(value) if form in _ADDRX else value

    def _string(self, form: int, value: Any) -> bytes:
        """Return the bytes of a string.

        Args:
            form: a DW_FORM of strings.
            value: the string itself, its number in the unit's table, or its offset in a section.

        Returns:
            b"" where the file lacks that section, or for another form.
        """
        if form == _STRING:
            return bytes(value)
        if form in _STRX:
            return self._text(value)
        strings = {
            0x0E: self._sections.strings,
            0x1F: self._sections.line_strings,
            0x1D: self._sections.alternative,
            0x1F21: self._sections.alternative,
        }.get(form, b"")
        return strings[value : strings.find(b"\0", value)] if strings else b""

    def _behind(self, at: int, shape: _Shape) -> int:
        """Return the offset behind an entry's attributes.

        Args:
            at: offset of the first one in the section.
            shape: the entry's abbreviation.
        """
        for _, form, _ in shape.attributes:
            at = self._skipped(at, form)
        return at

    def _skipped(self, at: int, form: int) -> int:
        """Return the offset behind a value.

        Args:
            at: offset of the value in the section.
            form: its DW_FORM.

        Raises:
            ValueError: there is no such form.
        """
        data = self._sections.info
        size = _size(form, self._header)
        if size is not None:
            return at + size
        if form in _LEB:
            while data[at] >= 0x80:
                at += 1
            return at + 1
        if form in (_BLOCK, _EXPRLOC):
            size, at = leb(data, at)
            return at + size
        if form == _STRING:
            end = data.find(b"\0", at)
            if end < 0:
                raise ValueError("a string without an end")
            return end + 1
        if form in _BLOCKS:
            wide = _BLOCKS[form]
            return at + wide + int.from_bytes(data[at : at + wide], self._sections.order)
        if form == _INDIRECT:
            form, at = leb(data, at)
            return self._skipped(at, form)
        raise ValueError(f"a form {form:#x} that DWARF does not have")

    def _values(self, at: int, shape: _Shape) -> tuple[dict[int, tuple[int, Any]], int]:
        """Read those attributes of an entry that are in _WANTED, and skip the others.

        Args:
            at: offset of the entry's first attribute in the section.
            shape: its abbreviation.

        Returns:
            (DW_AT -> (DW_FORM, value), offset behind the entry).
        """
        found: dict[int, tuple[int, Any]] = {}
        data, order = self._sections.info, self._sections.order
        for name, form, constant in shape.attributes:
            behind = self._skipped(at, form)
            if name in _WANTED:
                if form == _IMPLICIT:
                    found[name] = (form, constant)
                elif form == _STRING:
                    found[name] = (form, data[at : behind - 1])
                elif form in _LEB:
                    found[name] = (form, leb(data, at)[0])
                else:
                    found[name] = (form, int.from_bytes(data[at:behind], order))
            at = behind
        return found, at


class UnitHeaders(Sequence[Header]):
    """The headers of the units in a section, in order, up to the first damaged one.

    They are decoded as far as they are asked for.
    """

    def __init__(self, data: Any, order: Literal["little", "big"]) -> None:
        """Note where the section is; nothing is decoded yet.

        Args:
            data: contents of the section.
            order: the byte order, "little" or "big".
        """
        self._data = data
        self._order = order
        # length and version; of DWARF 5: kind, address, table
        self._usual = struct.Struct(f"{'<' if order == 'little' else '>'}IHBBI")
        self._found: list[tuple[int, int, int, int, int, int, int, int]] = []  # fields of Header
        self._starts: list[int] = []  # offsets of the units
        self._end = 0  # offset behind the last unit that was read; -1: no more are

    def _read(self) -> bool:
        """Decode one more header into `_found` and `_starts`, and move `_end` behind its unit.
        False: there is none, or it is damaged; then no more are read.
        """
        at = self._end
        if at < 0:
            return False
        self._end = -1
        size = self._usual.size
        begin = self._data[at : at + size]
        if len(begin) < size:
            return False
        length, version, kind, address, abbrev = self._usual.unpack(begin)
        end = at + 4 + length
        if version == 5 and kind in _USUAL_UNITS and size - 4 <= length < _LONG:
            found = (at, at + size, end, version, abbrev, address, 4, kind)
        else:
            unusual = _header(self._data, at, self._order)
            if unusual is None:
                return False
            found = unusual
            end = unusual[2]
        if end > len(self._data):
            return False
        self._found.append(found)
        self._starts.append(at)
        self._end = end
        return True

    def __len__(self) -> int:
        """Return the number of units. All headers are read."""
        while self._read():
            pass
        return len(self._found)

    @overload
    def __getitem__(self, n: int) -> Header: ...
    @overload
    def __getitem__(self, n: slice) -> list[Header]: ...
    def __getitem__(self, n: int | slice) -> Header | list[Header]:
        """Return the header of the n-th unit, or of a slice of units.

        Raises:
            IndexError: there is none.
        """
        if isinstance(n, slice):
            return [self[each] for each in range(*n.indices(len(self)))]
        if n < 0:
            n += len(self)
        while len(self._found) <= n and self._read():
            pass
        return Header(*self._found[n])

    def number_at(self, offset: int) -> int | None:
        """Return the index of the unit that begins at an offset of the section; None: none does."""
        while self._end >= 0 and self._end <= offset:
            self._read()
        n = bisect.bisect_left(self._starts, offset)
        return n if n < len(self._starts) and self._starts[n] == offset else None

    def number_around(self, offset: int) -> int:
        """Return the index of the unit that an offset of the section is in.

        Raises:
            LookupError: it is in none.
        """
        while self._end >= 0 and self._end <= offset:
            self._read()
        n = bisect.bisect_right(self._starts, offset) - 1
        if n < 0 or offset >= self._found[n][2]:
            raise LookupError("an offset in no unit")
        return n


def headers(sections: Sections) -> UnitHeaders:
    """Return the headers of the units of .debug_info, decoded as far as they are asked for."""
    return UnitHeaders(sections.info, sections.order)


def _header(
    data: bytes, at: int, order: Literal["little", "big"]
) -> tuple[int, int, int, int, int, int, int, int] | None:
    """Decode the header of a unit of any kind and version.

    Args:
        data: contents of the section.
        at: offset of the unit.
        order: the byte order, "little" or "big".

    Returns:
        The fields of Header, in their order; None: it is damaged.
    """

    def number(where: int, size: int) -> int:
        return int.from_bytes(data[where : where + size], order)

    length, word, begin = number(at, 4), 4, at + 4
    if length == _LONG:
        length, word, begin = number(at + 4, 8), 8, at + 12
    end = begin + length
    version = number(begin, 2)
    if not 2 <= version <= 5 or end > len(data) or length < 7:
        return None
    if version < 5:
        table = begin + 2
        return at, table + word + 1, end, version, number(table, word), data[table + word], word, 0
    kind = data[begin + 2]
    more = {0x02: 8 + word, 0x06: 8 + word, 0x04: 8, 0x05: 8}.get(kind, 0)
    table = begin + 4
    return at, table + word + more, end, version, number(table, word), data[begin + 3], word, kind


def type_headers(sections: Sections) -> list[Header]:
    """Return the headers of the type units of .debug_types (DWARF 4, section 7.5.1.2), in order.

    Args:
        sections: of the file. Offsets of the headers are those in .debug_types.
    """
    found = headers(evolve(sections, info=sections.types))
    # behind a compilation unit's header: the signature, and where the type's entry is
    return [evolve(each, first=each.first + 8 + each.word, kind=0x02) for each in found]


def aranges(data: bytes, order: Literal["little", "big"]) -> list[tuple[int, int, int]]:
    """Decode .debug_aranges. Tables behind a damaged one are left out, and tables with segments or
    with addresses of neither 4 nor 8 bytes.

    Args:
        data: contents of the section.
        order: the byte order, "little" or "big".

    Returns:
        (start, end, offset of the unit in .debug_info) of each range that is not empty; link
        addresses.
    """
    found = []
    at = 0
    mark = "<" if order == "little" else ">"
    while at + 12 <= len(data):
        length, word, begin = int.from_bytes(data[at : at + 4], order), 4, at + 4
        if length == 0xFFFF_FFFF:
            length, word, begin = int.from_bytes(data[at + 4 : at + 12], order), 8, at + 12
        end = begin + length
        if end > len(data) or length < 4 + word:
            break
        unit = int.from_bytes(data[begin + 2 : begin + 2 + word], order)
        size, segment = data[begin + 2 + word], data[begin + 3 + word]
        first = begin + 4 + word
        first += -(first - at) % (2 * size) if size else 0
        if size in (4, 8) and not segment:
            pairs = struct.iter_unpack(
                mark + ("II" if size == 4 else "QQ"),
                data[first : first + (end - first) // (2 * size) * 2 * size],
            )
            found += [(start, start + many, unit) for start, many in pairs if many]
        at = end
    return found


class AddressRanges:
    """The ranges of addresses that .debug_aranges lists, each with its unit."""

    def __init__(self, rows: Any) -> None:
        """Keep the ranges.

        Args:
            rows: start, end and the unit's offset of one range after the other, by address: an
                array, or a memoryview of such.
        """
        self._rows = rows
        self._count = len(rows) // 3
        self._starts = rows[0::3]

    def units(self) -> set[int]:
        """Return the offsets of all units that have ranges."""
        return set(self._rows[2::3])

    def find(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield the ranges that overlap [start, end), by address.

        Yields:
            (start, end, the unit's offset).
        """
        rows = self._rows
        at = bisect.bisect_right(self._starts, start)
        at = max(at - 1, 0)
        # a skeleton unit, and the one that it stands for, begin at one address
        while at and rows[3 * at - 3] == rows[3 * at]:
            at -= 1
        while at < self._count and rows[3 * at] < end:
            if start < rows[3 * at + 1]:
                yield rows[3 * at], rows[3 * at + 1], rows[3 * at + 2]
            at += 1
