"""Stacks by SFrame and ORC are those by call frame information, at every instruction."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import capstone
import pytest

from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes.debug.file import DAMAGE
from kprobes.debug.unwind_tables import ArmIndex, Orc

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


def arm_row(operations: bytes) -> Any:
    """The row that operations of a function at 0x8000 amount to, in a call of it; its entry refers to a table."""
    table = struct.pack("<I", (len(operations) - 3) // 4 << 24 | int.from_bytes(operations[:3], "big"))
    table += b"".join(operations[n:n + 4][::-1] for n in range(3, len(operations), 4))
    behind = bytes(4) + table  # the offset of a language's routine
    entries = struct.pack("<2I", 0x8000 - 0x9000 & 0x7FFFFFFF, 0xA000 - 0x9004)
    return ArmIndex(entries, 0x9000, "little", lambda at, size: behind[at - 0xA000:at - 0xA000 + size]).row(0x8011)


@pytest.mark.parametrize(("operations", "cfa", "rules"), [
    ("a8b0b0", (13, 8), {4: -8, 14: -4}),  # pop {r4, lr}
    ("9b8480", (11, 8), {11: -8, 14: -4}),  # sp = r11, pop {r11, lr}
    ("028488", (13, 24), {7: -12, 11: -8, 14: -4}),  # sp += 12, pop {r7, fp, lr}
    ("42a8b0", (13, -4), {4: -8, 14: -4}),  # sp -= 12, pop {r4, lr}
    ("b10fa8", (13, 24), {0: -24, 1: -20, 2: -16, 3: -12, 4: -8, 14: -4}),  # pop {r0-r3}, pop {r4, lr}
    ("b201a8", (13, 0x204 + 12), {4: -8, 14: -4}),  # sp += 0x208, pop {r4, lr}
    ("c901a8", (13, 24), {4: -8, 14: -4}),  # pop {d0, d1}, pop {r4, lr}
    ("b9018400b0b0b0", (13, 32), {14: -4}),  # FLDMX of d8 and d9, sp += 8, pop {lr}
    ("d1a8b0", (13, 24), {4: -8, 14: -4}),  # pop {d8, d9}, pop {r4, lr}
    ("b1f0b0", None, None), ("800000", None, None), ("9db0b0", None, None), ("a0b0b0", None, None), ("cab0b0", None, None),
])
def test_operations_of_arms_index(operations: str, cfa: tuple[int, int] | None, rules: dict[int, int]) -> None:
    """EHABI32, 10.3. What is not known, and what finds no return address, gives no row."""
    row = arm_row(bytes.fromhex(operations))
    if cfa is None:
        assert row is None
    else:
        assert row is not None
        assert (row.cfa.reg, row.cfa.offset) == cfa
        assert {number: rule.arg for number, rule in row.rules.items()} == rules


def test_arms_index_where_it_is_damaged() -> None:
    rng = random.Random(9)
    for _ in range(3000):
        data = rng.randbytes(rng.randrange(60))
        try:
            row = ArmIndex(data, 0x9000, rng.choice(("little", "big")), lambda at, size, data=data: data[at & 31:][:size]).row(
                rng.randrange(1 << 32) | 1)
        except DAMAGE:
            continue
        assert row is None or row.link == 14


ARM_CALLBACK = """
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) int compare(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b; sink += x; return x - y; }
int main(void) { int all[20], i; for (i = 0; i < 20; i++) all[i] = i * 7 % 20; qsort(all, 20, 4, compare); return all[3]; }
"""


@pytest.mark.parametrize("prefix", ["arm-linux-gnueabihf", "arm-linux-gnueabi"])
def test_stacks_through_arms_index(prefix: str, tmp_path: Path) -> None:
    """libc's code on Arm has no call frame information."""
    compiler = shutil.which(f"{prefix}-gcc-12") or shutil.which(f"{prefix}-gcc")
    if compiler is None or not Path(f"/usr/{prefix}/lib/libc.a").exists():
        pytest.skip(f"there is no {prefix}-gcc with its library")
    (tmp_path / "sort.c").write_text(ARM_CALLBACK)
    subprocess.run([compiler, "-g", "-O1", "-static", "sort.c", "-o", "sort"], check=True, cwd=tmp_path)
    seen = []
    with UnicornMachine.load(tmp_path / "sort") as m, Kprobes(m) as k:
        start = m.symbols["compare"]
        body = m.debug.lines(start.address, start.address + start.size)[1].address
        for place in (start.address, body):
            k.register(Kprobe(addr=place, pre_handler=lambda p, regs: seen.append(
                [m.symbols.describe(each).partition("+")[0] for each in k.stack_trace(regs)])))
        m.serve_system_calls()
        m.process([b"sort"])
        m.run()
    assert len(seen) > 40
    assert all("main" in stack and stack[-1] == "_start" for stack in seen)
    assert {stack[0] for stack in seen} == {"compare"}
