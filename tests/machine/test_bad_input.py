"""Guests and callers that misbehave: a clear error, nothing lost, and everything works afterwards."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from scenes import PROGRAMS, Scene, hook, unicorn_machine

from kprobes import (
    BadArgument,
    GuestFault,
    GuestTimeout,
    ImageError,
    Jprobe,
    Kprobe,
    Kprobes,
    Kretprobe,
    NoMemory,
    ReentryError,
    UnicornMachine,
    UnknownRegister,
    UnknownSymbol,
    Unsupported,
)
from kprobes.core.patch.text import TextOverwritten


@pytest.fixture
def probed(scene: Scene) -> Scene:
    """The scene with stepped, boosted, simulated and followed code."""
    scene.probe("inc", "inc")
    scene.k.register_kprobe(Kprobe(symbol_name="probed", pre_handler=scene.r.pre("probed")))
    scene.probe("hop", "hop")
    scene.k.register_kretprobe(Kretprobe(symbol_name="twice", handler=scene.r.returns("twice")))
    return scene


def works(scene: Scene) -> None:
    """Every probe is hit as if nothing had happened."""
    time.sleep(0.01)  # see test_a_timer_does_not_reach_beyond_its_own_run
    scene.lines.clear()
    inc = ["pre inc", "post inc"]
    assert scene.play("deep", 4) == [*inc, *inc, "return twice", "= 6"]
    assert scene.play("probed", 4) == ["pre probed", "= 7"]
    assert scene.play("hop", 4) == ["pre hop", "post hop", *inc, "= 5"]
    assert scene.k.idle
    assert scene.k._calls.pending == 0
    scene.lines.clear()


# --- a guest that loops for ever


@pytest.mark.parametrize("probe", [None, "plain", "post", "both instructions"])
def test_timeout(probed: Scene, probe: str | None) -> None:
    m = probed.m
    if probe is not None:
        probed.k.register_kprobe(Kprobe(symbol_name="spin",
                                        post_handler=(lambda *_: None) if probe == "post" else None))
    if probe == "both instructions":
        probed.k.register_kprobe(Kprobe(addr=probed.at("spin", 1)))
    start = time.monotonic()
    with pytest.raises(GuestTimeout) as raised:
        m.call("spin", timeout=0.05)
    assert 0.04 < time.monotonic() - start < 60
    assert raised.value.errno == errno.ETIMEDOUT
    assert raised.value.pc in (probed.at("spin"), probed.at("spin", 1))
    assert m.regs.pc == raised.value.pc
    works(probed)


def test_a_timer_does_not_reach_beyond_its_own_run(scene: Scene) -> None:
    for _ in range(80):
        with pytest.raises(GuestTimeout):
            scene.m.call("spin", timeout=0.001)
        for _ in range(3):
            assert scene.m.call("down", 50) == 50


def test_a_timeout_that_does_not_expire(probed: Scene) -> None:
    assert probed.m.call("deep", 4, timeout=30.0) == 6
    works(probed)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
def test_max_insns_is_exact(scene: Scene, count: int) -> None:
    """The pc is that of the instruction after the last one executed, with and without probes in the way."""
    with pytest.raises(GuestTimeout) as bare:
        scene.m.call("deep", 4, max_insns=count)
    places = [bare.value.pc]
    for post in (False, True):
        probes = [Kprobe(addr=scene.at(*where), post_handler=(lambda *_: None) if post else None)
                  for where in (("deep", 0), ("deep", 1), ("deep", 2), ("twice", 0), ("twice", 2), ("inc", 0),
                                ("inc", 1))]
        scene.k.register_kprobes(probes)
        for _ in range(2):
            with pytest.raises(GuestTimeout) as raised:
                scene.m.call("deep", 4, max_insns=count)
            assert scene.m.regs.pc == raised.value.pc
            places.append(raised.value.pc)
        scene.k.unregister_kprobes(probes)
    assert set(places) == {places[0]}
    assert scene.m.call("deep", 4) == 6


def test_max_insns_zero_and_enough(scene: Scene) -> None:
    with pytest.raises(GuestTimeout) as raised:
        scene.m.run("inc", max_insns=0)
    assert raised.value.pc == scene.at("inc") == scene.m.regs.pc
    assert scene.m.call("inc", 4, max_insns=1000) == 5


def test_going_on_after_a_bound(probed: Scene) -> None:
    """m.regs are left where the guest stopped; m.run() takes it from there to the end of the call."""
    m = probed.m
    with pytest.raises(GuestTimeout):
        m.call("deep", 4, max_insns=6)
    for _ in range(200):
        try:
            m.run(max_insns=1)
            break
        except GuestTimeout:
            assert not probed.k._driver.ours(m.regs.pc)
    assert m.regs.return_value == 6
    assert probed.lines.count("pre inc") == probed.lines.count("post inc") == 2
    works(probed)


def test_stop_from_another_thread(probed: Scene) -> None:
    timer = threading.Timer(0.05, probed.m.stop)
    timer.start()
    probed.m.run("spin")
    assert probed.m.regs.pc in (probed.at("spin"), probed.at("spin", 1))
    works(probed)


def test_a_timed_call_in_a_handler(probed: Scene) -> None:
    """The inner bound ends the inner run only."""
    def pre(p: Kprobe, regs: Any) -> None:
        with pytest.raises(GuestTimeout):
            probed.m.call("spin", timeout=0.02)
        probed.lines.append("bounded")

    probed.k.register_kprobe(Kprobe(symbol_name="fetch", pre_handler=pre, post_handler=probed.r.post("fetch")))
    assert probed.play("fetch", probed.word(3)) == ["bounded", "post fetch", "= 3"]


def test_a_bounded_call_in_a_handler(probed: Scene) -> None:
    """The inner bound ends the inner run only."""
    def pre(p: Kprobe, regs: Any) -> None:
        with pytest.raises(GuestTimeout):
            probed.m.call("spin", max_insns=100)
        probed.lines.append("bounded")

    p = Kprobe(symbol_name="fetch", pre_handler=pre, post_handler=probed.r.post("fetch"))
    probed.k.register_kprobe(p)
    assert probed.play("fetch", probed.word(3)) == ["bounded", "post fetch", "= 3"]
    works(probed)


@pytest.mark.parametrize("bound", [{"timeout": 0.01}, {"max_insns": 100}], ids=["timeout", "max_insns"])
@pytest.mark.parametrize("kind", ["kprobe", "optimized", "kretprobe"])
def test_calls_after_a_bounded_call_in_a_handler(probed: Scene, kind: str, bound: dict[str, Any]) -> None:
    """Whatever the inner bound left behind, the next inner call and the outer run do not notice."""
    inner: list[int] = []

    def handler(*_: Any) -> None:
        for n in range(3):
            with pytest.raises(GuestTimeout):
                probed.m.call("spin", **bound)
            if n != 1:
                inner.append(probed.m.call("probed", n))

    if kind == "kretprobe":
        probed.k.register_kretprobe(Kretprobe(symbol_name="fetch", handler=handler))
    else:
        probed.k.register_kprobe(Kprobe(symbol_name="fetch", pre_handler=handler,
                                        post_handler=(lambda *_: None) if kind == "kprobe" else None))
    for value in (3, 4):
        assert probed.m.call("fetch", probed.word(value)) == value
    assert inner == [3, 5, 3, 5]
    works(probed)


def test_a_guest_call_in_a_handler_that_ends_at_an_undefined_instruction() -> None:
    """Its error is the inner run's alone: the outer one goes on, from a breakpoint and from a call site."""
    m, failed = unicorn_machine("x86_64", **PROGRAMS["x86_64"], undefined="ud2; ret"), []

    def fail(p: Any, regs: Any) -> None:
        with pytest.raises(GuestFault) as raised:
            m.call("undefined")
        failed.append(raised.value.pc)

    with Kprobes(m) as k:
        k.register(probe := Kprobe(symbol_name="inc", pre_handler=fail))
        for _ in range(4):
            assert m.call("deep", 4) == 6
        assert probe.optimized
    assert failed == [m.symbols["undefined"].address] * 8
    with pytest.raises(GuestFault):
        m.call("undefined")


