"""What goes wrong in today's tools cannot go wrong here. What was seen to go wrong in them is told at each test."""

from __future__ import annotations

import errno
import traceback
from typing import Any

import pytest
from scenes import Scene, hook

from kprobes import GuestTimeout, Kprobe, KprobeError, Kretprobe


def counted(lines: list[str], name: str) -> Any:
    return hook(name, lines)


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("post", [True, False])
def test_a_probe_added_after_its_code_ran(scene: Scene, optimize: bool, post: bool) -> None:
    """Unicorn: hook added after the target block ran: 0 of 5 hits."""
    for _ in range(3):
        assert scene.m.call("deep", 4) == 6
    p = Kprobe(symbol_name="inc", optimize=optimize, post_handler=(lambda *_: None) if post else None)
    inner = Kprobe(addr=scene.at("probed", 2), optimize=optimize)
    scene.m.call("probed", 1)
    scene.k.register_kprobes([p, inner])
    for _ in range(5):
        assert scene.m.call("inc", 4) == 5
        assert scene.m.call("probed", 4) == 7
    assert (p.nhit, inner.nhit) == (5, 5)


def test_a_probe_added_in_the_middle_of_a_run(scene: Scene) -> None:
    """Qiling: hook added at call 10 of many: 0 hits."""
    calls: list[int] = []
    late = Kprobe(symbol_name="inc", pre_handler=hook("inc", scene.lines))

    def pre(p: Kprobe, regs: Any) -> None:
        calls.append(regs.arg(0))
        if len(calls) == 10:
            scene.k.register_kprobe(late)

    scene.k.register_kprobe(Kprobe(symbol_name="twice", pre_handler=pre))
    for n in range(20):
        assert scene.m.call("deep", n) == n + 2
    assert late.nhit == 2 * 11, "the tenth call's own, and those after it"


def test_a_probe_removed_in_its_handler_fires_no_more(scene: Scene) -> None:
    """Unicorn: a range hook deleted in its callback on fire 3 still fires until the block ends."""
    def pre(p: Kprobe, regs: Any) -> None:
        scene.lines.append("hit")
        if len(scene.lines) == 3:
            p.unregister()

    p = Kprobe(symbol_name="down", pre_handler=pre)
    scene.k.register_kprobe(p)
    assert scene.m.call("down", 9) == 9
    assert scene.lines == ["hit"] * 3
    with pytest.raises(KprobeError) as raised:
        scene.k.unregister_kprobe(p)
    assert raised.value.errno == errno.EINVAL, "a second removal is a clear error, not a KeyError"
    assert not isinstance(raised.value, KeyError)


def test_self_removal_keeps_the_siblings(scene: Scene) -> None:
    """Qiling: first of two hooks removes itself, the second misses that hit (999 of 1,000)."""
    siblings = [Kprobe(symbol_name="inc", pre_handler=hook(f"{n}", scene.lines)) for n in range(2)]
    scene.k.register_kprobe(siblings[0])
    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=lambda p, regs: p.unregister()))
    scene.k.register_kprobe(siblings[1])
    for _ in range(500):
        scene.m.call("twice", 1)
    assert [p.nhit for p in siblings] == [1000, 1000]


@pytest.mark.parametrize("where", ["unmapped", "data", "middle"])
def test_bad_addresses_are_refused(scene: Scene, where: str) -> None:
    """Unicorn: hooks on unmapped addresses and in the middle of instructions are accepted and never fire."""
    address = {"unmapped": scene.unmapped, "data": scene.word(1), "middle": scene.at("inc") + 1}[where]
    before = scene.text()
    with pytest.raises(KprobeError) as raised:
        scene.k.register_kprobe(Kprobe(addr=address))
    assert raised.value.address == address
    assert raised.value.errno in (errno.EINVAL, errno.EILSEQ)
    assert scene.text() == before


@pytest.mark.parametrize(("post", "optimize"), [(False, True), (False, False), (True, True)])
def test_no_double_fire_on_stop_and_resume(scene: Scene, post: bool, optimize: bool) -> None:
    """Unicorn: stop in a hook, resume at pc: the same probe fires again."""
    m = scene.m

    def pre(p: Kprobe, regs: Any) -> None:
        scene.lines.append("pre")
        m.stop()

    p = Kprobe(symbol_name="probed", pre_handler=pre, post_handler=hook("post", scene.lines) if post else None,
               optimize=optimize)
    scene.k.register_kprobe(p)
    for n in range(3):
        m.regs.set_arg(0, 4)
        m.run("probed")
        assert scene.lines == ["pre", "post"][: 2 if post
                                              else 1], "stopped: the hit is over, the displaced instruction executed"
        behind = 2 if p.optimized and scene.name == "x86_64" else 1  # the detour holds two instructions there
        assert m.regs.pc == scene.at("probed", behind)
        assert not scene.k._driver.ours(m.regs.pc)
        m.run()
        assert m.regs.return_value == 7
        assert p.nhit == n + 1
        scene.lines.clear()


