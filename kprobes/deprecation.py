"""Former names of public things: they go on to work for two minor versions, with a
DeprecationWarning.

`FORMER` has those of the package; a class gives a `FormerName` for each former name of its members.
docs/public.md is the promise; tests/test_public.py holds both against it.
"""

from __future__ import annotations

import warnings
from typing import Any, Final, NamedTuple


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
