"""Everything at one address: order, diversion, disabled siblings, missed hits, counters. docs/linux.md C1-C3."""

from __future__ import annotations

import pytest
from scenes import Scene, hook, names, paper_machine

from kprobes import DIVERTED, Jprobe, Kprobe, Kprobes, Kretprobe
from kprobes.errors import BadLocation, ReentryError
from kprobes.testing import Recorder


def test_newest_first_before_and_after(scene: Scene) -> None:
    for name in "abc":
        scene.probe(name)
    assert scene.play("inc", 4) == ["pre c", "pre b", "pre a", "post c", "post b", "post a", "= 5"]


def test_every_kind_on_one_function(scene: Scene) -> None:
    """A jprobe runs last whenever it came; entries of return probes newest first, returns oldest first."""
    k, r = scene.k, scene.r
    k.register_jprobe(Jprobe(symbol_name="inc", entry=r.mirror("j", 1)))
    for name in "AB":
        k.register_kretprobe(Kretprobe(symbol_name="inc", handler=r.returns(name), entry_handler=r.entry(name)))
    scene.probe("k")
    assert scene.play("inc", 4) == ["pre k", "entry B", "entry A", "mirror j 0x4", "post k", "return A", "return B",
                                    "= 5"]


def test_pre_sees_the_probepoint_and_post_the_next_instruction(scene: Scene) -> None:
    seen: list[object] = []
    first, second = scene.at("probed"), scene.at("probed", 1)
    p = Kprobe(symbol_name="probed", pre_handler=lambda p, regs: seen.append(("pre", p, regs.pc)),
               post_handler=lambda p, regs, flags: seen.append(("post", p, regs.pc, flags)))
    scene.k.register_kprobe(p)
    assert scene.m.call("probed", 1) == 4
    assert seen == [("pre", p, first), ("post", p, second, 0)]


def test_post_sees_the_branch_taken(scene: Scene) -> None:
    """A simulated instruction has had its effect: pc is where the branch goes."""
    seen: list[int] = []
    scene.k.register_kprobe(Kprobe(symbol_name="hop", post_handler=lambda p, regs, flags: seen.append(regs.pc)))
    assert scene.m.call("hop", 1) == 2
    assert seen == [scene.at("inc")]


def test_post_sees_the_effect_of_the_instruction(scene: Scene) -> None:
    seen: list[tuple[str, int]] = []
    scene.k.register_kprobe(Kprobe(addr=scene.at("probed", 1),
                                   pre_handler=lambda p, regs: seen.append(("pre", regs.return_value)),
                                   post_handler=lambda p, regs, flags: seen.append(("post", regs.return_value))))
    assert scene.m.call("probed", 10) == 13
    assert seen == [("pre", 11), ("post", 12)]


def test_registers_changed_before_are_what_the_instruction_reads(scene: Scene) -> None:
    def pre(p: Kprobe, regs) -> None:
        regs.set_arg(0, 100)

    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre))
    assert scene.m.call("inc", 4) == 101


def test_diverted_stops_siblings_the_step_and_every_post(scene: Scene) -> None:
    away = scene.at("probed")
    scene.probe("older")

    def pre(p: Kprobe, regs) -> int:
        scene.lines.append("divert")
        regs.pc = away
        return DIVERTED

    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre, optimize=False))
    scene.probe("newer")
    assert scene.play("inc", 4) == ["pre newer", "divert", "= 7"]


@pytest.mark.parametrize("result", [1, 2, -1, True, "yes"])
def test_any_true_value_counts_as_diverted(paper: Scene, result: object) -> None:
    away = paper.at("probed")

    def pre(p: Kprobe, regs) -> object:
        regs.pc = away
        return result

    paper.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre, optimize=False))
    assert paper.m.call("inc", 4) == 7


@pytest.mark.parametrize("result", [0, None, False])
def test_without_diverted_a_changed_pc_is_ignored(paper: Scene, result: object) -> None:
    def pre(p: Kprobe, regs) -> object:
        regs.pc = 0x1234
        return result

    paper.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre))
    paper.probe("older")
    assert paper.play("inc", 4) == ["pre older", "post older", "= 5"]


