"""Changing things from inside handlers: defined, and never a dangling slot.

The rules these transcripts show: a change counts from the next handler on. A probe unregistered or disabled during a
hit gets no further handler call in it; one registered or enabled during a hit waits for the next hit; the displaced
instruction is executed all the same, once. What has begun outside (a followed call) ends as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scenes import SUBJECTS, Scene, hook, subject_machine

from kprobes import Jprobe, Kprobe, Kprobes, Kretprobe

ROLES = ("pre_handler", "post_handler")


def doing(scene: Scene, role: str, name: str, action: Callable[..., Any], where: str = "inc", **fields: Any) -> Kprobe:
    """A registered probe that writes its name in both handlers and, in `role`, does something, once."""
    todo = [action]

    def act(p: Any, regs: Any, flags: int = 0) -> None:
        scene.lines.append(f"{role.split('_', maxsplit=1)[0]} {name}")
        if todo:
            todo.pop()(p)

    handlers = {"pre_handler": scene.r.pre(name), "post_handler": scene.r.post(name), role: act}
    p = Kprobe(symbol_name=where, **handlers, **fields)
    scene.k.register_kprobe(p)
    return p


def alone(scene: Scene, role: str, action: Callable[..., Any]) -> list[list[str]]:
    """The transcripts of two hits of a lone probe with only this one handler, which does something in the first."""
    todo = [action]

    def act(p: Any, regs: Any, flags: int = 0) -> None:
        scene.lines.append("hit")
        if todo:
            todo.pop()(p)

    scene.k.register_kprobe(Kprobe(symbol_name="probed", **{role: act}))
    return [scene.play("probed", 4), scene.play("probed", 4)]


# --- itself


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("action", ["unregister", "disable"])
def test_a_lone_probe_ends_itself(scene: Scene, role: str, action: str) -> None:
    end = {"unregister": lambda p: p.unregister(), "disable": scene.k.disable_kprobe}[action]
    assert alone(scene, role, end) == [["hit", "= 7"], ["= 7"]]
    assert scene.text() == scene.original


@pytest.mark.parametrize("where", ["hop", "inc", "probed", "twice"])
@pytest.mark.parametrize("post", [False, True])
def test_the_displaced_instruction_is_executed_all_the_same(scene: Scene, where: str, post: bool) -> None:
    """Simulated, boosted, stepped, in a detour: exactly once, though its probe is gone."""
    expected = scene.m.call(where, 4)
    p = Kprobe(symbol_name=where, pre_handler=lambda p, regs: p.unregister(),
               post_handler=hook("never", scene.lines) if post else None)
    for _ in range(3):
        scene.k.register_kprobe(p)
        assert scene.play(where, 4) == [f"= {expected}"]
        assert not p.registered


@pytest.mark.parametrize("role", ROLES)
def test_unregistering_and_registering_itself_again(scene: Scene, role: str) -> None:
    def again(p: Kprobe) -> None:
        scene.k.unregister_kprobe(p)
        scene.k.register_kprobe(p)

    assert alone(scene, role, again) == [["hit", "= 7"], ["hit", "= 7"]]


def test_disabling_itself_in_pre_skips_its_post(scene: Scene) -> None:
    p = doing(scene, "pre_handler", "p", scene.k.disable_kprobe)
    assert scene.play("inc", 4) == ["pre p", "= 5"]
    assert scene.play("inc", 4) == ["= 5"]
    scene.k.enable_kprobe(p)
    assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]


def test_disabling_and_enabling_itself(scene: Scene) -> None:
    def both(p: Kprobe) -> None:
        scene.k.disable_kprobe(p)
        scene.k.enable_kprobe(p)

    doing(scene, "pre_handler", "p", both)
    assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]
    assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]


@pytest.mark.parametrize("divert", [True, False])
def test_unregistering_itself_and_diverting(scene: Scene, divert: bool) -> None:
    """Sent to its own address the guest executes the original instruction there."""
    target = scene.at("probed") if divert else scene.at("inc")

    def pre(p: Kprobe, regs: Any) -> int:
        p.unregister()
        regs.pc = target
        return 1

    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre, optimize=False))
    assert scene.m.call("inc", 4) == (7 if divert else 5)
    assert scene.k.idle


# --- siblings


def test_removing_itself_does_not_skip_a_sibling(scene: Scene) -> None:
    """In tools that keep their hooks in a list the second one misses that hit."""
    scene.probe("old")
    doing(scene, "pre_handler", "self", lambda p: p.unregister())
    scene.probe("new")
    assert scene.play("inc", 4) == ["pre new", "pre self", "pre old", "post new", "post old", "= 5"]
    assert scene.play("inc", 4) == ["pre new", "pre old", "post new", "post old", "= 5"]


@pytest.mark.parametrize("end", ["unregister_kprobe", "disable_kprobe"])
def test_ending_an_older_sibling_in_pre(scene: Scene, end: str) -> None:
    old = scene.probe("old")
    doing(scene, "pre_handler", "new", lambda p: getattr(scene.k, end)(old))
    assert scene.play("inc", 4) == ["pre new", "post new", "= 5"]
    assert old.nhit == 0


@pytest.mark.parametrize("end", ["unregister_kprobe", "disable_kprobe"])
def test_ending_a_newer_sibling_in_pre(scene: Scene, end: str) -> None:
    """Its pre has run; its post does not."""
    newer: list[Kprobe] = []
    doing(scene, "pre_handler", "old", lambda p: getattr(scene.k, end)(newer[0]))
    newer.append(scene.probe("new"))
    assert scene.play("inc", 4) == ["pre new", "pre old", "post old", "= 5"]


@pytest.mark.parametrize("end", ["unregister_kprobe", "disable_kprobe"])
def test_ending_an_older_sibling_in_post(scene: Scene, end: str) -> None:
    old = scene.probe("old")
    doing(scene, "post_handler", "new", lambda p: getattr(scene.k, end)(old))
    assert scene.play("inc", 4) == ["pre new", "pre old", "post new", "= 5"]


@pytest.mark.parametrize("role", ROLES)
def test_a_sibling_registered_during_a_hit_waits_for_the_next(scene: Scene, role: str) -> None:
    doing(scene, role, "p", lambda p: scene.probe("late"))
    assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]
    assert scene.play("inc", 4) == ["pre late", "pre p", "post late", "post p", "= 5"]


@pytest.mark.parametrize("role", ROLES)
def test_a_sibling_enabled_during_a_hit_waits_for_the_next(scene: Scene, role: str) -> None:
    off = scene.probe("off", disabled=True)
    doing(scene, role, "p", lambda p: scene.k.enable_kprobe(off))
    assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]
    assert scene.play("inc", 4) == ["pre p", "pre off", "post p", "post off", "= 5"]


def test_a_sibling_with_a_post_handler_joins_a_boosted_or_optimized_one(scene: Scene) -> None:
    """The hit under way ends as it began; from the next on the slot ends in a trap."""
    todo = [lambda: scene.probe("late", "probed")]

    def pre(p: Kprobe, regs: Any) -> None:
        scene.lines.append("pre p")
        if todo:
            todo.pop()()

    for optimization in (False, True):
        scene.k.optimization = optimization
        p = Kprobe(symbol_name="probed", pre_handler=pre)
        scene.k.register_kprobe(p)
        scene.k.flush_optimizer()
        assert p.optimized is optimization
        if not todo:
            todo.append(lambda: scene.probe("late", "probed"))
        assert scene.play("probed", 4) == ["pre p", "= 7"]
        assert not p.optimized
        assert scene.play("probed", 4) == ["pre late", "pre p", "post late", "= 7"]
        for record in list(scene.k.get_kprobe(scene.at("probed")).probes):
            scene.k.unregister_kprobe(record)


def test_replacing_handlers_during_a_hit(scene: Scene) -> None:
    def swap(p: Kprobe) -> None:
        p.post_handler = scene.r.post("swapped")
        p.pre_handler = scene.r.pre("swapped")

    doing(scene, "pre_handler", "p", swap)
    assert scene.play("inc", 4) == ["pre p", "post swapped", "= 5"]
    assert scene.play("inc", 4) == ["pre swapped", "post swapped", "= 5"]


# --- other addresses


@pytest.mark.parametrize("role", ROLES)
def test_registering_elsewhere(scene: Scene, role: str) -> None:
    """Also on the very next instruction, which this hit then reaches."""
    second = scene.at("probed", 1)
    doing(scene, role, "p", lambda p: scene.probe("next", second), where="probed")
    assert scene.play("probed", 4) == ["pre p", "post p", "pre next", "post next", "= 7"]


@pytest.mark.parametrize("optimize", [True, False])
def test_registering_the_next_instruction_without_any_post_handler(scene: Scene, optimize: bool) -> None:
    """A boosted slot jumps back onto the new breakpoint; a detour that covers it is taken out, and this hit goes on as
    a breakpoint's."""
    second, done = scene.at("probed", 1), []

    def pre(p: Kprobe, regs: Any) -> None:
        scene.lines.append("first")
        if not done:
            done.append(Kprobe(addr=second, pre_handler=hook("second", scene.lines), optimize=optimize))
            scene.k.register_kprobe(done[0])

    p = Kprobe(symbol_name="probed", pre_handler=pre, optimize=optimize)
    scene.k.register_kprobe(p)
    scene.k.flush_optimizer()
    for _ in range(2):
        assert scene.play("probed", 4) == ["first", "second", "= 7"]
    scene.k.unregister_kprobe(done[0])
    assert scene.play("probed", 4) == ["first", "= 7"]


