"""Hits that the machine records for events of Python's are those that Python records."""

from __future__ import annotations

import gc
import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from arches import NO_PROGRAMS, RUNNABLE, programs_of
from ebpf.guests import Guest
from events.drawn import Generated

from kprobes import Kprobe, Kprobes, UnicornMachine, Unsupported
from kprobes.events import parse_event
from kprobes.events._buffer import Buffer
from kprobes.events._filter import parse_filter
from kprobes.events._handler import RecordedPlace, handler
from kprobes.events._layout import RecordLayout
from kprobes.events._program import RecordReader
from kprobes.events._recording import machine_handler
from kprobes.events._table import Events
from kprobes.programs import native

pytestmark = pytest.mark.host_code
DEMO = "examples/demo.x86_64"


class Plain:
    """A switch that nobody asks."""

    enabled = True

    def stack_of(self, regs: object) -> tuple[int, ...]:
        return ()


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a computer without llvmlite: events are Python's."""
    def compiled(*_: object) -> bytes:
        raise Unsupported("there is no compiler")

    monkeypatch.setattr(native, "compiled", compiled)


@pytest.mark.parametrize("arch", RUNNABLE)
def test_the_machine_records_what_python_does(arch: str) -> None:
    chance, served, python, kept, asked = random.Random(arch), 0, 0, 0, list[object]()
    with UnicornMachine.from_code(bytes(64), arch=arch, symbols={"here": (0x10000, 16)}) as m:
        data = m.alloc(4096)
        make = Generated(m, chance, data)
        for _ in range(120):
            text = " ".join(f"a{n}={make.argument()}" for n in range(chance.randrange(1, 7)))
            event = parse_event(f"p 0x10000 {text}", m)
            numbers = [arg.name for arg in event.args if not arg.type.count and arg.source.literal is None
                       and arg.type.style in "usx"]
            filter = parse_filter(make.filter(numbers), event, m.symbols) if chance.random() < 0.6 else None
            mine, theirs, layout = Buffer(size=4096), Buffer(), RecordLayout(event)
            asked.clear()
            plain = handler(RecordedPlace(event, 7, filter), m, theirs, (), Plain(), False)
            take = machine_handler(RecordedPlace(event, 7, filter), m, mine, layout, None, lambda p, regs: asked.append(regs))
            reader = RecordReader(event, layout, m.symbols)
            for _ in range(4):
                make.draw_guest()
                m.regs.at(0x10000)
                asked.clear()
                theirs.rows.clear()
                take(None, m.regs)
                plain(None, m.regs)
                m.regs.at(None)
                if asked:
                    python += 1
                    mine.ring.drop()
                    mine.words[0] = theirs.words[0]
                    continue
                served += 1
                rows = [*mine.taken(lambda data: True)]
                assert len(rows) == len(theirs.rows), (event.text, filter)
                assert mine.words[0] == theirs.words[0]
                for row, record in zip(rows, theirs.rows, strict=True):
                    kept += 1
                    assert reader.decode(row) == (record[2], 0), (event.text, filter)
                    assert int.from_bytes(row[8:16], "little") == record[1]
    assert served > 60 and kept > 20 and python > 20, (served, kept, python)


@contextmanager
def both(arch: str) -> Iterator[list[tuple[UnicornMachine, Kprobes, Guest]]]:
    """Two guests: of the second the machine does not record."""
    found = []
    for recording in (True, False):
        g = Guest(arch)
        if not recording:
            g.machine.hit_recording = None
        found.append((g.machine, Kprobes(g.machine), g))
    yield found
    for m, k, _ in found:
        k.close()
        m.close()


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("arch", RUNNABLE)
@pytest.mark.parametrize("optimize", [True, False])
def test_entries_and_returns(arch: str, optimize: bool) -> None:
    """Guest tasks that come and go, and a buffer that is full, on the way."""
    found = []
    with both(arch) as guests:
        for m, k, g in guests:
            k.optimization = optimize
            data = m.alloc(16)
            m.write(data, (0xFFFE).to_bytes(2, m.arch.order.value))
            entry = k.event(f"p:e {g.name} n=$arg1:u32 s=$arg1:s8 m=@{data:#x}:s16 bad=@8:u8 c=@{data:#x}:x8[2]",
                            filter="n != 3")
            back = k.event(f"r:back {g.name} v=$retval:x32 n=$arg1:u8", filter="n > 1 || v == 0")
            plain = k.event(f"p:plain {g.name} n=$arg1:u8 x=$arg1:s16")
            assert entry.why_python and back.why_python and plain.why_python
            for n in range(12):
                m.cpu_task = (lambda regs: 5) if n in (6, 7) else None
                if n == 9:
                    k.events.buffer.on = False
                if n == 10:
                    k.events.buffer.on = True
                g.value = n
                g.call()
            found.append([(x.event, x.seq, x.cpu, x.task, x.address, x.args, bool(x.caller))
                          for x in k.events.buffer])
            assert (entry.hits, back.hits, plain.hits) == (12, 12, 12)
    assert found[0] == found[1]
    assert len(found[0]) > 25


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("clock", ["counter", "host", "instructions"])
@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_traces(arch: str, clock: str) -> None:
    """Of all events, and mixed with those of Python; with room for all, and for the newest only."""
    found = []
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        if clock == "instructions" and not m.guest.blocks.hooked_delay_slots:
            pytest.skip("this engine cannot count instructions")
        recording, before = m.hit_recording, m.snapshot()
        for mine in (True, False):
            m.restore(before)
            m.hit_recording = recording if mine else None
            for extra in ([], ["p:text fib t=+0($stack):string"]):
                for records in (1 << 20, 7):
                    events = ["p:in fib n=$arg1 s=$arg1:s8 b=$arg1:b2@1/8 c=$arg1:char at=$stack:symbol",
                              "p:bad fib no=@0x8 some=@0x8:u8[2]", "r:out fib n=$arg1 v=$retval:s16"]
                    recorded = k.trace(*events, *extra, clock=clock, records=records)
                    with recorded as t:
                        m.call("fib", 6)
                    assert bool(recorded._programs and recorded._programs.others) == mine
                    found.append((t.lost, t.missed, [(r.event, r.seq, r.task, r.args, bool(r.caller), r.address,
                                                      r.time is None) for r in t]))
                    times = [r.time for r in t]
                    assert None in times or times == sorted(times)
    assert found[:4] == found[4:]
    assert found[1][0] > 0 and len(found[1][2]) == 7


