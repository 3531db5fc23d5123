"""Runs of a guest whose CPU takes interrupts: in stretches, between which the CPU is between two
instructions.
"""

from __future__ import annotations

from threading import TIMEOUT_MAX
from time import monotonic
from typing import Any

from ...errors import GuestHalted, GuestTimeout
from .bounds import Bounds
from .cpu import UnicornCpu
from .faults import FaultReports
from .interrupts import InterruptDelivery
from .runner import OUT_OF_TIME, Runner
from .runstate import RunState
from .services import Services
from .starts import Starts


class InterruptedRunner(Runner):
    """A Runner whose guest's CPU takes interrupts, in runs that are inside no other."""

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        services: Services,
        starts: Starts,
        bounds: Bounds,
        faults: FaultReports,
        interrupts: InterruptDelivery,
    ) -> None:
        """Prepare; nothing runs.

        Args:
            cpu: runs the guest's code.
            state: of its runs.
            services: of call sites.
            starts: starts the engine.
            bounds: puts bounds on runs.
            faults: reports faults.
            interrupts: what the CPU takes between stretches.
        """
        super().__init__(cpu, state, services, starts, bounds, faults)
        self._interrupts = interrupts

    def run(self, target: int, until: int, timeout: float | None, max_insns: int | None) -> bool:
        """Run the guest to an address; take its CPU's interrupts in between, if the run is in no
        other.

        While it runs in stretches, the core allows only jumps that cover one instruction. A run in
        another one takes no interrupts.

        Args:
            target: address where it starts, mode bits included.
            until: address where it ends, mode bits included.
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.

        Returns:
            True where stop() has ended it; False at `until`.

        Raises:
            GuestTimeout: a bound has come.
            GuestFault: the guest has failed, and no handler has handled that; or the CPU cannot
                take an interrupt, as its vectors or its stack are no memory.
            GuestHalted: the guest waits for an interrupt, and none will come.
            BaseException: what Runner.run() raises, too.
        """
        stopped: bool | None = None
        unbounded = timeout is None and max_insns is None
        if unbounded and self.usual is not None and not self._interrupts.active:
            stopped = self.usual(target, until)
            if stopped is False:
                return False
        deadline = None if timeout is None else monotonic() + min(timeout, TIMEOUT_MAX)
        left = max_insns
        if stopped or not self._interrupts.active:
            stopped = stopped or super().run(target, until, timeout, max_insns)
            if self._state.depth or not stopped or self.stopped_by != "interrupt":
                return stopped
            target = self._cpu.arch.pointers.same_mode(self._cpu.regs, self._cpu.read_pc())
            left = None if left is None else self.bounds.unused
        if self._state.depth:
            with self._interrupts.held_back(), self.bounds.counting_paused():
                return super().run(target, until, timeout, max_insns)
        sink = self._state.sink
        if sink is not None:
            sink.limit_jumps(True)
        try:
            return self._run_in_stretches(target, until, deadline, left)
        finally:
            if sink is not None:
                sink.limit_jumps(False)

    def _run_in_stretches(
        self, target: int, until: int, deadline: float | None, left: int | None
    ) -> bool:
        """Run the guest in stretches; between two of them timers are called and interrupts are
        taken. A guest that waits for an interrupt sleeps until a timer wakes it.

        Args:
            target: where the guest goes on, mode bits included.
            until: where the run ends, mode bits included.
            deadline: time.monotonic() when its time is up; None: never.
            left: instructions that it may execute; None: any number.

        Returns:
            True where stop() has ended the run; False at `until`.

        Raises:
            GuestTimeout: a bound has come.
            GuestHalted: the guest waits for an interrupt, and none will come.
            BaseException: what Runner.run(), a timer's function or the taking of an interrupt
                raises.
        """
        cpu, interrupts = self._cpu, self._interrupts
        while True:
            cpu.write_pc(target)
            if left is None or left > 0:
                target, budget = interrupts.begin_stretch(target, left)
            else:
                target, budget = interrupts.no_stretch(target)
            time = None if deadline is None else max(deadline - monotonic(), 1e-6)
            ended: Any = None
            try:
                stopped = super().run(target, until, time, budget)
            except (GuestTimeout, GuestHalted) as error:
                ended, stopped = error, True
            finally:
                done = interrupts.end_stretch(self.bounds.unused)
                if left is not None:
                    left -= done
            if isinstance(ended, GuestTimeout) and (ended.reason == OUT_OF_TIME or left == 0):
                raise ended
            if isinstance(ended, GuestHalted) and not interrupts.sleep():
                if self._state.why_stopped in ("", "interrupt"):
                    raise ended
                ended = None  # a timer's function has stopped it: the next stretch ends the run
            elif ended is None and (not stopped or self.stopped_by != "interrupt"):
                return stopped
            target = cpu.arch.pointers.same_mode(cpu.regs, cpu.read_pc())
            if deadline is not None and monotonic() > deadline:
                raise GuestTimeout(OUT_OF_TIME, pc=cpu.read_pc())
