"""A stop by another thread finds no instruction half done: what goes on afterwards ends as what was never stopped."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from arches import RUNNABLE, integer, limits, programs_of
from unicorn import UC_HOOK_BLOCK, UC_HOOK_CODE, UC_HOOK_MEM_WRITE

from kprobes import GuestFault, GuestStopped, GuestTimeout, Kprobes, UnicornMachine
from kprobes.machine.unicorn.host import outside

#: loops of an instruction that is wrong if it is executed twice
LOOPS = {
    "x86_64": "31c0 57 ffc0 48ff0c24 75f8 5f c3",  # inc eax; dec qword [rsp]; jne
    "i386": "31c0 ff742404 40 ff0c24 75fa 5a c3",
    "arm64": "e80301aa 000040f9 080500f1 c1ffff54 c0035fd6",  # ldr x0, [x0]; subs x8, x8, #1; b.ne
}
BOUND, WORD = 10**9, (1 << 32) - 1
BOUNDS = (None, BOUND)


def heard(m: UnicornMachine) -> bool:
    """Whether another thread asks, in place of stopping the engine itself."""
    return m.parts.memory.engine.outside is not None


def exact(arch: str, bound: int | None) -> None:
    """Skips the test where stops may find an instruction half done: see docs/engine.md."""
    with UnicornMachine.from_code(b"", arch=arch) as m:
        if not heard(m) and bound is None:
            pytest.skip("without host code")


@contextmanager
def stopped(m: UnicornMachine) -> Iterator[Callable[[], int]]:
    """Another thread stops the machine all the time; how often it has."""
    over, count = threading.Event(), 0

    def stop() -> None:
        nonlocal count
        while not over.wait(3e-4):
            m.stop()
            count += 1

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield lambda: count
    finally:
        over.set()
        thread.join()


def stop_soon(m: UnicornMachine) -> None:
    """Another thread stops the machine once, when it runs."""

    def stop() -> None:
        while not m.parts.state.runs_in:
            time.sleep(1e-3)
        m.stop()

    threading.Thread(target=stop, daemon=True).start()


def finished(m: UnicornMachine, function: str | int, *args: int, max_insns: int | None = None) -> int:
    """A call that goes on however often it is stopped."""
    try:
        return m.call(function, *args, max_insns=max_insns)
    except GuestStopped:
        while m.regs.pc != m.parts.state.exit:
            m.run(max_insns=max_insns)
        return m.regs.return_value


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("arch", LOOPS)
def test_an_instruction_is_executed_once(arch: str, bound: int | None) -> None:
    exact(arch, bound)
    times = 100_000 if bound is None else 2000
    with UnicornMachine.from_code(bytes.fromhex(LOOPS[arch]), arch=arch) as m:
        ring = m.alloc(24)
        m.write(ring, b"".join(at.to_bytes(8, "little") for at in (ring + 8, ring + 16, ring)))
        args = (ring, times) if arch == "arm64" else (times,)
        right = ring + 8 * (times % 3) if arch == "arm64" else times
        with stopped(m) as stops:
            while stops() < 100:
                assert finished(m, 0x10000, *args, max_insns=bound) == right


@pytest.mark.host_code
@pytest.mark.parametrize("arch", LOOPS)
def test_wherever_the_engine_is(arch: str) -> None:
    """Its code names the engine, and calls the library, as is shortest from where they are: an engine that a thread has
    made is near its code, that of one of many is far from the library."""
    machines: list[UnicornMachine] = []

    def make() -> None:
        machines.extend(UnicornMachine.from_code(bytes.fromhex(LOOPS[arch]), arch=arch) for _ in range(6))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    for m in (machines[0], machines[-1]):
        ring = m.alloc(8)
        m.write(ring, ring.to_bytes(8, "little"))
        args, right = ((ring, 50_000), ring) if arch == "arm64" else ((50_000,), 50_000)
        with stopped(m) as stops:
            while stops() < 40:
                assert finished(m, 0x10000, *args) == right


@pytest.mark.parametrize(("path", "bound"), [
    pytest.param(path, bound, id=f"{path.stem}-{'bounded' if bound else 'free'}") for arch in RUNNABLE
    for path in programs_of(arch) if path.stem.endswith("-O0")
    for bound in BOUNDS if not (bound and arch.startswith("sparc"))])  # SPARC's engine cannot count
def test_programs_end_as_without_stops(path: Path, bound: int | None) -> None:
    test = next(name for name in ("test_quicksort", "test_mutual") if name not in limits(path.stem))
    with UnicornMachine.load(path) as m:
        exact(m.arch.name, bound)
        argument = integer(m.arch, 1000)
        right = m.call(test, argument) & WORD
        with stopped(m) as stops:
            while stops() < 10:
                assert finished(m, test, argument, max_insns=bound) & WORD == right


@pytest.mark.host_code
@pytest.mark.parametrize("arch", RUNNABLE)
def test_every_guest_is_heard(arch: str) -> None:
    with UnicornMachine.from_code(b"", arch=arch) as m:
        assert heard(m)


def rounds(m: UnicornMachine, whose: str, times: int) -> int:
    """What a loop of one of LOOPS counts to, run by m.call() or by the owner's own uc.emu_start()."""
    if whose == "ours":
        return m.call(0x10000, times)
    sp, word = m.alloc(0x100) + 0x80, m.arch.bits // 8
    m.write(sp, (0).to_bytes(word, "little") + times.to_bytes(word, "little"))
    m.regs[m.arch.regs.sp], m.regs["rdi" if word == 8 else "edi"] = sp, times
    m.uc.emu_start(0x10000, 0x1000B if word == 8 else 0x1000C)
    return m.regs["rax" if word == 8 else "eax"]