def test_diverted_without_a_new_pc_is_an_error_not_a_loop(scene: Scene) -> None:
    p = Kprobe(symbol_name="inc", pre_handler=lambda p, regs: DIVERTED, optimize=False)
    scene.k.register_kprobe(p)
    with pytest.raises(BadLocation, match=r"set regs\.pc"):
        scene.m.call("inc", 4)
    scene.k.unregister_kprobe(p)
    assert scene.m.call("inc", 4) == 5


def test_a_disabled_sibling_is_skipped(scene: Scene) -> None:
    scene.probe("a")
    b = scene.probe("b")
    scene.probe("c")
    scene.k.disable_kprobe(b)
    assert scene.play("inc", 4) == ["pre c", "pre a", "post c", "post a", "= 5"]
    scene.k.enable_kprobe(b)
    assert scene.play("inc", 4) == ["pre c", "pre b", "pre a", "post c", "post b", "post a", "= 5"]


def test_all_disabled_leaves_no_breakpoint(scene: Scene) -> None:
    a, b = scene.probe("a"), scene.probe("b", disabled=True)
    assert scene.text() != scene.original
    scene.k.disable_kprobe(a)
    assert scene.text() == scene.original
    assert scene.play("inc", 4) == ["= 5"]
    scene.k.enable_kprobe(b)
    assert scene.play("inc", 4) == ["pre b", "post b", "= 5"]


def test_probes_without_handlers_count_hits(scene: Scene) -> None:
    p = Kprobe(symbol_name="inc")
    scene.k.register_kprobe(p)
    assert scene.m.call("twice", 4) == 6
    assert (p.nhit, p.nmissed) == (2, 0)


def test_handlers_may_be_replaced_while_registered(scene: Scene) -> None:
    p = scene.probe("a")
    p.pre_handler = scene.r.pre("other")
    p.post_handler = None
    assert scene.play("inc", 4) == ["pre other", "= 5"]
    p.post_handler = scene.r.post("late")
    assert scene.play("inc", 4) == ["pre other", "post late", "= 5"]


# --- hits within hits


def test_a_hit_in_a_handlers_guest_call_is_missed_on_every_child(scene: Scene) -> None:
    a, b, off = scene.probe("a"), scene.probe("b"), scene.probe("off", disabled=True)
    results: list[int] = []
    scene.k.register_kprobe(Kprobe(symbol_name="twice",
                                   pre_handler=hook("outer", scene.lines,
                                                    lambda p, regs: results.append(scene.m.call("inc", 41)))))
    assert scene.play("twice", 4) == ["outer", "pre b", "pre a", "post b", "post a", "pre b", "pre a", "post b",
                                      "post a", "= 6"]
    assert results == [42]
    assert [(p.nhit, p.nmissed) for p in (a, b, off)] == [(2, 1), (2, 1), (0, 1)]


@pytest.mark.parametrize("role", ["pre_handler", "post_handler"])
def test_a_handler_may_call_the_very_function_it_probes(scene: Scene, role: str) -> None:
    results: list[int] = []
    p = Kprobe(symbol_name="inc", **{role: hook(role, scene.lines, lambda *_: results.append(scene.m.call("inc", 1)))})
    scene.k.register_kprobe(p)
    assert scene.play("inc", 4) == [role, "= 5"]
    assert results == [2]
    assert (p.nhit, p.nmissed) == (1, 1)


@pytest.mark.parametrize("where", ["hop", "inc", "probed"])
def test_missed_hits_are_executed_whether_boosted_stepped_or_simulated(scene: Scene, where: str) -> None:
    """hop is simulated; inc is boosted; probed has a post-handler, so it is stepped in its slot."""
    missed = Kprobe(symbol_name=where, pre_handler=hook("never", scene.lines))
    if where == "probed":
        missed.post_handler = hook("never", scene.lines)
    scene.k.register_kprobe(missed)
    results: list[int] = []
    scene.k.register_kprobe(Kprobe(symbol_name="fetch",
                                   pre_handler=hook("pre", scene.lines,
                                                    lambda *_: results.append(scene.m.call(where, 4))),
                                   post_handler=hook("post", scene.lines,
                                                     lambda *_: results.append(scene.m.call(where, 4)))))
    assert scene.play("fetch", scene.word(9)) == ["pre", "post", "= 9"]
    assert results == [7, 7] if where == "probed" else [5, 5]
    assert (missed.nhit, missed.nmissed) == (0, 2)


