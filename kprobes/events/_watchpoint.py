"""Watchpoints: handlers that run when the guest accesses memory, wherever from."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from threading import get_ident
from typing import Any

from ..core.register.alone import alone
from ..errors import BadArgument, BadLocation, GuestFault
from ..machine._base import Machine, watching_of
from ..regs import Regs

WatchHandler = Callable[["Watchpoint", Regs], Any]
MOST_WATCHED = 1 << 16  #: bytes that one can watch: each hit copies them


class Watchpoint:
    """Memory that is watched, until remove(). A context manager.

    handler(w, regs) runs at each access that touches it, before the access happens; regs.pc is the instruction that
    accesses. It may read the guest's registers and memory, not change registers. Accesses of guest code that a handler
    calls are missed.

    Attributes:
        address, size: of the memory, in bytes.
        wanted: accesses that are reported: "r", "w" or "rw".
        nhit: those that were, nmissed: those that were missed.
        access: of the last hit: "r" or "w".
        before, value: the watched memory before and after it, unsigned integers in the
            guest's byte order.
        accessed, accessed_size: what the instruction accesses: an address, and bytes.
        registered: until remove().
        busy: the machine's lock.
    """

    def __init__(self, machine: Machine, where: str | int, size: int, access: str,
                 handler: WatchHandler | None) -> None:
        """Raises BadLocation, BadArgument, UnknownSymbol, AmbiguousSymbol, GuestFault; Unsupported where the engine
        cannot watch; MachineBusy while another thread runs the machine."""
        self.address = _address(machine, where)
        self.size = _size(size)
        self.wanted = _access(access)
        if self.address + self.size - 1 > machine.arch.mask:
            raise BadLocation(f"{self.size} bytes do not fit behind it", address=self.address,
                              hint="watch less, or a smaller address")
        self.handler = handler
        machine.read(self.address, self.size)
        self._machine, self.busy = machine, machine.busy
        self.nhit = self.nmissed = self.before = self.value = self.accessed = self.accessed_size = 0
        self.access = ""
        self._busy = False
        self._serving = 0  # the thread in the handler; 0: none
        self._order = machine.arch.order.value
        self._end: Callable[[], None] | None = None
        self._watch()

    @property
    def handler(self) -> WatchHandler | None:
        """Called at each hit; it may be replaced. BadArgument."""
        return self._handler

    @handler.setter
    def handler(self, handler: WatchHandler | None) -> None:
        if handler is not None and not callable(handler):
            raise BadArgument(f"{handler!r} is no handler", hint="give a function of the watchpoint and the registers")
        self._handler = handler

    @property
    def registered(self) -> bool:
        """False once it is removed."""
        return self._end is not None

    @alone
    def _watch(self) -> None:
        self._end = watching_of(self._machine).watch_at(self.address, self.size, self.wanted, self._hit)

    def remove(self) -> None:
        """Watch no longer. No effect on one that is removed.

        A watchpoint's handlers may end it, too.

        Raises:
            MachineBusy: another thread runs the machine; the watchpoint stays.
        """
        if self._serving == get_ident():
            self._unwatch()
        else:
            self._remove()

    @alone
    def _remove(self) -> None:
        self._unwatch()

    def _unwatch(self) -> None:
        end, self._end = self._end, None
        if end is not None:
            end()

    def __enter__(self) -> Watchpoint:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Watchpoint {self.wanted}@{self.address:#x}:{self.size}: {self.nhit} hits, {self.nmissed} missed>"

    def _hit(self, regs: Regs, address: int, size: int, data: bytes | None) -> None:
        if self._busy:
            self.nmissed += 1
            return
        try:
            now = self._machine.read(self.address, self.size)
        except GuestFault:  # it is not mapped any more: the access is going to fail
            return
        self.before = int.from_bytes(now, self._order)  # type: ignore[arg-type]  # "little" or "big"
        after = now if data is None else self._changed(now, address, data)
        self.value = int.from_bytes(after, self._order)  # type: ignore[arg-type]
        self.access = "r" if data is None else "w"
        self.accessed = address
        self.accessed_size = size
        self.nhit += 1
        if self._handler is not None:
            self._busy = True
            self._serving = get_ident()
            try:
                self._handler(self, regs)
            finally:
                self._busy = False
                self._serving = 0

    def _changed(self, now: bytes, address: int, data: bytes) -> bytes:
        """The watched bytes with others written over them, or over a part."""
        at = address - self.address
        first, last = max(at, 0), min(at + len(data), self.size)
        return now[:first] + data[first - at:last - at] + now[last:] if first < last else now


def _address(machine: Machine, where: str | int) -> int:
    if isinstance(where, str):
        return machine.symbols.place(where).address
    try:
        address = index(where)
    except TypeError:
        raise BadArgument(f"{where!r} is no address", hint="give an integer, or a symbol's name") from None
    if not 0 <= address <= machine.arch.mask:
        raise BadLocation(f"addresses have {machine.arch.bits} bits", address=address, hint="give a smaller one")
    return address


def _size(size: int) -> int:
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST_WATCHED:
        raise BadArgument(f"{size!r} is no number of bytes", hint=f"watch 1 to {MOST_WATCHED}")
    return size


def _access(access: str) -> str:
    if access not in ("r", "w", "rw"):
        raise BadArgument(f"{access!r} is no access", hint='write "r", "w" or "rw"')
    return access
