"""Abbreviations of DWARF (the shapes of its entries), decoded into pyelftools' objects.

AbbreviationTable stands in for pyelftools' own class, which takes ten times as long.
Source: DWARF 5, section 7.5.3.
"""

from __future__ import annotations

import re
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
_CHILDREN: Final = {0: "DW_CHILDREN_no", 1: "DW_CHILDREN_yes"}
_LEB: Final = rb"[\x80-\xff]*[\0-\x7f]"  #: a LEB128 number
#: tag, children, pairs of a name and a form (one form has its value behind it), and two zeros
_BEHIND_CODE: Final = re.compile(
    rb"%b[\0\1](?:(?!\0\0)%b(?:\x21%b|(?!\x21)%b))*\0\0" % (_LEB, _LEB, _LEB, _LEB)
)


class AbbreviationTable:
    """A table of abbreviations in .debug_abbrev, each decoded when get_abbrev() asks for it."""

    def __init__(self, data: bytes, offset: int) -> None:
        """Remember where the table begins; nothing is read yet.

        Args:
            data: contents of .debug_abbrev.
            offset: of the table's first byte in it.
        """
        self._data = data
        self._at = offset  # of the next abbreviation; -1: there is none
        self._places: dict[int, int] = {}  # code -> offset behind the code
        self._known: dict[int, AbbrevDecl] = {}

    def get_abbrev(self, code: int) -> AbbrevDecl:
        """Return the abbreviation that has a code; search the table as far as that, if it is not
        yet.

        Args:
            code: number by which entries name the abbreviation.

        Raises:
            KeyError: the table has no such code.
            IndexError: the table is damaged.
        """
        if code not in self._known:
            while code not in self._places and self._at >= 0:
                self._pass_one()
            self._known[code] = self._decoded(code, self._places[code])
        return self._known[code]

    def _pass_one(self) -> None:
        """Note the place of the next abbreviation, and move `_at` behind it; -1 at the table's end.

        Raises:
            IndexError: the abbreviation is damaged. Then the table ends there.
        """
        at = self._at
        self._at = -1
        code, behind = leb(self._data, at)
        if code:
            found = _BEHIND_CODE.match(self._data, behind)
            if found is None:
                raise IndexError("an abbreviation without an end")
            self._places[code] = behind
            self._at = found.end()

    def _decoded(self, code: int, at: int) -> AbbrevDecl:
        """Return the abbreviation of a code. Numbers that pyelftools has no name for stay numbers.

        Args:
            code: its number.
            at: offset of its tag.

        Raises:
            IndexError, KeyError: the table is damaged.
        """
        data = self._data
        tag, at = leb(data, at)
        children = _CHILDREN[data[at]]
        at += 1
        attributes: list[Container] = []
        while True:
            name, at = leb(data, at)
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
        return AbbrevDecl(code, fields)


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