def test_an_outer_bound_ends_a_call_in_a_handler(probed: Scene) -> None:
    p = Kprobe(symbol_name="fetch", pre_handler=lambda p, regs: probed.m.call("spin"))
    probed.k.register_kprobe(p)
    with pytest.raises(GuestTimeout):
        probed.m.call("fetch", probed.word(3), timeout=0.05)
    assert probed.k.idle
    probed.k.unregister_kprobe(p)
    works(probed)


# --- a guest that goes astray


@pytest.mark.parametrize(("name", "program"), [("x86_64", "jmp rdi"), ("arm64", "br x0")])
def test_a_jump_to_unmapped_memory(name: str, program: str) -> None:
    m = unicorn_machine(name, f=program, g="nop; ret")
    with Kprobes(m) as k:
        p = Kprobe(symbol_name="f", post_handler=lambda *_: None)
        k.register_kprobe(p)
        for target in (0, 0x3000, 0x7FFF0000, (1 << 47) - 0x1000):
            with pytest.raises(GuestFault) as raised:
                m.call("f", target)
            assert (raised.value.access, raised.value.pc, raised.value.address) == ("fetch", target, target)
        assert m.call("f", m.symbols["g"].address) in (0, m.symbols["g"].address)
        assert p.nhit == 5


@pytest.mark.parametrize(("name", "program"), [("x86_64", "jmp rdi"), ("arm64", "br x0")])
def test_a_jump_into_data(name: str, program: str) -> None:
    m = unicorn_machine(name, f=program)
    where = m.alloc(16)
    with Kprobes(m) as k:
        k.register_kprobe(Kprobe(symbol_name="f"))
        with pytest.raises(GuestFault) as raised:
            m.call("f", where)
        assert raised.value.access == "fetch"
        assert raised.value.pc == where


