"""A thread for all deadlines of this process: runs that are bounded in time cost neither a thread
nor a switch to one.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import TIMEOUT_MAX, Condition, Thread
from time import monotonic

from ...hostsystem import at_fork

AGAIN = 0.005  # seconds until a deadline that was not cancelled is told again


class Deadline:
    """Calls a function when a time is over, and again and again until cancel()."""

    __slots__ = ("_dog", "told", "when")

    def __init__(self, seconds: float, told: Callable[[], object]) -> None:
        """Set a deadline, which the watchdog's thread watches from now on.

        Args:
            seconds: from now on.
            told: () is called on the watchdog's thread when the time has come, and every 5 ms after
                that.
        """
        self.when = monotonic() + min(seconds, TIMEOUT_MAX)
        self.told = told
        self._dog = _dog
        self._dog.add(self)

    def cancel(self) -> None:
        """Call the function no more. A call that is under way is waited for."""
        if self._dog is _dog:  # else that thread is another process's
            self._dog.remove(self)


class _Watchdog:
    """The thread that watches all deadlines.

    It sleeps until the deadline that was the earliest when it fell asleep, whether that still
    matters or not: a run that is bounded like the one before need not wake it.
    """

    def __init__(self) -> None:
        """Prepare; the thread is started for the first deadline."""
        # reentrant: a call may be interrupted by a handler that runs another guest
        self._condition = Condition()
        self._deadlines: list[Deadline] = []
        self._wakes = 0.0  # when it does, by the monotonic clock; 0: it has not been started

    def add(self, deadline: Deadline) -> None:
        """Watch one more deadline. The thread is started for the first one."""
        with self._condition:
            if not self._wakes:
                Thread(target=self._watch, daemon=True, name="kprobes-timeout").start()
                self._wakes = deadline.when
            elif deadline.when < self._wakes:
                self._wakes = deadline.when
                self._condition.notify()
            self._deadlines.append(deadline)

    def remove(self, deadline: Deadline) -> None:
        """Watch a deadline no more; wait for a call that is under way."""
        with self._condition:
            self._deadlines.remove(deadline)

    def _watch(self) -> None:
        """Sleep until the next deadline, and call the functions of those that have come, for ever:
        the thread's work. A function is called again every AGAIN seconds until its deadline is
        removed.
        """
        with self._condition:
            while True:
                now = monotonic()
                for deadline in [d for d in self._deadlines if d.when <= now]:
                    deadline.when = now + AGAIN
                    deadline.told()
                self._wakes = min((d.when for d in self._deadlines), default=now + TIMEOUT_MAX)
                self._condition.wait(max(0.0, self._wakes - monotonic()))


_dog = _Watchdog()


def _in_child() -> None:
    """Make a new watchdog in a forked process: the thread has stayed behind."""
    global _dog
    _dog = _Watchdog()  # the thread has stayed behind


at_fork(_in_child)