@pytest.mark.parametrize("arch", SUBJECTS)
@pytest.mark.parametrize("siblings", [1, 2])
def test_registering_in_what_the_jump_of_this_hit_covers(arch: str, siblings: int) -> None:
    """Whatever a jump covers: the hit that came by it reaches the new probe."""
    seen: list[int] = []
    m, mode = subject_machine(arch), SUBJECTS[arch].mode
    data = m.alloc(256)
    with m, Kprobes(m) as k:
        start = m.symbols["stores"].address
        inside = [insn.addr for insn in k._survey.instructions(m.symbols["stores"])[1:3]]

        new = [Kprobe(addr=addr | mode, pre_handler=lambda p, regs: seen.append(regs.pc)) for addr in inside]

        def pre(p: Kprobe, regs: Any) -> None:
            seen.append(regs.pc)
            if len(seen) == 2:
                k.register_kprobes(new)

        first = Kprobe(addr=start | mode, pre_handler=pre)
        k.register_kprobe(first)
        if siblings == 2:
            k.register_kprobe(Kprobe(addr=start | mode))
        m.call("stores", 1, data)  # the first hit makes it a jump
        assert first.optimized
        for _ in range(2):
            m.call("stores", 1, data)
        assert seen == [start, *2 * [start, *inside]]


