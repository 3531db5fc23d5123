"""Where records wait to be read: of events whose hits run programs, and of those whose hits run Python."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..programs.maps import Array, MapType, Ring, Spec

if TYPE_CHECKING:
    from ..tracing.record import Record

#: words of the state that programs and Python share: records so far, lost ones and all; whether any are taken
SEQ, ON = 0, 1
STATE: Final = 1  #: the state's number among a program's maps
#: bytes for records of programs; how many records are kept
BYTES: Final = 1 << 24
RECORDS: Final = 1 << 20
_HEAD: Final = struct.Struct("=QQ")
Row = tuple[int, Any, Any]  # number of the record; the member whose it is; what its record() wants


class Member(Protocol):
    """One place of an event."""

    def record(self, seq: int, raw: Any) -> Record: ...


class Buffer:
    """Records of any number of events, oldest first. When it is full, new ones are lost and counted.

    Attributes:
        ring, state: maps that programs use. members: who they are, by the cookies of their programs. words: state, for Python.
        rows: what is there, but for what programs have put into the ring since pull().
    """

    def __init__(self, records: int = RECORDS, size: int = BYTES) -> None:
        self.ring = Ring(Spec(type=MapType.RINGBUF, name="records", max_entries=size))
        self.state = Array(Spec(type=MapType.ARRAY, name="state", key_size=4, value_size=16, max_entries=1))
        self.words = self.state.block.view[:16].cast("Q")
        self.words[ON] = 1
        self.members: list[Member] = []
        self.limit, self.rows = records, list[Row]()
        self.shot: list[Row] = []
        self.dropped = self._sorted = self._read = 0

    @property
    def on(self) -> bool:
        """Whether records are taken (tracing_on)."""
        return bool(self.words[ON])

    @on.setter
    def on(self, value: bool) -> None:
        self.words[ON] = bool(value)

    @property
    def lost(self) -> int:
        """Records for which there was no room."""
        return self.dropped + self.ring.lost

    def put(self, member: Member, raw: Any) -> None:
        """A record of a hit in Python."""
        words = self.words
        number = words[SEQ] + 1
        words[SEQ] = number
        rows = self.rows
        if len(rows) < self.limit:
            rows.append((number, member, raw))
        else:
            self.dropped += 1

    def pull(self) -> list[Row]:
        """All rows, in order, what programs have written included."""
        rows, members = self.rows, self.members
        before = len(rows)
        for data in self.ring:
            if len(rows) < self.limit:
                number, cookie = _HEAD.unpack_from(data)
                rows.append((number, members[cookie], data))
            else:
                self.dropped += 1
        if before != len(rows):
            rows.sort(key=_number)
        return rows

    def __iter__(self) -> Iterator[Record]:
        for seq, member, raw in list(self.pull()):
            yield member.record(seq, raw)

    def clear(self) -> None:
        """Forget all records; numbers go on."""
        self.pull()
        self.rows.clear()

    def snapshot(self) -> None:
        """Put what there is aside, as `shot`, and begin anew."""
        self.shot, self.rows = self.pull(), []


def _number(row: Row) -> int:
    return row[0]
