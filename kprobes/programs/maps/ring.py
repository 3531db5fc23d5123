"""Records for Python: RINGBUF and PERF_EVENT_ARRAY.

At `address` there are eight u64, then the data:

    0  consumer: position of the oldest record     3  lost: records for which there was no room
    1  producer: position of the next record       4  bytes from the header to the data
    2  mask: size of the buffer less one

Positions count bytes from the beginning of time; a position's data is at `position & mask`. A
record is `u32 length; u32 CPU`, its data, and padding up to a multiple of 8; in the length, bit 31
says that it is not complete yet, bit 30 that it was discarded. The data area is twice the buffer's
size: a record that goes beyond the end of the buffer is in one piece. There is room for a record
while `producer + its size - consumer <= mask + 1`. A buffer with OVERWRITE makes room: the oldest
complete records go, and are counted as lost; it is read by nobody while a program runs.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final

from ._base import Map, MapType, Spec

HEADER: Final = 64
CONSUMER, PRODUCER, MASK, LOST = range(4)
BUSY: Final = 1 << 31
DISCARDED: Final = 1 << 30
#: bytes of a perf event array's buffer
PERF_SIZE: Final = 1 << 20
ENOSPC: Final = -28
OVERWRITE: Final = 1 << 19  #: map_flags, BPF_F_RB_OVERWRITE


class Ring(Map):
    """A ring buffer of records.

    Iterating gives the complete ones as bytes, oldest first, and consumes them.

    Attributes:
        size: bytes, a power of two; of RINGBUF, max_entries rounded up to one, at least a page.
        overwrites: True where new records take the place of the oldest.
        fence: a position: reserved records before it belong to programs that are in a helper, in
            which another program runs now.
    """

    def __init__(self, spec: Spec) -> None:
        """Make an empty ring. A perf event array's has PERF_SIZE bytes for records; a ring buffer's
        has `max_entries`, at least a page, rounded up to a power of two.

        Args:
            spec: the definition: of a ring buffer without keys and values, and at least one entry;
                of a perf event array with keys and values of 4 bytes or none.

        Raises:
            ProgramError: the definition is not so, or the ring takes more than LIMIT bytes.
        """
        super().__init__(spec)
        if self.type is MapType.RINGBUF:
            if self.key_size or self.value_size or not self.max_entries:
                raise self.refuse(
                    "a ring buffer has neither keys nor values; max_entries is its size in bytes"
                )
            self.size = 1 << (max(self.max_entries, mmap.PAGESIZE) - 1).bit_length()
        else:
            if self.key_size not in (0, 4) or self.value_size not in (0, 4):
                raise self.refuse("a perf event array has keys and values of 4 bytes")
            self.size = PERF_SIZE
        self.fence = 0
        self.overwrites = self.type is MapType.RINGBUF and bool(self.flags & OVERWRITE)
        self.block = self._block(HEADER + 2 * self.size, filled=True)
        self.address = self.block.address
        self._head = self.block.view[:HEADER].cast("Q")
        self._head[MASK] = self.size - 1
        self._head[4] = HEADER
        self._data = self.block.view[HEADER:]

    @property
    def lost(self) -> int:
        """The number of records for which there was no room, and of those that were overwritten."""
        return self._head[LOST]

    # ---- programs' side

    def reserve(self, size: int, cpu: int = 0) -> int:
        """Reserve a record: allocate it, so that its data can be written before commit().

        Args:
            size: bytes of the record's data.
            cpu: number of the CPU on which the program runs; kept in the record.

        Returns:
            The address of the record's data in this process; 0: there is no room, and 1 is added to
            `lost`.
        """
        head = self._head
        total = size + 15 & ~7
        if self.overwrites:
            self._make_room(total)
        if head[PRODUCER] + total - head[CONSUMER] > self.size:
            head[LOST] += 1
            return 0
        at = head[PRODUCER] & self.size - 1
        struct.pack_into("II", self._data, at, size | BUSY, cpu)
        head[PRODUCER] += total
        return self.address + HEADER + at + 8

    def _make_room(self, total: int) -> None:
        """Drop the oldest records until a new one fits, or until one is not complete.

        Those that readers would have got are counted as lost. None is dropped for a record that is
        larger than the ring.

        Args:
            total: bytes of the new record, its head and padding included.
        """
        head = self._head
        while total <= self.size < head[PRODUCER] + total - head[CONSUMER]:
            length = struct.unpack_from("I", self._data, head[CONSUMER] & self.size - 1)[0]
            if length & BUSY:
                return
            head[LOST] += not length & DISCARDED
            head[CONSUMER] += (length & ~DISCARDED) + 15 & ~7

    def commit(self, record: int, discard: bool = False) -> None:
        """Complete a reserved record, so that readers get it.

        Args:
            record: the address that reserve() gave.
            discard: True to discard it: readers never get it.
        """
        at = record - self.address - HEADER - 8
        length, cpu = struct.unpack_from("II", self._data, at)
        struct.pack_into("II", self._data, at, length & ~BUSY | (DISCARDED if discard else 0), cpu)

    def abandon(self) -> None:
        """Discard all reserved records behind the fence that are not complete.

        Called when a program's run has failed, which neither submits nor discards its records any
        more.
        """
        head = self._head
        at = max(head[CONSUMER], self.fence)
        while at < head[PRODUCER]:
            length = struct.unpack_from("I", self._data, at & self.size - 1)[0]
            if length & BUSY:
                self.commit(self.address + HEADER + (at & self.size - 1) + 8, discard=True)
            at += (length & ~(BUSY | DISCARDED)) + 15 & ~7

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """Protect the records that are reserved by now from abandon(): a context manager.

        Used around a helper, within which other programs may run and fail.
        """
        outer = self.fence
        self.fence = self._head[PRODUCER]
        try:
            yield
        finally:
            self.fence = outer

    def output(self, data: bytes, cpu: int = 0) -> bool:
        """Add a complete record.

        Args:
            data: the record's bytes.
            cpu: number of the CPU on which the program runs; kept in the record.

        Returns:
            True; False: there is no room, and 1 is added to `lost`.
        """
        record = self.reserve(len(data), cpu)
        if record:
            at = record - self.address - HEADER
            self._data[at : at + len(data)] = data
            self.commit(record)
        return bool(record)

    def holds(self, address: int) -> bool:
        """Return True where an address lies in this buffer."""
        return self.address <= address < self.address + HEADER + 2 * self.size

    def query(self, what: int) -> int:
        """Return a number about the ring, as bpf_ringbuf_query() does.

        Args:
            what: 0: bytes not consumed; 1: size; 2: consumer position; 3: producer position;
                others: 0.
        """
        head = self._head
        return {
            0: head[PRODUCER] - head[CONSUMER],
            1: self.size,
            2: head[CONSUMER],
            3: head[PRODUCER],
        }.get(what, 0)

    # ---- Python's side

    def drop(self) -> None:
        """Remove all records, and add 1 to `lost`.

        Called where a guest has written over its copy, so that nothing in it can be believed.
        """
        self._head[CONSUMER] = self._head[PRODUCER]
        self._head[LOST] += 1

    def take(self, size: int) -> bytes:
        """Remove all records, and return their data, one behind the other.

        For rings whose records all have one size, and are all complete.

        Args:
            size: bytes of each record's data, a multiple of 8.
        """
        head = self._head
        step = struct.Struct(f"8x{size}s")
        out = list[bytes]()
        while head[CONSUMER] < head[PRODUCER]:
            at = head[CONSUMER] & self.size - 1
            many = min(head[PRODUCER] - head[CONSUMER], self.size - at + step.size - 1) // step.size
            out += chain.from_iterable(step.iter_unpack(self._data[at : at + many * step.size]))
            head[CONSUMER] += many * step.size
        return b"".join(out)

    def __iter__(self) -> Iterator[bytes]:
        head = self._head
        while head[CONSUMER] < head[PRODUCER]:
            at = head[CONSUMER] & self.size - 1
            length, _ = struct.unpack_from("II", self._data, at)
            if length & BUSY:
                return
            size = length & ~DISCARDED
            if size + 8 > head[PRODUCER] - head[CONSUMER]:  # a guest has written over it
                return self.drop()
            data = bytes(self._data[at + 8 : at + 8 + size])
            head[CONSUMER] += size + 15 & ~7
            if not length & DISCARDED:
                yield data
