"""MIPS: what release 6 (release6.py) and its elders (isa.py) share: rows, simulations, conditions.

Functions that begin with `regs` and `insn` simulate: they return the target to go to next. Other
functions of `regs` are conditions of branches. Parameters of one letter are fields of the row's
picture: s and t sources, d destination, i displacement.

Sections and tables are those of MIPS Architecture For Programmers, volume II-A (MD00086 for MIPS32,
MD00087 for MIPS64; revision 5.04 before release 6, 6.06 for it). A word without a row is straight
line: it runs out of line as it is, and where it is reserved it raises its exception there. MIPS16
and microMIPS code is not decoded.

A branch is simulated before its delay slot runs, so it reads its registers and writes the link
register first, as the ISA says. Overflows and conditional traps run out of line but are not
boosted: an engine that cannot tell where such an exception was raised still knows which slot it is
in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from attrs import evolve

from ...regs import Regs
from .._addresses import following
from .._base import Abi, Arch, Files, Jump, Linkage, Order, OutOfLine, Registers, Results, Traps, Walking, signed
from .._decode import DecodeTable, Row, with_delay_slots
from .._insn import Annul, Atomic, Insn
from .._words import EXCEPTION, PRIVILEGED, RESERVED, WAITS
from .._zero import zero_first
from . import addresses, interrupts
from .displace import MipsElsewhere, word
from .leaves import leaves

R = tuple(f"r{n}" for n in range(32))
F = tuple(f"f{n}" for n in range(32))
_FIRST = ("zero", "at", "v0", "v1", "a0", "a1", "a2", "a3")
_LAST = (*(f"s{n}" for n in range(8)), "t8", "t9", "k0", "k1", "gp", "sp", "fp", "ra")
#: The ABIs' names by number: n64 passes four more arguments in registers.
NAMES = {32: (*_FIRST, *(f"t{n}" for n in range(8)), *_LAST),
         64: (*_FIRST, "a4", "a5", "a6", "a7", "t0", "t1", "t2", "t3", *_LAST)}


def registers(bits: int) -> Registers:
    """Make the description of the registers, of `bits` bits.

    Release 6 has HI and LO with the DSP extension only. With 32-bit floating-point registers (FR =
    0) the low half of each counts.
    """
    return Registers(
        names=(*NAMES[bits], "hi", "lo", "pc", *F, "fcsr", "userlocal"), pc="pc", sp="sp",
        aliases={**dict(zip(R, NAMES[bits], strict=True)), "s8": "fp", "c0_epc": "pc", "epc": "pc"},
        widths={"zero": 0, **dict.fromkeys(F, 64), "fcsr": 32},  # nothing to write in zero
    )  # fmt: skip


# --- operands

r, set_r = zero_first(R)


def sr(regs: Regs, n: int) -> int:
    """Return the signed value of general register number `n`."""
    return signed(r(regs, n), regs.arch.bits)


# --- conditions of branches, by the letters of the mnemonics; `s` and `t` are rs and rt


def eq(regs: Regs, s: int, t: int = 0, **_: int) -> bool:
    """Whether a branch is taken: register `s` equals register `t`."""
    return r(regs, s) == r(regs, t)


def ne(regs: Regs, s: int, t: int = 0, **_: int) -> bool:
    """Whether a branch is taken: register `s` differs from register `t`."""
    return r(regs, s) != r(regs, t)


def lt(regs: Regs, s: int, t: int = 0, **_: int) -> bool:
    """Whether a branch is taken: register `s` is less than register `t`, signed."""
    return sr(regs, s) < sr(regs, t)


def ge(regs: Regs, s: int, t: int = 0, **_: int) -> bool:
    """Whether a branch is taken: register `s` is at least register `t`, signed."""
    return sr(regs, s) >= sr(regs, t)


def le(regs: Regs, s: int, **_: int) -> bool:
    """Whether a branch is taken: register `s` is negative or 0."""
    return sr(regs, s) <= 0


def gt(regs: Regs, s: int, **_: int) -> bool:
    """Whether a branch is taken: register `s` is greater than 0, signed."""
    return sr(regs, s) > 0


def always(regs: Regs, **_: int) -> bool:
    """Return True: the branch has no condition."""
    return True


# --- simulations


def branch(holds: Callable[..., bool], *, likely: bool = False) -> Callable[..., int]:
    """Make the simulation of a branch to `insn.target`, (regs, insn, **fields) -> next target.

    The condition is read before the link is written; a link is written either way.

    Args:
        holds: (regs, **fields) -> whether the branch is taken.
        likely: True: a branch that is not taken annuls its delay slot.
    """

    def simulate(regs: Regs, insn: Insn, **fields: int) -> int:
        """Write the link; return the target or the next address, an Annul where the delay slot is
        annulled.
        """
        taken = holds(regs, **fields)
        if insn.links:
            regs["ra"] = insn.next
        if taken:
            assert insn.target is not None
            return insn.target
        return Annul(insn.next) if likely else insn.next

    return simulate


def jalr(regs: Regs, insn: Insn, s: int, d: int) -> int:
    """Simulate JALR: put the next address into register `d`; return the old value of
    register `s`.
    """
    target = r(regs, s)  # first: rd may be rs
    set_r(regs, d, insn.next)
    return target


MONITOR = "part of an exclusive sequence: a trap inside clears the link"
DSP_BRANCH = "branches on DSPControl, which is not among the registers"
MSA_BRANCH = "branches on a vector register, which is not among the registers"
COP_BRANCH = "branches on a coprocessor's condition, which is not among the registers"

#: A row of an instruction with a delay slot.
Delayed = partial(Row, body="slot", delay_slot=True)
#: The bits in which the opposite condition of a branch differs.
ODD, SIGN = 1 << 26, 1 << 16


class Targets:
    """The `extra` functions that set the target of direct branches.

    Args:
        mask: the greatest address.
    """

    def __init__(self, mask: int) -> None:
        self._mask = mask

    def _relative(self, insn: Insn, i: int, bits: int) -> Insn:
        """Return the branch with its target: `i`, signed and of `bits` bits, counts words from its
        delay slot.
        """
        return evolve(insn, target=insn.addr + 4 + 4 * signed(i, bits) & self._mask)

    def i16(self, insn: Insn, i: int, **_: int) -> Insn:
        """Return a branch with its target, by a displacement of 16 bits."""
        return self._relative(insn, i, 16)

    def equal(self, insn: Insn, i: int, s: int, t: int) -> Insn:
        """Return BEQ of registers `s` and `t` with its target; of one with itself it never falls
        through.
        """
        return evolve(self.i16(insn, i), falls_through=s != t)

    def i21(self, insn: Insn, i: int, **_: int) -> Insn:
        """Return a branch with its target, by a displacement of 21 bits."""
        return self._relative(insn, i, 21)

    def i26(self, insn: Insn, i: int, **_: int) -> Insn:
        """Return a branch with its target, by a displacement of 26 bits."""
        return self._relative(insn, i, 26)

    def region(self, insn: Insn, i: int) -> Insn:
        """Return J or JAL with its target, which is within the 256 MB of its delay slot."""
        return evolve(insn, target=(insn.addr + 4 & ~0xFFFFFFF | i << 2) & self._mask)


def computed(insn: Insn, s: int = 31, d: int = 0, t: int = 31, **_: int) -> Insn:
    """Return a jump through register `s` or `t` with its facts: a call (`d`), a return (ra), or
    neither.
    """
    return evolve(insn, links=d != 0, indirect=d == 0 and not s == t == 31, falls_through=d != 0)


def common_rows(to: Targets, away: MipsElsewhere) -> tuple[Row, ...]:
    """Return the decode rows of all releases ("Instruction Bit Encodings", tables A.2 to A.26).

    Args:
        to: has the `extra` functions that set targets.
        away: makes the `displace` functions.
    """
    return (
        Delayed("000010 iiiiiiiiiiiiiiiiiiiiiiiiii", "J", branch(always), falls_through=False,
                displace=away.unconditional, extra=to.region),
        Delayed("000011 iiiiiiiiiiiiiiiiiiiiiiiiii", "JAL", branch(always), links=True, displace=away.unconditional,
                extra=to.region),
        Delayed("000000 ----- ----- ----- ----- 001000", "JR reserved", reject=RESERVED),
        Delayed("000000 ----- ----- ----- ----- 001001", "JALR reserved", reject=RESERVED),
        # JALR.HB; release 6: JR
        Delayed("000000 sssss 00000 ddddd -0000 001001", "JALR", jalr, displace=away.jalr, extra=computed),
        Delayed("000100 sssss ttttt iiiiiiiiiiiiiiii", "BEQ", branch(eq), displace=away.branch(ODD), extra=to.equal),
        Delayed("000101 sssss ttttt iiiiiiiiiiiiiiii", "BNE", branch(ne), displace=away.branch(ODD), extra=to.i16),
        Delayed("000110 sssss 00000 iiiiiiiiiiiiiiii", "BLEZ", branch(le), displace=away.branch(ODD), extra=to.i16),
        Delayed("000111 sssss 00000 iiiiiiiiiiiiiiii", "BGTZ", branch(gt), displace=away.branch(ODD), extra=to.i16),
        Delayed("000001 sssss 00000 iiiiiiiiiiiiiiii", "BLTZ", branch(lt), displace=away.branch(SIGN), extra=to.i16),
        Delayed("000001 sssss 00001 iiiiiiiiiiiiiiii", "BGEZ", branch(ge), displace=away.branch(SIGN), extra=to.i16),
        Delayed("000001 ----- 11100 ----------------", "BPOSGE32", reject=DSP_BRANCH),
        Row("000001 ----- 11101 ----------------", "BPOSGE32C", reject=DSP_BRANCH),
        Delayed("010001 01-11 ----- ----------------", "BZ.V, BNZ.V", reject=MSA_BRANCH),
        Delayed("010001 11--- ----- ----------------", "BZ.df, BNZ.df", reject=MSA_BRANCH),
        # Exceptions; conditional traps and overflows
        Row("000000 -------------------- 001100", "SYSCALL", reject=EXCEPTION),
        Row("000000 -------------------- 001101", "BREAK", reject=EXCEPTION),
        Row("000000 ----- ----- ----- ----- 1100--", "TGE, TGEU, TLT, TLTU", boostable=False),
        Row("000000 ----- ----- ----- ----- 1101-0", "TEQ, TNE", boostable=False),
        Row("000000 ----- ----- ----- ----- 1000-0", "ADD, SUB", boostable=False),
        Row("000000 ----- ----- ----- ----- 1011-0", "DADD, DSUB", boostable=False),
        # Coprocessor 0: reading its registers is straight line
        Row("010000 -------------------------- ", "COP0", reject=PRIVILEGED),
        Row("010000 000-- ----- ----- --------- --", "MFC0"),  # DMFC0, MFHC0, DMFGC0 ...
        Row("010000 01010 ----- ----- --------- --", "RDPGPR"),
        Row("010000 1 ------------------- 011000", "ERET", reject="returns from an exception"),  # ERETNC
        Row("010000 1 ------------------- 011111", "DERET", reject="returns from an exception"),
        Row("010000 1 ------------------- 100000", "WAIT", reject=WAITS),
        # Exclusives of the extended (EVA) loads and stores
        Row("011111 ----- ----- --------- - 101110", "LLE", atomic=Atomic.OPENS, reject=MONITOR),
        Row("011111 ----- ----- --------- - 011110", "SCE", atomic=Atomic.CLOSES, reject=MONITOR),
    )


# --- powers


def enter(regs: Regs, function: int) -> None:
    """Set t9 to a function's address, from which position-independent code computes gp
    (`Abi.enter`).
    """
    regs["t9"] = function


#: o32 keeps 16 bytes above sp for the callee to store a0 to a3 in, and the fifth argument follows;
#: n64 keeps none.
ABIS = {32: Abi(args=("a0", "a1", "a2", "a3"), returns=("v0", "v1"),
                results=Results(registers=0, memory=0),
                stack_args=16, stack_align=8, reserve=16, enter=enter),
        64: Abi(args=tuple(f"a{n}" for n in range(8)), returns=("v0", "v1"),
                results=Results(registers=16, memory=16), enter=enter)}


#: (D)ADDIU sp, sp, -n; LUI gp, n
OPENS = {Order.BIG: {0: re.compile(rb"[\x27\x67]\xbd[\x80-\xff][\s\S]|\x3c\x1c[\s\S][\s\S]")},
         Order.LITTLE: {0: re.compile(rb"[\s\S][\x80-\xff]\xbd[\x27\x67]|[\s\S][\s\S]\x1c\x3c")}}


def mips(
    name: str,
    bits: int,
    order: Order,
    rows: Callable[[Targets, MipsElsewhere], tuple[Row, ...]],
    jump: Jump,
    *back: int,
    conditioned: Callable[[Insn, bytes], bool] | None = None,
    reserved: Callable[[Insn, bytes], str] | None = None,
    choose: Callable[[int, str], Arch] | None = None,
) -> Arch:
    """Make the architecture of one word size, byte order and generation.

    Args:
        name: of the architecture.
        bits: 32 or 64.
        order: byte order of code and data.
        rows: (targets, displace maker) -> the rows beside the common ones.
        jump: the jump that probes use.
        back: encodings of the instructions of a return.
        conditioned: Walking.conditioned; None: nothing is.
        reserved: Walking.reserved; None: nothing is.
        choose: Files.choose; None: it runs all such files.
    """
    to, away = Targets((1 << bits) - 1), MipsElsewhere(bits, order, jump)
    table = DecodeTable((*common_rows(to, away), *rows(to, away)))
    linkage = Linkage.in_register("ra", back=b"".join(word(w, order) for w in back))
    return Arch(
        package="kprobes.arch.mips",
        name=name, bits=bits, order=order, insn_align=4, max_insn=4, regs=registers(bits),
        traps=Traps(probe={4: word(0x000080CD, order)}, end={0: word(0x0000810D, order)}),  # BREAK 515, BREAK 516
        decode=with_delay_slots(table, order.value, nop=bytes(4)), abi=ABIS[bits], linkage=linkage,
        jump=jump,
        out_of_line=OutOfLine(max_displaced=away.longest),
        walking=Walking(conditioned=conditioned, reserved=reserved, leaves=partial(leaves, order),
                        opens=OPENS[order],
                        follow=following(partial(addresses.use, order), bits)),
        files=Files(machines=((8, bits, order.value),), choose=choose),
        interrupts=interrupts.CONTROLLER if bits == 32 else None,
    )  # fmt: skip
