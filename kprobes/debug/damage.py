"""Which section of a file's debug information is damaged, where nothing could be read of it."""

from __future__ import annotations

from typing import Any, Final

from ..image import LoadedFile, has_dwarf
from .file import DAMAGE, elf_of

_VERSIONS: Final = range(2, 6)  # of DWARF
_MOST_TAGS: Final = 0xFFFF  #: the highest tag: DW_TAG_hi_user


def damaged_section(file: LoadedFile) -> str:
    """Return the name of the first section of DWARF that cannot be what a compiler writes.

    The first unit of .debug_info is looked at, its abbreviations, and the texts.

    Args:
        file: of which no unit could be read.

    Returns:
        The name; "": the file has no DWARF, or no damage of these kinds.
    """
    if not has_dwarf(file.data):
        return ""
    try:
        elf = elf_of(file)
    except DAMAGE:
        return ""
    found: dict[str, bytes] = {}
    for name in (".debug_info", ".debug_abbrev", ".debug_str"):
        try:
            section = elf.get_section_by_name(name)
            found[name] = b"" if section is None else section.data()
        except DAMAGE:
            return name
    order: Any = "little" if elf.little_endian else "big"
    place = _abbreviations_at(found[".debug_info"], order)
    if place is None:
        return ".debug_info"
    if not _is_abbreviation(found[".debug_abbrev"][place : place + 64]):
        return ".debug_abbrev"
    if found[".debug_str"] and not found[".debug_str"].endswith(b"\0"):
        return ".debug_str"
    return ""


def _abbreviations_at(info: bytes, order: Any) -> int | None:
    """Return where the abbreviations of the first unit of .debug_info begin; None: the unit's head
    is damaged.

    Args:
        info: the section.
        order: its byte order, as int.from_bytes() takes it.
    """
    wide = info[:4] == b"\xff\xff\xff\xff"
    at, word = (12, 8) if wide else (4, 4)
    size = int.from_bytes(info[at - word : at], order)
    version = int.from_bytes(info[at : at + 2], order)
    if version not in _VERSIONS or not 0 < size <= len(info) - at:
        return None
    at += 4 if version == 5 else 2  # behind the unit's type and the size of an address
    return int.from_bytes(info[at : at + word], order)


def _is_abbreviation(data: bytes) -> bool:
    """Return True if an abbreviation begins here: a number, a tag, and whether there are children.

    Args:
        data: some bytes from there on.
    """
    at = 0
    numbers = []
    for _ in range(2):
        value = shift = 0
        while at < len(data) and shift < 63:
            value |= (data[at] & 0x7F) << shift
            shift += 7
            at += 1
            if data[at - 1] < 0x80:
                break
        else:
            return False
        numbers.append(value)
    return numbers[0] > 0 and 0 < numbers[1] <= _MOST_TAGS and data[at : at + 1] in (b"\0", b"\1")