def test_a_jump_into_the_librarys_pages(scene: Scene) -> None:
    """Slots hold traps where nothing is; the guest gets a fault, not somebody's displaced instruction."""
    p = scene.probe("a")
    slots = scene.k.get_kprobe(p.address).slot & -0x1000
    free = slots + 0x800
    with pytest.raises(GuestFault):
        scene.m.run(free)
    assert scene.k.idle
    assert scene.play("inc", 4) == ["pre a", "post a", "= 5"]


@pytest.mark.parametrize("kind", ["slots", "calls"])
def test_who_stays_in_the_librarys_pages_does_not_keep_them(scene: Scene, kind: str) -> None:
    """It rests where nothing is: they are given back all the same, and another Kprobes may come."""
    scene.probe("a", optimize=kind != "slots")
    scene.k.register(Kprobe(symbol_name="twice", pre_handler=lambda p, regs: 0))
    scene.k.flush_optimizer()
    cache = getattr(scene.k._listener.rooms, kind)
    scene.m.regs.pc = cache.ranges[0][1] - cache.size
    scene.k.close()
    assert scene._code_regions() == scene.code_regions
    Kprobes(scene.m).close()


@pytest.mark.parametrize("optimize", [True, False])
def test_a_guest_that_overwrites_its_own_probed_code(optimize: bool) -> None:
    """x86_64: f patches g while g is probed: the new code runs, the probe is gone, and a warning says so."""
    m = unicorn_machine("x86_64", g="mov eax, 1; ret",
                        f="mov byte ptr [rdi], 0xb8; mov dword ptr [rdi + 1], 2; mov byte ptr [rdi + 5], 0xc3; ret")
    with Kprobes(m) as k:
        g = m.symbols["g"].address
        p = Kprobe(symbol_name="g", optimize=optimize)
        other = Kprobe(symbol_name="f")
        k.register_kprobes([p, other])
        k.flush_optimizer()
        assert m.call("g") == 1
        with pytest.warns(TextOverwritten, match=f"{g:#x}, which is probed"):
            m.call("f", g)
        assert m.call("g") == 2
        assert p.nhit == 1
        k.unregister_kprobe(p)
        assert m.call("g") == 2
        assert m.read(g, 6) == bytes.fromhex("b802000000c3")
        k.register_kprobe(p)
        assert m.call("g") == 2
        assert p.nhit == 1
        assert other.nhit == 1


# --- Ctrl-C