@pytest.mark.parametrize("role", ROLES)
def test_unregistering_elsewhere(scene: Scene, role: str) -> None:
    other = scene.probe("next", scene.at("probed", 1))
    doing(scene, role, "p", lambda p: scene.k.unregister_kprobe(other), where="probed")
    assert scene.play("probed", 4) == ["pre p", "post p", "= 7"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("call", ["unregister_kprobes", "disable"])
def test_the_whole_batch_from_inside(scene: Scene, role: str, call: str) -> None:
    batch: list[Kprobe] = []

    def end(p: Kprobe) -> None:
        if call == "disable":
            for one in batch:
                scene.k.disable_kprobe(one)
        else:
            scene.k.unregister_kprobes(batch)

    batch.append(scene.probe("next", scene.at("probed", 1)))
    batch.append(doing(scene, role, "p", end, where="probed"))
    batch.append(scene.probe("last", scene.at("probed", 2)))
    begun = ["pre p", "post p"] if role == "post_handler" else ["pre p"]
    assert scene.play("probed", 4) == [*begun, "= 7"]
    assert scene.text() == scene.original
    assert scene.play("probed", 4) == ["= 7"]


@pytest.mark.parametrize("role", ROLES)
def test_a_refused_registration_inside_a_handler(scene: Scene, role: str) -> None:
    from kprobes import KprobeError

    def refuse(p: Kprobe) -> None:
        with pytest.raises(KprobeError):
            scene.k.register_kprobes([Kprobe(symbol_name="twice"), Kprobe(symbol_name="no such")])
        with pytest.raises(KprobeError):
            scene.k.register_kprobe(p)

    doing(scene, role, "p", refuse)
    assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]
    assert len(scene.k.list()) == 1


