"""z/Architecture, 64 bit, big endian: `s390x`.

Functions with `regs` and `insn` simulate, where they are no helpers: they return the target to go
to next. Functions that begin with `insn` return it with facts that depend on fields. Parameters of
one letter are fields of the row's picture: r first register, s register with the target (0: no
branch), t another register, m mask of conditions, i displacement, j immediate; d, b and x
displacement, base and index of an operand in storage.

Formats and names are those of z/Architecture Principles of Operation (SA22-7832), chapters 5
(program execution), 7 (general instructions) and 10 (control instructions). An encoding without a
row is straight line: it runs out of line as it is, and where it is undefined it raises its
exception there. Relative operands keep their place by a new displacement; branches are simulated,
in every addressing mode, or displaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from attrs import evolve

from ...errors import GuestFault
from ...regs import Regs
from .._base import (
    Abi,
    Arch,
    Executing,
    Files,
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
from .._decode import DecodeTable, Row, as_it_is
from .._insn import COMPUTED, Annul, Insn
from .._words import EXCEPTION, PRIVILEGED, TRANSACTION
from . import displace as away
from .displace import jump
from .execute import executions
from .leaves import leaves

MASK = (1 << 64) - 1
R = tuple(f"r{n}" for n in range(16))
A = tuple(f"a{n}" for n in range(16))
#: A vector register is two doublewords; the high one of v0 to v15 is a floating-point register.
F, LOW = tuple(f"f{n}" for n in range(32)), tuple(f"v{n}_low" for n in range(32))

REGISTERS = Registers(
    names=(*R, "pc", "pswm", *A, *F, *LOW, "fpc"), pc="pc", sp="r15", flags="pswm",
    aliases={"sp": "r15", "lr": "r14", "pswa": "pc",
             **{f"v{n}_high": name for n, name in enumerate(F)}},
    widths={**dict.fromkeys(A, 32), "fpc": 32}, reals=frozenset(F),
)  # fmt: skip

# --- the PSW's mask (chapter 4, "Program-Status-Word Format"): bit n of the manual is bit 63 - n here


def condition(regs: Regs, m: int) -> bool:
    """Whether the mask `m` selects the condition code that the PSW has."""
    return bool(m >> 3 - (regs["pswm"] >> 44 & 3) & 1)


def mode(regs: Regs) -> int:
    """Return the addressing mode: 0 24-bit, 1 31-bit, 3 64-bit."""
    return regs["pswm"] >> 31 & 3


def address(regs: Regs, value: int) -> int:
    """Return a number as an address: cut as the addressing mode does."""
    return (
        value & MASK if not value >> 24 else value & (0xFFFFFF, 0x7FFFFFFF, MASK, MASK)[mode(regs)]
    )


def storage(regs: Regs, d: int, b: int, x: int = 0) -> int:
    """Return the address of an operand in storage.

    Args:
        regs: the guest's registers.
        d: displacement.
        b: number of the base register; 0: none.
        x: number of the index register; 0: none.
    """
    return address(regs, (regs[R[b]] if b else 0) + (regs[R[x]] if x else 0) + d)


def save(regs: Regs, insn: Insn, r: int) -> None:
    """Put the address of the next instruction into register `r`, as BRANCH AND SAVE does.

    In 31-bit addressing the mode goes with it, in bit 31. Outside 64-bit addressing the upper half
    of the register stays.
    """
    regs[R[r]] = (
        insn.next & MASK
        if mode(regs) == 3
        else regs[R[r]] >> 32 << 32 | mode(regs) << 31 | insn.next
    )


def link(regs: Regs, insn: Insn, r: int) -> None:
    """Put the address of the next instruction into register `r`, as BRANCH AND LINK does.

    In 24-bit addressing instruction length, condition code and program mask go with it.
    """
    save(regs, insn, r)
    if mode(regs) == 0:
        regs[R[r]] |= insn.size // 2 << 30 | (regs["pswm"] >> 40 & 0x3F) << 24


# --- facts of a row, as `extra`


def relative(fact: str, bits: int, insn: Insn, i: int, **_: int) -> Insn:
    """Return the instruction with a fact from its relative field: a target or an operand.

    Args:
        fact: "target" (of a branch) or "operand" (which relocate() keeps where it is).
        bits: of the field.
        insn: the instruction.
        i: the field, which counts halfwords.
    """
    changes: dict[str, Any] = {fact: insn.addr + 2 * signed(i, bits) & MASK}
    return evolve(insn, **changes)


near, far = partial(relative, "target", 16), partial(relative, "target", 32)
operand = partial(relative, "operand", 32)


def access(size: int, insn: Insn, i: int, **_: int) -> Insn:
    """Return the instruction with its relative operand of `size` bytes in storage."""
    return evolve(operand(insn, i), data=size)


def executing(insn: Insn, i: int | None = None, **_: int) -> Insn:
    """Return an EXECUTE with the address of the instruction that it executes.

    Args:
        insn: the EXECUTE.
        i: halfwords from it to the instruction; None: the instruction is an operand in storage,
            whose address is known only when it is executed (`executes` becomes COMPUTED).
    """
    return (
        evolve(insn, executes=COMPUTED)
        if i is None
        else evolve(target := operand(insn, i), executes=target.operand)
    )


def computed(insn: Insn, **fields: int) -> Insn:
    """Return a jump to a register's contents or an operand's address with its facts.

    It may stay in the function, unless it goes through r14 (a return) or no register, or its mask
    is 0.
    """
    back = fields.get("s") in (0, 14) or (
        fields.get("b") == 14 and not fields.get("x", 0) and not fields["d"]
    )
    return evolve(insn, indirect=fields.get("m") != 0 and not back)


def on_mask(extra: Callable[..., Insn], insn: Insn, m: int, **fields: int) -> Insn:
    """Return a branch on a mask with the facts of `extra`; with all bits of the mask it always
    jumps.

    Args:
        extra: (insn, **fields) -> the instruction with its target.
        insn: the branch.
        m: mask of condition codes.
    """
    return evolve(extra(insn, m=m, **fields), falls_through=m != 15 or fields.get("s") == 0)


def taken(
    regs: Regs, insn: Insn, s: int | None = None, d: int = 0, b: int = 0, x: int = 0, **_: int
) -> int:
    """Return the target of a branch: relative, the contents of register `s`, or an operand's
    address.

    Args:
        regs: the guest's registers.
        insn: the branch; its own target is returned if it has one.
        s: number of the register; None: the target is an operand's address.
        d: displacement of the operand.
        b: number of its base register.
        x: number of its index register.
    """
    if insn.target is not None:
        return insn.target
    return storage(regs, d, b, x) if s is None else address(regs, regs[R[s]])


# --- simulations, named after the manual's instructions (chapter 7)


def on_condition(regs: Regs, insn: Insn, m: int, s: int | None = None, **fields: int) -> int:
    """Simulate BRANCH ON CONDITION: return the target where mask `m` selects the condition code,
    else, and with `s` 0, the next address.
    """
    return taken(regs, insn, s, **fields) if s != 0 and condition(regs, m) else insn.next


def and_save(
    keep: Callable[[Regs, Insn, int], None],
    regs: Regs,
    insn: Insn,
    r: int,
    s: int | None = None,
    **fields: int,
) -> int:
    """Simulate a branch that keeps the next address; with `s` 0 it does not branch.

    Args:
        keep: (regs, insn, r) puts the next address into register r.
        regs: the guest's registers.
        insn: the instruction.
        r: register that gets the next address.
        s: register with the target; None: an operand's address is the target.
    """
    # first: the operand may be the first register
    target = insn.next if s == 0 else taken(regs, insn, s, **fields)
    keep(regs, insn, r)
    return target


def on_count(bits: int, regs: Regs, insn: Insn, r: int, s: int | None = None, **fields: int) -> int:
    """Simulate BRANCH ON COUNT: count register `r` down; return the target unless it is 0 then,
    else the next address.

    Args:
        bits: of the register that count.
        regs: the guest's registers.
        insn: the instruction.
        r: the register.
        s: register with the target, 0: no branch; None: an operand's address is the target.
    """
    target = insn.next if s == 0 else taken(regs, insn, s, **fields)
    value = regs[R[r]] - 1 & (1 << bits) - 1
    regs[R[r]] = regs[R[r]] >> bits << bits | value
    return target if value else insn.next


def on_count_high(regs: Regs, insn: Insn, r: int, **_: int) -> int:
    """Simulate BRCTH: count the high half of register `r` down; return the target unless it is 0
    then, else the next address.
    """
    regs[R[r]] = value = regs[R[r]] - (1 << 32) & MASK
    return taken(regs, insn) if value >> 32 else insn.next


def on_index(bits: int, high: bool, regs: Regs, insn: Insn, r: int, t: int, **fields: int) -> int:
    """Simulate BRANCH ON INDEX: add register `t` to register `r`, and compare the sum with a limit;
    return the target or the next address.

    The limit is the odd register of the pair at `t`, as it was before.

    Args:
        bits: of the registers that count.
        high: True: it branches where the sum is higher; False: where it is lower or equal.
    """
    target = taken(regs, insn, **fields)
    limit = signed(regs[R[t | 1]], bits)  # the odd register of the pair, or the increment itself
    total = regs[R[r]] + regs[R[t]] & (1 << bits) - 1
    regs[R[r]] = regs[R[r]] >> bits << bits | total
    return target if (signed(total, bits) > limit) == high else insn.next


def compare(
    bits: int,
    arithmetic: bool,
    regs: Regs,
    insn: Insn,
    r: int,
    m: int,
    t: int | None = None,
    j: int = 0,
    **fields: int,
) -> int:
    """Simulate COMPARE AND BRANCH of register `r` with register `t`, or with the immediate `j`.

    Args:
        bits: that are compared.
        arithmetic: True: the values are signed.
        regs: the guest's registers.
        insn: the instruction.
        r: number of the first register.
        m: mask: 8 branch where equal, 4 where the first is lower, 2 where it is higher.
        t: number of the second register; None: `j` is compared.
        j: the immediate.
    """
    cut = signed if arithmetic else lambda value, width: value & (1 << width) - 1
    first, second = cut(regs[R[r]], bits), cut(j, 8) if t is None else cut(regs[R[t]], bits)
    condition = 2
    if first == second:
        condition = 8
    elif first < second:
        condition = 4
    return taken(regs, insn, **fields) if m & condition else insn.next


def indirect_on_condition(regs: Regs, insn: Insn, m: int, **fields: int) -> int:
    """Simulate BRANCH INDIRECT ON CONDITION: return the address that the operand in storage holds
    where `m` selects the condition code, else the next address.
    """
    return address(regs, regs.word(storage(regs, **fields))) if condition(regs, m) else insn.next


def stretched(
    simulate: Callable[..., int], regs: Regs, insn: Insn, h: int, d: int, **fields: int
) -> int:
    """Simulate an instruction whose displacement has 20 bits; return the next target.

    Args:
        simulate: simulates it; gets the displacement as `d`, with its sign.
        h: the displacement's upper 8 bits.
        d: its lower 12 bits.
    """
    return simulate(regs, insn, d=signed(h << 12 | d, 20), **fields)


hint = partial(on_condition, m=0)  # nothing happens


def executed(regs: Regs, insn: Insn) -> int | None:
    """Return the address of the instruction that an EXECUTE executes (`Executing.target`).

    Returns:
        None for any other instruction.
    """
    word = int.from_bytes(insn.raw, "big")
    return (
        storage(regs, word & 0xFFF, word >> 12 & 15, word >> 16 & 15)
        if insn.executes == COMPUTED
        else insn.executes
    )


def instruction(regs: Regs, insn: Insn) -> Insn | None:
    """Return the instruction that an EXECUTE executes, as a register's last byte changes it
    (`Executing.instruction`).

    Returns:
        None: `insn` is no EXECUTE, or its target cannot be read or executed.
    """
    at = executed(regs, insn)
    machine = cast(Any, regs.machine)
    if at is None or at & 1 or not machine.executable(at):
        return None
    r = insn.raw[1] >> 4
    try:
        first = regs.read(at, 2)
        second = first[1] | (regs[R[r]] & 0xFF if r else 0)
        code = bytes([first[0], second]) + regs.read(at + 2, length(first[0]) - 2)
    except GuestFault:
        return None
    return decode(code, at)


def execute(regs: Regs, insn: Insn, r: int, **_: int) -> int:
    """Simulate an EXECUTE whose target branches; return where that goes, as an Annul.

    For any other EXECUTE, one whose target cannot be read included, nothing is changed and the next
    address is returned: the EXECUTE itself, its body, is then executed out of line.

    Args:
        regs: the guest's registers.
        insn: the EXECUTE.
        r: not used: instruction() reads the register.
    """
    target = instruction(regs, insn)
    if target is None:  # the body fails likewise
        return insn.next
    word = int.from_bytes(target.raw, "big")
    row = TABLES[target.size].find(word)
    if row is None or row.simulate is None or row.simulate is execute:
        return insn.next
    # what is next is next to EXECUTE; its relative address is counted from itself
    target = evolve(target, addr=insn.next - target.size)
    return Annul(row.simulate(regs, target, **row.extract(word)))


PSW = "changes the PSW, which the trap after it depends on"

#: Instructions with nothing but an opcode of interest: reason -> names and opcodes (two bytes, or
#: one)
REFUSED = {
    "raises an operation exception": {"ILLEGAL": 0x00},
    EXCEPTION: {"SVC": 0x0A, "TRAP2": 0x01FF, "TRAP4": 0xB2FF, "MC": 0xAF, "DIAG": 0x83},
    "changes the addressing mode": {"BSM": 0x0B, "BASSM": 0x0C, "SAM24": 0x010C, "SAM31": 0x010D,
                                    "SAM64": 0x010E},
    PSW: {"SSM": 0x80, "LPSW": 0x82, "STNSM": 0xAC, "STOSM": 0xAD, "LPSWE": 0xB2B2, "SPKA": 0xB20A,
          "SAC": 0xB219, "SACF": 0xB279},
    PRIVILEGED: {"LCTL": 0xB7, "SIGP": 0xAE, "PTLB": 0xB20D, "SPX": 0xB210, "SIE": 0xB214,
                 "IPTE": 0xB221, "SSAR": 0xB225, "SSKE": 0xB22B, "PALB": 0xB248, "CSP": 0xB250,
                 "CSPG": 0xB98A, "IDTE": 0xB98E, "CRDTE": 0xB98F, "SSAIR": 0xB99F, "PFMF": 0xB9AF,
                 "LASP": 0xE500},
    "branches through the linkage stack or into another address space": {
        "PR": 0x0101, "PC": 0xB218, "PT": 0xB228, "PTI": 0xB99E, "BAKR": 0xB240, "BSA": 0xB25A, "BSG": 0xB258,
        "RP": 0xB277},
    TRANSACTION: {"TBEGIN": 0xE560, "TBEGINC": 0xE561, "TEND": 0xB2F8, "TABORT": 0xB2FC},
}  # fmt: skip

#: Relative operands (RIL format): their bytes (0: the address alone counts) -> first byte -> last
#: four bits of the opcode -> name
RELATIVE = {
    0: {0xC0: {0x0: "LARL"}, 0xC6: {0x2: "PFDRL"}},
    2: {0xC4: {0x2: "LLHRL", 0x4: "LGHRL", 0x5: "LHRL", 0x6: "LLGHRL", 0x7: "STHRL"},
        0xC6: {0x4: "CGHRL", 0x5: "CHRL", 0x6: "CLGHRL", 0x7: "CLHRL"}},
    4: {0xC4: {0xC: "LGFRL", 0xD: "LRL", 0xE: "LLGFRL", 0xF: "STRL"},
        0xC6: {0xC: "CGFRL", 0xD: "CRL", 0xE: "CLGFRL", 0xF: "CLRL"}},
    8: {0xC4: {0x8: "LGRL", 0xB: "STGRL"}, 0xC6: {0x8: "CGRL", 0xA: "CLGRL"}},
}  # fmt: skip

# D(B), long D(B), relative
S12, S20, RI16, RI32 = "bbbb dddddddddddd", "bbbb dddddddddddd hhhhhhhh", 16 * "i", 32 * "i"


def length(first: int) -> int:
    """Return how many bytes the instruction has whose first byte is this one.

    Chapter 5, "Instruction Formats".
    """
    return (2, 4, 4, 6)[first >> 6]


def refused(size: int) -> tuple[Row, ...]:
    """Make the rows of REFUSED for instructions of this many bytes."""
    found = [
        (f"{opcode:016b}" if opcode > 0xFF else f"{opcode:08b}", name, why)
        for why, names in REFUSED.items()
        for name, opcode in names.items()
    ]
    return tuple(Row(picture.ljust(8 * size, "-"), name, reject=why) for picture, name, why in found
                 if length(int(picture[:8], 2)) == size)


def compare_rows() -> tuple[Row, ...]:
    """Make the rows of all COMPARE AND BRANCH: IMMEDIATE or not, LOGICAL or not, RELATIVE
    or not.
    """
    kinds = (("CG", 64, True), ("CLG", 64, False), ("C", 32, True), ("CL", 32, False))
    formats = ((f"rrrr tttt {RI16} mmmm ----", "RJ", near, away.near, (0x64, 0x65, 0x76, 0x77)),
               (f"rrrr mmmm {RI16} jjjjjjjj", "IJ", near, away.near, (0x7C, 0x7D, 0x7E, 0x7F)),
               (f"rrrr tttt {S12} mmmm ----", "RB", computed, as_it_is, (0xE4, 0xE5, 0xF6, 0xF7)),
               (f"rrrr mmmm {S12} jjjjjjjj", "IB", computed, as_it_is, (0xFC, 0xFD, 0xFE, 0xFF)))
    return tuple(Row(f"11101100 {fields} {opcode:08b}", name + suffix,
                     partial(compare, bits, arithmetic),
                     displace=elsewhere, extra=extra)
                 for fields, suffix, extra, elsewhere, opcodes in formats
                 for (name, bits, arithmetic), opcode in zip(kinds, opcodes, strict=True))


SHORT = (
    Row("00000101 rrrr ssss", "BALR", partial(and_save, link), links=True),
    Row("00000110 rrrr ssss", "BCTR", partial(on_count, 32), displace=as_it_is, extra=computed),
    Row("00000111 mmmm ssss", "BCR", on_condition, displace=as_it_is, extra=partial(on_mask, computed)),
    Row("00001101 rrrr ssss", "BASR", partial(and_save, save), displace=away.basr, links=True),
    *refused(2),
)
MIDDLE = (
    Row(f"01000100 rrrr xxxx {S12}", "EX", execute, body="self", extra=executing),
    Row(f"01000101 rrrr xxxx {S12}", "BAL", partial(and_save, link), links=True),
    Row(f"01000110 rrrr xxxx {S12}", "BCT", partial(on_count, 32), displace=as_it_is, extra=computed),
    Row(f"01000111 mmmm xxxx {S12}", "BC", on_condition, displace=as_it_is, extra=partial(on_mask, computed)),
    Row(f"01001101 rrrr xxxx {S12}", "BAS", partial(and_save, save), displace=away.bas, links=True),
    Row(f"10000100 rrrr tttt {RI16}", "BRXH", partial(on_index, 32, True), displace=away.near, extra=near),
    Row(f"10000101 rrrr tttt {RI16}", "BRXLE", partial(on_index, 32, False), displace=away.near, extra=near),
    Row(f"10000110 rrrr tttt {S12}", "BXH", partial(on_index, 32, True), displace=as_it_is, extra=computed),
    Row(f"10000111 rrrr tttt {S12}", "BXLE", partial(on_index, 32, False), displace=as_it_is, extra=computed),
    Row(f"10100111 mmmm 0100 {RI16}", "BRC", on_condition, displace=away.far, extra=partial(on_mask, near)),
    Row(f"10100111 rrrr 0101 {RI16}", "BRAS", partial(and_save, save), displace=away.bras, links=True, extra=near),
    Row(f"10100111 rrrr 0110 {RI16}", "BRCT", partial(on_count, 32), displace=away.near, extra=near),
    Row(f"10100111 rrrr 0111 {RI16}", "BRCTG", partial(on_count, 64), displace=away.near, extra=near),
    Row("10111001 01000110 -------- rrrr ssss", "BCTGR", partial(on_count, 64), displace=as_it_is, extra=computed),
    *refused(4),
)
LONG = (
    *(Row(f"{first:08b} ---- {last:04b} {RI32}", name, extra=partial(access, size)) for size, rows in RELATIVE.items()
      for first, names in rows.items() for last, name in names.items()),
    Row(f"11000000 mmmm 0100 {RI32}", "BRCL", on_condition, displace=away.far, extra=far),
    Row(f"11000000 rrrr 0101 {RI32}", "BRASL", partial(and_save, save), displace=away.bras, links=True, extra=far),
    Row(f"11000110 rrrr 0000 {RI32}", "EXRL", execute, body="self", extra=executing),
    Row(f"11001100 rrrr 0110 {RI32}", "BRCTH", on_count_high, displace=away.far, extra=far),
    Row("11000101 ---------------- ------------------------", "BPRP", hint, displace=lambda insn, to: b""),
    Row("11000111 -------- ---------------- ----------------", "BPP", hint, displace=lambda insn, to: b""),
    Row(f"11100011 rrrr xxxx {S20} 01000110", "BCTG", partial(stretched, partial(on_count, 64)), displace=as_it_is,
        extra=computed),
    Row(f"11100011 mmmm xxxx {S20} 01000111", "BIC", partial(stretched, indirect_on_condition), displace=as_it_is,
        extra=computed),
    Row(f"11101011 rrrr tttt {S20} 01000100", "BXHG", partial(stretched, partial(on_index, 64, True)),
        displace=as_it_is, extra=computed),
    Row(f"11101011 rrrr tttt {S20} 01000101", "BXLEG", partial(stretched, partial(on_index, 64, False)),
        displace=as_it_is, extra=computed),
    Row("11101011 -------- ---------------- -------- 00101111", "LCTLG", reject=PRIVILEGED),
    Row("11101011 -------- ---------------- -------- 01110001", "LPSWEY", reject=PSW),
    Row(f"11101100 rrrr tttt {RI16} -------- 01000100", "BRXHG", partial(on_index, 64, True), displace=away.near,
        extra=near),
    Row(f"11101100 rrrr tttt {RI16} -------- 01000101", "BRXLEG", partial(on_index, 64, False), displace=away.near,
        extra=near),
    *compare_rows(),
    *refused(6),
)
TABLES = {2: DecodeTable(SHORT), 4: DecodeTable(MIDDLE), 6: DecodeTable(LONG)}


def decode(code: bytes, addr: int) -> Insn:
    """Return the instruction at the start of `code`, which lies at `addr` (`Arch.decode`); one that
    is refused where its bytes are not all there.
    """
    size = length(code[0]) if code else 2
    raw = bytes(code[:size])
    if len(raw) < size:
        return Insn.truncated(addr, raw)
    return TABLES[size].decode(int.from_bytes(raw, "big"), Insn(addr=addr, raw=raw, name="insn"))


# --- powers


def relocate(insn: Insn, to: int) -> bytes:
    """Return the instruction's body for address `to`, with its relative operand where it was; one
    without such an operand as it is.

    Raises:
        OutOfReach: the operand is more than 4 GiB away.
    """
    if insn.operand is None:
        return insn.body
    return away.relative(insn.body[:2], to, insn.operand)


OPENS = re.compile(rb"\xeb[\x60-\xff]\xf0[\s\S]\x00\x24")  #: STMG Rn, Rm, d(R15)

S390X = Arch(
    package="kprobes.arch.s390x",
    name="s390x", bits=64, order=Order.BIG, insn_align=2, max_insn=6, regs=REGISTERS,
    # an operation exception that no instruction will ever use
    traps=Traps(probe={2: b"\0\2"}, end={0: b"\0\2"}),
    decode=decode, abi=Abi(args=R[2:7], returns=("r2",), char_signed=False, results=Results(registers=0, memory=0),
                               stack_args=160, stack_align=8, reserve=160),
    linkage=Linkage.in_register("r14", back=bytes.fromhex("07fe")),  # BCR 15,r14
    jump=Jump(size=6, encode=jump), out_of_line=OutOfLine(relocate=relocate, max_displaced=30),
    walking=Walking(leaves=leaves, opens={0: OPENS}),
    executing=Executing(target=executed, instruction=instruction, all=executions),
    files=Files(machines=((22, 64, "big"),)),
)  # fmt: skip

ARCHES = (S390X,)
