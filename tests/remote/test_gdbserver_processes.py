"""What becomes of processes behind gdbserver: they are stopped, let go, and fork, as if no probe had ever been there."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_gdbserver import served, server

from kprobes import GuestTimeout, Kprobe, Kprobes, Kretprobe, RemoteError, RemoteMachine
from kprobes.machine.remote import interrupts, threadnames

__all__ = ["server"]  # a fixture: it skips where there is no gdbserver
ROUNDS = 5
SOURCE = f"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static volatile int over, calls;
__attribute__((noinline)) int inner(int n) {{ __asm__ volatile("nop"); return 3 * n; }}
__attribute__((noinline)) int outer(int n) {{ int r = inner(n); __asm__ volatile("" : "+r"(r)); return r + 1; }}
static void *beside(void *n) {{ while (!over) {{ calls += outer(1) == 4; usleep(100); }} return 0; }}
static void ends(int number) {{ over = 1; }}
static int child(int how, int n)
{{
    char *words[] = {{"true", 0}};
    int status;
    pid_t pid;
    if (how == 's' && posix_spawn(&pid, "/bin/true", 0, 0, words, environ)) return -1;
    if (how == 'v' && !(pid = vfork())) {{ if (inner(n) == 3 * n) execve("/bin/true", words, environ); _exit(9); }}
    if (how == 'f' && !(pid = fork())) _exit(outer(n) != 3 * n + 1);
    return waitpid(pid, &status, 0) == pid ? status : -1;
}}
__attribute__((noinline)) int family(int how)
{{
    for (int n = 0; n < {ROUNDS}; n++) if (child(how, n) || outer(n) != 3 * n + 1) return 0;
    return 1;
}}
int main(int argc, char **argv)
{{
    pthread_t thread;
    sigset_t all;
    int how = *argv[1], beyond = argc > 2;
    if (beyond) pthread_create(&thread, 0, beside, 0);
    if (how != 'l') {{
        int right = family(how);
        over = 1;
        if (beyond) pthread_join(thread, 0);
        printf("%d\\n", calls);
        return right ? 7 : 6;
    }}
    signal(SIGUSR1, ends);
    sigfillset(&all);
    sigdelset(&all, SIGUSR1);
    sigprocmask(SIG_BLOCK, &all, 0);
    puts("on");
    fflush(stdout);
    for (int n = 0; !over; n++) {{ if (outer(n & 7) != 3 * (n & 7) + 1) return 6; usleep(100); }}
    if (beyond) pthread_join(thread, 0);
    return 7;
}}
"""


