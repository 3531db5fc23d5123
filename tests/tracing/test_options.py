"""Every option of every command, tried with what it does asked for; test_terminal_options.py tries them in terminals.

An option without a row here fails test_every_option_has_a_row().
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result
from test_command import DEMO, run

from kprobes import Trace
from kprobes.cli import main

pytestmark = pytest.mark.quick
GUESTS = ("trace", "record", "stat", "hist", "top", "graph", "cover")
EVENTS = ("trace", "record", "stat", "top")
EVENT = "p:f fib n=$arg1:u32"
DEMO_GUESTS = "demo"  # --json: tests/tracing/test_json.py
CAMPAIGN = "campaign"  #: tests/campaign/test_campaign.py tries its options
FUZZ = "fuzz"  #: tests/fuzz/test_replay.py and test_server.py try its options
RUN = "run"  #: tests/ebpf/test_run_command.py tries its options
SCRIPT, HEAP = "script", "heap"  #: tests/script/test_script_command.py and tests/heap/test_heap.py do
NOTES = str(Path(__file__).resolve().parents[2] / "examples" / "notes.arm64")
QEMU = os.environ.get("KPROBES_QEMU_DIR")

#: mov w0, #6; ldr w1, [x8]; ret, behind movz x8, #0x4000, lsl 16
RAW = bytes.fromhex("0800a8d2 c0008052 010140b9 c0035fd6 00000000")
MANGLED, READABLE = "_ZN5Table6insertEPKci", "Table::insert(char const*, int)"
Check = Callable[[Result, Path], bool]
#: six: mov eax, 6; ret. start: mov edi, 3; call six; xor edi, edi; mov eax, 231 (exit_group); syscall
PROGRAM, SIX = bytes.fromhex("b806000000c3 bf03000000 e8f0ffffff 31ff b8e7000000 0f05"), 6


def linux_program(code: bytes, base: int, start: int, interpreter: bytes = b"") -> bytes:
    """A program for Linux on x86-64, which another one starts where that is given. The code is at base + 0x100."""
    loads = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, 0x1000, 0x1000, 0x1000)  # PT_LOAD, R+X
    if interpreter:
        loads += struct.pack("<IIQQQQQQ", 3, 4, 0xE0, base + 0xE0, base + 0xE0, len(interpreter), len(interpreter), 1)
    head = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, base + 0x100 + start, 64, 0, 0, 64, 56, len(loads) // 56, 64, 0, 0)
    return ((head + loads).ljust(0xE0, b"\0") + interpreter).ljust(0x100, b"\0") + code.ljust(0xF00, b"\0")


def on_linux(command: str, folder: Path, *more: str) -> tuple[list[str], Check]:
    """A program that QEMU runs to its end, with what starts it in a folder for --sysroot."""
    interpreter, loader = (b"/lib/loader\0", folder / "lib" / "loader") if more else (b"", folder / "unused")
    loader.parent.mkdir(exist_ok=True)
    loader.write_bytes(linux_program(bytes.fromhex("b806014000 ffe0"), 0x700000, 0))  # mov eax, 0x400106; jmp rax
    (program := folder / f"program{len(more)}").write_bytes(linux_program(PROGRAM, 0x400000, SIX, interpreter))
    for file in (loader, program):
        file.chmod(0o755)
    (names := folder / "program.txt").write_text("0000000000400100 T six\n")
    words = [command, str(program), *(["six"] if command == "graph" else what(command, "p:f six n=$arg1"))]
    saved = ["-o", str(folder / "x.arrow")] if command == "record" else []
    words += ["--symbols", str(names), "--qemu", *more, *saved]
    shown = {"cover": "which blocks", "graph": "six()", "record": "1 records", "hist": "Hits: 1"}.get(command, "f")
    return words, said(shown if QEMU else "qemu")



def what(command: str, event: str = EVENT) -> list[str]:
    """What a command is told beside the file and how it is run."""
    return {"graph": ["fib"], "cover": [], "hist": [event, "n"]}.get(command, [event])


def said(text: str) -> Check:
    return lambda done, folder: text in done.output


#: a Cortex-M image with its vector table at 0x20: stack, reset; six: movs r0, #6; bx lr
VECTORS = bytes(0x20) + struct.pack("<2I", 0x20001000, 0x10029) + bytes.fromhex("0620 7047")


BOARD = """arch = "arm64"\nbase = 0x10000\nsymbols = "names.txt"\n[[device]]\nkind = "unknown"\nstart = 0x40000000
name = "PORT"\n"""


def on_board(command: str, folder: Path, saved: list[str]) -> dict[str, tuple[list[str], Check]]:
    """Rows of the options that say what is around a CPU. folder: has raw.bin and names.txt."""
    for name, text in (("board.toml", BOARD), ("m.txt", "0000000000010028 T six\n")):
        (folder / name).write_text(text)
    (folder / "m.bin").write_bytes(VECTORS)
    wanted = ["six"] if command == "graph" else what(command, "p:f six n=$arg1")
    plain = [command, str(folder / "raw.bin"), *wanted, *saved]
    image = [*plain, "--arch", "arm64", "--base", "0x10000", "--symbols", str(folder / "names.txt")]
    call = ["--call", "six()"]
    answer = said("six() = 0x6")
    hit = said({"cover": "max_insns", "graph": "six()", "record": "max_insns", "hist": "Hits: 1"}.get(command, "f"))
    port = [*image, "--mmio", "0x40000000:0x1000"]
    return {
        "--entry": ([*port, "--entry", "0x10000", "--run", "--max-insns", "2"], hit),
        "--reg": ([*port, "--reg", "x0=7", "--entry", "0x10000", "--run", "--max-insns", "2"],
                  said("n=0x7") if command == "trace" else hit),
        "--vectors": ([command, str(folder / "m.bin"), *wanted, *saved, "--arch", "cortexm", "--base", "0x10000",
                       "--symbols", str(folder / "m.txt"), "--ram", "0x20000000:0x1000", "--vectors", "0x10020",
                       "--run", "--max-insns", "1"], hit),
        "--ram": ([*image, *call, "--ram", "0x40000000:0x1000"], answer),
        "--rom": ([*image, *call, "--rom", f"{folder / 'names.txt'}@0x40000000"], answer),
        "--device": ([*image, *call, "--device", "power@0x40000000,name=SWITCH"], said("SWITCH")),
        "--svd": ([*image, *call, "--svd", str(DATA / "chip.svd")], said("PORT.DATA")),
        "--board": ([*plain, *call, "--board", str(folder / "board.toml")], said("PORT")),
        "--input": ([*image, *call, "--device", "pl011@0x40000000,name=UART", "--input", str(folder / "m.txt")],
                    said("UART")),
        "--task": ([*port, *call, "--task", "six:4"], answer),
    }


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
    # without -v the first five are told; bad is an undefined instruction
    (twice := folder / "twice.txt").write_text("0000000000010000 T six\n0000000000010010 T bad\n")
    (mangled := folder / "mangled.txt").write_text(f"0000000000010000 0000000000000010 T {MANGLED}\n")
    cxx = [command, str(raw), *([MANGLED] if command == "graph" else what(command, f"p:f {MANGLED} n=$arg1"))]
    cxx += ["--arch", "arm64", "--base", "0x10000", "--symbols", str(mangled), "--mmio", "0x40000000:0x1000"]
    found = [command, str(raw), *(["fn_00010000"] if command == "graph" else what(command, "p:f fn_00010000 n=$arg1"))]
    found += ["--arch", "arm64", "--base", "0x10000", "--mmio", "0x40000000:0x1000", "--discover", *saved]
    rows: dict[str, tuple[list[str], Check]] = {
        "--demangle": ([*cxx, "--call", f"{MANGLED}()", "-C"], said(READABLE)),
        "--arch": raws, "--base": raws, "--symbols": raws,
        "--debug-file": ([*guest, *call, "--debug-file", DEMO, *saved], said("fib(3) = ")),
        "--debuginfod": ([*guest, *call, "--debuginfod", *saved], said("DEBUGINFOD_URLS")),
        "--mmio": (raws[0], lambda done, folder: "0x40000000:0x1000" in done.stderr and "reads" in done.stderr),
        "--call": ([*guest, *call, *saved], said("fib(3) = ")),
        "--run": ([*guest, "--run", *saved], lambda done, folder: bool(done.output)),
        "--qemu": on_linux(command, folder), "--sysroot": on_linux(command, folder, "--sysroot", str(folder)),
        "--discover": ([*found, "--call", "fn_00010000()"], said("fn_00010000() = 0x6")),
        "--preload": ([*image, "--preload", NOTES, "--call", "six()"], said("six() = 0x6")),
        "--syscalls": ([*guest, *call, "--syscalls", *saved], said("fib(3) = ")),
        "--module": ([*guest, *call, "--module", "demo*"], said("fib")),
        "--sources": ([*guest, *call, "--sources", str(folder)], said("fib")),
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
        "--follow": ([*guest, *call, "--follow"], said("n=3")),
        "--verbose": ([command, str(raw), *(["six"] if command == "graph" else ["-i", "*"]), "--arch", "arm64",
                       "--base", "0x10000", "--symbols", str(twice), *saved, "-v", "--mmio", "0x40000000:0x1000",
                       "--call", "six()"], said("functions left out" if command == "graph" else "left out: bad: ")),
        "--sort": ([command, DEMO, "-i", "*", "--run", "--sort", "name"],
                   lambda done, folder: done.stdout.index("crc32") < done.stdout.index("fib")),
        "--records": ([*guest, *call, "--records", "1", *saved], lambda done, folder: len(Trace.load(saved[1])) == 1),
        "--interval": ([*guest, *call, "--interval", "60"], said("fib")),
        "--rows": ([command, DEMO, "-i", "*", "--run", "-n", "1"],
                   lambda done, folder: len(done.stdout.splitlines()) % 2 == 0),
        "--depth": ([*guest, *call, "--depth", "1"], lambda done, folder: done.stdout.count("fib()") == 2),
        "--args": ([*guest, *call, "--args", "1"], said("fib(0x3)")),
        "--instructions": ([*guest, *call, "--instructions"], said("instructions |")),
        "--format": ([*guest, *call, "--format", "folded"], said("fib;fib")),
        "--output": ([*guest, *call, "-o", str(out)], lambda done, folder: out.stat().st_size > 0),
    }
    rows |= on_board(command, folder, saved)
    if command == "record":
        stacks = folder / "x.folded"
        rows["--demangle"] = ([*cxx, "--call", f"{MANGLED}()", "--stack", "-o", str(stacks), "--no-demangle"],
                              lambda done, folder: MANGLED in stacks.read_text())
    if command == "graph":
        rows["--include"] = ([command, DEMO, "parse_settings", "--run", "-i", "crc*"],
                             lambda done, folder: "crc32(" in done.stdout and "table_insert(" not in done.stdout)
    return rows[option]


def options_of(command: str) -> list[str]:
    """The long names of a command's options."""
    found = main.commands[command]
    return [max(p.opts, key=len) for p in found.params if isinstance(p, click.Option)]


