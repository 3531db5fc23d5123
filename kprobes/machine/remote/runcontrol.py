"""Running a remote guest: stops become reports to the core (kprobes/core, which serves probes), and
signals that are the guest's own reach the guest. A slot is memory in which a copy of a probed
instruction is executed.

The phases of runs, and what leads from one to another, are a table (runstate.py).

Resuming takes these steps, in this order: the maps of programs are written to the guest
(`DetourHooks.going`); CPUs that handlers have moved are sent there; the threads' lock is given back
(`ThreadLock.go_on`); signals that wait are delivered; registers are written.

What a stop means is decided in this order (`_answer`): the program's end; a system call that was to
be reported; a thread that stopped with the lock; the second thread; a breakpoint of the core's; a
program that asks the host; a late interrupt; a fault of the guest's; any other signal, which is
delivered when the guest goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...arch._base import Arch
from ...errors import GuestFault, GuestTimeout, MachineBusy, ReentryError, RemoteError
from ...regs import Regs
from ...symbols import Symbols
from .accesses import FAULTS, Accesses
from .interrupts import RemoteInterrupts, RunningGuest
from .pendingbranches import PendingBranches
from .runstate import RemoteRunState
from .sites import DetourHooks
from .stopreplies import StopReply, end_of
from .target import RemoteTarget
from .threadlock import TRAPS, ThreadLock
from .threads import RemoteThreads
from .trapsintext import TrapsInText

DEEPEST = 16  #: the most runs that may be nested
LONGEST = 1 << 25  #: the longest timeout, in seconds (a year): what clocks and sockets take
SIGTRAP, SIGSTOP = 5, 19
STEPS = 64  #: the most steps that a thread makes to leave code of the core's


class RunControl:
    """Makes a guest run, and answers its stops.

    Attributes:
        state: the runs' state.
        breakpoints: addresses of the core's breakpoints.
        busy: the machine's lock, which is also held to change probes.
    """

    def __init__(
        self,
        state: RemoteRunState,
        target: RemoteTarget,
        threads: RemoteThreads,
        *,
        arch: Arch,
        symbols: Symbols,
        lock: ThreadLock,
        breakpoints: set[int],
        detours: DetourHooks,
        running: RunningGuest,
        status: Callable[[], int | None],
    ) -> None:
        """Prepare; nothing runs.

        Args:
            state: the runs' state; it is changed here and by `RemoteInterrupts` alone.
            target: the stub.
            threads: the guest's threads, and their registers.
            arch: the guest's architecture.
            symbols: the machine's.
            lock: by which threads take turns.
            breakpoints: addresses of the core's breakpoints, a set that `lock` changes.
            detours: code in the guest that leads to programs.
            running: how the running guest is stopped, and what it prints.
            status: returns the exit status of a process whose stub has ended with it; None: it has
                none.
        """
        self.state = state
        self._target = target
        self._threads = threads
        self._arch = arch
        self._symbols = symbols
        self._lock = lock
        self._detours = detours
        self._console = running.console
        self._system = running.system
        self._status = status
        self.breakpoints = breakpoints
        self.busy = target.link.busy
        self._interrupts = RemoteInterrupts(
            state,
            target,
            threads,
            lock=lock,
            detours=detours,
            running=running,
            note=self._note,
        )
        self._signals = self._interrupts.signals  # injected code's, too
        self._accesses = Accesses(arch, target)
        self._branches = PendingBranches(target, arch)
        self._traps = TrapsInText(target, threads, breakpoints)

    # --- runs

    def run(
        self,
        start: int | None,
        end: int | None,
        timeout: float | None,
        max_insns: int | None,
        *,
        call: bool = False,
    ) -> None:
        """Run the guest until its pc is `end`, stop() is called, or the program ends.

        The core is told before the run and, of the outermost one, after it. Exceptions of handlers
        end the run and go to the caller. Where the program has ended, or the connection is lost,
        all probes are GONE afterwards.

        Args:
            start: address, mode bits included, to which the current thread's pc is set; None: where
                the thread stands.
            end: address, without mode bits; None: nowhere.
            timeout: seconds; None: no bound.
            max_insns: instructions that the current thread may execute, step by step; None: no
                bound.
            call: a function is called: only the current thread runs, and its faults end the run.

        Raises:
            GuestFault: the program was ended by a signal, or a call has failed.
            GuestTimeout: the time is over, or the instructions are executed.
            ReentryError: too many runs are nested.
            RemoteError: the program has ended before, or the stub is gone.
            Unsupported: `max_insns` is given, and there are several threads.
        """
        self.check_running()
        if max_insns is not None:
            self._lock.check_countable()
        if self.state.depth >= DEEPEST:
            raise ReentryError(
                f"{DEEPEST} guest runs are nested",
                hint="a handler's guest call leads back to that handler",
            )
        if start is not None:
            self._threads.start(self._lock.address_to_move_to(start))
        if self.state.sink is not None:
            first = self._regs.pc if start is None else start
            if self.state.depth:
                self.state.sink.guest_sent(first)
            else:
                self.state.sink.run_begins(first)
        deadline = None if timeout is None else time.monotonic() + min(timeout, LONGEST)
        self.state.enter(call=call)
        try:
            self._serve_until(end, deadline, max_insns)
        except RemoteError:
            self._over()
        finally:
            self.state.leave()
            try:
                self._lock.stand(self._regs, outermost=not self.state.depth)
            finally:
                if self._target.link.closed:
                    self._lose()
                if self.state.depth == 0 and self.state.sink is not None:
                    self.state.sink.run_ended()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold `busy` inside a with block: no other thread runs the guest, or changes probes,
        meanwhile. Where the connection is closed at the block's end, all probes are GONE, and
        threads and breakpoints are forgotten.

        Raises:
            MachineBusy: another thread does.
        """
        self._target.link.take()
        try:
            yield
        finally:
            if self._target.link.closed:
                self._lose()
            self.busy.release()

    def check_idle(self) -> None:
        """Check that no run is under way.

        Raises:
            MachineBusy: a run is.
        """
        if self.state.depth:
            raise MachineBusy(
                "the guest is in a run",
                hint="stop() it, and close the machine when the run has ended",
            )

    def stop(self) -> None:
        """Have the innermost run end after the report that is being served. Any thread may call
        this.
        """
        self.state.ask_to_stop()

    def _serve_until(self, end: int | None, deadline: float | None, max_insns: int | None) -> None:
        """Resume the guest and answer its stops until the run is over: its pc is `end`, stop() was
        called, or the program has ended.

        Time and instructions are not looked at while a thread is in the library's code without the
        lock: its hit is finished first.

        Args:
            end: address where the run ends; None: it ends at no address.
            deadline: time.monotonic() at which the run ends; None: no bound.
            max_insns: the most instructions; None: no bound.

        Raises:
            GuestTimeout: a bound has come.
        """
        done = 0  # instructions
        alone = self._threads.name if self.state.alone else ""
        while self.state.exit_status is None and not self.state.stopping:
            pc = self._regs.pc
            over = ""
            if deadline is not None and time.monotonic() > deadline:
                over = "the time is over"
            elif max_insns is not None and done >= max_insns:
                over = f"{max_insns} instructions are executed"
            if over and (self._lock.held or not self._ours(pc)):
                raise GuestTimeout(over, pc=self._lock.onward if self._lock.held else pc)
            if max_insns is not None and pc in self.breakpoints:
                self._trap(pc)
                # an instruction that was simulated counts, though no step is made for it
                done += not self._ours(pc) and not self._ours(self._regs.pc)
                continue
            # at a hardware breakpoint: told to continue, OpenOCD 0.12 makes a step, reports that as
            # a stop, and runs on nevertheless
            slot = self.state.at_hardware or self._in_slot(pc)
            stop = self._advance(deadline, alone, step=max_insns is not None or slot)
            if (
                max_insns is not None
                and stop.kind == "signal"
                and self._regs.pc != end
                and self._branches.at(self._regs.pc, before=pc)
            ):
                stop = self._advance(deadline, alone, step=True)
            done += (
                max_insns is not None
                and stop.kind == "signal"
                and self._progress(pc, self._regs.pc)
            )
            if stop.kind == "signal" and end is not None and self._lock.arrived(self._regs.pc, end):
                return
            self._answer(stop, stepping=max_insns is not None, slot=slot)

    def _in_slot(self, pc: int) -> bool:
        """Return True where `pc` is in a slot, in a whole machine: the guest is then stepped.

        A step is made without interrupts. Else another task could come to a probe while the hit of
        this task is under way.
        """
        return (
            self._system
            and self._ours(pc)
            and any(0 < at - pc <= self._arch.max_body for at in self.breakpoints)
        )

    def _progress(self, before: int, after: int) -> bool:
        """Return True if a step has executed an instruction of the guest's own, which counts for
        `max_insns`.

        A step in a slot counts unless it ends at the probed address itself: that is a jump back.
        Elsewhere in the library's code no step counts.

        Args:
            before: pc before the step.
            after: pc behind it.
        """
        home = None if self.state.sink is None else self.state.sink.home_of(before)
        return home != after if home is not None else not self._ours(before)

    def _advance(self, deadline: float | None, alone: str, step: bool) -> StopReply:
        """Resume the guest, or one thread of it, and return the next stop.

        Before that the guest gets what is to be written to it: maps of programs, CPUs' registers
        that were set, changes of text, the threads' lock, and the first of the signals that wait.
        Where the current thread is about to make the second one, threads take turns first.
        Afterwards the thread that has stopped is the current one, and it is noted whether it is at
        a hardware breakpoint. An exception other than TimeoutError (Ctrl-C) stops the guest, and
        goes to the caller.

        Args:
            deadline: time.monotonic() at which the run is over; None: no bound.
            alone: name of the thread that runs alone; "": all run.
            step: True: the current thread makes one step.

        Raises:
            GuestTimeout: the deadline has come; the guest was stopped.
        """
        if self._lock.due:
            self._second(step)
        self._detours.going()
        self._threads.send(self._ours)
        writes = self._lock.go_on()
        thread, signal = self._signals.pop(0) if self._signals else (self._threads.name, 0)
        at = self._threads.flush(going_on=not (signal or step))
        self.state.resumed()
        self._target.resume(
            signal=signal,
            step=step,
            thread=thread if signal or step else alone,
            at=at,
            writes=writes,
        )
        try:
            stop = self._target.wait(
                None if deadline is None else deadline - time.monotonic(), self._console
            )
        except TimeoutError:
            self._halt()
            if self.state.exit_status is None:
                raise GuestTimeout("the time is over", pc=self._regs.pc) from None
            return end_of(self.state.exit_status)
        except BaseException:  # Ctrl-C, or a signal handler that raises: stop the guest first
            if not self._target.link.closed:
                self._halt()
            raise
        stop = self._note(stop, sure=not step and not self._interrupts.late)
        self.state.at_hardware = (
            stop.kind == "signal" and self._regs.pc in self._target.stops.hardware
        )
        return stop

    def check_running(self) -> None:
        """Raise RemoteError where the program has ended."""
        if self.state.exit_status is not None:
            raise RemoteError("the program has ended", hint="start another machine")

    def errand(self, thread: str, *, step: bool = False) -> StopReply:
        """Let one thread execute code for the library, to its next stop, outside of run(); return
        that stop, which is not answered here.

        In a whole machine the other CPUs run as well, except in a step: this one may wait for them.
        Afterwards the thread that has stopped is the current one.

        Args:
            thread: as the stub names it.
            step: True: it makes one step.

        Raises:
            RemoteError: it does not stop, or the program has ended.
        """
        self._threads.flush()
        self.state.resumed()
        self._target.resume(thread=thread if step or not self._system else "", step=step)
        try:
            stop = self._target.wait(self._target.link.timeout, self._console)
        except TimeoutError:
            self._halt()
            raise RemoteError(
                "the guest's system does not answer", hint="try again elsewhere"
            ) from None
        stop = self._note(stop)
        if stop.kind != "signal":
            raise RemoteError("the program has ended", hint="start another machine")
        return stop

    def finish_hits(self) -> None:
        """Have every thread that stands in a slot, or at a trap of the core's, finish its hit
        there, by single steps, at most 64 of a thread (STEPS). Breakpoints on the way are reported
        to the core, so handlers run, and other stops are answered as in a run. Called between runs;
        the current thread changes.
        """
        for regs in self._threads.known:
            for _ in range(STEPS):
                self._threads.current = regs.cpu
                pc = regs.live_pc()
                if not self._ours(pc):
                    break
                if pc in self.breakpoints:
                    self._trap(pc)
                    continue
                stop = self.errand(self._threads.name, step=True)
                if stop.code != SIGTRAP:
                    self._answer(stop, slot=True)

    def take_back_interrupts(self) -> None:
        """Let the guest run until no interrupt is on its way to it, before the library detaches. No
        probe may be left.
        """
        self._interrupts.take_back()

    def keep(self, stop: StopReply) -> bool:
        """Deal with a stop that comes while code of the library is executed (errand()), and that
        may not be the end of that code.

        In a whole machine the stop is answered as in a run: it may be a hit of another task. In a
        process a signal is kept, and delivered when the guest goes on; an interrupt that arrives
        late is dropped.

        Args:
            stop: the stub's reply.

        Returns:
            False in a process for a trap's stop (SIGTRAP) that is none of a system call or a late
            interrupt: it may be the end of the errand's step. Else True.
        """
        if self._system:
            self._answer(stop)
        elif self._interrupts.arrives(stop):
            return True
        elif stop.code == SIGTRAP:
            return stop.call is not None
        elif stop.code:
            self._signals.append((stop.thread, stop.code))
        return True

    def _note(self, stop: StopReply, sure: bool = False) -> StopReply:
        """Note a stop: its thread is the current one from now on; or the program has ended, and
        `exit_status` is set.

        Args:
            stop: the stub's reply.
            sure: True: the guest ran freely, and no interrupt was on its way
                (TrapsInText.as_breakpoint_stop).

        Returns:
            The stop; one at a trap of the core's own in the form of a stop at a breakpoint, with
            the thread's pc set back to the trap.
        """
        if stop.kind == "signal":
            self.state.stopped()
            self._threads.stopped(stop.thread or self._threads.name)
            self._lock.stopped(self._threads.name, stop.call)
            return self._traps.as_breakpoint_stop(stop, sure)
        self.state.ended(stop.code if stop.kind == "exited" else -stop.code)
        self._threads.forget()
        return stop

    def _halt(self) -> None:
        """Stop the running guest; where its second thread is about to be made, make threads take
        turns.
        """
        with self.state.halted():
            self._interrupts.halt(self.breakpoints)
        if self._lock.due and self.state.exit_status is None:
            self._second(stepping=False)

    def _second(self, stepping: bool) -> None:
        """Make threads take turns: the current one is about to make the second.

        Args:
            stepping: True in a run that counts instructions, which then cannot go on.

        Raises:
            Unsupported: `stepping` is True.
        """
        self._lock.second(self.state.sink, lambda thread: self.errand(thread, step=True), self.keep)
        if stepping:
            self._lock.check_countable()

    # --- stops

    @property
    def _regs(self) -> Regs:
        """Registers of the current thread."""
        return self._threads.regs[self._threads.current]

    def _ours(self, pc: int) -> bool:
        """Return True if `pc` is in code of the library's: in a slot, or in a detour."""
        return self.state.sink is not None and (
            self.state.sink.owns(pc) or self._detours.inside(pc)
        )

    def _answer(self, stop: StopReply, stepping: bool = False, slot: bool = False) -> None:
        """Do what a stop asks for.

        A breakpoint or a fault is reported to the core, a program's request to the host is
        answered, a signal is noted to be delivered, a late interrupt is dropped, and the program's
        end is told to the core. Where the second thread is about to be made, threads take turns
        from then on. The order is in the module's docstring. The run is not resumed here; only
        where Python has ended it in a detour, the thread steps out of that. What handlers raise
        goes to the caller, as does GuestFault of _fault() and _ended().

        Args:
            stop: the stop; its thread is the current one.
            stepping: True: the run makes steps, so that a breakpoint at pc is reported before the
                next step, not here.
            slot: True: the stop is the end of a step out of a slot.
        """
        if stop.kind != "signal":
            self._ended(stop)
        elif stop.call is not None:
            if not self._lock.due:
                self._detours.ending()
        elif (pc := self._regs.pc) in self._lock.stops and stop.code in TRAPS:
            self._lock.serve(self.state.sink)
        elif pc in self._lock.starts and stop.code == SIGTRAP:
            self._lock.begin(self.state.sink, stepping)
        elif pc in self.breakpoints and stop.code == SIGTRAP:
            if not stepping:  # else _serve_until() reports it before the next step
                self._trap(pc)
        elif stop.code == SIGTRAP and self._detours.asks(pc):
            self._threads.move(self._detours.answer(self._regs))
            try:
                self._detours.answered()
            except BaseException:
                self._leave_detour()
                raise
            if self.state.stopping:
                self._leave_detour()
        elif self._interrupts.arrives(stop):
            pass
        elif stop.code in FAULTS and not (stop.code == SIGTRAP and (stepping or slot)):
            self._fault(stop)
        elif stop.code not in (0, SIGTRAP, SIGSTOP):
            self._deliver(stop)

    def _leave_detour(self) -> None:
        """Have the current thread leave the code of a detour, in which Python has ended the run, by
        single steps. Requests of the detour's programs are answered on the way, so Python may be
        called again.
        """
        thread = self._threads.name
        while self.state.exit_status is None and self._detours.inside(self._regs.pc):
            if self._detours.asks(self._regs.pc):  # what is called now is served, and may not raise
                self._threads.move(self._detours.answer(self._regs))
                self._detours.answered()
            self.errand(thread, step=True)

    def _trap(self, pc: int) -> None:
        """Report to the core that the current thread has come to its breakpoint at `pc`.

        A trap that the core does not know is handled as a fault of the guest's. Where the
        instruction there is nullified (PA-RISC), it is stepped over instead, and nothing is
        reported.
        """
        if self._threads.nullifies and not self._ours(pc) and self._threads.pass_over():
            return  # nothing is executed there: no hit
        if self.state.sink is None or not self._report(pc, self.state.sink.trap):
            self._fault(StopReply("signal", SIGTRAP, self._threads.name))  # the guest's own

    def _report(self, pc: int, ask: Callable[[Regs], bool]) -> bool:
        """Ask the core about a stop of the current thread, and move the thread to where the core
        sends it.

        Args:
            pc: where the guest has stopped.
            ask: (registers) -> True if the core has handled the stop; a method of the core.

        Returns:
            What `ask` has returned.

        Raises:
            RemoteError: the core does not know the thread, as it has no CPU left. Nothing is asked.
        """
        self._threads.check_cpu()
        regs = self._regs
        cpu = self._threads.current
        regs.at(pc)
        try:
            return ask(regs)
        finally:
            self._threads.current = cpu
            if regs.target is not None:
                self._threads.move(self._lock.address_to_move_to(regs.target))
            regs.at(None)

    def _fault(self, stop: StopReply) -> None:
        """Report to the core a signal that an instruction has caused; unless a handler handles it,
        have it delivered when the guest goes on.

        Args:
            stop: the stop by that signal, one of FAULTS; its thread is the current one.

        Raises:
            GuestFault: no handler handles it in a call or a nested run, or it is a trap, which no
                program expects.
        """
        pc = self._regs.pc
        fault = self._accesses.fault(stop.code, self._regs, pc)
        sink = (
            self.state.sink if self._threads.is_cpu else None
        )  # a thread that is none is in no hit
        home = None if sink is None else sink.home_of(pc)
        if sink is not None and self._report(pc, lambda regs: sink.fault(regs, fault)):
            return
        if self.state.alone or stop.code == SIGTRAP:
            if home is not None:
                self._threads.move(home)  # a fault in a delay slot is not where the hit began
            home = self._regs.pc
            if self._branches.leave(home, lambda: self.errand(self._threads.name, step=True)):
                self._threads.move(home)
            raise GuestFault(
                fault.text,
                address=fault.address,
                pc=home,
                access=fault.access,
                symbol=self._symbols.describe(home),
                number=stop.code,
            )
        self._deliver(stop)

    def _deliver(self, stop: StopReply) -> None:
        """Note the signal of a stop, to be delivered when the guest goes on.

        The guest may be ended by that signal, so the maps of programs in the guest are read now.
        """
        self._detours.ending()
        self._signals.append((stop.thread, stop.code))

    def _lose(self) -> None:
        """Forget the threads and breakpoints, and tell the core that all guest memory is gone, with
        all its probes.
        """
        self.breakpoints.clear()
        self._threads.forget()
        if self.state.sink is not None:
            self.state.sink.about_to_unmap(0, 1 << self._arch.bits)

    def _over(self) -> None:
        """Note that the program has ended, where the connection was lost by that.

        Called while a RemoteError is handled, which is raised again if the program has not ended.

        Raises:
            GuestFault: a signal has ended the program, or it has ended in a call or a nested run.
        """
        stop = self._target.end()
        if stop is None and self._target.link.left:
            status = self._status()
            stop = None if status is None else end_of(status)
        if stop is None:
            raise  # noqa: PLE0704 - in an except clause
        self._note(stop)
        self._ended(stop)

    def _ended(self, stop: StopReply) -> None:
        """Tell the core that the guest is gone: the program has ended.

        Args:
            stop: the last stop: "exited" or "killed".

        Raises:
            GuestFault: a signal has ended the program, or it has ended in a call or a nested run.
        """
        self._lose()
        if stop.kind == "killed":
            raise GuestFault(
                f"the program was ended by signal {stop.code}", access="engine", number=stop.code
            )
        if self.state.alone:
            raise GuestFault(f"the program has ended with status {stop.code}", access="engine")
