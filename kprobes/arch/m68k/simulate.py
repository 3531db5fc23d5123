"""m68k's branches in Python, named after the manual's instructions (M68000PM/AD, sections 3 to 5).

A function that takes `regs` and `insn` changes registers and memory as the instruction does, and
returns the target to go to next, where it is no helper. Parameters of one letter are fields of the
row's picture: c condition, r number of a register, e effective address.
"""

from __future__ import annotations

from ...regs import Regs
from .._base import Insn, signed
from .addressing import MASK, PC_DISPLACED, A, D, half, mode


def conditional(ccr: int, c: int) -> bool:
    """Whether condition `c` holds, by the condition codes (table 3-19)."""
    n, z, v, carry = ccr >> 3 & 1, ccr >> 2 & 1, ccr >> 1 & 1, ccr & 1
    holds = (1, not (carry or z), not carry, not z, not v, not n, n == v, n == v and not z)[c >> 1]
    return bool(holds) != bool(c & 1)


def floating(fpsr: int, c: int) -> bool:
    """Whether floating-point predicate `c` holds, by FPSR's bits N 27, Z 26 and NAN 24 (table
    3-23).
    """
    n, z, nan = fpsr >> 27 & 1, fpsr >> 26 & 1, fpsr >> 24 & 1
    less, greater = n and not (nan or z), not (nan or z or n)
    return bool(
        (
            0,
            z,
            greater,
            z or greater,
            less,
            z or less,
            not (nan or z),
            not nan,
            nan,
            nan or z,
            nan or not (n or z),
            nan or z or not n,
            nan or (n and not z),
            nan or z or n,
            not z,
            1,
        )[c & 15]
    )


def bcc(regs: Regs, insn: Insn, c: int, **_: int) -> int:
    """Simulate Bcc: return the target where condition `c` holds, else the next address."""
    return _target(insn) if conditional(regs["ccr"], c) else insn.next


def bra(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate BRA: return the target."""
    return _target(insn)


def bsr(regs: Regs, insn: Insn, **_: int) -> int:
    """Simulate BSR: push the next address; return the target."""
    push(regs, insn.next)
    return _target(insn)


def fbcc(regs: Regs, insn: Insn, c: int, **_: int) -> int:
    """Simulate FBcc: return the target where floating-point predicate `c` holds, else the next
    address.
    """
    return _target(insn) if floating(regs["fpsr"], c) else insn.next


def dbcc(regs: Regs, insn: Insn, c: int, r: int, **_: int) -> int:
    """Simulate DBcc: where condition `c` is false, count the low word of Dn (`r`) down.

    Returns:
        The target until the word is -1, then the next address; the next one where `c` is true.
    """
    if conditional(regs["ccr"], c):
        return insn.next
    counter = regs[D[r]]
    left = counter - 1 & 0xFFFF
    regs[D[r]] = counter & 0xFFFF0000 | left
    return insn.next if left == 0xFFFF else _target(insn)


def _target(insn: Insn) -> int:
    """Return the target of a direct branch, which the decoder has put into `insn.target`."""
    assert insn.target is not None
    return insn.target


def push(regs: Regs, value: int) -> None:
    """Push a long word on the guest's stack: memory and a7 change."""
    top = regs["a7"] - 4 & MASK
    regs.set_word(top, value)
    regs["a7"] = top


def jmp(regs: Regs, insn: Insn, e: int) -> int:
    """Simulate JMP: return the effective address `e`."""
    return address(regs, insn, e)


def jsr(regs: Regs, insn: Insn, e: int) -> int:
    """Simulate JSR: push the next address, and return the effective address `e`."""
    target = address(regs, insn, e)
    push(regs, insn.next)
    return target


def rts(regs: Regs, insn: Insn) -> int:
    """Simulate RTS: pop and return the return address."""
    return pop(regs, 4)


def rtd(regs: Regs, insn: Insn) -> int:
    """Simulate RTD: pop and return the return address, and release as many bytes more as it
    says.
    """
    return pop(regs, 4 + signed(half(insn.raw, 2), 16))


def pop(regs: Regs, size: int) -> int:
    """Pop a long word from the guest's stack, and return it.

    Args:
        regs: the registers; a7 is the stack pointer, and moves up.
        size: bytes to release: the 4 of the long word, and those that RTD releases in addition.
    """
    top = regs["a7"]
    target = regs.word(top)
    regs["a7"] = top + size & MASK
    return target


def address(regs: Regs, insn: Insn, e: int) -> int:
    """Return the address that JMP's or JSR's effective address `e` names; memory may be read."""
    kind, raw, r = mode(e), insn.raw, e & 7
    if kind == 2:
        return regs[A[r]]
    if kind in (7, 8):
        return signed(half(raw, 2), 16) & MASK if kind == 7 else int.from_bytes(raw[2:6], "big")
    base = regs[A[r]] if kind in (5, 6) else insn.addr + 2
    if kind in (5, PC_DISPLACED):
        return base + signed(half(raw, 2), 16) & MASK
    return indexed_address(regs, raw, base)


def indexed_address(regs: Regs, raw: bytes, base: int) -> int:
    """Compute the address of an indexed operand, whose extension word is at offset 2.

    Brief format, or full format with memory indirection before or after indexing.

    Args:
        regs: read for the index; memory is read for indirection.
        raw: the instruction's bytes.
        base: value of the base register, or of PC.
    """
    word = half(raw, 2)
    index = regs[(A if word >> 15 else D)[word >> 12 & 7]]
    index = (index if word & 0x800 else signed(index, 16)) << (word >> 9 & 3)
    if not word & 0x100:
        return base + signed(word, 8) + index & MASK
    size, selection = (0, 0, 2, 4)[word >> 4 & 3], word & 7
    value = (0 if word & 0x80 else base) + number(raw[4 : 4 + size])
    index = 0 if word & 0x40 else index
    if not selection:
        return value + index & MASK
    before, after = (0, index) if selection & 4 else (index, 0)
    return regs.word(value + before & MASK) + after + number(raw[4 + size :]) & MASK


def number(data: bytes) -> int:
    """Return big-endian bytes as a signed number; 0 for none."""
    return int.from_bytes(data, "big", signed=True)
