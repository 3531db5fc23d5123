"""Runs of the guest: the engine is started again and again until the run is over.

The core is the part of the library that serves probes (kprobes.core); it receives the engine's
reports, as the sink. A displaced instruction is the copy of a probed one that is executed in memory
of the library's: in a slot or a detour.

The engine also stops for faults that a handler then handles, for nested runs, and for signals of
Python's; the run goes on after those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock, get_ident
from typing import NoReturn

from ...errors import GuestFault, GuestTimeout, MachineBusy, ReentryError
from .._base import Busy, Fault
from .bounds import Bounds
from .cpu import UnicornCpu
from .engine import ERRORS
from .faults import HALT, FaultReports
from .runstate import RunState
from .services import Services
from .signals import HeldSignals
from .starts import Starts
from .usualruns import UsualRuns, usual_runs

MAX_DEPTH = 16  # the most nested runs; the engine dies at 64
ROUNDS = 4  # the most starts of the engine to finish one displaced instruction
OUT_OF_TIME = "the time is up"
COUNTED = "max_insns instructions are executed"
_REASONS = {"timeout": OUT_OF_TIME, "max_insns": COUNTED}


class Changing:
    """The machine's lock as changes of probes take it: it refuses in the middle of an instruction.

    Attributes:
        release: () gives the lock back.
    """

    def __init__(self, busy: Busy, check_settled: Callable[[], None]) -> None:
        """Wrap the lock.

        Args:
            busy: the lock.
            check_settled: raises MachineBusy in the middle of an instruction.
        """
        self._busy = busy
        self._check_settled = check_settled
        self.release = busy.release

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock, and return True; False where another thread has it and `blocking` is
        False.

        Raises:
            MachineBusy: the engine is in the middle of an instruction.
        """
        self._check_settled()
        return self._busy.acquire(blocking)


