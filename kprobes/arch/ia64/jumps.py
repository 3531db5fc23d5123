"""Writes the bundle in which an instruction has become a jump; those before it stay.

They keep slots, units and stops. What follows in the bundle becomes branches to where it is
displaced: a jump has the qualifying predicate of the instruction that it stands for, so the guest
comes there when that is false; and by a return from an interruption, which alone leads to slot 1 or
2. A taken branch ends its group ("Instruction Groups", volume 1), so a stop before it may go; a
branch reads predicates that integer compares of its own group have written ("Dependency
Violations").
"""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import OutOfReach
from .._base import Insn
from . import bundle
from .bundle import BRANCH, SIZE
from .displace import word_of

BR, BRL = 4 << 37 | 1 << 12, 12 << 37 | 1 << 12  # .cond.sptk.many
#: units -> the template, without a stop, that has branches in the last slots
TEMPLATES = {units: half << 1 for half, units in bundle.UNITS.items() if units.endswith("B")}
STOP_BEHIND_0, STOP_BEHIND_1 = 5, 1  # template >> 1 of M;MI and MI;I


def predicate(insn: Insn) -> int:
    """Return the number of the predicate that a breakpoint or a jump has in an instruction's place.

    It is the instruction's own; p0 where the instruction does something when its own is false.
    """
    return word_of(insn) & 63 if insn.conditional else 0


def why_none(insn: Insn) -> str:
    """Return why no jump can stand in an instruction's place; "": one can (`Bundles.no_jump`).

    One can in slots 0 and 1. None can in slot 2 where a stop is behind slot 0, or where a stop is
    behind slot 1, the instruction in slot 1 is a MOV to predicates, and `insn` in slot 2 has a
    qualifying predicate, which its jump keeps (predicate()).
    """
    template, words = bundle.parts(insn.raw)
    if insn.addr % SIZE == 2 and template >> 1 == STOP_BEHIND_0:
        return "no template has a stop behind slot 0 and a branch in slot 2"
    if (
        insn.addr % SIZE == 2
        and template >> 1 == STOP_BEHIND_1
        and predicate(insn)
        and _sets_predicates(words[1])
    ):
        return (
            "no template has a stop behind slot 1, which sets the predicate, and a branch in slot 2"
        )
    return ""


def _sets_predicates(word: int) -> bool:
    """Whether an instruction is MOV to pr or pr.rot, which no branch of its group may read."""
    return word >> 37 == 0 and word >> 33 & 7 in (2, 3)


def home(insn: Insn, to: int, places: Sequence[int]) -> bytes:
    """Return an instruction's bundle with a jump in its place (`Bundles.jump`).

    The jump is a BR, and so is each instruction that follows. If BR does not reach, it is a BRL,
    which takes slots 1 and 2.

    Args:
        insn: the instruction.
        to: address that the jump leads to.
        places: address where each instruction behind it in the bundle is executed meanwhile.

    Raises:
        OutOfReach: BR does not reach, and BRL cannot stand there.
    """
    slot, units = insn.addr % SIZE, bundle.units(bundle.parts(insn.raw)[0])
    if units[slot] == "X":
        return _far(insn, to)
    try:
        return _near(insn, to, places)
    except OutOfReach:
        if predicate(insn) or slot == 2 or (slot == 1 and units[0] != "M"):
            raise
        return _far(insn, to)


def _near(insn: Insn, to: int, places: Sequence[int]) -> bytes:
    """Return the bundle in which an instruction is a BR to `to`, and each behind it a BR to where
    it is displaced.

    Args:
        insn: the instruction.
        to: the jump's target.
        places: addresses at which those behind it are executed.

    Raises:
        OutOfReach: a BR does not reach.
    """
    slot, start, (template, words) = insn.addr % SIZE, insn.addr & -SIZE, bundle.parts(insn.raw)
    words[slot] = bundle.near(BR | predicate(insn), start, to, BRANCH)
    for n in range(slot + 1, 3):  # L+X behind it is one
        words[n] = bundle.near(BR, start, places[min(n - slot, len(places)) - 1], BRANCH)
    return bundle.join(TEMPLATES[bundle.units(template)[:slot].ljust(3, "B")] | template & 1, words)


def _far(insn: Insn, to: int) -> bytes:
    """Return the bundle in which an instruction is a BRL to `to`; only slot 0 before it stays.

    Raises:
        OutOfReach: `to` is no bundle's start.
    """
    template, words = bundle.parts(insn.raw)
    _, (nop, upper, word) = bundle.parts(bundle.far(BRL | predicate(insn), insn.addr, to))
    return bundle.join(
        bundle.MLX & ~1 | template & 1, (words[0] if insn.addr % SIZE else nop, upper, word)
    )
