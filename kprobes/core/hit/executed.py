"""Instructions that execute others out of their place (s390x: EXECUTE), and probes that are in
their way.
"""

from __future__ import annotations

import warnings

from ...arch._base import COMPUTED, Annul
from ...regs import Regs
from ..patch.executed import is_relative
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..probe import owner_of
from .ctlblk import ControlBlock, HitEvent
from .displaced import Displaced
from .handlers import Handlers


class ExecutedElsewhere(RuntimeWarning):
    """The guest has executed a probed instruction by EXECUTE, or another one by a probed EXECUTE
    that cannot be displaced: the probes there are disabled.
    """


class ExecutedBreakpoints:
    """Serves traps at an EXECUTE whose target is a probed instruction, and at a probed EXECUTE that
    cannot be displaced.
    """

    def __init__(self, rooms: Rooms, handlers: Handlers, displaced: Displaced) -> None:
        """Prepare; nothing is looked at yet.

        Args:
            rooms: the parts of the Kprobes.
            handlers: simulates instructions, and ends hits in slots.
            displaced: finds displaced instructions.
        """
        self._rooms = rooms
        self._handlers = handlers
        self._displaced = displaced

    def give_way(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> bool:
        """Disable the probes of an EXECUTE that would execute something else out of its place, and
        warn (ExecutedElsewhere).

        That is one whose target only registers tell, where the target has a relative address that
        the machine counts from the EXECUTE. The guest then executes it in its place; the hit is
        over, and no post-handler runs. Called after the pre-handlers.

        Args:
            cb: the control block of the CPU.
            point: the probepoint.
            regs: the registers at the hit.

        Returns:
            True where probes were disabled. False where the instruction is no such EXECUTE: nothing
            was done.
        """
        executing = self._rooms.arch.executing
        if (
            executing is None
            or point.insn.executes != COMPUTED
            or self._rooms.machine.counts_from_executed
        ):
            return False
        target = executing.instruction(regs, point.insn)
        if target is None or not is_relative(target):
            return False
        cb.step(HitEvent.DONE)
        for probe in point.active:
            owner_of(probe).disable(probe)
        regs.go(point.address | point.insn.mode)
        warnings.warn(
            f"{point.where}: {point.insn.name} executes {target.name} at {target.addr:#x}, whose "
            "relative address changes where it is displaced: the probes there are disabled",
            ExecutedElsewhere,
            stacklevel=2,
        )
        return True

    def disable_executed(self, cb: ControlBlock, regs: Regs) -> bool:
        """Disable the probes whose breakpoint an EXECUTE at regs.pc has executed, and warn
        (ExecutedElsewhere).

        The guest then executes the instruction at regs.pc again. Called for a trap at an address
        where the core has no breakpoint.

        A displaced EXECUTE of the hit under way is simulated anew, since it has read the
        breakpoint.

        Args:
            cb: the control block of the CPU.
            regs: the registers where the guest has trapped.

        Returns:
            True where probes were disabled. False where the instruction is no EXECUTE, or its
            target has no active probe: nothing was done.
        """
        executing = self._rooms.arch.executing
        if executing is None:
            return False
        displaced, pc = self._displaced.at(regs.pc), regs.pc
        insn = self._rooms.survey.decode(pc if displaced is None else displaced[2])
        at = executing.target(regs, insn)
        bare = None if at is None else self._rooms.sites.probepoint(at)
        if bare is None or not bare.active:
            return False
        for probe in bare.active:
            owner_of(probe).disable(probe)
        regs.go(pc)
        if displaced is not None and displaced[0] is cb.point:
            target = self._handlers.simulate(cb, cb.point, regs)  # anew: it saw the breakpoint
            if type(target) is Annul:
                cb.resume = target
                self._handlers.slot_end(cb, cb.point, regs)
        warnings.warn(
            f"{bare.where} is executed by the {insn.name} at {insn.addr:#x}: "
            "the probes there are disabled",
            ExecutedElsewhere,
            stacklevel=2,
        )
        return True
