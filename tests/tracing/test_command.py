"""The command's ways to run a guest and to tell what happened."""

from __future__ import annotations

import html
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from debug_guests import FILES

from kprobes import Trace
from kprobes.cli import main

pytestmark = pytest.mark.quick
ROOT = Path(__file__).resolve().parents[2]
DEMO = str(ROOT / "examples" / "demo.x86_64")


def run(*words: str, status: int = 0) -> Result:
    result = CliRunner().invoke(main, words, prog_name="kprobes")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def mips(tmp_path: Path) -> str:
    (path := tmp_path / "mips.elf").write_bytes(FILES["mips-eh"])
    return str(path)


def test_patterns_filters_stacks() -> None:
    out = run("trace", DEMO, "p:s string_* a=+0($arg1):string", "-x", "*equal", "--filter", 'a == "width"', "--stack",
              "--run").stdout.splitlines()
    assert set(out[::4]) == {'s: (string_length+0x0/0x1c) a="width"'} and out[1] == " => string_length+0x0/0x1c"
    assert all(line.startswith(" => table_") for line in out[2::4])
    assert {*out[3::4]} == {" => [incomplete]"}  # the demo has no unwind information


def test_include_and_exclude() -> None:
    rows = [line.split() for line in run("stat", DEMO, "-i", "s*", "-i", "f*", "-x", "*equal",
                                         "--run").stdout.splitlines()[1:]]
    assert {row[1]: row[2] for row in rows} == {"fib": "89", "string_length": "14"}
    assert {json.loads(line)["function"] for line in run("stat", DEMO, "-i", "s*", "--json",
                                                         "--run").stdout.splitlines()} == {"string_equal",
                                                             "string_length"}


