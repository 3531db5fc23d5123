"""Events of remote guests: programs in the guest record them as Python does, and Python records what they cannot."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from arch_rows import SAVINGS
from qemu import start

from kprobes import GuestTimeout, Kprobe, Kprobes
from kprobes.events._buffer import Buffer
from kprobes.events._table import Events
from kprobes.programs.maps import Map

pytest.importorskip("llvmlite")
FUNCTION, OTHER = "test_crc", "test_strings"
Programs = Callable[[str], Path]


def definition(m: Any, kind: str = "p") -> str:
    """Numbers of all widths, memory of the stack, text, arrays, what cannot be read."""
    where, register = f"{m.symbols[OTHER].address:#x}", (m.arch.abi.args or m.arch.regs.names)[0]
    return (f"{kind}:e {FUNCTION} a=$arg1:u32 b=$arg2:s8 r=%{register} x=%{register}:x16 top=+0($stack) "
            f"c=@{where}:u8 d=@{where}:s16 e=@{where}:u32[3] bits=@{where}:b5@3/32 t=@{where}:string "
            f"bad=@8:u32 worse=+0(@8):string some=@8:u8[2] n=\\1234")


def test_memory_of_which_nobody_knew(m: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pointer leads to is read wherever it is, and said not to be there where it is not."""
    heap = m.alloc(2 * m.page_size)
    m.write(heap, b"somewhere else" + bytes(50) + b"\xff" * (m.page_size - 64) + b"\x81on" + bytes(m.page_size - 3))
    pointers = [heap, 8, heap + m.page_size - 2, heap + 10, 0, m.arch.mask - 1]
    text = f"p:e {FUNCTION} t=+0($arg1):string n=+0($arg1):u32 b=+0($arg1):u8[3] d=+0(+0($arg1)):u8 "
    text += "s=+0($arg1):ustring"

    def found(m: Any, k: Kprobes) -> tuple[Any, ...]:
        with k.event(text) as event:
            results = [m.call(FUNCTION, n, timeout=20) for n in pointers]
            assert event.places[0].probe.optimized != bool(event.why_python)
            return results, [dict(r.args) for r in event], event.hits

    with Kprobes(m) as k:
        expected = python(m, monkeypatch, found, k)
        assert expected[1][0]["t"] == "somewhere else" and expected[2] == 6
        assert expected[1][1]["n"] is None or m.arch.name == "parisc"
        assert found(m, k) == expected == found(m, k)


@pytest.mark.parametrize("stem", ["x86_64-O2", "arm64-O2", "mips-O2", "ppc64le-O2"])
def test_reading_by_the_host_while_steps_are_made(stem: str, programs: Programs) -> None:
    """Nobody is left in between: bounded runs end in the guest's own code, or where it returns to."""
    with start(stem, programs) as m, Kprobes(m) as k:
        heap = m.alloc(64)
        m.write(heap, b"text")
        plain, bounds = m.call(FUNCTION, heap), (3, 10, 40)
        with k.event(f"p:e {FUNCTION} t=+0($arg1):string") as e:
            assert [m.call(FUNCTION, heap) for _ in range(3)] == [plain] * 3 and e.places[0].probe.optimized
            for n in bounds:
                with pytest.raises(GuestTimeout) as timeout:
                    m.call(FUNCTION, heap, max_insns=n)
                assert "crc" in m.symbols.describe(timeout.value.pc)
            assert m.call(FUNCTION, heap) == plain and e.hits == 4 + len(bounds)
            assert [r.args["t"] for r in e] == ["text"] * e.hits


def calls(m: Any) -> list[int]:
    """What the guest's function gives: more calls than it takes to make a jump of the probe."""
    return [m.call(FUNCTION, n, timeout=20) for n in (0, 1, 200, 0x1_0003, 5, 0x87654321)]


def code(m: Any, *functions: str) -> bytes:
    """x86_64: mov rax, function; call rax; each."""
    return b"".join(b"\x48\xb8" + m.symbols[name].address.to_bytes(8, "little") + b"\xff\xd0" for name in functions)


