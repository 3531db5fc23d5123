"""Numbers of the guest's types, put into a program (CO-RE).

A compiler notes which numbers of a program depend on the layout of types: a member's offset, its
size, whether it is there. They are worked out here from the guest's own debug information. Where
the guest has no such type or member, the instruction is replaced by one that the verifier refuses
if a path leads there; programs ask before with bpf_core_field_exists() and its kin, and the branch
that is not taken is no path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from attrs import evolve

from ..errors import KprobeError
from . import isa
from .code import Asked, Code, TypeRelocation
from .helpers import HELPERS
from .isa import Instruction

#: the enumeration of a kernel by which programs ask for helpers, and how its names begin
_HELPER_NUMBERS: Final = "enum bpf_func_id"
_HELPER: Final = "BPF_FUNC_"
#: kinds that are 0 where the guest has no such thing
_ASKS: Final = (Asked.EXISTS, Asked.TYPE_EXISTS, Asked.VALUE_EXISTS, Asked.MATCHES)


class GuestTypes(Protocol):
    """The guest's types: debug.info.DebugInfo."""

    def type(self, name: str) -> Any:
        """Return the type of a name as C writes it. Raises KprobeError where there is none."""


class _Missing(Exception):
    """The guest has no such number; the text says why."""


def relocated(code: Code, types: GuestTypes, order: str) -> Code:
    """Return a program whose relocations by type are done: it has the numbers of the guest's types.

    Where the guest has no such type or member, the instruction becomes a call that the verifier
    refuses, and the result's `missing` says why. Where the program only asks whether the guest has
    it, the number is 0.

    Args:
        code: the program.
        types: types of the guest.
        order: the guest's byte order, "little" or "big".

    Raises:
        ProgramError: an instruction has no field for its number, or the number does not fit.
    """
    instructions = list(code.instructions)
    missing = dict(code.missing)
    for pc, relocation in code.relocations.items():
        try:
            number = number_of(
                relocation, types, None if code.numbers_read else order != code.order
            )
        except _Missing as error:
            if relocation.kind not in _ASKS:
                missing[pc] = str(error)
                instructions[pc] = Instruction(isa.CALL | isa.JMP, imm=isa.MISSING)
                if code.instructions[pc].wide:
                    instructions[pc + 1] = Instruction(isa.JA | isa.JMP)
                continue
            number = 0
        _patch(code, instructions, pc, number)
    return evolve(code, instructions=tuple(instructions), relocations={}, missing=missing)


def number_of(relocation: TypeRelocation, types: GuestTypes, swapped: bool | None) -> int:
    """Return the number that a relocation asks for, from the guest's types.

    Args:
        relocation: the relocation.
        types: the guest's types.
        swapped: True where the guest's byte order is not the program's, False where it is; None: it
            does not matter, as the program reads by <kprobes/bpf.h>'s macros.

    Returns:
        As `relocation.kind` says: an offset or a size in bytes, an enumerator's number, 1 where it
        was asked whether the guest has it, or another of _of_member().

    Raises:
        _Missing: the guest has no such type, member or enumerator; the program would read it
            wrongly; or it asks for a number that only a kernel gives to types.
    """
    kind = relocation.kind
    if kind == Asked.LOCAL_ID:
        return relocation.local or 0
    if relocation.type == _HELPER_NUMBERS and kind in (Asked.VALUE_EXISTS, Asked.VALUE):
        name = str(relocation.path[0]).removeprefix(_HELPER)
        helper = next((each for each in HELPERS.values() if each.name == name), None)
        if helper is None:
            raise _Missing(f"there is no helper bpf_{name}() here")
        return 1 if kind == Asked.VALUE_EXISTS else helper.number
    try:
        found = types.type(relocation.type)
    except KprobeError as error:
        raise _Missing(f"the guest has no type {relocation.type}") from error
    if kind == Asked.TARGET_ID:
        raise _Missing("a kernel's numbers of types are asked for")
    if kind in (Asked.TYPE_EXISTS, Asked.MATCHES):
        return 1
    if kind == Asked.TYPE_SIZE:
        return int(found.size)
    if kind in (Asked.VALUE_EXISTS, Asked.VALUE):
        name = str(relocation.path[0])
        if name not in found.values:
            raise _Missing(f"{relocation.type} of the guest has no {name}")
        return 1 if kind == Asked.VALUE_EXISTS else int(found.values[name])
    return _of_member(relocation, found, swapped)


