"""Every option of every command, tried: through a pipe with what it does asked for, and those of `trace` on a
terminal, too (test_terminal.py has the other commands there).

An option without a row here fails test_every_option_has_a_row().
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result
from test_command import DEMO, run
from test_terminal import terminal

from kprobes import Trace
from kprobes.cli import main

pytestmark = pytest.mark.quick
GUESTS = ("trace", "record", "stat", "hist", "top", "graph", "cover")
EVENTS = ("trace", "record", "stat", "top")
EVENT = "p:f fib n=$arg1:u32"
CAMPAIGN = "campaign"  #: tests/campaign/test_campaign.py tries its options
QEMU = os.environ.get("KPROBES_QEMU_DIR")

#: mov w0, #6; ldr w1, [x8]; ret, behind movz x8, #0x4000, lsl 16
RAW = bytes.fromhex("0800a8d2 c0008052 010140b9 c0035fd6")
MANGLED, READABLE = "_ZN5Table6insertEPKci", "Table::insert(char const*, int)"
Check = Callable[[Result, Path], bool]


def what(command: str, event: str = EVENT) -> list[str]:
    """What a command is told beside the file and how it is run."""
    return {"graph": ["fib"], "cover": [], "hist": [event, "n"]}.get(command, [event])


def said(text: str) -> Check:
    return lambda done, folder: text in done.output


def words_of(command: str, option: str, folder: Path) -> tuple[list[str], Check]:
    """(the words, what shows that the option did something)"""
    guest, call = [command, DEMO, *what(command)], ["--call", "fib(3)"]
    out = folder / {"cover": "x.drcov", "record": "x.jsonl"}.get(command, "x.txt")
    saved = ["-o", str(folder / "x.arrow")] if command == "record" else []
    (raw := folder / "raw.bin").write_bytes(RAW)
    (names := folder / "names.txt").write_text("0000000000010000 T six\n")
    image = [command, str(raw), *(["six"] if command == "graph" else what(command, "p:f six n=$arg1"))]
    image += ["--arch", "arm64", "--base", "0x10000", "--symbols", str(names), "--mmio", "0x40000000:0x1000", *saved]
    raws = ([*image, "--call", "six()"], said("six() = 0x6"))
    (mangled := folder / "mangled.txt").write_text(f"0000000000010000 T {MANGLED}\n")
    cxx = [command, str(raw), *([MANGLED] if command == "graph" else what(command, f"p:f {MANGLED} n=$arg1"))]
    cxx += ["--arch", "arm64", "--base", "0x10000", "--symbols", str(mangled), "--mmio", "0x40000000:0x1000"]
    rows: dict[str, tuple[list[str], Check]] = {
        "--demangle": ([*cxx, "--call", f"{MANGLED}()", "-C"], said(READABLE)),
        "--arch": raws, "--base": raws, "--symbols": raws,
        "--mmio": (raws[0], lambda done, folder: "0x40000000:0x1000" in done.stderr and "reads" in done.stderr),
        "--call": ([*guest, *call, *saved], said("fib(3) = ")),
        "--run": ([*guest, "--run", *saved], lambda done, folder: bool(done.output)),
        "--qemu": ([*guest, "--qemu", *saved], said("chmod +x" if QEMU else "")),
        "--sysroot": ([*guest, *call, "--sysroot", str(folder), *saved], said("--qemu as well")),
        "--timeout": ([*guest, "--call", "fib(35)", "--timeout", "0.05", *saved], said("the time is up")),
        "--max-insns": ([*guest, *call, "--max-insns", "5", *saved], said("max_insns")),
        "--event": ([command, DEMO, "-e", EVENT, *call, *saved], said("f")),
        "--include": ([command, DEMO, "-i", "fi*", *call, *saved], said("fib")),
        "--exclude": ([command, DEMO, "-i", "[cf]*", "-x", "c*", *call, *saved],
                      lambda done, folder: "fib" in done.output and "crc32" not in done.output),
        "--filter": ([*guest, *call, "--filter", "n == 99", *saved], lambda done, folder: "n=3" not in done.output),
        "--stack": ([*guest, *call, "--stack", *saved],
                    lambda done, folder: " => fib" in done.stdout or bool(Trace.load(folder / "x.arrow")[1].stack)),
        "--clock": ([*guest, *call, "--clock", "instructions", *saved],
                    lambda done, folder: done.stdout[:12].strip().isdigit()
                    or Trace.load(folder / "x.arrow").clock == "instructions"),
        "--json": ([*guest, *call, "--json"], lambda done, folder: bool(json.loads(done.stdout.splitlines()[0]))),
        "--records": ([*guest, *call, "--records", "1", *saved], lambda done, folder: len(Trace.load(saved[1])) == 1),
        "--interval": ([*guest, *call, "--interval", "0.05"], said("fib")),
        "--rows": ([command, DEMO, "-i", "*", "--run", "-n", "1"],
                   lambda done, folder: len(done.stdout.splitlines()) % 2 == 0),
        "--depth": ([*guest, *call, "--depth", "1"], lambda done, folder: done.stdout.count("fib()") == 2),
        "--args": ([*guest, *call, "--args", "1"], said("fib(0x3)")),
        "--instructions": ([*guest, *call, "--instructions"], said("instructions |")),
        "--format": ([*guest, *call, "--format", "folded"], said("fib;fib")),
        "--output": ([*guest, *call, "-o", str(out)], lambda done, folder: out.stat().st_size > 0),
    }
    if command == "graph":
        rows["--include"] = ([command, DEMO, "parse_settings", "--run", "-i", "crc*"],
                             lambda done, folder: "crc32(" in done.stdout and "table_insert(" not in done.stdout)
    return rows[option]


def options_of(command: str) -> list[str]:
    """The long names of a command's options."""
    found = main.commands[command]
    return [max(p.opts, key=len) for p in found.params if isinstance(p, click.Option)]


