"""SuperH: `sh4` (little endian) and `sh4eb` (big endian), SH-4A's instructions included.

Names are those of the SH-4 Software Manual, section 10. A branch is simulated before its delay slot
runs, so it reads its registers and writes PR first; the delay slot runs out of line. A halfword
without a row is straight line: it runs out of line as it is, and where it is undefined it raises
its exception there.

Functions that begin with `regs` and `insn` simulate: they return the target to go to next.
Parameters of one letter are fields of the row's picture: n register, i displacement.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import evolve

from ...errors import Unsupported
from ...regs import Regs
from .._base import Abi, Arch, Atomic, Files, Insn, Linkage, Order, Registers, Results, Traps, Walking, signed
from .._decode import DecodeTable, Row, with_delay_slots
from .._words import EXCEPTION, PRIVILEGED, RESERVED, TRAP_RETURN, WAITS
from .tables import table

MASK = 0xFFFFFFFF
R = tuple(f"r{n}" for n in range(16))

#: In the order of DWARF's numbers. The bank of floating-point registers that FPSCR.FR hides has no
#: names.
REGISTERS = Registers(
    names=(*R, "pc", "pr", "gbr", "vbr", "mach", "macl", "sr", "fpul", "fpscr",
           *(f"fr{n}" for n in range(16))),
    pc="pc", sp="r15", flags="sr", aliases={"sp": "r15", "fp": "r14"},
)

# --- `extra`: what a row cannot say


def near(bits: int) -> Callable[..., Insn]:
    """Make the `extra` of a direct branch, (insn, i) -> the branch with its target.

    Args:
        bits: width of the displacement, which counts instructions from behind the delay slot.
    """

    def extra(insn: Insn, i: int) -> Insn:
        """Return the branch with its target."""
        return evolve(insn, target=insn.addr + 4 + 2 * signed(i, bits) & MASK)

    return extra


def literal(size: int) -> Callable[..., Insn]:
    """Make the `extra` of an instruction with a pc-relative operand, (insn, i, **fields) -> the
    instruction with that operand.

    Args:
        size: bytes that are read there; 0: the address alone counts, in units of 4 bytes.
    """

    def extra(insn: Insn, i: int, **_: int) -> Insn:
        """Return the instruction with its operand."""
        scale = size or 4
        return evolve(insn, operand=(insn.addr + 4 & -scale) + scale * i & MASK, data=size)

    return extra


# --- simulations


def bra(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate BRA: return the target."""
    assert insn.target is not None
    return insn.target


