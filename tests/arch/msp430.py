"""MSP430 (not X), written from docs/adding-an-architecture.md and TI's slau049, chapter 3: a 16-bit instruction set.

No engine here runs it, so the toy engine does, with `execute` for what has no simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from attrs import evolve

from kprobes import OutOfReach
from kprobes.arch._base import Abi, Arch, Insn, Jump, Linkage, Order, OutOfLine, Registers, Traps, signed
from kprobes.arch._decode import DecodeTable, Row, as_it_is
from kprobes.regs import Regs

PC, SP, SR, CG = 0, 1, 2, 3
NAMES = ("pc", "sp", "sr", *(f"r{n}" for n in range(3, 16)))
REGISTERS = Registers(names=NAMES, pc="pc", sp="sp", flags="sr", aliases={"r0": "pc", "r1": "sp", "r2": "sr"})
CARRY, ZERO, NEGATIVE, OVERFLOW = 1, 2, 4, 0x100
CLR_B_R3 = bytes.fromhex("4343")  # debuggers' breakpoint
BR, PUSH = 0x4030, 0x1230  # with an immediate word
RESERVED = "the instruction set has no such instruction"
READS_PC = "reads or changes pc"


def pair(first: int, second: int) -> bytes:
    """Two words."""
    return first.to_bytes(2, "little") + (second & 0xFFFF).to_bytes(2, "little")


def goes(frm: int, to: int) -> bytes:
    """BR #to: it reaches every address, and changes no flag."""
    if to & 1:
        raise OutOfReach("instructions are at even addresses", address=frm, hint="give an even one")
    return pair(BR, to)


# --- operands


def takes_word(s: int, a: int) -> bool:
    """Whether a source operand has a word of its own behind the instruction: x(Rn), &x, #x."""
    return (a == 1 and s != CG) or (a == 3 and s == PC)


def words_of(insn: Insn) -> Iterator[tuple[int, int]]:
    """(word, its address at home) behind the first."""
    for at in range(2, len(insn.raw), 2):
        yield int.from_bytes(insn.raw[at : at + 2], "little"), insn.addr + at


def read(regs: Regs, insn: Insn, s: int, a: int, size: int, rest: Iterator[tuple[int, int]]) -> tuple[int, int | None]:
    """(a source operand, its address or None)"""
    if s == CG or (s == SR and a > 1):
        return ((0, 1, 2, -1) if s == CG else (0, 0, 4, 8))[a] & (1 << 8 * size) - 1, None
    if a == 0:
        return regs[NAMES[s]] & (1 << 8 * size) - 1, None
    if a == 3 and s == PC:
        return next(rest)[0], None
    at = regs[NAMES[s]]
    if a == 1:
        at = place(regs, s, rest)
    if a == 3:
        regs[NAMES[s]] = at + (size if s != SP else 2)
    return regs.word(at, size), at


def place(regs: Regs, register: int, rest: Iterator[tuple[int, int]]) -> int:
    """The address of x(Rn), &x or x(PC)."""
    word, here = next(rest)
    base = 0 if register == SR else here if register == PC else regs[NAMES[register]]
    return base + word & 0xFFFF


# --- what must happen at home


TAKEN: dict[int, tuple[str, Callable[[int], bool]]] = {
    0: ("JNE", lambda sr: not sr & ZERO), 1: ("JEQ", lambda sr: bool(sr & ZERO)),
    2: ("JNC", lambda sr: not sr & CARRY), 3: ("JC", lambda sr: bool(sr & CARRY)),
    4: ("JN", lambda sr: bool(sr & NEGATIVE)), 5: ("JGE", lambda sr: bool(sr & NEGATIVE) == bool(sr & OVERFLOW)),
    6: ("JL", lambda sr: bool(sr & NEGATIVE) != bool(sr & OVERFLOW)), 7: ("JMP", lambda sr: True),
}


def jump_target(insn: Insn, o: int, **_: int) -> Insn:
    return evolve(insn, target=insn.addr + 2 + 2 * signed(o, 10) & 0xFFFF)


def jumps(taken: Callable[[int], bool], regs: Regs, insn: Insn, **_: int) -> int:
    assert insn.target is not None
    return insn.target if taken(regs["sr"]) else insn.next