@pytest.mark.host_code
@pytest.mark.parametrize("whose", ["ours", "attached"])
@pytest.mark.parametrize("arch", ["x86_64", "i386"])
def test_signals_that_are_served_meanwhile(arch: str, whose: str) -> None:
    served = 0

    def on_alarm(number: int, frame: object) -> None:
        nonlocal served
        served += 1

    with (UnicornMachine.from_code(bytes.fromhex(LOOPS[arch]), arch=arch) as owner,
          UnicornMachine.attach(owner.uc) if whose == "attached" else owner as m, Kprobes(m)):
        before = signal.signal(signal.SIGALRM, on_alarm)
        signal.setitimer(signal.ITIMER_REAL, 5e-4, 5e-4)
        try:
            while served < 100:
                assert rounds(m, whose, 1_000_000) == 1_000_000
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


@pytest.mark.host_code
def test_time_that_is_up() -> None:
    with UnicornMachine.from_code(bytes.fromhex(LOOPS["x86_64"]), arch="x86_64") as m:
        m.regs["rdi"], ends = 10_000_000, 0
        while m.regs.pc != 0x1000B:
            try:
                m.run(None if ends else 0x10000, until=0x1000B, timeout=2e-3)
            except GuestTimeout:
                ends += 1
        assert m.regs["rax"] == 10_000_000 and ends


@pytest.mark.host_code
@pytest.mark.parametrize("code", ["ffc0 890425 00000000 ffc0 ffc0 c3", "ffc0 8b0c25 00000000 ffc0 ffc0 c3"],
                         ids=["store", "load"])
def test_an_access_that_fails_ends_the_block_while_somebody_asks(code: str) -> None:
    """Whoever asks from the first block on: none of them goes on behind the access."""
    with UnicornMachine.from_code(bytes.fromhex(code), arch="x86_64") as m:
        asks = m.parts.memory.engine.outside
        assert asks is not None
        for _ in range(20):
            m.regs["rax"] = 0
            hook = m.uc.hook_add(UC_HOOK_CODE, lambda *_: asks.ask(), None, 0x10000, 0x10000)
            with pytest.raises(GuestFault) as fault:
                m.run(0x10000)
            m.uc.hook_del(hook)
            assert (fault.value.pc, fault.value.address, m.regs["rax"]) == (0x10002, 0, 1)


