"""Guest faults in displaced instructions, and exceptions in handlers. docs/linux.md C4; docs/faults.md."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from scenes import Scene, hook, unicorn_machine

from kprobes import GuestFault, Kprobe, Kprobes, Kretprobe
from kprobes.testing import Recorder

SEGV, ILL, FPE = 11, 4, 8


class Oops(Exception):
    """Raised by handlers."""


def oops(*_: Any) -> None:
    raise Oops("on purpose")


# --- how the displaced instruction is executed

MODES = ("boosted", "optimized", "stepped")


def on_fetch(scene: Scene, mode: str, **fields: Any) -> Kprobe:
    """A probe on fetch's load, whose displaced instruction is executed in this way."""
    if mode == "stepped":
        fields.setdefault("post_handler", scene.r.post("p"))
    p = Kprobe(symbol_name="fetch", pre_handler=scene.r.pre("p"), **fields)
    scene.k.optimization = mode == "optimized"
    scene.k.register_kprobe(p)
    scene.k.flush_optimizer()
    if mode == "boosted":
        assert p.boosted
    return p


@pytest.mark.parametrize("mode", MODES)
def test_an_unhandled_fault_appears_at_home(scene: Scene, mode: str) -> None:
    """At its own address, with nothing left running, and the next hit works."""
    p = on_fetch(scene, mode)
    with pytest.raises(GuestFault) as raised:
        scene.m.call("fetch", scene.unmapped)
    fault, home = raised.value, scene.at("fetch")
    assert (fault.pc, fault.access, fault.symbol) == (home, "read", "fetch+0x0")
    assert fault.address == scene.unmapped
    assert scene.m.regs.pc == home
    assert scene.k.idle
    assert scene.lines == ["pre p"]
    scene.lines.clear()
    post = ["post p"] if mode == "stepped" else []
    assert scene.play("fetch", scene.word(7)) == ["pre p", *post, "= 7"]
    assert (p.nhit, p.nmissed) == (2, 0)


@pytest.mark.parametrize("mode", MODES)
def test_without_a_probe_the_fault_is_the_same(scene: Scene, mode: str) -> None:
    with pytest.raises(GuestFault) as bare:
        scene.m.call("fetch", scene.unmapped)
    on_fetch(scene, mode)
    with pytest.raises(GuestFault) as probed:
        scene.m.call("fetch", scene.unmapped)
    facts = [(e.value.reason, e.value.address, e.value.pc, e.value.access, e.value.symbol, e.value.errno)
             for e in (bare, probed)]
    assert facts[0] == facts[1]


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_handler_maps_the_memory_and_the_guest_goes_on(scene: Scene, mode: str) -> None:
    seen: list[Any] = []

    def fault(p: Kprobe, regs: Any, trapnr: int) -> int:
        seen.append((p, regs.pc, trapnr, regs.fault.access, regs.exception))
        scene.lines.append("fault")
        scene.map(scene.unmapped, 42)
        return 1

    p = on_fetch(scene, mode, fault_handler=fault)
    post = ["post p"] if mode == "stepped" else []
    assert scene.play("fetch", scene.unmapped) == ["pre p", "fault", *post, "= 42"]
    assert seen == [(p, scene.at("fetch"), SEGV, "read", None)]
    assert (p.nhit, p.nmissed) == (1, 0), "the same hit goes on"
    assert scene.m.regs.fault is None
    assert scene.play("fetch", scene.unmapped) == ["pre p", *post, "= 42"]


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_handler_corrects_a_register(scene: Scene, mode: str) -> None:
    good = scene.word(9)

    def fault(p: Kprobe, regs: Any, trapnr: int) -> int:
        regs.set_arg(0, good)
        return 1

    on_fetch(scene, mode, fault_handler=fault)
    assert scene.play("fetch", scene.unmapped)[-1] == "= 9"


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_handler_skips_the_instruction(scene: Scene, mode: str) -> None:
    """The guest resumes where regs say; then the hit is over and no post-handler runs."""
    behind = scene.at("fetch", 1)

    def fault(p: Kprobe, regs: Any, trapnr: int) -> int:
        regs.return_value = 33
        regs.pc = behind
        return 1

    p = on_fetch(scene, mode, fault_handler=fault)
    assert scene.play("fetch", scene.unmapped) == ["pre p", "= 33"]
    assert scene.k.idle
    assert scene.play("fetch", scene.unmapped) == ["pre p", "= 33"]
    assert p.nhit == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_handler_that_declines(scene: Scene, mode: str) -> None:
    """Its changes of pc are void: the fault appears at home."""
    calls: list[int] = []

    def fault(p: Kprobe, regs: Any, trapnr: int) -> int:
        calls.append(regs.pc)
        return 0

    on_fetch(scene, mode, fault_handler=fault)
    with pytest.raises(GuestFault) as raised:
        scene.m.call("fetch", scene.unmapped)
    assert calls == [scene.at("fetch")]
    assert raised.value.pc == scene.at("fetch") == scene.m.regs.pc
    assert scene.k.idle


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_handler_calls_guest_code(scene: Scene, mode: str) -> None:
    """That is hit by the same probe, which misses it, or fails."""
    results: list[int] = []

    def asking(p: Any, regs: Any, trapnr: int) -> bool:
        results.append(scene.m.call("fetch", scene.word(5)))
        with pytest.raises(GuestFault) as inner:
            scene.m.call("fetch", scene.unmapped + 8)
        assert inner.value.address == scene.unmapped + 8
        regs.set_arg(0, scene.word(6))
        return True

    p = on_fetch(scene, mode, fault_handler=asking)
    for n in range(1, 3):
        assert scene.m.call("fetch", scene.unmapped) == 6
        assert (p.nhit, p.nmissed, results) == (n, 2 * n, [5] * n)
    assert scene.k.idle


