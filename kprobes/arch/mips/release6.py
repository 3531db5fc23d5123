"""MIPS release 6: its decode rows and simulations. rows.py has what it shares with its elders.

Release 6 took away branch likely, the condition codes and half of the branch-and-link instructions,
and brought compact branches, which have no delay slot, and pc-relative loads. Software must not put
a branch behind a conditional compact branch (its forbidden slot), where it is a reserved
instruction: neither of the two may be probed. Nor must the library put one there: probes in
forbidden slots stay breakpoints.

Parameters of one letter are fields of a row's picture: s and t numbers of registers, i a
displacement. Functions with `regs` and no `insn` are conditions of branches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import evolve

from ...regs import Regs
from .._base import Arch, Atomic, Insn, Jump, Order, displacement, signed
from .._decode import Row, as_it_is
from .._words import EXCEPTION, RESERVED
from .displace import MipsElsewhere, word
from .rows import (
    COP_BRANCH,
    MONITOR,
    ODD,
    Delayed,
    F,
    Targets,
    always,
    branch,
    computed,
    eq,
    ge,
    gt,
    le,
    lt,
    mips,
    ne,
    r,
    set_r,
    sr,
)

#: The bits in which the opposite condition differs: of BEQC and BNEC, BEQZC and BNEZC, BC1EQZ and
#: BC1NEZ; of those that link, to one that does not.
EVEN, ZERO, FPR = 1 << 30, 1 << 29, 1 << 23
ODD_PLAIN, TO_BNE, TO_BEQ = ODD | 1 << 30, 0b001101 << 26, 0b011100 << 26
I16, I26 = "i" * 16, "i" * 26  #: displacements of branches, in a row's picture
PAUSE = 5 << 6  # SLL zero, zero, 5
RETURN = 0b110110_00000_11111 << 16  # JIC ra, 0: as a return does it, without a delay slot

# --- conditions


def gez(regs: Regs, s: int, **_: int) -> bool:
    """Whether BGEZALC and BGEZC branch: register `s` is not negative."""
    return ge(regs, s)


def ltz(regs: Regs, s: int, **_: int) -> bool:
    """Whether BLTZALC and BLTZC branch: register `s` is negative."""
    return lt(regs, s)


def ltu(regs: Regs, s: int, t: int, **_: int) -> bool:
    """Whether BLTUC branches: register `s` is below register `t`, unsigned."""
    return r(regs, s) < r(regs, t)


def geu(regs: Regs, s: int, t: int, **_: int) -> bool:
    """Whether BGEUC branches: register `s` is not below register `t`, unsigned."""
    return r(regs, s) >= r(regs, t)


def ov(regs: Regs, s: int, t: int, **_: int) -> bool:
    """Whether BOVC branches: register `s`, register `t` or their sum is no signed 32-bit value."""
    a, b = sr(regs, s), sr(regs, t)
    return not all(-(1 << 31) <= v < 1 << 31 for v in (a, b, a + b))


def nv(regs: Regs, s: int, t: int, **_: int) -> bool:
    """Whether BNVC branches: registers `s` and `t` and their sum are signed 32-bit values."""
    return not ov(regs, s, t)


def fpr_eqz(regs: Regs, t: int, **_: int) -> bool:
    """Whether BC1EQZ branches: bit 0 of floating-point register `t` is 0."""
    return not regs[F[t]] & 1


def fpr_nez(regs: Regs, t: int, **_: int) -> bool:
    """Whether BC1NEZ branches: bit 0 of floating-point register `t` is 1."""
    return not fpr_eqz(regs, t)


def never(regs: Regs) -> bool:
    """Return False: NAL links and never branches."""
    return False


# --- which of the compact branches of one opcode


def same(s: int, t: int, **_: int) -> bool:
    """`when` of a row: both registers are the same."""
    return s == t


def less(s: int, t: int, **_: int) -> bool:
    """`when` of a row: the first register's number is the lower one."""
    return s < t


def nonzero(s: int, **_: int) -> bool:
    """`when` of a row: the register is not number 0."""
    return s != 0


# --- simulations, named after the mnemonics


def jic(regs: Regs, insn: Insn, t: int, i: int) -> int:
    """Simulate JIC: return register `t` plus `i`."""
    target: int = r(regs, t) + signed(i, 16) & regs.arch.mask
    return target


