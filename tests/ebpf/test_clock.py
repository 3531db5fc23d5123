"""The clock that goes by the guest's instructions: what it shows is the same with probes and without, by whichever
engine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from arches import RUNNABLE, integer, programs_of
from scenes import paper_machine

from kprobes import BadArgument, GuestTimeout, Kprobe, Kprobes, Kretprobe, Program, UnicornMachine, Unsupported
from kprobes.machine.unicorn.host import hostcode
from kprobes.programs import hostclock

pytest.importorskip("ziglang")
NAME = "test_arith32"
SPARC = ("sparc", "sparc64")
EVEN = hostclock.even_counter()
CLOSE = 20_000  # ns: what the counter tells is off by less than 100, but where the kernel sets its clock
LATENCY = """
#include <kprobes/bpf.h>
u64 begun, took;
SEC("kprobe") int on_entry(void *ctx) { begun = bpf_ktime_get_ns(); return 0; }
SEC("kretprobe") int on_return(void *ctx) { took = bpf_ktime_get_ns() - begun; return 0; }
"""


@pytest.fixture
def python_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    def switch() -> None:
        monkeypatch.setenv(hostcode.SWITCH, "0")
        hostcode.available.cache_clear()

    yield switch
    monkeypatch.undo()
    hostcode.available.cache_clear()


def executed(m: Any) -> int:
    before = m.clock()
    m.call(NAME, integer(m.arch, 5))
    return int(m.clock() - before)


def enough(m: Any, most: int) -> bool:
    try:
        m.call(NAME, integer(m.arch, 5), max_insns=most)
    except GuestTimeout:
        return False
    return True


@pytest.mark.parametrize("host", [True, False], ids=["host", "python"])
@pytest.mark.parametrize("arch", [a for a in RUNNABLE if a not in SPARC and programs_of(a)])
def test_it_counts_the_guests_own_instructions(arch: str, host: bool, python_only: Callable[[], None]) -> None:
    """As many as a bound on the run needs; probes by trap, by jump and on returns change nothing."""
    if not host:
        python_only()
    with UnicornMachine.load(programs_of(arch)[0]) as m:
        m.clock.start()
        alone = executed(m)
        assert alone == executed(m) > 10
        if not m.guest.runs.settle:  # there a branch and its delay slot are one for a bound
            assert enough(m, alone) and not enough(m, alone - 1)
        with Kprobes(m) as k:
            k.register(Kretprobe(symbol_name=NAME, handler=lambda ri, regs: None))
            start = m.symbols[NAME].address
            k.register(Kprobe(addr=k.check(start | m.symbols[NAME].mode).addr, optimize=False,
                              post_handler=lambda p, regs, flags: None))
            assert [executed(m) for _ in range(3)] == [alone] * 3
        before = m.clock()
        m.call(NAME, integer(m.arch, 5))
        assert m.clock() == before, "it goes on when nobody listens"


@pytest.mark.parametrize("engine", [None, "interpreter"])
@pytest.mark.parametrize("arch", ["x86_64", "arm64", "mips", "ppc64", "riscv64", "s390x"])
def test_programs_measure_calls_by_it(arch: str, engine: str | None) -> None:
    prog = Program.from_c(LATENCY)
    with UnicornMachine.load(programs_of(arch)[0]) as m, Kprobes(m) as k:
        m.clock.start()
        alone = executed(m)
        m.clock.stop()
        took = set()
        how: Any = {"clock": "instructions", "engine": engine}
        with k.attach(prog["on_entry"], NAME, **how), k.attach(prog["on_return"], NAME, retprobe=True, **how):
            for _ in range(4):
                m.call(NAME, integer(m.arch, 5))
                took.add(prog.variables["took"])
        # ppc64's function begins two instructions earlier
        assert took and 0 <= alone - max(took) <= 3 and len(took) == 1, (took, alone)
        before = m.clock()
        m.call(NAME, integer(m.arch, 5))
        assert m.clock() == before, "it goes on after detach()"


@pytest.mark.parametrize("arch", SPARC)
def test_where_the_engine_cannot_count(arch: str) -> None:
    prog = Program.from_c(LATENCY)
    with UnicornMachine.load(programs_of(arch)[0]) as m, Kprobes(m) as k:
        with pytest.raises(Unsupported, match=f"cannot count {arch} instructions"):
            k.attach(prog["on_entry"], NAME, clock="instructions")
        assert not k.list()


def test_what_is_no_clock() -> None:
    prog = Program.from_c(LATENCY)
    with Kprobes(paper_machine()) as k:
        with pytest.raises(Unsupported, match="this machine does not count instructions"):
            k.attach(prog["on_entry"], "inc", clock="instructions")
        with pytest.raises(BadArgument, match="'sundial' is no clock"):
            k.attach(prog["on_entry"], "inc", clock="sundial")
        assert not k.list()


@pytest.mark.quick
@pytest.mark.parametrize("what", ["trace", "graph", "program"])
def test_who_ends_late_does_not_stop_the_clock_of_another(what: str) -> None:
    """The clock has stopped as the first Kprobes has left; what that had begun belongs to no later one."""
    code = bytes.fromhex("50 58 c3")  # push rax; pop rax; ret
    with UnicornMachine.from_code(code, arch="x86_64", symbols={"f": (0x10000, len(code))}) as m:
        with Kprobes(m) as first:
            made: Any = {
                "trace": lambda: first.trace("p f", clock="instructions"),
                "graph": lambda: first.graph("f", instructions=True),
                "program": lambda: first.attach(Program.from_instructions(bytes([0xB7, *bytes(7), 0x95, *bytes(7)])), "f",
                                                clock="instructions"),
            }[what]()
            made.__enter__()
            assert m.clock.runs
        assert not m.clock.runs
        with Kprobes(m) as second, second.trace("p f", clock="instructions") as t:
            made.__exit__(None, None, None)
            assert m.clock.runs
            m.call("f")
            m.call("f")
        assert [later.time - former.time for former, later in zip(t, [*t][1:], strict=False)] == [3] and not m.clock.runs


@pytest.mark.quick
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_jumps_cover_one_instruction_while_it_counts(late: bool) -> None:
    """Whether it began before there were probes, or when there is a jump already."""
    code = bytes.fromhex("50" * 4 + "58" * 4 + "c3")  # push rax; ...; pop rax; ...; ret
    with UnicornMachine.from_code(code, arch="x86_64", symbols={"f": (0x10000, len(code))}) as m:
        if not late:
            m.clock.start()
        with Kprobes(m) as k:
            k.register(Kprobe(symbol_name="f"))
            m.call("f")
            if late:
                assert k.list()[0].flags == ("OPTIMIZED",)
                m.clock.start()
            for _ in range(3):
                before = m.clock()
                m.call("f")
                assert m.clock() - before == 9
            m.clock.stop()
            m.call("f")
            assert k.list()[0].flags == ("OPTIMIZED",)


# --- the host's clock


STAMPS = """
#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 20); } times SEC(".maps");
SEC("kprobe") int stamp(void *ctx)
{
    u64 *now = bpf_ringbuf_reserve(&times, 8, 0);

    if (!now)
        return 0;
    *now = bpf_ktime_get_ns();
    bpf_ringbuf_submit(now, 0);
    return 0;
}
"""


@pytest.mark.host_code
@pytest.mark.parametrize("counter", [True, False])
@pytest.mark.parametrize("arch", ["x86_64", "mips"])
def test_compiled_programs_tell_the_hosts_time(arch: str, counter: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the CPU's counter helps or not: never backwards, and within what Python sees around it."""
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(hostclock, "even_counter", lambda: counter and EVEN)
    program = Program.from_c(STAMPS)
    with UnicornMachine.load(programs_of(arch)[0]) as m, Kprobes(m) as k, k.attach(program, NAME) as attached:
        m.call(NAME, integer(m.arch, 5))
        assert attached.why_python["stamp"] == ""
        list(attached.maps["times"])
        for _ in range(60):
            before = time.monotonic_ns()
            for _ in range(20):
                m.call(NAME, integer(m.arch, 5))
            after = time.monotonic_ns()
            stamps = [int.from_bytes(raw, sys.byteorder) for raw in attached.maps["times"]]
            assert len(stamps) == 20 and stamps == sorted(stamps)
            assert before - CLOSE <= stamps[0] and stamps[-1] <= after + CLOSE
        clock = hostclock.clock_of(m.host_view)
        assert clock["counter"] == (counter and EVEN)
        assert bool(clock["rate"]) == clock["counter"], "nothing was measured in all that time"


@pytest.mark.quick
def test_a_machine_has_one_clock() -> None:
    class View: ...

    one, other = View(), View()
    assert hostclock.clock_of(one) is hostclock.clock_of(one) is not hostclock.clock_of(other)
