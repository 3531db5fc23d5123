"""Runs in which nothing unusual happens: they are inside no other, have no bounds, and the engine
comes to their end at its first start.

Runner.run() serves every run; for these it takes a dozen calls of Python functions, which cost as
much as a short run itself. Here the same is done in one function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .cpu import UnicornCpu
from .runstate import RunState
from .signals import HeldSignals
from .starts import Starts

UsualRuns = Callable[[int, int], "bool | None"]


class AllRuns(Protocol):
    """The part of a Runner that usual runs need; the Runner says what its members are."""

    signals: HeldSignals
    before_run: Callable[[], object] | None

    def run_announced(self, target: int, until: int) -> bool:
        """Run the guest in a run that was announced to the core, and whose engine was not started.

        Args:
            target: address where it starts, mode bits included.
            until: address where the run ends, mode bits included.

        Returns:
            True where stop() has ended it; False at `until`.
        """

    def run_started(self, error: int, until: int) -> bool:
        """Run the guest further in a run whose engine has been started, and has stopped.

        Args:
            error: the engine's error number; 0: none.
            until: address where the run ends, mode bits included.

        Returns:
            True where stop() has ended it; False at `until`.
        """

    def leave(self) -> None:
        """End the run."""


def usual_runs(runner: AllRuns, cpu: UnicornCpu, state: RunState, starts: Starts) -> UsualRuns:
    """Make a function that serves usual runs (Runner.usual).

    Args:
        runner: serves all other runs, and goes on where a run turns out to be no usual one.
        cpu: the guest's CPU.
        state: the state of its runs.
        starts: starts the engine for other runs.

    Returns:
        (target, until) -> whether stop() has ended the run; None where the run cannot be a usual
        one, and nothing was done.
    """
    engine = cpu.engine
    start = engine.run
    regs = cpu.regs
    read_pc = cpu.read_pc
    waiting = runner.signals.waiting
    address_bits = ~cpu.arch.pointers.mode_bits
    to_trap = starts.to_trap
    simple = not to_trap and cpu.pair is None  # Starts.is_usual() gives True

    def run(target: int, until: int) -> bool | None:
        """Run the guest to an address, as Runner.run() does it for any run, which says what is
        raised.

        A run that turns out to be no usual one is handed to the Runner, whose answer is returned.

        Args:
            target: address where the run starts, mode bits included.
            until: address where the run ends, mode bits included.

        Returns:
            True where stop() has ended it; False at `until`. None: it cannot be a usual run, and
            nothing was done.
        """
        end = until & address_bits
        if (
            state.depth
            or state.why_stopped
            or state.hits_to_python
            or state.hooked
            or state.skip != -1
            or state.translated_end != end
            or not end
            or waiting
            or starts.dead
        ):
            return None
        state.raised = None
        sink = state.sink
        if sink is not None:
            sink.run_begins(target)
        elif runner.before_run is not None:
            runner.before_run()
        if (
            state.why_stopped
            or state.hooked
            or waiting
            or state.translated_end != end
            or not (simple or starts.is_usual(target, end))
        ):
            return runner.run_announced(target, until)
        mine = True
        state.depth = 1
        try:
            state.failed = None
            state.unfinished = -1
            state.end = end
            engine.stopped = False
            engine.invalid = False
            if to_trap:
                error = starts.unless_at_trap(start(target, 0), end)
            else:
                error = start(target, end)
            if (
                error
                or state.mended
                or state.why_stopped
                or state.hits_to_python
                or state.hooked
                or engine.stopped
                or state.interrupt is not None
                or state.parked is not None
                or regs.target is not None
                or read_pc() != end
            ):
                mine = False
                return runner.run_started(error, until)
            mine = False
            state.end = -1
            state.depth = 0
        finally:
            if mine:  # an exception from elsewhere has struck
                state.end = -1
                runner.leave()
        sink = state.sink
        if sink is not None:
            sink.run_ended()
        return False

    return run
