"""Arguments of return events, which a program keeps from the entry on: as Python keeps them, however calls are followed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from arches import RUNNABLE
from host import why_python

from kprobes import Kprobe, Kprobes, Regs, UnicornMachine

BIN = Path(__file__).resolve().parents[1] / "programs" / "bin"
#: those of the programs that the engine runs
NAMES = sorted(path.stem for path in BIN.glob("*-O2.elf") if path.stem.rpartition("-")[0] in RUNNABLE)
EVENTS = ("r:f fib n=$arg1:u32 v=$retval:u32", "r:a ackermann m=$arg1:u32 n=$arg2:u32 low=$arg2:u8 v=$retval:u32",
          "r:e even_steps n=$arg1:u32 sum=$arg2:u32 v=$retval:u32", "p fib n=$arg1:u32",
          "r:x fib bad=+0($arg1):u8 n=$arg1:s8")
CALLS = (("test_fib", 2), ("test_ackermann", 1), ("test_tail_calls", 3))


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def records(name: str, how: str) -> tuple[list[Any], list[int]]:
    """What the events record, and what the calls return. how: who serves hits."""
    m = UnicornMachine.load(BIN / f"{name}.elf")
    with m, Kprobes(m) as k:
        if how == "python":
            m.cpu_task = lambda regs: 0
        events = [k.event(text) for text in EVENTS]
        for event in events:
            assert bool(why_python(event)) == (how == "python"), event.why_python
        if how == "mixed":  # the calls are taken over in the middle of the recursion
            def look(p: Kprobe, regs: Regs) -> None:
                if regs.arg(0) & 0xFFFFFFFF == 3:
                    k.stack_trace(regs)

            k.register(Kprobe(symbol_name="fib", pre_handler=look))
        results = [m.call(*call) for call in CALLS]
        return [(r.event, tuple(r.args.items()), r.caller) for r in k.events.buffer], results


@pytest.mark.parametrize("name", NAMES)
def test_kept_as_python_keeps_them(name: str) -> None:
    compiled, results = records(name, "compiled")
    assert (compiled, results) == records(name, "python")
    of_fib = [dict(args) for event, args, _ in compiled if event == "f"]
    assert len(of_fib) > 50 and all(args["v"] == fibonacci(args["n"]) for args in of_fib)
    assert len({args for event, args, _ in compiled if event == "a"}) > 5


@pytest.mark.parametrize("name", ["x86_64-O2", "arm64-O2", "sparc64-O2", "m68k-O2", "s390x-O2"])
def test_calls_that_are_taken_over(name: str) -> None:
    """Their arguments go with them."""
    assert records(name, "mixed") == records(name, "compiled")


@pytest.mark.parametrize("python", [False, True])
def test_going_back_to_the_middle_of_calls(python: bool) -> None:
    """The calls that return again have the arguments that they had."""
    m = UnicornMachine.load(BIN / "x86_64-O2.elf")
    with m, Kprobes(m) as k:
        if python:
            m.cpu_task = lambda regs: 0
        event = k.event(EVENTS[0])

        def stop(p: Kprobe, regs: Regs) -> None:
            if regs.arg(0) == 4:
                m.stop()

        stopper = Kprobe(symbol_name="fib", pre_handler=stop)
        k.register(stopper)
        m.regs.set_arg(0, 7)
        m.run("fib")
        begun = m.snapshot()
        k.unregister(stopper)
        k.events.buffer.clear()
        m.run()
        first = [tuple(r.args.items()) for r in event]
        assert first[-1] == (("n", 7), ("v", 13)) and len(first) > 20
        m.call("fib", 9)
        k.events.buffer.clear()
        m.restore(begun)
        m.run()
        assert [tuple(r.args.items()) for r in event] == first


def test_more_than_fit_are_pythons() -> None:
    m = UnicornMachine.load(BIN / "arm64-O2.elf")
    with m, Kprobes(m) as k:
        many = " ".join(f"a{n}=$arg{n}" for n in range(1, 34))
        with k.event(f"r fib {many}") as event:
            assert why_python(event) == "a return event keeps more than 32 arguments from the entry on"
        with k.event("r fib " + " ".join(f"a{n}=$arg{n}" for n in range(1, 33))) as event:
            assert why_python(event) == ""
            m.call("fib", 3)
            assert [r.args["a1"] for r in event][-1] == 3
