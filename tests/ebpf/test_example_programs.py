"""The programs of docs/programs.md on guests of many kinds: what they count is what handlers in Python count."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from arches import integer, programs_of

from kprobes import Kprobe, Kprobes, Program, UnicornMachine, Unsupported

pytest.importorskip("ziglang")
ARCHES = ("x86_64", "i386", "arm64", "arm", "mips", "mips64el", "ppc64", "riscv64", "s390x", "sparc64", "m68k")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "programs"
NAME = "test_arith32"


def example(name):
    path = EXAMPLES / f"{name}.bpf.c"
    return Program.from_c(path.read_text(), path.name)


@pytest.fixture(params=ARCHES)
def guest(request):
    with UnicornMachine.load(programs_of(request.param)[0]) as m, Kprobes(m) as k:
        yield m, k


def call(m, seed):
    return m.call(NAME, integer(m.arch, seed))


def test_counting_by_an_argument(guest):
    m, k = guest
    wanted = Counter()
    k.register(Kprobe(symbol_name=NAME, pre_handler=lambda p, regs: wanted.update([regs.arg(2)])))
    with k.attach(example("count"), NAME) as a:
        for extra in (7, 7, 9):
            m.call(NAME, 1, 2, extra)
        assert dict(a.maps["counts"]) == wanted == {7: 2, 9: 1}


def test_a_histogram_of_latencies(guest):
    m, k = guest
    prog, ticks = example("latency"), count()
    steps = iter([0, 5, 100, 100 + 5, 1000, 1000 + 300])  # of the clock, for three calls
    clock = lambda: next(steps)  # noqa: E731
    with k.attach(prog["on_entry"], NAME, clock=clock), k.attach(prog["on_return"], NAME, retprobe=True, clock=clock):
        for _ in range(3):
            call(m, next(ticks))
    assert {n: c for n, c in prog.maps["histogram"].items() if c} == {2: 2, 8: 1}
    assert not prog.maps["begun"]


def test_counting_stacks(guest):
    m, k = guest
    wanted = Counter()

    def note(p, regs):
        try:
            wanted[tuple(k.stack_trace(regs, 16))] += 1
        except Unsupported:
            wanted[regs.pc,] += 1

    k.register(Kprobe(symbol_name=NAME, pre_handler=note))
    with k.attach(example("stacks"), NAME) as a:
        for seed in range(3):
            call(m, seed)
        assert {a.maps["stacks"][number]: n for number, n in a.maps["counts"].items()} == wanted
        assert sum(wanted.values()) == 3


def test_faults_on_purpose(guest):
    m, k = guest
    prog = example("inject")
    wanted = [call(m, seed) for seed in range(6)]
    prog.variables["error"] = 12
    with k.attach(prog, NAME) as a:
        assert [call(m, seed) for seed in range(6)] == [12 if seed % 3 == 2 else wanted[seed] for seed in range(6)]
        assert a.runs == prog.variables["calls"] == 6
    assert [call(m, seed) for seed in range(6)] == wanted


def test_a_stream_of_events(guest):
    m, k = guest
    prog = example("stream")
    data = m.alloc(64)
    m.write(data, b"short\0the longer one of the two\0")
    with k.attach(prog, NAME) as a:
        for at in (data, data + 6, 8):
            m.call(NAME, at, 99)
        events = [prog.types["event"].from_buffer_copy(record) for record in a.maps["events"]]
    assert [(e.left, e.right, e.text) for e in events] == [(data, 99, b"short"), (data + 6, 99, b"the longer one "),
                                                           (8, 99, b"")]
