"""Finds the architectures whose registers a program names: KPROBES_REG() leaves a row in a section
of its own, the place of its code and the register's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .elf import ObjectFile

SECTION: Final = ".kprobes.registers"
_ADDRESS: Final = 8  # bytes of a row before the name


def named(file: ObjectFile) -> Mapping[tuple[int, int], str]:
    """Return the registers that an object's code names by KPROBES_REG().

    Args:
        file: the object.

    Returns:
        (index of the section, offset of the instruction in bytes) -> `<arch>_<register>`, such as
        "arm64_x19".

    Raises:
        ValueError, KeyError: the section is damaged.
    """
    section = file.section(SECTION)
    if section is None:
        return {}
    out = {}
    at = 0
    data = section.data
    places = file.relocations.get(section.index, {})
    while at < len(data):
        end = data.index(b"\0", at + _ADDRESS)
        symbol = places[at].symbol
        out[symbol.section, symbol.value + int.from_bytes(data[at : at + _ADDRESS], file.order)] = (
            data[at + _ADDRESS : end].decode()
        )
        at = end + 1
    return out
