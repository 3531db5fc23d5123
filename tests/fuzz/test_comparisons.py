"""Comparisons of guest code on every architecture: how many bytes are equal is counted, by host code and by Python."""

from __future__ import annotations

import ctypes
from itertools import pairwise, product

import pytest
from arches import RUNNABLE

from kprobes import UnicornMachine, get_arch
from kprobes.arch.m68k.comparing import find as m68k_comparison
from kprobes.machine.unicorn.host import hostcode

BASE, NUMBER = 0x10000, 0x11223344
SECOND = "second"  #: compared with the second argument
STORED = "stored"  #: compared with what the second argument points to
BOTH = "both stored"

CASES: list[tuple[str, str, str, int | str]] = [
    ("x86_64", "cmp edi, esi; ret", "39f7 c3", SECOND),
    ("i386", "mov eax, [esp+4]; cmp eax, [esp+8]; ret", "8b442404 3b442408 c3", SECOND),
    ("arm", "cmp r0, r1; bx lr", "010050e1 1eff2fe1", SECOND),
    ("armeb", "cmp r0, r1; bx lr", "010050e1 1eff2fe1", SECOND),
    ("cortexm", "cmp r0, r1; bx lr", "8842 7047", SECOND),
    ("arm64", "cmp w0, w1", "1f00016b", SECOND),
    ("arm64", "cmp x0, x1", "1f0001eb", SECOND),
    ("arm64", "cmp w0, #0x123", "1f8c0471", 0x123),
    ("arm64", "cmp x0, #0x123, lsl #12", "1f8c44f1", 0x123000),
    ("arm64", "cmn w0, #0x123", "1f8c0431", -0x123),
    ("arm64", "cmp w0, w1, uxth", "1f20216b", SECOND),
    ("arm64", "ccmp w0, w1, #0, eq", "0000417a", SECOND),
    ("arm64", "ccmp x0, #5, #0, ne", "001845fa", 5),
    ("arm64", "cbz w0, .+4", "20000034", 0),
    ("arm64", "cbnz x0, .+4", "200000b5", 0),
    ("arm64be", "cmp w0, w1", "1f00016b", SECOND),
    ("riscv64", "beq a0, a1, .+4", "6302b500", SECOND),
    ("riscv64", "bltu a0, a1, .+4", "6362b500", SECOND),
    ("riscv64", "bge a1, a0, .+4", "63d2a500", SECOND),
    ("riscv64", "slt a0, a0, a1", "3325b500", SECOND),
    ("riscv64", "sltu a0, a1, a0", "33b5a500", SECOND),
    ("riscv64", "slti a0, a0, -0x123", "1325d5ed", -0x123),
    ("riscv64", "sltiu a0, a0, 0x123", "13353512", 0x123),
    ("riscv64", "c.beqz a0, .+4; c.nop", "11c1 0100", 0),
    ("riscv64", "c.bnez a0, .+4; c.nop", "11e1 0100", 0),
    ("riscv32", "beq a0, a1, .+4", "6302b500", SECOND),
    ("riscv32", "slti a0, a0, -0x123", "1325d5ed", -0x123),
    ("mips", "beq $4, $5, .+8; nop", "10850001 00000000", SECOND),
    ("mips", "bne $5, $4, .+8; nop", "14a40001 00000000", SECOND),
    ("mips", "beql $4, $5, .+8; nop", "50850001 00000000", SECOND),
    ("mips", "slt $2, $4, $5", "0085102a", SECOND),
    ("mips", "sltu $2, $5, $4", "00a4102b", SECOND),
    ("mips", "slti $2, $4, -0x123", "2882fedd", -0x123),
    ("mips", "sltiu $2, $4, 0x123", "2c820123", 0x123),
    ("mipsel", "sltu $2, $5, $4", "2b10a400", SECOND),
    ("mips64", "bne $5, $4, .+8; nop", "14a40001 00000000", SECOND),
    ("mips64el", "slti $2, $4, -0x123", "ddfe8228", -0x123),
    ("mips32r6", "slt $2, $4, $5", "0085102a", SECOND),
    ("mips32r6el", "slt $2, $4, $5", "2a108500", SECOND),
    ("mips64r6", "beqc $4, $5, .+8; nop", "20850001 00000000", SECOND),
    ("mips64r6", "bnec $4, $5, .+8; nop", "60850001 00000000", SECOND),
    ("mips64r6", "bgec $4, $5, .+8; nop", "58850001 00000000", SECOND),
    ("mips64r6", "bltuc $4, $5, .+8; nop", "1c850001 00000000", SECOND),
    ("mips64r6", "beqzc $4, .+8; nop", "d8800001 00000000", 0),
    ("mips64r6el", "bnec $4, $5, .+8; nop", "01008560 00000000", SECOND),
    ("ppc", "cmpw 3, 4", "7c032000", SECOND),
    ("ppc", "cmplw 7, 3, 4", "7f832040", SECOND),
    ("ppc", "cmpwi 3, -0x123", "2c03fedd", -0x123),
    ("ppc", "cmplwi 3, 0x8123", "28038123", 0x8123),
    ("ppc64", "cmpd 3, 4", "7c232000", SECOND),
    ("ppc64", "cmpld 3, 4", "7c232040", SECOND),
    ("ppc64", "cmpdi 3, 0x123", "2c230123", 0x123),
    ("ppc64", "cmpldi 3, 0x8123", "28238123", 0x8123),
    ("ppc64le", "cmpld 3, 4", "4020237c", SECOND),
    ("s390x", "cr %r2, %r3", "1923", SECOND),
    ("s390x", "clr %r2, %r3", "1523", SECOND),
    ("s390x", "cgr %r2, %r3", "b9200023", SECOND),
    ("s390x", "clgr %r2, %r3", "b9210023", SECOND),
    ("s390x", "chi %r2, -0x123", "a72efedd", -0x123),
    ("s390x", "cghi %r2, 0x123", "a72f0123", 0x123),
    ("s390x", "cfi %r2, 0x11223344", "c22d11223344", NUMBER),
    ("s390x", "clfi %r2, 0xf1223344", "c22ff1223344", 0xF1223344),
    ("s390x", "cgfi %r2, -0x1223344", "c22cfeddccbc", -0x1223344),
    ("s390x", "clgfi %r2, 0xf1223344", "c22ef1223344", 0xF1223344),
    ("s390x", "crj %r2, %r3, 8, .+6", "ec2300038076", SECOND),
    ("s390x", "cgrj %r2, %r3, 8, .+6", "ec2300038064", SECOND),
    ("s390x", "clrj %r2, %r3, 8, .+6", "ec2300038077", SECOND),
    ("s390x", "clgrj %r2, %r3, 8, .+6", "ec2300038065", SECOND),
    ("s390x", "cij %r2, -5, 8, .+6", "ec280003fb7e", -5),
    ("s390x", "clij %r2, 0xf5, 8, .+6", "ec280003f57f", 0xF5),
    ("s390x", "cgij %r2, 5, 8, .+6", "ec280003057c", 5),
    ("s390x", "clgij %r2, 5, 8, .+6", "ec280003057d", 5),
    ("s390x", "c %r2, 0(%r3)", "59203000", STORED),
    ("s390x", "lghi %r4, -4; cl %r2, 4(%r4,%r3)", "a749fffc 55243004", STORED),
    ("s390x", "aghi %r3, 4; cly %r2, -4(%r3)", "a73b0004 e3203ffcff55", STORED),
    ("s390x", "clc 0(4,%r2), 0(%r3)", "d50320003000", BOTH),
    ("s390x", "crl %r2, .+8; br %r14; 0x11223344", "c62d00000004 07fe 11223344", NUMBER),
    ("m68k", "cmp.l 8(%sp), %d0", "202f0004 b0af0008", SECOND),
    ("m68k", "cmp.l %d1, %d0", "202f0004 222f0008 b081", SECOND),
    ("m68k", "cmpa.l 8(%sp), %a0", "206f0004 b1ef0008", SECOND),
    ("m68k", "cmpi.l #0x11223344, %d0", "202f0004 0c8011223344", NUMBER),
    ("m68k", "cmpi.l #0x11223344, 4(%sp)", "0caf11223344 0004", NUMBER),
    ("m68k", "cmpm.l (%a0)+, (%a1)+", "206f0004 226f0008 b388", BOTH),
    ("m68k", "addq.l #4, %a0; cmp.l -(%a0), %d0", "206f0008 202f0004 5888 b0a0", STORED),
    ("m68k", "tst.l %d0", "202f0004 4a80", 0),
    ("sparc", "cmp %o0, %o1", "80a20009", SECOND),
    ("sparc", "cmp %o0, 0x123", "80a22123", 0x123),
    ("sparc", "ba .+8; cmp %o0, %o1", "10800002 80a20009", SECOND),
    ("sparc64", "cmp %o0, %o1", "80a20009", SECOND),
    ("sparc64", "cmp %o0, -0x123", "80a23edd", -0x123),
    ("sparc64", "ba %xcc, .+8; cmp %o0, %o1", "10680002 80a20009", SECOND),
    ("tricore", "eq %d2, %d4, %d5", "0b540021", SECOND),
    ("tricore", "lt.u %d2, %d4, %d5", "0b543021", SECOND),
    ("tricore", "jeq %d4, %d5, .+4", "5f540200", SECOND),
    ("tricore", "jge.u %d4, %d5, .+4", "7f540280", SECOND),
    ("tricore", "eq %d2, %d4, -5", "8bb41f22", -5),
    ("tricore", "jne %d4, -5, .+4", "dfb40280", -5),
]
#: how functions return that end in their comparison, by the beginning of the architecture's name; words of MIPS
RETURNS = {"arm64": "c0035fd6", "riscv": "67800000", "ppc64le": "2000804e", "ppc": "4e800020", "s390x": "07fe",
           "m68k": "4e75", "sparc": "81c3e00801000000", "tricore": "0090", "mips": "", "": ""}


