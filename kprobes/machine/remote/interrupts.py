"""Stopping a running remote guest, because the time is over or the user has interrupted the run.

An interrupt and the guest's own stops may cross: the guest stops for another reason, and the
interrupt arrives later. Such interrupts are counted (`RemoteInterrupts.late`), so that their stop
is not taken for one of the guest's own. The core is kprobes/core, which places and serves probes.

A process behind gdbserver that runs on this computer is stopped by a signal to itself. gdbserver's
own interrupt is SIGINT to the process group of which the process would be the leader (gdbserver 13:
kill(-pid)): a process that leads none never gets it, and one that leads one is not the only one to
get it. It also stays away while a thread blocks it, and SIGSTOP cannot be blocked.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from ...errors import RemoteError
from .runstate import RemoteRunState
from .sites import DetourHooks
from .stopreplies import StopReply
from .target import RemoteTarget
from .threadlock import TRAPS, ThreadLock
from .threadnames import pid_of
from .threads import RemoteThreads

#: signal numbers as stubs say them: GDB's, where SIGSTOP is 17 ("gdb/signals.def")
SIGTRAP, SIGINT, STOPPED = 5, 2, 17
#: Where threads take turns, seconds to wait for the next one to come to a probe by itself: LATELY
#: if one has come within as many seconds, else QUIET.
LATELY = 1.0
QUIET = 0.02
PROC = Path("/proc")
NO_GROUP = (
    "the machine is gone. gdbserver's interrupt goes to the process group that the process leads: "
    "start it with setsid, or connect to gdbserver from the computer that it runs on"
)


@frozen
class Interrupt:
    """A way to stop a running guest.

    Attributes:
        send: () asks for a stop, and returns before it has come.
        signals: numbers of the signals by which the stub may report that stop.
        hint: of the error where no stop comes.
    """

    send: Callable[[], None]
    signals: frozenset[int] = frozenset((SIGTRAP, SIGINT))
    hint: str = "the machine is gone: start another"


def interrupt_of(target: RemoteTarget, thread: str, auxiliary: bytes) -> Interrupt:
    """Choose how the process behind a stub is stopped: by SIGSTOP where it is a process of this
    computer under gdbserver, else by the stub's interrupt.

    Args:
        target: the stub.
        thread: one of the process's threads, as the stub names it.
        auxiliary: its auxiliary vector, as the stub shows it; b"": the stub shows none.
    """
    pid = pid_of(thread)
    if not auxiliary or not pid:
        return Interrupt(target.link.interrupt)
    if not _is_here(pid, auxiliary):
        return Interrupt(target.link.interrupt, hint=NO_GROUP)

    def send() -> None:
        with suppress(ProcessLookupError):  # it has ended: the stub is about to say so
            os.kill(pid, signal.SIGSTOP)

    return Interrupt(send, frozenset((STOPPED,)))


def _is_here(pid: int, auxiliary: bytes) -> bool:
    """Return True where the stub's process is one of this computer.

    It is if a process here has the same number, is traced, and has the same auxiliary vector: that
    has random addresses.

    Args:
        pid: number of the process, as the stub tells it.
        auxiliary: the auxiliary vector that the stub shows, or its beginning.
    """
    try:
        traced = b"TracerPid:\t0\n" not in (PROC / str(pid) / "status").read_bytes()
        return traced and (PROC / str(pid) / "auxv").read_bytes().startswith(auxiliary)
    except OSError:
        return False


@frozen(kw_only=True)
class RunningGuest:
    """How a running guest is stopped, and where its output goes.

    Attributes:
        interrupt: how it is stopped.
        console: called with what it prints by way of the stub.
        system: it is a whole machine, with interrupts.
    """

    interrupt: Interrupt
    console: Callable[[bytes], None]
    system: bool


class RemoteInterrupts:
    """Stops the guest of one machine.

    Attributes:
        late: interrupts that have not arrived yet: something else stopped the guest first.
        signals: (thread, number) of the guest's own signals that came instead, to be delivered when
            it goes on.
    """

    def __init__(
        self,
        state: RemoteRunState,
        target: RemoteTarget,
        threads: RemoteThreads,
        *,
        lock: ThreadLock,
        detours: DetourHooks,
        running: RunningGuest,
        note: Callable[[StopReply], StopReply],
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            state: the runs' state.
            target: the stub.
            threads: the guest's threads, and their registers.
            lock: by which threads take turns.
            detours: code in the guest that leads to programs.
            running: how the guest is stopped, and what it prints meanwhile.
            note: called with every stop; returns it as RunControl has to take it.
        """
        self._state = state
        self._target = target
        self._threads = threads
        self._lock = lock
        self._detours = detours
        self._interrupt = running.interrupt
        self._console = running.console
        self._system = running.system
        self._note = note
        self.late = 0
        self.signals: list[tuple[str, int]] = []

    def halt(self, breakpoints: set[int]) -> None:
        """Stop the running guest, and wait until it stands where it executes no code of the
        library's.

        Where it stops in a detour, it is stepped out of that, and a program's requests to the host
        are answered on the way. Where another stop comes first, this interrupt is counted in
        `late`, and the signal of that stop, if it is the guest's own, goes to `signals`. Returns as
        well where the program ends.

        Args:
            breakpoints: addresses of the core's breakpoints.

        Raises:
            RemoteError: the guest does not stop.
        """
        if self._lock.several:
            self._halt_one()
            return
        detours = self._detours
        self._interrupt.send()
        deadline = time.monotonic() + self._target.link.timeout
        stop = self._stopped_by(deadline)
        if stop.kind == "signal" and not self._is_interrupt(stop, breakpoints):
            self.late += 1
            self._keep(stop)
        while stop.kind == "signal" and self._threads.turn_to(detours.inside, self._system):
            if detours.asks(self._pc):  # serve the program's request, and step on
                self._threads.move(detours.answer(self._threads.regs[self._threads.current]))
                detours.answered()
            self._threads.flush()
            self._state.resumed()
            self._target.resume(step=True, thread=self._threads.name)
            stop = self._stopped_by(deadline)

    def arrives(self, stop: StopReply) -> bool:
        """Return True if a stop is that of a late interrupt, and take that interrupt off `late`."""
        if not self.late or stop.call is not None or stop.code not in self._interrupt.signals:
            return False
        self.late -= 1
        return True

    def take_back(self) -> None:
        """Let the guest run until no interrupt is on its way to it: one that came after the library
        has detached would end the guest.

        Called before the library detaches. Signals of the guest's own in `signals` are delivered
        meanwhile; where no interrupt is on its way then, one is sent, so that the guest stops
        again. Nothing is done where there is neither. The guest may end.

        Raises:
            RemoteError: an interrupt does not arrive.
        """
        deadline = time.monotonic() + self._target.link.timeout
        while self.late or self.signals:
            if not self.late:
                self._interrupt.send()
                self.late += 1
            thread, number = self.signals.pop(0) if self.signals else ("", 0)
            self._threads.flush()
            self._state.resumed()
            self._target.resume(signal=number, thread=thread)
            stop = self._stopped_by(deadline)
            if stop.kind != "signal":
                return
            if not self.arrives(stop) and stop.code not in (0, SIGTRAP):
                self.signals.append((stop.thread, stop.code))

    def _is_interrupt(self, stop: StopReply, breakpoints: set[int]) -> bool:
        """Return True where a stop is that of the interrupt just sent.

        A breakpoint's stop may be the same signal: it is told apart by pc.

        Args:
            stop: the stop reply.
            breakpoints: addresses of the core's breakpoints.
        """
        if stop.code not in self._interrupt.signals or stop.call is not None:
            return False
        return stop.code != SIGTRAP or not (self._pc in breakpoints or self._detours.asks(self._pc))

    def _halt_one(self) -> None:
        """Stop one thread of a process whose threads take turns.

        If threads come to probes, wait for the next one that does: an interrupt could stop a second
        one at the same time. Else send an interrupt. A thread that stops at a probe is moved back
        to the probed address, without a report. An interrupt that another stop precedes is counted
        in `late`; other signals go to `signals`. Returns as well where the program ends.

        Raises:
            RemoteError: no thread stops.
        """
        lock = self._lock
        deadline = time.monotonic() + self._target.link.timeout
        while True:
            patience = LATELY if time.monotonic() - lock.last < LATELY else QUIET
            try:
                stop = self._note(self._target.wait(patience, self._console))
                asked = False
            except TimeoutError:
                self._interrupt.send()
                stop = self._stopped_by(deadline)
                asked = True
            if stop.kind != "signal":
                return
            if self._pc in lock.stops and stop.code in TRAPS:
                self.late += asked
                lock.move_back()
                return
            self._keep(stop)
            if not self._detours.inside(self._pc):
                return
            self._threads.flush()
            self._state.resumed()
            self._target.resume()  # it is in the lock's code: it will stop soon, or has stopped

    def _keep(self, stop: StopReply) -> None:
        """Note the signal of a stop in `signals`, to be delivered later, unless it is the
        interrupt's or a terminal's Ctrl-C.
        """
        if stop.code not in {0, SIGTRAP, SIGINT, *self._interrupt.signals}:
            self.signals.append((stop.thread, stop.code))

    def _stopped_by(self, deadline: float) -> StopReply:
        """Wait for the next stop until a deadline, note it, and return it.

        Afterwards the thread that has stopped is the current one; if the program has ended instead,
        its exit status is set. What the guest prints meanwhile goes to the console.

        Args:
            deadline: time.monotonic() at which the waiting ends.

        Raises:
            RemoteError: no stop has come by the deadline. The connection is closed, because the
                guest's state is unknown.
        """
        try:
            stop = self._target.wait(deadline - time.monotonic(), self._console)
        except TimeoutError:
            self._target.link.close()
            raise RemoteError("the guest does not stop", hint=self._interrupt.hint) from None
        return self._note(stop)

    @property
    def _pc(self) -> int:
        """Pc of the current thread."""
        return self._threads.regs[self._threads.current].pc
