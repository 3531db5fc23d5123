"""Runs that `usualruns` serves end as those that Runner.run() serves, whatever happens in them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from arches import NO_PROGRAMS, RUNNABLE, programs_of
from scenes import Scene
from subjects import SUBJECTS

from kprobes import (
    GuestFault,
    GuestStopped,
    Kprobe,
    KprobeError,
    Kprobes,
    Kretprobe,
    NotRegistered,
    Regs,
    UnicornMachine,
)

BASE = 0x10000


class Boom(Exception):
    """What a handler raises."""


def plainly(scene: Scene) -> None:
    scene.m.call("deep", 5)


def fault(scene: Scene) -> None:
    scene.m.call("fetch", scene.unmapped)


def probed(handler: Callable[[Scene, Any], object], function: str = "deep", at: str = "inc") -> Callable[[Scene], None]:
    """Return a deed: a call in which a probe's handler is called."""

    def deed(scene: Scene) -> None:
        probe = Kprobe(symbol_name=at, pre_handler=lambda p, regs: handler(scene, regs))
        scene.k.register(probe)
        try:
            scene.m.call(function, 5)
        finally:
            with suppress(NotRegistered):  # a handler has done it
                scene.k.unregister(probe)
            scene.lines.append(f"{probe.nhit} hits, {probe.nmissed} missed")

    return deed


def boom(_scene: Scene | None, _regs: object) -> None:
    raise Boom("in a handler")


def interrupt(_scene: Scene, _regs: object) -> None:
    signal.raise_signal(signal.SIGINT)


def stop_by_another_thread(scene: Scene, _regs: object) -> None:
    thread = threading.Thread(target=scene.m.stop)
    thread.start()
    thread.join(0.05)


def return_probe(scene: Scene) -> None:
    probe = Kretprobe(symbol_name="twice", handler=lambda ri, regs: scene.lines.append(hex(regs.return_value)))
    scene.k.register(probe)
    try:
        scene.m.call("deep", 5)
        scene.m.call("guard", 5)
    finally:
        scene.k.unregister(probe)


def told(scene: Scene) -> None:
    """Each run is told of, and the first is stopped before it begins."""
    scene.k.close()
    asked = iter((True, False))

    def before() -> None:
        scene.lines.append("a run begins")
        if next(asked):
            scene.m.stop()

    scene.m.before_run = before
    try:
        for _ in range(2):
            try:
                scene.lines.append(hex(scene.m.call("deep", 5)))
            except Exception as error:
                scene.lines.append(repr(error))
    finally:
        scene.m.before_run = None


def told_and_raising(scene: Scene) -> None:
    scene.k.close()
    scene.m.before_run = lambda: boom(scene, None)
    try:
        scene.m.call("deep", 5)
    finally:
        scene.m.before_run = None


def unregistering(scene: Scene) -> None:
    probe = Kprobe(symbol_name="inc", pre_handler=lambda p, regs: scene.k.unregister(p))
    scene.k.register(probe)
    scene.m.call("deep", 5)


DEEDS = {
    "plain": plainly, "fault": fault, "handler": probed(lambda s, r: s.lines.append(f"{r.arg(0)} {s.m.parts.state.phase}")),
    "raising": probed(boom), "stop": probed(lambda s, r: s.m.stop()),
    "nested": probed(lambda s, r: s.lines.append(hex(s.m.call("twice", 1)))),
    "nested fault": probed(lambda s, r: fault(s)), "sent": probed(lambda s, r: r.go(s.m.symbols["hop"].address)),
    "sent at the end": probed(lambda s, r: r.go(s.m.exit_address)),
    "unregistering": unregistering,
    "fault behind a probe": probed(lambda s, r: None, "fetch", "fetch"), "return probe": return_probe,
    "told": told, "told, raising": told_and_raising,
}


