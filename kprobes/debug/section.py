"""Sections of files that are in memory, without copies of their contents."""

from __future__ import annotations

from typing import Any, overload


class SectionWindow:
    """A section's contents within those of its file, of which nothing is copied.

    It has what readers of DWARF use of bytes, of files and of maps: indices, find(), rfind(),
    seek(), tell() and read().

    Attributes:
        data: contents of the file.
        start: offset of the section's first byte in it.
    """

    __slots__ = ("_at", "_size", "data", "start")

    def __init__(self, data: bytes, start: int, size: int) -> None:
        """Look at a part of a file; the next read() begins at its first byte.

        Args:
            data: contents of the file.
            start: offset of the section's first byte in it.
            size: bytes of the section.

        Raises:
            ValueError: the file has not so many bytes.
        """
        if start < 0 or size < 0 or start + size > len(data):
            raise ValueError("a section reaches beyond its file")
        self.data = data
        self.start = start
        self._size = size
        self._at = 0

    @property
    def view(self) -> memoryview:
        """The section's bytes."""
        return memoryview(self.data)[self.start : self.start + self._size]

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> int: ...
    @overload
    def __getitem__(self, at: slice) -> bytes: ...
    def __getitem__(self, at: int | slice) -> int | bytes:
        if isinstance(at, slice):
            first, behind, step = at.indices(self._size)
            if step == 1:
                return self.data[self.start + first : self.start + max(first, behind)]
            return bytes(self.view[at])
        if not -self._size <= at < self._size:
            raise IndexError("behind the section")
        return self.data[self.start + at % self._size]

    def find(self, wanted: bytes, start: int = 0, end: int | None = None) -> int:
        """Return the offset of the first occurrence of some bytes; -1: there is none.

        Args:
            wanted: the bytes.
            start: offset where the search begins.
            end: offset where it ends; None: where the section does.
        """
        first, behind, _ = slice(start, end).indices(self._size)
        found = self.data.find(wanted, self.start + first, self.start + behind)
        return found if found < 0 else found - self.start

    def rfind(self, wanted: bytes, start: int = 0, end: int | None = None) -> int:
        """Return the offset of the last occurrence of some bytes; -1: there is none.

        Args:
            wanted: the bytes.
            start: offset where the search begins.
            end: offset where it ends; None: where the section does.
        """
        first, behind, _ = slice(start, end).indices(self._size)
        found = self.data.rfind(wanted, self.start + first, self.start + behind)
        return found if found < 0 else found - self.start

    def seek(self, at: int, whence: int = 0) -> int:
        """Set where the next read() begins, and return it: an offset in the section.

        Args:
            at: bytes from the section's first byte (`whence` 0), from where read() would begin (1),
                or from the section's end (2).
            whence: from where they are counted.

        Raises:
            ValueError: that is before the section.
        """
        place = at + (0, self._at, self._size)[whence]
        if place < 0:
            raise ValueError("before the section")
        self._at = place
        return place

    def tell(self) -> int:
        """Return the offset at which the next read() begins."""
        return self._at

    def read(self, count: int | None = None) -> bytes:
        """Return the next `count` bytes, or as many as there are, and move on behind them; the rest
        for None or a negative number.
        """
        behind = self._size if count is None or count < 0 else min(self._at + count, self._size)
        first = min(self._at, self._size)
        self._at = max(behind, self._at)
        return self.data[self.start + first : self.start + max(first, behind)]


def buffer_of(contents: Any) -> Any:
    """Return a section's contents as an object with Python's buffer protocol.

    Args:
        contents: bytes, a map of a file, or a SectionWindow.
    """
    return contents.view if isinstance(contents, SectionWindow) else contents
