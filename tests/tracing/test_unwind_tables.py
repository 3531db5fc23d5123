"""Stacks by SFrame and ORC are those by call frame information, at every instruction."""

from __future__ import annotations

import random
import struct
import tarfile
from pathlib import Path
from typing import Any

import capstone
import pytest

from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes.debug.unwind_tables import Orc

with tarfile.open(Path(__file__).resolve().parents[1] / "data" / "unwind.tar.xz") as archive:
    FILES = {each.name: archive.extractfile(each).read() for each in archive.getmembers()}  # type: ignore[union-attr]
DECODERS = {"x86_64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64), "arm64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)}
#: where gas 2.40 forgets what .cfi_restore_state brings back
FORGOTTEN = {"arm64": ("deep+0x44", "deep+0x48", "deep+0x4c"), "x86_64": ()}
pytestmark = pytest.mark.quick


def stacks(arch: str, data: bytes) -> list[tuple[str, ...]]:
    """The stack at each instruction that a program executes, function by function, but for the outermost one's."""
    found: list[tuple[str, ...]] = []
    with UnicornMachine.load(data) as m, Kprobes(m) as k:
        def hit(p: Any, regs: Any) -> None:
            found.append(tuple(map(m.symbols.describe, k.stack_trace(regs))))

        for name in ("leaf", "deep", "mid", "dyn"):
            symbol = m.symbols[name]
            code = m.read(symbol.address, symbol.size)
            for address, *_ in capstone.Cs(*DECODERS[arch]).disasm_lite(code, symbol.address):
                k.register(Kprobe(addr=address, pre_handler=hit, optimize=False))
        m.call("main")
    return found


@pytest.mark.parametrize(("arch", "kind"), [("x86_64", "sframe"), ("x86_64", "orc"), ("x86_64", "module.o"), ("arm64", "sframe")])
def test_stacks_are_those_by_call_frames(arch: str, kind: str) -> None:
    expected = stacks(arch, FILES[f"{arch}/frames"])
    assert len(expected) > 200 and max(map(len, expected)) >= 6
    found = stacks(arch, FILES[f"{arch}/{kind}"])
    assert len(found) == len(expected)
    assert [(one, two) for one, two in zip(found, expected, strict=True) if one != two and two[0] not in FORGOTTEN[arch]] == []


def as_version_2(data: bytes) -> bytes:
    """A section of SFrame as version 2 has it, as long as before: without the rows of the last functions."""
    head = list(struct.unpack_from("<HBBBbbBIIIII", data))
    functions, first, rows = head[7], 28 + head[10], 28 + head[11]
    kept = functions - (3 * functions + 16) // 17 - 1
    head[1], head[2], head[7], head[11] = 2, head[2] | 4, kept, head[10] + 20 * kept
    table = b""
    for n in range(kept):
        start, *rest = struct.unpack_from("<iIIIB", data, first + 17 * n)
        table += struct.pack("<iIIIBBH", start - (first + 20 * n), *rest, 0, 0)
    made = struct.pack("<HBBBbbBIIIII", *head) + table + data[rows:]
    return made[:len(data)].ljust(len(data), b"\0")


def test_version_2_of_sframe() -> None:
    """Its functions have 20 bytes, and may count from themselves. Debian's gas writes version 1 only."""
    program = FILES["x86_64/sframe"]
    at = program.index(b"\xe2\xde\x01")
    head = struct.unpack_from("<HBBBbbBIIIII", program, at)
    size = 28 + head[11] + head[9]
    expected = stacks("x86_64", FILES["x86_64/frames"])
    section = as_version_2(program[at:at + size])
    found = stacks("x86_64", program[:at] + section + program[at + size:])
    inner = [n for n, stack in enumerate(expected) if stack[0].startswith("leaf") and stack[1].startswith("mid")]
    assert inner and all(found[n][:2] == expected[n][:2] for n in inner)


@pytest.mark.parametrize(("new", "kinds"), [(False, 0x04), (True, 0x01)])
def test_orc_says_where_stacks_end(new: bool, kinds: int) -> None:
    """Nothing has called the code of a row that is marked as the last: its stack is whole. Linux 6.4 has another mark."""
    rows = struct.pack("<hhBBhhBBhhBB", 0, 0, 0, 0, 8, 0, 5, 2 * new, 0, 0, 0, kinds)
    table = Orc(struct.pack("<3i", 0, 16 - 4, 32 - 8), 0x1000, rows, new)
    assert table.row(0x1000) is None
    call, last = table.row(0x1010), table.row(0x1020)
    assert call is not None and call.rules[16].type == "OFFSET"
    assert last is not None and last.rules[16].type == "UNDEFINED"


@pytest.mark.parametrize("kind", ["sframe", "orc"])
def test_damage(kind: str) -> None:
    """Of tables with bytes turned a walk ends early, or goes wrong; nobody falls over it."""
    program = FILES[f"x86_64/{kind}"]
    chance = random.Random(kind)
    start = program.index(b"\xe2\xde\x01") if kind == "sframe" else 0x2000
    for _ in range(12):
        data = bytearray(program)
        for _ in range(chance.choice((1, 4, 40))):
            data[start + chance.randrange(0xC0)] = chance.randrange(256)
        with UnicornMachine.load(bytes(data)) as m, Kprobes(m) as k:
            seen: list[int] = []
            k.register(Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: seen.append(len(k.stack_trace(regs)))))  # noqa: B023
            m.call("main")
            assert seen and min(seen) >= 1
