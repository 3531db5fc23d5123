"""Instructions: encodings by RFC 9669, both byte orders, what is refused, and how they are written."""

from __future__ import annotations

import random

import pytest

from kprobes.programs import isa
from kprobes.programs.disassembly import disassemble
from kprobes.programs.isa import Instruction, decode, encode, lddw

pytestmark = pytest.mark.quick

# bytes as a little-endian object has them, fields, text: worked out from the RFC's tables
KNOWN = [
    ("0f 21 00 00 00 00 00 00", (0x0F, 1, 2, 0, 0), "add64 r1, r2"),
    ("04 03 00 00 ff ff ff ff", (0x04, 3, 0, 0, -1), "add32 r3, -1"),
    ("37 01 01 00 07 00 00 00", (0x37, 1, 0, 1, 7), "sdiv64 r1, 7"),
    ("9c 21 00 00 00 00 00 00", (0x9C, 1, 2, 0, 0), "mod32 r1, r2"),
    ("bf 21 20 00 00 00 00 00", (0xBF, 1, 2, 32, 0), "movsx32_64 r1, r2"),
    ("bc 21 08 00 00 00 00 00", (0xBC, 1, 2, 8, 0), "movsx8_32 r1, r2"),
    ("87 04 00 00 00 00 00 00", (0x87, 4, 0, 0, 0), "neg64 r4"),
    ("d4 05 00 00 10 00 00 00", (0xD4, 5, 0, 0, 16), "le16 r5"),
    ("dc 05 00 00 20 00 00 00", (0xDC, 5, 0, 0, 32), "be32 r5"),
    ("d7 05 00 00 40 00 00 00", (0xD7, 5, 0, 0, 64), "bswap64 r5"),
    ("05 00 fe ff 00 00 00 00", (0x05, 0, 0, -2, 0), "ja -2"),
    ("06 00 00 00 00 00 01 00", (0x06, 0, 0, 0, 65536), "ja32 +65536"),
    ("56 01 03 00 05 00 00 00", (0x56, 1, 0, 3, 5), "jne32 r1, 5, +3"),
    ("cd 21 ff ff 00 00 00 00", (0xCD, 1, 2, -1, 0), "jslt r1, r2, -1"),
    ("85 00 00 00 05 00 00 00", (0x85, 0, 0, 0, 5), "call 5"),
    ("85 10 00 00 ff ff ff ff", (0x85, 0, 1, 0, -1), "call local -1"),
    ("95 00 00 00 00 00 00 00", (0x95, 0, 0, 0, 0), "exit"),
    ("79 a1 f8 ff 00 00 00 00", (0x79, 1, 10, -8, 0), "ldxdw r1, [r10-8]"),
    ("81 21 04 00 00 00 00 00", (0x81, 1, 2, 4, 0), "ldxsw r1, [r2+4]"),
    ("72 0a ff ff 07 00 00 00", (0x72, 10, 0, -1, 7), "stb [r10-1], 7"),
    ("6b 21 02 00 00 00 00 00", (0x6B, 1, 2, 2, 0), "stxh [r1+2], r2"),
    ("c3 21 04 00 00 00 00 00", (0xC3, 1, 2, 4, 0), "lock add32 [r1+4], r2"),
    ("db 21 00 00 41 00 00 00", (0xDB, 1, 2, 0, 0x41), "lock or_fetch64 [r1+0], r2"),
    ("db 21 00 00 e1 00 00 00", (0xDB, 1, 2, 0, 0xE1), "lock xchg64 [r1+0], r2"),
    ("db 21 00 00 f1 00 00 00", (0xDB, 1, 2, 0, 0xF1), "lock cmpxchg64 [r1+0], r2"),
]


@pytest.mark.parametrize("raw, fields, text", KNOWN, ids=[k[2] for k in KNOWN])
def test_known_encodings(raw, fields, text):
    code = bytes.fromhex(raw)
    (i,) = decode(code)
    assert i == Instruction(*fields)
    assert disassemble(i) == text
    assert i.why_illegal() == ""
    assert encode([i]) == code


