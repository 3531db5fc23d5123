"""An engine that was made elsewhere, and whose owner goes on calling uc.emu_start()."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic

import unicorn

from .._base import Fault
from .._ends import ending_at
from .cpu import UnicornCpu
from .engine import ERRORS, INTR
from .faults import FaultReports
from .runner import Runner
from .runstate import RunState
from .selftest import hear
from .starts import Starts

_INTERRUPT_CALLBACK = getattr(
    sys.modules.get("unicorn.unicorn_py3.unicorn"), "HOOK_INTR_CFUNC", INTR
)


class EngineOwner:
    """The library's part in the runs of an attached engine's owner, who calls uc.emu_start()."""

    def __init__(
        self, cpu: UnicornCpu, state: RunState, starts: Starts, runner: Runner, faults: FaultReports
    ) -> None:
        """Prepare; emu_start() stays the owner's until shadow().

        Args:
            cpu: registers and engine.
            state: of the guest's runs.
            starts: knows whether the engine can still run.
            runner: does for a run what the engine does not.
            faults: reports faults.
        """
        self._cpu = cpu
        self._state = state
        self._starts = starts
        self._runner = runner
        self._faults = faults
        self._stays = False  # emu_start() stays shadowed as long as the engine lives

    @property
    def hooks_interrupts(self) -> bool:
        """Whether a hook of the owner's gets interrupts of the guest."""
        callbacks = self._cpu.engine.uc._callbacks.values()
        return any(
            type(c).__name__ == "HOOK_INTR_CFUNC" or isinstance(c, _INTERRUPT_CALLBACK)
            for c in callbacks
        )

    def shadow(self) -> None:
        """Put a method in place of the owner's uc.emu_start(), unless that was done: probes are hit
        in the owner's runs from then on. `engine.outside` is set, by which other threads stop the
        engine.

        The method raises what handlers raise, and reports faults of displaced instructions at their
        original addresses.
        """
        if "emu_start" in self._cpu.engine.uc.__dict__:
            return
        m, start = self._cpu, self._cpu.engine.uc.emu_start

        def emu_start(begin: int, until: int, timeout: int = 0, count: int = 0) -> None:
            """Run the guest as the engine's emu_start() does, with probes served and reports
            delivered.

            Args:
                begin: address where it starts, mode bits included.
                until: address where it ends.
                timeout: microseconds; 0: no bound.
                count: the most instructions; 0: no bound.

            Raises:
                UcError: the guest has failed, and no handler has handled that.
                MachineBusy: another thread uses the machine.
                BaseException: a handler, or a device's function, has raised it.
            """
            outermost = self._runner.take_cpu()
            outer = m.regs.reported, m.regs.target
            try:
                m.regs.at(None)
                m.memory.executable_pages.clear()  # the owner maps memory as he likes
                # not known is how many instructions are left when a run goes on
                self._runner.signals.hasty = not count
                self._run(start, begin, until, timeout, count)
            finally:
                self._runner.signals.hasty = True
                m.regs.reported, m.regs.target = outer
                if outermost:
                    self._runner.give_cpu_back()

        m.engine.uc.__dict__["emu_start"] = emu_start
        hear(m.engine, m.guest, m.arch)

    def unshadow(self) -> None:
        """Give the owner the engine's own emu_start() back, and end `engine.outside`. Nothing is
        done after shadow_for_good().
        """
        if self._stays:
            return
        self._cpu.engine.uc.__dict__.pop("emu_start", None)
        outside, self._cpu.engine.outside = self._cpu.engine.outside, None
        if outside is not None:
            outside.end()

    def shadow_for_good(self) -> None:
        """Put a method in place of uc.emu_start() for as long as the engine lives: devices raise,
        too, and not only handlers.
        """
        self._stays = True
        self.shadow()

    def _run(
        self, start: Callable[..., None], begin: int, until: int, timeout: int, count: int
    ) -> None:
        """Run the guest for emu_start(), in as many starts of the engine as it takes.

        Args:
            start: the engine's own emu_start().
            begin: address where it starts, mode bits included.
            until: address where it ends.
            timeout: microseconds of all starts together; 0: no bound.
            count: the most instructions of each start; 0: no bound.

        Raises:
            ReentryError: too many runs are nested.
            BaseException: what _stretch() raises.
        """
        deadline = monotonic() + timeout / 1e6
        self._runner.enter(begin)
        try:
            with ending_at(
                self._state.sink, self._cpu.arch, until & ~self._cpu.arch.pointers.mode_bits
            ):
                while (on := self._stretch(start, begin, until, timeout, count)) is not None:
                    begin = on
                    timeout = timeout and max(1, int((deadline - monotonic()) * 1e6))
        finally:
            self._runner.leave()

    def _stretch(
        self, start: Callable[..., None], begin: int, until: int, timeout: int, count: int
    ) -> int | None:
        """Start the engine once, and find out why it has stopped.

        Args:
            start: the engine's own emu_start().
            begin: address where it starts, mode bits included.
            until: address where it ends.
            timeout: microseconds; 0: no bound.
            count: the most instructions; 0: no bound.

        Returns:
            The address where the guest goes on; None where the run is over.

        Raises:
            UcError: the guest has failed, and no handler has handled that.
            Unsupported: the engine cannot run any more.
            BaseException: a handler, a hook or a device's function has raised it.
        """
        m, state = self._cpu, self._state
        self._starts.check_alive()
        m.engine.starts()
        state.unfinished = -1
        try:
            start(begin, until, timeout, count)
            m.engine.ended(0)
        except unicorn.UcError as error:
            if m.engine.ended(error.errno):
                m.engine.stopped = True  # it ended somewhere on its way
            elif state.parked is None:
                on = self._report(error)
                if on is None:
                    if (raised := state.take_raised()) is not None:
                        raise raised  # noqa: B904  (the guest has failed behind that)
                    raise
                return on
        if state.parked is not None:
            return self._runner.displaced_or_raise()
        reason = state.take_stop()
        # the engine counts displaced instructions, too
        unfinished = state.unfinished == m.read_pc() if count else self._runner.finish_displaced()
        if unfinished and reason != "signal":
            self._faults.go_home()
            unfinished = False
        if reason == "signal":
            self._runner.deliver(unfinished)
            if (moved := self._runner.take_move()) is not None:
                return moved
        if (raised := state.take_raised()) is not None:
            raise raised
        # by the end of an inner run, or for that alone
        if m.engine.stopped and reason in ("", "signal"):
            return m.arch.pointers.same_mode(m.regs, m.read_pc())
        return None

    def _report(self, error: unicorn.UcError) -> int | None:
        """Report to the core a fault that has ended emu_start(), and return where the guest goes
        on. What a handler raises is raised.

        Behind a failed fetch the engine is kept usable first, or `dead` (Starts).

        Args:
            error: what the engine's binding has raised.

        Returns:
            The address where the guest goes on, as a handler has handled the fault; None: none has.
        """
        m = self._cpu
        access, signal = ERRORS.get(error.errno, ("engine", 11))
        self._starts.forget_failed_fetch(access)
        return self._faults.ask(m.read_pc(), Fault(access=access, trapnr=signal, text=str(error)))[
            0
        ]