def test_stop_and_resume_in_a_return_handler(scene: Scene) -> None:
    def handler(ri: Any, regs: Any) -> None:
        scene.lines.append("return")
        scene.m.stop()

    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", handler=handler))
    scene.m.regs.set_arg(0, 4)
    scene.m.run("twice")
    assert scene.lines == ["return"]
    assert scene.m.regs.pc == scene.at("twice", {"x86_64": 3, "arm64": 3}[scene.name])
    scene.m.run()
    assert scene.lines == ["return", "return"]
    scene.m.run()
    assert (scene.m.regs.return_value, scene.lines) == (6, ["return", "return"])


def test_single_steps_never_fire_twice(scene: Scene) -> None:
    """One instruction at a time, with a probe on each of them."""
    probes = [Kprobe(addr=scene.at("probed", n), pre_handler=hook(f"{n}", scene.lines)) for n in range(4)]
    scene.k.register_kprobes(probes)
    m = scene.m
    m.regs.set_arg(0, 4)
    with pytest.raises(GuestTimeout) as raised:
        m.run("probed", max_insns=1)
    places = [raised.value.pc]
    for _ in range(2):
        with pytest.raises(GuestTimeout) as raised:
            m.run(max_insns=1)
        places.append(raised.value.pc)
        assert m.regs.pc == raised.value.pc
    assert places == [scene.at("probed", n) for n in (1, 2, 3)]
    m.run()
    assert scene.lines == ["0", "1", "2", "3"]
    assert m.regs.return_value == 7
    assert [p.nhit for p in probes] == [1] * 4


@pytest.mark.parametrize("role", ["pre_handler", "post_handler"])
def test_exceptions_come_out_with_their_own_traceback(scene: Scene, role: str) -> None:
    """PyQBDI: an exception in a callback ends the process; others swallow it."""
    class Mine(Exception):
        pass

    def raising(*_: Any) -> None:
        raise Mine("text")

    def deeper(*args: Any) -> None:
        raising(*args)

    scene.k.register_kprobe(Kprobe(symbol_name="inc", **{role: deeper}))
    with pytest.raises(Mine, match="text") as raised:
        scene.m.call("twice", 4)
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert names[-2:] == ["deeper", "raising"]
    assert "test_exceptions_come_out_with_their_own_traceback" in names


def test_a_function_that_is_entered_again_returns_right(scene: Scene) -> None:
    """Qiling: ENTER or EXIT hooks on a re-entered function have a single slot for the return address."""
    seen: list[tuple[int, int]] = []
    r = Kretprobe(symbol_name="down", maxactive=40, entry_handler=lambda ri, regs: ri.data.update(n=regs.arg(0)),
                  handler=lambda ri, regs: seen.append((ri.data["n"], regs.return_value)))
    scene.k.register_kretprobe(r)
    assert scene.m.call("down", 30) == 30
    assert seen == [(n, n) for n in range(31)]
    assert r.nmissed == 0


def test_every_call_through_whatever_path_is_seen(scene: Scene) -> None:
    """Qiling: calls through the library's own PLT are not seen. Here it is the function that is probed, not the way to
    it."""
    p = Kprobe(symbol_name="inc")
    scene.k.register_kprobe(p)
    for function in ("inc", "hop", "twice", "deep"):
        scene.m.call(function, 1)
    assert p.nhit == 1 + 1 + 2 + 2


def test_fires_once_per_execution(scene: Scene) -> None:
    """Whatever the instruction: one probe on every instruction of every function, hits equal executions."""
    places = [addr for name in ("inc", "twice", "deep", "down", "hop", "probed")
              for addr in (insn.addr for insn in scene.k._survey.instructions(scene.m.symbols[name]))]
    trace: list[int] = []
    probes = {addr: Kprobe(addr=addr, pre_handler=lambda p, regs: trace.append(regs.pc)) for addr in places}
    scene.k.register_kprobes(list(probes.values()))
    for _ in range(3):
        trace.clear()
        assert scene.m.call("deep", 4) == 6
        order = [(name, n) for name, count in (("deep", 3), ("twice", 3), ("inc", 2)) for n in range(count)]
        assert trace[: len(order)] == [scene.at(*where) for where in order]
        assert len(trace) == {"x86_64": 5 + 7 + 4, "arm64": 5 + 6 + 4}[scene.name]
        assert scene.m.call("down", 7) == 7
        assert scene.m.call("hop", 1) == 2
        assert scene.m.call("probed", 1) == 4
    assert {p.nmissed for p in probes.values()} == {0}


def test_a_second_probe_on_an_address(scene: Scene) -> None:
    """smallworld: ValueError "already hooked"."""
    probes = [Kprobe(symbol_name="inc") for _ in range(5)]
    scene.k.register_kprobes(probes)
    scene.m.call("inc", 1)
    assert [p.nhit for p in probes] == [1] * 5
