"""Ways to write a registration: as a decorator, or as a context manager."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from ...errors import BadLocation
from ..probe import Probe

P = TypeVar("P", bound=Probe)


class Registering(Protocol):
    """The methods of a Kprobes that a Shorthand needs."""

    def register(self, probe: Probe) -> None: ...
    def unregister(self, probe: Probe) -> None: ...


class Shorthand(Generic[P]):
    """A probe about to be registered: decorate its handler, or enter it as a context manager."""

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

    def __call__(self, handler: Any) -> Any:
        """Set a function as the probe's handler, register the probe, and return the function.

        The function gets the probe as its attribute `probe`.

        Raises:
            BadLocation: the probe has that handler already.
            KprobeError: the probe may not be registered.
        """
        if getattr(self.probe, self._role) is not None:
            raise BadLocation(
                f"{self._role} is given twice",
                symbol=self.probe.place(),
                hint="decorate, or pass it as an argument",
            )
        setattr(self.probe, self._role, handler)
        self._k.register(self.probe)
        handler.probe = self.probe
        return handler

    def __enter__(self) -> P:
        """Register the probe, and return it."""
        self._k.register(self.probe)
        return self.probe

    def __exit__(self, *exc: object) -> None:
        """Unregister the probe, if it is still registered."""
        if self.probe.registered:
            self._k.unregister(self.probe)