def status_of(command: str, option: str) -> int:
    """The exit status of that row."""
    if option in ("--qemu", "--sysroot"):
        return 0 if QEMU and command != "cover" else 2
    if option == "--debuginfod":
        return 2
    return 1 if option in ("--timeout", "--max-insns", "--entry", "--vectors", "--reg") else 0


@pytest.fixture(autouse=True)
def no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)


ALL = [(command, option) for command in GUESTS for option in options_of(command)]


@pytest.mark.parametrize(("command", "option"), ALL)
def test_an_option(command: str, option: str, tmp_path: Path) -> None:
    words, shows = words_of(command, option, tmp_path)
    done = run(*words, status=status_of(command, option))
    assert shows(done, tmp_path), done.output


def test_a_sysroot_is_needed(tmp_path: Path) -> None:
    """Without it what starts the program is not found; and it is QEMU's."""
    words, _ = on_linux("stat", tmp_path, "--sysroot", str(tmp_path))
    assert not QEMU or "sysroot" in run(*[word for word in words if word not in ("--sysroot", str(tmp_path))],
                                        status=2).output
    assert "--qemu as well" in run(*[word for word in words if word != "--qemu"], "--call", "six()", status=2).output
    assert not QEMU or "chmod +x" in run("stat", DEMO, EVENT, "--qemu", status=2).output


