"""Return probes. docs/linux.md A4, C6, C7; docs/how-a-hit-works.md (returns)."""

from __future__ import annotations

from typing import Any

import pytest
from scenes import PROGRAMS, Scene, hook, paper_machine

from kprobes import DIVERTED, GuestFault, GuestTimeout, Kprobe, Kprobes, Kretprobe, ReturnMissed, UnicornMachine
from kprobes.core.hit.calls import SET_ASIDE
from kprobes.testing import Recorder

pytestmark = pytest.mark.filterwarnings("ignore::kprobes.ReturnMissed")  # what is missed is counted here


def follow(scene: Scene, name: str, where: str = "inc", **fields: Any) -> Kretprobe:
    """A registered Kretprobe whose handlers both write to the transcript."""
    r = Kretprobe(symbol_name=where, handler=scene.r.returns(name), entry_handler=scene.r.entry(name), **fields)
    scene.k.register_kretprobe(r)
    return r


def caller(scene: Scene) -> int:
    """Where a call made by the test itself returns to."""
    return int(scene.m.parts.state.exit) if scene.name != "paper" else 0xE000


# --- one call


def test_entry_and_return(scene: Scene) -> None:
    r = follow(scene, "r")
    assert scene.play("inc", 4) == ["entry r", "return r", "= 5"]
    assert (r.nhit, r.nreturned, r.nmissed) == (1, 1, 0)


def test_what_the_handlers_see(scene: Scene) -> None:
    seen: list[Any] = []

    def entry(ri: Any, regs: Any) -> None:
        seen.append(("entry", ri.rp is r, regs.pc, regs.arg(0), ri.ret_addr, ri.task, regs.return_address))
        ri.data["arg"] = regs.arg(0)

    def handler(ri: Any, regs: Any) -> None:
        seen.append(("return", ri.rp is r, regs.pc, regs.return_value, ri.ret_addr, ri.task, ri.data))

    r = Kretprobe(symbol_name="inc", handler=handler, entry_handler=entry)
    scene.k.register_kretprobe(r)
    assert scene.m.call("inc", 4) == 5
    back = caller(scene)
    assert seen == [("entry", True, scene.at("inc"), 4, back, 0, back), ("return", True, back, 5, back, 0, {"arg": 4})]


def test_the_caller_inside_the_guest(scene: Scene) -> None:
    """deep calls twice calls inc: the return address is the instruction after the call."""
    calls = {"paper": (2, 3), "x86_64": (2, 4), "arm64": (2, 3)}[scene.name]
    seen: list[int] = []
    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", handler=lambda ri, regs: seen.append(regs.pc)))
    assert scene.m.call("twice", 4) == 6
    assert seen == [scene.at("twice", n + 1) for n in calls]


def test_the_return_value_may_be_changed(scene: Scene) -> None:
    def handler(ri: Any, regs: Any) -> None:
        regs.return_value = 40

    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", handler=handler))
    assert scene.m.call("inc", 4) == 40


def test_a_return_handler_may_send_the_guest_elsewhere(scene: Scene) -> None:
    """regs.pc is the return address, and what the handler makes of it is where the guest goes on."""
    away = scene.at("twice", {"paper": 4, "x86_64": 5, "arm64": 4}[scene.name])  # behind the second call

    def handler(ri: Any, regs: Any) -> None:
        scene.lines.append("return")
        regs.pc = away

    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", handler=handler))
    assert scene.play("twice", 4) == ["return", "= 5"]


def test_only_a_return_handler(scene: Scene) -> None:
    r = Kretprobe(symbol_name="inc", handler=hook("return", scene.lines))
    scene.k.register_kretprobe(r)
    assert scene.play("twice", 4) == ["return", "return", "= 6"]
    assert r.nreturned == 2


def test_only_an_entry_handler(scene: Scene) -> None:
    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", entry_handler=hook("entry", scene.lines)))
    assert scene.play("twice", 4) == ["entry", "entry", "= 6"]
    assert scene.k._calls.pending == 0


def test_an_entry_handler_that_declines(scene: Scene) -> None:
    """Non-zero: this call is not followed; the instance is free again at once; nmissed does not change."""
    odd = Kretprobe(symbol_name="inc", maxactive=1, handler=hook("return", scene.lines),
                    entry_handler=lambda ri, regs: regs.arg(0) & 1)
    scene.k.register_kretprobe(odd)
    assert [scene.play("inc", n) for n in (1, 2, 3, 4)] == [["= 2"], ["return", "= 3"], ["= 4"], ["return", "= 5"]]
    assert (odd.nhit, odd.nreturned, odd.nmissed) == (4, 2, 0)


@pytest.mark.parametrize("size", [1, 16, 4096])
def test_data_is_fresh_zeroes_for_each_call(scene: Scene, size: int) -> None:
    seen: list[bytes] = []

    def entry(ri: Any, regs: Any) -> None:
        seen.append(bytes(ri.data))
        ri.data[0] = 0x55

    def handler(ri: Any, regs: Any) -> None:
        seen.append(bytes(ri.data[:2]))

    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", data_size=size, handler=handler, entry_handler=entry,
                                         maxactive=1))
    assert scene.m.call("twice", 4) == 6
    assert seen == [bytes(size), b"\x55\0"[:size]] * 2


def test_data_is_a_fresh_dict_without_a_size(scene: Scene) -> None:
    seen: list[Any] = []
    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", maxactive=1,
                                         entry_handler=lambda ri, regs: ri.data.update(n=regs.arg(0)),
                                         handler=lambda ri, regs: seen.append(ri.data)))
    scene.m.call("twice", 4)
    assert seen == [{"n": 4}, {"n": 5}]


