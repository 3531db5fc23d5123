"""PA-RISC's branches: simulations, conditions and targets.

"Branch Instructions". A branch is simulated before its delay slot runs, so it reads its registers
and writes the link register first. Functions that begin with `regs` and `insn` simulate: they
return the target to go to next. Functions that begin with `insn` return it with its target. Others
with `regs` are conditions. Parameters of one letter are fields of the row's picture: w, k, j and i
pieces of a displacement, b and d numbers of registers, n whether the delay slot is nullified.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from ...regs import Regs
from .._base import Annul, Insn, signed
from .._zero import zero_first
from .conditions import added, compared, moved
from .displace import LINK, MASK, RP, USER, scattered

R = tuple(f"r{n}" for n in range(32))
r, set_r = zero_first(R)

# --- targets, as `extra`; those of 17 and 22 bits have more pieces


def near(insn: Insn, i: int, w: int = 0, **_: int) -> Insn:
    """Return a conditional branch with its target.

    It is twelve bits of words, in the pieces `w` (the sign) and `i`, from behind the delay slot.
    """
    return evolve(insn, target=insn.addr + 8 + (signed(scattered(w, 0, i, 12), 12) << 2) & MASK)


def far(insn: Insn, w: int, j: int, i: int, d: int = 0) -> Insn:
    """Return B or B,L with its target; it is a call where it links, into register `d`.

    The displacement has 17 bits, in the pieces `w` (the sign), `j` and `i`.
    """
    target = insn.addr + 8 + (signed(scattered(w, j, i, 17), 17) << 2) & MASK
    return evolve(insn, target=target, links=d != 0, falls_through=d != 0 and insn.delay_slot)


def farthest(insn: Insn, w: int, k: int, j: int, i: int) -> Insn:
    """Return B,L of 22 bits with its target; it links r2.

    The displacement is in the pieces `w` (the sign), `k`, `j` and `i`.
    """
    target = insn.addr + 8 + (signed(scattered(w, k << 5 | j, i, 22), 22) << 2) & MASK
    return evolve(insn, target=target, links=True, falls_through=insn.delay_slot)


def computed(insn: Insn, b: int, **_: int) -> Insn:
    """Return BV, BVE or BE with its facts: a return where base `b` is a link register, else
    a jump.
    """
    return evolve(insn, indirect=b not in (RP, LINK), falls_through=False)


def calling(insn: Insn, d: int = RP, **_: int) -> Insn:
    """Return BLR, BVE,L or BE,L with its facts: a call where it links (`d` is not 0)."""
    return evolve(insn, indirect=d == 0, links=d != 0, falls_through=d != 0 and insn.delay_slot)


# --- simulations


def _link(regs: Regs, insn: Insn, d: int) -> None:
    """Put the return address, with the user's privilege level, into register `d`."""
    set_r(regs, d, insn.addr + 8 & MASK | USER)


def b(regs: Regs, insn: Insn, d: int = 0, **_: int) -> int:
    """Simulate B and B,L: put the return address into register `d`; return the target."""
    _link(regs, insn, d)
    assert insn.target is not None
    return insn.target


