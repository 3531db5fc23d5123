"""attrs' `define` and `frozen`, for classes that a process makes before its first hit.

attrs writes and compiles a class's methods as source text. 170 classes are made before a command's first hit, and
comparing, hashing and showing were half of what they took. Here these three are closures over the fields' names; the
rest is attrs' own, `__init__` among it. Type checkers see attrs' decorators.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

import attrs

__all__ = ["define", "frozen"]


@attrs.frozen(eq=False, repr=False)
class _Frozen:
    """A class that cannot be changed, for what attrs makes its instances refuse by."""


_REFUSES = _Frozen.__setattr__


def _define(kind: type | None = None, *, eq: bool | None = None, repr: Any = None, order: bool = False,
            unsafe_hash: bool | None = None, **options: Any) -> Any:
    """Do what attrs.define() does.

    Args:
        kind: the class; None: the decorator has arguments.
        eq: instances are compared by their fields; None: unless the class says how.
        repr: they are shown with their fields; None: unless the class says how.
        order: they have an order.
        unsafe_hash: they have a hash; None: where they are compared and frozen.
        options: attrs.define()'s other arguments.
    """

    def wrap(kind: type) -> type:
        if order or unsafe_hash is not None or issubclass(kind, BaseException):
            return attrs.define(kind, eq=eq, repr=repr, order=order, unsafe_hash=unsafe_hash, **options)
        own = vars(kind)
        compares = not {"__eq__", "__ne__"} & own.keys() if eq is None else eq
        shows = "__repr__" not in own if repr is None else repr
        hashes = compares and "__hash__" not in own
        made: Any = attrs.define(kind, eq=False, repr=False, **options)
        if any(field.eq_key is not None for field in attrs.fields(made)):
            raise TypeError(f"{kind.__name__}: fields compared by a key are attrs' own decorators' to make")
        if compares:
            made.__eq__ = _comparing([field.name for field in attrs.fields(made) if field.eq])
        if hashes and made.__setattr__ is _REFUSES:
            made.__hash__ = _hashing(made, [field.name for field in attrs.fields(made)
                                            if (field.eq if field.hash is None else field.hash)])
        elif hashes:
            made.__hash__ = None
        if shows:
            made.__repr__ = _showing(attrs.fields(made))
        return made  # type: ignore[no-any-return]

    return wrap if kind is None else wrap(kind)


def _values(names: Sequence[str]) -> Callable[[object], Any]:
    """Return a function: an object -> the values of its fields, as a tuple."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _comparing(names: Sequence[str]) -> Callable[[Any, object], Any]:
    values = _values(names)

    def compare(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(map(operator.eq, values(self), values(other)))  # not the tuples, for which NaN is NaN

    return compare


def _hashing(kind: type, names: Sequence[str]) -> Callable[[Any], int]:
    salt, values = hash(kind.__qualname__), _values(names)

    def hashed(self: Any) -> int:
        return hash((salt, values(self)))

    return hashed


def _showing(fields: Sequence[Any]) -> Callable[[Any], str]:
    rows = [(field.name, repr if field.repr is True else field.repr, () if field.init else (attrs.NOTHING,))
            for field in fields if field.repr is not False]

    @recursive_repr()
    def shown(self: Any) -> str:
        name = self.__class__.__qualname__.rsplit(">.", 1)[-1]
        return f"{name}({', '.join(f'{name}={show(getattr(self, name, *unset))}' for name, show, unset in rows)})"

    return shown


def _frozen(kind: type | None = None, **options: Any) -> Any:
    """Do what attrs.frozen() does."""
    return _define(kind, frozen=True, on_setattr=None, **options)


if TYPE_CHECKING:
    from attrs import define, frozen
else:
    define, frozen = _define, _frozen