class Runner:
    """Runs the guest. Nested runs end at their own `until`, never by a stop.

    Attributes:
        signals: signals of Python's, whose handlers wait while the engine runs.
        before_run: called before each outermost run while there is no sink; None: nothing is.
        busy: the machine's lock, held while the CPU is used, or probes are changed.
        changing: the same lock, for changes of probes.
        bounds: puts bounds on runs.
        faults: reports faults.
        stopped_by: why the last run that was stopped had to stop (one of runstate.REASONS).
        usual: (target, until) -> what run() returns: serves a run in which nothing unusual happens
            (usual_runs()), and returns None for another one, of which it has done nothing. None:
            run() serves all.
    """

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        services: Services,
        starts: Starts,
        bounds: Bounds,
        faults: FaultReports,
    ) -> None:
        """Prepare; nothing runs.

        Args:
            cpu: runs the guest's code.
            state: of its runs.
            services: of call sites.
            starts: starts the engine.
            bounds: puts bounds on runs.
            faults: reports faults.
        """
        self._cpu = cpu
        self._state = state
        self._services = services
        self._starts = starts
        self.bounds = bounds
        self.faults = faults
        self._devices = cpu.memory.devices
        self._mode_bits = cpu.arch.pointers.mode_bits
        self.before_run: Callable[[], object] | None = None
        self.stopped_by = ""
        self.busy = RLock()
        self.changing = Changing(self.busy, cpu.memory.check_settled)
        self.signals = HeldSignals(partial(state.stop_for, "signal"))
        self.usual: UsualRuns | None = usual_runs(self, cpu, state, starts)
        self._held = False  # hold() has been called: the guest does not run

    def take_cpu(self) -> bool:
        """Take the CPU for the calling thread, until give_cpu_back(), and hold back signal
        handlers. A stop that was asked for before is forgotten.

        Returns:
            True. False within a run of this thread, which has the CPU already: nothing is done, and
            give_cpu_back() must not be called.

        Raises:
            MachineBusy: another thread has the machine's lock, or this one has taken it by hold();
                or a device's function is called now, so that the engine is in the middle of an
                instruction.
            BaseException: a signal's handler has raised it before it was held back; the CPU is not
                taken.
        """
        if self._devices.accessed:
            self._refuse_devices()
        state = self._state
        thread = get_ident()
        if state.runs_in == thread:
            return False
        self.signals.begin(thread)
        if not self.busy.acquire(False):
            self.signals.end()
            self._refuse()
        if self._held:
            self.busy.release()
            self.signals.end()
            self._refuse_held()
        state.begin(thread)
        return True

    def hold(self) -> None:
        """Take the machine's lock while nothing runs: until let_go() no thread, this one included,
        runs the guest, and no other one changes probes.

        Raises:
            MachineBusy: the guest is in a run of this thread; another thread has the lock, or this
                one by hold(); or a device's function is called now.
        """
        if self._devices.accessed:
            self._refuse_devices()
        if self._state.runs_in == get_ident():
            raise MachineBusy(
                "the guest is in a run",
                hint="do it when that has ended: in a handler, call stop() first",
            )
        if not self.busy.acquire(False):
            self._refuse()
        if self._held:
            self.busy.release()
            self._refuse_held()
        self._held = True

    def _refuse_held(self) -> NoReturn:
        """Raise MachineBusy for what is called while its own thread holds the machine."""
        raise MachineBusy(
            "a snapshot is being taken or restored",
            hint="do it when that has ended: not in the handler of a signal that comes meanwhile",
        )

    def _refuse(self) -> NoReturn:
        """Raise MachineBusy for a thread that does not get the lock."""
        raise MachineBusy(
            "another thread runs this machine, or changes its probes",
            hint="wait until it has finished, or make a machine for each thread",
        )

    def _refuse_devices(self) -> NoReturn:
        """Raise MachineBusy for a device's function that would run the guest."""
        raise MachineBusy(
            "a device serves an access: the engine is in the middle of an instruction",
            hint="note what is to be done, and do it when the run has ended, or in a probe's "
            "handler",
        )

    def let_go(self) -> None:
        """Give the lock back that hold() has taken."""
        self._held = False
        self.busy.release()

    def give_cpu_back(self) -> None:
        """Give the CPU back after take_cpu(), and call handlers of signals that came meanwhile.

        Raises:
            BaseException: a handler of a signal has raised it.
        """
        self._state.finish()
        self.busy.release()
        self.signals.end()

    def enter(self, target: int) -> None:
        """Count a run in: an outermost one, or one inside the run under way; tell the core of it.

        Neither is pc set here nor the engine started: the caller does both. The core (the sink) is
        told where the run begins. For an outermost run without a sink, `before_run` is called
        instead. A signal of Python's that waits already will stop an outermost run. An outermost
        run also forgets what a device's function has raised before (RunState.raised), and
        RunState.skip, unless the run begins at that call site; then Python serves hits
        (RunState.leave_hits_to_python).

        Args:
            target: address where the run begins, mode bits included.

        Raises:
            ReentryError: MAX_DEPTH runs are nested already.
        """
        cpu, state = self._cpu, self._state
        if state.depth >= MAX_DEPTH:
            raise ReentryError(
                f"{MAX_DEPTH} guest runs are nested",
                hint="a handler's guest call leads back to that handler",
            )
        if state.depth == 0:
            state.raised = None
            if target & ~cpu.arch.pointers.mode_bits != state.skip:
                state.skip = -1  # the guest was sent elsewhere, and does not execute it again
            else:
                # host code would serve the call site a second time
                state.leave_hits_to_python(on=True)
            if self.signals.waiting:
                state.note_stop("signal")
            if state.sink is not None:
                state.sink.run_begins(target)
            elif self.before_run is not None:
                self.before_run()
        elif state.sink is not None:
            state.sink.guest_sent(target)
        state.nest(1)

    def leave(self) -> None:
        """End the innermost run, however it has ended; the core is told of the outermost one's end.

        Where the innermost run was to stop, the engine is stopped for the run around it, too. After
        a nested run, Python serves the hits of the outer one, which then looks for a stop
        (RunState.leave_hits_to_python). After an outermost run the counting hook is removed, unless
        it may stay.
        """
        cpu, state = self._cpu, self._state
        state.nest(-1)
        if state.hits_to_python or state.depth:
            state.leave_hits_to_python(on=state.depth > 0)
        if state.depth:
            if state.why_stopped or cpu.engine.stopped:
                # the outer run is to stop, too; the engine has forgotten that at this run's start
                cpu.engine.stop()
            return
        if state.hooked:
            self.bounds.ended()
        if state.sink is not None:
            state.sink.run_ended()

    def run(self, target: int, until: int, timeout: float | None, max_insns: int | None) -> bool:
        """Run the guest to an address, or until stop(). Called between take_cpu() and
        give_cpu_back(), also inside a run.

        Args:
            target: address where it starts, mode bits included.
            until: address where the run ends, mode bits included.
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.

        Returns:
            True where stop() or an interrupt of the CPU's has ended it; False at `until`.

        Raises:
            GuestFault: the guest has failed, and no handler has handled that.
            GuestTimeout: a bound has come.
            ReentryError: too many runs are nested.
            Unsupported: the engine cannot run any more, or cannot count instructions beyond a jump.
            BaseException: a hook, a device's function or a handler of a signal has raised it.
        """
        state = self._state
        if state.depth == 0 and timeout is None and max_insns is None:
            if self.usual is not None:
                ended: bool | None = self.usual(target, until)
                if ended is not None:
                    return ended
            self.enter(target)
            return self._run_entered(target, until)
        if state.resting:
            with self._by_itself():
                return self.run(target, until, timeout, max_insns)
        failed, end = state.failed, state.translated_end
        self.enter(target)
        try:
            if timeout is None and max_insns is None:
                return self._loop(target, until)
            deadline = self.bounds.begin(timeout, max_insns)
            try:
                return self._loop(target, until)
            finally:
                self.bounds.end(deadline, max_insns is not None)
        finally:
            self.leave()
            if state.depth:
                self._resume(failed, end)

    def _run_entered(self, target: int, until: int) -> bool:
        """Run the guest in an outermost run without bounds, which enter() has begun, to its end;
        then leave() it. What run() raises is raised.

        The counting hook of an earlier run with bounds is removed first. The lock and signals are
        the caller's.

        Args:
            target: address where it starts, mode bits included.
            until: address where the run ends, mode bits included.

        Returns:
            True where stop() has ended it; False at `until`.
        """
        try:
            if self._state.hooked:
                self.bounds.close()
            return self._loop(target, until)
        finally:
            self.leave()

    def run_announced(self, target: int, until: int) -> bool:
        """Run the guest in a run that `usual` has announced to the core, but has not started, as it
        is no usual one: count the run in, and run it as run() does, to its end.

        Args:
            target: address where it starts, mode bits included.
            until: address where the run ends, mode bits included.

        Returns:
            True where stop() has ended it; False at `until`.
        """
        self._state.nest(1)
        return self._run_entered(target, until)

    def run_started(self, error: int, until: int) -> bool:
        """Run the guest further after `usual` has started the engine, and it has stopped for
        something unusual; leave() the run at its end. What run() raises is raised.

        Args:
            error: the engine's error number; 0: none.
            until: address where the run ends, mode bits included.

        Returns:
            True where stop() has ended it; False at `until`.
        """
        try:
            error = self._starts.go_on_after(error, until & ~self._mode_bits)
            on = self._after(error, until)
            return on if isinstance(on, bool) else self._go_on(on, until)
        finally:
            self.leave()

    def _resume(self, failed: tuple[int, int] | None, end: int) -> None:
        """Put back what belongs to the outer run, which goes on after a nested one:
        RunState.failed, and the address at which the engine ends runs.

        Args:
            failed: RunState.failed of the outer run: (pc, address) of the first access that the
                engine had refused; None: it had refused none.
            end: address where the outer run ends, as the engine's translations know it.
        """
        self._state.failed = failed
        if self._state.translated_end != end:
            self._starts.end_elsewhere(end)

    @contextmanager
    def _by_itself(self) -> Iterator[None]:
        """Put aside, inside a with block, that a displaced instruction is being completed: a
        handler's code runs the guest in between. Instructions are not counted meanwhile, and other
        threads may stop the engine.

        That run is no part of the instruction; what RunState and the engine know of it is put back
        afterwards.
        """
        outside = self._cpu.engine.outside
        state = self._state
        with self.bounds.counting_removed():
            deaf = 0 if outside is None else outside.turn(deaf=0)
            resting = state.resting
            state.resting = 0
            try:
                yield
            finally:
                state.resting = resting
                if outside is not None:
                    outside.turn(deaf)

    def _loop(self, target: int, until: int) -> bool:
        """Start the engine again and again until the run is over.

        Args:
            target: address where it starts, mode bits included.
            until: address where it ends, mode bits included.

        Returns:
            True where stop() has ended it; False at `until`.
        """
        on = self._stretch(target, until)
        return on if isinstance(on, bool) else self._go_on(on, until)

    def _go_on(self, target: int, until: int) -> bool:
        """Start the engine again and again, after its first start in a run, until the run is over.
        RunState.skip is forgotten where it is a call site in the guest's text, and the guest goes
        on elsewhere.

        Args:
            target: address where it goes on, mode bits included.
            until: address where it ends, mode bits included.

        Returns:
            True where stop() has ended it; False at `until`.
        """
        state = self._state
        while True:
            if state.skip in state.in_place and target != state.skip:
                state.skip = -1  # it goes on elsewhere: that call site is not executed again
            on = self._stretch(target, until)
            if isinstance(on, bool):
                return on
            target = on

    def _stretch(self, target: int, until: int) -> int | bool:
        """Start the engine once, and deal with what has stopped it. Where the run is to stop
        already, the engine is not started: only pc is set to `target`.

        Args:
            target: address where it starts, mode bits included.
            until: address where the run ends, mode bits included.

        Returns:
            The address where the guest goes on; or, where the run is over, True if stop() or an
            interrupt of the CPU's has ended it, False if the guest has come to `until`.

        Raises:
            Unsupported: the engine cannot run any more.
            BaseException: whatever _after() raises.
        """
        cpu = self._cpu
        state = self._state
        end = until & ~self._mode_bits
        if self.signals.waiting:
            state.note_stop("signal")
        if state.why_stopped:  # the run is to stop before it has begun
            error = 0
            if cpu.read_pc() != target:
                cpu.write_pc(target)
        else:
            error = self._starts.start(target, end)
        return self._after(error, until)

    def _after(self, error: int, until: int) -> int | bool:
        """Find out why the engine has stopped, and deal with that: faults are reported, signals'
        handlers called, exceptions of hooks raised. A displaced instruction that would be executed
        once more when the run is over is noted in RunState.unfinished.

        Args:
            error: the engine's error number; 0: none.
            until: address where the run ends, mode bits included.

        Returns:
            The address where the guest goes on; or, where the run is over, True if stop() or an
            interrupt of the CPU's has ended it, False if the guest has come to `until`.

        Raises:
            GuestFault: the guest has failed or halted, and no handler has handled that.
            GuestTimeout: a bound has ended the run.
            BaseException: a hook, a device's function or a handler of a signal has raised it.
        """
        cpu = self._cpu
        state = self._state
        end = until & ~self._mode_bits
        if state.failed_registers is not None:
            error = self.faults.of_late_store(error)
        if not (
            error
            or state.why_stopped
            or cpu.engine.stopped
            or state.interrupt is not None
            or state.parked is not None
            or cpu.regs.target is not None
            or cpu.read_pc() != end
        ):
            return False
        if state.parked is not None:
            return self.displaced_or_raise()
        if error or state.interrupt is not None:
            try:
                on = self._failed(error)
            except GuestFault:
                if (raised := state.take_raised()) is not None:
                    raise raised  # noqa: B904  (the guest has failed behind that)
                raise
            if on is not None:
                if state.ours(on) and not state.may_repeat():
                    state.unfinished = on & ~cpu.arch.pointers.mode_bits
                return on
        stopped = cpu.engine.stopped or bool(state.why_stopped)
        if state.why_stopped and self._come_to_rest():
            return True
        if (moved := self.take_move()) is not None:
            return moved
        if stopped and cpu.read_pc() != end:
            return cpu.arch.pointers.same_mode(cpu.regs, cpu.read_pc())
        self._arrived(until)
        return False

    def take_move(self) -> int | None:
        """Return the address where a signal's handler has sent the guest, forget it, and tell the
        core of it.

        Called while the guest rests. pc is not written here.

        Returns:
            The address, mode bits included; None: the handler has not sent the guest anywhere.
        """
        moved = self._cpu.regs.target
        sink = self._state.sink
        if moved is not None:
            self._cpu.regs.at(None)
            if sink is not None:
                sink.guest_sent(moved)
        return moved

    def _failed(self, error: int) -> int | None:
        """Report the fault by which the engine has stopped, if it was one; the interrupt that
        RunState has noted is forgotten.

        Args:
            error: the engine's error number; 0: none.

        Returns:
            The address where the guest goes on, as a handler has handled the fault; None: it was no
            fault.

        Raises:
            GuestFault: no handler has handled it.
        """
        meanings = self._cpu.guest.faults
        interrupt = self._state.take_interrupt()
        if interrupt is not None:
            number, pc = interrupt
            # Hazard: an access that failed first may be noticed instructions later, and is what
            # counts then. And on Power a floating point exception that is not enabled stays noted
            # in the engine, which reports it where the next fetch fails.
            told = number in meanings.unaligned or number in meanings.fetches
            if told or ERRORS.get(error, ("",))[0] not in ("read", "write", "fetch"):
                return self.faults.report(pc, self.faults.interrupt(number, pc))
        if not error:
            return None
        pc = self.faults.settle_at_failed_instruction(error)
        return self.faults.report(pc, self.faults.error(error, pc))

    def displaced_or_raise(self) -> int:
        """Raise the exception that is parked (RunState.park), unless an interrupt is noted
        (RunState.interrupt) and the core handles that.

        Called when the engine is at rest and an exception is parked. Usually a hook has raised it;
        then no interrupt is noted, and the core is not asked. An engine whose owner hooks no
        interrupts stops at them with an error, and the library parks the same error; it also notes
        the interrupt if that was in a displaced instruction, and the core is asked about it first,
        as about a fault there.

        Returns:
            The address where the guest goes on, as a handler has handled the fault. The parked
            exception is forgotten then.

        Raises:
            BaseException: the parked exception; one of a device's function (RunState.raised), which
                comes first; what a handler has raised.
        """
        interrupt = self._state.take_interrupt()
        if interrupt is not None:
            on, _ = self.faults.ask(interrupt[1], self.faults.interrupt(*interrupt))
            if on is not None:
                self._state.take_parked()
                return on
        self.raise_parked()

    def raise_parked(self) -> NoReturn:
        """Raise what a hook has raised inside the engine (RunState.parked); an exception of a
        device's function (RunState.raised) comes first. Both are forgotten.

        pc is put right before: to the call site whose service has failed (Services.failed_at), if
        one has; from a displaced instruction that was to be executed once more back to its original
        address.

        Raises:
            BaseException: always.
        """
        cpu, state = self._cpu, self._state
        if self._services.failed_at is not None:
            cpu.write_pc(self._services.failed_at)
            self._services.failed_at = None
        if state.unfinished >= 0 and state.unfinished == cpu.read_pc():
            self.faults.go_home()
        parked = state.take_parked()
        raise state.take_raised() or parked

    def _arrived(self, until: int) -> None:
        """Check that the run has ended at `until`, and set pc to it: some guests stop beside it.

        Args:
            until: address where the run ends, mode bits included.

        Raises:
            GuestHalted: the guest has halted. It has if pc is another one, though this guest's pc
                is exact (Runs.until_pc), or one of the two addresses is the library's exit page.
        """
        cpu, state = self._cpu, self._state
        pc = cpu.read_pc()
        if pc == until & ~cpu.arch.pointers.mode_bits:
            return
        # pc is exact where the guest shows it so, and at the exit page, which a jump leads to: it
        # has stopped somewhere else, so it has halted
        if cpu.guest.runs.until_pc or state.exit in (pc, until & ~cpu.arch.pointers.mode_bits):
            self.faults.fail(pc, Fault(access=HALT, trapnr=5, text="the guest halted"))
        cpu.write_pc(until)

    def _come_to_rest(self) -> bool:
        """Complete a displaced instruction after a stop, and call the handlers of signals that
        came. The note of the stop is removed; `stopped_by` becomes its reason, unless this raises.
        A displaced instruction that would have to be executed once more is given up, and pc goes
        back to its original address, unless the stop was for a signal. Where it is the time of an
        outer run that is up, the note stays: that run is to stop, too.

        Returns:
            True where stop(), or an interrupt of the CPU's, has ended the run; False where the run
            goes on.

        Raises:
            GuestTimeout: a bound has ended it.
            GuestFault: the displaced instruction has failed, and no handler has handled that.
            BaseException: a device's function or a handler of a signal has raised it. Where the run
                is nested and it was a signal's handler, the outer run is to stop, too.
        """
        cpu, state = self._cpu, self._state
        reason = state.take_stop()
        unfinished = self.finish_displaced()
        if unfinished and reason != "signal":
            self.faults.go_home()
            unfinished = False
        if state.depth > 1 and reason == "timeout" and state.timed_out < state.depth:
            state.why_stopped = reason  # the outer run is to end as well
        try:
            self.deliver(unfinished)
        except BaseException:
            state.take_stop()  # one that was asked for meanwhile is not to stop the next run
            state.raised = None
            if state.depth > 1:
                state.note_stop("signal")
            raise
        if (raised := state.take_raised()) is not None:
            raise raised
        if reason in _REASONS:
            raise GuestTimeout(_REASONS[reason], pc=cpu.read_pc())
        self.stopped_by = reason
        return reason in ("stop", "interrupt")

    def deliver(self, unfinished: bool) -> None:
        """Call the handlers of the signals that came. What one of them raises is raised.

        Args:
            unfinished: the guest is in a displaced instruction that is to be executed once more.
                Handlers see pc at its original address. The guest goes on in the slot, unless they
                raise or send it elsewhere: then the core gives the hit up, and pc becomes the
                original address, or where they have sent the guest.
        """
        regs = self._cpu.regs
        sink = self._state.sink
        if not unfinished or sink is None:
            self.signals.deliver()
            return
        pc = self._cpu.read_pc()
        regs.at(sink.home_of(pc))
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
            sink.displaced_left(regs, pc)

    def finish_displaced(self) -> bool:
        """Execute the displaced instruction in which the guest stands to its end.

        The guest stands in one where pc is in the core's pages, since nothing else is executed
        there; elsewhere nothing is done. A stop() that comes meanwhile stays noted; other stops are
        forgotten.

        Returns:
            True where the guest still stands at the displaced instruction, which is to be executed
            once more: its interrupt or its fault was handled. False where the instruction is at its
            end, a handler of its fault has sent the guest elsewhere, there was none, or ROUNDS
            starts of the engine have not finished it.

        Raises:
            GuestFault: the instruction has faulted, and no handler has handled the fault.
            BaseException: what a hook has raised meanwhile.
        """
        cpu = self._cpu
        state = self._state
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
                    error = self._starts.start_outside_of_run(
                        cpu.arch.pointers.same_mode(cpu.regs, pc), 0
                    )
                # a stop() that came meanwhile counts, and so does what was raised
                if (reason := state.take_stop()) in ("stop", "raised"):
                    state.note_stop(reason)
                if state.parked is not None:
                    self.raise_parked()
                on = self._failed(error)
                if on is not None and state.ours(on):
                    return True
        return False  # stopped again and again: it goes on from where it is
