"""Former names of public things: they go on to work for two minor versions, with a
DeprecationWarning.

`FORMER` has those of the package; a class gives a `FormerName` for each former name of its members;
a function has the decorator `former_parameter()`, a command of the command line the class of
cli/_former.py for its options. docs/public.md is the promise; tests/test_public.py and
tests/test_deprecation.py hold all against it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Renamed(NamedTuple):
    """The name that a former name leads to.

    Attributes:
        now: the present name.
        goes: version in which the former one goes, "1.3".
    """

    now: str
    goes: str


#: former name of the package -> where it leads
FORMER: Final[dict[str, Renamed]] = {}


def warn(former: str, renamed: Renamed, level: int) -> None:
    """Issue a DeprecationWarning for the use of a former name.

    Args:
        former: the name that was used.
        renamed: the present name, and when the former one goes.
        level: 1 for the caller of this function, 2 for the caller's caller ...: whose line the
            warning names.
    """
    said = f"{former} is called {renamed.now}; the former name goes in kprobes {renamed.goes}"
    warnings.warn(said, DeprecationWarning, stacklevel=level + 1)


def warn_of_parameter(kind: str, former: str, renamed: Renamed, level: int) -> None:
    """Issue a DeprecationWarning for the use of a former parameter or option.

    Args:
        kind: what it is, and of what: "parameter of f()".
        former: its name.
        renamed: the present name, "" where there is none any more; and when the former one goes.
        level: as of warn().
    """
    instead = f"is called {renamed.now}" if renamed.now else "has no effect any more"
    said = f"{former}, a {kind}, {instead}; it goes in kprobes {renamed.goes}"
    warnings.warn(said, DeprecationWarning, stacklevel=level + 1)


def former_parameter(former: str, now: str, goes: str) -> Callable[[F], F]:
    """Return a decorator for a function one of whose parameters has another name now, or is gone.

    `@former_parameter("timeout", "seconds", goes="1.3")`: calls with `timeout=` warn, and give the
    value to `seconds`. Only calls by name are looked at: a parameter that others may pass by its
    position keeps its place. The decorated function has an attribute `former`: {former name:
    Renamed} of this and of all such decorators below.

    Args:
        former: the parameter's former name.
        now: its present name; "": there is none, and the value is ignored.
        goes: version in which the former name goes.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            """Call the function. A value under the former name is passed under the present one, or
            not at all where there is none, and a warning is issued.

            Raises:
                TypeError: both names are given.
            """
            if former in named:
                value = named.pop(former)
                what = f"parameter of {function.__qualname__}()"
                warn_of_parameter(what, former, Renamed(now, goes), level=2)
                if now in named:
                    raise TypeError(f"{function.__qualname__}() got both {former!r} and {now!r}")
                if now:
                    named[now] = value
            return function(*args, **named)

        call.former = {  # type: ignore[attr-defined]  # which tests/test_deprecation.py looks for
            **getattr(function, "former", {}),
            former: Renamed(now, goes),
        }
        return call  # type: ignore[return-value]

    return decorate


class FormerName:
    """A descriptor that gives a method or an attribute a former name as well.

    `matches = FormerName("count", goes="1.3")` in a class: using `matches` warns, and uses `count`.
    """

    def __init__(self, now: str, goes: str) -> None:
        """
        Args:
            now: the member's present name.
            goes: version in which the former one goes.
        """
        self._renamed = Renamed(now, goes)

    def __set_name__(self, owner: type, name: str) -> None:
        self._former = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        warn(self._former, self._renamed, level=2)
        return getattr(owner if instance is None else instance, self._renamed.now)

    def __set__(self, instance: object, value: object) -> None:
        warn(self._former, self._renamed, level=2)
        setattr(instance, self._renamed.now, value)
