"""Trap instructions in a process's text, used in place of the stub's breakpoints in qemu-user.

QEMU translates a page that has one of its stub's breakpoints instruction by instruction, so that
all code in the page runs slowly. The trap instructions that the core (kprobes/core) writes at
probed addresses stop the guest as well: the stub reports a signal, with pc where Linux shows it on
that architecture.
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
    """Makes a stop at one of the core's traps look like a stop at the stub's breakpoint: SIGTRAP,
    pc at the trap's address.
    """

    def __init__(self, target: RemoteTarget, threads: RemoteThreads, breakpoints: set[int]) -> None:
        """Prepare.

        Args:
            target: the stub.
            threads: the guest's threads, and their registers.
            breakpoints: addresses of the core's breakpoints, each of which is a trap instruction.
        """
        self._target = target
        self._threads = threads
        self._breakpoints = breakpoints
        # without such traps: what the stub says at its own breakpoints
        self._signal, self._behind = target.traps or (SIGTRAP, 0)

    def as_breakpoint_stop(self, stop: StopReply, sure: bool) -> StopReply:
        """Return a stop as it would be at a breakpoint of the stub's, if it is at a trap of the
        core's; else return it as it is.

        The thread's pc is set back to the trap where the stub shows it behind.

        Args:
            stop: what the stub says.
            sure: True: the guest ran freely, and no interrupt was on its way: then pc behind a trap
                means that the trap was executed. Else the stop's siginfo is looked at.
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
        """Ask for the stop's siginfo, and return True where it is that of an INT3."""
        info = self._target.transfer("siginfo", chunk=SIGINFO)
        return int.from_bytes(info[8:12], "little") == EXECUTED
