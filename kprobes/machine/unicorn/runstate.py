"""The state of the guest's runs, and the table of their phases.

The core is the part of the library that serves probes (kprobes.core); it receives the engine's
reports, as the sink. A call site is an address in memory of the library's, to which a jump in the
guest's text leads; when the guest comes there, a service (a function of the core's) is called,
without a trap.

A run is one execution of guest code up to its `end`: a call, run(), or an attached engine's
emu_start(). Handlers may begin further runs inside it (they nest). `Runner` drives the phases,
`Starts` starts the engine, `Bounds` counts and watches the time; all three keep what they know
about a run here.

| phase | what holds |
|---|---|
| FREE | no thread uses the CPU |
| TAKEN | a thread uses the CPU (`runs_in`), and no run is under way |
| RUNNING | guest code executes, or a handler that it has reached (`depth` runs are nested) |
| STOPPING | the innermost run is to stop (`why_stopped`), and the engine has been told |
| COMPLETING | one instruction executes that is no hit: displaced, or failed before (`resting`) |
| RAISING | a hook has raised (`parked`), and the engine was told to stop: the run raises that |

| event | method | asked by |
|---|---|---|
| TAKE | begin() | `Runner`, on the thread that will run the guest and holds the machine's lock |
| GIVE | finish() | `Runner`, on the same thread |
| ENTER, LEAVE | nest() | `Runner`, on the same thread |
| STOP | stop_for(), note_stop() | hooks, bounds, devices, signals, other threads |
| STOP | keep_for_end_of_instruction() | devices and watchpoints, in the middle of an instruction |
| TAKE_STOP | take_stop() | `Runner` and `Bounds`, on the run's thread, when the engine is at rest |
| PARK | park() | hooks, on the run's thread, inside the engine: nothing can be raised through it |
| UNPARK | take_parked() | `Runner`, when the engine is at rest |
| COMPLETE, COMPLETED | executing() | `Runner` and `Faults`, when the engine is at rest |

TABLE says which event leads where. The phase is not stored: it follows from the fields, of which
the hooks read one or two at every hit. tests/machine/test_run_states.py holds what runs do against
TABLE.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import RLock, get_ident
from typing import Any

from unicorn import unicorn_const as const

from ...errors import AlreadyRegistered
from ...regs import Regs
from .._base import Sink
from .cpu import UnicornCpu
from .engine import CODE
from .host.callsites import FollowedCalls
from .host.hostcode import DISTURBED, NESTED, RESTING

#: Why a run stops. Of several reasons the one that comes last here counts.
REASONS = "", "signal", "interrupt", "stop", "max_insns", "timeout", "raised"
# A thread that stops the run waits until it is not at a call site (RunState._let_pass):
PASSING = 50e-6  #: seconds between two looks at the run's pc
WAITING = 10.0  #: seconds until it stops the engine in any case
#: Seconds of processor time after which the run is surely past an instruction that is its own call
#: site.
PASSED = 1e-3


class RunPhase(enum.Enum):
    """Phases of a CPU's runs; the value says what holds."""

    FREE = "no thread uses the CPU"
    TAKEN = "a thread uses the CPU, and no run is under way"
    RUNNING = "guest code executes"
    STOPPING = "the innermost run is to stop"
    COMPLETING = "one instruction executes that is no hit"
    RAISING = "a hook has raised, and the run is about to"


class RunEvent(enum.Enum):
    """Events that change the phase of a CPU's runs."""

    TAKE = "a thread is going to run the guest"
    GIVE = "that thread has finished"
    ENTER = "a run begins, inside the one under way if there is one"
    LEAVE = "the innermost run ends"
    STOP = "something asks the run to stop"
    TAKE_STOP = "the engine is at rest, and the run learns why it was to stop"
    PARK = "a hook raises"
    UNPARK = "the engine is at rest; the run raises the same, or a handler has dealt with it"
    COMPLETE = "an instruction is about to be executed that is no hit"
    COMPLETED = "that instruction has been executed"


_P, _E = RunPhase, RunEvent