@pytest.mark.usefixtures("no_compiler")
def test_a_full_ring_keeps_the_newest() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        events = Events(k, Buffer(size=4096))
        e, other = events.add("p:f fib n=$arg1"), events.add("r:g fib $retval t=+0($stack):string")
        assert e.why_python == other.why_python == "there is no compiler"
        for n in (4, 14, 15):
            m.call("fib", n)
            seqs = [r.seq for r in events.buffer]
            assert seqs == sorted(set(seqs)) and seqs[-1] == e.hits + other.hits == len(seqs) + events.buffer.lost
        assert events.buffer.lost


@pytest.mark.usefixtures("no_compiler")
def test_the_event_goes_while_its_hit_is_under_way() -> None:
    """Another probe at the same place removes it, and what it consisted of is collected."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        events = [k.event("p:one fib n=$arg1"), k.event("r:two fib n=$arg1 v=$retval")]

        def remove(p: Any, regs: Any) -> None:
            if regs.arg(0) == 2 and events:
                events.pop().remove()
                gc.collect()

        with k.kprobe("fib", pre_handler=remove):
            assert m.call("fib", 8) == 21
        assert not events
        assert k.events.buffer.pull()


@pytest.mark.usefixtures("no_compiler")
def test_filters_change_in_handlers() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e = k.event("p:one fib n=$arg1")

        def change(p: Any, regs: Any) -> None:
            e.filter = f"n > {regs.arg(0)}"

        with k.kprobe("fib", pre_handler=change):
            m.call("fib", 6)
        assert e.filter
        assert [*e]


@pytest.mark.usefixtures("no_compiler")
def test_a_handler_that_raises_beside_it() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e, r = k.event("p:one fib n=$arg1"), k.event("r:two fib n=$arg1 v=$retval")

        def fail(p: Any, regs: Any) -> None:
            if regs.arg(0) == 3:
                raise RuntimeError("now")

        with k.kprobe("fib", pre_handler=fail), pytest.raises(RuntimeError):
            m.call("fib", 6)
        before = e.hits
        assert m.call("fib", 6) == 8
        assert e.hits - before == r.hits > 10
        assert [x.args["v"] for x in r][-1] == 8


@pytest.mark.usefixtures("no_compiler")
def test_a_clock_that_fails() -> None:
    """The exception of what tells the time is the hit's."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        recording = k.trace("p fib n=$arg1", clock="host")

        def broken() -> int:
            raise ValueError("no time")

        recording._ring.clock = broken
        with recording as t, pytest.raises(ValueError, match="no time"):
            m.call("fib", 3)
        assert not len(t)
        assert m.call("fib", 3) == 2


@pytest.mark.usefixtures("no_compiler")
def test_another_thread_looks() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e = k.event("p:one fib n=$arg1", filter="n >= 0")
        done, seen = threading.Event(), list[int]()

        def look() -> None:
            while not done.is_set():
                seen.append(len(e.buffer.pull()))

        thread = threading.Thread(target=look)
        thread.start()
        m.call("fib", 18)
        done.set()
        thread.join()
        assert [r.seq for r in e] == [*range(1, e.hits + 1)]
        assert seen == sorted(seen)


@pytest.mark.usefixtures("no_compiler")
def test_after_a_fork() -> None:
    """Parent and child have records of their own."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e = k.event("p:one fib n=$arg1")
        m.call("fib", 4)
        before = e.hits
        child = os.fork()
        if not child:
            m.call("fib", 5)
            os._exit(e.hits <= before or [r.seq for r in e] != [*range(1, e.hits + 1)])
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert [r.seq for r in e] == [*range(1, before + 1)]


@pytest.mark.usefixtures("no_compiler")
def test_a_handler_of_its_own_registers() -> None:
    """What is not the CPU's registers goes to Python."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        e = k.event("p:one fib n=$arg1")
        probe = e.places[0].probe
        assert isinstance(probe, Kprobe) and probe.pre_handler is not None
        with pytest.raises(TypeError):
            probe.pre_handler(None)  # type: ignore[call-arg]
        m.regs.set_arg(0, 99)
        probe.pre_handler(None, m.regs)  # no hit: pc is not reported
        assert [r.args["n"] for r in e] == [99]