def test_record_report_convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(tmp_path / "x.arrow")
    done = run("record", DEMO, "-e", "p:s string_length a=+0($arg1):string", "-e", "r fib $retval", "--stack", "--run",
               "-o", file)
    assert f"{file}: 103 records, 0 lost, 0 missed" in done.stderr and len(Trace.load(file)) == 103
    assert ([line.split() for line in run("report", file).stdout.splitlines()]
            == [["event", "hits", "percent"], ["r_fib_0", "89", "86.4"], ["s", "14", "13.6"]])
    assert (json.loads(run("report", file, "--by", "caller", "--json").stdout.splitlines()[0])
            == {"caller": "fib", "hits": 88})
    launched: list[str] = []
    monkeypatch.setattr("click.launch", lambda path: launched.append(path) or 0)
    run("convert", file, str(tmp_path / "x.html"), "--open", "--before", file, "--picture", "flame")
    assert launched == [str(tmp_path / "x.html")] and "Content-Security-Policy" in Path(launched[0]).read_text()
    assert run("convert", file, str(tmp_path / "x.csv"), "--picture", "flame", status=2).exit_code == 2
    svg = str(tmp_path / "x.svg")
    run("report", file, "--by", "function", "--flame", svg)
    assert Path(svg).read_text().startswith("<svg")
    for name in ("x.json", "x.pftrace", "x.csv", "x.txt", "x.folded", "x.html", "x.parquet", "x.perf", "x.otlp"):
        run("convert", file, str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 100
    assert len(run("convert", file, "-", "--format", "jsonl").stdout.splitlines()) == 103
    run("convert", file, str(tmp_path / "x.unknown"), status=2)
    run("convert", file, "-", status=2)
    run("report", str(tmp_path / "nothing.arrow"), status=2)


def test_clocks(tmp_path: Path) -> None:
    fib = ("-e", "p fib n=$arg1:u32", "--call", "fib(2)")
    lines = run("trace", DEMO, *fib, "--clock", "instructions").stdout.splitlines()
    times = [int(line.split(":")[0]) for line in lines]
    assert len({*times}) == 2 and times == sorted(times) and lines[0].endswith(": p_fib_0: (fib+0x0/0x2d) n=2")
    assert [json.loads(line)["time"] for line in run("trace", DEMO, *fib, "--clock", "instructions",
                                                     "--json").stdout.splitlines()] == times
    assert "." in run("trace", DEMO, *fib, "--clock", "host").stdout.split(":")[0]
    for clock in ("counter", "host", "instructions"):
        run("record", DEMO, *fib, "--clock", clock, "-o", str(tmp_path / "x.arrow"))
        t = Trace.load(tmp_path / "x.arrow")
        assert t.clock == clock and [r.time is None for r in t] == [clock == "counter"] * 2
        assert clock != "instructions" or [r.time for r in t] == times
    run("trace", DEMO, *fib, "--clock", "moon", status=2)


def test_a_recording_survives_the_guests_fault(tmp_path: Path) -> None:
    file = str(tmp_path / "x.arrow")
    done = run("record", DEMO, "p fib n=$arg1:u32", "--call", "fib(30)", "--max-insns", "20", "-o", file, status=1)
    assert "max_insns" in done.stderr and [r.args["n"] for r in Trace.load(file)] == [30, 29]


def test_graph(tmp_path: Path) -> None:
    assert run("graph", DEMO, "fib", "--args", "1", "--call",
               "fib(2)").stdout == "fib(0x2) {\n  fib(0x1) = 0x1;\n} = 0x1\n"
    assert "parse_settings;table_insert;crc32 5" in run("graph", DEMO, "parse_settings", "--format", "folded",
                                                        "--run").stdout
    run("graph", DEMO, "nobody", "--run", status=2)


def test_hist_top_cover(tmp_path: Path) -> None:
    out = run("hist", DEMO, "p crc32 len=$arg3:u32", "len.log2", "--filter", "len > 2", "--run").stdout
    assert "hist:keys=len.log2:vals=hitcount" in out and "Hits:" in out
    assert run("top", DEMO, "-i", "fib", "--run").stdout.splitlines()[1].split()[:2] == ["fib", "89"]
    assert json.loads(run("cover", DEMO, "--call", "fib(1)", "--json", "-o",
                          str(tmp_path / "x.drcov")).stdout)["function"] == "fib"
    assert (tmp_path / "x.drcov").read_bytes().startswith(b"DRCOV")
    assert "nobody" in run("hist", DEMO, "p fib", "nobody", "--run", status=2).stderr


def test_names_of_the_source(mips: str) -> None:
    assert run("trace", mips, "p table_insert key:string value",
               "--run").stdout == 'p_table_insert_0: (table_insert+0x0/0xa8) key="width" value=640\n'
    assert ([line.split()[:2] for line in run("list", mips, "walk:0").stdout.splitlines()]
            == [["line", "n"], ["32", "0"]])
    assert len(run("list", mips, "walk:*").stdout.splitlines()) > 5 and "table_insert" in run("list", mips).stdout
    run("list", mips, "walk:99", status=2)
    assert "-g" in run("list", DEMO, "fib:*", status=2).stderr


def test_raw_images(tmp_path: Path) -> None:
    # mov x16, #6; ret
    (image := tmp_path / "code.bin").write_bytes(bytes.fromhex("d000 80d2 c003 5fd6".replace(" ", "")))
    (names := tmp_path / "names.txt").write_text("0000000000010000 T six\n")
    words = ("trace", str(image), "--arch", "arm64", "--base", "0x10000", "--symbols", str(names), "p six", "--call",
             "six()")
    assert run(*words).stdout.startswith("p_six_0: (six+0x0/")
    assert "--arch" in run("trace", str(image), "--base", "0x10000", "p six", "--call", "six()", status=2).stderr
    run("trace", str(image), "--base", "ten", "p six", "--call", "six()", status=2)


def test_words_behind_two_dashes_are_the_guests(mips: str) -> None:
    # its start returns: it is no Linux program
    done = run("trace", DEMO, "p main", "--", "--json", "-o", "x", status=1)
    assert done.stdout == "p_main_0: (main+0x0/0x1b9)\n"
    run("trace", DEMO, "p main", "--call", "fib(1)", "--", "a", status=2)


def test_without_events() -> None:
    assert "-e" in run("trace", DEMO, "--run", status=2).stderr
    assert "nothing*" in run("trace", DEMO, "-i", "nothing*", "--run", status=2).stderr


def test_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "kprobes", "trace", DEMO, "p fib", "--call", "fib(1)"],
                          capture_output=True, text=True, timeout=300, check=True, env={**os.environ, "NO_COLOR": "1"})
    assert done.stdout == "p_fib_0: (fib+0x0/0x2d)\n"


