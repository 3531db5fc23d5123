"""Programs whose instruction has a hook of its own: when that is so, and that they count what they would behind a jump."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import unicorn
from test_callsites import array, counts, word

from kprobes import GuestFault, GuestStopped, GuestTimeout, Kprobe, Kprobes, UnicornMachine
from kprobes.machine.unicorn import inplace
from kprobes.machine.unicorn.guests.rows import GUESTS

pytestmark = [pytest.mark.quick, pytest.mark.host_code]
pytest.importorskip("llvmlite")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import worlds  # noqa: E402
from subjects import SUBJECTS  # noqa: E402

ARCHES = [arch for arch, guest in GUESTS.items() if guest.blocks.served_in_place]
every = pytest.mark.parametrize("arch", ARCHES)
#: the loop of i386 has a DEC of memory, which the engine executes twice when another thread stops it there
stopped = pytest.mark.parametrize("arch", [arch for arch in ARCHES if arch != "i386"])
#: f(p): reads a word of p's; more that a jump may cover; returns
READS = {"x86_64": "488b07 90909090 c3", "i386": "8b0425 00000004 90909090 c3",  # of a fixed address
         "arm64": "010040f9 c0035fd6", "arm64be": "010040f9 c0035fd6"}
AT = 0x4000000  # which that is


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def scene(arch: str) -> Iterator[Any]:
    with worlds.make_machine(arch) as m, Kprobes(m) as k:
        yield m, k


def here(m: Any) -> set[int]:
    """Which instructions are served in place."""
    return set(m.parts.here._hooks)


def place(m: Any, name: str = "tiny") -> int:
    return int(m.symbols[name].address)


def both(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> Any:
    """The same in place and behind a jump."""
    one = run()
    with monkeypatch.context() as patch:
        patch.setattr(inplace, "MOST", 0)
        assert run() == one
    return one


def code(arch: str, *pieces: bytes) -> Any:
    """A machine with a function f of read-only text."""
    text = b"".join(pieces)
    m = UnicornMachine.from_code(text, arch=arch, base=0x10000, symbols={"f": (0x10000, len(text))})
    m.protect(0x10000, m.page_size, "rx")
    return m


def back(arch: str) -> bytes:
    return b"\xc3" if arch in ("x86_64", "i386") else bytes.fromhex("c0035fd6")


def called(run: Callable[[], Any]) -> int:
    """The number of calls of functions of Python's that a run makes, once it has run before."""
    run()
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return calls


@every
def test_it_counts_and_nothing_is_in_memory(scene: Any) -> None:
    m, k = scene
    out, original = array(), m.read(place(m), 16)
    for _ in range(2):
        with k.attach(counts(out), "tiny") as a:
            m.call("loop", 100, 7)
            assert here(m) == {place(m)} and m.read(place(m), 16) == original
            assert a.probes["main"].optimized and a.why_python == {"main": ""}
            assert (a.runs, a.missed) == (100, 0)
            k.disable(a.probes["main"])
            m.call("loop", 100, 7)
            k.enable(a.probes["main"])
            m.call("loop", 100, 7)
            assert (a.runs, a.missed) == (200, 0)
        assert not here(m) and m.read(place(m), 16) == original
        m.call("loop", 100, 7)
    assert word(out) == 400


@every
def test_few_are_in_place_or_none(arch: str) -> None:
    filler = SUBJECTS[arch].filler
    with code(arch, filler * 8, back(arch)) as m, Kprobes(m) as k:
        out, original = array(), m.read(place(m, "f"), 64)
        attached = [k.attach(counts(out), "f", n * len(filler)) for n in range(inplace.MOST)]
        for _ in range(10):
            m.call("f")
        assert len(here(m)) == inplace.MOST and m.read(place(m, "f"), 64) == original
        attached.append(k.attach(counts(out), "f", inplace.MOST * len(filler)))
        for _ in range(10):
            m.call("f")
        assert not here(m) and all(a.probes["main"].optimized for a in attached)
        assert m.read(place(m, "f"), 64) != original
        assert [a.runs for a in attached] == [20] * inplace.MOST + [10] and word(out) == 20 * inplace.MOST + 10
        for a in attached:
            a.detach()
        m.call("f")
        with k.attach(counts(out), "f"):
            m.call("f")
            assert len(here(m)) == 1
        assert m.read(place(m, "f"), 64) == original


