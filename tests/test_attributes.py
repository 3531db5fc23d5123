"""Classes of kprobes.attributes do what attrs' own do."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import attrs
import pytest

from kprobes import attributes

pytestmark = pytest.mark.quick
Decorator = Callable[..., Any]
NAN = float("nan")


def plain(decorate: Callable[[type], type]) -> type:
    """A class with fields of every sort."""

    class Row:
        a: int
        b: object = None
        c: int = attrs.field(default=3, eq=False)
        d: int = attrs.field(default=4, repr=False)
        e: int = attrs.field(default=5, hash=False)
        f: int = attrs.field(default=6, repr=lambda value: f"<{value}>")

    return decorate(Row)


def empty(decorate: Callable[[type], type]) -> type:
    """A class without fields."""

    class Nothing:
        pass

    return decorate(Nothing)


def alone(decorate: Callable[[type], type]) -> type:
    """A class with one field, which is no tuple."""

    class One:
        a: Any

    return decorate(One)


def own(decorate: Callable[[type], type]) -> type:
    """A class that says itself how it is shown and compared."""

    class Own:  # noqa: PLW1641  (attrs sees it so)
        a: int

        def __eq__(self, other: object) -> bool:
            return True

        def __repr__(self) -> str:
            return "own"

    return decorate(Own)


def hashed(decorate: Callable[[type], type]) -> type:
    """A class with a hash of its own."""

    class Hashed:
        a: int

        def __hash__(self) -> int:
            return 77

    return decorate(Hashed)


def derived(decorate: Callable[[type], type]) -> type:
    """A class whose base is one as well."""

    class Base:
        a: int
        z: int = 0

    class Derived(decorate(Base)):  # type: ignore[misc]
        q: int = 1

    return decorate(Derived)


OPTIONS = [{}, {"eq": False}, {"repr": False}, {"eq": True, "repr": True}, {"slots": False}, {"order": True},
           {"unsafe_hash": True}, {"unsafe_hash": False}]
SHAPES = (plain, alone, own, hashed, derived)


def told(function: Callable[[], Any]) -> Any:
    """What a function gives, or the class of what it raises."""
    try:
        return function()
    except Exception as error:
        return type(error)


def shown(one: object) -> str:
    """An object's repr, without addresses of this process."""
    return re.sub(r"0x[0-9a-f]+", "0x", repr(one))


def told_of(kind: Any) -> list[Any]:
    """Everything that instances of a class show of themselves, the same for the same behaviour."""
    one, same, other, unlike = kind(1), kind(1), kind(2), kind(NAN)
    recursive = kind([])
    recursive_field = "b" if hasattr(one, "b") else "a"
    holder = getattr(recursive, recursive_field)
    if isinstance(holder, list):
        holder.append(recursive)
    facts = [shown(one), shown(recursive), one == same, one != same, one == other, one != other, one == 5,
             one.__eq__(5), told(lambda: kind(NAN) == unlike), told(lambda: kind((NAN,)) == kind((NAN,))),
             told(lambda: hash(one) == hash(same)), told(lambda: hash(one) != hash(other)),
             told(lambda: hash(kind([])) * 0), told(lambda: one < other), told(lambda: setattr(one, "a", 9)),
             shown(one), copy.copy(other) == other, told(lambda: attrs.evolve(other, a=7).a), kind.__match_args__,
             kind.__hash__ is None, [field.name for field in attrs.fields(kind)]]
    if hasattr(one, "c"):
        facts += [kind(1, c=7) == kind(1), kind(1, d=7) == kind(1),
                  told(lambda: hash(kind(1, e=7)) == hash(kind(1))), told(lambda: hash(kind(1, d=7)) == hash(kind(1)))]
    return facts


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["define", "frozen"])
def test_instances_behave_as_attrs_own(name: str, shape: Callable[..., type]) -> None:
    for options in OPTIONS:
        theirs, ours = getattr(attrs, name)(**options), getattr(attributes, name)(**options)
        assert told_of(shape(ours)) == told_of(shape(theirs)), options


def test_every_mixture_of_frozen_and_not() -> None:
    """A base's frozenness is inherited, and with it what is hashed."""
    for first, second in product(("define", "frozen"), repeat=2):
        found = []
        for module in (attrs, attributes):
            base = getattr(module, first)(type("Base", (), {"__annotations__": {"a": int}}))
            made = getattr(module, second)(type("Made", (base,), {"__annotations__": {"b": int}, "b": 2}))
            one = made(1)
            found.append([told(lambda one=one: hash(one) == hash(one)), made.__hash__ is None,  # type: ignore[misc]
                          told(lambda one=one: setattr(one, "a", 2)), repr(one), one == base(1)])  # type: ignore[misc]
        assert found[0] == found[1], (first, second)


def test_classes_without_fields() -> None:
    for name in ("define", "frozen"):
        ours, theirs = empty(getattr(attributes, name)), empty(getattr(attrs, name))
        assert ours() == ours() and theirs() == theirs()
        assert repr(ours()) == repr(theirs()) == "Nothing()"


def test_exceptions_are_as_attrs_makes_them() -> None:
    kind: Any = attributes.define(type("Broken", (ValueError,), {"__annotations__": {"a": int}}))
    assert kind(1) != kind(1) and {kind(1)}


@attributes.frozen
class Packed:
    """A class that pickle finds."""

    a: int
    b: str = ""


def test_pickled() -> None:
    assert pickle.loads(pickle.dumps(Packed(1, "x"))) == Packed(1, "x")
    assert {Packed(1), Packed(1)} == {Packed(1)}


def test_fields_compared_by_a_key_are_refused() -> None:
    with pytest.raises(TypeError, match="by a key"):
        @attributes.frozen
        class Keyed:
            a: object = attrs.field(eq=id)