# --- several on one function


def test_entries_newest_first_returns_oldest_first(scene: Scene) -> None:
    for name in "ABC":
        follow(scene, name)
    assert scene.play("inc", 4) == ["entry C", "entry B", "entry A", "return A", "return B", "return C", "= 5"]


def test_all_see_the_true_return_address(scene: Scene) -> None:
    seen: list[int] = []
    for _ in range(3):
        scene.k.register_kretprobe(Kretprobe(symbol_name="inc",
                                             handler=lambda ri, regs: seen.extend([ri.ret_addr, regs.pc]),
                                             entry_handler=lambda ri, regs: seen.extend([ri.ret_addr,
                                                 regs.return_address])))
    assert scene.m.call("inc", 4) == 5
    assert seen == [caller(scene)] * 12


def test_one_of_them_declines(scene: Scene) -> None:
    follow(scene, "A")
    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", handler=hook("never", scene.lines),
                                         entry_handler=hook("no", scene.lines, result=1)))
    follow(scene, "C")
    assert scene.play("inc", 4) == ["entry C", "no", "entry A", "return A", "return C", "= 5"]


def test_one_of_them_is_disabled(scene: Scene) -> None:
    follow(scene, "A")
    b = follow(scene, "B")
    scene.k.disable_kretprobe(b)
    assert scene.play("inc", 4) == ["entry A", "return A", "= 5"]
    scene.k.enable_kretprobe(b)
    assert scene.play("inc", 4) == ["entry B", "entry A", "return A", "return B", "= 5"]


def test_one_pool_is_empty_the_other_is_not(scene: Scene) -> None:
    small, big = follow(scene, "small", "down", maxactive=1), follow(scene, "big", "down")
    lines = scene.play("down", 2)
    assert lines == ["entry big", "entry small", "entry big", "entry big", "return big", "return big", "return small",
                     "return big", "= 2"]
    assert (small.nmissed, big.nmissed) == (2, 0)


# --- recursion and nesting


def test_recursion_follows_the_outermost_frames(scene: Scene) -> None:
    """Depth n = 6, maxactive k = 3: the 3 outermost are followed, innermost of them first; the rest counts as
    missed."""
    values: list[tuple[int, int]] = []

    def entry(ri: Any, regs: Any) -> None:
        scene.lines.append(f"entry {regs.arg(0)}")
        ri.data["n"] = regs.arg(0)

    r = Kretprobe(symbol_name="down", maxactive=3, entry_handler=entry,
                  handler=lambda ri, regs: values.append((ri.data["n"], regs.return_value)))
    scene.k.register_kretprobe(r)
    assert scene.play("down", 5) == ["entry 5", "entry 4", "entry 3", "= 5"]
    assert values == [(3, 3), (4, 4), (5, 5)]
    assert (r.nhit, r.nreturned, r.nmissed) == (6, 3, 3)
    assert scene.play("down", 1) == ["entry 1", "entry 0", "= 1"], "all instances are free again"
    assert r.nmissed == 3


def test_the_entry_handler_is_not_called_when_the_pool_is_empty(scene: Scene) -> None:
    r = follow(scene, "r", "down", maxactive=1)
    assert scene.play("down", 3) == ["entry r", "return r", "= 3"]
    assert r.nmissed == 3


def test_all_frames_of_a_recursion_return_to_the_right_place(scene: Scene) -> None:
    r = follow(scene, "r", "down", maxactive=50)
    assert scene.play("down", 20)[-1] == "= 20"
    assert (r.nreturned, r.nmissed) == (21, 0)


def test_nested_functions_return_in_order(scene: Scene) -> None:
    follow(scene, "deep", "deep")
    follow(scene, "twice", "twice")
    follow(scene, "inc", "inc")
    assert scene.play("deep", 4) == ["entry deep", "entry twice", "entry inc", "return inc", "entry inc", "return inc",
                                     "return twice", "return deep", "= 6"]


def test_a_tail_call(scene: Scene) -> None:
    """hop jumps to inc: both followed calls end with one return, the younger first, both at the true caller."""
    seen: list[int] = []
    for name in ("hop", "inc"):
        scene.k.register_kretprobe(Kretprobe(symbol_name=name,
                                             handler=hook(f"return {name}", scene.lines,
                                                          lambda ri, regs: seen.extend([ri.ret_addr, regs.pc])),
                                             entry_handler=hook(f"entry {name}", scene.lines,
                                                                lambda ri, regs: seen.append(regs.return_address))))
    assert scene.play("hop", 4) == ["entry hop", "entry inc", "return inc", "return hop", "= 5"]
    assert seen == [caller(scene)] * 6
    assert scene.k._calls.pending == 0


def test_a_tail_call_of_which_only_the_callee_is_probed(scene: Scene) -> None:
    follow(scene, "inc")
    assert scene.play("hop", 4) == ["entry inc", "return inc", "= 5"]


# --- with kprobes on the same entry


def divert(scene: Scene) -> Kprobe:
    """Sends inc to probed."""
    away = scene.at("probed")

    def pre(p: Kprobe, regs: Any) -> int:
        scene.lines.append("divert")
        regs.pc = away
        return DIVERTED

    p = Kprobe(symbol_name="inc", pre_handler=pre, optimize=False)
    scene.k.register_kprobe(p)
    return p


