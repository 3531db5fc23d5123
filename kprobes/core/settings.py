"""Settings of probes: attributes whose values are checked when they are set.

Settings are descriptors. attrs' on_setattr would put a Python call on every attribute, also on
those that a hit writes.
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
    """A descriptor: an attribute of a probe whose values are checked when they are set.

    The value is kept in the probe's field of that name with an underscore.
    """

    def __init__(
        self, doc: str, check: Check, *, instead: str | None = None, told: bool = False
    ) -> None:
        """Make a setting.

        Args:
            doc: the attribute's docstring.
            check: (attribute's name, new value) -> the value to keep; raises a KprobeError where
                the value makes no sense.
            instead: a hint, what to do instead of setting it while the probe is registered; None:
                it may be set then, too.
            told: True if the probe's owner works out anew what a hit does when the value changes.
        """
        self.__doc__ = doc
        self._check = check
        self._instead = instead
        self._told = told

    def __set_name__(self, owner: type, name: str) -> None:
        """Take the attribute's name, by which the probe's field is found."""
        self._name = name
        self._field = f"_{name}"

    @overload
    def __get__(self, probe: None, owner: type) -> Setting[T]: ...
    @overload
    def __get__(self, probe: object, owner: type) -> T: ...
    def __get__(self, probe: object | None, owner: type) -> Setting[T] | T:
        """Return the probe's value; looked up on the class, the setting itself."""
        return self if probe is None else getattr(probe, self._field)

    def __set__(self, probe: Any, value: T) -> None:
        """Check a value, and set it on a probe.

        Where `told` is set, what hits of a registered probe do is worked out anew.

        Args:
            probe: the probe.
            value: of the setting.

        Raises:
            BadLocation, BadArgument: the value makes no sense.
            AlreadyRegistered: the probe is registered, and the setting cannot change then.
            MachineBusy: `told` is set, and another thread runs the machine; the old value is back.
        """
        value = self._check(self._name, value)
        if probe.registered and self._instead is not None and value != getattr(probe, self._field):
            raise AlreadyRegistered(
                f"{self._name} does not change while the probe is registered",
                address=probe.address,
                symbol=probe.place(),
                hint=self._instead,
            )
        before = getattr(probe, self._field)
        setattr(probe, self._field, value)
        if self._told and probe._owner is not None:
            try:
                probe._owner.handlers_changed(probe)
            except MachineBusy:
                setattr(probe, self._field, before)
                raise

    def admit(self, probe: object) -> None:
        """Check the value that a probe was made with, and replace it by what the check returns.

        Args:
            probe: the probe; its constructor has set the field.

        Raises:
            BadLocation, BadArgument: the value makes no sense.
        """
        setattr(probe, self._field, self._check(self._name, getattr(probe, self._field)))


def of(kind: type) -> tuple[Setting[Any], ...]:
    """Return the settings of a class of probes, those of its base classes included."""
    found = _OF.get(kind)
    if found is None:
        found = _OF[kind] = tuple(
            one for name in dir(kind) if isinstance(one := getattr(kind, name), Setting)
        )
    return found


_OF: dict[type, tuple[Setting[Any], ...]] = {}


# --- checks: (name, value) -> the value to keep; they raise a KprobeError that names the setting


def handler(name: str, value: Any) -> Any:
    """Return a handler, after a check that it can be called or is None.

    Args:
        name: of the attribute that is set.
        value: the handler.

    Raises:
        BadArgument: it cannot be called.
    """
    if value is not None and not callable(value):
        raise BadArgument(
            f"{name} is {value!r}, which cannot be called", hint="pass a function, or None"
        )
    return value


def mirror(name: str, value: Any) -> Any:
    """Return a jprobe's entry, after a check that it can be one.

    Args:
        name: of the attribute that is set.
        value: a callable, a guest function's address or name, or None.

    Raises:
        BadLocation: it is none of these.
    """
    if value is None or callable(value) or isinstance(value, int | str):
        return value
    raise BadLocation(
        f"{name} is {value!r}, no mirror",
        hint="pass a Python function, or a guest symbol or address",
    )


def switch(name: str, value: Any) -> bool:
    """Return a switch's value as a bool.

    Args:
        name: of the setting, for the message.
        value: True, False, 1 or 0.

    Raises:
        BadArgument: it is anything else, such as the text "0".
    """
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise BadArgument(f"{name} is {value!r}, neither True nor False", hint="pass a bool")


def number(name: str, value: Any, error: type[KprobeError] = BadArgument) -> int:
    """Return a setting's value as an integer: a bool, or whatever has __index__, counts as one.

    Args:
        name: of the setting, for the message.
        value: what the user gave.
        error: what is raised for anything else.

    Raises:
        KprobeError: `value` is no integer; of the class `error`.
    """
    try:
        return index(value)
    except TypeError:
        raise error(f"{name} is {value!r}, not an integer", hint="pass an int") from None


def count(name: str, value: Any) -> int:
    """Return a setting's value as an integer of 1 or more.

    Args:
        name: of the setting, for the message.
        value: what the user gave.

    Raises:
        BadArgument: it is no integer, or less than 1.
    """
    if number(name, value) < 1:
        raise BadArgument(f"{name} is {value}", hint="give 1 or more")
    return index(value)


def place(name: str, value: Any) -> int | None:
    """Return an address or an offset (bytes) as an integer; None is allowed for "addr" alone.

    Args:
        name: of the setting: "addr" or "offset".
        value: what the user gave.

    Raises:
        BadLocation: it is no integer.
    """
    return None if value is None and name == "addr" else number(name, value, BadLocation)


def text(name: str, value: Any) -> str | None:
    """Return a symbol's name as it is, after a check that it is a string or None.

    Args:
        name: of the setting, for the message.
        value: what the user gave.

    Raises:
        BadLocation: it is neither.
    """
    if value is None or isinstance(value, str):
        return value
    raise BadLocation(f"{name} is {value!r}, not a string", hint="give an address as addr=")


def remade(kind: Any, values: dict[str, Any], more: dict[str, Any]) -> Any:
    """Make a copy of a probe for copy and pickle. It is not registered, and its counters are 0.

    The values are not checked again.

    Args:
        kind: the probe's class.
        values: field -> value, of the fields that its constructor takes.
        more: the attributes that a subclass keeps in __dict__.
    """
    probe = kind.__new__(kind)
    for one in fields(kind):
        default = one.default.factory() if hasattr(one.default, "factory") else one.default
        object.__setattr__(probe, one.name, values.get(one.name, default))
    for name, value in more.items():
        setattr(probe, name, value)
    return probe