def b_l(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate B,L of 22 bits: put the return address into r2; return the target."""
    return b(regs, insn, RP)


def blr(regs: Regs, insn: Insn, d: int, x: int) -> int:
    """Simulate BLR: put the return address into register `d`; return pc plus 8 times
    register `x`.
    """
    target = insn.addr + 8 + (r(regs, x) << 3) & MASK  # first: it may be the link register
    _link(regs, insn, d)
    return target


def bv(regs: Regs, insn: Insn, b: int, x: int = 0) -> int:
    """Simulate BV: return register `b` plus 8 times register `x`, without privilege bits."""
    return r(regs, b) + (r(regs, x) << 3) & MASK & ~3


def bve_l(regs: Regs, insn: Insn, b: int) -> int:
    """Simulate BVE,L: put the return address into r2; return the old value of register `b`, its low
    two bits cleared.
    """
    target = r(regs, b) & ~3
    _link(regs, insn, RP)
    return target


def be(regs: Regs, insn: Insn, b: int, w: int, j: int, i: int) -> int:
    """Simulate BE: return register `b` plus the displacement `w`, `j`, `i`, without
    privilege bits.
    """
    return r(regs, b) + (signed(scattered(w, j, i, 17), 17) << 2) & MASK & ~3


def be_l(regs: Regs, insn: Insn, **fields: int) -> int:
    """Simulate BE,L: put the return address into r31; return the target."""
    target = be(regs, insn, **fields)
    _link(regs, insn, LINK)
    return target


def branch(holds: Callable[..., bool]) -> Callable[..., int]:
    """Make the simulation of a conditional branch, (regs, insn, **fields) -> next target.

    With the field `n` set, the delay slot of a branch backwards is nullified where the branch is
    not taken; a branch forwards with `n` has no delay slot here (the row NAME,N).

    Args:
        holds: (regs, **fields) -> whether it is taken; it may change a register.
    """

    def simulate(regs: Regs, insn: Insn, n: int = 0, **fields: int) -> int:
        """Return the target where the branch is taken, else the next address, as an Annul if `n` is
        1: the delay slot must not run.
        """
        taken = holds(regs, **fields)
        assert insn.target is not None
        if taken:
            return insn.target
        return Annul(insn.next) if n else insn.next

    return simulate


def im5(t: int) -> int:
    """Return an immediate of five bits whose sign is its last bit, as 32 bits."""
    return t >> 1 | (0xFFFFFFF0 if t & 1 else 0)


def cmpb(false: bool, regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    """Whether CMPB branches: condition `c` of register `t` compared with register `s` holds; where
    `false` is True, it does not hold.
    """
    return compared(c, r(regs, t), r(regs, s)) is not false


def cmpib(false: bool, regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    """Whether CMPIB branches: condition `c` of the immediate `t` compared with register `s` holds;
    where `false` is True, it does not hold.
    """
    return compared(c, im5(t), r(regs, s)) is not false


def _addb(regs: Regs, false: bool, c: int, s: int, left: int) -> bool:
    """Add `left` to register `s`; return whether condition `c` of the sum holds.

    Args:
        false: True: return the opposite.
    """
    right = r(regs, s)
    set_r(regs, s, left + right & MASK)
    return added(c, left, right) is not false


def addb(false: bool, regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    """Add register `t` to register `s`; return whether ADDB branches: condition `c` of the sum
    holds, or, where `false` is True, does not.
    """
    return _addb(regs, false, c, s, r(regs, t))


def addib(false: bool, regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    """Add the immediate `t` to register `s`; return whether ADDIB branches: condition `c` of the
    sum holds, or, where `false` is True, does not.
    """
    return _addb(regs, false, c, s, im5(t))


def movb(regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    """Copy register `t` to register `s`, and return whether condition `c` of the value holds."""
    value = r(regs, t)
    set_r(regs, s, value)
    return moved(c, value)


def movib(regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    """Copy the immediate `t` to register `s`; return whether condition `c` of the value holds."""
    set_r(regs, s, im5(t))
    return moved(c, im5(t))


def bb(regs: Regs, c: int, t: int, s: int | None = None, **_: int) -> bool:
    """Whether BB branches: a bit of register `t`, counted from the highest, is set (`c` 1: is not).

    Args:
        s: number of the bit; None: the shift amount register has it.
    """
    return bool(r(regs, t) >> 31 - (regs["sar"] if s is None else s) & 1) is not bool(c)


def mfia(regs: Regs, insn: Insn, d: int) -> int:
    """Simulate MFIA: put the instruction's address into register `d`; return the next address."""
    set_r(regs, d, insn.addr)
    return insn.next
