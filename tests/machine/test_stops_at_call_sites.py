"""Stops by another thread at every point around a call site: nothing is served twice, nothing is left out.

Behind a CODE hook the engine looks whether it was stopped; then it executes the instruction, hook and all, once more
when it goes on. A hook behind ours makes that window as long as the test likes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from arches import RUNNABLE, integer, limits, programs_of
from scenes import unicorn_machine
from unicorn import unicorn_const

from kprobes import GuestStopped, Kprobe, KprobeError, Kprobes, Kretprobe, UnicornMachine
from kprobes.machine.unicorn.areas import CALL_AREA
from kprobes.machine.unicorn.host import hostcode, outside
from kprobes.testing import functions

#: functions of the compiled programs that call others often, and how many stops there are in a run
TESTS, STOPS = ("test_mutual", "test_tail_calls", "test_quicksort"), 14
KINDS: dict[str, Callable[[int], Any]] = {
    "counted": lambda addr: Kprobe(addr=addr),
    "handled": lambda addr: Kprobe(addr=addr, pre_handler=lambda p, regs: None),
    "followed": lambda addr: Kretprobe(addr=addr, handler=lambda ri, regs: None),
    "asked": lambda addr: Kretprobe(addr=addr, handler=lambda ri, regs: None, entry_handler=lambda ri, regs: 0),
    "boosted": lambda addr: Kprobe(addr=addr, pre_handler=lambda p, regs: None, optimize=False),
    "stepped": lambda addr: Kprobe(addr=addr, post_handler=lambda p, regs, flags: None),
}
WAYS = ("host", "python")
#: everywhere what is served in each way; all of it where it is cheap
CASES = [pytest.param(path, way, kind, id=f"{path.stem}-{way}-{kind}")
         for arch in RUNNABLE for path in programs_of(arch) if path.stem.endswith("-O2")
         for way, kind in product(WAYS, KINDS) if arch in ("x86_64", "arm64") or (way, kind) in (
             ("host", "asked"), ("python", "followed"))]


class Stopper:
    """A thread that stops a machine while a hook waits, and until the hook has worked for long enough behind that."""

    def __init__(self, m: UnicornMachine) -> None:
        self.m, self._asked, self._over = m, threading.Semaphore(0), False
        self.every, self.seen, self.stops = 0, 0, 0
        self.thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while self._asked.acquire() and not self._over:
            self.m.stop()

    def __enter__(self) -> Stopper:
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over = True
        self._asked.release()
        self.thread.join()

    def at(self, *_: object) -> None:
        """A point. At some of them the other thread stops the run: it has said so when this returns, and has had time
        for more."""
        state = self.m.parts.state
        if state.resting or state.why_stopped:
            return
        self.seen += 1
        if not self.every or self.seen % self.every:
            return
        self.stops += 1
        self._asked.release()
        while not state.why_stopped:
            time.sleep(0)
        begun = time.thread_time()
        while time.thread_time() - begun < 0.003:
            time.sleep(0)  # the other thread goes on, too


def no_host_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on: the other thread stops the engine itself, and Python serves call sites."""
    monkeypatch.setattr(hostcode, "available", lambda: False)
    monkeypatch.setattr(outside, "_standing", lambda: False)


def run(m: UnicornMachine, test: str, argument: int) -> int:
    """A call that goes on however often it is stopped."""
    try:
        return m.call(test, argument)
    except GuestStopped:
        while m.regs.pc != m.parts.state.exit:
            m.run()
        return m.regs.return_value & (1 << 32) - 1


@contextmanager
def hooked(m: UnicornMachine, point: Callable[..., None], ranges: list[tuple[int, int]]) -> Iterator[None]:
    """A hook of the machine's owner: where ours is there already, behind it."""
    hooks = [m.uc.hook_add(unicorn_const.UC_HOOK_CODE, point, begin=start, end=end - 1) for start, end in ranges]
    m.parts.memory.engine.retranslate()  # the only hook of an instruction is called by the translation itself
    yield
    for hook in hooks:
        m.uc.hook_del(hook)


def areas(m: UnicornMachine, k: Kprobes) -> list[tuple[int, int]]:
    """Call areas; slots as well, where a hook does no harm there."""
    starts = {call & -CALL_AREA for call in m.parts.state.services}
    calls = [(start, start + CALL_AREA) for start in sorted(starts)]
    return calls + (k._rooms.slots.ranges if m.guest.blocks.hooked_delay_slots else [])