@pytest.mark.host_code
@pytest.mark.parametrize(("kind", "place", "counted"), [(UC_HOOK_CODE, 0x10002, 1), (UC_HOOK_MEM_WRITE, 0, 2)],
                         ids=["code", "write"])
def test_a_hook_of_the_owner_stops_where_it_is_while_somebody_asks(kind: int, place: int, counted: int) -> None:
    with UnicornMachine.from_code(bytes.fromhex("ffc0 ffc0 894424f8 ffc0 ffc0 c3"), arch="x86_64") as m:
        asks = m.parts.memory.engine.outside
        assert asks is not None

        def stop(*_: object) -> None:
            asks.ask()
            m.stop()

        m.uc.hook_add(kind, stop, None, place or 1, place)
        m.regs["rax"] = 0
        m.run(0x10000)
        assert m.regs["rax"] == counted


@pytest.mark.host_code
def test_who_asks_before_the_run_begins_is_heard() -> None:
    """Between saying why and the engine's start there is no moment that loses it."""
    with UnicornMachine.from_code(bytes.fromhex("ebfe"), arch="x86_64") as m:
        start, engine = m.parts.starts.start, m.parts.memory.engine

        def late(begin: int, until: int) -> int:
            thread = threading.Thread(target=m.stop)
            thread.start()
            thread.join()
            return start(begin, until)

        m.parts.starts.start = late  # type: ignore[method-assign]
        begun = time.monotonic()
        m.run(0x10000, timeout=60)
        assert time.monotonic() - begun < 50 and engine.outside is not None and not m.parts.state.why_stopped


def by_another_thread(stop: Callable[[], None]) -> None:
    thread = threading.Thread(target=stop)
    thread.start()
    thread.join()


@contextmanager
def asked_to_stop(machine: UnicornMachine) -> Iterator[None]:
    """Another thread asks the machine to stop every 5 ms: the first time may be before it runs. Not after 5 seconds."""
    begun, over = time.monotonic(), threading.Event()

    def ask() -> None:
        while not over.wait(0.005):
            machine.stop()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()
    assert time.monotonic() - begun < 5


def test_one_engine_has_one_row() -> None:
    """Two machines of one engine share what another thread's request is noted in, until the last of them ends."""
    for _ in range(40):  # which of two rows host code finds first was up to chance
        with (UnicornMachine.from_code(bytes.fromhex("ebfe"), arch="x86_64") as owner,
              UnicornMachine.attach(owner.uc) as second, Kprobes(second)):
            if second.parts.state._engine.outside is None:
                pytest.skip("no host code")
            with asked_to_stop(second):
                second.uc.emu_start(0x10000, 0, 10_000_000)
    with UnicornMachine.from_code(bytes.fromhex("ebfe"), arch="x86_64") as owner:
        with UnicornMachine.attach(owner.uc) as second:
            assert second.arch is owner.arch
        with asked_to_stop(owner):
            owner.run(0x10000, timeout=10)


@pytest.mark.parametrize("how", ["call", "run", "emu_start"])
def test_who_asks_between_a_calls_begin_and_its_first_instruction_is_heard(how: str) -> None:
    with (UnicornMachine.from_code(bytes.fromhex("ebfe"), arch="x86_64") as owner,
          UnicornMachine.attach(owner.uc) if how == "emu_start" else owner as m, Kprobes(m)):
        runner = m.parts.runner
        enter = runner.enter

        def late(target: int) -> None:
            by_another_thread(m.stop)
            enter(target)

        runner.enter = late  # type: ignore[method-assign]
        begun = time.monotonic()
        if how == "call":
            with pytest.raises(GuestStopped):
                m.call(0x10000, timeout=60)
        elif how == "run":
            m.run(0x10000, timeout=60)
        else:
            m.uc.emu_start(0x10000, 0, 60_000_000)
        assert m.regs.pc == 0x10000 and not m.parts.state.why_stopped
        assert time.monotonic() - begun < 50


