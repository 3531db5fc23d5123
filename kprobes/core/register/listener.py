"""The receiver of the machine's reports (Sink), from the first to the last.

It passes reports during a run to the driver (hit/trap.py), and those between runs to the registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakValueDictionary

from ...deprecation import FormerName
from ...errors import AlreadyRegistered
from ...machine._base import Machine, Patched
from ..hit.ctlblk import HitState
from ..hit.returns import Returns
from ..hit.underway import UnderWay, cannot_resume, resume, under_way
from ..patch.copies import copied_patch
from ..patch.rooms import Rooms
from .alone import alone
from .registry import Registry

_IDLE = HitState.IDLE  # looked up through its class it costs a descriptor call

#: id of a machine -> its listener that is closed, but is still needed for calls that have yet to
#: return. An entry lasts as long as the machine reports to the listener.
_CLOSING: WeakValueDictionary[int, Listener] = WeakValueDictionary()


class Listener:
    """Receives the machine's reports for one Kprobes: implements machine._base.Sink.

    The Sink methods that are not defined here (trap, fault, home_of ...) are attributes: methods of
    the driver.

    Attributes:
        rooms: the memory of probes.
        returns: return probes, and the calls being followed.
        registry: the probes.
        closing: the Kprobes is closed; memory is given back when no call needs it any more.
        busy: the machine's lock.
    """

    # former names, for engines of others
    exact = FormerName("limit_jumps", goes="1.2")
    starting = FormerName("run_begins", goes="1.2")
    sent = FormerName("guest_sent", goes="1.2")
    ended = FormerName("run_ended", goes="1.2")
    abandon = FormerName("displaced_left", goes="1.2")
    home = FormerName("home_of", goes="1.2")
    ours = FormerName("owns", goes="1.2")
    stops = FormerName("has_breakpoint", goes="1.2")
    original = FormerName("without_patches", goes="1.2")
    copied = FormerName("copied_patch", goes="1.2")
    waits = FormerName("pending_target", goes="1.2")
    in_turn = FormerName("threads_take_turns", goes="1.2")
    unloading = FormerName("about_to_unmap", goes="1.2")
    protected = FormerName("permissions_changed", goes="1.2")

    def __init__(self, machine: Machine) -> None:
        """Begin to receive the machine's reports.

        Where a closed Kprobes still waits for calls to return, its memory and calls are taken over.

        Args:
            machine: the machine.

        Raises:
            AlreadyRegistered: the machine has a Kprobes already.
        """
        before: Listener | None = _CLOSING.get(id(machine))
        if before is not None:
            before.hand_over()
        self._machine = machine
        self.busy = machine.busy
        self.rooms: Rooms = Rooms(machine) if before is None else before.rooms
        self._text = self.rooms.text
        self.returns: Returns = Returns(self.rooms) if before is None else before.returns
        self.registry = Registry(self.rooms, self.returns)
        self._driver = driver = self.registry.driver
        driver.serving.serve_returns()
        self.closing = self._closed = False
        self.services = self.rooms.services
        self.trap = driver.trap
        self.fault = driver.fault
        self.home_of = driver.home
        self.single_stepped = driver.single_stepped
        self.pending_target = driver.waits
        self.displaced_left = driver.leave
        self.owns = driver.ours
        self.has_breakpoint = driver.stops
        self.without_patches = self.rooms.text.original
        machine.report_to(self)
        machine.before_run = None
        for regs in machine.cpu_regs:
            regs.true_return = self.returns.calls.true_return

    # --- Sink

    def run_begins(self, target: int) -> None:
        """Prepare memory for a run that is about to start.

        Hits whose slot the guest has left end, and patches that others have replaced by the
        original are put back. If no CPU is in a hit, jumps that no probe needs are taken out; those
        that have `target` inside are taken out in any case. A Kprobes that is being closed is
        finished where that is possible now. At last there is a warning of text that was
        overwritten.

        Args:
            target: address where the run starts, mode bits included.
        """
        # before each run: what is looked at here saves a call for most of them
        for block in self._driver.blocks:
            if block.state is not _IDLE:
                self._driver.end_left_hits(target)
                break
        registry = self.registry
        text = self._text
        if text.touched or registry.optimizer.has_taken_out:
            registry.safe_point()
        if self.closing:
            self.finish()
        if self.rooms.displaced:
            self.guest_sent(target)
        if text.warns:
            text.warn()

    def guest_sent(self, target: int) -> None:
        """Take out a jump that has `target` in its middle, as the guest was sent there.

        Args:
            target: address, mode bits included.
        """
        if self.rooms.displaced:
            self._driver.handlers.make_room(target & ~self.rooms.arch.pointers.mode_bits)

    def run_ended(self) -> None:
        """Make probes GONE whose text the guest has overwritten in a run, and warn of them and of
        missed returns.

        A Kprobes that is being closed is finished where that is possible now.
        """
        text = self._text
        if text.suspects or text.suspected != text.writes.changes:
            self.registry.lose_unreported()
        if self.closing:
            self.finish()
        if self.returns.short:
            self.returns.warn()

    def limit_jumps(self, on: bool) -> None:
        """Allow only jumps that cover one instruction, while a run counts instructions.

        Args:
            on: True where that run begins: jumps that cover several become breakpoints. False where
                it has ended: jumps may cover several again, from the probes' next hits on.
        """
        self.registry.optimizer.exact(on)
        self._driver.handlers.serve_left_sites()

    def copied_patch(self, pc: int) -> str:
        """Say which patch the guest has copied with its text, and has failed at because of that.

        Args:
            pc: where the guest has failed.

        Returns:
            A sentence; "": the failure is not due to a copied patch.
        """
        return copied_patch(self.rooms, pc)

    def threads_take_turns(self) -> None:
        """Make queued probepoints jumps where possible, since threads stop one at a time from now
        on.
        """
        for point in list(self.registry.points.values()):
            self.registry.sync(point)

    def about_to_unmap(self, start: int, end: int) -> None:
        """Make the probes in [start, end), which is about to be unmapped, GONE."""
        self.registry.unload(start, end)

    def permissions_changed(self, start: int, end: int) -> None:
        """Begin or end watching patches for writes, as permissions of guest memory have changed.

        Probes that are served in place become breakpoints, anywhere.

        Args:
            start: address of the first byte whose permissions have changed.
            end: address behind the last one.
        """
        self.rooms.text.writes.protected(start, end)
        self.registry.optimizer.move()
        self._driver.handlers.serve_left_sites()

    # --- going back

    @property
    def patched(self) -> int:
        """A number other than 0 that changes whenever patches() does."""
        return self._text.version

    def patches(self) -> Mapping[int, Patched]:
        """Return the patches that stand in memory, by address."""
        return self.rooms.text.standing()

    def under_way(self) -> UnderWay | None:
        """Return a copy of the calls being followed, for a snapshot; None: there are none."""
        return under_way(self.returns.calls)

    def cannot_resume(self, calls: object | None) -> str:
        """Return why the calls of a snapshot cannot be followed again; "": they can.

        Args:
            calls: returned by under_way() when the snapshot was taken; None: there were none.
        """
        return cannot_resume(self.returns.calls, calls)

    def resume(self, calls: object | None) -> None:
        """Follow the calls of a snapshot again, and no others. Called as the guest goes back to it.

        Args:
            calls: returned by under_way() when the snapshot was taken; None: there were none.
        """
        if calls is not None or not self.returns.calls.is_empty:
            resume(self.returns.calls, calls)

    # --- the end

    @alone
    def check_changing(self) -> None:
        """Check that this thread may change probes now.

        Raises:
            MachineBusy: another thread runs the machine, or changes probes.
        """

    @alone
    def close(self) -> None:
        """Unregister all probes, and set `closing`. Reports are served until the followed calls
        have returned, and end now where no call is followed and no CPU is in a hit.

        Until then another Kprobes of the machine may take them over. At last there is a warning of
        text that was overwritten.

        Raises:
            MachineBusy: another thread has the machine's lock.
        """
        self.registry.clear()
        self.closing = True
        self.finish()
        if not self._closed:
            _CLOSING[id(self._machine)] = self
        self.rooms.text.warn()

    def finish(self) -> None:
        """If the Kprobes is closing and nothing needs its memory, give that back and end all
        reports.

        A call that has yet to return needs the memory, and so does a CPU in a hit or in the
        library's code; then nothing is given back. Calls whose frames are gone are set aside first.
        """
        if not self.closing or self._closed or self._machine.in_turn or not self._driver.at_rest:
            return
        self.returns.calls.set_gone_aside()
        if self.returns.calls.pending:
            return
        self.returns.close()
        self.rooms.close()
        self._let_go()

    def _let_go(self) -> None:
        """End all reports to this listener, and drop the references that CPUs and control blocks
        have.

        Before later runs text is checked (Text.check): a snapshot that is restored later may have
        patches in it, which are taken out then.
        """
        self._closed = True
        _CLOSING.pop(id(self._machine), None)
        self._machine.report_to(None)
        # a snapshot that is restored later may have our patches in it: they are taken out
        self._machine.before_run = self.rooms.text.check
        for regs in self._machine.cpu_regs:
            regs.true_return = None
        for cb in self._driver.blocks:
            cb.let_go()

    def hand_over(self) -> None:
        """End reports, since another Kprobes on the machine takes over the calls that have yet to
        return.

        Raises:
            AlreadyRegistered: a hit is under way, or a CPU is in the library's code.
        """
        if not self._driver.at_rest:
            raise AlreadyRegistered(
                "the Kprobes that this machine has is being closed",
                hint="make another one when the handler has returned",
            )
        self._let_go()
