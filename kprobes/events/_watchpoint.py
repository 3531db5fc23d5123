"""Watchpoints: handlers that run when the guest accesses memory, wherever from, or executes it."""

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
    """Memory that is watched, until remove(). A context manager, and a decorator of its handler.

    handler(w, regs) runs at each access that touches it, before the access happens; regs.pc is the
    instruction that accesses. It may read the guest's registers and memory, not change registers.
    Accesses of guest code that a handler calls are missed.

    Of "x" it runs before each instruction that begins there, and may change registers but pc.
    Nothing is written to guest memory: it is the probe for code that copies or checksums itself.

    Attributes:
        address: of the memory.
        size: of the memory, in bytes.
        wanted: accesses that are reported: "r", "w", "rw" or "x".
        nhit: number of accesses that were reported.
        nmissed: number of accesses that were not, as the handler was running.
        access: of the last hit: "r", "w" or "x".
        before: the watched memory before the last hit, an unsigned integer in the guest's byte
            order; of "x" 0; None where a byte of it is a device's, which is not read.
        value: the same after it; of a device what is written, where that is all watched bytes.
        accessed: address that the instruction of the last hit accesses; of "x" its own.
        accessed_size: bytes that it accesses; of "x" its own.
        busy: the machine's lock.
    """

    def __init__(
        self,
        machine: Machine,
        where: str | int,
        size: int | None,
        access: str,
        handler: WatchHandler | None,
    ) -> None:
        """Watch memory.

        Args:
            machine: the guest.
            where: a symbol's name, or an address.
            size: bytes, from 1 to 65536; None: those of the symbol, or else a word of the guest; of
                "x" one.
            access: "r", "w", "rw", or "x" for instructions that begin there.
            handler: called at each hit with the watchpoint and the registers; None: accesses are
                only counted.

        Raises:
            BadLocation: the memory does not fit into the guest's addresses.
            BadArgument: an argument is of no use.
            UnknownSymbol: there is none of this name.
            AmbiguousSymbol: there are several.
            GuestFault: the memory is not mapped.
            Unsupported: the engine cannot watch.
            MachineBusy: another thread runs the machine.
        """
        self.address = _address(machine, where)
        self.wanted = _access(access)
        self.size = _size(_usual_size(machine, where, access) if size is None else size)
        if self.address + self.size - 1 > machine.arch.mask:
            raise BadLocation(
                f"{self.size} bytes do not fit behind it",
                address=self.address,
                hint="watch less, or a smaller address",
            )
        self.handler = handler
        self._machine = machine
        try:
            self._now()
        except GuestFault as error:
            if getattr(machine, "exit_status", None) is not None:
                raise
            at = self.address if error.address is None else error.address
            raise GuestFault(
                f"memory is not mapped at {at:#x}, which is to be watched", address=at
            ) from None
        self.busy = machine.busy
        self.nhit = 0
        self.nmissed = 0
        self.before: int | None = 0
        self.value: int | None = 0
        self.accessed = 0
        self.accessed_size = 0
        self.access = ""
        self._busy = False
        self._serving = 0  # the thread in the handler; 0: none
        self._order = machine.arch.order.value
        self._end: Callable[[], None] | None = None
        self._watch()

    @property
    def handler(self) -> WatchHandler | None:
        """The function that is called at each hit; None: hits are only counted.

        It may be replaced. Setting it raises BadArgument for what is no function.
        """
        return self._handler

    @handler.setter
    def handler(self, handler: WatchHandler | None) -> None:
        """Replace the handler, from the next access on; None: accesses are only counted. No lock is
        taken.

        Raises:
            BadArgument: it cannot be called.
        """
        if handler is not None and not callable(handler):
            raise BadArgument(
                f"{handler!r} is no handler",
                hint="give a function of the watchpoint and the registers",
            )
        self._handler = handler

    @property
    def registered(self) -> bool:
        """False once it is removed."""
        return self._end is not None

    @alone
    def _watch(self) -> None:
        """Have the engine call _hit() at each access to the memory, until _unwatch().

        Raises:
            Unsupported: the engine cannot watch.
            MachineBusy: another thread runs the machine.
        """
        self._end = watching_of(self._machine).watch_at(
            self.address, self.size, self.wanted, self._hit
        )

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
        """Stop watching, called where no handler of this watchpoint runs in this thread."""
        self._unwatch()

    def _unwatch(self) -> None:
        """Have the engine call _hit() no longer."""
        end = self._end
        self._end = None
        if end is not None:
            end()

    def __call__(self, handler: WatchHandler) -> WatchHandler:
        """Have a function called at each hit from now on, and return it: a decorator.

        Raises:
            BadArgument: it cannot be called.
        """
        self.handler = handler
        return handler

    def __enter__(self) -> Watchpoint:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        where = f"{self.wanted}@{self.address:#x}:{self.size}"
        return f"<Watchpoint {where}: {self.nhit} hits, {self.nmissed} missed>"

    def _hit(self, regs: Regs, address: int, size: int, data: bytes | None) -> None:
        """Count an access, note it in the watchpoint's attributes (`access`, `before`, `value`,
        `accessed`, `accessed_size`), and call the handler. The engine calls it before the access.

        While the handler runs, a further access is only counted, as missed. Where the memory is not
        mapped any more, nothing is counted or called. What the handler raises passes through.

        Args:
            regs: the registers before the access.
            address: first address that the instruction accesses.
            size: bytes that it accesses.
            data: the bytes that it writes; None: it reads, or executes.
        """
        if self._busy:
            self.nmissed += 1
            return
        if self.wanted == "x":
            self.access = "x"
        elif not self._look(address, data):
            return
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

    def _look(self, address: int, data: bytes | None) -> bool:
        """Set `before`, `value` and `access`: the watched bytes before and after an access, and its
        kind.

        Args:
            address: where the access is.
            data: what it writes; None: it reads.

        Returns:
            False: the watched memory is not mapped any more, so the access is going to fail.
        """
        try:
            now = self._now()
        except GuestFault:
            return False
        self.before = self._number(now)
        self.value = self._number(now if data is None else self._changed(now, address, data))
        self.access = "r" if data is None else "w"
        return True

    def _now(self) -> bytes | None:
        """Return the watched bytes; None: there are a device's among them, and nothing is read.

        Raises:
            GuestFault: they are not mapped.
        """
        watching = self._machine.watching
        if watching is not None and watching.reaches_device(self.address, self.size):
            return None
        return self._machine.read(self.address, self.size)

    def _number(self, data: bytes | None) -> int | None:
        """Return watched bytes as an integer; None: they are not known."""
        if data is None:
            return None
        return int.from_bytes(data, self._order)  # type: ignore[arg-type]

    def _changed(self, now: bytes | None, address: int, data: bytes) -> bytes | None:
        """Return the watched bytes as an access leaves them; None: they are not known.

        Args:
            now: the watched bytes before it; None: they are not known.
            address: where it writes.
            data: what it writes.
        """
        at = address - self.address
        first = max(at, 0)
        last = min(at + len(data), self.size)
        if now is None:
            return data[first - at : last - at] if (first, last) == (0, self.size) else None
        return now[:first] + data[first - at : last - at] + now[last:] if first < last else now


