"""Running the user's handlers, and what becomes of faults and exceptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...arch._base import Annul, Insn
from ...errors import BadLocation, GuestFault
from ...machine._base import Fault
from ...regs import Regs
from ..patch.arming import Arming
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..patch.sites import Kind
from ..probe import Probe
from .ctlblk import ControlBlock, Event, State
from .returns import Returns

if TYPE_CHECKING:
    from ..register.registry import Registry


# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_SS, REENTER, ARMED = State.IDLE, State.HIT_SS, State.REENTER, Arming.ARMED
STEP, NO_STEP, DONE = Event.STEP, Event.NO_STEP, Event.DONE


class Handlers:
    """What every way of hitting a probe has in common.

    Attributes:
        services: see machine._base.Sink. blocks: a control block for each CPU. closing: pages go back when nobody needs them.
    """

    def __init__(self, owner: Registry, rooms: Rooms, returns: Returns) -> None:
        self._owner = owner
        self._rooms = rooms
        self._sites = rooms.sites
        self.services = rooms.services
        self._returns, self._calls = returns, returns.calls
        self.closing = False
        self.blocks = [ControlBlock() for _ in range(rooms.machine.cpus)]

    # --- handlers

    def home(self, pc: int) -> int | None:
        """See machine._base.Sink."""
        found = self._displaced(pc)
        if found is None:
            return None
        _, insn, home, _ = found
        delayed = insn.delay_slot and home == insn.addr and insn.body and self._rooms.machine.read(pc, len(insn.body)) == insn.body
        return home + insn.size if delayed else home

    def stops(self, pc: int) -> bool:
        """See machine._base.Sink."""
        site = self._sites.get(pc)
        return site is not None and site.kind is not Kind.SLOT

    def _displaced(self, pc: int) -> tuple[Probepoint, Insn, int, int] | None:
        """The probepoint whose displaced instruction is at `pc`, that instruction, the address it stands for, and where to execute it
        again; None elsewhere."""
        rooms = self._rooms
        slot = rooms.slots.slot_of(pc)
        site = None if slot is None else self._sites.get(slot)
        if site is not None and site.kind is Kind.SLOT:
            point: Probepoint = site.owner
            return point, point.insn, point.address if pc < point.slot_end else point.insn.next, pc
        buffer = rooms.buffers.slot_of(pc)
        if buffer is not None and buffer in rooms.displaced:
            point, places = rooms.displaced[buffer]
            start, insn = next((place, insn) for place, insn in reversed(places) if place <= pc)
            return point, insn, insn.addr, start
        point_of_call = rooms.calls.slot_of(pc)
        if point_of_call is not None and point_of_call in rooms.called:
            point = rooms.called[point_of_call]
            return point, point.insn, point.address, pc
        return None

    def _abandon(self, cb: ControlBlock) -> None:
        """The run ends outside the slot it was sent through: that hit never ends."""
        while cb.state in (HIT_SS, REENTER):
            cb.step(DONE)

    def _simulate(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> int | None:
        """Simulate: where to go next. None: it faulted, and a fault_handler has sent the guest elsewhere; the hit is over."""
        simulate = point.insn.simulate
        assert simulate is not None
        while True:
            try:
                return simulate(regs)
            except GuestFault as error:
                if not self._fault_at_home(cb, point, regs, error):
                    return None

    def _fault_at_home(self, cb: ControlBlock, point: Probepoint, regs: Regs, error: GuestFault) -> bool:
        """A simulated instruction touched memory it may not: as if it had faulted where it stands. True: try it again."""
        home = point.address | point.insn.mode
        regs.go(home)
        fault = Fault(access=error.access, address=error.address, number=error.number, text=error.reason)
        handled = False
        try:
            handled = cb.state is not REENTER and self._ask(cb.probes, regs, fault)
        finally:
            if not handled:
                regs.go(home)
            again = handled and regs.pc == point.address
            if not again:
                cb.step(DONE)
                self._land(regs)
        if not handled:
            raise GuestFault(error.reason, address=error.address, pc=point.address, access=error.access, symbol=point.where,
                             number=error.number) from None
        return again

    def _ask(self, probes: tuple[Probe, ...], regs: Regs, fault: Fault) -> bool:
        """Ask the fault_handlers, newest first, until one has handled a guest fault."""
        regs.fault = fault
        try:
            return any(p._active and p.fault_handler is not None and p.fault_handler(p, regs, fault.trapnr) for p in probes)
        finally:
            regs.fault = None

    def _ask_about_exception(self, p: Probe, regs: Regs, error: Exception) -> None:
        """Ask the dispatched probe's fault_handler about its own exception; raises it again unless handled."""
        handled = False
        if p.fault_handler is not None:
            regs.exception = error
            try:
                handled = bool(p.fault_handler(p, regs, 0))
            finally:
                regs.exception = None
        if not handled:
            raise error

    def _pre(self, cb: ControlBlock, regs: Regs) -> bool:
        """Run the pre-handlers; True if one of them has set pc itself."""
        for p in cb.probes:
            if p._active:  # an elder sibling's handler may have unregistered it
                cb.child = p
                p._nhit += 1
                handler = p._pre
                if handler is not None:
                    try:
                        if handler(p, regs):
                            return True
                    except Exception as error:
                        here = regs.pc
                        self._ask_about_exception(p, regs, error)
                        if regs.pc != here:
                            return True
        return False

    def _check_diverted(self, point: Probepoint, regs: Regs) -> None:
        if regs.pc == point.address and point.state is ARMED:
            raise BadLocation("a pre_handler returned true (I set regs.pc myself) but regs.pc is still the probepoint", address=point.address,
                              symbol=point.where, hint="set regs.pc, or return 0: the guest would hit the probe for ever")
        self._land(regs)

    def _land(self, regs: Regs) -> None:
        """A handler has chosen where the guest goes on: not into the middle of a jump of ours."""
        if self._rooms.displaced:
            self._owner.optimizer.make_room(regs.pc)

    # --- the rest of a hit

    def _execute(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        """Simulate, then send the guest through the body, or past the instruction when there is none."""
        if point.native:
            regs._target = point.slot_target
            if cb.previous is None:
                cb.state = IDLE  # step(DONE), written out
            else:
                cb.step(DONE)
            return
        target = point.next
        slot = point.slot
        if point.insn.simulate is not None:
            simulated = self._simulate(cb, point, regs)
            if simulated is None:
                return
            target = simulated
            if type(target) is Annul:
                slot = None
        if slot is not None:
            regs._target = point.slot_target
            cb.resume = target
            if cb.state is not REENTER:
                cb.step(STEP)
                if self._calls.following:
                    self._rooms.machine.follow_none(True)  # an interrupt of the guest's may lead away from the slot
            return
        regs.go(target)
        if cb.state is REENTER or not point.has_post:
            cb.step(DONE)
        else:
            cb.step(NO_STEP)
            self._post(cb, point, regs)

    def _post(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        """Run the post-handlers of the probes that saw the hit begin; pc is at the next instruction already."""
        try:
            for p in cb.probes:
                handler = p._post
                if handler is not None and p._active:
                    cb.child = p
                    try:
                        handler(p, regs, 0)
                    except Exception as error:
                        self._ask_about_exception(p, regs, error)
        finally:
            cb.step(DONE)
            self._land(regs)