def test_source_lines(mips: str) -> None:
    shown = run("check", mips, "leaf").stdout.splitlines()
    assert " debug.c:25 in squared, inlined at debug.c:28 in leaf" in shown and shown[1].startswith(" debug.c:2")
    stack = run("trace", mips, "p leaf", "--stack", "--call", "outer(1)").stdout.splitlines()
    assert [line.rpartition(" ")[2] for line in stack[2:5]] == ["debug.c:35", "debug.c:35", "debug.c:59"]
    row = json.loads(run("trace", mips, "p leaf", "--stack", "--json", "--call", "outer(1)").stdout)
    assert row["lines"][1:4] == ["debug.c:35", "debug.c:35", "debug.c:59"] and len(row["lines"]) == len(row["stack"])


def test_accesses_to_memory_are_events() -> None:
    done = run("trace", DEMO, "w:head w@free_list:8", "--call", "table_init()")
    assert done.stdout.startswith("head: (table_init+0x") and "before=" in done.stdout
    assert done.stderr.split()[-3:] == ["head", "1", "0"]
    done = run("trace", DEMO, "w:head w@free_list:8", "--call", "table_init()", "--json")
    assert '"access": "w"' in done.stdout and "table_init+0x" in done.stdout


def test_devices_of_raw_images(tmp_path: Path) -> None:
    # x8 = 0x40000000; loads, a store; ret
    (image := tmp_path / "fw.bin").write_bytes(bytes.fromhex("0800a8d2 000140b9 000500b9 000140b9 c0035fd6"))
    raw = ("stat", str(image), "--arch", "arm64", "--base", "0x10000", "p 0x10000")
    done = run(*raw, "--mmio", "0x40000000:0x1000", "--mmio", "0:4096", "--call", "0x10000()").stderr.splitlines()
    assert [line.split() for line in done[-2:]] == [["0x0:0x1000", "0", "0"], ["0x40000000:0x1000", "2", "1"]]
    assert "reads" in run(*raw, "--mmio", "0x40000000:0x1000", "--max-insns", "2", "--run", status=1).stderr
    for region, word in (("4", "START:SIZE"), ("a:b", "number"), ("-4096:0x1000", "no region"),
                         ("0:0", "no region"), ("0x10000:0x1000", "another place")):
        assert word in run(*raw, "--mmio", region, "--run", status=2).stderr
    assert "0x0:0x1000" in run("stat", DEMO, "p fib", "--mmio", "0:4096", "--run").stderr


def test_numbers_as_json() -> None:
    rows = [json.loads(line) for line in run("hist", DEMO, "p crc32 len=$arg3:u32 text=+0($arg2):string", "len,text",
                                             "--json", "--run").stdout.splitlines()]
    assert {"len": 6, "text": "height", "hitcount": 4} in rows and sum(row["hitcount"] for row in rows) > 10
    last = json.loads(run("top", DEMO, "-i", "s*", "-x", "*equal", "--json", "--run").stdout.splitlines()[-1])
    assert last["hits"] == {"string_length": 14} and last["seconds"] > 0