def _address(machine: Machine, where: str | int) -> int:
    """Return the address to be watched.

    Args:
        machine: the guest.
        where: an address, or a symbol's name with an offset, as Watchpoint() takes them.

    Raises:
        UnknownSymbol: there is no such symbol.
        AmbiguousSymbol: the name stands for several addresses.
        BadArgument: `where` is neither an integer nor a str.
        BadLocation: the address is wider than the guest's addresses.
    """
    if isinstance(where, str):
        return machine.symbols.place(where).address
    try:
        address = index(where)
    except TypeError:
        raise BadArgument(
            f"{where!r} is no address", hint="give an integer, or a symbol's name"
        ) from None
    if not 0 <= address <= machine.arch.mask:
        raise BadLocation(
            f"addresses have {machine.arch.bits} bits", address=address, hint="give a smaller one"
        )
    return address


def _usual_size(machine: Machine, where: str | int, access: str) -> int:
    """Return how many bytes are watched where nobody says: those of a symbol with a size, else a
    word; one of instructions.

    Args:
        machine: the guest.
        where: a symbol's name, with an offset or not, or an address.
        access: "r", "w", "rw" or "x".
    """
    if access == "x":
        return 1
    known = machine.symbols.place(where).size if isinstance(where, str) else 0
    return known or machine.arch.bits // 8


def _size(size: int) -> int:
    """Return `size` itself.

    Raises:
        BadArgument: it is no integer from 1 to MOST_WATCHED.
    """
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= MOST_WATCHED:
        raise BadArgument(f"{size!r} is no number of bytes", hint=f"watch 1 to {MOST_WATCHED}")
    return size


def _access(access: str) -> str:
    """Return `access` itself.

    Raises:
        BadArgument: it is not "r", "w", "rw" or "x".
    """
    if access not in ("r", "w", "rw", "x"):
        raise BadArgument(f"{access!r} is no access", hint='write "r", "w", "rw" or "x"')
    return access
