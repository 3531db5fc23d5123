"""T32's 32-bit instructions, of ARMv7-A and of the M profile: decode rows and simulations. Sections
name DDI 0406C.

Functions that begin with `regs` and `insn` simulate: they change registers and memory, and return
the target to go to next. Functions that begin with `insn` add facts to it, or refuse it, and return
it. Parameters of one letter are fields of the row's picture: n base, m index, t, e and d registers
that are written, i immediate, u upwards, p pre-indexed, w write back, h size, q signed, r register
list; c, s, j, k and i of branches as the manual has them.
"""

from __future__ import annotations

from attrs import evolve

from ...regs import Regs
from .._base import Atomic, Insn, signed
from .._decode import DecodeTable, as_it_is
from . import shared as arm
from . import thumb_displace as away
from .shared import (
    LR,
    MASK,
    PC,
    SP,
    UNPREDICTABLE,
    R,
    after,
    computed,
    here,
    literal,
    not_pc,
    pc_used,
    put,
    r,
    refuse,
    to,
)
from .thumb16 import b_cond, is_conditional, row

# --- simulations (A8.8)


def table_branch(regs: Regs, insn: Insn, n: int, h: int, m: int) -> int:
    """Simulate TBB and TBH (`h` 1): return the target that the table's entry gives.

    The entry at index `m` of the table at `n` counts halfwords from PC.
    """
    entry = regs.word(r(regs, insn, n) + (regs[R[m]] << h) & MASK, 1 << h)
    return here(insn) + 2 * entry & MASK | 1


def adr(regs: Regs, insn: Insn, d: int, i: int, u: int) -> int:
    """Simulate ADR: put PC plus (`u` 0) or minus `i` into register `d`."""
    return put(regs, insn, d, literal(insn, not u, i))


def ldr_literal(regs: Regs, insn: Insn, u: int, t: int, i: int) -> int:
    """Simulate LDR of a literal at PC plus (`u` 1) or minus `i` into register `t`, which
    may be PC.
    """
    return put(regs, insn, t, regs.word(literal(insn, u, i)))


def ldrb_literal(regs: Regs, insn: Insn, q: int, u: int, h: int, t: int, i: int) -> int:
    """Simulate LDRB, LDRH, LDRSB and LDRSH of a literal; return the next target.

    Into PC they are PLD, PLI and hints, which do nothing.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        q: 1: the value has a sign.
        u: 1: the literal is behind PC; 0: before it.
        h: 0: a byte; 1: a halfword.
        t: number of the register.
        i: bytes from PC.
    """
    if t == PC:
        return after(insn)
    value = regs.word(literal(insn, u, i), 1 << h)
    return put(regs, insn, t, signed(value, 8 << h) & MASK if q else value)


def ldrd_literal(regs: Regs, insn: Insn, u: int, t: int, e: int, i: int, **_: int) -> int:
    """Simulate LDRD of a literal, `i` words behind (`u` 1) or before PC, into registers `t` and
    `e`.
    """
    address = literal(insn, u, 4 * i)
    regs[R[t]], regs[R[e]] = regs.word(address), regs.word(address + 4 & MASK)
    return after(insn)


def ldr_pc(regs: Regs, insn: Insn, n: int, i: int, p: int = 1, u: int = 1, w: int = 0) -> int:
    """Simulate LDR of PC; return the target that it loads.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        n: number of the base register.
        i: the offset in bytes.
        p: 1: the offset counts before the load; 0: after it.
        u: 1: it is added; 0: subtracted.
        w: 1: the base is written back.
    """
    base = regs[R[n]]
    moved = base + (i if u else -i) & MASK
    target = regs.word(moved if p else base)
    if w:
        regs[R[n]] = moved
    return target


def ldr_pc_register(regs: Regs, insn: Insn, n: int, i: int, m: int) -> int:
    """Simulate LDR of PC from the address in `n` plus `m` shifted left by `i`; return the
    target.
    """
    return regs.word(regs[R[n]] + (regs[R[m]] << i) & MASK)


