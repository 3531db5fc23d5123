"""`kprobes check`, `symbols` and `list` of a file as a process under QEMU: what they say is what comes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from qemu import RUN_HERE, start

from kprobes import Kprobes
from kprobes.cli import main

EVENTS = ("p:e test_crc n=$arg1:u32", "r:r test_crc $retval", "p:c test_crc task=$comm")


def run(*words: str) -> Any:
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize("stem", RUN_HERE)
def test_what_makes_records_of_events(stem: str, programs: Callable[[str], Path]) -> None:
    """The same words as in Python: also of architectures that only QEMU has, which say so without it."""
    with start(stem, programs) as m, Kprobes(m) as k:
        reasons = []
        for text in EVENTS:
            with k.event(text) as event:
                reasons.append(event.why_python)
        verdict, arch = k.check("test_crc"), m.arch.name
    words = [word for text in EVENTS for word in ("-e", text)]
    result = run("check", str(programs(stem)), "--qemu", "--arch", arch, *words)
    assert result.exit_code == 0, result.output
    said = [line.partition(": ")[2] for line in result.stdout.splitlines()]
    expected = [why or verdict.why_not_optimized for why in reasons]
    assert said == [f"Python: {why}" if why else "a program" for why in expected] and all(reasons[1:])
    first = run("check", str(programs(stem)), "--qemu", "--arch", arch, "test_crc+0").stdout.splitlines()
    assert first[0].lstrip(".") == "test_crc:" and f"{verdict.addr:#x}" in first[-1]
    listed = run("symbols", str(programs(stem)), "--qemu", "--arch", arch, "test_crc")
    assert "test_crc" in listed.stdout and listed.stdout == run("list", str(programs(stem)), "--qemu", "--arch", arch,
                                                                "test_crc").stdout


@pytest.mark.parametrize("command", ["check", "symbols", "list", "trace"])
def test_what_only_qemu_has_says_so(command: str, programs: Callable[[str], Path], tmp_path: Path) -> None:
    more = ("-e", "p fib", "--run") if command == "trace" else ()
    result = run(command, str(programs("loongarch64-O2")), *more)
    assert result.exit_code == 2 and "--qemu" in result.stderr and "Traceback" not in result.output
    result = run(command, str(programs("x86_64-O2")), "--sysroot", str(tmp_path), *more)
    assert result.exit_code == 2 and "give --qemu as well" in result.stderr