@pytest.mark.parametrize("mode", MODES)
def test_a_fault_handler_that_raises(scene: Scene, mode: str) -> None:
    on_fetch(scene, mode, fault_handler=oops)
    with pytest.raises(Oops):
        scene.m.call("fetch", scene.unmapped)
    assert scene.m.regs.pc == scene.at("fetch")
    assert scene.k.idle
    scene.lines.clear()
    assert scene.play("fetch", scene.word(7))[0] == "pre p"


def test_a_disabled_probe_is_not_asked(scene: Scene) -> None:
    asked: list[str] = []
    on_fetch(scene, "stepped", fault_handler=lambda *_: asked.append("a") or 0)
    off = Kprobe(symbol_name="fetch", fault_handler=lambda *_: asked.append("off") or 1)
    scene.k.register_kprobe(off)
    scene.k.disable_kprobe(off)
    with pytest.raises(GuestFault):
        scene.m.call("fetch", scene.unmapped)
    assert asked == ["a"]


@pytest.mark.parametrize("mode", MODES)
def test_the_guest_goes_on_after_an_unhandled_fault(scene: Scene, mode: str) -> None:
    """m.regs are the guest's: put right, m.run() goes on, and the instruction's hit is a new one."""
    p = on_fetch(scene, mode)
    with pytest.raises(GuestFault):
        scene.m.call("fetch", scene.unmapped)
    scene.m.regs.set_arg(0, scene.word(5))
    scene.m.run()
    assert scene.m.regs.return_value == 5
    assert p.nhit == 2


def test_a_missed_hits_fault_asks_nobody(scene: Scene) -> None:
    """docs/how-a-hit-works.md: REENTER, FAULT: pc := probepoint, pop."""
    asked: list[str] = []
    inner = Kprobe(symbol_name="fetch", fault_handler=lambda *_: asked.append("inner") or 0, optimize=False)
    scene.k.register_kprobe(inner)

    def pre(p: Kprobe, regs: Any) -> None:
        with pytest.raises(GuestFault) as raised:
            scene.m.call("fetch", scene.unmapped)
        scene.lines.append(f"fault at {raised.value.symbol}")

    outer = Kprobe(symbol_name="probed", pre_handler=pre, post_handler=scene.r.post("outer"))
    scene.k.register_kprobe(outer)
    assert scene.play("probed", 4) == ["fault at fetch+0x0", "post outer", "= 7"]
    assert asked == []
    assert (inner.nhit, inner.nmissed) == (0, 1)