def test_missed_in_a_return_handler(scene: Scene) -> None:
    p = scene.probe("a")
    scene.k.register_kretprobe(Kretprobe(symbol_name="probed",
                                         handler=hook("return", scene.lines, lambda ri, regs: scene.m.call("inc", 1))))
    assert scene.play("probed", 4) == ["return", "= 7"]
    assert (p.nhit, p.nmissed) == (0, 1)
    assert scene.play("inc", 4) == ["pre a", "post a", "= 5"]


def test_a_third_level_is_a_reentry_error_and_the_next_hit_works(paper: Scene) -> None:
    """Level 2 is a missed hit that executes in its slot; an interrupt there leads to a third probe."""
    m, k = paper.m, paper.k
    k.optimization = False
    p = paper.probe("slow", "probed")  # has a post-handler: stepped
    third = paper.probe("third", "hop")
    assert p.nmissed == 0
    outer = Kprobe(symbol_name="fetch", pre_handler=hook("outer", paper.lines, lambda *_: m.call("probed", 1)))
    k.register_kprobe(outer)
    slot = k.get_kprobe(paper.at("probed")).slot

    def interrupt(m, cpu: int) -> None:
        if m.regs.pc == slot:
            m.regs["pc"] = paper.at("hop")

    m.before = interrupt
    with pytest.raises(ReentryError, match="REENTER"):
        m.call("fetch", paper.word(1))
    m.before = None
    assert paper.lines == ["outer"]
    assert third.nhit == 0
    paper.lines.clear()
    assert paper.play("hop", 1) == ["pre third", "post third", "= 2"]
    k.unregister_kprobe(outer)
    assert paper.play("fetch", paper.word(1)) == ["= 1"]


@pytest.mark.parametrize("handlers", [True, False])
def test_missed_hits_of_an_optimized_probe(scene: Scene, handlers: bool) -> None:
    """Also where hits are only counted, because nobody has a handler: a disabled sibling's miss counts too."""
    on = Kprobe(symbol_name="probed", pre_handler=hook("never", scene.lines) if handlers else None)
    off = Kprobe(symbol_name="probed", disabled=True)
    outer = Kprobe(symbol_name="inc", pre_handler=lambda p, regs: scene.m.call("probed", 1) and 0)
    scene.k.register_kprobes([on, off, outer])
    scene.k.flush_optimizer()
    assert on.optimized
    for _ in range(3):
        assert scene.play("inc", 4) == ["= 5"]
    assert [(p.nhit, p.nmissed) for p in (on, off, outer)] == [(0, 3), (0, 3), (3, 0)]
    scene.k.unregister_kprobe(outer)
    scene.lines.clear()
    for _ in range(2):
        assert scene.m.call("probed", 1) == 4
    assert [(p.nhit, p.nmissed) for p in (on, off)] == [(2, 3), (0, 3)]
    scene.k.enable_kprobe(off)
    scene.m.call("probed", 1)
    assert [(p.nhit, p.nmissed) for p in (on, off)] == [(3, 3), (1, 3)]


def test_cpus_have_control_blocks_of_their_own() -> None:
    """While CPU 0 is in a handler, a hit on CPU 1 is a first-level hit."""
    m, r = paper_machine(cpus=2), Recorder("pc")
    with Kprobes(m) as k:
        p = Kprobe(symbol_name="inc", pre_handler=lambda p, regs: r.lines.append(f"inc on {regs.cpu}"))
        k.register_kprobe(p)

        def pre(q: Kprobe, regs) -> None:
            r.lines.append(f"probed on {regs.cpu}")
            m.call("inc", 1, cpu=1 - regs.cpu)

        k.register_kprobe(Kprobe(symbol_name="probed", pre_handler=pre))
        assert m.call("probed", 1, cpu=0) == 4
        assert r.take() == ["probed on 0", "inc on 1"]
        assert (p.nhit, p.nmissed) == (1, 0)


def test_counters_start_afresh_with_each_registration(scene: Scene) -> None:
    p = scene.probe("a")
    scene.m.call("twice", 1)
    scene.k.unregister_kprobe(p)
    assert p.nhit == 2, "the counters can be read when the probe is gone"
    scene.k.register_kprobe(p)
    assert p.nhit == 0
    scene.m.call("inc", 1)
    assert p.nhit == 1


def test_transcript_of_a_recursive_function(scene: Scene) -> None:
    scene.probe("d", "down")
    lines = scene.play("down", 3)
    assert names(lines, "pre") == ["d"] * 4
    assert lines[-1] == "= 3"
