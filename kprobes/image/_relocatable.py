"""Relocatable files -> Image: the layout that a linker would make."""

from __future__ import annotations

from typing import Any

from ..errors import ImageError
from ._elf import LIMIT, Elf, Load, Relocation, SymbolEntry
from ._placing import Image
from ._relocations import rows
from ._segments import merge, up, with_addends
from ._symbols import data_of, imports_of, local_entries, symbols_of
from ._types import MIPS
from ._unlinked import renumbered
from ._values import memory_of, page_size
from ._veneers import SIZES

_MAX_ALIGNMENT = 1 << 21
_WRITE, _ALLOC, _EXEC, _TLS = 1, 2, 4, 0x400  # section flags
_COMMON = ("SHN_COMMON", 0xFF03)  # the second: MIPS's small ones; the value is an alignment


def relocatable(elf: Elf) -> Image:
    """Return the image of a .o or .ko, laid out from address 0.

    All sections with SHF_ALLOC are in it, grouped by permissions, so that code and data share no
    page; and room for common symbols, and for the GOT and the veneers that relocations may need.

    Raises:
        ImageError: the file is damaged, or has nothing to load; and whatever pyelftools raises.
    """
    layout = _Layout(elf)
    raw = elf.section_relocations(lambda s: s["sh_info"] in layout.members)
    types = [row for _, found in raw for r in found for row in rows(elf.machine, elf.bits, r.type)]
    layout.slots = sum(row.slots for row in types)
    layout.veneers = sum(row.veneers for row in types)
    entries = layout.arrange(elf.symbol_table())
    segments = merge(layout.loads, page_size(elf.machine))
    memory = memory_of(segments, 0, elf.order, elf.name)
    relocations: list[Relocation] = []
    for section, found in raw:
        moved = [r._replace(offset=r.offset + layout.at[section]) for r in found]
        explicit = list(with_addends(moved, memory, elf))
        paired = elf.machine == MIPS and any(r.addend is None for r in found)
        relocations += _mips_pairs(explicit, entries) if paired else explicit
    return Image(
        name=elf.name,
        machine=elf.machine,
        flags=elf.flags,
        profile=elf.profile,
        bits=elf.bits,
        order=elf.order,
        kind="rel",
        segments=segments,
        symbols=symbols_of(elf, entries, segments),
        relocations=tuple(relocations),
        entries=tuple(entries),
        imports=imports_of(entries),
        local_entries=local_entries(elf, entries),
        data=data_of(elf, entries, segments),
        got=layout.got,
        veneers=layout.veneers_at,
        tls=layout.tls,
        file=renumbered(elf, entries),
        init=tuple(
            (layout.at[n], s["sh_size"])
            for n, s in layout.members.items()
            if s["sh_type"] == "SHT_INIT_ARRAY"
        ),
    )


