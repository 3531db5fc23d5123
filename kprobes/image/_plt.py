"""Stubs of procedure linkage tables: which of a file's own code leads to which import, as `f@plt`.

A stub reads an import's address from a slot (a word of the GOT) and goes there. Where its code
names the slot the code is read; linkers for PowerPC leave names; SPARC's slots are the stubs; on
MIPS an undefined symbol's value is its stub.

A finder of a machine (_x86_64 and so on) takes a section of stubs, and yields (address of a stub,
its bytes, address of its slot).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from attrs import frozen

from ._elf import Elf, Relocation, SymbolEntry
from ._sites import signed
from ._symbol import Symbol
from ._types import (
    AARCH64,
    ARM,
    I386,
    M68K,
    MIPS,
    PPC,
    PPC64,
    RISCV,
    S390,
    SPARC,
    SPARC32PLUS,
    SPARCV9,
    X86_64,
)

#: a section's stubs: (address of a stub, its bytes, address of the slot that it jumps through)
Stubs = Iterator[tuple[int, int, int]]
_LINKERS_NAMES = re.compile(
    r"(?:[0-9a-f]{8}\.(?:got2\.)?plt_(?:call|call32|pic32)\.|__plt_)"
    r"(?P<name>[^@+]+)(?:@\w+|\+0)?"
)
_MIPS_STUB = 16  # bytes


@frozen
class PltTable:
    """A section of stubs.

    Attributes:
        code: the section's bytes.
        start: link address of the section.
        size: bytes of an entry, as its header says; 0 where that does not.
        got: what DT_PLTGOT says: address of the GOT; 0 where there is none.
        order: "little" or "big", of instructions.
        wide: True: 64 bits.
    """

    code: bytes
    start: int
    size: int
    got: int
    order: str
    wide: bool

    def words(self) -> list[int]:
        """Return the code as unsigned numbers of 4 bytes each, in the byte order of
        instructions.
        """
        return [
            int.from_bytes(self.code[at : at + 4], "big" if self.order == "big" else "little")
            for at in range(0, len(self.code) - 3, 4)
        ]


def plt_symbols(
    elf: Elf,
    relocations: Iterable[Relocation],
    entries: Sequence[SymbolEntry],
    everything: Iterable[SymbolEntry],
) -> Iterator[Symbol]:
    """Yield `f@plt` for each stub that jumps to an import f; nothing on machines whose stubs are
    not known.

    Args:
        elf: the file.
        relocations: they tell which slot is whose.
        entries: the dynamic symbols, which relocations count.
        everything: entries of all symbol tables, for linkers that name stubs.
    """
    names = {
        r.offset: entries[r.symbol].name
        for r in relocations
        if r.symbol and r.symbol < len(entries)
    }
    if elf.machine in (SPARC, SPARC32PLUS, SPARCV9):
        yield from _slots_that_are_stubs(elf, relocations, entries)
    elif elf.machine == MIPS:
        yield from (
            _symbol(e.name, e.value, _MIPS_STUB, e.value & 1)
            for e in entries
            if e.section == "SHN_UNDEF" and e.value and e.name
        )
    elif elf.machine in (PPC, PPC64):
        found = (
            (_LINKERS_NAMES.fullmatch(e.name), e) for e in everything if e.section != "SHN_UNDEF"
        )
        yield from (_symbol(match["name"], e.value, e.size, 0) for match, e in found if match)
    elif elf.machine in _FINDERS:
        for table in _tables(elf):
            yield from (
                _symbol(names[slot], addr, size, 0)
                for addr, size, slot in _FINDERS[elf.machine](table)
                if names.get(slot)
            )


def _symbol(name: str, address: int, size: int, mode: int) -> Symbol:
    """Return the symbol `NAME@plt` of a stub.

    Args:
        name: of the import.
        address: of the stub, mode bits included.
        size: bytes of the stub.
        mode: mode bits of its code.
    """
    return Symbol(f"{name}@plt", address - mode, size, mode=mode)


def _tables(elf: Elf) -> Iterator[PltTable]:
    """Yield the sections of stubs that a file has (.plt and .iplt with what follows in their
    names).

    Instructions are little-endian on AArch64 and in Arm files of BE8, else of the file's order.
    """
    order = (
        "little"
        if elf.machine == AARCH64 or (elf.machine == ARM and elf.flags & 0x00800000)
        else elf.order
    )
    for section in elf.sections:
        if section.name.startswith((".plt", ".iplt")) and section["sh_type"] == "SHT_PROGBITS":
            code = elf.bytes_at(section["sh_offset"], section["sh_size"])
            yield PltTable(
                code,
                section["sh_addr"],
                section["sh_entsize"],
                elf.tags.get("DT_PLTGOT", 0),
                order,
                elf.bits == 64,
            )


def _slots_that_are_stubs(
    elf: Elf, relocations: Iterable[Relocation], entries: Sequence[SymbolEntry]
) -> Iterator[Symbol]:
    """Yield `f@plt` of SPARC's slots, which are code.

    Args:
        elf: the file.
        relocations: one for each slot.
        entries: the dynamic symbols, which relocations count.
    """
    jump_slot, size = 21, 32 if elf.machine == SPARCV9 else 12
    for r in relocations:
        if r.type & 0xFF == jump_slot and 0 < r.symbol < len(entries) and entries[r.symbol].name:
            yield _symbol(entries[r.symbol].name, r.offset, size, 0)


def _x86_64(t: PltTable) -> Stubs:
    """Yield (address, bytes, address of its slot) of stubs of the form [endbr64] [bnd] jmp
    *slot(%rip).
    """
    size = t.size if t.size in (8, 16) else 16
    for at in range(0, len(t.code), size):
        jump = t.code[at : at + size].find(b"\xff\x25")
        if jump in (0, 1, 4, 5):
            behind = at + jump + 6
            yield (
                t.start + at,
                size,
                t.start
                + behind
                + int.from_bytes(t.code[behind - 4 : behind], "little", signed=True),
            )


def _i386(t: PltTable) -> Stubs:
    """Yield (address, bytes, address of its slot) of stubs of the form [endbr32] jmp *slot, or jmp
    *distance(%ebx) with the GOT in ebx.
    """
    size = t.size if t.size in (8, 16) else 16
    for at in range(0, len(t.code), size):
        found = re.match(
            rb"(?:\xf3\x0f\x1e\xfb)?\xff([\x25\xa3])(.{4})", t.code[at : at + size], re.DOTALL
        )
        if found:
            yield (
                t.start + at,
                size,
                int.from_bytes(found[2], "little") + (t.got if found[1] == b"\xa3" else 0)
                & 0xFFFFFFFF,
            )


def _aarch64(t: PltTable) -> Stubs:
    """Yield (address, bytes, address of its slot) of stubs of the form [bti c] adrp x16, page; ldr
    x17, [x16, #offset].
    """
    words = t.words()
    for n, (adrp, ldr) in enumerate(pairwise(words)):
        if adrp & 0x9F00001F == 0x90000010 and ldr & 0xFFC003FF == 0xF9400211:
            page = (t.start + 4 * n & ~0xFFF) + signed(
                (adrp >> 5 & 0x7FFFF) << 2 | adrp >> 29 & 3, 21
            ) * 0x1000
            marked = n > 0 and words[n - 1] == 0xD503245F
            yield t.start + 4 * n - 4 * marked, 16 + 4 * marked, page + (ldr >> 10 & 0xFFF) * 8


def _arm(t: PltTable) -> Stubs:
    """Yield (address, bytes, address of its slot) of stubs of the form add ip, pc, #a; add ip, ip,
    #b; [add ip, ip, #c;] ldr pc, [ip, #d]!

    a to c are rotated bytes.
    """
    words = t.words()
    for n, first in enumerate(words):
        if first & 0xFFFFF000 == 0xE28FC000:
            adds = [first, *(w for w in words[n + 1 : n + 3] if w & 0xFFFFF000 == 0xE28CC000)]
            load = words[n + len(adds)] if n + len(adds) < len(words) else 0
            if load & 0xFFFFF000 == 0xE5BCF000:
                yield (
                    t.start + 4 * n,
                    4 * len(adds) + 4,
                    t.start + 4 * n + 8 + sum(map(_rotated, adds)) + (load & 0xFFF) & 0xFFFFFFFF,
                )


def _rotated(word: int) -> int:
    """Return the immediate of an A32 data-processing instruction: a byte, rotated.

    Args:
        word: the instruction.
    """
    value, by = word & 0xFF, word >> 7 & 30
    return (value >> by | value << 32 - by) & 0xFFFFFFFF


def _riscv(t: PltTable) -> Stubs:
    """Yield (address, bytes, address of its slot) of stubs of the form auipc t3, high; l[wd] t3,
    low(t3); jalr t1, t3.
    """
    words = t.words()
    for n, (auipc, load) in enumerate(pairwise(words)):
        if auipc & 0xFFF == 0xE17 and load & 0xFFFFF == (0xE3E03 if t.wide else 0xE2E03):
            slot = t.start + 4 * n + signed(auipc & 0xFFFFF000, 32) + signed(load >> 20, 12)
            yield t.start + 4 * n, 16, slot & (1 << (64 if t.wide else 32)) - 1


def _s390x(t: PltTable) -> Stubs:
    """Yield (address, bytes, address of its slot) of stubs of the form larl %r1, slot; lg %r1,
    0(%r1); br %r1.
    """
    for found in re.finditer(rb"\xc0\x10(.{4})\xe3\x10\x10\x00\x00\x04\x07\xf1", t.code, re.DOTALL):
        at = t.start + found.start()
        yield at, 32, at + 2 * int.from_bytes(found[1], "big", signed=True)


def _m68k(t: PltTable) -> Stubs:
    """Yield (address, bytes, address of its slot) of stubs of the form jmp ([slot, %pc])."""
    for found in re.finditer(rb"\x4e\xfb\x01\x71(.{4})", t.code, re.DOTALL):
        at = t.start + found.start()
        yield at, 20, at + 2 + int.from_bytes(found[1], "big", signed=True) & 0xFFFFFFFF


_FINDERS: dict[int, Callable[[PltTable], Stubs]] = {
    X86_64: _x86_64,
    I386: _i386,
    AARCH64: _aarch64,
    ARM: _arm,
    RISCV: _riscv,
    S390: _s390x,
    M68K: _m68k,
}
