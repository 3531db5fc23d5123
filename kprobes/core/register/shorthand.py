"""Ways to write a registration: as a decorator, or as a context manager."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast

from ...errors import BadLocation
from ..probe import Probe

P = TypeVar("P", bound=Probe)
Kept_co = TypeVar("Kept_co", bound=Probe, covariant=True)
Arguments = ParamSpec("Arguments")
Result_co = TypeVar("Result_co", covariant=True)


class Decorated(Protocol[Arguments, Result_co, Kept_co]):
    """A handler that a Shorthand has decorated: the function, with its probe."""

    @property
    def probe(self) -> Kept_co:
        """The probe that calls it."""

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result_co: ...


class Registering(Protocol):
    """The methods of a Kprobes that a Shorthand needs."""

    def register(self, probe: Probe) -> None: ...
    def unregister(self, probe: Probe) -> None: ...


class ProbeUnused(RuntimeWarning):
    """`k.kprobe()` or one like it was called, and its result was neither used as a decorator nor
    entered by `with`: there was no probe.
    """


class Shorthand(Generic[P]):
    """A probe about to be registered: decorate its handler, or enter it as a context manager.

    ProbeUnused warns where neither has happened.
    """

    def __init__(self, k: Registering, probe: P, role: str) -> None:
        """Keep a probe; it is registered when a function is decorated or the context is entered.

        Args:
            k: registers the probe.
            probe: not registered yet.
            role: the probe's attribute that a decorated function is set as: "pre_handler" or
                another one.
        """
        self._k = k
        self.probe = probe
        self._role = role
        self._is_used = False

    def __call__(
        self, handler: Callable[Arguments, Result_co]
    ) -> Decorated[Arguments, Result_co, P]:
        """Set a function as the probe's handler, register the probe, and return the function.

        The function gets the probe as its attribute `probe`.

        Raises:
            BadLocation: the probe has that handler already.
            KprobeError: the probe may not be registered.
        """
        self._is_used = True
        if getattr(self.probe, self._role) is not None:
            raise BadLocation(
                f"{self._role} is given twice",
                symbol=self.probe.place(),
                hint="decorate, or pass it as an argument",
            )
        setattr(self.probe, self._role, handler)
        self._k.register(self.probe)
        decorated = cast("Any", handler)
        decorated.probe = self.probe
        return cast("Decorated[Arguments, Result_co, P]", decorated)

    def __enter__(self) -> P:
        """Register the probe, and return it."""
        self._is_used = True
        self._k.register(self.probe)
        return self.probe

    def __exit__(self, *exc: object) -> None:
        """Unregister the probe, if it is still registered."""
        if self.probe.registered:
            self._k.unregister(self.probe)

    def __del__(self) -> None:
        """Warn where the probe was never registered."""
        if not getattr(self, "_is_used", True):  # absent: __init__ has raised
            warnings.warn(
                f"no probe was registered at {self.probe.place()}: use with, decorate its handler, "
                "or call k.register()",
                ProbeUnused,
                stacklevel=2,
            )
