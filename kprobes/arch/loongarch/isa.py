"""LoongArch with 64-bit registers: `loongarch64`, little endian (LA64 v1.1 with F, D, LSX and
LASX).

Titles in quotes are sections of the LoongArch Reference Manual, volume 1. A word without a row is
straight line: it runs out of line as it is, and where it is undefined it raises its exception
there. AM* are single instructions, which a trap cannot divide: they are straight line, too (Linux
refuses most of them).

Functions that begin with `regs` and `insn` simulate: they return the target to go to next.
Parameters of one letter are fields of the row's picture: s source, d destination, c condition flag,
i and j pieces of an immediate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve

from ...regs import Regs
from .._addresses import following
from .._base import Abi, Arch, Files, Frame, Jump, Linkage, Order, OutOfLine, Registers, Results, Traps, Walking, signed
from .._compare import comparing, taken
from .._decode import DecodeTable, Row, fixed_width
from .._insn import Atomic, Insn
from .._words import EXCEPTION, PRIVILEGED, TRAP_RETURN, WAITS
from .._zero import zero_first
from . import addresses
from . import displace as away
from .displace import MASK

R = tuple(f"r{n}" for n in range(32))
#: The psABI's names of R; r21 has none.
R_ABI = ("zero", "ra", "tp", "sp", *(f"a{n}" for n in range(8)), *(f"t{n}" for n in range(9)),
         "r21", "fp", *(f"s{n}" for n in range(9)))
F = tuple(f"f{n}" for n in range(32))
F_ABI = (*(f"fa{n}" for n in range(8)), *(f"ft{n}" for n in range(16)),
         *(f"fs{n}" for n in range(8)))
FCC = tuple(f"fcc{n}" for n in range(8))

REGISTERS = Registers(
    names=(*R, "pc", *F, *FCC, "fcsr0"), pc="pc", sp="r3",
    aliases={**{alias: name for alias, name in zip(R_ABI, R, strict=True) if alias != name},
             "s9": "r22",
             "csr_era": "pc", "fcsr": "fcsr0", **dict(zip(F_ABI, F, strict=True))},
    widths={"r0": 0, **dict.fromkeys(FCC, 1), "fcsr0": 32},  # r0 has no bits to write
)

# --- operands

x, set_x = zero_first(R)


def signed_x(regs: Regs, n: int) -> int:
    """Return the signed value of general register number `n`."""
    return signed(x(regs, n), 64)


# --- formats of branches and of pc-relative addresses as `extra`; i is the offset, high part first


def near(bits: int) -> Callable[..., Insn]:
    """Make the `extra` of direct branches, (insn, i, j, **fields) -> the branch with its target.

    Args:
        bits: width of the offset, in words; its high part, field `j`, is printed last.
    """
    def extra(insn: Insn, i: int, j: int = 0, **_: int) -> Insn:
        """Return the branch with its target."""
        return evolve(insn, target=insn.addr + (signed(j << 16 | i, bits) << 2) & MASK)

    return extra


def computed(insn: Insn, s: int, d: int, **_: int) -> Insn:
    """Return a jump through register `s` with its facts: it is a call or return where ra takes
    part.
    """
    return evolve(insn, indirect=away.RA not in (s, d), links=d != 0, falls_through=d != 0)


def address(shift: int, keep: int = MASK) -> Callable[..., Insn]:
    """Make the `extra` of an instruction that adds an offset to pc, (insn, i, d) -> the instruction
    with that address as its operand.

    Args:
        shift: bits by which the offset is shifted left.
        keep: mask of the sum.
    """
    def extra(insn: Insn, i: int, d: int) -> Insn:
        """Return the instruction with the address that it computes as its operand."""
        return evolve(insn, operand=insn.addr + (signed(i, 20) << shift) & keep)

    return extra


# --- simulations, named after the mnemonics ("Branch Instructions", "Arithmetic Operation Instructions")


def pcadd(regs: Regs, insn: Insn, i: int, d: int) -> int:
    """Simulate PCADDI and its kin: put the address, which the decoder has worked out as
    `insn.operand`, into register `d`; return the next address.
    """
    assert insn.operand is not None
    set_x(regs, d, insn.operand)
    return insn.next


def b(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate B: return its target."""
    return taken(insn)


