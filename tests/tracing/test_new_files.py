"""Files that commands and exports write: checked before the guest runs, complete or not there, and there however a run
ends."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kprobes import Kprobes, Trace, UnicornMachine
from kprobes.cli import main
from kprobes.cli._guest import GuestOptions
from kprobes.newfile import NewFile

pytestmark = pytest.mark.quick
ROOT = Path(__file__).resolve().parents[2]
DEMO = str(ROOT / "examples" / "demo.x86_64")
WRITERS = {
    "record": ("record", DEMO, "p fib", "--run", "-o"),
    "trace": ("trace", DEMO, "p fib", "--run", "-o"),
    "graph": ("graph", DEMO, "main", "--run", "-o"),
    "cover": ("cover", DEMO, "--run", "-o"),
}
ENDINGS = {"record": ("arrow", "json", "pftrace", "txt"), "trace": ("txt",), "graph": ("txt",), "cover": ("drcov",)}
CASES = [(command, ending) for command, endings in ENDINGS.items() for ending in endings]


def run(*words: str) -> Result:
    result = CliRunner().invoke(main, words, prog_name="kprobes")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """One entry for each guest that has been run."""
    runs: list[str] = []
    start = GuestOptions.start

    def counted(self: GuestOptions, *args: Any, **options: Any) -> None:
        runs.append(self.file)
        start(self, *args, **options)

    monkeypatch.setattr(GuestOptions, "start", counted)
    return runs


@pytest.mark.parametrize(("command", "ending"), CASES)
def test_what_cannot_be_written_is_said_before_the_run(command: str, ending: str, tmp_path: Path,
                                                       ran: list[str]) -> None:
    result = run(*WRITERS[command], str(tmp_path / "missing" / f"x.{ending}"))
    assert (result.exit_code, ran) == (2, []) and "missing" in result.stderr and "hits" not in result.output
    (tmp_path / f"folder.{ending}").mkdir()
    result = run(*WRITERS[command], str(tmp_path / f"folder.{ending}"))
    assert (result.exit_code, ran) == (2, [])
    assert run(*WRITERS[command], str(tmp_path / f"x.{ending}")).exit_code == 0 and ran == [DEMO]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"folder.{ending}", f"x.{ending}"]


@pytest.mark.parametrize("name", ["x.unknown", "x"])
def test_names_that_tell_no_format(name: str, tmp_path: Path, ran: list[str]) -> None:
    for command in ("record", "cover"):
        assert run(*WRITERS[command], str(tmp_path / name)).exit_code == 2
    assert ran == [] and not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("library", "ending"), [("pyarrow", "arrow"), ("numpy", "pftrace")])
def test_a_library_that_is_missing_is_said_before_the_run(library: str, ending: str, tmp_path: Path, ran: list[str],
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    result = run(*WRITERS["record"], str(tmp_path / f"x.{ending}"))
    assert (result.exit_code, ran) == (2, []) and "pip install" in result.stderr and not [*tmp_path.iterdir()]


def test_a_run_without_hits_leaves_a_file(tmp_path: Path) -> None:
    """Not that of the recording before."""
    assert run(*WRITERS["record"], str(path := tmp_path / "x.arrow")).exit_code == 0 and len(Trace.load(path)) > 0
    assert run("record", DEMO, "p fib", "--call", "crc32(0, 0, 0)", "-o", str(path)).exit_code == 0
    assert len(Trace.load(path)) == 0


def test_a_wrong_event_leaves_what_was_there(tmp_path: Path) -> None:
    for command, ending in (("record", "arrow"), ("trace", "txt")):
        (path := tmp_path / f"x.{ending}").write_text("before")
        for event in ("p fib %none", "p crc32+1"):
            assert run(command, DEMO, event, "--run", "-o", str(path)).exit_code == 2
        assert path.read_text() == "before" and [*tmp_path.iterdir()] == [path]
        path.unlink()


@pytest.mark.parametrize("command", ["record", "trace", "graph"])
def test_hits_until_a_guest_fails_are_written(command: str, tmp_path: Path) -> None:
    path = tmp_path / ("x.arrow" if command == "record" else "x.txt")
    events = ("fib",) if command == "graph" else ("p fib",)
    assert run(command, DEMO, *events, "--call", "fib(30)", "--max-insns", "5000", "-o", str(path)).exit_code == 1
    assert (len(Trace.load(path)) if command == "record" else len(path.read_text().splitlines())) > 50


SIGNALS = """
import json, os, signal, sys, threading, time
from click.testing import CliRunner
from kprobes.cli import main
from kprobes.events._place import counts_of
from kprobes.tracing.recorder import Recording

arm, armed = Recording.__enter__, []

def enter(self):
    armed[:] = [self]
    return arm(self)

def kill(number):
    while not armed or not any(counts_of(probe)[0] > 500 for probe in armed[0].probes):
        time.sleep(0.01)
    os.kill(os.getpid(), number)