def interrupting(m: UnicornMachine, delay: float, depth: int = 1) -> None:
    """Ctrl-C so many seconds after a run has begun; depth 2: one inside of a run."""
    def interrupt() -> None:
        while m.parts.state.depth < depth:
            time.sleep(0.001)
        time.sleep(delay)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()


@pytest.mark.parametrize("probe", [None, "plain", "post"])
def test_ctrl_c_while_the_guest_loops(probed: Scene, probe: str | None) -> None:
    if probe is not None:
        probed.k.register_kprobe(Kprobe(symbol_name="spin",
                                        post_handler=(lambda *_: None) if probe == "post" else None))
    before = signal.getsignal(signal.SIGINT)
    interrupting(probed.m, 0.05)
    with pytest.raises(KeyboardInterrupt):
        probed.m.call("spin")
    assert probed.m.regs.pc in (probed.at("spin"), probed.at("spin", 1))
    assert signal.getsignal(signal.SIGINT) is before
    works(probed)


@pytest.mark.parametrize("role", ["pre_handler", "post_handler"])
def test_ctrl_c_during_a_handler(probed: Scene, role: str) -> None:
    """The handler is not torn: it ends, the guest comes to rest, then the interrupt is raised."""
    done: list[str] = []

    def handler(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
        done.append("whole")

    p = Kprobe(symbol_name="fetch", **{role: handler})
    probed.k.register_kprobe(p)
    with pytest.raises(KeyboardInterrupt):
        probed.m.call("fetch", probed.word(3))
    assert done == ["whole"]
    assert not probed.k._driver.ours(probed.m.regs.pc)
    probed.k.unregister_kprobe(p)
    works(probed)


def test_ctrl_c_during_a_guest_call_in_a_handler(probed: Scene) -> None:
    p = Kprobe(symbol_name="fetch", pre_handler=lambda p, regs: probed.m.call("spin") and None)
    probed.k.register_kprobe(p)
    interrupting(probed.m, 0.02, depth=2)
    with pytest.raises(KeyboardInterrupt):
        probed.m.call("fetch", probed.word(3))
    probed.k.unregister_kprobe(p)
    works(probed)


def test_an_interrupted_guest_call_has_no_result(probed: Scene) -> None:
    results: list[int] = []
    p = Kprobe(symbol_name="fetch", pre_handler=lambda p, regs: results.append(probed.m.call("spin")))
    probed.k.register_kprobe(p)
    interrupting(probed.m, 0.02, depth=2)
    with pytest.raises(KeyboardInterrupt):
        probed.m.call("fetch", probed.word(3))
    assert results == []


def test_a_guest_call_after_an_interrupt_does_not_begin(probed: Scene) -> None:
    """Ctrl-C while the handler itself runs ends its next guest call, even if it has caught what the last one raised."""
    raised: list[type[BaseException]] = []

    def pre(p: Kprobe, regs: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(2):
            try:
                probed.m.call("spin")
            except KeyboardInterrupt:
                raised.append(KeyboardInterrupt)

    probed.k.register_kprobe(Kprobe(symbol_name="fetch", pre_handler=pre))
    with pytest.raises(KeyboardInterrupt):
        probed.m.call("fetch", probed.word(3))
    assert raised == [KeyboardInterrupt] * 2
    assert probed.m.regs.pc == probed.at("fetch", 1)
    works(probed)


def test_ctrl_c_elsewhere_is_pythons_own(probed: Scene) -> None:
    works(probed)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    works(probed)


# --- handlers


class Oops(Exception):
    """Raised by handlers."""


def oops(*_: Any) -> None:
    raise Oops


@pytest.mark.parametrize("times", [1, 3])
def test_handlers_that_raise_in_a_batch(probed: Scene, times: int) -> None:
    batch = [Kprobe(symbol_name="fetch", pre_handler=oops), Kprobe(addr=probed.at("fetch", 1), pre_handler=oops)]
    probed.k.register_kprobes(batch)
    for _ in range(times):
        with pytest.raises(Oops):
            probed.m.call("fetch", probed.word(1))
    probed.k.unregister_kprobes(batch)
    works(probed)


def test_handlers_of_the_wrong_shape(probed: Scene) -> None:
    """Too many parameters: the TypeError comes out like any exception of a handler."""
    p = Kprobe(symbol_name="fetch", pre_handler=lambda p, regs, more: None)  # type: ignore[misc]
    probed.k.register_kprobe(p)
    with pytest.raises(TypeError, match="more"):
        probed.m.call("fetch", probed.word(1))
    probed.k.unregister_kprobe(p)
    works(probed)


def test_unknown_registers_in_a_handler(scene: Scene) -> None:
    """The message lists those there are; the error is a KeyError, too."""
    errors: list[UnknownRegister] = []

    def pre(p: Kprobe, regs: Any) -> None:
        for action in (lambda: regs["r99"], lambda: regs.__setitem__("r99", 1)):
            with pytest.raises(UnknownRegister) as raised:
                action()
            errors.append(raised.value)

    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre))
    assert scene.m.call("inc", 4) == 5
    for error in errors:
        assert isinstance(error, KeyError)
        assert scene.m.arch.regs.names[0] in str(error)


