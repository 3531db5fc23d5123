"""Instructions that no compiler has made: their functions, and the maps that they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from ..errors import ProgramError
from . import isa
from .code import Code
from .isa import Instruction, Order, decode, steps
from .maps import Map


def link(
    raw: bytes | Iterable[Instruction], maps: Mapping[int | str, Map], name: str, order: Order
) -> Code:
    """Make a program of instructions that no compiler has made: find functions, put in maps.

    Args:
        raw: the instructions, one for each slot, or their bytes.
        maps: file descriptor that LDDW of kind MAP_FD has, or any name -> map. LDDW of kind MAP has
            an index into these maps, in their order.
        name: name of the program.
        order: byte order of the bytes, and of the program's memory.

    Raises:
        ProgramError: `raw` is empty, or not whole instructions; an item is no Instruction; the
            second slot of an LDDW is wrong; or a map is not in `maps`.
    """
    try:
        instructions = list(
            decode(bytes(raw), order) if isinstance(raw, (bytes, bytearray, memoryview)) else raw
        )
    except ValueError as e:
        raise ProgramError(str(e), program=name, hint="was something cut off?") from None
    if wrong := [i for i in instructions if not isinstance(i, Instruction)]:
        raise ProgramError(
            f"{wrong[0]!r} is no instruction", program=name, hint="pass bytes, or isa.Instruction"
        )
    if not instructions:
        raise ProgramError("there are no instructions", program=name)
    numbers = {key: index for index, key in enumerate(maps)}
    code = Code(name, tuple(instructions), tuple(maps.values()), order=order)
    functions = {0: name}
    for pc, i in steps(instructions):
        if i.is_local_call:
            functions.setdefault(i.target(pc), f"function_{i.target(pc)}")
        if i.wide and instructions[pc + 1 : pc + 2] != [Instruction(0, imm=i.high)]:
            raise code.error(
                "the second slot of a 64-bit load holds something else than its upper half", pc
            )
        if i.wide and i.src in (isa.MAP_FD, isa.MAP_VALUE_FD):
            if i.imm not in numbers:
                raise code.error(f"there is no map {i.imm}", pc, "give it in maps={number: map}")
            instructions[pc] = evolve(
                i, src=isa.MAP if i.src == isa.MAP_FD else isa.MAP_VALUE, imm=numbers[i.imm]
            )
    inside = {pc: functions[pc] for pc in sorted(functions) if 0 <= pc < len(instructions)}
    return evolve(code, instructions=tuple(instructions), functions=inside)