Recording.__enter__ = enter
seen = []
for number, words in json.loads(sys.argv[1]):
    armed.clear()
    threading.Thread(target=kill, args=(number,), daemon=True).start()
    result = CliRunner().invoke(main, words, prog_name="kprobes")
    seen.append((result.exit_code, result.stderr.splitlines()[-1]))
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
print(json.dumps(seen))
"""


def test_signals_that_end_a_run(tmp_path: Path) -> None:
    """The files are there, and the status tells what has ended the run."""
    ends = [(number, command) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            for command in ("record", "trace")]
    paths = [tmp_path / f"{number.name}.{'arrow' if command == 'record' else 'txt'}" for number, command in ends]
    jobs = [(number, (command, DEMO, "p fib n=$arg1:u32", "--call", "fib(60)", "-o", str(path)))
            for (number, command), path in zip(ends, paths, strict=True)]
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SIGNALS, json.dumps(jobs)], capture_output=True,
                          text=True, timeout=300, check=True)
    for (number, _), (status, said) in zip(ends, json.loads(done.stdout), strict=True):
        assert (status, said) == ((130, "kprobes: interrupted") if number == signal.SIGINT
                                  else (128 + number, f"kprobes: ended by {number.name}"))
    for path in paths:
        assert (len(Trace.load(path)) if path.suffix == ".arrow" else len(path.read_text().splitlines())) > 500
    assert len([*tmp_path.iterdir()]) == len(paths)


FULL = """
import json, resource, signal, sys
from click.testing import CliRunner
from kprobes import Kprobes, UnicornMachine
from kprobes.cli import main

resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
m = UnicornMachine.load(sys.argv[1])
k = Kprobes(m)
with k.coverage() as cover, k.graph("fib") as tree, k.trace("p fib", stack=True) as trace:
    m.call("fib", 7)
jobs, folder = json.loads(sys.argv[2]), sys.argv[3]
seen = []
for words in jobs:
    result = CliRunner().invoke(main, words, prog_name="kprobes")
    seen.append((words[-1], result.exit_code, result.stderr.splitlines()[-1]))
for name, save in {"x.arrow": trace.save, "x.svg": lambda path: trace.export(path, "svg"),
                   "x.pftrace": lambda path: trace.export(path, "perfetto"), "x.drcov": cover.save, "x.afl": cover.save,
                   "x.jsonl": lambda path: tree.export(path, "jsonl")}.items():
    try:
        save(path := folder + "/" + name)
        seen.append((path, 0, ""))
    except OSError as error:
        seen.append((path, 2, str(error)))
print(json.dumps(seen))
"""


def test_no_room_left(tmp_path: Path) -> None:
    """The message names the file; nothing of it is left, and what was there before stays. A limit of a file's size
    stands for a full disk."""
    recording = tmp_path / "recording.arrow"
    run(*WRITERS["record"], str(recording), "--stack")
    (folder := tmp_path / "folder").mkdir()
    jobs = [(*WRITERS[command], str(folder / f"{command}.{ending}")) for command, ending in CASES]
    jobs += [("convert", str(recording), str(folder / f"y.{ending}")) for ending in ("txt", "pftrace", "json")]
    jobs.append(("report", str(recording), "--flame", str(folder / "y.svg")))
    (folder / "x.arrow").write_text("before")
    (folder / "record.txt").write_text("before")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FULL, DEMO, json.dumps(jobs), str(folder)],
                          capture_output=True, text=True, timeout=300, check=True)
    seen = json.loads(done.stdout)
    assert len(seen) == len(jobs) + 6
    for path, status, said in seen:
        assert status == 2 and path in said and "File too large" in said, (path, status, said)
    assert sorted(path.name for path in folder.iterdir()) == ["record.txt", "x.arrow"]
    assert {path.read_text() for path in folder.iterdir()} == {"before"}


# --- the class


def test_what_is_kept(tmp_path: Path) -> None:
    (path := tmp_path / "x").write_text("before")
    path.chmod(0o640)
    with pytest.raises(ZeroDivisionError), NewFile(path, binary=False) as new:
        new.file.write("half")
        raise ZeroDivisionError
    assert path.read_text() == "before"
    with pytest.raises(ZeroDivisionError), NewFile(path, binary=False, keep=True) as new:
        new.file.write("all \ud800")
        raise ZeroDivisionError
    assert path.read_text() == "all \\ud800" and stat.S_IMODE(path.stat().st_mode) == 0o640
    (link := tmp_path / "link").symlink_to(path)
    with NewFile(link, binary=True) as new:
        new.file.write(b"behind it")
    assert link.is_symlink() and path.read_text() == "behind it" and len([*tmp_path.iterdir()]) == 2
    (dangling := tmp_path / "dangling").symlink_to(tmp_path / "new")
    with NewFile(dangling, binary=True) as new:
        new.file.write(b"made")
    assert dangling.is_symlink() and (tmp_path / "new").read_text() == "made"


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    with NewFile(os.devnull, binary=True) as new:
        new.file.write(b"x")
    assert not Path(os.devnull).is_file()
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"), NewFile("/dev/full", binary=True) as new:
        new.file.write(b"x")
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k, k.trace("p fib") as t:
        m.call("fib", 2)
    with pytest.raises(OSError, match="'/dev/full'"):
        t.save("/dev/full")
