"""The receiver of the machine's reports: the driver in a run, the registry between runs, from the
first report to the last.
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakValueDictionary

from ...errors import AlreadyRegistered
from ...machine._base import Machine, Patched
from ..hit.returns import Returns
from ..hit.underway import UnderWay, cannot_resume, resume, under_way
from ..patch.copies import copied_patch
from ..patch.rooms import Rooms
from .alone import alone
from .registry import Registry

#: by the machine's id: the one that is closed, but for calls that have yet to return. It lives as
#: long as the machine reports to it.
_CLOSING: WeakValueDictionary[int, Listener] = WeakValueDictionary()


class Listener:
    """Implements the machine's Sink.

    Attributes:
        rooms, returns, registry: what it looks after.
        closing: pages go back when nobody needs them.
        busy: the machine's.
    """

    def __init__(self, machine: Machine) -> None:
        before: Listener | None = _CLOSING.get(id(machine))
        if before is not None:
            before._hand_over()
        self._machine = machine
        self.busy = machine.busy
        self.rooms: Rooms = Rooms(machine) if before is None else before.rooms
        self.returns: Returns = Returns(self.rooms) if before is None else before.returns
        self.registry = Registry(self.rooms, self.returns)
        self._driver = driver = self.registry.driver
        driver.serving.serve_returns()
        self.closing = self._closed = False
        self.services = self.rooms.services
        self.trap = driver.trap
        self.fault = driver.fault
        self.home = driver.home
        self.waits = driver.waits
        self.abandon = driver.leave
        self.ours = driver.ours
        self.stops = driver.stops
        self.original = self.rooms.text.original
        machine.report_to(self)
        machine.before_run = None
        for regs in machine.cpu_regs:
            regs.true_return = self.returns.calls.true_return

    # --- Sink

    def starting(self, target: int) -> None:
        """Make memory fit for a run that is about to start at `target`, mode bits included."""
        self._driver.give_up(target)
        self.registry.safe_point()
        self.finish()
        self.sent(target)
        self.rooms.text.warn()

    def sent(self, target: int) -> None:
        """Make room for a guest that was sent to `target`: a jump whose middle that is gives way.
        """
        if self.rooms.displaced:
            self._driver.handlers.make_room(target & ~self.rooms.arch.pointers.mode_bits)

    def ended(self) -> None:
        """Look at what a run has left behind: it has ended."""
        self.registry.look()
        self.finish()
        self.returns.warn()

    def exact(self, on: bool) -> None:
        """Have each instruction executed at its own address (True), or let jumps cover several
        again.
        """
        self.registry.optimizer.exact(on)
        self._driver.handlers.settle()

    def copied(self, pc: int) -> str:
        """Say what of the core's the guest has copied with its text, and has failed for at `pc`;
        "": nothing.
        """
        return copied_patch(self.rooms, pc)

    def in_turn(self) -> None:
        """Arm all probes again, since threads take turns from now on."""
        for point in list(self.registry.points.values()):
            self.registry.sync(point)

    def unloading(self, start: int, end: int) -> None:
        """Give up the probes in [start, end), which is about to be unmapped."""
        self.registry.unload(start, end)

    def protected(self, start: int, end: int) -> None:
        """Look again at the patches in [start, end), whose permissions have changed."""
        self.rooms.text.writes.protected(start, end)
        self.registry.optimizer.move()
        self._driver.handlers.settle()

    # --- going back

    @property
    def patched(self) -> int:
        """A number other than 0 that changes whenever patches() does."""
        return self.rooms.text.version

    def patches(self) -> Mapping[int, Patched]:
        """Return the patches that stand in memory, by address."""
        return self.rooms.text.standing()

    def under_way(self) -> UnderWay | None:
        """Return a copy of the calls being followed, for a snapshot; None: there are none."""
        return under_way(self.returns.calls)

    def cannot_resume(self, calls: object | None) -> str:
        """Return why the calls of a snapshot cannot be followed again; "": they can."""
        return cannot_resume(self.returns.calls, calls)

    def resume(self, calls: object | None) -> None:
        """Follow the calls of a snapshot again, and no others."""
        resume(self.returns.calls, calls)

    # --- the end

    @alone
    def check_changing(self) -> None:
        """MachineBusy where nobody may change probes now."""

    @alone
    def close(self) -> None:
        """Unregister all probes; reports are served until the calls being followed have returned.
        """
        self.registry.clear()
        self.closing = True
        self.finish()
        if not self._closed:
            _CLOSING[id(self._machine)] = self
        self.rooms.text.warn()

    def finish(self) -> None:
        """Give the memory back if the Kprobes is closing, no call is pending, and no CPU is in a hit
        or in displaced instructions.
        """
        if not self.closing or self._closed or self._machine.in_turn or not self._driver.at_rest:
            return
        self.returns.calls.settle()
        if self.returns.calls.pending:
            return
        self.returns.close()
        self.rooms.close()
        self._let_go()

    def _let_go(self) -> None:
        self._closed = True
        _CLOSING.pop(id(self._machine), None)
        self._machine.report_to(None)
        # somebody may restore what was there while it was probed
        self._machine.before_run = self.rooms.text.check
        for regs in self._machine.cpu_regs:
            regs.true_return = None
        for cb in self._driver.blocks:
            cb.let_go()

    def _hand_over(self) -> None:
        """Let another Kprobes look after the calls that have yet to return, since this one is
        closed.

        Raises:
            AlreadyRegistered: a hit is under way.
        """
        if not self._driver.at_rest:
            raise AlreadyRegistered("the Kprobes that this machine has is being closed",
                                    hint="make another one when the handler has returned")
        self._let_go()
