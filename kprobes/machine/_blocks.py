"""Guest memory that is ours: mapped onto host memory, so that reading and writing it takes no call into the engine."""

from __future__ import annotations

import ctypes
import mmap

from attrs import frozen


@frozen(eq=False)
class Block:
    """A mapped stretch of guest memory and the host memory beneath it.

    Attributes:
        view: its bytes. words: the same as aligned words of `width` bytes, in the host's byte order. code: it may be executed.
    """

    start: int
    end: int
    view: memoryview
    words: memoryview
    width: int
    code: bool

    @classmethod
    def make(cls, start: int, size: int, width: int, code: bool) -> Block:
        """Zeroed host memory for [start, start + size), of words of 4 or 8 bytes."""
        view = memoryview(mmap.mmap(-1, size))
        return cls(start, start + size, view, view.cast("Q" if width == 8 else "I"), width, code)

    @property
    def host(self) -> int:
        """Host address of the first byte."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self.view))


_NOWHERE = Block(1, 0, memoryview(b""), memoryview(b""), 1, False)


class Blocks:
    """The blocks by address; the one used last is looked at first."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self.last = _NOWHERE

    def add(self, block: Block) -> None:
        """Know a block from now on."""
        self._blocks.append(block)

    def remove(self, start: int, end: int) -> None:
        """Forget every block that touches [start, end): the engine answers for what is left of it."""
        self._blocks = [b for b in self._blocks if b.end <= start or end <= b.start]
        self.last = _NOWHERE

    def find(self, addr: int, size: int) -> Block | None:
        """The block that holds all of [addr, addr + size), or None."""
        block = self.last
        if block.start <= addr and addr + size <= block.end:
            return block
        for block in self._blocks:
            if block.start <= addr and addr + size <= block.end:
                self.last = block
                return block
        return None
