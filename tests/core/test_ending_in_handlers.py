"""Every way to end probes, from every kind of handler, at every kind of site, at the first hits and in the midst of
followed calls: the run equals the one without probes, and afterwards nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import unicorn
from arches import RUNNABLE, integer, limits, programs_of
from portion import portion
from scenes import unicorn_machine
from unicorn import unicorn_const

from kprobes import GuestFault, Jprobe, Kprobe, KprobeError, Kprobes, Kretprobe, MachineBusy, Program, UnicornMachine
from kprobes.machine.unicorn.host import hostcode
from kprobes.programs import isa
from kprobes.testing import functions

TESTS, HITS = ("test_mutual", "test_quicksort"), (1, 2, 7)
MASK = (1 << 32) - 1
Act = Callable[[Any], None]


class World:
    """A program, and a function of it that calls itself: called alone, or through another one."""

    def __init__(self, path: Path) -> None:
        self.m = UnicornMachine.load(path)
        self.test = next(t for t in TESTS if t not in limits(path.stem))
        self.argument = integer(self.m.arch, 1000)
        self.want = self.run()
        self.where = self._busiest()
        self.before = self.memory()

    def run(self) -> int:
        return self.m.call(self.test, self.argument, timeout=20) & MASK

    def memory(self) -> list[bytes]:
        return [self.m.read(start, end - start) for start, end in self.m.modules.values()]

    def _busiest(self) -> int:
        with Kprobes(self.m) as k:
            probes = []
            for symbol in functions(self.m):
                code = self.m.arch.pointers.code_address(symbol.address | symbol.mode, self.m.read)
                with suppress(KprobeError):
                    k.register(p := Kprobe(addr=code.place(0)))
                    probes.append(p)
            self.run()
            return int(max(probes, key=lambda p: p.nhit).addr)


def probes(kind: str, addr: int, act: Act) -> list[Any]:
    """Probes of a kind whose handlers act: the first of them does."""
    none = lambda *_: None  # noqa: E731
    made: dict[str, Callable[[], list[Any]]] = {
        "pre, boosted": lambda: [Kprobe(addr=addr, pre_handler=lambda p, regs: act(p), optimize=False)],
        "pre, stepped": lambda: [Kprobe(addr=addr, pre_handler=lambda p, regs: act(p), post_handler=none)],
        "pre, optimized": lambda: [Kprobe(addr=addr, pre_handler=lambda p, regs: act(p))],
        "pre, one of two": lambda: [Kprobe(addr=addr, pre_handler=lambda p, regs: act(p)),
                                    Kprobe(addr=addr, pre_handler=none)],
        "post": lambda: [Kprobe(addr=addr, post_handler=lambda p, regs, flags: act(p))],
        "entry, boosted": lambda: [Kretprobe(addr=addr, handler=none, entry_handler=lambda ri, regs: act(ri.rp),
                                             optimize=False)],
        "entry": lambda: [Kretprobe(addr=addr, handler=none, entry_handler=lambda ri, regs: act(ri.rp))],
        "entry, elder": lambda: [Kretprobe(addr=addr, handler=none, entry_handler=lambda ri, regs: act(ri.rp)),
                                 Kretprobe(addr=addr, handler=none)],
        "entry, younger": lambda: [Kretprobe(addr=addr, handler=none), Kretprobe(addr=addr, handler=none,
                                   entry_handler=lambda ri, regs: act(ri.rp))],
        "entry, of three": lambda: [Kretprobe(addr=addr, handler=none, entry_handler=lambda ri, regs: act(ri.rp))
                                    for _ in range(3)],
        "entry, with a kprobe": lambda: [Kretprobe(addr=addr, handler=none, entry_handler=lambda ri, regs: act(ri.rp)),
                                         Kprobe(addr=addr)],
        "return": lambda: [Kretprobe(addr=addr, handler=lambda ri, regs: act(ri.rp))],
        "return, asked": lambda: [Kretprobe(addr=addr, handler=lambda ri, regs: act(ri.rp), entry_handler=none)],
        "return, boosted": lambda: [Kretprobe(addr=addr, handler=lambda ri, regs: act(ri.rp), optimize=False)],
        "return, of three": lambda: [Kretprobe(addr=addr, handler=lambda ri, regs: act(ri.rp)) for _ in range(3)],
        "jprobe": lambda: [Jprobe(addr=addr, entry=lambda: act(one[0]))],
    }
    one: list[Any] = made[kind]()
    return one


KINDS = ("pre, boosted", "pre, stepped", "pre, optimized", "pre, one of two", "post", "entry, boosted", "entry",
         "entry, elder", "entry, younger", "entry, of three", "entry, with a kprobe", "return", "return, asked",
         "return, boosted", "return, of three", "jprobe")


def ends(k: Kprobes, p: Any, all_of_them: list[Any]) -> dict[str, Callable[[], object]]:
    """What a handler may do to its probe, and to all."""
    return {
        "unregister": lambda: k.unregister(p),
        "unregister all": lambda: [k.unregister(one) for one in all_of_them],
        "disable": lambda: k.disable(p),
        "disable and enable": lambda: (k.disable(p), k.enable(p)),
        "switch": lambda: setattr(k, "enabled", False),
        "close": k.close,
        "optimize": lambda: setattr(p, "optimize", not p.optimize),
        "again": lambda: (k.unregister(p), k.register(p)),
    }


ENDS = ("unregister", "unregister all", "disable", "disable and enable", "switch", "close", "optimize", "again")


def tried(world: World, k: Kprobes, kind: str, end: str, at: int) -> None:
    """Three runs; in one of them the handler that is called the `at`-th time ends something."""
    seen, made = 0, []

    def act(p: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == at:
            ends(k, p, made)[end]()

    made += probes(kind, world.where, act)
    for p in made:
        k.register(p)
    assert [world.run() for _ in range(3)] == [world.want] * 3
    assert seen >= at


def nothing_is_left(world: World, k: Kprobes) -> None:
    k.close()
    assert world.m.sink is None and world.memory() == world.before


def as_ever(world: World) -> None:
    """After all of them; in between the next one finds the machine as the last one has left it."""
    with Kprobes(world.m) as again:
        again.register(p := Kretprobe(addr=world.where, handler=lambda ri, regs: None))
        assert world.run() == world.want and p.nhit == p.nreturned > 0
    assert world.memory() == world.before


PROGRAMS = [pytest.param(arch, path, id=path.stem) for arch in RUNNABLE for path in programs_of(arch)
            if path.stem.endswith("-O2") and not limits(path.stem).keys() >= {*TESTS}]
FULL = ("x86_64", "arm64")


@pytest.fixture(params=["host", "python"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(hostcode, "available", lambda: False)
    return str(request.param)


@pytest.mark.parametrize(("arch", "path"), PROGRAMS)
def test_by_probes(arch: str, path: Path, way: str, thorough: bool) -> None:
    world, some = World(path), ENDS if arch in FULL else ("unregister", "close", "again")
    ways = [*product(KINDS, some, HITS if arch in FULL else HITS[1:2])]
    for kind, end, at in portion(ways, thorough, f"{arch} {way}", 5):
        tried(world, k := Kprobes(world.m), kind, end, at)
        nothing_is_left(world, k)
    as_ever(world)


#: asks for the time, which a function of the user's says
ASKS = Program.from_instructions([isa.Instruction(isa.CALL | isa.JMP, imm=5),
                                  isa.Instruction(isa.EXIT | isa.JMP)])


@pytest.mark.parametrize("who", ["task", "task of several", "program", "program at return", "interpreter", "event",
                                 "event at return"])
@pytest.mark.parametrize(("arch", "path"), [p for p in PROGRAMS if p.values[0] in (*FULL, "sparc", "mips64")
                                             and p.id != "sparcw-O2"])
def test_by_what_else_is_called(arch: str, path: Path, who: str, way: str, thorough: bool) -> None:
    """Who says which task runs is called outside of every hit, at a call site or at the trampoline; who says what time
    it is, in the midst of a program."""
    world = World(path)
    ways = [*product(("unregister", "unregister all", "disable", "switch", "close", "again"), HITS)]
    for end, at in portion(ways, thorough, f"{path.stem} {who} {way}", 5):
        seen, made, k, recording = 0, [], Kprobes(world.m), None  # type: ignore[var-annotated]

        def act(*_: object, k: Kprobes = k, end: str = end, at: int = at) -> int:
            nonlocal seen
            seen += 1
            if seen == at:
                ends(k, made[0], made)[end]()  # noqa: B023
            return 0

        if who.startswith("task"):
            for _ in range(1 + who.endswith("several")):
                made.append(Kretprobe(addr=world.where, handler=lambda ri, regs: None))
                k.register(made[-1])
            world.m.cpu_task = act
        elif who.startswith("event"):
            recording = k.trace(f"{'r' if who.endswith('return') else 'p'} {world.where:#x}", clock=act)
            recording.__enter__()
            made += [p for point in k._points.values() for p in point.probes]
        else:
            made += k.attach(ASKS, world.where, retprobe=who.endswith("return"), clock=act,
                             engine="interpreter" if who == "interpreter" else None)
        assert [world.run() for _ in range(3)] == [world.want] * 3
        assert seen >= at
        world.m.cpu_task = None
        with suppress(KprobeError):
            if recording is not None:
                recording.__exit__(None, None, None)
        nothing_is_left(world, k)
    as_ever(world)


@pytest.mark.parametrize("handled", [True, False])
@pytest.mark.parametrize("end", ["unregister", "close", "again", "switch"])
@pytest.mark.parametrize("fields", [{}, {"optimize": False}, {"post_handler": lambda p, regs, flags: None}],
                         ids=["optimized", "boosted", "stepped"])
@pytest.mark.parametrize("arch", FULL)
def test_by_fault_handlers(arch: str, fields: dict[str, Any], end: str, handled: bool, way: str) -> None:
    """The guest goes on in the copy of its instruction, which is needed until then."""
    with unicorn_machine(arch) as m:
        k = Kprobes(m)
        cell, text = m.alloc(8), m.read(0x10000, 0x1000)

        def fault(p: Any, regs: Any, number: int) -> int:
            ends(k, p, [p])[end]()
            regs[m.arch.abi.args[0]] = cell if handled else 8  # type: ignore[union-attr]
            return int(handled)

        k.register(Kprobe(symbol_name="fetch", fault_handler=fault, **fields))
        for _ in range(2):
            assert m.call("fetch", cell) == 0
        if handled:
            assert m.call("fetch", 8) == 0
        else:
            with pytest.raises(GuestFault) as caught:
                m.call("fetch", 8)
            assert (caught.value.pc, caught.value.address) == (m.symbols["fetch"].address, 8)
        assert m.call("fetch", cell) == 0
        k.close()
        assert m.sink is None and m.read(0x10000, 0x1000) == text


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("who", ["watchpoint", "device"])
@pytest.mark.parametrize("arch", FULL)
def test_not_in_the_middle_of_an_instruction(arch: str, who: str, end: str) -> None:
    """There the engine holds on to what it has found in memory: MachineBusy, and nothing has changed."""
    with unicorn_machine(arch) as m, Kprobes(m) as k:
        cell = m.alloc(8) if who == "watchpoint" else 0x700000
        k.register(p := Kprobe(symbol_name="fetch"))
        k.register(other := Kretprobe(symbol_name="inc", handler=lambda ri, regs: None))
        for n in range(2):
            assert m.call("inc", n) == n + 1
        before = p.registered, p.optimize, other.registered, other.optimized, k.enabled

        def act(*_: object) -> int:
            with pytest.raises(MachineBusy, match="middle of an instruction"):
                ends(k, p, [p, other])[end]()
            with pytest.raises(MachineBusy, match="middle of an instruction"):
                m.map(0x900000, 0x1000)
            return 0

        if who == "watchpoint":
            w = k.watchpoint(cell, 8, "r", act)
        else:
            m.mmio(cell, 0x1000, read=act)
        assert [m.call("fetch", cell) for _ in range(3)] == [0, 0, 0]
        assert p.nhit == 3 and (p.registered, p.optimize, other.registered, other.optimized, k.enabled) == before
        assert who == "device" or (w.nhit == 3 and w.registered)


@pytest.mark.parametrize("arch", FULL)
def test_on_an_engine_of_its_owners(arch: str, way: str, thorough: bool) -> None:
    loops = {"x86_64": {"tiny": "lea rax, [rdi + 1]; ret", "loop": "l: call {tiny}; dec rsi; jnz l; ret"},
             "arm64": {"tiny": "add x0, x0, #1; ret", "loop": "mov x19, x30; l: bl {tiny}; subs x1, x1, #1; b.ne l; "
                       "ret x19"}}[arch]
    plain = unicorn_machine(arch, **loops)
    uc = unicorn.Uc(*{"x86_64": (unicorn_const.UC_ARCH_X86, unicorn_const.UC_MODE_64),
                      "arm64": (unicorn_const.UC_ARCH_ARM64, unicorn_const.UC_MODE_ARM)}[arch])
    uc.mem_map(0x10000, 0x10000)
    uc.mem_write(0x10000, plain.read(0x10000, 0x1000))
    symbols = {name: (plain.symbols[name].address, plain.symbols[name].size) for name in loops}
    for kind, end, at in portion([*product(KINDS, ENDS, HITS[1:])], thorough, f"{arch} {way}", 5):
        m = UnicornMachine.attach(uc, symbols=symbols)
        seen, made, k = 0, [], Kprobes(m)

        def act(p: Any, k: Kprobes = k, end: str = end, at: int = at) -> None:
            nonlocal seen
            seen += 1
            if seen == at:
                ends(k, p, made)[end]()  # noqa: B023

        made += probes(kind, symbols["tiny"][0], act)
        for p in made:
            k.register(p)
        for _ in range(2):
            m.regs.sp = 0x18000 - m.arch.linkage.pushed  # type: ignore[union-attr]
            m.arch.linkage.set(m.regs, 0x1F000)  # type: ignore[union-attr]
            m.regs[m.arch.abi.args[1]] = 9  # type: ignore[union-attr]
            uc.emu_start(symbols["loop"][0], 0x1F000)
            assert (m.regs.pc, m.regs.sp) == (0x1F000, 0x18000)
        assert seen >= at
        k.close()
        assert m.sink is None
        assert uc.mem_read(0x10000, 0x1000) == plain.read(0x10000, 0x1000)
        m.close()
