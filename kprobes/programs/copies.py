"""Copies of maps in a guest's memory: which side has changed, and what is copied over.

While the guest runs, its copies are valid. Between runs Python's maps are, but for hash tables:
these, and at a stop all maps, are valid once Map.fetch_from_guests() was called. A guest can write
over its copies: what comes of a ring or a hash table is checked before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from ..errors import MachineBusy
from .maps import Hash, Map, Ring
from .maps.hash import FRESH
from .maps.ring import CONSUMER, LOST, MASK, PRODUCER
from .maps.ring import HEADER as RING
from .maps.sound import sound

PAGE: Final = 4096


class CopiedMemory(Protocol):
    """A guest's memory.

    Attributes:
        read: (address, size) -> bytes.
        write: (address, bytes) writes.
    """

    read: Callable[[int, int], bytes]
    write: Callable[[int, bytes], None]

    def fresh(self, size: int) -> int:
        """Return the address of `size` new bytes of guest memory, zeroed."""

    @property
    def there(self) -> bool:
        """True while the guest still exists."""


class WholeMapCopy:
    """A map's copy in a guest whose whole memory is compared and copied: for all maps but rings."""

    def __init__(self, memory: CopiedMemory, at: int, m: Map) -> None:
        """Prepare for a copy that is all zeros.

        Args:
            memory: the guest's memory.
            at: guest address of the copy.
            m: the map.
        """
        self._memory = memory
        self._at = at
        self._map = m
        self._both = bytearray(m.block.size)  # what both have

    def push(self) -> None:
        """Write to the guest those pages of the map that Python has changed."""
        mine, both = self._map.block.view, self._both
        if mine == both:
            return
        for at in range(0, len(both), PAGE):
            piece = mine[at : at + PAGE]
            if piece != both[at : at + PAGE]:
                both[at : at + PAGE] = piece
                self._memory.write(self._at + at, bytes(piece))

    def used(self) -> int:
        """Return the number of bytes at the beginning that the guest may have changed."""
        return len(self._both)

    def pull(self) -> None:
        """Copy the guest's copy into Python's map.

        A hash table is emptied (Hash.drop) where programs cannot have left it as it is.
        """
        size = self.used()
        raw = self._memory.read(self._at, size)
        m = self._map
        changed = raw != self._both[:size]
        self._both[:size] = m.block.view[:size] = raw
        if changed and isinstance(m, Hash) and not sound(m):
            m.drop()


class HashCopy(WholeMapCopy):
    """A copy of a hash table: entries that were never used are not copied."""

    def __init__(self, memory: CopiedMemory, at: int, m: Hash) -> None:
        """Prepare for a copy that is all zeros.

        Args:
            memory: the guest's memory.
            at: guest address of the copy.
            m: the table.
        """
        super().__init__(memory, at, m)
        self._table = m

    def used(self) -> int:
        """Return the number of bytes up to the last entry that the guest's copy has ever used."""
        table = self._table
        order: Any = table.spec.order
        raw = self._memory.read(self._at + 8 * FRESH, 8)
        return table.entries + table.entry_size * min(int.from_bytes(raw, order), table.max_entries)


class RingCopy:
    """A ring's copy in a guest, of which only the header and new records are copied."""

    def __init__(self, memory: CopiedMemory, at: int, m: Ring) -> None:
        """Prepare for a copy that is all zeros.

        Args:
            memory: the guest's memory.
            at: guest address of the copy.
            m: the ring.
        """
        self._memory = memory
        self._at = at
        self._map = m
        self._both = self._words(bytes(RING))  # headers; data behind the producer are nobody's

    def _words(self, raw: bytes) -> list[int]:
        """Return the 64-bit words of a ring's header."""
        order: Any = self._map.spec.order
        return [int.from_bytes(raw[at : at + 8], order) for at in range(0, RING, 8)]

    def push(self) -> None:
        """Write to the guest the header, and the records that Python has added."""
        raw = bytes(self._map.block.view[:RING])
        mine = self._words(raw)
        if mine != self._both:
            for start, end in self._between(self._both, mine):
                self._memory.write(self._at + start, bytes(self._map.block.view[start:end]))
            self._memory.write(self._at, raw)
            self._both = mine

    def pull(self) -> None:
        """Copy the header, and the records that the guest has added, into Python's ring. Nothing is
        copied where the header is as it was.

        Where programs cannot have left such a header, Python's ring is emptied (Ring.drop) instead.
        """
        raw = self._memory.read(self._at, RING)
        theirs = self._words(raw)
        if theirs == self._both:
            return
        if self._sound(theirs):
            for start, end in self._between(self._both, theirs):
                self._map.block.view[start:end] = self._memory.read(self._at + start, end - start)
            self._map.block.view[:RING] = raw
        else:
            self._map.drop()
        self._both = theirs

    def _sound(self, theirs: list[int]) -> bool:
        """Return True where a header that was read from the guest is one that programs can write.

        False: the guest has written over it.

        Args:
            theirs: the words of the guest's header.
        """
        both, ours = self._both, (CONSUMER, PRODUCER, LOST)
        return (
            all(both[n] <= theirs[n] < 1 << 63 for n in ours)
            and 0 <= theirs[PRODUCER] - theirs[CONSUMER] <= self._map.size
            and all(theirs[n] == both[n] for n in range(MASK, RING // 8) if n not in ours)
        )

    def _between(self, old: list[int], new: list[int]) -> list[tuple[int, int]]:
        """Return which bytes of the ring's memory have records that were added between two headers.

        Args:
            old: words of the earlier header.
            new: words of the later header.

        Returns:
            (start, end) of each range, in bytes from the ring's address: two where the records
            wrap around, none where nothing was added.
        """
        start = max(old[PRODUCER], new[CONSUMER])
        size = self._map.size
        length = min(max(new[PRODUCER] - start, 0), size)
        first = start & size - 1
        beyond = max(first + length - size, 0)
        return [
            (RING + at, RING + at + many) for at, many in ((first, length), (0, beyond)) if many
        ]


class MapCopy:
    """The copy of a map in a guest.

    Attributes:
        at: guest address of the copy.
        large: True for a hash table, which is not copied before Python looks at it.
        theirs: True while the guest's copy is valid, and Python's map is not.
    """

    def __init__(self, memory: CopiedMemory, m: Map) -> None:
        """Make the copy, all zeros, and enter pull() into the map's `copies`.

        Args:
            memory: the guest's memory.
            m: the map.
        """
        self._memory = memory
        self.at = memory.fresh(m.block.size)
        self._copy: RingCopy | WholeMapCopy
        if isinstance(m, Ring):
            self._copy = RingCopy(memory, self.at, m)
        elif isinstance(m, Hash):
            self._copy = HashCopy(memory, self.at, m)
        else:
            self._copy = WholeMapCopy(memory, self.at, m)
        self.large = isinstance(m, Hash)
        self.theirs = False
        m.copies.append(self.pull)

    def push(self) -> None:
        """Copy Python's map into the guest, as the guest goes on.

        From then until pull() the guest's copy is valid. Nothing is copied where it is valid
        already.
        """
        if not self.theirs:
            self._copy.push()
            self.theirs = True

    def pull(self) -> None:
        """Copy the guest's copy into Python's map, which is valid then until push().

        Nothing is copied while the guest runs for another thread, after it has ended, or where
        Python's map is valid already.
        """
        if self.theirs and self._memory.there:
            with suppress(MachineBusy):
                self._copy.pull()
                self.theirs = False