@pytest.mark.parametrize("mode", MODES)
def test_a_missed_hits_fault_asks_nobody_however_it_is_executed(scene: Scene, mode: str) -> None:
    asked: list[str] = []
    inner = on_fetch(scene, mode, fault_handler=lambda *_: asked.append("inner") or 0)

    def pre(p: Kprobe, regs: Any) -> None:
        with pytest.raises(GuestFault):
            scene.m.call("fetch", scene.unmapped)

    scene.k.register_kprobe(Kprobe(symbol_name="probed", pre_handler=pre, post_handler=scene.r.post("outer")))
    assert scene.play("probed", 4) == ["post outer", "= 7"]
    assert asked == []
    assert inner.nmissed == 1
    assert scene.k.idle


# --- kinds of faults


@pytest.mark.parametrize("post", [None, lambda *_: None], ids=["boosted", "stepped"])
@pytest.mark.parametrize(("name", "text", "args", "trapnr", "access"), [
    ("x86_64", "div rsi; ret", (0, 0), FPE, "arithmetic"),
    ("x86_64", "ud2; ret", (), ILL, "undefined"),
    ("x86_64", "mov [rdi], rdi; ret", (0x3000,), SEGV, "write"),
    ("x86_64", "mov [rdi], rdi; ret", (0x20000,), SEGV, "write"),  # mapped, read-only
    ("arm64", "str x0, [x0]; ret", (0x3000,), SEGV, "write"),
    ("arm64", "str x0, [x0]; ret", (0x20000,), SEGV, "write"),
])
def test_kinds_of_faults(name: str, text: str, args: tuple[int, ...], trapnr: int, access: str, post: Any) -> None:
    m = unicorn_machine(name, f=text)
    m.map(0x20000, 0x1000, "r")
    with pytest.raises(GuestFault) as bare:
        m.call("f", *args)
    with Kprobes(m) as k:
        seen: list[Any] = []
        p = Kprobe(symbol_name="f", fault_handler=lambda p, regs, n: seen.append((n, regs.fault.access, regs.pc)) or 0,
                   post_handler=post)
        if k.check("f").probeable:
            k.register_kprobe(p)
            with pytest.raises(GuestFault) as probed:
                m.call("f", *args)
            assert seen == [(trapnr, access, 0x10000)]
            assert str(probed.value) == str(bare.value)
            assert (probed.value.access, probed.value.pc) == (access, 0x10000)
        else:
            assert text.startswith("ud2"), "an instruction that always faults may be refused"


def test_division_on_paper(paper: Scene) -> None:
    seen: list[Any] = []
    p = Kprobe(symbol_name="divide", fault_handler=lambda p, regs, n: seen.append((n, regs.fault.access)) or 0,
               post_handler=paper.r.post("d"))
    paper.k.register_kprobe(p)
    with pytest.raises(GuestFault) as raised:
        paper.m.call("divide", 4, 0)
    assert (raised.value.access, raised.value.pc, seen) == ("arithmetic", paper.at("divide"), [(FPE, "arithmetic")])
    assert paper.play("divide", 8, 2) == ["post d", "= 4"]


