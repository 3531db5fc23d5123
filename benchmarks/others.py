"""A hit in tools that others use, beside ours in the same run: `python benchmarks/others.py [--rounds 9]`.

What is compared is a call of a function of two instructions, with a handler that reads its two arguments, less the call
alone: ns of the processor's time, medians of rounds in which all have their turn.

    kprobes          optimized, in Unicorn; x86-64
    Qiling           hook_address() of a raw program, registers by ql.arch.regs; x86-64
    Frida, script    Interceptor.attach() with onEnter in JavaScript, in a native process
    Frida, CModule   the same with a function in C

Frida needs no emulator, and its process runs at the processor's speed: only the hits are alike. What is not installed
(pip install frida qiling; a C compiler) is said to be absent.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import yardsticks
from rows import two
from subjects import SUBJECTS
from worlds import BASE, Absent, K, Machine

from kprobes import Kprobe

HITS = 20_000
Round = Callable[[], float]  #: nanoseconds of one hit

NATIVE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

__attribute__((noinline)) long tiny(long n, long k)
{
    __asm__ volatile("");
    return n + k + 1;
}

/* For each line of standard input: the nanoseconds of a call, in so many. */
int main(int count, char **words)
{
    long calls = atol(words[1]), sum = 0;
    while (getchar() != EOF) {
        struct timespec before, after;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
        for (long n = 0; n < calls; n++)
            sum += tiny(n, 7);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
        printf("%.2f\n", ((after.tv_sec - before.tv_sec) * 1e9 + after.tv_nsec - before.tv_nsec) / calls);
        fflush(stdout);
    }
    return sum == 1;
}
"""
SCRIPT = """
Interceptor.attach(Module.getGlobalExportByName('tiny'), {
  onEnter(args) { const one = args[0], other = args[1]; }
});
"""
CMODULE = """
const hook = new CModule(`
  #include <gum/guminterceptor.h>
  extern volatile long seen;
  void onEnter(GumInvocationContext *ic) {
    seen += (long) gum_invocation_context_get_nth_argument(ic, 0)
          + (long) gum_invocation_context_get_nth_argument(ic, 1);
  }
`, { seen: Memory.alloc(8) });
Interceptor.attach(Module.getGlobalExportByName('tiny'), hook);
"""


def module(name: str) -> Any:
    """Import a peer. Raises Absent where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise Absent(f"not installed ({error})") from None


def per_hit(run: Callable[[int], object]) -> float:
    """Nanoseconds of an iteration, less what a call of `run` takes apart from its iterations."""
    before = time.thread_time_ns()
    run(1)
    middle = time.thread_time_ns()
    run(HITS + 1)
    return (time.thread_time_ns() - middle - (middle - before)) / HITS


@contextmanager
def ours() -> Iterator[Round]:
    """A kprobe that reads two arguments."""
    bare = Machine("x86_64")
    probed = Machine("x86_64")
    with bare.loop() as alone, probed.probed("o", Kprobe(symbol_name="tiny", pre_handler=two)) as hit:
        yield lambda: per_hit(hit) - per_hit(alone)


@contextmanager
def qiling() -> Iterator[Round]:
    """A hook on an address, in a raw program of Qiling's."""
    peer = module("qiling")
    const = module("qiling.const")
    made = SUBJECTS["x86_64"]

    def program() -> Any:
        ql = peer.Qiling(code=made.code, archtype=const.QL_ARCH.X8664, ostype=const.QL_OS.LINUX,
                         verbose=const.QL_VERBOSE.DISABLED)
        ql.mem.map(BASE, 0x1000)
        ql.mem.write(BASE, made.code)
        ql.mem.map(0x40000, 0x1000)
        return ql

    def seen(ql: Any) -> None:
        regs = ql.arch.regs
        _ = regs.rdi, regs.rsi

    def runner(ql: Any) -> Callable[[int], None]:
        end = BASE + 0xFF0
        loop = BASE + made.at["loop"]

        def run(count: int) -> None:
            ql.arch.regs.rsp = 0x40800
            ql.mem.write_ptr(0x40800, end)
            ql.arch.regs.rdi = count
            ql.arch.regs.rsi = K
            ql.emu_start(loop, end)
        return run

    alone, hooked = program(), program()
    hooked.hook_address(seen, BASE + made.at["tiny"])
    hit, bare = runner(hooked), runner(alone)
    yield lambda: per_hit(hit) - per_hit(bare)


@contextmanager
def frida(script: str) -> Iterator[Round]:
    """A process of its own with a script of Frida's in it, beside one without."""
    peer = module("frida")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "native.c").write_text(NATIVE)
        try:
            words = [*yardsticks.compiler(), "-O1", "-rdynamic", "-o", str(folder / "native"), str(folder / "native.c")]
            subprocess.run(words, check=True, capture_output=True)
        except (yardsticks.NoCompiler, subprocess.CalledProcessError) as why:
            raise Absent(f"no C compiler ({why})") from None

        def process() -> subprocess.Popen[str]:
            made = subprocess.Popen([str(folder / "native"), str(HITS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    text=True, bufsize=1)
            stack.enter_context(made)
            stack.callback(made.kill)
            return made

        bare, hooked = process(), process()
        try:
            session = peer.attach(hooked.pid)
        except Exception as error:  # a system that forbids it
            raise Absent(f"cannot attach ({error})") from None
        session.create_script(script).load()

        def said(made: subprocess.Popen[str]) -> float:
            assert made.stdin is not None
            assert made.stdout is not None
            made.stdin.write("\n")
            return float(made.stdout.readline())

        yield lambda: said(hooked) - said(bare)


PEERS: dict[str, Callable[[], Any]] = {
    "kprobes": ours,
    "Qiling": qiling,
    "Frida, script": lambda: frida(SCRIPT),
    "Frida, CModule": lambda: frida(CMODULE),
}


def measure(rounds: int) -> dict[str, float | str]:
    """Nanoseconds of a hit, by peer; or why it is absent."""
    absent: dict[str, str] = {}
    found: dict[str, list[float]] = {}
    with ExitStack() as stack:
        peers: dict[str, Round] = {}
        for name, make in PEERS.items():
            try:
                peers[name] = stack.enter_context(make())
            except Absent as why:
                absent[name] = str(why)
        for _ in range(rounds):
            for name, run in peers.items():
                found.setdefault(name, []).append(run())
    return {name: absent[name] if name in absent else statistics.median(found[name]) for name in PEERS}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--rounds", type=int, default=9)
    logging.disable(logging.WARNING)
    rows = measure(parser.parse_args().rounds)
    ours_ns = rows["kprobes"]
    for name, value in rows.items():
        if isinstance(value, str) or isinstance(ours_ns, str):
            print(f"{name:16} {value}")
        else:
            print(f"{name:16} {value:10,.0f} ns {value / ours_ns:8.1f} times ours")


if __name__ == "__main__":
    main()
