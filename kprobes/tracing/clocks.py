"""Clocks that tell the times of records."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from ..clocknames import HOST_CLOCK, INSTRUCTION_CLOCK, host_epoch
from ..errors import BadArgument, Unsupported
from ..machine._base import Machine

#: no times; a function of the user's
COUNTER: Final = "counter"
OWN: Final = "own"
CLOCKS: Final = (COUNTER, HOST_CLOCK, INSTRUCTION_CLOCK)
#: those whose times are counts, not nanoseconds
COUNTS: Final = (COUNTER, INSTRUCTION_CLOCK)


def epoch_of(clock: str) -> int:
    """Return what is added to times of a clock of this process to get nanoseconds since 1970.

    Args:
        clock: the clock's name; 0 is returned for all but the host's, whose times are no host's.
    """
    return host_epoch() if clock == HOST_CLOCK else 0


def clock_of(machine: Machine, clock: str | Callable[[], int]) -> Callable[[], int] | None:
    """Return the function that tells the time of a record; None for the clock "counter", which has
    no times.

    Args:
        machine: the guest, whose instructions the clock "instructions" counts.
        clock: "counter", "host" (monotonic, ns), "instructions", or a function that gives a number
            of 64 bits. Such a function is returned with a check around it, which raises BadArgument
            for anything else that it gives.

    Raises:
        BadArgument: there is no clock of that name.
        Unsupported: the machine does not count instructions.
    """
    if callable(clock):
        return _own(clock)
    if clock == INSTRUCTION_CLOCK:
        if machine.clock is None:
            raise Unsupported(
                "this machine does not count instructions",
                hint='use clock="host", or a function that gives ns',
            )
        return machine.clock
    if clock not in CLOCKS:
        raise BadArgument(
            f"no clock {clock!r}", hint=f"there are: {', '.join(CLOCKS)}; or give a function"
        )
    return time.monotonic_ns if clock == HOST_CLOCK else None


def _own(clock: Callable[[], Any]) -> Callable[[], int]:
    """Return the user's clock with a check: it raises BadArgument for a time that records have no
    room for.
    """

    def now() -> int:
        """Return the clock's time. Raises BadArgument if it is no unsigned integer of 64 bits."""
        time = clock()
        if not isinstance(time, int) or not 0 <= time < 1 << 64:
            raise BadArgument(
                f"the clock says {time!r}", hint="a clock gives a number of 64 bits, such as ns"
            )
        return time

    return now


def stamp(seq: int, time: int, clock: str) -> str:
    """Return a record's time as ftrace prints it: ns as seconds and microseconds, the counts of the
    clocks "counter" and "instructions" unchanged.

    Args:
        seq: the record's number, which is its time where the clock is "counter".
        time: by the trace's clock.
        clock: the clock's name; the times of any clock but these two are taken as ns.
    """
    if clock in COUNTS:
        return f"{seq if clock == COUNTER else time:12d}"
    return f"{time // 1_000_000_000:5d}.{time // 1000 % 1_000_000:06d}"