def _of_member(relocation: TypeRelocation, found: Any, swapped: bool | None) -> int:
    """Return the number that a relocation asks for about the member that its path leads to.

    Args:
        relocation: the relocation.
        found: the guest's type at which the path begins (a debug type).
        swapped: True where the guest's byte order is not the program's, False where it is; None: it
            does not matter, as the program reads by <kprobes/bpf.h>'s macros.

    Returns:
        As `relocation.kind` says: the member's offset or size in bytes; 1: it exists; 1 or 0: it is
        signed or not; or the bits by which a bit field is shifted to the left, or then to the
        right, in 64 bits.

    Raises:
        _Missing: the guest has no such member, or the program would read it wrongly.
    """
    at = relocation.index * found.size
    bits = 0
    shift = 0
    size = found.size
    for step in relocation.path:
        if isinstance(step, int):
            if found.kind != "array" or found.target is None:
                raise _Missing(f"{relocation} is no array in the guest")
            found = found.target
            at += step * found.size
            bits, size = 0, found.size
            continue
        member = found.members.get(step) if found.kind in ("struct", "union") else None
        if member is None:
            raise _Missing(f"{found.name} of the guest has no member {step}")
        at = at + member.offset
        bits = member.bits
        shift = member.shift
        found = member.type
        size = member.unit if bits else found.size
    kind = relocation.kind
    if kind == Asked.EXISTS:
        return 1
    if (
        kind == Asked.OFFSET
        and swapped is not None
        and not bits
        and found.kind not in ("struct", "union", "array")
    ):
        if size != relocation.size:
            raise _Missing(
                f"{relocation} has {size} bytes in the guest and {relocation.size} in the program: "
                "declare it with a type of that size"
            )
        if swapped and size > 1:
            raise _Missing(
                f"{relocation} is in the other byte order in the guest: read it with guest_u32()"
            )
    if kind in (Asked.OFFSET, Asked.SIZE):
        return int(at if kind == Asked.OFFSET else size)
    if kind == Asked.SIGNED:
        return int(found.signed)
    width = bits or 8 * size
    return 64 - (shift + width if kind == Asked.LSHIFT else width)


def _patch(code: Code, instructions: list[Instruction], pc: int, number: int) -> None:
    """Replace the number in an instruction: its constant, or the offset of its access.

    Args:
        code: the program, for the error.
        instructions: the program's instructions; those at `pc`, and of LDDW the one behind, change.
        pc: slot of the instruction.
        number: the number that the guest's types give.

    Raises:
        ProgramError: the instruction has no place for it, or it does not fit an offset's 16 bits.
            (A constant is cut.)
    """
    i = instructions[pc]
    if i.wide:
        upper = isa.signed(number >> 32, 32)
        instructions[pc] = evolve(i, imm=isa.signed(number, 32), high=upper)
        instructions[pc + 1] = Instruction(0, imm=upper)
    elif i.cls in (isa.ALU, isa.ALU64) and not i.by_register:
        instructions[pc] = evolve(i, imm=isa.signed(number, 32))
    elif i.cls in (isa.LDX, isa.ST, isa.STX):
        if not -(1 << 15) <= number < 1 << 15:
            raise code.error(f"offset {number} of the guest's type does not fit", pc)
        instructions[pc] = evolve(i, offset=number)
    else:
        raise code.error(
            "has a relocation by type, and no number for it", pc, "compile it again with clang"
        )


def unresolved(code: Code) -> Mapping[int, TypeRelocation]:
    """Return the relocations by type that still have to be done: slot -> relocation.

    Those for the object's own types (LOCAL_ID) are left out: they need no guest.

    Args:
        code: the program.
    """
    return {pc: r for pc, r in code.relocations.items() if r.kind != Asked.LOCAL_ID}
