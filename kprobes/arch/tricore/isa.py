"""TriCore 1.3.1 and 1.6, 32 bit, little endian: `tricore`.

Formats and names are those of the TriCore Architecture Manual, volume 2 (instruction set). Bit 0 of
an instruction tells its length. An encoding without a row is straight line: it runs out of line as
it is, and where it is undefined it traps there. A call saves the upper context in its slot; a
return's is loaded in Python (contexts.py).

Functions with `regs` and `insn` simulate: they return the target to go to next. Parameters of one
letter are fields of the row's picture: s and t numbers of registers (`t` None: the second operand
is a constant), c a constant of four bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial

from attrs import evolve

from ...regs import Regs
from .._base import Abi, Arch, Files, Insn, Jump, Linkage, Order, OutOfLine, Registers, Returning, Traps, signed
from .._decode import DecodeTable, Row
from .._words import EXCEPTION, PRIVILEGED, RESERVED, TRAP_RETURN, WAITS
from . import displace as away
from .contexts import MASK, A, D, fret, restore, ret, save_upper

Test = Callable[[int, int], bool]
REGISTERS = Registers(names=(*D, *A, "pc", "psw", "pcxi", "fcx", "lcx", "icr"), pc="pc", sp="a10",
                      flags="psw",
                      aliases={"sp": "a10", "ra": "a11", "lr": "a11"})


def pushing(insn: Insn, **_: int) -> Insn:
    """Return a call with its body: that calls what follows in the slot, then corrects A11."""
    return evolve(insn, body=away.called(insn))


# --- direct targets, as `extra`: i counts halfwords


def relative(bits: int, insn: Insn, i: int, j: int = 0, **_: int) -> Insn:
    """Return a branch with its target: `j` and `i` are `bits` bits, signed halfwords from it."""
    return evolve(insn, target=insn.addr + 2 * signed(j << 16 | i, bits) & MASK)


def forward(base: int, insn: Insn, i: int, **_: int) -> Insn:
    """Return a branch with its target: `base` bytes and `i` halfwords, unsigned, from it."""
    return evolve(insn, target=insn.addr + base + 2 * i & MASK)


def absolute(insn: Insn, i: int, j: int) -> Insn:
    """Return a branch with its absolute target: the segment is in `j`'s high bits."""
    return evolve(insn, target=j >> 4 << 28 | (j & 15) << 17 | i << 1)


def called(place: Callable[..., Insn], insn: Insn, **fields: int) -> Insn:
    """Return a call with its target, which `place` sets, and its body."""
    return pushing(place(insn, **fields))


def computed(insn: Insn, s: int) -> Insn:
    """Return a jump to register `s` with its facts: through A11 it returns."""
    return evolve(insn, indirect=s != 11)


# --- simulations


def taken(regs: Regs, insn: Insn, s: int | None = None) -> int:
    """Return the target of a jump: address register `s`, or (None) the instruction's own target."""
    if s is not None:
        return regs[A[s]] & ~1
    assert insn.target is not None
    return insn.target


def j(regs: Regs, insn: Insn, s: int | None = None, **_: int) -> int:
    """Simulate J, JA and JI, or the jump of CALL, CALLA and CALLI, whose bodies do the rest;
    nothing is changed here. `s`: number of the address register with the target; None: the target
    is direct.

    Returns:
        The target.
    """
    return taken(regs, insn, s)


def jl(regs: Regs, insn: Insn, s: int | None = None, **_: int) -> int:
    """Simulate JL, JLA and JLI: put the next address into A11; return the target, read before:
    address register `s`, or (None) the instruction's own.
    """
    target = taken(regs, insn, s)
    regs["a11"] = insn.next & MASK
    return target


def fcall(regs: Regs, insn: Insn, s: int | None = None, **_: int) -> int:
    """Simulate FCALL, FCALLA and FCALLI: push A11 on the stack (a10 moves), put the next address
    into A11; return the target, read before: address register `s`, or (None) the instruction's own.
    """
    target, place = taken(regs, insn, s), regs["a10"] - 4 & MASK
    regs.set_word(place, regs["a11"])
    regs["a10"], regs["a11"] = place, insn.next & MASK
    return target


def operand(regs: Regs, t: int | None, c: int) -> int:
    """Return data register `t`, or (None) the constant `c` of four bits, as 32 bits."""
    return signed(c, 4) & MASK if t is None else regs[D[t]]


