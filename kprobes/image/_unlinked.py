"""Reads debug sections of a relocatable file, at the addresses that its sections got."""

from __future__ import annotations

import struct
from typing import Any, Final

from attrs import define, field

from ..errors import ImageError
from ._elf import Elf, Relocation, SymbolEntry, damage_is_error
from ._relocations import apply, rows
from ._segments import with_addends
from ._sites import ImageMemory, RelocationSite, RelocationTarget

NAMES: Final = (".debug_", ".zdebug_", ".eh_frame", ".note.stapsdt", ".sframe", ".orc_unwind")
_COMPRESSED: Final = 0x800  # section flag
#: e_type of programs and libraries, ET_EXEC and ET_DYN, in both byte orders
_LINKED: Final = (b"\2\0", b"\3\0", b"\0\2", b"\0\3")


@define
class _Binder:
    """Binder for the relocations of debug sections, which need addresses and addends only.

    There is no GOT, and no code.
    """

    memory: ImageMemory
    image: str
    bias: int = 0
    got: int = 0
    gp: int = 0
    toc: int = 0
    hi20: dict[int, int] = field(factory=dict)
    tls: tuple[int, int, int] = (0, 0, 0)

    def slot(self, content: int) -> int:
        """Raise ImageError: no relocation of debug information needs a GOT slot."""
        raise ImageError(
            f"{self.image}: debug information asks for a slot or for code",
            hint="is the file damaged?",
        )

    def veneer(self, target: int, kind: str) -> int:
        """Raise ImageError: no relocation of debug information needs a veneer."""
        return self.slot(target)

    def code(self, x: RelocationSite) -> int:
        """Return the symbol's address plus the addend."""
        return x.sum

    def describe(self, x: RelocationSite) -> int:
        """Raise ImageError: no relocation of debug information needs a descriptor."""
        return self.slot(0)

    def ifunc(self, resolver: int) -> int:
        """Return the resolver's own address; it is not called."""
        return resolver


def renumbered(elf: Elf, entries: list[SymbolEntry]) -> bytes:
    """Return a relocatable file with the values in its symbol table replaced.

    Args:
        elf: the file.
        entries: its symbols, with the values to put in, in the file's order.

    Returns:
        The file's bytes; b"" where it has no debug information or no symbol table.
    """
    section = next((s for s in elf.sections if s["sh_type"] == "SHT_SYMTAB"), None)
    if section is None or not elf.has_debug:
        return b""
    data, order = bytearray(elf.data), "<" if elf.order == "little" else ">"
    at, mask = (8, (1 << 64) - 1) if elf.bits == 64 else (4, (1 << 32) - 1)
    for n, entry in enumerate(entries):
        row = section["sh_offset"] + n * section["sh_entsize"]
        struct.pack_into(f"{order}{'Q' if at == 8 else 'I'}", data, row + at, entry.value & mask)
    return bytes(data)


def linked(data: bytes) -> bytes:
    """Return a file with its debug sections relocated, as a linker leaves them; a file that is not
    relocatable is returned as it is.

    Sections stay at address 0, and what is relative to a place in them counts from there.

    Args:
        data: contents of the file, as renumbered() returns them.

    Raises:
        ImageError: the file is damaged, or has relocations that are not known.
    """
    if data[:4] == b"\x7fELF" and data[16:18] in _LINKED:
        return data
    with damage_is_error("debug information"):
        elf = Elf(data, "debug information")
        if elf.type != "ET_REL":
            return data
        out, entries = bytearray(data), elf.symbol_table()
        sections = elf.sections
        for n, found in elf.section_relocations(
            lambda s: sections[s["sh_info"]].name.startswith(NAMES)
        ):
            if sections[n].name.startswith(".zdebug"):
                raise ImageError(
                    f"{elf.name}: it is compressed in the way of before 2015",
                    hint="build with -gz=none",
                )
            _replace(out, elf, n, _relocated(elf, bytes(sections[n].data()), found, entries))
        return bytes(out)


def _relocated(elf: Elf, data: bytes, found: list[Relocation], entries: list[SymbolEntry]) -> bytes:
    """Return the bytes of a debug section with its relocations applied.

    Args:
        elf: the file.
        data: the section's bytes.
        found: the section's relocations.
        entries: the symbol table.

    Raises:
        ImageError: a relocation's type is not known, or its value does not fit.
    """
    memory = ImageMemory([(0, len(data), data)], elf.order, elf.name)
    binder = _Binder(memory, elf.name)
    known = {kind: rows(elf.machine, elf.bits, kind) for kind in {r.type for r in found}}
    for r in with_addends(found, memory, elf):
        if not known.get(r.type):
            raise ImageError(
                f"{elf.name}: its relocations of type {r.type} are not known", hint="link the file"
            )
        target = RelocationTarget(address=entries[r.symbol].value)
        apply(
            known[r.type],
            RelocationSite(r.offset, r.addend or 0, target, binder, known[r.type][-1]),
        )
    return bytes(memory.regions[0][2])


def _replace(out: bytearray, elf: Elf, n: int, content: bytes) -> None:
    """Replace a section's bytes in a file; those of a compressed section are put at the file's end,
    and its header says that they are there, not compressed.

    Args:
        out: the file, which is changed.
        elf: the file as it was.
        n: index of the section.
        content: the section's new bytes, not compressed.
    """
    section: Any = elf.sections[n]
    if not section["sh_flags"] & _COMPRESSED:
        out[section["sh_offset"] : section["sh_offset"] + len(content)] = content
        return
    head = int(elf.header["e_shoff"] + n * elf.header["e_shentsize"])
    order = "<" if elf.order == "little" else ">"
    word, size = ("Q", 8) if elf.bits == 64 else ("I", 4)
    flags = section["sh_flags"] & ~_COMPRESSED
    struct.pack_into(f"{order}{word}", out, head + 8, flags)
    struct.pack_into(f"{order}{word}{word}", out, head + 8 + 2 * size, len(out), len(content))
    out += content
