"""Breakpoints that the machine serves by itself: a lone probe whose instruction runs in a slot, or
whose handler sends the guest elsewhere.

The machine is the engine that runs the guest. The driver (trap.TrapDriver) serves the first hit of
a breakpoint, and then hands the breakpoint over: from the next hit on the machine calls the
handlers itself, without a report to the driver. Any change at the probepoint takes the breakpoint
back (Probepoint.serve_no_more). Where a handler does something unusual (it raises, or sends the
guest elsewhere) the machine calls the `rest` functions made here, which finish the hit as the
driver would.
"""

from __future__ import annotations

from typing import Any

from ...machine._base import UsualHit, UsualTrap
from ...regs import Regs
from ..patch.arming import Arming
from ..patch.probepoint import Probepoint
from ..probe import Probe
from .handlers import Handlers


class BreakpointHandover:
    """Hands breakpoints over to the machine."""

    def __init__(self, handlers: Handlers) -> None:
        """Prepare; no breakpoint is handed over yet.

        Args:
            handlers: runs handlers, and has the machine's power to serve usual hits.
        """
        self._handlers = handlers

    def serve(self, point: Probepoint, diverted: bool) -> None:
        """Have the machine serve the next hits of a breakpoint, if it can. Called at a hit.

        It can where the breakpoint is in memory, one probe is active, and the instruction is
        executed in a slot and not simulated, or `diverted` is True. At an EXECUTE it cannot: each
        hit looks at the instruction that it executes (ExecutedBreakpoints). Then `point.served`
        becomes the machine's handle of the breakpoint (ServedTrap); else nothing is changed.

        Args:
            point: the probepoint whose breakpoint was hit.
            diverted: True if its pre-handler has just sent the guest elsewhere, and may do so
                again.
        """
        hits = self._handlers.hits
        if hits is None or not hits.traps or point.state is not Arming.ARMED:
            return
        if len(point.active) != 1 or point.insn.executes is not None:
            return
        p = point.active[0]
        stepped = point.slot is not None and point.insn.simulate is None
        if not stepped and (not diverted or p._pre is None):
            return
        point.served = hits.trap(
            UsualTrap(
                address=point.address,
                slot=point.slot_target if stepped else None,
                slot_end=None if point.native or not stepped else point.slot_end,
                next=point.next,
                before=self._before(point, p),
                after=self._after(point, p) if stepped else None,
                point=point,
                probes=(p,),
            )
        )

    def _before(self, point: Probepoint, p: Probe) -> UsualHit | None:
        """Return a description of the pre-handler, for a machine that calls it by itself; None:
        there is no pre-handler.

        The description also has a function, `rest`, by which the machine has an unusual hit
        finished.

        Args:
            point: the probepoint whose breakpoint is handed over.
            p: the only active probe there.
        """
        if p._pre is None:
            return None
        cb = self._handlers.blocks[0]

        def rest(regs: Regs, _instance: Any, result: Any, error: BaseException | None) -> None:
            """Finish a hit whose pre-handler has returned a true value or raised.

            The handler has diverted where it has returned a true value, or where it has raised and
            the probe's fault_handler has handled that and changed pc. Then the guest goes to
            regs.pc, and a jump at the probepoint becomes a breakpoint for good. Else the
            instruction is executed.

            Args:
                regs: the registers at the hit.
                _instance: not used.
                result: what the handler has returned; a true value says that it has diverted.
                error: what the handler has raised; None: nothing.

            Raises:
                BaseException: `error`, if the probe's fault_handler has not handled it.
                BadLocation: the handler says that it has diverted, but pc is still the probepoint.
                GuestFault: the instruction is simulated and has faulted, and no fault_handler has
                    handled that.
            """
            diverted = bool(result)
            if error is not None:
                diverted = self._handlers.diverts_after(error, p, point, regs)
            if diverted:
                self._handlers.divert(point, regs)
            else:
                cb.begin(point)
                cb.probes = (p,)
                self._handlers.execute(cb, point, regs)

        return UsualHit(address=point.address, probe=p, handler=p._pre, rest=rest)

    def _after(self, point: Probepoint, p: Probe) -> UsualHit | None:
        """Return a description of the post-handler and of the address behind the instruction, where
        a machine calls it by itself; None: there is none.

        The description also has a function, `rest`, by which the machine has an unusual hit
        finished.

        Args:
            point: the probepoint whose breakpoint is handed over.
            p: the only active probe there.
        """
        if p._post is None:
            return None

        def rest(regs: Regs, _instance: Any, _result: Any, error: BaseException | None) -> None:
            """Finish a hit whose post-handler has changed pc or raised.

            The fault_handler is asked about `error` if that is an Exception. A jump whose middle
            the guest goes to becomes a breakpoint.

            Args:
                regs: the registers behind the instruction.
                _instance: not used.
                _result: not used.
                error: what the handler has raised; None: nothing.

            Raises:
                BaseException: `error`, if it is no Exception, or the probe's fault_handler has not
                    handled it.
            """
            try:
                if error is not None and not isinstance(error, Exception):
                    raise error
                if error is not None:
                    self._handlers.ask_about_exception(p, regs, error)
            finally:
                self._handlers.land(regs)

        return UsualHit(
            address=point.next & ~self._handlers.mode_bits, probe=p, handler=p._post, rest=rest
        )
