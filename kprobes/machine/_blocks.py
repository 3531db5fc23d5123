"""Guest memory that is ours: mapped onto host memory, so that reading and writing it takes no call into the engine."""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable
from typing import Literal

from attrs import frozen

Read = Callable[[int, int], bytes]
Write = Callable[[int, bytes], None]


@frozen(eq=False)
class Block:
    """A mapped stretch of guest memory and the host memory beneath it.

    Attributes:
        view: its bytes. words: the same as aligned words in the host's byte order. size, room: bytes that can be read there, and
        written without further ado: none of code.
    """

    start: int
    end: int
    view: memoryview
    words: memoryview
    size: int
    room: int

    @classmethod
    def make(cls, start: int, size: int, width: int, code: bool) -> Block:
        """Zeroed host memory for [start, start + size), of words of 4 or 8 bytes."""
        view = memoryview(mmap.mmap(-1, size))
        return cls(start, start + size, view, view.cast("Q" if width == 8 else "I"), size, 0 if code else size)

    @property
    def host(self) -> int:
        """Host address of the first byte."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self.view))


_NOWHERE = Block(1, 0, memoryview(b""), memoryview(b""), 0, 0)


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

    def words(self, width: int, order: Literal["little", "big"], read: Read, write: Write) -> tuple[Callable[[int], int], Callable[[int, int], None]]:
        """(load, store) of one word of `width` bytes: what handlers read most, and return probes write most, is the stack.

        Aligned words of the block used last take no call where the host has the guest's byte order; `read` and `write` do the rest.
        """
        low, shift = width - 1, width.bit_length() - 1
        word = struct.Struct((">" if order == "big" else "<") + ("Q" if width == 8 else "I"))
        unpack, pack = word.unpack_from, word.pack_into

        def load(addr: int) -> int:
            block = self.last
            at = addr - block.start
            if at & low or not 0 <= at < block.size:
                return int.from_bytes(read(addr, width), order)
            return block.words[at >> shift]

        def store(addr: int, value: int) -> None:
            block = self.last
            at = addr - block.start
            if at & low or not 0 <= at < block.room:
                write(addr, value.to_bytes(width, order))
            else:
                block.words[at >> shift] = value

        def load_swapped(addr: int) -> int:
            block = self.last
            at = addr - block.start
            return unpack(block.view, at)[0] if 0 <= at <= block.size - width else int.from_bytes(read(addr, width), order)

        def store_swapped(addr: int, value: int) -> None:
            block = self.last
            at = addr - block.start
            if 0 <= at <= block.room - width:
                pack(block.view, at, value)
            else:
                write(addr, value.to_bytes(width, order))

        return (load, store) if order == sys.byteorder else (load_swapped, store_swapped)
