"""SPARC: `sparc` (version 8, 32 bit) and `sparc64` (version 9), big endian.

Sections are those of The SPARC Architecture Manual, version 8 (appendices B and F) and version 9
(appendices A and E). A branch is simulated before its delay slot runs, so it reads its registers
and writes the link register first; the delay slot runs out of line, unless the branch annuls it. A
word without a row is straight line.

Functions that begin with `regs` and `insn` simulate: they return the target to go to next.
Functions that begin with `insn` return it with its target. Parameters of one letter are fields of
the row's picture: a annul bit, c condition, d destination, s and t sources, i immediate or
displacement.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from attrs import evolve

from ...errors import GuestFault
from ...regs import Regs
from .._addresses import following
from .._base import Abi, Annul, Arch, Files, Insn, Jump, Order, OutOfLine, Registers, Results, Traps, Walking, signed
from .._decode import DecodeTable, Row, with_delay_slots
from .._words import EXCEPTION, RESERVED, TRAP_RETURN
from .._zero import zero_first
from . import addresses
from . import displace as away
from .displace import NOP, SparcElsewhere
from .returns import linkage

R = tuple(f"{kind}{n}" for kind in "goli" for n in range(8))
UNALIGNED = {32: 7, 64: 0x34}  # trap type of mem_address_not_aligned


def registers(bits: int) -> Registers:
    """Make the description of the registers, of `bits` bits.

    `icc` has N Z V C; `ccr` of version 9 those of 64-bit results above those of 32-bit ones.
    """
    flags = "ccr" if bits == 64 else "icc"
    return Registers(
        names=(*R, "pc", "y", flags, "fsr"),
        pc="pc",
        sp="o6",
        flags=flags,
        aliases={"sp": "o6", "fp": "i6", **{f"r{n}": name for n, name in enumerate(R)}},
        widths={"g0": 0, flags: 8 if bits == 64 else 4},
        sp_bias=2047 if bits == 64 else 0,
    )


r, set_r = zero_first(R)

# --- conditions


def integer(icc: int, c: int) -> bool:
    """Whether a condition of Bicc or BPcc holds.

    Args:
        icc: N Z V C, four bits.
        c: the condition; those from 8 on are the opposites of those below.
    """
    n, z, v, carry = icc >> 3 & 1, icc >> 2 & 1, icc >> 1 & 1, icc & 1
    holds = (0, z, z | (n ^ v), n ^ v, carry | z, carry, n, v)[c & 7]
    return bool(holds) != (c > 7)


#: FBfcc: for each condition, bit n is set where it holds for fcc n (equal, less, greater,
#: unordered).
FLOATING = (0b0000, 0b1110, 0b0110, 0b1010, 0b0010, 0b1100, 0b0100, 0b1000, 0b1111, 0b0001, 0b1001,
            0b0101, 0b1101, 0b0011, 0b1011, 0b0111)


def icc(regs: Regs, c: int, **_: int) -> bool:
    """Whether condition `c` holds for the flags of 32-bit results."""
    return integer(regs.flags & 15, c)


def xcc(regs: Regs, c: int, **_: int) -> bool:
    """Whether condition `c` holds for the flags of 64-bit results."""
    return integer(regs.flags >> 4, c)


def fcc(regs: Regs, c: int, n: int = 0, **_: int) -> bool:
    """Whether floating-point condition `c` holds for field `n` of FSR.

    Field 0 is bits 11 and 10; version 9 has three more from bit 32 on.
    """
    return bool(FLOATING[c] >> (regs["fsr"] >> (30 + 2 * n if n else 10) & 3) & 1)


def register(regs: Regs, c: int, s: int, **_: int) -> bool:
    """Whether BPr branches on register `s`: zero, at most zero, below zero, or their opposites
    (`c`).
    """
    value = signed(r(regs, s), 64)
    return (value == 0, value <= 0, value < 0)[(c & 3) - 1] != (c > 3)


# --- simulations


def branch(holds: Callable[..., bool]) -> Callable[..., int]:
    """Make the simulation of a conditional branch, (regs, insn, **fields) -> next target.

    With the annul bit its delay slot runs only where it is taken.

    Args:
        holds: (regs, **fields) -> whether it is taken.
    """

    def simulate(regs: Regs, insn: Insn, a: int, c: int, **fields: int) -> int:
        """Return the target or the next address; an Annul where `a` is 1 and it is not taken."""
        taken = holds(regs, c=c, **fields)
        assert insn.target is not None
        target = insn.target if taken else insn.next
        return Annul(target) if a and not taken else target

    return simulate


def always(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate BA,A: return the target. Its delay slot is never executed, so the row has none."""
    assert insn.target is not None
    return insn.target


