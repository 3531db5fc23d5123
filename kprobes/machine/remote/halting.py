"""Stopping a remote guest that runs, because the time is over or somebody has interrupted us."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...errors import RemoteError
from .reasons import Stop
from .sites import Detours
from .target import Target
from .threads import Threads
from .turns import TRAPS, Turns

SIGTRAP, SIGINT = 5, 2
#: seconds: where a thread has come to a probe within the first, one is waited for that long; else for the second
LATELY, QUIET = 1.0, 0.02


class Halting:
    """Attributes:
    late: interrupts of ours that have not arrived: something else stopped the guest first. signals: (thread, number) of
    those that came instead.
    """

    def __init__(self, target: Target, threads: Threads, interrupt: Callable[[], None],
                 console: Callable[[bytes], None], system: bool, note: Callable[[Stop], Stop]) -> None:
        """note: told of every stop; gives what it is."""
        self._target, self._threads, self._interrupt, self._console = target, threads, interrupt, console
        self._system, self._note = system, note
        self.late = 0
        self.signals: list[tuple[str, int]] = []

    def halt(self, breakpoints: set[int], detours: Detours, turns: Turns) -> None:
        """Stop it where nothing of ours is under way."""
        if turns.several:
            self._halt_one(detours, turns)
            return
        self._interrupt()
        deadline = time.monotonic() + self._target.link.timeout
        stop = self._stopped_by(deadline)
        if stop.kind == "signal" and (stop.code not in (SIGTRAP, SIGINT) or stop.call is not None
                                      or self._pc in breakpoints or detours.asks(self._pc)):
            self.late += 1
            self._keep(stop)
        while stop.kind == "signal" and self._threads.turn_to(detours.inside, self._system):
            if detours.asks(self._pc):  # to its end: nobody stands there
                self._threads.move(detours.answer(self._threads.regs[self._threads.current]))
            self._threads.flush()
            self._target.resume(step=True, thread=self._threads.name)
            stop = self._stopped_by(deadline)

    def _halt_one(self, detours: Detours, turns: Turns) -> None:
        """Of several threads: where they come to probes, the next that does. Two would stop at once."""
        deadline = time.monotonic() + self._target.link.timeout
        while True:
            try:
                stop = self._target.wait(LATELY if time.monotonic() - turns.last < LATELY else QUIET, self._console)
                stop, asked = self._note(stop), False
            except TimeoutError:
                self._interrupt()
                stop, asked = self._stopped_by(deadline), True
            if stop.kind != "signal":
                return
            if self._pc in turns.stands and stop.code in TRAPS:
                self.late += asked
                turns.again()
                return
            self._keep(stop)
            if not detours.inside(self._pc):
                return
            self._threads.flush()
            self._target.resume()  # it is about to stop, or has just

    def _keep(self, stop: Stop) -> None:
        if stop.code not in (SIGTRAP, SIGINT):
            self.signals.append((stop.thread, stop.code))

    def _stopped_by(self, deadline: float) -> Stop:
        """The stop that ought to come; without it nobody knows where the guest is, and it is given up."""
        try:
            stop = self._target.wait(deadline - time.monotonic(), self._console)
        except TimeoutError:
            self._target.link.close()
            raise RemoteError("the guest does not stop", hint="the machine is gone: start another") from None
        return self._note(stop)

    @property
    def _pc(self) -> int:
        return self._threads.regs[self._threads.current].pc