def test_a_newer_kprobe_that_diverts_hides_the_entry(scene: Scene) -> None:
    r = follow(scene, "r")
    divert(scene)
    assert scene.play("inc", 4) == ["divert", "= 7"]
    assert (r.nhit, r.nreturned, scene.k._calls.pending) == (0, 0, 0)


def test_an_older_kprobe_that_diverts_comes_too_late(scene: Scene) -> None:
    divert(scene)
    follow(scene, "r")
    assert scene.play("inc", 4) == ["entry r", "divert", "return r", "= 7"]


def test_among_kprobes(scene: Scene) -> None:
    scene.probe("old")
    follow(scene, "r")
    scene.probe("new")
    assert scene.play("inc", 4) == ["pre new", "entry r", "pre old", "post new", "post old", "return r", "= 5"]


def test_a_kprobe_at_the_return_address_is_hit_after_the_return_handler(scene: Scene) -> None:
    after = {"paper": 3, "x86_64": 3, "arm64": 3}[scene.name]
    follow(scene, "r")
    scene.probe("k", scene.at("twice", after))
    assert scene.play("twice", 4) == ["entry r", "return r", "pre k", "post k", "entry r", "return r", "= 6"]


# --- changes while returns are pending


def during(scene: Scene, action: Any) -> None:
    """While twice is being followed, its first call of inc does something."""
    done: list[bool] = []

    def pre(p: Kprobe, regs: Any) -> None:
        if not done:
            done.append(True)
            action()

    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre))


def test_unregistered_while_pending_returns_silently_to_the_right_place(scene: Scene) -> None:
    r = follow(scene, "r", "twice")
    during(scene, lambda: scene.k.unregister_kretprobe(r))
    assert scene.play("deep", 4) == ["entry r", "= 6"]
    assert (r.nreturned, r.registered) == (0, False)
    assert scene.k._calls.pending == 0


@pytest.mark.parametrize("before", [True, False])
def test_an_entry_handler_comes_or_goes_while_calls_are_pending(scene: Scene, before: bool) -> None:
    """The pending calls keep their own data, and return in order; those that begin later are as the probe is now."""
    told: list[Any] = []

    def entry(ri: Any, regs: Any) -> None:
        ri.data["n"] = regs.arg(0)

    def change(p: Kprobe, regs: Any) -> None:
        r.entry_handler = None if before else entry

    r = Kretprobe(symbol_name="down", maxactive=9, entry_handler=entry if before else None,
                  handler=lambda ri, regs: told.append((dict(ri.data), regs.return_value)))
    scene.k.register_kretprobe(r)
    change_at = Kprobe(addr=scene.at("down", {"paper": 1, "x86_64": 3, "arm64": 1}[scene.name]), pre_handler=change,
                       optimize=False)
    assert scene.m.call("down", 2) == 2
    scene.k.register_kprobe(change_at)
    told.clear()
    assert scene.m.call("down", 3) == 3
    kept = [{"n": 3}] if before else [{}]
    later = [{"n": n} if not before else {} for n in range(3)]
    assert told == [*((data, n) for n, data in enumerate(later)), (kept[0], 3)]
    assert (scene.k._calls.pending, len(r._pool), r.nmissed) == (0, 9, 0)


def test_reregistered_while_pending_starts_with_a_new_pool(scene: Scene) -> None:
    """docs/linux.md C7: pendings drain to the old one, silently; later calls are followed."""
    def entry(ri: Any, regs: Any) -> None:
        scene.lines.append(f"entry {regs.arg(0)}")
        if regs.arg(0) == 2:
            scene.k.unregister_kretprobe(r)
            scene.k.register_kretprobe(r)

    r = Kretprobe(symbol_name="down", maxactive=2, entry_handler=entry, handler=scene.r.returns("r"))
    scene.k.register_kretprobe(r)
    assert scene.play("down", 3) == ["entry 3", "entry 2", "entry 1", "entry 0", "return r", "return r", "= 3"]
    assert (scene.k._calls.pending, r.nmissed) == (0, 0), "3 and 2 were the old pool's, 1 and 0 the new one's"
    assert scene.play("down", 1) == ["entry 1", "entry 0", "return r", "return r", "= 1"], "nothing is lost"


def test_disabled_while_pending_still_handles(scene: Scene) -> None:
    """docs/linux.md C7: pending handlers still run; no new hooks."""
    r = follow(scene, "r", "twice")
    during(scene, lambda: scene.k.disable_kretprobe(r))
    assert scene.play("deep", 4) == ["entry r", "return r", "= 6"]
    assert scene.play("deep", 4) == ["= 6"]
    scene.k.enable_kretprobe(r)
    assert scene.play("deep", 4) == ["entry r", "return r", "= 6"]


def test_globally_disarmed_while_pending_still_handles(scene: Scene) -> None:
    r = follow(scene, "r", "twice")
    during(scene, lambda: setattr(scene.k, "enabled", False))
    assert scene.play("deep", 4) == ["entry r", "return r", "= 6"]
    assert scene.text() == scene.original
    assert scene.play("deep", 4) == ["= 6"]
    assert r.nreturned == 1


def test_closed_while_pending_returns_to_the_right_place(scene: Scene) -> None:
    follow(scene, "r", "twice")
    during(scene, scene.k.close)
    assert scene.play("deep", 4) == ["entry r", "= 6"]
    assert scene.text() == scene.original
    assert scene.m.call("inc", 1) == 2
    assert scene.m.sink is None, "a run that starts finishes the closing"
    with Kprobes(scene.m) as k:
        r = Kretprobe(symbol_name="twice", handler=hook("again", scene.lines))
        k.register_kretprobe(r)
        assert scene.play("deep", 4) == ["again", "= 6"]


