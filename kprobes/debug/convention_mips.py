"""Calls on MIPS: o32 (System V ABI, MIPS supplement) and n64, where each parameter has slots of a
word, in order: the first of them in registers, the others on the stack.
"""

from __future__ import annotations

from typing import Final

from attrs import define, field, frozen

from ..arch._base import Arch, Order
from .placing import (
    MEMBERS_NOT_KNOWN,
    NOT_UNDERSTOOD,
    REALS_NOT_TOLD,
    STRUCTURES,
    WORDS,
    ByReference,
    NotKnown,
    ParameterPart,
    PassingRules,
    alignment_with_bit_fields,
    has_unplaced_members,
    is_empty,
    is_packed,
    look_at_kind,
)
from .types import CType

#: GCC leaves a slot before one out, and clang does not
_COMPILERS_ALIGN: Final = (
    "compilers differ about integers of 16 bytes behind an odd number of words"
)
_BASES: Final = "where floating-point members of a class with base classes are is not known"


@define
class _TakenSlots:
    """Counts the slots that the parameters of a call have taken.

    Attributes:
        count: slots.
        reals: of o32, the registers of the next floating-point numbers, in order; "" in it stands
            for one that is not known. []: none has a parameter any more, as behind one of another
            kind.
    """

    count: int = 0
    reals: list[str] = field(factory=list)


