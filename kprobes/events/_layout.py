"""Records of programs, byte by byte: see _program.py for what is in them. One of nothing but numbers is a record of a
trace's ring (see tracing/ring.py), too."""

from __future__ import annotations

from typing import Final

from ._event import Argument, Event

#: words of the state that programs and Python share: records so far, lost ones and all; whether any are taken
SEQ, ON = 0, 1
STATE: Final = 1  #: the state's number among a program's maps
#: bytes of a record before what its event fetches
HEAD: Final = 16
#: bytes of a string in a record, its NUL included
STRING: Final = 512


class Layout:
    """The layout of a record. places: for each argument (its first fault bit, its first byte). time: of the
    clock, 0: not there. returns: of the return address, 0: not there."""

    def __init__(self, event: Event, timed: bool = False, least: int = 0) -> None:
        """least: bytes that a record has at least."""
        returns = event.kind == "r"
        self.time, self.returns = HEAD * timed, (HEAD + 8 * timed) * returns
        self.faults = HEAD + 8 * timed + 8 * returns
        bits = sum(1 + arg.type.count for arg in event.args)
        self.words = (bits + 63) // 64
        self.places: list[tuple[int, int]] = []
        bit, at = 0, self.faults + 8 * self.words
        for arg in event.args:
            self.places.append((bit, at))
            bit, at = bit + 1 + arg.type.count, at + elements(arg) * width(arg)
        self.size = max(at, least)


def elements(arg: Argument) -> int:
    return 0 if arg.source.literal is not None else max(arg.type.count, 1)


def width(arg: Argument) -> int:
    return STRING if arg.type.style == "string" else 8
