"""Simulations of branches that compare two general registers, shared by RISC architectures."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, ge, lt, ne

from ..regs import Regs
from ._insn import Insn

Read = Callable[[Regs, int], int]  # of the general register of a number
Branch = Callable[..., int]


def taken(insn: Insn) -> int:
    """Return the target of a direct branch, which the decoder has put into `insn.target`."""
    assert insn.target is not None
    return insn.target


def comparing(
    unsigned: Read, signed: Read
) -> tuple[Branch, Branch, Branch, Branch, Branch, Branch]:
    """Make the simulations of BEQ, BNE, BLT, BGE, BLTU and BGEU, in this order.

    Each compares the registers of the fields `s` and `t`, and returns the branch's target or the
    next address.

    Args:
        unsigned: (regs, number of a register) -> its unsigned value.
        signed: (regs, number of a register) -> its signed value.
    """

    def branch(holds: Callable[[int, int], bool], read: Read) -> Branch:
        """Make the simulation of a branch.

        Args:
            holds: (value of register s, value of register t) -> whether the branch is taken.
            read: (regs, number of a register) -> its value.
        """

        def simulate(regs: Regs, insn: Insn, s: int, t: int, **_: int) -> int:
            """Return the branch's target where the registers of fields `s` and `t` compare so, else
            the next.
            """
            return taken(insn) if holds(read(regs, s), read(regs, t)) else insn.next

        return simulate

    return (branch(eq, unsigned), branch(ne, unsigned), branch(lt, signed), branch(ge, signed),
            branch(lt, unsigned), branch(ge, unsigned))