def test_a_sibling_is_unregistered_while_pending(scene: Scene) -> None:
    follow(scene, "A", "twice")
    b = follow(scene, "B", "twice")
    follow(scene, "C", "twice")
    during(scene, lambda: scene.k.unregister_kretprobe(b))
    assert scene.play("deep", 4) == ["entry C", "entry B", "entry A", "return A", "return C", "= 6"]


# --- frames that are left without returning


def test_longjmp_past_probed_frames(scene: Scene) -> None:
    """throw leaves middle's frame for guard's: middle and throw never return; guard does, and later calls are right."""
    for name in ("guard", "middle", "throw"):
        follow(scene, name, name)
    for _ in range(3):
        assert scene.play("guard", 4) == ["entry guard", "entry middle", "entry throw", "return guard", "= 4"]
    assert scene.k._calls.pending == 0, "guard's return has reaped them"
    assert scene.play("deep", 4) == ["= 6"]


def test_longjmp_does_not_wear_the_pool_out(scene: Scene) -> None:
    """Nobody above returns through the trampoline, so only the stack pointer tells that the frames are gone."""
    middle, throw = follow(scene, "m", "middle", maxactive=1), follow(scene, "t", "throw", maxactive=2)
    for _ in range(5):
        assert scene.play("guard", 4) == ["entry m", "entry t", "= 4"]
    assert (middle.nmissed, throw.nmissed) == (0, 0)
    assert scene.k._calls.pending <= 3
    scene.k.flush_task(0)


def test_returns_after_a_longjmp_go_to_the_right_place(scene: Scene) -> None:
    """Stale instances lie above nothing: a followed function at the same depth, deeper and shallower still returns."""
    follow(scene, "m", "middle")
    follow(scene, "t", "throw")
    assert scene.play("guard", 4) == ["entry m", "entry t", "= 4"]
    follow(scene, "deep", "deep")
    follow(scene, "twice", "twice")
    follow(scene, "inc", "inc")
    inner = ["entry inc", "return inc"] * 2
    assert scene.play("deep", 4) == ["entry deep", "entry twice", *inner, "return twice", "return deep", "= 6"]
    assert scene.play("twice", 4) == ["entry twice", *inner, "return twice", "= 6"]
    assert scene.play("guard", 4)[-1] == "= 4"
    scene.k.flush_task(0)


#: main calls leaves, which goes back to main without a return, and then with an argument pops, which takes it away: the
#: stack pointer is then where leaves would have returned to
POPS_ARGUMENTS = {
    "x86_64": ("e808000000 6a55 e808000000 c3", "488d642408 ebf1", "c20800"),
    "i386": ("e808000000 6a55 e807000000 c3", "8d642404 ebf2", "c20400"),
}


@pytest.mark.parametrize("arch", sorted(POPS_ARGUMENTS))
def test_a_call_that_pops_arguments_where_a_stale_one_would_return(arch: str) -> None:
    """Found by return probes on a third of a program's functions: grow() returned as dive(), to where that was called."""
    main, leaves, pops = (bytes.fromhex(code) for code in POPS_ARGUMENTS[arch])
    symbols = {"main": 0x10000, "leaves": 0x10000 + len(main), "pops": 0x10000 + len(main + leaves)}
    with UnicornMachine.from_code(main + leaves + pops, arch=arch, symbols=symbols) as m, Kprobes(m) as k:
        made = {name: Kretprobe(symbol_name=name, handler=lambda ri, regs: None) for name in symbols}
        for _ in range(2):
            m.call("main")
        k.register_kretprobes([*made.values()])
        for turn in range(1, 4):
            m.call("main", max_insns=100)
            assert {name: (r.nhit, r.nreturned) for name, r in made.items()} == {
                "main": (turn, turn), "leaves": (turn, 0), "pops": (turn, turn)}


def test_recursion_below_a_stale_frame(scene: Scene) -> None:
    follow(scene, "m", "middle")
    scene.play("guard", 4)
    r = follow(scene, "d", "down", maxactive=30)
    assert scene.play("down", 12)[-1] == "= 12"
    assert (r.nreturned, r.nmissed) == (13, 0)
    scene.k.flush_task(0)


def test_a_tail_call_after_a_longjmp(scene: Scene) -> None:
    """guard, to which throw leaps, ends with a jump to inc: all see the true caller, not middle's stale one."""
    program = dict(PROGRAMS[scene.name])
    program["guard"] = {
        "paper": "add sp -4; store lr sp; call middle; nop; load lr sp; add sp 4; jmp inc",
        "x86_64": "push rbp; mov rbp, rsp; call {middle}; nop; pop rbp; jmp {inc}",
        "arm64": "stp x29, x30, [sp, #-16]!; mov x29, sp; bl {middle}; nop; ldp x29, x30, [sp], #16; b {inc}"}[scene.name]
    other = Scene(scene.name, **program)
    seen: list[int] = []
    for name in ("guard", "middle", "inc"):
        other.k.register_kretprobe(Kretprobe(symbol_name=name,
                                             handler=hook(name, other.lines,
                                                          lambda ri, regs: seen.extend([ri.ret_addr, regs.pc])),
                                             entry_handler=lambda ri, regs: seen.append(regs.return_address)))
    assert other.play("guard", 4) == ["inc", "guard", "= 5"]
    middles = seen.pop(1)
    assert other.at("guard") < middles < other.at("guard", 6) + 8
    assert seen == [caller(other)] * 6
    other.close()


