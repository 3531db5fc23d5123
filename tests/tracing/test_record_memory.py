"""The memory that records lie in: it grows, and a process that is forked has its own."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from kprobes import Kprobes, Trace, UnicornMachine
from kprobes.programs.maps import MapType, Ring, Spec
from kprobes.tracing import ring
from kprobes.tracing.trace import ready

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


@pytest.mark.long
@pytest.mark.parametrize("format", ["arrow", "parquet", "csv", "jsonl", "ftrace", "perfetto", "chrome"])
def test_files_are_written_by_batches(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file takes memory for all records at once, whether it is made of a run's records or of a file's."""
    import pyarrow
    import pyarrow.parquet

    from kprobes.tracing import columns
    from kprobes.tracing.recorder import Recording
    from kprobes.tracing.trace import write

    monkeypatch.setattr(columns, "ROWS", 1 << 12)
    monkeypatch.setattr(columns, "GROUP", 2)
    for module in (columns, ring):
        monkeypatch.setattr(module, "BATCH", 1 << 11)
    many = 100_000
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        recording = Recording(k, ["p fib n=$arg1:u32 b=$arg2:x32 c=$arg3 d=$arg4"], records=many)
        put = recording._ring.writer(0)
        for seq in range(many + many // 2):  # the oldest third is overwritten
            put(seq + 1, 0, 0, (seq, seq & 0xFFFF, 7, 1))
        recording.trace.save(tmp_path / "x.arrow")  # imports
        loaded = Trace.load(tmp_path / "x.arrow")
        assert loaded.to_arrow().equals(recording.trace.to_arrow()) and loaded[0].seq == many // 2 + 1
        size, usual = recording._ring.size * many, pyarrow.default_memory_pool()
        for t in (recording.trace, loaded):
            pyarrow.set_memory_pool(pool := pyarrow.proxy_memory_pool(usual))
            tracemalloc.start()
            try:
                with open(tmp_path / "x", "wb" if ready(format) else "w") as file:
                    write(t, file, format)
                peak = tracemalloc.get_traced_memory()[1] + pool.max_memory()
            finally:
                tracemalloc.stop()
                pyarrow.set_memory_pool(usual)
            assert peak < size, f"{peak} bytes, and {size} of records"


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
