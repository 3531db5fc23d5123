"""Calls on 32-bit PowerPC: the System V ABI's supplement (chapter 3, "Parameter Passing")."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ..arch._base import Arch, Results
from .placing import (
    NOT_UNDERSTOOD,
    REALS_NOT_TOLD,
    STRUCTURES,
    WORDS,
    ByReference,
    NotKnown,
    ParameterPart,
    PassingRules,
    Taken,
    is_in_memory_by_size,
    look_at_kind,
)
from .types import CType

_WORD: Final = 4
_REALS: Final = 8  # registers for floating-point parameters, from f1 on


@frozen
class PpcRules(PassingRules[Taken]):
    """The convention of 32-bit PowerPC, big endian: structures are passed by their address.

    Attributes:
        arch: the guest's.
        way: how the file says that floating-point numbers are passed: "registers" (f1 to f8),
            "counted" (as integers of their size); "": not at all.
        results: where functions of the file return structures; None: not known.
    """

    arch: Arch
    way: str
    results: Results | None

    def _begin(self, hidden: bool) -> Taken:
        """Return what a call has taken before its first parameter (PassingRules._begin)."""
        assert self.arch.abi is not None
        return Taken(words=int(hidden), stack=self.arch.abi.stack_args)

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result).

        A structure lies in r3, or in r3 and r4, as one number: its last byte is the lowest one.
        """
        abi = self.arch.abi
        assert abi is not None
        look_at_kind(type)
        if type.kind not in STRUCTURES:
            return self._parameter(type, Taken(), by_reference)
        if is_in_memory_by_size(self.results, type, by_reference):
            return (ParameterPart("given", type.size, name=abi.args[0]),)
        if type.size <= _WORD:
            return (ParameterPart("register", type.size, name=abi.returns[0]),)
        return (
            ParameterPart("register", type.size - _WORD, name=abi.returns[0]),
            ParameterPart("register", _WORD, name=abi.returns[1]),
        )

    def is_in_memory(self, type: CType, by_reference: ByReference) -> bool:
        """Whether a result is in memory whose address the caller passes before the parameters."""
        look_at_kind(type)
        if type.kind in STRUCTURES:
            return is_in_memory_by_size(self.results, type, by_reference)
        if type.size > 2 * _WORD or type.kind == "complex":
            raise NotKnown("how the function's result is returned is not known, and may move it")
        return False

    def _parameter(
        self, type: CType, taken: Taken, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of the next parameter (PassingRules._parameter)."""
        look_at_kind(type)
        if type.kind in STRUCTURES:
            (slot,) = self._in_words(_WORD, taken)
            return (ParameterPart("behind", type.size, slot.name, slot.offset),)
        if type.size > 2 * _WORD or type.kind not in (*WORDS, "float"):
            raise NotKnown(NOT_UNDERSTOOD)
        if type.kind != "float" or self.way == "counted":
            return self._in_words(type.size, taken)
        if not self.way:
            raise NotKnown(REALS_NOT_TOLD)
        if taken.reals == _REALS:
            return (self._on_stack(type.size, taken),)
        taken.reals += 1
        kind = "single" if type.size == _WORD else "register"
        return (ParameterPart(kind, type.size, f"f{taken.reals}"),)

    def _in_words(self, size: int, taken: Taken) -> tuple[ParameterPart, ...]:
        """Return the parts of one or two words: in registers, or on the stack, never in both. Two
        words begin with r3, r5, r7 or r9.

        Args:
            size: bytes that are passed, at most 8.
            taken: what the parameters before it have taken; the parameter's places are added.
        """
        assert self.arch.abi is not None
        names = self.arch.abi.args
        if size > _WORD:
            taken.words += taken.words & 1
        found = names[taken.words : taken.words + -(-size // _WORD)]
        if len(found) * _WORD < size:
            taken.words = len(names)
            return (self._on_stack(size, taken),)
        taken.words += len(found)
        return tuple(ParameterPart("register", min(size, _WORD), name) for name in found)

    def _on_stack(self, size: int, taken: Taken) -> ParameterPart:
        """Return the part of a number on the stack: the last bytes of a word, or two words.

        Args:
            size: bytes of the number, at most 8.
            taken: what the parameters before it have taken; the parameter's places are added.
        """
        offset = taken.on_stack(size, max(size, _WORD), _WORD)
        return ParameterPart("stack", size, offset=offset + max(_WORD - size, 0))
