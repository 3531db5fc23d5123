"""Exclusive sequences: the instructions from a load-exclusive to its store-exclusive.

A trap among them would make the store fail for ever. Paths are followed along direct branches,
forward and back. A path ends at a call, a return, an instruction that gives the sequence up (CLREX,
a wait), and another load-exclusive. A load that no store follows on any path opens no sequence.
"""

from __future__ import annotations

from collections.abc import Callable

from ...arch._base import Atomic, Decoded, Insn

#: Instructions from the load to the store: architectures promise progress only for short sequences
#: (16 instructions on RISC-V, 128 bytes on Arm).
LONGEST = 32


def inside(opening: Insn, decode: Callable[[int], Insn]) -> set[int]:
    """Return the addresses between a load-exclusive and the stores that close its sequence.

    Paths of more than LONGEST instructions are followed no farther. set() where none leads to a
    store.

    Args:
        opening: the load-exclusive; neither it nor the stores are among the addresses.
        decode: (address) -> the instruction there.
    """
    ways: dict[int, set[int]] = {}  # address -> the addresses that lead to it
    closing: list[int] = []
    edge = [(opening.addr, at) for at in _after(opening, decode)]
    for _ in range(LONGEST + 1):
        found = []
        for frm, at in edge:
            seen = at in ways
            ways.setdefault(at, set()).add(frm)
            if not seen:
                insn = decode(at)
                if insn.atomic is Atomic.CLOSES:
                    closing.append(at)
                elif insn.atomic is None:
                    found += [(at, to) for to in _after(insn, decode)]
        edge = found
    return _between(closing, ways) - {opening.addr, *closing}


def _after(insn: Insn, decode: Callable[[int], Insn]) -> list[int]:
    """Return the addresses to which an instruction may lead within an exclusive sequence.

    [] where the sequence ends: at a call, a computed jump, or an unknown instruction. For a branch
    with a load- or store-exclusive in its delay slot, the slot's address alone.

    Args:
        insn: the instruction.
        decode: (address) -> the instruction there.
    """
    if insn.decoded is not Decoded.WHOLE or insn.links or insn.indirect:
        return []
    if insn.delay_slot and decode(insn.addr + insn.size).atomic is not None:
        return [insn.addr + insn.size]
    return [
        *((insn.target,) if insn.target is not None else ()),
        *((insn.next,) if insn.falls_through else ()),
    ]


def _between(closing: list[int], ways: dict[int, set[int]]) -> set[int]:
    """Return the addresses on a path to one of the closing instructions.

    Args:
        closing: addresses of the store-exclusives.
        ways: address -> the addresses that lead to it.
    """
    on_the_way: set[int] = set()
    todo = list(closing)
    while todo:
        for frm in ways.get(todo.pop(), ()):
            if frm not in on_the_way:
                on_the_way.add(frm)
                todo.append(frm)
    return on_the_way
