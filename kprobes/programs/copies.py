"""Maps in a guest's memory: who has changed them, and what goes over.

While the guest runs its copies are the true ones. Between runs Python's maps are, and at a stop
those that somebody has settled. A guest can write over its copies: what comes of a ring or a hash
table is looked at before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from ..errors import MachineBusy
from .maps import Hash, Map, Ring
from .maps.ring import CONSUMER, LOST, MASK, PRODUCER
from .maps.ring import HEADER as RING
from .maps.sound import sound

PAGE: Final = 4096


class CopiedMemory(Protocol):
    """A guest's."""

    read: Callable[[int, int], bytes]
    write: Callable[[int, bytes], None]
    def fresh(self, size: int) -> int: ...

    @property
    def there(self) -> bool: ...


class Whole:
    """A copy that is compared, and read, as a whole."""

    def __init__(self, memory: CopiedMemory, at: int, m: Map) -> None:
        self._memory = memory
        self._at = at
        self._map = m
        self._both = bytearray(m.block.size)  # what both have

    def push(self) -> None:
        """Write to the guest what Python has changed."""
        mine, both = self._map.block.view, self._both
        if mine == both:
            return
        for at in range(0, len(both), PAGE):
            piece = mine[at:at + PAGE]
            if piece != both[at:at + PAGE]:
                both[at:at + PAGE] = piece
                self._memory.write(self._at + at, bytes(piece))

    def pull(self) -> None:
        """Read what the guest may have changed; a table that something else than programs has
        written to is emptied.
        """
        raw, m = self._memory.read(self._at, len(self._both)), self._map
        changed = raw != self._both
        self._both[:] = m.block.view[:len(self._both)] = raw
        if changed and isinstance(m, Hash) and not sound(m):
            m.drop()


class Records:
    """A ring's copy: the header, and the records that are new."""

    def __init__(self, memory: CopiedMemory, at: int, m: Ring) -> None:
        self._memory = memory
        self._at = at
        self._map = m
        self._both = self._words(bytes(RING))  # headers; data behind the producer are nobody's

    def _words(self, raw: bytes) -> list[int]:
        order: Any = self._map.spec.order
        return [int.from_bytes(raw[at:at + 8], order) for at in range(0, RING, 8)]

    def push(self) -> None:
        """Write to the guest what Python has consumed and recorded."""
        raw = bytes(self._map.block.view[:RING])
        mine = self._words(raw)
        if mine != self._both:
            for start, end in self._between(self._both, mine):
                self._memory.write(self._at + start, bytes(self._map.block.view[start:end]))
            self._memory.write(self._at, raw)
            self._both = mine

    def pull(self) -> None:
        """Read what the guest has recorded; nothing where something else than programs has written
        there.
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
        """Return True if programs may have left such a header."""
        both, ours = self._both, (CONSUMER, PRODUCER, LOST)
        return (all(both[n] <= theirs[n] < 1 << 63 for n in ours)
                and 0 <= theirs[PRODUCER] - theirs[CONSUMER] <= self._map.size
                and all(theirs[n] == both[n] for n in range(MASK, RING // 8) if n not in ours))

    def _between(self, old: list[int], new: list[int]) -> list[tuple[int, int]]:
        """List the places of records that `new` has and `old` has not: (start, end)."""
        start, size = max(old[PRODUCER], new[CONSUMER]), self._map.size
        length = min(max(new[PRODUCER] - start, 0), size)
        first = start & size - 1
        beyond = max(first + length - size, 0)
        return [
            (RING + at, RING + at + many) for at, many in ((first, length), (0, beyond)) if many
        ]


class MapCopy:
    """A map in the guest. at: its address there. theirs: the guest has what is true."""

    def __init__(self, memory: CopiedMemory, m: Map) -> None:
        self._memory = memory
        self.at = memory.fresh(m.block.size)
        self._copy = (
            Records(memory, self.at, m) if isinstance(m, Ring) else Whole(memory, self.at, m)
        )
        self.theirs = False
        m.copies.append(self.pull)

    def push(self) -> None:
        """The guest goes on: it has what is true from now on."""
        if not self.theirs:
            self._copy.push()
            self.theirs = True

    def pull(self) -> None:
        """Python has, as long as the guest stands still; while it runs for another thread, nothing
        changes.
        """
        if self.theirs and self._memory.there:
            with suppress(MachineBusy):
                self._copy.pull()
                self.theirs = False