def compare(
    test: Test, regs: Regs, insn: Insn, s: int = 15, t: int | None = None, c: int = 0, **_: int
) -> int:
    """Simulate JEQ, JNE, JGE, JLT, and those against zero: return the target or the next address.

    Args:
        test: (first value, second value) -> whether it jumps; both are signed.
        regs: the guest's registers.
        insn: the instruction.
        s: number of the first data register.
        t: number of the second one; None: the second value is `c`.
        c: a constant of four bits.
    """
    return (
        taken(regs, insn)
        if test(signed(regs[D[s]], 32), signed(operand(regs, t, c), 32))
        else insn.next
    )


def compare_unsigned(
    test: Test, regs: Regs, insn: Insn, s: int, t: int | None = None, c: int = 0, **_: int
) -> int:
    """Simulate JGE.U and JLT.U: return the target or the next address.

    Args:
        test: (first value, second value) -> whether it jumps; both are unsigned.
        regs: the guest's registers.
        insn: the instruction.
        s: number of the first data register.
        t: number of the second one; None: the second value is `c`.
        c: a constant of four bits, unsigned.
    """
    return taken(regs, insn) if test(regs[D[s]], c if t is None else regs[D[t]]) else insn.next


def compare_pointers(
    test: Test, regs: Regs, insn: Insn, s: int, t: int | None = None, **_: int
) -> int:
    """Simulate JEQ.A, JNE.A, JZ.A and JNZ.A: return the target or the next address.

    Args:
        test: (first address, second address) -> whether it jumps.
        regs: the guest's registers.
        insn: the instruction.
        s: number of the first address register.
        t: number of the second one; None: the second address is 0.
    """
    return taken(regs, insn) if test(regs[A[s]], 0 if t is None else regs[A[t]]) else insn.next


def step(
    by: int, regs: Regs, insn: Insn, s: int, t: int | None = None, c: int = 0, **_: int
) -> int:
    """Simulate JNEI and JNED: add `by` to register `s`; return the target where the register's old
    value differs from the second operand, else the next address.

    Args:
        by: what is added to register `s`: 1 or -1.
        regs: the guest's registers.
        insn: the instruction.
        s: number of a data register.
        t: number of the second operand's register; None: it is `c`.
        c: a constant of four bits.
    """
    first, second = regs[D[s]], operand(regs, t, c)
    regs[D[s]] = first + by & MASK
    return taken(regs, insn) if first != second else insn.next


def test_bit(value: int, regs: Regs, insn: Insn, n: int, s: int = 15, m: int = 0, **_: int) -> int:
    """Simulate JZ.T and JNZ.T: return the target where a bit of register `s` is `value`, else the
    next address.

    Args:
        value: 0 or 1.
        n: the bit's number, its low four bits.
        m: the bit's number, bit 4.
    """
    return taken(regs, insn) if regs[D[s]] >> (m << 4 | n) & 1 == value else insn.next


def loop(regs: Regs, insn: Insn, t: int, **_: int) -> int:
    """Simulate LOOP: count address register `t` down; return the target unless it was 0 before,
    then the next address.
    """
    count = regs[A[t]]
    regs[A[t]] = count - 1 & MASK
    return taken(regs, insn) if count else insn.next


def mfcr(regs: Regs, insn: Insn, d: int) -> int:
    """Simulate MFCR of PC: put the instruction's address into register `d`; return the next
    address.
    """
    regs[D[d]] = insn.addr
    return insn.next



EQ, NE, GE, LT, GT, LE = operator.eq, operator.ne, operator.ge, operator.lt, operator.gt, operator.le
near, here, back = partial(relative, 15), partial(forward, 0), partial(forward, -32)

