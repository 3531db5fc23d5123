"""The state of the guest's runs: how deep they are nested, why they are to stop, what was raised in them, and who listens."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock, get_ident
from time import sleep

from ...errors import AlreadyRegistered
from ...regs import Regs
from .._base import Sink
from .engine import Engine
from .host.callsites import FollowedCalls
from .host.hostcode import DISTURBED, NESTED

REASONS = "", "signal", "stop", "max_insns", "timeout"  #: why a run stops; of several the last counts
PASSING, AT_LEAST, AT_MOST = 50e-6, 1, 200  # seconds, and how many times these: see _let_pass()


class RunState:
    """What everybody who runs the guest, or is called by it, shares.

    Attributes:
        sink: who listens. trap, services: the sink's, looked up once.
        exit: the page where runs end; 0: there is none yet.
        depth: nested runs. runs_in: thread of the run; 0: nothing runs.
        why_stopped: one of REASONS. parked: what was raised inside the engine, for the run to raise.
        disturbed: the run was stopped, or another one was nested in it, since the last service.
    """

    def __init__(self, engine: Engine, followed: FollowedCalls) -> None:
        self._engine, self._followed = engine, followed
        self.sink: Sink | None = None
        self.trap: Callable[[Regs], bool] | None = None
        self.services: dict[int, Callable[[Regs], None]] = {}
        self.exit = self.depth = self.runs_in = 0
        self.why_stopped = ""
        self.disturbed = False
        self.parked: BaseException | None = None
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

    def nest(self, by: int) -> None:
        """So many more runs are nested."""
        self.depth += by
        self._followed.close(NESTED, self.depth > 1)

    def stop_for(self, reason: str) -> None:
        """Stop the run, from a hook or another thread."""
        with self._stopping:
            self.note_stop(reason)
            self.disturb(True)
            if get_ident() != self.runs_in:
                self._let_pass()
            self._engine.stop()

    def note_stop(self, reason: str) -> None:
        """The run is to stop; who says so tells the engine."""
        self.why_stopped = max(self.why_stopped, reason, key=REASONS.index)

    def take_stop(self) -> str:
        """Why the run is to stop. Whoever asked for it has told the engine: nothing stops the next run."""
        with self._stopping:
            reason, self.why_stopped = self.why_stopped, ""
        return reason

    def _let_pass(self) -> None:
        """Between saying that the run is to stop, and telling the engine: let who has served a call site without knowing that pass.

        After a hook the engine looks whether it was stopped, and if so executes the instruction, hook and all, once more when it goes
        on. A handler that takes long, and the next ones, know.
        """
        for n in range(AT_MOST):
            if n >= AT_LEAST and not self._followed.serving:
                break
            sleep(PASSING)

    def disturb(self, on: bool) -> None:
        """The run is disturbed, or no more: services look for themselves, and host code asks Python."""
        self.disturbed = on
        self._followed.close(DISTURBED, on)

    def park(self, error: BaseException) -> None:
        """Keep what was raised inside the engine for the run to raise."""
        if self.parked is None:
            self.parked = error
        self._engine.stop()
