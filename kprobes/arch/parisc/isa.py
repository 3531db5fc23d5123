"""PA-RISC with 32-bit registers: `parisc`, big endian, as user programs have it: 1.1, and what of
2.0 is no wider.

Titles in quotes are sections of the PA-RISC 2.0 Architecture, chapter 7. A word without a row is
straight line: it runs out of line as it is, and where it is undefined it raises its exception
there. LDIL and ADDIL count from no address of their own; LDCW is one instruction, which a trap
cannot divide. What nullifies the instruction behind it does so behind its slot as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import evolve

from ...errors import GuestFault
from ...regs import Regs
from .._base import Abi, Arch, Entry, Files, Insn, Jump, Linkage, Order, OutOfLine, Pointers, Registers, Results, Traps
from .._decode import DecodeTable, Row, with_delay_slots
from .._words import EXCEPTION, EXCEPTION_RETURN, PRIVILEGED, RESERVED
from . import branches as simulated
from . import displace as away
from .branches import R, calling, computed, far, farthest, near
from .displace import NOP

SR = tuple(f"sr{n}" for n in range(8))
F = tuple(f"fr{n}{half}" for n in range(32) for half in ("", "r"))  # left and right halves
GENERAL = {f"gr{n}": name for n, name in enumerate(R) if n} | {f"arg{n}": f"r{26 - n}" for n in range(4)}
#: gr0 is where Linux keeps it.
OTHERS = {"rp": "r2", "dp": "r27", "ret0": "r28", "ret1": "r29", "sp": "r30", "mrp": "r31",
          "iaoq0": "pc", "cr11": "sar", "ipsw": "psw", "gr0": "psw"}
SAR = 11  #: number of that control register

#: r0 is always zero; stubs show the processor status word in its place.
REGISTERS = Registers(names=(*R[1:], "pc", "psw", "sar", *SR, "cr27", *F), pc="pc", sp="r30",
                      flags="psw",
                      aliases=GENERAL | OTHERS, widths={"sar": 5})

WIDE = "is for 64-bit registers"
GATE = "changes the privilege level"
STACK = "pushes onto the branch target stack, which no 32-bit CPU has"
MODEL = "is the CPU model's own"
#: A row of an instruction with a delay slot.
Delayed = partial(Row, body="slot", delay_slot=True)
#: The bits in which opposite conditions differ: one of the opcode, and one of the condition.
OPCODE, CONDITION = 1 << 27, 1 << 15
COMPARED, TESTED = "sssss ttttt ccc", "ttttt c10"
Conditional = tuple[str, str, Callable[..., bool], int]


def negated(first: int, name: str, holds: Callable[..., bool]) -> tuple[Conditional, Conditional]:
    """Make the tables of two conditional branches: one on a condition, one on its opposite.

    Args:
        first: opcode of the first; that of the second is 2 more.
        name: the manual's mnemonic.
        holds: (False or True for the opposite, regs, **fields) -> whether it is taken.
    """
    return ((f"{first:06b} {COMPARED}", name, partial(holds, False), OPCODE),
            (f"{first + 2:06b} {COMPARED}", name, partial(holds, True), OPCODE))


#: (opcode and what precedes the displacement, name, condition, bit of the opposite)
CONDITIONAL: tuple[Conditional, ...] = (
    *negated(0x20, "CMPB", simulated.cmpb), *negated(0x21, "CMPIB", simulated.cmpib),
    *negated(0x28, "ADDB", simulated.addb), *negated(0x29, "ADDIB", simulated.addib),
    (f"110000 00000 {TESTED}", "BB", simulated.bb, CONDITION),
    (f"110001 sssss {TESTED}", "BB", simulated.bb, CONDITION),
    (f"110010 {COMPARED}", "MOVB", simulated.movb, CONDITION),
    (f"110011 {COMPARED}", "MOVIB", simulated.movib, CONDITION),
)


def conditional(
    start: str, name: str, holds: Callable[..., bool], opposite: int
) -> tuple[Row, Row]:
    """Make the two rows of a conditional branch: with a delay slot, and without.

    Where it nullifies its delay slot whenever it is taken, it has none: what stands behind it is
    what follows where it is not taken.

    Args:
        start: the picture up to the displacement.
        name: the manual's mnemonic.
        holds: (regs, **fields) -> whether the branch is taken.
        opposite: bits in which the opposite condition's encoding differs.
    """
    simulate, elsewhere = simulated.branch(holds), away.conditional(opposite)
    return (Delayed(f"{start} iiiiiiiiiii n w", name, simulate, displace=elsewhere, extra=near),
            Row(f"{start} iiiiiiiiiii 1 0", f"{name},N", simulate, displace=elsewhere, extra=near))


def always(start: str, name: str, simulate: Callable[..., int], extra: Callable[..., Insn],
           displace: Callable[..., bytes] | None = None) -> tuple[Row, Row]:
    """Make the two rows of a branch that is always taken: with a delay slot, and nullifying it.

    Args:
        start: the picture without the bit that nullifies, which stands in front of the last one.
        name: the manual's mnemonic.
        simulate: (regs, insn, **fields) -> next target.
        extra: (insn, **fields) -> the instruction with its target.
        displace: (insn, to, **fields) -> code that does the same at `to`; None: there is none.
    """
    before, last = start[:-1], start[-1]
    return (Delayed(f"{before} 0 {last}", name, simulate, displace=displace, extra=extra),
            Row(f"{before} 1 {last}", f"{name},N", simulate, displace=displace, extra=extra))


ROWS = (
    # "Branch Instructions"
    *(row for each in CONDITIONAL for row in conditional(*each)),
    *always("111010 ddddd jjjjj 000 iiiiiiiiiii w", "B,L", simulated.b, far, away.b),
    *always("111010 kkkkk jjjjj 101 iiiiiiiiiii w", "B,L22", simulated.b_l, farthest, away.b_l),
    *always("111010 ddddd xxxxx 010 00000000000 0", "BLR", simulated.blr, calling),
    *always("111010 bbbbb xxxxx 110 00000000000 0", "BV", simulated.bv, computed, away.computed),
    *always("111010 bbbbb 00000 110 10000000000 -", "BVE", simulated.bv, computed, away.computed),
    *always("111010 bbbbb 00000 111 10000000000 -", "BVE,L", simulated.bve_l, calling, away.bve_l),
    *always("111000 bbbbb jjjjj --- iiiiiiiiiii w", "BE", simulated.be, computed, away.computed),
    *always("111001 bbbbb jjjjj --- iiiiiiiiiii w", "BE,L", simulated.be_l, calling, away.be_l),
    Delayed("111010 ----- ----- 001 ----------- - -", "B,GATE", reject=GATE),
    Delayed("111010 ----- ----- 100 ----------- - -", "B,L,PUSH", reject=STACK),
    Delayed("111010 --------------------------", "reserved", reject=RESERVED),
    Delayed("11000- --------------------------", "reserved", reject=RESERVED),
    # for 64-bit registers
    Delayed("11000- ----- ----- --1 ----------- - -", "BB,*", reject=WIDE),
    Delayed("10-111 --------------------------", "CMPB,*", reject=WIDE),
    Delayed("111011 --------------------------", "CMPIB,*", reject=WIDE),
    *(Row(f"000011 {'-' * 16} {size} ------", name, reject=WIDE)
      for name, size in (("LDD", "0011"), ("LDDA", "010-"), ("STD", "1011"), ("STDBY", "1101"), ("STDA", "1111"))),
    Row("010100 --------------------------", "LDD", reject=WIDE),
    Row("011100 --------------------------", "STD", reject=WIDE),
    Row("110110 --------------------------", "EXTRD", reject=WIDE),  # SHRPD with a variable amount
    Row("11110- --------------------------", "DEPD", reject=WIDE),
    Row("111110 --------------------------", "PERMH", reject=WIDE),  # MIX, HSHL ...
    # "System Control Instructions"
    Row("000000 ------------- 00000000 -----", "BREAK", reject=EXCEPTION),
    Row("000000 ----- 00000 --- 10100101 ddddd", "MFIA", simulated.mfia),
    Row("000000 ------------- 10100101 -----", "reserved", reject=RESERVED),
    Row("000000 ------------- 01100-0- -----", "RFI", reject=EXCEPTION_RETURN),
    Row("000000 ------------- 01101011 -----", "SSM", reject=PRIVILEGED),
    Row("000000 ------------- 01110011 -----", "RSM", reject=PRIVILEGED),
    Row("000000 ------------- 11000011 -----", "MTSM", reject=PRIVILEGED),
    Row("000000 ----- ----- sss 11000001 -----", "MTSP", reject=PRIVILEGED, when=lambda s: s & 1 == 1),  # sr4 to sr7
    Row("000000 ttttt -------- 11000010 -----", "MTCTL", reject=PRIVILEGED, when=lambda t: t != SAR),
    Row("000101 --------------------------", "DIAG", reject=MODEL),
)  # fmt: skip
_decode = with_delay_slots(DecodeTable(ROWS), "big", nop=NOP, may_stand="BREAK")


def decode(code: bytes, addr: int) -> Insn:
    """Return the instruction at the start of `code`, which lies at `addr` (`Arch.decode`).

    `skips` is set where it may nullify what follows.
    """
    insn = _decode(code, addr)
    return (
        evolve(insn, skips=4)
        if insn.body == insn.raw and away.nullifies(away.number(insn.raw))
        else insn
    )


# --- calls and powers


def code_address(addr: int, read: Callable[[int, int], bytes]) -> Entry:
    """Return the entry of a function from a function pointer.

    One with bit 1 set is the address of a pair, whose first word is the function's address. Any
    other pointer, and one whose pair cannot be read, is taken for the function's address itself.

    Args:
        addr: the pointer.
        read: (address, bytes) -> original bytes; raises GuestFault.
    """
    if not addr & 2:
        return Entry(addr=addr)
    try:
        return Entry(addr=away.number(read(addr & ~3, 4)) & ~3)
    except GuestFault:
        return Entry(addr=addr)


def enter(regs: Regs, function: int) -> None:
    """Set r19 to the linkage table of a function that is called by a pair's address (`Abi.enter`);
    do nothing where `function` is the address of code.
    """
    if function & 2:
        regs["r19"] = regs.word((function & ~3) + 4)


def returns_to(regs: Regs) -> int:
    """Return where the function returns to: r2 without its low bits, a privilege level."""
    return regs["r2"] & ~3


def return_to(regs: Regs, target: int) -> None:
    """Make the function return to `target`: write r2, with the privilege level that it has."""
    regs["r2"] = target | regs["r2"] & 3


LINKAGE = Linkage(get=returns_to, set=return_to, back=bytes.fromhex("e840c000") + NOP)  # BV r0(r2)
#: The last 32 bytes of a caller's frame are the callee's, and so are the words of the arguments
#: before them.
ABI = Abi(args=("r26", "r25", "r24", "r23"), returns=("r28", "r29"),
          results=Results(registers=0, memory=0, apart=True),
          stack_args=52, stack_align=64, reserve=48, upwards=True, enter=enter)
# BREAK 31 and 30, which Linux has for its own
PROBE, END = bytes.fromhex("03ff801f"), bytes.fromhex("03ff801e")

ARCHES = (
    Arch(
        package="kprobes.arch.parisc",
        name="parisc", bits=32, order=Order.BIG, insn_align=4, max_insn=4, regs=REGISTERS,
        traps=Traps(probe={4: PROBE}, end={0: END}), decode=decode, abi=ABI, linkage=LINKAGE,
        jump=Jump(size=4, encode=away.jump), out_of_line=OutOfLine(max_body=8, max_displaced=16),
        pointers=Pointers(code_address=code_address), files=Files(machines=((15, 32, "big"),)),
    ),
)