class _Layout:
    """The addresses of the sections of a relocatable file, from 0 on; arrange() works them out.

    Sections are grouped by permissions, so that code and data share no page.

    Attributes:
        members: index -> section, of those that are loaded.
        tls: True where one has thread-local storage.
        at: index of a section -> its address.
        loads: the segments that the groups make.
        slots, veneers: how many GOT slots and veneers relocations may ask for; set before
            arrange().
        got, veneers_at: addresses of the GOT and of the first veneer.
    """

    def __init__(self, elf: Elf) -> None:
        """Find the sections that are loaded.

        Args:
            elf: the file.

        Raises:
            ImageError: there are none.
        """
        self._elf = elf
        self.members = {n: s for n, s in enumerate(elf.sections) if s["sh_flags"] & _ALLOC}
        self.tls = any(s["sh_flags"] & _TLS for s in self.members.values())
        self.at: dict[int, int] = {}  #: section -> address
        self.loads: list[Load] = []
        self.slots = self.veneers = 0  #: how many there may be
        self.got = self.veneers_at = 0
        self._commons: dict[int, int] = {}  # symbol -> address
        if not self.members:
            raise self._nothing()

    def _nothing(self) -> ImageError:
        """Return the error that the file has nothing to load."""
        return ImageError(
            f"{self._elf.name}: nothing in it is to be loaded",
            hint="compile it again: it has no code and no data",
        )

    def arrange(self, entries: list[SymbolEntry]) -> list[SymbolEntry]:
        """Give every section that is loaded an address, and make room for the GOT, veneers and
        commons.

        Args:
            entries: the symbol table, in the file's order.

        Returns:
            The symbols, with addresses for their values.

        Raises:
            ImageError: all sections are empty, and nothing else needs room; an alignment is too
                large, or the sections are.
        """
        for perms in ("rx", "r", "rwx", "rw"):
            self._group(perms, entries)
        if not self.loads:
            raise self._nothing()
        return [self._moved(n, e) for n, e in enumerate(entries)]

    def _group(self, perms: str, entries: list[SymbolEntry]) -> None:
        """Give addresses to the sections with some permissions, and to what goes with them; add a
        Load.

        "rw" begins with the GOT and ends with common symbols; veneers stand at the end of "rx".

        Args:
            perms: "rx", "r", "rwx" or "rw".
            entries: the symbol table, in the file's order.

        Raises:
            ImageError: an alignment is too large, or the sections are.
        """
        start = end = (
            up(self.loads[-1].vaddr + self.loads[-1].memsz, page_size(self._elf.machine))
            if self.loads
            else 0
        )
        data = bytearray()
        if perms == "rw":
            self.got, end = start, start + self.slots * self._elf.bits // 8
        for n, s in sorted(self.members.items(), key=_small_data_first):
            if _perms(s) != perms:
                continue
            self.at[n] = up(end, self._alignment(s["sh_addralign"]))
            end = self._checked(self.at[n] + s["sh_size"])
            if s["sh_type"] != "SHT_NOBITS":
                data.extend(
                    bytes(self.at[n] - start - len(data))
                    + self._elf.bytes_at(s["sh_offset"], s["sh_size"])
                )
        if perms == "rx" and self.veneers:
            size = SIZES[self._elf.machine]
            self.veneers_at = up(end, size)
            end = self.veneers_at + self.veneers * size
        for n, e in enumerate(entries if perms == "rw" else ()):
            if e.section in _COMMON:
                self._commons[n] = up(end, self._alignment(e.value))
                end = self._checked(self._commons[n] + e.size)
        if end > start:
            self.loads.append(Load(start, bytes(data), end - start, perms))

    def _moved(self, n: int, e: SymbolEntry) -> SymbolEntry:
        """Return a symbol's entry with its address for its value.

        Where its section is not loaded, the value stays and the entry's section becomes "none"; a
        common symbol's becomes "common". A symbol of a loaded section without a name gets the
        section's. An undefined or absolute symbol's entry is returned as it is.

        Args:
            n: index in the symbol table.
            e: the entry; its value is an offset in its section.
        """
        if n in self._commons:
            return e._replace(value=self._commons[n], section="common")
        if isinstance(e.section, str):
            return e
        if e.section not in self.at:
            return e._replace(section="none")
        return e._replace(
            name=e.name or str(self.members[e.section].name), value=e.value + self.at[e.section]
        )

    def _alignment(self, asked: int) -> int:
        """Return an alignment in bytes as it is, 1 for 0.

        Raises:
            ImageError: it is too large.
        """
        if asked > _MAX_ALIGNMENT:
            raise ImageError(
                f"{self._elf.name}: a section asks for an alignment of {asked:#x} bytes",
                hint="is the file damaged?",
            )
        return max(1, asked)

    def _checked(self, end: int) -> int:
        """Return an address as it is, after a check that it is within the memory that an image may
        have.

        Raises:
            ImageError: it is not.
        """
        if end > LIMIT:
            raise ImageError(
                f"{self._elf.name}: its sections need more than {LIMIT >> 20} MiB",
                hint="is the file damaged?",
            )
        return end


def _perms(section: Any) -> str:
    """Return the permissions of a section's memory: "r", and "w" and "x" where they hold."""
    return "r" + "w" * bool(section["sh_flags"] & _WRITE) + "x" * bool(section["sh_flags"] & _EXEC)


def _small_data_first(member: tuple[int, Any]) -> tuple[bool, bool, int]:
    """Return the key by which sections are sorted.

    Data that code reaches with 16 bits from the GOT comes first, so that it is next to the GOT;
    what has no bytes in the file comes last.

    Args:
        member: (index of the section, the section).
    """
    n, section = member
    small = section.name.startswith((".toc", ".got", ".sdata", ".sbss", ".lit"))
    return section["sh_type"] == "SHT_NOBITS", not small, n


def _mips_pairs(relocations: list[Relocation], entries: list[SymbolEntry]) -> list[Relocation]:
    """Join the addends of a section's relocations, which MIPS files cut in two halves.

    The low half of a HI16's addend stands at the next LO16 for the same symbol; so does that of a
    GOT16 for a local symbol.

    Args:
        relocations: of one section, in order, with the halves as addends.
        entries: the symbol table.

    Returns:
        The relocations with whole addends, in the same order.
    """
    low: dict[int, int] = {}
    found = []
    for r in reversed(relocations):
        addend = r.addend or 0
        if r.type in (6, 65):  # LO16, PCLO16
            low[r.symbol] = addend
        elif r.type == 9 and entries[r.symbol].bind == "STB_LOCAL":  # GOT16
            addend = (addend << 16) + low.get(r.symbol, 0)
        elif r.type in (5, 64):  # HI16, PCHI16: read as bits 31..16
            addend += low.get(r.symbol, 0)
        found.append(r._replace(addend=addend))
    return found[::-1]
