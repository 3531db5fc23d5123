"""Runs the user's handlers, deals with their exceptions and guest faults, and finishes a hit.

The machine is the engine that runs the guest; the core is this package, which serves probes. A slot
is memory of the library's with the copy of a probed instruction, which is executed there.

A hit is the guest's arrival at a probepoint. Its control block (ctlblk.py) says how far it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...arch._base import Annul, Insn
from ...errors import BadLocation, GuestFault
from ...machine._base import Fault
from ...native import quick
from ...regs import Regs
from ..patch.arming import Arming
from ..patch.optimizer import Optimizer
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..probe import Probe
from .calls import CallsUnderWay
from .ctlblk import ControlBlock, HitEvent, HitState

# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_SS, REENTER = HitState.IDLE, HitState.HIT_SS, HitState.REENTER
ARMED, OPTIMIZED = Arming.ARMED, Arming.OPTIMIZED
STEP, SLOT_END, NO_STEP, DONE = HitEvent.STEP, HitEvent.SLOT_END, HitEvent.NO_STEP, HitEvent.DONE


def simulated(insn: Insn, regs: Regs) -> int:
    """Simulate an instruction; regs.simulating is True meanwhile, so that its accesses to memory
    count as the guest's own.

    Args:
        insn: an instruction that has a simulation.
        regs: the registers that it reads and writes.

    Returns:
        The address where the guest continues.

    Raises:
        GuestFault: an access has failed.
    """
    assert insn.simulate is not None
    regs.simulating = True
    try:
        return insn.simulate(regs)
    finally:
        regs.simulating = False


class Handlers:
    """The work that all ways of hitting a probe share.

    Attributes:
        blocks: a control block for each CPU.
        mode_bits: the bits of a code address that say the instruction set's mode.
        hits: the machine's power to serve usual hits by itself, without the core; None: it has
            none, or there are several CPUs.
        paused: its first item is not 0 while the machine reports all hits to the core.
    """

    def __init__(self, rooms: Rooms, optimizer: Optimizer, calls: CallsUnderWay) -> None:
        """Make a control block for each CPU, and have the machine serve usual hits if it can.

        Args:
            rooms: the parts of the Kprobes.
            optimizer: makes breakpoints jumps and back.
            calls: the calls that return probes follow.
        """
        self._rooms = rooms
        self._optimizer = optimizer
        self._calls = calls
        self.mode_bits = rooms.arch.pointers.mode_bits
        self.blocks = [quick(ControlBlock, "block")() for _ in range(rooms.machine.cpus)]
        self.hits = rooms.machine.hits if len(self.blocks) == 1 else None
        self.paused: Sequence[int] = (0,) if self.hits is None else self.hits.paused
        if self.hits is not None:
            self.hits.begin(
                self.blocks[0],
                idle=HitState.IDLE,
                active=HitState.HIT_ACTIVE,
                stepped=HitState.HIT_SS,
                settled=HitState.HIT_SSDONE,
            )
            rooms.displaced_changed()

    def pause_hits(self) -> None:
        """Have the machine report all hits to the core.

        Called as an instruction begins in its slot.
        """
        if self.hits is not None:
            self.hits.pause()

    def resume_hits(self) -> None:
        """Let the machine serve usual hits by itself again. Called where no hit is under way."""
        assert self.hits is not None
        self.hits.resume()

    def abandon(self, cb: ControlBlock) -> None:
        """End the CPU's hits whose instruction is in its slot, as the guest has left the slot
        early.

        Their post-handlers do not run. A hit whose handler is running (HIT_ACTIVE, HIT_SSDONE)
        stays, and so do those around it.

        Args:
            cb: the control block of the CPU.
        """
        while cb.state in (HIT_SS, REENTER):
            cb.step(DONE)

    def simulate(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> int | None:
        """Simulate the probed instruction; after a fault, again as long as a fault_handler repairs
        it.

        Args:
            cb: the control block of the CPU.
            point: the probepoint.
            regs: the registers, as the instruction finds them.

        Returns:
            The address where the guest continues. None: the instruction faulted, and a
            fault_handler has sent the guest elsewhere; the hit is over.

        Raises:
            GuestFault: no fault_handler has handled a fault.
        """
        while True:
            try:
                return simulated(point.insn, regs)
            except GuestFault as error:
                if not self.fault_at_home(cb, point, regs, error):
                    return None

    def fault_at_home(
        self, cb: ControlBlock, point: Probepoint, regs: Regs, error: GuestFault
    ) -> bool:
        """Report a simulated instruction's fault as one of the original instruction, to the
        fault_handlers.

        The fault_handlers of the hit's probes are asked; in a missed hit none is. One that leaves
        pc at the probepoint has repaired the fault. Else the hit ends here, and jumps that cover
        the place where the guest goes become breakpoints.

        Args:
            cb: the control block of the CPU.
            point: the probepoint.
            regs: the registers; pc becomes the probepoint's address.
            error: the fault.

        Returns:
            True: simulate the instruction again. False: a fault_handler has sent the guest
            elsewhere, and the hit is over.

        Raises:
            GuestFault: no fault_handler has handled it; the hit is over.
            Exception: a fault_handler has raised it; the hit is over.
        """
        home = point.address | point.insn.mode
        regs.go(home)
        fault = Fault(
            access=error.access, address=error.address, number=error.number, text=error.reason
        )
        handled = False
        try:
            handled = cb.state is not REENTER and self.ask(cb.probes, regs, fault)
        finally:
            if not handled:
                regs.go(home)
            again = handled and regs.pc == point.address
            if not again:
                cb.step(DONE)
                self.land(regs)
        if not handled:
            raise GuestFault(
                error.reason,
                address=error.address,
                pc=point.address,
                access=error.access,
                symbol=point.where,
                number=error.number,
            ) from None
        return again

    def ask(self, probes: tuple[Probe, ...], regs: Regs, fault: Fault) -> bool:
        """Ask the fault_handlers of active probes about a guest fault, until one has handled it.

        Args:
            probes: those of the hit, newest first.
            regs: the CPU's registers; regs.fault is set meanwhile.
            fault: what happened.

        Returns:
            True if one has handled it: it has returned a true value.

        Raises:
            Exception: a fault_handler has raised it.
        """
        regs.fault = fault
        try:
            return any(
                p._active and p.fault_handler is not None and p.fault_handler(p, regs, fault.trapnr)
                for p in probes
            )
        finally:
            regs.fault = None

    def ask_about_exception(self, p: Probe, regs: Regs, error: Exception) -> None:
        """Ask a probe's fault_handler about an exception that another handler of it has raised.

        The fault_handler finds the exception in regs.exception.

        Args:
            p: the probe.
            regs: the registers at the hit.
            error: what the handler has raised.

        Raises:
            Exception: `error`, if there is no fault_handler, or it has returned a false value; or
                what the fault_handler itself has raised.
        """
        handled = False
        if p.fault_handler is not None:
            regs.exception = error
            try:
                handled = bool(p.fault_handler(p, regs, 0))
            finally:
                regs.exception = None
        if not handled:
            raise error

    def diverts_after(self, error: BaseException, p: Probe, point: Probepoint, regs: Regs) -> bool:
        """Ask a probe's fault_handler about an exception that its handler has raised.

        The fault_handler is not asked about what is no Exception, such as KeyboardInterrupt.

        Args:
            error: what its handler has raised.
            p: the probe.
            point: where it is.
            regs: the registers at the hit; pc is at the probepoint.

        Returns:
            True where the fault_handler has handled it and sent the guest elsewhere; False where it
            has handled it and the guest stays at the probepoint.

        Raises:
            BaseException: `error`, which was not handled, or what the fault_handler itself has
                raised. The guest is at the probepoint.
        """
        try:
            if not isinstance(error, Exception):
                raise error
            self.ask_about_exception(p, regs, error)
        except BaseException:
            regs.go(point.address | point.insn.mode)
            raise
        return regs.pc != point.address

    def pre(self, cb: ControlBlock, regs: Regs) -> bool:
        """Run the pre-handlers of cb.probes in order, and count a hit for each probe whose turn
        comes.

        Args:
            cb: the control block of the CPU; its `child` becomes the probe whose handler runs.
            regs: the registers at the hit.

        Returns:
            True where a handler has diverted: it has returned a true value, or its fault_handler
            has changed pc. The handlers after it are not run.

        Raises:
            Exception: a handler has raised it, and the probe's fault_handler has not handled it.
        """
        for p in cb.probes:
            if p._active:  # a handler that ran before may have unregistered it
                cb.child = p
                p._nhit += 1
                handler = p._pre
                if handler is not None:
                    try:
                        if handler(p, regs):
                            return True
                    except Exception as error:
                        here = regs.pc
                        self.ask_about_exception(p, regs, error)
                        if regs.pc != here:
                            return True
        return False

    def pre_counted(self, cb: ControlBlock, probes: tuple[Probe, ...], regs: Regs) -> bool:
        """Run pre-handlers at a hit that the machine has already counted for each of `probes`.

        A probe whose handler is not run, since one before has diverted or raised, loses that count.

        Args:
            cb: the control block of the CPU; its `probes` are set.
            probes: the probes whose pre-handlers are run.
            regs: the registers at the hit.

        Returns:
            True where a handler has diverted: the guest goes to regs.pc.

        Raises:
            Exception: a handler has raised it, and the probe's fault_handler has not handled it.
        """
        cb.probes = probes
        for p in probes:
            p._nhit -= 1  # pre() counts the hit for each probe whose turn comes
        return self.pre(cb, regs)

    def divert(self, point: Probepoint, regs: Regs) -> None:
        """Let the guest go from a breakpoint to regs.pc, where a pre-handler has sent it.

        A probepoint that is a jump by now becomes a breakpoint for good.

        Args:
            point: the probepoint.
            regs: the registers.

        Raises:
            BadLocation: regs.pc is still the probepoint, a breakpoint.
        """
        if point.state is OPTIMIZED:
            self.refuse(point)
        self.check_diverted(point, regs)

    def check_diverted(self, point: Probepoint, regs: Regs) -> None:
        """Check where a pre-handler has sent the guest; a jump that covers that place becomes a
        breakpoint.

        Args:
            point: the probepoint.
            regs: the registers; pc is where the guest goes.

        Raises:
            BadLocation: pc is still the probepoint, a breakpoint: the guest would hit it for ever.
        """
        if regs.pc == point.address and point.state is ARMED:
            raise BadLocation(
                "a pre_handler returned true (I set regs.pc myself) but regs.pc is still the "
                "probepoint",
                address=point.address,
                symbol=point.where,
                hint="set regs.pc, or return 0: the guest would hit the probe for ever",
            )
        self.land(regs)

    def land(self, regs: Regs) -> None:
        """Make the jumps that cover regs.pc, where the guest now goes, breakpoints again.

        A jump that begins at regs.pc stays.

        Args:
            regs: the CPU's registers.
        """
        if self._rooms.displaced:
            self.make_room(regs.pc)

    # --- jumps that give way

    def make_room(self, addr: int) -> None:
        """Make the jumps that have an address in their midst breakpoints again: the guest goes
        there.

        A jump that begins at the address stays.

        What the machine does at the call sites of such jumps (programs, following calls) ends.

        Args:
            addr: the address.
        """
        self._optimizer.make_room(addr)
        self.serve_left_sites()

    def refuse(self, point: Probepoint, reason: str = "its pre_handler diverts the guest") -> None:
        """Make an optimized probepoint a breakpoint for good.

        A breakpoint diverts without a detour. Where threads take turns (Machine.in_turn) nothing is
        changed.

        Args:
            point: the probepoint.
            reason: why no jump may be there.
        """
        if self._rooms.machine.in_turn:
            return
        self._optimizer.refuse(point, reason)
        self.serve_left_sites()

    def serve_left_sites(self) -> None:
        """Have the core serve the call sites of jumps that were taken out since the last call.

        Programs and the following of calls end there. A CPU may still be on its way to such a call
        site: the site's service, a Python function, serves it then.
        """
        for call in self._optimizer.take_left():
            self._calls.follow_no_more(call)
            self._rooms.sites_in_place.call_at(call)

    # --- the rest of a hit

    def execute(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        """Execute the probed instruction, after its pre-handlers, and end the hit if that is all.

        What is simulated of the instruction is simulated here. If it has a body to be executed, the
        guest is sent to the slot with it, and slot_end() ends the hit (the address to go to then is
        kept in `cb.resume`); a slot that leads back by itself ends it now. A body that the
        simulation annuls is not executed. Otherwise the guest goes past the instruction, and the
        post-handlers run (in a missed hit they do not), and the hit ends. While an instruction with
        a hit is in its slot, the machine reports all hits to the core.

        Where the simulation faults and a fault_handler sends the guest elsewhere, the hit ends
        there.

        Args:
            cb: the control block of the CPU.
            point: the probepoint.
            regs: the registers, as the instruction finds them.

        Raises:
            GuestFault: the simulation has faulted, and no fault_handler has handled that.
            Exception: a post-handler has raised it, and the probe's fault_handler has not handled
                it; the hit is over.
        """
        if point.native:
            regs.target = point.slot_target
            if cb.previous is None:
                cb.state = IDLE  # step(DONE), written out
            else:
                cb.step(DONE)
            return
        target = point.next
        slot = point.slot
        if point.insn.simulate is not None:
            simulated = self.simulate(cb, point, regs)
            if simulated is None:
                return
            target = simulated
            if type(target) is Annul:
                slot = None
        if slot is not None:
            regs.target = point.slot_target
            cb.resume = target
            if cb.state is not REENTER:
                cb.step(STEP)
                self.pause_hits()  # an interrupt of the guest's may lead away from the slot
            return
        regs.go(target)
        if cb.state is REENTER or not point.has_post:
            cb.step(DONE)
        else:
            cb.step(NO_STEP)
            self.post(cb, regs)

    def post(self, cb: ControlBlock, regs: Regs) -> None:
        """Run the post-handlers of cb.probes that are still active, and end the hit, also where one
        raises.

        Jumps that cover regs.pc become breakpoints at the end.

        Args:
            cb: the control block of the CPU.
            regs: the registers; pc is at the next instruction.

        Raises:
            Exception: a handler has raised it, and the probe's fault_handler has not handled it.
                The handlers after it do not run.
        """
        try:
            for p in cb.probes:
                handler = p._post
                if handler is not None and p._active:
                    cb.child = p
                    try:
                        handler(p, regs, 0)
                    except Exception as error:
                        self.ask_about_exception(p, regs, error)
        finally:
            cb.step(DONE)
            self.land(regs)

    def slot_end(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        """Serve the trap behind the body in a slot: go to the next instruction, run post-handlers.

        The hit ends. Where no other hit is under way then, the machine serves usual hits by itself
        again. In a missed hit no post-handler runs. Where no hit of this probepoint is in its slot
        any more, the guest only goes to the instruction behind the probed one.

        Args:
            cb: the control block of the CPU.
            point: the probepoint that the slot belongs to.
            regs: the registers at the trap.

        Raises:
            Exception: a post-handler has raised it, and the probe's fault_handler has not handled
                it; the hit is over.
        """
        if cb.point is not point or cb.state not in (HIT_SS, REENTER):
            # the guest was in the slot when its end changed, or when the hit was given up
            regs.go(point.next)
            return
        regs.go(cb.resume)
        if cb.state is REENTER or not point.has_post:
            cb.step(SLOT_END if cb.state is REENTER else DONE)
        else:
            cb.step(SLOT_END)
            self.post(cb, regs)
        if cb.state is IDLE and self.paused[0]:
            self.resume_hits()
