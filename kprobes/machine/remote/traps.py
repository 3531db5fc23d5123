"""Trap instructions in a process's own text that stop it, under QEMU's user mode: no breakpoint of the stub's stands
beside them.

A page with one of those is translated instruction by instruction: all that is in it runs slowly, probed or not. What
the guest executes of a trap is a signal, and pc is where the architecture's Linux shows it.
"""

from __future__ import annotations

from attrs import evolve

from .accesses import SIGINFO
from .reasons import Stop
from .target import Target
from .threads import Threads

SIGILL, SIGTRAP = 4, 5
#: si_code of x86's INT3 (siginfo_t, its third word): not of steps, of breakpoints, nor of kill(2)
EXECUTED = 0x80


class Traps:
    """Tells stops at traps as those at breakpoints of the stub's are told: SIGTRAP, with pc before it."""

    def __init__(self, target: Target, threads: Threads, breakpoints: set[int]) -> None:
        """breakpoints: addresses of the core's: a trap stands there."""
        self._target, self._threads, self._breakpoints = target, threads, breakpoints
        self._signal, self._behind = target.traps or (SIGTRAP, 0)  # as the stub's own say it

    def told(self, stop: Stop, sure: bool) -> Stop:
        """The stop, where pc is put back to the trap. sure: the guest ran freely, and nobody has interrupted it: else
        pc may have come there in another way."""
        if stop.code != self._signal or (not self._behind and stop.code == SIGTRAP):
            return stop
        pc = self._threads.regs[self._threads.current].pc
        at = pc - self._behind
        if at not in self._breakpoints:
            return stop
        if stop.code == SIGTRAP and not (sure and not self._target.stops.at(pc)) and not self._executed():
            return stop
        if self._behind:
            self._threads.move(at)
        return stop if stop.code == SIGTRAP else evolve(stop, code=SIGTRAP)

    def _executed(self) -> bool:
        info = self._target.transfer("siginfo", chunk=SIGINFO)
        return int.from_bytes(info[8:12], "little") == EXECUTED