def test_bad_memory_in_a_handler(scene: Scene) -> None:
    def pre(p: Kprobe, regs: Any) -> None:
        for action in (lambda: regs.read(scene.unmapped, 4), lambda: regs.write(scene.unmapped, b"x"),
                       lambda: regs.read_cstr(scene.unmapped),
                       lambda: regs.word(scene.unmapped), lambda: regs.set_word(scene.unmapped, 1),
                       lambda: regs.read(scene.at("inc"), 1 << 24)):
            with pytest.raises(GuestFault):
                action()
        scene.lines.append("checked")

    scene.k.register_kprobe(Kprobe(symbol_name="inc", pre_handler=pre))
    assert scene.play("inc", 4) == ["checked", "= 5"]


# --- calls


def test_calls_of_unknown_symbols(probed: Scene) -> None:
    for call in (lambda: probed.m.call("twise"), lambda: probed.m.run("twise"),
                 lambda: probed.m.run("twice", until="twise")):
        with pytest.raises(UnknownSymbol) as raised:
            call()
        assert (raised.value.errno, raised.value.symbol) == (errno.ENOENT, "twise")
        assert "twice" in str(raised.value)
    works(probed)


def test_calls_of_nothing(probed: Scene) -> None:
    with pytest.raises(GuestFault):
        probed.m.call(probed.unmapped)
    works(probed)


def test_calls_of_nothing_on_arm64() -> None:
    scene = Scene("arm64")
    with pytest.raises(GuestFault) as raised:
        scene.m.call(scene.unmapped)
    assert (raised.value.access, raised.value.pc) == ("fetch", scene.unmapped)


class Index:
    """Not an int, but one for all that counts."""

    def __index__(self) -> int:
        return 5


