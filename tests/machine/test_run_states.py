"""Runs move between the phases that runstate.TABLE has, by its events: in calls, stops, bounds, errors, nested runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import pytest
from scenes import Scene

from kprobes import GuestFault, GuestStopped, GuestTimeout, Kprobe, UnicornMachine
from kprobes.machine.unicorn.runstate import TABLE, RunEvent, RunPhase

Step = tuple[RunPhase, RunEvent, RunPhase]


class Watch:
    """Notes every event of one machine's runs, with the phases before and after.

    Attributes:
        steps: what was noted, in order.
    """

    def __init__(self, m: UnicornMachine) -> None:
        self.steps: list[Step] = []
        self.state = m.parts.state
        for name, event in (("begin", RunEvent.TAKE), ("finish", RunEvent.GIVE), ("note_stop", RunEvent.STOP),
                            ("take_stop", RunEvent.TAKE_STOP), ("park", RunEvent.PARK), ("take_parked", RunEvent.UNPARK)):
            self._wrap(name, lambda *_, event=event: event)
        self._wrap("nest", lambda by: RunEvent.ENTER if by > 0 else RunEvent.LEAVE)
        executing = self.state.executing
        self.state.executing = lambda: self._around(executing())  # type: ignore[method-assign]

    def _wrap(self, name: str, event_of: Callable[..., RunEvent]) -> None:
        method = getattr(self.state, name)

        def noted(*args: Any) -> Any:
            before = self.state.phase
            try:
                return method(*args)
            finally:
                self.steps.append((before, event_of(*args), self.state.phase))

        setattr(self.state, name, noted)

    @contextmanager
    def _around(self, executing: AbstractContextManager[None]) -> Iterator[None]:
        before = self.state.phase
        try:
            with executing:
                self.steps.append((before, RunEvent.COMPLETE, self.state.phase))
                try:
                    yield
                finally:
                    before = self.state.phase
        finally:
            self.steps.append((before, RunEvent.COMPLETED, self.state.phase))

    def unexpected(self) -> list[Step]:
        """Return the steps that are not in the table."""
        return [step for step in self.steps if step[2] not in TABLE.get(step[:2], ())]


@pytest.fixture(params=["x86_64", "arm64"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(request.param)
    yield scene
    scene.close()


@contextmanager
def registered(scene: Scene, probe: Kprobe) -> Iterator[None]:
    scene.k.register_kprobe(probe)
    try:
        yield
    finally:
        scene.k.unregister_kprobe(probe)


def call(scene: Scene) -> None:
    assert scene.m.call("inc", 41) == 42


def in_handler(act: Callable[[Scene], object], function: str = "inc") -> Callable[[Scene], None]:
    """Return a deed: a call of a function, and once in it a handler does something, before and after an instruction."""

    def deed(scene: Scene) -> None:
        for kind in "pre_handler", "post_handler":
            done: list[bool] = []

            def handler(*_: Any, done: list[bool] = done) -> int:
                if not done:
                    done.append(True)
                    act(scene)
                return 0

            probe = Kprobe(symbol_name=function, **{kind: handler})
            with registered(scene, probe), suppress(GuestStopped, ArithmeticError):
                scene.m.call(function, 1)
            assert done

    return deed


def fail(_scene: Scene) -> None:
    raise ArithmeticError("a handler fails")


def stop_twice(scene: Scene) -> None:
    scene.m.stop()
    scene.m.stop()


def another_thread(scene: Scene) -> None:
    def stop() -> None:
        while not scene.m.parts.state.depth:
            time.sleep(1e-4)
        scene.m.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(GuestStopped):
            scene.m.call("spin")
    finally:
        thread.join()


def out_of_time(scene: Scene) -> None:
    with pytest.raises(GuestTimeout):
        scene.m.call("spin", timeout=0.02)


def counted(scene: Scene) -> None:
    """A bounded run ends in front of every instruction, those with a slot too."""
    with registered(scene, Kprobe(addr=scene.at("probed", 1), post_handler=lambda p, regs, flags: None)):
        for bound in range(1, 4):
            with pytest.raises(GuestTimeout):
                scene.m.call("probed", 1, max_insns=bound)


def stopped_in_front(scene: Scene) -> None:
    """Nothing runs when it is stopped."""
    scene.m.stop()
    call(scene)


def fault(scene: Scene) -> None:
    """An access fails at home, and in a slot."""
    for post_handler in None, lambda p, regs, flags: None:
        probe = Kprobe(symbol_name="fetch", post_handler=post_handler)
        with registered(scene, probe), pytest.raises(GuestFault):
            scene.m.call("fetch", scene.unmapped)


DEEDS: dict[str, Callable[[Scene], None]] = {
    "call": call, "fault": fault, "out of time": out_of_time, "counted": counted, "another thread": another_thread,
    "stopped in front": stopped_in_front, "handler fails": in_handler(fail), "handler stops": in_handler(stop_twice),
    "handler calls": in_handler(call, "twice"), "handler's call fails": in_handler(fault, "twice"),
    "handler's call ends by time": in_handler(out_of_time, "twice"),
    "handler's call is stopped": in_handler(another_thread, "twice")}


@pytest.mark.quick
@pytest.mark.parametrize("deed", DEEDS)
def test_every_transition_is_in_the_table(scene: Scene, deed: str) -> None:
    watch = Watch(scene.m)
    DEEDS[deed](scene)
    call(scene)
    assert watch.steps and not watch.unexpected()
    assert watch.state.phase is RunPhase.FREE


def test_every_row_of_phases_is_reached(scene: Scene) -> None:
    """Whatever these do not show is a row for what is rare: a stop within a displaced instruction, a second error."""
    watch = Watch(scene.m)
    for deed in DEEDS.values():
        deed(scene)
    seen = {step[:2] for step in watch.steps}
    print(sorted((a.name, b.name) for a, b in TABLE.keys() - seen))
    assert {phase for phase, _ in seen} == set(RunPhase) and {event for _, event in seen} == set(RunEvent)