def bl(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate BL: put the next address into ra; return the target."""
    set_x(regs, away.RA, insn.next & MASK)
    return taken(insn)


def jirl(regs: Regs, insn: Insn, i: int, s: int, d: int) -> int:
    """Simulate JIRL: put the next address into register `d`; return register `s` plus `i` words."""
    target = x(regs, s) + (signed(i, 16) << 2) & MASK  # first: rd may be rj
    set_x(regs, d, insn.next & MASK)
    return target


def beqz(regs: Regs, insn: Insn, s: int, **_: int) -> int:
    """Simulate BEQZ: return the target where register `s` is 0, else the next address."""
    return insn.next if x(regs, s) else taken(insn)


def bnez(regs: Regs, insn: Insn, s: int, **_: int) -> int:
    """Simulate BNEZ: return the target where register `s` is not 0, else the next address."""
    return taken(insn) if x(regs, s) else insn.next


def bceqz(regs: Regs, insn: Insn, c: int, **_: int) -> int:
    """Simulate BCEQZ: return the target where condition flag `c` is 0, else the next address."""
    return insn.next if regs[FCC[c]] else taken(insn)


def bcnez(regs: Regs, insn: Insn, c: int, **_: int) -> int:
    """Simulate BCNEZ: return the target where condition flag `c` is 1, else the next address."""
    return taken(insn) if regs[FCC[c]] else insn.next


beq, bne, blt, bge, bltu, bgeu = comparing(x, signed_x)


MONITOR = "part of an exclusive sequence: a trap inside drops the reservation"
AT_HOME = "iiiiiiiiiiiiiiiiiiii ddddd"
COMPARED = "iiiiiiiiiiiiiiii sssss ttttt"
ROWS = (
    # pc-relative addresses
    Row(f"0001100 {AT_HOME}", "PCADDI", pcadd, displace=away.pcadd, extra=address(2)),
    Row(f"0001101 {AT_HOME}", "PCALAU12I", pcadd, displace=away.pcadd, extra=address(12, MASK & ~0xFFF)),
    Row(f"0001110 {AT_HOME}", "PCADDU12I", pcadd, displace=away.pcadd, extra=address(12)),
    Row(f"0001111 {AT_HOME}", "PCADDU18I", pcadd, displace=away.pcadd, extra=address(18)),
    # "Branch Instructions"
    Row("010000 iiiiiiiiiiiiiiii sssss jjjjj", "BEQZ", beqz, displace=away.branch_zero, extra=near(21)),
    Row("010001 iiiiiiiiiiiiiiii sssss jjjjj", "BNEZ", bnez, displace=away.branch_zero, extra=near(21)),
    Row("010010 iiiiiiiiiiiiiiii 00 ccc jjjjj", "BCEQZ", bceqz, displace=away.branch_flag, extra=near(21)),
    Row("010010 iiiiiiiiiiiiiiii 01 ccc jjjjj", "BCNEZ", bcnez, displace=away.branch_flag, extra=near(21)),
    Row("010011 iiiiiiiiiiiiiiii sssss ddddd", "JIRL", jirl, displace=away.jirl, extra=computed),
    Row("010100 iiiiiiiiiiiiiiii jjjjjjjjjj", "B", b, displace=away.b, falls_through=False, extra=near(26)),
    Row("010101 iiiiiiiiiiiiiiii jjjjjjjjjj", "BL", bl, displace=away.bl, links=True, extra=near(26)),
    Row(f"010110 {COMPARED}", "BEQ", beq, displace=away.branch, extra=near(16)),
    Row(f"010111 {COMPARED}", "BNE", bne, displace=away.branch, extra=near(16)),
    Row(f"011000 {COMPARED}", "BLT", blt, displace=away.branch, extra=near(16)),
    Row(f"011001 {COMPARED}", "BGE", bge, displace=away.branch, extra=near(16)),
    Row(f"011010 {COMPARED}", "BLTU", bltu, displace=away.branch, extra=near(16)),
    Row(f"011011 {COMPARED}", "BGEU", bgeu, displace=away.branch, extra=near(16)),
    # "Atomic Memory Access Instructions"
    Row("001000-0 -------------- ----- -----", "LL", atomic=Atomic.OPENS, reject=MONITOR),  # LL.W, LL.D
    Row("001000-1 -------------- ----- -----", "SC", atomic=Atomic.CLOSES, reject=MONITOR),  # SC.W, SC.D
    Row("00111000010101110 ----- ----- -----", "SC.Q", atomic=Atomic.CLOSES, reject=MONITOR),
    Row("00111000010101111 000-0 ----- -----", "LLACQ", atomic=Atomic.OPENS, reject=MONITOR),  # LLACQ.W, LLACQ.D
    Row("00111000010101111 000-1 ----- -----", "SCREL", atomic=Atomic.CLOSES, reject=MONITOR),  # SCREL.W, SCREL.D
    # "Other Miscellaneous Instructions"
    Row("00000000001010100 ---------------", "BREAK", reject=EXCEPTION),
    Row("00000000001010101 ---------------", "DBCL", reject=EXCEPTION),
    Row("00000000001010110 ---------------", "SYSCALL", reject=EXCEPTION),
    Row("00000000001010111 ---------------", "HVCL", reject=EXCEPTION),
    # "Privileged Instructions": CSRRD only reads
    # CSRWR, CSRXCHG, and the guest's
    Row("0000010- -------------- ccccc -----", "CSRWR", reject=PRIVILEGED, when=lambda c: c != 0),
    Row("0000011001000 --- ---------- ------", "LDDIR", reject=PRIVILEGED),  # LDDIR, LDPTE
    # TLBCLR, TLBFLUSH, TLBSRCH, TLBRD, TLBWR, TLBFILL
    Row("00000110010010000 01--- ----- -----", "TLB", reject=PRIVILEGED),
    Row("00000110010010000 01110 ----- -----", "ERTN", reject=TRAP_RETURN),
    Row("00000110010010001 ---------------", "IDLE", atomic=Atomic.DROPS, reject=WAITS),
    Row("00000110010010011 ---------------", "INVTLB", reject=PRIVILEGED),
)  # fmt: skip
TABLE = DecodeTable(ROWS)
_decode = fixed_width(TABLE, "little")

def paired(insn: Insn, following: int) -> Insn:
    """Return PCADDU12I or PCALAU12I with the operand that the next instruction completes.

    The next one has the lower half of the address, and what it loads or stores there is data. Where
    it is no ADDI.D, load or store through the same register, the instruction is returned as it is.
    What the instruction itself does does not change: its simulation keeps its own half.

    Args:
        insn: the instruction, whose operand is its own half.
        following: encoding of the next instruction.
    """
    assert insn.operand is not None
    base, opcode = int.from_bytes(insn.raw, "little") & 31, following >> 22
    if following >> 5 & 31 != base or (
        opcode != addresses.ADDI_D and opcode not in addresses.SIZES
    ):
        return insn
    return evolve(
        insn, operand=insn.operand + away.low(following) & MASK, data=addresses.SIZES.get(opcode, 0)
    )


def decode(code: bytes, addr: int) -> Insn:
    """Return the instruction at the start of `code`, which lies at `addr` (`Arch.decode`).

    PCADDU12I and PCALAU12I get the operand that the next instruction completes.
    """
    insn = _decode(code, addr)
    pair = insn.name in ("PCADDU12I", "PCALAU12I") and len(code) >= 8
    return paired(insn, int.from_bytes(code[4:8], "little")) if pair else insn


# --- powers


def leaves(jump: Insn, before: Sequence[Insn]) -> Insn | None:
    """Return the PCADDU18I that a JIRL completes, if it does (`Walking.leaves`).

    Together they are a jump to a function out of B's reach, so the JIRL leaves the function.

    Args:
        jump: the JIRL.
        before: instructions that always precede it, the nearest last.

    Returns:
        None: they are no such pair.
    """
    pair = before[-1] if before else None
    register = int.from_bytes(jump.raw, "little") >> 5 & 31
    return (
        pair
        if pair is not None
        and pair.name == "PCADDU18I"
        and int.from_bytes(pair.raw, "little") & 31 == register
        else None
    )


def trap(code: int) -> bytes:
    """Return BREAK with a code; Linux has the codes 10 and 11 for its own."""
    return away.word(0x002A0000 | code)


ARCHES = (
    Arch(
        package="kprobes.arch.loongarch",
        name="loongarch64", bits=64, order=Order.LITTLE, insn_align=4, max_insn=4, regs=REGISTERS,
        traps=Traps(probe={4: trap(10)}, end={0: trap(11)}), decode=decode,
        abi=Abi(args=R[4:12], returns=R[4:6], results=Results(registers=16, memory=16, wide=True)),
        # JIRL r0, r1, 0
        linkage=Linkage.in_register("r1", back=away.word(0x4C000020),
                                    frame=Frame(register="r22", address=-8, next=-16)),
        jump=Jump(size=4, encode=away.jump), out_of_line=OutOfLine(max_displaced=20),
        walking=Walking(leaves=leaves, follow=following(addresses.use, 64)),
        files=Files(machines=((258, 64, "little"),)),
    ),
)
