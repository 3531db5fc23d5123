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
class Ppc64Rules(PassingRules):
    """The convention of 64-bit PowerPC.

    Attributes:
        arch: the guest's, whose Abi is that of one version.
    """

    arch: Arch

    @property
    def _is_second(self) -> bool:
        """Whether it is version 2, which has some structures in registers."""
        abi = self.arch.abi
        assert abi is not None
        return abi.results is not None and abi.results.registers > 0

    @property
    def _is_big(self) -> bool:
        """Whether the guest is a big-endian one."""
        return self.arch.order is Order.BIG

    def parameters(
        self, types: Sequence[CType], result: CType, by_reference: ByReference
    ) -> list[tuple[ParameterPart, ...]]:
        """Return the parts of each parameter at the entry (PassingRules.parameters)."""
        hidden = result.kind != "void" and self.is_in_memory(result, by_reference)
        taken = Taken(words=int(hidden))
        return [self._parameter(type, taken, by_reference) for type in types]

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result). Version 1 has all
        structures in memory, version 2 some in the registers of a first parameter.
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
        """Return the parts of the next parameter.

        Args:
            type: of the parameter.
            taken: what the parameters before it have taken; is changed.
            by_reference: type -> whether C++ copies it by a function of its own.

        Raises:
            NotKnown: the type is not understood.
        """
        if is_empty(type):
            return ()
        look_at_kind(type)
        if type.kind in ("float", "complex"):
            return tuple(self._real(size, taken) for size in self._numbers(type))
        if type.kind not in STRUCTURES:
            return self._image(type.size, taken)
        if by_reference(type):
            (slot,) = self._image(_WORD, taken)
            return (ParameterPart("behind", type.size, slot.name, slot.offset),)
        if has_no_members(type):
            raise NotKnown(EMPTY_CLASSES)
        if alignment(type) > _WORD:
            taken.words += taken.words & 1
        if not self._is_second:
            alone = _only_real(type)
            if alone is None:
                return self._image(type.size, taken)
            return tuple(self._real(size, taken) for size in self._numbers(alone))
        sizes = self._equal_reals(type)
        if sizes:
            return self._in_reals(type.size, sizes, taken)
        return self._image(type.size, taken)

    def _numbers(self, type: CType) -> list[int]:
        """Return the bytes of the numbers that a floating-point or complex number is passed as: a
        long double is two.

        Args:
            type: of the parameter or result.

        Raises:
            NotKnown: it is of a kind that is not understood.
        """
        count = 2 if type.kind == "complex" else 1
        size = type.size // count
        if size in (4, 8):
            return [size] * count
        if size == 2 * _WORD and "128" not in type.base_name:
            return [_WORD] * 2 * count
        raise NotKnown(NOT_UNDERSTOOD)

    def _equal_reals(self, type: CType) -> list[int]:
        """Return the bytes of each number of a structure that floating-point registers pass; [] for
        another one.

        Args:
            type: a structure or union.

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

    def _real(self, size: int, taken: Taken) -> ParameterPart:
        """Return where a floating-point number is, which also takes a doubleword.

        Args:
            size: its bytes, 4 or 8.
            taken: what the parameters before it have taken; is changed.
        """
        (slot,) = self._image(size, taken)
        if taken.reals == _REALS:
            return slot
        taken.reals += 1
        return _in_real(taken.reals, size)

    def _in_reals(
        self, whole: int, sizes: Sequence[int], taken: Taken
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of a structure of floating-point numbers. Those that find no register of
        their kind are in the structure's doublewords.

        Args:
            whole: bytes of the structure.
            sizes: bytes of each number.
            taken: what the parameters before it have taken; is changed.
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
                parts.append(self._piece(first, offset, size))
            offset += size
        return tuple(parts)

    def _piece(self, first: int, offset: int, size: int) -> ParameterPart:
        """Return where bytes within one doubleword of a structure are.

        Args:
            first: number of the structure's first doubleword.
            offset: of the bytes in the structure.
            size: how many.
        """
        abi = self.arch.abi
        assert abi is not None
        number, within = first + offset // _WORD, offset % _WORD
        if number < len(abi.args):
            low = _WORD - within - size if self._is_big else within
            return ParameterPart("register", size, abi.args[number], low)
        return ParameterPart("stack", size, offset=self._slot(number) + within)

    def _image(self, size: int, taken: Taken) -> tuple[ParameterPart, ...]:
        """Return the parts of what has doublewords: a register for each, or memory.

        Less than a doubleword is in the last bytes of one on a big-endian guest; more is at the
        begin, and the last bytes are the highest of their register.

        Args:
            size: bytes of the parameter.
            taken: what the parameters before it have taken; is changed.
        """
        assert self.arch.abi is not None
        first, count = taken.words, -(-size // _WORD)
        taken.words += count
        if size < _WORD:
            return (self._piece(first, _WORD - size if self._is_big else 0, size),)
        in_registers = min(count, max(len(self.arch.abi.args) - first, 0))
        parts = [
            self._piece(first, _WORD * n, min(_WORD, size - _WORD * n)) for n in range(in_registers)
        ]
        rest = size - _WORD * in_registers
        if rest > 0:
            parts.append(ParameterPart("stack", rest, offset=self._slot(first + in_registers)))
        return tuple(parts)

    def _slot(self, number: int) -> int:
        """Return the offset from the stack pointer at the entry to a doubleword in memory.

        Args:
            number: of the doubleword, from 0; at least 8.
        """
        abi = self.arch.abi
        assert abi is not None
        return abi.stack_args + _WORD * (number - len(abi.args))


def _in_real(number: int, size: int) -> ParameterPart:
    """Return the part of a number in a floating-point register, which has 4 bytes as 8.

    Args:
        number: of the register.
        size: bytes of the number.
    """
    return ParameterPart("single" if size == 4 else "register", size, f"f{number}")


def _only_real(type: CType) -> CType | None:
    """Return the floating-point number that a structure consists of, alone; None: there is none.

    Version 1 passes it as that number. A union is none, nor is a complex number.

    Args:
        type: a structure or union.
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
