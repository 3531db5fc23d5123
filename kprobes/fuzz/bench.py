"""Runs from the same state, one after the other, and what becomes of each."""

from __future__ import annotations

import _thread
import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from attrs import frozen

from ..deprecation import FormerName
from ..errors import (
    AmbiguousSymbol,
    GuestFault,
    GuestStopped,
    GuestTimeout,
    NotText,
    UnknownRegister,
    UnknownSymbol,
)
from ..machine.unicorn.edgemap import Spans
from .target import Target


def _number(name: str, of_linux: int) -> int:
    """Return the number of a signal on this computer.

    Args:
        name: the signal's name: "SIGSEGV".
        of_linux: Linux's number, returned where the operating system has no such signal.
    """
    found = getattr(signal, name, of_linux)
    return int(found)


#: signals that a POSIX process dies of -> their numbers
_NUMBERS = {
    "SIGILL": _number("SIGILL", 4),
    "SIGTRAP": _number("SIGTRAP", 5),
    "SIGABRT": _number("SIGABRT", 6),
    "SIGFPE": _number("SIGFPE", 8),
    "SIGKILL": _number("SIGKILL", 9),
    "SIGSEGV": _number("SIGSEGV", 11),
    "SIGSYS": _number("SIGSYS", 31),
}
#: a fault's kind -> the signal; all others: SIGSEGV
_SIGNALS = {"undefined": "SIGILL", "trap": "SIGTRAP", "interrupt": "SIGSYS", "arithmetic": "SIGFPE"}
#: the signal that ends a run which takes too long
_LATE = _number("SIGALRM", signal.SIGTERM)

#: what a target raises that is wrong itself, whatever the input is
_MISTAKES = (UnknownSymbol, AmbiguousSymbol, UnknownRegister, NameError, AttributeError, TypeError)
_TRIAL = bytes(8)  #: input of a trial run
_TRIAL_SECONDS = 1.0  #: which may take so long

Map = ctypes.Array[ctypes.c_uint8]


@frozen
class Fate:
    """How a run has ended.

    Attributes:
        signal: number of the signal that a process would have died of; 0: the run returned.
        error: what the run raised; None: it returned.
        timeout: True where the run was ended by a bound: the caller's seconds, or one of the
            target's own, such as a number of instructions.
    """

    signal: int = 0
    error: Exception | None = None
    timeout: bool = False


FINE = Fate()


def signal_name(number: int) -> str:
    """Return the name of a signal, given by its number, which must be one that a Fate can have."""
    return next(name for name, known in _NUMBERS.items() if known == number)


class OutOfTime(Exception):
    """A run has taken longer than it may."""


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Limit the time of a with block: OutOfTime is raised in it after so many seconds.

    A guest that runs in the block is stopped. Works by a signal, so in the main thread only: in
    others there is no limit. At the end the timer is off, and the signal has its former handler.

    Args:
        seconds: the limit; None: there is none.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(number: int, frame: object) -> None:
        raise OutOfTime(f"no end within {seconds:g} seconds")

    before = signal.signal(_LATE, late)
    cancel = _signalled_after(seconds)
    try:
        yield
    finally:
        cancel()
        signal.signal(_LATE, before)


def _signalled_after(seconds: float) -> Callable[[], object]:
    """Have Python's handler of the signal _LATE called after so many seconds, by a timer.

    Returns:
        A function without arguments that cancels the call.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return partial(signal.setitimer, signal.ITIMER_REAL, 0)
    # Windows has no timer that sends a signal
    timer = threading.Timer(seconds, _thread.interrupt_main, (_LATE,))
    timer.daemon = True
    timer.start()
    return timer.cancel


class InputRunner:
    """Runs inputs in a target, each from the guest's state of when this object was made.

    Attributes:
        target: what is run.
    """

    def __init__(
        self,
        target: Target,
        counters: Map | None = None,
        spans: Spans = (),
        comparisons: bool = False,
    ) -> None:
        """Take a snapshot of the target's guest, and have its edges counted from now on.

        Args:
            target: the target, in the state that every run begins from.
            counters: AFL's map of edges: a byte for each, counted up; the caller clears it. None:
                edges are not counted.
            spans: (start, end) of guest code whose edges are counted; empty: all.
            comparisons: True where equal bytes of comparisons are counted in the map as well.

        Raises:
            Unsupported: the engine does not report comparisons of this architecture.
        """
        self.target = target
        machine = target.machine
        self._edges = (
            None
            if counters is None
            else machine.map_edges(counters, spans, comparisons=comparisons)
        )
        self._start = machine.snapshot()

    def run(self, data: bytes, seconds: float | None = None) -> Fate:
        """Run an input from the guest's first state, and say how the run has ended.

        Errors of the run are not raised.

        Args:
            data: the input.
            seconds: what the run may take; None: there is no limit. In another thread than the main
                one it is not used.

        Returns:
            FINE where the run returned or was stopped; else a Fate with the error and the signal
            that stands for it: SIGKILL for a run that has taken too long, that of the access for a
            GuestFault, SIGABRT for any other error. The guest stays as the run left it.
        """
        if seconds is None:
            return self._run(data)
        try:
            with within(seconds):
                return self._run(data)
        except OutOfTime as error:
            return Fate(_NUMBERS["SIGKILL"], error, timeout=True)

    mistake = FormerName("try_target", goes="1.2")

    def try_target(self) -> Exception | None:
        """Return what is wrong with the target itself, as a trial run shows; None: nothing is.

        That is a name that neither the guest nor Python knows, a wrong argument, or a call of an
        address that has no code. What else goes wrong may be the guest's, or the input's. The trial
        counts no edges, and the guest is in its first state afterwards.
        """
        edges = self._edges
        self._edges = None
        blocks = self.target.machine.last_blocks(1)
        try:
            error = self.run(_TRIAL, _TRIAL_SECONDS).error
        finally:
            blocks.close()
            self._edges = edges
            self.target.machine.restore(self._start)
        if isinstance(error, _MISTAKES):
            return error
        if isinstance(error, GuestFault) and error.access == "fetch" and not blocks.addresses:
            return NotText(
                f"no code is at {error.pc:#x}, which is called", hint="give a function's address"
            )
        return None

    def _run(self, data: bytes) -> Fate:
        """Restore the guest's first state, run one input, and say how the run has ended.

        Args:
            data: the input.

        Returns:
            FINE, also where the run was stopped. Otherwise the error and its signal: SIGKILL for a
            timeout, that of the access for a GuestFault, SIGABRT for any other exception.
        """
        self.target.machine.restore(self._start)
        if self._edges is not None:
            self._edges.begin()
        try:
            self.target.fuzz(data)
        except GuestStopped:
            return FINE
        except (GuestTimeout, OutOfTime) as error:
            return Fate(_NUMBERS["SIGKILL"], error, timeout=True)
        except GuestFault as error:
            return Fate(_NUMBERS[_SIGNALS.get(error.access, "SIGSEGV")], error)
        # an oracle's, or the target's own: either way it is to be looked at
        except Exception as error:
            return Fate(_NUMBERS["SIGABRT"], error)
        return FINE
