"""Hits of events that the host's library records: the words that it reads. See
kprobes/native/events.c.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.

Implements machine._base.HitRecording.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from .... import native
from ....regs import Regs
from ..._base import RecordedHit, RecordedNumber, RecordedTest
from ..clock import InstructionClock
from ..cpu import UnicornCpu
from ..registers.windows import Windowed
from .callsites import FollowedCalls

MOST = 512  # words of a record, as in events.c
_ROOTS = {name: n for n, name in enumerate(("register", "sp", "pc", "value", "saved"))}
_HOW = {name: n for n, name in enumerate(("==", "<", "<=", "&", "in"))}
_MASK = (1 << 64) - 1
_PASS, _FAIL = _MASK, _MASK - 1

Handler = Callable[[Any, Regs], None]
Words = Any  # an array of ctypes


class HostHitRecording:
    """Makes handlers by which host code records hits of one CPU's events. Implements
    machine._base.HitRecording.
    """

    def __init__(self, cpu: UnicornCpu, followed: FollowedCalls, clock: InstructionClock) -> None:
        """Look up the names of the words of host code.

        Args:
            cpu: whose hits are recorded.
            followed: has the gate, by which host code sees whether there are guest tasks.
            clock: the instruction clock, which host code reads by itself.
        """
        self._cpu = cpu
        self._followed = followed
        self._clock = clock
        self._cells = cpu.cells | cpu.windowed
        self._names = native.words("recorded")
        self._number = native.words("number")
        self._test = native.words("test")
        self._place = len(native.words("place"))

    def taker(self, hit: RecordedHit, plain: Handler) -> Handler | None:
        """Make a handler by which host code records hits, or returns, of an event.

        Args:
            hit: the record: the numbers in it, the tests that a hit must pass, and the ring.
            plain: the Python handler that does the same. Host code calls it where it cannot record
                a hit: memory cannot be read, or the guest has tasks.

        Returns:
            The handler. None: only `plain` can record these hits, as the record is larger than
            4,096 bytes, or it is not known where a register is that it takes.
        """
        if hit.size > 8 * MOST:
            return None
        numbers = self._numbers(hit.numbers)
        tested = self._numbers([test.of for test in hit.tests])
        if numbers is None or tested is None:
            return None
        tests = self._tests(hit.tests, ctypes.addressof(tested))
        clock = None if hit.clock is self._clock else hit.clock
        words = self._made(
            numbers=ctypes.addressof(numbers),
            many=len(hit.numbers),
            tests=ctypes.addressof(tests),
            first=0 if hit.tests else _PASS,
            state=hit.state,
            ring=hit.ring,
            size=hit.size,
            cookie=hit.cookie,
            time=hit.time,
            returns=hit.returns,
            faults=hit.faults,
            data=hit.data,
            counts=self._clock.address,
            clock=0 if clock is None else id(clock),
        )
        return _function("event_taker", words, plain, (numbers, tested, tests, hit, clock, self))

    def saver(self, numbers: Sequence[RecordedNumber], plain: Handler) -> Handler | None:
        """Make an entry handler by which host code keeps numbers for the return's record.

        Args:
            numbers: what to read at the function's entry.
            plain: the Python handler that does the same, for calls that host code cannot serve.

        Returns:
            The handler. None: only `plain` can keep these numbers, as there are more than 512
            (MOST), or it is not known where a register is that they take.
        """
        made = self._numbers(numbers)
        if made is None or len(numbers) > MOST:
            return None
        words = self._made(numbers=ctypes.addressof(made), many=len(numbers))
        return _function("event_saver", words, plain, (made, self))

    def _made(self, **values: int) -> Words:
        """Make the words of a handler: those given, and those that are the CPU's.

        Args:
            values: name of a word -> its value; it is cut to 64 bits.
        """
        words = (ctypes.c_uint64 * len(self._names))()
        values |= {
            "view": self._cpu.view_address,
            "regs": id(self._cpu.regs),
            "gate": self._followed.address,
            "kept": id(_KEPT),
            "saved": id(_SAVED),
        }
        for name, value in values.items():
            words[self._names[name]] = value & _MASK
        return words

    def _numbers(self, numbers: Sequence[RecordedNumber]) -> Words | None:
        """Make the words that tell host code how to read numbers; None: a register's place is not
        known.

        Args:
            numbers: what is read, in the order in which it is recorded.
        """
        width = len(self._number)
        size = width + self._place
        words = (ctypes.c_uint64 * (size * len(numbers) + sum(len(n.steps) for n in numbers)))()
        start, end = ctypes.addressof(words), size * len(numbers)
        for n, number in enumerate(numbers):
            at = size * n
            if number.root == "register":
                place = self._place_of(number.name)
                if place is None:
                    return None
                for k, value in enumerate(place):
                    words[at + width + k] = value
            values = {
                "root": _ROOTS[number.root],
                "number": number.number,
                "deep": len(number.steps),
                "steps": start + 8 * end,
                "size": number.size,
                "count": number.count,
                "shift": number.shift,
                "bits": number.bits,
                "is_signed": number.signed,
                "at": number.at,
            }
            for name, value in values.items():
                words[at + self._number[name]] = value & _MASK
            for step in number.steps:
                words[end] = step & _MASK
                end += 1
        return words

    def _place_of(self, name: str) -> list[int] | None:
        """Return the words that say where a register is; None: that is not known, or it has another
        width than the architecture's.

        Args:
            name: of the register, or an alias.

        Returns:
            [address in this process, bytes behind where that points, 1 if it is a pointer, bytes of
            the register].
        """
        table, bits = self._cpu.arch.regs, self._cpu.arch.bits
        name = table.aliases.get(name, name)
        found = self._cells.get(name)
        if found is None or name == table.pc or table.widths.get(name, bits) != bits:
            return None
        size = bits // 8
        if isinstance(found, Windowed):
            return [found.address, found.index * size, 1, size]
        return [found.address, 0, 0, size]

    def _tests(self, tests: Sequence[RecordedTest], numbers: int) -> Words:
        """Make the words of a filter: a `struct test` (events.c) for each comparison.

        Args:
            tests: its comparisons; each says which one comes next, or whether the hit passes.
            numbers: address of what _numbers() has made of the numbers that they compare, in the
                same order.
        """
        width, size = len(self._test), 8 * (len(self._number) + self._place)
        words = (ctypes.c_uint64 * (width * len(tests)))()
        for n, test in enumerate(tests):
            values = {
                "of": numbers + n * size,
                "how": _HOW[test.how],
                "is_signed": test.of.signed,
                "constant": test.constant,
                "end": test.end,
                "yes": _next(test.yes),
                "no": _next(test.no),
            }
            for name, value in values.items():
                words[width * n + self._test[name]] = value & _MASK
        return words


_KEPT = "_data"  # attribute of a call's instance, of which `data` is made; used by its address
_SAVED = "saved"


def _next(after: int | bool) -> int:
    """Return the word that says what follows a test.

    Args:
        after: True: the hit passes the filter; False: it fails; else number of the test that is
            next.
    """
    if after is True:
        return _PASS
    return _FAIL if after is False else after


def _function(name: str, words: Words, plain: Handler, kept: object) -> Handler:
    """Make a handler in host code.

    Args:
        name: of the library's function that makes it.
        words: what the handler reads.
        plain: the Python handler that it calls where it cannot serve.
        kept: what must live as long as the handler.
    """
    make = native.function(name, ctypes.py_object, ctypes.py_object)
    made: Handler = make((ctypes.addressof(words), plain, words, kept))
    return made
