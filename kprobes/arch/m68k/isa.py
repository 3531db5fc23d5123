"""Motorola 68000 family: `m68k`, big endian, the integer and floating-point instructions of the
68040 (and 68020 to 68060 code that it runs). Sections are those of the M68000 Family Programmer's
Reference Manual (M68000PM/AD).

An instruction's length follows from its opcode word and its effective addresses (section 2).
Operands relative to pc run out of line with a 32-bit base displacement (PC with index, full
format), which reaches everywhere; branches are simulated, or displaced; the condition codes are
registers of the guest as the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .._base import (
    Abi,
    Arch,
    Files,
    Frame,
    Insn,
    Jump,
    Linkage,
    Order,
    OutOfLine,
    Registers,
    Results,
    Traps,
    Walking,
)
from .._decode import DecodeTable, Row, as_it_is
from .._words import EXCEPTION
from . import displace as away
from .addressing import (
    ALTERABLE,
    ANY,
    CONTROL,
    DATA,
    DATA_ALTERABLE,
    LOAD_MANY,
    MEMORY_ALTERABLE,
    PC_DISPLACED,
    PC_INDEXED,
    STORE_MANY,
    UNDEFINED,
    A,
    D,
    OperandShape,
    half,
    mode,
)
from .simulate import bcc, bra, bsr, dbcc, fbcc, jmp, jsr, rtd, rts

REGISTERS = Registers(names=(*D, *A, "pc", "ccr", "fpcr", "fpsr"), pc="pc", sp="a7", flags="ccr",
                      aliases={"sp": "a7", "fp": "a6"}, widths={"ccr": 8})
# MOVE with two memory indirect operands: opcode word, twice an extension word and two long
# displacements
LONGEST = 22

# --- running elsewhere


def relocate(insn: Insn, to: int) -> bytes:
    """Return the instruction's body for address `to`, with its pc-relative operand where it was."""
    at = pc_operand(insn.raw)
    return insn.body if at is None or not insn.body else away.reaching(insn.raw, at, insn.addr, to)


def pc_operand(raw: bytes) -> int | None:
    """Return the offset of a pc-relative operand's extension word; None where there is none."""
    word = half(raw, 0)
    if mode(word & 0x3F) not in (PC_DISPLACED, PC_INDEXED):
        return None
    row = TABLE.find(word)
    if row is None or "e" not in row.fields:
        return None
    shape: Any = row.extra
    at, _, allowed = shape.place(raw, row.extract(word).get("z", 0))
    return None if allowed is None else at


# --- rows, section 8

MAY_TRAP = "may raise an exception, whose handler would see the slot's address"
PRIVILEGED = "changes privileged state"
ABSENT = "an instruction that the engine does not have"


def row(
    picture: str,
    name: str,
    ea: frozenset[int] | None = None,
    *,
    simulate: Callable[..., int] | None = None,
    reject: str = "",
    displace: Callable[..., bytes] | None = None,
    links: bool = False,
    falls_through: bool = True,
    **shape: Any,
) -> Row:
    """Make the decode row of an instruction with an operand.

    Args:
        picture: bits of the opcode word.
        name: the manual's mnemonic.
        ea: addressing modes allowed; None: there is no effective address.
        simulate: (regs, insn, **fields) -> next target; None: it runs out of line.
        reject: why it must not be probed; "": it may.
        displace: (insn, to, **fields) -> code that does the same at `to`; None: there is none.
        links: True where it keeps the next address.
        falls_through: False where it never goes on to the next address.
        shape: further attributes of OperandShape.
    """
    made = OperandShape(ea=ea, **shape)
    when = made.allows if ea is not None or made.relative else None
    return Row(picture, name, simulate=simulate, reject=reject, displace=displace, links=links,
               falls_through=falls_through, extra=made, when=when)


def arithmetic(
    line: str, name: str, source: frozenset[int], into: frozenset[int]
) -> tuple[Row, ...]:
    """Make the two rows of ADD, SUB, AND or OR: into a data register, and from one.

    Args:
        line: the first four bits of the opcode word.
        name: the manual's mnemonic.
        source: addressing modes of the operand that is read.
        into: addressing modes of the operand that is written.
    """
    return row(f"{line} --- 0zz eeeeee", name, source), row(f"{line} --- 1zz eeeeee", name, into)


