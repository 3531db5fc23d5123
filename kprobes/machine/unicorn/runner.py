"""Running the engine until an end, past handled faults and stops that belong to other runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock, get_ident
from typing import NoReturn

from ...errors import GuestTimeout, MachineBusy, ReentryError
from .._base import Busy, Fault
from .bounds import Bounds
from .cpu import Cpu
from .engine import ERRORS
from .faults import HALT, Faults
from .runstate import RunState
from .services import Services
from .signals import HeldSignals
from .starts import Starts

MAX_DEPTH = 16  # nested runs; the engine dies at 64
ROUNDS = 4  # starts until a displaced instruction must have finished
OUT_OF_TIME = "the time is up"
COUNTED = "max_insns instructions are executed"
_REASONS = {"timeout": OUT_OF_TIME, "max_insns": COUNTED}


class Changing:
    """The machine's lock, as who changes probes has it: never in the middle of an instruction, MachineBusy."""

    def __init__(self, busy: Busy, check_settled: Callable[[], None]) -> None:
        self._busy, self._check_settled, self.release = busy, check_settled, busy.release

    def acquire(self, blocking: bool = True) -> bool:
        self._check_settled()
        return self._busy.acquire(blocking)


class Runner:
    """Runs the guest. Nested runs end at their own `until`, never by a stop.

    Attributes:
        stopped_by: why the last run that was stopped was (runstate.REASONS).
        signals: Python's signal handlers, held meanwhile. before_run, busy: see machine._base.Machine.
    """

    def __init__(self, cpu: Cpu, state: RunState, services: Services, starts: Starts, bounds: Bounds,
                 faults: Faults) -> None:
        self._cpu, self._state, self._services, self._starts, self.bounds, self.faults = (cpu, state, services, starts,
            bounds, faults)
        self._devices = cpu.memory.devices
        self.before_run: Callable[[], object] | None = None
        self.stopped_by = ""
        self.busy = RLock()  # held while somebody uses the CPU, or changes probes
        self.changing = Changing(self.busy, cpu.memory.check_settled)
        self.signals = HeldSignals(partial(state.stop_for, "signal"))

    def begin(self) -> bool:
        """Somebody is about to use the CPU, and says finish() when that is over. False: within a run, there is nothing
        to finish."""
        if self._devices.accessed:
            self._refuse_devices()
        if self._state.runs_in == get_ident():
            return False
        self.signals.begin()
        if not self.busy.acquire(False):
            self.signals.end()
            self._refuse()
        self._state.begin()
        return True

    def hold(self) -> None:
        """Nobody runs the guest until let_go(): nor does who calls this."""
        if self._devices.accessed:
            self._refuse_devices()
        if self._state.runs_in == get_ident():
            raise MachineBusy("the guest is in a run",
                              hint="do it when that has ended: in a handler, call stop() first")
        if not self.busy.acquire(False):
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise MachineBusy("another thread runs this machine, or changes its probes",
                          hint="wait until it has finished, or make a machine for each thread")

    def _refuse_devices(self) -> NoReturn:
        raise MachineBusy("a device serves an access: the engine is in the middle of an instruction",
                          hint="note what is to be done, and do it when the run has ended, or in a probe's handler")

    def let_go(self) -> None:
        """Undo hold()."""
        self.busy.release()

    def finish(self) -> None:
        """Undo begin(). Raises what signal handlers raise."""
        state = self._state
        state.runs_in = 0
        self.busy.release()
        self.signals.end()

    def enter(self, target: int) -> None:
        """A run begins."""
        cpu, state = self._cpu, self._state
        if state.depth >= MAX_DEPTH:
            raise ReentryError(f"{MAX_DEPTH} guest runs are nested",
                               hint="a handler's guest call leads back to that handler")
        if state.depth == 0:
            if state.why_stopped:
                state.take_stop()
            if target & ~cpu.arch.pointers.mode_bits != state.skip:
                state.skip = -1  # a run that was to execute that call site again has failed
            else:
                state.disturb(True)  # host code would serve it once more
            if self.signals.waiting:
                state.why_stopped = "signal"
            if state.sink is not None:
                state.sink.starting(target)
            elif self.before_run is not None:
                self.before_run()
        elif state.sink is not None:
            state.sink.sent(target)
        state.nest(1)

    def leave(self) -> None:
        """It has ended, whatever by."""
        cpu, state = self._cpu, self._state
        state.nest(-1)
        if state.disturbed or state.depth:
            state.disturb(state.depth > 0)
        if state.depth:
            if state.why_stopped or cpu.engine.stopped:
                # the outer run, too: it is not told twice, or this one's last start has made the engine forget
                cpu.engine.stop()
            return
        self.bounds.ended()
        if state.sink is not None:
            state.sink.ended()

    def run(self, target: int, until: int, timeout: float | None, max_insns: int | None) -> bool:
        """Run until `until`. True: or until somebody stopped it. Between begin() and finish()."""
        if self._state.resting:
            with self._by_itself():
                return self.run(target, until, timeout, max_insns)
        failed, end = self._starts.failed, self._starts.ends_at
        self.enter(target)
        try:
            if timeout is None and max_insns is None:
                if self._state.depth == 1:
                    self.bounds.close()
                return self._loop(target, until)
            deadline = self.bounds.begin(timeout, max_insns)
            try:
                return self._loop(target, until)
            finally:
                self.bounds.end(deadline, max_insns is not None)
        finally:
            self.leave()
            if self._state.depth:
                self._resume(failed, end)

    def _resume(self, failed: tuple[int, int] | None, end: int) -> None:
        """The outer run goes on: what has failed in it, and where it ends, is as before."""
        self._starts.failed = failed
        if self._starts.ends_at != end:
            self._starts.end_elsewhere(end)

    @contextmanager
    def _by_itself(self) -> Iterator[None]:
        """For a run of a handler that is called while a displaced instruction is finished: it is no part of that."""
        outside, state = self._cpu.engine.outside, self._state
        with self.bounds.away():
            deaf, resting = 0 if outside is None else outside.turn(deaf=0), state.resting
            state.resting = 0
            try:
                yield
            finally:
                state.resting = resting
                if outside is not None:
                    outside.turn(deaf)

    def _loop(self, target: int, until: int) -> bool:
        """Run until `until`, resuming after handled faults and after stops that belonged to an inner run. True:
        somebody stopped it."""
        while not isinstance(on := self._stretch(target, until), bool):
            target = on
            if self._state.skip in self._state.in_place and target != self._state.skip:
                self._state.skip = -1  # another instruction was executed once more
        return on

    def _stretch(self, target: int, until: int) -> int | bool:
        """One stretch of a run; returns where to go on, or whether it was stopped."""
        cpu, state = self._cpu, self._state
        end = until & ~cpu.arch.pointers.mode_bits
        if self.signals.waiting:
            state.note_stop("signal")
        if state.why_stopped and cpu.read_pc() != target:  # before it has begun
            cpu.write_pc(target)
        error = 0 if state.why_stopped else self._starts.start(target, end)
        if state.parked is not None:
            return self.displaced_or_raise()
        if (error or self._starts.interrupt is not None) and (on := self._failed(error)) is not None:
            if state.ours(on) and not state.may_repeat():
                state.unfinished = on & ~cpu.arch.pointers.mode_bits
            return on
        stopped = cpu.engine.stopped or bool(state.why_stopped)
        if state.why_stopped and self._come_to_rest():
            return True
        if (moved := self.moved()) is not None:
            return moved
        if stopped and cpu.read_pc() != end:
            return cpu.arch.pointers.same_mode(cpu.regs, cpu.read_pc())
        self._arrived(until)
        return False

    def moved(self) -> int | None:
        """Where a signal's handler has sent the guest, which is at rest; None: nowhere."""
        moved, sink = self._cpu.regs.target, self._state.sink
        if moved is not None:
            self._cpu.regs.at(None)
            if sink is not None:
                sink.sent(moved)
        return moved

    def _failed(self, error: int) -> int | None:
        """The engine has ended by this error, or by an interrupt: report that. Where to go on; None: by neither."""
        meanings = self._cpu.guest.faults
        interrupt, self._starts.interrupt = self._starts.interrupt, None
        if interrupt is not None:
            number, pc = interrupt
            # by an interrupt, whatever the error says; else the access failed first: the engine notices some only
            # instructions later
            told = number in meanings.unaligned or number in meanings.fetches
            if told or ERRORS.get(error, ("",))[0] not in ("read", "write"):
                return self.faults.report(pc, self.faults.interrupt(number, pc))
        if not error:
            return None
        pc = self.faults.where()
        return self.faults.report(pc, self.faults.error(error, pc))

    def displaced_or_raise(self) -> int:
        """raise_parked(); but an interrupt in a displaced instruction, on an engine whose owner hooks none, is a fault
        at home. Returns where to go on if a handler has handled it."""
        interrupt, self._starts.interrupt = self._starts.interrupt, None
        if interrupt is not None:
            on, _ = self.faults.ask(interrupt[1], self.faults.interrupt(*interrupt))
            if on is not None:
                self._state.parked = None
                return on
        self.raise_parked()

    def raise_parked(self) -> NoReturn:
        """Raise what was raised inside the engine."""
        cpu, state = self._cpu, self._state
        if self._services.failed_at is not None:
            cpu.write_pc(self._services.failed_at)
            self._services.failed_at = None
        if state.unfinished >= 0 and state.unfinished == cpu.read_pc():
            self.faults.go_home()
        parked, state.parked = state.parked, None
        assert parked is not None
        raise parked

    def _arrived(self, until: int) -> None:
        cpu, state = self._cpu, self._state
        pc = cpu.read_pc()
        if pc == until & ~cpu.arch.pointers.mode_bits:
            return
        # a jump leads to the exit: pc is right there
        if cpu.guest.runs.until_pc or state.exit in (pc, until & ~cpu.arch.pointers.mode_bits):
            self.faults.fail(pc, Fault(access=HALT, trapnr=5, text="the guest halted"))
        cpu.write_pc(until)

    def _come_to_rest(self) -> bool:
        """After a stop: let a displaced instruction finish, then say why. False: for the sake of signals; the run goes
        on."""
        cpu, state = self._cpu, self._state
        reason = state.take_stop()
        unfinished = self.finish_displaced()
        if unfinished and reason != "signal":
            self.faults.go_home()
            unfinished = False
        if state.depth > 1 and reason == "timeout" and self.bounds.timed_out < state.depth:
            state.why_stopped = reason  # the outer run is to end as well
        try:
            self.deliver(unfinished)
        except BaseException:
            state.take_stop()  # whoever asked meanwhile is not to stop the next run
            if state.depth > 1:
                state.note_stop("signal")
            raise
        if reason in _REASONS:
            raise GuestTimeout(_REASONS[reason], pc=cpu.read_pc())
        self.stopped_by = reason
        return reason in ("stop", "interrupt")

    def deliver(self, unfinished: bool) -> None:
        """Call the handlers of the signals that came. What one of them raises is raised.

        Args:
            unfinished: the guest stands in a displaced instruction that is to be executed once more. Handlers see it at
                home, and it goes on where it is unless they raise, or send it elsewhere.
        """
        regs, sink = self._cpu.regs, self._state.sink
        if not unfinished or sink is None:
            self.signals.deliver()
            return
        pc = self._cpu.read_pc()
        regs.at(sink.home(pc))
        try:
            self.signals.deliver()
        except BaseException:
            target = regs.target
            self.faults.go_home()
            if target is not None:
                regs.go(target)
            raise
        if regs.target is None:
            regs.at(None)
        else:
            sink.abandon(regs, pc)

    def finish_displaced(self) -> bool:
        """Let a displaced instruction come to its end. The guest rests in the sink's pages only if it does not leave
        them: it has no business there but displaced instructions.

        Returns:
            True where the instruction is to be executed once more, as its interrupt or its fault was handled. The guest
            is still there.
        """
        cpu, state = self._cpu, self._state
        if not state.ours(cpu.read_pc()):
            return False
        with state.executing():
            for _ in range(ROUNDS):
                pc = cpu.read_pc()
                if not state.ours(pc):
                    return False
                if state.unfinished == pc:
                    return True
                with self.bounds.none_but_ours():
                    error = self._starts.aside(cpu.arch.pointers.same_mode(cpu.regs, pc), 0)
                if state.take_stop() == "stop":  # another one, meanwhile
                    state.note_stop("stop")
                if state.parked is not None:
                    self.raise_parked()
                on = self._failed(error)
                if on is not None and state.ours(on):
                    return True
        return False  # stopped again and again: it goes on from where it is