def recorded(m: Any, k: Kprobes, filter: str = "") -> tuple[Any, ...]:
    """What an event leaves, in records and otherwise; why Python records them."""
    with k.event(definition(m), filter) as event:
        results = calls(m)
        assert event.places[0].probe.optimized != bool(event.why_python)
        found = [(r.event, r.seq, r.cpu, r.task, dict(r.args), r.address, r.caller) for r in event]
        return results, found, event.hits, event.missed, k.events.buffer.lost, event.why_python


def python(m: Any, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any], *args: Any) -> Any:
    """A call for which nothing runs in the guest."""
    with monkeypatch.context() as patch:
        patch.setattr(m, "guest_view", None)
        return call(m, *args)


def numbers(found: list[Any]) -> list[int]:
    return [seq for _, seq, *_ in found]


@pytest.mark.parametrize("filter", ["", "a > 3 && a != 5"])
def test_the_same_records_as_pythons(m: Any, filter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Kprobes(m) as k:
        plain = calls(m)
        results, expected, hits, missed, lost, why = python(m, monkeypatch, recorded, k, filter)
        assert why == "Python knows which CPU runs" and results == plain and hits == 6 and not missed and not lost
        results, found, hits, missed, lost, why = recorded(m, k, filter)
        assert results == plain and hits == 6 and not missed and not lost and len(found) == (6 if not filter else 3)
        assert numbers(found) == [n + len(found) for n in numbers(expected)]
        assert [(a, *rest) for a, _, *rest in found] == [(a, *rest) for a, _, *rest in expected]
        thumb = bool(m.symbols[FUNCTION].mode)
        assert bool(why) == (m.arch.name not in SAVINGS or thumb), why
        assert not thumb or why == "no detours are written for code of this mode"
        assert calls(m) == plain


def everything(m: Any, k: Kprobes) -> tuple[Any, ...]:
    """Histograms, an event that Python records beside one that a program does, and what is on in between."""
    text = f"p:counted {FUNCTION} a=$arg1:u32 low=$arg1:s8"
    with (k.event(text) as counted, k.event(f"r:back {FUNCTION} $retval:u32") as back,
          k.event(f"p:late {FUNCTION}") as e):
        counted.trigger("hist:keys=low,a.log2:vals=a:sort=a,low").trigger("hist:keys=a.buckets=16 if a != 1")
        results = calls(m)
        counted.enabled = False
        results += calls(m)
        counted.enabled = k.events.buffer.on = True
        e.enabled = False
        results += calls(m)
        k.events.buffer.on = False
        results += calls(m)
        hists = [[(dict(row.keys), row.hitcount, dict(row.values)) for row in hist] for hist in counted.hists]
        rows = [(r.event, r.seq, dict(r.args)) for r in k.events.buffer]
        more = [(hist.hits, hist.dropped) for hist in counted.hists]
        return (results, hists, more, rows, counted.hits, back.hits, e.hits), counted.why_python, back.why_python


def test_histograms_and_others_events(m: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that counts in the guest, one of returns, one that is disabled: numbers go on from one to the other."""
    with Kprobes(m) as k:
        expected, why, _ = python(m, monkeypatch, everything, k)
        assert why
    with Kprobes(m) as k:
        found, why, back = everything(m, k)
        assert found == expected and found[1][0] and len(found[3]) == 6 * (3 + 2 + 2)
        assert bool(why) == (m.arch.name not in SAVINGS or bool(m.symbols[FUNCTION].mode))
        assert ("calls are followed to their returns by stops" if m.arch.name in SAVINGS else "Python knows which CPU runs") in back


def test_records_that_somebody_reads_meanwhile(x86: Any) -> None:
    """A handler in the middle of a run sees what there is by then; nothing comes twice, and nothing is lost."""
    with Kprobes(x86) as k, k.event(f"p:e {FUNCTION} n=$arg1:u32") as e:
        calls(x86)
        seen: list[tuple[int, int, int]] = []
        hist = k.event(f"p:h {FUNCTION} n=$arg1:u32").trigger("hist:keys=n").hist

        def on(p: Kprobe, regs: Any) -> None:
            seen.append((len(list(e)), e.hits, hist.hits))

        k.register(Kprobe(symbol_name=OTHER, pre_handler=on))
        at = x86.alloc(128)
        x86.write(at, b"\x50" + code(x86, FUNCTION, OTHER, FUNCTION, FUNCTION, OTHER) + b"\x58\xc3")
        for _ in range(3):
            x86.call(at)
        assert e.places[0].probe.optimized and seen == [(6 + n, 6 + n, n) for n in (1, 3, 4, 6, 7, 9)]
        assert [r.seq for r in k.events.buffer] == list(range(1, 25)) and e.hits == 15 and hist.hits == 9


def test_what_does_not_fit_is_counted(x86: Any) -> None:
    """The newest stay."""
    with Kprobes(x86) as k:
        events = Events(k, Buffer(size=4096))
        with events.add(f"p:e {FUNCTION} n=$arg1:u32") as e:
            for n in range(3):
                x86.call(FUNCTION, n)
            again = x86.alloc(64)  # push rbx; mov ebx, 1000; L: mov edi, ebx; call; dec ebx; jne L; pop rbx; ret
            body = code(x86, FUNCTION)
            x86.write(again, bytes.fromhex("53 bbe8030000 89df") + body + bytes.fromhex("ffcb 75ee 5b c3"))
            x86.call(again, timeout=20)
            rows = list(e)
            assert e.hits == 1003 == len(rows) + events.buffer.lost and 50 < len(rows) < 200
            assert [r.args["n"] for r in rows] == list(range(len(rows), 0, -1)) and rows[-1].seq == 1003


def test_what_is_recorded_before_an_exit_is_not_lost(programs: Programs) -> None:
    with start("x86_64-O2", programs) as m, Kprobes(m) as k, k.event(f"p:e {FUNCTION} n=$arg1:u32") as e:
        m.write(m.regs.pc, code(m, *[FUNCTION] * 6) + bytes.fromhex("bf03000000 b8e7000000 0f05"))
        m.run(timeout=20)
        assert m.exit_status == 3 and not e.why_python and e.hits == 6 == len(list(e))


def overwrite(m: Any, ring: Map, part: slice, byte: int) -> None:
    """The guest does: mov rcx, rsi; mov eax, edx; rep stosb; ret."""
    code = m.alloc(16)
    m.write(code, bytes.fromhex("4889f1 89d0 f3aa c3"))
    m.call(code, m.guest_view.copies.at(ring) + part.start, part.stop - part.start, byte)


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x40, 0x7F, 0xFF])
@pytest.mark.parametrize(("start", "end"), [(0, 64), (0, 8), (8, 16), (24, 32), (64, 4096), (64, 76)])
def test_a_guest_that_writes_over_its_records(x86: Any, start: int, end: int, byte: int) -> None:
    """What is rubbish is lost, and counted; what comes later is recorded."""
    part = slice(start, end)
    with Kprobes(x86) as k, k.event(f"p:e {FUNCTION} n=$arg1:u32") as e:
        recording = k.trace(f"p:t {FUNCTION} n=$arg1:u32")
        with recording as t:
            for _ in range(3):
                calls(x86)
                overwrite(x86, k.events.buffer.ring, part, byte)
                overwrite(x86, recording._programs.buffer.ring, part, byte)
                assert all(r.event == "e" for r in e) and all(row.event == "t" for row in t)
            k.events.buffer.clear()
            calls(x86)
            assert [r.args["n"] for r in e] == [0, 1, 200, 0x1_0003, 5, 0x87654321]
            assert [r.args["n"] for r in t][-6:] == [r.args["n"] for r in e]


@pytest.mark.parametrize("clock", ["counter", "host"])
def test_a_trace_is_the_same_as_pythons(m: Any, clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Order numbers come out of the guest, and so do times."""
    def traced(m: Any, k: Kprobes) -> tuple[Any, ...]:
        recording = k.trace(f"p:e {FUNCTION} n=$arg1:u32", f"p:o {FUNCTION}", f"r:r {OTHER} $retval:u32", clock=clock)
        with recording as t:
            results = [*calls(m), m.call(OTHER, 7, timeout=20), *calls(m)]
            jump = recording.probes[0].optimized
        return (results, [(r.event, r.seq, r.cpu, r.task, dict(r.args)) for r in t], t.lost, [r.time for r in t], jump)

    with Kprobes(m) as k:
        *expected, times, jump = python(m, monkeypatch, traced, k)
        assert not jump and expected[2] == 0 and len(expected[1]) == 25
        *found, mine, jump = traced(m, k)
        assert found == expected and (mine == times == [None] * 25 if clock == "counter" else mine == sorted(mine))
        assert jump == (m.arch.name in SAVINGS and not m.symbols[FUNCTION].mode)


def scribble(m: Any, table: Map, rng: random.Random) -> None:
    """The same with words of a map, one by one, and now and then with a part of it."""
    at, size = m.guest_view.copies.at(table), table.block.size
    for _ in range(rng.randint(1, 4)):
        where = at + rng.randrange(0, min(size, 512), 4)
        value = rng.choice((0, 1, 2, 3, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, rng.getrandbits(32)))
        m.write(where, value.to_bytes(4, "little"))
    if rng.random() < 0.2:
        m.write(at, bytes([rng.choice((0, 1, 0xFF))]) * rng.randrange(1, size))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("stem", ["x86_64-O2", "arm64be-O2", "mips-O2", "riscv32-O2"])
def test_a_guest_that_writes_over_what_it_counts(stem: str, seed: int, programs: Programs) -> None:
    """No program there runs for ever, no reader here does; what is rubbish is lost, and counted, and counting goes on."""
    rng = random.Random(seed)
    with start(stem, programs) as m, Kprobes(m) as k, k.event(f"p:e {FUNCTION} n=$arg1:u32") as e:
        hist = e.trigger("hist:keys=n.log2,n.buckets=8:vals=n:size=32").hist
        plain = m.call(FUNCTION, 5, timeout=20)
        m.call(FUNCTION, 6, timeout=20)
        assert not e.why_python and e.places[0].probe.optimized
        table = e._counts.maps["entries 0"]
        for turn in range(10):
            for target in (table, e._counts.maps["histogram 0"], k.events.buffer.state, k.events.buffer.ring):
                if rng.random() < 0.7:
                    scribble(m, target, rng)
            assert m.call(FUNCTION, 5, timeout=20) == plain
            rows = list(hist)
            assert len(hist) == len(rows) <= 32 and str(hist) and repr(e)
            assert all(r.event == "e" for r in e)
            if turn % 5 == 4:
                k.register(p := Kprobe(symbol_name=FUNCTION, pre_handler=lambda p, regs: len(list(hist)) < 0))
                assert m.call(FUNCTION, 5, timeout=20) == plain  # Python counts in the same table
                k.unregister(p)
        hist.paused = False
        hist.clear()
        m.call(FUNCTION, 5, timeout=20)
        assert (len(hist), hist.dropped) == (1, 0)
        m.write(m.guest_view.copies.at(table) + 64, b"\xff" * 256)  # the index
        assert m.call(FUNCTION, 5, timeout=20) == plain and (len(hist), hist.dropped) == (0, 2)  # a hit, and the table
        hist.clear()
        k.events.buffer.clear()
        k.events.buffer.on = e.enabled = True
        for n in (5, 5, 40):
            m.call(FUNCTION, n, timeout=20)
        assert [(row.keys["n"], row.hitcount) for row in hist] and hist.hits == 3 and len(hist) == 2