# --- facts


def ldm_rules(insn: Insn, w: int, n: int, r: int, **_: int) -> Insn:
    """Return LDM of PC as a jump; refuse what is UNPREDICTABLE.

    Args:
        w: 1: the base is written back.
        n: number of the base register.
        r: list of the registers, a bit each, without PC.
    """
    wrong = not r or r >> LR & 1 or r >> SP & 1 or (w and r >> n & 1)
    return refuse(insn, UNPREDICTABLE) if wrong else evolve(insn, falls_through=False)


def table_rules(insn: Insn, n: int, h: int, m: int) -> Insn:
    """Return TBB or TBH (`h` 1) with its facts: its table follows it where its base `n` is PC.

    It is refused where its index `m` is PC.
    """
    return computed(not_pc(evolve(insn, table=1 << h if n == PC else 0, table_unit=2), m=m))


def ldr_literal_rules(insn: Insn, u: int, t: int, i: int) -> Insn:
    """Return LDR of a literal, `i` bytes behind (`u` 1) or before PC, with its operand.

    Into PC (`t`) it is a jump.
    """
    return evolve(arm.reads(insn, literal(insn, u, i), 4), indirect=t == PC, falls_through=t != PC)


def ldrb_literal_rules(insn: Insn, u: int, h: int, t: int, i: int, **_: int) -> Insn:
    """Return LDRB, LDRH and their kin of a literal with the operand; PLD and PLI (`t` is PC) as
    they are.
    """
    return insn if t == PC else arm.reads(insn, literal(insn, u, i), 1 << h)


def ldrd_rules(insn: Insn, u: int, t: int, e: int, w: int, i: int, **_: int) -> Insn:
    """Return LDRD of a literal with its operand; refuse what is UNPREDICTABLE.

    Args:
        u: 1: the literal is behind PC; 0: before it.
        t: number of the first register.
        e: number of the second one.
        w: 1: the base, PC, would be written back.
        i: words from PC.
    """
    fine = not w and t != e and PC not in (t, e)
    return arm.reads(insn, literal(insn, u, 4 * i), 8) if fine else refuse(insn, UNPREDICTABLE)


def ldr_pc_rules(insn: Insn, n: int, m: int = 0, **_: int) -> Insn:
    """Return LDR of PC as a jump: a return where the base is SP; refuse it where the index
    is PC.
    """
    return (
        refuse(insn, UNPREDICTABLE)
        if m == PC
        else evolve(insn, indirect=n != SP, falls_through=False)
    )


def b_cond_label(s: int, j: int, k: int, i: int, **_: int) -> int:
    """Return the bytes from PC to the target of B under a condition (T3).

    The displacement is S:J2:J1:imm6:imm11, from the fields `s`, `k`, `j` and `i`.
    """
    return 2 * signed(s << 19 | k << 18 | j << 17 | i, 20)


def bl_label(s: int, j: int, k: int, i: int, bits: int = 21) -> int:
    """Return the bytes from PC to the target of B (T4) and BL.

    The displacement is S:I1:I2:imm10:imm11; I1 and I2 are J1 and J2, inverted if S is 0.

    Args:
        s: S.
        j: J1.
        k: J2.
        i: imm10:imm11.
        bits: width of `i`.
    """
    return 2 * signed(s << bits + 2 | (j ^ s ^ 1) << bits + 1 | (k ^ s ^ 1) << bits | i, bits + 3)


def blx_label(s: int, j: int, k: int, i: int) -> int:
    """Return the bytes from PC to the target of BLX: as bl_label(), but `i` has one bit less."""
    return 2 * bl_label(s, j, k, i, 20)


def process_uses_pc(o: int, s: int, n: int, d: int, m: int = 0) -> bool:
    """`when` of a row: PC takes part in data processing as an operand or the destination.

    An encoding with PC as destination may be TST, TEQ, CMN or CMP, and one with PC as first operand
    MOV or MVN: PC does not count there.

    Args:
        o: opcode.
        s: 1: it sets flags.
        n: number of the first operand's register.
        d: number of the destination.
        m: number of the second operand's register.
    """
    return m == PC or (d == PC and not (s and o in {0, 4, 8, 13})) or (n == PC and o not in {2, 3})


