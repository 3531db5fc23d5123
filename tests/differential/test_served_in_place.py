"""Instructions with a hook of their own, which serves a probe without any jump: every case of the guests that have
such, as in test_instructions.py (what is served is a handler that looks at all registers, so that it would notice), and
compiled programs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from arches import RUNNABLE, cases_of, integer, programs_of

from kprobes import Program, UnicornMachine
from kprobes.core.patch import optimizer
from kprobes.core.patch.inplace import InPlace
from kprobes.core.patch.probepoint import Probepoint
from kprobes.core.patch.region import Region, region_of
from kprobes.core.patch.writes import Writes
from kprobes.machine.unicorn import inplace
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.programs.isa import ALU64, EXIT, JMP, MOV, Instruction, K
from kprobes.testing import Bench, Comparison, functions, instructions

pytestmark = pytest.mark.host_code
ARCHES = [arch for arch in RUNNABLE if GUESTS[arch].blocks.served_in_place]
ROWS = [(arch, row) for arch in ARCHES for row in dict.fromkeys(case.row for case in cases_of(arch).cases)]
ANY = SimpleNamespace(asks=False)
COUNTS = Program.from_instructions([Instruction(MOV | K | ALU64, 0, 0, 0, 0), Instruction(EXIT | JMP, 0, 0, 0, 0)])


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Probepoint]]:
    """Whatever is probed is served in place; which those were."""
    points: list[Probepoint] = []
    take = InPlace.take
    monkeypatch.setattr(Probepoint, "programs", property(lambda self: [ANY] * len(self.active)))
    monkeypatch.setattr(optimizer, "region_of", lambda insn, rooms: region_of(insn, rooms) if insn.repeats
                        else Region((insn,), insn.size, True))  # a case has none
    monkeypatch.setattr(Writes, "may_write", lambda self, addr, end: False)
    monkeypatch.setattr(InPlace, "take", lambda self, point: detour if (detour := take(self, point)) is None
                        else (points.append(point), detour)[1])
    yield points


def test_there_are_such_guests() -> None:
    assert {"x86_64", "i386", "arm64", "arm64be"} <= set(ARCHES)


@pytest.mark.parametrize(("arch", "row"), ROWS)
def test_probed_in_place_is_unprobed(arch: str, row: str, benches: dict[str, Bench], taken: list[Probepoint]) -> None:
    bench, problems, expected = benches[arch], [], 0
    for case in bench.file.cases:
        if case.row != row or case.outcome != "step" or bench.file.skip(case.code):
            continue
        insn = bench.decode(case.code, case.mode)
        problems += map(str, bench.check(case.code, case.mode, 3, str(case)))
        expected += insn.boostable and not insn.repeats
    assert not problems, "\n".join(problems[:20])
    assert len(taken) >= expected / 2, "some read themselves, or do not come to it"


FEW = 20  # groups of programs that are in place together, of each compiled program
PATHS = [pytest.param(path, id=path.stem) for arch in ARCHES for path in programs_of(arch) if path.stem.endswith("-O2")]


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS)
def test_compiled_programs_run_as_without(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four instructions at a time, at random: results, memory and registers; and the counts are those behind jumps."""
    pytest.importorskip("llvmlite")
    rng, places = random.Random(path.stem), 0
    with UnicornMachine.load(path) as m:
        comparison = Comparison(m, lambda machine: machine.call("run_all", integer(m.arch, 7)))
        k = comparison.kprobes
        addresses = [a for s in functions(m) for a in instructions(k, s) if k.check(a).optimizable]
        for group in range(FEW):
            few, counts = rng.sample(addresses, inplace.MOST), []
            for most in (inplace.MOST, 0):
                with monkeypatch.context() as patch, ExitStack() as attached:
                    patch.setattr(inplace, "MOST", most)
                    counted = [attached.enter_context(k.attach(COUNTS, addr)) for addr in few]
                    for turn in range(2):
                        assert not (found := comparison.again(f"group {group}, {turn}")), "\n".join(map(str, found))
                    places += len(m.parts.here._hooks)
                    counts.append([(a.runs, a.missed) for a in counted])
            assert counts[0] == counts[1]
        assert not (found := comparison.text_changed()), "\n".join(map(str, found))
    assert places > FEW
