"""Calls on z/Architecture: the ELF ABI supplement of s390x."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..arch._base import Arch
from .placing import (
    STRUCTURES,
    WORDS,
    ByReference,
    ParameterPart,
    PassingRules,
    Taken,
    is_empty,
    look_at_kind,
)
from .types import CType

_REALS: Final = ("f0", "f2", "f4", "f6")
_WORD: Final = 8
_BY_VALUE: Final = (1, 2, 4, 8)  # bytes of structures that are passed as an integer


@frozen
class S390xRules(PassingRules[Taken]):
    """The convention of s390x: five words and four floating-point numbers in registers, large
    values behind addresses.

    Attributes:
        arch: the guest's.
    """

    arch: Arch

    def _begin(self, hidden: bool) -> Taken:
        """Return what a call has taken before its first parameter (PassingRules._begin)."""
        assert self.arch.abi is not None
        return Taken(words=int(hidden), stack=self.arch.abi.stack_args)

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result). Structures
        and what is no number of at most 8 bytes are in memory.
        """
        assert self.arch.abi is not None
        if not is_empty(type):  # for which memory is passed, too
            look_at_kind(type)
        if type.kind == "float" and type.size <= _WORD:
            return (ParameterPart("register", type.size, _REALS[0], _WORD - type.size),)
        if type.kind in WORDS and type.size <= _WORD:
            return (ParameterPart("register", type.size, self.arch.abi.returns[0]),)
        return (ParameterPart("given", type.size, self.arch.abi.args[0]),)

    def _parameter(
        self, type: CType, taken: Taken, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of the next parameter (PassingRules._parameter)."""
        if not is_empty(type):  # of which the address is passed
            look_at_kind(type)
        by_value = type.size in _BY_VALUE and type.kind != "complex"
        if not by_value or (type.kind in STRUCTURES and by_reference(type)):
            slot = self._word(_WORD, taken)
            return (ParameterPart("behind", type.size, slot.name, slot.offset),)
        if not _is_real(type):
            return (self._word(type.size, taken),)
        if taken.reals < len(_REALS):
            name = _REALS[taken.reals]
            taken.reals += 1
            return (ParameterPart("register", type.size, name, _WORD - type.size),)
        return (_on_stack(type.size, taken),)

    def _word(self, size: int, taken: Taken) -> ParameterPart:
        """Return where the next integer is: in the low bytes of a register, or on the stack.

        Args:
            size: its bytes.
            taken: what the parameters before it have taken; is changed.
        """
        assert self.arch.abi is not None
        names = self.arch.abi.args
        if taken.words == len(names):
            return _on_stack(size, taken)
        taken.words += 1
        return ParameterPart("register", size, names[taken.words - 1])


def _on_stack(size: int, taken: Taken) -> ParameterPart:
    """Return the last bytes of the next word of the stack.

    Args:
        size: how many.
        taken: what the parameters before it have taken; is changed.
    """
    offset = taken.on_stack(_WORD, _WORD, _WORD)
    return ParameterPart("stack", size, offset=offset + _WORD - size)


def _is_real(type: CType) -> bool:
    """Whether a type is passed as a floating-point number: one, or a structure of one alone.

    An array counts as none, and an empty member as a further one; an empty base class does not.

    Args:
        type: of 1, 2, 4 or 8 bytes.
    """
    inner = type
    while inner.kind == "struct":
        empty = sum(not base.type.fields for base in inner.bases)
        fields = [each for each in inner.fields if each.type.kind != "struct" or each.type.fields]
        if len(fields) != 1 or len(inner.fields) != 1 + empty or fields[0].bits:
            return False
        inner = fields[0].type
    return inner.kind == "float" and inner.size == type.size