# --- the switches


@pytest.mark.parametrize("role", ROLES)
def test_the_global_switch_off_from_inside(scene: Scene, role: str) -> None:
    """Everything is disarmed at once; the hit under way ends as it began, post-handlers included."""
    scene.probe("other", "twice")
    doing(scene, role, "p", lambda p: setattr(scene.k, "enabled", False))
    assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]
    assert scene.text() == scene.original
    assert scene.play("twice", 4) == ["= 6"]
    scene.k.enabled = True
    assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]


@pytest.mark.parametrize("role", ROLES)
def test_the_global_switch_off_and_on_from_inside(scene: Scene, role: str) -> None:
    def flip(p: Kprobe) -> None:
        scene.k.enabled = False
        scene.k.enabled = True

    doing(scene, role, "p", flip)
    for _ in range(2):
        assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]


@pytest.mark.parametrize("on", [True, False])
def test_the_optimization_switch_from_inside(scene: Scene, on: bool) -> None:
    def pre(p: Kprobe, regs: Any) -> None:
        scene.lines.append("hit")
        scene.k.optimization = on
        scene.k.flush_optimizer()

    p = Kprobe(symbol_name="probed", pre_handler=pre)
    scene.k.optimization = not on
    scene.k.register_kprobe(p)
    scene.k.flush_optimizer()
    for _ in range(3):
        assert scene.play("probed", 4) == ["hit", "= 7"]
    assert p.optimized is on


# --- return probes


def test_ending_itself_in_the_entry_handler(scene: Scene) -> None:
    """Unregistered while it is being entered: its return comes silently."""
    r = Kretprobe(symbol_name="inc", handler=hook("return", scene.lines),
                  entry_handler=hook("entry", scene.lines, lambda ri, regs: ri.rp.unregister()))
    scene.k.register_kretprobe(r)
    assert scene.play("twice", 4) == ["entry", "= 6"]
    assert scene.k._calls.pending == 0
    assert not r.registered


def test_ending_itself_in_the_return_handler(scene: Scene) -> None:
    r = Kretprobe(symbol_name="inc", handler=hook("return", scene.lines, lambda ri, regs: ri.rp.unregister()))
    scene.k.register_kretprobe(r)
    assert scene.play("twice", 4) == ["return", "= 6"]
    scene.k.flush_optimizer()  # a jump stays until a safe point
    assert scene.text() == scene.original


def test_ending_a_sibling_in_the_return_handler(scene: Scene) -> None:
    """Oldest first: A ends B, which gets no call for a return already under way."""
    others: list[Kretprobe] = []
    a = Kretprobe(symbol_name="inc", handler=hook("A", scene.lines,
                                                  lambda ri, regs: others
                                                  and scene.k.unregister_kretprobe(others.pop())))
    b = Kretprobe(symbol_name="inc", handler=hook("B", scene.lines))
    c = Kretprobe(symbol_name="inc", handler=hook("C", scene.lines))
    scene.k.register_kretprobes([a, b, c])
    others.append(b)
    assert scene.play("inc", 4) == ["A", "C", "= 5"]
    assert scene.play("inc", 4) == ["A", "C", "= 5"]