ROWS = (
    # 0000: immediate operations, bits, MOVEP
    *(row(f"0000 {op} 0 zz eeeeee", f"{name}I", DATA_ALTERABLE, sized=True, words=0)
      for op, name in (("000", "OR"), ("001", "AND"), ("010", "SUB"), ("011", "ADD"),
                       ("101", "EOR"))),
    row("0000 110 0 zz eeeeee", "CMPI", DATA - {11}, sized=True),
    *(row(f"0000 {op} 0 00 111100", f"{name}I to CCR", words=2)
      for op, name in (("000", "OR"), ("001", "AND"), ("101", "EOR"))),
    *(row(f"0000 {op} 0 01 111100", f"{name}I to SR", words=2, reject=PRIVILEGED)
      for op, name in (("000", "OR"), ("001", "AND"), ("101", "EOR"))),
    row("0000 --- 1 00 eeeeee", "BTST", DATA, operand=2),
    *(row(f"0000 --- 1 {op} eeeeee", name, DATA_ALTERABLE)
      for op, name in (("01", "BCHG"), ("10", "BCLR"), ("11", "BSET"))),
    row("0000 --- 1 -- 001 ---", "MOVEP", words=2),
    row("0000 1000 00 eeeeee", "BTST", DATA - {11}, words=2),
    *(row(f"0000 1000 {op} eeeeee", name, DATA_ALTERABLE, words=2)
      for op, name in (("01", "BCHG"), ("10", "BCLR"), ("11", "BSET"))),
    *(row(f"0000 0{size} 0 11 eeeeee", "CHK2, CMP2", CONTROL, words=2, reject=MAY_TRAP) for size in ("00", "01", "10")),
    *(row(f"0000 1{size} 0 11 eeeeee", "CAS", MEMORY_ALTERABLE, words=2) for size in ("01", "10", "11")),
    *(row(f"0000 1{size} 0 11 111100", "CAS2", words=4) for size in ("10", "11")),
    *(row(f"0000 1110 {size} eeeeee", "MOVES", MEMORY_ALTERABLE, words=2, reject="privileged")
      for size in ("00", "01", "10")),
    # 0001 to 0011: MOVE
    row("0001 dddddd eeeeee", "MOVE.B", ANY - {1}, operand=2, move=True),
    row("0010 dddddd eeeeee", "MOVE.L", ANY, operand=4, move=True),
    row("0011 dddddd eeeeee", "MOVE.W", ANY, operand=2, move=True),
    row("0010 --- 001 eeeeee", "MOVEA.L", ANY, operand=4),
    row("0011 --- 001 eeeeee", "MOVEA.W", ANY, operand=2),
    # 0100: miscellaneous
    *(row(f"0100 {op} {size} eeeeee", name, DATA_ALTERABLE) for size in ("00", "01", "10")
      for op, name in (("0000", "NEGX"), ("0010", "CLR"), ("0100", "NEG"), ("0110", "NOT"))),
    row("0100 0000 11 eeeeee", "MOVE from SR", DATA_ALTERABLE),
    row("0100 0010 11 eeeeee", "MOVE from CCR", DATA_ALTERABLE),
    row("0100 0100 11 eeeeee", "MOVE to CCR", DATA, operand=2),
    row("0100 0110 11 eeeeee", "MOVE to SR", DATA, operand=2, reject=PRIVILEGED),
    row("0100 1000 00 eeeeee", "NBCD", DATA_ALTERABLE),
    row("0100 1000 00 001 ---", "LINK.L", words=4),
    row("0100 1000 01 eeeeee", "PEA", CONTROL, data=0),
    row("0100 1000 01 000 ---", "SWAP"),
    row("0100 1000 01 001 ---", "BKPT", reject=EXCEPTION),
    row("0100 1000 1- eeeeee", "MOVEM to memory", STORE_MANY, words=2),
    row("0100 1000 1- 000 ---", "EXT"),
    row("0100 1001 11 000 ---", "EXTB"),
    row("0100 1010 00 eeeeee", "TST.B", DATA, operand=2),
    row("0100 1010 01 eeeeee", "TST.W", ANY, operand=2),
    row("0100 1010 10 eeeeee", "TST.L", ANY, operand=4),
    row("0100 1010 11 eeeeee", "TAS", DATA_ALTERABLE),
    row("0100 1010 11 111100", "ILLEGAL", reject=EXCEPTION),
    row("0100 1100 00 eeeeee", "MUL.L", DATA, words=2, operand=4),
    row("0100 1100 01 eeeeee", "DIV.L", DATA, words=2, operand=4),
    row("0100 1100 1- eeeeee", "MOVEM from memory", LOAD_MANY, words=2, data=64),
    row("0100 1110 0100 ----", "TRAP", reject=EXCEPTION),
    row("0100 1110 0101 0---", "LINK.W", words=2),
    row("0100 1110 0101 1---", "UNLK"),
    row("0100 1110 0110 ----", "MOVE USP", reject="privileged"),
    row("0100 1110 0111 0000", "RESET", reject=PRIVILEGED),
    row("0100 1110 0111 0001", "NOP"),
    row("0100 1110 0111 0010", "STOP", words=2, reject="waits for an interrupt, and changes privileged state"),
    row("0100 1110 0111 0011", "RTE", reject="returns from an exception"),
    row("0100 1110 0111 0100", "RTD", words=2, simulate=rtd, displace=as_it_is, falls_through=False),
    row("0100 1110 0111 0101", "RTS", simulate=rts, displace=as_it_is, falls_through=False),
    row("0100 1110 0111 0110", "TRAPV", reject=MAY_TRAP),
    row("0100 1110 0111 0111", "RTR", reject=ABSENT),
    row("0100 1110 0111 101-", "MOVEC", words=2, reject=PRIVILEGED),
    row("0100 1110 10 eeeeee", "JSR", CONTROL, data=0, simulate=jsr, displace=away.jsr, links=True),
    row("0100 1110 11 eeeeee", "JMP", CONTROL, data=0, simulate=jmp, displace=away.jmp, falls_through=False,
        indirect=True),
    row("0100 --- 100 eeeeee", "CHK.L", DATA, operand=4, reject=MAY_TRAP),
    row("0100 --- 110 eeeeee", "CHK.W", DATA, operand=2, reject=MAY_TRAP),
    row("0100 --- 111 eeeeee", "LEA", CONTROL, data=0),
    # 0101
    row("0101 --- 0zz eeeeee", "ADDQ", ALTERABLE),
    row("0101 --- 1zz eeeeee", "SUBQ", ALTERABLE),
    row("0101 ---- 11 eeeeee", "Scc", DATA_ALTERABLE),
    row("0101 cccc 11 001 rrr", "DBcc", words=2, relative=True, simulate=dbcc, displace=away.dbcc),
    row("0101 ---- 11 111 010", "TRAPcc.W", words=2, reject=MAY_TRAP),
    row("0101 ---- 11 111 011", "TRAPcc.L", words=4, reject=MAY_TRAP),
    row("0101 ---- 11 111 100", "TRAPcc", reject=MAY_TRAP),
    # 0110: branches, with displacements of 8, 16 and 32 bits
    *(row(f"0110 {condition} {size}", name, words=words, relative=True, simulate=simulate, displace=displace,
          links=name == "BSR", falls_through=name != "BRA")
      for size, words in (("ssssssss", 0), ("00000000", 2), ("11111111", 4))
      for condition, name, simulate, displace in (("cccc", "Bcc", bcc, away.bcc), ("0000", "BRA", bra, away.bra),
                                                  ("0001", "BSR", bsr, away.bsr))),
    row("0111 --- 0 --------", "MOVEQ"),
    # 1000, 1001, 1011 to 1101: arithmetic
    *arithmetic("1000", "OR", DATA, MEMORY_ALTERABLE), *arithmetic("1001", "SUB", ANY, MEMORY_ALTERABLE),
    *arithmetic("1100", "AND", DATA, MEMORY_ALTERABLE), *arithmetic("1101", "ADD", ANY, MEMORY_ALTERABLE),
    row("1011 --- 0zz eeeeee", "CMP", ANY),
    row("1011 --- 1zz eeeeee", "EOR", DATA_ALTERABLE),
    row("1011 --- 1-- 001 ---", "CMPM"),
    *(row(f"{line} --- {op} 11 eeeeee", name, DATA, operand=2)
      for line, op, name in (("1000", "0", "DIVU"), ("1000", "1", "DIVS"), ("1100", "0", "MULU"),
                             ("1100", "1", "MULS"))),
    *(row(f"{line} --- {op} 11 eeeeee", f"{name}A.{size}", ANY, operand=operand)
      for op, size, operand in (("0", "W", 2), ("1", "L", 4))
      for line, name in (("1001", "SUB"), ("1011", "CMP"), ("1101", "ADD"))),
    *(row(f"{line} --- 1 {size} 00----", f"{name}X") for size in ("00", "01", "10")
      for line, name in (("1001", "SUB"), ("1101", "ADD"))),
    row("1000 --- 10000 ----", "SBCD"),
    row("1000 --- 10100 ----", "PACK", words=2, reject=ABSENT),
    row("1000 --- 11000 ----", "UNPK", words=2, reject=ABSENT),
    row("1100 --- 10000 ----", "ABCD"),
    row("1100 --- 10100 ----", "EXG"),
    row("1100 --- 11000 1---", "EXG"),
    # 1110: shifts, bit fields
    *(row(f"1110 ---- {size} ------", "shift") for size in ("00", "01", "10")),
    row("1110 0--- 11 eeeeee", "shift in memory", MEMORY_ALTERABLE),
    *(row(f"1110 1{op} 11 eeeeee", name, (CONTROL if op in ("000", "001", "011", "101")
                                          else CONTROL & ALTERABLE) | {0}, words=2, data=5)
      for op, name in (("000", "BFTST"), ("001", "BFEXTU"), ("010", "BFCHG"), ("011", "BFEXTS"),
                       ("100", "BFCLR"),
                       ("101", "BFFFO"), ("110", "BFSET"), ("111", "BFINS"))),
    # 1010 and 1111
    row("1010 ------------", "line A", reject=EXCEPTION),
    row("1111 ------------", "line F", reject=EXCEPTION),
    row("1111 001 000 eeeeee", "FPU", ANY, floating=True),
    row("1111 001 001 eeeeee", "FScc", DATA_ALTERABLE, words=2, predicate=True),
    row("1111 001 001 001 ---", "FDBcc", words=4, reject=ABSENT),
    row("1111 001 001 111 010", "FTRAPcc.W", words=4, reject=MAY_TRAP),
    row("1111 001 001 111 011", "FTRAPcc.L", words=6, reject=MAY_TRAP),
    row("1111 001 001 111 100", "FTRAPcc", words=2, reject=MAY_TRAP),
    row("1111 001 010 0ccccc", "FBcc.W", words=2, relative=True, simulate=fbcc, displace=away.fbcc),
    row("1111 001 011 0ccccc", "FBcc.L", words=4, relative=True, simulate=fbcc, displace=away.fbcc),
    row("1111 001 10- eeeeee", "FSAVE, FRESTORE", MEMORY_ALTERABLE | CONTROL, reject="privileged"),
    row("1111 0110 000 -----", "MOVE16", words=4),
    row("1111 0110 00100 ---", "MOVE16", words=2),
)
TABLE = DecodeTable(ROWS)


