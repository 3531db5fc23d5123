"""RISC-V with compressed instructions: `riscv32` and `riscv64`, little endian (RV32GC, RV64GC and what runs beside them).

Sections name The RISC-V Instruction Set Manual, volume I (unprivileged) and II (privileged), release 20240411. A word without
a row is straight line: it runs out of line as it is, and where it is undefined it raises its exception there. In the space of
C.FSDSP, code with Zcmp or Zcmt (CM.PUSH, CM.JT ...) means something else; such code is not told apart, for no RV32GC or RV64GC
machine runs it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import evolve

from ..regs import Regs
from ._base import Abi, Arch, Atomic, Insn, Jump, Linkage, Order, Registers, Traps, displacement, signed
from ._decode import DecodeTable, Row

#: General registers by number, with the ABI's names: Linux's event names.
X = ("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{n}" for n in range(8)), *(f"s{n}" for n in range(2, 12)),
     "t3", "t4", "t5", "t6")  # fmt: skip
F = tuple(f"f{n}" for n in range(32))
F_ABI = (*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)), *(f"fs{n}" for n in range(2, 12)),
         *(f"ft{n}" for n in range(8, 12)))  # fmt: skip
LINKS = (1, 5)  # volume I, 2.5.1: calls and returns go through x1 or x5

REGISTERS = Registers(
    names=(*X, "pc", *F, "fcsr", "fflags", "frm"), pc="pc", sp="sp",
    aliases={**{f"x{n}": name for n, name in enumerate(X)}, "fp": "s0", "epc": "pc", **dict(zip(F_ABI, F))},
    # zero has no bits to write; a single in a 64-bit f register has ones above it
    widths={"zero": 0, **dict.fromkeys(F, 64), "fcsr": 8, "fflags": 5, "frm": 3},
)

# --- operands


def x(regs: Regs, n: int) -> int:
    """Register 0 reads as zero."""
    return regs[X[n]] if n else 0


def set_x(regs: Regs, n: int, value: int) -> None:
    """A write to register 0 is dropped."""
    if n:
        regs[X[n]] = value


def signed_x(regs: Regs, n: int) -> int:
    return signed(x(regs, n), regs.arch.bits)


def taken(insn: Insn) -> int:
    """The target of a branch whose row has a format below as its `extra`."""
    assert insn.target is not None
    return insn.target


# --- formats of direct branches (volume I, 2.3 and 27.4), as `extra`: the letters are the pieces in the order they are printed


def to_label(mask: int, insn: Insn, offset: int) -> Insn:
    return evolve(insn, target=insn.addr + offset & mask)


def j_type(mask: int, insn: Insn, i: int, j: int, k: int, l: int, **_: int) -> Insn:  # noqa: E741
    return to_label(mask, insn, signed(i << 20 | l << 12 | k << 11 | j << 1, 21))


def b_type(mask: int, insn: Insn, i: int, j: int, k: int, l: int, **_: int) -> Insn:  # noqa: E741
    return to_label(mask, insn, signed(i << 12 | l << 11 | j << 5 | k << 1, 13))


def cj_type(mask: int, insn: Insn, i: int, j: int, k: int, l: int, m: int, n: int, o: int, p: int) -> Insn:  # noqa: E741
    return to_label(mask, insn, signed(i << 11 | l << 10 | k << 8 | n << 7 | m << 6 | p << 5 | j << 4 | o << 1, 12))


def cb_type(mask: int, insn: Insn, i: int, j: int, k: int, l: int, m: int, s: int) -> Insn:  # noqa: E741
    return to_label(mask, insn, signed(i << 8 | k << 6 | m << 5 | j << 3 | l << 1, 9))


def computed(insn: Insn, s: int, d: int = 0, **_: int) -> Insn:
    """Extra of a jump through a register: neither call nor return unless a link register takes part."""
    return evolve(insn, indirect=s not in LINKS and d not in LINKS)


# --- simulations, named after the mnemonics (volume I, 2.4, 2.5, 27.4)


def auipc(regs: Regs, insn: Insn, i: int, d: int) -> int:
    set_x(regs, d, insn.addr + (signed(i, 20) << 12) & regs.arch.mask)
    return insn.next


def jal(regs: Regs, insn: Insn, d: int, **_: int) -> int:
    set_x(regs, d, insn.next & regs.arch.mask)
    return taken(insn)


def jalr(regs: Regs, insn: Insn, i: int, s: int, d: int) -> int:
    target = x(regs, s) + signed(i, 12) & regs.arch.mask & ~1  # first: rd may be rs1
    set_x(regs, d, insn.next & regs.arch.mask)
    return target


def beq(regs: Regs, insn: Insn, s: int, t: int, **_: int) -> int:
    return taken(insn) if x(regs, s) == x(regs, t) else insn.next


def bne(regs: Regs, insn: Insn, s: int, t: int, **_: int) -> int:
    return taken(insn) if x(regs, s) != x(regs, t) else insn.next


def blt(regs: Regs, insn: Insn, s: int, t: int, **_: int) -> int:
    return taken(insn) if signed_x(regs, s) < signed_x(regs, t) else insn.next


def bge(regs: Regs, insn: Insn, s: int, t: int, **_: int) -> int:
    return taken(insn) if signed_x(regs, s) >= signed_x(regs, t) else insn.next


def bltu(regs: Regs, insn: Insn, s: int, t: int, **_: int) -> int:
    return taken(insn) if x(regs, s) < x(regs, t) else insn.next


def bgeu(regs: Regs, insn: Insn, s: int, t: int, **_: int) -> int:
    return taken(insn) if x(regs, s) >= x(regs, t) else insn.next


def c_j(regs: Regs, insn: Insn, **_: int) -> int:
    return taken(insn)


def c_jal(regs: Regs, insn: Insn, **_: int) -> int:
    return jal(regs, insn, 1)


def c_jr(regs: Regs, insn: Insn, s: int) -> int:
    return x(regs, s) & ~1


def c_jalr(regs: Regs, insn: Insn, s: int) -> int:
    return jalr(regs, insn, 0, s, 1)


def c_beqz(regs: Regs, insn: Insn, s: int, **_: int) -> int:
    return beq(regs, insn, s + 8, 0)


def c_bnez(regs: Regs, insn: Insn, s: int, **_: int) -> int:
    return bne(regs, insn, s + 8, 0)


EXCEPTION = "raises an exception, whose handler would see the slot's address"
MONITOR = "part of an exclusive sequence: a trap inside drops the reservation"
PRIVILEGED = "changes privileged state, which the trap after it depends on"
RETURNS = "returns from a trap"
RESERVED = "reserved encoding"
WAITS = "waits for an event: the engine stops there"


def written(n: int, f: int, s: int, **_: int) -> bool:
    """Volume I, 7.1: CSRRS and CSRRC (immediate forms too) of x0 or 0 only read; bits 9:8 are the privilege level."""
    return n >> 8 & 3 != 0 and (f & 3 == 1 or s != 0)


def full_rows(mask: int) -> tuple[Row, ...]:
    """32-bit instructions that are not straight line."""
    label = partial(b_type, mask)
    return (
        Row("iiiiiiiiiiiiiiiiiiii ddddd 0010111", "AUIPC", auipc),
        Row("i jjjjjjjjjj k llllllll ddddd 1101111", "JAL", jal, extra=partial(j_type, mask)),
        Row("iiiiiiiiiiii sssss 000 ddddd 1100111", "JALR", jalr, extra=computed),
        Row("------------ ----- --- ----- 1100111", "JALR reserved", reject=RESERVED),
        Row("i jjjjjj ttttt sssss 000 kkkk l 1100011", "BEQ", beq, extra=label),
        Row("i jjjjjj ttttt sssss 001 kkkk l 1100011", "BNE", bne, extra=label),
        Row("------- ----- ----- 01- ----- 1100011", "BRANCH reserved", reject=RESERVED),
        Row("i jjjjjj ttttt sssss 100 kkkk l 1100011", "BLT", blt, extra=label),
        Row("i jjjjjj ttttt sssss 101 kkkk l 1100011", "BGE", bge, extra=label),
        Row("i jjjjjj ttttt sssss 110 kkkk l 1100011", "BLTU", bltu, extra=label),
        Row("i jjjjjj ttttt sssss 111 kkkk l 1100011", "BGEU", bgeu, extra=label),
        # Volume I, 14.2: AMOs have opcode 0101111 too, and are straight line
        Row("00010 -- 00000 ----- 01- ----- 0101111", "LR", atomic=Atomic.OPENS, reject=MONITOR),  # LR.W, LR.D
        Row("00011 -- ----- ----- 01- ----- 0101111", "SC", atomic=Atomic.CLOSES, reject=MONITOR),  # SC.W, SC.D
        # Volume I, 2.8, 7.1 and 15; volume II, 3.3, 11.2, 18.3
        Row("------- ----- ----- 000 ----- 1110011", "SYSTEM", reject=PRIVILEGED),  # SFENCE, SINVAL, HFENCE, HINVAL ...
        Row("000000000000 00000 000 00000 1110011", "ECALL", reject=EXCEPTION),
        Row("000000000001 00000 000 00000 1110011", "EBREAK", reject=EXCEPTION),
        Row("00-- 00000010 00000 000 00000 1110011", "xRET", reject=RETURNS),  # URET, SRET, MRET
        Row("0111 000000 10 00000 000 00000 1110011", "MNRET", reject=RETURNS),
        Row("0111 101100 10 00000 000 00000 1110011", "DRET", reject=RETURNS),
        Row("0001000 00101 00000 000 00000 1110011", "WFI", reject=WAITS),
        Row("00000000--01 00000 000 00000 1110011", "WRS", reject=WAITS, when=lambda: True),  # WRS.NTO, WRS.STO
        Row("nnnnnnnnnnnn sssss fff ----- 1110011", "CSR write", reject=PRIVILEGED, when=written),
    )
