"""Bounds of runs: in handlers, with values that are none, and what they leave behind."""

from __future__ import annotations

import gc
import math
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from scenes import Scene
from test_attach import BACK, DATA, UNMAPPED, Owner

from kprobes import (
    BadArgument,
    GuestFault,
    GuestStopped,
    GuestTimeout,
    Kprobe,
    KprobeError,
    Kprobes,
    Kretprobe,
    UnicornMachine,
)

pytestmark = pytest.mark.quick

TEXT = 0x10000


@pytest.fixture(params=["x86_64", "arm64", "x86_64 jumps", "arm64 jumps"])
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(request.param)
    yield scene
    scene.k.close()
    assert scene.text() == scene.original


@pytest.mark.parametrize("bound", [{"max_insns": 8}, {"timeout": 0.01}, {"max_insns": 0},
                                   {"max_insns": 8, "timeout": 5}])
@pytest.mark.parametrize("role", ["pre_handler", "post_handler", "entry_handler", "handler"])
def test_a_handlers_call_is_bounded(scene: Scene, bound: dict[str, Any], role: str) -> None:
    """Its handler goes on, and so does the guest: through returns, traps and jumps, and with a bound of its own."""
    caught: list[GuestTimeout] = []

    def handler(*_: Any) -> None:
        with pytest.raises(GuestTimeout) as raised:
            scene.m.call("spin", **bound)
        caught.append(raised.value)

    returns: list[int] = []
    if role.endswith("e_handler") or role == "post_handler":
        scene.k.register(Kprobe(symbol_name="inc", **{role: handler}))
    else:
        scene.k.register(Kretprobe(symbol_name="inc", **{role: handler}))
    scene.k.register(Kretprobe(symbol_name="twice", handler=lambda ri, regs: returns.append(regs.return_value)))
    for n in range(1, 5):
        assert scene.m.call("deep", 4, max_insns=100 if n > 2 and "max_insns" in bound else None) == 6
        assert (len(caught), len(returns)) == (2 * n, n)
    scene.m.call("probed", 3)
    assert not scene.m.parts.bounds._hooks, "an unbounded run does without"


def test_nested_stops(scene: Scene) -> None:
    """m.stop() in a run inside a run ends that one."""
    def handler(p: Kprobe, regs: Any) -> None:
        with pytest.raises(GuestStopped):
            scene.m.call("probed", 3)

    stop = Kprobe(addr=scene.at("probed", 1), pre_handler=lambda p, regs: scene.m.stop())
    scene.k.register(Kprobe(symbol_name="inc", pre_handler=handler))
    scene.k.register(stop)
    with pytest.raises(GuestStopped) as caught:
        scene.m.call("probed", 3)
    assert caught.value.pc == scene.m.regs.pc
    assert scene.m.regs.pc in (scene.at("probed", 2), scene.at("probed", 3))  # a jump covers two instructions
    scene.k.unregister(stop)


@pytest.mark.parametrize("bound", [
    {"timeout": math.nan}, {"timeout": -1}, {"timeout": -math.inf}, {"timeout": "5"}, {"timeout": 1j},
    {"max_insns": -1}, {"max_insns": 1.5},
    {"max_insns": "8"}, {"max_insns": math.inf}])
def test_no_bounds(scene: Scene, bound: dict[str, Any]) -> None:
    for what in (scene.m.call, scene.m.run):
        with pytest.raises(BadArgument, match=next(iter(bound))):
            what("inc", **bound)
    assert scene.m.call("inc", 4) == 5


@pytest.mark.parametrize("timeout", [1e300, math.inf, 10**400, 2**63])
def test_long_bounds(scene: Scene, timeout: float) -> None:
    assert scene.m.call("deep", 4, timeout=timeout) == 6


@pytest.mark.long
@pytest.mark.parametrize("what", ["max_insns", "timeout", "fault", "Kprobes", "call"])
def test_nothing_leaks(what: str) -> None:
    scene = Scene("x86_64")
    scene.k.close()

    def once() -> None:
        if what == "Kprobes":
            with Kprobes(scene.m) as k:
                k.register(Kprobe(symbol_name="inc"))
                scene.m.call("inc", 4)
        elif what == "fault":
            with pytest.raises(KprobeError):
                scene.m.call("fetch", scene.unmapped)
        else:
            scene.m.call("inc", 4, **({what: 100} if what != "call" else {}))

    def run(times: int) -> int:
        for _ in range(times):
            once()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = run(120)  # until tables of blocks have the rows that they keep
        grown = []
        while len(grown) < 8:  # the interpreter's own caches grow, too, until they are full
            after = run(100)
            grown.append(after - before)
            before = after
        assert min(grown) < 100 * 40  # bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["x86_64", "arm64"])