@pytest.mark.parametrize("name", ["i386", "x86_64"])
def test_arguments_that_cannot_be_passed(name: str) -> None:
    """Refused before anything happens: no copy is made, nothing runs, no register changes."""
    m = UnicornMachine.from_code("mov eax, [esp + 4]; ret" if name == "i386" else "mov rax, rdi; ret", arch=name,
                                 symbols={"f": 0x10000})
    top = m.arch.mask + 1
    for value, seen in ((0, 0), (-1, top - 1), (top - 1, top - 1), (-top // 2, top // 2), (True, 1), (None, 0),
                        (Index(), 5)):
        assert m.call("f", value) == seen  # type: ignore[arg-type]
    before, free = [m.regs[register] for register in m.arch.regs.names], m.alloc(8)
    m.free(free)
    for wrong in (0.0, 1.5, float("nan"), 1j, [], (), {}, object(), "f".encode, top, -top // 2 - 1,
                  1 << 200):
        with pytest.raises(BadArgument, match="argument 2") as raised:
            m.call("f", b"12345678", wrong)  # type: ignore[arg-type]
        assert isinstance(raised.value, TypeError)
        assert isinstance(raised.value, ValueError)
    assert [m.regs[register] for register in m.arch.regs.names] == before
    assert m.alloc(8) == free
    assert m.call("f", 7) == 7


@pytest.mark.parametrize(("name", "program"), [("x86_64", "int3; ret"), ("arm64", "brk #0; ret")])
def test_nesting_is_bounded(name: str, program: str) -> None:
    """Hits nest two deep, but whoever serves the guest's own interrupts with guest calls may nest runs without end."""
    depth: list[int] = []
    m = unicorn_machine(name, own=program, inc="nop; ret")

    def again(regs: Any, number: int) -> bool:
        depth.append(len(depth))
        m.call("own")
        return True

    m.interrupt_handler = again
    with pytest.raises(ReentryError, match="nested"):
        m.call("own")
    assert 2 <= len(depth) <= 40
    m.interrupt_handler = None
    m.call("inc")


# --- memory


def test_alloc_and_free(scene: Scene) -> None:
    m = scene.m
    a, b = m.alloc(10), m.alloc(0)
    assert a % 16 == b % 16 == 0
    assert a != b
    assert m.read(a, 10) == bytes(10)
    m.free(a)
    for bad in (a, a + 1, 0, scene.at("inc"), scene.unmapped):
        with pytest.raises(GuestFault):
            m.free(bad)
    m.free(b)
    with pytest.raises(NoMemory):
        m.alloc(-1)
    with pytest.raises(NoMemory):
        m.alloc(1 << 60)
    big = m.alloc(1 << 20)
    m.write(big + (1 << 20) - 4, b"last")
    m.free(big)
    with pytest.raises(GuestFault):
        m.read(big, 1)


def test_alloced_memory_is_zeroed_again(scene: Scene) -> None:
    a = scene.m.alloc(32)
    scene.m.write(a, b"\xff" * 32)
    scene.m.free(a)
    assert scene.m.read(scene.m.alloc(32), 32) == bytes(32)


def test_reads_and_writes_of_unmapped_memory(scene: Scene) -> None:
    m = scene.m
    for action in (lambda: m.read(scene.unmapped, 1), lambda: m.write(scene.unmapped, b"x"),
                   lambda: m.read_cstr(scene.unmapped),
                   lambda: m.patch(scene.unmapped, b"x"), lambda: m.read(-1, 4), lambda: m.read(1 << 64, 4),
                   lambda: m.read((1 << 64) - 2, 4)):
        with pytest.raises(GuestFault) as raised:
            action()
        assert raised.value.errno == errno.EFAULT
    assert m.read(scene.at("inc"), 0) == b""
    m.write(scene.at("inc"), b"")
    assert m.call("inc", 4) == 5


@pytest.mark.parametrize(("addr", "size"), [(0x10000, 0x1000), (0x7000001, 0x1000), (0x7000000, 0),
                                            (0x7000000, -0x1000)])
def test_mappings_that_cannot_be(scene: Scene, addr: int, size: int) -> None:
    before = scene._regions()
    with pytest.raises(NoMemory) as raised:
        scene.m.map(addr, size)
    assert raised.value.errno == errno.ENOMEM
    assert scene._regions() == before


# --- code that is none


@pytest.mark.parametrize("code", [b"\x48", b"\x48\x8b", b"\xe8\x00", b"\x0f", b"\x66\x66\x66"])
def test_truncated_code(code: bytes) -> None:
    """Half an instruction at the end of mapped memory: refused, and a fault when it is run."""
    m = UnicornMachine.from_code(b"\x90" * (0x1000 - len(code)) + code, arch="x86_64",
                                 symbols={"f": 0x10000, "half": 0x11000 - len(code)})
    after = [start for start, end, _ in m.uc.mem_regions() if start == 0x11000]
    if after:
        m.unmap(0x11000, 0x1000)
    with Kprobes(m) as k:
        verdict = k.check("half")
        assert not verdict.probeable
        assert verdict.reason
        before = m.read(0x10000, 0x1000)
        with pytest.raises(Exception) as raised:
            k.register_kprobe(Kprobe(symbol_name="half"))
        assert type(raised.value).__name__ in ("NotAnInstruction", "Unprobeable")
        assert m.read(0x10000, 0x1000) == before
        with pytest.raises(GuestFault):
            m.call("half")


def test_assembly_that_does_not_parse() -> None:
    with pytest.raises(ImageError, match="assembly"):
        UnicornMachine.from_code("mov nonsense", arch="x86_64")
    with pytest.raises(ImageError):
        UnicornMachine.from_code("", arch="x86_64")


def test_assembly_without_an_assembler() -> None:
    """Nothing but assembly text needs one: machines, probes and host code work without."""
    script = """
import sys
sys.modules["keystone"] = None
from kprobes import Kprobes, Unsupported, UnicornMachine
with UnicornMachine.from_code(bytes.fromhex("488d4701c3"), arch="x86_64", symbols={"inc": 0x10000}) as m, Kprobes(m) as k:
    with k.kretprobe("inc", handler=lambda ri, regs: None) as r:
        print([m.call("inc", n) for n in (1, 2)], r.nreturned)
try:
    UnicornMachine.from_code("nop", arch="x86_64")
except Unsupported as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    result, said = done.stdout.splitlines()
    assert result == "[2, 3] 2"
    assert "takes Keystone" in said and "kprobes[asm]" in said and "bytes" in said


def test_architectures_that_are_not() -> None:
    for name in ("x86-64", "z80", ""):
        with pytest.raises(Unsupported) as raised:
            UnicornMachine.from_code(b"\x90", arch=name)
        assert "x86_64" in str(raised.value)
        with pytest.raises(Unsupported):
            UnicornMachine.from_code("nop", arch=name)


def test_empty_code_can_be_loaded_but_not_run() -> None:
    m = UnicornMachine.from_code(b"", arch="x86_64", symbols={"f": 0x10000})
    with pytest.raises(GuestFault):
        m.call("f", max_insns=100_000)


@pytest.mark.parametrize("kind", ["kprobe", "kretprobe", "jprobe"])
def test_a_function_at_the_very_end_of_memory(kind: str) -> None:
    """One byte long, the last one mapped."""
    m = UnicornMachine.from_code(b"\x90" * 0xFFF + b"\xc3", arch="x86_64", symbols={"f": (0x10FFF, 1)})
    hits: list[str] = []
    with Kprobes(m) as k:
        if kind == "kprobe":
            k.register_kprobe(Kprobe(symbol_name="f", pre_handler=hook("hit", hits)))
        elif kind == "kretprobe":
            k.register_kretprobe(Kretprobe(symbol_name="f", handler=hook("hit", hits)))
        else:
            k.register_jprobe(Jprobe(symbol_name="f", entry=lambda: hits.append("hit")))
        m.call("f")
        m.call("f")
    assert hits == ["hit", "hit"]


def test_the_machine_is_used_after_everything(scene: Scene) -> None:
    """All of it in a row on one machine: loops, faults, exceptions, bounds, interrupts; then every probe still
    works."""
    bad = Kprobe(symbol_name="fetch", pre_handler=oops)
    mischief: list[tuple[type[BaseException], Callable[[], Any]]] = [
        (GuestTimeout, lambda: scene.m.call("spin", timeout=0.02)),
        (GuestTimeout, lambda: scene.m.call("deep", 4, max_insns=3)),
        (GuestFault, lambda: scene.m.call("fetch", scene.unmapped)),
        (GuestFault, lambda: scene.m.call(scene.unmapped)),
        (UnknownSymbol, lambda: scene.m.call("nobody")),
        (Oops, lambda: (scene.k.register_kprobe(bad), scene.m.call("fetch", 0))),
        (KeyboardInterrupt, lambda: (interrupting(scene.m, 0.02), scene.m.call("spin"))),
    ]
    p = scene.probe("p")
    for error, action in mischief * 2:
        with pytest.raises(error):
            action()
        if bad.registered:
            scene.k.unregister_kprobe(bad)
        scene.lines.clear()
        assert scene.play("twice", 4) == ["pre p", "post p"] * 2 + ["= 6"]
    assert p.nmissed == 0


@pytest.mark.parametrize("start, fails", [(0x20000 - 4, 0x20000), (0x20000 - 8, None), (0x20000, 0x20000),
                                          (0x30000, 0x30000)])
def test_an_access_fails_at_the_first_byte_that_is_not_mapped(start: int, fails: int | None) -> None:
    """As a guest's instruction does."""
    m = unicorn_machine("x86_64")
    m.map(0x1F000, 0x1000, "rw")
    for access in (lambda: m.read(start, 8), lambda: m.write(start, bytes(8))):
        if fails is None:
            access()
            continue
        with pytest.raises(GuestFault) as caught:
            access()
        assert caught.value.address == fails
