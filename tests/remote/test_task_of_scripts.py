"""pid, tid and comm of scripts in a process under QEMU: what the process itself says."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from qemu import qemu_for

from kprobes import Kprobes, QemuMachine

ARCHES = ("aarch64", "mips", "riscv64", "x86_64")


FILES = Path(__file__).resolve().parent / "tasks"  #: built by threads/build.py


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The program for an architecture, with a name of more than 15 bytes."""
    folder = tmp_path_factory.mktemp("tasks")

    def of(arch: str) -> Path:
        qemu_for(f"{arch}-O1")
        out = folder / f"a-long-name-of-{arch}"
        if not out.exists():
            shutil.copy(FILES / f"{arch.replace('aarch64', 'arm64')}.elf", out)
            out.chmod(0o755)
        return out

    return of


SCRIPT = "kprobe:seen { @[(int32)arg0, pid, tid, comm] = count(); }"


@pytest.mark.parametrize("engine", ["interpreter", None])
@pytest.mark.parametrize("arch", ARCHES)
def test_a_process_is_itself(arch: str, engine: str | None, built: Any, tmp_path: Path) -> None:
    path = built(arch)
    for arguments in ([], ["threads"]):
        with (tmp_path / "out").open("w+") as out, QemuMachine.user([path, *arguments], stdout=out) as m:
            with Kprobes(m) as k, k.script(SCRIPT, engine=engine) as s:
                m.run()
            lines = [tuple(map(int, line.split())) for line in (tmp_path / "out").read_text().splitlines()]
        name = path.name[:15].encode()
        (pid, tid), *others = lines
        wanted = {(0, pid, tid, name): 1}
        for _, other in others:
            wanted |= {(n, pid, tid if n == 4 else other, name): 1 for n in (2, 3, 4)}
        assert dict(s.maps[""]) == wanted


@pytest.mark.parametrize("engine", ["interpreter", None])
def test_a_call_is_made_by_the_process_itself(engine: str | None, built: Any) -> None:
    with QemuMachine.user([built("x86_64")], stdout=subprocess.DEVNULL) as m:
        m.run(until="main")
        pid, tid = m.call("told", 0), m.call("told", 1)
        with Kprobes(m) as k, k.script(SCRIPT, engine=engine) as s:
            m.call("seen", 7)
        assert dict(s.maps[""]) == {(7, pid, tid, b"a-long-name-of-"): 1}
