"""Calls on 64-bit PowerPC: the ELF ABI's versions 1 and 2, where each parameter has doublewords of
the parameter save area, in order: the first eight of them in registers, the others in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from ..arch._base import Arch, Order
from .placing import (
    EMPTY_CLASSES,
    MOST_DEEP,
    NOT_UNDERSTOOD,
    STRUCTURES,
    ByReference,
    NotKnown,
    ParameterPart,
    PassingRules,
    Taken,
    alignment,
    equal_reals,
    has_no_members,
    is_empty,
    look_at_kind,
)
from .types import CType

_WORD: Final = 8
_REALS: Final = 13  # registers for floating-point parameters, from f1 on
_MOST_EQUAL: Final = 8  # registers of a structure of floating-point numbers of one type
_MOST_IN_REGISTERS: Final = 16  # bytes of another structure as a result


@frozen
class Ppc64Rules(PassingRules[Taken]):
    """The convention of 64-bit PowerPC.

    Attributes:
        arch: the guest's, whose Abi is that of one version.
    """

    arch: Arch

    @property
    def _is_second(self) -> bool:
        """Whether the ABI is version 2, which returns some structures in registers."""
        abi = self.arch.abi
        assert abi is not None
        return abi.results is not None and abi.results.registers > 0

    @property
    def _is_big(self) -> bool:
        """Whether the guest is a big-endian one."""
        return self.arch.order is Order.BIG

    def _begin(self, hidden: bool) -> Taken:
        """Return what a call has taken before its first parameter (PassingRules._begin)."""
        return Taken(words=int(hidden))

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result).

        Version 1 has all structures in memory, version 2 some in registers of a first parameter.
        """
        assert self.arch.abi is not None
        if is_empty(type):
            if not self._is_second:
                raise NotKnown("where results without bytes are is not known")
            return ()
        look_at_kind(type)
        if type.kind in STRUCTURES:
            in_registers = type.size <= _MOST_IN_REGISTERS or self._equal_reals(type)
            if not self._is_second or by_reference(type) or not in_registers:
                return (ParameterPart("given", type.size, self.arch.abi.args[0]),)
        return self._parameter(type, Taken(), by_reference)

    def _parameter(
        self, type: CType, taken: Taken, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of the next parameter (PassingRules._parameter)."""
        if is_empty(type):
            return ()
        look_at_kind(type)
        if type.kind in ("float", "complex"):
            return tuple(self._next_real(size, taken) for size in self._sizes_of_numbers(type))
        if type.kind not in STRUCTURES:
            return self._in_doublewords(type.size, taken)
        if by_reference(type):
            (slot,) = self._in_doublewords(_WORD, taken)
            return (ParameterPart("behind", type.size, slot.name, slot.offset),)
        if has_no_members(type):
            raise NotKnown(EMPTY_CLASSES)
        if alignment(type) > _WORD:
            taken.words += taken.words & 1
        if not self._is_second:
            alone = _only_real(type)
            if alone is None:
                return self._in_doublewords(type.size, taken)
            return tuple(self._next_real(size, taken) for size in self._sizes_of_numbers(alone))
        sizes = self._equal_reals(type)
        if sizes:
            return self._in_reals(type.size, sizes, taken)
        return self._in_doublewords(type.size, taken)

    def _sizes_of_numbers(self, type: CType) -> list[int]:
        """Return the bytes of each number that a floating-point or complex number is passed as.

        A long double is a pair of doubles.

        Args:
            type: the parameter's or result's.

        Raises:
            NotKnown: the number is none of float, double and a pair of doubles.
        """
        count = 2 if type.kind == "complex" else 1
        size = type.size // count
        if size in (4, 8):
            return [size] * count
        if size == 2 * _WORD and "128" not in type.base_name:
            return [_WORD] * 2 * count
        raise NotKnown(NOT_UNDERSTOOD)

    def _equal_reals(self, type: CType) -> list[int]:
        """Return the bytes of each number of a structure that floating-point registers pass; []
        for any other structure.

        Args:
            type: the structure's, or a union's.

        Raises:
            NotKnown: compilers differ about it, or a member is not known.
        """
        size, count = equal_reals(type)
        if size == 2 * _WORD:  # a long double, if it is none of IEEE's
            size, count = _WORD, 2 * count
        if not 1 <= count <= _MOST_EQUAL:
            return []
        if size not in (4, 8):
            raise NotKnown(NOT_UNDERSTOOD)
        return [size] * count

    def _next_real(self, size: int, taken: Taken) -> ParameterPart:
        """Return the part of a floating-point number. It takes a doubleword of the save area even
        where it is in a floating-point register.

        Args:
            size: bytes of the number, 4 or 8.
            taken: what the parameters before it have taken; the parameter's places are added.
        """
        (slot,) = self._in_doublewords(size, taken)
        if taken.reals == _REALS:
            return slot
        taken.reals += 1
        return _in_real(taken.reals, size)

    def _in_reals(
        self, whole: int, sizes: Sequence[int], taken: Taken
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of a structure of floating-point numbers. Numbers for which no
        floating-point register is left are in the structure's doublewords.

        Args:
            whole: bytes of the structure.
            sizes: bytes of each number.
            taken: what the parameters before it have taken; the parameter's places are added.
        """
        first = taken.words
        taken.words += -(-whole // _WORD)
        parts = list[ParameterPart]()
        offset = 0
        for size in sizes:
            if taken.reals < _REALS:
                taken.reals += 1
                parts.append(_in_real(taken.reals, size))
            else:
                parts.append(self._within_doubleword(first, offset, size))
            offset += size
        return tuple(parts)

    def _within_doubleword(self, first: int, offset: int, size: int) -> ParameterPart:
        """Return the part of bytes of a parameter that are within one doubleword.

        Args:
            first: number of the parameter's first doubleword in the save area, from 0.
            offset: of the bytes in the parameter.
            size: how many bytes.
        """
        abi = self.arch.abi
        assert abi is not None
        number = first + offset // _WORD
        within = offset % _WORD
        if number < len(abi.args):
            low = _WORD - within - size if self._is_big else within
            return ParameterPart("register", size, abi.args[number], low)
        return ParameterPart("stack", size, offset=self._slot(number) + within)

    def _in_doublewords(self, size: int, taken: Taken) -> tuple[ParameterPart, ...]:
        """Return the parts of a parameter in doublewords of the save area, for the first of which
        there are registers.

        On a big-endian guest less than a doubleword is at the doubleword's end. A longer parameter
        begins at a doubleword's begin, and its last bytes are the highest ones of their register.

        Args:
            size: bytes of the parameter.
            taken: what the parameters before it have taken; the parameter's places are added.
        """
        assert self.arch.abi is not None
        first = taken.words
        count = -(-size // _WORD)
        taken.words += count
        if size < _WORD:
            return (self._within_doubleword(first, _WORD - size if self._is_big else 0, size),)
        in_registers = min(count, max(len(self.arch.abi.args) - first, 0))
        parts = [
            self._within_doubleword(first, _WORD * n, min(_WORD, size - _WORD * n))
            for n in range(in_registers)
        ]
        rest = size - _WORD * in_registers
        if rest > 0:
            parts.append(ParameterPart("stack", rest, offset=self._slot(first + in_registers)))
        return tuple(parts)

    def _slot(self, number: int) -> int:
        """Return the offset from the stack pointer at the entry to a doubleword in memory.

        Args:
            number: of the doubleword in the save area; at least 8, as the others have registers.
        """
        abi = self.arch.abi
        assert abi is not None
        return abi.stack_args + _WORD * (number - len(abi.args))


def _in_real(number: int, size: int) -> ParameterPart:
    """Return the part of a number in a floating-point register, which has a float as a double.

    Args:
        number: of the register, from 1: f1.
        size: bytes of the floating-point number, 4 or 8.
    """
    return ParameterPart("single" if size == 4 else "register", size, f"f{number}")


def _only_real(type: CType) -> CType | None:
    """Return the type of the one floating-point number that a structure consists of.

    Version 1 passes the structure as that number.

    Args:
        type: a structure or union.

    Returns:
        None: the structure has something else, or there is a union or a complex number in it.
    """
    inner = type
    for _ in range(MOST_DEEP):
        if inner.kind == "float":
            return inner
        if inner.kind == "array" and inner.count == 1:
            inner = inner.element
            continue
        filling = [each for each in inner.fields if each.type.size == type.size and not each.bits]
        if inner.kind != "struct" or len(filling) != 1:
            return None
        inner = filling[0].type
    return None