# --- tasks


def tasks(scene: Scene) -> dict[str, str]:
    """Two guest tasks, told apart by a value of ours."""
    now = {"task": "one"}
    scene.m.cpu_task = lambda regs: now["task"]
    return now


def test_instances_are_per_task(scene: Scene) -> None:
    """Task two runs twice to its end while one's call of deep is pending, on a stack of its own."""
    now = tasks(scene)
    seen: list[tuple[str, Any]] = []
    for name in ("deep", "twice"):
        scene.k.register_kretprobe(Kretprobe(symbol_name=name,
                                             handler=lambda ri, regs, name=name: seen.append((name, ri.task))))
    before = scene.m.regs.sp
    now["task"] = "two"
    assert scene.m.call("deep", 1) == 3
    now["task"] = "one"
    assert scene.m.call("twice", 1) == 3
    assert seen == [("twice", "two"), ("deep", "two"), ("twice", "one")]
    assert scene.m.regs.sp == before


def test_two_stacks_interleaved() -> None:
    """Each task stands inside a followed call when the other one goes on: returns are matched within the task."""
    m, r = paper_machine(), Recorder()
    now = {"task": 1}
    m.cpu_task = lambda regs: now["task"]
    with Kprobes(m) as k:
        k.register_kretprobe(Kretprobe(symbol_name="twice",
                                       handler=lambda ri, regs: r.lines.append(f"task {ri.task} to {regs.pc:#x}")))
        inc, values = m.symbols["inc"].address, m._values[0]
        frames = {}
        for task, stack, back in ((1, 0xC400, 0x1004), (2, 0xC800, 0x1008)):
            now["task"] = task
            values.update(sp=stack, lr=back, r0=task)
            m.run(m.symbols["twice"].address, until=inc)  # inside the call, at inc
            frames[task] = dict(values)
        assert k._calls.pending == 2
        for task, back in ((1, 0x1004), (2, 0x1008)):
            now["task"] = task
            values.update(frames[task])
            m.run(until=back)
            assert (values["pc"], values["r0"]) == (back, task + 2)
        assert r.lines == ["task 1 to 0x1004", "task 2 to 0x1008"]
        assert k._calls.pending == 0


def test_the_end_of_a_task_recycles_its_instances_without_handlers() -> None:
    m, lines = paper_machine(), []
    now = {"task": "dying"}
    m.cpu_task = lambda regs: now["task"]
    with Kprobes(m) as k:
        r = Kretprobe(symbol_name="twice", maxactive=1, handler=hook("return", lines))
        k.register_kretprobe(r)
        m._values[0].update(lr=0x1004)
        m.run(m.symbols["twice"].address, until=m.symbols["inc"].address)
        assert k._calls.pending == 1
        k.flush_task("dying")
        assert (k._calls.pending, lines) == (0, [])
        k.flush_task("dying")
        k.flush_task("never seen")
        now["task"] = "next"
        assert m.call("twice", 1) == 3
        assert lines == ["return"]
        assert r.nmissed == 0


def test_a_task_that_left_its_calls_behind() -> None:
    """Task 0 ended within a followed call, untold; another runs on its stack, and returns where that one's own call
    came from."""
    m, seen = paper_machine(), []
    now = {"task": 0}
    m.cpu_task = lambda regs: now["task"]
    with Kprobes(m) as k:
        k.register_kretprobe(Kretprobe(symbol_name="twice", handler=lambda ri, regs: seen.append(ri.task)))
        sp = m.regs.sp
        m._values[0].update(lr=0x1004)
        m.run(m.symbols["twice"].address, until=m.symbols["inc"].address)
        assert k._calls.pending == 1
        m.regs.sp, now["task"] = sp, 1
        assert m.call("twice", 1) == 3
        assert seen == [1]
        k.flush_task(0)


def test_closing_with_a_task_that_never_returns() -> None:
    """The pages stay while a call is pending; the end of its task gives them back."""
    m = paper_machine()
    before = m.snapshot()
    k = Kprobes(m)
    k.register_kretprobe(Kretprobe(symbol_name="twice", handler=lambda ri, regs: None))
    m._values[0].update(lr=0x1004)
    m.run(m.symbols["twice"].address, until=m.symbols["inc"].address)
    k.close()
    k.close()
    assert m.snapshot()[0x1000] == before[0x1000]
    assert m.sink is not None
    k.flush_task(0)
    assert m.sink is None
    assert m.snapshot().keys() == before.keys()


# --- exceptions


class Oops(Exception):
    """Raised by handlers."""


def oops(*_: Any) -> None:
    raise Oops


def test_an_exception_in_the_return_handler(scene: Scene) -> None:
    """It leaves through call(); the guest stands at the return address, and everything works on."""
    r = Kretprobe(symbol_name="inc", handler=oops, maxactive=1)
    scene.k.register_kretprobe(r)
    with pytest.raises(Oops):
        scene.m.call("inc", 4)
    assert scene.m.regs.pc == caller(scene)
    assert scene.m.regs.return_value == 5
    assert scene.k.idle
    assert scene.k._calls.pending == 0
    r.handler = hook("return", scene.lines)
    assert scene.play("inc", 4) == ["return", "= 5"]
    assert r.nmissed == 0, "the instance was not lost"


