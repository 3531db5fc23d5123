"""Checks of public functions' arguments by their annotations; an error names the wrong one.

Annotations are parsed and not evaluated: many name classes that only type checkers import, and that
a check must not import either. A Sort says which values an annotation admits. docs/design.md says
why no library does this.
"""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cache, wraps
from numbers import Real
from typing import Any, TypeVar, cast

from attrs import frozen

from .errors import BadArgument

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@frozen
class Sort:
    """A kind of values that an annotation stands for.

    Attributes:
        exact: types whose values are surely of the kind; they are not looked at further.
        fits: returns True for another value that is of the kind.
        said: what to pass, for messages: "an integer".
    """

    exact: frozenset[type]
    fits: Callable[[Any], bool]
    said: str


def _sort(said: str, *kinds: type, fits: Callable[[Any], bool] | None = None) -> Sort:
    """Make a Sort.

    Args:
        said: what to pass, for messages.
        kinds: types whose values are of the kind.
        fits: returns True for another value that is of it; None: only instances of `kinds` are.
    """
    return Sort(frozenset(kinds), fits or (lambda value: isinstance(value, kinds)), said)


def _class(name: str) -> Sort:
    """Make the Sort of the instances of a class and its subclasses.

    Args:
        name: the class's name; its module need not be imported.
    """
    return _sort(
        f"a {name}", fits=lambda value: any(kind.__name__ == name for kind in type(value).__mro__)
    )


#: annotation, without its parameters -> the values that it means. What is not here is looked at by
#: the function itself.
SORTS = {
    "int": _sort("an integer", int, bool, fits=lambda value: hasattr(type(value), "__index__")),
    "float": _sort("a number", int, float, fits=lambda value: isinstance(value, Real)),
    "str": _sort("a str", str),
    "bool": _sort(
        "True or False", bool, fits=lambda value: isinstance(value, int) and value in (0, 1)
    ),
    "bytes": _sort("bytes", bytes, bytearray, memoryview),
    "bytearray": _sort("a bytearray", bytearray),
    "IO": _sort("an open file", fits=lambda value: hasattr(value, "write")),
    "None": _sort("None", type(None)),
    "os.PathLike": _sort("a path", fits=lambda value: isinstance(value, os.PathLike)),
    "Path": _sort("a path", fits=lambda value: isinstance(value, os.PathLike)),
    "Callable": _sort("a function", fits=callable),
    "Mapping": _sort("a mapping", dict, fits=lambda value: isinstance(value, Mapping)),
    "Sequence": _sort("a list", list, tuple, fits=lambda value: isinstance(value, Iterable)),
    "Iterable": _sort("a list", list, tuple, fits=lambda value: isinstance(value, Iterable)),
    **{name: _class(name) for name in ("CType", "Executor", "Program", "Regs", "Symbol", "Uc")},
}


@cache
def sort_of(annotation: str) -> Sort | None:
    """Return the kind of values that an annotation admits.

    Args:
        annotation: as source text, `int | None`. What stands in brackets is not looked at.

    Returns:
        A Sort of all its alternatives; None: one of these is not in SORTS, and nothing can be said.
    """
    found = [SORTS.get(name) for name in _alternatives(ast.parse(annotation, mode="eval").body)]
    sorts = [one for one in found if one is not None]
    if len(sorts) < len(found):
        return None
    return Sort(
        frozenset[type]().union(*(one.exact for one in sorts)),
        lambda value: any(one.fits(value) for one in sorts),
        " or ".join(one.said for one in sorts),
    )


def _alternatives(annotation: ast.expr) -> list[str]:
    """Return the names of the types that `|` joins in an annotation, in order, without their
    parameters and without "unicorn." in front.
    """
    if isinstance(annotation, ast.BinOp):
        return [*_alternatives(annotation.left), *_alternatives(annotation.right)]
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return [ast.unparse(annotation).removeprefix("unicorn.")]


def shown(value: object) -> str:
    """Return a value as a message shows it: its repr, or "a TYPE" where repr raises.

    A text of more than 60 characters is cut to 57 and "...".
    """
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


INTEGER = SORTS["int"]
MOST = 1 << 16  #: words or bytes that one access may be about


