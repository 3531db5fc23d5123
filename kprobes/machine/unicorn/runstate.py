"""The state of the guest's runs: how deep they are nested, why they are to stop, what was raised in them, and who
listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock, get_ident

from ...errors import AlreadyRegistered
from ...regs import Regs
from .._base import Sink
from .cpu import Cpu
from .host.callsites import FollowedCalls
from .host.hostcode import DISTURBED, NESTED, RESTING

REASONS = "", "signal", "interrupt", "stop", "max_insns", "timeout"  #: why a run stops; of several the last counts
#: seconds: of one look; until nobody is waited for any more; of processor time that takes the run past an instruction
#: that is its own call site. See _let_pass()
PASSING, WAITING, PASSED = 50e-6, 10.0, 1e-3


class RunState:
    """What everybody who runs the guest, or is called by it, shares.

    Attributes:
        sink: who listens. trap, services: the sink's, looked up once.
        regs: the CPU's. exit: the page where runs end; 0: there is none yet.
        depth: nested runs. runs_in: thread of the run; 0: nothing runs.
        left: instructions, of every run that counts them.
        why_stopped: one of REASONS. parked: what was raised inside the engine, for the run to raise.
        skip: call site that was served already, and will be executed again.
        disturbed: the run was stopped, or another one was nested in it, since the last service.
        unfinished: address of a displaced instruction that has raised an interrupt, is to be executed once more, and is
            not, since the run is over; -1: there is none.
        hooked: a CODE hook is on every instruction.
        due: asked before each instruction of a counted run whether an interrupt stops it there; None: none is pending.
        resting: depth of the run in which what is executed is no hit, see executing(); 0: it is one.
    """

    def __init__(self, cpu: Cpu, followed: FollowedCalls) -> None:
        self._engine, self._followed, self.regs, self._read_pc = cpu.engine, followed, cpu.regs, cpu.read_pc
        self.sink: Sink | None = None
        self.trap: Callable[[Regs], bool] | None = None
        self.services: dict[int, Callable[[Regs], None]] = {}
        self.exit = self.depth = self.runs_in = self.resting = 0
        self.left: list[int] = []
        self.why_stopped = ""
        self.disturbed = self.hooked = False
        self.due: Callable[[], bool] | None = None
        self.parked: BaseException | None = None
        self.in_place: dict[int, int] = {}  # instructions that are their own call sites, and their hooks
        self.skip = self.unfinished = -1
        self._clocked = 0  # the thread whose time the clock shows
        self._clock: Callable[[], float] = time.monotonic
        self._waits = False  # the run's thread, for the lock
        self._stopping = RLock()  # held from saying why until the engine knows; reentrant, for Ctrl-C

    def listen(self, sink: Sink | None) -> None:
        """This sink listens from now on; None: nobody. AlreadyRegistered where another one does."""
        if sink is not None and self.sink is not None:
            raise AlreadyRegistered("this machine has a Kprobes already", hint="use that one, or close it first")
        self.sink = sink
        self.trap = None if sink is None else sink.trap
        self.services = {} if sink is None else sink.services

    def ours(self, addr: int) -> bool:
        """True in the sink's own pages."""
        return self.sink is not None and self.sink.ours(addr)

    def begin(self) -> None:
        """This thread runs the guest from now on."""
        self.runs_in = thread = get_ident()
        if self.in_place and thread != self._clocked:
            self._clocked, self._clock = thread, _processor_time()

    def nest(self, by: int) -> None:
        """So many more runs are nested."""
        self.depth += by
        if self.depth > (by > 0):  # else it is the outermost
            self._followed.close(NESTED, self.depth > 1)

    def stop_for(self, reason: str) -> None:
        """Stop the run, from a hook or another thread."""
        mine = get_ident() == self.runs_in
        if mine:
            self._waits = True
        with self._stopping:
            if mine:
                self._waits = False
            self.note_stop(reason)
            self.disturb(True)
            if self.left and not mine:
                return  # who counts stops the run, in front of an instruction
            outside = self._engine.outside
            if mine or outside is None:
                if not mine:
                    self._let_pass()
                self._engine.stop()
            elif self.runs_in:  # else who begins finds why_stopped
                self._engine.stopped = True
                outside.ask()

    def note_stop(self, reason: str) -> None:
        """The run is to stop; who says so tells the engine."""
        self.why_stopped = max(self.why_stopped, reason, key=REASONS.index)

    def may_repeat(self) -> bool:
        """Count an instruction that no hook counts, which is executed once more after its interrupt was handled.

        Returns:
            False where the run is over before it: a stop or a bound has come, or the run was over already and only a
            displaced instruction was to be finished.
        """
        if self.resting:
            return False
        if self.left:
            if self.left[-1] <= 0:
                self.note_stop("max_insns")
            else:
                self.left[-1] -= 1
        return not self.why_stopped

    def take_stop(self) -> str:
        """Why the run is to stop. Whoever asked for it has told the engine: nothing stops the next run."""
        self._waits = True
        with self._stopping:
            self._waits = False
            reason, self.why_stopped = self.why_stopped, ""
            if self._engine.outside is not None:
                self._engine.outside.forget()
        return reason

    def _let_pass(self) -> None:
        """Between saying that the run is to stop, and telling the engine: let who has served a call site without
        knowing that pass.

        Behind a hook the engine looks whether it was stopped, and if so executes the instruction, hook and all, once
        more when it goes on. Whoever comes to a call site from now on knows, and stops the run before anything is
        served. So there is at most one call site that was served and not left yet; however long the run's thread is
        kept from going on there, the engine's pc shows it: the engine writes it before it calls the hooks, and the call
        site's jump writes it again, as it leads to another page. A handler sees to itself at its end (Services), and
        may wait for who stops the run; an owner's hook that does has the whole of WAITING. Behind an instruction that
        is its own call site pc may not be written for long: it has passed when it has used far more processor time.
        """
        end, begun = time.monotonic() + WAITING, self._clock()
        while time.monotonic() < end:
            time.sleep(PASSING)
            if self._waits or not self.runs_in or self.regs.reported is not None:
                break
            # a displaced instruction comes to its end by itself, at its own pace
            if not self.resting and ((pc := self._read_pc()) not in self.services or (
                    pc in self.in_place and self._clock() - begun > PASSED and not self._followed.serving)):
                break

    def disturb(self, on: bool) -> None:
        """The run is disturbed, or no more: services look for themselves, and host code asks Python."""
        self._followed.close(DISTURBED, on)
        self.disturbed = on  # last: who sees that it is not has nothing to undo

    @contextmanager
    def executing(self) -> Iterator[None]:
        """Meanwhile a displaced instruction is finished, or one is executed again: who is served in place has nothing
        to do with it."""
        before, self.resting = self.resting, self.depth
        self._followed.close(RESTING)
        try:
            yield
        finally:
            self.resting = before
            self._followed.close(RESTING, bool(before))

    def accessed(self) -> None:
        """A function has served an access of the guest's, and may have stopped the run: the engine executes that
        instruction once more then, which is no hit where it is its own call site."""
        if self.in_place and (self.why_stopped or self.parked is not None) and (pc := self._read_pc()) in self.in_place:
            self.skip = pc

    def park(self, error: BaseException) -> None:
        """Keep what was raised inside the engine for the run to raise."""
        if self.parked is None:
            self.parked = error
        self._engine.stop()


def _processor_time() -> Callable[[], float]:
    """What this thread has used, in seconds; for other threads to ask. Where the system does not tell, time passes
    instead."""
    try:
        clock = time.pthread_getcpuclockid(get_ident())
    except (AttributeError, OSError):
        return time.monotonic
    return partial(_read, clock)


def _read(clock: int) -> float:
    try:
        return time.clock_gettime(clock)
    except OSError:  # that thread has ended, and another one has its identity
        return time.monotonic()
