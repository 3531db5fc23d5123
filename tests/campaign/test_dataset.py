"""Records of many workers as one data set: those of each item that came home, once, and no others."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import campaign_jobs as jobs
import pyarrow
import pytest
from click.testing import CliRunner

from kprobes import KprobeError, Trace, UnicornMachine, Unsupported
from kprobes.campaign import Calls, Journal, gather, merged, run
from kprobes.campaign import _dataset as dataset
from kprobes.cli import main
from kprobes.kprobes import Kprobes

DEMO = str(Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64")
EVENTS = ("p table_insert key=+0($arg1):string value=$arg2:s32", "r crc32 $retval:x32")
ITEMS = [b"width=%d, a=1" % n for n in range(200)]


def job(folder: Path) -> Calls:
    return Calls(DEMO, "parse_settings(@input)", EVENTS, ("table_init()",), dataset=str(folder))


def rows(found: Any) -> list[tuple[Any, ...]]:
    """The records, without what says in which order a worker took its items."""
    table = found.to_table(columns=["item", "event", "key", "value", "arg1"])
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def alone(folder: Path) -> list[tuple[Any, ...]]:
    """What one process records."""
    one = job(folder)
    results = [one(item) for item in ITEMS]
    one.flush()
    return rows(gather(folder, results))


def test_two_processes_record_what_one_does(tmp_path: Path) -> None:
    outcomes = [*run(job(tmp_path / "two"), ITEMS, jobs=2, timeout=60)]
    found = gather(tmp_path / "two", (outcome.result for outcome in outcomes))
    assert all(outcome.ok for outcome in outcomes) and rows(found) == alone(tmp_path / "one")
    hits = merged(outcome.result["hits"] for outcome in outcomes)  # type: ignore[index]
    assert Counter(found.to_table().column("event").to_pylist()) == Counter(hits)
    assert {type(r.args["value"]) for r in Trace.load(found.files[0]) if r.event.startswith("p_")} == {int}
    assert [path.suffix for path in (tmp_path / "two").iterdir()] == [".arrow"] * len(found.files)


@pytest.mark.long
def test_what_dies_and_is_tried_again_is_recorded_once(tmp_path: Path) -> None:
    items = [*ITEMS, b"crash=1", b"hang=1"]
    outcomes = [*run(jobs.Treacherous(job(tmp_path / "two")), items, jobs=2, timeout=12)]  # loading takes 4 s on a busy machine
    assert {outcome.item for outcome in outcomes if not outcome.ok} == {b"crash=1", b"hang=1"}
    assert rows(gather(tmp_path / "two", (o.result for o in outcomes))) == alone(tmp_path / "one")


def test_a_campaign_that_goes_on_has_all_records(tmp_path: Path) -> None:
    """The journal says which rows of the first part count; what was done twice without a word in it does not."""
    one = job(tmp_path / "both")
    for part in (ITEMS[:80], ITEMS):
        with Journal(tmp_path / "journal", "it") as journal:
            left = [item for item in part if str(item) not in journal.entries]
            for outcome in run(one, left, jobs=1):
                if outcome.item not in ITEMS[70:75] or len(part) > 80:
                    journal.note(outcome)
            entries = [*journal.entries.values()]
    assert len(entries) == len(ITEMS)
    assert rows(gather(tmp_path / "both", (entry.result for entry in entries))) == alone(tmp_path / "one")


def test_a_guest_that_fails_leaves_no_records(tmp_path: Path) -> None:
    one = Calls(DEMO, "parse_settings(@input)", EVENTS, ("table_init()",), max_insns=20_000, dataset=str(tmp_path))
    outcomes = [*run(one, [b"a=1", b"a=1, " * 500, b"b=1"], ThreadPoolExecutor(1), jobs=1)]
    assert [outcome.ok for outcome in sorted(outcomes, key=lambda o: o.item)] == [True, False, True]
    assert ({*gather(tmp_path, (o.result for o in outcomes)).to_table().column("item").to_pylist()}
            == {"b'a=1'", "b'b=1'"})


@pytest.mark.parametrize("cut", [0, 3, 40, 400])
def test_a_stream_that_was_cut(tmp_path: Path, cut: int) -> None:
    """What a kill has cut off is missed where an outcome names it, and is no matter where none does."""
    one = job(tmp_path)
    results = []
    for item in ITEMS[:4]:
        results.append(one(item))
        one.flush()
    stream, = tmp_path.glob("*.arrows")
    raw = stream.read_bytes()
    stream.write_bytes(raw[: len(raw) - cut])
    if cut:
        with pytest.raises(dataset.DatasetError, match="rows are not there"):
            gather(tmp_path, results)
        assert stream.exists()
    assert not [*tmp_path.glob("*.unfinished")]
    assert len({*gather(tmp_path, results[:3]).to_table().column("item").to_pylist()}) == 3


def test_what_was_never_written(tmp_path: Path) -> None:
    """Streams without a word are left out; a folder without a file is a data set without rows or an error in words."""
    (tmp_path / "part-0.arrows").write_bytes(b"")
    (tmp_path / "part-1.arrows").write_bytes(b"rubbish")
    assert gather(tmp_path, [{"result": 1}, None, {"part": "other"}]).count_rows() == 0
    assert [*tmp_path.iterdir()] == []
    assert gather(tmp_path / "nowhere", []).count_rows() == 0
    with pytest.raises(dataset.DatasetError, match="part-7 is not there"):
        gather(tmp_path, [{"part": "part-7", "rows": [0, 2]}])
    (tmp_path / "part-2.arrow").write_bytes(b"rubbish")
    with pytest.raises(KprobeError, match="give the folder"):
        gather(tmp_path, [])


def test_too_many_records_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The item that makes them fails, the others of its batch are tried alone, and are all there."""
    monkeypatch.setattr(dataset, "RECORDS", 8)
    many = b"a=1, b=1, c=1, d=1, e=1, f=1"
    one = job(tmp_path)
    outcomes = [*run(one, [*ITEMS[:30], many, *ITEMS[30:40]], ThreadPoolExecutor(1), jobs=1)]
    assert {o.item: "more than 4 records" in str(o.error) for o in outcomes if not o.ok} == {many: True}
    found = gather(tmp_path, (o.result for o in outcomes))
    assert Counter(found.to_table().column("item").to_pylist()) == {str(item): 4 for item in ITEMS[:40]}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KprobeError, match="workers can write to"):
        job(tmp_path / "file" / "below")(b"a=1")


def test_records_of_a_file_stay(tmp_path: Path) -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k, k.trace("p crc32") as trace:
        m.call("crc32", 0, b"", 0)
        trace.save(tmp_path / "one.arrow")
        trace.clear()
        assert len(trace) == 0
        m.call("crc32", 0, b"", 0)
        assert [record.seq for record in trace] == [2]
    with pytest.raises(Unsupported, match="stay"):
        Trace.load(tmp_path / "one.arrow").clear()


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for n in range(3):
        (tmp_path / "in" / f"{n}").write_bytes(b"width=%d" % n)
    command = ["campaign", DEMO, "--call", "parse_settings(@input)", "--before", "table_init()", "--inputs",
               str(tmp_path / "in"), "--jobs", "1"]
    done = CliRunner().invoke(main, [*command, "-e", EVENTS[0], "--dataset", str(tmp_path / "out")])
    assert done.exit_code == 0 and "3 records in 1 files" in done.output
    table = pyarrow.ipc.open_file(next((tmp_path / "out").iterdir())).read_all()
    assert sorted(table.column("value").to_pylist()) == [0, 1, 2]
    assert CliRunner().invoke(main, [*command, "--dataset", str(tmp_path / "out")]).exit_code == 2