@every
@pytest.mark.parametrize("beside", ["handler", "return", "counted", "elsewhere"])
def test_what_is_no_program_is_behind_a_jump(scene: Any, beside: str) -> None:
    """And comes or goes at any time."""
    m, k = scene
    out, seen = array(), []
    a = k.attach(counts(out), "tiny")
    m.call("loop", 3, 7)
    assert here(m)
    if beside == "return":
        other: Any = k.kretprobe("tiny", handler=lambda ri, regs: None)
    elif beside == "counted":
        other = k.kprobe("tiny")
    else:
        other = k.kprobe("stores" if beside == "elsewhere" else "tiny", pre_handler=lambda p, regs: seen.append(p))
    with other:
        m.call("stores", 3, m.alloc(64))
        m.call("loop", 5, 7)
        m.call("loop", 5, 7)
        assert not here(m) and a.probes["main"].optimized
    assert len(seen) == {"handler": 10, "elsewhere": seen and len(seen)}.get(beside, 0)
    m.call("loop", 5, 7)
    assert (word(out), a.runs, a.missed) == (18, 18, 0)


@every
def test_programs_at_one_place_run_in_order(scene: Any) -> None:
    m, k = scene
    outs = [array(), array()]
    attached = [k.attach(counts(out), "tiny") for out in outs]
    m.call("loop", 10, 7)
    assert here(m)
    attached[0].detach()
    m.call("loop", 10, 7)
    assert here(m) and [word(out) for out in outs] == [10, 20]


@every
def test_text_that_the_guest_may_write(scene: Any) -> None:
    m, k = scene
    out = array()
    a = k.attach(counts(out), "tiny")
    m.protect(worlds.BASE, m.page_size, "rwx")
    m.call("loop", 3, 7)
    assert not here(m)
    a.detach()
    m.protect(worlds.BASE, m.page_size, "rx")
    m.call("loop", 3, 7)
    with k.attach(counts(out), "tiny"):
        m.call("loop", 3, 7)
        assert here(m)
        m.protect(worlds.BASE, m.page_size, "rwx")
        assert not here(m)
        m.call("loop", 3, 7)
    assert word(out) == 9


@every
def test_programs_in_writable_text_call_no_python(arch: str) -> None:
    """from_code() maps text that the guest may write: a program runs at a call site there, behind a jump, and a hundred
    calls more call no function of Python's more."""
    made = SUBJECTS[arch]
    m = UnicornMachine.from_code(made.code, arch=arch, base=worlds.BASE,
                                 symbols={name: (worlds.BASE + at, size) for name, (at, size) in made.functions.items()})
    assert [perms for start, end, perms in m.uc.mem_regions() if start <= worlds.BASE < end] == [unicorn.UC_PROT_ALL]
    out = array()
    with m, Kprobes(m) as k, k.attach(counts(out), "tiny") as a:
        m.call("loop", 3, 7)  # the first hit puts the jump in
        assert a.probes["main"].optimized and a.why_python == {"main": ""} and not here(m)
        few, many = called(lambda: m.call("loop", 1, 7)), called(lambda: m.call("loop", 101, 7))
        assert many - few < 50
        assert a.runs == word(out) == 3 + 2 * (1 + 101)