def jump_elsewhere(c: int, insn: Insn, to: int, **_: int) -> bytes:
    """Jcc +2; JMP +4; BR #target."""
    assert insn.target is not None
    br = goes(to, insn.target)
    return br if c == 7 else pair(0x2001 | c << 10, 0x3C02) + br


def call(regs: Regs, insn: Insn, s: int, a: int) -> int:
    target, _ = read(regs, insn, s, a, 2, words_of(insn))
    regs.set_word(regs.sp - 2, insn.next)
    regs.sp -= 2
    return target


def call_facts(insn: Insn, s: int, a: int) -> Insn:
    if s == PC and a == 3:
        return evolve(insn, target=int.from_bytes(insn.raw[2:], "little"))
    return evolve(insn, reject=READS_PC, body=b"") if s == PC else insn


def call_elsewhere(insn: Insn, to: int, s: int, a: int) -> bytes:
    """PUSH #next; BR #target."""
    if insn.target is None:
        raise OutOfReach("only a direct call is done elsewhere", address=insn.addr, hint="leave it")
    return pair(PUSH, insn.next) + goes(to + 4, insn.target)


def move_to_pc(regs: Regs, insn: Insn, s: int, a: int) -> int:
    return read(regs, insn, s, a, 2, words_of(insn))[0]


def move_facts(insn: Insn, s: int, a: int) -> Insn:
    if s == PC and a == 3:
        return evolve(insn, target=int.from_bytes(insn.raw[2:], "little"))
    return evolve(insn, reject=READS_PC, body=b"") if s == PC else evolve(insn, indirect=True)


# --- what runs anywhere, but for words that count from pc


def one_operand(insn: Insn, s: int, a: int, **_: int) -> Insn:
    if s == PC:
        if a == 1:
            return evolve(insn, operand=symbolic(insn, 2), data=2)
        push = insn.name == "PUSH" and a == 3
        return insn if push else evolve(insn, reject=READS_PC, body=b"")
    return insn


def two_operands(insn: Insn, s: int, e: int, a: int, d: int, **_: int) -> Insn:
    if (s == PC and a in (0, 2)) or (d == PC and not e):
        return evolve(insn, reject=READS_PC, body=b"")
    if s == PC and a == 1:
        return evolve(insn, operand=symbolic(insn, 2), data=2)
    if d == PC:
        return evolve(insn, operand=symbolic(insn, len(insn.raw) - 2), data=2)
    return insn


def symbolic(insn: Insn, at: int) -> int:
    """The address that a word at this offset means."""
    return int.from_bytes(insn.raw[at : at + 2], "little") + insn.addr + at & 0xFFFF


def relocate(insn: Insn, to: int) -> bytes:
    """Words that count from pc count from elsewhere."""
    if insn.operand is None:
        return insn.body
    word = int.from_bytes(insn.raw[:2], "little")
    single = word >> 10 == 4
    moved = [at for at, ours in ((2, word >> (0 if single else 8) & 15 == PC and word >> 4 & 3 == 1),
                                 (len(insn.raw) - 2, not single and word & 0x8F == 0x80)) if ours]
    body = bytearray(insn.raw)
    for at in {*moved}:
        value = int.from_bytes(body[at : at + 2], "little") + insn.addr - to & 0xFFFF
        body[at : at + 2] = value.to_bytes(2, "little")
    return bytes(body)


SINGLE = {"RRC": "b", "SWPB": "0", "RRA": "b", "SXT": "0", "PUSH": "b"}  #: name -> its bit for bytes
TABLE = DecodeTable([
    Row("0100 0011 0100 0011", "BREAK", reject="a breakpoint"),
    *(Row(f"001 {c:03b} oooooooooo", name, partial(jumps, taken), extra=jump_target, displace=partial(jump_elsewhere, c),
          falls_through=name != "JMP") for c, (name, taken) in TAKEN.items()),
    *(Row(f"000100 {n:03b} {bytewide} aa ssss", name, extra=one_operand)
      for n, (name, bytewide) in enumerate(SINGLE.items())),
    Row("000100 101 0 aa ssss", "CALL", call, extra=call_facts, displace=call_elsewhere, links=True),
    Row("0001001100000000", "RETI", reject="returns from an interrupt"),
    Row("0100 ssss 0 0 aa 0000", "BR", move_to_pc, extra=move_facts, displace=as_it_is, falls_through=False),
    Row("0100 0001 0 0 11 0000", "RET", partial(move_to_pc, s=SP, a=3), displace=as_it_is, falls_through=False),
    Row("oooo ssss e b aa dddd", "insn", extra=two_operands, when=lambda o, **_: o >= 4),
])