def call(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate CALL: put its own address into o7; return the target."""
    regs["o7"] = insn.addr
    assert insn.target is not None
    return insn.target


def jmpl(regs: Regs, insn: Insn, d: int, s: int, t: int = 0, i: int | None = None) -> int:
    """Simulate JMPL: put its own address into register `d`; return the target.

    Args:
        regs: the guest's registers.
        insn: the instruction.
        d: number of the register that gets the address; it is written even if this raises.
        s: number of a register.
        t: number of a register that is added.
        i: a displacement of 13 bits in its place; None: register `t`.

    Raises:
        GuestFault: the target is no multiple of 4.
    """
    target: int = r(regs, s) + (r(regs, t) if i is None else signed(i, 13)) & regs.arch.mask
    # the engine does so even where the target is no address of an instruction
    set_r(regs, d, insn.addr)
    if target & 3:
        raise GuestFault(
            "jump to an unaligned address",
            address=insn.addr,
            pc=insn.addr,
            access="read",
            number=UNALIGNED[regs.arch.bits],
        )
    return target


def rdpc(regs: Regs, insn: Insn, d: int) -> int:
    """Simulate RDPC: put the instruction's address into register `d`; return the next address."""
    set_r(regs, d, insn.addr)
    return insn.next


def relative(insn: Insn, bits: int, mask: int, i: int, c: int = 0, **_: int) -> Insn:
    """Return a direct branch with its target; on condition 8 (always) it does not fall through.

    Args:
        insn: the branch.
        bits: width of the displacement.
        mask: the greatest address.
        i: the displacement, in words.
        c: the condition.
    """
    return evolve(
        insn,
        target=insn.addr + 4 * signed(i, bits) & mask,
        falls_through=insn.falls_through and c != 8,
    )


def split(insn: Insn, mask: int, h: int, i: int, **_: int) -> Insn:
    """Return BPr with its target; its displacement is in two pieces, `h` and `i`."""
    return relative(insn, 16, mask, h << 14 | i)


def computed(insn: Insn, d: int, s: int, **_: int) -> Insn:
    """Return JMPL with its facts: a call (`d`), a return (through o7 or i7), or neither."""
    return evolve(insn, links=d != 0, indirect=d == 0 and s not in (15, 31), falls_through=d != 0)


PRIVILEGED = "changes privileged state"
WINDOW = "returns through a register window"
#: A row of an instruction with a delay slot.
Delayed = partial(Row, body="slot", delay_slot=True)
I22, I19 = "iiiiiiiiiiiiiiiiiiiiii", "iiiiiiiiiiiiiiiiiii"
#: The bit in which opposite conditions differ, and the bits of the displacement.
ICC, PREDICTED, REGISTER = (1 << 28, (1 << 22) - 1), (1 << 28, (1 << 19) - 1), (1 << 27, 3 << 20 | (1 << 14) - 1)


def rows(mask: int, to: SparcElsewhere) -> tuple[Row, ...]:
    """Return the decode rows that both versions have.

    Args:
        mask: the greatest address.
        to: makes the `displace` functions.
    """
    i22, i30 = partial(relative, bits=22, mask=mask), partial(relative, bits=30, mask=mask)
    return (
        Row("00 ----- 000 ----------------------", "UNIMP", reject=EXCEPTION),  # ILLTRAP
        Delayed(f"00 a cccc 010 {I22}", "Bicc", branch(icc), displace=to.branch(*ICC), extra=i22),
        Row(f"00 1 1000 010 {I22}", "BA,A", always, displace=to.unconditional, falls_through=False, extra=i22),
        Delayed(f"00 a cccc 110 {I22}", "FBfcc", branch(fcc), displace=to.branch(*ICC), extra=i22),
        Row(f"00 1 1000 110 {I22}", "FBA,A", always, displace=to.unconditional, falls_through=False, extra=i22),
        Delayed("00 - ---- 111 ----------------------", "CBccc",
                reject="branches on a condition of a coprocessor, and there is none"),
        Delayed("01 iiiiiiiiiiiiiiiiiiiiiiiiiiiiii", "CALL", call, links=True, displace=to.unconditional, extra=i30),
        Delayed("10 ddddd 111000 sssss 0 -------- ttttt", "JMPL", jmpl, displace=away.jmpl, extra=computed),
        Delayed("10 ddddd 111000 sssss 1 iiiiiiiiiiiii", "JMPL", jmpl, displace=away.jmpl, extra=computed),
        Row("10 ----- 111010 -------------------", "Ticc", reject=EXCEPTION),
        Row("10 ----- 11001- -------------------", "WRWIM, WRTBR", reject=PRIVILEGED),  # WRPR
        Row("10 ----- 110001 -------------------", "WRPSR", reject=PRIVILEGED),  # SAVED, RESTORED
    )


def rows8(mask: int, to: SparcElsewhere) -> tuple[Row, ...]:
    """Return the decode rows of version 8.

    Args:
        mask: the greatest address.
        to: makes the `displace` functions.
    """
    return (
        *rows(mask, to),
        Row("00 ----- 001 ----------------------", "reserved", reject=RESERVED),
        Row("00 ----- 011 ----------------------", "reserved", reject=RESERVED),
        Row("00 ----- 101 ----------------------", "reserved", reject=RESERVED),
        Delayed("10 ----- 111001 -------------------", "RETT", reject=TRAP_RETURN),
        Row("10 10011 110000 -------------------", "WR %asr19", reject="powers the processor down in the slot"),
    )


def rows9(mask: int, to: SparcElsewhere) -> tuple[Row, ...]:
    """Return the decode rows of version 9: also predicted branches, branches on registers, RDPC.

    Args:
        mask: the greatest address.
        to: makes the `displace` functions.
    """
    i19 = partial(relative, bits=19, mask=mask)
    return (
        *rows(mask, to),
        Delayed(f"00 a cccc 001 00 - {I19}", "BPcc", branch(icc), displace=to.branch(*PREDICTED), extra=i19),
        Delayed(f"00 a cccc 001 10 - {I19}", "BPcc", branch(xcc), displace=to.branch(*PREDICTED), extra=i19),
        *(Row(f"00 1 1000 001 {op} - {I19}", "BPA,A", always, displace=to.unconditional, falls_through=False,
              extra=i19) for op in ("00", "10")),
        Row("00 - ---- 001 -1 - -------------------", "reserved", reject=RESERVED),
        Delayed(f"00 a cccc 101 nn - {I19}", "FBPfcc", branch(fcc), displace=to.branch(*PREDICTED), extra=i19),
        Row(f"00 1 1000 101 -- - {I19}", "FBPA,A", always, displace=to.unconditional, falls_through=False, extra=i19),
        Delayed("00 a 0ccc 011 hh - sssss iiiiiiiiiiiiii", "BPr", branch(register), displace=to.branch(*REGISTER),
                extra=partial(split, mask=mask)),
        Row("00 - 0-00 011 ----------------------", "reserved", reject=RESERVED),
        Row("00 - 1--- 011 ----------------------", "reserved", reject=RESERVED),
        Row("10 ddddd 101000 00101 --------------", "RDPC", rdpc, displace=away.rdpc),
        Row("10 ----- 101111 ----- - -00 ----------", "reserved", reject=RESERVED),  # MOVr
        *(Row(f"10 ----- 110101 ----- - -00 {opf} -----", "reserved", reject=RESERVED)  # FMOVr
          for opf in ("00101", "00110", "00111")),
        Delayed("10 ----- 111001 -------------------", "RETURN", reject=WINDOW),
        Row("10 ----- 111110 -------------------", "DONE, RETRY", reject=TRAP_RETURN),
        Row("10 01111 110000 -------------------", "SIR", reject=PRIVILEGED),
    )


# --- powers


OPENS = re.compile(rb"\x9d\xe3[\xa0-\xbf][\s\S]")  #: save %sp, -n, %sp


def sparc(name: str, bits: int, machines: tuple[int, ...]) -> Arch:
    """Make the architecture of one version.

    Arguments beyond six follow the register save area, and on version 8 the place of a structure's
    address.

    Args:
        name: of the architecture.
        bits: 32 (version 8) or 64 (version 9).
        machines: e_machine of the files that it runs.
    """
    mask = (1 << bits) - 1
    to = SparcElsewhere(mask)
    area = 176 if bits == 64 else 92
    return Arch(
        package="kprobes.arch.sparc",
        name=name, bits=bits, order=Order.BIG, insn_align=4, max_insn=4, regs=registers(bits),
        traps=Traps(probe={4: bytes.fromhex("0010bad1")}, end={0: bytes.fromhex("0010bad2")}),  # UNIMP, ILLTRAP
        decode=with_delay_slots(DecodeTable(rows9(mask, to) if bits == 64 else rows8(mask, to)),
                                "big", nop=NOP,
                                may_stand="UNIMP"),
        abi=Abi(args=R[8:14], returns=("o0", "o1"),
                results=Results(registers=32, memory=32, apart=bits == 32),
                stack_args=area, stack_align=16 if bits == 64 else 8, reserve=area),
        linkage=linkage(bits), jump=Jump(size=4, encode=to.jump),
        out_of_line=OutOfLine(max_displaced=to.longest),
        walking=Walking(opens={0: OPENS}, follow=following(addresses.use, bits)),
        files=Files(machines=tuple((machine, bits, "big") for machine in machines)),
    )  # fmt: skip


ARCHES = (sparc("sparc", 32, (2, 18)), sparc("sparc64", 64, (43,)))