#: (phase, event) -> phases that may follow. LEAVE and COMPLETED lead back to what was interrupted;
#: STOP and PARK may arrive at any time, and the phase shown is the most urgent one: RAISING,
#: COMPLETING, STOPPING.
TABLE: dict[tuple[RunPhase, RunEvent], tuple[RunPhase, ...]] = {
    (_P.FREE, _E.TAKE): (_P.TAKEN,),
    (_P.FREE, _E.STOP): (_P.FREE,),
    (_P.FREE, _E.TAKE_STOP): (_P.FREE,),  # one that came while nobody used the CPU: forgotten
    (_P.TAKEN, _E.GIVE): (_P.FREE,),
    (_P.TAKEN, _E.ENTER): (_P.RUNNING, _P.STOPPING),
    (_P.TAKEN, _E.STOP): (_P.TAKEN,),  # the run that begins finds it
    (_P.TAKEN, _E.TAKE_STOP): (_P.TAKEN,),  # an interrupt's, which is taken between two stretches
    (_P.RUNNING, _E.ENTER): (_P.RUNNING,),
    (_P.RUNNING, _E.LEAVE): (_P.RUNNING, _P.COMPLETING, _P.TAKEN),
    (_P.RUNNING, _E.STOP): (_P.STOPPING,),
    (_P.RUNNING, _E.TAKE_STOP): (_P.RUNNING,),
    (_P.RUNNING, _E.PARK): (_P.RAISING,),
    (_P.RUNNING, _E.COMPLETE): (_P.COMPLETING,),
    (_P.STOPPING, _E.ENTER): (_P.STOPPING,),
    (_P.STOPPING, _E.LEAVE): (_P.STOPPING, _P.TAKEN),
    (_P.STOPPING, _E.STOP): (_P.STOPPING,),
    (_P.STOPPING, _E.TAKE_STOP): (_P.RUNNING,),
    (_P.STOPPING, _E.PARK): (_P.RAISING,),
    (_P.STOPPING, _E.COMPLETE): (_P.COMPLETING,),
    (_P.COMPLETING, _E.ENTER): (_P.RUNNING, _P.STOPPING, _P.COMPLETING),
    (_P.COMPLETING, _E.STOP): (_P.COMPLETING,),
    (_P.COMPLETING, _E.TAKE_STOP): (_P.COMPLETING,),
    (_P.COMPLETING, _E.PARK): (_P.RAISING,),
    (_P.COMPLETING, _E.COMPLETE): (_P.COMPLETING,),
    (_P.COMPLETING, _E.COMPLETED): (_P.COMPLETING, _P.RUNNING, _P.STOPPING),
    (_P.RAISING, _E.ENTER): (_P.RAISING,),
    (_P.RAISING, _E.LEAVE): (_P.RAISING,),
    (_P.RAISING, _E.STOP): (_P.RAISING,),
    (_P.RAISING, _E.TAKE_STOP): (_P.RAISING,),
    (_P.RAISING, _E.PARK): (_P.RAISING,),  # the first one counts
    (_P.RAISING, _E.UNPARK): (_P.RUNNING, _P.STOPPING, _P.COMPLETING),
    (_P.RAISING, _E.COMPLETED): (_P.RAISING,),
}