def plain_uses_pc(o: int, n: int, d: int) -> bool:
    """`when` of a row: PC takes part in data processing of a plain immediate.

    MOVW and MOVT have no first operand; BFC and ADR are written with PC, and do not count.

    Args:
        o: opcode.
        n: number of the first operand's register.
        d: number of the destination.
    """
    return d == PC or (n == PC and o not in {0, 4, 10, 12, 22})


def indexed_hint(n: int, p: int, u: int, w: int) -> bool:
    """`when` of a row: not the form p = 1, u = w = 0 that PLD and PLI have; n = PC is the
    literal.
    """
    return n != PC and not (p and not u and not w)


def not_from_pc(n: int, **_: int) -> bool:
    """`when` of a row: the base register is not PC."""
    return n != PC


def indexed(n: int, p: int, w: int, **_: int) -> bool:
    """`when` of a row: it has an index (`p`) or writes back (`w`), and its base `n` is not PC.

    Without either it is undefined.
    """
    return n != PC and bool(p or w)


T32 = (
    # A6.3.5: load and store multiple
    row("1110 1000 00-0 ---- ---- ---- ---- ----", "SRS", reject=arm.BANKED),
    row("1110 1001 10-0 ---- ---- ---- ---- ----", "SRS", reject=arm.BANKED),
    row("1110 1000 00-1 ---- ---- ---- ---- ----", "RFE", reject=arm.EXCEPTION_RETURN),
    row("1110 1001 10-1 ---- ---- ---- ---- ----", "RFE", reject=arm.EXCEPTION_RETURN),
    row("1110 100 p u 0 w 1 nnnn 1 rrrrrrrrrrrrrrr", "LDM", arm.ldm, when=lambda p, u, n, **_: p != u and n != PC,
        displace=as_it_is, extra=ldm_rules),
    row("1110 100 p u 0 - 0 nnnn 1 ---------------", "STM", when=lambda p, u, **_: p != u, reject=UNPREDICTABLE),
    row("1110 100 p u 0 - - 1111 ----------------", "LDM, STM pc", when=lambda p, u: p != u, reject=UNPREDICTABLE),
    # A6.3.6: doubles, exclusives, table branches; a trap between load and store would make the
    # store fail for ever
    row("1110 100 p u 1 w 1 1111 tttt eeee iiiiiiii", "LDRD literal", ldrd_literal,
        when=lambda p, w, **_: bool(p or w), extra=ldrd_rules),
    row("1110 100 p - 1 w f nnnn tttt eeee --------", "LDRD, STRD", reject=UNPREDICTABLE,
        when=lambda p, w, f, n, t, e: bool(p or w) and (PC in (t, e) or (n == PC and not f))),
    row("1110 1001 0111 1111 1110 1001 0111 1111", "SG", reject="changes the security state"),
    row("1110 1000 0100 nnnn 1111 dddd --00 0000", "TT", extra=not_pc),
    row("1110 1000 0100 ---- ---- ---- ---- ----", "STREX", atomic=Atomic.CLOSES, reject=arm.MONITOR),
    row("1110 1000 0101 ---- ---- ---- ---- ----", "LDREX", atomic=Atomic.OPENS, reject=arm.MONITOR),
    row("1110 1000 1100 ---- ---- ---- -1-- ----", "STREX", atomic=Atomic.CLOSES, reject=arm.MONITOR),  # STLEX, D, B, H
    row("1110 1000 1101 ---- ---- ---- -1-- ----", "LDREX", atomic=Atomic.OPENS, reject=arm.MONITOR),  # LDAEX, D, B, H
    row("1110 1000 110- nnnn tttt ---- 10-- ----", "LDA, STL", when=pc_used, reject=UNPREDICTABLE),
    row("1110 1000 1101 nnnn 1111 0000 000h mmmm", "TBB, TBH", table_branch, extra=table_rules),
    row("1110 1000 1101 ---- ---- ---- 000- ----", "TBB, TBH reserved", reject=arm.RESERVED),
    # A6.3.1 to A6.3.3, A6.3.11: data processing
    row("1110 101 oooo s nnnn - --- dddd ---- mmmm", "data processing, register", when=process_uses_pc,
        reject=UNPREDICTABLE),
    row("1111 0 - 0 oooo s nnnn 0 --- dddd --------", "data processing, immediate", when=process_uses_pc,
        reject=UNPREDICTABLE),
    row("1111 0 - 1 ooooo nnnn 0 --- dddd --------", "data processing, plain immediate", when=plain_uses_pc,
        reject=UNPREDICTABLE),
    row("1111 0 i 10 u0u0 1111 0 iii dddd iiiiiiii", "ADR wide", adr, when=lambda u, **_: u in (0, 3),
        displace=away.adr_wide, extra=lambda insn, d, i, u: evolve(not_pc(insn, d=d), operand=literal(insn, not u, i))),
    # A6.3.4: branches to labels, status registers, hints, exceptions
    row("1111 0 s cccc iiiiii 10 j 0 k iiiiiiiiiii", "B conditional wide", b_cond, when=is_conditional,
        displace=away.b_cond, extra=to(b_cond_label)),
    row("1111 0 s iiiiiiiiii 10 j 1 k iiiiiiiiiii", "B wide", arm.b, displace=away.b, falls_through=False,
        extra=to(bl_label)),
    row("1111 0 s iiiiiiiiii 11 j 1 k iiiiiiiiiii", "BL", arm.bl, displace=away.bl, links=True, extra=to(bl_label)),
    row("1111 0011 1010 ---- 10-0 -vvv --------", "CPS wide", when=lambda v: v > 0, reject=arm.PRIVILEGED),
    row("1111 0011 1010 ---- 10-0 -000 00000001", "YIELD wide", reject=arm.WAITS),
    row("1111 0011 1010 ---- 10-0 -000 0000001-", "WFE, WFI wide", atomic=Atomic.DROPS, reject=arm.WAITS),
    row("1111 0011 1011 ---- 10-0 ---- 0010 ----", "CLREX", atomic=Atomic.DROPS),
    row("1111 0011 1011 ---- 10-0 ---- 000- ----", "ENTERX, LEAVEX", reject="changes to ThumbEE"),
    row("1111 0011 1101 ---- 10-0 ---- --------", "SUBS pc, ERET", reject=arm.EXCEPTION_RETURN),
    row("1111 0111 1000 ---- 1000 ---- --------", "DCPS", reject=arm.EXCEPTION),
    row("1111 0111 1110 ---- 1000 ---- --------", "HVC", reject=arm.EXCEPTION),
    row("1111 0111 1111 ---- 1000 ---- --------", "SMC", reject=arm.EXCEPTION),
    row("1111 0111 1111 ---- 1010 ---- --------", "UDF wide", reject="permanently undefined"),
    # A6.3.7 to A6.3.10: single loads and stores
    row("1111 1000 u101 1111 tttt iiiiiiiiiiii", "LDR literal wide", ldr_literal, extra=ldr_literal_rules),
    row("1111 100 q u0h1 1111 tttt iiiiiiiiiiii", "LDRB, LDRH literal", ldrb_literal, displace=away.hint,
        extra=ldrb_literal_rules),
    row("1111 1000 1101 nnnn 1111 iiiiiiiiiiii", "LDR pc", ldr_pc, when=not_from_pc, displace=as_it_is,
        extra=ldr_pc_rules),
    row("1111 1000 0101 nnnn 1111 1puw iiiiiiii", "LDR pc, indexed", ldr_pc, when=indexed, displace=as_it_is,
        extra=ldr_pc_rules),
    row("1111 1000 0101 ---- 1111 1110 --------", "LDRT pc", when=lambda: True, reject=UNPREDICTABLE),
    row("1111 1000 0101 nnnn 1111 0000 00ii mmmm", "LDR pc, register", ldr_pc_register, when=not_from_pc,
        displace=as_it_is, extra=ldr_pc_rules),
    row("1111 1000 ---0 nnnn tttt ---- --------", "STR", when=pc_used, reject=UNPREDICTABLE),
    row("1111 100- 0--- ---- ---- 0000 00-- mmmm", "LDR, STR register", when=pc_used, reject=UNPREDICTABLE),
    row("1111 100- 00-1 nnnn 1111 1puw --------", "LDRB, LDRH pc", when=indexed_hint, reject=UNPREDICTABLE),
    row("1111 1001 ---0 1111 ---- ---- --------", "VLD, VST", reject=UNPREDICTABLE),
    # A6.3.12 to A6.3.17: data processing on registers, multiplication
    row("1111 1010 ---- ---- ---- dddd ---- mmmm", "LSL, SXTB, REV", when=pc_used, reject=UNPREDICTABLE),
    row("1111 1010 0--- 1111 ---- ---- 0--- ----", "LSL register", reject=UNPREDICTABLE),
    row("1111 1010 1--- 1111 ---- ---- ---- ----", "SADD16, CLZ", reject=UNPREDICTABLE),
    row("1111 1011 0--- nnnn ---- dddd ---- mmmm", "MUL, SMUAD", when=pc_used, reject=UNPREDICTABLE),
    row("1111 1011 0000 ---- 1111 ---- 0001 ----", "MLS", reject=UNPREDICTABLE),
    row("1111 1011 0110 ---- 1111 ---- 000- ----", "SMMLS", reject=UNPREDICTABLE),
    row("1111 1011 1--- nnnn ---- dddd ---- mmmm", "UMULL, SDIV", when=pc_used, reject=UNPREDICTABLE),
    row("1111 1011 1ooo ---- 1111 ---- ---- ----", "UMULL", when=lambda o: o not in {1, 3}, reject=UNPREDICTABLE),
    *arm.COPROCESSOR_2,
)