SHORT = (
    Row("iiiiiiii 00111100", "J", j, displace=away.j, falls_through=False, extra=partial(relative, 8)),
    Row("iiiiiiii 01011100", "CALL", j, links=True, displace=away.call, extra=partial(called, partial(relative, 8))),
    Row("---- ssss 11011100", "JI reserved", reject=RESERVED),
    Row("0000 ssss 11011100", "JI", j, displace=away.alone, falls_through=False, extra=computed),
    Row("iiiiiiii 01101110", "JZ", partial(compare, EQ), displace=away.wide, extra=partial(relative, 8)),
    Row("iiiiiiii 11101110", "JNZ", partial(compare, NE), displace=away.wide, extra=partial(relative, 8)),
    *(Row(f"{field} iiii {distant}{other}{two}11110", name, partial(compare, test), displace=away.distant,
          extra=partial(forward, 32 * distant))
      for distant in (0, 1) for other, name, test in ((0, "JEQ", EQ), (1, "JNE", NE))
      for two, field in ((0, "cccc"), (1, "tttt"))),
    Row("ssss iiii 01110110", "JZ", partial(compare, EQ), displace=away.short, extra=here),
    Row("ssss iiii 11110110", "JNZ", partial(compare, NE), displace=away.short, extra=here),
    Row("ssss iiii 11001110", "JGEZ", partial(compare, GE), displace=away.short, extra=here),
    Row("ssss iiii 01001110", "JGTZ", partial(compare, GT), displace=away.short, extra=here),
    Row("ssss iiii 10001110", "JLEZ", partial(compare, LE), displace=away.short, extra=here),
    Row("ssss iiii 00001110", "JLTZ", partial(compare, LT), displace=away.short, extra=here),
    Row("ssss iiii 10111100", "JZ.A", partial(compare_pointers, EQ), displace=away.short, extra=here),
    Row("ssss iiii 01111100", "JNZ.A", partial(compare_pointers, NE), displace=away.short, extra=here),
    Row("nnnn iiii 00101110", "JZ.T", partial(test_bit, 0), displace=away.short, extra=here),
    Row("nnnn iiii 10101110", "JNZ.T", partial(test_bit, 1), displace=away.short, extra=here),
    Row("tttt iiii 11111100", "LOOP", loop, displace=away.loop, extra=back),
    Row("---- ---- 00000000", "SR reserved", reject=RESERVED),
    Row("0000 ---- 00000000", "NOP"),
    Row("0111 ---- 00000000", "FRET", fret, displace=away.alone, falls_through=False),
    Row("1000 ---- 00000000", "RFE", reject=TRAP_RETURN),
    Row("1001 ---- 00000000", "RET", ret, body="self", displace=away.alone, falls_through=False),
    Row("1010 ---- 00000000", "DEBUG", reject=EXCEPTION),
)

I24, I15 = "iiiiiiiiiiiiiiii jjjjjjjj", "iiiiiiiiiiiiiii"


def two_rows(
    names: str, registers: str, constant: str, *simulations: Callable[..., int]
) -> tuple[Row, ...]:
    """Make the rows of two comparisons that bit 31 tells apart, with registers and with a constant.

    Args:
        names: the two names, bit 31 clear and set, separated by a space.
        registers: opcode bits with two registers.
        constant: opcode bits with a constant.
        simulations: one for each name.
    """
    pairs = [*zip("01", names.split(), simulations, strict=True)]
    return tuple(Row(f"{bit} {I15} {field} ssss {opcode}", name, simulate, displace=away.branch,
                     extra=near)
                 for field, opcode in (("tttt", registers), ("cccc", constant))
                 for bit, name, simulate in pairs)


