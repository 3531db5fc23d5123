"""One thread watches all deadlines: each is told in its own time, and nobody once it is cancelled."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest
from scenes import Scene

from kprobes import GuestTimeout, Kprobe
from kprobes.machine.unicorn.watchdog import Deadline

pytestmark = pytest.mark.quick


@pytest.fixture(params=["x86_64", "arm64"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(request.param)
    yield scene
    scene.close()


def test_the_earliest_is_told_first_whenever_it_came() -> None:
    told: list[str] = []
    done = threading.Event()
    last = [Deadline(0.12, lambda: (told.append("late"), done.set()))]
    last += [Deadline(0.04, lambda: told.append("early")), Deadline(60, lambda: told.append("never"))]
    assert done.wait(60)
    for deadline in last:
        deadline.cancel()
    assert told[0] == "early" and "late" in told and "never" not in told
    count = len(told)
    time.sleep(0.03)
    assert len(told) == count, "a cancelled deadline was told"


def test_it_is_told_again_until_it_is_cancelled() -> None:
    told: list[float] = []
    deadline = Deadline(0, lambda: told.append(time.monotonic()))
    while len(told) < 3:
        time.sleep(0.001)
    deadline.cancel()
    assert told[2] - told[0] > 0.004


def test_cancelling_waits_for_who_is_told() -> None:
    """Or a stop would reach the next run."""
    begun, over = threading.Event(), []

    def told() -> None:
        begun.set()
        time.sleep(0.05)
        over.append(True)

    deadline = Deadline(0, told)
    assert begun.wait(60)
    deadline.cancel()
    assert over


def test_calls_share_a_thread(scene: Scene) -> None:
    assert scene.m.call("inc", 1, timeout=30) == 2
    threads = threading.active_count()
    for n in range(200):
        assert scene.m.call("inc", n, timeout=30) == n + 1
    assert threading.active_count() == threads


def test_a_bound_that_is_nearer_than_the_one_before(scene: Scene) -> None:
    assert scene.m.call("inc", 1, timeout=30) == 2, "the thread sleeps for so long now"
    start = time.monotonic()
    with pytest.raises(GuestTimeout, match="the time is up"):
        scene.m.call("spin", timeout=0.02)
    assert time.monotonic() - start < 20
    assert scene.m.call("inc", 1, timeout=30) == 2, "it does not end the next run"


def test_the_outer_bound_ends_the_inner_run_as_well(scene: Scene) -> None:
    def handler(p: Kprobe, regs: object) -> None:
        scene.m.call("spin", timeout=30)

    scene.k.register(Kprobe(symbol_name="inc", pre_handler=handler))
    start = time.monotonic()
    with pytest.raises(GuestTimeout):
        scene.m.call("inc", 1, timeout=0.03)
    assert time.monotonic() - start < 20


def test_a_child_has_its_own(scene: Scene) -> None:
    assert scene.m.call("inc", 1, timeout=30) == 2
    child = os.fork()
    if not child:
        code = 1
        try:
            scene.m.call("spin", timeout=0.02)
        except GuestTimeout:
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + 60
    while (done := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.01)
    if not done[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert done == (child, 0)


def test_the_counting_hook_goes_when_it_is_not_wanted(scene: Scene) -> None:
    """It stays from one bounded run to the next; an unbounded one is as fast as ever, and code written meanwhile is the
    code that runs."""
    bounds = scene.m.parts.bounds
    with pytest.raises(GuestTimeout, match="max_insns"):
        scene.m.call("spin", max_insns=50)
    installed = bounds.installed
    for n in range(5):
        assert scene.m.call("inc", n, max_insns=100) == n + 1
    assert bounds._hooks and bounds.installed == installed
    assert scene.m.call("inc", 7) == 8
    assert not bounds._hooks
    with pytest.raises(GuestTimeout, match="max_insns"):
        scene.m.call("spin", max_insns=50)
    assert bounds.installed == installed + 1
