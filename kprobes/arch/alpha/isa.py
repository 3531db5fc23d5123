"""Alpha: `alpha`, little endian, 64 bits, with BWX, CIX, FIX and MVI.

Titles in quotes are sections of the Alpha Architecture Handbook, chapter 4. A word without a row is
straight line: it runs out of line as it is, and where it is undefined it raises its exception
there.

Functions that begin with `regs` and `insn` simulate: they return the target to go to next.
Functions with `insn` and no `regs` are a row's `extra`: they return it with its target. Parameters
of one letter are fields of the row's picture: a and b registers, i displacement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import evolve

from ...errors import GuestFault
from ...regs import Regs
from .._base import (
    Abi,
    Arch,
    Entry,
    Files,
    Jump,
    Linkage,
    Order,
    OutOfLine,
    Pointers,
    Registers,
    Results,
    Traps,
    signed,
)
from .._decode import DecodeTable, Row, fixed_width
from .._insn import Atomic, Insn
from .._words import EXCEPTION, PRIVILEGED, RESERVED
from . import displace as away
from .displace import MASK, ZERO

R = tuple(f"r{n}" for n in range(32))
#: The calling standard's names of R; r15 is a saved register, too (s6), and r27 a temporary (t12).
R_ABI = ("v0", *(f"t{n}" for n in range(8)), *(f"s{n}" for n in range(6)), "fp",
         *(f"a{n}" for n in range(6)), *(f"t{n}" for n in range(8, 12)), "ra", "pv", "at", "gp",
         "sp", "zero")
F = tuple(f"f{n}" for n in range(31))  # f31 is always zero; stubs do not show it
SIGN = 1 << 63

REGISTERS = Registers(
    names=(*R, "pc", *F, "fpcr"), pc="pc", sp="r30",
    aliases={**dict(zip(R_ABI, R, strict=True)), "s6": "r15", "t12": "r27"},
    widths={"r31": 0},  # no bits to write
)

# --- operands


def x(regs: Regs, n: int) -> int:
    """Return the value of general register number `n`; register 31 is zero."""
    return 0 if n == ZERO else regs[R[n]]


def set_x(regs: Regs, n: int, value: int) -> None:
    """Write general register number `n`; a write to register 31 is dropped."""
    if n != ZERO:
        regs[R[n]] = value & MASK


def f(regs: Regs, n: int) -> int:
    """Return the bits of floating-point register number `n`; register 31 is zero."""
    return 0 if n == ZERO else regs[F[n]]


def taken(insn: Insn) -> int:
    """Return the target of a branch, which its row's `extra` (near) has put into `insn.target`."""
    assert insn.target is not None
    return insn.target


# --- `extra`: what a row cannot say


def near(insn: Insn, i: int, **_: int) -> Insn:
    """Return the branch with its target: a displacement of `i` instructions from the next one."""
    return evolve(insn, target=insn.addr + 4 + (signed(i, 21) << 2) & MASK)


def unconditional(insn: Insn, a: int, i: int) -> Insn:
    """Return BR or BSR with its target; it links, and may go on behind itself, unless `a` is
    register 31.
    """
    return evolve(near(insn, i), links=a != ZERO, falls_through=a != ZERO)


def computed(returns: bool, insn: Insn, a: int, b: int) -> Insn:
    """Return a jump through a register with its facts.

    It is a call, behind which the guest goes on, where it links (`a` is not 31). Else it is a
    computed jump (`indirect`), or a return.

    Args:
        returns: its hint says that it is a return.
        insn: the instruction.
        a: number of the register that gets the return address.
        b: number of the register that has the target.
    """
    return evolve(
        insn, indirect=a == ZERO and not returns, links=a != ZERO, falls_through=a != ZERO
    )


# --- simulations, named after the mnemonics ("Control Instructions")


