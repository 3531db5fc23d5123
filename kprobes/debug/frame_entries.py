"""Where the entries of call frame information are (DWARF 5, 6.4.1; `.eh_frame`: LSB 5.0, 10.6.1).

pyelftools takes some 400 microseconds an entry, and a program has ten thousands; who unwinds asks
for a few. So entries are found here by their headers alone, and pyelftools reads one when it is
asked for: as a section that has nothing but this entry, and the one that it refers to.
"""

from __future__ import annotations

import io
from struct import Struct
from typing import Any, Final

from elftools.dwarf.callframe import CallFrameInfo

from .file import contents

#: DW_EH_PE, the lower four bits: struct's letter for an address
_FORMATS: Final = {0x2: "H", 0x3: "I", 0x4: "Q", 0xA: "h", 0xB: "i", 0xC: "q"}
_ARGUMENTS: Final = 0x2E  #: DW_CFA_GNU_args_size
_ABSOLUTE, _RELATIVE = 0x00, 0x10  #: DW_EH_PE, the upper four bits
_LONG: Final = 0xFFFF_FFFF  #: length of an entry in the 64-bit format


class FrameSection:
    """The entries of one section of call frame information.

    Attributes:
        functions: (start, end, offset of the entry in the section) of each function; link
            addresses, in the order of the section.
    """

    def __init__(self, info: Any, section: Any, eh: bool) -> None:
        """Find where the entries of functions are, by their headers alone.

        Args:
            info: pyelftools' DWARFInfo of the file.
            section: its section, as pyelftools describes it.
            eh: True: it is .eh_frame; False: .debug_frame.

        Raises:
            ValueError: it is damaged, or has something unusual.
            what pyelftools raises: an entry that others refer to is damaged.
        """
        self._structs = info.structs
        self._address = section.address
        self._eh = eh
        self._data: bytes = contents(section)
        self._order: Any = "little" if info.config.little_endian else "big"
        self._mark = "<" if info.config.little_endian else ">"
        self._word = info.config.default_address_size
        self._common: dict[int, tuple[Struct, bool]] = {}
        self._read: dict[int, Any] = {}
        self.functions = self._function_ranges()

    def _function_ranges(self) -> list[tuple[int, int, int]]:
        """Walk over the headers of all entries; return (start, end, offset in the section) of
        functions'. Functions without bytes are left out.

        Raises:
            ValueError: an entry is cut off, or has an unusual length or encoding.
            errors in DAMAGE: an entry that others refer to is damaged.
        """
        found = []
        data = self._data
        head = Struct(f"{self._mark}II")
        common = 0 if self._eh else 0xFFFF_FFFF  # what entries have that others refer to
        at = 0
        while at + 4 <= len(data):
            if at + 8 > len(data):
                if data[at : at + 4] != bytes(4):
                    raise ValueError("an entry of call frame information is cut off")
                break
            length, pointer = head.unpack_from(data, at)
            if self._eh and not length:
                at += 4
                continue
            end = at + 4 + length
            if length == _LONG or length < 4 or end > len(data):
                raise ValueError("an entry of call frame information with an unusual length")
            if pointer != common:
                numbers, relative = self._format(at + 4 - pointer if self._eh else pointer)
                start, size = numbers.unpack_from(data, at + 8)
                if relative:
                    start += self._address + at + 8
                if size:
                    found.append((start, start + size, at))
            at = end
        return found

    def _format(self, offset: int) -> tuple[Struct, bool]:
        """Return how the entries (FDEs) of one common entry (CIE) write their function's start and
        size.

        Args:
            offset: of the common entry in the section.

        Returns:
            (struct of the two numbers, True where the start counts from the place where it stands).

        Raises:
            errors in DAMAGE: the common entry is damaged, or its encoding of addresses is not known
                here.
        """
        if offset not in self._common:
            encoding = 0
            if self._eh:
                entries = self._entries(self._bytes(offset), self._address + offset)
                encoding = entries[0].augmentation_dict["FDE_encoding"]
            letter = {4: "I", 8: "Q"}[self._word]
            if encoding & 0xF:
                letter = _FORMATS[encoding & 0xF]
            if encoding & 0xF0 not in (_ABSOLUTE, _RELATIVE):
                raise ValueError("an unusual encoding of addresses")
            self._common[offset] = Struct(self._mark + 2 * letter), bool(encoding & 0xF0)
        return self._common[offset]

    def _bytes(self, offset: int) -> bytes:
        """Return the bytes of the entry at an offset. Raises ValueError: the offset is outside the
        section.
        """
        if not 0 <= offset <= len(self._data) - 8:
            raise ValueError("call frame information refers to what is outside of it")
        length = int.from_bytes(self._data[offset : offset + 4], self._order)
        return self._data[offset : offset + 4 + length]

    def _entries(self, data: bytes, address: int) -> list[Any]:
        """Let pyelftools parse bytes as if they were a whole section of call frame information.

        Args:
            data: the bytes: one entry or two.
            address: link address of the first byte.
        """
        frames = CallFrameInfo(io.BytesIO(data), len(data), address, self._structs, self._eh)
        found: list[Any] = frames.get_entries()
        return found

    def entry(self, offset: int) -> Any:
        """Return pyelftools' view of the entry of a function; it is parsed once.

        Args:
            offset: of the entry in the section, from `functions`.

        Raises:
            what pyelftools raises: it is damaged.
        """
        if offset not in self._read:
            own = self._bytes(offset)
            pointer = int.from_bytes(own[4:8], self._order)
            common = self._bytes(offset + 4 - pointer if self._eh else pointer)
            moved = (len(common) + 4 if self._eh else 0).to_bytes(4, self._order)
            # what counts from where it stands is to give the same address as before
            address = self._address + offset - len(common)
            entries = self._entries(common + own[:4] + moved + own[8:], address)
            self._read[offset] = understood(entries[1])
        return self._read[offset]


def understood(entry: Any) -> Any:
    """Remove DW_CFA_GNU_args_size from an entry's instructions, which pyelftools cannot decode.

    No row depends on it: bytes of pushed arguments, which C++'s exceptions take off the stack.

    Args:
        entry: pyelftools' view of it; is changed.

    Returns:
        `entry`.
    """
    entry.instructions[:] = [each for each in entry.instructions if each.opcode != _ARGUMENTS]
    return entry