@pytest.mark.parametrize("post", [False, True])
@pytest.mark.parametrize("optimize", [False, True])
def test_a_simulated_instruction_that_faults(post: bool, optimize: bool) -> None:
    """x86_64: jmp [rdi] is simulated, and reads memory. The same transcript as for one that runs out of line."""
    m = unicorn_machine("x86_64", f="jmp qword ptr [rdi]", g="mov eax, 7; ret")
    r = Recorder()
    with Kprobes(m) as k:
        good = m.alloc(8)
        m.write(good, m.symbols["g"].address.to_bytes(8, "little"))
        handled: list[Any] = []

        def fault(p: Kprobe, regs: Any, trapnr: int) -> int:
            handled.append((regs.pc, trapnr, regs.fault.access, regs.fault.address))
            r.lines.append("fault")
            regs.set_arg(0, good)
            return 1

        p = Kprobe(symbol_name="f", pre_handler=r.pre("p"), post_handler=r.post("p") if post else None,
                   optimize=optimize)
        k.register_kprobe(p)
        k.flush_optimizer()
        with pytest.raises(GuestFault) as raised:
            m.call("f", 0x3000)
        assert (raised.value.pc, raised.value.address, raised.value.access,
                raised.value.symbol) == (0x10000, 0x3000, "read", "f+0x0")
        assert m.regs.pc == 0x10000
        assert k.idle
        assert r.take() == ["pre p"]
        p.fault_handler = fault
        assert m.call("f", 0x3000) == 7
        assert r.take() == ["pre p", "fault", *(["post p"] if post else [])]
        assert handled == [(0x10000, SEGV, "read", 0x3000)]
        assert m.call("f", good) == 7
        assert (p.nhit, p.nmissed) == (3, 0)


@pytest.mark.parametrize("optimize", [False, True])
def test_a_missed_simulated_instructions_fault_asks_nobody(optimize: bool) -> None:
    """Neither its own probe nor the one whose handler made the guest call."""
    m = unicorn_machine("x86_64", f="jmp qword ptr [rdi]", g="lea rax, [rdi + 1]; ret")
    asked: list[str] = []
    with Kprobes(m) as k:
        def pre(p: Kprobe, regs: Any) -> None:
            with pytest.raises(GuestFault) as raised:
                m.call("f", 0x3000)
            asked.append(f"fault at {raised.value.symbol}")

        inner = Kprobe(symbol_name="f", pre_handler=lambda p, regs: None,
                       fault_handler=lambda *_: asked.append("inner") or 0, optimize=optimize)
        outer = Kprobe(symbol_name="g", pre_handler=pre, fault_handler=lambda *_: asked.append("outer") or 0)
        k.register_kprobes([inner, outer])
        k.flush_optimizer()
        for n in range(2):
            assert m.call("g", 4) == 5
            assert asked == ["fault at f+0x0"]
            asked.clear()
            assert (inner.nhit, inner.nmissed, outer.nhit) == (0, n + 1, n + 1)
            assert k.idle


def test_a_simulated_instruction_whose_fault_is_skipped() -> None:
    m = unicorn_machine("x86_64", f="jmp qword ptr [rdi]; nop; mov eax, 5; ret")
    with Kprobes(m) as k:
        def fault(p: Kprobe, regs: Any, trapnr: int) -> int:
            regs.pc = 0x10002
            return 1

        k.register_kprobe(Kprobe(symbol_name="f", fault_handler=fault,
                                 post_handler=lambda *_: pytest.fail("the hit is over")))
        assert m.call("f", 0x3000) == 5
        assert k.idle


def test_a_jump_to_nowhere_faults_there(scene: Scene) -> None:
    """The branch is taken; it is the next instruction that cannot be fetched, and nobody's displaced one."""
    asked: list[int] = []
    program = {"paper": "jr r0", "x86_64": "jmp rdi", "arm64": "br x0"}[scene.name]
    other = Scene(scene.name, f=program)
    p = Kprobe(symbol_name="f", fault_handler=lambda *_: asked.append(1) or 1, post_handler=other.r.post("p"))
    other.k.register_kprobe(p)
    with pytest.raises(GuestFault) as raised:
        other.m.call("f", other.unmapped)
    assert (raised.value.access, raised.value.pc, asked) == ("fetch", other.unmapped, [])
    assert other.lines == ["post p"]
    assert other.k.idle
    other.close()


