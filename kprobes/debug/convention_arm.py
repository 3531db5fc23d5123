"""Calls on 32-bit Arm: the Procedure Call Standard (AAPCS32), its base variant (6.5) and that with
VFP registers (7.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import define, field, frozen

from ..arch._base import Arch, Order
from .placing import (
    NOT_UNDERSTOOD,
    REALS_NOT_TOLD,
    STRUCTURES,
    ByReference,
    NotKnown,
    ParameterPart,
    PassingRules,
    Taken,
    equal_reals,
    is_empty,
    look_at_kind,
    natural_alignment,
)
from .types import CType

_WORD: Final = 4
_SINGLES: Final = 16  # VFP registers for parameters: s0 to s15, which are also d0 to d7
_MOST_EQUAL: Final = 4  # numbers of a structure in VFP registers
_COMPOSITE: Final = (*STRUCTURES, "complex")


@define
class _TakenOnArm(Taken):
    """Counts what the parameters of a call have taken so far, VFP registers one by one.

    Attributes:
        singles: numbers of the VFP registers s0 to s15 that are still free; d0 is s0 and s1.
    """

    singles: list[int] = field(factory=lambda: list(range(_SINGLES)))

    def take_singles(self, count: int, align: int) -> int | None:
        """Take VFP registers of consecutive numbers, the lowest free ones (AAPCS32, C.1.vfp).

        Where there are too few, no later parameter gets one either.

        Args:
            count: how many registers of 4 bytes.
            align: number of which the first register's number is a multiple.

        Returns:
            The first register's number; None: there are too few.
        """
        for first in range(0, _SINGLES, align):
            wanted = range(first, first + count)
            if set(wanted) <= set(self.singles):
                self.singles = [number for number in self.singles if number not in wanted]
                return first
        self.singles = []
        return None


@frozen
class ArmRules(PassingRules[_TakenOnArm]):
    """The convention of 32-bit Arm.

    Attributes:
        arch: the guest's.
        way: how the file says that floating-point numbers are passed: "halves" (in VFP registers of
            4 bytes, two for a number of 8), "counted" (as integers of their size); "": not at all.
        is_variadic: True for a function with `...`, to which the base variant applies (6.5).
    """

    arch: Arch
    way: str
    is_variadic: bool

    def _begin(self, hidden: bool) -> _TakenOnArm:
        """Return what a call has taken before its first parameter (PassingRules._begin)."""
        return _TakenOnArm(words=int(hidden))

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result).

        A result is in the registers of a first parameter, or where the first argument points.
        """
        if is_empty(type):
            return ()
        look_at_kind(type)
        assert self.arch.abi is not None
        copied = type.kind in STRUCTURES and by_reference(type)
        if not copied:
            parts = self._in_vfp(type, _TakenOnArm())
            if parts:
                return parts
        if copied or (type.kind in _COMPOSITE and type.size > _WORD):
            return (ParameterPart("given", type.size, self.arch.abi.args[0]),)
        return self._in_words(type, Taken())

    def is_in_memory(self, type: CType, by_reference: ByReference) -> bool:
        """Whether a result is in memory whose address the caller passes before the parameters."""
        return type.kind != "float" and super().is_in_memory(type, by_reference)

    def _parameter(
        self, type: CType, taken: _TakenOnArm, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of the next parameter (PassingRules._parameter)."""
        if is_empty(type):
            return ()
        look_at_kind(type)
        if type.kind in STRUCTURES and by_reference(type):
            names = self._registers(1, _WORD, taken)
            if names:
                return (ParameterPart("behind", type.size, names[0]),)
            return (ParameterPart("behind", type.size, offset=taken.on_stack(_WORD, _WORD, _WORD)),)
        parts = self._in_vfp(type, taken)
        if parts:
            return parts
        return self._in_words(type, taken)

    # --- VFP registers

    def _in_vfp(self, type: CType, taken: _TakenOnArm) -> tuple[ParameterPart, ...]:
        """Return the parts of a parameter that VFP registers pass: a floating-point number, a
        complex one, or a structure of one to four numbers of one type. Where too few registers are
        left, the part is on the stack.

        Args:
            type: the parameter's.
            taken: what the parameters before it have taken; the parameter's places are added.

        Returns:
            (): the base variant applies to the parameter.

        Raises:
            NotKnown: the file does not say whether VFP registers are used, or a member is not
                known.
        """
        if self.way == "counted" or self.is_variadic:
            return ()
        size, count = equal_reals(type)
        if not 1 <= count <= _MOST_EQUAL:
            return ()
        if size not in (4, 8) and not (size == 2 and type.kind == "float"):
            raise NotKnown(NOT_UNDERSTOOD)
        if not self.way:
            raise NotKnown(REALS_NOT_TOLD)
        each = 2 if size == 8 else 1
        first = taken.take_singles(each * count, each)
        if first is None:
            return (self._on_stack(type, type.size, natural_alignment(type), taken),)
        return tuple(_vfp(first + each * n, size) for n in range(count))

    # --- general registers and the stack

    def _in_words(self, type: CType, taken: Taken) -> tuple[ParameterPart, ...]:
        """Return the parts of a parameter in general registers, on the stack, or in both.

        On a big-endian guest the last bytes of a structure are the highest of their register, and
        those of an integer the lowest.

        Args:
            type: the parameter's.
            taken: what the parameters before it have taken; the parameter's places are added.

        Raises:
            NotKnown: the type's alignment is not known.
        """
        align = natural_alignment(type)
        names = self._registers(-(-type.size // _WORD), align, taken)
        parts = [ParameterPart("register", _WORD, name) for name in names]
        rest = type.size - _WORD * len(names)
        if rest > 0:
            parts.append(self._on_stack(type, rest, _WORD if names else align, taken))
        elif rest < 0:
            high = self.arch.order is Order.BIG and type.kind in _COMPOSITE
            parts[-1] = ParameterPart("register", _WORD + rest, names[-1], -rest if high else 0)
        return tuple(parts)

    def _registers(self, count: int, align: int, taken: Taken) -> Sequence[str]:
        """Take general registers (AAPCS32, 6.5, C.3 to C.6).

        Args:
            count: words of the parameter.
            align: bytes of its alignment; 8 and more ask for a first register of an even number.
            taken: what the parameters before it have taken; the parameter's places are added.

        Returns:
            The registers' names: for all words; for the first words, where nothing was on the stack
            before and the other words come first there; or for none.
        """
        assert self.arch.abi is not None
        names = self.arch.abi.args
        if align > _WORD:
            taken.words += taken.words & 1
        found = names[taken.words : taken.words + count]
        if len(found) < count:
            taken.words = len(names)
            return () if taken.stack else found
        taken.words += count
        return found

    def _on_stack(self, type: CType, size: int, align: int, taken: Taken) -> ParameterPart:
        """Return the part of a parameter that is on the stack.

        A number of less than a word is at the end of its word on a big-endian guest.

        Args:
            type: the parameter's.
            size: how many of its bytes, the last ones, are on the stack.
            align: bytes of which their offset is a multiple; more than 8 count as 8.
            taken: what the parameters before it have taken; the parameter's places are added.
        """
        offset = taken.on_stack(size, min(max(align, _WORD), 2 * _WORD), _WORD)
        if self.arch.order is Order.BIG and type.kind not in _COMPOSITE and size < _WORD:
            offset += _WORD - size
        return ParameterPart("stack", size, offset=offset)


def _vfp(number: int, size: int) -> ParameterPart:
    """Return the part of a number in VFP registers.

    Args:
        number: which register of 4 bytes is the first: 2 for s2, or for d1.
        size: bytes of the floating-point number: 2, 4 or 8.
    """
    return ParameterPart("register", size, f"d{number // 2}" if size == 8 else f"s{number}")
