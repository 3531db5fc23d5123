"""Lets one thread at a time change probes, or what else the engine reports: it has the machine for
itself, as a thread that runs it has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ...errors import MachineBusy
from ...machine._base import Busy


class Changes(Protocol):
    """An object whose changes take the machine's lock."""

    @property
    def busy(self) -> Busy: ...


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Changes)


def alone(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that no other thread may be in, nor in a run of the machine: MachineBusy, before it
    has begun.
    """

    @wraps(method)
    def whole(self: S, /, *args: P.args, **named: P.kwargs) -> R:
        if not self.busy.acquire(False):
            raise MachineBusy("another thread runs this machine, or changes its probes",
                              hint="wait until it has finished, or change them in a handler")
        try:
            return method(self, *args, **named)
        finally:
            self.busy.release()

    return whole