def test_a_fault_elsewhere_is_nobodys(scene: Scene) -> None:
    """A probe on another instruction of the function is not asked."""
    asked: list[int] = []
    scene.k.register_kprobe(Kprobe(addr=scene.at("fetch", 1), fault_handler=lambda *_: asked.append(1) or 1))
    with pytest.raises(GuestFault) as raised:
        scene.m.call("fetch", scene.unmapped)
    assert raised.value.pc == scene.at("fetch")
    assert asked == []


# --- exceptions of handlers

ROLES = ("pre_handler", "post_handler")


@pytest.mark.parametrize("role", ROLES)
def test_an_exception_leaves_with_its_own_traceback(scene: Scene, role: str) -> None:
    p = Kprobe(symbol_name="probed", **{role: oops})
    scene.k.register_kprobe(p)
    with pytest.raises(Oops) as raised:
        scene.m.call("probed", 4)
    assert "oops" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert scene.m.regs.pc == scene.at("probed", 0 if role == "pre_handler" else 1)
    assert scene.k.idle
    with pytest.raises(Oops):
        scene.m.call("probed", 4)
    scene.k.unregister_kprobe(p)
    assert scene.m.call("probed", 4) == 7


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("role", ROLES)
def test_what_is_no_exception_leaves_too(scene: Scene, role: str, error: type[BaseException]) -> None:
    """No fault_handler is asked about those."""
    def handler(*_: Any) -> None:
        raise error

    p = Kprobe(symbol_name="probed", fault_handler=lambda *_: pytest.fail("asked"), **{role: handler})
    scene.k.register_kprobe(p)
    with pytest.raises(error):
        scene.m.call("probed", 4)
    assert scene.k.idle
    scene.k.unregister_kprobe(p)
    assert scene.m.call("probed", 4) == 7


@pytest.mark.parametrize("role", ROLES)
def test_the_other_probes_stay_armed(scene: Scene, role: str) -> None:
    scene.probe("a", "twice")
    bad = Kprobe(symbol_name="inc", **{role: oops})
    scene.k.register_kprobe(bad)
    with pytest.raises(Oops):
        scene.m.call("twice", 4)
    assert scene.lines == ["pre a", "post a"]
    scene.k.unregister_kprobe(bad)
    assert scene.play("twice", 4)[-3:] == ["pre a", "post a", "= 6"]


@pytest.mark.parametrize("role", ROLES)
def test_a_fault_handler_handles_its_own_probes_exception(scene: Scene, role: str) -> None:
    seen: list[Any] = []

    def fault(p: Kprobe, regs: Any, trapnr: int) -> int:
        seen.append((p, type(regs.exception), regs.fault, trapnr))
        return 1

    p = Kprobe(symbol_name="probed", fault_handler=fault, **{role: oops})
    scene.k.register_kprobe(p)
    assert scene.m.call("probed", 4) == 7
    assert scene.m.call("probed", 4) == 7
    assert seen == [(p, Oops, None, 0)] * 2
    assert scene.m.regs.exception is None


def test_a_handled_exception_goes_on_with_the_siblings(scene: Scene) -> None:
    scene.probe("old")
    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=oops, post_handler=oops,
                                   fault_handler=scene.r.fault("bad", 1)))
    scene.probe("new")
    assert scene.play("inc", 4) == ["pre new", "fault bad Oops", "pre old", "post new", "fault bad Oops", "post old",
                                    "= 5"]


def test_a_handled_exception_may_divert(scene: Scene) -> None:
    away = scene.at("probed")

    def fault(p: Kprobe, regs: Any, trapnr: int) -> int:
        regs.pc = away
        return 1

    scene.probe("old")
    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=oops, fault_handler=fault, optimize=False))
    assert scene.play("inc", 4) == ["= 7"]
    assert scene.k.idle


def test_an_exception_asks_only_the_dispatched_child(scene: Scene) -> None:
    """docs/linux.md C4: in aggregates the fault_handler called is that of the child currently dispatched."""
    for name in ("old", "bad", "new"):
        p = scene.r.both(name, symbol_name="inc", fault_handler=scene.r.fault(name, 0))
        if name == "bad":
            p.pre_handler = hook("pre bad", scene.lines, oops)
        scene.k.register_kprobe(p)
    with pytest.raises(Oops):
        scene.m.call("inc", 4)
    assert scene.lines == ["pre new", "pre bad", "fault bad Oops"]


