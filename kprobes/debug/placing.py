"""Parts of parameters, and what types consist of: shared by the conventions of calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from attrs import define, frozen

from ..arch._base import Results
from .file import children
from .types import CType, constant

WORDS: Final = ("int", "char", "bool", "enum", "pointer")  #: kinds that are passed as integers
STRUCTURES: Final = ("struct", "union")
MOST_MEMBERS: Final = 64
MOST_DEEP: Final = 16
NO_VECTORS: Final = "where this architecture passes vectors is not known"
TOO_DEEP: Final = "it or a parameter before it is nested too deep"
EMPTY_CLASSES: Final = "compilers differ about classes without members"
MEMBERS_NOT_KNOWN: Final = "where members of it or of a parameter before it are is not known"
REALS_NOT_TOLD: Final = "the file does not say how floating-point numbers are passed"
NOT_UNDERSTOOD: Final = "it or a parameter before it is of a kind that is not understood"

#: type -> whether C++ copies it by a function of its own (a copy constructor or destructor), and so
#: passes the address of a copy
ByReference = Callable[[CType], bool]


class NotKnown(Exception):
    """Raised where a parameter's place cannot be told; its text says why, as one clause."""


@frozen
class ParameterPart:
    """A part of a parameter or result: where some of its bytes are. Parts come in the bytes' order.

    Attributes:
        kind: "register": in register `name`. "single": a number of 4 bytes, which register `name`
            has as one of 8. "x87": one of 4 or 8, which register `name` has as one of 10. "stack":
            at the stack pointer and `offset`. "behind": at an address that register `name` has, or,
            where `name` is empty, the stack at `offset`. "given" (of a result only): at the address
            that `name` had at the entry.
        size: bytes of the parameter in this part.
        name: of the register; "" for one on the stack.
        offset: bytes from the stack pointer at the function's entry; of a register, how many of its
            low bytes are not of the part.
    """

    kind: str
    size: int
    name: str = ""
    offset: int = 0


TakenT = TypeVar("TakenT")