def jialc(regs: Regs, insn: Insn, t: int, i: int) -> int:
    """Simulate JIALC: set ra to the next address; return register `t` plus `i`."""
    target = jic(regs, insn, t, i)
    regs["ra"] = insn.next
    return target


def address(value: Callable[[Insn, int], int]) -> Callable[..., int]:
    """Make the simulation of ADDIUPC, AUIPC or ALUIPC, which puts an address into register `s`.

    Args:
        value: (insn, its field `i`) -> the address.
    """

    def simulate(regs: Regs, insn: Insn, s: int, i: int) -> int:
        """Put the address into register `s`; return the next address."""
        set_r(regs, s, value(insn, i) & regs.arch.mask)
        return insn.next

    return simulate


def near(insn: Insn, i: int) -> int:
    """Return the address that ADDIUPC computes: `i` words from the instruction."""
    return insn.addr + 4 * signed(i, 19)


def upper(insn: Insn, i: int) -> int:
    """Return the address that AUIPC computes: `i` times 64 KiB from the instruction."""
    return insn.addr + (signed(i, 16) << 16)


def aligned(insn: Insn, i: int) -> int:
    """Return the address that ALUIPC computes: AUIPC's, rounded down to 64 KiB."""
    return upper(insn, i) & ~0xFFFF


def lwpc(regs: Regs, insn: Insn, s: int, i: int) -> int:
    """Simulate LWPC: load the word at `i` words from pc, with its sign, into register `s`."""
    set_r(regs, s, signed(regs.word(insn.addr + 4 * signed(i, 19), 4), 32) & regs.arch.mask)
    return insn.next


def lwupc(regs: Regs, insn: Insn, s: int, i: int) -> int:
    """Simulate LWUPC: load the word at `i` words from pc, without sign, into register `s`."""
    set_r(regs, s, regs.word(insn.addr + 4 * signed(i, 19), 4))
    return insn.next


def ldpc(regs: Regs, insn: Insn, s: int, i: int) -> int:
    """Simulate LDPC: load the doubleword at `i` doublewords from pc into register `s`."""
    set_r(regs, s, regs.word((insn.addr & ~7) + 8 * signed(i, 18), 8))
    return insn.next


def word_at(size: int, insn: Insn, i: int, **_: int) -> Insn:
    """Return a pc-relative load with its operand: `i` words of `size` bytes from pc, which is
    rounded down to a multiple of `size`.
    """
    return evolve(
        insn, operand=(insn.addr & -size) + size * signed(i, 19 if size == 4 else 18), data=size
    )


def linking(to: Targets, insn: Insn, i: int, s: int, **_: int) -> Insn:
    """Return a compact branch that links, with its target.

    It is refused where it tests the link register that it writes.

    Args:
        to: sets the target.
        insn: the branch.
        i: the displacement.
        s: number of the register that it tests.
    """
    reject = "tests the link register that it writes: unpredictable" if s == 31 else ""
    return evolve(to.i16(insn, i), reject=reject)