def bsr(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate BSR: set PR to the address behind the delay slot; return the target."""
    regs["pr"] = insn.next & MASK
    return bra(regs, insn)


def conditional(t: int, regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate BT and BF: return the target where T, bit 0 of SR, is `t`, else the next address."""
    return bra(regs, insn) if regs["sr"] & 1 == t else insn.next & MASK


def jmp(regs: Regs, insn: Insn, n: int) -> int:
    """Simulate JMP: return the value of register `n`."""
    return regs[R[n]]


def braf(regs: Regs, insn: Insn, n: int) -> int:
    """Simulate BRAF: return the address behind the delay slot plus register `n`."""
    return insn.next + regs[R[n]] & MASK


def calls(jump: Callable[..., int]) -> Callable[..., int]:
    """Make the simulation of a call, (regs, insn, n) -> target, from that of a jump: it also sets
    PR to the address behind the delay slot.
    """

    def simulate(regs: Regs, insn: Insn, n: int) -> int:
        """Set PR to the address behind the delay slot; return the target, for which register `n` is
        read first.
        """
        target = jump(regs, insn, n)
        regs["pr"] = insn.next & MASK
        return target

    return simulate


def rts(regs: Regs, insn: Insn) -> int:
    """Simulate RTS: return the value of PR."""
    return regs["pr"]


def load(regs: Regs, insn: Insn, n: int, **_: int) -> int:
    """Simulate MOV.W and MOV.L of a literal: load it into register `n`, halfwords sign-extended;
    return the next address.
    """
    assert insn.operand is not None
    regs[R[n]] = signed(regs.word(insn.operand, insn.data), 8 * insn.data) & MASK
    return insn.next & MASK


def mova(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate MOVA: put the operand's address into r0; return the next address."""
    assert insn.operand is not None
    regs["r0"] = insn.operand
    return insn.next & MASK


MONITOR = "part of an exclusive sequence: a trap inside drops the reservation"
MARKED = "part of an atomic sequence, marked by a negative stack pointer (gUSA): a trap is sent back to its start"
BY_TRAPS = "a register that every trap overwrites"
#: A row of an instruction with a delay slot.
Delayed = partial(Row, body="slot", delay_slot=True)


def rows(high: str, name: str, reject: str, low: str) -> tuple[Row, ...]:
    """Make refused rows, one for each ending of a picture.

    Args:
        high: what all pictures begin with.
        name: the manual's mnemonic.
        reject: why they must not be probed.
        low: the endings, separated by blanks.
    """
    return tuple(Row(f"{high} {bits}", name, reject=reject) for bits in low.split())


ROWS = (
    # literals
    Row("1001 nnnn iiiiiiii", "MOV.W", load, extra=literal(2)),
    Row("1101 nnnn iiiiiiii", "MOV.L", load, extra=literal(4)),
    Row("1100 0111 iiiiiiii", "MOVA", mova, extra=literal(0)),
    # branches
    Delayed("1010 iiiiiiiiiiii", "BRA", bra, falls_through=False, extra=near(12)),
    Delayed("1011 iiiiiiiiiiii", "BSR", bsr, links=True, extra=near(12)),
    Row("1000 1001 iiiiiiii", "BT", partial(conditional, 1), extra=near(8)),
    Row("1000 1011 iiiiiiii", "BF", partial(conditional, 0), extra=near(8)),
    Delayed("1000 1101 iiiiiiii", "BT/S", partial(conditional, 1), extra=near(8)),
    Delayed("1000 1111 iiiiiiii", "BF/S", partial(conditional, 0), extra=near(8)),
    Delayed("0100 nnnn 00101011", "JMP", jmp, falls_through=False, extra=lambda insn, n: evolve(insn, indirect=True)),
    Delayed("0100 nnnn 00001011", "JSR", calls(jmp), links=True),
    Delayed("0000 nnnn 00100011", "BRAF", braf, falls_through=False, extra=lambda insn, n: evolve(insn, indirect=True)),
    Delayed("0000 nnnn 00000011", "BSRF", calls(braf), links=True),
    Delayed("0000 0000 00001011", "RTS", rts, falls_through=False),
    # atomic sequences: SH-4A's reservation; Linux's, marked by R15, the address behind them in R0,
    # R15's value in R1
    Row("0000 ---- 01100011", "MOVLI.L", atomic=Atomic.OPENS, reject=MONITOR),
    Row("0000 ---- 01110011", "MOVCO.L", atomic=Atomic.CLOSES, reject=MONITOR),
    Row("1110 1111 1-------", "MOV #-imm,R15", atomic=Atomic.OPENS, reject=MARKED),
    Row("0110 1111 0001 0011", "MOV R1,R15", atomic=Atomic.CLOSES, reject=MARKED),
    # exceptions
    Row("1100 0011 --------", "TRAPA", reject=EXCEPTION),
    Row("1111 1111 11111101", "undefined", reject=EXCEPTION),  # ours
    Row("0000 0000 00111011", "BRK", reject=EXCEPTION),
    Delayed("0000 0000 00101011", "RTE", reject=TRAP_RETURN),
    Row("0000 0000 00011011", "SLEEP", atomic=Atomic.DROPS, reject=WAITS),
    # privileged: reading SR and VBR is straight line
    Row("0000 0000 00111000", "LDTLB", reject=PRIVILEGED),
    *rows("0100 ----", "LDC", PRIVILEGED, "00001110 00101110 11111010"),  # SR, VBR, DBR
    *rows("0100 ----", "LDC.L", PRIVILEGED, "00000111 00100111 11110110"),
    # SSR, SPC, Rn_BANK, SGR
    *rows("0100 ----", "LDC", BY_TRAPS, "00111110 01001110 1---1110 00111010"),
    *rows("0100 ----", "LDC.L", BY_TRAPS, "00110111 01000111 1---0111 00110110"),
    *rows("0000 ----", "STC", BY_TRAPS, "00110010 01000010 1---0010 00111010"),
    *rows("0100 ----", "STC.L", BY_TRAPS, "00110011 01000011 1---0011 00110010"),
    # SH-DSP's, relative to pc
    Row("1000 1100 --------", "LDRS", reject=RESERVED),
    Row("1000 1110 --------", "LDRE", reject=RESERVED),
)  # fmt: skip

# --- powers


def of_flags(name: str, flags: int, _: str) -> Arch:
    """Return the architecture for an ELF file (`Files.choose`).

    Args:
        name: of the architecture.
        flags: e_flags.
        _: not used.

    Raises:
        Unsupported: SH-5's code, or position-independent code with function descriptors.
    """
    if flags & 0x1F == 0xA:
        raise Unsupported(
            "a program of SH-5, which is another instruction set", hint="build it for SH-4"
        )
    if flags & 0x8000:
        raise Unsupported(
            "an FDPIC program: its pointers are descriptors' addresses",
            hint="build it without -mfdpic",
        )
    return BY_NAME[name]


def sh4(name: str, order: Order) -> Arch:
    """Make the architecture of one byte order; its instructions are the same halfwords."""

    def half(value: int) -> bytes:
        """Return a halfword's bytes in the byte order."""
        return value.to_bytes(2, order.value)

    trap = half(0xFFFD)  # undefined, and for ever so; user code's trapa is a system call
    nop = half(0x0009)
    return Arch(
        package="kprobes.arch.sh",
        name=name, bits=32, order=order, insn_align=2, max_insn=2, regs=REGISTERS,
        traps=Traps(probe={2: trap}, end={0: trap}),
        decode=with_delay_slots(DecodeTable(ROWS), order.value, nop=nop),
        abi=Abi(args=R[4:8], returns=("r0", "r1"),
                results=Results(registers=0, memory=0, apart=True), stack_align=8),
        linkage=Linkage.in_register("pr", back=half(0x000B) + nop),
        walking=Walking(table=partial(table, order)),
        files=Files(machines=((42, 32, order.value),), choose=partial(of_flags, name)),
    )  # fmt: skip


ARCHES = (sh4("sh4", Order.LITTLE), sh4("sh4eb", Order.BIG))
BY_NAME = {arch.name: arch for arch in ARCHES}
