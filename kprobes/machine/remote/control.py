"""Running a remote guest: stops become the core's reports, and signals that are the guest's own reach it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...arch._base import Arch
from ...errors import GuestFault, GuestTimeout, MachineBusy, ReentryError, RemoteError
from ...regs import Regs
from ...symbols import Symbols
from .._base import Sink
from .accesses import FAULTS, Accesses
from .halting import Halting, Interrupt
from .reasons import Stop, end_of
from .sites import Detours
from .target import Target
from .threads import Threads
from .traps import Traps
from .turns import TRAPS, Turns
from .waiting import Waiting

DEEPEST, LONGEST = 16, 1 << 25  #: nested runs; seconds, a year: what clocks and sockets take
SIGTRAP, SIGSTOP = 5, 19
STEPS = 64  #: that a thread makes in code of the core's, at most


class Control:
    """Makes a guest run, and answers its stops.

    Attributes:
        sink: the core. breakpoints: address of each of the core's. exit_status: of the program, once it has ended;
            negative: the signal that ended it. depth: how many runs are nested.
    """

    def __init__(self, target: Target, threads: Threads, arch: Arch, symbols: Symbols, interrupt: Interrupt,
                 console: Callable[[bytes], None], system: bool, status: Callable[[], int | None]) -> None:
        """system: the guest is a whole machine, with interrupts. status: of a process whose stub has gone with it."""
        self._target, self._threads, self._arch, self._symbols, self._system = target, threads, arch, symbols, system
        self._console, self._status, self._detours = console, status, Detours()
        self._halting = Halting(target, threads, interrupt, console, system, self._note)
        self._accesses, self._waiting = Accesses(arch, target), Waiting(target, arch)
        self.sink: Sink | None = None
        self.exit_status: int | None = None
        self.depth, self.breakpoints, self.busy = 0, set[int](), target.link.busy  # who changes probes holds that, too
        self._stopping = self._alone = self._by_hardware = False  # the last: what stopped was a hardware breakpoint
        self._traps, self._signals = Traps(target, threads, self.breakpoints), self._halting.signals  # errands', too
        self.turns: Turns  # who makes this sets it

    def detours(self, detours: Detours) -> None:
        """There are some."""
        self._detours = detours

    # --- runs

    def run(self, start: int | None, end: int | None, timeout: float | None, max_insns: int | None, *,
            call: bool = False) -> None:
        """Run from `start` (None: where it stands) until pc is `end`, stop(), or the program's end.

        call: of a function: the current thread alone, and what it does wrong ends the run. Raises GuestFault,
        GuestTimeout, ReentryError, RemoteError.
        """
        if self.exit_status is not None:
            raise RemoteError("the program has ended", hint="start another machine")
        if max_insns is not None:
            self.turns.check()
        if self.depth >= DEEPEST:
            raise ReentryError(f"{DEEPEST} guest runs are nested",
                               hint="a handler's guest call leads back to that handler")
        if start is not None:
            self._threads.start(self.turns.way(start))
        if self.sink is not None:
            (self.sink.sent if self.depth else self.sink.starting)(self._regs.pc if start is None else start)
        deadline = None if timeout is None else time.monotonic() + min(timeout, LONGEST)
        outer, self._alone, self._stopping = self._alone, call or self.depth > 0, False
        self.depth += 1
        try:
            self._serve_until(end, deadline, max_insns)
        except RemoteError:
            self._over()
        finally:
            self.depth -= 1
            self._alone, self._stopping = outer, False
            try:
                self.turns.stand(self._regs, outermost=not self.depth)
            finally:
                if self._target.link.closed:
                    self._lose()
                if self.depth == 0 and self.sink is not None:
                    self.sink.ended()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else runs the guest, or changes probes, meanwhile. MachineBusy where somebody does."""
        self._target.link.take()
        try:
            yield
        finally:
            if self._target.link.closed:
                self._lose()
            self.busy.release()

    def check_idle(self) -> None:
        """MachineBusy in a run."""
        if self.depth:
            raise MachineBusy("the guest is in a run", hint="stop() it, and close the machine when the run has ended")

    def stop(self) -> None:
        """End the run after the report that is being served."""
        self._stopping = True

    def _serve_until(self, end: int | None, deadline: float | None, max_insns: int | None) -> None:
        done = 0
        alone = self._threads.name if self._alone else ""
        while self.exit_status is None and not self._stopping:
            pc = self._regs.pc
            over = ("the time is over" if deadline is not None and time.monotonic() > deadline else
                    f"{max_insns} instructions are executed" if max_insns is not None and done >= max_insns else "")
            if over and (self.turns.held or not self._ours(pc)):
                raise GuestTimeout(over, pc=self.turns.onward if self.turns.held else pc)
            if max_insns is not None and pc in self.breakpoints:
                self._trap(pc)
                done += not self._ours(pc) and not self._ours(self._regs.pc)  # simulated: no step is made for it
                continue
            # made to run on from a hardware breakpoint OpenOCD 0.12 makes a step, tells of that stop, and runs on
            slot = self._by_hardware or self._in_slot(pc)
            stop = self._advance(deadline, alone, step=max_insns is not None or slot)
            if max_insns is not None and stop.kind == "signal" and self._regs.pc != end and self._waiting.at(
                    self._regs.pc, before=pc):
                stop = self._advance(deadline, alone, step=True)
            done += max_insns is not None and stop.kind == "signal" and self._progress(pc, self._regs.pc)
            if stop.kind == "signal" and end is not None and self.turns.arrived(self._regs.pc, end):
                return
            self._answer(stop, stepping=max_insns is not None, slot=slot)

    def _in_slot(self, pc: int) -> bool:
        """True where a step leads out of a slot. A whole machine makes it without interrupts: else another task could
        come to a probe while this one's hit is under way."""
        return self._system and self._ours(pc) and any(0 < at - pc <= self._arch.max_body for at in self.breakpoints)

    def _progress(self, before: int, after: int) -> bool:
        """True where a step executed an instruction of the guest's own: not one that leads back from a slot."""
        home = None if self.sink is None else self.sink.home(before)
        return home != after if home is not None else not self._ours(before)

    def _advance(self, deadline: float | None, alone: str, step: bool) -> Stop:
        """Let the guest run, or one thread of it make a step, until something stops it."""
        if self.turns.due:
            self._second(step)
        self._detours.going()
        self._threads.send(self._ours)
        self.turns.go_on()
        thread, signal = self._signals.pop(0) if self._signals else (self._threads.name, 0)
        at = self._threads.flush(going_on=not (signal or step))
        self._target.resume(signal=signal, step=step, thread=thread if signal or step else alone, at=at)
        try:
            stop = self._target.wait(None if deadline is None else deadline - time.monotonic(), self._console)
        except TimeoutError:
            self._halt()
            if self.exit_status is None:
                raise GuestTimeout("the time is over", pc=self._regs.pc) from None
            return end_of(self.exit_status)
        except BaseException:  # Ctrl-C, a signal handler that raises: the guest stands still before that goes on
            if not self._target.link.closed:
                self._halt()
            raise
        stop = self._note(stop, sure=not step and not self._halting.late)
        self._by_hardware = stop.kind == "signal" and self._regs.pc in self._target.stops.hardware
        return stop

    def errand(self, thread: str, *, step: bool = False) -> Stop:
        """Let a thread run for us (in a kernel others too: it may wait) to a stop, or make a step. RemoteError."""
        self._threads.flush()
        self._target.resume(thread=thread if step or not self._system else "", step=step)
        try:
            stop = self._target.wait(self._target.link.timeout, self._console)
        except TimeoutError:
            self._halt()
            raise RemoteError("the guest's system does not answer", hint="try again elsewhere") from None
        stop = self._note(stop)
        if stop.kind != "signal":
            raise RemoteError("the program has ended", hint="start another machine")
        return stop

    def finish_hits(self) -> None:
        """Have every thread that is in code of the core's leave it: in a slot, or at a trap. Between runs."""
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
        """Let the guest run until no interrupt of ours is on its way. Nothing is probed any more."""
        self._halting.take_back()

    def other(self, stop: Stop) -> bool:
        """A stop in an errand that is not its end: a signal, for later; in a whole machine some task's hit. False: it
        may be the end of a step."""
        if self._system:
            self._answer(stop)
        elif self._halting.arrives(stop):
            return True
        elif stop.code == SIGTRAP:
            return stop.call is not None
        elif stop.code:
            self._signals.append((stop.thread, stop.code))
        return True

    def _note(self, stop: Stop, sure: bool = False) -> Stop:
        """What the stop is, and whose registers are looked at from now on. sure: see Traps.told()."""
        if stop.kind == "signal":
            self._threads.stopped(stop.thread or self._threads.name)
            self.turns.stopped(self._threads.name, stop.call)
            return self._traps.told(stop, sure)
        self.exit_status = stop.code if stop.kind == "exited" else -stop.code
        self._threads.forget()
        return stop

    def _halt(self) -> None:
        """Stop a running guest."""
        self._halting.halt(self.breakpoints, self._detours, self.turns)
        if self.turns.due and self.exit_status is None:
            self._second(stepping=False)

    def _second(self, stepping: bool) -> None:
        """The current thread is about to make the second."""
        self.turns.second(self.sink, lambda thread: self.errand(thread, step=True), self.other)
        if stepping:
            self.turns.check()

    # --- stops

    @property
    def _regs(self) -> Regs:
        return self._threads.regs[self._threads.current]

    def _ours(self, pc: int) -> bool:
        return self.sink is not None and (self.sink.ours(pc) or self._detours.inside(pc))

    def _answer(self, stop: Stop, stepping: bool = False, slot: bool = False) -> None:
        if stop.kind != "signal":
            self._ended(stop)
        elif stop.call is not None:
            if not self.turns.due:
                self._detours.ending()
        elif (pc := self._regs.pc) in self.turns.stands and stop.code in TRAPS:
            self.turns.serve(self.sink)
        elif pc in self.turns.starts and stop.code == SIGTRAP:
            self.turns.begin(self.sink, stepping)
        elif pc in self.breakpoints and stop.code == SIGTRAP:
            if not stepping:  # else before the next step: this one may have ended there by itself
                self._trap(pc)
        elif stop.code == SIGTRAP and self._detours.asks(pc):
            self._threads.move(self._detours.answer(self._regs))
        elif self._halting.arrives(stop):
            pass
        elif stop.code in FAULTS and not (stop.code == SIGTRAP and (stepping or slot)):
            self._fault(stop)
        elif stop.code not in (0, SIGTRAP, SIGSTOP):
            self._deliver(stop)

    def _trap(self, pc: int) -> None:
        if self._threads.nullifies and not self._ours(pc) and self._threads.pass_over():
            return  # nothing is executed there: no hit
        if self.sink is None or not self._report(pc, self.sink.trap):
            self._fault(Stop("signal", SIGTRAP, self._threads.name))  # the guest's own

    def _report(self, pc: int, ask: Callable[[Regs], bool]) -> bool:
        """Ask the core about a stop at `pc`, and send the guest where it says."""
        regs, cpu = self._regs, self._threads.current
        regs.at(pc)
        try:
            return ask(regs)
        finally:
            self._threads.current = cpu
            if regs.target is not None:
                self._threads.move(self.turns.way(regs.target))
            regs.at(None)

    def _fault(self, stop: Stop) -> None:
        """A signal that an instruction caused: the core's, else the program's own, else the end of a call."""
        pc = self._regs.pc
        fault = self._accesses.fault(stop.code, self._regs, pc)
        home = None if (sink := self.sink) is None else sink.home(pc)
        if sink is not None and self._report(pc, lambda regs: sink.fault(regs, fault)):
            return
        if self._alone or stop.code == SIGTRAP:
            if home is not None:
                self._threads.move(home)  # in a delay slot that is not where the hit began
            home = self._regs.pc
            if self._waiting.leave(home, lambda: self.errand(self._threads.name, step=True)):
                self._threads.move(home)
            raise GuestFault(fault.text, address=fault.address, pc=home, access=fault.access,
                             symbol=self._symbols.describe(home), number=stop.code)
        self._deliver(stop)

    def _deliver(self, stop: Stop) -> None:
        """Have the guest get the signal of a stop when it goes on. It may end by it: what programs have counted there
        is read now."""
        self._detours.ending()
        self._signals.append((stop.thread, stop.code))

    def _lose(self) -> None:
        """The guest is gone, with all that was probed in it."""
        self.breakpoints.clear()
        self._threads.forget()
        if self.sink is not None:
            self.sink.unloading(0, 1 << self._arch.bits)

    def _over(self) -> None:
        """The connection is lost: with the program, which ended while a thread was looked at; else raises that."""
        stop = self._target.end()
        if stop is None and (status := self._status() if self._target.link.left else None) is not None:
            stop = end_of(status)
        if stop is None:
            raise  # noqa: PLE0704 - in an except clause
        self._note(stop)
        self._ended(stop)

    def _ended(self, stop: Stop) -> None:
        self._lose()
        if stop.kind == "killed":
            raise GuestFault(f"the program was ended by signal {stop.code}", access="engine", number=stop.code)
        if self._alone:
            raise GuestFault(f"the program has ended with status {stop.code}", access="engine")