#: what these say where they are refused
REFUSED = {"--sdt": "no static tracepoint", "--vectors": "no vector table", "--debuginfod": "DEBUGINFOD_URLS",
           "--open": "--open needs a file"}
DATA = Path(__file__).resolve().parent.parent / "data"
#: options of boards, on the demo; tests/board/test_board.py tries them on a raw image
AROUND = {"--ram": ("--ram", "0x40000000:0x1000"), "--rom": ("--rom", f"{DEMO}@0x50000000"),
          "--mmio": ("--mmio", "0x40000000:0x1000"), "--device": ("--device", "pl011@0x40000000"),
          "--reg": ("--reg", "rax=5"), "--entry": ("--entry", "0x401000"), "--task": ("--task", "fib"), "--symbols": ("--symbols", DEMO),
          "--input": ("--device", "pl011@0x40000000", "--input", DEMO), "--svd": ("--svd", str(DATA / "chip.svd")),
          "--board": ("--board", str(DATA / "board.toml")), "--base": ("--base", "0x400000", "--arch", "x86_64", "--symbols", DEMO),
          "--vectors": ("--vectors", "0x401000"), "--discover": ("--discover",), "--debug-file": ("--debug-file", DEMO),
          "--debuginfod": ("--debuginfod",)}
OTHERS = {
    "archs": {"--json": ("--json",)}, "symbols": {"--json": ("--json",), "--arch": ("--arch", "x86_64"), "--format": ("--format", "ghidra"), **AROUND},
    "list": {"--json": ("--json",), "--arch": ("--arch", "x86_64"), "--sdt": ("--sdt",), "--demangle": ("-C",), **AROUND},
    "check": {"--json": ("fib", "--json"), "--arch": ("fib", "--arch", "x86_64"), "--event": ("-e", EVENT), **AROUND},
    "report": {"--demangle": ("-C",), "--by": ("--by", "function"), "--json": ("--json",),
               "--flame": ("--flame", "x.svg")},
    "convert": {"--format": ("-", "--format", "jsonl"), "--open": ("-", "--format", "html", "--open"),
                "--picture": ("-", "--format", "html", "--picture", "flame"),
                "--before": ("-", "--format", "html", "--before", "x.arrow"), "--json": ("x.csv", "--json"),
                "--demangle": ("-", "--format", "folded", "--no-demangle")},
}


@pytest.mark.parametrize(("command", "option"), [(command, option) for command in OTHERS for option in OTHERS[command]])
def test_an_option_of_those_that_run_nothing(command: str, option: str, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("record", DEMO, EVENT, "--call", "fib(3)", "-o", "x.arrow")
    file = {"report": ["x.arrow"], "convert": ["x.arrow"], "archs": []}.get(command, [DEMO])
    done = run(command, *file, *OTHERS[command][option], status=2 if option in REFUSED else 0)
    assert REFUSED[option] in done.output if option in REFUSED else done.stdout
    assert option != "--flame" or (tmp_path / "x.svg").exists()


def test_every_option_has_a_row() -> None:
    assert {*main.commands} == {*GUESTS, *OTHERS, CAMPAIGN, DEMO_GUESTS, FUZZ, SCRIPT, HEAP, RUN}
    for command, rows in OTHERS.items():
        # tests/remote/test_check_command.py tries how these look at processes under QEMU
        assert {*options_of(command)} - {"--qemu", "--sysroot"} == {*rows}, command
