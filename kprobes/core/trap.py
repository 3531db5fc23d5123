"""The driver: what a trap and a fault do. Reports come from the machine; the order of things is here and nowhere else.

A hit: control block IDLE -> HIT_ACTIVE, pre-handlers newest first, simulation, then the body in its slot (HIT_SS) or
nothing, then pc at the next instruction, post-handlers (HIT_SSDONE), IDLE. Whatever is raised on the way leaves through
the engine with the guest consistent: pc at the probepoint (before the instruction) or after it, control block popped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..arch._base import Annul
from ..errors import BadLocation, GuestFault, ReentryError
from ..machine._base import Fault
from ..regs import Regs
from .aggregate import Probepoint
from .arming import Arming
from .ctlblk import ControlBlock, Event, State
from .kretprobe import Returns
from .probe import KretprobeInstance, Probe
from .rooms import Rooms
from .sites import Kind

if TYPE_CHECKING:
    from .kprobes import Kprobes


# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_ACTIVE, HIT_SS, REENTER = State.IDLE, State.HIT_ACTIVE, State.HIT_SS, State.REENTER
STEP, SLOT_END, NO_STEP, DONE = Event.STEP, Event.SLOT_END, Event.NO_STEP, Event.DONE
ARMED, OPTIMIZING, OPTIMIZED = Arming.ARMED, Arming.OPTIMIZING, Arming.OPTIMIZED
AT_PROBEPOINT, AT_SLOT_END, AT_TRAMPOLINE = Kind.PROBEPOINT, Kind.SLOT_END, Kind.TRAMPOLINE


class TrapDriver:
    """Implements the machine's Sink."""

    def __init__(self, owner: Kprobes, rooms: Rooms, returns: Returns) -> None:
        self._owner = owner
        self._rooms = rooms
        self._sites = rooms.sites
        self.services = rooms.services
        self._returns = returns
        self.closing = False
        self.blocks = [ControlBlock() for _ in range(rooms.machine.cpus)]

    # --- Sink

    def trap(self, regs: Regs) -> bool:
        """See machine._base.Sink."""
        site = self._sites.get(regs.pc)
        if site is None:
            return False
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
            return False
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
        (point, home), there = displaced, regs.pc
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
            regs.go(there | point.insn.mode)  # the same hit goes on
        elif handled:
            self._land(regs)
        return handled

    def home(self, pc: int) -> int | None:
        """See machine._base.Sink."""
        found = self._displaced(pc)
        if found is None:
            return None
        point, home = found
        return home + point.insn.size if point.insn.delay_slot and home == point.address else home

    def ours(self, pc: int) -> bool:
        """See machine._base.Sink."""
        return self._rooms.ours(pc)

    def starting(self, target: int) -> None:
        """See machine._base.Sink."""
        self.give_up(target)
        self._owner.safe_point()
        if self._rooms.displaced:
            self._owner.optimizer.make_room(target & ~self._rooms.arch.mode_bits)

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

    def nesting(self, begins: bool) -> None:
        """See machine._base.Sink. What the machine counts while a handler's guest call runs, is missed."""
        for point in self._rooms.counted:
            point.settle_count(missed=not begins and not self._owner.idle)

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

    def _check_diverted(self, point: Probepoint, regs: Regs) -> None:
        if regs.pc == point.address and point.state is ARMED:
            raise BadLocation("a pre_handler returned true (I set regs.pc myself) but regs.pc is still the probepoint", address=point.address,
                              symbol=point.where, hint="set regs.pc, or return 0: the guest would hit the probe for ever")
        self._land(regs)

    def _land(self, regs: Regs) -> None:
        """A handler has chosen where the guest goes on: not into the middle of a jump of ours."""
        if self._rooms.displaced:
            self._owner.optimizer.make_room(regs.pc)

    def _reenter(self, cb: ControlBlock, point: Probepoint) -> None:
        """A hit within a hit is missed; a third level is an error, and what the second was about never ends."""
        try:
            cb.begin(point)
        except ReentryError:
            self._abandon(cb)
            raise
        point.missed()

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

    def _execute(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        """Simulate, then send the guest through the body, or past the instruction when there is none."""
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
            if point.boosted:
                if cb.previous is None:
                    cb.state = IDLE  # step(DONE), written out
                else:
                    cb.step(DONE)
                return
            cb.resume = target
            if cb.state is not REENTER:
                cb.step(STEP)
            return
        regs.go(target)
        if cb.state is REENTER or not point.has_post:
            cb.step(DONE)
        else:
            cb.step(NO_STEP)
            self._post(cb, point, regs)

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

    # --- in place: detours and the trampoline

    def service(self, point: Probepoint) -> Callable[[Regs], None]:
        """What a detour's call site calls: the pre-handlers, without trap or slot.

        Made anew whenever the probes there change. begin() and step() are written out: this is the shortest hit there is.
        """
        if len(point.active) == 1 and point.insn.simulate is None and len(self.blocks) == 1:
            return self._service_of_one(point, point.active[0])
        blocks, address = self.blocks, point.address

        def serve(regs: Regs) -> None:
            cb = blocks[regs.cpu]
            if cb.state is IDLE:
                regs._pc = address
                cb.state, cb.point, cb.probes = HIT_ACTIVE, point, point.active
                try:
                    diverted = self._pre(cb, regs)
                except BaseException:
                    regs.go(address | point.insn.mode)
                    raise
                finally:
                    cb.state = IDLE
                if diverted:
                    self._divert_in_place(point, regs)
                    return
            else:
                point.missed()
            regs._target = None  # only DIVERTED moves the guest
            if point.insn.simulate is not None:
                self._simulate_in_place(cb, point, regs)

        return serve

    def _service_of_one(self, point: Probepoint, p: Probe) -> Callable[[Regs], None]:
        cb, address, handler = self.blocks[0], point.address, p._pre

        def serve(regs: Regs) -> None:
            if cb.state is not IDLE:
                point.missed()
                return
            p._nhit += 1
            if handler is None:
                return
            regs._pc = address
            cb.state = HIT_ACTIVE
            try:
                diverted = handler(p, regs)
            except Exception as error:
                diverted = self._failed_in_place(p, point, regs, error)
            except BaseException:
                regs.go(address | point.insn.mode)
                raise
            finally:
                cb.state = IDLE
            if diverted:
                self._divert_in_place(point, regs)
            else:
                regs._target = None  # only DIVERTED moves the guest

        return serve

    def _failed_in_place(self, p: Probe, point: Probepoint, regs: Regs, error: Exception) -> bool:
        """An exception of the handler's: True if its fault_handler has handled it by setting pc; raises it if it has not."""
        try:
            self._ask_about_exception(p, regs, error)
        except BaseException:
            regs.go(point.address | point.insn.mode)
            raise
        return regs.pc != point.address

    def _divert_in_place(self, point: Probepoint, regs: Regs) -> None:
        """A pre_handler has set pc itself: the probepoint becomes a breakpoint again, unless a jump was demanded."""
        if point.detour is not None and point.detour.demanded:
            regs.go(point.address | point.insn.mode)
            raise BadLocation("a pre_handler asked to divert, but the probepoint is optimized", address=point.address, symbol=point.where,
                              hint="give the probe a post_handler or optimize=False")
        self._owner.optimizer.refuse(point, "its pre_handler diverts the guest")
        self._check_diverted(point, regs)

    def _simulate_in_place(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        assert point.insn.simulate is not None
        try:
            regs.go(point.insn.simulate(regs))
        except GuestFault as error:
            cb.begin(point)
            cb.probes = point.active
            target = self._simulate(cb, point, regs) if self._fault_at_home(cb, point, regs, error) else None
            if target is not None:
                regs.go(target)
                cb.step(DONE)

    def serve_return(self, regs: Regs) -> None:
        """The trampoline in a call area: its code returns as the function did, unless a handler has other ideas."""
        sp = regs.sp
        instances = self._returns.pop(regs, sp)
        frame, target = instances[0].frame, regs._target
        self._run_return_handlers(self.blocks[regs.cpu], instances, regs)
        if target is not None and regs._target == target and self._returns.goes_back(regs, sp, frame, target):
            regs._target = None
        else:
            self._land(regs)

    def _return(self, cb: ControlBlock, regs: Regs) -> None:
        """The trampoline by trap."""
        self._run_return_handlers(cb, self._returns.pop(regs, regs.sp), regs)

    def _run_return_handlers(self, cb: ControlBlock, instances: list[KretprobeInstance], regs: Regs) -> None:
        if cb.state is not IDLE:
            self._returns.missed(instances)
            return
        cb.state, cb.point = HIT_ACTIVE, None  # begin(), written out
        try:
            for ri in instances:
                rp = ri.rp
                if ri.pool is not rp._pool or rp._point is None:
                    continue  # unregistered meanwhile
                cb.child = rp
                rp.nreturned += 1
                handler = rp.handler
                if handler is not None:
                    try:
                        handler(ri, regs)
                    except Exception as error:
                        self._ask_about_exception(rp, regs, error)
        finally:
            self._returns.recycle(instances)
            cb.state = IDLE

    # --- faults

    def _displaced(self, pc: int) -> tuple[Probepoint, int] | None:
        """The probepoint whose displaced instruction is at `pc`, and that instruction's own address; None elsewhere."""
        rooms = self._rooms
        slot = rooms.slots.slot_of(pc)
        site = None if slot is None else self._sites.get(slot)
        if site is not None and site.kind is Kind.SLOT:
            point: Probepoint = site.owner
            return point, point.address if pc < point.slot_end else point.insn.next
        buffer = rooms.buffers.slot_of(pc)
        if buffer is not None and buffer in rooms.displaced:
            point, places = rooms.displaced[buffer]
            return point, max(place for place in places if place[0] <= pc)[1]
        point_of_call = rooms.calls.slot_of(pc)
        if point_of_call is not None and point_of_call in rooms.called:
            point = rooms.called[point_of_call]
            return point, point.address
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