@pytest.mark.parametrize("hit", [1, 3])
@pytest.mark.parametrize("which", ["handler", "entry_handler"])
def test_a_handler_that_closes_everything_and_raises(scene: Scene, which: str, hit: int) -> None:
    """What it raises is not lost with the call site that called it."""
    hits = []

    def handler(ri: Any, regs: Any) -> None:
        hits.append(ri)
        if len(hits) == hit:
            scene.k.close()
            raise Oops

    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", **{"handler": hook("r", []), which: handler}))
    for n in range(1, hit):
        assert scene.m.call("inc", n) == n + 1
    with pytest.raises(Oops):
        scene.m.call("inc", 7)
    assert scene.m.call("inc", 8) == 9
    assert len(hits) == hit


def test_an_exception_in_the_entry_handler(scene: Scene) -> None:
    r = Kretprobe(symbol_name="inc", handler=hook("return", scene.lines), entry_handler=oops, maxactive=1)
    scene.k.register_kretprobe(r)
    with pytest.raises(Oops):
        scene.m.call("inc", 4)
    assert scene.m.regs.pc == scene.at("inc")
    assert scene.k.idle
    assert scene.k._calls.pending == 0, "not followed"
    r.entry_handler = None
    assert scene.play("inc", 4) == ["return", "= 5"]
    assert r.nmissed == 0


def test_a_fault_handler_may_handle_both(scene: Scene) -> None:
    seen: list[Any] = []

    def fault(p: Any, regs: Any, trapnr: int) -> int:
        seen.append((p, type(regs.exception), regs.fault, trapnr))
        return 1

    r = Kretprobe(symbol_name="inc", handler=oops, entry_handler=oops, fault_handler=fault)
    scene.k.register_kretprobe(r)
    assert scene.m.call("inc", 4) == 5
    r.entry_handler = None
    assert scene.m.call("inc", 4) == 5
    assert seen == [(r, Oops, None, 0)] * 2


def test_a_sibling_after_one_that_raises(scene: Scene) -> None:
    """The exception ends the report: the siblings' instances are recycled all the same."""
    a = Kretprobe(symbol_name="inc", handler=oops, maxactive=1)
    b = Kretprobe(symbol_name="inc", handler=hook("b", scene.lines), maxactive=1)
    scene.k.register_kretprobes([a, b])
    with pytest.raises(Oops):
        scene.m.call("inc", 4)
    a.handler = hook("a", scene.lines)
    assert scene.play("inc", 4) == ["a", "b", "= 5"]
    assert (a.nmissed, b.nmissed) == (0, 0)


def test_a_sibling_whose_entry_handler_raises(scene: Scene) -> None:
    """The elder one follows the call, the younger one is not asked; as often as they are hit, nothing is lost."""
    a, b, c = (Kretprobe(symbol_name="inc", entry_handler=hook(f"entry {name}", scene.lines),
                         handler=hook(f"return {name}", scene.lines), maxactive=2) for name in "abc")
    scene.k.register_kretprobes([a, b, c])
    for _ in range(2):
        scene.play("inc", 4)
    for _ in range(3):
        scene.lines.clear()
        b.entry_handler = oops
        with pytest.raises(Oops):
            scene.m.call("inc", 4)
        assert scene.lines == ["entry c"] and scene.m.regs.pc == scene.at("inc") and scene.k.idle
        b.entry_handler = hook("entry b", scene.lines)
        assert scene.play("inc", 4) == ["entry c", *(f"entry {x}" for x in "ba"), *(f"return {x}" for x in "abc"),
                                        "= 5"]
    assert [(x.nhit, x.nreturned, x.nmissed) for x in (a, b, c)] == [(5, 5, 0), (8, 5, 0), (8, 5, 0)]


def test_a_sibling_is_unregistered_by_the_elder_ones_entry_handler(scene: Scene) -> None:
    """Neither its handlers run nor its hits count."""
    a, b = follow(scene, "a"), follow(scene, "b")
    scene.play("inc", 4)

    def enter(ri: Any, regs: Any) -> None:
        scene.k.unregister_kretprobe(b)

    scene.k.register_kretprobe(Kretprobe(symbol_name="inc", entry_handler=enter,
                                         handler=hook("return c", scene.lines)))
    assert scene.play("inc", 4) == ["entry a", "return a", "return c", "= 5"]
    assert (a.nhit, a.nreturned, b.nhit, b.nreturned) == (2, 2, 1, 1)
    scene.k.register_kretprobe(b)


@pytest.mark.parametrize("who", ["a", "b", "c"])
def test_a_sibling_sets_the_return_address(scene: Scene, who: str) -> None:
    """All of them are told, whoever it is."""
    elsewhere, seen = scene.at("probed"), []

    def enter(name: str) -> Any:
        def handler(ri: Any, regs: Any) -> None:
            if name == who and regs.arg(0) == 40:
                scene.m.arch.linkage.set(regs, elsewhere)
        return handler

    def leave(name: str) -> Any:
        return lambda ri, regs: seen.append((name, ri.ret_addr, regs.pc))

    for name in "abc":
        scene.k.register_kretprobe(Kretprobe(symbol_name="inc", entry_handler=enter(name), handler=leave(name)))
    for _ in range(3):  # by a trap, by a jump, and followed by the machine
        scene.m.regs[scene.m.arch.abi.args[0]] = 40
        scene.m.run(scene.at("inc"), until=elsewhere)
        assert scene.m.regs.pc == elsewhere and scene.m.regs.return_value == 41
        assert seen == [(name, elsewhere, elsewhere) for name in "abc"]
        seen.clear()
        assert scene.play("inc", 1) == ["= 2"] and len(seen) == 3
        seen.clear()
    assert scene.k._calls.pending == 0


