"""Stopping a remote guest that runs, because the time is over or the user has interrupted the run.

An interrupt and the guest's own stops may cross: the guest stops for another reason, and the interrupt arrives
later. Those are counted (`Halting.late`), so that the stop that comes of one later is not taken for the guest's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import frozen

from ...errors import RemoteError
from .reasons import Stop
from .sites import Detours
from .target import Target
from .threads import Threads
from .turns import TRAPS, Turns

#: signal numbers as stubs say them: GDB's, where SIGSTOP is 17 ("gdb/signals.def")
SIGTRAP, SIGINT, STOPPED = 5, 2, 17
#: seconds: where a thread has come to a probe within the first, one is waited for that long; else for the second
LATELY, QUIET = 1.0, 0.02


@frozen
class Interrupt:
    """One way to stop a running guest.

    Attributes:
        send: asks for a stop; returns at once.
        signals: numbers that the stub may name when that stop comes.
        hint: what to do where no stop comes.
    """

    send: Callable[[], None]
    signals: frozenset[int] = frozenset((SIGTRAP, SIGINT))
    hint: str = "the machine is gone: start another"


class Halting:
    """Stops the guest of one machine.

    Attributes:
        late: interrupts that have not arrived yet: something else stopped the guest first.
        signals: (thread, number) of the guest's own signals that came instead, to be delivered when it goes on.
    """

    def __init__(self, target: Target, threads: Threads, interrupt: Interrupt, console: Callable[[bytes], None],
                 system: bool, note: Callable[[Stop], Stop]) -> None:
        """Prepare; nothing is sent.

        Args:
            interrupt: how the guest is stopped.
            console: gets what the guest prints meanwhile.
            system: the guest is a whole machine.
            note: told of every stop; returns what the stop is.
        """
        self._target = target
        self._threads = threads
        self._interrupt = interrupt
        self._console = console
        self._system = system
        self._note = note
        self.late = 0
        self.signals: list[tuple[str, int]] = []

    def halt(self, breakpoints: set[int], detours: Detours, turns: Turns) -> None:
        """Stop the guest where no code of ours is being executed.

        Args:
            breakpoints: addresses of the core's breakpoints.
            detours: code in the guest that leads to programs.
            turns: how threads are kept apart.

        Raises:
            RemoteError: the guest does not stop.
        """
        if turns.several:
            self._halt_one(detours, turns)
            return
        self._interrupt.send()
        deadline = time.monotonic() + self._target.link.timeout
        stop = self._stopped_by(deadline)
        if stop.kind == "signal" and not self._is_interrupt(stop, breakpoints, detours):
            self.late += 1
            self._keep(stop)
        while stop.kind == "signal" and self._threads.turn_to(detours.inside, self._system):
            if detours.asks(self._pc):  # to its end: nobody stands there
                self._threads.move(detours.answer(self._threads.regs[self._threads.current]))
            self._threads.flush()
            self._target.resume(step=True, thread=self._threads.name)
            stop = self._stopped_by(deadline)

    def arrives(self, stop: Stop) -> bool:
        """Take a stop as that of a late interrupt, where one is due and the stop may be it."""
        if not self.late or stop.call is not None or stop.code not in self._interrupt.signals:
            return False
        self.late -= 1
        return True

    def take_back(self) -> None:
        """Let the guest run until no interrupt is on its way any more: without us it would die of one.

        Signals of the guest's own that wait here are delivered meanwhile. The guest may end.

        Raises:
            RemoteError: an interrupt does not arrive.
        """
        deadline = time.monotonic() + self._target.link.timeout
        while self.late or self.signals:
            if not self.late:
                self._interrupt.send()
                self.late += 1
            thread, signal = self.signals.pop(0) if self.signals else ("", 0)
            self._threads.flush()
            self._target.resume(signal=signal, thread=thread)
            stop = self._stopped_by(deadline)
            if stop.kind != "signal":
                return
            if not self.arrives(stop) and stop.code not in (0, SIGTRAP):
                self.signals.append((stop.thread, stop.code))

    def _is_interrupt(self, stop: Stop, breakpoints: set[int], detours: Detours) -> bool:
        """True where a stop is that of the interrupt just sent: not a breakpoint's, which may be the same signal."""
        if stop.code not in self._interrupt.signals or stop.call is not None:
            return False
        return stop.code != SIGTRAP or not (self._pc in breakpoints or detours.asks(self._pc))

    def _halt_one(self, detours: Detours, turns: Turns) -> None:
        """Of several threads: where they come to probes, the next that does. Two would stop at once."""
        deadline = time.monotonic() + self._target.link.timeout
        while True:
            try:
                stop = self._target.wait(LATELY if time.monotonic() - turns.last < LATELY else QUIET, self._console)
                stop, asked = self._note(stop), False
            except TimeoutError:
                self._interrupt.send()
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
        """Deliver the signal of a stop later, where it is the guest's own. A terminal's Ctrl-C is ours as well."""
        if stop.code not in {0, SIGTRAP, SIGINT, *self._interrupt.signals}:
            self.signals.append((stop.thread, stop.code))

    def _stopped_by(self, deadline: float) -> Stop:
        """Return the stop that ought to come. Without one the guest's state is unknown, and the machine is given up.

        Raises:
            RemoteError: none has come when the monotonic clock says `deadline`.
        """
        try:
            stop = self._target.wait(deadline - time.monotonic(), self._console)
        except TimeoutError:
            self._target.link.close()
            raise RemoteError("the guest does not stop", hint=self._interrupt.hint) from None
        return self._note(stop)

    @property
    def _pc(self) -> int:
        return self._threads.regs[self._threads.current].pc
