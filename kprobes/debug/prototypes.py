"""Prototypes: the types of a function, from debug information or as C writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from ..arch._base import Arch
from ..arguments import shown
from ..errors import BadArgument, UnknownSymbol
from .placing import ParameterPart
from .types import CType, Derived

#: types of C and its headers that are one word -> (kind, bytes, signed); 0 bytes: as many as a
#: pointer has, but of void
_NAMED: Final = {
    "void": ("void", 0, False),
    "float": ("float", 4, True),
    "double": ("float", 8, True),
    "bool": ("bool", 1, False),
    "_Bool": ("bool", 1, False),
    "size_t": ("int", 0, False),
    "uintptr_t": ("int", 0, False),
    "ssize_t": ("int", 0, True),
    "intptr_t": ("int", 0, True),
    "ptrdiff_t": ("int", 0, True),
    **{f"int{8 * n}_t": ("int", n, True) for n in (1, 2, 4, 8)},
    **{f"uint{8 * n}_t": ("int", n, False) for n in (1, 2, 4, 8)},
}
#: words of an integer type in alphabetical order, without `int`, `signed` and `unsigned` -> bytes;
#: 0: as many as a pointer has
_INTEGERS: Final = {"": 4, "char": 1, "short": 2, "long": 0, "long long": 8}
_OF_INTEGERS: Final = {"char", "short", "int", "long", "signed", "unsigned"}
_COMPLEX: Final = {"complex", "_Complex"}
#: words that belong to a type wherever they stand, and are never a parameter's name
_OF_TYPES: Final = {*_OF_INTEGERS, "float", "double", *_COMPLEX}
_QUALIFIERS: Final = {"const", "volatile", "restrict", "extern", "static", "inline", "register"}
_DECLARATION: Final = re.compile(r"([^()]*)\(([^()]*)\)\s*;?\s*")


@frozen
class FunctionConvention:
    """How functions of a file and a language are called.

    Attributes:
        parameters: (types of the arguments, type of the result) -> the parts of each argument, at
            the function's entry. Raises NotKnown where a type is not understood.
        result: type of the result -> the parts of the result, as the function returns. Raises
            NotKnown where the type is not understood.
    """

    parameters: Callable[[Sequence[CType], CType], list[tuple[ParameterPart, ...]]]
    result: Callable[[CType], tuple[ParameterPart, ...]]


@frozen
class Prototype:
    """The types of a function.

    Attributes:
        result: type of the result; of kind "void" where there is none.
        parameters: types of the parameters, in order.
        variadic: True where more arguments may follow ("...").
        convention: how the function is called.
    """

    result: CType
    parameters: tuple[CType, ...]
    variadic: bool
    convention: FunctionConvention


def parse_prototype(
    text: str,
    arch: Arch,
    type_named: Callable[[str], CType],
    convention_of: Callable[[bool], FunctionConvention],
) -> Prototype:
    """Read a prototype as C writes it: "double pow(double, double)". Names may be left out.

    Args:
        text: the prototype.
        arch: the guest's, which says how wide `long` is.
        type_named: name as C writes it ("struct point") -> the type that debug information has of
            that name. Asked for names that are no number's; raises UnknownSymbol where there is no
            such type.
        convention_of: True for a function with `...` -> how the function is called.

    Raises:
        BadArgument: `text` is no prototype, or has a type that is not known.
    """
    found = _DECLARATION.fullmatch(text.strip())
    if found is None:
        raise BadArgument(
            f"{shown(text)} is no prototype",
            hint='write it as C does: "double pow(double, double)", '
            "with void * for a pointer to a function",
        )
    given = [one.strip() for one in found[2].split(",")] if found[2].strip() else []
    variadic = given[-1:] == ["..."]
    parameters = [_declared_type(one, arch, type_named) for one in given[: len(given) - variadic]]
    if len(parameters) == 1 and parameters[0].kind == "void" and len(given) == 1:
        parameters = []
    if any(one.kind == "void" for one in parameters):
        raise BadArgument(f"{shown(text)} has a parameter of type void", hint="leave it out")
    result = _declared_type(found[1], arch, type_named)
    return Prototype(result, tuple(parameters), variadic, convention_of(variadic))


def _declared_type(text: str, arch: Arch, type_named: Callable[[str], CType]) -> CType:
    """Return the type that a declaration in a prototype has.

    Every pointer and array becomes `void *`: a call needs no more than the address.

    Args:
        text: the declaration of a parameter, whose name may be missing, or the type and the name
            of the function.
        arch: the guest's.
        type_named: name of a type -> the type, as parse_prototype() takes it.

    Raises:
        BadArgument: the type is not known.
    """
    if "*" in text or "[" in text:
        return Derived.of(Derived.number("void", "void", 0, False, arch), arch, None)
    words = [one for one in text.split() if one not in _QUALIFIERS]
    # the last word may be a name; numbers come first, because debug information is slow
    counts = [n for n in (len(words), len(words) - 1) if n > 0 and not _OF_TYPES & {*words[n:]}]
    for count in counts:
        found = _basic_type(words[:count], arch)
        if found is not None:
            return found
    for count in counts:
        found = _type_or_none(" ".join(words[:count]), type_named)
        if found is not None:
            return found
    raise BadArgument(
        f"the type of {shown(text.strip())} is not understood",
        hint="numbers of C and stdint.h, void, pointers and types of debug information are",
    )


def _basic_type(words: list[str], arch: Arch) -> CType | None:
    """Return a type of C's numbers or of stdint.h's, or void.

    Args:
        words: of the type's name, without qualifiers.
        arch: the guest's, which says how wide `long` is, and whether `char` has a sign.

    Returns:
        None: the words name no such type.
    """
    name = " ".join(words)
    word = arch.bits // 8
    if name in _NAMED:
        kind, size, signed = _NAMED[name]
        if not size and kind != "void":
            size = word
        return Derived.number(kind, name, size, signed, arch)
    if not _COMPLEX.isdisjoint(words):
        parts = [one for one in words if one not in _COMPLEX]
        if len(words) != 2 or parts not in (["float"], ["double"]):
            return None
        _, half, _ = _NAMED[parts[0]]
        return Derived.number("complex", name, 2 * half, True, arch)
    signs = [one for one in words if one in ("signed", "unsigned")]
    rest = " ".join(sorted(one for one in words if one not in ("signed", "unsigned", "int")))
    most_ints = 0 if "char" in words else 1
    if (
        not _OF_INTEGERS.issuperset(words)
        or rest not in _INTEGERS
        or len(signs) > 1
        or words.count("int") > most_ints
    ):
        return None
    signed = signs != ["unsigned"]
    if rest == "char" and not signs and arch.abi is not None:
        signed = arch.abi.char_signed
    return Derived.number("int", name, _INTEGERS[rest] or word, signed, arch)


def _type_or_none(name: str, type_named: Callable[[str], CType]) -> CType | None:
    """Return the type that debug information has of a name.

    Args:
        name: as C writes it: "struct point".
        type_named: name -> type, as parse_prototype() takes it.

    Returns:
        None: there is no type of the name, or there are several.
    """
    try:
        return type_named(name)
    except UnknownSymbol:
        return None
