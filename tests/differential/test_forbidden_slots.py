"""What stands behind a compact branch of MIPS release 6: a branch or PAUSE there is a reserved instruction where the compact branch
is not taken. Every pair of rows, probed at either, does what it does unprobed, or the probe is refused; and refused is
nothing that runs."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from arches import RUNNABLE, cases_of
from portion import portion

from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, UnicornMachine, Unprobeable
from kprobes import arch as architectures

BASE = 0x40000
RELEASE_6 = [arch for arch in RUNNABLE if arch.startswith("mips") and "r6" in arch]
#: values of all registers, so that a branch that tests one or two is taken, and is not
STATES = ([0] * 32, [*range(4, 132, 4)], [*range(128, 0, -4)])
COMPACT = (0b000110, 0b000111, 0b001000, 0b011000, 0b010110, 0b010111, 0b110010, 0b111010, 0b110110, 0b111110)
NEAR = 6  #: displacement of branches


def rows(arch: str, *, compact: bool) -> list[bytes]:
    """An instruction of each row of compact branches; of all branches, and some others. Branches lead a few words on."""
    found: dict[str, bytes] = {}
    order: Literal["big", "little"] = "little" if arch.endswith("el") else "big"
    for case in cases_of(arch).cases:
        word = int.from_bytes(case.code[:4], order)
        if word >> 26 in (0b000010, 0b000011):  # J, JAL
            word = word >> 26 << 26 | BASE + 0x20 >> 2
        elif word >> 26 == 0b111011:
            continue  # PCREL: see test_mips_pcrel.py
        elif word >> 26:  # not SPECIAL
            keep = {0b110010: 26, 0b111010: 26, 0b110110: 21, 0b111110: 21}.get(word >> 26, 16)
            word = word >> keep << keep | NEAR
        if case.outcome == "simulate" and (not compact or word >> 26 in COMPACT) and not (
                compact and architectures.get(arch).decode(case.code[:4] + bytes(4), BASE).delay_slot):
            found.setdefault(case.row, word.to_bytes(4, order))
    return list(found.values())


def outcome(m: UnicornMachine, state: list[int]) -> tuple[Any, ...]:
    """How two instructions end."""
    for n in range(31):
        if m.arch.regs.names[n + 1] != m.arch.regs.sp:
            m.regs[m.arch.regs.names[n + 1]] = state[n]
    try:
        m.run(BASE, BASE + 8, max_insns=2)
        end: tuple[Any, ...] = ()
    except GuestFault as error:
        end = error.access, error.address, error.pc
    except GuestTimeout:
        end = ("two instructions",)
    return end, m.regs.pc, m.regs["ra"]


@pytest.mark.long
@pytest.mark.parametrize("arch", RELEASE_6)
def test_what_stands_there(arch: str, thorough: bool) -> None:
    m = UnicornMachine.from_code(bytes(64), arch=arch, base=BASE, symbols={"f": (BASE, 64)})
    m.map(0, 0x1000)  # where registers lead
    pause = (5 << 6).to_bytes(4, m.arch.order.value)
    refused, seconds = 0, [*rows(arch, compact=False), pause]
    for first in rows(arch, compact=True):
        m.write(BASE, first + bytes(20))
        falls = any(pc == BASE + 8 for _, pc, _ in (outcome(m, state) for state in STATES))
        for second in [*portion(seconds, thorough, first.hex(), 4), pause]:
            code = first + second + bytes(16)
            m.write(BASE, code)
            plain = [outcome(m, state) for state in STATES]
            reserved = any(end[:1] == ("undefined",) and pc == BASE + 4 for end, pc, _ in plain)
            for addr in (BASE, BASE + 4):
                with Kprobes(m) as k:
                    try:
                        k.register(Kprobe(addr=addr, pre_handler=lambda p, regs: None))
                    except Unprobeable as error:
                        if "forbidden" in str(error):
                            assert reserved or not falls, (first.hex(), second.hex(), error)
                            refused += 1
                        continue
                    assert [outcome(m, state) for state in STATES] == plain, (first.hex(), second.hex(), hex(addr))
    assert refused > (400 if thorough else 100)  # at each of both addresses
