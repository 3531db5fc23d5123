"""Native processes behind gdbserver, where that is on PATH."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from qemu import compiled_functions

from kprobes import GuestTimeout, Kprobe, Kprobes, Kretprobe, RemoteMachine
from kprobes.testing import check_machine

Programs = Callable[[str], Path]
THREADS, ROUNDS = 3, 50
SOURCE = f"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) long twice(long n) {{ return 2 * n; }}
__attribute__((noinline)) long work(long n) {{ long s = 0; for (long i = 0; i < n; i++) s += twice(i); return s; }}
__attribute__((noinline)) void spin(void) {{ for (;;) __asm__ volatile(""); }}
static volatile long seen;
static void on_signal(int number) {{ __atomic_fetch_add(&seen, 1, 5); }}
static void *run(void *n) {{ return (void *)work((long)n); }}
int main(int argc, char **argv)
{{
    pthread_t threads[{THREADS}];
    long sum = work({ROUNDS});
    if (argc > 2) {{ int ends[2]; char c; return pipe(ends) || read(ends[0], &c, 1) != 1 ? 9 : 8; }}
    if (argc > 1 && *argv[1] == 'n') return nanosleep(&(struct timespec){{1, 500000000}}, 0) ? 9 : 8;
    if (argc > 1 && *argv[1] == 't') {{
        struct itimerval often = {{{{0, 1000}}, {{0, 1000}}}};
        signal(SIGALRM, on_signal), signal(SIGUSR1, on_signal);
        setitimer(ITIMER_REAL, &often, 0);
    }}
    for (int i = 0; i < {THREADS}; i++) pthread_create(&threads[i], 0, run, (void *){ROUNDS}L);
    for (int i = 0; i < {THREADS} * 5 && argc > 1 && *argv[1] == 't'; i++) pthread_kill(threads[i % {THREADS}], SIGUSR1);
    for (int i = 0; i < {THREADS}; i++) {{ void *result; pthread_join(threads[i], &result); sum += (long)result; }}
    printf("%ld\\n", sum);
    if (argc > 1 && *argv[1] == 't') return seen > 0 ? 7 : 6;
    if (argc > 1) spin();
    return 7;
}}
"""


@pytest.fixture(scope="module", autouse=True)
def server() -> str:
    found = shutil.which("gdbserver")
    if found is None or platform.machine() != "x86_64":
        pytest.skip("no gdbserver for x86-64 here: the package gdbserver")
    return found


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Linked dynamically, with threads."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("gdbserver")
    (folder / "program.c").write_text(SOURCE)
    subprocess.run([compiler, "-O1", "-o", folder / "program", folder / "program.c", "-lpthread"], check=True)
    return folder / "program"


@contextmanager
def served(server: str, *argv: object) -> Iterator[tuple[RemoteMachine, subprocess.Popen[bytes]]]:
    """A program that stands at its first instruction."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([server, "--once", f"localhost:{port}", *map(str, argv)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        with RemoteMachine.connect(f"localhost:{port}", image=str(argv[0]), timeout=20) as m:
            program = int(m._threads.name[1:].partition(".")[0], 16)
            yield m, process
            with suppress(ProcessLookupError):
                os.kill(program, signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()


def test_the_contract(server: str, programs: Programs) -> None:
    """As of every machine, on a static program."""
    with ExitStack() as stack:
        assert check_machine(lambda: stack.enter_context(served(server, programs("x86_64-O2")))[0]) == []


def test_compiled_programs_run_as_ever(server: str, programs: Programs, thorough: bool) -> None:
    with served(server, programs("x86_64-O2")) as (m, _), Kprobes(m) as k:
        compiled_functions(m, k, thorough)


def test_threads(server: str, program: Path) -> None:
    """Every thread's hits and returns, none missed; its libraries; its exit status."""
    with served(server, program) as (m, process), Kprobes(m) as k:
        m.run(until="main", timeout=20)
        assert any(name.startswith("libc") for name in m.load_libraries())
        entered: list[int] = []
        returned: list[int] = []
        probe = Kprobe(symbol_name="twice", pre_handler=lambda p, regs: entered.append(regs.arg(0)))
        after = Kprobe(symbol_name="work", post_handler=lambda p, regs, flags: None)
        back = Kretprobe(symbol_name="twice", handler=lambda ri, regs: returned.append(regs.return_value))
        k.register_kprobes([probe, after])
        k.register(back)
        m.run(timeout=60)
        hits = (THREADS + 1) * ROUNDS
        assert m.exit_status == 7 and (probe.nhit, after.nhit, back.nreturned) == (hits, THREADS + 1, hits)
        assert sorted(entered) == sorted(list(range(ROUNDS)) * (THREADS + 1))
        assert sorted(returned) == [2 * n for n in sorted(entered)] and probe.nmissed == back.nmissed == 0
        assert process.stdout is not None
        assert int(process.stdout.readline()) == (THREADS + 1) * sum(returned) // (THREADS + 1)


def test_signals_among_threads(server: str, program: Path) -> None:
    """Timers and pthread_kill: their handlers run, and no hit is lost or seen twice."""
    with served(server, program, "timer") as (m, _), Kprobes(m) as k:
        entered: list[int] = []
        k.register(Kprobe(symbol_name="twice", pre_handler=lambda p, regs: entered.append(regs.arg(0))))
        m.run(timeout=60)
        assert m.exit_status == 7 and sorted(entered) == sorted(list(range(ROUNDS)) * (THREADS + 1))


def test_it_is_let_go(server: str, program: Path) -> None:
    """When the machine is closed the process runs on, without probes."""
    with served(server, program) as (m, process):
        m.run(until="main", timeout=20)
        k = Kprobes(m)
        probe = Kprobe(symbol_name="twice")
        k.register(probe)
        assert m.call("twice", 4) == 8
        m.close()
        assert process.stdout is not None
        assert int(process.stdout.readline()) == (THREADS + 1) * ROUNDS * (ROUNDS - 1)
        assert probe.nhit == 1


def test_a_running_process_is_stopped(server: str, program: Path) -> None:
    with served(server, program, "spin") as (m, _):
        for _ in range(2):
            with pytest.raises(GuestTimeout):
                m.run(timeout=1)
        assert m.symbols.describe(m.regs.pc).startswith("spin")


def test_calls_while_a_system_call_waits(server: str, program: Path) -> None:
    """They go where they are to go, and the system call is begun again afterwards."""
    with served(server, program, "nap") as (m, _), Kprobes(m) as k:
        m.run(until="main", timeout=20)
        with suppress(GuestTimeout):
            m.run(timeout=0.4)
        where = m.regs.pc
        assert not m.symbols.describe(where).startswith("main")
        k.register(probe := Kprobe(symbol_name="twice"))
        assert [m.call("twice", n, timeout=20) for n in range(5)] == [0, 2, 4, 6, 8] and m.regs.pc == where
        m.run(timeout=20)
        assert m.exit_status == 8 and probe.nhit == 5


def test_a_thread_that_waits_in_a_system_call_is_sent_elsewhere(server: str, program: Path) -> None:
    with served(server, program, "wait", "wait") as (m, _):
        m.run(until="main", timeout=20)
        with suppress(GuestTimeout):
            m.run(timeout=0.5)
        m.regs.pc = m.symbols["spin"].address
        with pytest.raises(GuestTimeout):
            m.run(timeout=0.5)
        assert m.symbols.describe(m.regs.live_pc()).startswith("spin")
