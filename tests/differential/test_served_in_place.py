"""Instructions with a hook of their own, which serves a probe without any jump: every case of the guests that have
such, as in test_instructions.py. What is served is a handler that looks at all registers, so that it would notice."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from arches import RUNNABLE, cases_of

from kprobes.core.patch import optimizer
from kprobes.core.patch.inplace import InPlace
from kprobes.core.patch.probepoint import Probepoint
from kprobes.core.patch.region import Region, region_of
from kprobes.core.patch.writes import Writes
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.testing import Bench

pytestmark = pytest.mark.host_code
ARCHES = [arch for arch in RUNNABLE if GUESTS[arch].blocks.served_in_place]
ROWS = [(arch, row) for arch in ARCHES for row in dict.fromkeys(case.row for case in cases_of(arch).cases)]
ANY = SimpleNamespace(asks=False)


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