@every
def test_whoever_has_the_engine_may_stop_it_anywhere(scene: Any) -> None:
    """A hook of his on the same instruction: the engine calls both once more when it goes on."""
    m, k = scene
    out, stops = array(), []
    a = k.attach(counts(out), "tiny")
    m.call("loop", 5, 7)
    assert here(m)

    def hook(*_: Any) -> None:
        stops.append(a.runs)
        if len(stops) % 2:
            m.stop()

    m.uc.hook_add(unicorn.UC_HOOK_CODE, hook, None, place(m), place(m))
    assert not here(m)
    with pytest.raises(GuestStopped):
        m.call("loop", 5, 7)
    while m.regs.pc & -worlds.ROOM == worlds.BASE:
        m.run()
    assert len(stops) == 10 and a.runs == word(out) == 10


def test_an_engine_of_somebody_else_has_jumps() -> None:
    uc = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
    uc.mem_map(0x10000, 0x1000, unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
    uc.mem_write(0x10000, SUBJECTS["x86_64"].code)
    m = UnicornMachine.attach(uc, symbols={"tiny": (0x10000 + SUBJECTS["x86_64"].at["tiny"], 6)})
    with Kprobes(m) as k, k.attach(counts(out := array()), "tiny") as a:
        for _ in range(5):
            uc.emu_start(place(m), place(m) + 5)
        assert a.probes["main"].optimized and not here(m) and word(out) == 5
    uc.emu_stop()


@every
def test_bounded_runs(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They end at any instruction, and go on there."""

    def run() -> Any:
        with worlds.make_machine(arch) as m, Kprobes(m) as k:
            out, ends = array(), []
            a = k.attach(counts(out), "tiny")
            m.call("loop", 3, 7)
            for most in range(1, 30):
                try:
                    m.call("loop", 4, 7, max_insns=most)
                except GuestTimeout as error:
                    ends.append((error.pc, a.runs))
                    m.run()
            m.call("loop", 3, 7)
            return ends, a.runs, word(out)

    ends, runs, number = both(monkeypatch, run)
    assert len(ends) > 10 and runs == number == 3 + 29 * 4 + 3


@every
def test_runs_begin_and_end_there(scene: Any) -> None:
    m, k = scene
    out = array()
    a = k.attach(counts(out), "tiny")
    m.call("loop", 3, 7)
    for n in range(1, 4):
        m.run("loop", until=place(m))
        assert m.regs.pc == place(m) and a.runs == 3 * n
        m.run(place(m), until=place(m) + m.arch.decode(m.read(place(m), 16), place(m)).size)
        assert a.runs == 3 * n + 1
        m.call("loop", 2, 7)
    assert here(m)


@stopped
def test_stops_by_another_thread(scene: Any) -> None:
    m, k = scene
    out, turns, done = array(), 100_000, False
    a = k.attach(counts(out), "tiny")
    m.call("loop", 3, 7)

    def stop() -> None:
        while not done:
            time.sleep(0.0005)
            m.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    stops, total = 0, 3
    try:
        begun = time.monotonic()
        while (took := time.monotonic() - begun) < 0.5 or (stops <= 10 and took < 60):  # a busy machine's come late
            total += turns
            try:
                m.call("loop", turns, 7)
            except GuestStopped:
                stops += 1
                while m.regs.pc & -worlds.ROOM == worlds.BASE:
                    m.run()
                    stops += 1
    finally:
        done = True
        thread.join()
    assert stops > 10 and here(m)
    assert (a.runs, word(out), a.missed) == (total, total, 0)


@every
def test_a_stop_does_not_wait_for_who_has_passed(arch: str) -> None:
    """A guest that spins behind it: the engine's pc is the instruction's all the time."""
    spin = b"\xeb\xfe" if arch in ("x86_64", "i386") else bytes.fromhex("00000014")
    with code(arch, SUBJECTS[arch].filler, b"\x90" * 4 if len(spin) == 2 else b"", spin) as m, Kprobes(m) as k:
        a = k.attach(counts(array()), "f")
        for _ in range(50):  # on a busy machine the time may be over before the guest has begun
            begun, before = time.monotonic(), a.runs
            with pytest.raises(GuestTimeout):
                m.call("f", timeout=0.02)
            assert time.monotonic() - begun < 8 and a.runs <= before + 1
            if a.runs == 3:
                break
        assert here(m) and a.runs == 3


@stopped
def test_signals(scene: Any) -> None:
    m, k = scene
    out, rings = array(), []
    a = k.attach(counts(out), "tiny")
    m.call("loop", 3, 7)
    before = signal.signal(signal.SIGALRM, lambda *_: rings.append(a.runs))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for _ in range(20):
            m.call("loop", 100_000, 7)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(rings) > 5 and here(m) and a.runs == word(out) == 3 + 20 * 100_000


@every
def test_a_fault_there(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found out by executing the instruction again, which is no hit. It may be served, and then goes on."""

    def run() -> Any:
        with code(arch, bytes.fromhex(READS[arch])) as m, Kprobes(m) as k:
            out, told = array(), []
            a = k.attach(counts(out), "f")
            m.map(AT, m.page_size, "rw")
            for _ in range(3):
                m.call("f", AT)
            for _ in range(3):
                m.unmap(AT, m.page_size)
                with pytest.raises(GuestFault) as caught:
                    m.call("f", AT)
                told.append((caught.value.address, caught.value.pc, caught.value.access, m.regs.pc, a.runs))
                m.map(AT, m.page_size, "rw")
                m.run()
                told.append(a.runs)
                m.call("f", AT)
            return told, a.runs, a.missed, word(out)

    told, runs, _, number = both(monkeypatch, run)
    assert told[0][:4] == (AT, 0x10000, "read", 0x10000) and runs == number


@every
def test_a_fault_there_keeps_it(arch: str) -> None:
    with code(arch, bytes.fromhex(READS[arch])) as m, Kprobes(m) as k:
        a = k.attach(counts(array()), "f")
        m.map(AT, m.page_size, "rw")
        m.call("f", AT)
        assert here(m)
        m.unmap(AT, m.page_size)
        for n in range(3):
            with pytest.raises(GuestFault):
                m.call("f", AT)
            assert here(m) and a.runs == 2 + n


@every
def test_hits_in_a_nested_run_are_missed(scene: Any) -> None:
    """And what runs beneath a handler is counted where it should be."""
    m, k = scene
    a = k.attach(counts(out := array()), "tiny")
    m.call("loop", 3, 7)
    with k.kprobe("stores", pre_handler=lambda p, regs: m.call("loop", 5, 7) and None, optimize=False) as outer:
        m.call("stores", 4, m.alloc(64))
        assert here(m)
        m.call("loop", 3, 7)
    assert (a.runs, a.missed, word(out)) == (6, 5 * outer.nhit, 6) and outer.nhit


@every
def test_a_watchpoint_that_stops_there(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Any:
        with code(arch, bytes.fromhex(READS[arch])) as m, Kprobes(m) as k:
            out, ends, seen = array(), [], []
            a = k.attach(counts(out), "f")
            m.map(AT, m.page_size, "rw")
            m.call("f", AT)

            def watch(*_: Any) -> None:
                seen.append(m.regs.pc)
                if len(seen) % 2:
                    m.stop()

            with k.watchpoint(AT, 4, "r", watch):
                for _ in range(3):
                    try:
                        m.call("f", AT)
                    except GuestStopped:
                        ends.append(a.runs)
                        # in place the next block of code is f's caller, else f's rest
                        while m.regs.pc & -m.page_size == 0x10000:
                            m.run()
            m.call("f", AT)
            return ends, seen, a.runs, word(out)

    ends, _, runs, number = both(monkeypatch, run)
    assert ends and runs == number


@every
@pytest.mark.parametrize("way", ["stop", "raise"])
def test_a_device_that_stops_there(arch: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Any:
        with code(arch, bytes.fromhex(READS[arch])) as m, Kprobes(m) as k:
            out, seen, ends = array(), [], []
            a = k.attach(counts(out), "f")

            def read(offset: int, size: int) -> int:
                seen.append(a.runs)
                if len(seen) % 3 == 1:
                    if way == "raise":
                        raise ValueError
                    m.stop()
                return 5

            m.mmio(AT, m.page_size, read)
            for _ in range(6):
                try:
                    m.call("f", AT)
                except (GuestStopped, ValueError) as error:
                    ends.append(type(error))
                    while m.regs.pc & -m.page_size == 0x10000:
                        m.run()
            return bool(ends), a.runs, word(out), a.missed

    assert both(monkeypatch, run) == (True, 6, 6, 0)


@every
def test_going_back(scene: Any) -> None:
    """To a time before it was in place, and to one when it was."""
    m, k = scene
    out = array()
    snapshots = [m.snapshot()]
    a = k.attach(counts(out), "tiny")
    snapshots.append(m.snapshot())
    m.call("loop", 3, 7)
    snapshots.append(m.snapshot())
    for n, then in enumerate((*snapshots, *reversed(snapshots)), 1):
        m.restore(then)
        m.call("loop", 2, 7)
        assert a.runs == word(out) == 3 + 2 * n and m.read(place(m), 4) == SUBJECTS[m.arch.name].code[
            place(m) - worlds.BASE:][:4]
    a.detach()
    m.restore(snapshots[2])
    m.call("loop", 2, 7)
    assert word(out) == 15 and not here(m)


@every
def test_the_owner_writes_there(scene: Any) -> None:
    m, k = scene
    a = k.attach(counts(out := array()), "tiny")
    m.call("loop", 3, 7)
    original = m.read(place(m), 4)
    m.write(place(m), original)
    m.call("loop", 3, 7)
    assert a.runs == word(out) == 6
    k.close()
    assert not here(m) and m.read(place(m), 4) == original
    m.call("loop", 3, 7)
    assert word(out) == 6


@pytest.mark.parametrize("arch", ["x86_64", "i386"])
@pytest.mark.parametrize("prefix", ["f3", "f2", "66f3", "2ef3"])
def test_repeated_instructions_count_once(arch: str, prefix: str) -> None:
    """A hook of its own would be called for each element."""
    with code(arch, bytes.fromhex(prefix), b"\xae\x90\x90\x90\x90\xc3") as m, Kprobes(m) as k:  # scas
        a = k.attach(counts(out := array()), "f")
        data = m.alloc(256)
        for n in range(1, 4):
            wide = "r" if arch == "x86_64" else "e"
            for name, value in ((f"{wide}cx", 20), (f"{wide}di", data)):
                m.regs[name] = value
            m.call("f")
            assert not here(m) and a.runs == word(out) == n


@every
def test_the_clock_of_instructions_is_exact(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Any:
        with worlds.make_machine(arch) as m, Kprobes(m) as k:
            a = k.attach(counts(out := array()), "tiny")
            m.call("loop", 3, 7)
            with k.trace("p:t tiny", clock="instructions") as t:
                m.call("loop", 3, 7)
            m.call("loop", 3, 7)
            return a.runs, word(out), len(t)

    assert both(monkeypatch, run)[:2] == (9, 9)


@every
def test_a_handler_elsewhere_changes_things(scene: Any) -> None:
    """A breakpoint's handler detaches, attaches, and asks for the engine, in the middle of the run."""
    m, k = scene
    out, attached = array(), [k.attach(counts(array()), "tiny")]
    m.call("loop", 3, 7)
    assert here(m)

    def change(p: Kprobe, regs: Any) -> None:
        attached.pop().detach()
        attached.append(k.attach(counts(out), "tiny"))

    with k.kprobe("loop", pre_handler=change, optimize=False):
        for n in range(1, 4):
            assert m.call("loop", 1, 7) == 8
            assert word(out) == n
    m.call("loop", 4, 7)
    assert word(out) == 7 and here(m)