def br(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate BR and BSR: put the next address into register `a`; return the target."""
    set_x(regs, a, insn.next)
    return taken(insn)


def jmp(regs: Regs, insn: Insn, a: int, b: int, **_: int) -> int:
    """Simulate a jump through register `b`: put the next address into register `a`; return the old
    value of `b` as the target, its low two bits cleared.
    """
    target = x(regs, b) & ~3  # first: Ra may be Rb
    set_x(regs, a, insn.next)
    return target


def blbc(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate BLBC: return the target where bit 0 of register `a` is 0, else the next address."""
    return insn.next if x(regs, a) & 1 else taken(insn)


def blbs(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate BLBS: return the target where bit 0 of register `a` is 1, else the next address."""
    return taken(insn) if x(regs, a) & 1 else insn.next


def beq(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate BEQ: return the target where register `a` is 0, else the next address."""
    return insn.next if x(regs, a) else taken(insn)


def bne(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate BNE: return the target where register `a` is not 0, else the next address."""
    return taken(insn) if x(regs, a) else insn.next


def blt(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate BLT: return the target where register `a` is negative, else the next address."""
    return taken(insn) if x(regs, a) & SIGN else insn.next


def bge(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate BGE: return the target where register `a` is not negative, else the next address."""
    return insn.next if x(regs, a) & SIGN else taken(insn)


def ble(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate BLE: return the target where register `a` is negative or 0, else the next
    address.
    """
    return taken(insn) if signed(x(regs, a), 64) <= 0 else insn.next


def bgt(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate BGT: return the target where register `a` is greater than 0, else the next
    address.
    """
    return taken(insn) if signed(x(regs, a), 64) > 0 else insn.next


# "Floating-Point Branches" test the bits: a zero of either sign is zero, and the sign of everything
# else counts, a NaN's too


def fbeq(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate FBEQ: return the target where floating-point register `a` is 0 or -0, else the next
    address.
    """
    return insn.next if f(regs, a) & ~SIGN else taken(insn)


def fbne(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate FBNE: return the target where floating-point register `a` is not 0, else the next
    address.
    """
    return taken(insn) if f(regs, a) & ~SIGN else insn.next


def fblt(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate FBLT: return the target where floating-point register `a` is negative and not -0,
    else the next address.
    """
    return taken(insn) if f(regs, a) > SIGN else insn.next


def fbge(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate FBGE: return the target where floating-point register `a` is not negative, or is -0;
    else the next address.
    """
    return insn.next if f(regs, a) > SIGN else taken(insn)


def fble(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate FBLE: return the target where floating-point register `a` is 0 or has its sign set,
    else the next address.
    """
    value = f(regs, a)
    return taken(insn) if value & SIGN or not value else insn.next


def fbgt(regs: Regs, insn: Insn, a: int, **_: int) -> int:
    """Simulate FBGT: return the target where floating-point register `a` is above 0, else the next
    address.
    """
    value = f(regs, a)
    return insn.next if value & SIGN or not value else taken(insn)


MONITOR = "part of an exclusive sequence: a trap inside drops the reservation"
FLAG = "reads a flag that traps clear, the one before it too"
BRANCHES = {0x31: fbeq, 0x32: fblt, 0x33: fble, 0x35: fbne, 0x36: fbge, 0x37: fbgt, 0x38: blbc,
            0x39: beq, 0x3A: blt, 0x3B: ble, 0x3C: blbs, 0x3D: bne, 0x3E: bge, 0x3F: bgt}
NEAR = "aaaaa iiiiiiiiiiiiiiiiiiiii"
ROWS = (
    # "Control Instructions"
    Row(f"110000 {NEAR}", "BR", br, displace=away.br, extra=unconditional),
    Row(f"110100 {NEAR}", "BSR", br, displace=away.br, extra=unconditional),
    *(Row(f"{opcode:06b} {NEAR}", simulate.__name__.upper(), simulate, displace=away.branch, extra=near)
      for opcode, simulate in BRANCHES.items()),
    *(Row(f"011010 aaaaa bbbbb {hint:02b} --------------", name, jmp, displace=away.jmp,
          extra=partial(computed, name == "RET"))
      for hint, name in enumerate(("JMP", "JSR", "RET", "JSR_COROUTINE"))),
    # "Memory Integer Load/Store Instructions"
    # LDL_L, LDQ_L
    Row("10101- ----- ----- ----------------", "LDx_L", atomic=Atomic.OPENS, reject=MONITOR),
    # STL_C, STQ_C
    Row("10111- ----- ----- ----------------", "STx_C", atomic=Atomic.CLOSES, reject=MONITOR),
    # "VAX Compatibility Instructions"
    Row("011000 ----- ----- 1110000000000000", "RC", reject=FLAG),
    Row("011000 ----- ----- 1111000000000000", "RS", reject=FLAG),
    # "PALcode Instructions": three do their work and go on, the others enter the system
    Row("000000 000000000000000000 10000110", "IMB"),
    Row("000000 000000000000000000 10011110", "RDUNIQUE"),
    Row("000000 000000000000000000 10011111", "WRUNIQUE"),
    Row("000000 000000000000000000 00------", "PRIVILEGED", reject=PRIVILEGED),
    Row("000000 --------------------------", "CALL_PAL", reject=EXCEPTION),
    # reserved opcodes: Digital's, and PALcode's own instructions
    Row("000001 --------------------------", "OPC01", reject=RESERVED),
    Row("00001- --------------------------", "OPC02", reject=RESERVED),
    Row("0001-- --------------------------", "OPC04", reject=RESERVED),
    Row("011001 --------------------------", "PAL19", reject=PRIVILEGED),
    Row("011011 --------------------------", "PAL1B", reject=PRIVILEGED),
    Row("011101 --------------------------", "PAL1D", reject=PRIVILEGED),
    Row("01111- --------------------------", "PAL1E", reject=PRIVILEGED),
)  # fmt: skip

# --- calls and powers

LDAH_GP, LDA_GP = 0x27BB, 0x23BD  # upper halves of LDAH gp, n(pv) and LDA gp, n(gp)


def code_address(addr: int, read: Callable[[int, int], bytes]) -> Entry:
    """Return the entry of a function; two entries where it begins with two instructions that set
    gp.

    Calls from code with the same gp enter behind these, 8 bytes on. Code that cannot be read has
    one entry.

    Args:
        addr: address of the function's first instruction.
        read: (address, bytes) -> original bytes; raises GuestFault.
    """
    try:
        start = read(addr, 8)
    except GuestFault:
        return Entry(addr=addr)
    sets = (int.from_bytes(start[2:4], "little"), int.from_bytes(start[6:8], "little")) == (
        LDAH_GP,
        LDA_GP,
    )
    return Entry(addr=addr, entries=(0, 8), local=8) if sets else Entry(addr=addr)


def enter(regs: Regs, function: int) -> None:
    """Set register pv (r27) to the function's address, by which the function finds its gp
    (`Abi.enter`).
    """
    regs["r27"] = function


ABI = Abi(args=R[16:22], returns=("r0",), results=Results(registers=0, memory=0), enter=enter)
BPT, BUGCHK = away.word(0x80), away.word(0x81)

ARCHES = (
    Arch(
        package="kprobes.arch.alpha",
        name="alpha", bits=64, order=Order.LITTLE, insn_align=4, max_insn=4, regs=REGISTERS,
        traps=Traps(probe={4: BPT}, end={0: BUGCHK}),
        decode=fixed_width(DecodeTable(ROWS), "little"), abi=ABI,
        linkage=Linkage.in_register("r26", back=away.word(0x6BFA8001)),  # RET R31, (R26), 1
        jump=Jump(size=4, encode=away.jump), out_of_line=OutOfLine(max_displaced=16),
        pointers=Pointers(code_address=code_address),
        files=Files(machines=((0x9026, 64, "little"),)),
    ),
)