@pytest.fixture(scope="module", params=["dynamic", "static"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("processes")
    (folder / "program.c").write_text(SOURCE)
    made = subprocess.run([compiler, "-O1", "-o", folder / "program", folder / "program.c", "-lpthread",
                           *(["-static"] if request.param == "static" else [])], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(made.stderr.decode())
    return folder / "program"


@contextmanager
def attached(server: str, *argv: object, leads: bool = False,
             timeout: float = 10) -> Iterator[tuple[RemoteMachine, subprocess.Popen[bytes]]]:
    """A process that runs when gdbserver attaches to it. leads: it leads a process group."""
    process = subprocess.Popen([*map(str, argv)], stdout=subprocess.PIPE, start_new_session=leads)
    assert process.stdout is not None and process.stdout.readline() == b"on\n"
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    stub = subprocess.Popen([server, "--once", "--attach", f"localhost:{port}", str(process.pid)],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with RemoteMachine.connect(f"localhost:{port}", image=str(argv[0]), timeout=timeout) as m:
            m.load_libraries()
            yield m, process
    finally:
        stub.kill()
        stub.wait()
        process.kill()
        process.communicate()


def runs_on(process: subprocess.Popen[bytes]) -> bool:
    """True where it goes through what was probed until it is told to end, and has computed what it should."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    process.send_signal(signal.SIGUSR1)
    try:
        return process.wait(10) == 7
    except subprocess.TimeoutExpired:
        print(Path(f"/proc/{process.pid}/status").read_text())
        return False


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("where", ["entry", "after", "return", "time"])
def test_calls_that_are_followed_return(server: str, program: Path, where: str, leads: bool) -> None:
    """To their callers, wherever the process is when the machine is closed: in slots as well."""
    with attached(server, program, "l", leads=leads) as (m, process):
        stop = m.stop if where != "time" else lambda: None
        k = Kprobes(m)
        for name in ("outer", "inner"):
            k.register(Kretprobe(symbol_name=name, handler=lambda ri, regs: stop() if where == "return" else None))
        k.register(seen := Kprobe(symbol_name="inner", pre_handler=lambda p, regs: stop() if where == "entry" else None,
                                  post_handler=lambda p, regs, flags: stop() if where == "after" else None))
        try:
            m.run(timeout=0.1 if where == "time" else 5)
        except GuestTimeout:
            assert where == "time"
        m.close()
        assert seen.nhit and runs_on(process)


@pytest.mark.parametrize("seconds", [0.05, 0.1])
def test_threads_are_let_go(server: str, program: Path, seconds: float) -> None:
    """Also those that stand in a slot."""
    with attached(server, program, "l", "beside") as (m, process):
        k = Kprobes(m)
        k.register(Kprobe(symbol_name="inner", post_handler=lambda p, regs, flags: None))
        for name in ("outer", "inner"):
            k.register(Kretprobe(symbol_name=name, handler=lambda ri, regs: None))
        with pytest.raises(GuestTimeout):
            m.run(timeout=seconds)
        m.close()
        assert runs_on(process)


def test_a_process_without_a_group_that_blocks_signals_is_stopped(server: str, program: Path) -> None:
    with attached(server, program, "l") as (m, process):
        for _ in range(3):
            with pytest.raises(GuestTimeout):
                m.run(timeout=0.1)
        m.close()
        assert runs_on(process)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGSTOP])
def test_an_interrupt_that_is_late_is_taken_back(server: str, program: Path, number: int,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when something else has stopped the process: in the next run, or when the process is let go."""
    if number == signal.SIGINT:
        monkeypatch.setattr(interrupts, "_is_here", lambda pid, auxiliary: False)
    with served(server, program, "f") as (m, _):
        m.run(until="main", timeout=10)
        halting, pid = m._control._interrupts, threadnames.pid_of(m._threads.name)
        halting._interrupt = halting._interrupt.__class__(lambda: os.kill(pid, number), halting._interrupt.signals)

        def cross() -> None:
            """The time is over, and a breakpoint has stopped the process."""
            halting._interrupt.send()
            halting.late += 1

        cross()
        m.run(until="family", timeout=10)
        assert not halting.late and not halting.signals
        cross()
        m.close()
        assert not halting.late
        status = Path(f"/proc/{pid}/status")
        assert not status.exists() or "T (stopped)" not in status.read_text()


def test_what_cannot_be_stopped_says_so(server: str, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another computer, where gdbserver's own interrupt does not reach it."""
    monkeypatch.setattr(interrupts, "_is_here", lambda pid, auxiliary: False)
    with (attached(server, program, "l", timeout=2) as (m, _),
          pytest.raises(RemoteError, match=r"does not stop.*setsid")):
        m.run(timeout=0.1)


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("how", ["fork", "vfork", "spawn"])
def test_children_run_on(server: str, program: Path, how: str, beside: bool) -> None:
    """Through text that is probed, and out of calls that are followed; nobody's hit is theirs, and none is missed."""
    with served(server, program, how, *["beside"] * beside) as (m, process), Kprobes(m) as k:
        m.run(until="main", timeout=10)
        m.load_libraries()
        execve = "execve" if "execve" in m.symbols else "libc.so.6:execve"
        returned: list[str] = []

        def back(ri: Any, regs: Any) -> None:
            returned.append(ri.rp.symbol_name)

        k.register(seen := Kprobe(symbol_name="inner", post_handler=lambda p, regs, flags: None))
        k.register(executed := Kprobe(symbol_name=execve, pre_handler=lambda p, regs: None))
        for name in ("outer", "family"):
            k.register(Kretprobe(symbol_name=name, handler=back))
        m.run(timeout=20)
        assert m.exit_status == 7 and process.stdout is not None
        calls = int(process.stdout.readline())
        assert seen.nhit == ROUNDS + calls == returned.count("outer") and executed.nhit == 0
        assert returned.count("family") == 1 and bool(calls) == beside


