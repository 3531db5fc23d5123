"""The command in a real terminal: tables, progress, colours, exit statuses."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from terminals import COLOURS, Terminals
from test_command import DEMO

from kprobes import Kprobes
from kprobes.cli import main

WORDS = [sys.executable, "-m", "kprobes"]


def terminal(*words: str, after: float = 0.0, piped: bool = False, **environment: str) -> tuple[int, bytes]:
    """(exit status, all that came to the terminal). after: seconds until control-C. piped: stdout is no terminal."""
    own, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI")}
    child = subprocess.Popen([*WORDS, *words], stdin=theirs, stdout=subprocess.DEVNULL if piped else theirs,
                             stderr=theirs, env={**env, "TERM": "xterm-256color", "COLUMNS": "120", **environment})
    os.close(theirs)
    seen, begun = b"", time.monotonic()
    with contextlib.suppress(OSError):  # nobody has it open any more
        while piece := os.read(own, 4096):
            seen += piece
            if after and b"running" in seen and time.monotonic() - begun > after:
                child.send_signal(signal.SIGINT)
                after = 0.0
    os.close(own)
    return child.wait(300), seen


@pytest.fixture
def endless(tmp_path: Path) -> tuple[str, ...]:
    (image := tmp_path / "endless.bin").write_bytes(bytes.fromhex("1f2003d5 ffffff17"))  # nop; b .-4
    return str(image), "--arch", "arm64", "--base", "0x10000", "--run"


FIB = ("-e", "p fib n=$arg1", "--call", "fib(3)")


@pytest.mark.parametrize("words", [
    ("trace", DEMO, *FIB), ("trace", DEMO, *FIB, "--stack", "--json"), ("stat", DEMO, *FIB),
    ("stat", DEMO, *FIB, "--json"), ("top", DEMO, *FIB, "-n", "1"),
    ("top", DEMO, *FIB, "--json"), ("hist", DEMO, "p fib n=$arg1", "n", "--call", "fib(3)"),
    ("graph", DEMO, "fib", "--call", "fib(3)", "--args", "1"),
    ("graph", DEMO, "fib", "--instructions", "--call", "fib(3)"), ("cover", DEMO, "--call", "fib(3)"),
    ("list", DEMO, "f*"), ("check", DEMO, "fib"),
    ("symbols", DEMO, "f*"), ("archs",), ("--help",)],
    ids=lambda words: " ".join(word for word in words if word != DEMO))
@pytest.mark.parametrize("no_color", [False, True])
def test_every_command(words: tuple[str, ...], no_color: bool, terminals: Terminals) -> None:
    done = terminals.run(*words, size=(40, 120), **({"NO_COLOR": "1"} if no_color else {}))
    assert done.status == 0 and (len(done.text) > 500 if words[0] in ("archs", "--help") else "fib" in done.text)
    assert "Traceback" not in done.text and not (no_color and COLOURS.search(done.text))


@pytest.mark.parametrize("words", [("trace", DEMO, *FIB), ("--help",)], ids=["trace", "help"])
def test_in_a_process_of_its_own(words: tuple[str, ...]) -> None:
    status, seen = terminal(*words)
    assert status == 0 and (b"fib" if words[0] == "trace" else b"Commands") in seen
    assert b"Traceback" not in seen


def test_progress(endless: tuple[str, ...]) -> None:
    """What takes more than a second says so, and takes it away again; nothing where stderr is no terminal, or hits are
    printed."""
    status, seen = terminal("stat", *endless, "--timeout", "1.6", "p 0x20000")
    assert status == 2 and b"running" not in seen  # refused at once
    words = ("stat", *endless, "--timeout", "1.8", "-e", "p 0x10000")
    status, seen = terminal(*words)
    assert (status == 1 and b"running endless.bin" in seen and b"\x1b[2K" in seen and seen.rfind(b"running")
            < seen.rfind(b"the time is up"))
    assert b"running" not in terminal("trace", *endless, "--max-insns", "3", "p 0x10000")[1]
    done = subprocess.run([*WORDS, *words], capture_output=True, check=False, timeout=300)
    assert done.returncode == 1 and b"running" not in done.stderr and b"\x1b" not in done.stderr + done.stdout


@pytest.mark.parametrize("words", [
    ("trace", "-e", "p fib"), ("stat", "-e", "p fib"), ("top", "-e", "p fib"), ("graph", "fib"), ("record", "-e", "p fib", "-o", "OUT"),
    ("record", "-e", "p fib", "-o", "OUT", "--json")], ids=" ".join)
def test_probes_are_placed_under_a_spinner(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """-i '*' walks all functions of a large program before it runs: 12 s without a sign. The guest runs under another one."""
    shown: list[str] = []
    placed: list[str] = []
    register = Kprobes.register

    @contextlib.contextmanager
    def spinner(text: str) -> Iterator[None]:
        shown.append(text)
        yield
        shown.pop()

    def placing(self: Kprobes, *probes: object, **named: object) -> object:
        placed.extend(shown)
        return register(self, *probes, **named)  # type: ignore[arg-type]

    monkeypatch.setattr("kprobes.cli._render.patience", spinner)
    monkeypatch.setattr("kprobes.cli._guest.patience", spinner)
    monkeypatch.setattr(Kprobes, "register", placing)
    command, *rest = (str(tmp_path / "out.jsonl") if word == "OUT" else word for word in words)
    done = CliRunner().invoke(main, [command, str(DEMO), *rest, "--call", "fib(3)"])
    assert done.exit_code == 0 and not shown, done.output
    assert placed and {*placed} == {f"placing probes in {Path(DEMO).name}"}


def test_control_c(endless: tuple[str, ...]) -> None:
    status, seen = terminal("cover", *endless, after=1.2, piped=True)
    assert status == 130 and b"kprobes: interrupted" in seen and b"Traceback" not in seen


def test_nobody_reads() -> None:
    done = subprocess.run(["bash", "-c",
                           f"{sys.executable} -m kprobes trace {DEMO} -i '*' --run | head -1; echo ${{PIPESTATUS[0]}}"],
                          capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines()[-1] in ("141", "0") and "Traceback" not in done.stderr


@pytest.mark.parametrize(("words", "wanted"), [(("", "tr"), "plain,trace"), (("trace", "ex"), "file,ex"),
                                               (("graph", "x", "--for"), "plain,--format"),
                                               (("stat", "x", "--js"), "plain,--json")], ids=str)
def test_completion(words: tuple[str, ...], wanted: str) -> None:
    typed = [word for word in words if word]
    env = {**os.environ, "COMP_WORDS": " ".join(["kprobes", *typed]), "COMP_CWORD": str(len(typed)),
           "_KPROBES_COMPLETE": "bash_complete"}
    done = subprocess.run([sys.executable, "-c", "from kprobes.cli import main; main(prog_name='kprobes')"],
                          capture_output=True, text=True, env=env, check=False, timeout=300)
    assert wanted in done.stdout.splitlines()


def test_hits_are_followed_through_a_pipe(endless: tuple[str, ...]) -> None:
    """They come while the guest runs, which it does for ever."""
    child = subprocess.Popen([*WORDS, "trace", "-f", *endless, "p 0x10000"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline().startswith("p_0x10000")
        assert child.poll() is None
    assert child.wait(60) == 141  # nobody reads
    assert subprocess.run([*WORDS, "trace", "-f", *endless, "p 0x10000", "-o", "x"], capture_output=True,
                          check=False).returncode == 2


def test_keys_sort_top(endless: tuple[str, ...]) -> None:
    """In a terminal; it says so there, and is what it was when it ends."""
    own, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    child = subprocess.Popen([*WORDS, "top", *endless, "p 0x10000", "p 0x10004", "--interval", "3600"], stdin=theirs,
                             stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    seen = b""
    try:
        for key, order in ((b"n", b"sorted by name;"), (b"r", b"sorted by name, reversed;"),
                           (b"h", b"sorted by hits, reversed;")):
            os.write(own, key)  # it waits until the command looks
            while order not in seen:
                assert select.select([own], [], [], 60)[0], seen
                seen += os.read(own, 4096)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
    finally:
        child.kill()
        child.wait()
    assert b"h hits, s a second, n names" in seen
    assert termios.tcgetattr(theirs)[3] == before[3]
    os.close(theirs)
    os.close(own)