@frozen
class MipsRules(PassingRules[_TakenSlots]):
    """The convention of o32, of 32-bit guests, or of n64.

    Attributes:
        arch: the guest's.
        way: what the file says of floating-point numbers: "halves" (numbers of 8 bytes in two
            registers of 4), "registers" (in one), "single registers" (not known of those of 8
            bytes: it depends on the CPU), "counted" (no registers but general ones); "": nothing.
        is_variadic: True for a function with `...`.
    """

    arch: Arch
    way: str
    is_variadic: bool

    def _begin(self, hidden: bool) -> _TakenSlots:
        """Return what a call has taken before its first parameter (PassingRules._begin)."""
        return _TakenSlots(count=int(hidden), reals=[] if hidden else ["f12", "f14"])

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result)."""
        abi = self.arch.abi
        assert abi is not None
        if self.is_in_memory(type, by_reference):
            return (ParameterPart("given", type.size, abi.args[0]),)
        if not type.size:
            return ()
        sizes = self._real_result(type)
        if sizes:
            # n64 has the halves of a structure's long double in two registers without a gap
            gap = 1 if type.kind == "struct" and self._first(type).size == 16 else 2
            parts = list[ParameterPart]()
            for n, size in enumerate(sizes):
                parts += self._real(gap * n, size)
            if sizes == [4, 8]:  # bytes between the members, which nothing reads
                parts.insert(1, ParameterPart("register", 4, parts[0].name, 4))
            return tuple(parts)
        word = self.arch.bits // 8
        names = abi.returns[: -(-type.size // word)]
        whole = [ParameterPart("register", word, name) for name in names]
        return self._cut(type, whole)

    def is_in_memory(self, type: CType, by_reference: ByReference) -> bool:
        """Whether a result is in memory whose address the caller passes before the parameters."""
        if is_empty(type):
            if self.arch.bits == 32:
                raise NotKnown("compilers differ about results without bytes")
            return False
        self._look_at(type)
        if type.kind not in STRUCTURES:
            return type.size > 16
        return self.arch.bits == 32 or type.size > 16 or by_reference(type)

    def _look_at(self, type: CType) -> None:
        """Raise NotKnown as look_at_kind(), and for floating-point numbers of sizes that C does not
        have on the guest.

        Args:
            type: of a parameter or result.
        """
        look_at_kind(type)
        if type.kind in ("float", "complex"):
            size = type.size // 2 if type.kind == "complex" else type.size
            if size not in (4, 8) and (size != 16 or self.arch.bits == 32):
                raise NotKnown(NOT_UNDERSTOOD)

    # --- results

    def _real_result(self, type: CType) -> list[int]:
        """Return the bytes of each number of a result in floating-point registers; []: it is in
        general ones. A long double of 16 bytes is two numbers.

        Args:
            type: of the result, which is not in memory.

        Raises:
            NotKnown: the file does not say whether it is in them.
        """
        if type.kind in ("float", "complex"):
            sizes = [type.size] if type.kind == "float" else [type.size // 2] * 2
        elif type.kind == "struct":
            sizes = self._members_in_reals(type)
        else:
            return []
        if not sizes:
            return []
        soft = self.way == "counted"
        if not self.way or (soft and (type.kind != "float" or type.size > 8)):
            raise NotKnown(REALS_NOT_TOLD)
        if soft:
            return []
        return [8, 8] if sizes == [16] else sizes

    @staticmethod
    def _first(type: CType) -> CType:
        """Return the type of a structure's first member."""
        return type.fields[0].type

    def _members_in_reals(self, type: CType) -> list[int]:
        """Return the bytes of the members of a structure of one or two floating-point numbers, the
        first at its begin; [] for another one.

        Args:
            type: a structure of at most 16 bytes, on n64.

        Raises:
            NotKnown: members are not known, or it is of a class with others before it.
        """
        if has_unplaced_members(type):
            raise NotKnown("where members of the result are is not known")
        members = type.fields
        reals = [member.type.size for member in members if member.type.kind == "float"]
        if type.bases and reals:
            raise NotKnown(_BASES)
        if not 1 <= len(members) <= 2 or len(reals) != len(members) or members[0].offset:
            return []
        if len(members) == 2 and 16 in reals:
            return []
        if is_packed(type) or (len(members) == 2 and members[1].offset != max(reals)):
            raise NotKnown("where packed floating-point members of a result are is not known")
        return reals

    def _real(self, number: int, size: int) -> list[ParameterPart]:
        """Return the parts of a number in a floating-point register, or in two of them.

        Args:
            number: of the register.
            size: bytes, 4 or 8.

        Raises:
            NotKnown: it depends on the CPU.
        """
        if size == 4 or self.way == "registers":
            return [ParameterPart("register", size, f"f{number}")]
        if self.way != "halves":
            raise NotKnown("whether floating-point registers have 32 or 64 bits depends on the CPU")
        halves = [ParameterPart("register", 4, f"f{number + n}") for n in range(2)]
        return halves[::-1] if self.arch.order is Order.BIG else halves

    # --- parameters

    def _parameter(
        self, type: CType, taken: _TakenSlots, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of the next parameter (PassingRules._parameter)."""
        if is_empty(type):
            if taken.reals:
                taken.reals = [""]  # compilers may count it
            return ()
        self._look_at(type)
        word = self.arch.bits // 8
        if type.kind in STRUCTURES and by_reference(type):
            taken.reals = []
            (slot,) = self._take_slots(1, word, taken)
            return (ParameterPart("behind", type.size, slot.name, slot.offset),)
        if type.kind == "complex" and word == 8 and type.size == 8:
            raise NotKnown("compilers differ about complex numbers of 8 bytes")
        if type.kind in WORDS and type.size > word == 8 and taken.count & 1:
            raise NotKnown(_COMPILERS_ALIGN)
        count = -(-type.size // word)
        align = min(alignment_with_bit_fields(type), 2 * word)
        if word == 4:
            real = self._early_real(type, taken)
            whole = self._take_slots(count, align, taken)
            if real is not None:
                return tuple(real)
            return self._cut(type, whole)
        whole = self._take_slots(count, align, taken)
        return self._cut(type, self._with_reals(type, whole))

    def _take_slots(self, count: int, align: int, taken: _TakenSlots) -> list[ParameterPart]:
        """Take slots, and return where they are.

        Args:
            count: how many.
            align: bytes of which their offset among all slots is a multiple.
            taken: what the parameters before it have taken; the parameter's slots are added.
        """
        abi = self.arch.abi
        assert abi is not None
        word = self.arch.bits // 8
        if align > word:
            taken.count += taken.count & 1
        first = taken.count
        taken.count += count
        if align > word:
            taken.count += taken.count & 1
        out = list[ParameterPart]()
        for number in range(first, first + count):
            if number < len(abi.args):
                out.append(ParameterPart("register", word, abi.args[number]))
            else:
                offset = abi.stack_args + word * (number - len(abi.args))
                out.append(ParameterPart("stack", word, offset=offset))
        return out

    def _early_real(self, type: CType, taken: _TakenSlots) -> list[ParameterPart] | None:
        """Return the floating-point registers of a number among the first two parameters of o32, if
        none before it is anything else; [] where they are not known; None for another one.

        Args:
            type: of the parameter.
            taken: what the parameters before it have taken; the parameter's slots are added.
        """
        if type.kind != "float":
            taken.reals = []
            return None
        if not taken.reals or self.way == "counted":
            return None
        name = taken.reals.pop(0)
        if not self.way or self.is_variadic or not name:
            return []
        if type.size != 4 and self.way == "single registers":
            return []
        return self._real(int(name[1:]), type.size)

    def _with_reals(self, type: CType, whole: list[ParameterPart]) -> list[ParameterPart]:
        """Return the slots of a parameter of n64, with floating-point registers in the place of
        general ones where they have numbers: a number, or a structure's members of 8 bytes.

        Args:
            type: of the parameter.
            whole: its slots.

        Raises:
            NotKnown: the file does not say whether they are in such registers.
        """
        abi = self.arch.abi
        assert abi is not None
        numbers = set[int]()
        if type.kind in ("float", "complex"):
            numbers = set(range(len(whole)))
        elif type.kind == "struct":
            if has_unplaced_members(type):
                raise NotKnown(MEMBERS_NOT_KNOWN)
            doubles = [
                member.offset
                for member in type.fields
                if member.type.kind == "float" and member.type.size == 8
            ]
            if doubles and type.bases:
                raise NotKnown(_BASES)
            numbers = {offset // 8 for offset in doubles if not offset % 8}
        out = list[ParameterPart]()
        for n, slot in enumerate(whole):
            if n not in numbers or not slot.name:
                out.append(slot)
                continue
            if self.way != "registers":
                raise NotKnown(REALS_NOT_TOLD)
            out.append(ParameterPart("register", 8, f"f{12 + abi.args.index(slot.name)}"))
        return out

    def _cut(self, type: CType, whole: list[ParameterPart]) -> tuple[ParameterPart, ...]:
        """Return the parts of a value that lies in slots: all bytes of them, or of the last fewer.

        On a big-endian guest integers are in the last bytes of a slot, and others in the first;
        floating-point numbers in the last bytes of a register of theirs.

        Args:
            type: of the value.
            whole: its slots, in order; of parts of a word.
        """
        word = self.arch.bits // 8
        rest = type.size - word * (len(whole) - 1)
        if rest == word:
            return tuple(whole)
        *before, last = whole
        big = self.arch.order is Order.BIG
        offset = last.offset
        if last.kind == "stack":
            offset += word - rest if big and type.kind in WORDS else 0
        else:
            offset = word - rest if big and type.kind in STRUCTURES else 0
        return (*before, ParameterPart(last.kind, rest, last.name, offset))
