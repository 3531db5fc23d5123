"""Calls on i386: the System V ABI's supplement. All parameters are on the stack."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..arch._base import Arch, Results
from .placing import (
    EMPTY_CLASSES,
    NOT_UNDERSTOOD,
    STRUCTURES,
    WORDS,
    ByReference,
    NotKnown,
    ParameterPart,
    PassingRules,
    Taken,
    alignment,
    has_no_members,
    is_empty,
    is_in_memory_by_size,
    look_at_kind,
)
from .types import CType

_WORD: Final = 4
_FLOATS: Final = (4, 8, 12)  # bytes of float, double and long double
_COMPLEX: Final = (8, 16, 24)  # bytes of complex numbers of these
_MOST_ALIGNED: Final = 12  # alignment() of a long double, padded to three words
_X87: Final = 10  # bytes of a long double that are no padding


@frozen
class I386Rules(PassingRules[Taken]):
    """The convention of i386.

    Attributes:
        arch: the guest's.
        results: where functions of the file return structures; None: not known.
    """

    arch: Arch
    results: Results | None

    def _begin(self, hidden: bool) -> Taken:
        """Return what a call has taken before its first parameter (PassingRules._begin)."""
        assert self.arch.abi is not None
        return Taken(stack=self.arch.abi.stack_args + _WORD * hidden)

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result).

        For a result in memory the function returns the address of that memory in eax.
        """
        abi = self.arch.abi
        assert abi is not None
        if self.is_in_memory(type, by_reference):
            return (ParameterPart("behind", type.size, abi.returns[0]),)
        if type.kind == "float":
            if type.size > 2 * _WORD:
                return (ParameterPart("register", _X87, "st0"),)
            return (ParameterPart("x87", type.size, "st0"),)
        if type.size > 2 * _WORD:
            raise NotKnown(f"how {self.arch.name} returns it is not known")
        names = abi.returns[: -(-type.size // _WORD)]
        return tuple(ParameterPart("register", min(type.size, _WORD), name) for name in names)

    def is_in_memory(self, type: CType, by_reference: ByReference) -> bool:
        """Whether a result is in memory whose address the caller passes before the parameters."""
        if type.kind in ("float", *WORDS):
            return False
        if type.kind == "complex" and type.size in _COMPLEX:
            return type.size > 2 * _WORD
        if type.kind not in STRUCTURES:
            raise NotKnown("how the function's result is returned is not known, and may move it")
        return is_in_memory_by_size(self.results, type, by_reference)

    def _parameter(
        self, type: CType, taken: Taken, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the part of the next parameter (PassingRules._parameter).

        Raises:
            NotKnown: the type is not understood, or aligned to 16 bytes or more.
        """
        if is_empty(type):
            return ()
        look_at_kind(type)
        if type.kind in STRUCTURES and by_reference(type):
            offset = taken.on_stack(_WORD, _WORD, _WORD)
            return (ParameterPart("behind", type.size, offset=offset),)
        if type.kind in STRUCTURES and has_no_members(type):
            raise NotKnown(EMPTY_CLASSES)
        numbers = {"float": _FLOATS, "complex": _COMPLEX}.get(type.kind)
        if numbers is not None and type.size not in numbers:
            raise NotKnown(NOT_UNDERSTOOD)
        if type.kind in STRUCTURES and alignment(type) > _MOST_ALIGNED:
            raise NotKnown("it or a parameter before it is aligned to more than two words")
        return (ParameterPart("stack", type.size, offset=taken.on_stack(type.size, _WORD, _WORD)),)
