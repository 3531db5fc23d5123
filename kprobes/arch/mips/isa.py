"""MIPS before release 6: `mips`, `mipsel` (MIPS32, o32), `mips64`, `mips64el` (n64).

The rows here are those of the instructions that release 6 took away; rows.py has what all share,
release6.py release 6. ARCHES has both generations.
"""

from __future__ import annotations

from functools import partial

from ...errors import Unsupported
from ...regs import Regs
from .._base import Arch, Atomic, Insn, Jump, Order, displacement
from .._decode import Row
from .._words import EXCEPTION, RESERVED
from .displace import MipsElsewhere, word
from .release6 import release6
from .rows import (
    COP_BRANCH,
    MONITOR,
    ODD,
    SIGN,
    Delayed,
    Targets,
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
)


def cc(regs: Regs, c: int, t: int, **_: int) -> bool:
    """Whether BC1F or BC1T branches: FCSR's condition code `c` is `t`.

    Code 0 is bit 23, the others 25 to 31.
    """
    return regs["fcsr"] >> (24 + c if c else 23) & 1 == t


def jr(regs: Regs, insn: Insn, s: int) -> int:
    """Simulate JR: return the value of register `s`."""
    return r(regs, s)


PAIRS = "a MIPS-3D branch, on condition codes in pairs"
I16 = "i" * 16  #: the displacement of a branch, in a row's picture
RETURN = 0x03E00008, 0  # JR ra, and a nop in its delay slot
likely = partial(branch, likely=True)
#: The bits in which the opposite condition differs that is not likely, or does not link.
ODD_LIKELY, SIGN_LIKELY, LINK = ODD | 1 << 30, SIGN | 1 << 17, 1 << 20


def old_rows(to: Targets, away: MipsElsewhere) -> tuple[Row, ...]:
    """Return the decode rows up to release 5 beside the common ones.

    Branch likely, condition codes, LL and SC with their own opcodes.

    Args:
        to: has the `extra` functions that set targets.
        away: makes the `displace` functions.
    """
    return (
        Delayed("000000 sssss 00000 00000 -0000 001000", "JR", jr, displace=away.jalr, extra=computed),  # JR.HB
        Delayed(f"000001 sssss 00010 {I16}", "BLTZL", likely(lt), displace=away.likely(SIGN_LIKELY), extra=to.i16),
        Delayed(f"000001 sssss 00011 {I16}", "BGEZL", likely(ge), displace=away.likely(SIGN_LIKELY), extra=to.i16),
        Delayed(f"000001 sssss 10000 {I16}", "BLTZAL", branch(lt), links=True,
                displace=away.branch(SIGN | LINK), extra=to.i16),
        # BAL
        Delayed(f"000001 sssss 10001 {I16}", "BGEZAL", branch(ge), links=True,
                displace=away.branch(SIGN | LINK), extra=to.i16),
        Delayed(f"000001 sssss 10010 {I16}", "BLTZALL", likely(lt), links=True,
                displace=away.likely(SIGN_LIKELY | LINK), extra=to.i16),
        Delayed(f"000001 sssss 10011 {I16}", "BGEZALL", likely(ge), links=True,
                displace=away.likely(SIGN_LIKELY | LINK), extra=to.i16),
        Delayed("00011- ----- ----- ----------------", "BLEZ reserved", reject=RESERVED),
        Delayed(f"010100 sssss ttttt {I16}", "BEQL", likely(eq), displace=away.likely(ODD_LIKELY), extra=to.i16),
        Delayed(f"010101 sssss ttttt {I16}", "BNEL", likely(ne), displace=away.likely(ODD_LIKELY), extra=to.i16),
        Delayed("01011- ----- ----- ----------------", "BLEZL reserved", reject=RESERVED),
        Delayed(f"010110 sssss 00000 {I16}", "BLEZL", likely(le), displace=away.likely(ODD_LIKELY), extra=to.i16),
        Delayed(f"010111 sssss 00000 {I16}", "BGTZL", likely(gt), displace=away.likely(ODD_LIKELY), extra=to.i16),
        Delayed(f"010001 01000 ccc 0t {I16}", "BC1F, BC1T", branch(cc), displace=away.branch(SIGN), extra=to.i16),
        Delayed(f"010001 01000 ccc 1t {I16}", "BC1FL, BC1TL", likely(cc), displace=away.likely(SIGN_LIKELY),
                extra=to.i16),
        Delayed("010001 01001 ----- ----------------", "BC1ANY2", reject=PAIRS),
        Delayed("010001 01010 ----- ----------------", "BC1ANY4", reject=PAIRS),
        Delayed("010010 01000 ----- ----------------", "BC2", reject=COP_BRANCH),
        Delayed("010000 01000 ----- ----------------", "BC0", reject=COP_BRANCH),
        Delayed("011101 --------------------------", "JALX", reject="changes to MIPS16 or microMIPS"),
        # LDC2, SDC2
        Row("11--10 ----- ----- ----------------", "LWC2, SWC2",
            reject="moves coprocessor 2 data, or branches (Octeon's BBIT)"),
        Row("001000 ----- ----- ----------------", "ADDI", boostable=False),
        Row("011000 ----- ----- ----------------", "DADDI", boostable=False),
        Row("000001 ----- 010-- ----------------", "TGEI, TLTI", boostable=False),  # TGEIU, TLTIU
        Row("000001 ----- 011-0 ----------------", "TEQI, TNEI", boostable=False),
        Row("011100 -------------------- 111111", "SDBBP", reject=EXCEPTION),
        Row("110-00 ----- ----- ----------------", "LL, LLD", atomic=Atomic.OPENS, reject=MONITOR),
        Row("111-00 ----- ----- ----------------", "SC, SCD", atomic=Atomic.CLOSES, reject=MONITOR),
    )


