"""Lets only one thread at a time change probes, and none while another one runs the machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ...errors import MachineBusy
from ...machine._base import Busy


class Changes(Protocol):
    """An object whose methods take the machine's lock (Machine.busy)."""

    @property
    def busy(self) -> Busy: ...


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Changes)


def alone(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a method that takes the machine's lock while it runs.

    The method raises MachineBusy, and does nothing, while another thread has the lock. A thread
    that has it, as in a handler, may call such methods.
    """

    @wraps(method)
    def whole(self: S, /, *args: P.args, **named: P.kwargs) -> R:
        """Call the method while this thread holds the machine's lock.

        Raises:
            MachineBusy: another thread holds it.
        """
        if not self.busy.acquire(False):
            raise MachineBusy(
                "another thread runs this machine, or changes its probes",
                hint="wait until it has finished, or change them in a handler",
            )
        try:
            return method(self, *args, **named)
        finally:
            self.busy.release()

    return whole
