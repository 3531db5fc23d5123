"""Effects of i386 instructions on registers that hold addresses, for `Walking.follow`.

CALL of the next instruction, POP, LEA and ADD, and loads and stores through what these set. (An
address relative to RIP is in the instruction's `operand`.)
"""

from __future__ import annotations

from .._addresses import HALF, AddressUse
from .._insn import Insn
from .shape import EncodingShape, measure

PUSHED = 8  #: the number that stands for the word on top of the stack here
LEA = 0x8D
STORES = {0x88: 1, 0x89: 4, 0x01: 4, 0x39: 4, 0x3B: 4}
LOADS = {0x8B: 4, 0x03: 4, 0x33: 4, 0x2B: 4, 0x0B: 4}
MOVZX = {0xB6: 1, 0xB7: 2, 0xBE: 1, 0xBF: 2}  #: in the two-byte map, MOVSX too
#: in the two-byte map loads and stores of vectors: MOVUPS, MOVAPS, MOVDQA, MOVDQU
VECTORS = frozenset((0x10, 0x11, 0x28, 0x29, 0x6F, 0x7F))


def use(insn: Insn) -> AddressUse:
    """Return what an instruction does with a register that may hold an address."""
    first = insn.raw[0]
    if insn.links:
        return AddressUse(HALF, insn.next, into=(PUSHED,))
    if first >> 3 == 0x58 >> 3:  # POP
        return AddressUse(PUSHED, 0, into=(first & 7,))
    # MOV of a constant, INC, DEC, XCHG
    if first >> 3 in (0xB8 >> 3, 0x40 >> 3, 0x48 >> 3, 0x90 >> 3):
        return AddressUse(into=(first & 7, 0))
    try:
        shape = measure(insn.raw, False)
    except IndexError:
        return AddressUse()
    return _modrm(shape, insn.raw)


def _modrm(shape: EncodingShape, raw: bytes) -> AddressUse:
    """Return what an instruction with a ModRM byte does with a register that may hold an address.

    Args:
        shape: where its parts are.
        raw: its bytes.
    """
    reg, rm, opcode = shape.modrm >> 3 & 7, shape.modrm & 7, shape.opcode
    if not shape.memory:
        if shape.map == 0 and opcode in (0x81, 0x83) and not reg:  # ADD of a constant
            return AddressUse(rm, int.from_bytes(raw[shape.imm_at :], "little", signed=True),
                              into=(rm,))
        return AddressUse(into=(reg, rm) if shape.modrm else (0,))
    offset = int.from_bytes(raw[shape.disp_at : shape.imm_at], "little", signed=True)
    plain = rm != 4 and not (shape.modrm < 0x40 and rm == 5)  # no index, and a base
    base = rm if plain else None
    if shape.map == 0 and opcode == LEA:
        return AddressUse(base, offset, into=(reg,))
    if shape.map == 0 and opcode in STORES:
        return AddressUse(base, offset, STORES[opcode])
    if shape.map == 0 and opcode in LOADS:
        return AddressUse(base, offset, LOADS[opcode], (reg,))
    if shape.map == 1 and opcode in MOVZX:
        return AddressUse(base, offset, MOVZX[opcode], (reg,))
    if shape.map == 1 and opcode in VECTORS:
        return AddressUse(base, offset, 16)
    return AddressUse(into=(reg,))


def begins(insn: Insn) -> bool:
    """Whether an instruction makes an address of its own: a call of the next instruction."""
    return insn.links and insn.target == insn.next
