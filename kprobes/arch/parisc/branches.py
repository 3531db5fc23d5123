"""PA-RISC's branches: where they go, and what they do besides ("Branch Instructions").

A branch is simulated before its delay slot runs, so it reads its registers and writes the link
register first.

Functions that begin with `regs` and `insn` simulate: they return the target to go to next.
Functions that begin with `insn` return it with its target. Parameters of one letter are fields of
the row's picture: w, k, j and i pieces of a displacement, b and d numbers of registers, n whether
the delay slot is nullified.
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
    """A conditional branch: twelve bits of words, from behind the delay slot."""
    return evolve(insn, target=insn.addr + 8 + (signed(scattered(w, 0, i, 12), 12) << 2) & MASK)


def far(insn: Insn, w: int, j: int, i: int, d: int = 0) -> Insn:
    """Set the target of B and B,L, of 17 bits; it is a call where it links."""
    target = insn.addr + 8 + (signed(scattered(w, j, i, 17), 17) << 2) & MASK
    return evolve(insn, target=target, links=d != 0, falls_through=d != 0 and insn.delay_slot)


def farthest(insn: Insn, w: int, k: int, j: int, i: int) -> Insn:
    """Set the target of B,L of 22 bits, which links r2."""
    target = insn.addr + 8 + (signed(scattered(w, k << 5 | j, i, 22), 22) << 2) & MASK
    return evolve(insn, target=target, links=True, falls_through=insn.delay_slot)


def computed(insn: Insn, b: int, **_: int) -> Insn:
    """Say of BV, BVE and BE that they return, through the registers of return addresses, or jump to
    an unknown place.
    """
    return evolve(insn, indirect=b not in (RP, LINK), falls_through=False)


def calling(insn: Insn, d: int = RP, **_: int) -> Insn:
    """BLR, BVE,L and BE,L: a call where it links."""
    return evolve(insn, indirect=d == 0, links=d != 0, falls_through=d != 0 and insn.delay_slot)


# --- simulations


def _link(regs: Regs, insn: Insn, d: int) -> None:
    set_r(regs, d, insn.addr + 8 & MASK | USER)


def b(regs: Regs, insn: Insn, d: int = 0, **_: int) -> int:
    """Simulate B and B,L: keep the return address in register `d`."""
    _link(regs, insn, d)
    assert insn.target is not None
    return insn.target


def b_l(regs: Regs, insn: Insn, **_: int) -> int:
    return b(regs, insn, RP)


def blr(regs: Regs, insn: Insn, d: int, x: int) -> int:
    """Simulate BLR: keep the return address in register `d`, and return pc plus 8 times register
    `x`.
    """
    target = insn.addr + 8 + (r(regs, x) << 3) & MASK  # first: it may be the link register
    _link(regs, insn, d)
    return target


def bv(regs: Regs, insn: Insn, b: int, x: int = 0) -> int:
    return r(regs, b) + (r(regs, x) << 3) & MASK & ~3


def bve_l(regs: Regs, insn: Insn, b: int) -> int:
    """Simulate BVE,L: keep the return address in r2, and return the address in register `b`."""
    target = r(regs, b) & ~3
    _link(regs, insn, RP)
    return target


def be(regs: Regs, insn: Insn, b: int, w: int, j: int, i: int) -> int:
    return r(regs, b) + (signed(scattered(w, j, i, 17), 17) << 2) & MASK & ~3


def be_l(regs: Regs, insn: Insn, **fields: int) -> int:
    """Simulate BE,L: keep the return address in r31, and return the target."""
    target = be(regs, insn, **fields)
    _link(regs, insn, LINK)
    return target


def branch(holds: Callable[..., bool]) -> Callable[..., int]:
    """Return the simulation of a conditional branch, taken where `holds`(regs, **fields).

    With n the delay slot is nullified where the branch is not taken: it goes backwards, others have
    none then.
    """

    def simulate(regs: Regs, insn: Insn, n: int = 0, **fields: int) -> int:
        """Return the target where the branch is taken; `n` 1: a delay slot is nullified where it is
        not.
        """
        taken = holds(regs, **fields)
        assert insn.target is not None
        if taken:
            return insn.target
        return Annul(insn.next) if n else insn.next

    return simulate


def im5(t: int) -> int:
    """Return an immediate whose sign is its last bit."""
    return t >> 1 | (0xFFFFFFF0 if t & 1 else 0)


def cmpb(false: bool, regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    return compared(c, r(regs, t), r(regs, s)) is not false


def cmpib(false: bool, regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    return compared(c, im5(t), r(regs, s)) is not false


def _addb(regs: Regs, false: bool, c: int, s: int, left: int) -> bool:
    """Add to register `s`, and return whether condition `c` of the sum holds; with `false` True,
    whether it does not.
    """
    right = r(regs, s)
    set_r(regs, s, left + right & MASK)
    return added(c, left, right) is not false


def addb(false: bool, regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    return _addb(regs, false, c, s, r(regs, t))


def addib(false: bool, regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    return _addb(regs, false, c, s, im5(t))


def movb(regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    """Copy register `t` to register `s`, and return whether condition `c` of the value holds."""
    value = r(regs, t)
    set_r(regs, s, value)
    return moved(c, value)


def movib(regs: Regs, c: int, s: int, t: int, **_: int) -> bool:
    set_r(regs, s, im5(t))
    return moved(c, im5(t))


def bb(regs: Regs, c: int, t: int, s: int | None = None, **_: int) -> bool:
    """Bits are counted from the highest; the shift amount register may say which."""
    return bool(r(regs, t) >> 31 - (regs["sar"] if s is None else s) & 1) is not bool(c)


def mfia(regs: Regs, insn: Insn, d: int) -> int:
    set_r(regs, d, insn.addr)
    return insn.next
