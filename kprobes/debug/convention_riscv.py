"""Calls on RISC-V (the psABI's integer and floating-point conventions) and LoongArch (LP64D), which
passes values in the same way.
"""

from __future__ import annotations

from attrs import frozen

from ..arch._base import Arch
from .placing import (
    MEMBERS_NOT_KNOWN,
    MOST_DEEP,
    REALS_NOT_TOLD,
    STRUCTURES,
    WORDS,
    ByReference,
    NotKnown,
    ParameterPart,
    PassingRules,
    Taken,
    alignment,
    has_unplaced_members,
    is_empty,
    look_at_kind,
)
from .types import CType

_REALS = 8  # registers for floating-point parameters
#: what a file says (RealFlags.ways) -> bytes of the widest number that these registers pass
WIDEST_REALS = {"counted": 0, "single registers": 4, "registers": 8}


@frozen
class _Number:
    """A number of a structure that may be passed in a floating-point register.

    Attributes:
        offset: of its first byte in the structure.
        size: bytes.
        is_real: True: a floating-point number.
    """

    offset: int
    size: int
    is_real: bool


@frozen
class RiscvRules(PassingRules[Taken]):
    """The convention of RISC-V and LoongArch.

    Attributes:
        arch: the guest's.
        real: bytes of the widest number that floating-point registers pass; 0: they pass none.
            None: the file does not say it.
        first_real: number of the first floating-point register that has parameters.
    """

    arch: Arch
    real: int | None
    first_real: int

    def _begin(self, hidden: bool) -> Taken:
        """Return what a call has taken before its first parameter (PassingRules._begin)."""
        return Taken(words=int(hidden))

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result). It is where
        a first parameter is, or where the first argument points.
        """
        parts = self._parameter(type, Taken(), by_reference)
        return tuple(
            ParameterPart("given", part.size, part.name) if part.kind == "behind" else part
            for part in parts
        )

    def _parameter(
        self, type: CType, taken: Taken, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of the next parameter (PassingRules._parameter)."""
        if is_empty(type):
            return ()
        look_at_kind(type)
        word = self.arch.bits // 8
        copied = type.kind in STRUCTURES and by_reference(type)
        if not copied:
            parts = self._in_reals(type, taken)
            if parts:
                return parts
        if copied or type.size > 2 * word:
            (slot,) = self._in_words(word, word, taken)
            return (ParameterPart("behind", type.size, slot.name, slot.offset),)
        return self._in_words(type.size, min(alignment(type), 2 * word), taken)

    def _in_words(self, size: int, align: int, taken: Taken) -> tuple[ParameterPart, ...]:
        """Return the parts of what takes one or two words: registers, the stack, or one of each.

        Args:
            size: its bytes.
            align: bytes of which its offset on the stack is a multiple.
            taken: what the parameters before it have taken; is changed.
        """
        assert self.arch.abi is not None
        word = self.arch.bits // 8
        free = self.arch.abi.args[taken.words :][: -(-size // word)]
        taken.words += len(free)
        parts = [
            ParameterPart("register", min(word, size - word * n), name)
            for n, name in enumerate(free)
        ]
        rest = size - word * len(free)
        if rest > 0:
            offset = taken.on_stack(rest, word if free else max(align, word), word)
            parts.append(ParameterPart("stack", rest, offset=offset))
        return tuple(parts)

    def _in_reals(self, type: CType, taken: Taken) -> tuple[ParameterPart, ...]:
        """Return the parts of a parameter in floating-point registers: of a number, or a structure
        of one or two floating-point numbers, or of one and an integer.

        Args:
            type: of the parameter.
            taken: what the parameters before it have taken; is changed.

        Returns:
            (): it is passed as an integer.

        Raises:
            NotKnown: the file does not say whether it is in such a register, or a member is not
                known.
        """
        assert self.arch.abi is not None
        numbers = list[_Number]()
        if not self._flatten(type, 0, numbers, 0):
            return ()
        reals = sum(number.is_real for number in numbers)
        words = len(numbers) - reals
        if not reals or words > 1:
            return ()
        if self.real is None:
            raise NotKnown(REALS_NOT_TOLD)
        if taken.reals + reals > _REALS or taken.words + words > len(self.arch.abi.args):
            return ()
        if numbers[0].offset:
            raise NotKnown("it or a parameter before it begins with bytes of no member")
        # the type of a bit field reaches into the next number: GCC passes them apart, LLVM does not
        if len(numbers) == 2 and numbers[0].offset + numbers[0].size > numbers[1].offset:
            raise NotKnown("compilers differ about bit fields in it or in a parameter before it")
        parts = list[ParameterPart]()
        for n, number in enumerate(numbers):
            end = numbers[n + 1].offset if n + 1 < len(numbers) else type.size
            if number.is_real:
                name = f"f{self.first_real + taken.reals}"
                taken.reals += 1
            else:
                name = self.arch.abi.args[taken.words]
                taken.words += 1
            parts.append(ParameterPart("register", end - number.offset, name))
        return tuple(parts)

    def _flatten(self, type: CType, base: int, found: list[_Number], depth: int) -> bool:
        """Append the numbers of a type to `found`, in order.

        Args:
            type: the type.
            base: its offset in the whole parameter.
            found: is extended.
            depth: structures and arrays around it.

        Returns:
            False: the whole is passed as an integer: it has more than two numbers, too wide ones, a
            pointer or a union.

        Raises:
            NotKnown: a member is not known.
        """
        word = self.arch.bits // 8
        if depth > MOST_DEEP or len(found) > 2:
            return False
        if type.kind in ("float", "complex"):
            count = 2 if type.kind == "complex" else 1
            size = type.size // count
            found += [_Number(base + n * size, size, True) for n in range(count)]
            # where the file does not say how wide registers are, what may be in one counts
            return len(found) <= 2 and size <= (8 if self.real is None else self.real)
        if type.kind in WORDS:
            found.append(_Number(base, type.size, False))
            return len(found) <= 2 and type.kind != "pointer" and type.size <= word
        if type.kind == "array":
            if None in type.dims:
                return False
            each = type.element
            count = type.size // each.size if each.size else 0
            return count <= 2 and all(
                self._flatten(each, base + n * each.size, found, depth + 1) for n in range(count)
            )
        if type.kind != "struct":
            return False
        if has_unplaced_members(type):
            raise NotKnown(MEMBERS_NOT_KNOWN)
        for member in type.fields:
            if member.bits:
                offset = base + member.offset + member.shift // 8
                found.append(_Number(offset, min(member.type.size, word), False))
                if len(found) > 2 or (member.type.size > word and member.bits > 8 * word):
                    return False
            elif not self._flatten(member.type, base + member.offset, found, depth + 1):
                return False
        return len(found) <= 2
