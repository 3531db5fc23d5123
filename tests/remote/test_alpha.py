"""Alpha's branches and jumps: as QEMU executes them, as the library simulates them, and displaced, in every kind of
state."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from arches import expected
from qemu import qemu_for

from kprobes import Kprobe, Kprobes, Kretprobe, OutOfReach, QemuMachine

VALUES = (0, 1, 2, (1 << 64) - 1, 1 << 63, (1 << 63) - 1, 1 << 63 | 1, 0x7FF8 << 48, 0xFFF8 << 48, 0x3FF0 << 48,
          0xBFF0 << 48)
ITOFT, LDA, ADDQ, BIS, RET = 0x501F0480, 0x20000000, 0x40000400, 0x44000400, 0x6BFA8001
AT, TARGET, ELSEWHERE = 0x40, 0x80, 0x200  # of the instruction, where it goes, its displaced code
CONDITIONAL = [op << 26 | 16 << 21 | (TARGET - AT) // 4 - 1 for op in (*range(0x31, 0x34), *range(0x35, 0x40))
               if op != 0x34]
LINKING = [op << 26 | a << 21 | (TARGET - AT) // 4 - 1 for op in (0x30, 0x34) for a in (31, 0)]
JUMPS = [0x1A << 26 | a << 21 | b << 16 | hint << 14 for hint in range(4) for a, b in ((31, 16), (0, 16), (16, 16))]


def code(*words: int) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


@pytest.fixture(scope="module")
def guest(programs: Callable[[str], Path]) -> Iterator[QemuMachine]:
    qemu_for("alpha-O2")
    with QemuMachine.user([programs("alpha-O2")], env={}, timeout=20, stdout=subprocess.DEVNULL) as m:
        yield m


def end(n: int) -> bytes:
    """r0 = r0 * 16 + a0 + n: whatever of them is linked shows."""
    sll = 0x48000720 | 4 << 13 | 1 << 12  # sll r0, 4, r0
    return code(sll, ADDQ | 16 << 16, LDA | n, RET)


@pytest.mark.parametrize("word", [*CONDITIONAL, *LINKING, *JUMPS], ids=hex)
def test_as_qemu_executes_it(guest: QemuMachine, word: int) -> None:
    m, page = guest, guest.map_code()
    m.symbols.add(f"at{word:x}", page, m.page_size)
    lead = code(ITOFT | 16 << 21 | 16, BIS | 31 << 21 | 31 << 16)  # f16 = a0; r0 = 0
    m.patch(page + AT - 8, lead + code(word) + end(1))
    m.patch(page + TARGET, end(2))
    values = [page + TARGET + low for low in range(4)] if word in JUMPS else VALUES
    native = [m.call(page + AT - 8, value, timeout=10) for value in values]
    if word in CONDITIONAL:
        assert len({(got - value) % (1 << 64) for got, value in zip(native, values,
                                                                    strict=True)}) == 2, "it goes both ways"
    insn = m.arch.decode(code(word), page + AT)
    with Kprobes(m) as k:
        k.register(probe := Kprobe(addr=page + AT))
        assert [m.call(page + AT - 8, value, timeout=10) for value in values] == native
        assert probe.nhit == len(values)
    assert insn.displace is not None
    if word in JUMPS and word >> 21 & 31 == word >> 16 & 31:
        with pytest.raises(OutOfReach):
            insn.displace(page + ELSEWHERE)
        return
    away = insn.displace(page + ELSEWHERE)
    assert len(away) <= m.arch.out_of_line.max_displaced
    m.patch(page + ELSEWHERE - 8, lead + away + end(1))
    assert [m.call(page + ELSEWHERE - 8, value, timeout=10) for value in values] == native


def test_callers_make_their_gp_again_from_the_return_address(guest: QemuMachine) -> None:
    """Every function with a return probe: each call comes back to code that counts from ra. Probes stand behind the
    entry's gp."""
    m, wanted = guest, expected()
    with Kprobes(m) as k:
        names = [name for name in wanted["tests"] if name in m.symbols]
        entries = [m.arch.pointers.code_address(m.symbols[name].address, m.read) for name in names]
        assert {entry.local for entry in entries} <= {0, 8}
        assert 8 in {entry.local for entry in entries}
        backs = [Kretprobe(symbol_name=name, handler=lambda ri, regs: None) for name in names]
        for back in backs:
            k.register_kretprobe(back)
        for seed, result in zip(wanted["seeds"][:2], wanted["run_all"]["alpha"], strict=False):
            assert m.call("run_all", seed, timeout=60) & 0xFFFFFFFF == result
        assert all(back.nreturned >= 2 for back in backs)
