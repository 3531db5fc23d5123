"""Entries without a trap: what the call site of a detour calls.

There is one entry, `serve`, for any number of probes. Where the machine calls a lone handler by
itself it needs only what comes after an unusual one: `usual` and `asked` tell it.
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
from .handlers import Handlers
from .returns import Returns

BREAKPOINTS = (Arming.ARMED, Arming.OPTIMIZING)


class _Declined(Exception):
    """An entry handler does not want its call followed, and other probes do."""


def _for_all(entry_handler: ReturnHandler) -> ReturnHandler:
    """Return the entry handler of the first of several return probes: the calls of the others are
    followed in any case.
    """

    def handler(ri: KretprobeInstance, regs: Regs) -> None:
        if entry_handler(ri, regs):
            raise _Declined

    return handler


class Entries:
    """Makes what call sites call."""

    def __init__(self, rooms: Rooms, handlers: Handlers, returns: Returns) -> None:
        self._rooms = rooms
        self._handlers = handlers
        self._returns = returns
        self._calls = returns.calls

    def service(
        self, point: Probepoint, only: tuple[Probe, ...] | None = None
    ) -> Callable[[Regs], None]:
        """Return a function that serves hits of an optimized probepoint: the pre-handlers, without
        trap or slot.

        Args:
            point: has a detour. The function is made anew whenever its probes change.
            only: probes whose handlers run; None: all that are active.
        """
        handlers = self._handlers
        detour = point.detour
        assert detour is not None
        simulated = point.insn.simulate is not None and not point.native

        def serve(regs: Regs) -> None:
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
            if detour.left and self._taken_apart(cb, point, regs, detour):
                return
            if simulated:
                self._simulate(cb, point, regs)

        return serve

    def usual(self, point: Probepoint, p: Probe, handler: Callable[[Any, Regs], Any]) -> UsualHit:
        """Return the hit of a lone probe with a pre-handler, for a machine that calls that by
        itself.
        """
        cb = self._handlers.blocks[0]
        detour = point.detour
        assert detour is not None

        def rest(regs: Regs, _instance: Any, result: Any, error: BaseException | None) -> None:
            cb.probes = (p,)
            diverted = bool(result) if error is None else self.failed(p, point, regs, error)
            if diverted:
                self._divert(point, regs)
            else:
                regs.target = None  # only DIVERTED moves the guest
                if detour.left:
                    self._taken_apart(cb, point, regs, detour)

        return UsualHit(address=point.address, probe=p, handler=handler, rest=rest)

    def usual_of_several(self, point: Probepoint) -> UsualHit:
        """Return the hit of several probes, none of which follows calls, for a machine that calls
        one handler.
        """
        cb = self._handlers.blocks[0]
        probes = point.active
        detour = point.detour
        assert detour is not None

        def handler(_first: Any, regs: Regs) -> bool:
            return self._handlers.pre_counted(cb, probes, regs)

        def rest(regs: Regs, _instance: Any, result: Any, error: BaseException | None) -> None:
            cb.probes = probes
            if error is not None:  # no fault_handler has handled it
                regs.go(point.address | point.insn.mode)
                raise error
            if result:
                self._divert(point, regs)
            else:
                regs.target = None  # only DIVERTED moves the guest
                if detour.left:
                    self._taken_apart(cb, point, regs, detour)

        return UsualHit(address=point.address, probe=probes[0], handler=handler, rest=rest)

    def asked(self, point: Probepoint, probes: tuple[Kretprobe, ...]) -> UsualEntry:
        """Return the entry of a function for a machine that follows its calls if the entry handler
        agrees.

        Args:
            point: where the function begins.
            probes: its return probes, as they come at the entry. The first has an entry handler,
                the others have none.
        """
        cb = self._handlers.blocks[0]
        link = self._returns.link()
        detour = point.detour
        rp, others = probes[0], probes[1:]
        entry_handler = rp._entry_handler
        assert detour is not None
        assert entry_handler is not None
        handler = _for_all(entry_handler) if others else entry_handler

        def rest(
            regs: Regs, ri: KretprobeInstance, result: Any, error: BaseException | None
        ) -> None:
            cb.probes = probes
            declined = True
            diverted = False
            try:
                if error is None:
                    declined = bool(result)
                elif not isinstance(error, _Declined):
                    diverted = self.failed(rp, point, regs, error)
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
                self._taken_apart(cb, point, regs, detour)

        return UsualEntry(
            address=point.address,
            probe=rp,
            handler=handler,
            pool=rp._pool,
            held=rp._held,
            rest=rest,
        )

    def _not_counted(self, probes: tuple[Kretprobe, ...]) -> None:
        """Take back a hit that the machine has counted for probes that it does not come to."""
        for p in probes:
            p._nhit -= 1

    def _taken_apart(self, cb: ControlBlock, point: Probepoint, regs: Regs, detour: Detour) -> bool:
        """Go on as a breakpoint's hit where a handler has had the jump taken out, and what it
        covered has a probe.

        Args:
            cb: idle; its `probes` are those whose handlers ran.
            point: where the jump stood.
            regs: the CPU's.
            detour: the jump's.

        Returns:
            True if it has; False if the guest goes on in the detour.
        """
        inside = self._rooms.sites.between(point.address + 1, point.address + detour.size)
        if cb.state is not HitState.IDLE or not any(other.state in BREAKPOINTS for other in inside):
            return False
        cb.begin(point)
        self._handlers.execute(cb, point, regs)
        return True

    def failed(self, p: Probe, point: Probepoint, regs: Regs, error: BaseException) -> bool:
        """Ask a probe's fault_handler about what its handler raised, and raise it unless that
        handles it.

        Returns:
            True if the fault_handler has sent the guest elsewhere.
        """
        try:
            if not isinstance(error, Exception):
                raise error
            self._handlers.ask_about_exception(p, regs, error)
        except BaseException:
            regs.go(point.address | point.insn.mode)
            raise
        return regs.pc != point.address

    def _divert(self, point: Probepoint, regs: Regs) -> None:
        """Let the guest go where a pre_handler has sent it, and make the probepoint a breakpoint
        again.

        Raises:
            BadLocation: flush_optimizer() made the jump, which leaves no way to divert.
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
        """Simulate the instruction; a fault in it is reported as if it had faulted at home."""
        assert point.insn.simulate is not None
        try:
            regs.go(point.insn.simulate(regs))
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
        """service() where the programs of a hit may have run already, and only its call was not to
        be followed.
        """
        whole = self.service(point)
        rest = self.service(point, only=(rp,))
        ran = self._rooms.sites_in_place.ran

        def serve(regs: Regs) -> None:
            if not ran(call):
                whole(regs)
                return
            for p in point.active:
                p._nhit += p is not rp
            rest(regs)

        return serve
