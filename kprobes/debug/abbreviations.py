"""Abbreviations of DWARF (the shapes of its entries), decoded into pyelftools' objects.

AbbreviationTable stands in for pyelftools' own class, which takes ten times as long.
Source: DWARF 5, section 7.5.3.
"""

from __future__ import annotations

from typing import Any, Final

from elftools.construct import Container
from elftools.dwarf.abbrevtable import AbbrevDecl
from elftools.dwarf.enums import ENUM_DW_AT, ENUM_DW_FORM, ENUM_DW_TAG

from .scan import leb


def _names(numbers: dict[str, Any]) -> dict[int, str]:
    """Turn one of pyelftools' lists round: name -> number becomes number -> name.

    Args:
        numbers: name -> number, as "DW_TAG_member" -> 0x0D.

    Returns:
        number -> name; where names share a number, the last of them.
    """
    return {number: name for name, number in numbers.items() if name != "_default_"}


_TAGS: Final = _names(ENUM_DW_TAG)
_ATTRIBUTES: Final = _names(ENUM_DW_AT)
_FORMS: Final = _names(ENUM_DW_FORM)
_IMPLICIT_CONST: Final = 0x21  #: DW_FORM whose value stands in the abbreviation
_LONG: Final = 0x80  #: first byte of a LEB128 number of more than one
_CHILDREN: Final = {0: "DW_CHILDREN_no", 1: "DW_CHILDREN_yes"}


class AbbreviationTable:
    """One table of abbreviations in .debug_abbrev, decoded no further than get_abbrev() has asked
    for.
    """

    def __init__(self, data: bytes, offset: int) -> None:
        """Remember where the table begins; nothing is decoded yet.

        Args:
            data: contents of .debug_abbrev.
            offset: of the table's first byte in it.
        """
        self._data = data
        self._at = offset  # of the next abbreviation; -1: there is none
        self._known: dict[int, AbbrevDecl] = {}

    def get_abbrev(self, code: int) -> AbbrevDecl:
        """Return the abbreviation that has a code; decode the table as far as that, if it is not
        yet.

        Args:
            code: number by which entries name the abbreviation.

        Raises:
            KeyError: the table has no such code.
            IndexError: the table is damaged.
        """
        try:
            while code not in self._known and self._at >= 0:
                self._read()
        except LookupError:
            self._at = -1
            raise
        return self._known[code]

    def _read(self) -> None:
        """Decode the next abbreviation into `_known`, and move `_at` behind it; -1 at the table's
        end.

        Raises:
            IndexError, KeyError: the abbreviation is damaged.
        """
        data = self._data
        code, at = leb(data, self._at)
        if not code:
            self._at = -1
            return
        tag, at = leb(data, at)
        children = _CHILDREN[data[at]]
        at += 1
        attributes: list[Container] = []
        while True:
            name = data[at]
            form = data[at + 1]
            at += 2
            if name >= _LONG or form >= _LONG:
                name, at = leb(data, at - 2)
                form, at = leb(data, at)
            if not name and not form:
                break
            value = None
            if form == _IMPLICIT_CONST:
                value, at = _signed(data, at)
            attributes.append(
                Container(
                    name=_ATTRIBUTES.get(name, name), form=_FORMS.get(form, form), value=value
                )
            )
        fields = Container(tag=_TAGS.get(tag, tag), children_flag=children, attr_spec=attributes)
        self._known[code] = AbbrevDecl(code, fields)
        self._at = at


def _signed(data: bytes, at: int) -> tuple[int, int]:
    """Decode a signed LEB128 number.

    Args:
        data: contents of the section.
        at: offset of the number's first byte.

    Returns:
        (the number, the offset behind it).
    """
    value, behind = leb(data, at)
    bits = 7 * (behind - at)
    return value - (1 << bits) if value >> (bits - 1) else value, behind
