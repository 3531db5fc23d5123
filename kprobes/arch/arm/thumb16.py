"""T32's 16-bit instructions, and what all of T32 needs: IT blocks, addresses relative to PC.

Sections name DDI 0406C. Every simulation is wrapped for IT blocks: it happens if the block's
condition for it holds, and ITSTATE moves on either way. What runs out of line does so under the
block's own ITSTATE, which the slot's end (a breakpoint that no condition can skip) finds moved on.

Functions that begin with `regs` and `insn` simulate, and return the target to go to next. Functions
that begin with `insn` add facts to it, or refuse it. Parameters of one letter are fields: d, t
destination, m, n source, i immediate, c condition, k mask of IT, r register list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ...regs import Regs
from .._base import Atomic, Insn, signed
from .._decode import DecodeTable, Row, as_it_is
from . import shared as arm
from . import thumb_displace as away
from .shared import LR, MASK, PC, SP, UNPREDICTABLE, R, after, computed, literal, not_pc, pc_used, put, r, refuse, to


def in_block(simulate: Callable[..., int]) -> Callable[..., int]:
    """Wrap a simulation for IT blocks: it happens where the block's condition holds; ITSTATE moves
    on.

    Outside of a block it just happens (ITAdvance, A2.5.2).

    Args:
        simulate: (regs, insn, **fields) -> next target.
    """

    @wraps(simulate)
    def run(regs: Regs, insn: Insn, **fields: int) -> int:
        """Simulate where the block's condition holds, and move ITSTATE on; outside of a block
        simulate.
        """
        flags = regs.flags
        state = arm.it_state(flags)
        if not state & 15:
            return simulate(regs, insn, **fields)
        target = simulate(regs, insn, **fields) if arm.holds(flags, state >> 4) else after(insn)
        regs.flags = arm.with_it_state(regs.flags, arm.it_advance(state))
        return target

    return run


def row(picture: str, name: str, simulate: Callable[..., int] | None = None, **rest: Any) -> Row:
    """Make a decode row whose simulation is wrapped by in_block().

    Args:
        picture: bits of the halfword.
        name: the manual's mnemonic.
        simulate: (regs, insn, **fields) -> next target; None: it is not simulated.
        rest: further attributes of Row.
    """
    return Row(picture, name, simulate and in_block(simulate), **rest)


# --- simulations (A8.8)


def it(regs: Regs, insn: Insn, c: int, k: int) -> int:
    """Simulate IT: set ITSTATE to condition `c` and mask `k`; return the next target."""
    regs.flags = arm.with_it_state(regs.flags, c << 4 | k)
    return after(insn)


def put_here(regs: Regs, insn: Insn, d: int, value: int) -> int:
    """Write a result into register `d`; return the next target.

    A result in PC is a branch that stays in T32 (ALUWritePC, A2.3.1).
    """
    return put(regs, insn, d, value | 1 if d == PC else value)


def add(regs: Regs, insn: Insn, d: int, m: int) -> int:
    """Simulate ADD of register `m` to register `d`, where one of them is PC."""
    return put_here(regs, insn, d, r(regs, insn, d) + r(regs, insn, m) & MASK)


def mov(regs: Regs, insn: Insn, d: int, m: int) -> int:
    """Simulate MOV of register `m` into register `d`, where one of them is PC."""
    return put_here(regs, insn, d, r(regs, insn, m))


def b_cond(regs: Regs, insn: Insn, c: int, **_: int) -> int:
    """Simulate B under the condition `c`: return its target, or the next one."""
    return arm.b(regs, insn) if arm.holds(regs.flags, c) else after(insn)


def cbz(regs: Regs, insn: Insn, n: int, **_: int) -> int:
    """Simulate CBZ: return its target where register `n` is 0, else the next one."""
    return after(insn) if regs[R[n]] else arm.b(regs, insn)


def cbnz(regs: Regs, insn: Insn, n: int, **_: int) -> int:
    """Simulate CBNZ: return its target where register `n` is not 0, else the next one."""
    return arm.b(regs, insn) if regs[R[n]] else after(insn)


def adr_short(regs: Regs, insn: Insn, d: int, i: int) -> int:
    """Simulate ADR: put PC plus 4 * `i` into register `d`."""
    return put(regs, insn, d, literal(insn, 1, 4 * i))


def ldr_short(regs: Regs, insn: Insn, t: int, i: int) -> int:
    """Simulate LDR of a literal at PC plus 4 * `i` into register `t`."""
    return put(regs, insn, t, regs.word(literal(insn, 1, 4 * i)))


def pop(regs: Regs, insn: Insn, r: int) -> int:
    """Simulate POP of the registers in the list `r`, and PC; return the target that it loads."""
    return arm.ldm(regs, insn, 0, 1, 1, SP, r)


# --- facts


def it_rules(insn: Insn, c: int, k: int) -> Insn:
    """Return IT with the number of instructions behind it that are its block (`together`), which
    the lowest one in the mask `k` marks.

    An IT that is UNPREDICTABLE comes back as an instruction that cannot be probed (`reject`).
    """
    if c == 15 or (c == 14 and k.bit_count() != 1):
        return refuse(insn, UNPREDICTABLE)
    return insn.changed(together=5 - (k & -k).bit_length())


def mov_rules(insn: Insn, d: int, m: int) -> Insn:
    """Return MOV; into PC (`d`) it is a jump, and from LR (`m`) a return."""
    return insn.changed(indirect=d == PC and m != LR, falls_through=d != PC)


def add_rules(insn: Insn, d: int, m: int) -> Insn:
    """Return ADD; into PC (`d`) it is a jump; of PC (`m`) to PC it is refused."""
    return refuse(insn, UNPREDICTABLE) if d == m == PC else mov_rules(insn, d, m)


def cbz_label(i: int, **_: int) -> int:
    """Return the bytes from PC to the target of CBZ and CBNZ."""
    return 2 * i


def b_label(bits: int) -> Callable[..., int]:
    """Make a function (**fields) -> bytes from PC to the target of B, whose field `i` has `bits`
    bits.
    """
    return lambda i, **_: 2 * signed(i, bits)


def is_conditional(c: int, **_: int) -> bool:
    """`when` of a row: the condition is not 111x, which marks other instructions."""
    return c < 14


def is_wide(halfword: int) -> bool:
    """Whether a halfword is the first of a 32-bit instruction (A6.1)."""
    return halfword >= 0xE800


T16 = (  # A6.2
    row("0100 0100 d mmmm ddd", "ADD register", add, when=pc_used, displace=away.add, extra=add_rules),
    row("0100 0101 n mmmm nnn", "CMP register", when=pc_used, reject=UNPREDICTABLE),
    row("0100 0110 d mmmm ddd", "MOV register", mov, when=pc_used, displace=away.mov, extra=mov_rules),
    row("0100 0111 0 mmmm 000", "BX", arm.bx, displace=away.bx, falls_through=False, extra=computed),
    row("0100 0111 1 mmmm 000", "BLX register", arm.blx_register, displace=away.blx_register, links=True, extra=not_pc),
    row("0100 0111 - ---- ---", "BX, BLX reserved", reject=arm.RESERVED),
    row("0100 0111 - ---- 1--", "BXNS, BLXNS", reject="changes the security state"),
    row("01001 ttt iiiiiiii", "LDR literal", ldr_short,
        extra=lambda insn, i, **_: arm.reads(insn, literal(insn, 1, 4 * i), 4)),
    row("10100 ddd iiiiiiii", "ADR", adr_short, displace=away.adr,
        extra=lambda insn, i, **_: insn.changed(operand=literal(insn, 1, 4 * i))),
    row("1011 00i1 iiiii nnn", "CBZ", cbz, displace=away.cbz, extra=to(cbz_label)),
    row("1011 10i1 iiiii nnn", "CBNZ", cbnz, displace=away.cbz, extra=to(cbz_label)),
    row("1011 1101 rrrrrrrr", "POP", pop, displace=as_it_is, falls_through=False),
    row("1011 0110 0001 ----", "SETPAN", reject=arm.PRIVILEGED),
    row("1011 0110 0101 ----", "SETEND", reject=arm.ENDIAN),
    row("1011 0110 011- ----", "CPS", reject=arm.PRIVILEGED),
    row("1011 1010 10------", "HLT", reject=arm.EXCEPTION),
    row("1011 1110 --------", "BKPT", reject=arm.EXCEPTION),
    Row("1011 1111 cccc kkkk", "IT", it, when=lambda c, k: k > 0, displace=as_it_is, extra=it_rules),
    row("1011 1111 0001 0000", "YIELD", reject=arm.WAITS),
    row("1011 1111 001- 0000", "WFE, WFI", atomic=Atomic.DROPS, reject=arm.WAITS),
    row("1101 cccc iiiiiiii", "B conditional", b_cond, when=is_conditional, displace=away.b_cond, extra=to(b_label(8))),
    row("1101 1110 --------", "UDF", reject="permanently undefined"),
    row("1101 1111 --------", "SVC", reject=arm.EXCEPTION),
    row("11100 iiiiiiiiiii", "B", arm.b, displace=away.b, falls_through=False, extra=to(b_label(11))),
)

TABLE16 = DecodeTable(T16)