FAILS = {"--timeout": 1, "--max-insns": 1, "--sysroot": 2, "--qemu": 2}
ALL = [(command, option) for command in GUESTS for option in options_of(command)]


@pytest.mark.parametrize(("command", "option"), ALL)
def test_an_option(command: str, option: str, tmp_path: Path) -> None:
    words, shows = words_of(command, option, tmp_path)
    done = run(*words, status=FAILS.get(option, 0))
    assert shows(done, tmp_path), done.output
    if command == "trace" and option not in FAILS:
        status, seen = terminal(*words, NO_COLOR="1")
        assert status == 0 and b"Traceback" not in seen and b"\x1b[3" not in seen


OTHERS = {
    "archs": {}, "symbols": {"--arch": ("--arch", "x86_64")},
    "list": {"--arch": ("--arch", "x86_64"), "--sdt": ("--sdt",), "--demangle": ("-C",)},
    "check": {"--arch": ("fib", "--arch", "x86_64"), "--event": ("-e", EVENT)},
    "report": {"--demangle": ("-C",), "--by": ("--by", "function"), "--json": ("--json",), "--flame": ("--flame", "x.svg")},
    "convert": {"--format": ("-", "--format", "jsonl")},
}


@pytest.mark.parametrize(("command", "option"), [(command, option) for command in OTHERS for option in OTHERS[command]])
def test_an_option_of_those_that_run_nothing(command: str, option: str, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("record", DEMO, EVENT, "--call", "fib(3)", "-o", "x.arrow")
    file = "x.arrow" if command in ("report", "convert") else DEMO
    done = run(command, file, *OTHERS[command][option], status=2 if option == "--sdt" else 0)
    assert "no static tracepoint" in done.output if option == "--sdt" else done.stdout
    assert option != "--flame" or (tmp_path / "x.svg").exists()


def test_every_option_has_a_row() -> None:
    assert {*main.commands} == {*GUESTS, *OTHERS, CAMPAIGN}
    for command, rows in OTHERS.items():
        assert {*options_of(command)} == {*rows}, command
