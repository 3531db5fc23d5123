"""Entries without a trap: who serves a detour's call site, and asks about a call that the machine may follow.

Services are made anew whenever the probes there change. begin() and step() of the control block are written out: these
are the shortest hits there are.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import BadLocation, GuestFault
from ...machine._base import Entered
from ...regs import Regs
from ..patch.arming import Arming
from ..patch.detour import Detour
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..probe import Kretprobe, Probe, ReturnHandler
from .ctlblk import ControlBlock, Event, State
from .handlers import Handlers
from .returns import Returns

# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_ACTIVE, DONE = State.IDLE, State.HIT_ACTIVE, Event.DONE
BREAKPOINTS = (Arming.ARMED, Arming.OPTIMIZING)


class Entries:
    """Makes what call sites call."""

    def __init__(self, rooms: Rooms, handlers: Handlers, returns: Returns) -> None:
        self._rooms, self._handlers, self._returns, self._calls = rooms, handlers, returns, returns.calls

    def service(self, point: Probepoint) -> Callable[[Regs], None]:
        """What a detour's call site calls: the pre-handlers, without trap or slot.

        Made anew whenever the probes there change. begin() and step() are written out: this is the shortest hit there
        is.
        """
        detour, blocks, address = point.detour, self._handlers.blocks, point.address
        assert detour is not None
        simulated = point.insn.simulate is not None and not point.native
        if len(point.active) == 1 and not simulated and len(blocks) == 1:
            return self.service_of_one(point, detour, point.active[0])

        def serve(regs: Regs) -> None:
            cb = blocks[regs.cpu]
            if cb.state is IDLE:
                regs.reported = address
                cb.state, cb.point, cb.probes = HIT_ACTIVE, point, point.active
                try:
                    diverted = self._handlers.pre(cb, regs)
                except BaseException:
                    regs.go(address | point.insn.mode)
                    raise
                finally:
                    cb.state = IDLE
                if diverted:
                    self.divert_in_place(point, regs)
                    return
            else:
                point.missed()
            regs.target = None  # only DIVERTED moves the guest
            if detour.left and self.taken_apart(cb, cb.probes, point, regs, detour):
                return
            if simulated:
                self._simulate_in_place(cb, point, regs)

        return serve

    def service_of_one(self, point: Probepoint, detour: Detour, p: Probe) -> Callable[[Regs], None]:
        """The same for one probe, on the only CPU."""
        cb, address, handler = self._handlers.blocks[0], point.address, p._pre
        if handler is None or (isinstance(p, Kretprobe) and p._entry_handler is None):
            return self._service_without_handler(point, p)

        def serve(regs: Regs) -> None:
            if cb.state is not IDLE:
                point.missed()
                return
            p._nhit += 1
            regs.reported = address
            cb.state = HIT_ACTIVE
            try:
                diverted = handler(p, regs)
            except BaseException as error:
                diverted = self.failed_in_place(p, point, regs, error)
            finally:
                cb.state = IDLE
            if diverted:
                self.divert_in_place(point, regs)
                return
            regs.target = None  # only DIVERTED moves the guest
            if detour.left:
                self.taken_apart(cb, (p,), point, regs, detour)

        return serve

    def _service_without_handler(self, point: Probepoint, p: Probe) -> Callable[[Regs], None]:
        """The same where no handler of the user's runs: the hit is counted, the call followed."""
        cb, hook = self._handlers.blocks[0], p._pre

        def serve(regs: Regs) -> None:
            if cb.state is not IDLE:
                point.missed()
                return
            p._nhit += 1
            if hook is not None:
                hook(p, regs)

        return serve

    def taken_apart(self, cb: ControlBlock, probes: tuple[Probe, ...], point: Probepoint, regs: Regs,
                    detour: Detour) -> bool:
        """A handler has had the jump taken out. Where a probe stands in what it covered, the hit goes on as a
        breakpoint's: True."""
        inside = self._rooms.sites.between(point.address + 1, point.address + detour.size)
        if cb.state is not IDLE or not any(other.state in BREAKPOINTS for other in inside):
            return False
        cb.state, cb.point, cb.probes = HIT_ACTIVE, point, probes
        self._handlers.execute(cb, point, regs)
        return True

    def failed_in_place(self, p: Probe, point: Probepoint, regs: Regs, error: BaseException) -> bool:
        """What the handler raised: True if its fault_handler has handled the exception by setting pc; raises it if it
        has not."""
        try:
            if not isinstance(error, Exception):
                raise error
            self._handlers.ask_about_exception(p, regs, error)
        except BaseException:
            regs.go(point.address | point.insn.mode)
            raise
        return regs.pc != point.address

    def divert_in_place(self, point: Probepoint, regs: Regs) -> None:
        """A pre_handler has set pc itself: the probepoint becomes a breakpoint again, unless a jump was demanded."""
        if point.detour is not None and point.detour.demanded:
            regs.go(point.address | point.insn.mode)
            raise BadLocation("a pre_handler asked to divert, but the probepoint is optimized", address=point.address,
                              symbol=point.where, hint="give the probe a post_handler or optimize=False")
        self._handlers.refuse(point)
        self._handlers.check_diverted(point, regs)

    def _simulate_in_place(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        assert point.insn.simulate is not None
        try:
            regs.go(point.insn.simulate(regs))
        except GuestFault as error:
            cb.begin(point)
            cb.probes = point.active
            target = (self._handlers.simulate(cb, point, regs) if self._handlers.fault_at_home(cb, point, regs, error)
                      else None)
            if target is not None:
                regs.go(target)
                cb.step(DONE)

    def entered(self, point: Probepoint, detour: Detour, rp: Kretprobe, handler: ReturnHandler) -> Entered:
        """Asks the entry handler about a call that the machine may follow; what service() does, for this case."""
        cb, address, pool, held, to = self._handlers.blocks[0], point.address, rp._pool, rp._held, self._returns.link()
        get, put, swap, skip, trampoline = to.get, to.put, to.swap, to.skip, self._calls.trampoline

        def entered(regs: Regs, frame: int, link: int) -> bool:
            ri = pool.pop()
            ri.task, ri.frame = 0, frame  # begin(), written out
            ri.link = ri.ret_addr = link if skip is None else skip(link)
            regs.reported = address
            cb.state = HIT_ACTIVE
            declined, diverted, follow = True, False, rp._follow
            try:
                declined = handler(ri, regs)
            except BaseException as error:
                diverted = self.failed_in_place(rp, point, regs, error)
            finally:
                cb.state = IDLE
                if declined:
                    self._calls.recycle((ri,))
            if diverted:
                self.divert_in_place(point, regs)
                return False
            regs.target = None
            if not declined:
                if swap is not None:
                    now = swap(frame, trampoline)
                else:
                    now = get()
                    put(trampoline)
                if rp._follow is follow and now == link:
                    held.append(ri)
                    return True
                # the handler has changed who serves this, or where it goes
                self._calls.add(ri, frame, now if skip is None else skip(now))
            if detour.left:
                self.taken_apart(cb, (rp,), point, regs, detour)
            return False

        return entered

    def service_after_programs(self, point: Probepoint, rp: Kretprobe, call: int) -> Callable[[Regs], None]:
        """service() where the programs of a hit may have run already, and only its call was not to be followed."""
        assert point.detour is not None
        whole, rest, ran = self.service(point), self.service_of_one(point, point.detour, rp), self._rooms.machine.ran

        def serve(regs: Regs) -> None:
            if not ran(call):
                whole(regs)
                return
            for p in point.active:
                p._nhit += p is not rp
            rest(regs)

        return serve
