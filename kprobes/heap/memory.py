"""The blocks that a heap check hands out: red zones around them, marks on what must not be
accessed, freed blocks that are kept back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import Final

from attrs import define, frozen

from ..errors import NoMemory
from ..hostmemory import zeroed
from ..machine._base import UNWRITTEN, MarkedMemory, Watched

#: Marks of bytes: of a red zone, of a block that was freed, of memory that no block has had.
RED: Final = 1
FREED: Final = 2
FRESH: Final = 4
RED_MARK: Final = bytes([RED])
FREED_MARK: Final = bytes([FREED])
#: What red zones and the beginning of freed blocks are filled with.
RED_FILL: Final = 0xFA
FREED_FILL: Final = 0xFD
KEPT: Final = 4096  #: bytes of a freed block that are filled, and compared later
RED_FILLS: Final = bytes([RED_FILL]) * KEPT
FREED_FILLS: Final = bytes([FREED_FILL]) * KEPT
ALIGNMENT: Final = 16  #: of every block
SEGMENT: Final = 1 << 18  #: bytes of the first segment; the next ones are larger
LARGEST: Final = 1 << 23  #: bytes of a segment, but for blocks that need more
WIDEST_ZONE: Final = 1024  #: bytes that a large block's red zone has besides
SMALL: Final = (
    1024  #: bytes of blocks whose room is written as a whole; `Shape`s of all sizes are kept
)

Stack = tuple[int, ...]


@frozen(eq=False)
class HeapBlock:
    """A block of guest memory that was allocated.

    Attributes:
        address: address of its first byte.
        size: bytes that were asked for.
        function: the name of the guest's function that allocated it.
        family: "malloc", "new" or "new[]".
        stack: return addresses of that call, innermost first.
        number: how many blocks were allocated before.
        start: address where the red zone in front of it begins.
        room: bytes from there to the end of the red zone behind it.
    """

    address: int
    size: int
    function: str
    family: str
    stack: Stack
    number: int
    start: int
    room: int

    @property
    def end(self) -> int:
        """Address behind the last byte."""
        return self.address + self.size


@frozen(eq=False)
class FreedBlock:
    """A block that was freed, and is kept back.

    Attributes:
        block: the block as it was allocated.
        function: the name of the guest's function that freed it.
        stack: return addresses of that call, innermost first.
    """

    block: HeapBlock
    function: str
    stack: Stack


@frozen
class Shape:
    """The bytes that fill a new small block and its red zones, for one size.

    Attributes:
        room: bytes of the block and its red zones.
        contents: these bytes as they are written for a new block, which itself is all zeros.
        marks: the mark of each of these bytes.
        front, behind: contents of both red zones.
    """

    room: int
    contents: bytes
    marks: bytes
    front: bytes
    behind: bytes


@define(eq=False)
class HeapSegment:
    """A piece of guest memory that blocks come from.

    Attributes:
        start: address of its first byte.
        size: bytes.
        marks: a mark for each byte, which the machine looks at when the guest accesses it.
        used: how many bytes from the start on have been handed out.
    """

    start: int
    size: int
    marks: memoryview
    used: int = 0


@frozen
class HeapState:
    """The heap at a snapshot (HeapMemory.snapshot_state).

    Attributes:
        segments: (start, size in bytes, marks of the bytes that were handed out) of each segment.
        alive: address -> block that is allocated.
        freed: address -> block that is kept back, the oldest first.
        free: size of a room in bytes -> addresses of rooms of that size that may be used again.
        number: how many blocks were allocated so far.
        in_use: bytes of the blocks that are allocated.
        kept_back: bytes of the blocks that are kept back, red zones included.
    """

    segments: list[tuple[int, int, bytes]]
    alive: dict[int, HeapBlock]
    freed: dict[int, FreedBlock]
    free: dict[int, list[int]]
    number: int
    in_use: int
    kept_back: int


Access = Callable[[int, int], bytes]


@frozen(kw_only=True)
class HeapLimits:
    """How much room blocks get, and how new ones are marked.

    Attributes:
        zone: bytes of a red zone, at least; rounded up to 16.
        quarantine: bytes of freed blocks that are kept back, red zones included.
        limit: bytes of blocks that may be allocated at a time.
        uninitialized: True to mark the bytes of new blocks as unwritten.
    """

    zone: int
    quarantine: int
    limit: int
    uninitialized: bool


class HeapMemory:
    """Allocates and frees blocks, with red zones around them, and keeps freed ones back.

    Attributes:
        alive: blocks that are allocated, by address.
        freed: blocks that are kept back, by address, the oldest first.
        in_use: bytes of the blocks that are allocated.
    """

    def __init__(
        self,
        memory: MarkedMemory,
        read: Access,
        write: Callable[[int, bytes], None],
        report: Watched | None,
        limits: HeapLimits,
    ) -> None:
        """Map the first segment of guest memory.

        Args:
            memory: the machine's memory with marks, which maps segments and watches them.
            read: (address, size) -> guest memory.
            write: (address, bytes) writes guest memory.
            report: called at accesses to marked bytes; None: accesses are not watched.
            limits: how much room blocks get, and how new ones are marked.
        """
        self._memory = memory
        self._read = read
        self._write = write
        self._report = report
        self._zone = -(-limits.zone // ALIGNMENT) * ALIGNMENT
        self._quarantine = limits.quarantine
        self._limit = limits.limit
        self._new_mark = bytes([UNWRITTEN if limits.uninitialized else 0])
        self.alive: dict[int, HeapBlock] = {}
        self.freed: dict[int, FreedBlock] = {}
        self.in_use = 0
        self._order: deque[int] = deque()  # addresses of `freed`
        self._kept_back = 0
        self._free: dict[int, list[int]] = {}  # room -> starts
        self._number = 0
        self._segments: list[HeapSegment] = []  # by address
        self._starts: list[int] = []  # of these
        self._shapes: dict[int, Shape] = {}  # size of a block -> its room
        self._known: dict[tuple[int, int], memoryview] = {}  # (start, size) -> marks being watched
        self._ends: list[Callable[[], None]] = []
        self._current = self._new_segment(SEGMENT)

    def close(self) -> None:
        """Stop watching accesses. The memory stays: the guest may go on to use it."""
        for end in self._ends:
            end()
        self._ends.clear()

    # --- blocks

    def allocate(
        self, size: int, alignment: int, function: str, family: str, stack: Stack
    ) -> HeapBlock | None:
        """Allocate a block: fill its red zones, and mark all bytes of its room. Its own bytes are
        marked as unwritten if reads of such are to be reported, else as good; they are zeroed in a
        block of at most SMALL bytes and of the usual alignment, else they are as they were.

        Args:
            size: bytes of the block.
            alignment: alignment of the block in bytes, a power of two; 16 at least is used.
            function: the name of the guest's function that allocates it.
            family: "malloc", "new" or "new[]".
            stack: return addresses of that call, innermost first.

        Returns:
            The block; None where there is no room for it, or the limit is reached.
        """
        if self.in_use + size > self._limit:
            return None
        small = None
        if size <= SMALL and alignment <= ALIGNMENT:
            small = self._shapes.get(size) or self._shape(size)
        alignment = max(alignment, ALIGNMENT)
        room = self._room(size, alignment) if small is None else small.room
        start = self._take(room)
        if start is None:
            return None
        address = (start + self._zone + alignment - 1) & -alignment
        block = HeapBlock(address, size, function, family, stack, self._number, start, room)
        self._number += 1
        self.in_use += size
        self.alive[address] = block
        marks, at = self._marks(start)
        if small is not None:
            marks[at : at + room] = small.marks
            self._write(start, small.contents)
            return block
        first, last = at + address - start, at + address - start + size
        marks[at:first] = RED_MARK * (first - at)
        marks[first:last] = self._new_mark * size
        marks[last : at + room] = RED_MARK * (at + room - last)
        self._write(start, _filled(RED_FILLS, address - start))
        self._write(block.end, _filled(RED_FILLS, start + room - block.end))
        return block

    def _room(self, size: int, alignment: int) -> int:
        """Return how many bytes a block takes together with its red zones, rounded up.

        Args:
            size: bytes of the block.
            alignment: alignment of the block in bytes, a power of two, 16 or more.
        """
        behind = self._zone + min(size // 8, WIDEST_ZONE)
        return _rounded(self._zone + alignment - ALIGNMENT + size + behind)

    def _shape(self, size: int) -> Shape:
        """Make the Shape of small blocks of `size` bytes, and keep it in `_shapes`; return it."""
        room = self._room(size, ALIGNMENT)
        front = _filled(RED_FILLS, self._zone)
        behind = _filled(RED_FILLS, room - self._zone - size)
        marks = RED_MARK * len(front) + self._new_mark * size + RED_MARK * len(behind)
        made = self._shapes[size] = Shape(room, front + bytes(size) + behind, marks, front, behind)
        return made

    def take_back(self, block: HeapBlock) -> None:
        """Take a new block back: its room may be used for another block, and is marked as
        memory that no block has had.

        Args:
            block: one of `alive`, which the guest has not got.
        """
        del self.alive[block.address]
        self.in_use -= block.size
        marks, at = self._marks(block.start)
        marks[at : at + block.room] = bytes([FRESH]) * block.room
        self._free.setdefault(block.room, []).append(block.start)

    def free(self, block: HeapBlock, function: str, stack: Stack) -> None:
        """Free a block: mark it, fill its first KEPT bytes, and keep it back. The blocks that
        leaving() has named for it are kept back no longer: their room may be used for new blocks.

        Args:
            block: one of `alive`.
            function: the name of the guest's function that frees it.
            stack: return addresses of that call, innermost first.
        """
        del self.alive[block.address]
        self.in_use -= block.size
        marks, at = self._marks(block.address)
        marks[at : at + block.size] = FREED_MARK * block.size
        self._write(block.address, FREED_FILLS[: block.size])
        self.freed[block.address] = FreedBlock(block, function, stack)
        self._order.append(block.address)
        self._kept_back += block.room
        while self._kept_back > self._quarantine:
            gone = self.freed.pop(self._order.popleft()).block
            self._kept_back -= gone.room
            self._free.setdefault(gone.room, []).append(gone.start)

    def leaving(self, block: HeapBlock) -> list[FreedBlock]:
        """Return the freed blocks that are kept back no longer when a block is freed, the oldest
        first; not that block itself. Nothing is changed.

        Their bytes are as the guest left them: the caller checks whether they were written to.

        Args:
            block: one of `alive`, which is to be freed.
        """
        excess = self._kept_back + block.room - self._quarantine
        leaving = []
        for freed in self.freed.values():
            if excess <= 0:
                break
            leaving.append(freed)
            excess -= freed.block.room
        return leaving

    def written(self, address: int, size: int) -> None:
        """Take the mark "unwritten" from bytes of a block, as they have been written.

        Args:
            address: address of the first byte.
            size: how many bytes.
        """
        if self._new_mark[0]:
            marks, at = self._marks(address)
            marks[at : at + size] = bytes(mark & ~UNWRITTEN for mark in marks[at : at + size])

    # --- what is where

    def marks(self, start: int, size: int) -> bytes:
        """Return the mark of each byte in a range; 0 for bytes that are in no segment.

        Args:
            start: address of the first byte.
            size: bytes.
        """
        n = bisect_right(self._starts, start) - 1
        if n >= 0 and start + size <= self._segments[n].start + self._segments[n].size:
            at = start - self._segments[n].start
            return bytes(self._segments[n].marks[at : at + size])
        return bytes(map(self._mark, range(start, start + size)))

    def _mark(self, address: int) -> int:
        """Return the mark of a byte; 0 for one that is in no segment."""
        n = bisect_right(self._starts, address) - 1
        if n < 0 or address >= self._segments[n].start + self._segments[n].size:
            return 0
        return self._segments[n].marks[address - self._segments[n].start]

    def has(self, address: int) -> bool:
        """Return True where an address is in memory that blocks come from."""
        n = bisect_right(self._starts, address) - 1
        return n >= 0 and address < self._segments[n].start + self._segments[n].size

    def nearest(self, address: int) -> HeapBlock | None:
        """Return the block, allocated or kept back, that an address is in or closest to.

        Returns:
            None: there is no block at all.
        """
        blocks = [*self.alive.values(), *(freed.block for freed in self.freed.values())]
        return min(blocks, key=lambda block: _distance(block, address), default=None)

    def containing(self, address: int) -> HeapBlock | None:
        """Return the allocated block that an address points into, or just behind.

        Returns:
            None: there is no such block.
        """
        return next(
            (block for block in self.alive.values() if block.address <= address <= block.end), None
        )

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The (start, end) addresses of each segment of memory that blocks come from."""
        return [(segment.start, segment.start + segment.size) for segment in self._segments]

    def damage(self, block: HeapBlock) -> tuple[int, bool] | None:
        """Check a block's red zones for bytes that were written.

        Args:
            block: the block, allocated.

        Returns:
            (address of a byte that was written, True where it lies behind the block): of the bytes
            behind the block the first; else the last in front of it. None where nothing was
            written there.
        """
        small = self._shapes.get(block.size)
        if small is not None and block.address - block.start == self._zone:
            whole = self._read(block.start, block.room)
            if whole.startswith(small.front) and whole.endswith(small.behind):
                return None
        front = self._read(block.start, block.address - block.start)
        behind = self._read(block.end, block.start + block.room - block.end)
        if behind == _filled(RED_FILLS, len(behind)) and front == _filled(RED_FILLS, len(front)):
            return None
        for n, byte in enumerate(behind):
            if byte != RED_FILL:
                return block.end + n, True
        for n, byte in enumerate(reversed(front)):
            if byte != RED_FILL:
                return block.address - 1 - n, False
        return None

    def changed(self, block: HeapBlock) -> int | None:
        """Check whether a freed block was written to since.

        Only its first KEPT bytes are looked at.

        Args:
            block: the freed block, whose room has not been used again.

        Returns:
            The address of the first byte that was written; None: none was.
        """
        now = self._read(block.address, min(block.size, KEPT))
        if now == FREED_FILLS[: len(now)]:
            return None
        for n, byte in enumerate(now):
            if byte != FREED_FILL:
                return block.address + n
        return None

    # --- room

    def _take(self, room: int) -> int | None:
        """Take memory for a block and its red zones; return its address; None: there is none.

        Taken is the room of an earlier block that had as many bytes, or else memory that was never
        used, in a new segment where the present one is full; what was left of the present one is
        then not used.

        Args:
            room: how many bytes, red zones included, as _room() gives them.
        """
        if free := self._free.get(room):
            return free.pop()
        if self._current.size - self._current.used < room:
            try:
                self._current = self._new_segment(
                    max(SEGMENT, min(2 * self._current.size, LARGEST), -(-room // 0x1000) * 0x1000)
                )
            except NoMemory:
                return None
        start = self._current.start + self._current.used
        self._current.used += room
        return start

    def _new_segment(self, size: int) -> HeapSegment:
        """Map `size` bytes of guest memory for blocks, all marked fresh, watch them, and add them
        to the heap's segments.

        Raises:
            NoMemory: there is no room for them.
        """
        start = self._memory.map(size)
        segment = HeapSegment(start, size, self._marks_of(start, size))
        segment.marks[:] = bytes([FRESH]) * size
        self._segments = sorted([*self._segments, segment], key=lambda one: one.start)
        self._starts = [one.start for one in self._segments]
        return segment

    def _marks_of(self, start: int, size: int) -> memoryview:
        """Return the marks of a segment, a byte for each of its bytes; begin to watch the segment.

        A segment that existed before gets the same marks again, and is watched already: snapshots
        take segments away and bring them back.

        Args:
            start: address of the segment's first byte.
            size: bytes of the segment.
        """
        if (start, size) not in self._known:
            marks = memoryview(zeroed(size))
            if self._report is not None:
                self._ends.append(self._memory.watch(start, marks, self._report))
            self._known[start, size] = marks
        return self._known[start, size]

    def _marks(self, address: int) -> tuple[memoryview, int]:
        """Return (marks of its segment, index of its mark) of an address, which is in a segment."""
        segment = self._segments[bisect_right(self._starts, address) - 1]
        return segment.marks, address - segment.start

    # --- going back

    @property
    def snapshot_state(self) -> HeapState:
        """A copy of the heap's state as it is now, for a snapshot.

        Setting it brings blocks, segments and marks back to that state; None: to a heap without
        segments and blocks. The guest's own bytes are not written, and segments made since are
        forgotten, their marks cleared, but not unmapped.
        """
        segments = [(one.start, one.size, bytes(one.marks[: one.used])) for one in self._segments]
        return HeapState(
            segments,
            self.alive.copy(),
            self.freed.copy(),
            {room: starts.copy() for room, starts in self._free.items()},
            self._number,
            self.in_use,
            self._kept_back,
        )

    @snapshot_state.setter
    def snapshot_state(self, then: HeapState | None) -> None:
        if then is None:
            then = HeapState([], {}, {}, {}, 0, 0, 0)
        now = {(one.start, one.size): one for one in self._segments}
        self._segments = []
        for start, size, marks in then.segments:
            segment = now.pop((start, size), None)
            if segment is None:
                segment = HeapSegment(start, size, self._marks_of(start, size), size)
            segment.marks[: len(marks)] = marks
            segment.marks[len(marks) : segment.used] = bytes([FRESH]) * (segment.used - len(marks))
            segment.used = len(marks)
            self._segments.append(segment)
        for gone in now.values():  # not mapped any more, or others have the memory
            gone.marks[:] = bytes(gone.size)
        self._starts = [one.start for one in self._segments]
        self.alive, self.freed = then.alive.copy(), then.freed.copy()
        self._order = deque(self.freed)
        self._free = {room: starts.copy() for room, starts in then.free.items()}
        self._number = then.number
        self.in_use = then.in_use
        self._kept_back = then.kept_back
        if self._segments:
            self._current = max(self._segments, key=lambda one: one.size - one.used)
        else:
            self._current = HeapSegment(0, 0, memoryview(b""))


def _filled(fills: bytes, size: int) -> bytes:
    """Return `size` bytes that are all the same.

    Args:
        fills: some of these bytes, at least one.
        size: how many are wanted.
    """
    return fills[:size] if size <= len(fills) else fills[:1] * size


def _rounded(room: int) -> int:
    """Return the size of a block's room rounded up, so that few sizes differ and rooms fit again.

    Args:
        room: bytes that are needed; rounded up to a multiple of 16, or of a sixteenth of the
            power of two that is not above it.
    """
    step = max(ALIGNMENT, 1 << max(room.bit_length() - 5, 0))
    return -(-room // step) * step


def _distance(block: HeapBlock, address: int) -> int:
    """Return the distance in bytes from an address to the nearest byte of a block; 0 inside it."""
    if address < block.address:
        return block.address - address
    return max(address - block.end + 1, 0)