def jump(order: Order, mask: int, frm: int, to: int) -> bytes:
    """Return a jump and a nop: J within the 256 MB of its delay slot; beyond, BEQ zero, zero to 128
    KB.

    Args:
        order: byte order of code.
        mask: the greatest address.
        frm: address of the jump.
        to: its target.

    Raises:
        OutOfReach: the target is farther.
    """
    if (frm + 4 ^ to) & mask >> 28 << 28:
        return word(0b000100 << 26 | displacement(frm + 4, to, 16, 4, mask), order) + bytes(4)
    return word(0b000010 << 26 | to >> 2 & 0x3FFFFFF, order) + bytes(4)


def of_release(name: str, flags: int, _: str) -> Arch:
    """Return the architecture for an ELF file (`Files.choose`): EF_MIPS_ARCH 9 and 10 are release
    6.

    Args:
        name: of the architecture up to release 5.
        flags: e_flags.
        _: not used.

    Raises:
        Unsupported: an n32 or a microMIPS file.
    """
    old, new = GENERATIONS[name]
    if old.bits == 32 and flags & 0x20:
        raise Unsupported(
            "an n32 program: 32-bit addresses in 64-bit registers", hint="build it for o32 or n64"
        )
    if flags & 0x0200_0000:
        raise Unsupported("a microMIPS program", hint="build it for MIPS32 or MIPS64")
    return new if flags >> 28 in (9, 10) else old


def elder(name: str, bits: int, newer: Arch) -> Arch:
    """Make the architecture of one word size and byte order before release 6.

    Args:
        name: of the architecture.
        bits: 32 or 64.
        newer: the architecture of release 6 that has the same byte order.
    """
    mask, order = (1 << bits) - 1, newer.order
    return mips(name, bits, order, old_rows, Jump(size=8, encode=partial(jump, order, mask)),
                *RETURN, choose=partial(of_release, name))


NEW = tuple(release6(f"mips{bits}r6{end}", bits, order) for bits in (32, 64)
            for end, order in (("", Order.BIG), ("el", Order.LITTLE)))
GENERATIONS = {name: (elder(name, new.bits, new), new)
               for name, new in zip(("mips", "mipsel", "mips64", "mips64el"), NEW, strict=True)}
ARCHES = (*(old for old, _ in GENERATIONS.values()), *NEW)
