"""Runs that `usualruns` serves end as those that Runner.run() serves, whatever happens in them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from scenes import Scene

from kprobes import GuestFault, GuestStopped, Kprobe, Kretprobe, NotRegistered


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


def boom(_scene: Scene, _regs: object) -> None:
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
    names = ("depth", "end", "why_stopped", "parked", "raised", "interrupt", "mended", "disturbed", "skip", "hooked",
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