def code(arch: str, text: str) -> bytes:
    """A function that compares, and returns."""
    if arch.startswith("mips"):
        jump = 0x03E00009 if "r6" in arch else 0x03E00008
        return bytes.fromhex(text) + jump.to_bytes(4, get_arch(arch).order.value) + bytes(4)
    return bytes.fromhex(text + next(RETURNS[name] for name in RETURNS if arch.startswith(name)))


def counted(arch: str, text: str, other: int | str) -> list[int]:
    """How many counters are set: for values of which no byte, ..., all bytes are equal to what they are compared with."""
    function = code(arch, text)
    number = other if isinstance(other, int) else NUMBER
    found = []
    with UnicornMachine.from_code(function, arch=arch, symbols={"f": (BASE, len(function))}) as m:
        places = m.alloc(8), m.alloc(8)
        for differs in (0x01010101, 0x010101, 0x0101, 1, 0):
            value = (number ^ differs) & m.arch.mask
            m.write(places[0], (value & 0xFFFFFFFF).to_bytes(4, m.arch.order.value))
            m.write(places[1], NUMBER.to_bytes(4, m.arch.order.value))
            second = places[1] if other in (STORED, BOTH) else NUMBER
            counters = (ctypes.c_uint8 * (1 << 12))()
            edges = m.map_edges(counters, comparisons=True)
            m.call("f", places[0] if other == BOTH else value, second)
            edges.close()
            found.append(sum(map(bool, counters)))
            assert max(counters) <= 2  # the comparison was counted once
    return found


