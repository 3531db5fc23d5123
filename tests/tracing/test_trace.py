"""Recording events, and the files that traces become: read back by the readers of those who made the formats."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from arches import ARCHES, NO_ENGINE, NO_PROGRAMS, RUNNABLE, programs_of, results
from attrs import evolve
from host import host_code

from kprobes import BadArgument, EventError, ImageError, Kprobes, Trace, UnicornMachine, Unsupported
from kprobes.core.hit.returns import ReturnMissed
from kprobes.events._record import Record
from kprobes.tracing.timeline import _Rows

pytestmark = pytest.mark.quick
DEMO = str(Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64")
EVENTS = ("p:crc crc32 len=$arg3:u32 text=+0($arg2):string head=+0($arg2):x8[2]", "r:found table_lookup $retval:s32",
          "p fib n=$arg1:u32", "r fib $retval")
TEXTS = ("ftrace", "perf", "jsonl", "csv", "chrome", "otlp", "folded", "speedscope", "svg", "html")


@pytest.fixture
def k() -> Iterator[Kprobes]:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        m.call("table_init")
        yield k


def work(k: Kprobes) -> None:
    m: Any = k.machine
    m.call("parse_settings", "width=-640")
    m.call("table_lookup", "width", 0)
    m.call("fib", 4)
    m.call("crc32", 0, 16, 0)


def recorded(k: Kprobes, *events: str, **options: Any) -> Trace:
    with k.trace(*(events or EVENTS), **options) as t:
        work(k)
    return t


def exported(t: Trace, format: str) -> str:
    file = io.StringIO()
    t.export(file, format)
    return file.getvalue()


def test_every_pattern_names_something(k: Kprobes) -> None:
    """A pattern of which nothing is left is refused, whatever the patterns before it found; and nothing stays
    registered."""
    for texts in (("p table_*",), ("p crc*", "p table_*")):
        with pytest.raises(EventError, match=r"nothing that table_\* names"), k.trace(*texts, exclude="table_*"):
            pass
        assert not list(k.list())


def test_records(k: Kprobes) -> None:
    t = recorded(k)
    assert [r.event for r in t][:3] == ["crc", "crc", "found"] and [r.seq for r in t] == [*range(1, len(t) + 1)]
    assert t[0].args == {"len": 5, "text": "width", "head": (0x77, 0x69)}
    assert t[-1].args == {"len": 0, "text": None, "head": (None, None)}, "unreadable"
    assert t[2].args == {"arg1": -640} and t[2].caller and not t[0].caller
    assert isinstance(t[0], Record) and t[:2] == [t[0], t[1]] and t.lost == t.missed == 0
    with pytest.raises(IndexError):
        t[len(t)]


def test_nothing_is_armed_outside(k: Kprobes) -> None:
    t = recorded(k)
    before = len(t)
    work(k)
    assert len(t) == before and k.list() == []


def test_all_or_nothing(k: Kprobes) -> None:
    """The second one is a return probe on no entry."""
    with pytest.raises(EventError), k.trace("p fib", "p crc32+1"):
        pass
    assert k.list() == []


@pytest.mark.parametrize("records", [1, 3, 5, 8])
def test_the_oldest_go_and_are_counted(k: Kprobes, records: int) -> None:
    whole = recorded(k)
    t = recorded(k, records=records)
    assert len(t) == records and t.lost == len(whole) - records
    assert [*t] == [*whole][-records:]
    assert exported(t, "ftrace").splitlines()[12:] == exported(whole, "ftrace").splitlines()[-records:]
    assert [row["seq"] for row in t.to_arrow().to_pylist()] == [r.seq for r in t]


@pytest.mark.parametrize("wrong", [{"records": 0}, {"records": True}, {"clock": "moon"}])
def test_wrong_options(k: Kprobes, wrong: Any) -> None:
    with pytest.raises(BadArgument):
        k.trace("p fib", **wrong)
    with pytest.raises(BadArgument):
        k.trace()


def test_missed_hits_are_said(k: Kprobes) -> None:
    with pytest.warns(ReturnMissed), k.trace("r1 fib $retval") as t:
        k.machine.call("fib", 4)  # type: ignore[attr-defined]
    assert t.missed > 0 and len(t) + t.missed == 5


def test_tasks_of_every_kind(k: Kprobes, tmp_path: Path) -> None:
    names = iter([f"task {n} \x1b\ud800" for n in range(1000)])
    k.machine.cpu_task = lambda regs: next(names)
    t = recorded(k, "p fib n=$arg1:u32 name=$comm")
    assert t[0].task.startswith("task ") and t[0].task != t[1].task
    assert t.to_arrow().column("task")[0].as_py() == t[0].task.encode("utf-8", "backslashreplace").decode()
    for format in (*TEXTS, "perfetto"):
        t.export(tmp_path / format, format)
    t.save(tmp_path / "x.arrow")
    assert "\x1b" not in exported(t, "ftrace") + exported(t, "svg") + t._repr_html_()


#: events of one name at several places, and of several names: globs, groups, the same place twice
ALIKE = [("p table_*",), ("p string_* a=+0($arg1):string", "p fib"), ("p:a/x fib n=$arg1:u32", "p:b/x fib"),
         ("p:x fib n=\\1", "p:x fib n=\\2", "p:x crc32 n=\\3")]


@pytest.mark.parametrize("events", ALIKE, ids=str)
@pytest.mark.parametrize("tasks", [0, (1, "1"), ("\xff\ud800", "\xff\\ud800")], ids=ascii)
def test_names_that_come_several_times(k: Kprobes, events: tuple[str, ...], tasks: Any, tmp_path: Path) -> None:
    """In tables a name is one category, however many places and tasks have it; a file has the records."""
    import pyarrow.feather

    names = itertools.cycle(tasks or (0,))
    k.machine.cpu_task = (lambda regs: next(names)) if tasks else None
    t = recorded(k, *events)
    t.save(path := tmp_path / "x.arrow")
    want = Counter(r.event for r in t)
    for frame in (t.to_pandas(), Trace.load(path).to_pandas(), pyarrow.feather.read_feather(path)):
        assert frame.groupby("event", observed=True).size().to_dict() == want
        assert len(frame) == len(t) > 0
    counted = t.to_arrow().group_by("event").aggregate([("seq", "count")]).to_pylist()
    assert {row["event"]: row["seq_count"] for row in counted} == want and len(counted) == len(want)
    assert [(r.event, r.args) for r in Trace.load(path)] == [(r.event, r.args) for r in t]


def test_files_of_version_1(k: Kprobes, tmp_path: Path) -> None:
    """Their categories have a name once a place; what are heads now were arguments; no stack says that it is cut."""
    import pyarrow as pa
    import pyarrow.feather

    k.machine.call("table_init")  # type: ignore[attr-defined]
    t = recorded(k, "p string_*", "p fib n=$arg1 m=$arg1:u32", stack=True)
    table = t.to_arrow().drop_columns(["incomplete"])
    facts = json.loads(table.schema.metadata[b"kprobes"]) | {"version": 1}
    names = [info.name for info in t.events]
    places = {info.address: n for n, info in enumerate(t.events)}
    numbers = pa.array([places[address] for address in table.column("address").to_pylist()], pa.int32())
    table = table.set_column(1, "event", pa.DictionaryArray.from_arrays(numbers, pa.array(names)))
    renamed = {"n": "incomplete", "m": "definition"}
    table = table.rename_columns([renamed.get(name, name) for name in table.column_names])
    (fib,) = (event for event in facts["events"] if event["name"] == "p_fib_0")
    for field in fib["fields"]:
        field["name"] = renamed[field["name"]]
    pyarrow.feather.write_feather(table.replace_schema_metadata({b"kprobes": json.dumps(facts)}), tmp_path / "x.arrow",
                                  compression="uncompressed")
    again = Trace.load(tmp_path / "x.arrow")
    assert [(r.event, r.seq, r.stack) for r in again] == [(r.event, r.seq, r.stack) for r in t]
    assert [[*r.args.values()] for r in again] == [[*r.args.values()] for r in t]
    assert again.to_pandas().groupby("event", observed=True).size().to_dict() == Counter(r.event for r in t)


# --- files


def test_a_file_is_the_trace(k: Kprobes, tmp_path: Path) -> None:
    t = recorded(k, stack=True, clock=iter(range(10_000, 1 << 60, 1500)).__next__)
    t.save(tmp_path / "x.arrow")
    again = Trace.load(tmp_path / "x.arrow")
    assert [*again] == [*t] and again.lost == t.lost and [str(e) for e in again.events] == [str(e) for e in t.events]
    assert [exported(again, f) for f in TEXTS] == [exported(t, f) for f in TEXTS]
    assert again.to_arrow().equals(t.to_arrow())


def test_files_that_are_none(tmp_path: Path, k: Kprobes) -> None:
    import pyarrow

    recorded(k).save(good := tmp_path / "good.arrow")
    data = good.read_bytes()
    other = pyarrow.table({"a": [1]})
    with pyarrow.OSFile(str(tmp_path / "other"), "wb") as file, pyarrow.ipc.new_file(file, other.schema) as writer:
        writer.write_table(other)
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    (tmp_path / "text").write_text("hello")
    (tmp_path / "json").write_bytes(data.replace(b'"version": 2', b'"version": ['))
    (tmp_path / "newer").write_bytes(data.replace(b'"version": 2', b'"version": 3'))
    for name in ("other", "cut", "text", "json", "newer", "absent"):
        with pytest.raises(ImageError, match=name):
            Trace.load(tmp_path / name)


def test_arrow_has_the_values(k: Kprobes) -> None:
    t = recorded(k)
    rows = t.to_arrow().to_pylist()
    for record, row in zip(t, rows, strict=True):
        assert (row["seq"], row["event"], row["task"], row["caller"] or 0,
                row["address"]) == (record.seq, record.event, 0, record.caller, record.address)
        for name, value in record.args.items():
            column = name if name in row and record.event != "r_fib_0" else f"{record.event}.{name}"
            assert row[column] == (list(value) if isinstance(value, tuple) else value)


def test_pandas_and_numpy_keep_integers(k: Kprobes) -> None:
    t = recorded(k, "p fib a=\\0xfffffffffffffff1", "p:crc crc32 len=$arg3:u32")
    frame, arrays = t.to_pandas(), t.to_numpy()
    assert frame[frame.event == "p_fib_0"].a.tolist() == [0xFFFFFFFFFFFFFFF1] * 5
    assert arrays["a"].max() == 0xFFFFFFFFFFFFFFF1 and arrays["len"].count() == 3
    assert arrays["seq"].tolist() == [r.seq for r in t]


def test_ftrace_is_the_kernels_text(k: Kprobes) -> None:
    lines = exported(recorded(k), "ftrace").splitlines()
    assert (lines[0] == "# tracer: nop" and lines[2].split() == ["#", "entries-in-buffer/entries-written:", "14/14",
                                                                 "#P:1"])
    assert (lines[12]
            == '           guest-0       [000] .....            1: crc: (crc32+0x0/0x64) len=5 text="width" '
               'head={0x77,0x69}')
    timed = exported(recorded(k, "p fib", clock=lambda: 12_345_678_900), "ftrace").splitlines()
    assert timed[12] == "           guest-0       [000] .....    12.345678: p_fib_0: (fib+0x0/0x2d)"


@pytest.mark.parametrize("time", [-1, 1 << 64, 2.5, None, "1"], ids=str)
def test_a_clock_that_says_no_time(k: Kprobes, time: Any) -> None:
    """The run ends by a sentence that says so; what was recorded before stays."""
    times = iter([5, time])
    with k.trace("p fib", clock=lambda: next(times)) as t:
        with pytest.raises(BadArgument, match=r"the clock says .*a number of 64 bits"):
            k.machine.call("fib", 3)
        assert len(t) == 1


def test_the_fast_lines_are_the_slow_ones(k: Kprobes) -> None:
    import plain_texts

    for options in ({}, {"clock": lambda: 1 << 40}, {"stack": True}):
        t = recorded(k, *EVENTS, "p string_equal a=+0($arg1):string c=+0($arg1):char n=$arg2:s16 s=$arg1:symbol",
                     **options)
        for format in ("ftrace", "jsonl", "csv"):
            assert exported(t, format) == plain_texts.text(t, format)


def test_json_lines_and_csv(k: Kprobes) -> None:
    t = recorded(k)
    rows = [json.loads(line) for line in exported(t, "jsonl").splitlines()]
    assert [row["args"] for row in rows] == [json.loads(json.dumps(dict(r.args))) for r in t]
    table = [*csv.DictReader(io.StringIO(exported(t, "csv")))]
    assert table[0]["text"] == "width" and table[0]["head"] == "119 105" and table[-1]["text"] == "(fault)"


def test_chrome_spans_are_closed(k: Kprobes) -> None:
    events = json.loads(exported(recorded(k), "chrome"))["traceEvents"]
    depth = 0
    for event in events:
        depth += {"B": 1, "E": -1}.get(event["ph"], 0)
        assert depth >= 0 and event["ph"] in "BEiM" and event["pid"] == 1
    assert depth == 0 and sum(event["ph"] == "B" for event in events) == 5


def test_chrome_arguments_of_records_some_of_which_have_no_stack(k: Kprobes) -> None:
    t = recorded(k)
    rows = _Rows(t)
    for batch in t.batches():
        for part in batch.parts:
            count = len(part.places)
            changed = evolve(part, stacks=[() if n % 2 else (0x1000,) for n in range(count)])
            form, columns = rows._arguments(t.events[part.event], changed)
            for n, filled in enumerate(zip(*columns, strict=True)):
                found = json.loads("{" + form % filled + "}")
                assert ("stack" in found) == (n % 2 == 0)


def test_perfetto_reads_it(k: Kprobes, tmp_path: Path) -> None:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    t = recorded(k)
    t.export(tmp_path / "x.pftrace", "perfetto")
    trace = protos.Trace.FromString((tmp_path / "x.pftrace").read_bytes())
    events = [packet.track_event for packet in trace.packet if packet.HasField("track_event")]
    assert ([e.type for e in events].count(protos.TrackEvent.TYPE_SLICE_BEGIN)
            == [e.type for e in events].count(protos.TrackEvent.TYPE_SLICE_END) == 5)
    interned = next(packet.interned_data for packet in trace.packet if packet.HasField("interned_data"))
    names = {each.iid: each.name for each in interned.event_names}
    arguments = {each.iid: each.name for each in interned.debug_annotation_names}
    assert names[events[0].name_iid] == "crc"
    assert [arguments[a.name_iid] for a in events[0].debug_annotations] == ["len", "text", "head"]
    tracks = {p.track_descriptor.uuid for p in trace.packet if p.HasField("track_descriptor")}
    assert ({e.track_uuid for e in events} <= tracks and [p.timestamp for p in trace.packet if p.timestamp]
            == [1000 * r.seq for r in t])


def test_parquet_has_the_same_columns(k: Kprobes, tmp_path: Path) -> None:
    import pyarrow.parquet

    t = recorded(k, stack=True)
    t.export(tmp_path / "x.parquet", "parquet")
    found = pyarrow.parquet.read_table(tmp_path / "x.parquet")
    assert found.column_names == t.to_arrow().column_names and found.to_pylist() == t.to_arrow().to_pylist()


def test_the_time_of_day_is_that_of_the_recording(k: Kprobes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The system's time may be set after the library was imported."""
    ahead = 3_600_000_000_000
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + ahead)
    with k.trace("p crc32", clock="host") as t:
        k.machine.call("crc32", 0, b"x", 1)
    assert abs(t.epoch + time.monotonic_ns() - now() - ahead) < 60_000_000_000
    t.save(tmp_path / "one.arrow")
    assert Trace.load(tmp_path / "one.arrow").epoch == t.epoch