class PassingRules(ABC, Generic[TakenT]):
    """A convention of calls; the type argument is what counts the places that are taken."""

    def parameters(
        self, types: Sequence[CType], result: CType, by_reference: ByReference
    ) -> list[tuple[ParameterPart, ...]]:
        """Return the parts of each parameter at the function's entry.

        Args:
            types: of the parameters, in order.
            result: type of the function's result.
            by_reference: type -> whether C++ copies it by a function of its own.

        Returns:
            The parts of each; () for one that is not passed, as an empty structure, and on MIPS
            for a floating-point number of which only the slots are known.

        Raises:
            NotKnown: a type is not understood.
        """
        hidden = result.kind != "void" and self.is_in_memory(result, by_reference)
        taken = self._begin(hidden)
        return [self._parameter(type, taken, by_reference) for type in types]

    @abstractmethod
    def _begin(self, hidden: bool) -> TakenT:
        """Return what a call has taken before its first parameter.

        Args:
            hidden: True: the address of the memory for the result comes before the parameters.
        """

    @abstractmethod
    def _parameter(
        self, type: CType, taken: TakenT, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of the next parameter.

        Args:
            type: the parameter's.
            taken: what the parameters before it have taken; the parameter's places are added.
            by_reference: type -> whether C++ copies it by a function of its own.

        Raises:
            NotKnown: the type is not understood.
        """

    @abstractmethod
    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result as the function returns; () for one without bytes.

        Args:
            type: of the result.
            by_reference: type -> whether C++ copies it by a function of its own.

        Raises:
            NotKnown: the type is not understood.
        """

    def is_in_memory(self, type: CType, by_reference: ByReference) -> bool:
        """Whether a result is in memory whose address the caller passes before the first parameter.

        Args:
            type: of the result, not void.
            by_reference: type -> whether C++ copies it by a function of its own.

        Raises:
            NotKnown: the type is not understood.
        """
        return any(part.kind == "given" for part in self.result(type, by_reference))


@define
class Taken:
    """Counts what the parameters of a call have taken so far.

    Attributes:
        words: general registers, or, where all parameters have slots of a word, slots.
        reals: floating-point registers.
        stack: bytes from the stack pointer at the entry to the next free one.
    """

    words: int = 0
    reals: int = 0
    stack: int = 0

    def on_stack(self, size: int, align: int, word: int) -> int:
        """Take whole words of the stack, and return their offset.

        Args:
            size: bytes that are wanted.
            align: bytes of which the offset is a multiple.
            word: bytes of a word.
        """
        offset = -(-self.stack // align) * align
        self.stack = offset + -(-size // word) * word
        return offset


def look_at_kind(type: CType) -> None:
    """Refuse a parameter or result of a kind that no convention here knows.

    Args:
        type: of the parameter or result.

    Raises:
        NotKnown: the type is no number, pointer, structure or union, has a vector, is nested deeper
            than MOST_DEEP, or has no size.
    """
    if has_vector(type, 0):
        raise NotKnown(NO_VECTORS)
    if type.kind not in (*WORDS, "float", "complex", "struct", "union") or not type.size:
        raise NotKnown(NOT_UNDERSTOOD)


def is_in_memory_by_size(results: Results | None, type: CType, by_reference: ByReference) -> bool:
    """Return True for a structure that is returned in memory whose address the caller passes before
    the first argument; False for one in registers.

    Args:
        results: where functions of the file return structures; None: not known.
        type: of the result, a structure or union.
        by_reference: type -> whether C++ copies it by a function of its own.

    Raises:
        NotKnown: the answer depends on how the file was compiled, which the file does not say.
    """
    if results is not None and type.size > results.memory:
        return True
    if results is not None and by_reference(type):
        return True
    if results is None or not 0 < type.size <= results.registers:
        raise NotKnown("the file does not say whether such a result is in registers or in memory")
    return False


def is_empty(type: CType) -> bool:
    """Whether a type is a structure or union of GNU C without bytes, whose definition is known."""
    definition = type.definition
    return (
        type.kind in STRUCTURES
        and not type.size
        and "DW_AT_byte_size" in definition.attributes
        and "DW_AT_declaration" not in definition.attributes
    )


def has_no_members(type: CType) -> bool:
    """Whether a structure or union has no member with a value: none, as an empty class of C++, or
    only structures of this kind.
    """
    return all(each.type.kind in STRUCTURES and has_no_members(each.type) for each in type.fields)


def equal_reals(type: CType) -> tuple[int, int]:
    """Return (bytes, count) of the floating-point numbers that a type consists of, all of one size
    and without padding; (0, 0) for a type of anything else.

    Complex numbers count as two. For a union, whose members must all consist of such numbers, the
    member with the most numbers counts.

    Args:
        type: the type.

    Raises:
        NotKnown: compilers differ about it, or a member is not known.
    """
    found = dict[str, int]()
    count = _count_reals(type, found, 0)
    if len(found) != 1 or count < 1:
        return 0, 0
    (size,) = found.values()
    return size, count


def _count_reals(type: CType, found: dict[str, int], depth: int) -> int:
    """Return how many floating-point numbers a type consists of; -1 for one of something else.

    Args:
        type: the type.
        found: kind of number -> its bytes; those of the type are added.
        depth: structures and arrays around it.

    Raises:
        NotKnown: compilers differ about it, or a member is not known.
    """
    if depth > MOST_DEEP:
        return -1
    if type.kind in ("float", "complex"):
        size = type.size // 2 if type.kind == "complex" else type.size
        found[f"{size} {type.base_name if size == 2 else ''}"] = size
        return type.size // size if size else -1
    if type.kind == "array" and not type.is_vector:
        if None in type.dims:
            return -1
        if not type.count:
            raise NotKnown("compilers differ about arrays without elements in it or before it")
        each = _count_reals(type.element, found, depth + 1)
        return each * (type.size // type.element.size) if each > 0 else each
    if type.kind not in STRUCTURES:
        return -1
    if has_unplaced_members(type) or len(type.fields) > MOST_MEMBERS:
        raise NotKnown(MEMBERS_NOT_KNOWN)
    counts = list[int]()
    for member in type.fields:
        inside = -1 if member.bits else _count_reals(member.type, found, depth + 1)
        if inside < 0:
            return -1
        counts.append(inside)
    count = max([0, *counts]) if type.kind == "union" else sum(counts)
    if count and count * next(iter(found.values())) != type.size:
        return -1  # there is padding
    return count


def alignment(type: CType) -> int:
    """Return the number of bytes of which a type's addresses are multiples, at least 1.

    For a number or vector that is its size; for a complex number half its size; for an array its
    element's alignment; for a structure or union the greatest alignment of its members, without
    bit fields, or what the program asks for if that is more. A structure with a member at no
    multiple of the member's alignment is packed: its alignment is 1, or what the program asks for.

    Args:
        type: the type.

    Raises:
        NotKnown: it is a structure whose members are not all known.
    """
    if type.is_vector:
        return max(type.size, 1)
    if type.kind == "array":
        return alignment(type.element)
    if type.kind in STRUCTURES:
        members = type.fields
        if has_unplaced_members(type) or len(members) > MOST_MEMBERS:
            raise NotKnown("the alignment of a structure before it is not known")
        inside = _members_alignments(type)
        own: int = constant(type.definition, "DW_AT_alignment") or 1
        return own if _is_misplaced(inside) else max([own, *(align for _, align in inside)])
    if type.kind == "complex":
        return max(type.size // 2, 1)
    return max(type.size, 1)


def alignment_with_bit_fields(type: CType) -> int:
    """Return alignment(), in which bit fields count as their types.

    Args:
        type: the type.

    Raises:
        NotKnown: the members that decide it are not all known.
    """
    return max(alignment(type), 1 if is_packed(type) else _of_bit_fields(type, 0))


def natural_alignment(type: CType) -> int:
    """Return alignment_with_bit_fields() without what the program asks for the type as a whole.

    Args:
        type: the type.

    Raises:
        NotKnown: the members that decide it are not all known.
    """
    found = alignment_with_bit_fields(type)
    if type.kind not in STRUCTURES or constant(type.definition, "DW_AT_alignment") is None:
        return found
    if is_packed(type):
        return 1
    inside = [
        member.type.size if member.bits else alignment_with_bit_fields(member.type)
        for member in type.fields
    ]
    return max([1, *inside, *(member.alignment for member in type.fields)])


def _of_bit_fields(type: CType, depth: int) -> int:
    """Return the greatest alignment that bit fields in a type ask for, which divides its size.

    Args:
        type: the type.
        depth: structures and arrays around it.

    Raises:
        NotKnown: it is nested too deep.
    """
    if depth > MOST_DEEP:
        raise NotKnown(TOO_DEEP)
    if type.kind == "array":
        return _of_bit_fields(type.element, depth + 1)
    if type.kind not in STRUCTURES:
        return 1
    wanted = [
        member.type.size if member.bits else _of_bit_fields(member.type, depth + 1)
        for member in type.fields
    ]
    return max([1, *(align for align in wanted if align and not type.size % align)])


def has_unplaced_members(type: CType) -> bool:
    """Whether a structure has members, or bases, whose places are not known."""
    declared = [
        child
        for child in children(type.definition)
        if child.tag in ("DW_TAG_member", "DW_TAG_inheritance")
        and "DW_AT_declaration" not in child.attributes
        and "DW_AT_external" not in child.attributes
    ]
    return len(type.fields) < len(declared)


def has_vector(type: CType, depth: int) -> bool:
    """Whether a type is a vector, or has one among its members or elements.

    Args:
        type: the type.
        depth: structures and arrays around it.

    Raises:
        NotKnown: it is nested deeper than MOST_DEEP.
    """
    if depth > MOST_DEEP:
        raise NotKnown(TOO_DEEP)
    if type.is_vector:
        return True
    if type.kind == "array":
        return has_vector(type.element, depth + 1)
    if type.kind not in STRUCTURES:
        return False
    return any(has_vector(member.type, depth + 1) for member in type.fields)


def is_packed(type: CType) -> bool:
    """Whether a structure or union has a member at no multiple of the member's alignment.

    Members of structures and unions within it count, too; those of an array's elements and bit
    fields do not. False for a type without members.

    Raises:
        NotKnown: the alignment of a member is not known.
    """
    within = (member.type for member in type.fields if member.type.kind in STRUCTURES)
    return _is_misplaced(_members_alignments(type)) or any(map(is_packed, within))


def _members_alignments(type: CType) -> list[tuple[int, int]]:
    """Return (offset, alignment) of each member of a structure or union that is no bit field.

    Raises:
        NotKnown: the alignment of a member is not known.
    """
    return [
        (member.offset, max(member.alignment, alignment(member.type)))
        for member in type.fields
        if not member.bits
    ]


def _is_misplaced(members: Sequence[tuple[int, int]]) -> bool:
    """Whether one of some (offset, alignment) of members is at no multiple of its alignment."""
    return any(offset % align for offset, align in members)
