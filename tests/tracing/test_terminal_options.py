"""Every option of every command in a small terminal, in a big one, and through a pipe: they say the same."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import click
import pytest
from terminals import COLOURS, Done, Terminals
from test_command import DEMO, run
from test_options import ALL, OTHERS, REFUSED, options_of, status_of, words_of

from kprobes.cli import main

SIZES = {"pipe": None, "small": (24, 80), "big": (50, 200)}
#: rows that are told the same words as --arch
ALIKE = ("--base", "--symbols")
#: which speak of time: their digits differ
TIMED = ("stat", "top")
FIB = ("-e", "p fib n=$arg1", "--call", "fib(3)")


def everywhere(terminals: Terminals, folder: Path, status: int, *words: str) -> dict[str, Done]:
    """The command in all of them: the same status, no traceback; in the big one no colour is wanted."""
    runs = {name: terminals.run(*words, size=size, folder=folder, **({"NO_COLOR": "1"} if name == "big" else {}))
            for name, size in SIZES.items()}
    for name, done in runs.items():
        assert done.status == status, (name, done.text)
        assert "Traceback" not in done.text and "defect" not in done.text
    assert "\x1b" not in runs["pipe"].text and not COLOURS.search(runs["big"].text)
    return runs


def same(runs: dict[str, Done], digits: bool = True) -> None:
    """They say the same: a table may be folded, so the characters are counted."""
    seen = [Counter(re.sub(r"\s" if digits else r"[\s\d]", "", done.visible)) for done in runs.values()]
    assert all(one == seen[0] for one in seen), [done.visible for done in runs.values()]


@pytest.mark.parametrize(("command", "option"), [(command, option) for command, option in ALL if option not in ALIKE])
def test_an_option_everywhere(command: str, option: str, terminals: Terminals, tmp_path: Path) -> None:
    words, _ = words_of(command, option, tmp_path)
    runs = everywhere(terminals, tmp_path, status_of(command, option), *words)
    if option != "--timeout":  # more or less is counted until then
        same(runs, digits=command not in TIMED)


@pytest.mark.parametrize(("command", "option"), [(command, option) for command in OTHERS for option in OTHERS[command]])
def test_of_those_that_run_nothing(command: str, option: str, terminals: Terminals, tmp_path: Path) -> None:
    run("record", DEMO, "p:f fib n=$arg1:u32", "--call", "fib(3)", "-o", str(tmp_path / "x.arrow"))
    file = {"report": ["x.arrow"], "convert": ["x.arrow"], "archs": []}.get(command, [DEMO])
    same(everywhere(terminals, tmp_path, 2 if option in REFUSED else 0, command, *file, *OTHERS[command][option]))


#: option of `campaign` -> words behind its image
CAMPAIGNS: dict[str, tuple[str, ...]] = {
    "--before": ("--before", "table_init()"), "--inputs": ("--inputs", "in/0"), "--event": ("-e", FIB[1]),
    "--coverage": ("--coverage",), "--dataset": ("-e", "p parse_settings text=+0($arg1):string", "--dataset", "out"),
    "--arch": ("--arch", "x86_64"), "--jobs": ("--jobs", "2"), "--dask": ("--dask", "no://where"),
    "--timeout": ("--timeout", "30"), "--max-insns": ("--max-insns", "20000"), "--output": ("-o", "journal"),
    "--json": ("--json",), "--call": (), "--files": (), "--memory": ("--memory", "16000")}


def test_every_option_of_campaigns_is_tried() -> None:
    assert CAMPAIGNS.keys() == {*options_of("campaign")} - {"--help"}


@pytest.mark.parametrize("option", CAMPAIGNS)
def test_campaigns_everywhere(option: str, terminals: Terminals, tmp_path: Path) -> None:
    call = ("campaign", DEMO, "--call", "parse_settings(@input)", "--inputs", "in")
    words = ("campaign", "check", "--files", DEMO) if option == "--files" else (*call, *CAMPAIGNS[option])
    runs = {}
    for name, size in SIZES.items():
        (tmp_path / name / "in").mkdir(parents=True)
        for n in range(3):
            (tmp_path / name / "in" / f"{n}").write_bytes(b"width=%d" % n)
        done = runs[name] = terminals.run(*words, *(() if option == "--jobs" else ("-j", "1")), size=size,
                                          folder=tmp_path / name, **({"NO_COLOR": "1"} if name == "big" else {}))
        assert done.status == (2 if option == "--dask" else 0), (name, done.text)
        assert "Traceback" not in done.text and "defect" not in done.text
    assert "\x1b" not in runs["pipe"].text and not COLOURS.search(runs["big"].text)
    same(runs)


@pytest.mark.parametrize("words", [("--version",), ("--help",), *((name, "--help") for name in main.commands),
                                   ("no_such",), ("trace",), ("trace", "/none"), ("archs",)], ids=" ".join)
def test_help_and_what_is_wrong(words: tuple[str, ...], terminals: Terminals, tmp_path: Path) -> None:
    wrong = words in (("no_such",), ("trace",), ("trace", "/none"))
    same(everywhere(terminals, tmp_path, 2 if wrong else 0, *words))


@pytest.fixture
def endless(tmp_path: Path) -> tuple[str, ...]:
    (image := tmp_path / "endless.bin").write_bytes(bytes.fromhex("1f2003d5 ffffff17 c0035fd6"))  # nop; b .-4; ret
    (names := tmp_path / "endless.txt").write_text("0000000000010000 T turn\n0000000000010008 T never\n")
    return str(image), "--arch", "arm64", "--base", "0x10000", "--symbols", str(names), "--run"


@pytest.mark.parametrize("command", ["record", "stat", "hist", "graph", "cover"])
@pytest.mark.parametrize("size", ["small", "big"])
def test_progress_is_taken_away(command: str, size: str, terminals: Terminals, endless: tuple[str, ...],
                                tmp_path: Path) -> None:
    more = {"graph": ["never"], "cover": [], "hist": ["p:f turn", "common_pid"]}.get(command, ["p:f turn"])
    more += ["-o", "x.arrow"] if command == "record" else []
    words = [command, endless[0], *more, *endless[1:], "--timeout", "1.8"]
    shown = terminals.run(*words, size=SIZES[size], folder=tmp_path)
    assert shown.status == 1 and "running endless.bin" in shown.text and "running" not in shown.visible
    assert "the time is up" in shown.visible


def test_top_stays_in_its_place(terminals: Terminals, endless: tuple[str, ...]) -> None:
    """Again and again, from the top of the screen, until control-C; through a pipe one table behind the other."""
    words = ("top", *endless, "p:f turn", "--interval", "0.05")
    shown = terminals.run(*words, size=SIZES["small"], interrupt="per second")
    frames = shown.text.split("\x1b[2J")
    assert shown.status == 130 and "interrupted" in shown.visible and len(frames) > 3
    whole = [*frames[1:-2], frames[-1]]  # control-C may come in the middle of a table; the table of the end follows it
    assert all(frame.startswith("\x1b[1;1H") and "turn" in frame for frame in whole)
    piped = terminals.run(*words, "--timeout", "1.5")
    assert piped.status == 1 and "\x1b" not in piped.text and piped.text.count("per second") > 2


def test_tables_of_top_come_also_where_no_probe_is_hit(terminals: Terminals, tmp_path: Path) -> None:
    """One hit, then a loop without probes."""
    (tmp_path / "once.bin").write_bytes(bytes.fromhex("1f2003d5 00000014"))
    words = ("top", "once.bin", "--arch", "arm64", "--base", "0x10000", "p:once 0x10000", "--call", "0x10000()", "--timeout", "1.5",
             "--interval", "0.2")
    seconds = [json.loads(line)["seconds"] for line in terminals.run(*words, "--json", folder=tmp_path).text.splitlines() if line[0] == "{"]
    assert len(seconds) > 4 and max(b - a for a, b in itertools.pairwise(seconds)) < 1
    shown = terminals.run(*words, size=SIZES["small"], folder=tmp_path)
    assert shown.status == 1 and shown.text.count("per second") > 4


def test_top_fits_the_screen(terminals: Terminals, tmp_path: Path) -> None:
    """More functions than lines: the first ones, so that nothing rolls away."""
    names = [f"{0x10000 + 4 * n:016x} T f{n:02}" for n in range(60)]
    (tmp_path / "many.bin").write_bytes(bytes.fromhex("1f2003d5") * 60 + bytes.fromhex("c0035fd6"))
    (tmp_path / "many.txt").write_text("\n".join(names) + "\n")
    words = ("top", "many.bin", "--arch", "arm64", "--base", "0x10000", "--symbols", "many.txt", "-i", "f*", "--call",
             "f00()", "-n", "50")
    found = {size: len(re.findall(r"(?m)^f\d\d +\d", terminals.run(*words, size=SIZES[size], folder=tmp_path).visible))
             for size in SIZES}
    assert found["pipe"] == 50 and 15 < found["small"] <= 22 and 40 < found["big"] <= 48


@pytest.mark.parametrize("command", [*main.commands])
def test_completion_knows_every_option(command: str, terminals: Terminals) -> None:
    done = terminals.run(COMP_WORDS=f"kprobes {command} --", COMP_CWORD="2", _KPROBES_COMPLETE="bash_complete")
    hidden = {name for p in main.commands[command].params if isinstance(p, click.Option) and p.hidden for name in p.opts}
    assert {name for name in options_of(command) if name.startswith("--")} - hidden <= {line.partition(",")[2] for line in done.text.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, terminals: Terminals, tmp_path: Path) -> None:
    """The shell itself reads them, where it is."""
    done = terminals.run(_KPROBES_COMPLETE=f"{shell}_source")
    assert done.status == 0 and "_KPROBES_COMPLETE" in done.text and "Traceback" not in done.text
    (tmp_path / "script").write_text(done.text)
    if shutil.which(shell):
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, timeout=30)
