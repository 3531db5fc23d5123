"""Settings of probes: checked where they are set, and never ignored.

Descriptors, not attrs' on_setattr: that would put a Python call on every attribute that a hit
writes.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any, Generic, TypeVar, overload

from attrs import fields

from ..errors import AlreadyRegistered, BadArgument, BadLocation, KprobeError, MachineBusy

T = TypeVar("T")
Check = Callable[[str, Any], Any]  # (name, value) -> the value as it is kept; raises KprobeError


class Setting(Generic[T]):
    """An attribute of a probe, kept in the field of its name with an underscore.

    check: see Check. instead: what to do in place of setting it while the probe is registered;
    None: it may be set then, too, and `told` says whether the probepoint is to be told.
    """

    def __init__(
        self, doc: str, check: Check, *, instead: str | None = None, told: bool = False
    ) -> None:
        self.__doc__ = doc
        self._check = check
        self._instead = instead
        self._told = told

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._field = f"_{name}"

    @overload
    def __get__(self, probe: None, owner: type) -> Setting[T]: ...
    @overload
    def __get__(self, probe: object, owner: type) -> T: ...
    def __get__(self, probe: object | None, owner: type) -> Setting[T] | T:
        """The value; of the class, this."""
        return self if probe is None else getattr(probe, self._field)

    def __set__(self, probe: Any, value: T) -> None:
        """Raises BadLocation or BadArgument for what makes no sense, and AlreadyRegistered where it
        cannot change now.
        """
        value = self._check(self._name, value)
        if (
            probe._point is not None
            and self._instead is not None
            and value != getattr(probe, self._field)
        ):
            raise AlreadyRegistered(f"{self._name} does not change while the probe is registered",
                                    address=probe.address, symbol=probe.place(), hint=self._instead)
        before = getattr(probe, self._field)
        setattr(probe, self._field, value)
        if self._told and probe._owner is not None:
            try:
                probe._owner.handlers_changed(probe)
            except MachineBusy:
                setattr(probe, self._field, before)
                raise

    def admit(self, probe: object) -> None:
        """Check what the probe was made with."""
        setattr(probe, self._field, self._check(self._name, getattr(probe, self._field)))


def of(kind: type) -> tuple[Setting[Any], ...]:
    """Return the settings of a class of probes."""
    found = _OF.get(kind)
    if found is None:
        found = _OF[kind] = tuple(
            one for name in dir(kind) if isinstance(one := getattr(kind, name), Setting)
        )
    return found


_OF: dict[type, tuple[Setting[Any], ...]] = {}


def handler(name: str, value: Any) -> Any:
    """Return a Check: a callable, or None."""
    if value is not None and not callable(value):
        raise BadArgument(
            f"{name} is {value!r}, which cannot be called", hint="pass a function, or None"
        )
    return value


def mirror(name: str, value: Any) -> Any:
    """Return a Check: a callable, or a guest function's address or name."""
    if value is None or callable(value) or isinstance(value, int | str):
        return value
    raise BadLocation(
        f"{name} is {value!r}, no mirror",
        hint="pass a Python function, or a guest symbol or address",
    )


def switch(name: str, value: Any) -> bool:
    """A Check: on or off. The text "0" is neither."""
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise BadArgument(f"{name} is {value!r}, neither True nor False", hint="pass a bool")


def number(name: str, value: Any, error: type[KprobeError] = BadArgument) -> int:
    """Return a Check: an integer."""
    try:
        return index(value)
    except TypeError:
        raise error(f"{name} is {value!r}, not an integer", hint="pass an int") from None


def count(name: str, value: Any) -> int:
    """Return a Check: an integer from 1 on."""
    if number(name, value) < 1:
        raise BadArgument(f"{name} is {value}", hint="give 1 or more")
    return index(value)


def place(name: str, value: Any) -> int | None:
    """Return a Check: an address or an offset; None is no address."""
    return None if value is None and name == "addr" else number(name, value, BadLocation)


def text(name: str, value: Any) -> str | None:
    """Return a Check: a name, or None."""
    if value is None or isinstance(value, str):
        return value
    raise BadLocation(f"{name} is {value!r}, not a string", hint="give an address as addr=")


def remade(kind: Any, values: dict[str, Any], more: dict[str, Any]) -> Any:
    """Return a probe like another one, by its settings alone: a copy is registered nowhere and has
    seen nothing.
    """
    probe = kind.__new__(kind)
    for one in fields(kind):
        default = one.default.factory() if hasattr(one.default, "factory") else one.default
        object.__setattr__(probe, one.name, values.get(one.name, default))
    for name, value in more.items():
        setattr(probe, name, value)
    return probe
