"""The driver: what a trap and a fault do, in which order.

A displaced instruction is the copy of a probed one that is executed out of its place: in a slot, or
in the detour that a jump leads to.

A hit, by the states of the CPU's control block (ctlblk.py):

1. IDLE -> HIT_ACTIVE: the pre-handlers run, the newest probe's first.
2. What must be simulated of the instruction is simulated. The rest of it (its body) is executed in
   a slot: HIT_SS. Many instructions have only one of the two.
3. HIT_SSDONE: pc is at the next instruction, and the post-handlers run. Then IDLE.

An exception on the way leaves through the engine. The guest stays consistent: pc is at the
probepoint (the instruction was not executed) or behind it, and the control block is popped.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import NoMemory, ReentryError
from ...machine._base import Fault
from ...regs import Regs
from ..patch.arming import Arming
from ..patch.optimizer import Optimizer
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..patch.sites import SiteKind
from .breakpoints import BreakpointHandover
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
    """Serves the reports (traps and faults) that the machine makes while it runs the guest.

    Attributes:
        blocks: a control block for each CPU.
        serving: decides who serves a call site.
        handlers: runs handlers, and carries out what they change.
        home: (pc) -> the original address of the displaced instruction there; else None.
        stops: (pc) -> True where a breakpoint of the core's stands.
        ours: (pc) -> True in the library's own code.
    """

    def __init__(
        self,
        rooms: Rooms,
        optimizer: Optimizer,
        returns: Returns,
        lose_overwritten: Callable[[list[int]], None],
    ) -> None:
        """Make the parts that serve hits, and wire them together.

        Args:
            rooms: the parts of the Kprobes.
            optimizer: makes breakpoints jumps and back.
            returns: the entries of return probes.
            lose_overwritten: called with the addresses of probepoints whose instruction the guest
                has changed behind the bytes that the breakpoint replaces.
        """
        self._rooms = rooms
        self._sites = rooms.sites
        self._optimizer = optimizer
        self._calls = returns.calls
        self._displaced = Displaced(rooms)
        self.handlers = self._handlers = handlers = Handlers(rooms, optimizer, returns.calls)
        self.blocks = handlers.blocks
        self._exits = Exits(handlers, returns)
        entries = Entries(rooms, handlers, returns)
        self.serving = Serving(rooms, handlers, returns.calls, entries, self._exits)
        self._breakpoints = BreakpointHandover(handlers)
        self._executed = ExecutedBreakpoints(rooms, handlers, self._displaced)
        self._overwritten: set[Probepoint] = set()
        self._doubtful = rooms.text.doubtful
        self._lose_overwritten = lose_overwritten
        self.home = self._displaced.home
        self.stops = self._displaced.stops
        self.ours = self._displaced.ours

    @property
    def idle(self) -> bool:
        """True while no CPU is in a hit: neither in a handler, nor in a slot after one."""
        for cb in self.blocks:  # noqa: SIM110  (before each run: quicker than all())
            if cb.state is not IDLE:
                return False
        return True

    @property
    def at_rest(self) -> bool:
        """True while no CPU is in a hit, nor in code of the library's.

        A CPU may be there outside of a hit: at a call site or the trampoline while cpu_task is
        called, or in a displaced instruction whose access a watchpoint reports.
        """
        caches = self._rooms.caches
        return self.idle and not any(
            regs.midway or any(cache.in_use(regs.live_pc()) for cache in caches)
            for regs in self._rooms.machine.cpu_regs
        )

    def optimize(self, point: Probepoint, *, demanded: bool = False) -> None:
        """Replace the breakpoint of a queued probepoint by a jump, if possible now.

        The jump's call site is served from then on. Where it is not possible, the optimizer keeps
        the probepoint queued or notes the reason, and the breakpoint stays.

        Args:
            point: the probepoint.
            demanded: True where the user asks (flush_optimizer), not a first hit.
        """
        if self._optimizer.optimize(point, demanded=demanded):
            self.serve(point)

    def serve(self, point: Probepoint) -> None:
        """Choose anew who serves the call site of a probepoint's detour.

        Where there is no room for what would serve it, the probepoint becomes a breakpoint again.

        Args:
            point: the probepoint; it has a detour.
        """
        try:
            self.serving.serve(point)
        except NoMemory as reason:
            self._optimizer.leave_as_breakpoint(point, reason)

    def trap(self, regs: Regs) -> bool:
        """Serve a trap at regs.pc: at a probepoint, a slot's end, the trampoline, or in changed
        text.

        Args:
            regs: the registers of the CPU that has trapped. Afterwards regs.target is where the
                guest goes, or None where it executes the instruction there again.

        Returns:
            True where the trap was served. False where it is the guest's own.

        Raises:
            Exception: a handler has raised it, and the probe's fault_handler has not handled it.
            BadLocation: a pre-handler has diverted, but regs.pc is still the probepoint.
            GuestFault: a simulated instruction has faulted, and no fault_handler has handled that.
            ReentryError: it is the third hit within others, or a return that belongs to no followed
                call.
        """
        site = self._sites.get(regs.pc)
        if site is None:
            again = self._rooms.text.take_out_stray(self._rooms.arch.place_of(regs.pc))
            return again or self._executed.disable_executed(self.blocks[regs.cpu], regs)
        cb = self.blocks[regs.cpu]
        kind = site.kind
        if kind is AT_PROBEPOINT:
            point = site.owner
            if (
                self._doubtful
                and point.address in self._doubtful
                and self._report_changed_instruction(point.address)
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
            return self._executed.disable_executed(cb, regs)
        return True

    def fault(self, regs: Regs, fault: Fault) -> bool:
        """Serve a guest fault at regs.pc.

        A fault in a displaced instruction is reported at the original address, and the fault
        handlers of its probes are asked (in a missed hit none is). Other faults are not handled
        here; the hit that is under way on the CPU is given up.

        Args:
            regs: the registers at the fault.
            fault: what has failed.

        Returns:
            True where a handler has handled it. If the handler has left pc alone, the displaced
            instruction is executed again, in the same hit: regs.pc is in its copy again. If it has
            changed pc, a hit that waits for the slot's end is over, and jumps that cover the new
            place become breakpoints. False: not handled, and such a hit is over; regs.pc is the
            original address where it was in a displaced instruction, else unchanged.

        Raises:
            Exception: a fault_handler has raised it; regs.pc is the original address.
        """
        cb = self.blocks[regs.cpu]
        displaced = self._displaced.at(regs.pc)
        if displaced is None:
            self._handlers.abandon(cb)
            return False
        point, _, home, again = displaced
        regs.go(home | point.insn.mode)
        running = cb.point is point and cb.state in (HIT_SS, REENTER)
        # no handler runs for a missed hit
        missed = cb.state is REENTER or (cb.state is not IDLE and not running)
        handled, state = False, cb.state
        try:
            if not missed:
                # not idle: a handler that unregisters must not free the slot or detour at pc
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

    def single_stepped(self, regs: Regs) -> bool:
        """Serve a single-step exception of the guest's CPU in the library's pages.

        The jump to a call site is no instruction of the guest's: it is taken out for good, and the
        guest goes back to the breakpoint. From there it executes instructions out of line, or has
        them simulated, one at a time. What a trap would have done at the end of a slot or at a
        return probe's trampoline is done now, since the guest does not come back there.

        Args:
            regs: the registers; pc is where the exception comes. regs.target is set where the guest
                goes elsewhere.

        Returns:
            True where the guest goes on and never sees the exception: it has not executed an
            instruction of its own to the end. False: it is the guest's.
        """
        site = self._sites.get(regs.pc)
        cb = self.blocks[regs.cpu]
        trampoline = self._calls.trampoline & ~self._rooms.arch.pointers.mode_bits
        if trampoline and regs.pc == trampoline:
            self._exits.by_trap(cb, regs)
            return False
        if site is not None and site.kind is AT_SLOT_END:
            self._handlers.slot_end(cb, site.owner, regs)
            return False
        point = self._rooms.called.get(regs.pc)
        if point is not None:
            self._handlers.refuse(point, "the guest executes it in its CPU's single-step mode")
            regs.go(point.address | point.insn.mode)
            return True
        within, behind = self._displaced.progress(regs.pc)
        if behind is not None:
            regs.go(behind)
        return within

    def waits(self, regs: Regs) -> int | None:
        """Return the target of the branch whose delay slot is executed out of line at regs.pc.

        Args:
            regs: the registers of the CPU.

        Returns:
            The address where the guest goes after the delay slot; None: there is no such branch.
        """
        return self._displaced.waiting_target(self.blocks[regs.cpu], regs)

    def leave(self, regs: Regs, pc: int) -> None:
        """End the hit whose displaced instruction is at `pc`: the guest leaves without executing
        it.

        Its post-handlers do not run. Nothing happens where no such hit is under way on the CPU.

        Args:
            regs: registers of the CPU.
            pc: address of the displaced instruction.
        """
        cb, displaced = self.blocks[regs.cpu], self._displaced.at(pc)
        if displaced is not None and cb.point is displaced[0] and cb.state in (HIT_SS, REENTER):
            cb.step(DONE)

    def end_left_hits(self, target: int | None = None) -> None:
        """End each hit in a slot whose CPU is no longer in the library's code.

        The guest has left the slot without an event that ends the hit, or is about to be started
        elsewhere. The post-handlers of such hits do not run. Called while no guest code runs.

        Args:
            target: where the machine's current CPU will go on, mode bits included; None: its pc.
        """
        if self.idle:
            return
        machine = self._rooms.machine
        for cb, regs in zip(self.blocks, machine.cpu_regs, strict=True):
            pc = (
                regs.live_pc()
                if target is None or regs is not machine.regs
                else target & ~self._rooms.arch.pointers.mode_bits
            )
            if cb.state is not IDLE and not self._displaced.ours(pc):
                self._handlers.abandon(cb)

    def overwritten(self, point: Probepoint) -> None:
        """Prepare for a late hit of a probepoint that the guest is about to overwrite.

        Called before the caller makes the probepoint GONE. Code that the engine has translated
        before may still lead to the breakpoint or to the call site; the guest then executes what it
        wrote.

        Args:
            point: the probepoint.
        """
        self._overwritten.add(point)
        if point.detour is not None:
            home = point.address | point.insn.mode
            self._rooms.services[point.detour.call] = lambda regs: regs.go(home)

    def _report_changed_instruction(self, addr: int) -> bool:
        """Give a probepoint up where the guest has changed its instruction behind the breakpoint.

        Called at a trap there; the probepoint becomes GONE.

        Args:
            addr: address of the probepoint.

        Returns:
            True where the guest has changed the instruction: it executes what it wrote.
        """
        if not self._rooms.text.was_overwritten(addr):
            return False
        self._lose_overwritten([addr])
        return True

    def _gone(self, point: Probepoint) -> bool:
        """Serve a trap at a probepoint that is GONE. That is so for one trap: the next one returns
        False.

        Returns:
            True once after overwritten(): code translated before has led there, and is to execute
            what the guest wrote. Else False: the trap is the guest's own.
        """
        again = point in self._overwritten
        self._overwritten.discard(point)
        return again

    # --- a hit

    def _hit(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        """Serve the breakpoint of a probepoint: run the pre-handlers, execute the instruction.

        A hit within a hit is counted as missed, and its instruction is executed without handlers. A
        hit whose instruction was in its slot is forgotten where the guest comes to the same
        probepoint anew. Where a handler has diverted, the guest goes to regs.pc instead. After the
        first usual hit of a lone probe, the machine may serve the next ones.

        Args:
            cb: the control block of the CPU.
            point: the probepoint.
            regs: the registers at the breakpoint.

        Raises:
            Exception: a handler has raised it, and no fault_handler has handled it; the hit is
                over. After a pre-handler's the guest is at the probepoint.
            BadLocation: a pre-handler has diverted, but regs.pc is still the probepoint.
            GuestFault: the simulated instruction has faulted, and no fault_handler has handled
                that.
            ReentryError: two hits are under way already.
        """
        if cb.state is not IDLE:
            if cb.state is HIT_SS and cb.point is point:
                cb.reset()  # the guest was sent out of the slot, and has come back to the start
            else:
                self._reenter(cb, point)
                self._execute(cb, point, regs)
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
        is_new = (
            point.served is None
            and self._handlers.hits is not None
            and point.address not in self._doubtful
        )
        if diverted:
            cb.step(DONE)
            self._handlers.divert(point, regs)
        if is_new:  # the machine serves the next hits, if it can
            self._breakpoints.serve(point, diverted)
        if diverted:
            return
        # _execute(), written out: this is on every hit
        if point.insn.executes is None or not self._executed.give_way(cb, point, regs):
            self._handlers.execute(cb, point, regs)

    def _execute(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        """Execute the probed instruction, as Handlers.execute() does; an EXECUTE that cannot be
        displaced in its place, without its probes.

        Args:
            cb: the control block of the CPU.
            point: the probepoint.
            regs: the registers, as the instruction finds them.
        """
        if point.insn.executes is not None and self._executed.give_way(cb, point, regs):
            return
        self._handlers.execute(cb, point, regs)

    def _reenter(self, cb: ControlBlock, point: Probepoint) -> None:
        """Begin a hit within a hit: it is counted as missed on every probe there.

        Args:
            cb: the control block of the CPU; it keeps the hit that is under way in `previous`.
            point: the probepoint that is hit within the other hit.

        Raises:
            ReentryError: it is the third level. Hits whose instruction is in its slot are given up.
        """
        try:
            cb.begin(point)
        except ReentryError:
            self._handlers.abandon(cb)
            raise
        point.missed()