def state_of(scene: Scene) -> dict[str, object]:
    """What a run leaves behind, as far as it is no object of its own."""
    state = scene.m.parts.state
    names = ("depth", "end", "why_stopped", "parked", "raised", "interrupt", "mended", "hits_to_python", "skip", "hooked",
             "unfinished", "failed", "runs_in", "translated_end")
    return {name: getattr(state, name) for name in names} | {
        "stopped": scene.m.parts.memory.engine.stopped, "pc": scene.m.regs.pc, "sp": scene.m.regs.sp,
        "held": scene.m.parts.runner.signals.held}


def done(arch: str, deed: Callable[[Scene], None], quickly: bool) -> list[object]:
    """Do it three times, and let other runs follow; return what was seen."""
    scene = Scene(arch)
    seen: list[object] = []
    if not quickly:
        scene.m.parts.runner.usual = None
    try:
        for _ in range(3):
            try:
                deed(scene)
            except (Exception, KeyboardInterrupt) as error:
                seen.append((type(error), str(error)))
            seen += [state_of(scene), *scene.lines]
            scene.lines.clear()
            seen += [scene.m.call("deep", 7), state_of(scene)]
    finally:
        scene.k.close()
        scene.m.close()
    return seen


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_both_do_the_same(arch: str, deed: Callable[[Scene], None]) -> None:
    assert done(arch, deed, True) == done(arch, deed, False)


class Run:
    """A compiled program of some architecture, and what was seen of it."""

    def __init__(self, arch: str, quickly: bool) -> None:
        self.m = UnicornMachine.load(programs_of(arch)[-1])
        self.k = Kprobes(self.m)
        self.seen: list[object] = []
        if not quickly:
            self.m.parts.runner.usual = None

    def call(self, function: str | int, *args: int) -> None:
        """Call a function; note its result or what it raises, and what it leaves behind."""
        try:
            self.seen.append(self.m.call(function, *args))
        except (KprobeError, Boom) as error:
            self.seen.append((type(error), str(error)))
        m, state = self.m, self.m.parts.state
        self.seen += [{name: getattr(state, name) for name in LEFT}, m.regs.pc, m.regs.sp, m.parts.memory.engine.stopped,
                      m.parts.runner.signals.held]

    def probed(self, function: str, handler: Callable[[Regs], object]) -> None:
        """Call fib(3) with a probe on a function, and once more without."""
        probe = Kprobe(symbol_name=function, pre_handler=lambda p, regs: handler(regs) and None)
        self.k.register(probe)
        self.call("fib", 3)
        self.call("fib", 3)
        self.k.unregister(probe)
        self.seen += [probe.nhit, probe.nmissed]
        self.call("fib", 4)


LEFT = ("depth", "end", "why_stopped", "parked", "raised", "interrupt", "mended", "hits_to_python", "skip", "hooked",
        "unfinished", "failed", "runs_in", "translated_end")


def everything(arch: str, quickly: bool) -> list[object]:
    """Runs that end, fail, are stopped, nest others, or are sent to their end."""
    run = Run(arch, quickly)
    with run.m, run.k as k:
        m = run.m
        undefined = m.alloc(64)
        for _ in range(3):
            run.call("fib", 5)
            run.call(undefined)  # a fetch of data
            run.call("crc32", 0, 8, 4)  # a load that does
        m.map(ELSEWHERE, m.page_size, "rx")
        m.write(ELSEWHERE, m.arch.end_bytes(min(m.arch.traps.end)) * 4)
        for _ in range(2):
            run.call(ELSEWHERE)  # a trap of the guest's own, which ends no run
            run.call("fib", 5)
        run.probed("fib", lambda regs: None)
        run.probed("fib", lambda regs: m.stop())
        run.probed("fib", lambda regs: boom(None, regs))
        run.probed("fib", lambda regs: run.seen.append(m.call("fib", 2)))
        run.probed("fib", lambda regs: suppressed(lambda: m.call("crc32", 0, 8, 4)))
        run.probed("fib", lambda regs: regs.go(m.exit_address))
        with k.kretprobe("fib", handler=lambda ri, regs: run.seen.append(regs.return_value)):
            run.call("fib", 4)
        run.call("fib", 3)
        # there is no trap at the end, but an instruction that does nothing; then there is one again
        end, filler = m.exit_address & ~m.arch.pointers.mode_bits, SUBJECTS[arch].filler
        kept = m.read(end, len(filler))
        m.parts.memory.patch(end, filler)
        run.call("fib", 3)
        m.parts.memory.patch(end, kept)
        run.call("fib", 3)
    return run.seen


