"""Running the engine until an end, past handled faults and stops that belong to other runs."""

from __future__ import annotations

from functools import partial
from threading import Lock, get_ident
from typing import TYPE_CHECKING, NoReturn

import unicorn
from unicorn import unicorn_const as const

from ...arch._base import Arch
from ...errors import GuestTimeout, MachineBusy, ReentryError, Unsupported
from .._base import Fault
from .engine import ERRORS
from .guests.guest import Guest
from .host.hostcode import NESTED
from .reports import Reports
from .signals import HeldSignals

if TYPE_CHECKING:
    from .bounds import Bounds
    from .delayslots import DelaySlots
    from .faults import Faults

MAX_DEPTH = 16  # nested runs; the engine dies at 64
ROUNDS = 4  # starts until a displaced instruction must have finished
_REASONS = {"timeout": "the time is up", "max_insns": "max_insns instructions are executed"}


class Runs(Reports):
    """A processor that runs. Nested runs end at their own `until`, never by a stop."""

    _bounds: Bounds
    _delay_slots: DelaySlots
    _faults: Faults

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest) -> None:
        super().__init__(uc, arch, guest)
        self._dead = False  # see Guest.fetch_fault_kills
        self._busy = Lock()  # held while somebody uses the CPU
        self._signals = HeldSignals(partial(self._stop, "signal"))

    def _begin(self) -> bool:
        """Somebody is about to use the CPU, and says _finish() when that is over. False: within a run, there is nothing to finish."""
        if self._runner == get_ident():
            return False
        self._signals.begin()
        if not self._busy.acquire(False):
            self._signals.end()
            raise MachineBusy("another thread runs this machine", hint="wait until it has finished, or make a machine for each thread")
        self._runner = get_ident()
        return True

    def _finish(self) -> None:
        """Undo _begin(). Raises what signal handlers raise."""
        self._runner = 0
        self._busy.release()
        self._signals.end()

    def _run_begins(self, target: int) -> tuple[int, ...]:
        """A run begins. For _run_ends()."""
        if self._depth >= MAX_DEPTH:
            raise ReentryError(f"{MAX_DEPTH} guest runs are nested", hint="a handler's guest call leads back to that handler")
        if self._depth == 0:
            self._take_stop()
            if target & ~self.arch.mode_bits != self._skip:
                self._skip = -1  # a run that was to execute that call site again has failed
            if self._signals.waiting:
                self._why_stopped = "signal"
            if self._sink is not None:
                self._sink.starting(target)
            elif self.before_run is not None:
                self.before_run()
        self._depth += 1
        self._followed.close(NESTED, self._depth > 1)
        return tuple(self._seen)

    def _run_ends(self, seen: tuple[int, ...]) -> None:
        """It has ended, whatever by."""
        self._seen.extend(seen)
        self._depth -= 1
        self._followed.close(NESTED, self._depth > 1)
        self._disturb(self._depth > 0)
        if self._depth:
            if self._why_stopped or self._engine.stopped:
                self._engine.stop()  # the outer run, too: it is not told twice, or this one's last start has made the engine forget
            return
        self._bounds.close()
        if self._sink is not None:
            self._sink.ended()

    def _run(self, target: int, until: int, timeout: float | None, max_insns: int | None) -> bool:
        """Run until `until`. True: or until somebody stopped it. Between _begin() and _finish()."""
        seen = self._run_begins(target)
        try:
            with self._bounds.within(timeout, max_insns):
                return self._loop(target, until)
        finally:
            self._run_ends(seen)

    def _start(self, begin: int, until: int) -> int:
        """Run the engine."""
        self._check_alive()
        self._seen.extend((begin, begin))
        error = self._start_until(begin, until) if self._guest.until_stops else self._start_to_trap(begin, until)
        if self._guest.fetch_fault_kills and ERRORS.get(error, ("",))[0] == "fetch":
            self._dead = True
            if self._depth > 1:  # outer runs must not go on either
                self._engine.stop()
        return error

    def _start_until(self, begin: int, until: int) -> int:
        """Run the engine until `until`, or until an interrupt there: the first address of a page has one on s390x where the page
        before is not mapped."""
        outer, self._end = self._end, until or -1
        try:
            return self._run_engine(begin, until)
        finally:
            self._end = outer

    def _start_to_trap(self, begin: int, until: int) -> int:
        """Run the engine until a trap put at `until`. See Guest.until_stops."""
        outer, self._end = self._end, until if until else -1
        trap = self.arch.end_bytes(min(self.arch.traps.end))
        old = self._engine.read(until, len(trap)) if until else None
        if old is not None and old != trap:
            self.patch(until, trap)
        try:
            error = self._run_engine(begin, 0)
            return 0 if error == const.UC_ERR_INSN_INVALID and until and self._read_pc() == until else error
        finally:
            self._end = outer
            if old is not None and old != trap:
                self.patch(until, old)

    def _run_engine(self, begin: int, until: int) -> int:
        while self._engine.ended(error := self._engine.start(begin, until)):
            if self._parked is not None or self._why_stopped:
                return 0
            begin = self.arch.same_mode(self._regs, self._read_pc())
        return error

    def _check_alive(self) -> None:
        """Unsupported once a failed fetch has made the next translation deadly."""
        if self._dead:
            raise Unsupported(f"Unicorn {self._engine.version} cannot run {self.arch.name} code any more after a failed instruction fetch",
                              hint="make a new machine")

    def _loop(self, target: int, until: int) -> bool:
        """Run until `until`, resuming after handled faults and after stops that belonged to an inner run. True: somebody stopped it."""
        while not isinstance(on := self._stretch(target, until), bool):
            target = on
        return on

    def _stretch(self, target: int, until: int) -> int | bool:
        """One stretch of a run; returns where to go on, or whether it was stopped."""
        end = until & ~self.arch.mode_bits
        if self._why_stopped:  # before it has begun
            self._write_pc(target)
        error = 0 if self._why_stopped else self._start(target, end)
        if self._parked is not None:
            self._raise_parked()
        if self._interrupt is not None and ERRORS.get(error, ("",))[0] in ("read", "write") and self._interrupt[0] not in self._guest.unaligned:
            self._interrupt = None  # the access failed first: the engine notices some only instructions later
        if self._interrupt is not None:
            (number, pc), self._interrupt = self._interrupt, None
            return self._faults.report(pc, self._faults.interrupt(number, pc))
        if error:
            pc = self._read_pc()
            return self._faults.report(pc, self._faults.error(error, pc))
        stopped = self._engine.stopped or bool(self._why_stopped)
        if self._why_stopped and self._come_to_rest():
            return True
        if (moved := self._regs.target) is not None:  # by a signal's handler
            self._regs.at(None)
            return moved
        if stopped and self._read_pc() != end:
            return self.arch.same_mode(self._regs, self._read_pc())
        self._arrived(until)
        return False

    def _raise_parked(self) -> NoReturn:
        """Raise what was raised inside the engine."""
        if self._failed_at is not None:
            self._write_pc(self._failed_at)
            self._failed_at = None
        parked, self._parked = self._parked, None
        assert parked is not None
        raise parked

    def _arrived(self, until: int) -> None:
        pc = self._read_pc()
        if pc == until & ~self.arch.mode_bits:
            return
        if self._guest.until_pc or self._exit in (pc, until & ~self.arch.mode_bits):  # a jump leads to the exit: pc is right there
            self._faults.fail(pc, Fault(access="engine", trapnr=5, text="the guest halted"))
        self._write_pc(until)

    def _take_stop(self) -> str:
        """Why the run is to stop. Whoever asked for it has told the engine: nothing stops the next run."""
        with self._stopping:
            reason, self._why_stopped = self._why_stopped, ""
        return reason

    def _come_to_rest(self) -> bool:
        """After a stop: let a displaced instruction finish, then say why. False: for the sake of signals; the run goes on."""
        reason = self._take_stop()
        self._finish_displaced()
        if self._depth > 1 and reason == "timeout" and self._bounds.timed_out < self._depth:
            self._why_stopped = reason  # the outer run is to end as well
        try:
            self._signals.deliver()
        except BaseException:
            self._why_stopped = "signal" if self._depth > 1 else ""
            raise
        if reason in _REASONS:
            raise GuestTimeout(_REASONS[reason], pc=self._read_pc())
        return reason == "stop"

    def _finish_displaced(self) -> None:
        """The guest rests in the sink's pages only if it does not leave them: it has no business there but displaced instructions."""
        for _ in range(ROUNDS):
            if self._sink is None or not self._sink.ours(self._read_pc()):
                return
            with self._bounds.none_but_ours():
                error = self._start(self.arch.same_mode(self._regs, self._read_pc()), 0)
            self._take_stop()
            if self._parked is not None:
                self._raise_parked()
            if error:
                self._faults.report(self._read_pc(), self._faults.error(error, self._read_pc()))
