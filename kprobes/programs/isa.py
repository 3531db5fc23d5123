"""eBPF instructions as RFC 9669 has them: decode, encode.

A program's instructions are a tuple with **one entry for each 8-byte slot**: an index is a program
counter, and branch distances count entries. A 64-bit immediate load (`LDDW`) takes two slots: the
first is the instruction, with both halves of its value; the second has opcode 0, which is illegal
everywhere else, so that entering it is an error like any other.

Constants have the RFC's names and are the bits of an opcode as they stand in it: `ADD | X | ALU64`
is 0x0f, `MEM | DW | LDX` is 0x79. Supported are all groups but the deprecated packet access:
base32, base64, atomic32, atomic64, divmul32, divmul64. In compilers' words, `-mcpu=v4` and below.
Load-acquire, may_goto, address-space casts and indirect jumps are not in the RFC and are refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from attrs import evolve, frozen

Order = Literal["little", "big"]

# classes: bits 2-0
LD: Final = 0
LDX: Final = 1
ST: Final = 2
STX: Final = 3
ALU: Final = 4
JMP: Final = 5
JMP32: Final = 6
ALU64: Final = 7
# source: bit 3 of ALU, ALU64, JMP, JMP32
K: Final = 0x00
X: Final = 0x08
# operations of ALU and ALU64: bits 7-4
ADD: Final = 0x00
SUB: Final = 0x10
MUL: Final = 0x20
DIV: Final = 0x30  # offset 1: SDIV
OR: Final = 0x40
AND: Final = 0x50
LSH: Final = 0x60
RSH: Final = 0x70
NEG: Final = 0x80
MOD: Final = 0x90  # offset 1: SMOD
XOR: Final = 0xA0
MOV: Final = 0xB0  # offset 8, 16, 32: MOVSX
ARSH: Final = 0xC0
# imm 16, 32, 64; in ALU K to little endian, X to big endian; in ALU64 K always swaps
END: Final = 0xD0
# operations of JMP and JMP32: bits 7-4
JA: Final = 0x00  # JMP: by offset; JMP32: by imm
JEQ: Final = 0x10
JGT: Final = 0x20
JGE: Final = 0x30
JSET: Final = 0x40
JNE: Final = 0x50
JSGT: Final = 0x60
JSGE: Final = 0x70
CALL: Final = 0x80
EXIT: Final = 0x90
JLT: Final = 0xA0
JLE: Final = 0xB0
JSLT: Final = 0xC0
JSLE: Final = 0xD0
# sizes of loads and stores: bits 4-3
W: Final = 0x00
H: Final = 0x08
B: Final = 0x10
DW: Final = 0x18
SIZES: Final = {W: 4, H: 2, B: 1, DW: 8}
# modes of loads and stores: bits 7-5
IMM: Final = 0x00
ABS: Final = 0x20
IND: Final = 0x40
MEM: Final = 0x60
MEMSX: Final = 0x80
ATOMIC: Final = 0xC0
# atomic operations, in imm: ADD, OR, AND, XOR, each also with FETCH, and these two (FETCH included)
FETCH: Final = 0x01
XCHG: Final = 0xE1
CMPXCHG: Final = 0xF1
# what LDDW loads, in src
VALUE64: Final = 0
MAP_FD: Final = 1  # a map by file descriptor
MAP_VALUE_FD: Final = 2  # the address of its value, plus the second slot's imm
VARIABLE: Final = 3  # a platform's variable
CODE: Final = 4  # the address of an instruction, as a distance
MAP: Final = 5  # a map by its index in Code.maps
MAP_VALUE: Final = 6  # the address of its value, plus the second slot's imm
# what CALL calls, in src
HELPER: Final = 0  # imm: its number
LOCAL: Final = 1  # imm: distance in slots
BTF_CALL: Final = 2  # imm: BTF id of a kernel function

#: helper whose call stands where something is called or read that there is not
MISSING: Final = 0x0BAD_2310

LDDW: Final = LD | IMM | DW
# bytes of stack: of all frames together, as the verifier has it; of each frame at most
STACK_SIZE: Final = 512
FRAMES: Final = 8
U32: Final = 0xFFFF_FFFF
U64: Final = 0xFFFF_FFFF_FFFF_FFFF

# NEG and END have one
TWO_OPERANDS: Final = (ADD, SUB, MUL, DIV, OR, AND, LSH, RSH, MOD, XOR, MOV, ARSH)
CONDITIONS: Final = (JEQ, JGT, JGE, JSET, JNE, JSGT, JSGE, JLT, JLE, JSLT, JSLE)
ATOMICS: Final = (
    *(op | fetch for op in (ADD, OR, AND, XOR) for fetch in (0, FETCH)),
    XCHG,
    CMPXCHG,
)
_SLOT = {"little": struct.Struct("<BBhi"), "big": struct.Struct(">BBhi")}


@frozen
class Instruction:
    """An instruction of eBPF.

    Attributes:
        opcode: 0..255.
        dst: 0..15, as encoded; registers are 0..10.
        src: the same.
        offset: signed 16 bits.
        imm: signed 32 bits; of LDDW, the lower half of the value.
        high: of LDDW, the second slot's imm (signed 32 bits); of others 0.
    """

    opcode: int
    dst: int = 0
    src: int = 0
    offset: int = 0
    imm: int = 0
    high: int = 0

    @property
    def cls(self) -> int:
        """The instruction class: LD .. ALU64."""
        return self.opcode & 7

    @property
    def op(self) -> int:
        """The operation of an arithmetic or jump instruction: ADD .. END, JA .. JSLE."""
        return self.opcode & 0xF0

    @property
    def by_register(self) -> bool:
        """True where the second operand of an arithmetic or jump instruction is `src`, False where
        it is `imm`.
        """
        return bool(self.opcode & X)

    @property
    def mode(self) -> int:
        """The mode of a load or store: IMM .. ATOMIC."""
        return self.opcode & 0xE0

    @property
    def size(self) -> int:
        """How many bytes a load or store accesses."""
        return SIZES[self.opcode & 0x18]

    @property
    def wide(self) -> bool:
        """True for LDDW: it takes two slots."""
        return self.opcode == LDDW

    @property
    def value(self) -> int:
        """LDDW's 64 bits, unsigned."""
        return (self.high & U32) << 32 | self.imm & U32

    @property
    def is_jump(self) -> bool:
        """True for jumps within the function, conditional or not: not for CALL and EXIT."""
        return self.cls in (JMP, JMP32) and self.op not in (CALL, EXIT)

    @property
    def is_conditional(self) -> bool:
        """True for a jump that may fall through."""
        return self.is_jump and self.op != JA

    @property
    def is_exit(self) -> bool:
        """True for EXIT."""
        return self.opcode == JMP | EXIT

    @property
    def is_helper_call(self) -> bool:
        """True for a call of a helper."""
        return self.opcode == JMP | CALL and self.src == HELPER

    @property
    def is_local_call(self) -> bool:
        """True for a call of a function of the program's own."""
        return self.opcode == JMP | CALL and self.src == LOCAL

    def target(self, pc: int) -> int:
        """Return the slot that a jump, a local call, or LDDW of code at slot `pc` leads to,
        possibly outside the program.
        """
        far = self.opcode == JMP32 | JA or not self.is_jump
        return pc + 1 + (self.imm if far else self.offset)

    def why_illegal(self) -> str:
        """Return what is wrong with the encoding, as one clause; "" for a legal one. Distances are
        not judged.
        """
        return _why_illegal(self)


