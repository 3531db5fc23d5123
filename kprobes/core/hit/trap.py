"""The driver: what a trap and a fault do. Reports come from the machine; the order of things is here and nowhere else.

A hit: control block IDLE -> HIT_ACTIVE, pre-handlers newest first, simulation, then the body in its slot (HIT_SS) or
nothing, then pc at the next instruction, post-handlers (HIT_SSDONE), IDLE. Whatever is raised on the way leaves through
the engine with the guest consistent: pc at the probepoint (before the instruction) or after it, control block popped.
"""

from __future__ import annotations

import warnings

from ...arch._base import Annul
from ...errors import ReentryError
from ...machine._base import Fault
from ...regs import Regs
from ..patch.arming import Arming
from ..patch.probepoint import Probepoint
from ..patch.sites import Kind
from ..patch.text import ExecutedElsewhere
from .ctlblk import ControlBlock, Event, State
from .following import Following

# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_ACTIVE, HIT_SS, REENTER = State.IDLE, State.HIT_ACTIVE, State.HIT_SS, State.REENTER
STEP, SLOT_END, NO_STEP, DONE = Event.STEP, Event.SLOT_END, Event.NO_STEP, Event.DONE
OPTIMIZING, OPTIMIZED = Arming.OPTIMIZING, Arming.OPTIMIZED
AT_PROBEPOINT, AT_SLOT_END, AT_TRAMPOLINE = Kind.PROBEPOINT, Kind.SLOT_END, Kind.TRAMPOLINE


class TrapDriver(Following):
    """Implements the machine's Sink."""

    # --- Sink

    def trap(self, regs: Regs) -> bool:
        """See machine._base.Sink."""
        site = self._sites.get(regs.pc)
        if site is None:
            return self._rooms.text.stray(regs.pc) or self._lay_bare(self.blocks[regs.cpu], regs)
        cb = self.blocks[regs.cpu]
        kind = site.kind
        if kind is AT_PROBEPOINT:
            point = site.owner
            if point.state is OPTIMIZING and cb.state is IDLE:
                self._owner.optimizer.optimize(point)  # from the next hit on
            self._hit(cb, point, regs)
        elif kind is AT_SLOT_END:
            self._slot_end(cb, site.owner, regs)
        elif kind is AT_TRAMPOLINE:
            self._return(cb, regs)
        else:
            return self._lay_bare(cb, regs)
        return True

    def fault(self, regs: Regs, fault: Fault) -> bool:
        """See machine._base.Sink. A fault in a slot is moved home and the probes there are asked."""
        cb = self.blocks[regs.cpu]
        if fault.lost and cb.point is not None and cb.state in (HIT_SS, REENTER):
            regs.go(cb.point.slot_target)  # a displaced instruction runs until its slot's end is reported
        displaced = self._displaced(regs.pc)
        if displaced is None:
            self._abandon(cb)
            return False
        point, _, home, again = displaced
        regs.go(home | point.insn.mode)
        running = cb.point is point and cb.state in (HIT_SS, REENTER)
        missed = cb.state is REENTER or (cb.state is not IDLE and not running)  # a missed hit asks nobody
        handled = False
        try:
            handled = not missed and self._ask(point.active, regs, fault)
        finally:
            if not handled:
                regs.go(home | point.insn.mode)
            if running and (not handled or regs.pc != home):
                cb.step(DONE)
        if handled and regs.pc == home:
            regs.go(again | point.insn.mode)  # the same hit goes on
        elif handled:
            self._land(regs)
        return handled

    def ours(self, pc: int) -> bool:
        """See machine._base.Sink."""
        return self._rooms.ours(pc)

    def starting(self, target: int) -> None:
        """See machine._base.Sink."""
        self.give_up(target)
        self._owner.safe_point()
        if self._rooms.displaced:
            self._owner.optimizer.make_room(target & ~self._rooms.arch.mode_bits)

    def ended(self) -> None:
        """See machine._base.Sink."""
        if self.closing:
            self._owner.finish_closing()

    def give_up(self, target: int | None = None) -> None:
        """Nothing runs: a hit whose slot the guest has left, and not by its end, never ends. target: where it will go on."""
        machine = self._rooms.machine
        for cb, regs in zip(self.blocks, machine.cpu_regs, strict=True):
            pc = regs.pc if target is None or regs is not machine.regs else target & ~self._rooms.arch.mode_bits
            if cb.state is not IDLE and not self.ours(pc):
                self._abandon(cb)

    def exact(self, on: bool) -> None:
        """See machine._base.Sink."""
        self._owner.optimizer.exact(on)

    def unloading(self, start: int, end: int) -> None:
        """See machine._base.Sink."""
        self._owner.unload(start, end)

    # --- a hit

    def _hit(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        if cb.state is not IDLE:
            if cb.state is HIT_SS and cb.point is point:
                cb.reset()  # redirected out of the slot and back at the start: that hit never ends
            else:
                self._reenter(cb, point)
                self._execute(cb, point, regs)
                return
        cb.state, cb.point, cb.probes = HIT_ACTIVE, point, point.active  # begin(), written out
        try:
            diverted = self._pre(cb, regs)
        except BaseException:
            regs.go(point.address | point.insn.mode)
            cb.step(DONE)
            raise
        if not diverted:
            self._execute(cb, point, regs)
            return
        cb.step(DONE)
        if point.state is OPTIMIZED:
            self._owner.optimizer.refuse(point, "its pre_handler diverts the guest")
        self._check_diverted(point, regs)

    def _reenter(self, cb: ControlBlock, point: Probepoint) -> None:
        """A hit within a hit is missed; a third level is an error, and what the second was about never ends."""
        try:
            cb.begin(point)
        except ReentryError:
            self._abandon(cb)
            raise
        point.missed()

    def _lay_bare(self, cb: ControlBlock, regs: Regs) -> bool:
        """An instruction at pc may have executed a breakpoint of ours out of its place: then the probes there give way, with a warning."""
        executed = self._rooms.arch.executed
        if executed is None:
            return False
        displaced, pc = self._displaced(regs.pc), regs.pc
        insn = self._rooms.survey.decode(pc if displaced is None else displaced[2])
        at = executed(regs, insn)
        bare = None if at is None else self._sites.probepoint(at)
        if bare is None or not bare.active:
            return False
        for probe in bare.active:
            probe._owner.disable(probe)
        regs.go(pc)
        if displaced is not None and displaced[0] is cb.point:
            target = self._simulate(cb, cb.point, regs)  # anew: it saw the breakpoint
            if type(target) is Annul:
                cb.resume = target
                self._slot_end(cb, cb.point, regs)
        what = f"{bare.where} is executed by the {insn.name} at {insn.addr:#x}: the probes there are disabled"
        warnings.warn(what, ExecutedElsewhere, stacklevel=2)
        return True

    def _slot_end(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        if cb.point is not point or cb.state not in (HIT_SS, REENTER):
            regs.go(point.next)  # the tail changed, or the hit was given up, while the guest was inside
            return
        regs.go(cb.resume)
        if cb.state is REENTER or not point.has_post:
            cb.step(SLOT_END if cb.state is REENTER else DONE)
        else:
            cb.step(SLOT_END)
            self._post(cb, point, regs)
        if cb.state is IDLE and self._calls.following:
            self._rooms.machine.follow_none(False)