@pytest.mark.skipif(shutil.which("lcov") is None, reason="no lcov here")
def test_lcov_reads_what_cover_writes(mips: str, tmp_path: Path) -> None:
    """lcov's own tools: a summary, and pages of the source."""
    run("cover", mips, "--call", "outer(1)", "-o", str(tmp_path / "x.info"))
    how: Any = {"cwd": ROOT / "tests" / "data", "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(["lcov", "--summary", str(tmp_path / "x.info")], check=True, **how)
    assert "lines......: 8" in done.stdout + done.stderr
    subprocess.run(["genhtml", "-q", "-o", str(tmp_path / "html"), str(tmp_path / "x.info")], check=True, **how)
    assert "debug.c" in (tmp_path / "html" / "index.html").read_text() or list((tmp_path / "html").rglob("debug.c.*"))


@pytest.mark.parametrize(("mangled", "shown"), [("_Z6insertPKc", "insert(char const*)"),
                                                ("_ZltiP5Table", "operator<(int, Table*)")])
def test_names_as_people_write_them(mangled: str, shown: str, tmp_path: Path) -> None:
    """-C; what other programs read is escaped as they want it."""
    (guest := tmp_path / "c++.elf").write_bytes(FILES["x86_64-eh"].replace(b"table_insert\0", mangled.encode() + b"\0"))
    file, how, saved = str(guest), ("--call", "outer(1)"), str(tmp_path / "x.arrow")
    event = f"p:e {mangled} n=$arg3"
    run("record", file, event, *how, "--stack", "-o", saved)
    flame = tmp_path / "x.svg"
    for words in (("list", file), ("trace", file, event, *how, "--stack"), ("stat", file, event, *how),
                  ("graph", file, "outer", *how), ("report", saved, "--by", "function")):
        plain, readable = run(*words).stdout, run(*words, "-C").stdout
        assert mangled in plain and shown not in plain, words
        assert shown in readable and mangled not in readable, words
    for words in (("trace", file, event, *how, "--json", "--stack"), ("stat", file, event, *how, "--json"),
                  ("report", saved, "--by", "function", "--json"), ("graph", file, "outer", *how, "--format", "jsonl")):
        assert shown in str([json.loads(line) for line in run(*words, "-C").stdout.splitlines()]), words
    run("report", saved, "--flame", str(flame))
    assert shown.replace("<", "&lt;") in flame.read_text() and mangled not in flame.read_text()
    run("report", saved, "--no-demangle", "--flame", str(flame))
    assert mangled in flame.read_text()


@pytest.mark.parametrize(("mangled", "shown"), [("_Z6insertPKc", "insert(char const*)"),
                                                ("_ZltiP5Table", "operator<(int, Table*)")])
def test_pictures_have_names_as_people_write_them(mangled: str, shown: str, tmp_path: Path) -> None:
    """As perf does, and files that pictures are made of; data have those of the symbol table. --no-demangle is perf's, too."""
    (guest := tmp_path / "c++.elf").write_bytes(FILES["x86_64-eh"].replace(b"table_insert\0", mangled.encode() + b"\0"))
    file, how, saved = str(guest), ("--call", "outer(1)"), str(tmp_path / "x.arrow")
    run("record", file, f"p:e {mangled} n=$arg3", f"r:f {mangled}", *how, "--stack", "-o", saved)
    formats = ["chrome", "speedscope", "folded", "perf", "svg", "html", "otlp"]
    if importlib.util.find_spec("perfetto"):
        formats.append("perfetto")
    for format in (*formats, "jsonl", "csv", "ftrace"):
        texts = []
        for option in ("--demangle", "--no-demangle"):
            run("convert", saved, str(tmp_path / "out"), "--format", format, option)
            texts.append(html.unescape((tmp_path / "out").read_text(errors="replace")).replace("\\u003c", "<"))
        assert (shown in texts[0]) == (format in formats), format
        assert (mangled in texts[0]) == (format not in formats), format
        assert mangled in texts[1] and shown not in texts[1], format
    for format in ("folded", "speedscope", "svg", "html"):
        words = "graph", file, "outer", *how, "--format", format
        first, second = (html.unescape(run(*words, *option).stdout).replace("\\u003c", "<") for option in ((), ("--no-demangle",)))
        assert shown in first and mangled not in first and mangled in second and shown not in second, format
    run("record", file, f"p:e {mangled}", *how, "-o", str(tmp_path / "x.folded"), "--no-demangle")
    assert (tmp_path / "x.folded").read_text() == f"{mangled};e 1\n"
    trace = Trace.load(saved)
    trace.export(tmp_path / "x.perf", "perf")
    trace.export(tmp_path / "y.perf", "perf", demangle=False)
    trace.with_names(False).export(tmp_path / "z.perf", "perf")
    assert (tmp_path / "z.perf").read_text() == (tmp_path / "y.perf").read_text()
    assert f"{shown}+0x0 (guest)" in (tmp_path / "x.perf").read_text() and f"{mangled}+0x0 (guest)" in (tmp_path / "y.perf").read_text()


def test_without_the_library_names_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kprobes.names._library", lambda name: None)
    monkeypatch.setattr("kprobes.names._runtime", lambda: None)
    assert "kprobes[dwarf]" in run("list", DEMO, "-C", status=2).stderr


def test_saved_stacks_have_source_lines(mips: str, tmp_path: Path) -> None:
    """The recording tells them without the guest: as `trace` does with it."""
    file, event = str(tmp_path / "x.arrow"), "p:e table_insert"
    live = [json.loads(line)["lines"] for line in run("trace", mips, event, "--stack", "--json", "--call",
                                                      "outer(1)").stdout.splitlines()]
    run("record", mips, event, "--stack", "--call", "outer(1)", "-o", file)
    trace = Trace.load(file)
    assert [[line or None for line in trace.lines(record.stack)] for record in trace] == live and live[0][0]
    saved = run("convert", file, "-", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["lines"] for line in saved] == live
    row = run("report", file, "--by", "stack").stdout.splitlines()[1]
    assert row.startswith(f"table_insert ({live[0][0]}) < outer ({live[0][1]})")
    assert json.loads(run("report", file, "--by", "stack", "--json").stdout)["stack"] in row
    assert " => table_insert" in run("convert", file, "-", "--format", "ftrace").stdout
    trace.save(again := str(tmp_path / "again.arrow"))
    assert Trace.load(again).lines(trace[0].stack) == trace.lines(trace[0].stack)
    run("record", DEMO, "p:f fib", "--stack", "--call", "fib(2)", "-o", file)
    bare = Trace.load(file)
    assert set(bare.lines(bare[0].stack)) == {""} and "lines" not in run("convert", file, "-", "--format",
                                                                          "jsonl").stdout


def test_several_calls_run_in_order() -> None:
    """In one guest: what the first leaves, the second finds."""
    calls = ("--call", "table_init()", "--call", 'table_insert("ab", 5)', "--call", 'table_lookup("ab")')
    done = run("trace", DEMO, "p table_*", *calls)
    assert [line.partition("(")[2].partition("+")[0] for line in done.stdout.splitlines()] == [
        "table_init", "table_insert", "table_lookup"]
    assert done.stderr.index("table_init()") < done.stderr.index("table_insert(") < done.stderr.index("= 0x5 (5)")
    done = run("graph", DEMO, "fib", "--call", "fib(1)", "--call", "fib(0)")
    assert "2 calls" in done.stderr and "fib(1) = 0x1" in done.stderr and "fib(0) = 0x0" in done.stderr
    assert "no such symbol" in run("trace", DEMO, "p fib", "--call", "fib(1)", "--call", "nope()", status=2).output


def test_warnings_are_sentences(tmp_path: Path) -> None:
    """A guest that overwrites a probed instruction: told by a line of ours, once."""
    # mov eax, 0x1000b; mov byte [rax], 0x90; nop (probed); mov eax, 6; ret
    (raw := tmp_path / "raw.bin").write_bytes(bytes.fromhex("b800000100 83c00b c60090 90 b806000000 c3"))
    (names := tmp_path / "n.txt").write_text("0000000000010000 T six\n")
    done = subprocess.run([sys.executable, "-m", "kprobes", "trace", raw, "--arch", "x86_64", "--base", "0x10000",
                           "--symbols", names, "p six+11", "--call", "six()", "--call", "six()"],
                          capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.count("overwrites text at 0x1000b") == 1 and ".py" not in done.stderr
    assert "kprobes: the guest's instruction at 0x10008 overwrites" in done.stderr
