"""How many Python functions a hit runs, the user's handler counted. It is what a hit costs, as far as that does not
depend on the machine: instructions, which benchmarks/instructions.py counts, follow it. And how many a guest call
runs."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest
from arches import RUNNABLE

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import rows
import worlds

from kprobes.machine.unicorn.host import hostcode

pytestmark = pytest.mark.skipif(not hostcode.available(), reason="without host code, Python does its work")

#: Row of the benchmark -> functions of one hit, at most; on TriCore, whose returns are sent on; on sparc64, whose stack
#: pointer and return address are biased; and on SPARC, which looks at the caller for what returns skip.
CALLS = {
    "k, empty": (1, 22, 20, 20),
    "k, two arguments": (1, 22, 20, 20),
    "b, empty": (1, 9, 8, 8),
    "b, two arguments": (1, 9, 8, 8),
    "o, empty": (1, 1, 1, 1),
    "o, two arguments": (1, 1, 1, 1),
    "j, empty": (7, 7, 7, 7),
    "j, two arguments": (10, 8, 8, 8),
    "r, empty": (19, 45, 42, 45),
    "r, two arguments": (21, 46, 44, 47),
    "r, return value": (19, 45, 42, 45),
    "rb, empty": (19, 32, 30, 33),
    "rb, two arguments": (21, 33, 32, 35),
    "rb, return value": (19, 32, 30, 33),
    "ro, empty": (1, 7, 1, 3),
    "ro, two arguments": (2, 8, 2, 6),
    "ro, return value": (1, 7, 1, 3),
    "ro, empty at entry and return": (2, 8, 2, 6),
    "ro, two probes": (6, 13, 6, 9),
    "ro, two probes, one asks at entry": (9, 15, 9, 13),
    "ro, three probes, all ask at entry": (45, 44, 50, 51),
    "ro, guest tasks": (28, 32, 31, 34),
    "ro, guest tasks, two probes, one asks at entry": (39, 41, 43, 45),
}
COLUMNS = {"tricore": 1, "sparc64": 2, "sparc": 3}
HITS = 50


def functions(run: worlds.Run) -> Counter[str]:
    """Functions of HITS hits."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_qualname] += 1

    sys.setprofile(note)
    try:
        run(HITS)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(("arch", "most"), [("x86_64", 47), ("arm64", 47)])
def test_a_guest_call_runs_no_more_functions(arch: str, most: int) -> None:
    """By name, without arguments, of a function that does nothing; see benchmarks/calls.py."""
    m = worlds.make_machine(arch)

    def call(times: int) -> None:
        for _ in range(times):
            m.call("tiny")

    call(2)
    gc.disable()
    try:
        found = Counter({name: count // HITS for name, count in functions(call).items()})
    finally:
        gc.enable()
    assert found.total() <= most, found


@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_hit_runs_no_more_functions(arch: str) -> None:
    gc.disable()  # finalizers of other tests
    try:
        for row in rows.probe_rows(worlds.Machine(arch)):
            with row.enter() as run:
                # what a call runs for itself, and what a run does once, does not count
                found = min((functions(run) for _ in range(2)), key=Counter.total)
            found = Counter({name: count // HITS for name, count in found.items()})
            assert found.total() <= CALLS.get(row.name, (0,) * 4)[COLUMNS.get(arch, 0)], (row.name, found)
            assert not [name for name in found.elements() if name.startswith("looking.")], row.name
    finally:
        gc.enable()