def test_an_exception_the_fault_handler_declines(scene: Scene) -> None:
    p = Kprobe(symbol_name="inc", pre_handler=oops, fault_handler=scene.r.fault("f", 0))
    scene.k.register_kprobe(p)
    with pytest.raises(Oops) as raised:
        scene.m.call("inc", 4)
    assert "oops" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert scene.lines == ["fault f Oops"]
    assert scene.m.regs.exception is None


def test_an_exception_in_the_fault_handler_itself(scene: Scene) -> None:
    def fault(*_: Any) -> int:
        raise ZeroDivisionError

    p = Kprobe(symbol_name="inc", pre_handler=oops, fault_handler=fault)
    scene.k.register_kprobe(p)
    with pytest.raises(ZeroDivisionError) as raised:
        scene.m.call("inc", 4)
    assert isinstance(raised.value.__context__, Oops)
    assert scene.m.regs.exception is None
    assert scene.m.regs.pc == scene.at("inc")
    assert scene.k.idle


@pytest.mark.parametrize("role", ROLES)
def test_a_handler_that_reads_bad_memory(scene: Scene, role: str) -> None:
    """regs.read raises GuestFault; it is the handler's exception, with its traceback, not the guest's fault."""
    def reads(p: Kprobe, regs: Any, flags: int = 0) -> None:
        regs.read(scene.unmapped, 4)

    asked: list[Any] = []
    p = Kprobe(symbol_name="probed",
               fault_handler=lambda p, regs, n: asked.append((type(regs.exception), regs.fault, n)) or 0,
               **{role: reads})
    scene.k.register_kprobe(p)
    with pytest.raises(GuestFault) as raised:
        scene.m.call("probed", 4)
    assert "reads" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert asked == [(GuestFault, None, 0)]
    assert raised.value.address == scene.unmapped
    assert scene.k.idle


def test_a_guest_call_in_a_handler_that_faults(scene: Scene) -> None:
    """The inner run's fault is the handler's to catch; then everything goes on, the registers are as they were."""
    faults: list[str | None] = []

    def pre(p: Kprobe, regs: Any) -> None:
        try:
            scene.m.call("fetch", scene.unmapped)
        except GuestFault as error:
            faults.append(error.symbol)

    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre, post_handler=scene.r.post("p")))
    assert scene.play("inc", 4) == ["post p", "= 5"]
    assert faults == ["fetch+0x0"]


def test_a_guest_call_in_a_handler_that_faults_uncaught(scene: Scene) -> None:
    p = Kprobe(symbol_name="inc", pre_handler=lambda p, regs: scene.m.call("fetch", scene.unmapped))
    scene.k.register_kprobe(p)
    with pytest.raises(GuestFault) as raised:
        scene.m.call("inc", 4)
    assert raised.value.pc == scene.at("fetch")
    assert scene.m.regs.pc == scene.at("inc")
    assert scene.k.idle
    scene.k.unregister_kprobe(p)
    assert scene.m.call("inc", 4) == 5


@pytest.mark.parametrize("kind", ["entry", "return"])
def test_batches_with_a_probe_that_raises(scene: Scene, kind: str) -> None:
    """A handler that raises in a batch: the others lose nothing."""
    good = Kretprobe(symbol_name="twice", handler=scene.r.returns("good"))
    bad = Kretprobe(symbol_name="inc", **{"entry_handler" if kind == "entry" else "handler": oops})
    scene.k.register_kretprobes([good, bad])
    with pytest.raises(Oops):
        scene.m.call("twice", 4)
    scene.k.flush_task(0)
    scene.k.unregister_kretprobe(bad)
    assert scene.play("twice", 4) == ["return good", "= 6"]
