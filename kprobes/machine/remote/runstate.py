"""The state of a remote guest's runs, and the table of their phases.

The core is kprobes/core, which places and serves probes. A run is one execution of guest code: a
call, run(), or one that a handler begins inside another (they nest). `RunControl` drives the
phases; `RemoteInterrupts` stops a running guest.

| phase | what holds |
|---|---|
| IDLE | no run (`depth` is 0); the guest stands |
| STOPPED | the guest stands in a run: handlers run |
| RUNNING | the guest runs; a stop reply is awaited (`running`) |
| HALTING | the running guest was asked to stop (`halting`); it may make steps until it may stand |
| ENDED | the program has ended (`exit_status`), or the connection is lost: all probes are GONE |

| event | method | asked by |
|---|---|---|
| ENTER, LEAVE | enter(), leave() | `RunControl`, at a run's begin and end |
| RESUME | resumed() | `RunControl` and `RemoteInterrupts`, as the guest is sent on |
| REPLY | stopped() | `RunControl`, at every stop reply |
| HALT, HALTED | halted() | `RunControl`, where the time is over, or the user interrupts |
| END | ended() | `RunControl`, at the reply that tells the program's end |
| ASK | ask_to_stop() | any thread: takes effect in STOPPED |

The phase is not stored: it follows from the fields, and from the connection, which may be lost at
any time. Only the thread that holds the machine's lock moves between phases:

| phase | event | phase afterwards |
|---|---|---|
| IDLE | ENTER | STOPPED |
| IDLE | RESUME | RUNNING |
| IDLE | REPLY | IDLE |
| IDLE | ASK | IDLE |
| STOPPED | ENTER | STOPPED |
| STOPPED | LEAVE | STOPPED or IDLE |
| STOPPED | RESUME | RUNNING |
| STOPPED | ASK | STOPPED |
| RUNNING | REPLY | STOPPED or IDLE |
| RUNNING | HALT | HALTING |
| RUNNING | END | ENDED |
| RUNNING | ASK | RUNNING |
| HALTING | RESUME | HALTING |
| HALTING | REPLY | HALTING |
| HALTING | HALTED | STOPPED or IDLE |
| HALTING | END | ENDED |
| HALTING | ASK | HALTING |
| ENDED | LEAVE | ENDED |
| ENDED | HALTED | ENDED |
| ENDED | END | ENDED |
| ENDED | ASK | ENDED |

REPLY, LEAVE and HALTED lead back to what was interrupted: to STOPPED in a run, to IDLE outside of
one (an errand, a hit that is finished). The reply in IDLE is the one that says why a guest stood as
it was found; the next run forgets what is asked in IDLE. What happens in ENDED comes after the
connection was lost. tests/remote/test_remote_run_states.py holds what runs do against this table.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import AlreadyRegistered
from .._base import Sink
from .packets import Connection


class RemotePhase(enum.Enum):
    """Phases of a remote guest's runs; the value says what holds."""

    IDLE = "no run is under way, and the guest stands"
    STOPPED = "the guest stands in a run"
    RUNNING = "the guest runs, and a stop reply is awaited"
    HALTING = "the running guest was asked to stop"
    ENDED = "the program has ended, or the connection is lost"


class RemoteRunState:
    """The state of one remote guest's runs.

    Attributes:
        sink: the core, which receives reports; None: there is no Kprobes.
        exit_status: the status that the program has ended with; negative: the number of the signal
            that ended it; None: it has not ended.
        depth: number of runs under way, one inside the other.
        stopping: the innermost run is to end after the report that is being served.
        alone: only the current thread runs: in a call, and in a nested run.
        running: the guest was sent on, and has not stopped.
        halting: the guest was asked to stop, and does not stand yet where it may.
        at_hardware: the last stop was at a hardware breakpoint.
    """

    def __init__(self, link: Connection) -> None:
        """Begin in the phase IDLE.

        Args:
            link: the connection to the stub; the guest is gone once it is closed.
        """
        self._link = link
        self._outer: list[bool] = []  # `alone` of the runs around the innermost one
        self.sink: Sink | None = None
        self.exit_status: int | None = None
        self.depth = 0
        self.stopping = False
        self.alone = False
        self.running = False
        self.halting = False
        self.at_hardware = False

    @property
    def phase(self) -> RemotePhase:
        """The phase that the fields stand for."""
        if not self.guest_exists():
            return RemotePhase.ENDED
        if self.halting:
            return RemotePhase.HALTING
        if self.running:
            return RemotePhase.RUNNING
        return RemotePhase.STOPPED if self.depth else RemotePhase.IDLE

    def guest_exists(self) -> bool:
        """Return True while the program has not ended and the connection is open."""
        return self.exit_status is None and not self._link.closed

    def listen(self, sink: Sink | None) -> None:
        """Deliver reports of stops to a sink from now on.

        Args:
            sink: the core; None: reports are delivered to none.

        Raises:
            AlreadyRegistered: another sink receives them.
        """
        if sink is not None and self.sink is not None:
            raise AlreadyRegistered("this machine has a Kprobes already", hint="close it first")
        self.sink = sink

    def enter(self, *, call: bool) -> None:
        """Begin a run, inside the one under way if there is one. What was asked of the one before
        is forgotten.

        Args:
            call: a function is called: only the current thread runs, as in every nested run.
        """
        self._outer.append(self.alone)
        self.alone = call or self.depth > 0
        self.stopping = False
        self.depth += 1

    def leave(self) -> None:
        """End the innermost run."""
        self.depth -= 1
        self.alone = self._outer.pop()
        self.stopping = False

    def resumed(self) -> None:
        """Note that the guest is sent on."""
        self.running = True

    def stopped(self) -> None:
        """Note that the guest has stopped, by a stop reply."""
        self.running = False

    def ended(self, status: int) -> None:
        """Note that the program has ended.

        Args:
            status: what it has ended with; negative: the number of the signal that ended it.
        """
        self.running = False
        self.exit_status = status

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Mark the time, inside a with block, in which the running guest is stopped."""
        self.halting = True
        try:
            yield
        finally:
            self.halting = self.running = False

    def ask_to_stop(self) -> None:
        """Have the innermost run end after the report that is being served. Any thread may call
        this.
        """
        self.stopping = True
