"""The buffer in which records wait to be read, whether a program or Python has written them."""

from __future__ import annotations

import struct
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..machine._base import Machine
from ..programs.maps import OVERWRITE, Array, MapType, Ring, Spec
from ._layout import ON

if TYPE_CHECKING:
    from ._record import Record

#: bytes for records of programs; how many records are kept
BYTES: Final = 1 << 23
KERNEL: Final = 1 << 16  #: bytes of a buffer in a kernel's memory
RECORDS: Final = 1 << 20
_HEAD: Final = struct.Struct("=QQ")
# number of the record; cookie of the member whose it is; what its record() wants: bytes of a
# program, or values
Row = tuple[Any, ...]


class BufferMember(Protocol):
    """A place of an event, as a buffer knows it."""

    def wrote(self, data: bytes) -> bool:
        """Return True where the place's program may have written a record."""
        ...

    def record(self, row: Row) -> Record:
        """Return the record that a row is, with values by name."""


class Buffer:
    """Records of any number of events, oldest first. When it is full, the oldest are dropped.

    Attributes:
        ring: the map into which programs write records.
        state: the map of two words that programs read and write: records so far, and whether any
            are taken.
        words: the same two words for Python (indices SEQ and ON of _layout).
        members: places of events, by the cookies of their records.
        limit: records that `rows` holds at most.
        rows: the records, but for those that programs have put into the ring since pull().
        shot: the rows that the last snapshot() has put aside.
        dropped: records that went when it was full, or that a guest had written over.
    """

    def __init__(self, records: int = RECORDS, size: int = BYTES) -> None:
        """Make an empty buffer that takes records.

        Args:
            records: how many rows it holds at most.
            size: bytes of the ring that programs write into; a power of two.
        """
        self.ring = Ring(
            Spec(
                type=MapType.RINGBUF,
                name="records",
                max_entries=size,
                flags=OVERWRITE,
                order=sys.byteorder,
            )
        )
        self.state = Array(
            Spec(
                type=MapType.ARRAY,
                name="state",
                key_size=4,
                value_size=16,
                max_entries=1,
                order=sys.byteorder,
            )
        )
        self.words = self.state.block.view[:16].cast("Q")
        self.words[ON] = 1
        self.members: list[BufferMember] = []
        self.limit = records
        self.rows = deque[Row]()
        self.shot: list[Row] = []
        self.dropped = 0

    @classmethod
    def of(cls, machine: Machine, size: int = BYTES) -> Buffer:
        """Make a buffer whose ring programs of a machine can write into.

        Args:
            machine: the guest. Where programs run in a kernel's own memory, the ring gets at most
                KERNEL bytes.
            size: bytes of the ring, at most.
        """
        view = machine.guest_view
        return cls(size=size if view is None or view.reads else min(size, KERNEL))

    @property
    def on(self) -> bool:
        """Whether records are taken: ftrace's file tracing_on."""
        self.state.fetch_from_guests()
        return bool(self.words[ON])

    @on.setter
    def on(self, value: bool) -> None:
        """Take records from now on, or drop all hits, of programs and of Python."""
        self.state.fetch_from_guests()
        self.words[ON] = bool(value)

    @property
    def lost(self) -> int:
        """The number of records for which there was no room."""
        self.ring.fetch_from_guests()
        return self.dropped + self.ring.lost

    def pull(self) -> deque[Row]:
        """Move what programs have written from the ring to the rows. Where there are more than
        `limit`, drop the oldest, and count them in `dropped`.

        Returns:
            All rows, in the order of their numbers: the buffer's own list, which changes.
        """
        rows = self.rows
        self.ring.fetch_from_guests()
        new: list[Row] = [(*_HEAD.unpack_from(data), data) for data in self.taken(self._whose)]
        if new:
            if rows and rows[-1][0] > new[0][0]:
                new = sorted((*rows, *new), key=_number)
                rows.clear()
            rows.extend(new)
        while len(rows) > self.limit:
            rows.popleft()
            self.dropped += 1
        return rows

    def taken(self, sound: Callable[[bytes], bool]) -> Iterable[bytes]:
        """Take the records that programs have written out of the ring, the oldest first: each
        leaves it as the iteration comes to it.

        Args:
            sound: tells whether bytes are a record. This function is asked only where the ring lies
                in a guest's memory, as the guest may have written over it; bytes that are none are
                counted in `dropped`.
        """
        return self._sound(sound) if self.ring.copies else self.ring

    def _whose(self, data: bytes) -> bool:
        """Return True where bytes from the ring may be a record of the place whose cookie they
        have.
        """
        cookie = _HEAD.unpack_from(data)[1] if len(data) >= _HEAD.size else len(self.members)
        return cookie < len(self.members) and self.members[cookie].wrote(data)

    def _sound(self, sound: Callable[[bytes], bool]) -> Iterator[bytes]:
        """Yield records of a ring in guest memory that are sound, and count the others as
        dropped.

        Then drop what is still in the ring: no program is writing it.
        """
        for data in self.ring:
            if sound(data):
                yield data
            else:
                self.dropped += 1
        if self.ring.query(0):  # nothing is under way where nothing runs
            self.ring.drop()

    def fetch_from_guests(self) -> None:
        """Copy what programs in a guest have recorded and counted into this process.

        Called before Python records a hit.
        """
        self.ring.fetch_from_guests()
        self.state.fetch_from_guests()

    def __iter__(self) -> Iterator[Record]:
        for row in list(self.pull()):
            yield self.members[row[1]].record(row)

    def lines(
        self, cookie: int, cpu: str, stack: str, values: str, names: dict[str, Any]
    ) -> list[str]:
        """Return the lines of Python that append a record's row to `rows`, for a generated handler.

        When `rows` is full the lines drop its oldest row first, and count it in `dropped`. The
        lines use the handler's variables `number` (of the record), `who` (the task) and `back` (the
        return address; of an access to watched memory the instruction).

        Args:
            cookie: the place's number in the buffer.
            cpu: Python expression for the processor's number.
            stack: Python expression for the stack, a tuple of addresses.
            values: Python expressions for the arguments' values, with commas between.
            names: names that the lines use -> objects; `rows` and `buffer` are added to it.
        """
        names |= {"rows": self.rows, "buffer": self}
        return [
            "if len(rows) >= buffer.limit:",
            "    buffer.dropped += 1",
            "    rows.popleft()",
            f"rows.append((number, {cookie}, ({values}), {cpu}, who, back, {stack}))",
        ]

    def admit(self, member: BufferMember) -> int:
        """Enter a place.

        Returns:
            Its cookie: the second word of its records, and its index in `members`.
        """
        self.members.append(member)
        return len(self.members) - 1

    def clear(self) -> None:
        """Forget all records, those in the ring too; numbers go on, and `dropped` stays."""
        self.pull()
        self.rows.clear()

    def snapshot(self) -> None:
        """Put the rows aside as `shot`, in place of an earlier snapshot, and begin anew."""
        self.shot = list(self.pull())
        self.rows.clear()


def _number(row: Row) -> int:
    """Return the number of the record that a row is."""
    return int(row[0])
