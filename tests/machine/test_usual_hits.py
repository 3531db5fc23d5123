"""Usual hits are served in C, the others in Python: a generator of handlers compares both, on every architecture.

Each handler looks at the guest, and now and then does something that is not usual: it raises, sends the guest elsewhere,
runs guest code, ends or disables its probe, or changes handlers. Twins of one seed, one with host code and one without,
must see the same.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from arches import RUNNABLE, integer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import worlds

from kprobes import (
    DIVERTED,
    BadArgument,
    Kprobe,
    KprobeError,
    Kprobes,
    Kretprobe,
    Regs,
    UnicornMachine,
    native,
    override_function_with_return,
)
from kprobes.core.hit.ctlblk import HitState
from kprobes.machine.unicorn.host import hostcode

SEEDS = int(os.environ.get("KPROBES_SEEDS", "3"))  #: random scenes of each kind
HITS = 40


class Oops(Exception):
    """Raised by handlers."""


class Twin:
    """A guest with probes on one function, whose handlers follow a seed."""

    def __init__(self, arch: str, kind: str, seed: int) -> None:
        self.m = worlds.Machine(arch).machine
        self.k = Kprobes(self.m)
        self.rng = random.Random(seed)
        self.log: list[Any] = []
        self.depth = 0
        pre = partial(Kprobe, symbol_name="tiny", pre_handler=self.pre, fault_handler=self.handled)
        returned = partial(Kretprobe, symbol_name="tiny", handler=self.returned, fault_handler=self.handled)
        entered = partial(returned, entry_handler=self.entered, maxactive=2)
        kinds: dict[str, list[Callable[[], Any]]] = {
            "optimized": [pre],
            "breakpoint": [partial(pre, optimize=False)],
            "post": [partial(pre, post_handler=self.post)],
            "return": [returned],
            "entry": [entered],
            "several": [pre, partial(Kprobe, symbol_name="tiny"), pre],
            "returns": [returned, partial(returned, maxactive=1), partial(returned, handler=None)],
            "asked": [partial(returned, handler=None), returned, entered],
            "mixed": [pre, returned, entered],
        }
        self.probes = [make() for make in kinds[kind]]

    def see(self, what: str, regs: Regs) -> None:
        """Note what a handler sees of the registers."""
        values = [regs.pc, regs.sp, regs.return_value, regs.arg(0), regs.arg(1)]
        values += [regs.stack(n) for n in range(3)]
        self.log.append((what, self.depth, *values, regs.reported))

    def do_something(self, regs: Regs, may_divert: bool) -> int:
        """Do what is not usual, one time of three."""
        turn = self.rng.randrange(24)
        if turn == 0:
            raise Oops
        if turn == 1 and may_divert:
            self.log.append("diverts")
            assert self.m.arch.linkage is not None
            regs.return_value = integer(self.m.arch, 1 + worlds.K)
            if self.m.arch.linkage.pushed:
                target = self.m.arch.linkage.get(regs)
                regs.sp += self.m.arch.linkage.pushed
                regs.go(target)
            else:
                regs.go(self.m.arch.linkage.get(regs))
            return DIVERTED
        if turn == 2 and self.depth < 2:
            self.depth += 1
            self.log.append(("runs", self.m.call("tiny", 5)))
            self.depth -= 1
        if turn == 3:
            self.k.disable(self.rng.choice(self.registered))
        if turn == 4:
            self.k.unregister(self.rng.choice(self.registered))
        if turn == 5 and isinstance(probe := self.rng.choice(self.probes), Kprobe):
            probe.pre_handler = self.pre if self.rng.random() < 0.5 else self.other
        if turn == 6:
            gc.collect()
        if turn == 7:
            regs.pc = regs.pc  # without a true result it changes nothing
        return 0

    @property
    def registered(self) -> list[Any]:
        """The probes that are."""
        return [probe for probe in self.probes if probe.registered]

    def pre(self, p: Kprobe, regs: Regs) -> int:
        self.see(f"pre {self.probes.index(p)}", regs)
        return self.do_something(regs, may_divert=True)

    def other(self, p: Kprobe, regs: Regs) -> None:
        self.see("other", regs)

    def post(self, p: Kprobe, regs: Regs, flags: int) -> None:
        self.see(f"post {flags}", regs)
        self.do_something(regs, may_divert=False)

    def returned(self, ri: Any, regs: Regs) -> None:
        self.see(f"returned {self.probes.index(ri.rp)}", regs)
        self.log.append((ri.ret_addr, ri.frame, ri.task, dict(ri.data)))
        self.do_something(regs, may_divert=False)

    def entered(self, ri: Any, regs: Regs) -> int:
        self.see("entered", regs)
        ri.data["n"] = len(self.log)
        self.do_something(regs, may_divert=False)
        return int(self.rng.random() < 0.2)

    def handled(self, p: Any, regs: Regs, number: int) -> int:
        """Handle every other exception of a handler, and no fault of the guest's."""
        self.log.append(("fault", number))
        return int(number == 0 and self.rng.random() < 0.5)

    def play(self) -> list[Any]:
        """Everything that is seen, in calls of a loop around the probed function."""
        for _ in range(HITS // 4):
            for probe in self.probes:
                if not probe.registered:
                    self.k.register(probe)
                if not probe.enabled:
                    self.k.enable(probe)
            try:
                self.log.append(("result", self.m.call("loop", 4, worlds.K)))
            except (Oops, KprobeError) as error:
                self.log.append((type(error).__name__, self.m.regs.pc))
            self.log.append(self.k._calls.pending)
            for probe in self.probes:
                self.log.append([probe.nhit, probe.nmissed, probe.optimized])
                if isinstance(probe, Kretprobe):
                    self.log.append([probe.nreturned, probe.entry_nmissed, len(probe._pool)])
        self.k.close()
        return self.log


_pre = partial(Kprobe, symbol_name="tiny", pre_handler=lambda p, regs: None)
_returned = partial(Kretprobe, symbol_name="tiny", handler=lambda ri, regs: None)
#: Probes on one function whose hits and returns host code serves.
USUAL: dict[str, list[Callable[[], Any]]] = {
    "one": [_pre],
    "several": [_pre, partial(Kprobe, symbol_name="tiny"), _pre],
    "return": [_returned],
    "returns": [_returned, _returned],
    "asked": [_returned, partial(_returned, entry_handler=lambda ri, regs: None)],
}


@pytest.fixture
def few_objects() -> None:
    """What other tests have left behind is no matter of gc.collect(), which takes long where it is much.

    It stays frozen: gc.unfreeze() would give back the million objects of conftest's pytest_collection, too, and each
    collection of all later tests would walk over them.
    """
    gc.collect()
    gc.freeze()


@pytest.mark.host_code
@pytest.mark.usefixtures("few_objects")
@pytest.mark.parametrize("kind", ["optimized", "breakpoint", "post", "return", "entry", "several", "returns",
                                  "asked", "mixed"])
@pytest.mark.parametrize("arch", RUNNABLE)
def test_twins_see_the_same(arch: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(SEEDS):
        with_host_code = Twin(arch, kind, seed).play()
        with monkeypatch.context() as patch:
            patch.setattr(hostcode, "available", lambda: False)
            without = Twin(arch, kind, seed).play()
        assert with_host_code == without, seed


@pytest.mark.quick
@pytest.mark.host_code
@pytest.mark.parametrize("kind", USUAL)
@pytest.mark.parametrize("arch", RUNNABLE)
def test_usual_hits_run_no_function_of_ours(arch: str, kind: str) -> None:
    """Otherwise the test above compares Python with Python."""
    with Kprobes(worlds.Machine(arch).machine) as k:
        m = k.machine
        probes = [make() for make in USUAL[kind]]
        for p in probes:
            k.register(p)
        m.call("loop", 3, worlds.K)
        assert all(p.optimized for p in probes)
        m.sink.services.clear()
        m.call("loop", 20, worlds.K)
        assert [p.nhit for p in probes] == [23] * len(probes)
        assert {p.nreturned for p in probes if isinstance(p, Kretprobe)} <= {23}


@pytest.mark.quick
@pytest.mark.host_code
@pytest.mark.parametrize("arch", RUNNABLE)
def test_diverting_breakpoints_run_no_function_of_ours(arch: str) -> None:
    """A function that a handler stands in for, as heap checks do, where the engine reports breakpoints as interrupts."""

    def away(p: Kprobe, regs: Regs) -> int:
        regs.return_value = 1
        override_function_with_return(regs)
        return DIVERTED

    with Kprobes(worlds.Machine(arch).machine) as k:
        m = k.machine
        p = Kprobe(symbol_name="tiny", pre_handler=away, optimize=False)
        k.register(p)
        first, hits = m.call("loop", 3, worlds.K), p.nhit
        served = m.hits is not None and m.hits.traps
        assert (p._point.served is not None) == served
        if served:
            m.parts.state.trap = None
        assert m.call("loop", 3, worlds.K) == first
        assert p.nhit == 2 * hits


@pytest.mark.quick
@pytest.mark.host_code
def test_a_breakpoint_diverts_into_the_midst_of_a_jump() -> None:
    """The jump gives way, whoever serves the breakpoint."""
    base = 0x10000
    code = b"\x90" * 16 + bytes.fromhex("4831c0 48ffc0 48ffc0 c3")
    machine = UnicornMachine.from_code(code, arch="x86_64", base=base, symbols={"away": base, "counted": base + 16})
    with Kprobes(machine) as k:
        m, inside = k.machine, base + 16 + 3

        def away(p: Kprobe, regs: Regs) -> int:
            regs["rax"] = 5
            regs.pc = inside
            return DIVERTED

        first = Kprobe(addr=base, pre_handler=away, optimize=False)
        jump = Kprobe(addr=base + 16)
        k.register(first)
        seen = set()
        for _ in range(4):
            assert m.call(base) == 7
            if not jump.registered:
                k.register(jump)
            for _ in range(3):
                assert m.call(base + 16) == 2
            seen.add((jump.optimized, first._point.served is not None))
            assert m.call(base) == 7
            assert not jump.optimized
            k.unregister(jump)
        assert (True, True) in seen and first.nhit == 8


# --- the registers object


@pytest.mark.quick
@pytest.mark.parametrize("arch", RUNNABLE)
def test_registers_are_those_of_the_plain_class(arch: str) -> None:
    """Whatever C answers is what the methods of Regs answer."""
    m = worlds.Machine(arch).machine
    regs = m.regs
    plain = next(base for base in type(regs).__mro__ if not native.available() or (base.__module__ != "builtins"
                 and "arg" in vars(base) and base is not type(regs)))
    assert isinstance(regs, Regs) and type(regs).__name__ == plain.__name__
    regs.sp = m.alloc(256) + 128
    for n, name in enumerate(regs.names):
        if name not in (m.arch.regs.pc, m.arch.regs.sp) and m.arch.regs.widths.get(name, m.arch.bits) == m.arch.bits:
            regs[name] = 0x1111 * (n + 1)
    for n in (*range(12), -1):
        for method in ("arg", "stack"):
            outcomes = []
            for function in (getattr(regs, method), getattr(plain, method).__get__(regs)):
                try:
                    outcomes.append(function(n))
                except (KprobeError, ValueError) as error:
                    outcomes.append((type(error), str(error)))
            assert outcomes[0] == outcomes[1], (method, n)
    for name in ("pc", "sp", "return_value"):
        assert getattr(regs, name) == getattr(plain, name).fget(regs)
        assert type(getattr(regs, name)) is int


@pytest.mark.quick
def test_errors_of_registers_are_the_plain_ones() -> None:
    regs = worlds.Machine("x86_64").machine.regs
    for wrong in ("one", None, 1.5):
        with pytest.raises(BadArgument):
            regs.arg(wrong)  # type: ignore[arg-type]
        with pytest.raises(BadArgument):
            regs.stack(wrong)  # type: ignore[arg-type]
        with pytest.raises(BadArgument):
            regs.pc = wrong  # type: ignore[assignment]
    for function in (copy.copy, copy.deepcopy, pickle.dumps):
        with suppress(Exception):  # whatever it says, it is no crash
            function(regs)
    assert repr(regs).startswith("<Regs x86_64 cpu 0 pc=")
    with pytest.raises(AttributeError):
        regs.nothing = 1  # type: ignore[attr-defined]


# --- nothing is lost, nothing crashes


@pytest.mark.host_code
@pytest.mark.parametrize("optimize", [True, False])
def test_what_handlers_hold_is_let_go(optimize: bool) -> None:
    """A machine, its probes, handlers and instances are collected when nobody has them any more."""
    class Handler:
        def __call__(self, p: Any, regs: Any) -> None:
            seen.append(regs)

    seen: list[Any] = []
    m = worlds.Machine("x86_64").machine
    k = Kprobes(m)
    handler = Handler()
    k.register(p := Kprobe(symbol_name="tiny", pre_handler=handler, optimize=optimize))
    m.call("loop", 9, worlds.K)
    k.unregister(p)
    k.register(r := Kretprobe(symbol_name="tiny", handler=lambda ri, regs: None, entry_handler=lambda ri, regs: None,
                              optimize=optimize))
    m.call("loop", 9, worlds.K)
    assert (r.nhit, r.nreturned, len(seen)) == (9, 9, 9)
    gone = [weakref.ref(what) for what in (handler, p, r, k)]
    k.close()
    seen.clear()
    del handler, p, r, k
    gc.collect()
    assert [what() for what in gone] == [None] * 4


@pytest.mark.host_code
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("act", ["nothing", "another hit", "raises", "goes elsewhere", "closes"])
def test_no_reference_is_lost_or_left(act: str, optimize: bool) -> None:
    """The block's states are lent to it, without references of their own: however a hit ends, as many are left."""
    m = worlds.Machine("x86_64").machine

    def pre(p: Any, regs: Any) -> Any:
        if act == "another hit":
            m.call("tiny", 1, 2)
        elif act == "raises":
            raise Oops
        elif act == "goes elsewhere":
            override_function_with_return(regs)
            return DIVERTED
        elif act == "closes":
            k[0].close()
        return None

    k: list[Any] = [None]

    def hits(count: int) -> None:
        for _ in range(count):
            k[0] = Kprobes(m)
            k[0].register(Kprobe(symbol_name="tiny", pre_handler=pre, optimize=optimize))
            with suppress(Oops):
                m.call("loop", 5, worlds.K)
            k[0].close()

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(state) for state in HitState]

    hits(5)
    before = counts()
    hits(60)
    grown = [after - once for once, after in zip(before, counts(), strict=True)]
    assert grown == [0] * len(grown)


@pytest.mark.host_code
def test_handlers_in_threads() -> None:
    """Each thread has a machine of its own; hits take the GIL and give it back."""
    found = []

    def work() -> None:
        m = worlds.Machine("x86_64").machine
        with Kprobes(m) as k:
            k.register(p := Kprobe(symbol_name="tiny", pre_handler=lambda p, regs: regs.arg(0) and None))
            m.call("loop", 3000, worlds.K)
            found.append(p.nhit)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3000] * 4
