"""The memory that records lie in: it grows, and a process that is forked has its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kprobes import Kprobes, UnicornMachine
from kprobes.programs.maps import MapType, Ring, Spec
from kprobes.tracing import ring

pytestmark = pytest.mark.quick
DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64"


@pytest.mark.parametrize("python", [False, True], ids=["programs", "python"])
@pytest.mark.parametrize("text", ["", " text=+0($arg1):string"], ids=["numbers", "texts"])
@pytest.mark.parametrize("records", [1 << 20, 1500])
def test_records_stay_where_memory_grows(records: int, text: str, python: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever there was room for at first; what is beside the records grows, too."""
    seen = []
    for mapped in (1 << 28, 100, 1 << 16):
        monkeypatch.setattr(ring, "MAPPED", mapped)
        with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
            if python:
                m.cpu_task = lambda regs: 0
            with k.trace("p fib n=$arg1:u32 twice=$arg1:s8" + text, "r fib $retval", records=records) as t:
                m.call("fib", 15)
            seen.append(([*t], t.lost))
    assert seen[0] == seen[1] == seen[2] and (seen[0][1] > 0) == (records == 1500) and len(seen[0][0]) >= 1500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_maps_of_its_own() -> None:
    """What its programs record and count is not seen here."""
    records = Ring(Spec(type=MapType.RINGBUF, max_entries=1 << 23))
    records.output(b"mine")
    child = os.fork()
    if not child:
        records.output(b"theirs")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [*records] == [b"mine"]
