"""Layout of the records that programs write, byte by byte.

_program.py says what a record has. One of nothing but numbers is also a record of a trace's ring
(tracing/ring.py).
"""

from __future__ import annotations

from typing import Final

from ._event import Argument, Event

#: words of the state that programs and Python share: records so far, lost ones and all; whether any
#: are taken
SEQ, ON = 0, 1
STATE: Final = 1  #: the state's number among a program's maps
#: bytes of a record before what its event fetches
HEAD: Final = 16
#: bytes of a string in a record, its NUL included
STRING: Final = 512


class RecordLayout:
    """The layout of an event's records. Offsets and sizes are in bytes.

    Attributes:
        time: offset of the time; 0: there is none.
        caller_offset: offset of the return address; 0: there is none.
        faults: offset of the fault bits.
        words: number of u64 that have the fault bits.
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
        returns = event.kind == "r"
        self.time = HEAD * timed
        self.caller_offset = (HEAD + 8 * timed) * returns
        self.faults = HEAD + 8 * timed + 8 * returns
        bits = sum(1 + arg.type.count for arg in event.args)
        self.words = (bits + 63) // 64
        self.places: list[tuple[int, int]] = []
        bit = 0
        at = self.faults + 8 * self.words
        for arg in event.args:
            self.places.append((bit, at))
            bit = bit + 1 + arg.type.count
            at = at + elements(arg) * width(arg)
        self.size = max(at, least)


def elements(arg: Argument) -> int:
    """Return the number of elements that an argument has in a record: 1, or an array's; 0 for a
    literal.
    """
    return 0 if arg.source.literal is not None else max(arg.type.count, 1)


def width(arg: Argument) -> int:
    """Return the bytes that an element of an argument takes in a record."""
    return STRING if arg.type.is_string else 8
