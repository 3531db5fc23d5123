"""Registry: which probes there are, and breakpoints and jumps in memory as they want them.

A probepoint is an address that has probes (patch/probepoint.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...arch._base import Insn
from ...errors import AlreadyRegistered, Gone, KprobeError
from ..hit.returns import Returns
from ..hit.trap import TrapDriver
from ..patch.arming import Arming
from ..patch.optimizer import Optimizer
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..patch.sites import Site, SiteKind
from ..patch.text import TextOverwritten
from ..probe import (
    Jprobe,
    Kretprobe,
    Probe,
    enter_point,
    leave_point,
    lose_probe,
    not_registered,
    owner_of,
    point_of,
    switch_probe,
)
from . import jprobe
from .admission import Admission, typed
from .alone import alone
from .locate import Location, locate


def _listed(addrs: list[int]) -> str:
    """Return addresses as text for a message: in hexadecimal, with commas."""
    return ", ".join(f"{addr:#x}" for addr in addrs)


class Registry:
    """Registers and unregisters probes, and keeps memory as they want it.

    Methods that the user's calls lead to take the machine's lock (alone.py): they raise
    MachineBusy, and do nothing, while another thread has it.

    Attributes:
        points: address -> probepoint.
        optimizer: decides which of them are jumps.
        driver: serves hits.
        admission: refuses places where no probe may be.
        rearmed: how many patches were put back that others than the core had overwritten.
        busy: the machine's lock.
    """

    def __init__(self, rooms: Rooms, returns: Returns) -> None:
        self._rooms = rooms
        self._returns = returns
        self._machine = rooms.machine
        self.busy = rooms.machine.busy
        self.points: dict[int, Probepoint] = {}
        self.optimizer = Optimizer(rooms)
        self.driver = TrapDriver(rooms, self.optimizer, returns, self._lose_overwritten)
        self.admission = Admission(rooms)
        self.rearmed = 0
        # not an argument: the rooms are older, and serve the next Kprobes of this machine as well
        rooms.text.writes.report_to(self.overwritten)
        self._enabled = True

    # --- registration

    @alone
    def register(self, probe: Probe) -> None:
        """Register a probe, and arm it unless it is disabled. A refusal changes nothing.

        Args:
            probe: a probe that is registered nowhere.

        Raises:
            BadLocation: it is no Probe, or its place cannot be resolved.
            AlreadyRegistered: it is registered.
            KprobeError: there is no such symbol, the probe may not be there, or it cannot be armed.
        """
        typed(probe, Probe)
        if probe.registered:
            raise AlreadyRegistered(
                "this probe object is registered already",
                address=probe.address,
                symbol=probe.place(),
                hint="unregister it first, or make another one",
            )
        place = locate(self._machine, self._rooms.text, probe.symbol_name, probe.addr, probe.offset)
        insn = self.admission.admit(place)
        hook = self._prepare_entry(probe, place)
        try:
            self._join(probe, self._point(place, insn), hook)
        except BaseException:
            self.leave(probe)
            raise

    def _prepare_entry(self, probe: Probe, place: Location) -> Callable[[Any, Any], Any] | None:
        """Check that a probe of this kind may be at a place, and make ready what it runs at entry.

        For a return probe this makes its pool of instances, and the trampoline if there is none
        yet.

        Args:
            probe: the probe that is being registered.
            place: where it is to be.

        Returns:
            The function that a return probe or jprobe runs as its pre-handler: (probe, regs) -> 0
            or another number. None for a kprobe.

        Raises:
            KprobeError: the probe may not be there.
        """
        point = self.points.get(place.address)
        self.admission.check_kind(probe, place, () if point is None else point.probes)
        if isinstance(probe, Jprobe):
            return jprobe.entry_hook(probe, self._machine, self._rooms.text)
        if isinstance(probe, Kretprobe):
            self._returns.prepare(probe, place.address)
            self.driver.serving.serve_returns()
            return self._returns.hook(probe)
        return None

    def _point(self, place: Location, insn: Insn) -> Probepoint:
        """Return the probepoint at a place; make it, if there is none.

        A probepoint whose text was unloaded begins anew with the text that is there now.

        Args:
            place: an address and its symbol.
            insn: the instruction at the address.
        """
        point = self.points.get(place.address)
        symbol = place.symbol
        name, module = (symbol.name, symbol.module) if symbol else ("", "")
        if point is None:
            point = Probepoint(self._rooms, insn, name, place.offset, module)
            self.points[place.address] = point
            self._rooms.sites[place.address] = Site(SiteKind.PROBEPOINT, point)
        elif point.state is Arming.GONE:
            point.reload(insn, name, place.offset, module)
        return point

    def _join(
        self, probe: Probe, point: Probepoint, hook: Callable[[Any, Any], Any] | None
    ) -> None:
        """Add a probe to a probepoint and arm it, if it is not disabled; set its counters to 0.

        Args:
            probe: the probe that is being registered.
            point: the probepoint at its address.
            hook: what it runs in place of a pre-handler, from _prepare_entry(); None for a kprobe.

        Raises:
            KprobeError: the probepoint cannot be armed. The caller undoes this by leave().
        """
        enter_point(probe, self, point, hook)
        point.add(probe)
        self._changed(point)

    @alone
    def unregister(self, probe: Probe) -> None:
        """Unregister a probe. Where it was the only one, the original text is back.

        In a hit a jump is taken out later, at the next safe point. The probe's counters stay.

        Args:
            probe: a probe of this registry.

        Raises:
            NotRegistered: it is none.
        """
        self.check_mine(probe)
        self.leave(probe)
        self.collect()

    def check_mine(self, probe: Probe) -> None:
        """Check that a probe is registered with this registry.

        Raises:
            NotRegistered: it is not.
        """
        if owner_of(typed(probe, Probe)) is not self:
            raise not_registered(probe)

    @alone
    def leave(self, probe: Probe) -> None:
        """Unregister a probe, and disarm its probepoint where no other wants it armed. The pool of
        a return probe is dropped.

        Jumps and memory that are not needed any more are left to collect(), which the caller calls
        afterwards.

        Args:
            probe: a probe of this registry, or one whose registration has failed.
        """
        point = point_of(probe)
        leave_point(probe)
        if isinstance(probe, Kretprobe):
            self._returns.forget(probe)
        if point is not None:
            point.remove(probe)
            self._changed(point)
            self._drop_unused(point)

    # --- changes

    @alone
    def disable(self, probe: Probe) -> None:
        """Keep a probe registered, but let it have no hits, until enable(). A probe that is GONE
        stays as it is.

        Args:
            probe: a probe of this registry.

        Raises:
            NotRegistered: it is none.
        """
        self.check_mine(probe)
        if not probe.gone:
            switch_probe(probe, False)
            self.handlers_changed(probe)
            self.collect()

    @alone
    def enable(self, probe: Probe) -> None:
        """Let a disabled probe be hit again. If it cannot be armed, it stays disabled.

        Args:
            probe: a probe of this registry.

        Raises:
            NotRegistered: it is none.
            Gone: its text was unloaded, or overwritten.
            KprobeError: it cannot be armed.
        """
        self.check_mine(probe)
        if probe.gone:
            raise Gone(
                "its text was unloaded, or overwritten",
                address=probe.address,
                symbol=probe.place(),
                hint="unregister it and register it again",
            )
        switch_probe(probe, True)
        try:
            self.handlers_changed(probe)
        except KprobeError:
            self.disable(probe)
            raise

    @alone
    def handlers_changed(self, probe: Probe) -> None:
        """Work out anew what hits of a probe do, after its handlers or settings have changed.

        Args:
            probe: the probe; nothing happens where it is not registered.
        """
        point = point_of(probe)
        if point is not None:
            point.refresh()
            self._changed(point)

    def explain(self, point: Probepoint) -> str:
        """Return why a probepoint is not a jump; "": it is one."""
        return self.optimizer.explain(point)

    @property
    def enabled(self) -> bool:
        """The global switch: False keeps all probes disarmed.

        Setting it arms or disarms them at once.
        """
        return self._enabled

    @enabled.setter
    @alone
    def enabled(self, on: bool) -> None:
        """Arm or disarm all probes, as the global switch is set; where one cannot be armed, none
        is.

        Args:
            on: True: arm those that are not disabled themselves.

        Raises:
            KprobeError: a probe cannot be armed; all are disarmed.
        """
        self._enabled = on
        try:
            for point in list(self.points.values()):
                self.sync(point)
        except KprobeError:
            self.enabled = False
            raise
        self.collect()

    @alone
    def optimize(self, on: bool) -> None:
        """Set whether probes may become jumps.

        Args:
            on: True: queue all probepoints that may become jumps. False: make every jump a
                breakpoint, at once.
        """
        self.optimizer.allowed = on
        for point in list(self.points.values()):
            if not on:
                self.optimizer.force(point)
            self.sync(point)

    @alone
    def flush(self) -> None:
        """Make the queued probepoints jumps where possible, and free what is not needed any more.

        Called outside of a hit.
        """
        self._drain()
        for point in self.optimizer.queue:
            self.driver.optimize(point, demanded=True)
        self._rooms.collect()

    # --- memory

    def _changed(self, point: Probepoint) -> None:
        """Arm, disarm or queue a probepoint as its changed probes want; serve its call site anew.

        Args:
            point: the probepoint; it has a call site while it is a jump.
        """
        if point.detour is not None:
            self.driver.serve(point)
        self.sync(point)

    def sync(self, point: Probepoint) -> None:
        """Arm or disarm a probepoint, or queue it for a jump, as its probes and the global switch
        want.

        It is armed if an active probe is there and the switch is on; jumps that cover its place
        become breakpoints before that. Else a breakpoint is taken out now, and a jump at the next
        safe point, or now if the switch is off. Where threads stop one at a time, a jump is made at
        once.

        Memory is written.

        Args:
            point: the probepoint.
        """
        if self._enabled and point.active:
            if point.state is Arming.DISARMED:
                self.driver.handlers.make_room(self._rooms.arch.last_of(point.address))
                point.arm()
                if self._rooms.arch.bundles is not None:
                    self.optimizer.divide(point.address)
            self.optimizer.consider(point)
            if self._machine.in_turn:
                self.driver.optimize(point)
        elif point.state in (Arming.ARMED, Arming.OPTIMIZING):
            self.optimizer.force(point)
            point.disarm()
            self.optimizer.left(point.address)
        elif not self._enabled:
            self.optimizer.force(point)
            self._disarm_or_forget(point)
        else:
            self.optimizer.consider(point)  # its jump will be taken out at the next safe point
        self.driver.handlers.serve_left_sites()

    def _disarm_or_forget(self, point: Probepoint) -> None:
        """Disarm a probepoint whose jump was taken out, if no probe needs it; forget it if it has
        none.

        Args:
            point: the probepoint; a breakpoint may stand there.
        """
        if point.state is Arming.ARMED and not (self._enabled and point.active):
            point.disarm()
            self.optimizer.left(point.address)
        self._drop_unused(point)

    def _drop_unused(self, point: Probepoint) -> None:
        """Forget a probepoint and free its slot, if it has no probes and is not armed."""
        if (
            not point.probes
            and point.state in (Arming.DISARMED, Arming.GONE)
            and self.points.get(point.address) is point
        ):
            point.give_back_slot()
            del self.points[point.address], self._rooms.sites[point.address]

    def _drain(self) -> None:
        """Take out the jumps that no probe needs any more. Outside of a hit."""
        for point in self.optimizer.drain():
            self._disarm_or_forget(point)
        self.driver.handlers.serve_left_sites()

    def safe_point(self) -> None:
        """Put back patches that others have replaced by the original, and take out unneeded jumps.

        Called before a run, while no guest code runs. Patches put back are counted in `rearmed`.
        Jumps stay while a CPU is in a hit.
        """
        self.rearmed += self._rooms.text.check()
        if self.optimizer.has_taken_out and self.driver.idle:
            self._drain()

    @alone
    def collect(self) -> None:
        """Take out unneeded jumps and free unneeded slots, outside of a hit; then warn of
        overwritten text.

        While a CPU is in a hit or in the library's code, nothing is taken out or freed.
        """
        if self.driver.at_rest:
            self._drain()
            self._rooms.collect()
        self._rooms.text.warn()

    def unload(self, start: int, end: int) -> None:
        """Make the probes in a range of guest memory GONE that is about to be unmapped.

        They stay listed, as GONE, until they are unregistered. Afterwards unneeded jumps and slots
        are freed, where no CPU is in a hit.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
        """
        for point in [p for a, p in self.points.items() if start <= a < end]:
            if point.state is not Arming.GONE:
                self._lose(point)
        self.driver.handlers.serve_left_sites()
        self.collect()

    def _lose(self, point: Probepoint) -> None:
        """Make a probepoint and its probes GONE, without writing memory: their text goes away.

        Its patch, detour and slot are given up. The probes stay registered. The caller calls
        handlers.serve_left_sites() afterwards.

        Args:
            point: the probepoint.
        """
        point.settle_count()
        self.optimizer.forget(point)
        point.unload()
        point.give_back_slot()
        for probe in point.probes:
            lose_probe(probe)
        point.refresh()

    def overwritten(self, addrs: list[int], pc: int) -> None:
        """Make probes GONE whose text the guest is about to overwrite, and warn (TextOverwritten).

        The original text is back in memory when the guest writes.

        The guest is in the middle of an instruction, which may be a displaced one. So no memory is
        freed.

        Args:
            addrs: addresses of the patches.
            pc: address of the instruction that writes.
        """
        self._make_gone(addrs)
        warnings.warn(
            f"the guest's instruction at {pc:#x} overwrites text at {_listed(addrs)}, which is "
            "probed: the probes there are gone",
            TextOverwritten,
            stacklevel=2,
        )

    def _make_gone(self, addrs: list[int]) -> None:
        """Take patches out of memory where the guest has overwritten text, or is about to; their
        probepoints become GONE.

        What is still a patch's becomes the original text; what the guest has written stays
        (Text.restore_unwritten). A probepoint that is GONE has given up its patch, slot and detour;
        its probes stay registered, but are hit no more. Code that the engine has translated before
        may hit the probepoint once more (TrapDriver.overwritten).

        Args:
            addrs: addresses of the patches; where no patch is in memory nothing is done.
        """
        arch = self._rooms.arch
        for addr in addrs:
            # the probepoints of a bundle share its first address
            sharing = self._rooms.sites.between(arch.text_of(addr), arch.last_of(addr) + 1)
            for point in [p for p in sharing if p.patch is not None and p.patch.addr == addr]:
                self.driver.overwritten(point)
                self._rooms.text.restore_unwritten(addr)
                self._lose(point)
        self.driver.handlers.serve_left_sites()

    def lose_unreported(self) -> None:
        """Make probes GONE whose text the guest has overwritten without a report, and warn of them.

        Called while no guest code runs.
        """
        addrs = self._rooms.text.lost()
        if addrs:
            self._lose_overwritten(addrs)

    def _lose_overwritten(self, addrs: list[int]) -> None:
        """Make probes GONE whose text was overwritten without a report, and warn (TextOverwritten).

        What the guest has written stays in memory.

        Args:
            addrs: addresses of their patches.
        """
        self._make_gone(addrs)
        warnings.warn(
            f"text at {_listed(addrs)} was overwritten while probed, by stores that nobody "
            "reports: the probes there are gone, and may have executed what was there before",
            TextOverwritten,
            stacklevel=2,
        )

    def clear(self) -> None:
        """Unregister all probes, and take every jump out; hits whose slot the guest has left are
        ended.
        """
        for point in list(self.points.values()):
            for probe in point.probes:
                self.leave(probe)
        self._drain()
        self.driver.end_left_hits()
