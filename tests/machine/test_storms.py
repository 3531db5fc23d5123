"""Signals all the time, and another thread that stops the run, while every function of a program is probed and handlers
call guest code themselves: it ends as what was never stopped, and each hit comes once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import product
from pathlib import Path

import pytest
from arches import RUNNABLE, integer, limits, programs_of
from machine.test_exact_stops import WORD, finished, stopped
from machine.test_stops_at_call_sites import KINDS, TESTS

from kprobes import GuestStopped, Kprobe, KprobeError, Kprobes, Regs, UnicornMachine
from kprobes.testing import functions

pytestmark = pytest.mark.host_code
OWN = ("stepped", "asked", "nested")
CASES = [pytest.param(paths[n % len(paths)], kind, thread, id=f"{paths[n % len(paths)].stem}-{kind}-{thread}")
         for arch in RUNNABLE if (paths := programs_of(arch))
         for n, (kind, thread) in enumerate(product(OWN, ("signals", "both")))]


@contextmanager
def signals() -> Iterator[list[int]]:
    """Alarms that are served and change nothing."""
    served: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: served.append(number))
    signal.setitimer(signal.ITIMER_REAL, 3e-4, 3e-4)
    try:
        yield served
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Nesting:
    """A handler that calls guest code, now and then, however often that is stopped."""

    def __init__(self, m: UnicornMachine, test: str, argument: int, want: int) -> None:
        self.m, self.call, self.want, self.hits, self.inside = m, (test, argument), want, 0, False

    def __call__(self, p: Kprobe, regs: Regs) -> None:
        self.hits += 1
        if self.inside or self.hits % 97:
            return
        self.inside = True
        with suppress(GuestStopped):
            assert self.m.call(*self.call) & WORD == self.want
        self.inside = False


@pytest.mark.parametrize(("path", "kind", "thread"), CASES)
def test_programs_in_a_storm(path: Path, kind: str, thread: str) -> None:
    test = next(t for t in TESTS if t not in limits(path.stem))
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        argument = integer(m.arch, 500)
        want = m.call(test, argument) & WORD
        nesting, probes = Nesting(m, test, integer(m.arch, 3), m.call(test, integer(m.arch, 3)) & WORD), []
        for symbol in functions(m):
            addr = m.arch.pointers.code_address(symbol.address | symbol.mode, m.read).place(0)
            with suppress(KprobeError):
                k.register(p := Kprobe(addr=addr, pre_handler=nesting) if kind == "nested" else KINDS[kind](addr))
                probes.append(p)

        def counts() -> list[int]:
            return [n for p in probes for n in (p.nhit, p.nmissed, getattr(p, "nreturned", 0))]

        def run() -> list[int]:
            before = counts()
            assert finished(m, test, argument) & WORD == want
            return [after - n for after, n in zip(counts(), before, strict=True)]

        run()
        plain = run()
        with signals() as served, stopped(m) if thread == "both" else nullcontext():
            for _ in range(100):
                in_storm = run()
                assert kind == "nested" or in_storm == plain
                if len(served) > 30:
                    break
        assert served
