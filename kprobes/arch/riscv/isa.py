"""RISC-V with compressed instructions: `riscv32` and `riscv64`, little endian (RV32GC, RV64GC and
what runs beside them).

Functions that begin with `regs` and `insn` simulate: they return the target to go to next.
Functions with `insn` and no `regs` are a row's `extra`: they return it with its target. `mask` is
the greatest address. Parameters of one letter are fields of the row's picture: s and t sources, d
destination, the others pieces of an immediate.

Titles in quotes are sections of The RISC-V Instruction Set Manual, volumes I (unprivileged) and II
(privileged). A word without a row is straight line: it runs out of line as it is, and where it is
undefined it raises its exception there. In the space of C.FSDSP, Zcmp and Zcmt define other
instructions (CM.POPRET, CM.JT ...); they need a machine without compressed double loads and stores,
which RV32GC and RV64GC are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from attrs import evolve

from ...regs import Regs
from .._addresses import following
from .._base import (
    Abi,
    Arch,
    Files,
    Frame,
    Jump,
    Linkage,
    Order,
    OutOfLine,
    Registers,
    Results,
    Traps,
    Walking,
    signed,
)
from .._compare import comparing, taken
from .._decode import DecodeTable, Row, as_it_is
from .._insn import Atomic, Insn
from .._words import EXCEPTION, PRIVILEGED, RESERVED, TRAP_RETURN, WAITS
from .._zero import zero_first
from . import addresses, interrupts
from . import displace as away

#: General registers by number, with the ABI's names: Linux's event names.
X = ("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{n}" for n in range(8)),
     *(f"s{n}" for n in range(2, 12)),
     "t3", "t4", "t5", "t6")  # fmt: skip
F = tuple(f"f{n}" for n in range(32))
F_ABI = (*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)),
         *(f"fs{n}" for n in range(2, 12)), *(f"ft{n}" for n in range(8, 12)))  # fmt: skip
LINKS = (1, 5)  # "Unconditional Jumps": calls and returns go through x1 or x5

REGISTERS = Registers(
    names=(*X, "pc", *F, "fcsr", "fflags", "frm"), pc="pc", sp="sp",
    aliases={**{f"x{n}": name for n, name in enumerate(X)}, "fp": "s0", "epc": "pc",
             **dict(zip(F_ABI, F, strict=True))},
    # zero has no bits to write; a single in a 64-bit f register has ones above it
    widths={"zero": 0, **dict.fromkeys(F, 64), "fcsr": 8, "fflags": 5, "frm": 3},
    reals=frozenset(F),
)

# --- operands

x, set_x = zero_first(X)


def signed_x(regs: Regs, n: int) -> int:
    """Return the signed value of general register number `n`."""
    return signed(x(regs, n), regs.arch.bits)


# --- formats of direct branches ("Immediate Encoding Variants") as `extra`; letters name the pieces of the offset as
# printed


def j_type(mask: int, insn: Insn, i: int, j: int, k: int, m: int, d: int) -> Insn:
    """Return JAL with its target; it is a call where it links (`d` is not 0).

    `mask` is the greatest address; `i`, `j`, `k` and `m` are the pieces of the offset.
    """
    return evolve(
        insn,
        target=insn.addr + signed(i << 20 | m << 12 | k << 11 | j << 1, 21) & mask,
        links=d != 0,
        falls_through=d != 0,
    )


def b_type(mask: int, insn: Insn, i: int, j: int, k: int, m: int, **_: int) -> Insn:
    """Return a conditional branch with its target; `i`, `j`, `k` and `m` are the pieces of the
    offset.
    """
    return evolve(insn, target=insn.addr + signed(i << 12 | m << 11 | j << 5 | k << 1, 13) & mask)


def cj_type(
    mask: int, insn: Insn, i: int, j: int, k: int, m: int, n: int, o: int, p: int, q: int
) -> Insn:
    """Return C.J or C.JAL with its target; `i` to `q` are the pieces of the offset."""
    offset = i << 11 | m << 10 | k << 8 | o << 7 | n << 6 | q << 5 | j << 4 | p << 1
    return evolve(insn, target=insn.addr + signed(offset, 12) & mask)


def cb_type(mask: int, insn: Insn, i: int, j: int, k: int, m: int, n: int, **_: int) -> Insn:
    """Return C.BEQZ or C.BNEZ with its target; `i` to `n` are the pieces of the offset."""
    return evolve(
        insn, target=insn.addr + signed(i << 8 | k << 6 | n << 5 | j << 3 | m << 1, 9) & mask
    )


def computed(insn: Insn, s: int, d: int = 0, **_: int) -> Insn:
    """Return a jump through register `s` with its facts.

    It is a call, behind which the guest goes on, where it links (`d` is not 0); a computed jump
    (`indirect`) where neither `s` nor `d` is a link register; else a return.
    """
    return evolve(
        insn, indirect=s not in LINKS and d not in LINKS, links=d != 0, falls_through=d != 0
    )


# --- simulations, named after the mnemonics ("Control Transfer Instructions", of the base and of "C")


def auipc(regs: Regs, insn: Insn, i: int, d: int) -> int:
    """Simulate AUIPC: put pc plus `i` times 4 KiB into register `d`; return the next address."""
    set_x(regs, d, insn.addr + (signed(i, 20) << 12) & regs.arch.mask)
    return insn.next


def jal(regs: Regs, insn: Insn, d: int, **_: int) -> int:
    """Simulate JAL: put the next address into register `d`; return the target."""
    set_x(regs, d, insn.next & regs.arch.mask)
    return taken(insn)


def jalr(regs: Regs, insn: Insn, i: int, s: int, d: int) -> int:
    """Simulate JALR: put the next address into register `d`; return register `s` plus `i`.

    `i` has 12 bits and a sign; bit 0 of the target is cleared.
    """
    target: int = x(regs, s) + signed(i, 12) & regs.arch.mask & ~1  # first: rd may be rs1
    set_x(regs, d, insn.next & regs.arch.mask)
    return target


beq, bne, blt, bge, bltu, bgeu = comparing(x, signed_x)


def c_j(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate C.J: return the target."""
    return taken(insn)


