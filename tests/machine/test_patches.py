"""Breakpoints come and go in straight-line code that has run already: no translation of what was there before is left.

An engine may record a translation that ends in an illegal instruction as if it ended before it, and then keep it when
that instruction is replaced. A breakpoint is such an instruction on some guests (SPARC's UNIMP), and ends a block that
starts in front of it: the place where this would show.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from arches import RUNNABLE

from kprobes import UnicornMachine
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.testing._listener import ToldSink

pytestmark = pytest.mark.quick
BASE = 0x10000
NOPS = {"x86_64": "90", "i386": "90", "arm": "00f020e3", "armeb": "00f020e3", "cortexm": "00bf", "arm64": "1f2003d5",
        "arm64be": "1f2003d5",
        "riscv32": "13000000", "riscv64": "13000000", "mips": "00000000", "ppc": "60000000", "ppc64": "60000000",
        "ppc64le": "00000060",
        "s390x": "0707", "sparc": "01000000", "sparc64": "01000000", "m68k": "4e71", "tricore": "0000"}
#: Instructions that are undefined, of guests whose engine records translations without them.
UNDEFINED = {"riscv32": "0000", "riscv64": "0000", "s390x": "0002"}


class Line:
    """A machine full of NOPs, and a stretch of them: from `start`, over `place`, to `end`."""

    def __init__(self, arch: str, where: str) -> None:
        self.nop = bytes.fromhex(NOPS["mips" if arch.startswith("mips") else arch])
        self.m = UnicornMachine.from_code(self.nop * (0x8000 // len(self.nop)), arch=arch, base=BASE)
        self.listener = ToldSink()
        self.m.report_to(self.listener)
        self.mode = min(self.m.arch.traps.end)
        self.trap = self.m.arch.traps.of(self.m.arch.decode(self.nop * 4, BASE | self.mode))
        self.place = BASE + (0x4000 if where.startswith("page") else 0x140)
        ahead = 0 if where.endswith("alone") else 8 * len(self.nop)
        self.start, self.end = self.place - ahead, self.place + 16 * len(self.nop)

    def put(self, addr: int, trap: bool) -> None:
        """A breakpoint, or what was there."""
        self.m.patch(addr, self.trap if trap else (self.nop * 4)[: len(self.trap)])
        (self.m.stop_at if trap else self.m.release)(addr)

    def run(self) -> int:
        """How many reports a run makes."""
        self.listener.traps.clear()
        self.m.run(self.start | self.mode, self.end | self.mode)
        return len(self.listener.traps)

    def go(self, regs: Any, addr: int) -> None:
        """Send the guest on."""
        regs.go(addr | self.mode)


@pytest.fixture(params=["block", "block_alone", "page", "page_alone"])
def where(request: pytest.FixtureRequest) -> Iterator[str]:
    """The place: after some instructions or as the first, in a page or at its start."""
    yield request.param


@pytest.mark.parametrize("arch", RUNNABLE)
def test_breakpoints_come_and_go(arch: str, where: str) -> None:
    line = Line(arch, where)
    line.listener.at = {line.place: lambda regs: line.go(regs, line.place + len(line.nop))}
    for hits in (1, 3):
        assert line.run() == 0
        line.put(line.place, True)
        assert [line.run() for _ in range(hits)] == [1] * hits
        line.put(line.place, False)
        assert [line.run() for _ in range(hits)] == [0] * hits


@pytest.mark.parametrize("arch", RUNNABLE)
def test_breakpoints_come_and_go_in_reports(arch: str, where: str) -> None:
    """One takes itself away and goes back to the start; the other, further on, puts it there again."""
    line, lines = Line(arch, where), []
    other = line.place + 8 * len(line.nop)

    def gone(regs: Any) -> None:
        lines.append("gone")
        line.put(line.place, False)
        line.go(regs, line.start)

    def back(regs: Any) -> None:
        lines.append("back")
        if lines.count("back") < 3:
            line.put(line.place, True)
            line.go(regs, line.start)
        else:
            line.go(regs, other + len(line.nop))

    line.listener.at = {line.place: gone, other: back}
    line.put(other, True)
    line.run()
    assert lines == ["back", "gone", "back", "gone", "back"]


@pytest.mark.parametrize("arch", UNDEFINED)
def test_undefined_instructions_come_and_go(arch: str, where: str) -> None:
    """Here the engine does forget them in its records: the machine looks for such translations
    (Guest.undefined_unrecorded)."""
    assert GUESTS[arch].blocks.undefined_unrecorded
    line = Line(arch, where)
    line.trap = bytes.fromhex(UNDEFINED[arch])

    def skip(regs: Any, fault: Any) -> bool:
        line.go(regs, line.place + len(line.nop))
        return True

    line.listener.on_fault = skip
    for _ in range(2):
        for there in (False, True):
            line.put(line.place, there)
            line.listener.faults.clear()
            line.run()
            assert [pc for pc, _ in line.listener.faults] == [line.place] * there
