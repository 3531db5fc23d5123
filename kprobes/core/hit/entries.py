"""Hits without a trap: the functions that the call site of a detour calls.

An optimized probepoint is a jump to a detour: a call site, where the machine calls a service (a
function of the core's) or handlers, then the displaced instructions. Entries.service() makes the
function that serves a hit of any number of probes. Where the machine calls a handler by itself, it
needs only a function that finishes an unusual hit: describe_hit(), describe_hits_of_several() and
asked() describe the hit to the machine, that function (`rest`) included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import BadLocation, GuestFault
from ...machine._base import UsualEntry, UsualHit
from ...regs import Regs
from ..patch.arming import Arming
from ..patch.detour import Detour
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..probe import Kretprobe, KretprobeInstance, Probe, ReturnHandler
from .ctlblk import ControlBlock, HitEvent, HitState
from .handlers import Handlers, simulated
from .returns import Returns

BREAKPOINTS = (Arming.ARMED, Arming.OPTIMIZING)


class _Declined(Exception):
    """Raised where an entry handler declines to follow its call, and other probes do follow it."""


def _for_all(entry_handler: ReturnHandler) -> ReturnHandler:
    """Wrap the entry handler of the first of several return probes at one function.

    An entry handler that returns something true declines: its own probe does not follow the call.
    The machine would take that for the answer of all the probes, and none would follow the call. So
    the wrapper raises _Declined instead; the machine then leaves the hit to rest(), which follows
    the call for the other probes.

    Args:
        entry_handler: the user's handler.

    Returns:
        (instance, registers) -> None: the wrapper.
    """

    def handler(ri: KretprobeInstance, regs: Regs) -> None:
        """Call the entry handler; raise _Declined where it returns a true value."""
        if entry_handler(ri, regs):
            raise _Declined

    return handler


class Entries:
    """Makes the functions that call sites call, and descriptions of hits for the machine."""

    def __init__(self, rooms: Rooms, handlers: Handlers, returns: Returns) -> None:
        """Prepare; no function is made yet.

        Args:
            rooms: the parts of the Kprobes.
            handlers: runs handlers.
            returns: the entries of return probes, and the followed calls.
        """
        self._rooms = rooms
        self._handlers = handlers
        self._returns = returns
        self._calls = returns.calls

    def service(
        self, point: Probepoint, only: tuple[Probe, ...] | None = None
    ) -> Callable[[Regs], None]:
        """Return a function that serves the hits of an optimized probepoint.

        It runs the pre-handlers; the detour executes the instruction afterwards. It has to be made
        anew whenever the probes at the probepoint change.

        Args:
            point: the probepoint; it has a detour.
            only: probes whose handlers run; None: all that are active.

        Returns:
            A function of the registers at the call site, for the machine to call at each hit.
        """
        handlers = self._handlers
        detour = point.detour
        assert detour is not None
        simulated = point.insn.simulate is not None and not point.native

        def serve(regs: Regs) -> None:
            """Serve a hit: run the pre-handlers, for which regs.pc is the probepoint, then send the
            guest on.

            Where a handler has diverted, the guest goes to regs.pc, and the probepoint becomes a
            breakpoint for good. Else `regs.target` becomes None: the guest goes on in the detour.
            An instruction that is simulated is simulated here, and says where the guest goes. Where
            a handler has put a probe inside the jump, the instruction is executed in its slot or
            simulated instead, and the guest comes to that probe.

            A hit within a hit is counted as missed on every probe there, and no handler runs.

            Args:
                regs: the registers at the call site.

            Raises:
                BaseException: a handler has raised it, and no fault_handler has handled it; the
                    guest is at the probepoint.
                BadLocation: a handler has diverted, but flush_optimizer() has made the jump, or pc
                    is still the probepoint.
                GuestFault: the simulation has faulted, and no fault_handler has handled that.
            """
            cb = handlers.blocks[regs.cpu]
            if cb.state is not HitState.IDLE:
                point.missed()
                regs.target = None
                if simulated:
                    self._simulate(cb, point, regs)
                return
            if handlers.paused[0]:
                handlers.resume_hits()
            regs.reported = point.address
            cb.begin(point)
            cb.probes = point.active if only is None else only
            try:
                diverted = handlers.pre(cb, regs)
            except BaseException:
                regs.go(point.address | point.insn.mode)
                raise
            finally:
                cb.reset()
            if diverted:
                self._divert(point, regs)
                return
            regs.target = None  # only DIVERTED moves the guest
            if detour.left and self._go_on_as_breakpoint(cb, point, regs, detour):
                return
            if simulated:
                self._simulate(cb, point, regs)

        return serve

    def describe_hit(
        self, point: Probepoint, p: Probe, handler: Callable[[Any, Regs], Any]
    ) -> UsualHit:
        """Return a description of a lone probe's hit, for a machine that calls its pre-handler by
        itself.

        The description has a function, `rest`, by which the machine has an unusual hit finished.

        Args:
            point: the probepoint; it has a detour.
            p: the probe.
            handler: its pre-handler.
        """
        return self._describe(point, (p,), handler)

    def describe_hits_of_several(self, point: Probepoint) -> UsualHit:
        """Describe the hits of a probepoint with several probes to a machine that calls one handler
        by itself, without the core.

        The description's `handler` calls the pre-handlers of all active probes; the guest then goes
        on in the detour. Where a pre-handler has diverted the guest or raised an error, or the jump
        was taken out meanwhile, the machine calls the description's `rest`, which finishes the hit.

        Args:
            point: the probepoint; it has a detour, and none of its probes is a return probe.
        """
        cb = self._handlers.blocks[0]
        probes = point.active

        def handler(_first: Any, regs: Regs) -> bool:
            """Run the pre-handlers of all probes; return True where one has diverted the guest."""
            return self._handlers.pre_counted(cb, probes, regs)

        return self._describe(point, probes, handler, asks=True)

    def _describe(
        self,
        point: Probepoint,
        probes: tuple[Probe, ...],
        handler: Callable[[Any, Regs], Any],
        *,
        asks: bool = False,
    ) -> UsualHit:
        """Return a description of hits for a machine that calls one handler by itself.

        Args:
            point: the probepoint; it has a detour.
            probes: the probes whose pre-handlers `handler` runs.
            handler: (first probe, registers) -> True where it has diverted the guest.
            asks: True where it asks the fault_handlers about exceptions itself.
        """
        cb = self._handlers.blocks[0]
        detour = point.detour
        assert detour is not None

        def rest(regs: Regs, _instance: Any, result: Any, error: BaseException | None) -> None:
            """Finish a hit whose handler has diverted or raised, or has had the jump taken out.

            Where no handler has diverted, the guest goes on in the detour; or, if the jump was
            taken out and a probe now stands inside what it covered, the instruction is executed in
            its slot or simulated, and the guest comes to that probe.

            Args:
                regs: the registers at the call site.
                _instance: not used.
                result: what the handler has returned; true: the guest goes to regs.pc, and the
                    probepoint becomes a breakpoint for good.
                error: what the handler has raised. Where it has asked no fault_handler itself, that
                    of the probe is asked, and has diverted where it handles the exception and
                    changes pc. None: nothing.

            Raises:
                BaseException: `error`, if no fault_handler has handled it; the guest is at the
                    probepoint.
                BadLocation: a handler has diverted, but flush_optimizer() has made the jump, or pc
                    is still the probepoint.
            """
            cb.probes = probes
            diverted = bool(result)
            if error is not None and asks:
                regs.go(point.address | point.insn.mode)
                raise error
            if error is not None:
                diverted = self._handlers.diverts_after(error, probes[0], point, regs)
            if diverted:
                self._divert(point, regs)
            else:
                regs.target = None  # only DIVERTED moves the guest
                if detour.left:
                    self._go_on_as_breakpoint(cb, point, regs, detour)

        return UsualHit(address=point.address, probe=probes[0], handler=handler, rest=rest)

    def asked(self, point: Probepoint, probes: tuple[Kretprobe, ...]) -> UsualEntry:
        """Return a description of a function's entry, for a machine that calls the entry handler.

        Where the entry handler returns a false value, as usual, the machine itself follows the
        call to its return. Where the handler returns a true value, raises, or changes the probes,
        the machine calls `rest` of the description instead, which does all that is left to do.

        Args:
            point: the probepoint at the function's entry; it has a detour.
            probes: the function's return probes, in the order in which they run there. The first
                has the entry handler, the others have none.
        """
        cb = self._handlers.blocks[0]
        link = self._returns.link()
        detour = point.detour
        rp, others = probes[0], probes[1:]
        entry_handler = rp.entry_handler
        assert detour is not None
        assert entry_handler is not None
        handler = _for_all(entry_handler) if others else entry_handler

        def rest(
            regs: Regs, ri: KretprobeInstance, result: Any, error: BaseException | None
        ) -> None:
            """Finish an unusual entry: the handler has returned a true value, raised, or changed
            the probes.

            Where the entry handler has returned a false value, the call is followed here, by the
            core. Else it is not followed, and `ri` goes back to its pool. In both cases the other
            probes' pre-handlers run afterwards, and the guest goes on in the detour; or, if the
            jump was taken out and a probe now stands inside what it covered, the instruction is
            executed in its slot or simulated, and the guest comes to that probe.

            The exception of an entry handler goes to its probe's fault_handler. Where that sends
            the guest elsewhere, the guest goes there, and the other probes' count of the hit is
            taken back, since their handlers do not run.

            Args:
                regs: the registers at the call site.
                ri: the instance that the machine has taken for the call.
                result: what the entry handler has returned; true: the call is not followed.
                error: what the entry handler has raised; None: nothing. A _Declined, which the
                    wrapper of _for_all() raises, is no failure: the call is not followed.

            Raises:
                BadLocation: the fault_handler has sent the guest elsewhere, but flush_optimizer()
                    has made the jump.
                BaseException: `error`, if the fault_handler has not handled it; the other probes'
                    count is taken back then, too. Or another probe's pre-handler has raised it.
            """
            cb.probes = probes
            declined = True
            diverted = False
            try:
                if error is None:
                    declined = bool(result)
                elif not isinstance(error, _Declined):
                    diverted = self._handlers.diverts_after(error, rp, point, regs)
            except BaseException:
                self._not_counted(others)
                raise
            finally:
                if declined:
                    self._calls.recycle((ri,))
            if diverted:
                self._not_counted(others)
                self._divert(point, regs)
                return
            regs.target = None  # only DIVERTED moves the guest
            if not declined:
                found = link.get()  # Linux, too, reads it after the handler
                link.put(self._calls.trampoline)
                self._calls.add(ri, ri.frame, found if link.skip is None else link.skip(found))
            if others:
                self._handlers.pre_counted(cb, others, regs)
            if detour.left:
                self._go_on_as_breakpoint(cb, point, regs, detour)

        return UsualEntry(
            address=point.address,
            probe=rp,
            handler=handler,
            pool=rp._pool,
            held=rp._held,
            rest=rest,
        )

    def _not_counted(self, probes: tuple[Kretprobe, ...]) -> None:
        """Take one off nhit of each probe: the machine has counted the hit, but the handlers do not
        run.

        Args:
            probes: the probes whose handlers do not run.
        """
        for p in probes:
            p._nhit -= 1

    def _go_on_as_breakpoint(
        self, cb: ControlBlock, point: Probepoint, regs: Regs, detour: Detour
    ) -> bool:
        """Execute the instruction as after a breakpoint, in its slot or simulated, where a handler
        has put a probe inside the jump.

        The new probe has had the jump taken out. The detour would execute all instructions that the
        jump covered, and so pass over that probe.

        Args:
            cb: the CPU's control block; its `probes` are those whose handlers ran.
            point: where the jump stood.
            regs: the CPU's registers.
            detour: where the jump led.

        Returns:
            True if that was done. False: no breakpoint stands inside, or another hit is under way;
            nothing was changed.
        """
        inside = self._rooms.sites.between(point.address + 1, point.address + detour.size)
        if cb.state is not HitState.IDLE or not any(other.state in BREAKPOINTS for other in inside):
            return False
        cb.begin(point)
        self._handlers.execute(cb, point, regs)
        return True

    def _divert(self, point: Probepoint, regs: Regs) -> None:
        """Let the guest go where a pre-handler has sent it; the probepoint becomes a breakpoint for
        good.

        Args:
            point: the probepoint.
            regs: the registers; pc is where the guest goes.

        Raises:
            BadLocation: flush_optimizer() made the jump: the user has asked for it explicitly, and
                a jump leaves no way to divert. Or pc is still the probepoint.
        """
        if point.detour is not None and point.detour.demanded:
            regs.go(point.address | point.insn.mode)
            raise BadLocation(
                "a pre_handler asked to divert, but the probepoint is optimized",
                address=point.address,
                symbol=point.where,
                hint="give the probe a post_handler or optimize=False",
            )
        self._handlers.refuse(point)
        self._handlers.check_diverted(point, regs)

    def _simulate(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        """Simulate the probed instruction, and send the guest to the next one.

        A fault in it is reported as if the instruction had been executed at its original address:
        the fault_handlers of the probes are asked. Where one repairs the fault, the instruction is
        simulated again; where one sends the guest elsewhere, the guest goes there. In a hit within
        a hit none is asked.

        Args:
            cb: the control block of the CPU.
            point: the probepoint.
            regs: the registers, as the instruction finds them.

        Raises:
            GuestFault: no fault_handler has handled a fault.
        """
        try:
            regs.go(simulated(point.insn, regs))
        except GuestFault as error:
            cb.begin(point)
            cb.probes = point.active
            target = (
                self._handlers.simulate(cb, point, regs)
                if self._handlers.fault_at_home(cb, point, regs, error)
                else None
            )
            if target is not None:
                regs.go(target)
                cb.step(HitEvent.DONE)

    def after_programs(self, point: Probepoint, rp: Kretprobe, call: int) -> Callable[[Regs], None]:
        """Return a service for a call site where the machine runs programs and follows calls.

        The machine calls it at a hit where it could do neither, or where the programs have run and
        only the call is still to be followed (CallsInPlace.ran).

        Args:
            point: the probepoint at a function's entry; it has a detour.
            rp: its only return probe.
            call: address of the call site.

        Returns:
            A function of the registers at the call site.
        """
        whole = self.service(point)
        rest = self.service(point, only=(rp,))
        ran = self._rooms.sites_in_place.ran

        def serve(regs: Regs) -> None:
            """Serve a hit whose programs have run by the return probe alone, any other by all
            probes. In the first case a hit is counted here for each of the other probes.

            Args:
                regs: the registers at the call site.
            """
            if not ran(call):
                whole(regs)
                return
            for p in point.active:
                p._nhit += p is not rp
            rest(regs)

        return serve
