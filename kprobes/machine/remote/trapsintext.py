"""Traps of the core's in a process's text that stop it by themselves, under QEMU's user mode.

A breakpoint of the stub's would do harm: QEMU translates a page with one instruction by
instruction, so that all code in it runs slowly, probed or not. A trap that the guest executes is a
signal instead, and pc is where the architecture's Linux shows it.
"""

from __future__ import annotations

from attrs import evolve

from .accesses import SIGINFO
from .stopreplies import StopReply
from .target import RemoteTarget
from .threads import RemoteThreads

SIGILL, SIGTRAP = 4, 5
#: si_code of x86's INT3 (siginfo_t, its third word): not of steps, of breakpoints, nor of kill(2)
EXECUTED = 0x80


class TrapsInText:
    """Tells stops at traps as those at breakpoints of the stub's are told: SIGTRAP, with pc before
    it.
    """

    def __init__(self, target: RemoteTarget, threads: RemoteThreads, breakpoints: set[int]) -> None:
        """Prepare.

        Args:
            breakpoints: addresses of the core's: a trap stands at each.
        """
        self._target = target
        self._threads = threads
        self._breakpoints = breakpoints
        self._signal, self._behind = target.traps or (SIGTRAP, 0)  # as the stub's own say it

    def told(self, stop: StopReply, sure: bool) -> StopReply:
        """Return a stop as one at a breakpoint of the stub's is told, where it is one of a trap.

        Args:
            stop: what the stub says.
            sure: the guest ran freely, and was not interrupted; else pc may have come there in
                another way.
        """
        if stop.code != self._signal or (not self._behind and stop.code == SIGTRAP):
            return stop
        pc = self._threads.regs[self._threads.current].pc
        at = pc - self._behind
        if at not in self._breakpoints:
            return stop
        if (
            stop.code == SIGTRAP
            and not (sure and not self._target.stops.at(pc))
            and not self._executed()
        ):
            return stop
        if self._behind:
            self._threads.move(at)
        return stop if stop.code == SIGTRAP else evolve(stop, code=SIGTRAP)

    def _executed(self) -> bool:
        """Return True where the stop is that of an INT3."""
        info = self._target.transfer("siginfo", chunk=SIGINFO)
        return int.from_bytes(info[8:12], "little") == EXECUTED
