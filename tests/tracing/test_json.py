"""--json of every command: what the book's table of schemas says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest
from debug_guests import FILES
from test_command import DEMO, ROOT, run

from kprobes.cli import main

pytestmark = pytest.mark.quick
NOTES = str(ROOT / "examples" / "notes.arm64")
FIB = ("p fib n=$arg1:u32", "--call", "fib(3)")
#: a row of the table -> words for each of which all objects have its members
WORDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "archs": ((),),
    "check": ((DEMO, "fib"), ("MIPS", "outer+0"), (DEMO, "fib+0")),
    "check -e": ((DEMO, "-e", FIB[0], "-e", "p fib s=+0($arg1):string"),),
    "symbols": ((DEMO, "f*"),),
    "list": ((DEMO, "f*"),),
    "list FUNCTION:*": (("MIPS", "outer:*"),),
    "list --sdt": (("SDT", "--sdt"),),
    "trace": ((DEMO, *FIB), (DEMO, *FIB, "--stack", "--clock", "instructions"), (DEMO, "r fib $retval", *FIB[1:]),
              (DEMO, "w:head w@free_list:8", "--call", "table_init()")),
    "stat": ((DEMO, *FIB),),
    "top": ((DEMO, *FIB),),
    "graph": ((DEMO, "fib", *FIB[1:]), (DEMO, "fib", *FIB[1:], "--instructions")),
    "cover": ((DEMO, *FIB[1:]),),
    "heap": ((NOTES, "--call", "book_open()"),),
    "record": ((DEMO, *FIB, "-o", "NEW.arrow"),),
    "convert": (("RECORDING", "NEW.csv"),),
    "script -l": ((DEMO, "-l", "kprobe:f*"),),
    "demo": (("NEW",),),
}
ELSEWHERE = {"hist", "report"}  #: whose members have names that the user chooses
#: these have objects of their own
OTHERS = {"campaign", "fuzz", "run"}


def schemas() -> dict[str, tuple[set[str], set[str]]]:
    """Command -> members that an object always has, those that it may have."""
    text = (ROOT / "docs" / "tracing.md").read_text().partition("### JSON")[2].partition("\n## ")[0]
    found = {}
    for heads, members in re.findall(r"^\| (`.+?) \| (.+) \|$", text, re.M):
        always, _, sometimes = members.partition("[")
        for head in re.findall(r"`([^`]+)`", heads):
            found[head] = {*re.findall(r"`(\w+)`", always)}, {*re.findall(r"`(\w+)`", sometimes)}
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("json")
    (folder / "mips.elf").write_bytes(FILES["mips-eh"])
    recording = str(folder / "recording.arrow")
    run("record", DEMO, *FIB, "-o", recording)
    new = {name: str(folder / name) for name in ("NEW", "NEW.arrow", "NEW.csv")}
    return {"MIPS": str(folder / "mips.elf"), "SDT": sdt(folder), "RECORDING": recording, **new}


def sdt(folder: Path) -> str:
    """A file with static tracepoints."""
    import tarfile

    with tarfile.open(ROOT / "tests" / "data" / "sdt.tar.xz") as archive:
        member = next(member for member in archive.getmembers() if "x86_64" in member.name)
        (folder / "sdt.elf").write_bytes(archive.extractfile(member).read())  # type: ignore[union-attr]
    return str(folder / "sdt.elf")


@pytest.mark.parametrize("head", WORDS)
def test_objects_have_the_members_of_the_schema(head: str, files: dict[str, str]) -> None:
    always, sometimes = schemas()[head]
    seen: set[str] = set()
    for words in WORDS[head]:
        command = head.partition(" ")[0]
        done = run(command, *(files.get(word, word) for word in words), "--json", status=1 if command == "heap" else 0)
        lines = done.stdout.splitlines()
        assert lines
        for line in lines:
            members = {*json.loads(line)}
            assert always <= members <= always | sometimes, (words, members ^ always)
            seen |= members
    assert seen == always | sometimes


def test_names_that_users_choose(tmp_path: Path) -> None:
    (row,) = map(json.loads, run("hist", DEMO, "p fib n=$arg1:u32", "keys=n:vals=hitcount,n:size=64", "--filter",
                                 "n == 3", "--call", "fib(3)", "--json").stdout.splitlines())
    assert row["n"] == 3 and row["hitcount"] == 1
    run("record", DEMO, *FIB, "-o", str(tmp_path / "x.arrow"))
    for by in ("event", "function", "caller", "task", "stack"):
        (done, *_) = map(json.loads, run("report", str(tmp_path / "x.arrow"), "--by", by, "--json").stdout.splitlines())
        assert {*done} == {by, "hits"}


def test_a_recording_is_told_of(tmp_path: Path) -> None:
    file = str(tmp_path / "x.csv")
    done = run("record", DEMO, "p table_* $arg1", "p:f fib", "--call", "fib(3)", "-o", file, "--json")
    told = json.loads(done.stdout)
    assert not [line for line in done.stderr.splitlines() if "hits" in line or "records" in line]
    assert {e["event"]: (e["hits"], e["missed"]) for e in told["events"]} == {"p_table": (0, 0), "f": (3, 0)}
    assert (told["file"], told["format"], told["records"], told["left_out"]) == (file, "csv", 3, [])
    # what a guest that fails has left is told, too
    done = run("record", DEMO, "p fib", "--call", "fib(9)", "--max-insns", "100", "-o", file, "--json", status=1)
    assert json.loads(done.stdout)["records"] == len(Path(file).read_text().splitlines()) - 1 > 0


def test_a_script_prints_objects() -> None:
    words = DEMO, "-q", "-e", "kprobe:fib { @n = count(); }", "--call", "fib(3)"
    printed = run("script", *words, "--json").stdout
    assert printed == run("script", *words, "-f", "json").stdout
    assert {"type": "map", "data": {"@n": 3}} in map(json.loads, printed.splitlines())


def test_every_command_has_it() -> None:
    assert {head.partition(" ")[0] for head in schemas()} == {*main.commands} - OTHERS
    assert {head for head in schemas() if head not in ELSEWHERE} == {*WORDS}
    for name in main.commands:
        assert "--json" in [opt for p in main.commands[name].params if isinstance(p, click.Option) for opt in p.opts]


def test_two_formats_at_once() -> None:
    for words in (("symbols", DEMO, "f*", "--format", "map"), ("graph", DEMO, "fib", "--format", "svg", *FIB[1:]),
                  ("script", DEMO, "-e", "begin { }", "-f", "text"), ("script", DEMO, "-e", "begin { }", "-d")):
        assert "either --json" in run(*words, "--json", status=2).output
