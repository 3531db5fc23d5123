"""The places where C functions find their parameters: whole lists of them, floating-point numbers
and structures among them.

The System V ABI of x86-64 (3.2.3) is here, and those of other architectures are in modules of their
own. Where there is none, a parameter behind one that takes more than a word is not known. Of Rust's
own convention, which has no standard, there is what rustc does on x86-64 in all versions, and in
those that have been tried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from attrs import evolve, frozen

from ..arch._base import Arch, Results
from .convention_arm import ArmRules
from .convention_arm64 import Arm64Rules
from .convention_i386 import I386Rules
from .convention_mips import MipsRules
from .convention_ppc import PpcRules
from .convention_ppc64 import Ppc64Rules
from .convention_riscv import WIDEST_REALS, RiscvRules
from .convention_s390x import S390xRules
from .placing import (
    MEMBERS_NOT_KNOWN,
    MOST_DEEP,
    MOST_MEMBERS,
    NOT_UNDERSTOOD,
    WORDS,
    ByReference,
    NotKnown,
    ParameterPart,
    PassingRules,
    Taken,
    alignment,
    has_unplaced_members,
    has_vector,
    is_empty,
    is_packed,
)
from .registers import facts
from .types import CType, constant
from .units import scopes_of

_RUSTC: Final = re.compile(r"\brustc version 1\.(\d+)\.")
_TRIED_RUSTC: Final = (95, 97)  #: first and last version 1.N of rustc: see is_tried_rustc()


def call_rules(
    arch: Arch, way: str, is_variadic: bool, results: Results | None
) -> PassingRules[Any] | None:
    """Return the convention of C functions of an architecture.

    Args:
        arch: the architecture.
        way: how the file's functions get floating-point numbers (RealFlags.ways); "": not told.
        is_variadic: True for a function with `...`.
        results: where functions of the file return structures; None: not known.

    Returns:
        None: it is not described here.
    """
    known = facts(arch)
    name = known.convention
    if name == "sysv":
        return SysvRules()
    if name == "stack":
        return I386Rules(arch, results)
    if name == "aapcs32":
        return ArmRules(arch, way, is_variadic)
    if name == "aapcs64":
        return Arm64Rules(arch)
    if name == "flattened":
        widest = WIDEST_REALS.get(way) if known.real_flags else known.widest_real
        return RiscvRules(arch, widest, known.first_real_argument)
    if name == "pairs and addresses":
        return PpcRules(arch, way, results)
    if name == "doublewords":
        return Ppc64Rules(arch)
    if name == "small values":
        return S390xRules(arch)
    if name == "slots":
        return MipsRules(arch, way, is_variadic)
    return None


def result_parts(
    arch: Arch, rules: PassingRules[Any] | None, type: CType, by_reference: ByReference
) -> tuple[ParameterPart, ...]:
    """Return where a function's result is at the moment it returns.

    Args:
        arch: the guest's.
        rules: the function's convention, from call_rules().
        type: of the result; one that takes more than a word, or is no integer.
        by_reference: type -> whether C++ copies it by a function of its own.

    Raises:
        NotKnown: the type or the architecture's convention is not understood.
    """
    if rules is not None:
        return rules.result(type, by_reference)
    # of 64-bit architectures some return 16 bytes in memory (Alpha)
    if arch.bits == 32 and type.kind in ("int", "enum") and type.size == 8:
        return _pair_result(arch)
    raise NotKnown(f"how {arch.name} returns it is not known")


def _pair_result(arch: Arch) -> tuple[ParameterPart, ...]:
    """Return the parts of an integer of 8 bytes as a function returns: the two result registers,
    in the order in which memory would have the words.

    Args:
        arch: the guest's, of 32 bits.

    Raises:
        NotKnown: the second register is not known.
    """
    if arch.abi is None or len(arch.abi.returns) < 2:
        raise NotKnown(f"how {arch.name} returns it is not known")
    return tuple(
        ParameterPart("register", arch.bits // 8, name=name) for name in arch.abi.returns[:2]
    )


# --- x86-64


@frozen
class SysvRules(PassingRules[Taken]):
    """The System V ABI of x86-64."""

    def _begin(self, hidden: bool) -> Taken:
        """Return what a call has taken before its first parameter (PassingRules._begin)."""
        return Taken(words=int(hidden), stack=8)  # behind the return address

    def _parameter(
        self, type: CType, taken: Taken, by_reference: ByReference
    ) -> tuple[ParameterPart, ...]:
        """Return the parts of the next parameter (PassingRules._parameter)."""
        return _sysv_parameter(type, taken, by_reference)

    def result(self, type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
        """Return the parts of a result at the return (PassingRules.result)."""
        return _sysv_result(type, by_reference)

    def is_in_memory(self, type: CType, by_reference: ByReference) -> bool:
        """Whether a result is in memory whose address the caller passes before the parameters."""
        if type.kind not in ("struct", "union", "array") or is_empty(type):
            return False
        # whether C++ copies a large one by a function is not always told, and no matter
        if type.kind != "array" and type.size <= _MOST_IN_REGISTERS and by_reference(type):
            return True
        return _MEMORY in _classes(type)


_SYSV_WORDS: Final = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
#: classes of 8 bytes; _X87: of the 16 of a long double, which as a parameter are in memory; _NONE:
#: bytes of no member, which are not passed
_MEMORY, _X87, _WORD, _REAL, _NONE = "memory", "x87", "word", "real", ""
_ON_STACK: Final = {_MEMORY, _X87}
_MOST_IN_REGISTERS: Final = 16  # bytes of a structure


def _sysv_parameter(
    type: CType, taken: Taken, by_reference: ByReference
) -> tuple[ParameterPart, ...]:
    """Return the parts of the next parameter by the System V ABI; `taken` counts what it takes.

    A value of a class in _ON_STACK, or of which not all 8-byte words get a register, is on the
    stack as a whole. A structure or union that C++ copies by a function is passed by its address.

    Args:
        type: of the parameter.
        taken: what the parameters before it have taken; is changed.
        by_reference: type -> whether C++ copies it by a function of its own.

    Raises:
        NotKnown: the type is not understood.
    """
    size = type.size
    if is_empty(type):
        return ()
    if type.kind in ("struct", "union") and by_reference(type):
        if taken.words < len(_SYSV_WORDS):
            taken.words += 1
            return (ParameterPart("behind", size, name=_SYSV_WORDS[taken.words - 1]),)
        return (ParameterPart("behind", size, offset=taken.on_stack(8, 8, 8)),)
    classes = _classes(type)
    words, reals = classes.count(_WORD), classes.count(_REAL)
    if (
        not _ON_STACK.isdisjoint(classes)
        or taken.words + words > len(_SYSV_WORDS)
        or taken.reals + reals > 8
    ):
        return _sysv_stack(type, taken)
    if size == 16 and classes == [_REAL]:  # a vector, or a quad: one register
        taken.reals += 1
        return (ParameterPart("register", 16, name=f"xmm{taken.reals - 1}"),)
    first_word, first_real = taken.words, taken.reals
    taken.words += words
    taken.reals += reals
    reals_left = [f"xmm{n}" for n in range(first_real, taken.reals)]
    return _parts_of_classes(size, classes, [*_SYSV_WORDS[first_word : taken.words]], reals_left)


def _parts_of_classes(
    size: int, classes: Sequence[str], words: list[str], reals: list[str]
) -> tuple[ParameterPart, ...]:
    """Return the registers of a parameter or result.

    Args:
        size: its bytes.
        classes: of each 8 of them.
        words: general registers that it takes, in order; is changed.
        reals: registers of SSE that it takes; is changed.

    Returns:
        The parts; () for a class of C++ without members.

    Raises:
        NotKnown: it begins with 8 bytes that are not passed.
    """
    if _NONE in classes[:1] and set(classes) != {_NONE}:
        raise NotKnown("it or a parameter before it begins with bytes of no member")
    names = {_WORD: words, _REAL: reals}
    return tuple(
        ParameterPart("register", min(8, size - 8 * n), name=names[each].pop(0))
        for n, each in enumerate(classes)
        if each != _NONE
    )


def _sysv_stack(type: CType, taken: Taken) -> tuple[ParameterPart, ...]:
    """Return the part of a parameter that is passed on the stack, above the return address.

    Its offset is a multiple of 8, or of 16 where the type is aligned so, counted from behind the
    return address.

    Args:
        type: of the parameter.
        taken: what the parameters before it have taken; is changed.

    Raises:
        NotKnown: the type's alignment is not known.
    """
    align = 16 if alignment(type) >= 16 else 8
    taken.stack -= 8
    offset = taken.on_stack(type.size, align, 8) + 8
    taken.stack += 8
    return (ParameterPart("stack", type.size, offset=offset),)


def _classes(type: CType) -> list[str]:
    """Return the class of each 8 bytes of a type: _WORD, _REAL, _X87 or _MEMORY.

    A number or vector of 16 bytes in one floating-point register has a single _REAL, as has a
    structure of one such. A number of the x87, and a structure of one, has a single _X87. A type
    that is in memory as a whole (more than 16 bytes, packed, or of a number of the x87 and others)
    has a single _MEMORY. 8 bytes of no member have _NONE.

    Raises:
        NotKnown: the type is not understood.
    """
    if type.kind in WORDS:
        return [_WORD] * (1 if type.size <= 8 else 2)
    if type.kind == "float" and type.size in (2, 4, 8):
        return [_REAL]
    if type.kind == "float" and type.size == 16 and "128" in type.base_name:
        return [_REAL]
    if type.kind == "float":
        return [_X87]
    if type.is_vector:
        _look_at_vector(type)
        return [_REAL]
    if type.kind == "complex" and type.size <= 16:
        return [_REAL] * (type.size // 8)
    if type.kind == "complex":
        return [_MEMORY]
    if type.kind not in ("struct", "union", "array") or not type.size:
        raise NotKnown(NOT_UNDERSTOOD)
    if type.size > _MOST_IN_REGISTERS:
        _look_for_wide_vector(type)
        return [_MEMORY]
    if is_packed(type):
        return [_MEMORY]
    scalars = _scalars(type, 0)
    kinds = {kind for _, _, kind in scalars}
    if _X87 in kinds:
        return [_X87] if kinds == {_X87} else [_MEMORY]
    if any(size == 16 and kind == _REAL for _, size, kind in scalars):
        if len(scalars) > 1:
            raise NotKnown("it or a parameter before it has a number of 16 bytes among others")
        return [_REAL]
    found = [_NONE for _ in range((type.size + 7) // 8)]
    for offset, size, kind in scalars:
        if kind == _MEMORY:
            return [_MEMORY]
        for n in range(offset // 8, (offset + max(size, 1) - 1) // 8 + 1):
            found[n] = _WORD if _WORD in (kind, found[n]) else kind
    return found


def _scalars(type: CType, base: int) -> list[tuple[int, int, str]]:
    """Return the numbers in a structure or array of up to 16 bytes.

    Args:
        type: the structure or array; or a number, which is then the only one.
        base: its offset in the whole parameter, in bytes.

    Returns:
        (offset, bytes, class) of each; a bit field is one of class _WORD.

    Raises:
        NotKnown: a member's location or kind is not understood.
    """
    if type.kind == "array" and not type.is_vector:
        if type.bounded and None not in type.dims and type.element.size:
            size = type.element.size
            return [
                each
                for n in range(min(type.size // size, 16))
                for each in _scalars(type.element, base + n * size)
            ]
        raise NotKnown("it or a parameter before it has an array without bounds")
    if type.kind in ("struct", "union"):
        if has_unplaced_members(type) or len(type.fields) > MOST_MEMBERS:
            raise NotKnown(MEMBERS_NOT_KNOWN)
        found = []
        for member in type.fields:
            if member.bits:
                first = 8 * (base + member.offset) + member.shift
                found.append((first // 8, (first % 8 + member.bits + 7) // 8, _WORD))
            else:
                found += _scalars(member.type, base + member.offset)
        return found
    if type.kind == "complex" and type.size > 16:
        return [(base, type.size, _MEMORY)]
    if type.kind == "complex":
        half = type.size // 2
        return [(base, half, _REAL), (base + half, half, _REAL)]
    return [(base, type.size, _classes(type)[0])]


def _look_at_vector(type: CType) -> None:
    """Raise NotKnown for a vector that is not in one register of SSE in all code: of other bytes
    than 8 and 16, which options decide, or of one element, which compilers pass differently.

    Args:
        type: the vector.
    """
    if type.size not in (8, 16) or type.count < 2:
        raise NotKnown("it, a parameter before it, or the result has a vector of an unusual size")


def _look_for_wide_vector(type: CType) -> None:
    """Raise NotKnown for a structure or array of one vector of more than 16 bytes, and no more,
    which options put into a register or memory.

    Args:
        type: the structure or array, of more than 16 bytes.
    """
    inner = type
    for _ in range(MOST_DEEP):
        if inner.is_vector:
            raise NotKnown(
                "it, a parameter before it, or the result has a vector of an unusual size"
            )
        if inner.kind == "array":
            inside = inner.element
        elif inner.kind in ("struct", "union"):
            filling = [each.type for each in inner.fields if each.type.size == type.size]
            inside = next((each for each in filling if has_vector(each, 0)), type)
        else:
            return
        if inside.size != type.size or inside is type:
            return
        inner = inside


def _sysv_result(type: CType, by_reference: ByReference) -> tuple[ParameterPart, ...]:
    """Return the parts of a function's result by the System V ABI, as it returns. One in memory is
    at the address in rax.

    Args:
        type: of the result.
        by_reference: type -> whether C++ copies it by a function of its own.

    Raises:
        NotKnown: the result is in a place that is not understood.
    """
    if is_empty(type):
        return ()
    if type.kind == "complex" and type.size > 16:
        return tuple(
            ParameterPart("register", type.size // 2, name=name) for name in ("st0", "st1")
        )
    small = type.size <= _MOST_IN_REGISTERS
    if type.kind in ("struct", "union") and small and by_reference(type):
        return (ParameterPart("behind", type.size, name="rax"),)
    classes = _classes(type)
    if _X87 in classes:
        return (ParameterPart("register", 10, name="st0"),)
    if _MEMORY in classes:
        return (ParameterPart("behind", type.size, name="rax"),)
    if type.size == 16 and classes == [_REAL]:
        return (ParameterPart("register", 16, name="xmm0"),)
    return _parts_of_classes(type.size, classes, ["rax", "rdx"], ["xmm0", "xmm1"])


# --- Rust on x86-64


def rust_parts(
    types: Sequence[CType], result: CType, is_tried: bool = False
) -> list[tuple[ParameterPart, ...]]:
    """Return the parts of each parameter of a Rust function on x86-64.

    rustc passes a type that consists of one or two numbers as one or two numbers, in the registers
    in which C has them; others of at most 8 bytes as one integer, and larger ones by their address.
    An enumeration consists of the number that says which variant it is, and of the only number
    that its variants have, if all have it at one place.

    Args:
        types: of the parameters, in order.
        result: type of the result, whose address in memory may take the first register.
        is_tried: True: is_tried_rustc() of the compiler.

    Raises:
        NotKnown: a type is one that versions of rustc pass differently.
    """
    taken = Taken()
    taken.words = int(_rust_pieces(result, is_tried) is None)
    return [_rust_parameter(_rust_pieces(type, is_tried), type, taken) for type in types]


def is_tried_rustc(producer: str) -> bool:
    """Whether a unit's rustc is a version of which it has been tried how it passes types that are
    neither one or two numbers nor large: others have passed them otherwise.

    Args:
        producer: the compiler's name as the unit has it.
    """
    found = _RUSTC.search(producer)
    return found is not None and _TRIED_RUSTC[0] <= int(found[1]) <= _TRIED_RUSTC[1]


def rust_result(type: CType, is_tried: bool = False) -> tuple[ParameterPart, ...]:
    """Return the parts of a Rust function's result on x86-64, as it returns.

    A result in memory is at the address that the function got as its first argument: optimized code
    need not return it in rax.

    Args:
        type: of the result.
        is_tried: True: is_tried_rustc() of the compiler.

    Raises:
        NotKnown: versions of rustc return it differently, or its debug information does not tell.
    """
    pieces = _rust_pieces(type, is_tried)
    if pieces is None:
        return (ParameterPart("given", type.size, name=_SYSV_WORDS[0]),)
    names = {_WORD: ["rax", "rdx"], _REAL: ["xmm0", "xmm1"]}
    return tuple(ParameterPart("register", size, name=names[kind].pop(0)) for size, kind in pieces)


def _rust_parameter(
    pieces: list[tuple[int, str]] | None, type: CType, taken: Taken
) -> tuple[ParameterPart, ...]:
    """Return the parts of the next parameter of a Rust function.

    Args:
        pieces: what _rust_pieces() says of it.
        type: of the parameter.
        taken: what the parameters before it have taken; is changed.

    Returns:
        The parts, in the order of the value's bytes; none for a type without bytes.

    Raises:
        NotKnown: versions of rustc pass it differently.
    """
    if pieces is None:
        if taken.words < len(_SYSV_WORDS):
            taken.words += 1
            return (ParameterPart("behind", type.size, name=_SYSV_WORDS[taken.words - 1]),)
        return (ParameterPart("behind", type.size, offset=taken.on_stack(8, 8, 8) + 8),)
    if type.kind == "int" and len(pieces) == 2 and taken.words + 2 > len(_SYSV_WORDS):
        raise NotKnown("where an integer of 16 bytes is on the stack depends on rustc's version")
    return tuple([_rust_piece(size, kind, taken) for size, kind in pieces])


def _rust_piece(size: int, kind: str, taken: Taken) -> ParameterPart:
    """Return where a number of a Rust function's parameter is: the next register of its kind, or
    the stack.

    Args:
        size: its bytes, with the padding behind it.
        kind: _WORD or _REAL.
        taken: what the numbers before it have taken; is changed.
    """
    if kind == _WORD and taken.words < len(_SYSV_WORDS):
        taken.words += 1
        return ParameterPart("register", size, name=_SYSV_WORDS[taken.words - 1])
    if kind == _REAL and taken.reals < 8:
        taken.reals += 1
        return ParameterPart("register", size, name=f"xmm{taken.reals - 1}")
    return ParameterPart("stack", size, offset=taken.on_stack(size, 8, 8) + 8)


def _has_wide(type: CType, depth: int) -> bool:
    """Return True for a type that has a number of more than 8 bytes, or may have one.

    Args:
        type: the type.
        depth: structures and arrays around it.
    """
    if type.kind == "array":
        return depth > MOST_DEEP or _has_wide(type.element, depth + 1)
    if type.kind not in ("struct", "union"):
        return type.size > 8 or type.kind == "other"
    inner = [member.type for member in type.members.values()]
    if type.variants is not None:
        of_variants = [member.type for member in type.variants.members.values()]
        inner += [variant for variant in of_variants if variant.members]
    if depth > MOST_DEEP or (type.size and not inner):
        return True
    return any(_has_wide(each, depth + 1) for each in inner)


class _AsBytes(Exception):
    """Raised for a Rust type that rustc takes for bytes, and not for numbers."""


@frozen(order=True)
class _RustNumber:
    """A number that a Rust type consists of.

    Attributes:
        offset: of its first byte in the type.
        size: bytes.
        kind: _WORD or _REAL.
        form: "signed", "unsigned", "pointer" or "float": what versions of rustc take for different.
        wrapped: True: it is the only number of a structure.
    """

    offset: int
    size: int
    kind: str
    form: str
    wrapped: bool = False


def _rust_pieces(type: CType, is_tried: bool) -> list[tuple[int, str]] | None:
    """Return the numbers that Rust passes a type as.

    Args:
        type: of the parameter or result.
        is_tried: True: is_tried_rustc() of the compiler.

    Returns:
        (bytes, with the padding behind it; _WORD or _REAL) of each, in their order; [] for a type
        without bytes; None: its address is passed, as of a result in memory.

    Raises:
        NotKnown: versions of rustc differ, or its debug information does not tell.
    """
    if not type.size or type.kind == "void":
        return []
    if type.kind == "int" and type.size == 16:
        return [(8, _WORD), (8, _WORD)]
    if type.size > 16:
        # two numbers are passed as two also where one has 16 bytes, vectors in registers of theirs
        if _alignment(type) > 8 or _has_wide(type, 0):
            raise NotKnown("it or a parameter before it, or the result, has a number of 16 bytes")
        return None
    try:
        numbers = sorted(_rust_numbers(type, 0, 0))
        pieces = _rust_pair(numbers, type.size)
    except _AsBytes:
        if is_tried and _is_plain(type, 0):
            return [(type.size, _WORD)] if type.size <= 8 else None
        if type.size > 8 or _has_real(type, 0):
            raise NotKnown(
                "how rustc passes a type before it, its own, or the result is not known"
            ) from None
        return [(type.size, _WORD)]
    if any(number.wrapped for number in numbers) and (len(pieces) > 1 or pieces[0][1] == _REAL):
        # rustc passes a structure that is #[repr(C)] as bytes, and does not tell that it is one
        raise NotKnown("a structure of one number, it or before it, may be #[repr(C)]")
    return pieces


def _rust_pair(numbers: Sequence[_RustNumber], size: int) -> list[tuple[int, str]]:
    """Return the pieces of a type that one number fills, or two, but for padding.

    Args:
        numbers: of the type, by their offset.
        size: bytes of the type.

    Returns:
        (bytes, with the padding behind it; _WORD or _REAL) of each number.

    Raises:
        _AsBytes: there are none or more, or they lie otherwise than rustc puts them.
    """
    if len(numbers) == 1 and (numbers[0].offset, numbers[0].size) == (0, size):
        return [(size, numbers[0].kind)]
    if len(numbers) != 2:
        raise _AsBytes
    first, second = numbers
    largest = max(first.size, second.size)
    if first.offset or second.offset != -(-first.size // second.size) * second.size:
        raise _AsBytes
    if size != -(-(second.offset + second.size) // largest) * largest:
        raise _AsBytes
    return [(second.offset, first.kind), (size - second.offset, second.kind)]


def _rust_numbers(type: CType, base: int, depth: int) -> list[_RustNumber]:
    """Return the numbers that a Rust type consists of.

    Args:
        type: the type.
        base: its offset in the whole parameter.
        depth: structures around it.

    Raises:
        _AsBytes: rustc does not take it for numbers.
        NotKnown: its debug information does not tell.
    """
    if type.kind in WORDS and type.size <= 8:
        form = "pointer" if type.kind == "pointer" else ("unsigned", "signed")[type.signed]
        return [_RustNumber(base, type.size, _WORD, form)]
    if type.kind == "float" and type.size in (4, 8):
        return [_RustNumber(base, type.size, _REAL, "float")]
    if type.kind == "array" or (type.kind == "union" and not depth):
        raise _AsBytes
    if type.kind != "struct" or type.hidden or depth > MOST_DEEP:
        raise NotKnown("how rustc passes a type before it, its own, or the result is not known")
    if type.variants is not None:
        return _rust_variants(type, base, depth)
    inside = _rust_members(type, base, depth)
    if len(inside) == 1 and not _is_of_rusts_library(type):
        return [evolve(inside[0], wrapped=True)]
    return inside


def _rust_members(type: CType, base: int, depth: int) -> list[_RustNumber]:
    """Return the numbers that the members of a structure, or of a variant, consist of.

    Args:
        type: the structure, or the variant's type.
        base: its offset in the whole parameter.
        depth: structures around it.

    Raises:
        _AsBytes, NotKnown: as for _rust_numbers().
    """
    return [
        number
        for member in type.members.values()
        if member.type.size
        for number in _rust_numbers(member.type, base + member.offset, depth + 1)
    ]


def _rust_variants(type: CType, base: int, depth: int) -> list[_RustNumber]:
    """Return the numbers that an enumeration of Rust consists of.

    Args:
        type: the enumeration.
        base: its offset in the whole parameter.
        depth: structures around it.

    Raises:
        _AsBytes: rustc does not take it for numbers.
        NotKnown: versions of rustc differ, or its debug information does not tell.
    """
    variants = type.variants
    if variants is None or type.members or not variants.members:
        raise NotKnown("how rustc passes a type before it, its own, or the result is not known")
    # a variant is described as a structure, which is none that a program could mark
    held = [
        numbers
        for variant in variants.members.values()
        if (numbers := _rust_members(variant.type, base + variant.offset, depth))
    ]
    if variants.discriminant is None:
        return held[0] if held else []
    which = variants.discriminant
    (tag,) = _rust_numbers(which.type, base + which.offset, depth + 1)
    if any(_overlap(tag, number) for numbers in held for number in numbers):
        if len(held) > 1:
            raise _AsBytes
        return held[0]  # values that its number cannot have say that it is another variant
    if not held:
        return [tag]
    if any(len(numbers) != 1 for numbers in held):
        raise _AsBytes
    places = {(numbers[0].offset, numbers[0].size, numbers[0].kind) for numbers in held}
    if len(places) != 1:
        raise _AsBytes
    if len({numbers[0].form for numbers in held}) != 1:
        raise NotKnown(
            "versions of rustc pass an enumeration before it, it, or the result otherwise"
        )
    wrapped = any(numbers[0].wrapped for numbers in held)
    return [tag, evolve(held[0][0], wrapped=wrapped)]


def _overlap(one: _RustNumber, other: _RustNumber) -> bool:
    """Return True where two numbers have a byte in common."""
    return one.offset < other.offset + other.size and other.offset < one.offset + one.size


def _is_of_rusts_library(type: CType) -> bool:
    """Return True for a structure of Rust's own library, which has none of C in what it passes.

    Args:
        type: a structure.
    """
    return scopes_of(type.definition).startswith(("core::", "alloc::", "std::"))


def _alignment(type: CType) -> int:
    """Return the alignment that debug information tells of a type, in bytes; 1: it tells none."""
    return constant(type.definition, "DW_AT_alignment") or 1


def _is_plain(type: CType, depth: int) -> bool:
    """Return True for a Rust type of numbers, pointers and enumerations of up to 8 bytes, and
    structures and arrays of more than one element of these, that is none of SIMD, which rustc
    passes in registers of their own.

    Types of SIMD are structures of an array, and aligned to their whole size. False for a union, a
    structure with hidden members, and a type that is nested deeper than MOST_DEEP.

    Args:
        type: the type.
        depth: structures and arrays around it.
    """
    if depth > MOST_DEEP:
        return False
    if type.kind == "array":
        return type.size > type.element.size and _is_plain(type.element, depth + 1)
    if type.kind != "struct":
        return type.kind in (*WORDS, "float") and type.size <= 8
    inner = [member.type for member in type.members.values()]
    if type.variants is not None:
        inner += [member.type for member in type.variants.members.values()]
    inner = [each for each in inner if each.size]
    if len(inner) == 1 and inner[0].kind == "array" and _alignment(type) >= type.size:
        return False
    return not type.hidden and all(_is_plain(each, depth + 1) for each in inner)


def _has_real(type: CType, depth: int) -> bool:
    """Return True for a type that has a floating-point number, or may have one.

    Args:
        type: the type.
        depth: structures and arrays around it.
    """
    if type.kind == "array":
        return depth > MOST_DEEP or _has_real(type.element, depth + 1)
    if type.kind not in ("struct", "union"):
        return type.kind not in WORDS
    inner = [member.type for member in type.members.values()]
    if type.variants is not None:
        inner += [member.type for member in type.variants.members.values()]
    return depth > MOST_DEEP or any(_has_real(each, depth + 1) for each in inner if each.size)


# --- AArch64