def decode(raw: bytes, order: Order = "little") -> tuple[Instruction, ...]:
    """Decode instructions, one for each slot of 8 bytes; illegal ones stay as they are.

    Args:
        raw: the code's bytes.
        order: byte order of `raw`.

    Raises:
        ValueError: the code ends within a slot, or within LDDW.
    """
    if len(raw) % 8:
        raise ValueError(f"{len(raw)} bytes are not whole 8-byte instructions")
    slots = _SLOT[order].iter_unpack(raw)
    out = [
        _from_slot(opcode, registers, offset, imm, order)
        for opcode, registers, offset, imm in slots
    ]
    at = 0
    while at < len(out):
        if out[at].wide:
            if at + 1 == len(out):
                raise ValueError(
                    f"instruction {at} takes two slots, and the code ends after the first"
                )
            out[at] = evolve(out[at], high=out[at + 1].imm)
        at += 2 if out[at].wide else 1
    return tuple(out)


def _from_slot(opcode: int, registers: int, offset: int, imm: int, order: Order) -> Instruction:
    """Return the instruction of a slot, given by the slot's fields.

    Args:
        opcode: the first byte.
        registers: the second byte, which has both registers.
        offset: signed 16 bits.
        imm: signed 32 bits.
        order: byte order of the code: it says which half of `registers` is dst.
    """
    high = registers >> 4
    low = registers & 15
    dst, src = (low, high) if order == "little" else (high, low)
    return Instruction(opcode, dst, src, offset, imm)


def encode(instructions: Iterable[Instruction], order: Order = "little") -> bytes:
    """Return the bytes of instructions, the opposite of decode(): one slot of 8 for each.

    Args:
        instructions: one for each slot. The slot behind LDDW gets the `high` of that.
        order: byte order of the bytes.
    """
    out = bytearray()
    high = None
    for i in instructions:
        registers = i.src << 4 | i.dst if order == "little" else i.dst << 4 | i.src
        out += _SLOT[order].pack(i.opcode, registers, i.offset, i.imm if high is None else high)
        high = i.high if i.wide and high is None else None
    return bytes(out)


