"""pyelftools' view of a file, of which only the sections that are asked for are read.

Its own reads all of them to know one by name: libc's hash tables among them, which take longer than
what is looked for.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section


class SectionedElf(ELFFile):  # type: ignore[misc]
    """An ELF file whose sections are found by their headers."""

    def __init__(self, data: bytes) -> None:
        """Read the file's header.

        Raises:
            ELFError, and what else damage leads to.
        """
        super().__init__(io.BytesIO(data))

    @cached_property
    def _headers(self) -> list[Any]:
        """The sections' headers."""
        return [self._get_section_header(n) for n in range(self.num_sections())]

    @cached_property
    def _section_name_map(self) -> dict[str, int]:
        """Name of a section -> its number; of several the last one, as pyelftools has it."""
        return {self._get_section_name(header): n for n, header in enumerate(self._headers)}

    def iter_sections(self, type: str | None = None) -> Iterator[Section]:
        """Yield the sections of a type, as pyelftools names it; None: all."""
        for n, header in enumerate(self._headers):
            if type is None or header["sh_type"] == type:
                yield self.get_section(n)
