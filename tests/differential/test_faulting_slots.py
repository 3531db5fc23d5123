"""Every branch with a delay slot, by its cases: what faults there faults as it does without the probe, and what the
branch has done, to a link or a counter, is done once. Annulled slots do not fault."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from arches import RUNNABLE, cases_of

from kprobes.testing import Bench

#: a load and a store where nothing is, a load over the link, and a trap (TEQ; a division by 0)
SLOTS = {"mips": ("8c020010", "ac1f0010", "8c1f0010", "00000034"),
         "sparc": ("ca002010", "de202010", "de002010", "8a70c000")}
DELAYED = [arch for arch in RUNNABLE if arch.startswith(tuple(SLOTS))]
STATES = 2


def rows() -> list[tuple[str, str]]:
    """(architecture, row name) of those that have cases with delay slots."""
    return [(arch, row) for arch in DELAYED for row in dict.fromkeys(
        case.row for case in cases_of(arch).cases if case.outcome == "simulate")]


@pytest.mark.parametrize(("arch", "row"), rows())
def test_probed_is_unprobed_where_the_slot_faults(arch: str, row: str, benches: dict[str, Bench],
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    bench, problems, family = benches[arch], list[str](), "mips" if arch.startswith("mips") else "sparc"
    faults, tried, run = set[tuple[Any, ...] | None](), False, Bench._run
    monkeypatch.setattr(Bench, "_run", lambda *args: (shot := run(*args), faults.add(shot.end.fault))[0])
    order: Literal["little", "big"] = "little" if arch.endswith("el") else "big"
    for n, case in enumerate(case for case in bench.file.cases if case.row == row and case.outcome == "simulate"):
        if bench.file.skip(case.code) or not bench.decode(case.code, case.mode).delay_slot:
            continue
        for word in SLOTS[family] if n < 2 else SLOTS[family][n % 4:][:1]:
            tried, slot = True, int(word, 16).to_bytes(4, order)
            problems += map(str, bench.check(case.code + slot, case.mode, STATES, f"{case} {word}", all_flags=n < 1))
    assert not problems, f"{len(problems)}\n" + "\n".join(problems[:20])
    assert not tried or any(fault and fault[2] == bench.home + 4 for fault in faults), "no slot has failed"