@pytest.mark.quick
@pytest.mark.parametrize("way", ["host code", "python"])
@pytest.mark.parametrize(("arch", "text", "encoding", "other"), CASES, ids=str)
def test_equal_bytes(arch: str, text: str, encoding: str, other: int | str, way: str,
                     monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "python":
        monkeypatch.setattr(hostcode, "available", lambda: False)
    elif not hostcode.available():
        pytest.skip("no host code here")
    found = counted(arch, encoding, other)
    more = [after - before for before, after in pairwise(found)]
    assert more == ([0, 0, 1, 0] if "uxth" in text else [1, 1, 1, 0])


def test_every_architecture_is_in_the_table() -> None:
    assert {arch for arch, *_ in CASES} == set(RUNNABLE)


#: CMP, a branch, its delay slot, what is behind both, RETL; by what the delay slot compares or subtracts
DELAYED = {"cmp": 0x80A28008, "sub": 0x94228009, "nop": 0x01000000}
BRANCHES = {"be": 0x02800003, "bne": 0x12800003, "bl": 0x06800003, "bgu": 0x18800003, "ba": 0x10800003,
            "bn": 0x00800003}


@pytest.mark.parametrize("way", ["host code", "python"])
@pytest.mark.parametrize("arch", ["sparc", "sparc64"])
def test_delay_slots_of_sparc(arch: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A jump whose delay slot compares goes where it did; and each comparison of a block has counters of its own."""
    if way == "python":
        monkeypatch.setattr(hostcode, "available", lambda: False)
    elif not hostcode.available():
        pytest.skip("no host code here")
    for branch, annulled, slot in product(BRANCHES.values(), (0, 1 << 29), DELAYED.values()):
        words = (0x80A20009, branch | annulled, slot, 0x90022001, 0x81C3E008, 0x9002000A)
        function = b"".join(word.to_bytes(4, "big") for word in words)
        with UnicornMachine.from_code(function, arch=arch, symbols={"f": (BASE, len(function))}) as m:
            calls = [(5, 5, 9), (5, 6, 9), (6, 5, 9), (NUMBER, NUMBER, NUMBER + 256)]
            plain = [m.call("f", *values) for values in calls]
            edges = m.map_edges((ctypes.c_uint8 * (1 << 12))(), comparisons=True)
            assert [m.call("f", *values) for values in calls] == plain
            edges.close()


def test_subtractions_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Host code and Python tell them apart alike, and spans choose among their blocks."""
    if not hostcode.available():
        pytest.skip("no host code here")
    words = (0x80A20009, 0x80A2000A, 0x80A2400A, 0x81C3E008, 0x01000000)
    function = b"".join(word.to_bytes(4, "big") for word in words)

    def run(*spans: tuple[int, int]) -> bytes:
        counters = (ctypes.c_uint8 * (1 << 12))()
        with UnicornMachine.from_code(function, arch="sparc", symbols={"f": (BASE, len(function))}) as m:
            m.map_edges(counters, spans, comparisons=True)
            m.call("f", NUMBER, NUMBER + 1, NUMBER + 256)
        return bytes(counters)

    found = run()
    assert sum(map(bool, found)) == 1 + 3 + 2 + 2
    assert run((BASE, BASE + 4)) == found and not any(run((BASE + 4, BASE + 8)))
    monkeypatch.setattr(hostcode, "available", lambda: False)
    assert run() == found


@pytest.mark.quick
@pytest.mark.parametrize("encoding", ["b03c0005", "0c000005", "b03cff05", "b07c0005", "0c800000 0005"])
def test_immediate_bytes_of_m68k(encoding: str) -> None:
    """CMP.B #5,D0; CMPI.B #5,D0; CMP.B with rubbish in the upper byte; CMP.W; CMPI.L."""
    found = m68k_comparison(bytes.fromhex(encoding) + bytes(8), BASE)
    assert found is not None
    assert found.other.constant == 5
