"""Simulates A32's data processing where PC is an operand or the destination.

Sections name DDI 0406C, A5.2.1 to A5.2.3. Functions that begin with `regs` and `insn` simulate, and
return the target to go to next. Parameters of one letter are fields of the row's picture: o opcode,
s whether it sets flags, n and m operands, d destination, i immediate, a rotation, e register of a
shift.
"""

from __future__ import annotations

from attrs import evolve

from ...regs import Regs
from .._base import Insn, signed
from . import shared as arm
from .shared import LR, MASK, PC, after, here, put, r, refuse

SUB, ADD = 2, 4
TST, TEQ, CMP, CMN, ORR, MOV, BIC, MVN = range(8, 16)
COMPARES = (TST, TEQ, CMP, CMN)
#: SUB, RSB, ADD, ADC, SBC, RSC, CMP, CMN: invert the first operand, invert the second, carry in
#: (None: the flag)
SUMS = {2: (0, 1, 1), 3: (1, 0, 1), 4: (0, 0, 0), 5: (0, 0, None), 6: (0, 1, None), 7: (1, 0, None),
        CMP: (0, 1, 1), CMN: (0, 0, 0)}


def add_with_carry(x: int, y: int, carry: int) -> tuple[int, int, int]:
    """Return (result, carry, overflow) of x + y + carry, in 32 bits (AddWithCarry, A2.2.1)."""
    total = x + y + carry
    result = total & MASK
    return result, total >> 32, ((x ^ result) & (y ^ result)) >> 31


def shift(value: int, kind: int, amount: int, carry: int) -> tuple[int, int]:
    """Shift a value by an immediate amount (Shift_C, A8.4.3): return (value, carry).

    Args:
        value: 32 bits.
        kind: 0 LSL, 1 LSR, 2 ASR, 3 ROR.
        amount: bits; 0 is LSL 0, LSR 32, ASR 32 and RRX.
        carry: the carry flag before, 0 or 1.
    """
    if kind == 0:
        return (value << amount & MASK, value >> 32 - amount & 1) if amount else (value, carry)
    if kind == 3:
        return ((value << 32 | value) >> amount & MASK if amount else carry << 31 | value >> 1,
                value >> max(amount - 1, 0) & 1)
    wide = signed(value, 32) if kind == 2 else value
    return wide >> (amount or 32) & MASK, wide >> (amount or 32) - 1 & 1


def process(
    regs: Regs, insn: Insn, o: int, s: int, n: int, d: int, y: int, shifted_out: int
) -> int:
    """Simulate a data-processing instruction, whose second operand the caller has computed.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        o: its opcode.
        s: 1: it sets flags.
        n: number of the first operand's register.
        d: number of the destination.
        y: the second operand's value.
        shifted_out: the shifter's carry.

    Returns:
        The next target: the result where the destination is PC.
    """
    x, flags = r(regs, insn, n), regs.flags
    if o in SUMS:
        invert_x, invert_y, carry = SUMS[o]
        carry = flags >> 29 & 1 if carry is None else carry
        result, carry, overflow = add_with_carry(x ^ MASK * invert_x, y ^ MASK * invert_y, carry)
    else:
        result = (x & y, x ^ y, x | y, y, x & ~y, ~y & MASK)[
            {0: 0, 1: 1, TST: 0, TEQ: 1, ORR: 2, MOV: 3, BIC: 4, MVN: 5}[o]
        ]
        carry, overflow = shifted_out, flags >> 28 & 1
    if s:
        arm.set_nz(regs, result, carry, overflow)
    return after(insn) if o in COMPARES else put(regs, insn, d, result)


def process_register(
    regs: Regs, insn: Insn, o: int, s: int, n: int, d: int, i: int, y: int, m: int
) -> int:
    """Simulate data processing whose second operand is a shifted register.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        o: its opcode.
        s: 1: it sets flags.
        n: number of the first operand's register.
        d: number of the destination.
        i: amount of the shift.
        y: kind of the shift.
        m: number of the second operand's register.
    """
    return process(regs, insn, o, s, n, d, *shift(r(regs, insn, m), y, i, regs.flags >> 29 & 1))


def process_immediate(
    regs: Regs, insn: Insn, o: int, s: int, n: int, d: int, a: int, i: int
) -> int:
    """Simulate data processing whose second operand is `i` rotated right by 2 * `a`.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        o: its opcode.
        s: 1: it sets flags.
        n: number of the first operand's register.
        d: number of the destination.
        a: half of the rotation.
        i: eight bits.
    """
    value = (i << 32 | i) >> 2 * a & MASK  # ARMExpandImm_C (A5.2.4)
    return process(regs, insn, o, s, n, d, value, value >> 31 if a else regs.flags >> 29 & 1)


def process_uses_pc(o: int, s: int, n: int, d: int, m: int = 0, e: int = 0, **_: int) -> bool:
    """`when` of a row: PC takes part in the instruction as an operand or the destination.

    MOV and MVN have no first operand, compares no destination; compares that set no flags are other
    instructions.

    Args:
        o: opcode.
        s: 1: it sets flags.
        n: number of the first operand's register.
        d: number of the destination.
        m: number of the second operand's register.
        e: number of the register that has the shift.
    """
    if o in COMPARES:
        return bool(s) and PC in (n, m, e)
    return PC in (d, m, e) or (n == PC and o not in (MOV, MVN))


def adr(insn: Insn, o: int, s: int, n: int, i: int, a: int | None = None, **_: int) -> Insn:
    """Return ADR (an ADD or SUB of a constant to PC) with the address that it computes as its
    operand.

    Any other instruction is returned as it is.

    Args:
        insn: the instruction.
        o: opcode.
        s: 1: it sets flags.
        n: number of the first operand's register.
        i: eight bits of the constant.
        a: half of the bits by which they are rotated; None: the second operand is a register.
    """
    if a is None or s or n != PC or o not in (SUB, ADD):
        return insn
    offset = (i << 32 | i) >> 2 * a & MASK
    return evolve(insn, operand=here(insn) + (offset if o == ADD else -offset) & MASK)


def process_rules(
    insn: Insn, c: int, o: int, s: int, n: int, d: int, i: int, m: int = 0, **fields: int
) -> Insn:
    """Return data processing with its facts: ADR's operand, or a jump where PC is the destination.

    Reserved forms and exception returns come back as instructions that cannot be probed (`reject`
    has the reason).

    Args:
        insn: the instruction.
        c: condition.
        o: opcode.
        s: 1: it sets flags.
        n: number of the first operand's register.
        d: number of the destination.
        i: the immediate, or the amount of a shift.
        m: number of the second operand's register; 0 for an immediate.
        fields: other fields, for adr().
    """
    if (d and o in COMPARES) or (n and o in (MOV, MVN)):
        return refuse(insn, arm.RESERVED)
    if d != PC:
        return adr(insn, o, s, n, i, **fields)
    if s:
        return refuse(insn, arm.EXCEPTION_RETURN)
    return evolve(arm.goes(insn, c), indirect=(o, m, i) != (MOV, LR, 0))