def suppressed(act: Callable[[], object]) -> None:
    with suppress(KprobeError):
        act()


ELSEWHERE = 0x3000_0000


@pytest.mark.quick
@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_both_do_the_same_on_every_architecture(arch: str) -> None:
    assert everything(arch, True) == everything(arch, False)


@pytest.mark.quick
@pytest.mark.parametrize("arch", ["sparc", "sparc64"])
def test_a_pending_branch_stays_pending(arch: str) -> None:
    """A run that begins in a delay slot goes on where the branch leads to. A start of the engine forgets that."""
    adds = bytes.fromhex("90022001" "01000000" "90022010" "81c3e008" "01000000")  # o0 += 1; nop; o0 += 16; retl; nop
    with UnicornMachine.from_code(adds, arch=arch, base=BASE, symbols={"adds": BASE}) as m:
        assert [m.call("adds", 0), m.call("adds", 5)] == [17, 22]
        pair, linkage = m.parts.calls._cpu.pair, m.arch.linkage
        assert pair is not None and linkage is not None
        for slot, target, result in ((0, 8, 17), (0, 4, 17), (0, 12, 1), (8, 0, 33)):
            m.regs["o0"] = 0
            m.regs["o7"] = m.exit_address - linkage.bias
            pair[0], pair[1] = BASE + slot, BASE + target
            m.run()
            assert m.regs["o0"] == result


@pytest.mark.quick
@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_brief_call_is_a_usual_run(arch: str) -> None:
    """Everywhere: also where a trap ends runs, and where the engine has a next pc."""
    made = SUBJECTS[arch]
    with UnicornMachine.from_code(made.code, arch=arch, base=BASE, symbols={
            name: ((BASE + at) | made.mode, size) for name, (at, size) in made.functions.items()}) as m:
        entered: list[int] = []
        runner = m.parts.runner
        enter = runner.enter
        runner.enter = lambda target: (entered.append(target), enter(target))[1]  # type: ignore[method-assign]
        for _ in range(3):
            m.call("tiny", 1, 2)
        assert len(entered) <= 1, "all but the first, which drops translations at the end"


@pytest.mark.parametrize(("act", "error"), [(interrupt, KeyboardInterrupt), (stop_by_another_thread, GuestStopped)])
def test_what_comes_from_outside_ends_a_usual_run(
        scene: Scene, act: Callable[[Scene, Any], object], error: type[BaseException]) -> None:
    """Where in the run it does so depends on threads."""
    for _ in range(3):
        with pytest.raises(error):
            probed(act)(scene)
        assert scene.m.call("deep", 7) == 9


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene("x86_64")
    yield scene
    scene.k.close()
    scene.m.close()


def test_the_runner_serves_only_what_is_unusual(scene: Scene) -> None:
    runner = scene.m.parts.runner
    entered: list[int] = []
    enter = runner.enter

    def noted(target: int) -> None:
        entered.append(target)
        enter(target)

    runner.enter = noted  # type: ignore[method-assign]
    fetch = scene.m.symbols["fetch"].address
    scene.m.call("deep", 5)  # the first one drops translations at the end
    entered.clear()
    assert scene.m.call("deep", 5) == 7
    assert not entered
    with pytest.raises(GuestFault):
        scene.m.call("fetch", scene.unmapped)  # which was begun as a usual one
    assert not entered
    scene.m.call("deep", 5, max_insns=1000)
    assert entered and fetch not in entered
