"""Where the interpreter keeps the handlers of signals, and the wake-up file descriptor.

Python's functions for both enter the operating system, which takes a tenth of a short run. Host
code changes the same two variables, and nothing else. They have no name that others may use, so
they are found by what they hold, and tried; where that fails, Python's functions are called.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import frozen

ROW = 16  # bytes of a signal's row: a flag, and a pointer to the handler
_MOST = 1 << 25  # bytes that are searched
_POINTER = struct.Struct("Q")
_WAKEUP = struct.Struct("ii")  # the descriptor; whether to warn where writing to it fails


@frozen
class SignalTable:
    """Addresses of the interpreter's variables.

    Attributes:
        handlers: of the pointer to the handler that signal 0 would have; that of signal n is n
            times ROW behind.
        wakeup: of the wake-up file descriptor, an int of C's.
    """

    handlers: int
    wakeup: int


def find(module: Any, numbers: Sequence[int], fd: int) -> SignalTable | None:
    """Find the variables, and return their addresses; None: they were not found for certain.

    Called in the main thread, while no handler of a signal can raise. For a moment `fd` is the
    wake-up file descriptor, and an unused signal has a handler.

    Args:
        module: the module `_signal`.
        numbers: of all signals.
        fd: a file descriptor that does not block, for signals that come meanwhile.
    """
    try:
        start, size = _interpreters_data()
    except (OSError, ValueError):
        return None
    before = module.set_wakeup_fd(-1)
    try:
        handlers = _handlers(module, numbers, start, size)
        wakeup = _wakeup(module.set_wakeup_fd, start, size, fd)
    finally:
        module.set_wakeup_fd(before, warn_on_full_buffer=before < 0)
    if handlers is None or wakeup is None:
        return None
    return SignalTable(handlers, wakeup)


def _interpreters_data() -> tuple[int, int]:
    """Return (address, bytes) of the interpreter's own variables, among which None is.

    Raises:
        OSError: the operating system does not tell.
        ValueError: None is in no memory that can be written, or that has more than 32 MiB.
    """
    start = end = 0
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as rows:
        for row in rows:
            bounds, perms, _, _, _, *path = row.split(maxsplit=5)
            low, high = (int(bound, 16) for bound in bounds.split("-"))
            if "w" not in perms or (end and low != end):
                if start <= id(None) < end:
                    break
                start = end = 0
            if "w" in perms and not (end and path and path[0].startswith("[")):
                start = start or low
                end = high
    if not start <= id(None) < end or end - start > _MOST:
        raise ValueError("None is in no variable of the interpreter")
    return start, end - start


def _places(data: bytes, wanted: bytes) -> Iterator[int]:
    """Yield the offsets of `wanted` in `data` that are multiples of 4."""
    rare = wanted.rstrip(b"\0")  # most of the data are zeros, which would take long
    at = data.find(rare)
    while at >= 0:
        if at % 4 == 0 and data.startswith(wanted, at):
            yield at
        at = data.find(rare, at + 1)


def _handlers(module: Any, numbers: Sequence[int], start: int, size: int) -> int | None:
    """Find the table of handlers, and return SignalTable.handlers; None: there is no such table, or
    more than one, or Python's functions do not use it, or no signal has its default handler.

    A signal that has it gets others meanwhile, and is put back.

    Args:
        module: the module `_signal`.
        numbers: of all signals.
        start: address of the interpreter's variables.
        size: bytes of them.
    """
    spare = next((n for n in reversed(numbers) if module.getsignal(n) == module.SIG_DFL), None)
    if spare is None:
        return None

    def one(number: int, frame: object) -> None:
        """Handle the spare signal."""

    def other(number: int, frame: object) -> None:
        """Handle the spare signal."""

    default = module.signal(spare, one)
    try:
        there = {n * ROW: id(module.getsignal(n)) for n in numbers}
        data = ctypes.string_at(start, size)
        found = []
        for at in _places(data, _POINTER.pack(id(one))):
            first = at - spare * ROW
            if first >= 0 and at + ROW <= size:
                rows = (_POINTER.unpack_from(data, first + row)[0] for row in there)
                if [*rows] == [*there.values()]:
                    found.append(start + first)
        if len(found) != 1:
            return None
        place = ctypes.c_void_p.from_address(found[0] + spare * ROW)
        module.signal(spare, other)
        follows = place.value == id(other)
        if follows:
            place.value = id(one)
            follows = module.getsignal(spare) is one
            place.value = id(other)
        return found[0] if follows else None
    finally:
        module.signal(spare, default)


def _wakeup(set_fd: Callable[..., int], start: int, size: int, fd: int) -> int | None:
    """Find the wake-up file descriptor, and return its address; None: it was not found for certain.

    It is set to -1 or `fd` meanwhile, and not put back: the caller does that.

    Args:
        set_fd: signal.set_wakeup_fd().
        start: address of the interpreter's variables.
        size: bytes of them.
        fd: a file descriptor that it is set to meanwhile.
    """
    set_fd(-1)
    data = ctypes.string_at(start, size)
    found = [start + at for at in _places(data, _WAKEUP.pack(-1, 1))]
    for warn in (1, 0):
        set_fd(fd, warn_on_full_buffer=bool(warn))
        found = [at for at in found if ctypes.string_at(at, 8) == _WAKEUP.pack(fd, warn)]
    if len(found) != 1:
        return None
    place = ctypes.c_int.from_address(found[0])
    place.value = fd
    return found[0] if set_fd(-1) == fd and place.value == -1 else None
