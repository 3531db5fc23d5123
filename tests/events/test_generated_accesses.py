"""Watchpoints against a model: generated loads and stores, on every architecture that the engine runs, in IT blocks and
delay slots as well, and with probes on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from arches import RUNNABLE
from attrs import frozen

from kprobes import Kprobe, KprobeError, Kprobes, UnicornMachine

BASE, DATA = 0x10000, 0x20FC0  # the data goes on in a second page
ROOM = 120  # bytes
VALUE = 0x8796A5B4C3D2E1F0
LENGTH = 24  # accesses of a program

Encode = Callable[[str, int, int], bytes]


@frozen
class Isa:
    """How an architecture accesses memory.

    Attributes:
        encode: (kind, size, offset) -> an instruction; kind is "r" or "w".
        sizes: of accesses, in bytes.
        base, data: registers: the address of the data, and what is stored.
        around: what an access may stand in: (code before it, code behind it, whether it is executed).
        mode: bits of the code's addresses.
    """

    encode: Encode
    sizes: tuple[int, ...]
    base: str
    data: str
    around: tuple[tuple[bytes, bytes, bool], ...] = ()
    mode: int = 0


def x86(kind: str, size: int, offset: int) -> bytes:
    prefix = {2: b"\x66", 8: b"\x48"}.get(size, b"")
    opcode = (0x88 if kind == "w" else 0x8A) + (size > 1)
    return prefix + bytes([opcode, 0x57 if kind == "w" else 0x47, offset])


def a64(kind: str, size: int, offset: int) -> bytes:
    word = 0x38000000 | (size.bit_length() - 1) << 30 | offset << 12 | (1 if kind == "w" else 0x400002)
    return word.to_bytes(4, "little")


def a32(kind: str, size: int, offset: int) -> bytes:
    if size == 2:
        word = (0xE1C010B0 if kind == "w" else 0xE1D020B0) | offset >> 4 << 8 | offset & 15
    else:
        word = (0xE5801000 if kind == "w" else 0xE5902000) | (size == 1) << 22 | offset
    return word.to_bytes(4, "little")


def t32(kind: str, size: int, offset: int) -> bytes:
    first = 0xF880 | (size.bit_length() - 1) << 5 | (kind == "r") << 4
    return first.to_bytes(2, "little") + ((1 if kind == "w" else 2) << 12 | offset).to_bytes(2, "little")


def mips(order: Any) -> Encode:
    loads, stores = {1: 0x20, 2: 0x21, 4: 0x23, 8: 0x37}, {1: 0x28, 2: 0x29, 4: 0x2B, 8: 0x3F}

    def encode(kind: str, size: int, offset: int) -> bytes:
        opcode, register = (stores[size], 5) if kind == "w" else (loads[size], 8)
        return (opcode << 26 | 4 << 21 | register << 16 | offset).to_bytes(4, order)

    return encode


def ppc(order: Any) -> Encode:
    loads, stores = {1: 34, 2: 40, 4: 32, 8: 58}, {1: 38, 2: 44, 4: 36, 8: 62}

    def encode(kind: str, size: int, offset: int) -> bytes:
        opcode, register = (stores[size], 4) if kind == "w" else (loads[size], 5)
        return (opcode << 26 | register << 21 | 3 << 16 | offset).to_bytes(4, order)

    return encode


def riscv(kind: str, size: int, offset: int) -> bytes:
    width = (size.bit_length() - 1) << 12
    if kind == "w":
        word = 0x23 | width | (offset & 31) << 7 | 10 << 15 | 11 << 20 | offset >> 5 << 25
    else:
        word = 3 | width | 12 << 7 | 10 << 15 | offset << 20
    return word.to_bytes(4, "little")


def s390x(kind: str, size: int, offset: int) -> bytes:
    if size == 8:
        return bytes([0xE3, 0x30 if kind == "w" else 0x40, 0x20, offset, 0, 0x24 if kind == "w" else 4])
    opcode = {1: 0x42, 2: 0x40, 4: 0x50}[size] if kind == "w" else {1: 0x43, 2: 0x48, 4: 0x58}[size]
    return bytes([opcode, 0x30 if kind == "w" else 0x40, 0x20, offset])


def sparc(kind: str, size: int, offset: int) -> bytes:
    opcode = {1: 5, 2: 6, 4: 4, 8: 0xE}[size] if kind == "w" else {1: 1, 2: 2, 4: 0, 8: 0xB}[size]
    register = 9 if kind == "w" else 10
    return (3 << 30 | register << 25 | opcode << 19 | 8 << 14 | 1 << 13 | offset).to_bytes(4, "big")


def m68k(kind: str, size: int, offset: int) -> bytes:
    opcode = {1: 0x1000, 2: 0x3000, 4: 0x2000}[size] | (0x140 if kind == "w" else 0x228)
    return opcode.to_bytes(2, "big") + offset.to_bytes(2, "big")


def tricore(kind: str, size: int, offset: int) -> bytes:
    second = {1: 0x20, 2: 0x22, 4: 0x24}[size]
    register, opcode = (4, 0x89) if kind == "w" else (2, 0x09)
    word = offset >> 6 << 28 | second << 22 | (offset & 63) << 16 | 4 << 12 | register << 8 | opcode
    return word.to_bytes(4, "little")


IT_BLOCKS = tuple((bytes.fromhex(before), bytes.fromhex(behind), executed) for before, behind, executed in (
    ("804208bf", "", True),  # cmp r0, r0; it eq
    ("804218bf", "", False),  # it ne
    ("804206bf0133", "0134", True),  # itte eq; addeq r3, 1; access; addne r4, 1
    ("80420cbf", "0135", True),  # ite eq; access; addne r5, 1
    ("80421cbf0136", "", False)))  # itt ne


def slots(order: Any, taken: int, untaken: int, nop: int) -> tuple[tuple[bytes, bytes, bool], ...]:
    """A branch over an instruction, and one that is not taken; the access is in their delay slots."""
    skipped = nop.to_bytes(4, order)
    return ((taken.to_bytes(4, order), skipped, True), (untaken.to_bytes(4, order), skipped, True))


MIPS = {"big": slots("big", 0x10000002, 0x14000002, 0x254A0001), "little": slots("little", 0x10000002, 0x14000002,
                                                                                  0x254A0001)}
SPARC = slots("big", 0x10800003, 0x00800003, 0x96036001)
NARROW, WIDE = (1, 2, 4), (1, 2, 4, 8)
ISAS = {
    "x86_64": Isa(x86, WIDE, "rdi", "rdx"), "i386": Isa(x86, NARROW, "edi", "edx"),
    "arm64": Isa(a64, WIDE, "x0", "x1"), "arm64be": Isa(a64, WIDE, "x0", "x1"),
    "arm": Isa(a32, NARROW, "r0", "r1"), "armeb": Isa(a32, NARROW, "r0", "r1"),
    "thumb": Isa(t32, NARROW, "r0", "r1", IT_BLOCKS, mode=1),
    "cortexm": Isa(t32, NARROW, "r0", "r1", IT_BLOCKS, mode=1),
    **{name: Isa(mips("little" if name.endswith("el") else "big"), WIDE if "64" in name else NARROW, "a0", "a1",
                 MIPS["little" if name.endswith("el") else "big"]) for name in RUNNABLE if name.startswith("mips")},
    "ppc": Isa(ppc("big"), NARROW, "r3", "r4"), "ppc64": Isa(ppc("big"), WIDE, "r3", "r4"),
    "ppc64le": Isa(ppc("little"), WIDE, "r3", "r4"),
    "riscv32": Isa(riscv, NARROW, "a0", "a1"), "riscv64": Isa(riscv, WIDE, "a0", "a1"),
    "s390x": Isa(s390x, WIDE, "r2", "r3"),
    "sparc": Isa(sparc, NARROW, "o0", "o1", SPARC), "sparc64": Isa(sparc, WIDE, "o0", "o1", SPARC),
    "m68k": Isa(m68k, NARROW, "a0", "d0"), "tricore": Isa(tricore, NARROW, "a4", "d4"),
}


@frozen
class Access:
    """A generated access.

    Attributes:
        pc: of its instruction.
        kind, size, offset: what it does.
    """

    pc: int
    kind: str
    size: int
    offset: int


def generate(isa: Isa, rng: random.Random) -> tuple[bytes, list[int], list[Access]]:
    """A program: its code, where its accesses are, and those that are executed."""
    code, places, done = b"", list[int](), list[Access]()
    for _ in range(LENGTH):
        before, behind, executed = b"", b"", True
        if isa.around and rng.random() < 0.6:
            before, behind, executed = rng.choice(isa.around)
        size = rng.choice(isa.sizes)
        access = Access(BASE + len(code + before), rng.choice("rw"), size, rng.randrange(0, ROOM, size))
        places.append(access.pc)
        code += before + isa.encode(access.kind, size, access.offset) + behind
        if executed:
            done.append(access)
    return code, places, done


def model(done: list[Access], start: bytes, order: Any, first: int, size: int, wanted: str) -> Iterator[Any]:
    """What a watchpoint at [first, first + size) sees, one access after the other."""
    memory = bytearray(start)
    for access in done:
        old = int.from_bytes(memory[first:first + size], order)
        if access.kind == "w":
            data = (VALUE & (1 << 8 * access.size) - 1).to_bytes(access.size, order)
            memory[access.offset:access.offset + access.size] = data
        if access.offset < first + size and first < access.offset + access.size and access.kind in wanted:
            new = int.from_bytes(memory[first:first + size], order)
            yield access.pc, access.kind, access.offset, access.size, old, new


def run(name: str, isa: Isa, code: bytes, start: bytes, watch: tuple[int, int, str] | None,
        probed: list[int]) -> tuple[dict[str, int], bytes, list[Any], int]:
    """The registers and the data behind a program, what its watchpoint saw, and how many probes there were."""
    arch, seen = "arm" if name == "thumb" else name, list[Any]()
    with UnicornMachine.from_code(code + bytes(64), arch=arch, base=BASE) as m, Kprobes(m) as k:
        m.map(DATA & -0x1000, 0x2000)
        m.write(DATA, start)
        m.regs[isa.base], m.regs[isa.data] = DATA, VALUE & m.arch.mask
        hits = []
        for address in probed:
            with suppress(KprobeError):  # some may not stand there
                k.register(Kprobe(addr=address | isa.mode, pre_handler=lambda p, regs: hits.append(p.addr), optimize=False))
        if watch is not None:
            first, size, wanted = watch
            k.watchpoint(DATA + first, size, wanted, lambda w, regs: seen.append(
                (regs.pc, w.access, w.accessed - DATA, w.accessed_size, w.before, w.value)))
        m.run(BASE | isa.mode, until=BASE + len(code) | isa.mode)
        registers = {r: m.regs[r] for r in m.arch.regs.names}
        return registers, m.read(DATA, ROOM), seen, len(hits)


def test_every_architecture_has_a_row() -> None:
    assert set(ISAS) == {*RUNNABLE, "thumb"}


@pytest.mark.parametrize("name", sorted(ISAS))
def test_accesses_are_those_of_the_model(name: str) -> None:
    isa, rng, hits, probes = ISAS[name], random.Random(name), 0, 0
    for _ in range(6):
        code, places, done = generate(isa, rng)
        start, first = rng.randbytes(ROOM), rng.randrange(ROOM - 1)
        size, wanted = rng.randint(1, ROOM - first), rng.choice(("r", "w", "rw"))
        plain = run(name, isa, code, start, None, [])
        expected = list(model(done, start, _order(name), first, size, wanted))
        for probed in [], rng.sample(places, 5):
            registers, data, seen, hit = run(name, isa, code, start, (first, size, wanted), probed)
            assert seen == expected
            assert (registers, data) == plain[:2]
            hits += len(seen)
            probes += hit
    assert hits > 10 and probes


def _order(name: str) -> str:
    with UnicornMachine.from_code(bytes(16), arch="arm" if name == "thumb" else name, base=BASE) as m:
        return m.arch.order.value
