"""T32 (Thumb-2) of ARMv7-A and of the M profile: decode rows and simulations.

Sections name DDI 0406C. Every simulation is wrapped for IT blocks: it happens if the block's condition for it holds, and
ITSTATE moves on either way. What runs out of line does so under the block's own ITSTATE, which the slot's end (a breakpoint
that no condition can skip) finds moved on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from attrs import evolve

from ..regs import Regs
from . import _arm as arm
from ._arm import LR, MASK, PC, SP, UNPREDICTABLE, R, after, computed, here, not_pc, pc_used, put, r, refuse, to
from ._base import Atomic, Insn, signed
from ._decode import DecodeTable, Row


def in_block(simulate: Callable[..., int]) -> Callable[..., int]:
    """In an IT block: only where the condition holds, then ITAdvance (A2.5.2)."""

    @wraps(simulate)
    def run(regs: Regs, insn: Insn, **fields: int) -> int:
        flags = regs.flags
        state = arm.it_state(flags)
        if not state & 15:
            return simulate(regs, insn, **fields)
        target = simulate(regs, insn, **fields) if arm.holds(flags, state >> 4) else after(insn)
        regs.flags = arm.with_it_state(regs.flags, arm.it_advance(state))
        return target

    return run


def row(picture: str, name: str, simulate: Callable[..., int] | None = None, **rest: Any) -> Row:
    """A row whose simulation an IT block may condition."""
    return Row(picture, name, simulate and in_block(simulate), **rest)


# --- simulations (A8.8)


def it(regs: Regs, insn: Insn, c: int, k: int) -> int:
    regs.flags = arm.with_it_state(regs.flags, c << 4 | k)
    return after(insn)


def put_here(regs: Regs, insn: Insn, d: int, value: int) -> int:
    """A result goes to a register; to PC it is a branch that stays in T32 (ALUWritePC, A2.3.1)."""
    return put(regs, insn, d, value | 1 if d == PC else value)


def add(regs: Regs, insn: Insn, d: int, m: int) -> int:
    return put_here(regs, insn, d, r(regs, insn, d) + r(regs, insn, m) & MASK)


def mov(regs: Regs, insn: Insn, d: int, m: int) -> int:
    return put_here(regs, insn, d, r(regs, insn, m))


def b_cond(regs: Regs, insn: Insn, c: int, **_: int) -> int:
    return arm.b(regs, insn) if arm.holds(regs.flags, c) else after(insn)


def cbz(regs: Regs, insn: Insn, n: int, **_: int) -> int:
    return after(insn) if regs[R[n]] else arm.b(regs, insn)


def cbnz(regs: Regs, insn: Insn, n: int, **_: int) -> int:
    return arm.b(regs, insn) if regs[R[n]] else after(insn)


def table_branch(regs: Regs, insn: Insn, n: int, h: int, m: int) -> int:
    """TBB, TBH: an entry counts halfwords from PC."""
    entry = regs.word(r(regs, insn, n) + (regs[R[m]] << h), 1 << h)
    return here(insn) + 2 * entry & MASK | 1


def adr_short(regs: Regs, insn: Insn, d: int, i: int) -> int:
    return put(regs, insn, d, literal(insn, 1, 4 * i))


def adr(regs: Regs, insn: Insn, d: int, i: int, u: int) -> int:
    return put(regs, insn, d, literal(insn, not u, i))


def ldr_short(regs: Regs, insn: Insn, t: int, i: int) -> int:
    return put(regs, insn, t, regs.word(literal(insn, 1, 4 * i)))


def ldr_literal(regs: Regs, insn: Insn, u: int, t: int, i: int) -> int:
    return put(regs, insn, t, regs.word(literal(insn, u, i)))


def ldrb_literal(regs: Regs, insn: Insn, q: int, u: int, h: int, t: int, i: int) -> int:
    """LDRB, LDRH, LDRSB, LDRSH; into PC they are PLD, PLI and unallocated hints."""
    if t == PC:
        return after(insn)
    value = regs.word(literal(insn, u, i), 1 << h)
    return put(regs, insn, t, signed(value, 8 << h) & MASK if q else value)


def ldrd_literal(regs: Regs, insn: Insn, u: int, t: int, e: int, i: int, **_: int) -> int:
    address = literal(insn, u, 4 * i)
    regs[R[t]], regs[R[e]] = regs.word(address), regs.word(address + 4)
    return after(insn)


def literal(insn: Insn, u: int, offset: int) -> int:
    """An address relative to Align(PC, 4)."""
    return (here(insn) & ~3) + (offset if u else -offset) & MASK


def ldr_pc(regs: Regs, insn: Insn, n: int, i: int, p: int = 1, u: int = 1, w: int = 0) -> int:
    base = regs[R[n]]
    moved = base + (i if u else -i) & MASK
    target = regs.word(moved if p else base)
    if w:
        regs[R[n]] = moved
    return target


def ldr_pc_register(regs: Regs, insn: Insn, n: int, i: int, m: int) -> int:
    return regs.word(regs[R[n]] + (regs[R[m]] << i))


def pop(regs: Regs, insn: Insn, r: int) -> int:
    return arm.ldm(regs, insn, 0, 1, 1, SP, r)


# --- facts


def it_rules(insn: Insn, c: int, k: int) -> Insn:
    return refuse(insn, UNPREDICTABLE) if c == 15 or (c == 14 and k.bit_count() != 1) else insn


def add_rules(insn: Insn, d: int, m: int) -> Insn:
    return refuse(insn, UNPREDICTABLE) if d == m == PC else evolve(insn, indirect=d == PC and m != LR)


def ldm_rules(insn: Insn, w: int, n: int, r: int, **_: int) -> Insn:
    return refuse(insn, UNPREDICTABLE) if r >> LR & 1 or r >> SP & 1 or (w and r >> n & 1) else insn


def ldrd_rules(insn: Insn, t: int, e: int, w: int, **_: int) -> Insn:
    return refuse(insn, UNPREDICTABLE) if w or t == e or PC in (t, e) else insn


def ldr_pc_rules(insn: Insn, n: int, p: int = 1, u: int = 1, w: int = 0, m: int = 0, **_: int) -> Insn:
    """p, u = 1, w = 0 with eight bits of offset is LDRT."""
    if m == PC or not (p or w) or (p and u and not w and insn.raw[2:] and _has_puw(insn)):
        return refuse(insn, UNPREDICTABLE)
    return evolve(insn, indirect=n != SP)
