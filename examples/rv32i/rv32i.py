"""RV32I, RISC-V's 32-bit base, as an architecture out of the tree: the one that docs/adding-an-architecture.md
builds."""

from functools import partial

import unicorn
from attrs import evolve
from unicorn import riscv_const

from kprobes.arch._base import Abi, Arch, Jump, Linkage, Order, OutOfLine, Registers, Traps, displacement, signed
from kprobes.arch._decode import DecodeTable, Row, as_it_is, fixed_width
from kprobes.machine.unicorn.guests.guest import (
    Blocks,
    Breakpoint,
    Cpu,
    Faults,
    Guest,
    Interrupts,
    Pc,
    RegisterFile,
    SystemCalls,
)

# --- registers and the calling convention

X = tuple(f"x{n}" for n in range(32))
REGISTERS = Registers(
    names=(*X, "pc"), pc="pc", sp="x2",
    aliases={"ra": "x1", "sp": "x2", "gp": "x3", "tp": "x4", "epc": "pc", **{f"a{n}": f"x{10 + n}" for n in range(8)}},
    widths={"x0": 0},  # always zero: no bits to write
)
EXCEPTION = "raises an exception, whose handler would see the slot's address"
EBREAK = bytes.fromhex("73001000")


def x(regs, n):
    return regs[X[n]] if n else 0


def set_x(regs, n, value):
    if n:
        regs[X[n]] = value & regs.arch.mask


# --- where branches lead


def j_type(insn, i, j, k, m, **_):
    return evolve(insn, target=insn.addr + signed(i << 20 | m << 12 | k << 11 | j << 1, 21) & 0xFFFFFFFF)


def b_type(insn, i, j, k, m, **_):
    return evolve(insn, target=insn.addr + signed(i << 12 | m << 11 | j << 5 | k << 1, 13) & 0xFFFFFFFF)


def returns(insn, s, d, **_):
    """A jump through a register that is neither a call nor a return goes who knows where."""
    return evolve(insn, indirect=s != 1 and d != 1)


# --- what depends on its own address


def auipc(regs, insn, i, d):
    set_x(regs, d, insn.addr + (i << 12))
    return insn.next


def jal(regs, insn, d, **_):
    set_x(regs, d, insn.next)
    return insn.target


def jalr(regs, insn, i, s, d):
    target = x(regs, s) + signed(i, 12) & 0xFFFFFFFE  # first: rd may be rs1
    set_x(regs, d, insn.next)
    return target


def branch(taken, regs, insn, s, t, **_):
    return insn.target if taken(x(regs, s), x(regs, t)) else insn.next


def jump(frm, to):
    offset = displacement(frm, to, 20, 2, 0xFFFFFFFF)
    imm = offset >> 19 << 19 | (offset & 0x3FF) << 9 | (offset >> 10 & 1) << 8 | offset >> 11 & 0xFF
    return (imm << 12 | 0b1101111).to_bytes(4, "little")


def branch_elsewhere(insn, to, **_):
    """The opposite condition (bit 12) skips a jump to the label."""
    skip = int.from_bytes(insn.raw, "little") & ~0xFE000F80 ^ 1 << 12 | 8 << 7
    return skip.to_bytes(4, "little") + jump(to + 4, insn.target)


# --- the table, the architecture, and its row for the engine

BRANCHES = {
    0: ("BEQ", lambda a, b: a == b), 1: ("BNE", lambda a, b: a != b),
    6: ("BLTU", lambda a, b: a < b), 7: ("BGEU", lambda a, b: a >= b),
    4: ("BLT", lambda a, b: signed(a, 32) < signed(b, 32)), 5: ("BGE", lambda a, b: signed(a, 32) >= signed(b, 32)),
}
ROWS = [
    Row("------- ----- ----- --- ----- 1110011", "SYSTEM", reject=EXCEPTION),  # ECALL, EBREAK, and what is privileged
    Row("iiiiiiiiiiiiiiiiiiii ddddd 0010111", "AUIPC", auipc),
    Row("i jjjjjjjjjj k mmmmmmmm ddddd 1101111", "JAL", jal, extra=j_type),
    Row("iiiiiiiiiiii sssss 000 ddddd 1100111", "JALR", jalr, extra=returns),
    Row("iiiiiiiiiiii sssss 000 00000 1100111", "JR", partial(jalr, d=0), extra=partial(returns, d=0),
        displace=as_it_is),
    *(Row(f"i jjjjjj ttttt sssss {funct3:03b} kkkk m 1100011", name, partial(branch, taken), extra=b_type,
          displace=branch_elsewhere) for funct3, (name, taken) in BRANCHES.items()),
]
rv32i = Arch(
    name="rv32i", bits=32, order=Order.LITTLE, insn_align=4, max_insn=4, regs=REGISTERS,
    traps=Traps(probe={4: EBREAK}, end={0: EBREAK}), decode=fixed_width(DecodeTable(ROWS), "little"),
    abi=Abi(args=X[10:18], returns=("x10", "x11")),
    linkage=Linkage.in_register("ra", back=bytes.fromhex("67800000")),  # JALR x0, 0(ra)
    jump=Jump(size=4, encode=jump), out_of_line=OutOfLine(max_displaced=8),
)

RESERVED = bytes.fromhex("0280")  # EBREAK would end the run with an error: a reserved C.JR is the breakpoint
guest = Guest(
    cpu=Cpu(arch=unicorn.UC_ARCH_RISCV, mode=unicorn.UC_MODE_RISCV32),
    registers=RegisterFile(constants=riscv_const, prefix="RISCV"),
    breakpoint=Breakpoint(channel="interrupt", number=2, bias=4, traps=Traps(probe={4: RESERVED}, end={0: RESERVED})),
    pc=Pc(plain=True),
    blocks=Blocks(undefined_unrecorded=True),
    interrupts=Interrupts(bias=dict.fromkeys(range(24), 4)),
    faults=Faults(undefined=frozenset({2}), unaligned={4: "read", 6: "write"}),
    calls=SystemCalls(skip={8: 0}),
)
