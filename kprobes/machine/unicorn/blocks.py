"""Guest memory that is ours: mapped onto host memory, so that reading and writing it takes no call
into the engine.
"""

from __future__ import annotations

import ctypes
import sys
from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Literal

from attrs import frozen

from ...hostmemory import zeroed

Read = Callable[[int, int], bytes]
Write = Callable[[int, bytes], None]


@frozen(eq=False)
class HostBlock:
    """A mapped stretch of guest memory and the host memory beneath it.

    Attributes:
        start: guest address of the first byte.
        end: guest address behind the last byte.
        view: its bytes in this process.
        words: the same as aligned words in the guest's byte order.
        size: bytes that can be read by `words`.
        room: bytes that can be written by `words`: `size`; 0 for a block of code, whose
            translations a write would have to drop.
    """

    start: int
    end: int
    view: memoryview
    words: Any
    size: int
    room: int

    @property
    def host(self) -> int:
        """The address of the first byte in this process."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self.view))


_NOWHERE = HostBlock(1, 0, memoryview(b""), memoryview(b""), 0, 0)


class HostBlocks:
    """The blocks of a guest's memory, found by address; the block found last is looked at first.

    Attributes:
        held: all blocks, in no order.
        last: the block found last; one without bytes: there is none.
    """

    def __init__(self, width: int, order: Literal["little", "big"]) -> None:
        """Prepare; there are no blocks.

        Args:
            width: bytes of a word of the guest's: 4 or 8.
            order: the guest's byte order.
        """
        #: the engine needs their host memory as long as it lives: whoever makes this object keeps
        #: `held` with the engine
        self.held: list[HostBlock] = []
        self._width = width
        self._order = order
        self._forgets: list[Callable[[], None]] = []
        self._changes: list[Callable[[], None]] = []
        self.last = _NOWHERE
        # by address, and their starts; made when it is asked for
        self._sorted: tuple[list[HostBlock], list[int]] | None = None

    def make(self, start: int, size: int, code: bool) -> HostBlock:
        """Return a block with new host memory, all zeros, for guest memory [start, start + size).

        find() does not know the block until add().

        Args:
            start: address of the first byte, as the engine has it.
            size: bytes.
            code: True where code will be there: a block whose `room` is 0.
        """
        return self._block(start, memoryview(zeroed(size)), code)

    def _block(self, start: int, view: memoryview, code: bool) -> HostBlock:
        """Return a block of existing host memory.

        Args:
            start: guest address of the first byte.
            view: the host memory.
            code: True where code is there.
        """
        size = len(view)
        return HostBlock(start, start + size, view, self._words(view), size, 0 if code else size)

    def _words(self, view: memoryview) -> Any:
        """Return a view of host memory as words of the guest's width and byte order.

        Args:
            view: the host memory.
        """
        if self._order == sys.byteorder:
            return view.cast("Q" if self._width == 8 else "I")
        word: Any = ctypes.c_uint64 if self._width == 8 else ctypes.c_uint32
        return (
            (word.__ctype_be__ if self._order == "big" else word.__ctype_le__)
            * (len(view) // self._width)
        ).from_buffer(view)

    def add(self, block: HostBlock) -> None:
        """Let find() know a block from now on, and call the functions given to on_change()."""
        self.held.append(block)
        self._sorted = None
        for told in [*self._changes]:
            told()

    def remove(self, start: int, end: int) -> None:
        """Forget the blocks in [start, end), which is mapped no more.

        What is left of a block outside of that becomes a block of its own. Host memory is freed
        with its last block. Functions given to on_remove() and on_change() are called.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
        """
        self._cut(start, end)
        for forget in (*self._forgets, *self._changes):
            forget()

    def mark(self, start: int, end: int, code: bool) -> None:
        """Note that [start, end) has code from now on, or that it has none.

        Blocks are cut at `start` and `end`, and replaced by others with the same host memory, even
        if nothing changes. Functions given to on_remove() and on_change() are called once each.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
            code: True where it has code.
        """
        self.held.extend(self._part(block, start, end, code) for block in self._cut(start, end))
        self._sorted = None
        for forget in (*self._forgets, *self._changes):
            forget()

    def _cut(self, start: int, end: int) -> list[HostBlock]:
        """Take [start, end) out of the known blocks, and return the blocks, whole, that had some of
        it.

        What is left of them outside of that becomes blocks of its own.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
        """
        cut = [block for block in self.held if start < block.end and block.start < end]
        left = [block for block in self.held if block not in cut]
        for block in cut:
            left.extend(
                self._part(block, low, high, not block.room)
                for low, high in ((block.start, start), (end, block.end))
                if low < high
            )
        self.held[:] = left
        self.last = _NOWHERE
        self._sorted = None
        return cut

    def _part(self, block: HostBlock, start: int, end: int, code: bool) -> HostBlock:
        """Return the part of a block that is in [start, end), as a block of its own on the same
        host memory.

        Args:
            block: the block.
            start: guest address of the first byte.
            end: guest address behind the last byte.
            code: True where code is there.
        """
        start, end = max(start, block.start), min(end, block.end)
        return self._block(start, block.view[start - block.start : end - block.start], code)

    def find(self, addr: int, size: int) -> HostBlock | None:
        """Return the block that holds all of [addr, addr + size); None: none does.

        The block that is found becomes `last`.

        Args:
            addr: address of the first byte.
            size: bytes.
        """
        block = self.last
        if block.start <= addr and addr + size <= block.end:
            return block
        if self._sorted is None:
            held = sorted(self.held, key=attrgetter("start"))
            self._sorted = held, [block.start for block in held]
        held, starts = self._sorted
        at = bisect_right(starts, addr) - 1
        if at < 0 or held[at].end < addr + size:
            return None
        block = self.last = held[at]
        return block

    def words(
        self, read: Read, write: Write
    ) -> tuple[Callable[[int], int], Callable[[int, int], None], Callable[[int, int], int]]:
        """Return functions that access one word of guest memory: (load, store, swap).

        load(addr) -> the word; store(addr, word); swap(addr, word) -> the word that was there.
        Aligned words of the block used last are loaded at once: handlers read the stack most, and
        return probes write there.

        Args:
            read: (addr, size) -> bytes, for all other words.
            write: (addr, bytes), for words that are not aligned, are code, or are in no block.
        """
        width, order = self._width, self._order
        low, shift = width - 1, width.bit_length() - 1

        def load(addr: int) -> int:
            """Return the word at an address."""
            block = self.last
            at = addr - block.start
            if at & low or not 0 <= at < block.size:
                return int.from_bytes(read(addr, width), order)
            return block.words[at >> shift]  # type: ignore[no-any-return]

        def store(addr: int, value: int) -> None:
            """Write a word to guest memory.

            Args:
                addr: address.
                value: the word, which must fit.
            """
            block = self.last
            at = addr - block.start
            if at & low or not 0 <= at < block.room:
                block = self.find(addr, width) or _NOWHERE
                at = addr - block.start
                if at & low or not block.room:
                    write(addr, value.to_bytes(width, order))
                    return
            block.words[at >> shift] = value

        def swap(addr: int, value: int) -> int:
            """Write a word to guest memory, and return the word that was there.

            Args:
                addr: address.
                value: the word, which must fit.
            """
            block = self.last
            at = addr - block.start
            if at & low or not 0 <= at < block.room:
                old = load(addr)
                store(addr, value)
            else:
                words, at = block.words, at >> shift
                old, words[at] = words[at], value
            return old

        return load, store, swap

    def window(self, addr: int) -> tuple[Any, int, int] | None:
        """Return words around a guest address, for host code or quick Python to look up others
        nearby.

        A distance from `start` that has none of the bits `outside` is that of one of the words.
        They are good until a function given to on_remove() is called.

        Args:
            addr: the guest address.

        Returns:
            (words, guest address of the first one (`start`), `outside`); the words are as many as
            make a power of two. None where no block has `addr`.
        """
        block = self.find(addr, self._width)
        if block is None:
            return None
        size = 1 << block.size.bit_length() - 1
        skip = 0 if addr - block.start < size else block.size - size
        return (
            self._words(block.view[skip : skip + size]),
            block.start + skip,
            ~(size - 1) | self._width - 1,
        )

    def on_remove(self, forget: Callable[[], None]) -> None:
        """Have a function called whenever blocks have been removed, or marked as code or data.

        Args:
            forget: the function; it takes no arguments.
        """
        self._forgets.append(forget)

    def on_change(self, told: Callable[[], None]) -> None:
        """Have a function called whenever blocks are added, removed, or marked as code or data,
        until ignore().

        Args:
            told: the function; it takes no arguments.
        """
        self._changes.append(told)

    def ignore(self, told: Callable[[], None]) -> None:
        """Stop calling a function that was given to on_change(). Others are left as they are."""
        if told in self._changes:
            self._changes.remove(told)
