"""Objects that are closed: every use of such an object raises MachineClosed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

from ..errors import MachineClosed

OPERATORS = (
    "__getitem__",
    "__setitem__",
    "__contains__",
    "__iter__",
    "__len__",
    "__call__",
    "__enter__",
)


def close(thing: object, keeps: frozenset[str] = frozenset()) -> None:
    """Have every use of an object raise MachineClosed from now on.

    Uses are of its public attributes, and operators.

    Args:
        thing: the object; its class is replaced by a subclass that raises.
        keeps: names of public attributes that can still be used.
    """
    kind: Any = type(thing)  # hashable, as classes are
    thing.__class__ = _closed(kind, keeps)


@cache
def _closed(kind: type, keeps: frozenset[str]) -> type:
    """Make a subclass of a class, whose objects raise MachineClosed for nearly every use.

    Getting, setting or deleting any public attribute raises, and so does each operator of
    OPERATORS. The subclass is made once for each pair of arguments.

    Args:
        kind: the class.
        keeps: names of attributes that can still be used. Names that begin with "_" can be, too.
    """

    def refuse(*_: Any) -> NoReturn:
        """Raise MachineClosed, whatever the arguments are."""
        raise MachineClosed("this machine is closed", hint="make another one")

    def guarded(name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that gets, sets or deletes the attributes that are kept, and refuses
        others.

        Args:
            name: of the method: "__getattribute__" or another.
            otherwise: the class's own method, for attributes that are kept.
        """

        def access(self: object, attribute: str, *value: Any) -> Any:
            """Get, set or delete an attribute that is kept; raise MachineClosed for any other."""
            return (
                refuse()
                if attribute[0] != "_" and attribute not in keeps
                else otherwise(self, attribute, *value)
            )

        access.__name__ = name
        return access

    members: dict[str, Any] = {name: refuse for name in OPERATORS if hasattr(kind, name)}
    for name in ("__getattribute__", "__setattr__", "__delattr__"):
        members[name] = guarded(name, getattr(kind, name))
    return type(
        kind.__name__,
        (kind,),
        {**members, "__slots__": (), "__module__": kind.__module__, "__doc__": kind.__doc__},
    )