@pytest.mark.parametrize(("path", "way", "kind"), CASES)
def test_behind_what_was_served(path: Path, way: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The window itself: served, not left yet. Every function of a program is probed."""
    if way == "python":
        no_host_code(monkeypatch)
    test = next(t for t in TESTS if t not in limits(path.stem))
    with UnicornMachine.load(path) as m, Kprobes(m) as k, Stopper(m) as stopper:
        probes = []
        for symbol in functions(m):
            code = m.arch.pointers.code_address(symbol.address | symbol.mode, m.read)
            with suppress(KprobeError):
                k.register(p := KINDS[kind](code.place(0)))
                probes.append(p)
        assert len(probes) > 10
        argument = integer(m.arch, 1000)
        want = [m.call(test, argument) for _ in range(2)][1] & (1 << 32) - 1
        with hooked(m, stopper.at, areas(m, k)):
            stopper.seen = 0
            before = [(p.nhit, p.nmissed, getattr(p, "nreturned", 0)) for p in probes]
            assert m.call(test, argument) & (1 << 32) - 1 == want
            after = [(p.nhit, p.nmissed, getattr(p, "nreturned", 0)) for p in probes]
            points = stopper.seen  # few where entries are simulated: they visit no slot
            stopper.every = max(points // STOPS, 1) | 1
            plain = [b - a for two in zip(before, after, strict=True) for a, b in zip(*two, strict=True)]
            for _ in range(3):
                assert run(m, test, argument) == want
                again = [(p.nhit, p.nmissed, getattr(p, "nreturned", 0)) for p in probes]
                stopped = [b - a for two in zip(after, again, strict=True) for a, b in zip(*two, strict=True)]
                # An instruction with several hooks may run without any between the two stores of uc_emu_stop
                # (docs/engine.md), if the thread loses its processor there: then something was left out. Try again.
                if way == "host" or stopped == plain or any(more > less for more, less in zip(stopped, plain, strict=True)):
                    break
                after = again
        assert stopper.stops >= min(points // 2, 4) > 0 or kind in ("boosted", "stepped")
        assert stopped == plain


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
@pytest.mark.parametrize("where", ["entry", "pre", "return"])
def test_a_handler_may_wait_for_who_stops_the_run(arch: str, way: str, where: str,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own end sees to the stop."""
    if way == "python":
        no_host_code(monkeypatch)
    with unicorn_machine(arch) as m, Kprobes(m) as k:
        def wait(*_: object) -> None:
            if m.regs.arg(0) == 5 or where == "return":
                thread = threading.Thread(target=m.stop)
                thread.start()
                thread.join()

        probe: Any = {"entry": Kretprobe(symbol_name="inc", handler=lambda ri, regs: None, entry_handler=wait),
                      "pre": Kprobe(symbol_name="inc", pre_handler=wait),
                      "return": Kretprobe(symbol_name="inc", handler=wait)}[where]
        k.register(probe)
        begun = time.monotonic()
        assert [run(m, "inc", n) for n in (1, 5, 6, 5)] == [2, 6, 7, 6]
        assert probe.nhit == getattr(probe, "nreturned", 4) == 4
        assert time.monotonic() - begun < 8  # a stop that waits does so for 10



def straight(m: UnicornMachine) -> Iterator[tuple[int, int, int]]:
    """(Start, end, mode) of code in the program that has room for a jump, and goes straight on."""
    for symbol in functions(m):
        code = m.arch.pointers.code_address(symbol.address | symbol.mode, m.read)
        start = at = code.place(0)
        while at - start < m.arch.jump_in(symbol.mode).size:
            insn = m.arch.decode(m.read(at, m.arch.max_insn), at | symbol.mode)
            if insn.simulate is not None or insn.target is not None or insn.indirect or insn.reject:
                break
            at = insn.next
        else:
            yield start, at, symbol.mode


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", [pytest.param(case.values[0], id=case.values[0].stem) for case in CASES
                                  if case.values[1:] == ("host", "counted")])
def test_who_has_left_the_last_call_site_is_stopped_at_once(path: Path, way: str,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind it the guest goes round in one block of the engine's that never writes pc: a jump to itself."""
    if way == "python":
        no_host_code(monkeypatch)
    with UnicornMachine.load(path) as m:
        for start, end, mode in straight(m):
            m.write(end, m.arch.jump_in(mode).encode(end, end))  # type: ignore[union-attr]
            with Kprobes(m) as k:
                if not (why := k.check(start).why_not_optimized):
                    break
        assert not why
        with Kprobes(m) as k:
            k.register(p := Kprobe(addr=start))
            for _ in range(2):
                m.run(start | mode, until=end)
            assert p.optimized and p.nhit == 2
            took = []

            def stop() -> None:
                while p.nhit < 3:
                    time.sleep(0.001)
                took.append(-time.monotonic())
                m.stop()
                took[0] += time.monotonic()

            thread = threading.Thread(target=stop)
            thread.start()
            m.run(start | mode, timeout=60)
            thread.join()
            assert took[0] < 8 and (p.nhit, p.nmissed) == (3, 0) and end <= m.regs.pc < end + 8