def test_a_big_endian_object_has_the_register_nibbles_the_other_way_round():
    (i,) = decode(bytes.fromhex("79 1a ff f8 00 00 00 00"), "big")
    assert disassemble(i) == "ldxdw r1, [r10-8]"
    assert encode([i], "big") == bytes.fromhex("79 1a ff f8 00 00 00 00")


def test_wide_loads_take_two_slots():
    both = decode(bytes.fromhex("18 01 00 00 78 56 34 92" "00 00 00 00 ef cd ab 80"))
    assert len(both) == 2
    assert both[0].value == 0x80ABCDEF_92345678
    assert both == lddw(1, 0x80ABCDEF_92345678)
    assert both[1].why_illegal()
    assert [pc for pc, _ in isa.steps(both)] == [0]
    assert disassemble(lddw(2, 3, isa.MAP_VALUE, 16)[0]) == "lddw r2, map[3].value+16"


@pytest.mark.parametrize("order", ["little", "big"])
def test_whatever_the_bytes_they_come_back(order):
    rng = random.Random(9669)
    for _ in range(200):
        raw = rng.randbytes(8 * rng.randrange(1, 12))
        try:
            code = decode(raw, order)
        except ValueError:
            assert raw[-8] == isa.LDDW
            continue
        for _, i in isa.steps(code):
            assert disassemble(i)
            i.why_illegal()
        again = decode(encode(code, order), order)
        assert again == code


@pytest.mark.parametrize("raw, reason", [
    (b"\x95" * 7, "7 bytes are not whole"), (bytes([0x18]) + bytes(7), "takes two slots"),
])
def test_cut_code(raw, reason):
    with pytest.raises(ValueError, match=reason):
        decode(raw)


@pytest.mark.parametrize("fields, reason", [
    ((0x00,), "opcode 0x00 is not in"), ((0x20,), "deprecated packet"), ((0x0F, 11, 1), "no register r11"),
    ((0x0F, 1, 2, 0, 5), "imm is 5"),
    ((0x07, 1, 2, 0, 5), "src is 2"), ((0x07, 1, 0, 4, 5), "offset is 4"),
    ((0x37, 1, 0, 2, 5), "offset 2 means nothing for operation 0x30"),
    ((0xBC, 1, 2, 32), "offset 32"), ((0xD4, 1, 0, 0, 8), "byte swap of 8"), ((0xDF, 1, 0, 0, 16), "not in RFC"),
    ((0xDB, 1, 2, 0, 0x100), "atomic operation 0x100"), ((0xD3, 1, 2, 0, 0), "not in RFC"),
    ((0x85, 0, 3, 0, 1), "call of kind 3"),
    ((0x8D, 1), "not in RFC"), ((0x18, 1, 7), "load of kind 7"), ((0x95, 0, 0, 0, 1), "imm is 1"),
    ((0x99, 1, 2), "not in RFC"),
])
def test_what_is_no_instruction(fields, reason):
    assert reason in Instruction(*fields).why_illegal()


def test_the_number_of_opcodes_is_the_rfcs():
    # 12 two-operand operations x K, X x 2 widths, neg x 2, end le/be/bswap; 11 conditions x K, X x 2 widths, two ja,
    # call, exit; loads 4 + 3 sign-extending, stores 4 + 4, atomics 2, lddw
    legal = [op for op in range(256) if "not in RFC" not in (why := Instruction(op).why_illegal())
             and "deprecated" not in why]
    assert len(legal) == 12 * 4 + 2 + 3 + 11 * 4 + 2 + 2 + 7 + 8 + 2 + 1


def test_where_jumps_lead():
    assert Instruction(isa.JMP | isa.JA, offset=-3).target(10) == 8
    assert Instruction(isa.JMP32 | isa.JA, imm=70000).target(10) == 70011
    assert Instruction(isa.JMP | isa.CALL, src=isa.LOCAL, imm=4).target(10) == 15
    assert lddw(1, 4, isa.CODE, 0)[0].target(10) == 15
