"""pyelftools' view of a file, of which only the sections that are asked for are read.

Its own reads all of them to know one by name: libc's hash tables among them, which take longer than
what is looked for.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section

_NO_BITS = 8  #: SHT_NOBITS
_EXTENDED = 0xFFFF  #: SHN_XINDEX: a number that has no room in the file's header


class SectionedElf(ELFFile):  # type: ignore[misc]
    """An ELF file of pyelftools whose sections are found by their headers, without reading all of
    them.

    Attributes:
        data: contents of the file.
    """

    def __init__(self, data: bytes) -> None:
        """Read the file's header.

        Raises:
            ELFError, and what else damage leads to.
        """
        self.data = data
        super().__init__(io.BytesIO(data) if isinstance(data, bytes) else data)

    @cached_property
    def _headers(self) -> list[Any]:
        """The sections' headers."""
        return [self._get_section_header(n) for n in range(self.num_sections())]

    @cached_property
    def _section_name_map(self) -> dict[str, int]:
        """Name of a section -> its number; of several the last one, as pyelftools has it."""
        try:
            places = section_places(self.data)
        except (ValueError, IndexError, struct.error):
            return {self._get_section_name(header): n for n, header in enumerate(self._headers)}
        return {place.name.decode("utf-8", "replace"): n for n, place in enumerate(places)}

    def iter_sections(self, type: str | None = None) -> Iterator[Section]:
        """Yield the sections of a type, as pyelftools names it; None: all."""
        for n, header in enumerate(self._headers):
            if type is None or header["sh_type"] == type:
                yield self.get_section(n)


class SectionPlace(NamedTuple):
    """Where a section of an ELF file is.

    Attributes:
        name: of the section.
        type: sh_type, a number.
        address: link address in memory.
        offset: in the file.
        size: bytes in memory, and in the file but for SHT_NOBITS.
    """

    name: bytes
    type: int
    address: int
    offset: int
    size: int

    def contents(self, data: bytes) -> bytes:
        """Return the section's bytes as they are in the file, where they may be compressed.

        Args:
            data: contents of the file that has the section.
        """
        return b"" if self.type == _NO_BITS else data[self.offset : self.offset + self.size]


def section_places(data: bytes) -> list[SectionPlace]:
    """Return where the sections of an ELF file are: a list whose index is the section's number; []
    where the file has no section headers.

    It takes a hundredth of pyelftools' time.

    Args:
        data: contents of the file.

    Raises:
        ValueError, struct.error, IndexError: it is no ELF file, or damaged.
    """
    if data[:4] != b"\x7fELF" or data[4] not in (1, 2) or data[5] not in (1, 2):
        raise ValueError("no ELF file")
    mark = "<" if data[5] == 1 else ">"
    wide = data[4] == 2
    head = struct.Struct(f"{mark}16x{'HHIQQQIHHHHHH' if wide else 'HHIIIIIHHHHHH'}")
    row = struct.Struct(f"{mark}{'IIQQQQIIQQ' if wide else '10I'}")
    fields = head.unpack_from(data)
    start, stride, count, names = fields[5], fields[10], fields[11], fields[12]
    if not start:
        return []
    if stride < row.size or start > len(data):
        raise ValueError("headers of sections that are too short, or outside")
    first = row.unpack_from(data, start)
    if not count:
        count = first[5]
    if names == _EXTENDED:
        names = first[6]
    if count * stride > len(data):
        raise ValueError("more sections than the file has bytes for")
    rows = [row.unpack_from(data, start + stride * n) for n in range(count)]
    texts = rows[names][4]
    found = []
    for text, type, _, address, offset, size, *_ in rows:
        at = texts + text
        end = data.find(b"\0", at)
        if end < 0:
            raise ValueError("a section's name without an end")
        name = data[at:end]
        found.append(SectionPlace(name, type, address, offset, size))
    return found