@pytest.mark.parametrize("optimize", [True, False])
def test_a_fault_handler_that_raises_in_an_owners_run(name: str, optimize: bool) -> None:
    """The guest is at home then, not in the displaced code."""
    owner = Owner(name, slow="mov eax, dword ptr [rdi]; add eax, 100000; ret" if name == "x86_64"
                  else "ldr w0, [x0]; add w0, w0, #1; ret")
    m = UnicornMachine.attach(owner.uc, symbols=owner.symbols)
    regions = owner.regions()

    def oops(*_: Any) -> int:
        raise ValueError

    with Kprobes(m) as k:
        k.register(p := Kprobe(symbol_name="slow", fault_handler=oops, optimize=optimize))
        for _ in range(3):
            owner.call("slow", DATA)
        assert p.optimized == optimize
        with pytest.raises(ValueError):
            owner.call("slow", UNMAPPED)
        assert owner.uc.reg_read(owner.pc) == owner.at("slow")
        owner.uc.reg_write(owner.argument, DATA)
        owner.uc.emu_start(owner.at("slow"), BACK)
    assert owner.regions() == regions
    assert owner.text() == owner.code


@pytest.mark.parametrize(("arch", "code"), [
    ("sparc", "nop; inc %o0; retl; nop; ld [%g0], %o0"), ("sparc64", "nop; inc %o0; retl; nop; ld [%g0], %o0"),
    ("mips", ".set noreorder; nop; addiu $v0, $a0, 1; jr $ra; nop; lw $v0, ($zero)")],
    ids=["sparc", "sparc64", "mips"])
def test_a_handlers_call_fails_while_a_stopped_guest_finishes_its_instruction(arch: str, code: str) -> None:
    """The guest comes to rest behind that all the same."""
    m = UnicornMachine.from_code(code, arch=arch, symbols={"f": 0x10000, "bad": 0x10010})
    m.regs.set_arg(0, 7)
    failed: list[int | None] = []

    def post(p: Kprobe, regs: Any, flags: int) -> None:
        with pytest.raises(GuestFault) as caught:
            m.call("bad")
        failed.append(caught.value.pc)

    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="f", pre_handler=lambda p, regs: m.stop(), post_handler=post))
        m.run("f")
        assert (failed, m.regs.pc) == ([0x10010], 0x10004)
        m.run()
        assert m.regs.return_value == 8


@pytest.mark.parametrize("arch", ["sparc", "sparc64"])
def test_a_guest_that_is_stopped_at_its_return_comes_to_the_end(arch: str) -> None:
    m = UnicornMachine.from_code("retl; inc %o0", arch=arch, symbols={"f": 0x10000})
    m.regs.set_arg(0, 7)
    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="f", pre_handler=lambda p, regs: m.stop()))
        m.run("f")
        assert (m.regs.pc, m.regs.return_value) == (m.parts.state.exit, 8)


@pytest.mark.parametrize("arch", ["x86_64", "i386"])
@pytest.mark.parametrize("probed", [False, True])
def test_a_repeated_instruction_counts_once(arch: str, probed: bool) -> None:
    """Each bound on nop; rep stosb; nop; repne movsw; nop; jmp to itself ends at the next instruction."""
    code = bytes.fromhex("90 f3aa 90 66f2a5 90 ebfe")
    letter = "r" if arch == "x86_64" else "e"
    ends = [0, 1, 3, 4, 7, 8, 8, 8]
    with UnicornMachine.from_code(code, arch=arch, base=TEXT) as m, Kprobes(m) as k:
        data = m.alloc(64)
        if probed:
            k.register_all([Kprobe(addr=TEXT + at, pre_handler=lambda p, regs: None) for at in (1, 4)])
        for bound, end in enumerate(ends):
            m.regs[letter + "cx"], m.regs[letter + "di"], m.regs[letter + "si"] = 5, data, data
            with pytest.raises(GuestTimeout):
                m.run(TEXT, max_insns=bound)
            assert (m.regs.pc, m.regs[letter + "cx"]) == (TEXT + end, 0 if bound > 1 else 5)
