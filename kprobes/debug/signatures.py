"""Types in units of their own, which entries name by a signature (`-fdebug-types-section`).

Source: DWARF 5, sections 3.1.4, 7.5.1.3. Those of DWARF 4, which have a section of their own, are
left to pyelftools.
"""

from __future__ import annotations

from typing import Any, Final
from weakref import WeakKeyDictionary

from .file import contents
from .scan import Sections, headers

#: DW_UT: units of one type, in the program and in a .dwo file
_TYPE_UNITS: Final = {0x02, 0x06}
_known: WeakKeyDictionary[Any, dict[int, tuple[int, int]]] = WeakKeyDictionary()


def type_entry(die: Any) -> Any:
    """Return the entry of the type that an entry's DW_AT_type refers to.

    Args:
        die: an entry with DW_AT_type, as a variable's or member's.

    Raises:
        errors in DAMAGE: it has no DW_AT_type, or that refers to nothing.
    """
    found = die.attributes["DW_AT_type"]
    if found.form == "DW_FORM_ref_sig8":
        return _entry_of(die.cu.dwarfinfo, found.value)
    return die.get_DIE_from_attribute("DW_AT_type")


def entry_by_signature(die: Any) -> Any:
    """Return the entry that defines a type, from one that only declares it with DW_AT_signature.

    Args:
        die: the declaration.

    Raises:
        errors in DAMAGE: it has no signature, or no unit has this one.
    """
    return _entry_of(die.cu.dwarfinfo, die.attributes["DW_AT_signature"].value)


def _entry_of(info: Any, signature: int) -> Any:
    """Return the entry of the type that has a signature.

    Args:
        info: pyelftools' view of the file.
        signature: of 64 bits.

    Raises:
        KeyError: there is none.
    """
    if info not in _known:
        _known[info] = _table(info)
    if signature not in _known[info]:
        return info.get_DIE_by_sig8(signature)  # of DWARF 4
    unit, entry = _known[info][signature]
    return info.get_CU_at(unit).get_DIE_from_refaddr(entry)


def _table(info: Any) -> dict[int, tuple[int, int]]:
    """Find the type units of .debug_info.

    Args:
        info: pyelftools' view of the file.

    Returns:
        signature -> (offset of the unit, offset of the type's entry) in .debug_info.
    """
    order: Any = "little" if info.config.little_endian else "big"
    data = contents(info.debug_info_sec)
    found = {}
    for header in headers(Sections(data, b"", b"", b"", order)):
        if header.kind in _TYPE_UNITS:
            entry = header.first - header.word
            signature = int.from_bytes(data[entry - 8 : entry], order)
            found[signature] = (
                header.offset,
                header.offset + int.from_bytes(data[entry : header.first], order),
            )
    return found