def compact_rows(to: Targets, away: MipsElsewhere) -> tuple[Row, ...]:
    """Return the decode rows of compact branches, which have no delay slot.

    Several share an opcode, and are told apart by the order of rs and rt.

    Args:
        to: has the `extra` functions that set targets.
        away: makes the `displace` functions.
    """
    linked, plain = partial(linking, to), away.branch(ODD_PLAIN)
    return (
        # POP06, POP07
        Row(f"000110 sssss ttttt {I16}", "BGEUC", branch(geu), displace=away.branch(ODD), extra=to.i16),
        Row(f"000110 sssss ttttt {I16}", "BGEZALC", branch(gez), links=True, displace=plain, extra=linked, when=same),
        Row(f"000110 00000 sssss {I16}", "BLEZALC", branch(le), links=True, displace=plain, extra=linked, when=nonzero),
        Row(f"000111 sssss ttttt {I16}", "BLTUC", branch(ltu), displace=away.branch(ODD), extra=to.i16),
        Row(f"000111 sssss ttttt {I16}", "BLTZALC", branch(ltz), links=True, displace=plain, extra=linked, when=same),
        Row(f"000111 00000 sssss {I16}", "BGTZALC", branch(gt), links=True, displace=plain, extra=linked, when=nonzero),
        # POP10, POP30
        Row(f"001000 sssss ttttt {I16}", "BOVC", branch(ov), displace=away.branch(EVEN), extra=to.i16),
        Row(f"001000 sssss ttttt {I16}", "BEQC", branch(eq), displace=away.branch(EVEN), extra=to.i16, when=less),
        Row(f"001000 00000 sssss {I16}", "BEQZALC", branch(eq), links=True, displace=away.branch(TO_BNE),
            extra=linked, when=nonzero),
        Row(f"011000 sssss ttttt {I16}", "BNVC", branch(nv), displace=away.branch(EVEN), extra=to.i16),
        Row(f"011000 sssss ttttt {I16}", "BNEC", branch(ne), displace=away.branch(EVEN), extra=to.i16, when=less),
        Row(f"011000 00000 sssss {I16}", "BNEZALC", branch(ne), links=True, displace=away.branch(TO_BEQ),
            extra=linked, when=nonzero),
        # POP26, POP27
        Row(f"010110 sssss ttttt {I16}", "BGEC", branch(ge), displace=away.branch(ODD), extra=to.i16),
        Row(f"010110 sssss ttttt {I16}", "BGEZC", branch(gez), displace=away.branch(ODD), extra=to.i16, when=same),
        Row(f"010110 00000 sssss {I16}", "BLEZC", branch(le), displace=away.branch(ODD), extra=to.i16, when=nonzero),
        Row(f"010111 sssss ttttt {I16}", "BLTC", branch(lt), displace=away.branch(ODD), extra=to.i16),
        Row(f"010111 sssss ttttt {I16}", "BLTZC", branch(ltz), displace=away.branch(ODD), extra=to.i16, when=same),
        Row(f"010111 00000 sssss {I16}", "BGTZC", branch(gt), displace=away.branch(ODD), extra=to.i16, when=nonzero),
        Row("010110 ----- 00000 ----------------", "BLEZL reserved", reject=RESERVED),
        Row("010111 ----- 00000 ----------------", "BGTZL reserved", reject=RESERVED),
        Row("01010- ----- ----- ----------------", "BEQL reserved", reject=RESERVED),
        # BC, BALC, POP66, POP76
        Row(f"110010 {I26}", "BC", branch(always), falls_through=False, displace=away.unconditional, extra=to.i26),
        Row(f"111010 {I26}", "BALC", branch(always), links=True, displace=away.unconditional, extra=to.i26),
        Row("110110 sssss iiiiiiiiiiiiiiiiiiiii", "BEQZC", branch(eq), displace=away.branch(ZERO, 21), extra=to.i21),
        Row(f"110110 00000 ttttt {I16}", "JIC", jic, displace=as_it_is, extra=computed),
        Row("111110 sssss iiiiiiiiiiiiiiiiiiiii", "BNEZC", branch(ne), displace=away.branch(ZERO, 21), extra=to.i21),
        Row(f"111110 00000 ttttt {I16}", "JIALC", jialc, links=True, displace=away.jialc),
    )  # fmt: skip


def relative_rows(bits: int, away: MipsElsewhere) -> tuple[Row, ...]:
    """Return the decode rows of pc-relative loads and addresses.

    Args:
        bits: width of a register; some exist only with 64.
        away: makes the `displace` functions.
    """
    return (
        Row("111011 ----- -------------------- -", "PCREL reserved", reject=RESERVED),
        Row("111011 sssss 00 iiiiiiiiiiiiiiiiiii", "ADDIUPC", address(near), displace=away.address(near)),
        Row("111011 sssss 01 iiiiiiiiiiiiiiiiiii", "LWPC", lwpc, extra=partial(word_at, 4)),
        *((Row("111011 sssss 10 iiiiiiiiiiiiiiiiiii", "LWUPC", lwupc, extra=partial(word_at, 4)),
           Row("111011 sssss 110 iiiiiiiiiiiiiiiiii", "LDPC", ldpc, extra=partial(word_at, 8))) if bits == 64 else ()),
        Row("111011 sssss 11110 iiiiiiiiiiiiiiii", "AUIPC", address(upper), displace=away.address(upper)),
        Row("111011 sssss 11111 iiiiiiiiiiiiiiii", "ALUIPC", address(aligned), displace=away.address(aligned)),
    )  # fmt: skip