# --- hits while something else runs


def test_a_followed_function_called_from_a_handler_is_missed(scene: Scene) -> None:
    """The entry's hit itself is missed: no instance is used, and the call returns by itself."""
    r = follow(scene, "r")
    scene.k.register_kprobe(Kprobe(symbol_name="probed",
                                   pre_handler=lambda p, regs: scene.lines.append(str(scene.m.call("inc", 1)))))
    assert scene.play("probed", 4) == ["2", "= 7"]
    assert (r.nhit, r.entry_nmissed, r.nmissed) == (0, 1, 0)


def test_a_handler_sees_pending_calls_of_its_own(scene: Scene) -> None:
    """A guest call from the entry handler is not followed, and does not disturb the call that is."""
    r = Kretprobe(symbol_name="down", handler=scene.r.returns("r"),
                  entry_handler=hook("entry", scene.lines, lambda ri, regs: scene.m.call("down", 2)))
    scene.k.register_kretprobe(r)
    assert scene.play("down", 1) == ["entry", "entry", "return r", "return r", "= 1"]
    assert r.entry_nmissed == 6


# --- seen through


def test_return_address_and_registers_inside_the_function(scene: Scene) -> None:
    """A kprobe further in sees the true caller, though the trampoline is in the link register or on the stack."""
    seen: list[int] = []
    follow(scene, "r")
    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=lambda p, regs: seen.append(regs.return_address)))
    scene.m.call("inc", 4)
    assert seen == [caller(scene)]


@pytest.mark.parametrize("name", ["x86_64", "arm64", "x86_64 jumps", "arm64 jumps"])
@pytest.mark.parametrize("entry_handlers", [True, False])
def test_a_stack_walk_shows_true_callers(name: str, entry_handlers: bool) -> None:
    """From a kprobe at inc, an entry handler and a return handler, with every function of the chain followed."""
    scene = Scene(name)
    k, back = scene.k, caller(scene)
    chain = [scene.at("twice", 3), scene.at("deep", 3), back]  # what follows the calls
    traces: dict[str, list[int]] = {}

    def note(what: str) -> Any:
        return lambda owner, regs: traces.setdefault(what, k.stack_trace(regs)) and None

    for function in ("deep", "twice", "inc"):
        k.register_kretprobe(Kretprobe(symbol_name=function, handler=note(f"return {function}"),
                                        entry_handler=note(f"entry {function}") if entry_handlers else None))
    k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=note("pre inc")))
    assert scene.m.call("deep", 4) == 6

    def shown(what: str, length: int) -> list[int]:
        return traces[what][:length]

    assert shown("pre inc", 4) == [scene.at("inc"), *chain]
    if entry_handlers:
        assert shown("entry inc", 4) == [scene.at("inc"), *chain]
        assert shown("entry twice", 3) == [scene.at("twice"), *chain[1:]]
    assert shown("return inc", 3) == chain
    assert shown("return twice", 2) == chain[1:]
    assert shown("return deep", 1) == chain[2:]
    trampoline = k._calls.trampoline
    assert all(trampoline not in trace for trace in traces.values())
    scene.close()


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
def test_stack_trace_is_limited(name: str) -> None:
    scene = Scene(name)
    seen: list[int] = []
    scene.k.register_kprobe(Kprobe(symbol_name="inc",
                                   pre_handler=lambda p, regs: seen.append(len(scene.k.stack_trace(regs, 2)))))
    scene.m.call("deep", 4)
    assert seen == [2, 2]
    scene.close()


def test_stack_trace_without_a_frame_pointer(paper: Scene) -> None:
    from kprobes.errors import Unsupported

    outside = paper.k.stack_trace(paper.m.regs)
    assert outside == [0] and outside.incomplete  # pc has left all memory
    paper.m.regs.pc = paper.at("probed")
    with pytest.raises(Unsupported, match="paper"):
        paper.k.stack_trace(paper.m.regs)


# --- calls that end by something else than a return


def test_a_return_address_that_an_entry_handler_sets(scene: Scene) -> None:
    """Linux reads it after the handler: the function returns there, and so does ri say."""
    elsewhere, seen = scene.at("probed"), []

    def enter(ri: Any, regs: Any) -> None:
        if regs.arg(0) == 40:
            scene.m.arch.linkage.set(regs, elsewhere)

    with scene.k.kretprobe("inc", entry_handler=enter, handler=lambda ri, regs: seen.append((ri.ret_addr, regs.pc))):
        assert scene.play("inc", 1) == ["= 2"]
        seen.clear()
        for _ in range(3):  # by a trap, by a jump, and followed by the machine
            scene.m.regs[scene.m.arch.abi.args[0]] = 40
            scene.m.run(scene.at("inc"), until=elsewhere)
            assert scene.m.regs.pc == elsewhere and scene.m.regs.return_value == 41
            assert seen == [(elsewhere, elsewhere)]
            seen.clear()
            assert scene.play("inc", 1) == ["= 2"]
            seen.clear()