A_PROFILE = (
    *T32,
    *arm.coprocessor(row, "1110", 32, based=False),
    row("1111 0 s iiiiiiiiii 11 j 0 k iiiiiiiiii 0", "BLX", arm.blx, displace=away.blx, links=True,
        extra=to(blx_label, align=4, exchanges=True)),
    row("1111 0011 100 q mmmm 10-0 kkkk --0- ----", "MSR", extra=arm.msr_rules),
    row("1111 0011 1110 ---- 10-0 dddd --0- ----", "MRS", extra=not_pc),
    row("1111 0011 1111 ---- 10-0 ---- --0- ----", "MRS SPSR", reject=arm.BANKED),
    row("1111 0011 100- ---- 10-0 ---- --1- ----", "MSR banked", reject=arm.BANKED),
    row("1111 0011 111- ---- 10-0 ---- --1- ----", "MRS banked", reject=arm.BANKED),
    row("1111 0011 1100 mmmm 1000 1111 0000 0000", "BXJ", arm.bx, displace=away.bx,
        extra=lambda insn, m: computed(not_pc(insn, m=m), m=m)),
    row("1111 0011 1100 ---- 10-0 ---- ---- ----", "BXJ reserved", reject=arm.RESERVED),
)

M_PROFILE = (  # ARMv7-M (DDI 0403): B5.2
    *T32,
    *arm.coprocessor(row, "1110", 16, based=False),
    row("1111 0011 100- mmmm 10-0 ---- kkkkkkkk", "MSR",
        extra=lambda insn, m, k: arm.msr_rules(insn, 0, 3 * (k > 3), m)),
    row("1111 0011 111- ---- 10-0 dddd --------", "MRS", extra=not_pc),
    row("1111 0--- ---- ---- 11-0 ---- --------", "LE, WLS, DLS", reject="a low-overhead loop of ARMv8.1-M"),
)

A_TABLE, M_TABLE = DecodeTable(A_PROFILE), DecodeTable(M_PROFILE)