FULL = (
    Row(f"{I24} 00011101", "J", j, displace=away.j, falls_through=False, extra=partial(relative, 24)),
    Row(f"{I24} 10011101", "JA", j, displace=away.j, falls_through=False, extra=absolute),
    Row(f"{I24} 01011101", "JL", jl, links=True, displace=away.jl, extra=partial(relative, 24)),
    Row(f"{I24} 11011101", "JLA", jl, links=True, displace=away.jl, extra=absolute),
    Row(f"{I24} 01101101", "CALL", j, links=True, displace=away.call, extra=partial(called, partial(relative, 24))),
    Row(f"{I24} 11101101", "CALLA", j, links=True, displace=away.call, extra=partial(called, absolute)),
    Row(f"{I24} 01100001", "FCALL", fcall, links=True, displace=away.fcall, extra=partial(relative, 24)),
    Row(f"{I24} 11100001", "FCALLA", fcall, links=True, displace=away.fcall, extra=absolute),
    Row("---- 00000000 -- -- ---- ssss 00101101", "CALLI", j, links=True, displace=away.call, extra=pushing),
    Row("---- 00000001 -- -- ---- ssss 00101101", "FCALLI", fcall, links=True, displace=away.fcall),
    Row("---- 00000010 -- -- ---- ssss 00101101", "JLI", jl, links=True, displace=away.jl),
    Row("---- 00000011 -- -- ---- ssss 00101101", "JI", j, displace=away.alone, falls_through=False, extra=computed),
    *two_rows("JEQ JNE", "01011111", "11011111", partial(compare, EQ), partial(compare, NE)),
    *two_rows("JGE JGE.U", "01111111", "11111111", partial(compare, GE), partial(compare_unsigned, GE)),
    *two_rows("JLT JLT.U", "00111111", "10111111", partial(compare, LT), partial(compare_unsigned, LT)),
    *two_rows("JNEI JNED", "00011111", "10011111", partial(step, 1), partial(step, -1)),
    Row(f"0 {I15} tttt ssss 01111101", "JEQ.A", partial(compare_pointers, EQ), displace=away.branch, extra=near),
    Row(f"1 {I15} tttt ssss 01111101", "JNE.A", partial(compare_pointers, NE), displace=away.branch, extra=near),
    Row(f"0 {I15} ---- ssss 10111101", "JZ.A", partial(compare_pointers, EQ), displace=away.branch, extra=near),
    Row(f"1 {I15} ---- ssss 10111101", "JNZ.A", partial(compare_pointers, NE), displace=away.branch, extra=near),
    Row(f"0 {I15} nnnn ssss m1101111", "JZ.T", partial(test_bit, 0), displace=away.branch, extra=near),
    Row(f"1 {I15} nnnn ssss m1101111", "JNZ.T", partial(test_bit, 1), displace=away.branch, extra=near),
    Row(f"0 {I15} tttt ---- 11111101", "LOOP", loop, displace=away.branch, extra=near),
    Row(f"1 {I15} ---- ---- 11111101", "LOOPU", j, displace=away.j, falls_through=False, extra=near),
    Row("dddd 1111111000001000 ---- 01001101", "MFCR PC", mfcr),
    Row("---- ---------------- ---- 11001101", "MTCR", reject=PRIVILEGED),
    Row("---- 0000100 --------- ---- 10101101", "SYSCALL", reject=EXCEPTION),
    Row("---- 000011 ---------- ---- 00001101", "FRET", fret, displace=away.alone, falls_through=False),
    Row("---- 000100 ---------- ---- 00001101", "DEBUG", reject=EXCEPTION),
    Row("---- 000101 ---------- ---- 00001101", "RFM", reject=TRAP_RETURN),
    Row("---- 000110 ---------- ---- 00001101", "RET", ret, body="self", displace=away.alone, falls_through=False),
    Row("---- 000111 ---------- ---- 00001101", "RFE", reject=TRAP_RETURN),
    Row("---- 01010- ---------- ---- 00001101", "TRAP", reject=EXCEPTION),  # TRAPV, TRAPSV
    Row("---- 010110 ---------- ---- 00001101", "WAIT", reject=WAITS),
)
TABLES = {2: DecodeTable(SHORT), 4: DecodeTable(FULL)}


def decode(code: bytes, addr: int) -> Insn:
    """Return the instruction at the start of `code`, which lies at `addr` (`Arch.decode`); one that
    is refused where its bytes are not all there.
    """
    size = 4 if code and code[0] & 1 else 2
    raw = bytes(code[:size])
    if len(raw) < size:
        return Insn.truncated(addr, raw)
    return TABLES[size].decode(int.from_bytes(raw, "little"), Insn(addr=addr, raw=raw, name="insn"))


# --- powers


TRICORE = Arch(
    package="kprobes.arch.tricore",
    name="tricore", bits=32, order=Order.LITTLE, insn_align=2, max_insn=4, regs=REGISTERS,
    # DEBUG
    traps=Traps(probe={2: bytes.fromhex("00a0"), 4: bytes.fromhex("0d000001")}, end={0: bytes.fromhex("00a0")}),
    decode=decode, abi=Abi(args=D[4:8], pointers=A[4:8], returns=("d2", "d3"), stack_align=8,
                           enter=save_upper),
    linkage=Linkage.in_register("a11", back=bytes.fromhex("dc0b"),  # JI
                                # FRET pops
                                returning=Returning(restore=restore, reloaded=True,
                                                    shares_frames=True, may_pop=(4,))),
    jump=Jump(size=4, encode=away.jump), out_of_line=OutOfLine(max_body=12, max_displaced=16),
    files=Files(machines=((44, 32, "little"),)),
)  # fmt: skip

ARCHES = (TRICORE,)