def test_spans_of_opentelemetry(k: Kprobes) -> None:
    """Every call once, its caller its parent; every other hit; arguments and results as attributes."""
    t = recorded(k)
    requests = [json.loads(line) for line in exported(t, "otlp").splitlines()]
    spans = [span for each in requests for span in each["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    by_id = {span["spanId"]: span for span in spans}
    calls = [span for span in spans if any(one["key"].startswith("return.") for one in span["attributes"])]
    assert len(by_id) == len(spans) == len(t) - 5 and len(calls) == 5
    for span in spans:
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) and len(span["traceId"]) == 32
        parent = by_id.get(span.get("parentSpanId", ""))
        assert parent is None or int(parent["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
    assert any("parentSpanId" in span for span in calls)


def test_spans_have_the_time_of_day(k: Kprobes, tmp_path: Path) -> None:
    """OpenTelemetry's times are nanoseconds since 1970, also of a trace that was saved."""
    with k.trace("p crc32", clock="host") as t:
        k.machine.call("crc32", 0, b"x", 1)
    t.save(tmp_path / "t.arrow")
    for trace in t, Trace.load(tmp_path / "t.arrow"):
        requests = [json.loads(line) for line in exported(trace, "otlp").splitlines()]
        begun = int(requests[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["startTimeUnixNano"])
        assert abs(time.time_ns() - begun) < 3600 * 10**9


#: as stackcollapse-perf.pl reads a record's first line, and a frame
PERF_HEAD = r"^(\S.+?)\s+(\d+)\/*(\d+)*\s+\[\d+\]\s+[\d.]+:\s+(?:\d+\s+)?([^\s:]+:)?([^\s:]+):"
PERF_FRAME = r"^\s*(\w+)\s*(.+) \((.*)\)$"


def test_perf_script_is_what_its_readers_expect(k: Kprobes) -> None:
    t = recorded(k, "p crc32 len=$arg3:u32", stack=True)
    paragraphs = exported(t, "perf").strip("\n").split("\n\n")
    assert len(paragraphs) == len(t)
    for paragraph, record in zip(paragraphs, t, strict=True):
        head, *frames = paragraph.splitlines()
        found = re.match(PERF_HEAD, head)
        assert found is not None and found[1] == "task_0" and found[5] == record.event
        addresses = [re.match(PERF_FRAME, frame) for frame in frames]
        assert [int(each[1], 16) for each in addresses if each] == list(record.stack)


def test_profiles(k: Kprobes) -> None:
    t = recorded(k, "p crc32", "p string_length", stack=True)
    total = sum(int(line.rpartition(" ")[2]) for line in exported(t, "folded").splitlines())
    assert total == len(t)
    scope = json.loads(exported(t, "speedscope"))
    profile, frames = scope["profiles"][0], scope["shared"]["frames"]
    assert profile["endValue"] == sum(profile["weights"]) == len(t)
    assert all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample)
    picture = ElementTree.fromstring(exported(t, "svg"))
    assert any("crc32" in (title.text or "") for title in picture.iter("{http://www.w3.org/2000/svg}title"))


def test_formats_that_are_none(k: Kprobes, tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="chrome"):
        recorded(k).export(tmp_path / "x", "pdf")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("library", "extra", "action"), [
    ("pyarrow", "arrow", "t.to_arrow()"), ("pyarrow", "arrow", "t.save('/nonexistent/x')"),
    ("pandas", "arrow", "t.to_pandas()"),
    ("numpy", "perfetto", "t.export('/dev/null', 'perfetto')"), ("pyarrow", "arrow", "Trace.load('/dev/null')")])
def test_without_an_extra(library: str, extra: str, action: str, k: Kprobes, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence that says what to install; and text needs none of them."""
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    t = recorded(k)
    for form in ("ftrace", "csv", "chrome"):
        t.export(io.StringIO(), form)
    with pytest.raises(Unsupported) as error:
        eval(action, {"t": t, "Trace": Trace})
    assert str(error.value) == f"{library} is not installed; pip install 'kprobes[{extra}]'"


def test_every_architecture_has_a_trace() -> None:
    assert set(ARCHES) - set(RUNNABLE) == set(NO_ENGINE)


@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_the_run_is_the_same(arch: str, tmp_path: Path) -> None:
    """With every event of a program recorded its results are the same, and the file says what was seen."""
    path = programs_of(arch)[-1]
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        want = results(path.stem, m)["test_structs"][0]
        with k.trace("p test_structs a=$arg1:u32 b=+0($stack):x8[3]", "r:out test_structs out=$retval:u32") as t:
            assert m.call("test_structs", 1) & 0xFFFFFFFF == want
        assert t[0].args["a"] == 1 and t[1].args["out"] == want and len(t) == 2
        t.save(tmp_path / "x.arrow")
    assert [*Trace.load(tmp_path / "x.arrow")] == [*t]


NUMBERS = ("p:in fib n=$arg1 s=$arg1:s8 b=$arg1:b2@1/8 c=$arg1:char at=$stack:symbol",
           "p:bad fib no=@0x8 some=@0x8:u8[2] two=@counter:x8[2]", "r:out fib $retval:s16", "p:sum checksum")


@pytest.mark.host_code
@pytest.mark.parametrize("clock", ["counter", "host"])
@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_programs_record_what_python_does(arch: str, clock: str) -> None:
    """In a trace of both, too, whose order is that of the hits; and where there is room for the newest only."""
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        seen: dict[str, list[Trace]] = {}
        for mode in ("python", "programs", "both"):
            m.cpu_task = (lambda regs: 0) if mode == "python" else None
            events = [event for event in NUMBERS if m.symbols._by_name.get(event.split()[1])]
            if mode == "both":
                events[1] += " text=+0($stack):string"
            for records in (1 << 20, 7, 1):
                recording = k.trace(*events, clock=clock, records=records)
                with recording as t:
                    m.call("fib", 5)
                made = recording._programs.made if recording._programs else {}
                assert len(made) == (0 if mode == "python" else len(events) - (mode == "both"))
                seen.setdefault(mode, []).append(t)
        for mode in ("programs", "both"):
            for mine, theirs in zip(seen[mode], seen["python"], strict=True):
                assert mine.lost == theirs.lost and len(mine) == len(theirs)
                for one, other in zip(mine, theirs, strict=True):
                    assert (one.event, one.seq, one.cpu, one.task, one.address, one.caller) == (
                        other.event, other.seq, other.cpu, other.task, other.address, other.caller)
                    assert {n: v for n, v in one.args.items() if n != "text"} == other.args
                times = [row[4] for *_, row in mine.rows()]
                assert times == sorted(times) and all(times) == (clock == "host")
        if clock == "counter":
            assert exported(seen["programs"][0], "ftrace") == exported(seen["python"][0], "ftrace")
            assert seen["programs"][0].to_arrow().equals(seen["python"][0].to_arrow())
        assert seen["programs"][2].lost > 7


@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_times_are_the_guests_instructions(arch: str, tmp_path: Path) -> None:
    """The same by programs and by Python, in every run, whatever else is probed; a file keeps them."""
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        if arch.startswith("sparc"):
            with pytest.raises(Unsupported, match="cannot count"), k.trace("p fib", clock="instructions"):
                pass
            assert not k.list() and m.clock is not None and not m.clock.runs
            return
        seen = []
        for python, more in ((True, ()), (False, ()), (False, ("p:q fib text=+0($stack):string",))):
            m.cpu_task = (lambda regs: 0) if python else None
            recording = k.trace("p:in fib n=$arg1", "r:out fib $retval", *more, clock="instructions")
            with recording as t:
                m.call("fib", 5)
            assert m.clock is not None and not m.clock.runs
            assert bool(recording._programs) is (host_code() and not python)
            rows = [r for r in t if r.event != "q"]
            assert t.clock == "instructions" and [r.time for r in rows] == [row[4] for i, _, row in t.rows()
                                                                            if i.name != "q"]
            seen.append([(r.event, r.time - (rows[0].time or 0)) for r in rows if r.time is not None])
        assert len(seen[0]) > 9 and seen[0] == seen[1] == seen[2]
        times = [time for _, time in seen[0]]
        assert times == sorted(times) and len({*times}) == len(times)
        t.save(tmp_path / "x.arrow")
        again = Trace.load(tmp_path / "x.arrow")
        assert [*again] == [*t] and again.clock == t.clock and exported(again, "ftrace") == exported(t, "ftrace")
        assert [int(line.split()[3][:-1]) for line in exported(t, "ftrace").splitlines()[12:]] == [r.time for r in t]


def test_who_cannot_count_says_so(k: Kprobes) -> None:
    k.machine.clock = None  # type: ignore[misc, assignment]
    with pytest.raises(Unsupported, match="does not count instructions"):
        k.trace("p fib", clock="instructions")


NUMBERS_ONLY = ("p:in fib n=$arg1 s=$arg1:s8 b=$arg1:b3@1/8", "p:two fib some=@0x8:u8[2] @counter:s16[2] no=@0x8:s32",
                "r:out fib $retval:s16 $stack0:x8")


@pytest.mark.host_code
@pytest.mark.parametrize("clock", ["counter", "instructions"])
@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS and name[:5] != "sparc"])
def test_records_of_programs_are_those_of_the_ring(arch: str, clock: str) -> None:
    """Numbers, arrays, bit fields, faults, return addresses and times, of events that record different numbers of
    bytes; copied in one piece, they are what Python records. Here the programs' buffer goes round, too."""
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        seen = []
        for python in (True, False):
            m.cpu_task = (lambda regs: 0) if python else None
            events = [event for event in NUMBERS_ONLY if "counter" not in event or m.symbols._by_name.get("counter")]
            for records, looks in ((1 << 20, 1), (600, 1), (100, 30)):
                recording = k.trace(*events, clock=clock, records=records)
                with recording as t:
                    start = m.clock() if m.clock is not None else 0
                    for _ in range(looks):
                        m.call("fib", 7)
                        assert len(t) <= records
                assert python or (recording._programs and recording._programs._copied)
                rows = [row for *_, row in t.rows()]
                if clock == "instructions":
                    rows = [(*row[:4], row[4] - start, *row[5:]) for row in rows]
                seen.append((rows, t.lost))
        assert seen[:3] == seen[3:] and seen[0][1] == 0 < seen[2][1]
        values = [row[6] for row in seen[0][0] if row[1] == 1]
        assert values[0][0] == (None, None) and values[0][-1] is None


LINKS = {"arm": "%lr", "arm64": "%lr", "mips": "%ra", "riscv": "%ra", "ppc": "%lr", "s390": "%r14", "sparc": "%o7"}


@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_what_returns_is_not_seen(arch: str) -> None:
    """Where a call returns to, as an event at the entry sees it beside a return event: as without it, whoever came
    first, and whether programs or Python record either."""
    link = next((name for prefix, name in LINKS.items() if arch.startswith(prefix)), "$stack0")
    entry, back, slow = f"p:in fib to={link}", "r:out fib $retval", " text=+0($stack):string"
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        def seen(*events: str) -> list[Any]:
            with k.trace(*events) as t:
                m.call("fib", 3)
            return [r.args["to"] for r in t if r.event == "in"]

        want = seen(entry)
        for python in (True, False):
            m.cpu_task = (lambda regs: 0) if python else None
            for more in ((entry, back), (back, entry), (entry + slow, back), (back, entry + slow),
                         (entry, back + slow), (back + slow, entry), (entry, back, "r:again fib")):
                assert seen(*more) == want, (python, more)
        e, r = k.event(entry), k.event(back)
        m.call("fib", 3)
        assert [x.args["to"] for x in e] == want and len(want) == r.hits


def test_writes_are_traced(k: Kprobes, tmp_path: Path) -> None:
    with k.trace("w:head w@free_list:8", "p fib n=$arg1:u32", filter="common_pid < 1") as t:
        k.machine.call("table_init")  # type: ignore[attr-defined]
        k.machine.call("fib", 1)  # type: ignore[attr-defined]
    assert [r.event for r in t] == ["head", "p_fib_0"] and t[0].args["value"] and len(t[0].args) == 2
    assert k.machine.symbols.at(t[0].caller)[0].name == "table_init" and "head: (table_init+0x" in exported(t, "ftrace")
    t.save(tmp_path / "x.arrow")
    again = Trace.load(tmp_path / "x.arrow")
    assert [*again] == [*t] and [exported(again, f) for f in TEXTS] == [exported(t, f) for f in TEXTS]
    assert all(not w.registered for w in k._watchpoints) and str(t[0].caller) in exported(t, "jsonl")  # type: ignore[attr-defined]


def test_patterns_and_filters(k: Kprobes) -> None:
    with k.trace("p string_*", "p:all /^fib$/ n=$arg1:u32") as t:
        work(k)
    assert {r.event for r in t} == {"p_string", "all"} and len({r.address for r in t}) == 3
    with k.trace("p fib n=$arg1:u32", filter="n > 2") as t:
        work(k)
    assert [r.args["n"] for r in t] == [4, 3]
    with pytest.raises(EventError):
        k.trace("p fib n=$arg1:u32", filter="m > 2")
    with pytest.raises(EventError, match="nothing_like"):
        k.trace("p nothing_like*")
