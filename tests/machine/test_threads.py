"""Threads: one of them runs a machine at a time; others may look at memory, and stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scenes import Scene

from kprobes import GuestStopped, Kprobe, Kretprobe, MachineBusy


@pytest.fixture(params=["x86_64", "arm64"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(request.param)
    yield scene
    scene.close()


def in_thread(work: Callable[[], Any]) -> Any:
    """What `work` returns or raises in another thread."""
    result: list[Any] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    return result[0]


def test_only_one_thread_runs_a_machine(scene: Scene) -> None:
    scene.k.register(Kprobe(symbol_name="inc", pre_handler=lambda p, regs: time.sleep(1e-5)))
    scene.k.register(Kretprobe(symbol_name="twice", handler=lambda ri, regs: None))
    wrong: list[object] = []
    busy, right, over = [0], [0], time.monotonic() + 1

    def work() -> None:
        while time.monotonic() < over:
            try:
                if scene.m.call("deep", 4) != 6:
                    wrong.append("result")
                right[0] += 1
            except MachineBusy:
                busy[0] += 1
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert busy[0]
    assert right[0]


@pytest.mark.parametrize("by", ["call", "run"])
def test_a_thread_looks_on_and_stops_it(scene: Scene, by: str) -> None:
    """m.call() has no result then; m.run() returns."""
    data = scene.word(5)
    said: list[Any] = []

    def look() -> None:
        while scene.m.parts.state.depth == 0:
            time.sleep(0.001)
        for n in range(200):
            scene.m.write(data, n.to_bytes(4, "little"))
            said.append(scene.m.read(data, 4) == n.to_bytes(4, "little"))
        for forbidden in (lambda: scene.m.call("inc", 1), lambda: scene.m.run("inc")):
            with pytest.raises(MachineBusy):
                forbidden()
        scene.m.stop()

    thread = threading.Thread(target=look)
    thread.start()
    if by == "run":
        scene.m.run("spin", timeout=60)
    else:
        with pytest.raises(GuestStopped) as caught:
            scene.m.call("spin", timeout=60)
        assert caught.value.pc == scene.m.regs.pc
    assert scene.m.regs.pc in (scene.at("spin"), scene.at("spin", 1))
    thread.join()
    assert said == [True] * 200
    assert scene.m.call("deep", 4) == 6


def test_one_thread_after_the_other(scene: Scene) -> None:
    scene.k.register(p := Kprobe(symbol_name="inc"))
    for _ in range(10):
        assert in_thread(lambda: scene.m.call("deep", 4)) == 6
        assert scene.m.call("deep", 4) == 6
    assert p.nhit == 40


CHANGES: dict[str, Callable[[Scene, dict[str, Any]], object]] = {
    "register": lambda scene, made: scene.k.register(Kprobe(symbol_name="twice")),
    "unregister": lambda scene, made: scene.k.unregister(made["probe"]),
    "disable": lambda scene, made: scene.k.disable(made["probe"]),
    "the switch": lambda scene, made: setattr(scene.k, "enabled", False),
    "watchpoint": lambda scene, made: scene.k.watchpoint(scene.word(0), 4),
    "heap check": lambda scene, made: scene.k.heap({"twice": "malloc"}, leaks=False),
    "watchpoint, removed": lambda scene, made: made["watchpoint"].remove(),
    "coverage": lambda scene, made: scene.k.coverage(),
    "coverage, closed": lambda scene, made: made["coverage"].close(),
    "event": lambda scene, made: scene.k.event("p twice"),
    "event, removed": lambda scene, made: made["event"].remove(),
    "trace": lambda scene, made: scene.k.trace("p twice").__enter__(),
    "graph": lambda scene, made: scene.k.graph("twice").__enter__(),
    "jprobe": lambda scene, made: scene.k.jprobe("twice", entry=lambda n: None).__enter__(),
    "close": lambda scene, made: scene.k.close(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_changed_beside_a_run(scene: Scene, change: str) -> None:
    """Another thread is refused with MachineBusy and no other error, and what there was works on."""
    k, said = scene.k, list[Any]()
    made: dict[str, Any] = {"probe": Kprobe(symbol_name="twice"), "watchpoint": k.watchpoint(scene.word(3), 4, "rw")}
    made["coverage"], made["event"] = k.coverage(), k.event("p:mine inc")

    def handler(p: Kprobe, regs: Any) -> None:
        if not said:
            said.append(in_thread(lambda: CHANGES[change](scene, made)))

    k.register(made["probe"])
    k.register(Kprobe(symbol_name="inc", pre_handler=handler))
    scene.m.call("inc", 1)
    assert [type(error) for error in said] == [MachineBusy], said
    scene.m.call("twice", 1)
    assert (made["probe"].nhit, made["watchpoint"].registered, made["event"].hits) == (1, True, 3)
    assert len(made["coverage"]) > 0
    made["coverage"].close()