def lddw(
    dst: int, value: int, src: int = VALUE64, high: int | None = None
) -> tuple[Instruction, Instruction]:
    """Return both slots of a 64-bit immediate load.

    Args:
        dst: the register.
        value: what is loaded; with `high`, the lower half of it.
        src: what kind of value it is, VALUE64 .. MAP_VALUE.
        high: the upper half; None: `value` has it.
    """
    upper = signed(value >> 32 if high is None else high, 32)
    return Instruction(LDDW, dst, src, 0, signed(value, 32), upper), Instruction(0, imm=upper)


def steps(instructions: Iterable[Instruction]) -> Iterator[tuple[int, Instruction]]:
    """Yield (slot, instruction) of each instruction; the second slots of LDDW are left out.

    Args:
        instructions: one for each slot.
    """
    tail = False
    for pc, instruction in enumerate(instructions):
        if not tail:
            yield pc, instruction
        tail = instruction.wide and not tail


def signed(value: int, bits: int) -> int:
    """Return the lower `bits` of a number as a signed number (two's complement)."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


# ---- legality

#: opcode of every legal instruction -> which fields it uses: d dst, s src, o offset, i imm; their
#: limits stand below
USES: Final = {
    **{
        op | source | cls: "ds" if source else "di"
        for op in TWO_OPERANDS
        for source in (K, X)
        for cls in (ALU, ALU64)
    },
    **{NEG | cls: "d" for cls in (ALU, ALU64)},
    **{END | source | ALU: "di" for source in (K, X)},
    END | ALU64: "di",
    **{
        op | source | cls: "dso" if source else "dio"
        for op in CONDITIONS
        for source in (K, X)
        for cls in (JMP, JMP32)
    },
    JA | JMP: "o",
    JA | JMP32: "i",
    CALL | JMP: "i",
    EXIT | JMP: "",
    **{MEM | size | LDX: "dso" for size in SIZES},
    **{MEMSX | size | LDX: "dso" for size in (W, H, B)},
    **{MEM | size | ST: "dio" for size in SIZES},
    **{MEM | size | STX: "dso" for size in SIZES},
    **{ATOMIC | size | STX: "dsoi" for size in (W, DW)},
    LDDW: "di",
}


def _why_illegal(i: Instruction) -> str:
    """Return what is wrong with an encoding, as one clause; "" for a legal one."""
    uses = USES.get(i.opcode)
    if uses is None:
        packet = i.cls == LD and i.mode in (ABS, IND)
        why = "deprecated packet access" if packet else "not in RFC 9669"
        return f"opcode {i.opcode:#04x} is {why}"
    if i.dst > 10 or i.src > 10:
        return f"there is no register r{max(i.dst, i.src)}"
    selects = i.opcode in (LDDW, CALL | JMP)  # src is no register there
    limits = (
        (i.dst, "dst", "d" in uses),
        (i.src, "src", "s" in uses or selects),
        (i.imm, "imm", "i" in uses),
        (i.offset, "offset", "o" in uses or bool(_offsets(i))),
    )
    for value, name, used in limits:
        if value and not used:
            return f"{name} is {value} where this instruction has none"
    return _why_operand(i)


def _offsets(i: Instruction) -> tuple[int, ...]:
    """Return the offsets other than 0 that an arithmetic instruction may have.

    They select a variant: 1 a signed division, 8, 16 and 32 the bits that MOV sign-extends.
    """
    if i.cls not in (ALU, ALU64):
        return ()
    if i.op in (DIV, MOD):
        return (1,)
    if i.op == MOV and i.by_register:
        return (8, 16, 32) if i.cls == ALU64 else (8, 16)
    return ()


def _why_operand(i: Instruction) -> str:
    """Return what is wrong with the operands of an instruction, as one clause; "": nothing is.

    Args:
        i: the instruction; its opcode is legal, and fields that it does not use are 0.
    """
    if i.cls in (ALU, ALU64) and i.offset and i.offset not in _offsets(i):
        return f"offset {i.offset} means nothing for operation {i.op:#04x}"
    if i.cls in (ALU, ALU64) and i.op == END and i.imm not in (16, 32, 64):
        return f"a byte swap of {i.imm} bits"
    if i.cls == STX and i.mode == ATOMIC and i.imm not in ATOMICS:
        return f"atomic operation {i.imm & U32:#x} is not in RFC 9669"
    if i.opcode == CALL | JMP and i.src > BTF_CALL:
        return f"a call of kind {i.src}"
    if i.wide and i.src > MAP_VALUE:
        return f"a 64-bit load of kind {i.src}"
    return ""
