"""Wrong values for every parameter of a class's public methods, found by inspection."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kprobes import BadArgument, GuestFault, GuestStopped, GuestTimeout, KprobeError

#: What no parameter takes, or few.
WRONG: tuple[Any, ...] = (None, -1, 1 << 70, -(1 << 70), 2.5, float("nan"), "\udcff", "no such", "", b"\xff", [], {},
                          object(), ..., (1, 2), True)


def methods(kind: type, without: tuple[str, ...] = ()) -> list[str]:
    """Public methods with parameters, without former names."""
    return [name for name in dir(kind) if not name.startswith("_") and name not in without
            and not isinstance(inspect.getattr_static(kind, name), property)
            and not type(inspect.getattr_static(kind, name)).__module__.endswith(".deprecation")
            and callable(getattr(kind, name)) and any(p != "self"
                                                      for p in inspect.signature(getattr(kind, name)).parameters)]


def calls(function: Callable[..., Any], good: Mapping[str,
                                                      Any]) -> Iterator[tuple[str, Any, list[Any], dict[str, Any]]]:
    """(parameter, wrong value, arguments, keywords): one is wrong, the others are `good`."""
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    for wrong in parameters:
        for value in WRONG:
            args, named = [], {}
            for p in parameters:
                given = value if p is wrong else good.get(p.name, p.default)
                if p.kind is p.KEYWORD_ONLY:
                    named[p.name] = given
                elif given is not p.empty:
                    args.append(given)
            yield wrong.name, value, args, named


def refused(function: Callable[..., Any], good: Mapping[str, Any], state: Callable[[], Any]) -> int:
    """Every wrong value is refused by a KprobeError that names it, and then nothing has changed; or it is taken. How
    many were refused."""
    count = 0
    for name, value, args, named in calls(function, good):
        before = state()
        try:
            function(*args, **named)
        except OSError as error:  # a KprobeError, or a file's own
            assert isinstance(error, KprobeError) or name in ("path", "file"), error
            count += 1
            moved = isinstance(error, GuestFault | GuestTimeout | GuestStopped)  # the guest has run
            assert str(error), (name, type(value))
            assert moved or state() == before, f"{name}={value!r} was refused ({error}), and something has changed"
            assert not isinstance(error, BadArgument) or isinstance(value, int) or any(one in str(error)
                for one in (name, *said(value))), (name, value, str(error))
    return count


def said(value: Any) -> list[str]:
    """What a message may have of a value, or of an element of it."""
    elements = [repr(one) for one in value[:1]] if isinstance(value, (bytes, tuple)) else []
    return [repr(value)[:50], type(value).__name__, *elements]
