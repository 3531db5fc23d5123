"""The buffer where records wait to be read: of events whose hits run programs, and of those whose hits run Python."""

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
# number of the record; cookie of the member whose it is; what its record() wants: bytes of a program, or values
Row = tuple[Any, ...]


class Member(Protocol):
    """A place of an event."""

    def wrote(self, data: bytes) -> bool:
        """Return True where the place's program may have written a record."""
        ...

    def record(self, row: Row) -> Record: ...


class Buffer:
    """Records of any number of events, oldest first. When it is full, the oldest go and are counted.

    Attributes:
        ring, state: maps that programs use.
        members: who they are, by the cookies of their programs.
        words: state, for Python.
        rows: what is there, but for what programs have put into the ring since pull().
    """

    def __init__(self, records: int = RECORDS, size: int = BYTES) -> None:
        self.ring = Ring(Spec(type=MapType.RINGBUF, name="records", max_entries=size, flags=OVERWRITE,
                              order=sys.byteorder))
        self.state = Array(Spec(type=MapType.ARRAY, name="state", key_size=4, value_size=16, max_entries=1,
                                order=sys.byteorder))
        self.words = self.state.block.view[:16].cast("Q")
        self.words[ON] = 1
        self.members: list[Member] = []
        self.limit, self.rows = records, deque[Row]()
        self.shot: list[Row] = []
        self.dropped = 0

    @classmethod
    def of(cls, machine: Machine, size: int = BYTES) -> Buffer:
        """Make a buffer of a size that the guest has room for, where programs run there."""
        view = machine.guest_view
        return cls(size=size if view is None or view.reads else min(size, KERNEL))

    @property
    def on(self) -> bool:
        """True where records are taken (tracing_on)."""
        self.state.settle()
        return bool(self.words[ON])

    @on.setter
    def on(self, value: bool) -> None:
        self.state.settle()
        self.words[ON] = bool(value)

    @property
    def lost(self) -> int:
        """Records for which there was no room."""
        self.ring.settle()
        return self.dropped + self.ring.lost

    def pull(self) -> deque[Row]:
        """All rows, in order, what programs have written included."""
        rows = self.rows
        self.ring.settle()
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
        """Records of programs; those out of a guest, which may have written over them, only where they are sound."""
        return self._sound(sound) if self.ring.copies else self.ring

    def _whose(self, data: bytes) -> bool:
        cookie = _HEAD.unpack_from(data)[1] if len(data) >= _HEAD.size else len(self.members)
        return cookie < len(self.members) and self.members[cookie].wrote(data)

    def _sound(self, sound: Callable[[bytes], bool]) -> Iterator[bytes]:
        for data in self.ring:
            if sound(data):
                yield data
            else:
                self.dropped += 1
        if self.ring.query(0):  # nothing is under way where nothing runs
            self.ring.drop()

    def settle(self) -> None:
        """Have what programs in a guest have recorded and counted: before a hit that Python records there."""
        self.ring.settle()
        self.state.settle()

    def __iter__(self) -> Iterator[Record]:
        for row in list(self.pull()):
            yield self.members[row[1]].record(row)

    def lines(self, cookie: int, cpu: str, stack: str, values: str, names: dict[str, Any]) -> list[str]:
        """Return the lines that make a row of a hit (see Store)."""
        names |= {"rows": self.rows, "buffer": self}
        return ["if len(rows) >= buffer.limit:", "    buffer.dropped += 1", "    rows.popleft()",
                f"rows.append((number, {cookie}, ({values}), {cpu}, who, back, {stack}))"]

    def admit(self, member: Member) -> int:
        """A cookie for another member."""
        self.members.append(member)
        return len(self.members) - 1

    def clear(self) -> None:
        """Forget all records; numbers go on."""
        self.pull()
        self.rows.clear()

    def snapshot(self) -> None:
        """Put what there is aside, as `shot`, and begin anew."""
        self.shot = list(self.pull())
        self.rows.clear()


def _number(row: Row) -> int:
    return int(row[0])
