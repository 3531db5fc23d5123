"""The host's clock as compiled programs read it: struct clock of kprobes/native/support.c."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

_SOURCE: Final = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_FIELDS: Final = ("gettime", "counter", "ticks", "ns", "rate", "last")


class HostClock:
    """A struct clock in this process's memory, which compiled programs read and update.

    Threads must not read one at the same time: each machine has its own.

    Attributes:
        address: address of the structure.
    """

    def __init__(self) -> None:
        """Make the structure; the first reading calibrates it."""
        self._words = (ctypes.c_uint64 * len(_FIELDS))(_clock_gettime(), int(even_counter()))
        self.address = ctypes.addressof(self._words)

    def __getitem__(self, field: str) -> int:
        """Return a field of the structure, by its name in C."""
        return int(self._words[_FIELDS.index(field)])


def _clock_gettime() -> int:
    """Return the address of the C library's clock_gettime() in this process."""
    return ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0


@cache
def even_counter() -> bool:
    """Return True if this computer's CPU counter has a constant rate, the same on all CPUs.

    Assumed on x86-64 where Linux itself uses that counter (tsc) for its clock.
    """
    try:
        return platform.machine() == "x86_64" and _SOURCE.read_text().strip() == "tsc"
    except OSError:
        return False


_clocks: Final[WeakKeyDictionary[Any, HostClock]] = WeakKeyDictionary()


def clock_of(view: object) -> HostClock:
    """Return the clock that all programs of one machine share; made at the first call.

    Args:
        view: the machine's view for host code, by which the clock is found again.
    """
    clock = _clocks.get(view)
    if clock is None:
        clock = _clocks[view] = HostClock()
    return clock
