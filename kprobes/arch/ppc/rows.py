"""PowerPC: what 32 bits (ppc.py) and 64 bits (ppc64.py) share: rows, simulations, jumps.

Titles in quotes are sections of the Power ISA, version 3.1B; of what it has dropped, of 2.07B. A
word without a row is straight line: it runs out of line as it is, and where it is reserved it
raises its exception there. Functions that begin with `regs` and `insn` simulate: they return the
target to go to next. Those with `to` are a row's `displace`: they return code that does the same at
address `to`. Parameters of one letter are fields of the row's picture: o BO, i BI, d displacement,
a AA (absolute), k LK (it sets LR).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import evolve

from ...regs import Regs
from .._base import Abi, Arch, Frame, Jump, Linkage, Order, Registers, Traps, displacement, signed
from .._decode import Row, as_it_is
from .._insn import Atomic, Decoded, Insn
from .._words import EXCEPTION, PRIVILEGED, WAITS
from .interrupts import CONTROLLER

R = tuple(f"r{n}" for n in range(32))
F = tuple(f"f{n}" for n in range(32))
CR = tuple(f"cr{n}" for n in range(8))

REGISTERS = Registers(
    names=(*R, "pc", "lr", "ctr", "cr", "xer", "msr", *F, "fpscr", *CR), pc="pc", sp="r1",
    flags="cr",
    aliases={"sp": "r1", "nip": "pc", "link": "lr", "ccr": "cr",
             **{f"gpr{n}": name for n, name in enumerate(R)},
             **{f"fpr{n}": name for n, name in enumerate(F)}},
    widths={"cr": 32, "xer": 32, "fpscr": 32, **dict.fromkeys(F, 64), **dict.fromkeys(CR, 4)},
)  # fmt: skip

# --- operands


def narrow(regs: Regs, value: int) -> int:
    """Return an address or a count without its high half if the CPU is in 32-bit mode (MSR[SF] is
    0).
    """
    return value if value >> 32 == 0 or regs["msr"] >> 63 else value & 0xFFFFFFFF


def label(bits: int, mask: int) -> Callable[..., Insn]:
    """Make the `extra` of a branch to a label, (insn, d, a, **fields) -> the branch with its
    target.

    The field `d` counts words from the branch, or from 0 with AA.

    Args:
        bits: of the field.
        mask: the greatest address.
    """
    return lambda insn, d, a, **_: evolve(
        insn, target=(0 if a else insn.addr) + 4 * signed(d, bits) & mask
    )


def leaving(insn: Insn, o: int, **_: int) -> Insn:
    """Return a branch to LR with its facts: BO (`o`) tells whether it has a condition."""
    return evolve(insn, falls_through=o & 0b10100 != 0b10100)


def computed(insn: Insn, o: int, **_: int) -> Insn:
    """Return a branch to CTR that is no call with its facts: it may stay in the function."""
    return evolve(leaving(insn, o), indirect=True)


# --- simulations, named after the mnemonics ("Branch Instructions")


def taken(regs: Regs, o: int, i: int) -> bool:
    """Count CTR down where BO says so, and return whether the branch is taken.

    Args:
        regs: CTR is changed.
        o: BO: whether CTR is decremented, and what CTR and the bit of CR must be.
        i: BI: number of CR's bit, 0 is the highest.
    """
    if not o & 0b00100:
        count = regs["ctr"] - 1 & regs.arch.mask
        regs["ctr"] = count
        if (narrow(regs, count) == 0) != bool(o & 0b00010):
            return False
    return bool(o & 0b10000) or regs["cr"] >> 31 - i & 1 == o >> 3 & 1


def go(regs: Regs, insn: Insn, target: int, k: int) -> int:
    """Finish the simulation of a branch: set LR where `k` (LK) is 1, whether it is taken or not.

    Returns:
        `target`, without its high half where the CPU is in 32-bit mode.
    """
    if k:
        regs["lr"] = insn.next
    return narrow(regs, target)


def b(regs: Regs, insn: Insn, k: int = 0, **_: int) -> int:
    """Simulate b and bl: set LR where `k` is 1; return the target."""
    assert insn.target is not None
    return go(regs, insn, insn.target, k)


def bc(regs: Regs, insn: Insn, o: int, i: int, k: int = 0, **_: int) -> int:
    """Simulate bc and bcl (`k` 1: it sets LR): return the target or the next address.

    BO (`o`) and the bit `i` of CR tell whether it is taken; CTR is counted down where BO says so.
    """
    assert insn.target is not None
    return go(regs, insn, insn.target if taken(regs, o, i) else insn.next, k)


def bclr(regs: Regs, insn: Insn, o: int, i: int, k: int = 0) -> int:
    """Simulate bclr and bclrl (`k` 1: it sets LR): return the address that LR had, or the next one.

    BO (`o`) and the bit `i` of CR tell whether it is taken; CTR is counted down where BO says so.
    """
    return go(regs, insn, regs["lr"] & ~3 if taken(regs, o, i) else insn.next, k)


def bcctr(regs: Regs, insn: Insn, o: int, i: int, k: int = 0) -> int:
    """Simulate bcctr and bcctrl (`k` 1: it sets LR): return the address in CTR, or the next one.

    BO (`o`) and the bit `i` of CR tell whether it is taken.
    """
    return go(regs, insn, regs["ctr"] & ~3 if taken(regs, o, i) else insn.next, k)


# --- in another place. What links is simulated: nothing but another register sets LR to its home's address


def word(value: int, order: Order) -> bytes:
    """Return an instruction as it lies in memory."""
    return value.to_bytes(4, order.value)


def jump(order: Order, mask: int, frm: int, to: int) -> bytes:
    """Return b from `frm` to `to`; raise OutOfReach beyond 32 MiB.

    Args:
        order: byte order of code.
        mask: the greatest address.
        frm: address of the jump.
        to: its target.
    """
    return word(0b010010 << 26 | displacement(frm, to, 24, 4, mask) << 2, order)


def b_elsewhere(order: Order, mask: int, insn: Insn, to: int, **_: int) -> bytes:
    """Return b from `to` to the original target: the `displace` of b.

    Args:
        order: byte order of code.
        mask: the greatest address.
        insn: the instruction at its original address.
        to: address of the code.
    """
    assert insn.target is not None
    return jump(order, mask, to, insn.target)


def bc_elsewhere(order: Order, mask: int, insn: Insn, to: int, o: int, i: int, **_: int) -> bytes:
    """Return code for `to` of a conditional branch: its `displace`.

    Three branches: the original, which skips the second where it is taken; a b that skips the
    third; and a b to the original's target. BO has no opposite where CTR and CR both count.

    Args:
        order: byte order of code.
        mask: the greatest address.
        insn: the instruction at its original address.
        to: address of the code.
        o: BO.
        i: BI.
    """
    skips = word(0b010000 << 26 | o << 21 | i << 16 | 8, order), word(0b010010 << 26 | 8, order)
    return b"".join(skips) + b_elsewhere(order, mask, insn, to + 8)


MONITOR = "part of an exclusive sequence: a trap inside loses the reservation"
OVERWRITTEN = "accesses a register that a trap overwrites"


#: Special purpose registers with a privileged number that a trap neither depends on nor changes:
#: DSCR, DEC, AMR, CTRL, UAMOR, SPRG0 to SPRG7, the time base.
PLAIN_SPRS = {17, 22, 29, 152, 157, *range(272, 280), 284, 285}


#: What no slot can execute, in both widths.
REFUSED = (
    # "System Linkage Instructions", "Fixed-Point Trap Instructions"
    Row("000000 --------------------------", "undefined", reject="no instruction: 64-bit functions end with such words",
        extra=lambda insn: evolve(insn, decoded=Decoded.UNDEFINED)),
    Row("000000 --------------- 0100000000 -", "attn", reject="stops the processor"),
    Row("010001 --------------------------", "sc", reject=EXCEPTION),  # scv
    Row("000010 ----- ----- ----------------", "tdi", reject=EXCEPTION),
    Row("000011 ----- ----- ----------------", "twi", reject=EXCEPTION),
    Row("011111 ----- ----- ----- 0000000100 -", "tw", reject=EXCEPTION),
    Row("011111 ----- ----- ----- 0001000100 -", "td", reject=EXCEPTION),
    Row("010011 ----- ----- ----- 0000010010 -", "rfid", reject="exception return"),
    Row("010011 ----- ----- ----- 0001010010 -", "rfscv", reject="exception return"),
    Row("010011 ----- ----- ----- 0100010010 -", "hrfid", reject="exception return"),
    Row("010011 ----- ----- ----- 0100110010 -", "urfid", reject="exception return"),
    Row("010011 ----- ----- ----- 0010010010 -", "rfebb", reject="exception return"),
    Row("010011 ----- ----- ----- 000011001- -", "rfi, rfci", reject="exception return"),
    Row("010011 ----- ----- ----- 000010011- -", "rfdi, rfmci", reject="exception return"),
    Row("010011 ----- ----- ----- 0001100110 -", "rfgi", reject="exception return"),
    Row("010011 ----- ----- ----- 0011000110 -", "dnh", reject=EXCEPTION),
    Row("011111 ----- ----- ----- 0100001110 -", "ehpriv", reject=EXCEPTION),
    # "Power-Saving Mode"; "Wait Instruction", in its two encodings
    Row("010011 ----- ----- ----- 0101110010 -", "stop", reject=WAITS),
    Row("010011 ----- ----- ----- 011--10010 -", "doze, nap, sleep", reject=WAITS),  # rvwinkle
    Row("011111 ----- ----- ----- 0000-11110 -", "wait", reject=WAITS),
    # MSR, segments, special purpose registers: the first bit printed of an SPR's number says
    # privileged
    Row("011111 ----- ----- ----- 0010-10010 -", "mtmsr, mtmsrd", reject=PRIVILEGED),
    Row("011111 ----- ----- ----- 0010-00011 -", "wrtee, wrteei", reject=PRIVILEGED),
    Row("011111 ----- ----- ----- 00-1-10010 -", "mtsr, mtsrin", reject=PRIVILEGED),
    Row("011111 ----- ----- ----- 011--10010 -", "slbmte, slbie, slbia", reject=PRIVILEGED),
    Row("011111 ----- 1nnnn hhhhh 0111010011 -", "mtspr privileged", reject=PRIVILEGED,
        when=lambda n, h: h << 5 | 16 | n not in PLAIN_SPRS),
    *(Row(f"011111 ----- 1101- 00000 {move}010011 -", f"{name} SRR0, SRR1", reject=OVERWRITTEN)
      for move, name in (("0101", "mfspr"), ("0111", "mtspr"))),
    # "Load and Reserve and Store Conditional Instructions"
    Row("011111 ----- ----- ----- 000--10100 -", "lbarx, lharx, lwarx, ldarx", atomic=Atomic.OPENS, reject=MONITOR),
    Row("011111 ----- ----- ----- 0100010100 -", "lqarx", atomic=Atomic.OPENS, reject=MONITOR),
    Row("011111 ----- ----- ----- 0010-10110 -", "stwcx., stqcx.", atomic=Atomic.CLOSES, reject=MONITOR),
    Row("011111 ----- ----- ----- 0011010110 -", "stdcx.", atomic=Atomic.CLOSES, reject=MONITOR),
    Row("011111 ----- ----- ----- 1010110110 -", "stbcx.", atomic=Atomic.CLOSES, reject=MONITOR),
    Row("011111 ----- ----- ----- 1011010110 -", "sthcx.", atomic=Atomic.CLOSES, reject=MONITOR),
)


def rows(mask: int, order: Order) -> tuple[Row, ...]:
    """Return the decode rows of both widths.

    Args:
        mask: the greatest address.
        order: byte order of code.
    """
    to_label, on_condition = partial(b_elsewhere, order, mask), partial(bc_elsewhere, order, mask)
    return (
        # ba
        Row("010010 dddddddddddddddddddddddd a 0", "b", b, displace=to_label, falls_through=False,
            extra=label(24, mask)),
        # bla
        Row("010010 dddddddddddddddddddddddd a k", "bl", b, links=True, extra=label(24, mask)),
        # bca
        Row("010000 ooooo iiiii dddddddddddddd a 0", "bc", bc, displace=on_condition, extra=label(14, mask)),
        # bcla
        Row("010000 ooooo iiiii dddddddddddddd a k", "bcl", bc, links=True, extra=label(14, mask)),
        Row("010011 ooooo iiiii --- -- 0000010000 0", "bclr", bclr, displace=as_it_is, extra=leaving),
        Row("010011 ooooo iiiii --- -- 0000010000 k", "bclrl", bclr, links=True),
        Row("010011 ooooo iiiii --- -- 1000010000 0", "bcctr", bcctr, displace=as_it_is, extra=computed),
        Row("010011 ooooo iiiii --- -- 1000010000 k", "bcctrl", bcctr, links=True),
        *(Row(f"010011 --0-- ----- --- -- 1000010000 {link}", "bcctr, decrementing",
              reject="invalid form: CTR is target and counter")
          for link in "01"),
        *REFUSED,
    )  # fmt: skip


# --- powers


def powerpc(
    bits: int, order: Order, decode: Callable[[bytes, int], Insn], abi: Abi, **rest: Any
) -> Arch:
    """Make an Arch with what 32 and 64 bits share: `trap` as breakpoint, link register, back chain,
    `b`.

    A function saves LR in its caller's frame, one word above the back chain on 32 bits, two on 64.

    Args:
        bits: 32 or 64.
        order: byte order of code and data.
        decode: Arch.decode.
        abi: how functions are called.
        rest: further attributes of Arch.
    """
    trap = word(0x7FE00008, order)  # tw 31,0,0
    return Arch(
        package="kprobes.arch.ppc",
        bits=bits, order=order, insn_align=4, regs=REGISTERS,
        traps=Traps(probe={4: trap}, end={0: trap}),
        decode=decode, abi=abi,
        linkage=Linkage.in_register("lr", back=word(0x4E800020, order),  # BLR
                                    frame=Frame(register="r1", address={32: 4, 64: 16}[bits],
                                                next=0, above=True)),
        jump=Jump(size=4, encode=partial(jump, order, (1 << bits) - 1)),
        interrupts=CONTROLLER if bits == 32 else None, **rest,
    )  # fmt: skip
