"""Layout of records, byte by byte: of all what is in front of the values (RecordHead), and of those
that programs write the values, too (RecordLayout).

_program.py says what a record of programs has. One of nothing but numbers is also a record of a
trace's ring (tracing/ring.py), which has texts beside its records instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ._event import Argument, Event

#: words of the state that programs and Python share: records so far, lost ones and all; whether any
#: are taken
SEQ, ON = 0, 1
STATE: Final = 1  #: the state's number among a program's maps
#: bytes of a record before what its event fetches
HEAD: Final = 16
#: bytes of a string in a record, its NUL included
STRING: Final = 512


@frozen(kw_only=True)
class RecordHead:
    """The layout of what is in front of a record's values. Offsets are in bytes.

    Attributes:
        time: offset of the time; 0: there is none.
        caller: offset of the return address, or of the instruction that has accessed watched
            memory; 0: there is none.
        faults: offset of the fault bits.
        words: number of u64 that have the fault bits.
        bits: for each value the number of its first fault bit. It says that the value could not be
            read; of an array, that its address could not be had, and a bit for each element
            follows.
        data: offset of the first value.
    """

    time: int
    caller: int
    faults: int
    words: int
    bits: tuple[int, ...]
    data: int

    @classmethod
    def of(cls, counts: Sequence[int], timed: bool, has_caller: bool) -> RecordHead:
        """Lay out what is in front of the values.

        Args:
            counts: for each value the number of an array's elements; 0: it is no array.
            timed: records have times.
            has_caller: records have return addresses, or accessing instructions.
        """
        faults = HEAD + 8 * timed + 8 * has_caller
        starts = [sum(1 + count for count in counts[:n]) for n in range(len(counts) + 1)]
        words = (starts[-1] + 63) // 64
        return cls(
            time=HEAD * timed,
            caller=(HEAD + 8 * timed) * has_caller,
            faults=faults,
            words=words,
            bits=tuple(starts[:-1]),
            data=faults + 8 * words,
        )


class RecordLayout:
    """The layout of an event's records that programs write. Offsets and sizes are in bytes.

    Attributes:
        head: layout of what is in front of the values.
        places: for each argument (number of its first fault bit, offset of its first byte).
        size: of a record.
    """

    def __init__(self, event: Event, timed: bool = False, least: int = 0) -> None:
        """Lay the records of an event out.

        Args:
            event: the event.
            timed: records have times.
            least: bytes that a record has at least.
        """
        self.head = RecordHead.of([arg.type.count for arg in event.args], timed, event.kind == "r")
        self.places: list[tuple[int, int]] = []
        at = self.head.data
        for arg, bit in zip(event.args, self.head.bits, strict=True):
            self.places.append((bit, at))
            at += elements(arg) * width(arg)
        self.size = max(at, least)


def elements(arg: Argument) -> int:
    """Return the number of elements that an argument has in a record: 1, or an array's; 0 for a
    literal.
    """
    return 0 if arg.source.literal is not None else max(arg.type.count, 1)


def width(arg: Argument) -> int:
    """Return the bytes that an element of an argument takes in a record."""
    return STRING if arg.type.is_string else 8
