"""A32, the 32-bit instructions of ARMv7-A: decode rows and simulations.

Sections name DDI 0406C. An instruction of which PC is an operand or the destination is simulated,
or refused where the manual leaves its effect open; a word without a row is straight line and runs
out of line under its own condition.

Functions that begin with `regs` and `insn` simulate: they change registers and memory as the
instruction does, and return the target to go to next. Functions that begin with `insn` add facts to
it, or refuse it, and return it. Parameters of one letter are fields of the row's picture: c
condition, p pre-indexed, u upwards, b byte, w write back, f load, n base, t or d the register that
is transferred, m index, i immediate, y kind of shift, r register list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from attrs import evolve

from ...regs import Regs
from .._base import Atomic, Insn, signed
from .._decode import DecodeTable, Row, as_it_is
from . import a32_displace as away
from . import shared as arm
from .processing import process_immediate, process_register, process_rules, process_uses_pc, shift
from .shared import LR, MASK, PC, SP, UNPREDICTABLE, R, after, computed, here, not_pc, pc_used, put, r, refuse, to


def conditional(simulate: Callable[..., int]) -> Callable[..., int]:
    """Wrap a simulation so that it does nothing where the instruction's condition `c` does not
    hold.

    Args:
        simulate: (regs, insn, **fields) -> next target.
    """

    @wraps(simulate)
    def run(regs: Regs, insn: Insn, c: int, **fields: int) -> int:
        """Simulate where condition `c` holds; else go to the next instruction."""
        return (
            simulate(regs, insn, **fields) if c == 14 or arm.holds(regs.flags, c) else after(insn)
        )

    return run


def row(picture: str, name: str, simulate: Callable[..., int] | None = None, **rest: Any) -> Row:
    """Make a decode row of the conditional space, whose simulation is wrapped by conditional().

    Args:
        picture: without the condition, which is put in front.
        name: the manual's mnemonic.
        simulate: (regs, insn, **fields) -> next target; None: it is not simulated.
        rest: further attributes of Row.
    """
    return Row("cccc " + picture, name, simulate and conditional(simulate), **rest)


# --- loads and stores (A5.3, A5.2.8, A5.5)


def transfer(
    regs: Regs, insn: Insn, p: int, u: int, b: int, w: int, f: int, n: int, t: int, offset: int
) -> int:
    """Simulate LDR, STR, LDRB and STRB: load or store, write the base back; return the next target.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        p: 1: the offset is added before the access; 0: after it.
        u: 1: the offset is added; 0: subtracted.
        b: 1: a byte; 0: a word.
        w: 1: the base is written back.
        f: 1: a load; 0: a store.
        n: number of the base register.
        t: number of the register that is transferred.
        offset: bytes.
    """
    base, size = r(regs, insn, n), 1 if b else 4
    moved = base + (offset if u else -offset) & MASK
    address = moved if p else base
    if f:
        value = regs.word(address, size)
    else:
        regs.set_word(address, r(regs, insn, t), size)
    if w or not p:
        regs[R[n]] = moved
    return put(regs, insn, t, value) if f else after(insn)


def transfer_immediate(regs: Regs, insn: Insn, i: int, **fields: int) -> int:
    """Simulate LDR, STR, LDRB and STRB with an immediate offset of `i` bytes."""
    return transfer(regs, insn, **fields, offset=i)


def transfer_register(regs: Regs, insn: Insn, i: int, y: int, m: int, **fields: int) -> int:
    """Simulate LDR, STR, LDRB and STRB whose offset is register `m`, shifted (kind `y`) by `i`."""
    return transfer(regs, insn, **fields, offset=shift(regs[R[m]], y, i, regs.flags >> 29 & 1)[0])


def transfer_rules(
    insn: Insn,
    c: int,
    p: int,
    u: int,
    b: int,
    w: int,
    f: int,
    n: int,
    t: int,
    i: int,
    m: int | None = None,
    **_: int,
) -> Insn:
    """Return a load or store with its facts: its pc-relative operand; where it goes if it loads PC.

    A load of PC is a computed jump, or a return where the base is SP. With a register as the offset
    from PC, the operand is taken for a table's address, and its size is not known. What is
    UNPREDICTABLE is refused.

    Args:
        insn: LDR, STR, LDRB or STRB, or an unprivileged one.
        c: condition.
        p: 1: pre-indexed.
        u: 1: the offset is added; 0: subtracted.
        b: 1: a byte; 0: a word.
        w: 1: the base is written back.
        f: 1: a load; 0: a store.
        n: number of the base register.
        t: number of the register that is transferred.
        i: an immediate offset, or the shift of register `m`.
        m: number of the offset's register; None: the offset is `i`.
    """
    unprivileged = w and not p
    if m == PC or (n == PC and (w or not p)) or (t == PC and (b or unprivileged)):
        return refuse(insn, UNPREDICTABLE)
    if n == PC and m is None:
        insn = arm.reads(insn, here(insn) + (i if u else -i) & MASK, 1 if b else 4)
    elif n == PC:
        insn = evolve(insn, operand=here(insn))  # a table
    return evolve(arm.goes(insn, c), indirect=n != SP) if f and t == PC else insn


def short(regs: Regs, insn: Insn, u: int, f: int, t: int, o: int, offset: int) -> int:
    """Simulate LDRH, LDRSB, LDRSH, LDRD, STRH or STRD relative to PC; return the next target.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        u: 1: the offset is added to PC; 0: subtracted.
        f: 1: `o` 1 is LDRH, 2 LDRSB, 3 LDRSH; 0: `o` 1 is STRH, 2 LDRD, 3 STRD.
        t: number of the (first) register that is transferred.
        o: which instruction, 1 to 3.
        offset: bytes.
    """
    address = here(insn) + (offset if u else -offset) & MASK
    if f:
        size = 1 if o == 2 else 2
        value = regs.word(address, size)
        regs[R[t]] = value if o == 1 else signed(value, 8 * size) & MASK
    elif o == 1:
        regs.set_word(address, regs[R[t]], 2)
    elif o == 2:
        regs[R[t]], regs[R[t + 1]] = regs.word(address, 4), regs.word(address + 4, 4)
    else:
        regs.set_word(address, regs[R[t]], 4)
        regs.set_word(address + 4, regs[R[t + 1]], 4)
    return after(insn)


def short_immediate(
    regs: Regs, insn: Insn, u: int, f: int, t: int, o: int, i: int, **_: int
) -> int:
    """Simulate LDRH and its kin (short()) whose offset is the immediate `i`."""
    return short(regs, insn, u, f, t, o, i)


def short_register(regs: Regs, insn: Insn, u: int, f: int, t: int, o: int, m: int, **_: int) -> int:
    """Simulate LDRH and its kin (short()) whose offset is register `m`."""
    return short(regs, insn, u, f, t, o, regs[R[m]])


def short_uses_pc(f: int, n: int, t: int, o: int, m: int = 0, **_: int) -> bool:
    """`when` of a row: LDRH or its kin names PC; LDRD and STRD have the register after Rt, too.

    o = 0 is another group of instructions.
    """
    return o > 0 and (PC in (n, t, m) or (t == LR and o > 1 and not f))


def short_rules(
    insn: Insn,
    p: int,
    u: int,
    w: int,
    f: int,
    n: int,
    t: int,
    o: int,
    i: int = 0,
    m: int | None = None,
    j: int = 0,
    **_: int,
) -> Insn:
    """Return LDRH or one of its kin with its pc-relative operand; refuse what is UNPREDICTABLE.

    With the offset in a register there is no operand: the instruction is returned as it is.

    Args:
        insn: the instruction; `f` and `o` tell which, as in short().
        p: 1: pre-indexed.
        u: 1: the offset is added; 0: subtracted.
        w: 1: the base is written back.
        n: number of the base register.
        t: number of the (first) register that is transferred.
        i: an immediate offset.
        m: number of the offset's register; None: the offset is `i`.
        j: reserved bits, which must be 0.
    """
    dual = o > 1 and not f
    fine = (
        n == PC and p and not w and PC not in (t, m) and not (dual and (t & 1 or t == LR)) and not j
    )
    if fine and m is None:
        size = 2
        if dual:
            size = 8
        elif f and o == 2:
            size = 1
        return arm.reads(insn, here(insn) + (i if u else -i) & MASK, size)
    return insn if fine else refuse(insn, UNPREDICTABLE)


def stm(regs: Regs, insn: Insn, p: int, u: int, w: int, n: int, r: int) -> int:
    """Simulate STM with PC in the list: store the registers and PC, write the base back.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        p: 1: the base moves before each access; 0: after it.
        u: 1: addresses go up; 0: down.
        w: 1: the base is written back.
        n: number of the base register.
        r: list of the registers, a bit each, without PC.
    """
    base, length = regs[R[n]], 4 * r.bit_count() + 4
    values = [regs[R[k]] for k in range(15) if r >> k & 1] + [here(insn)]
    for k, value in enumerate(values):
        regs.set_word(arm.block_start(base, length, p, u) + 4 * k, value)
    if w:
        regs[R[n]] = base + (length if u else -length) & MASK
    return after(insn)


def ldm_rules(insn: Insn, c: int, w: int, n: int, r: int, **_: int) -> Insn:
    """Return LDM of PC with its facts; refuse it where the base `n` is written back (`w`) and in
    the list.

    Args:
        c: condition.
        r: list of the registers, a bit each, without PC.
    """
    return refuse(insn, UNPREDICTABLE) if w and r >> n & 1 else arm.goes(insn, c)


def stm_rules(insn: Insn, w: int, n: int, r: int, **_: int) -> Insn:
    """Return STM; refuse it where the base `n` is written back (`w`) and in the list, but not the
    lowest.

    Args:
        r: list of the registers, a bit each, without PC.
    """
    return refuse(insn, UNPREDICTABLE) if w and r >> n & 1 and r & (1 << n) - 1 else insn


def not_from_pc(n: int, **_: int) -> bool:
    """`when` of a row: the base register is not PC."""
    return n != PC


def label(i: int, **_: int) -> int:
    """Return the bytes from PC to the target of B or BL."""
    return 4 * signed(i, 24)


def blx_label(i: int, h: int, **_: int) -> int:
    """Return the bytes from PC to the target of BLX; `h` is a halfword more."""
    return 4 * signed(i, 24) + 2 * h


def bx_rules(insn: Insn, c: int, m: int, j: int) -> Insn:
    """Return BX with its facts; refuse it where bits `j`, which should be one, are not."""
    return computed(insn, c=c, m=m) if j == 0xFFF else refuse(insn, arm.RESERVED)


def blx_rules(insn: Insn, m: int, j: int, **_: int) -> Insn:
    """Return BLX of a register; refuse it where bits `j`, which should be one, are not, or it names
    PC.
    """
    return not_pc(insn, m=m) if j == 0xFFF else refuse(insn, arm.RESERVED)


CONDITIONAL = (
    # A5.2: data processing
    row("000 oooo s nnnn dddd iiiii yy 0 mmmm", "data processing, register", process_register, when=process_uses_pc,
        displace=away.process, extra=process_rules),
    row("000 oooo s nnnn dddd eeee 0 -- 1 mmmm", "data processing, register-shifted", when=process_uses_pc,
        reject=UNPREDICTABLE),
    row("001 oooo s nnnn dddd aaaa iiiiiiii", "data processing, immediate", process_immediate, when=process_uses_pc,
        displace=away.process, extra=process_rules),
    row("0011 0-00 ---- 1111 ---- --------", "MOVW, MOVT", reject=UNPREDICTABLE),
    row("0000 00-- dddd aaaa eeee 1001 mmmm", "MUL, MLA", when=pc_used, reject=UNPREDICTABLE),
    row("0000 01-- dddd aaaa eeee 1001 mmmm", "UMAAL, MLS", when=pc_used, reject=UNPREDICTABLE),
    row("0000 1--- dddd aaaa eeee 1001 mmmm", "UMULL, SMULL", when=pc_used, reject=UNPREDICTABLE),
    row("0001 0--0 dddd aaaa eeee 1--0 mmmm", "SMLABB", when=pc_used, reject=UNPREDICTABLE),
    row("0001 0--0 nnnn dddd ---- 0100 mmmm", "CRC32", when=pc_used, reject=UNPREDICTABLE),
    row("0001 0--0 nnnn dddd ---- 0101 mmmm", "QADD", when=pc_used, reject=UNPREDICTABLE),
    row("0001 0110 ---- dddd ---- 0001 mmmm", "CLZ", when=pc_used, reject=UNPREDICTABLE),
    # A5.2.11, A5.2.12: status registers, hints, branches to registers, exceptions
    row("0001 0q10 kkkk ---- --0- 0000 mmmm", "MSR register", extra=arm.msr_rules),
    row("0011 0q10 kkkk ---- ---- --------", "MSR immediate", extra=arm.msr_rules),
    row("0001 0000 ---- dddd --0- 0000 ----", "MRS", extra=not_pc),
    row("0001 0100 ---- ---- --0- 0000 ----", "MRS SPSR", reject=arm.BANKED),
    row("0001 0--0 ---- ---- --1- 0000 ----", "MRS, MSR banked", reject=arm.BANKED),
    row("0011 0010 0000 ---- ---- --------", "NOP, SEV, DBG"),
    row("0011 0010 0000 ---- ---- 00000001", "YIELD", reject=arm.WAITS),
    row("0011 0010 0000 ---- ---- 0000001-", "WFE, WFI", atomic=Atomic.DROPS, reject=arm.WAITS),
    row("0001 0010 jjjj jjjj jjjj 0001 mmmm", "BX", arm.bx, displace=away.bx, extra=bx_rules),
    row("0001 0010 jjjj jjjj jjjj 0010 mmmm", "BXJ", arm.bx, displace=away.bx,
        extra=lambda insn, **f: computed(blx_rules(insn, **f), **f)),
    row("0001 0010 jjjj jjjj jjjj 0011 mmmm", "BLX register", arm.blx_register, displace=away.blx_register, links=True,
        extra=blx_rules),
    row("0001 0110 ---- ---- ---- 0110 ----", "ERET", reject=arm.EXCEPTION_RETURN),
    row("0001 0000 ---- ---- ---- 0111 ----", "HLT", reject=arm.EXCEPTION),
    row("0001 0010 ---- ---- ---- 0111 ----", "BKPT", reject=arm.EXCEPTION),
    row("0001 0100 ---- ---- ---- 0111 ----", "HVC", reject=arm.EXCEPTION),
    row("0001 0110 ---- ---- ---- 0111 ----", "SMC", reject=arm.EXCEPTION),
    row("1111 ------------------------", "SVC", reject=arm.EXCEPTION),
    row("0111 1111 ---- ---- ---- 1111 ----", "UDF", reject="permanently undefined"),
    # A5.2.10: exclusives; a trap between load and store would make the store fail for ever
    row("0001 0-00 nnnn tttt ---- 1001 mmmm", "SWP", when=pc_used, reject=UNPREDICTABLE),
    # LDAEX, D, B, H
    row("0001 1--1 ---- ---- --1- 1001 ----", "LDREX", atomic=Atomic.OPENS, reject=arm.MONITOR),
    # STLEX, D, B, H
    row("0001 1--0 ---- ---- --1- 1001 ----", "STREX", atomic=Atomic.CLOSES, reject=arm.MONITOR),
    row("0001 1--1 nnnn tttt --0- 1001 ----", "LDA", when=pc_used, reject=UNPREDICTABLE),
    row("0001 1--0 nnnn ---- --0- 1001 tttt", "STL", when=pc_used, reject=UNPREDICTABLE),
    # A5.3, A5.2.8, A5.2.9, A5.5: loads and stores
    row("010 p u b w f nnnn tttt iiiiiiiiiiii", "LDR, STR immediate", transfer_immediate, when=pc_used,
        displace=away.load, extra=transfer_rules),
    row("011 p u b w f nnnn tttt iiiii yy 0 mmmm", "LDR, STR register", transfer_register, when=pc_used,
        displace=away.load, extra=transfer_rules),
    row("000 p u 1 w f nnnn tttt iiii 1 oo 1 iiii", "LDRH, LDRD immediate", short_immediate, when=short_uses_pc,
        extra=short_rules),
    row("000 p u 0 w f nnnn tttt jjjj 1 oo 1 mmmm", "LDRH, LDRD register", short_register, when=short_uses_pc,
        extra=short_rules),
    row("100 - - 1 - - ---- ----------------", "LDM, STM ^", reject="exception return, or another mode's registers"),
    row("100 - - 0 - - 1111 ----------------", "LDM, STM pc", reject=UNPREDICTABLE),
    row("100 p u 0 w 1 nnnn 1 rrrrrrrrrrrrrrr", "LDM", arm.ldm, when=not_from_pc, displace=as_it_is, extra=ldm_rules),
    row("100 p u 0 w 0 nnnn 1 rrrrrrrrrrrrrrr", "STM", stm, when=not_from_pc, extra=stm_rules),
    # A5.4: media
    row("0110 0--- nnnn dddd ---- ---1 mmmm", "SADD16", when=pc_used, reject=UNPREDICTABLE),
    row("0110 1--- ---- dddd ---- ---1 mmmm", "SXTB, SSAT, REV", when=pc_used, reject=UNPREDICTABLE),
    row("0110 1000 nnnn dddd ---- --01 mmmm", "PKH", when=pc_used, reject=UNPREDICTABLE),
    row("0110 1000 nnnn dddd ---- 1011 mmmm", "SEL", when=pc_used, reject=UNPREDICTABLE),
    row("0111 0--- dddd ---- eeee ---1 mmmm", "SMLAD, SMMUL, SDIV", when=pc_used, reject=UNPREDICTABLE),
    row("0111 0100 dddd aaaa eeee ---1 mmmm", "SMLALD", when=pc_used, reject=UNPREDICTABLE),
    row("0111 0101 ---- 1111 ---- 11-1 ----", "SMMLS", reject=UNPREDICTABLE),
    row("0111 1000 dddd ---- eeee 0001 mmmm", "USAD8", when=pc_used, reject=UNPREDICTABLE),
    row("0111 1-1- ---- dddd ---- -101 mmmm", "SBFX, UBFX", when=pc_used, reject=UNPREDICTABLE),
    row("0111 110- ---- 1111 ---- -001 ----", "BFI", reject=UNPREDICTABLE),
    # A5.5: branches to labels
    row("1010 iiiiiiiiiiiiiiiiiiiiiiii", "B", arm.b, displace=away.b,
        extra=lambda insn, c, i: arm.goes(to(label)(insn, i=i), c)),
    row("1011 iiiiiiiiiiiiiiiiiiiiiiii", "BL", arm.bl, displace=away.bl, links=True, extra=to(label)),
    *arm.coprocessor(row, "", 32, based=True),
)

UNCONDITIONAL = (  # A5.7
    Row("1111 101 h iiiiiiiiiiiiiiiiiiiiiiii", "BLX", arm.blx, displace=away.blx, links=True,
        extra=to(blx_label, exchanges=True)),
    Row("1111 100 - - 1 - 0 ---- ----------------", "SRS", reject=arm.BANKED),
    Row("1111 100 - - 0 - 1 ---- ----------------", "RFE", reject=arm.EXCEPTION_RETURN),
    Row("1111 0001 0000 ---0 ---- ---- ---- ----", "CPS", reject=arm.PRIVILEGED),
    Row("1111 0001 0000 ---1 ---- ---- ---- ----", "SETEND", reject=arm.ENDIAN),
    Row("1111 0001 0001 ---- ---- ---- 0000 ----", "SETPAN", reject=arm.PRIVILEGED),
    Row("1111 0101 0111 ---- ---- ---- 0001 ----", "CLREX", atomic=Atomic.DROPS),
    Row("1111 010- --01 1111 1111 ---- ---- ----", "PLD, PLI literal", arm.hint, displace=lambda insn, to, **_: b""),
    Row("1111 011- --01 nnnn ---- ---- ---0 mmmm", "PLD, PLI register", when=pc_used, reject=UNPREDICTABLE),
    Row("1111 0100 ---0 1111 ---- ---- ---- ----", "VLD, VST", reject=UNPREDICTABLE),
    *arm.COPROCESSOR_2,
)

TABLES = (DecodeTable(CONDITIONAL), DecodeTable(UNCONDITIONAL))


def decode_word(word: int, insn: Insn) -> Insn:
    """Return the Insn of an A32 word."""
    return TABLES[word >> 28 == 15].decode(word, insn)