def test_disabling_itself_in_the_entry_handler_still_returns(scene: Scene) -> None:
    r = Kretprobe(symbol_name="inc", handler=hook("return", scene.lines),
                  entry_handler=hook("entry", scene.lines, lambda ri, regs: scene.k.disable(ri.rp)))
    scene.k.register_kretprobe(r)
    assert scene.play("twice", 4) == ["entry", "return", "= 6"]


def test_registering_in_a_return_handler(scene: Scene) -> None:
    todo = [lambda: scene.probe("late")]
    scene.k.register_kretprobe(Kretprobe(symbol_name="inc",
                                         handler=hook("return", scene.lines, lambda ri, regs: todo and todo.pop()())))
    assert scene.play("twice", 4) == ["return", "pre late", "post late", "return", "= 6"]


def test_the_switch_in_a_return_handler(scene: Scene) -> None:
    scene.k.register_kretprobe(Kretprobe(symbol_name="inc",
                                         handler=hook("inc", scene.lines,
                                                      lambda ri, regs: setattr(scene.k, "enabled", False))))
    scene.k.register_kretprobe(Kretprobe(symbol_name="twice", handler=hook("twice", scene.lines)))
    assert scene.play("twice", 4) == ["inc", "twice", "= 6"]
    assert scene.text() == scene.original


def test_a_whole_batch_in_a_return_handler(scene: Scene) -> None:
    batch: list[Any] = [Kretprobe(symbol_name="twice", handler=hook("twice", scene.lines))]
    batch.append(Kretprobe(symbol_name="inc", handler=hook("inc", scene.lines,
                                                           lambda ri, regs: scene.k.unregister_kretprobes(batch))))
    scene.k.register_kretprobes(batch)
    assert scene.play("twice", 4) == ["inc", "= 6"]
    scene.k.flush_optimizer()  # a jump stays until a safe point
    assert scene.text() == scene.original


def test_a_jprobe_that_ends_itself(scene: Scene) -> None:
    j = Jprobe(symbol_name="inc")

    def mirror(a: int) -> None:
        scene.lines.append(f"mirror {a}")
        j.unregister()

    j.entry = mirror
    scene.k.register_jprobe(j)
    assert scene.play("twice", 4) == ["mirror 4", "= 6"]


# --- the end


@pytest.mark.parametrize("role", ROLES)
def test_closing_from_inside(scene: Scene, role: str) -> None:
    """The text is restored at once; the instruction under way is executed; with the end of the run the machine is
    free."""
    scene.probe("other", "twice")
    doing(scene, role, "p", lambda p: scene.k.close())
    begun = ["pre p", "post p"] if role == "post_handler" else ["pre p"]
    assert scene.play("inc", 4) == [*begun, "= 5"]
    assert scene.text() == scene.original
    assert scene.k.machine.sink is None
    with Kprobes(scene.m) as k:
        p = Kprobe(symbol_name="twice", pre_handler=hook("again", scene.lines))
        k.register_kprobe(p)
        assert scene.play("twice", 4) == ["again", "= 6"]


def test_closing_from_inside_an_inner_run(scene: Scene) -> None:
    """The end of the handler's guest call is not the end of the run: the outer hit's slot is still needed."""
    def close(p: Kprobe) -> None:
        scene.k.close()
        scene.lines.append(f"inner {scene.m.call('twice', 1)}")
        assert scene.m.sink is not None

    doing(scene, "pre_handler", "p", close)
    assert scene.play("inc", 4) == ["pre p", "inner 3", "= 5"]
    assert scene.m.sink is None
    assert scene.text() == scene.original


def test_many_changes_in_one_handler_leave_no_slot_behind(scene: Scene) -> None:
    """A hundred probes come and go inside one hit; afterwards their slots are free."""
    def churn(p: Kprobe) -> None:
        for _ in range(100):
            one = Kprobe(symbol_name="twice")
            scene.k.register_kprobe(one)
            scene.k.unregister_kprobe(one)

    doing(scene, "pre_handler", "p", churn)
    assert scene.play("inc", 4) == ["pre p", "post p", "= 5"]
    scene.k.unregister_kprobe(scene.probe("sweep"))
    assert len(scene.k._rooms.slots._garbage) == 0
