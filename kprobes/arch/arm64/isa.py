"""AArch64, 64 bit: `arm64` with little-endian data, `arm64be` with big-endian data. Code is little
endian in both.

Sections name the Arm Architecture Reference Manual (DDI 0487). A word without a row is straight
line: it runs out of line as it is, and where it is undefined it raises its exception there.

Functions that begin with `regs` and `insn` simulate: they change registers as the instruction does,
and return the target to go to next. Parameters of one letter are fields of the row's picture: i and
j immediate, d destination, t register that is loaded or tested, n register with the target, c
condition, b number of a bit, s size.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from attrs import evolve

from ...errors import GuestFault
from ...regs import Regs
from .._addresses import following
from .._base import (
    Abi,
    Arch,
    Entry,
    Files,
    Frame,
    Jump,
    Lane,
    Linkage,
    Order,
    OutOfLine,
    Pointers,
    Registers,
    Results,
    Traps,
    Walking,
    signed,
)
from .._decode import DecodeTable, Row, as_it_is, fixed_width
from .._insn import Atomic, Insn
from .._words import EXCEPTION, PRIVILEGED, TRANSACTION, WAITS
from . import addresses, interrupts
from . import displace as away
from .displace import jump

MASK = (1 << 64) - 1
X = tuple(f"x{n}" for n in range(31))
V = tuple(f"v{n}" for n in range(32))

REGISTERS = Registers(
    names=(*X, "sp", "pc", "nzcv", *V, "fpcr", "fpsr", "tpidr_el0"), pc="pc", sp="sp", flags="nzcv",
    aliases={"lr": "x30", "fp": "x29", "ip0": "x16", "ip1": "x17", "pstate": "nzcv"},
    widths={"nzcv": 32, "fpcr": 32, "fpsr": 32, **dict.fromkeys(V, 128)},
    lanes={f"{kind}{n}": Lane(name, 0, bits)
           for kind, bits in (("d", 64), ("s", 32)) for n, name in enumerate(V)},
    reals=frozenset(V),
)

# --- operands


def x(regs: Regs, n: int) -> int:
    """Return the value of general register number `n`; register 31 reads as zero."""
    return 0 if n == 31 else regs[X[n]]


def set_x(regs: Regs, n: int, value: int) -> None:
    """Write general register number `n`; a write to register 31 is dropped."""
    if n != 31:
        regs[X[n]] = value


def label(insn: Insn, i: int, bits: int) -> int:
    """Return the address of a label: `i`, signed and of `bits` bits, counts instructions from this
    one.
    """
    return insn.addr + 4 * signed(i, bits) & MASK


def holds(regs: Regs, c: int) -> bool:
    """Whether a condition holds (ConditionHolds, C1.2.4).

    Odd conditions invert the even one below, but 1111 always holds, as 1110 does.

    Args:
        regs: read for NZCV.
        c: the condition's number, 0 to 15.
    """
    n, z, c_flag, v = (regs["nzcv"] >> bit & 1 for bit in (31, 30, 29, 28))
    even = (z, c_flag, n, v, c_flag and not z, n == v, n == v and not z, True)[c >> 1]
    return bool(even) != (c & 1 == 1 and c != 0b1111)


# --- simulations, named after the mnemonics (C6.2, C7.2)


def b(regs: Regs, insn: Insn, i: int) -> int:
    """Simulate B: return its target."""
    return label(insn, i, 26)


def bl(regs: Regs, insn: Insn, i: int) -> int:
    """Simulate BL: set X30 to the next address; return the target."""
    regs["x30"] = insn.next
    return label(insn, i, 26)


def b_cond(regs: Regs, insn: Insn, i: int, c: int) -> int:
    """Simulate B under the condition `c`: return its target, or the next address."""
    return label(insn, i, 19) if holds(regs, c) else insn.next


def cbz(regs: Regs, insn: Insn, s: int, i: int, t: int) -> int:
    """Simulate CBZ: return its target where register `t` (32 bits; with `s` 64) is 0, else the
    next.
    """
    value = x(regs, t) & (1 << (32 << s)) - 1
    return insn.next if value else label(insn, i, 19)


def cbnz(regs: Regs, insn: Insn, s: int, i: int, t: int) -> int:
    """Simulate CBNZ: return its target where register `t` (32 bits; with `s` 64) is not 0, else the
    next.
    """
    value = x(regs, t) & (1 << (32 << s)) - 1
    return label(insn, i, 19) if value else insn.next


def tbz(regs: Regs, insn: Insn, b: int, i: int, t: int) -> int:
    """Simulate TBZ: return its target where bit `b` of register `t` is 0, else the next address."""
    return insn.next if x(regs, t) >> b & 1 else label(insn, i, 14)


def tbnz(regs: Regs, insn: Insn, b: int, i: int, t: int) -> int:
    """Simulate TBNZ: return its target where bit `b` of register `t` is 1, else the next
    address.
    """
    return label(insn, i, 14) if x(regs, t) >> b & 1 else insn.next


def br(regs: Regs, insn: Insn, n: int) -> int:
    """Simulate BR: return the value of register `n`."""
    return x(regs, n)


def blr(regs: Regs, insn: Insn, n: int) -> int:
    """Simulate BLR: set X30 to the next address, and return the old value of register `n`."""
    target = x(regs, n)  # first: BLR X30 goes to the old X30
    regs["x30"] = insn.next
    return target


def ret(regs: Regs, insn: Insn, n: int) -> int:
    """Simulate RET: return the value of register `n`."""
    return x(regs, n)


def adr(regs: Regs, insn: Insn, i: int, j: int, d: int) -> int:
    """Simulate ADR: put this instruction's address plus the immediate (`i`, `j`) into
    register `d`.
    """
    set_x(regs, d, insn.addr + signed(i << 2 | j, 21) & MASK)
    return insn.next


def adrp(regs: Regs, insn: Insn, i: int, j: int, d: int) -> int:
    """Simulate ADRP: put the address of the page that is `i`, `j` pages from this one into register
    `d`.
    """
    set_x(regs, d, (insn.addr & ~0xFFF) + (signed(i << 2 | j, 21) << 12) & MASK)
    return insn.next


def ldr(regs: Regs, insn: Insn, s: int, i: int, t: int) -> int:
    """Simulate LDR of a literal of 4 (with `s` 8) bytes into register `t`."""
    set_x(regs, t, regs.word(label(insn, i, 19), 4 << s))
    return insn.next


def ldrsw(regs: Regs, insn: Insn, i: int, t: int) -> int:
    """Simulate LDRSW of a literal: load 4 bytes, extended with their sign, into register `t`."""
    set_x(regs, t, signed(regs.word(label(insn, i, 19), 4), 32) & MASK)
    return insn.next


def ldr_sd(regs: Regs, insn: Insn, s: int, i: int, t: int) -> int:
    """Simulate LDR of a literal of 4 (with `s` 8) bytes into vector register `t`; its rest becomes
    0.
    """
    regs[V[t]] = regs.word(label(insn, i, 19), 4 << s)  # the rest of the vector becomes zero
    return insn.next


def ldr_q(regs: Regs, insn: Insn, i: int, t: int) -> int:
    """Simulate LDR of a literal of 16 bytes, `i` instructions from this one, into vector register
    `t`; return the next address.

    The less significant half is read first, which shows at a fault.
    """
    at, big = label(insn, i, 19), regs.arch.order is Order.BIG
    low = regs.word(at + 8 * big, 8)
    regs[V[t]] = regs.word(at + 8 * (not big), 8) << 64 | low
    return insn.next


def prfm(regs: Regs, insn: Insn, i: int, t: int) -> int:
    """Simulate PRFM, a hint that never faults: return the next address."""
    return insn.next  # a hint that never faults


# --- facts for region checks


def direct(bits: int) -> Callable[..., Insn]:
    """Make the `extra` of a branch to a label, whose field `i` has `bits` bits: (insn, i, **fields)
    -> the branch with its target.
    """
    return lambda insn, i, **_: evolve(insn, target=label(insn, i, bits))


def literal(size: int) -> Callable[..., Insn]:
    """Make the `extra` of a load from a label, (insn, i, **fields) -> the load with its operand.

    Args:
        size: bytes that are loaded; with the field `s` twice as many.
    """
    return lambda insn, i, s=0, **_: evolve(insn, operand=label(insn, i, 19), data=size << s)


def computed(insn: Insn, **_: int) -> Insn:
    """Return a jump through a register, neither call nor return, with `indirect` set."""
    return evolve(insn, indirect=True)


AUTHENTICATED = "authenticated branch"
PAD = "indirect branches may lead to it, and in guarded pages never to a jump"
AS_BR = "it would be BR elsewhere, which guarded pages of a kernel let in to other pads"
SIGNS_PC = "signs or authenticates with its own address"
MONITOR = "part of an exclusive sequence: a trap inside clears the monitor"
MASKS = "accesses the interrupt masks, which a trap may change"
RESTARTS = "a memory copy or set may restart from its own address"

ROWS = (
    # PC-relative addresses and literals: C4.1 "Data processing - immediate", "Loads and stores"
    Row("0 jj 10000 iiiiiiiiiiiiiiiiiii ddddd", "ADR", adr, displace=away.adr),
    Row("1 jj 10000 iiiiiiiiiiiiiiiiiii ddddd", "ADRP", adrp, displace=away.adrp),
    Row("0s 011 0 00 iiiiiiiiiiiiiiiiiii ttttt", "LDR literal", ldr, extra=literal(4)),
    Row("10 011 0 00 iiiiiiiiiiiiiiiiiii ttttt", "LDRSW literal", ldrsw, extra=literal(4)),
    Row("11 011 0 00 iiiiiiiiiiiiiiiiiii ttttt", "PRFM literal", prfm, displace=lambda insn, to, **_: b""),
    Row("0s 011 1 00 iiiiiiiiiiiiiiiiiii ttttt", "LDR literal S, D", ldr_sd, extra=literal(4)),
    Row("10 011 1 00 iiiiiiiiiiiiiiiiiii ttttt", "LDR literal Q", ldr_q, extra=literal(16)),
    Row("1111 0011 10- ---------------- 11111", "AUTIASPPC", reject=SIGNS_PC),  # and AUTIBSPPC
    # A or B key, PACNB too
    Row("1101 1010 1100 0001 10- 00- 11111 11110", "PACIASPPC", reject=SIGNS_PC),
    Row("1101 0101 0000 0011 0010 0100 111 11111", "PACM", reject="ties the next instruction to its address"),
    Row("1101 0101 0000 0011 0010 0011 0-1 11111", "PACIASP, PACIBSP", lands=PAD),
    Row("1101 0101 0000 0011 0010 0100 --0 11111", "BTI", lands=PAD),
    # Branches to labels: C4.1 "Branches, exception generating and system instructions"
    Row("0 00101 iiiiiiiiiiiiiiiiiiiiiiiiii", "B", b, displace=away.b, falls_through=False, extra=direct(26)),
    Row("1 00101 iiiiiiiiiiiiiiiiiiiiiiiiii", "BL", bl, displace=away.bl, links=True, extra=direct(26)),
    Row("0101 0100 iiiiiiiiiiiiiiiiiii 0 cccc", "B.cond", b_cond, displace=away.b_cond, extra=direct(19)),
    Row("0101 0100 iiiiiiiiiiiiiiiiiii 1 cccc", "BC.cond", b_cond, displace=away.b_cond, extra=direct(19)),
    Row("s 011010 0 iiiiiiiiiiiiiiiiiii ttttt", "CBZ", cbz, displace=away.conditional(1 << 24), extra=direct(19)),
    Row("s 011010 1 iiiiiiiiiiiiiiiiiii ttttt", "CBNZ", cbnz, displace=away.conditional(1 << 24), extra=direct(19)),
    Row("b 011011 0 bbbbb iiiiiiiiiiiiii ttttt", "TBZ", tbz, displace=away.conditional(1 << 24), extra=direct(14)),
    Row("b 011011 1 bbbbb iiiiiiiiiiiiii ttttt", "TBNZ", tbnz, displace=away.conditional(1 << 24), extra=direct(14)),
    Row("- 111010 - --- ----- -- iiiiiiiii -----", "CB", extra=direct(9),
        reject="compare and branch (CMPBR) is not modelled"),
    # Branches to registers
    Row("1101011 0 0 00 11111 000000 nnnnn 00000", "BR", br, displace=as_it_is, falls_through=False, extra=computed),
    Row("1101011 0 0 01 11111 000000 nnnnn 00000", "BLR", blr, displace=away.blr, links=True, sends=AS_BR),
    Row("1101011 0 0 10 11111 000000 nnnnn 00000", "RET", ret, displace=as_it_is, falls_through=False),
    # BRAB, BRAAZ, BRABZ
    Row("1101011 - 0 00 11111 00001- ----- -----", "BRAA", extra=computed, falls_through=False, reject=AUTHENTICATED),
    # BLRAB, BLRAAZ, BLRABZ
    Row("1101011 - 0 01 11111 00001- ----- -----", "BLRAA", reject=AUTHENTICATED),
    # RETAB, RETAASPPCR, RETABSPPCR
    Row("1101011 0 0 10 11111 00001- 11111 -----", "RETAA", falls_through=False, reject=AUTHENTICATED),
    # and RETABSPPC
    Row("0101 0101 00- ---------------- 11111", "RETAASPPC", falls_through=False, reject=AUTHENTICATED),
    # ERETAA, ERETAB
    Row("1101011 0100 11111 0000-- 11111 -----", "ERET", reject="exception return"),
    Row("1101011 0101 11111 000000 11111 00000", "DRPS", reject="exception return"),
    # Exceptions
    Row("0000 0000 0000 0000 ----------------", "UDF", reject="permanently undefined"),
    Row("1101 0100 000 ---------------- 000 01", "SVC", reject=EXCEPTION),
    Row("1101 0100 000 ---------------- 000 10", "HVC", reject=EXCEPTION),
    Row("1101 0100 000 ---------------- 000 11", "SMC", reject=EXCEPTION),
    Row("1101 0100 001 ---------------- 000 00", "BRK", reject=EXCEPTION),
    Row("1101 0100 010 ---------------- 000 00", "HLT", reject=EXCEPTION),
    Row("1101 0100 101 ---------------- 000 --", "DCPS", reject=EXCEPTION),
    # System: PSTATE fields, then registers; op1 = 3 is what EL0 may reach
    Row("1101 0101 00000 000 0100 ---- 011 11111", "MSR UAO", reject=PRIVILEGED),
    Row("1101 0101 00000 000 0100 ---- 100 11111", "MSR PAN", reject=PRIVILEGED),
    Row("1101 0101 00000 000 0100 ---- 101 11111", "MSR SPSel", reject=PRIVILEGED),
    Row("1101 0101 00000 001 0100 ---- 000 11111", "MSR ALLINT, PM", reject=PRIVILEGED),
    Row("1101 0101 00000 011 0100 ---- 11- 11111", "MSR DAIFSet, DAIFClr", reject=MASKS),
    Row("1101 0101 0001 0--- ---- ---- --- -----", "MSR debug", reject=PRIVILEGED),
    Row("1101 0101 0001 1--- ---- ---- --- -----", "MSR", reject=PRIVILEGED),
    Row("1101 0101 0001 1011 ---- ---- --- -----", "MSR EL0"),
    Row("1101 0101 0001 1011 0100 0010 001 -----", "MSR DAIF", reject=MASKS),
    Row("1101 0101 0011 1011 0100 0010 001 -----", "MRS DAIF", reject=MASKS),
    Row("1101 0101 0101 ---- ---- ---- --- -----", "MSRR", reject=PRIVILEGED),
    Row("1101 0101 0000 0011 0010 0000 01- 11111", "WFE, WFI", atomic=Atomic.DROPS, reject=WAITS),
    Row("1101 0101 0000 0011 0001 0000 00- -----", "WFET, WFIT", atomic=Atomic.DROPS, reject=WAITS),
    # Exclusives: a trap between load and store would make the store fail for ever
    # LDAXR, B, H
    Row("-- 001000 010 ----- - ----- ----- -----", "LDXR", atomic=Atomic.OPENS, reject=MONITOR),
    # STLXR, B, H
    Row("-- 001000 000 ----- - ----- ----- -----", "STXR", atomic=Atomic.CLOSES, reject=MONITOR),
    # LDAXP; 0-: CASP
    Row("1- 001000 011 ----- - ----- ----- -----", "LDXP", atomic=Atomic.OPENS, reject=MONITOR),
    # STLXP; 0-: CASP
    Row("1- 001000 001 ----- - ----- ----- -----", "STXP", atomic=Atomic.CLOSES, reject=MONITOR),
    # LDATXR
    Row("1- 001001 010 ----- - ----- ----- -----", "LDTXR", atomic=Atomic.OPENS, reject=MONITOR),
    # STLTXR
    Row("1- 001001 000 ----- - ----- ----- -----", "STTXR", atomic=Atomic.CLOSES, reject=MONITOR),
    Row("1101 0101 0000 0011 0011 ---- 010 11111", "CLREX", atomic=Atomic.DROPS),
    # Transactions; memory copy and set
    Row("1101 0101 0010 0011 0011 0000 011 -----", "TSTART", reject=TRANSACTION),
    Row("1101 0101 0000 0011 0011 0000 011 11111", "TCOMMIT", reject=TRANSACTION),
    Row("1101 0100 011 ---------------- 000 00", "TCANCEL", reject=TRANSACTION),
    Row("00 011 - 01 --0 ----- ---- 01 ----- -----", "CPY, SET", reject=RESTARTS),
)

# --- powers


def code_address(addr: int, read: Callable[[int, int], bytes]) -> Entry:
    """Return the entry of a function; two entries where it begins with BTI.

    Behind a BTI (any of its four forms) PACIASP may stand, where it is then entered as well. Code
    that cannot be read has one entry.

    Args:
        addr: address of the function's first instruction.
        read: (address, bytes) -> original bytes; raises GuestFault.
    """
    try:
        first = int.from_bytes(read(addr, 4), "little")
    except GuestFault:  # nothing is there: the guest finds out when it gets there
        first = 0
    return Entry(addr=addr, entries=(0, 4) if first & ~0xC0 == 0xD503241F else (0,))


def without_signature(address: int) -> int:
    """Return a return address without the signature that PACIASP puts into it.

    Args:
        address: as it stands on the stack. Bit 55 says which half of the address space it is in;
            addresses are taken for 48 bits wide, as Linux's usually are. A kernel's address whose
            upper 12 bits are all 1 may have 52 bits, and is returned as it is.
    """
    if not address >> 55 & 1:
        return address & (1 << 48) - 1
    return address if address >> 52 == 0xFFF else address | 0xFFFF << 48


#: PACIASP; STP X29, X30, [SP, #-n]!; SUB SP, SP, #n
OPENS = {0: re.compile(rb"\x3f\x23\x03\xd5|\xfd\x7b[\x80-\xbf]\xa9|\xff[\x03\x43\x83\xc3][\s\S]\xd1")}

ARM64 = Arch(
    package="kprobes.arch.arm64",
    name="arm64", bits=64, order=Order.LITTLE, insn_align=4, max_insn=4, regs=REGISTERS,
    # BRK #4, BRK #6
    traps=Traps(probe={4: bytes.fromhex("800020d4")}, end={0: bytes.fromhex("c00020d4")}),
    decode=fixed_width(DecodeTable(ROWS), "little"),
    abi=Abi(args=X[:8], returns=("x0", "x1"), char_signed=False,
            results=Results(registers=16, memory=16, apart=True, wide=True)),
    # RET
    linkage=Linkage.in_register("x30", back=bytes.fromhex("c0035fd6"),
                                frame=Frame(register="x29", address=8, next=0)),
    jump=Jump(size=4, encode=jump), out_of_line=OutOfLine(max_displaced=20),
    pointers=Pointers(code_address=code_address, direct=True, without_signature=without_signature),
    walking=Walking(opens=OPENS, follow=following(addresses.use, 64, addresses.begins)),
    files=Files(machines=((183, 64, "little"),)),
    interrupts=interrupts.CONTROLLER,
)
ARM64BE = evolve(ARM64, name="arm64be", order=Order.BIG, files=Files(machines=((183, 64, "big"),)))

ARCHES = (ARM64, ARM64BE)