def c_jal(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate C.JAL: put the next address into ra; return the target."""
    return jal(regs, insn, 1)


def c_jr(regs: Regs, insn: Insn, s: int) -> int:
    """Simulate C.JR: return the value of register `s`, bit 0 cleared."""
    return x(regs, s) & ~1


def c_jalr(regs: Regs, insn: Insn, s: int) -> int:
    """Simulate C.JALR: put the next address into ra; return the old value of register `s`."""
    return jalr(regs, insn, 0, s, 1)


def c_beqz(regs: Regs, insn: Insn, s: int, **_: int) -> int:
    """Simulate C.BEQZ: return the target where register `s` + 8 is 0, else the next address."""
    return beq(regs, insn, s + 8, 0)  # three bits name x8 to x15


def c_bnez(regs: Regs, insn: Insn, s: int, **_: int) -> int:
    """Simulate C.BNEZ: return the target where register `s` + 8 is not 0, else the next address."""
    return bne(regs, insn, s + 8, 0)


MONITOR = "part of an exclusive sequence: a trap inside drops the reservation"


def full_rows(mask: int) -> tuple[Row, ...]:
    """Return the decode rows of 32-bit instructions that are not straight line.

    AMOs, fences and CSR reads are straight line.

    Args:
        mask: the greatest address.
    """
    near, elsewhere = partial(b_type, mask), partial(away.branch, mask)
    return (
        Row("iiiiiiiiiiiiiiiiiiii ddddd 0010111", "AUIPC", auipc, displace=partial(away.auipc, mask)),
        Row("i jjjjjjjjjj k mmmmmmmm ddddd 1101111", "JAL", jal, displace=partial(away.jal, mask),
            extra=partial(j_type, mask)),
        Row("------------ ----- --- ----- 1100111", "JALR reserved", reject=RESERVED),
        Row("iiiiiiiiiiii sssss 000 ddddd 1100111", "JALR", jalr, displace=partial(away.jalr, mask), extra=computed),
        Row("i jjjjjj ttttt sssss 000 kkkk m 1100011", "BEQ", beq, displace=elsewhere, extra=near),
        Row("i jjjjjj ttttt sssss 001 kkkk m 1100011", "BNE", bne, displace=elsewhere, extra=near),
        Row("- ------ ----- ----- 01- ---- - 1100011", "BRANCH reserved", reject=RESERVED),
        Row("i jjjjjj ttttt sssss 100 kkkk m 1100011", "BLT", blt, displace=elsewhere, extra=near),
        Row("i jjjjjj ttttt sssss 101 kkkk m 1100011", "BGE", bge, displace=elsewhere, extra=near),
        Row("i jjjjjj ttttt sssss 110 kkkk m 1100011", "BLTU", bltu, displace=elsewhere, extra=near),
        Row("i jjjjjj ttttt sssss 111 kkkk m 1100011", "BGEU", bgeu, displace=elsewhere, extra=near),
        # "Load-Reserved/Store-Conditional Instructions"
        Row("00010 -- 00000 ----- 01- ----- 0101111", "LR", atomic=Atomic.OPENS, reject=MONITOR),  # LR.W, LR.D
        Row("00011 -- ----- ----- 01- ----- 0101111", "SC", atomic=Atomic.CLOSES, reject=MONITOR),  # SC.W, SC.D
        # "Environment Call and Breakpoints"; volume II, "Privileged Instruction Set Listings"
        Row("------- ----- ----- 000 ----- 1110011", "SYSTEM", reject=PRIVILEGED),  # SFENCE, SINVAL, HFENCE, HINVAL ...
        Row("0000000 00000 00000 000 00000 1110011", "ECALL", reject=EXCEPTION),
        Row("0000000 00001 00000 000 00000 1110011", "EBREAK", reject=EXCEPTION),
        Row("00--000 00010 00000 000 00000 1110011", "xRET", reject=TRAP_RETURN),  # SRET, MRET
        Row("0111000 00010 00000 000 00000 1110011", "MNRET", reject=TRAP_RETURN),
        Row("0111101 10010 00000 000 00000 1110011", "DRET", reject=TRAP_RETURN),
        Row("0001000 00101 00000 000 00000 1110011", "WFI", atomic=Atomic.DROPS, reject=WAITS),
        Row("0000000 -1101 00000 000 00000 1110011", "WRS", atomic=Atomic.DROPS, reject=WAITS),  # WRS.NTO, WRS.STO
        # "CSR Instructions": CSRRS and CSRRC of x0 or 0 only read; "CSR Address Mapping": bits 9:8
        # are the privilege level
        Row("--pp-------- ----- -01 ----- 1110011", "CSRRW", reject=PRIVILEGED, when=lambda p: p != 0),
        Row("--pp-------- sssss -1- ----- 1110011", "CSRRS", reject=PRIVILEGED, when=lambda p, s: p != 0 and s != 0),
    )


def short_rows(bits: int, mask: int) -> tuple[Row, ...]:
    """Return the decode rows of 16-bit instructions that are not straight line.

    "RVC Instruction Set Listings".

    Args:
        bits: width of a register.
        mask: the greatest address.
    """
    near = partial(cb_type, mask)
    far = partial(cj_type, mask)
    elsewhere = partial(away.c_branch, mask)
    # C.ADDIW in RV64
    rv32 = (Row("001 i j kk m n o ppp q 01", "C.JAL", c_jal, displace=partial(away.c_jal, mask),
                links=True,
                extra=far),)
    return (
        Row("0000 0000 0000 0000", "C.UNIMP", reject="permanently illegal"),
        Row("101 i j kk m n o ppp q 01", "C.J", c_j, displace=partial(away.jal, mask), falls_through=False, extra=far),
        Row("110 i jj sss kk mm n 01", "C.BEQZ", c_beqz, displace=elsewhere, extra=near),
        Row("111 i jj sss kk mm n 01", "C.BNEZ", c_bnez, displace=elsewhere, extra=near),
        Row("100 0 sssss 00000 10", "C.JR", c_jr, displace=as_it_is, falls_through=False, extra=computed),
        Row("100 0 00000 00000 10", "C.JR reserved", reject=RESERVED),
        Row("100 1 sssss 00000 10", "C.JALR", c_jalr, displace=partial(away.c_jalr, mask), links=True),
        Row("100 1 00000 00000 10", "C.EBREAK", reject=EXCEPTION),
        *(rv32 if bits == 32 else ()),
    )


#: Major opcodes of loads and stores with a displacement: integer and floating-point.
LOADS, STORES, ADDI = (0b0000011, 0b0000111), (0b0100011, 0b0100111), 0b0010011


def paired(mask: int, insn: Insn, pair: int) -> Insn:
    """Return AUIPC with the operand that the next instruction completes.

    The next one has the lower half of the address, and what it loads or stores there is data. Where
    it is no ADDI, load or store through the same register, the AUIPC is returned as it is.

    Args:
        mask: the greatest address.
        insn: the AUIPC.
        pair: its encoding, and above it (bits 32 to 63) that of the next instruction.
    """
    word = pair >> 32
    opcode, size = word & 0x7F, 1 << (word >> 12 & 3)
    if word >> 15 & 31 != pair >> 7 & 31 or opcode not in (*LOADS, *STORES, ADDI):
        return insn
    low = word >> 20 & 0xFE0 | word >> 7 & 31 if opcode in STORES else word >> 20
    return evolve(
        insn,
        operand=insn.addr + signed(pair >> 12 & 0xFFFFF, 20) * 0x1000 + signed(low, 12) & mask,
        data=0 if opcode == ADDI else size,
    )


def decoder(bits: int) -> Callable[[bytes, int], Insn]:
    """Make the `Arch.decode` of 32 or 64 bits.

    The lowest bits of the first halfword tell the length ("Base Instruction-Length Encoding").
    """
    mask = (1 << bits) - 1
    short, full = DecodeTable(short_rows(bits, mask)), DecodeTable(full_rows(mask))

    def decode(code: bytes, addr: int) -> Insn:
        """Return the instruction at the start of `code`, of 2 or 4 bytes, at `addr`; longer ones
        are undefined.

        It is refused where its bytes are not all there. AUIPC gets the operand that the next
        instruction completes.
        """
        first = code[0] if code else 0
        if first & 0b11111 == 0b11111:
            return Insn.undefined(addr, code[:2], "instruction of 48 bits or more: none is defined")
        table, size = (full, 4) if first & 3 == 3 else (short, 2)
        raw = bytes(code[:size])
        if len(raw) < size:
            return Insn.truncated(addr, raw)
        insn = table.decode(int.from_bytes(raw, "little"), Insn(addr=addr, raw=raw, name="insn"))
        return (
            paired(mask, insn, int.from_bytes(raw + code[4:8], "little"))
            if insn.name == "AUIPC"
            else insn
        )

    return decode


# --- powers


def leaves(jump: Insn, before: Sequence[Insn]) -> Insn | None:
    """Return the AUIPC that a JALR completes, if it does (`Walking.leaves`).

    Together they are a jump to a function out of JAL's reach, so the JALR leaves the function.

    Args:
        jump: the JALR.
        before: instructions that always precede it, the nearest last.

    Returns:
        None: they are no such pair.
    """
    word, pair = int.from_bytes(jump.raw, "little"), before[-1] if before else None
    register = word >> 15 & 31 if jump.size == 4 else 0
    return (
        pair
        if pair is not None
        and pair.name == "AUIPC"
        and int.from_bytes(pair.raw, "little") >> 7 & 31 == register
        else None
    )


#: ADDI sp, sp, -n, C.ADDI of the same, C.ADDI16SP
OPENS = re.compile(rb"\x13\x01[\x01-\xf1][\x80-\xff]|[\x01-\x7d]\x11|[\x01-\x7d]\x71")


def riscv(bits: int) -> Arch:
    """Make the architecture RV32 or RV64; `bits`: 32 or 64."""
    return Arch(
        package="kprobes.arch.riscv",
        name=f"riscv{bits}", bits=bits, order=Order.LITTLE, insn_align=2, max_insn=4,
        regs=REGISTERS,
        # C.EBREAK, EBREAK
        traps=Traps(probe={2: bytes.fromhex("0290"), 4: bytes.fromhex("73001000")},
                    end={0: bytes.fromhex("73001000")}),
        decode=decoder(bits),
        abi=Abi(args=X[10:18], returns=("a0", "a1"), char_signed=False,
                results=Results(registers=bits // 4, memory=bits // 4, wide=True)),
        linkage=Linkage.in_register("ra", back=bytes.fromhex("8280"),  # C.JR ra
                                    frame=Frame(register="s0", address=-bits // 8,
                                                next=-2 * bits // 8)),
        jump=Jump(size=4, encode=partial(away.jump, (1 << bits) - 1)),
        out_of_line=OutOfLine(max_displaced=12),
        walking=Walking(leaves=leaves, follow=following(addresses.use, bits, addresses.begins)),
        files=Files(machines=((243, bits, "little"),)),
        interrupts=interrupts.CONTROLLER,
    )  # fmt: skip


ARCHES = (riscv(32), riscv(64))