ENDINGS = {"bound": ("spin", GuestTimeout), "fault": ("fetch", GuestFault)}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("entry_handler", [None, lambda ri, regs: None])
def test_closed_after_a_call_that_ended_otherwise(scene: Scene, ending: str, entry_handler: Any) -> None:
    """The machine is free at once; what stood there goes with the next run."""
    function, error = ENDINGS[ending]
    bounds = {"max_insns": 1000 if scene.name == "paper" else 5} if ending == "bound" else {}
    for _ in range(3):
        scene.k.register_kretprobe(Kretprobe(symbol_name=function, handler=lambda ri, regs: None,
                                             entry_handler=entry_handler))
        for _ in range(2):
            with pytest.raises(error):
                scene.m.call(function, scene.unmapped, **bounds)
        scene.k.close()
        scene = Scene.on(scene)
    scene.k.close()
    assert scene.m.call("inc", 1) == 2
    assert scene.m.sink is None and scene.text() == scene.original


def test_going_on_after_a_bound_with_another_kprobes(scene: Scene) -> None:
    """The call is alive: it returns to the right place, of which the second one looks after."""
    scene.k.register_kretprobe(Kretprobe(symbol_name="twice", handler=lambda ri, regs: None))
    regs = scene.m.regs
    regs[scene.m.arch.abi.args[0]] = 5
    if scene.name == "paper":
        regs["lr"] = caller(scene)
    scene.m.run(scene.at("twice"), until=scene.at("inc"))
    before = regs.sp
    scene.k.close()
    scene.k = scene.kprobes(scene.m)
    p = scene.probe("p", "inc")
    scene.m.run()
    assert regs.return_value == 7 and p.nhit == 2 and regs.sp > before
    assert scene.k._calls.pending == 0


def test_a_call_that_longjmp_left_is_given_back(scene: Scene) -> None:
    """Its probe is gone: nothing remains of it, however often, and closing ends."""
    for _ in range(20):
        with scene.k.kretprobe("middle"), scene.k.kretprobe("throw"):
            assert scene.play("guard", 5) == ["= 5"]
        assert scene.k._calls.pending == 0
    assert sum(map(len, scene.k._calls.tasks.values())) <= 2 * 20
    scene.k.close()
    assert scene.m.sink is None


def test_what_was_set_aside_is_bounded(paper: Scene) -> None:
    for _ in range(700):
        with paper.k.kretprobe("middle"), paper.k.kretprobe("throw"):
            paper.play("guard", 5)
    assert sum(map(len, paper.k._calls.tasks.values())) <= SET_ASIDE


@pytest.mark.parametrize("stacks", [(0xC400, 0xC800), (0xC800, 0xC400)])
@pytest.mark.parametrize("first", [0, 1])
def test_two_stacks_that_nobody_told_of(stacks: tuple[int, int], first: int) -> None:
    """One call on each: they return in either order, and to the right places."""
    m, seen = paper_machine(), []
    with Kprobes(m) as k:
        k.register_kretprobe(Kretprobe(symbol_name="twice", handler=lambda ri, regs: seen.append(regs.pc)))
        inc, values = m.symbols["inc"].address, m._values[0]
        frames = []
        for stack, back in zip(stacks, (0x1004, 0x1008), strict=True):
            values.update(sp=stack, lr=back, r0=back)
            m.run(m.symbols["twice"].address, until=inc)
            frames.append(dict(values))
        for n, back in ((first, (0x1004, 0x1008)[first]), (1 - first, (0x1008, 0x1004)[first])):
            values.update(frames[n])
            m.run(until=back)
            assert (values["pc"], values["r0"]) == (back, back + 2)
        assert sorted(seen) == [0x1004, 0x1008]


# --- instances on demand


@pytest.mark.filterwarnings("error::kprobes.ReturnMissed")
@pytest.mark.parametrize("entry", [False, True])
def test_instances_are_made_as_they_are_needed(scene: Scene, entry: bool) -> None:
    """Linux would follow ten at a time, or two for each CPU."""
    values: list[int] = []
    r = Kretprobe(symbol_name="down", handler=lambda ri, regs: values.append(regs.return_value),
                  entry_handler=(lambda ri, regs: None) if entry else None)
    scene.k.register_kretprobe(r)
    for _ in range(2):
        assert scene.m.call("down", 200) == 200 and (r.nmissed, r.nreturned) == (0, len(values))
    assert values == [*range(201)] * 2


def test_a_miss_for_want_of_an_instance_is_said_once(scene: Scene) -> None:
    for most, mends in ((0, "the ceiling, Kprobes.instances"), (3, "maxactive")):
        scene.k.instances = 30
        r = Kretprobe(symbol_name="down", maxactive=most, handler=lambda ri, regs: None)
        scene.k.register_kretprobe(r)
        with pytest.warns(ReturnMissed,
                          match=f"down: {most or 30} calls are followed at a time, and more were active.*raise {mends}") as said:
            scene.m.call("down", 40)
        assert len(said) == 1 and r.nmissed == 41 - (most or 30)
        scene.m.call("down", 40)
        scene.k.unregister_kretprobe(r)


@pytest.mark.parametrize("maxactive", [0, 300])
def test_a_jump_to_the_entry_for_ever_does_not_take_every_instance(maxactive: int) -> None:
    """Its calls share one frame, so that no number of instances is enough: 256 are, or as many as were asked for."""
    with UnicornMachine.from_code(bytes.fromhex("ebfe"), arch="x86_64") as m, Kprobes(m) as k:
        rp = Kretprobe(addr=0x10000, handler=lambda p, regs: None, maxactive=maxactive)
        k.register(rp)
        with pytest.raises(GuestTimeout), pytest.warns(ReturnMissed):
            m.call(0x10000, max_insns=1000)
        assert (rp.nhit, rp.nmissed) == (1000, 1000 - (maxactive or 256))
