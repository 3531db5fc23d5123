"""Split DWARF 4 (`-gdwarf-4 -gsplit-dwarf` of gcc and clang): what differs from DWARF 5.

Units have no kinds in their headers, tables of strings and addresses have no headers, lists of code
stand in the program, and lists of locations name addresses by index.
Source: https://gcc.gnu.org/wiki/DebugFission and DebugFissionDWP.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any, Final

from attrs import define, field

from .scan import Header, Sections, UnitScanner, leb

#: DW_FORM of numbers in tables -> the one that DWARF 5 has for the same: GNU_addr_index,
#: GNU_str_index
FORMS: Final = {0x1F01: 0x1B, 0x1F02: 0x1A}
#: DW_SECT: number of a column in a .dwp's index of version 2 -> the section
COLUMNS: Final = {1: "info", 2: "types", 3: "abbrev", 4: "line", 5: "loc", 6: "str_offsets"}
#: DW_AT: the file's name and number; lists of code; offsets that nobody reads here
#: (DW_AT_macro_info, GNU_macros, DW_AT_stmt_list, GNU_locviews)
_DWO_ID, _RANGES, _UNREAD = 0x2131, 0x55, {0x43, 0x2119, 0x10, 0x2137}
_DATA8, _SEC_OFFSET = 0x07, 0x17
#: an abbreviation that has DW_AT_GNU_dwo_name: the number as LEB128
_NAMES_A_FILE_OF_GNU: Final = b"\xb0\x42"
#: DW_AT_dwo_name, and a form of strings
_NAMES_A_FILE: Final = re.compile(rb"\x76[\x08\x0e\x1a\x1f\x25-\x28]")
#: how a unit's abbreviation begins: DW_TAG_compile_unit or DW_TAG_skeleton_unit
_OF_A_UNIT: Final = re.compile(rb"\0?[\x80-\xff]{0,4}[\x01-\x7f][\x11\x4a][\0\1]")
_MOST_BEFORE: Final = 256  #: bytes of a unit's abbreviation that are before the file's name
#: DW_LLE_GNU: kinds of entries of a list of locations
_END, _BASE, _START_END, _START_LENGTH, _OFFSETS = range(5)


def may_be_split(sections: Sections) -> bool:
    """Whether a program may have skeleton units of any kind; quick, sometimes True where it has
    none.
    """
    if may_be_of_gnu(sections):
        return True
    data = sections.abbrev
    for found in _NAMES_A_FILE.finditer(data):
        before = data[max(found.start() - _MOST_BEFORE, 0) : found.start()]
        # an abbreviation ends in two zeros
        if _OF_A_UNIT.match(before, before.rfind(b"\0\0") + 2 if b"\0\0" in before else 0):
            return True
    return False


def may_be_of_gnu(sections: Sections) -> bool:
    """Whether a program may have skeleton units of DWARF 4; quick, sometimes True where it has
    none.
    """
    return sections.abbrev.find(_NAMES_A_FILE_OF_GNU) >= 0


def number_of_unit(sections: Sections, header: Header) -> bytes | None:
    """Return the DWO id (8 bytes) that a DWARF 4 skeleton unit and its split unit share.

    Args:
        sections: which have the unit.
        header: the unit's.

    Returns:
        None: the unit is neither a skeleton nor a split unit.

    Raises:
        errors in DAMAGE: the unit is damaged.
    """
    scanner = UnitScanner(sections)
    first = scanner.first_fields(header, {_DATA8})
    return next((sections.info[at : at + 8] for name, _, at in first if name == _DWO_ID), None)


@define
class ListMover:
    """Rewrites the offsets of lists in a split unit of DWARF 4, so that it can stand in the
    program.

    Attributes:
        addresses: the program's addresses from the unit's first one on, the contents of
            .debug_addr.
        locations: contents of .debug_loc.dwo.
        ranges: offset in the program's .debug_ranges from which the unit counts.
        order: the byte order, "little" or "big".
        size: bytes of an address.
        base: address from which the unit's code counts.
    """

    addresses: bytes = field(repr=False)
    locations: bytes = field(repr=False)
    ranges: int
    order: Any
    size: int
    base: int

    def move(
        self, sections: Sections, header: Header, unit: bytearray, lists: bytearray, at: int
    ) -> None:
        """Write the new offsets of its lists into a copy of a unit; convert its lists of locations.

        Args:
            sections: which have the unit.
            header: the unit's, with offsets in `sections`.
            unit: a copy of the unit's bytes, which is changed.
            lists: the converted lists of locations are appended.
            at: offset that the first byte of `lists` gets in the program's .debug_loc.

        Raises:
            errors in DAMAGE: the unit is damaged.
        """
        moved: dict[int, int] = {}
        wanted: Set[int] = {_SEC_OFFSET}
        for name, _, place in UnitScanner(sections).fields(header, wanted):
            if name in _UNREAD:
                continue
            where = place - header.offset
            old = int.from_bytes(unit[where : where + header.word], self.order)
            if name == _RANGES:
                new = old + self.ranges
            else:
                if old not in moved:
                    moved[old] = at + len(lists)
                    lists += self._classic(old)
                new = moved[old]
            unit[where : where + header.word] = new.to_bytes(header.word, self.order)

    def _classic(self, at: int) -> bytes:
        """Convert a list of locations from .debug_loc.dwo to the form of .debug_loc; empty ranges
        are left out.

        Source: DWARF 4, section 2.6.2.

        Args:
            at: offset of the list in .debug_loc.dwo.

        Raises:
            ValueError, IndexError: the list is damaged.
        """
        data, size, order = self.locations, self.size, self.order
        highest = (1 << 8 * size) - 1
        # from now on the addresses count from 0
        out = bytearray(highest.to_bytes(size, order) + bytes(size))
        base = self.base
        while True:
            kind = data[at]
            at += 1
            if kind == _END:
                return bytes(out + bytes(2 * size))
            if kind == _BASE:
                number, at = leb(data, at)
                base = self._address(number)
                continue
            start, end, at = self._bounds(kind, at, base)
            length = int.from_bytes(data[at : at + 2], order)
            behind = at + 2 + length
            if behind > len(data):
                raise ValueError("a list of locations is damaged")
            if start < end <= highest:
                out += start.to_bytes(size, order) + end.to_bytes(size, order) + data[at:behind]
            at = behind

    def _bounds(self, kind: int, at: int, base: int) -> tuple[int, int, int]:
        """Decode the addresses of one entry of a list in .debug_loc.dwo.

        Args:
            kind: DW_LLE_GNU.
            at: offset behind the kind.
            base: address from which offsets count.

        Returns:
            (start, end, offset behind them).

        Raises:
            ValueError: there is no such kind.
        """
        data, order = self.locations, self.order
        if kind == _START_END:
            first, at = leb(data, at)
            second, at = leb(data, at)
            return self._address(first), self._address(second), at
        if kind == _START_LENGTH:
            first, at = leb(data, at)
            start = self._address(first)
            return start, start + int.from_bytes(data[at : at + 4], order), at + 4
        if kind == _OFFSETS:
            low = int.from_bytes(data[at : at + 4], order)
            high = int.from_bytes(data[at + 4 : at + 8], order)
            return base + low, base + high, at + 8
        raise ValueError(f"a list of locations has an entry of unknown kind {kind}")

    def _address(self, number: int) -> int:
        """Return an address of the unit by its index in the program's .debug_addr.

        Raises:
            ValueError: there is none.
        """
        found = self.addresses[number * self.size : (number + 1) * self.size]
        if len(found) != self.size:
            raise ValueError(f"the program has no address {number}")
        return int.from_bytes(found, self.order)