def kind_of(value: object) -> str:
    """Return the name of a value's type with its article, such as "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def look(name: str, value: object, sort: Sort = INTEGER) -> None:
    """Raise BadArgument unless a value is of a kind.

    Args:
        name: the parameter's name, for the message.
        value: what was passed.
        sort: the kind.
    """
    if type(value) not in sort.exact and not sort.fits(value):
        raise BadArgument(f"{name} is {shown(value)}", hint=f"pass {sort.said}")


def look_at_width(what: str, value: int, bits: int, hint: str) -> None:
    """Raise BadArgument unless a number fits into bits, signed or unsigned.

    Args:
        what: the message's words for the number.
        value: the number.
        bits: how many there are.
        hint: of the error.
    """
    if not -(1 << bits - 1) <= value < 1 << bits:
        number = f"{value:#x}"
        if len(number) > 80:
            number = f"{number[:77]}..."
        raise BadArgument(f"{what}, {number}, does not fit into {bits} bits", hint=hint)


def blame(error: Exception, **values: object) -> Exception:
    """Return the error to raise for a call that failed: it names the value that is no integer.

    For functions that are called too often to check their arguments first: they call this only when
    an operation has failed.

    Args:
        error: what the call raised.
        values: parameter's name -> what was passed.

    Returns:
        A BadArgument for the first value that is no integer, else `error`.
    """
    for name, value in values.items():
        try:
            look(name, value)
        except BadArgument as found:
            return found
    return error


def count_or_index(name: str, value: int) -> int:
    """Return a count or an index, if it is an integer from 0 to MOST.

    Args:
        name: the parameter's name, for the message.
        value: what was passed.

    Raises:
        BadArgument: it is no integer, negative, or more than MOST.
    """
    look(name, value)
    if not 0 <= value <= MOST:
        raise BadArgument(f"{name} is {shown(value)}", hint=f"pass 0 to {MOST}")
    return value


def key(name: str, value: T) -> T:
    """Return a value that is to be a key, if it can be hashed.

    Args:
        name: the parameter's name, for the message.
        value: what was passed.

    Raises:
        BadArgument: it cannot be hashed.
    """
    try:
        hash(value)
    except TypeError:
        raise BadArgument(
            f"{name} is {shown(value)}, which cannot be hashed", hint="pass what cpu_task gives"
        ) from None
    return value


def checked(*hot: str) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that makes __init__, public methods, class methods and setters check
    their arguments first. The class itself is changed.

    The check is by annotations (looking()). Static methods and inherited members are left alone.

    Args:
        hot: names of methods that are left as they are: they check by themselves.
    """
    return lambda kind: _checked(hot, kind)


def _checked(hot: Container[str], kind: type[T]) -> type[T]:
    """Make __init__, public methods, class methods and setters that a class defines check their
    arguments. Return the class.

    Args:
        hot: names of methods that are left as they are.
        kind: the class; it is changed.
    """
    made: dict[Any, Any] = {}  # a method's other names are its own
    for name, member in [*vars(kind).items()]:
        if name in hot or (name.startswith("_") and name != "__init__"):
            continue
        if isinstance(member, classmethod):
            setattr(kind, name, classmethod(looking(member.__func__)))
        elif isinstance(member, property) and member.fset is not None:
            setattr(kind, name, member.setter(looking(member.fset, name)))
        elif inspect.isfunction(member):
            setattr(kind, name, made.setdefault(member, looking(member)))
    return kind


def looking(function: F, name: str = "") -> F:
    """Return a function that checks its arguments by their annotations, then calls `function`.

    An argument whose annotation sort_of() knows nothing of is not checked.

    Args:
        function: the function; it is returned itself where no annotation says anything.
        name: the parameter's name in messages, for a property's setter; "": as in the signature.

    Raises:
        BadArgument: when called: an argument is not of the kind that its annotation says.
    """
    parameters = inspect.signature(function).parameters.values()
    sorts = {
        p.name: sort
        for p in parameters
        if isinstance(p.annotation, str) and (sort := sort_of(p.annotation)) is not None
    }
    if not sorts:
        return function
    placed = [
        (p.name, sorts.get(p.name))
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    rest = next(
        ((p.name, sorts.get(p.name)) for p in parameters if p.kind is p.VAR_POSITIONAL), None
    )

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        """Check the arguments, then call the function. Raises BadArgument."""
        for (parameter, sort), value in zip(placed, args, strict=False):
            if sort is not None and type(value) not in sort.exact:
                look(name or parameter, value, sort)
        if rest is not None and rest[1] is not None:
            for value in args[len(placed) :]:
                look(rest[0], value, rest[1])
        for parameter, value in named.items():
            if (sort := sorts.get(parameter)) is not None:
                look(parameter, value, sort)
        return function(*args, **named)

    return cast(F, call)
