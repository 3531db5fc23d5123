"""pid, tid and comm of scripts in a process under QEMU: what the process itself says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from qemu import qemu_for

from kprobes import Kprobes, QemuMachine

pytest.importorskip("ziglang")
SOURCE = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/syscall.h>
__attribute__((noinline)) long told(long what) { return what ? syscall(SYS_gettid) : getpid(); }
__attribute__((noinline)) void seen(long n) { __asm__ volatile("" :: "r"(n) : "memory"); }
static void *other(void *n) {
    printf("%d %ld\\n", getpid(), (long)syscall(SYS_gettid));
    fflush(stdout);
    seen(2);
    seen(3);
    return 0;
}
int main(int argc, char **argv) {
    pthread_t thread;
    printf("%d %ld\\n", getpid(), (long)syscall(SYS_gettid));
    fflush(stdout);
    seen(0);
    if (argc == 1) return 0;
    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    seen(4);
    return 0;
}
"""
ARCHES = ("aarch64", "mips", "riscv64", "x86_64")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The program for an architecture, with a name of more than 15 bytes."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "t.c").write_text(SOURCE)

    def of(arch: str) -> Path:
        qemu_for(f"{arch}-O1")
        out = folder / f"a-long-name-of-{arch}"
        if not out.exists():
            target = f"{arch}-linux-musl{'eabi' if arch == 'mips' else ''}"
            subprocess.run([sys.executable, "-m", "ziglang", "cc", "-target", target, "-static", "-O1", "-o", out,
                            folder / "t.c"], check=True)
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
