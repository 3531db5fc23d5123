"""Calls on AArch64: the Procedure Call Standard (AAPCS64, 6.4, 6.8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ..arch._base import Arch, Order
from .placing import (
    NO_VECTORS,
    NOT_UNDERSTOOD,
    STRUCTURES,
    WORDS,
    ByReference,
    NotKnown,
    ParameterPart,
    PassingRules,
    Taken,
    equal_reals,
    has_vector,
    is_empty,
    natural_alignment,
)
from .types import CType

_WORD: Final = 8
_COMPOSITE: Final = (*STRUCTURES, "array")
_REGISTERS: Final = 8  # of each kind, for parameters
_MOST_BY_VALUE: Final = 16  # bytes of a structure in general registers
_MOST_EQUAL: Final = 4  # numbers of a structure in floating-point registers
_RESULT: Final = "x8"  # has the address of a result in memory


@frozen
class Arm64Rules(PassingRules[Taken]):
    """The convention of AArch64.

    Attributes:
        arch: the guest's.
    """

    arch: Arch

    def _begin(self, hidden: bool) -> Taken:
        """Return what a call has taken before its first parameter (PassingRules._begin)."""
        return Taken()  # a result's address is in x8

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result).

        A result is in the registers of a first parameter, or where x8 pointed at the entry.
        """
        if type.kind in _COMPOSITE and not is_empty(type):
            large = type.size > _MOST_BY_VALUE and not _reals(type)
            if by_reference(type) or large:
                return (ParameterPart("given", type.size, name=_RESULT),)
        return self._parameter(type, Taken(), by_reference)

    def is_in_memory(self, type: CType, by_reference: ByReference) -> bool:
        """Whether a result's address comes before the first parameter: never, since x8 has it."""
        return False

    def _parameter(
        self, type: CType, taken: Taken, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of the next parameter (PassingRules._parameter).

        Structures of one to four floats of one type are in floating-point registers, others of at
        most 16 bytes in general ones. Larger ones, and those that C++ copies by a function, are
        passed by their address.
        """
        if has_vector(type, 0):
            raise NotKnown(NO_VECTORS)
        if is_empty(type):
            return ()
        if type.kind in _COMPOSITE:
            if not type.size or type.hidden:
                raise NotKnown(NOT_UNDERSTOOD)
            if by_reference(type):
                return self._address(type, taken)
            reals = _reals(type)
            if reals:
                return self._in_reals(type, reals, taken)
            if type.size > _MOST_BY_VALUE:
                return self._address(type, taken)
        elif type.kind in ("float", "complex"):
            count = 2 if type.kind == "complex" else 1
            return self._in_reals(type, [type.size // count] * count, taken)
        elif type.kind not in WORDS:
            raise NotKnown(NOT_UNDERSTOOD)
        return self._in_words(type, taken)

    def _address(self, type: CType, taken: Taken) -> tuple[ParameterPart, ...]:
        """Return the part of a parameter that is passed by its address.

        Args:
            type: the parameter's.
            taken: what the parameters before it have taken; the parameter's places are added.
        """
        if taken.words < _REGISTERS:
            taken.words += 1
            return (ParameterPart("behind", type.size, name=f"x{taken.words - 1}"),)
        offset = taken.on_stack(_WORD, _WORD, _WORD)
        return (ParameterPart("behind", type.size, offset=offset),)

    def _in_reals(
        self, type: CType, sizes: Sequence[int], taken: Taken
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of a parameter: a floating-point register for each number, or the stack.

        Where too few registers are left, the whole is on the stack, and no later parameter is in
        these registers.

        Args:
            type: the parameter's.
            sizes: bytes of each number that the parameter consists of.
            taken: what the parameters before it have taken; the parameter's places are added.

        Raises:
            NotKnown: the type's alignment is not known.
        """
        first = taken.reals
        if first + len(sizes) > _REGISTERS:
            taken.reals = _REGISTERS
            return self._on_stack(type, taken)
        taken.reals += len(sizes)
        return tuple(
            ParameterPart("register", size, name=f"v{first + n}") for n, size in enumerate(sizes)
        )

    def _in_words(self, type: CType, taken: Taken) -> tuple[ParameterPart, ...]:
        """Return the parts of a parameter in general registers, or on the stack; never in both.

        A type that has a member aligned to 16 bytes begins with an even register; what the program
        asks for the whole type does not matter. Where too few registers are left, the whole is on
        the stack, and no later parameter is in them. On a big-endian guest the last bytes of a
        structure are the highest of their register.

        Args:
            type: the parameter's.
            taken: what the parameters before it have taken; the parameter's places are added.

        Raises:
            NotKnown: the type's alignment is not known.
        """
        if natural_alignment(type) > _WORD:
            taken.words += taken.words % 2
        first, count = taken.words, -(-type.size // _WORD)
        if first + count > _REGISTERS:
            taken.words = _REGISTERS
            return self._on_stack(type, taken)
        taken.words += count
        parts = [ParameterPart("register", _WORD, name=f"x{first + n}") for n in range(count)]
        rest = type.size - _WORD * (count - 1)
        high = self.arch.order is Order.BIG and type.kind in _COMPOSITE
        last = ParameterPart("register", rest, parts[-1].name, _WORD - rest if high else 0)
        return (*parts[:-1], last)

    def _on_stack(self, type: CType, taken: Taken) -> tuple[ParameterPart, ...]:
        """Return the part of a parameter on the stack.

        A number of less than a word is at the end of its word on a big-endian guest.

        Args:
            type: the parameter's.
            taken: what the parameters before it have taken; the parameter's places are added.

        Raises:
            NotKnown: the type's alignment is not known.
        """
        offset = taken.on_stack(type.size, _WORD if natural_alignment(type) <= _WORD else 16, _WORD)
        number = type.kind in (*WORDS, "float")
        if self.arch.order is Order.BIG and number and type.size < _WORD:
            offset += _WORD - type.size
        return (ParameterPart("stack", type.size, offset=offset),)


def _reals(type: CType) -> list[int]:
    """Return the sizes of the numbers that a structure, union or array consists of, where these are
    one to four floats of one type.

    Returns:
        Bytes of each number, as [4, 4, 4]; [] for any other type, which is not passed in
        floating-point registers.

    Raises:
        NotKnown: compilers differ about it, or a member is not known.
    """
    size, count = equal_reals(type)
    return [size] * count if count <= _MOST_EQUAL else []