class RunState:
    """The state of one CPU's runs.

    Attributes:
        sink: the core, which receives reports; None: there is no Kprobes.
        trap: the sink's method of that name, looked up once.
        services: the sink's attribute, call site -> service, looked up once.
        regs: the CPU's registers.
        exit: address of the page that outermost functions return to; 0: there is none yet.
        runs_in: identity of the thread that uses the CPU; 0: none does.
        depth: number of nested runs.
        end: address where the innermost run ends; -1: nowhere.
        translated_end: address where runs end, as the engine's translations know it.
        why_stopped: why the innermost run is to stop, one of REASONS; "": it is not.
        timed_out: depth of the run whose time is up; 0: no run's is.
        parked: the exception that a hook has raised, for the run to raise; None: there is none.
        raised: the exception that a device's function, or a watchpoint's handler, has raised in the
            middle of an instruction, for the run to raise where it stops; None: there is none.
        left: instructions that may still execute, one number for every run that counts them.
        due: called before each instruction of a counted run; True: an interrupt stops it there.
            None: no interrupt is pending.
        own_in_row: instructions in a row that the guest has executed in the core's own pages.
        hooked: every instruction has the hook that counts.
        interrupt: (number, pc) of the guest's own interrupt that ended the last start of the
            engine; None: none did.
        failed: (pc, address) of the first access that the engine has refused in this run
            (Runs.settle), or store (Faults.late_stores); None: it has refused none.
        failed_registers: Engine.save() at the store of `failed` (Faults.late_stores); None: it is
            not kept.
        mended: an unaligned access was served; the engine reports an error nevertheless.
        trial: the engine executes something that is no part of the run: to see why an instruction
            failed, or to get rid of a pending branch.
        resting: depth of the run that is COMPLETING; 0: none is.
        unfinished: address of a displaced instruction that has raised an interrupt when the run was
            over: it is to be executed once more if the guest goes on. -1: there is none.
        hits_to_python: Python serves all hits: the run was stopped, or another one was nested in
            it, since the last service.
        skip: call site that was served, and will be executed once more; -1: there is none.
        in_place: instruction that is its own call site -> its hook.
    """

    def __init__(self, cpu: UnicornCpu, followed: FollowedCalls) -> None:
        """Begin in the phase FREE: no thread uses the CPU.

        Args:
            cpu: the CPU.
            followed: has the gate of hits that host code serves, which is closed in some states.
        """
        self._engine = cpu.engine
        self._followed = followed
        self._read_pc = cpu.read_pc
        self.regs = cpu.regs
        self.sink: Sink | None = None
        self.trap: Callable[[Regs], bool] | None = None
        self.services: dict[int, Callable[[Regs], None]] = {}
        self.exit = 0
        # nesting
        self.runs_in = 0
        self.depth = 0
        self.end = -1
        self.translated_end = 0
        # stopping
        self.why_stopped = ""
        self.timed_out = 0
        self.parked: BaseException | None = None
        self.raised: BaseException | None = None
        # counting
        self.left: list[int] = []
        self.due: Callable[[], bool] | None = None
        self.own_in_row = 0
        self.hooked = False
        # what the last start of the engine has come to
        self.interrupt: tuple[int, int] | None = None
        self.failed: tuple[int, int] | None = None
        self.failed_registers: Any = None
        self.mended = False
        # instructions that are executed, and are no hit
        self.trial = False
        self.resting = 0
        self.unfinished = -1
        # call sites that are served, and executed once more
        self.hits_to_python = False
        self.skip = -1
        self.in_place: dict[int, int] = {}
        self._told = False  # the engine was told to stop at once
        self._in_front: Any = None  # hook of stop_in_front_of_blocks()
        self._clocked = 0  # identity of the thread whose processor time `_clock` shows
        self._clock: Callable[[], float] = time.monotonic
        self._waits = False  # the run's thread waits for `_stopping`
        # held by a thread that stops the run, until the engine knows; reentrant, for Ctrl-C
        self._stopping = RLock()

    @property
    def phase(self) -> RunPhase:
        """The most urgent phase that the fields stand for."""
        if self.parked is not None:
            return RunPhase.RAISING
        if self.resting:
            return RunPhase.COMPLETING
        if self.depth:
            return RunPhase.STOPPING if self.why_stopped else RunPhase.RUNNING
        return RunPhase.TAKEN if self.runs_in else RunPhase.FREE

    def listen(self, sink: Sink | None) -> None:
        """Deliver reports to a sink from now on; `trap` and `services` become the sink's.

        Args:
            sink: the core; None: reports are delivered to none.

        Raises:
            AlreadyRegistered: another sink receives them.
        """
        if sink is not None and self.sink is not None:
            raise AlreadyRegistered(
                "this machine has a Kprobes already", hint="use that one, or close it first"
            )
        self.sink = sink
        self.trap = None if sink is None else sink.trap
        self.services = {} if sink is None else sink.services

    def ours(self, addr: int) -> bool:
        """Return True for a guest address in the core's own pages: slots, call sites."""
        return self.sink is not None and self.sink.owns(addr)

    def begin(self, thread: int) -> None:
        """Note that the calling thread uses the CPU from now on.

        A stop that was asked for before is forgotten here, and nowhere later: one that comes
        between here and the first instruction, or between two stretches of a run, ends the run.

        `runs_in` is set.

        Args:
            thread: the calling thread's identity.
        """
        if self.why_stopped:
            self.take_stop()
        self.runs_in = thread
        if self.in_place and thread != self._clocked:
            self._clocked = thread
            self._clock = _processor_time()

    def finish(self) -> None:
        """Note that no thread uses the CPU any more. It ends what begin() has begun."""
        self.runs_in = 0

    def nest(self, by: int) -> None:
        """Count a run: enter one (`by` is 1), or leave the innermost one (-1).

        While runs are nested, host code serves no hits.
        """
        self.depth += by
        if self.depth > (by > 0):  # else it is the outermost
            self._followed.close(NESTED, self.depth > 1)

    def stop_for(self, reason: str) -> None:
        """Stop the innermost run. A hook or another thread may call this.

        The reason is noted at once, and Python serves all hits from now on
        (leave_hits_to_python()). The engine is told so that it stops where no instruction is half
        done: in front of the next one, or of the next block. Where instructions are counted, the
        counting hook does that. Another thread asks the engine to stop itself (host/outside.py);
        where it cannot, it waits until the run has left the call site that it serves, and stops the
        engine then.

        Args:
            reason: one of REASONS.
        """
        mine = get_ident() == self.runs_in
        if mine:
            self._waits = True
        with self._stopping:
            if mine:
                self._waits = False
            self.note_stop(reason)
            self.leave_hits_to_python(on=True)
            # the engine would leave the instruction half done, whose access is made
            within = not mine or self.regs.midway
            if self.left and within:
                return  # the hook that counts stops the run, in front of an instruction
            outside = self._engine.outside
            if mine and within and outside is None:
                self._engine.stopped = True  # stop_in_front_of_blocks() does it
            elif not within or outside is None:
                if not mine:
                    self._let_pass()
                self._told = True
                self._engine.stop()
            elif self.runs_in:  # else the next run finds why_stopped
                self._engine.stopped = True
                outside.ask()

    def stop_in_front_of_blocks(self) -> None:
        """Add a hook that carries out, in front of the next block, stops that are asked for in the
        middle of an instruction. All code is translated anew with it.

        Called when memory has got functions that are called at accesses. Nothing is done where the
        hook is there already, or where the engine does so itself (`host/outside.py`).
        """
        engine = self._engine
        if self._in_front is not None or engine.outside is not None:
            return

        def on_block(_uc: int, _address: int, _size: int, _user: int) -> None:
            """Stop the engine in front of a block, if the run is to stop."""
            if self.why_stopped:
                engine.stop()

        self._in_front = CODE(on_block)
        engine.hook(const.UC_HOOK_BLOCK, self._in_front)
        engine.retranslate()

    def note_stop(self, reason: str) -> None:
        """Note why the innermost run is to stop. The caller tells the engine.

        Args:
            reason: one of REASONS; the more urgent one stays.
        """
        self.why_stopped = max(self.why_stopped, reason, key=REASONS.index)

    def may_repeat(self) -> bool:
        """Return True if the run goes on with one more execution of a displaced instruction, whose
        interrupt was handled, and count that instruction: no hook does.

        Returns:
            False where the run is over before it: it is to stop, a bound has come (which is noted
            as the reason to stop), or it was over already and only the displaced instruction was to
            be finished.
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
        """Return why the run is to stop, and forget that. Callers take RunState.raised by itself
        (take_raised()).

        If another thread is asking for a stop, this waits for it: whatever has asked has told the
        engine by then, so that nothing stops the next run.

        Returns:
            One of REASONS; "": the run is not to stop.
        """
        self._waits = True
        with self._stopping:
            self._waits = False
            reason, self.why_stopped = self.why_stopped, ""
            self._told = False
            if self._engine.outside is not None:
                self._engine.outside.forget()
        return reason

    def _let_pass(self) -> None:
        """Wait until the run's thread has left a call site that it serves, not knowing of a stop;
        WAITING seconds at most.

        Called by another thread, between noting the stop and telling the engine. The hazard: after
        a hook the engine looks whether it was stopped. If so, it executes the instruction, hook
        included, once more when it goes on: the call site would be served twice.

        A service that begins from now on knows of the stop, and serves nothing. So at most one call
        site has been served and not left. The engine's pc shows whether it was left: the engine
        writes pc before it calls the hooks, and again at the call site's jump, which leads to
        another page. Behind an instruction that is its own call site pc may not be written for
        long; it was left when the thread has used PASSED of processor time.

        A handler does not keep this waiting: it looks for the stop itself at its end (Services). An
        owner's hook that waits for the stopping thread does.
        """
        end, begun = time.monotonic() + WAITING, self._clock()
        while time.monotonic() < end:
            time.sleep(PASSING)
            if self._waits or not self.runs_in or self.regs.reported is not None:
                break
            # a displaced instruction comes to its end by itself, at its own pace
            if not self.resting and (
                (pc := self._read_pc()) not in self.services
                or (
                    pc in self.in_place
                    and self._clock() - begun > PASSED
                    and not self._followed.serving
                )
            ):
                break

    def leave_hits_to_python(self, *, on: bool) -> None:
        """Send all hits to Python, whose services then look for a stop at their end; or have host
        code serve hits again. Set `hits_to_python`.

        Args:
            on: True once the run was asked to stop, or another run was nested in it. False: host
                code serves hits again.
        """
        self._followed.close(DISTURBED, on)
        self.hits_to_python = on  # last: a service that still sees False has nothing to undo

    def note_store(self, pc: int, address: int) -> None:
        """Note a store that has failed, and the registers there (`failed`, `failed_registers`).

        The engine may execute the rest of the block, and forgets the error if a breakpoint comes
        there. So hits go to Python from here on, which stops at the next one.

        Args:
            pc: address of the store, without mode bits.
            address: the address that was stored to.
        """
        self.failed = pc, address
        if self.failed_registers is not None:
            self._engine.discard(self.failed_registers)
        self.failed_registers = self._engine.save()
        self.leave_hits_to_python(on=True)
        self._followed.close(RESTING)  # traps do not look at the other reason

    def forget_store(self) -> None:
        """Forget the registers that note_store() has kept: set `failed_registers` to None.

        The run is over, or another hook has served the store. Host code may serve traps again,
        unless the run is `resting`; `failed` and `hits_to_python` stay as they are. Called only
        where `failed_registers` is not None.
        """
        self._engine.discard(self.failed_registers)
        self.failed_registers = None
        self._followed.close(RESTING, bool(self.resting))

    def stop_behind_store(self) -> bool:
        """Stop the engine where a store has failed of which it executes what comes behind.

        Called in the engine's hooks, where `failed_registers` are noted: the run is over, and
        nothing is to be served any more. The run's end reports the store.

        Returns:
            True: the engine was stopped. False where another hook has served the store, or no store
            is noted any more; nothing was done.
        """
        if self.failed is None or self._engine.may_write(self.failed[1]):
            return False
        self._engine.stop()
        return True

    @contextmanager
    def executing(self) -> Iterator[None]:
        """Mark the time, inside a with block, in which one instruction is executed that is no hit
        (`resting`). Host code serves no hits meanwhile, and services at call sites do nothing.

        It is a displaced one, which is executed to its end, or a failed one, once more.
        """
        before, self.resting = self.resting, self.depth
        self._followed.close(RESTING)
        try:
            yield
        finally:
            self.resting = before
            self._followed.close(RESTING, bool(before))

    def accessed(self) -> None:
        """Note that a device's function or a watchpoint has served an access, which may have ended
        the run.

        If it has (the engine was told to stop, or an exception is parked), the engine executes the
        instruction once more when the run goes on. If pc is an instruction that is its own call
        site, `skip` becomes it: the second execution is no second hit.
        """
        if not self.in_place or (not self._told and self.parked is None):
            return
        pc = self._read_pc()
        if pc in self.in_place:
            self.skip = pc

    def park(self, error: BaseException) -> None:
        """Keep an exception that a hook has raised inside the engine for the run to raise, and stop
        the engine. The first one counts.
        """
        if self.parked is None:
            self.parked = error
        self._engine.stop()

    def keep_for_end_of_instruction(self, error: BaseException) -> None:
        """Keep an exception that was raised in the middle of an instruction for the run to raise,
        and stop the run behind the instruction. The first one counts.

        Called while `regs.midway` is True.
        """
        if self.raised is None:
            self.raised = error
        self.stop_for("raised")

    def take_parked(self) -> BaseException:
        """Return the exception that a hook has raised inside the engine, and forget it."""
        parked, self.parked = self.parked, None
        assert parked is not None
        return parked

    def take_raised(self) -> BaseException | None:
        """Return the exception that was raised in the middle of an instruction, and forget it;
        None: there is none.
        """
        raised, self.raised = self.raised, None
        return raised

    def take_interrupt(self) -> tuple[int, int] | None:
        """Return (number, pc) of the interrupt that has ended the last start of the engine, and
        forget it; None: none has.
        """
        interrupt, self.interrupt = self.interrupt, None
        return interrupt


def _processor_time() -> Callable[[], float]:
    """Return a clock of the processor time of the calling thread, in seconds, that other threads
    may ask.

    Where the system does not tell, it is the monotonic clock.
    """
    try:
        clock = time.pthread_getcpuclockid(get_ident())
    except (AttributeError, OSError):
        return time.monotonic
    return partial(_read, clock)


def _read(clock: int) -> float:
    """Return the time of one of the system's clocks, in seconds; the monotonic time where the
    clock's thread has ended.

    Args:
        clock: the system's number of the clock.
    """
    try:
        return time.clock_gettime(clock)
    except OSError:  # that thread has ended, and another one has its identity
        return time.monotonic()
