"""The driver: what a trap and a fault do. Reports come from the machine; the order of things is
here and nowhere else.

A hit: control block IDLE -> HIT_ACTIVE, pre-handlers newest first, simulation, then the body in its
slot (HIT_SS) or nothing, then pc at the next instruction, post-handlers (HIT_SSDONE), IDLE.
Whatever is raised on the way leaves through the engine with the guest consistent: pc at the
probepoint (before the instruction) or after it, control block popped.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import ReentryError
from ...machine._base import Fault
from ...regs import Regs
from ..patch.arming import Arming
from ..patch.optimizer import Optimizer
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..patch.sites import SiteKind
from .breakpoints import ServedBreakpoints
from .ctlblk import ControlBlock, HitEvent, HitState
from .displaced import Displaced
from .entries import Entries
from .executed import ExecutedBreakpoints
from .exits import Exits
from .handlers import Handlers
from .returns import Returns
from .serving import Serving

# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_ACTIVE, HIT_SS, REENTER, DONE = (
    HitState.IDLE,
    HitState.HIT_ACTIVE,
    HitState.HIT_SS,
    HitState.REENTER,
    HitEvent.DONE,
)
ARMED, OPTIMIZED, GONE = Arming.ARMED, Arming.OPTIMIZED, Arming.GONE
AT_PROBEPOINT, AT_SLOT_END, AT_TRAMPOLINE = (
    SiteKind.PROBEPOINT,
    SiteKind.SLOT_END,
    SiteKind.TRAMPOLINE,
)


class TrapDriver:
    """Serves the machine's reports in a run, by parts: handlers, entries and exits in place, who
    serves which call site.

    Attributes:
        blocks: a control block for each CPU.
        serving: chooses who serves a call site.
        handlers: runs handlers, and carries out what they change.
        outlived: called with a probepoint whose instruction is another one behind the breakpoint's
            bytes.
    """

    def __init__(self, rooms: Rooms, optimizer: Optimizer, returns: Returns) -> None:
        self._rooms = rooms
        self._sites = rooms.sites
        self._optimizer = optimizer
        self._displaced = Displaced(rooms)
        self.handlers = self._handlers = handlers = Handlers(rooms, optimizer, returns.calls)
        self.blocks = handlers.blocks
        self._exits = Exits(rooms, handlers, returns)
        entries = Entries(rooms, handlers, returns)
        self.serving = Serving(rooms, handlers, returns.calls, entries, self._exits)
        self._breakpoints = ServedBreakpoints(handlers, entries)
        self._executed = ExecutedBreakpoints(rooms, handlers, self._displaced)
        self._overwritten: set[Probepoint] = set()
        self._doubtful = rooms.text.doubtful
        self.outlived: Callable[[list[int]], None] | None = None
        self.home = self._displaced.home
        self.stops = self._displaced.stops
        self.ours = self._displaced.ours

    @property
    def idle(self) -> bool:
        """True while no CPU is in a hit."""
        for cb in self.blocks:  # noqa: SIM110  (before each run: quicker than all())
            if cb.state is not IDLE:
                return False
        return True

    @property
    def at_rest(self) -> bool:
        """True while, besides, no CPU is in code of ours: asked for its task at a call site or the
        trampoline, or in the middle of a displaced instruction that a watchpoint reports, as if it
        were at home.
        """
        caches = self._rooms.caches
        return self.idle and not any(
            regs.midway or any(cache.in_use(regs.live_pc()) for cache in caches)
            for regs in self._rooms.machine.cpu_regs
        )

    def optimize(self, point: Probepoint, *, demanded: bool = False) -> None:
        """Make a queued probepoint a jump, if it may be one now, and have its call site served."""
        if self._optimizer.optimize(point, demanded=demanded):
            self.serving.serve(point)

    def trap(self, regs: Regs) -> bool:
        """Serve a trap at regs.pc; False where it is the guest's own."""
        site = self._sites.get(regs.pc)
        if site is None:
            again = self._rooms.text.stray(self._rooms.arch.place_of(regs.pc))
            return again or self._executed.lay_bare(self.blocks[regs.cpu], regs)
        cb = self.blocks[regs.cpu]
        kind = site.kind
        if kind is AT_PROBEPOINT:
            point = site.owner
            if (
                self._doubtful
                and point.address in self._doubtful
                and self._other_behind(point.address)
            ):
                return True
            if point.state is not ARMED:
                if point.state is GONE:
                    return self._gone(point)
                if cb.state is IDLE:
                    self.optimize(point)  # from the next hit on
            self._hit(cb, point, regs)
        elif kind is AT_SLOT_END:
            self._handlers.slot_end(cb, site.owner, regs)
        elif kind is AT_TRAMPOLINE:
            self._exits.by_trap(cb, regs)
        else:
            return self._executed.lay_bare(cb, regs)
        return True

    def fault(self, regs: Regs, fault: Fault) -> bool:
        """Serve a fault; True where a fault_handler has handled it. A fault in a slot is moved home
        and the probes there are asked.
        """
        cb = self.blocks[regs.cpu]
        displaced = self._displaced.at(regs.pc)
        if displaced is None:
            self._handlers.abandon(cb)
            return False
        point, _, home, again = displaced
        regs.go(home | point.insn.mode)
        running = cb.point is point and cb.state in (HIT_SS, REENTER)
        # a missed hit asks nobody
        missed = cb.state is REENTER or (cb.state is not IDLE and not running)
        handled, state = False, cb.state
        try:
            if not missed:
                # the slot, or the detour, is still needed, whatever the handler has the guest do
                cb.state = HIT_ACTIVE
                handled = self._handlers.ask(point.active, regs, fault)
        finally:
            cb.state = state
            if not handled:
                regs.go(home | point.insn.mode)
            if running and (not handled or regs.pc != home):
                cb.step(DONE)
        if handled and regs.pc == home:
            regs.go(again | point.insn.mode)  # the same hit goes on
        elif handled:
            self._handlers.land(regs)
        return handled

    def waits(self, regs: Regs) -> int | None:
        """Return the target of a branch whose delay slot runs out of line at regs.pc; None: none.
        """
        return self._displaced.waits(self.blocks[regs.cpu], regs)

    def leave(self, regs: Regs, pc: int) -> None:
        """Give up the hit whose displaced instruction is at `pc`. See machine._base.Sink.abandon().
        """
        cb, displaced = self.blocks[regs.cpu], self._displaced.at(pc)
        if displaced is not None and cb.point is displaced[0] and cb.state in (HIT_SS, REENTER):
            cb.step(DONE)

    def give_up(self, target: int | None = None) -> None:
        """Nothing runs: a hit whose slot the guest has left, and not by its end, never ends.
        target: where it will go on.
        """
        if self.idle:
            return
        machine = self._rooms.machine
        for cb, regs in zip(self.blocks, machine.cpu_regs, strict=True):
            pc = (regs.live_pc() if target is None or regs is not machine.regs
                  else target & ~self._rooms.arch.pointers.mode_bits)
            if cb.state is not IDLE and not self._displaced.ours(pc):
                self._handlers.abandon(cb)

    def overwritten(self, point: Probepoint) -> None:
        """The guest is about to overwrite a probepoint, which is GONE. Code that is executed just
        now may still lead to the breakpoint or to the call site; what the guest wrote is executed
        then.
        """
        self._overwritten.add(point)
        if point.detour is not None:
            home = point.address | point.insn.mode
            self._rooms.services[point.detour.call] = lambda regs: regs.go(home)

    def _other_behind(self, addr: int) -> bool:
        """Return True where the guest has changed what is behind the breakpoint's bytes: what it
        wrote is executed.
        """
        if self.outlived is None or not self._rooms.text.outlived(addr):
            return False
        self.outlived([addr])
        return True

    def _gone(self, point: Probepoint) -> bool:
        """A trap where there is no breakpoint of ours any more: once, by code from before. Then it
        is the guest's own.
        """
        again = point in self._overwritten
        self._overwritten.discard(point)
        return again

    # --- a hit

    def _hit(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        if cb.state is not IDLE:
            if cb.state is HIT_SS and cb.point is point:
                cb.reset()  # redirected out of the slot and back at the start: that hit never ends
            else:
                self._reenter(cb, point)
                self._handlers.execute(cb, point, regs)
                return
        if self._handlers.paused[0]:
            self._handlers.resume_hits()
        cb.begin(point)
        cb.probes = point.active
        try:
            diverted = self._handlers.pre(cb, regs)
        except BaseException:
            regs.go(point.address | point.insn.mode)
            cb.step(DONE)
            raise
        if diverted:
            cb.step(DONE)
            self._divert(point, regs)
            return
        if (
            point.served is None
            and self._handlers.hits is not None
            and point.address not in self._doubtful
        ):
            self._breakpoints.serve(point)
        self._handlers.execute(cb, point, regs)

    def _divert(self, point: Probepoint, regs: Regs) -> None:
        """Let the guest go where a pre-handler has sent it."""
        if point.state is OPTIMIZED:
            self._handlers.refuse(point)
        self._handlers.check_diverted(point, regs)

    def _reenter(self, cb: ControlBlock, point: Probepoint) -> None:
        """A hit within a hit is missed; a third level is an error, and what the second was about
        never ends.
        """
        try:
            cb.begin(point)
        except ReentryError:
            self._handlers.abandon(cb)
            raise
        point.missed()