def decode(code: bytes, addr: int) -> Insn:
    """Return the instruction at the start of `code`, at address `addr` (`Arch.decode`); one that is
    refused where no instruction has this encoding, or its bytes are not all there.
    """
    if len(code) < 2:
        return Insn.truncated(addr, code)
    word = half(code, 0)
    found = TABLE.find(word)
    if found is None:
        return Insn.undefined(addr, code[:2], UNDEFINED)
    return found.make(Insn(addr=addr, raw=bytes(code[:LONGEST]), name=found.name), word, b"")


# --- powers

# SUBQ.L #4,A7 (no flags); RTS
LINKAGE = Linkage.on_stack(4, back=bytes.fromhex("598f4e75"),
                           frame=Frame(register="a6", address=4, next=0))


ILLEGAL = bytes.fromhex("4afc")
#: LINK A6; MOVEM.L list, -(A7)
OPENS = re.compile(rb"\x4e\x56[\x80-\xff][\s\S]|\x4e\x56\0\0|\x48\xe7")

M68K = Arch(
    package="kprobes.arch.m68k",
    name="m68k", bits=32, order=Order.BIG, insn_align=2, max_insn=LONGEST, regs=REGISTERS,
    traps=Traps(probe={2: ILLEGAL}, end={0: ILLEGAL}),
    decode=decode, abi=Abi(args=(), returns=("d0", "d1"),
                           results=Results(registers=0, memory=0, apart=True),
                               stack_args=4, stack_align=4), linkage=LINKAGE,
    jump=Jump(size=6, encode=away.jump),
    out_of_line=OutOfLine(relocate=relocate, max_body=LONGEST + 4, max_displaced=14),
    walking=Walking(opens={0: OPENS}), files=Files(machines=((4, 32, "big"),)),
)

ARCHES = (M68K,)