def r6_rows(bits: int, to: Targets, away: MipsElsewhere) -> tuple[Row, ...]:
    """Return the rows of release 6 beside the common ones.

    Args:
        bits: width of a register.
        to: has the `extra` functions that set targets.
        away: makes the `displace` functions.
    """
    return (
        *compact_rows(to, away),
        *relative_rows(bits, away),
        Delayed("000001 ----- 1000- ----------------", "BLTZAL reserved", reject=RESERVED),
        Delayed("000001 00000 10000 ----------------", "NAL", branch(never), links=True, displace=away.linking),
        Delayed("000001 00000 10001 iiiiiiiiiiiiiiii", "BAL", branch(always), links=True, displace=away.unconditional,
                extra=to.i16),
        Row("000001 ----- 10111 ----------------", "SIGRIE", reject=EXCEPTION),
        Row("000000 -------------------- 001110", "SDBBP", reject=EXCEPTION),
        Delayed("010001 01001 ttttt iiiiiiiiiiiiiiii", "BC1EQZ", branch(fpr_eqz), displace=away.branch(FPR),
                extra=to.i16),
        Delayed("010001 01101 ttttt iiiiiiiiiiiiiiii", "BC1NEZ", branch(fpr_nez), displace=away.branch(FPR),
                extra=to.i16),
        Delayed("010010 01-01 ----- ----------------", "BC2EQZ, BC2NEZ", reject=COP_BRANCH),
        # LL and SC moved to SPECIAL3; bit 6 selects the paired forms LLWP, SCWP ...
        Row("011111 ----- ----- --------- - 11011-", "LL, LLD", atomic=Atomic.OPENS, reject=MONITOR),
        Row("011111 ----- ----- --------- - 10011-", "SC, SCD", atomic=Atomic.CLOSES, reject=MONITOR),
    )  # fmt: skip


def forbidden(order: Order, insn: Insn, before: bytes) -> bool:
    """Whether an instruction is in the forbidden slot of a conditional compact branch.

    A jump there is a reserved instruction (`Walking.conditioned`).

    Args:
        order: byte order of code.
        insn: the instruction; not used.
        before: original bytes before it.
    """
    previous = int.from_bytes(before[-4:], "big" if order is Order.BIG else "little")
    opcode, rs, rt = previous >> 26, previous >> 21 & 31, previous >> 16 & 31
    if opcode in (0b000110, 0b000111):  # POP06, POP07: with rt = 0 they are BLEZ and BGTZ
        return rt != 0
    if opcode in (0b110110, 0b111110):  # POP66, POP76: with rs = 0 they are JIC and JIALC
        return rs != 0
    return opcode in (0b001000, 0b011000, 0b010110, 0b010111)  # POP10, POP30, POP26, POP27


def reserved(order: Order, insn: Insn, before: bytes) -> str:
    """Return why a branch or PAUSE must not be probed: it is in a forbidden slot
    (`Walking.reserved`).

    Args:
        order: byte order of code.
        insn: the instruction.
        before: original bytes before it.

    Returns:
        "" for any other instruction, and where fewer than 4 bytes are before it.
    """
    jumps = (
        insn.delay_slot
        or insn.target is not None
        or insn.links
        or insn.indirect
        or not insn.falls_through
        or int.from_bytes(insn.raw[:4], "big" if order is Order.BIG else "little") == PAUSE
    )
    behind = len(before) >= 4 and jumps and forbidden(order, insn, before)
    return "is a reserved instruction in the forbidden slot of a compact branch" if behind else ""


def jump(order: Order, mask: int, frm: int, to: int) -> bytes:
    """Return BC from `frm` to `to`, which has no delay slot; raise OutOfReach beyond 128 MiB.

    Args:
        order: byte order of code.
        mask: the greatest address.
        frm: address of the jump.
        to: its target.
    """
    return word(0b110010 << 26 | displacement(frm + 4, to, 26, 4, mask), order)


def release6(name: str, bits: int, order: Order) -> Arch:
    """Make the architecture of one word size and byte order of release 6.

    Args:
        name: of the architecture.
        bits: 32 or 64.
        order: byte order of code and data.
    """
    mask = (1 << bits) - 1
    return mips(
        name,
        bits,
        order,
        partial(r6_rows, bits),
        Jump(size=4, encode=partial(jump, order, mask)),
        RETURN,
        conditioned=partial(forbidden, order),
        reserved=partial(reserved, order),
    )