def decode(code: bytes, addr: int) -> Insn:
    if len(code) < 2:
        return Insn.truncated(addr, code)
    word = int.from_bytes(code[:2], "little")
    if TABLE.find(word) is None:
        return Insn.undefined(addr, code[:2], RESERVED)
    size = 2
    if word < 0x1300:
        size += 2 * takes_word(word & 15, word >> 4 & 3)
    elif word >= 0x4000:
        size += 2 * takes_word(word >> 8 & 15, word >> 4 & 3) + 2 * (word >> 7 & 1)
    raw = bytes(code[:size])
    if len(raw) < size:
        return Insn.truncated(addr, raw)
    return TABLE.decode(word, Insn(addr=addr, raw=raw, name="insn"))


MSP430 = Arch(
    name="msp430", bits=16, order=Order.LITTLE, insn_align=2, max_insn=6, regs=REGISTERS, decode=decode,
    traps=Traps(probe={2: CLR_B_R3}, end={0: CLR_B_R3}),
    abi=Abi(args=("r12", "r13", "r14", "r15"), returns=("r12", "r13"), stack_args=2, stack_align=2),
    # BR -2(sp): where the word still stands that RET has popped
    linkage=Linkage.on_stack(2, back=pair(0x4110, 0xFFFE)), jump=Jump(size=4, encode=goes),
    out_of_line=OutOfLine(relocate=relocate, max_displaced=8),
)


# --- what the toy engine is told


def flags(regs: Regs, result: int, carry: bool, overflow: bool, size: int) -> None:
    top = 1 << 8 * size - 1
    codes = CARRY * carry | ZERO * (not result) | NEGATIVE * bool(result & top) | OVERFLOW * overflow
    regs["sr"] = regs["sr"] & ~(CARRY | ZERO | NEGATIVE | OVERFLOW) | codes


def added(regs: Regs, one: int, two: int, carry: int, size: int) -> int:
    mask, top = (1 << 8 * size) - 1, 1 << 8 * size - 1
    total = one + two + carry
    result = total & mask
    flags(regs, result, total > mask, bool((one ^ result) & (two ^ result) & top), size)
    return result


def execute(regs: Regs, insn: Insn) -> None:
    """The effect of instructions that move, compute and push."""
    word, rest = int.from_bytes(insn.raw[:2], "little"), words_of(insn)
    size, mask = (1, 0xFF) if word & 0x40 else (2, 0xFFFF)
    if word < 0x2000:
        source, at = read(regs, insn, word & 15, word >> 4 & 3, size, rest)
        if word >> 7 & 7 == 4:
            regs.set_word(regs.sp - 2, source)
            regs.sp -= 2
            return
        assert word >> 7 & 7 == 1, "of the others only SWPB is needed"
        put(regs, word & 15, at, (source >> 8 | source << 8) & mask, size)
        return
    op, d = word >> 12, word & 15
    source, _ = read(regs, insn, word >> 8 & 15, word >> 4 & 3, size, rest)
    at = place(regs, d, rest) if word & 0x80 else None
    old = regs.word(at, size) if at is not None else regs[NAMES[d]] & mask
    put(regs, d, at, effect(regs, op, source, old, size), size, write=op not in (9, 11))


def effect(regs: Regs, op: int, source: int, old: int, size: int) -> int:
    """MOV, ADD, SUB, CMP, AND, XOR, BIS, BIC, BIT."""
    mask = (1 << 8 * size) - 1
    simple: dict[int, Any] = {4: source, 12: old & ~source, 13: old | source}
    if op in simple:
        return int(simple[op])
    if op == 5:
        return added(regs, old, source, 0, size)
    if op in (8, 9):
        return added(regs, old, ~source & mask, 1, size)
    assert op in (11, 14, 15), f"nothing here needs operation {op}"
    result = old ^ source if op == 14 else old & source
    flags(regs, result, bool(result), op == 14 and bool(old & source & 1 << 8 * size - 1), size)
    return result


def put(regs: Regs, register: int, at: int | None, value: int, size: int, write: bool = True) -> None:
    if not write:
        return
    if at is None:
        regs[NAMES[register]] = value
    else:
        regs.set_word(at, value, size)
