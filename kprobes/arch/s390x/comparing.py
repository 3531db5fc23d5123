"""Comparisons of z/Architecture: Principles of Operation, chapter 7.

A fuzzer asks what an instruction compares, to learn how near an input came to what a program wants.
"""

from __future__ import annotations

from .._base import signed
from .._comparing import Comparing, OperandComparison, Value, constant, register

#: opcodes of one byte, or of two (of which the second stands at the instruction's end or beside
#: the first register) -> bits
RR = {0x19: 32, 0x15: 32}  # CR, CLR
RRE = {0xB920: 64, 0xB921: 64}  # CGR, CLGR
RX = {0x59: 32, 0x55: 32}  # C, CL
RXY = {0xE359: 32, 0xE355: 32, 0xE320: 64, 0xE321: 64}  # CY, CLY, CG, CLG
RI = {0xA7E: 32, 0xA7F: 64}  # CHI, CGHI
RIL = {0xC2D: (32, True), 0xC2C: (64, True), 0xC2F: (32, False), 0xC2E: (64, False)}  # CFI, CGFI, CLFI, CLGFI
RELATIVE = {0xC6D: 32, 0xC6F: 32, 0xC68: 64, 0xC6A: 64}  # CRL, CLRL, CGRL, CLGRL
#: CHHSI, CLHHSI, CHSI, CLFHSI, CGHSI, CLGHSI: bits, whether the constant has a sign
SIL = {0xE554: (16, True), 0xE555: (16, False), 0xE55C: (32, True), 0xE55D: (32, False),
       0xE558: (64, True), 0xE559: (64, False)}
#: CRJ, CLRJ, CRB, CLRB; CGRJ, CLGRJ, CGRB, CLGRB: compare two registers and branch
AND_BRANCH = {0xEC76: 32, 0xEC77: 32, 0xECF6: 32, 0xECF7: 32, 0xEC64: 64, 0xEC65: 64, 0xECE4: 64,
              0xECE5: 64}
#: CIJ, CIB; CLIJ, CLIB; CGIJ, CGIB; CLGIJ, CLGIB: a register and a constant of 8 bits
AND_BRANCH_CONSTANT = {0xEC7E: (32, True), 0xECFE: (32, True), 0xEC7F: (32, False),
                       0xECFF: (32, False), 0xEC7C: (64, True), 0xECFC: (64, True),
                       0xEC7D: (64, False), 0xECFD: (64, False)}
CLC = 0xD5
LENGTHS = {2: 16, 4: 32, 8: 64}  #: bytes that CLC compares -> bits


def _storage(field: int, index: int = 0, displacement: int | None = None) -> Value:
    """Return an operand in storage as a Value; a register of number 0 stands for none.

    Args:
        field: base and displacement, 16 bits.
        index: number of the index register.
        displacement: in place of the field's; None: the field's.
    """
    base = field >> 12
    given = field & 0xFFF if displacement is None else displacement
    return Value(base or None, index or None, given, memory=True)


def _given(value: int, bits: int, has_sign: bool) -> Value:
    """Return a constant of the instruction as a Value; `value` has `bits` bits, with or without
    sign.
    """
    return constant(signed(value, bits) if has_sign else value)


def _halves(code: bytes) -> tuple[int, int, int]:
    """Return (first, second, third halfword) of an instruction; 0 for those that it does not
    have.
    """
    padded = code[:6].ljust(6, b"\0")
    return int.from_bytes(padded[:2], "big"), int.from_bytes(padded[2:4], "big"), int.from_bytes(padded[4:], "big")


def find(code: bytes, addr: int) -> OperandComparison | None:
    """Return what COMPARE or COMPARE LOGICAL compares: a register or storage with a register, a
    constant or storage; those that branch are included.

    Args:
        code: its bytes.
        addr: its address.

    Returns:
        None for other instructions, for those that extend an operand (CGFR), and for a CLC whose
        length is none of a number's.
    """
    one, two, three = _halves(code)
    opcode = one >> 8
    left = register(one >> 4 & 15)
    at_end = opcode << 8 | three & 0xFF  # formats whose opcode ends in the last byte
    beside = opcode << 4 | one & 15  # formats whose opcode ends beside the first register
    if opcode in RR:
        return OperandComparison(RR[opcode], left, register(one & 15))
    if one in RRE:
        return OperandComparison(RRE[one], register(two >> 4 & 15), register(two & 15))
    if opcode in RX:
        return OperandComparison(RX[opcode], left, _storage(two, one & 15))
    if beside in RI:
        return OperandComparison(RI[beside], left, constant(signed(two, 16)))
    if beside in RIL:
        bits, has_sign = RIL[beside]
        return OperandComparison(bits, left, _given(two << 16 | three, 32, has_sign))
    if beside in RELATIVE:
        target = addr + 2 * signed(two << 16 | three, 32)
        return OperandComparison(RELATIVE[beside], left, Value(constant=target, memory=True))
    if one in SIL:
        bits, has_sign = SIL[one]
        return OperandComparison(bits, _storage(two), _given(three, 16, has_sign))
    if opcode == CLC:
        length = LENGTHS.get((one & 0xFF) + 1)
        return None if length is None else OperandComparison(length, _storage(two), _storage(three))
    if at_end in RXY:
        displacement = signed((three >> 8) << 12 | two & 0xFFF, 20)
        return OperandComparison(RXY[at_end], left, _storage(two, one & 15, displacement))
    if at_end in AND_BRANCH:
        return OperandComparison(AND_BRANCH[at_end], left, register(one & 15))
    if at_end in AND_BRANCH_CONSTANT:
        bits, has_sign = AND_BRANCH_CONSTANT[at_end]
        return OperandComparison(bits, left, _given(three >> 8, 8, has_sign))
    return None


ROWS = {"s390x": Comparing(find)}
