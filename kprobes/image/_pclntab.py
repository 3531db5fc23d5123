"""Go's table of functions, `.gopclntab`, which stays in stripped programs: names, addresses and
where functions end.

Its first word tells its version: that of the first Go with it. Go's package debug/gosym reads the
same. All that the table says is checked, since a file may say anything; what is damaged ends the
list.

    1.2   nfunc, then (pc, offset) of each function in words, and the end; names are offsets from
          the header
    1.16  nfunc, nfiles, offsets of the names, of the units, files and pc tables, and of the
          functions
    1.18  the same with the text's start behind nfiles; (pc - text, offset) are of 32 bits
    1.20  as 1.18; since 1.26 the text's start is 0, and that of `.text` counts
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from attrs import frozen

from ._elf import Elf, Relocation

SECTIONS = (".gopclntab", ".data.rel.ro.gopclntab")
V2, V16, V18, V20 = 0xFFFFFFFB, 0xFFFFFFFA, 0xFFFFFFF0, 0xFFFFFFF1
LONGEST = 4096  #: bytes of a name


@frozen
class GoFunction:
    """A function of a Go program.

    Attributes:
        name: with its package: "main.main".
        address: link address.
        size: bytes, alignment behind the function included.
    """

    name: str
    address: int
    size: int


def go_functions(elf: Elf, relocations: Iterable[Relocation]) -> Iterator[GoFunction]:
    """Yield the functions that a Go program's table names, by address.

    Nothing where there is no table that can be read.

    Args:
        elf: the program.
        relocations: of the program, with their addends: in a PIE the table's addresses are among
            them.
    """
    section = next((s for s in elf.sections if s.name in SECTIONS), None)
    if section is None or section["sh_type"] == "SHT_NOBITS":
        return
    offset, size = section["sh_offset"], section["sh_size"]
    text = next((s["sh_addr"] for s in elf.sections if s.name == ".text"), 0)
    table = bytearray(elf.data[offset : offset + size])
    word = elf.bits // 8
    first = section["sh_addr"]
    for r in relocations:
        at = r.offset - first
        if not r.symbol and r.addend and 0 <= at <= len(table) - word:
            value = r.addend & (1 << elf.bits) - 1
            table[at : at + word] = value.to_bytes(
                word, "little" if elf.order == "little" else "big"
            )
    yield from functions(bytes(table), elf.order, text)


def functions(table: bytes, order: str, text: int) -> Iterator[GoFunction]:
    """Yield the functions of a table, by address; nothing where its version is not known. A row
    that makes no sense ends the result.

    Args:
        table: the section's bytes.
        order: "little" or "big".
        text: where the program's text begins, for tables that do not say.
    """
    reader = _TableReader(table, order)
    magic, word = reader.number(0, 4), reader.number(7, 1)
    sound = table[4:6] == b"\0\0" and reader.number(6, 1) in (1, 2, 4) and word in (4, 8)
    if magic not in (V2, V16, V18, V20) or not sound:
        return
    count = reader.number(8, word)
    if magic == V2:
        base, names, rows, entry = 0, 0, 8 + word, word
    else:
        late = magic != V16
        fields = [reader.number(8 + n * word, word) for n in range(8)]
        names, base = fields[3 if late else 2], fields[7 if late else 6]
        rows, entry = base, 4 if late else word
        text = fields[2] or text if late else 0
    if count == 0 or rows + (2 * count + 1) * entry > len(table):
        return
    places = [reader.number(rows + 2 * n * entry, entry) for n in range(count + 1)]
    for n, (start, end) in enumerate(pairwise(places)):
        if end <= start:
            return
        about = base + reader.number(rows + (2 * n + 1) * entry, entry)
        name = reader.name(names + reader.number(about + entry, 4))
        if not name:
            return
        yield GoFunction(name, start + (text if magic in (V18, V20) else 0), end - start)


class _TableReader:
    """Numbers and names of a table; 0 and "" outside of it."""

    def __init__(self, table: bytes, order: str) -> None:
        """
        Args:
            table: bytes of the table.
            order: "little" or "big".
        """
        self._table = table
        self._order = order

    def number(self, at: int, size: int) -> int:
        """Return the unsigned number of `size` bytes at offset `at`."""
        data = self._table[at : at + size]
        if len(data) != size:
            return 0
        return int.from_bytes(data, "little" if self._order == "little" else "big")

    def name(self, at: int) -> str:
        """Return the name at offset `at`, which ends with a NUL; "" where none of up to LONGEST
        bytes is there.
        """
        end = self._table.find(b"\0", at, at + LONGEST)
        return self._table[at:end].decode("utf-8", "replace") if 0 < at < end else ""