@pytest.mark.parametrize("when", ["stretch", "timer"])
def test_who_asks_between_two_stretches_of_a_run_is_heard(when: str) -> None:
    """A run whose guest takes interrupts goes in stretches."""
    with UnicornMachine.from_code(bytes.fromhex("000000ea fdffffea feffffea"), arch="arm") as m:
        begun = 0

        def stop_once() -> None:
            nonlocal begun
            begun += 1
            if begun == 3:
                by_another_thread(m.stop)

        if when == "timer":
            def again() -> None:
                stop_once()
                m.interrupts.after(10, again)

            m.interrupts.after(10, again)
        else:
            m.interrupts.every(10, "irq")  # masked: it stays pending
            begin = m.interrupts.begin_stretch

            def begin_stretch(target: int, most: int | None) -> tuple[int, int]:
                stop_once()
                return begin(target, most)

            m.interrupts.begin_stretch = begin_stretch  # type: ignore[method-assign]
        m.run(0x10000, timeout=60)
        assert begun == 3


def test_a_timer_stops_a_cpu_that_sleeps() -> None:
    with UnicornMachine.from_code(bytes.fromhex("f4"), arch="x86_64") as m:  # hlt
        m.interrupts.after(1000, m.stop)
        m.run(0x10000, timeout=60)
        assert m.regs.pc == 0x10001


@pytest.mark.parametrize("kinds", [[UC_HOOK_BLOCK], [UC_HOOK_BLOCK] * 3, [UC_HOOK_CODE], [UC_HOOK_BLOCK, UC_HOOK_CODE]],
                         ids=["block", "blocks", "code", "both"])
@pytest.mark.parametrize("arch", RUNNABLE)
def test_who_is_hooked_comes_out(arch: str, kinds: list[int]) -> None:
    """Hooks of the owner stand in front of where a block looks first."""
    with UnicornMachine.from_code(bytes(0x100), arch=arch) as m:
        mode = min(m.arch.traps.end)
        jump = m.arch.jump_in(mode)
        assert jump is not None
        m.write(0x10000, jump.encode(0x10000, 0x10000))
        for kind in kinds:
            if kind == UC_HOOK_BLOCK or m.guest.blocks.hooked_delay_slots:
                m.uc.hook_add(kind, lambda *_: None)
        stop_soon(m)
        m.run(0x10000 | mode, timeout=60)
        assert m.regs.pc in range(0x10000, 0x10010)


@pytest.mark.host_code
def test_many_engines_come_and_go() -> None:
    """More than there are rows at once; a row is free when its engine has gone."""
    machines = [UnicornMachine.from_code(bytes.fromhex("ebfe"), arch="x86_64") for _ in range(outside.AT_ONCE + 8)]
    for m in (machines[0], machines[-1]):
        stop_soon(m)
        m.run(0x10000, timeout=60)
    rows = [m.parts.memory.engine.outside._row for m in machines]  # type: ignore[union-attr]
    assert len({id(row) for row in rows}) == len(machines)
    for m in machines:
        m.close()
    del machines, m
    gc.collect()
    assert all(any(row is free for free in outside._free) for row in rows)


@pytest.mark.host_code
def test_a_machine_without_host_code_tells_nothing_of_later_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    exact("x86_64", None)
    monkeypatch.setattr("kprobes.machine.unicorn.selftest._heard", {})
    with monkeypatch.context() as patch:
        patch.setattr("kprobes.machine.unicorn.host.hostcode.available", lambda: False)
        with UnicornMachine.from_code(b"\xc3", arch="x86_64") as m:
            assert not heard(m)
    with UnicornMachine.from_code(b"\xc3", arch="x86_64") as m:
        assert heard(m)
