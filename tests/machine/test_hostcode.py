"""Host code at call sites: that of every host against a model of it, and as the engine's hook against what Python does
without it."""

from __future__ import annotations

import gc
import hashlib
import random
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import unicorn
from arches import RUNNABLE, integer, limits, programs_of
from native_library import library
from scenes import unicorn_machine
from unicorn import arm64_const, unicorn_const, x86_const

from kprobes import Kprobe, KprobeError, Kprobes, Kretprobe, UnicornMachine, native
from kprobes.machine.unicorn.host import hostcode
from kprobes.machine.unicorn.host.callsites import CallSiteTable
from kprobes.machine.unicorn.host.hostcode import CALL, CALLS, SITE, WHERE, CallConvention, SlowHost
from kprobes.testing import functions

pytestmark = pytest.mark.filterwarnings("ignore::kprobes.ReturnMissed")  # what is missed is counted here

# --- the code by itself, in an engine that plays the host

HOSTS = {
    "x86_64": (unicorn_const.UC_ARCH_X86, unicorn_const.UC_MODE_64),
    "aarch64": (unicorn_const.UC_ARCH_ARM64, unicorn_const.UC_MODE_ARM),
}
WINDOW_WORDS = {32: {"bias": 8, "sp_at": 24, "link_at": 28},
                64: {"bias": 8, "sp_at": 48, "link_at": 56, "sp_bias": 2047}}
CONVENTIONS = [CallConvention(bits, where, reloaded, WINDOW_WORDS[bits] if where == "window" else {})
               for bits, where, reloaded in product((32, 64), WHERE, (False, True)) if not reloaded
               or where in ("cell", "window")]
CODE, WORDS, STACK, GUEST, LIBRARY = 0x10000, 0x20000, 0x30000, 0x40000, 0x100000
AREA, PLACE = 0x7000_0000_1000_0000, 0x48  # a call area, and a call site in it
TABLE, SITE_AT, OTHER_SITE, CALLS_AT, BUFFER, CELLS = (WORDS, WORDS + 0x400, WORDS + 0x480, WORDS + 0x500,
                                                       WORDS + 0x800, WORDS + 0xC00)
PYTHON, ENTERED, RETURNED, BACK = (CODE + 0x800 + 16 * n for n in range(4))
CELL_WORDS, WINDOW = 16, CELLS + 0x20
FOLLOWED = 4
STACK_SIZE = 0x100


class Host:
    """Memory as host code sees it: a call site, the calls being followed, and a guest's registers and stack."""

    def __init__(self, host: str, kind: str, convention: CallConvention) -> None:
        self.uc, self.arm, self.convention = unicorn.Uc(*HOSTS[host]), host == "aarch64", convention
        self.pushed = convention.where in ("stack", "swapped")
        for at in (CODE, WORDS, STACK, GUEST):
            self.uc.mem_map(at, 0x1000)
        code, self.functions = library(host, LIBRARY)
        self.uc.mem_map(LIBRARY, len(code))
        self.uc.mem_write(LIBRARY, code)
        self.hooked = self.functions["serve"]
        self.function = self.functions[kind if kind in self.functions else convention.function(kind)]
        ret = bytes.fromhex("c0035fd6") if self.arm else b"\xc3"
        for at in (PYTHON, ENTERED, RETURNED):
            self.uc.mem_write(at, ret)
        self.uc.hook_add(unicorn_const.UC_HOOK_CODE, self._callback, begin=PYTHON, end=RETURNED)
        self.renew()

    def renew(self) -> None:
        """All but the code is as at first."""
        self.called: list[int] = []
        self.answer, self.data, self.inside = 1, TABLE, 1
        for at in (WORDS, STACK, GUEST):
            self.uc.mem_write(at, bytes(0x1000))
        self[TABLE] = AREA
        self[TABLE + 8] = 0x10000
        self[TABLE + 16 + PLACE] = SITE_AT
        for word, value in (("function", self.function), ("python", PYTHON), ("calls", CALLS_AT), ("entered", ENTERED),
                            ("returned", RETURNED)):
            self[SITE_AT + 8 * SITE[word]] = value
        self[OTHER_SITE + 8 * SITE["returned"]] = RETURNED
        for word, value in self.convention.words.items():
            self[CALLS_AT + 8 * CALLS[word]] = value

    def __getitem__(self, at: int) -> int:
        return int(struct.unpack("<Q", self.uc.mem_read(at, 8))[0])

    def __setitem__(self, at: int, value: int) -> None:
        self.uc.mem_write(at, struct.pack("<Q", value))

    def word(self, at: int, value: int | None = None) -> int:
        """A guest's word, in its own size and order."""
        form = ">" if self.convention.where == "swapped" else "<"
        form += "Q" if self.convention.bits == 64 else "I"
        if value is not None:
            self.uc.mem_write(at, struct.pack(form, value))
        return int(struct.unpack(form, self.uc.mem_read(at, struct.calcsize(form)))[0])

    def _callback(self, uc: unicorn.Uc, address: int, size: int, data: Any) -> None:
        self.called.append(address)
        assert self[CALLS_AT + 8 * CALLS["inside"]] == self.inside
        sp = uc.reg_read(arm64_const.UC_ARM64_REG_SP if self.arm else x86_const.UC_X86_REG_RSP)
        assert self.arm or sp % 16 == 8, "the ABI wants an aligned stack"
        uc.reg_write(arm64_const.UC_ARM64_REG_X0 if self.arm else x86_const.UC_X86_REG_RAX, self.answer)
        for scratch in ("R8", "R9", "R10", "R11", "RCX", "RDX") if not self.arm else [f"X{n}" for n in range(1, 16)]:
            uc.reg_write(getattr(arm64_const if self.arm else x86_const,
                                 f"UC_{'ARM64' if self.arm else 'X86'}_REG_{scratch}"), 0xBAD)

    def hook(self, address: int) -> None:
        """The engine calls its hook."""
        self.called.clear()
        if self.arm:
            registers = {"X0": 1, "X1": address, "X2": 4, "X3": self.data, "X30": BACK, "SP": STACK + 0x800}
            prefix, constants = "UC_ARM64_REG_", arm64_const
        else:
            registers = {"RDI": 1, "RSI": address, "RDX": 4, "RCX": self.data, "RSP": STACK + 0x7F8}
            prefix, constants = "UC_X86_REG_", x86_const
            self[STACK + 0x7F8] = BACK
        for name, value in registers.items():
            self.uc.reg_write(getattr(constants, prefix + name), value)
        saved = [getattr(constants, prefix + name) for name in (["X19", "X29"] if self.arm
                                                                else ["RBX", "RBP", "R12", "R15"])]
        for register in saved:
            self.uc.reg_write(register, 0x5AFE)
        self.uc.emu_start(self.hooked, BACK, count=300)
        assert all(self.uc.reg_read(register) == 0x5AFE for register in saved)
        if not self.arm:
            assert self.uc.reg_read(x86_const.UC_X86_REG_RSP) == STACK + 0x800

    def state(self) -> dict[str, Any]:
        """Everything that host code may change."""
        site = {name: self[SITE_AT + 8 * at] for name, at in SITE.items()}
        calls = {f"calls {name}": self[CALLS_AT + 8 * at] for name, at in CALLS.items()}
        buffer = [self[BUFFER + 8 * n] for n in range(FOLLOWED * CALL // 8)]
        cells = [self[CELLS + 8 * n] for n in range(CELL_WORDS)]
        return {**site, **calls, "other": self[OTHER_SITE + 8 * SITE["spare"]], "buffer": buffer, "cells": cells,
                "stack": bytes(self.uc.mem_read(GUEST, STACK_SIZE + 8)), "called": list(self.called)}


class Scenario:
    """A random situation, the usual one most of all, and what becomes of it."""

    def __init__(self, h: Host, rng: random.Random) -> None:
        self.h, self.rng, convention = h, rng, h.convention
        h.renew()
        low = convention.bits // 8 - 1
        top = rng.choice([0, 1, 1, 2, FOLLOWED])
        self.sp = 0x5000 + rng.randrange(8, STACK_SIZE, 4)
        if rng.random() < 0.1:
            self.sp = rng.choice([0, 0x5000 - 4, 0x5000 + STACK_SIZE, (1 << convention.bits) - 4])
        self.pushed = low + 1 if h.pushed else 0
        self.trampoline, self.true = 0xFEED0101, 0xC0DE0202
        for name, value in {"gate": rng.choice([0, 0, 0, 2]), "top": BUFFER + CALL * top, "base": BUFFER,
                            "limit": BUFFER + CALL * FOLLOWED,
                            "sp": CELLS, "link": CELLS if convention.where == "window" else CELLS + 16,
                            "trampoline": self.trampoline, "pushed": self.pushed, "stack": 0x5000,
                            "room": STACK_SIZE - low, "host": GUEST}.items():
            h[CALLS_AT + 8 * CALLS[name]] = value
        for n in range(FOLLOWED):
            for m, value in enumerate((0x5000 + rng.randrange(0, STACK_SIZE, 4), rng.getrandbits(convention.bits),
                                       OTHER_SITE)):
                h[BUFFER + CALL * n + 8 * m] = value
        h[SITE_AT + 8 * SITE["spare"]] = rng.choice([0, 1, 1, 5])
        h[OTHER_SITE + 8 * SITE["spare"]] = 3
        for n in range(CELL_WORDS):
            h[CELLS + 8 * n] = rng.getrandbits(64)  # neighbours of a narrow cell
        self.sp_cell, self.link_cell = CELLS, CELLS + 16
        if convention.where == "window":
            h[CELLS] = WINDOW
            self.sp_cell, self.link_cell = (WINDOW + convention.words[word] for word in ("sp_at", "link_at"))
        self.set_sp(self.sp)

    def cell(self, at: int, value: int) -> None:
        """Write a register, and nothing beside it."""
        bits = self.h.convention.bits
        self.h.uc.mem_write(at, (value & (1 << bits) - 1).to_bytes(bits // 8, "little"))

    def set_sp(self, value: int) -> None:
        self.cell(self.sp_cell, value - self.h.convention.words.get("sp_bias", 0))

    def link_at(self) -> int | None:
        """Where the return address is, in host memory; None: nowhere."""
        if not self.h.pushed:
            return self.link_cell
        at = self.frame - 0x5000
        return GUEST + at if 0 <= at <= STACK_SIZE - self.h.convention.bits // 8 else None

    def set_link(self, value: int) -> None:
        at = self.link_at()
        if at is not None and self.h.pushed:
            self.h.word(at, value)
        elif at is not None:
            self.cell(at, value - self.h.convention.words.get("bias", 0))

    @property
    def frame(self) -> int:
        """The stack pointer at entry, of the call that begins or ends now."""
        return self.sp

    @property
    def open(self) -> bool:
        return not self.h[CALLS_AT + 8 * CALLS["gate"]]

    def follows(self, found: int) -> bool:
        """True if a call with this return address can be followed."""
        h = self.h
        return (self.open and h[CALLS_AT + 8 * CALLS["top"]] < BUFFER + CALL * FOLLOWED and h[SITE_AT + 8 * SITE["spare"]] > 0
                and self.link_at() is not None and found != self.trampoline)

    def push(self, then: dict[str, Any]) -> None:
        """What following a call writes."""
        n = (then["calls top"] - BUFFER) // 8
        then["buffer"][n : n + 3] = [self.sp, self.true, SITE_AT]
        then["calls top"] += CALL
        then["spare"] -= 1


def each(kind: str) -> Any:
    return pytest.mark.parametrize(("host", "kind", "convention"), [
        pytest.param(host, kind, c, id=f"{host}-{c.function(kind)}")
        for host, c in product(HOSTS, CONVENTIONS) if not c.reloaded or kind == "leave"])


@pytest.mark.quick
@pytest.mark.host_code
def test_words_are_in_the_librarys_order() -> None:
    assert (native.words("site"), native.words("calls")) == (SITE, CALLS)


@pytest.mark.parametrize("host", HOSTS)
def test_count(host: str) -> None:
    h = Host(host, "count", CONVENTIONS[0])
    h[SITE_AT + 8 * SITE["hits"]] = 0
    # in the site, other places
    for address in (AREA + PLACE, AREA + PLACE + 4, AREA + PLACE + 8, AREA + PLACE, AREA - 8, AREA + 0x10000):
        h.hook(address)
        assert not h.called
    assert h[SITE_AT + 8 * SITE["hits"]] == 2
    asks_python(h)


def asks_python(h: Host) -> None:
    """Where the gate is closed."""
    for reason in (hostcode.HIT, hostcode.DISTURBED, hostcode.NESTED, hostcode.RESTING, hostcode.TASKS):
        h[CALLS_AT + 8 * CALLS["gate"]] = 1 << 8 * reason
        h.hook(AREA + PLACE)
        assert h.called == ([] if reason == hostcode.TASKS else [PYTHON])
    assert h[SITE_AT + 8 * SITE["hits"]] == 3
    assert h[CALLS_AT + 8 * CALLS["inside"]] == 0


@pytest.mark.parametrize("host", HOSTS)
def test_here(host: str) -> None:
    """The hook of one instruction, whose data is its site."""
    h = Host(host, "count", CONVENTIONS[0])
    h.hooked = h.functions["here"]
    h.data = SITE_AT
    for _ in range(2):
        h.hook(AREA + PLACE)
        assert not h.called
    assert h[SITE_AT + 8 * SITE["hits"]] == 2
    asks_python(h)


@pytest.mark.parametrize("hook", ["serve", "here"])
@pytest.mark.parametrize("host", HOSTS)
def test_a_brief_program(host: str, hook: str) -> None:
    """It runs without the site's function, and nothing is inside; where the gate is closed Python is asked."""
    h = Host(host, "program", CONVENTIONS[0])
    h.hooked = h.functions[hook]
    h.data = TABLE if hook == "serve" else SITE_AT
    environment = BUFFER
    h[environment] = RETURNED
    h[SITE_AT + 8 * SITE["quick"]] = h[SITE_AT + 8 * SITE["program"]] = environment
    h.inside = 0
    for _ in range(2):
        h.hook(AREA + PLACE)
        assert h.called == [RETURNED]
    assert h[SITE_AT + 8 * SITE["hits"]] == 2
    h.inside = 1
    h[CALLS_AT + 8 * CALLS["gate"]] = 1
    h.hook(AREA + PLACE)
    assert h.called == [PYTHON]
    h[CALLS_AT + 8 * CALLS["gate"]] = h[SITE_AT + 8 * SITE["quick"]] = 0
    h.hook(AREA + PLACE)
    assert h.called == [RETURNED]
    assert h[SITE_AT + 8 * SITE["hits"]] == 3
    assert h[CALLS_AT + 8 * CALLS["inside"]] == 0


@each("enter")
def test_enter(host: str, kind: str, convention: CallConvention) -> None:
    h, rng, seen = Host(host, kind, convention), random.Random(1), set()
    for _ in range(150):
        s = Scenario(h, rng)
        found = s.trampoline if rng.random() < 0.1 else s.true
        s.set_link(found)
        follows = s.follows(found)
        then = s.h.state()
        s.h.hook(AREA + PLACE)
        if follows:
            s.push(then)
            then["hits"] += 1
            s.set_link(found)  # back again, to compare the rest
        else:
            then["called"] = [PYTHON]
        assert s.h.state() == then
        seen.add(follows)
    assert seen == {True, False}


@each("enter")
def test_enter_makes_it_return_to_the_trampoline(host: str, kind: str, convention: CallConvention) -> None:
    s = Scenario(Host(host, kind, convention), random.Random(2))
    while (s.link_at() is None or not s.open or not s.h[SITE_AT + 8 * SITE["spare"]]
           or s.h[CALLS_AT + 8 * CALLS["top"]] == BUFFER + CALL * FOLLOWED):
        s = Scenario(s.h, s.rng)
    s.set_link(s.true)
    before = s.h.state()
    s.h.hook(AREA + PLACE)
    after = s.h.state()
    s.set_link(s.trampoline)
    assert s.h.state() == after
    assert any(after[what] != before[what] for what in ("stack", "cells"))


@each("ask")
def test_ask(host: str, kind: str, convention: CallConvention) -> None:
    h, rng, seen = Host(host, kind, convention), random.Random(3), set()
    for _ in range(150):
        s = Scenario(h, rng)
        s.h.answer = rng.choice([0, 1])
        found = s.trampoline if rng.random() < 0.1 else s.true
        s.set_link(found)
        asks = s.follows(found)
        then = s.h.state()
        s.h.hook(AREA + PLACE)
        then["called"] = [ENTERED if asks else PYTHON]
        if asks:
            then |= {"calls frame": s.sp, "calls target": s.true, "hits": then["hits"] + 1}
            if s.h.answer:
                s.push(then)
        assert s.h.state() == then
        seen.add((asks, s.h.answer))
    assert len(seen) == 4


@each("leave")
def test_leave(host: str, kind: str, convention: CallConvention) -> None:
    h, rng, seen = Host(host, kind, convention), random.Random(4), set()
    for _ in range(200):
        s = Scenario(h, rng)
        frame = s.frame
        s.set_sp(s.sp + s.pushed)  # the return instruction has popped it
        shown = s.true if (rng.random() < 0.1) is not convention.reloaded else s.trampoline
        s.set_link(shown)
        top = s.h[CALLS_AT + 8 * CALLS["top"]]
        if top > BUFFER and rng.random() < 0.8:
            s.h[top - CALL] = frame
        returns = (s.open and top > BUFFER and s.h[top - CALL] == frame and s.link_at() is not None
                   and (shown == s.trampoline) is not convention.reloaded)
        then = s.h.state()
        s.h.hook(AREA + PLACE)
        if returns:
            link = s.h[top - CALL + 8]
            then |= {"calls top": top - CALL, "other": then["other"] + 1, "called": [RETURNED], "calls frame": frame,
                     "calls target": link}
            after = s.h.state()
            s.set_link(shown if convention.reloaded else link)
            assert s.h.state() == after, "the return address is not back"
            s.set_link(shown)
        else:
            then["called"] = [PYTHON]
        assert s.h.state() == then | {"called": s.h.called} and s.h.called == then["called"]
        seen.add(returns)
    assert seen == {True, False}


# --- hosts that have none


@pytest.fixture
def asked_anew() -> Iterator[None]:
    """Whether there is host code is found out once in a process."""
    known = (hostcode.available, native._library)
    for cached in known:
        cached.cache_clear()
    yield
    for cached in known:
        cached.cache_clear()


NO_HOST = {
    "another machine": ("platform.machine", lambda: "riscv64", "none for riscv64"),
    "another system": ("platform.system", lambda: "Darwin", "under Darwin"),
    "a wheel for any platform": ("kprobes.native.library_path", lambda *_: Path("/nowhere/x.so"), "has no x.so"),
    "32-bit Python": ("ctypes.sizeof", lambda _: 4, "32-bit process"),
    "another Python": ("platform.python_implementation", lambda: "PyPy", "CPython"),
    "no GIL": ("sysconfig.get_config_var", lambda _: 1, "with a GIL"),
    "no such file": ("ctypes.PyDLL", Mock(side_effect=OSError("gone")), "cannot be loaded .gone"),
}


@pytest.mark.quick
@pytest.mark.parametrize("why", NO_HOST)
def test_a_host_without_host_code_says_so_once(why: str, asked_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(hostcode.SWITCH, raising=False)
    where, fake, said = NO_HOST[why]
    with monkeypatch.context() as patch, pytest.warns(SlowHost, match=said) as warnings:
        patch.setattr(where, fake)
        assert not hostcode.available()
        assert not hostcode.available()
    assert len(warnings) == 1
    with unicorn_machine("arm64") as m, Kprobes(m) as k:
        assert m.following is None and not m.can_run
        k.register(r := Kretprobe(symbol_name="inc", handler=lambda ri, regs: None))
        k.register(p := Kprobe(symbol_name="probed"))
        assert [m.call("inc", n) for n in range(4)] == [1, 2, 3, 4] and m.call("probed", 3) == 6
        assert (r.nhit, r.nreturned, p.nhit, r.optimized) == (4, 4, 1, True)


@pytest.mark.quick
@pytest.mark.parametrize(("system", "machine", "name"), [
    ("Darwin", "arm64", "aarch64.dylib"), ("Darwin", "x86_64", "x86_64.dylib"), ("Windows", "AMD64", "x86_64.dll")])
def test_what_was_never_run_there_is_loaded_on_demand_only(
        system: str, machine: str, name: str, asked_anew: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr("platform.system", lambda: system)
        patch.setattr("platform.machine", lambda: machine)
        patch.setattr(native, "HERE", tmp_path)
        patch.setattr("ctypes.PyDLL", loaded.append)
        patch.delenv(hostcode.SWITCH, raising=False)
        (tmp_path / name).touch()
        with pytest.warns(SlowHost, match=f"never run under {system}, only built: KPROBES_HOST_CODE=1 tries it"):
            assert not hostcode.available()
        assert loaded == []
        patch.setenv(hostcode.SWITCH, "1")
        hostcode.available.cache_clear()
        assert hostcode.available()
        assert loaded == [str(tmp_path / name)]


@pytest.mark.quick
def test_the_switch(asked_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Off: no warning (they are errors here), nothing loaded."""
    monkeypatch.setenv(hostcode.SWITCH, "0")
    monkeypatch.setattr("ctypes.PyDLL", None)
    assert not hostcode.available()


# --- as the engine's hook

PROGRAMS = [pytest.param(arch, path, id=path.stem) for arch in RUNNABLE for path in programs_of(arch)
            if path.stem.endswith("-O2")]
TESTS = ("test_mutual", "test_quicksort", "test_tail_calls", "test_setjmp", "test_structs", "test_many_args")
NO_RETURN = {"_start", "my_longjmp", "longjmp", "attempt"}
#: setjmp there stores a return address that may be the trampoline's, and goes back to it when nobody follows that call
#: any more.
KEEPS_RETURN_ADDRESSES = {"sparc": {"test_setjmp"}, "sparc64": {"test_setjmp"}}
WAYS = ("host", "python", "stepped", "tasks")


@pytest.fixture
def python_only(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make the host one that has no such code."""
    return lambda: monkeypatch.setattr(hostcode, "available", lambda: False)


@pytest.mark.parametrize(("arch", "path"), PROGRAMS)
def test_calls_are_followed_the_same_way(arch: str, path: Path, python_only: Callable[[], None]) -> None:
    """Small pools, handlers that decline, kprobes here and there: by host code, by Python in call sites, by
    breakpoints."""
    told, tests = {}, set(TESTS) - set(limits(path.stem)) - KEEPS_RETURN_ADDRESSES.get(arch, set())
    for way in WAYS:
        if way == "python":
            python_only()
        with UnicornMachine.load(path) as m:
            m.cpu_task = (lambda regs: 0) if way == "tasks" else None
            told[way] = list(followed(m, way, tests))
    assert len(told["host"]) > 100
    assert told["host"] == told["python"]
    assert told["host"] == told["stepped"]
    assert told["host"] == told["tasks"]


def followed(m: UnicornMachine, way: str, tests: set[str]) -> Iterator[Any]:
    """Everything that handlers see while the tests run three times: at breakpoints, then as jumps, then with other
    entry handlers."""
    log: list[Any] = []
    probes: list[Any] = []
    with Kprobes(m) as k:
        for n, symbol in enumerate(s for s in functions(m) if s.name not in NO_RETURN):
            name = symbol.name

            def returned(ri: Any, regs: Any, name: str = name) -> None:
                log.append((name, "returns", regs.return_value, regs.pc, ri.ret_addr, dict(ri.data)))

            def entered(ri: Any, regs: Any, name: str = name) -> int:
                ri.data["n"] = len(log)
                log.append((name, "entered", regs.pc, regs.return_address))
                return int(len(log) % 7 == 3)

            fields = {"addr": m.arch.pointers.code_address(symbol.address | symbol.mode, m.read).place(0),
                      "optimize": way != "stepped"}
            try:
                k.register(r := Kretprobe(**fields, handler=returned, entry_handler=entered if n % 3 == 1 else None,
                                          maxactive=2 + n % 4))
            except KprobeError:
                continue
            probes.append(r)
            for more in range(n % 3):  # others, which share its calls: other counts, and their turn at the return
                again = f"{name}, again {more}"
                asks = partial(entered, name=again) if n % 4 == more else None
                probes.append(Kretprobe(**fields, handler=partial(returned, name=again), entry_handler=asks,
                                        maxactive=1 + n % (3 + more)))
                k.register(probes[-1])
            if n % 5 == 2:
                probes.append(Kprobe(**fields,
                                     pre_handler=lambda p, regs, name=name: log.append((name, "pre",
                                         regs.return_address))))
                k.register(probes[-1])
        for turn in range(3):
            for test in TESTS:
                if test in tests and test in m.symbols:
                    log.append((test, m.call(test, integer(m.arch, 1000))))
            yield from log
            log.clear()
            yield [(p.addr, p.nhit, p.nmissed, getattr(p, "nreturned", 0)) for p in probes]
            if turn == 1:
                for p in probes:
                    if isinstance(p, Kretprobe):
                        p.entry_handler = None if p.entry_handler else lambda ri, regs: 0


@pytest.mark.host_code
@pytest.mark.parametrize("together", ["p", "a"])
def test_host_code_follows(together: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above compares Python with Python."""
    path = next(p for p in programs_of("arm64") if p.stem.endswith("-O2"))
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        assert m.following is not None
        probes = [Kretprobe(symbol_name="test_structs", handler=lambda ri, regs: 0,
                            entry_handler=(lambda ri, regs: 0) if one == "a" else None) for one in together]
        for r in probes:
            k.register(r)
        m.call("test_structs", 1)
        with monkeypatch.context() as without:
            assert m.sink is not None
            for call in [*m.sink.services]:
                without.setitem(m.sink.services, call, None)  # type: ignore[arg-type]
            m.call("test_structs", 1)
        assert [(r.nhit, r.nreturned) for r in probes] == [(2, 2)] * len(together)


@pytest.mark.parametrize("way", ["host", "python"])
@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_an_interrupt_leads_from_a_slot_to_a_followed_function(arch: str, way: str,
                                                               python_only: Callable[[], None]) -> None:
    """While the displaced instruction has not come to its end, the hit lasts: its calls are missed, and followed again
    afterwards."""
    if way == "python":
        python_only()
    m = unicorn_machine(arch)
    inc, waiting = m.symbols["inc"].address, []

    def timer(uc: unicorn.Uc, address: int, size: int, data: Any) -> None:
        if waiting and address in k._rooms.slots:
            waiting.clear()
            uc.reg_write(m.parts.cpu.register(m.arch.regs.pc), inc)

    m.uc.hook_add(unicorn_const.UC_HOOK_CODE, timer)
    with m, Kprobes(m) as k:
        for entry in (None, lambda ri, regs: 0):
            returned: list[int] = []
            r = Kretprobe(symbol_name="inc", handler=lambda ri, regs, to=returned: to.append(regs.return_value),
                          entry_handler=entry)
            p = Kprobe(symbol_name="probed", post_handler=lambda p, regs, flags: None)
            k.register(r)
            k.register(p)
            assert [m.call("inc", n) for n in (1, 2)] == [2, 3]
            waiting.append(True)
            assert m.call("probed", 3) == 4
            assert (r.nhit, r.nreturned, r.entry_nmissed, p.nhit) == (2, 2, 1, 1)
            assert [m.call("inc", n) for n in (4, 5)] == [5, 6]
            assert returned == [2, 3, 5, 6]
            k.unregister(r)
            k.unregister(p)


def test_what_nobody_uses_goes() -> None:
    """Callbacks and tables live as long as the engine, and no longer: a fuzzer makes thousands of machines."""
    gone = []
    for _ in range(3):
        m = unicorn_machine("x86_64")
        with Kprobes(m) as k, k.kretprobe("inc", handler=lambda ri, regs: None):
            assert [m.call("inc", n) for n in (1, 2)] == [2, 3]
        gone.append(weakref.ref(m))
        m.close()
        del m, k
    gc.collect()
    assert not any(m() for m in gone)


def test_tables_are_used_again() -> None:
    m = unicorn_machine("x86_64")
    for _ in range(20):
        with Kprobes(m) as k, k.kretprobe("inc", handler=lambda ri, regs: None) as r:
            assert [m.call("inc", n) for n in range(3)] == [1, 2, 3]
            assert (r.nhit, r.nreturned) == (3, 3)
    assert sum(isinstance(kept, CallSiteTable) for kept in m.parts.memory.engine._kept) < 10


LOOPS = {
    "x86_64": {"tiny": "lea rax, [rdi + 1]; ret", "loop": "l: call {tiny}; dec rsi; jnz l; ret"},
    "arm64": {"tiny": "add x0, x0, #1; ret", "loop": "mov x19, x30; l: bl {tiny}; subs x1, x1, #1; b.ne l; ret x19"},
}
KINDS: dict[str, Callable[[], Any]] = {
    "counted": lambda: Kprobe(symbol_name="tiny"),
    "handled": lambda: Kprobe(symbol_name="tiny", pre_handler=lambda p, regs: None),
    "followed": lambda: Kretprobe(symbol_name="tiny", handler=lambda ri, regs: None),
    "asked": lambda: Kretprobe(symbol_name="tiny", handler=lambda ri, regs: None, entry_handler=lambda ri, regs: 0),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["host", "python"])
@pytest.mark.parametrize("arch", LOOPS)
def test_stops_by_another_thread_serve_nothing_twice(arch: str, way: str, kind: str,
                                                     python_only: Callable[[], None]) -> None:
    """A stop may come between a call site's hook and the engine's look whether it was stopped: then the hook is called
    once more."""
    if way == "python":
        python_only()
    rng, over, calls = random.Random(5), threading.Event(), 300_000 if (way, kind) == ("host", "counted") else 5_000
    with unicorn_machine(arch, **LOOPS[arch]) as m, Kprobes(m) as k:
        k.register(p := KINDS[kind]())
        m.regs[m.arch.abi.args[1]] = 3  # type: ignore[union-attr]
        m.run("loop")
        assert p.optimized and p.nhit == 3

        def stop() -> None:
            while not over.wait(rng.random() / 2000):
                m.stop()

        thread, stops, total = threading.Thread(target=stop), 0, 3
        thread.start()
        try:
            while stops < 20:
                m.regs[m.arch.abi.args[1]] = calls  # type: ignore[union-attr]
                total += calls
                m.run("loop")
                while m.regs.pc != m.parts.state.exit:
                    stops += 1
                    m.run()
        finally:
            over.set()
            thread.join()
        assert p.nhit == total == getattr(p, "nreturned", total)


def processor_time(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


@pytest.mark.parametrize("way", ["host", "python"])
@pytest.mark.parametrize("arch", LOOPS)
def test_a_stop_by_another_thread_waits_for_hooks_behind_ours(arch: str, way: str,
                                                              python_only: Callable[[], None]) -> None:
    """Between a call site's hook and the engine's look whether it was stopped its owner's hooks run, 0.1 ms here; and on
    a host that is emulated it takes long anyway."""
    if way == "python":
        python_only()
    over, work = threading.Event(), bytes(4096)
    while processor_time(partial(hashlib.sha256, work)) < 1e-4:
        work *= 2

    def behind(_uc: unicorn.Uc, address: int, _size: int, _data: Any) -> None:
        if address in m.parts.state.services:
            hashlib.sha256(work)  # lets other threads run

    with unicorn_machine(arch, **LOOPS[arch]) as m, Kprobes(m) as k:
        k.register(p := Kprobe(symbol_name="tiny"))
        m.call("tiny")
        m.uc.hook_add(unicorn_const.UC_HOOK_CODE, behind)

        def stop() -> None:
            while not over.wait(0.0005):
                m.stop()

        thread = threading.Thread(target=stop)
        thread.start()
        try:
            for _ in range(5):  # where several hooks are on an instruction, the engine may run it without (docs/engine.md)
                before, m.regs[m.arch.abi.args[1]] = p.nhit, 60  # type: ignore[union-attr]
                m.run("loop")
                while m.regs.pc != m.parts.state.exit:
                    m.run()
                if m.parts.memory.engine.outside is not None or p.nhit - before >= 60:
                    break
        finally:
            over.set()
            thread.join()
        assert p.optimized and p.nhit - before == 60



@pytest.mark.parametrize("way", ["host", "python"])
@pytest.mark.parametrize("arch", LOOPS)
def test_a_run_that_rests_at_a_call_site_goes_on_behind_it(arch: str, way: str, python_only: Callable[[], None],
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    """So it does when it was stopped again and again. The site was served: host code is not to do it once more."""
    if way == "python":
        python_only()
    monkeypatch.setattr("kprobes.machine.unicorn.runner.ROUNDS", 0)
    with unicorn_machine(arch, **LOOPS[arch]) as m, Kprobes(m) as k:
        k.register(p := Kprobe(symbol_name="tiny"))
        m.call("tiny")
        p.pre_handler = lambda p, regs: m.stop() if p.nhit == 3 else None
        m.regs[m.arch.abi.args[1]] = 5  # type: ignore[union-attr]
        m.run("loop")
        assert m.regs.pc in m.parts.state.services
        p.pre_handler = None  # it is only counted from now on
        m.run()
        assert m.regs.pc == m.parts.state.exit and p.nhit == 6


@pytest.mark.parametrize("arch", LOOPS)
def test_a_stack_that_is_unmapped_and_another_one(arch: str) -> None:
    """Host code writes to the stack's memory in this process: never to memory that the guest has no more."""
    with unicorn_machine(arch, **LOOPS[arch]) as m, Kprobes(m) as k:
        k.register(r := Kretprobe(symbol_name="tiny", handler=lambda ri, regs: None))
        for place, perms in ((0, "rw"), (0, "rw"), (1, "rw"), (0, "rwx"), (0, "rw")):
            stack = 0x70000000 + place * 0x100000  # the same places again, in other memory
            m.map(stack, 0x10000, perms)
            m.regs.sp = stack + 0x8000
            for call in range(3):
                assert m.call("tiny", call) == call + 1
            m.unmap(stack, 0x10000)
            m.map(0x60000000 + 0x10000 * r.nhit, 0x10000, "rw")  # where it was in this process
        assert (r.nhit, r.nreturned) == (15, 15)


@pytest.mark.parametrize("entry", [None, lambda ri, regs: 0], ids=["followed", "asked"])
@pytest.mark.parametrize("arch", LOOPS)
def test_an_attached_engine_with_a_stack_of_its_owners(arch: str, entry: Any) -> None:
    """Its memory is out of host code's reach. A run of the owner's within a handler is one within a run."""
    plain = unicorn_machine(arch, **LOOPS[arch])
    uc = unicorn.Uc(*{"x86_64": HOSTS["x86_64"], "arm64": HOSTS["aarch64"]}[arch])
    uc.mem_map(0x10000, 0x10000)
    uc.mem_write(0x10000, plain.read(0x10000, 0x1000))
    symbols = {name: (plain.symbols[name].address, plain.symbols[name].size) for name in LOOPS[arch]}
    m = UnicornMachine.attach(uc, symbols=symbols)
    assert m.arch.linkage is not None

    def run(calls: int) -> None:
        m.regs.sp -= m.arch.linkage.pushed  # type: ignore[union-attr]
        m.arch.linkage.set(m.regs, 0x1F000)  # type: ignore[union-attr]
        m.regs[m.arch.abi.args[1]] = calls  # type: ignore[union-attr]
        uc.emu_start(symbols["loop"][0], 0x1F000)

    def again(p: Any, regs: Any) -> None:
        if regs[m.arch.abi.args[1]] == 2:  # type: ignore[union-attr]
            context = uc.context_save()
            uc.reg_write(m.parts.cpu.register(m.arch.regs.sp), 0x19000)
            run(1)
            uc.context_restore(context)

    m.regs.sp = 0x18000
    with Kprobes(m) as k:
        k.register(r := Kretprobe(symbol_name="tiny", handler=lambda ri, regs: None, entry_handler=entry))
        run(5)
        assert (r.nhit, r.nreturned, r.entry_nmissed) == (5, 5, 0)
        k.register(Kprobe(addr=symbols["loop"][0] + {"x86_64": 5, "arm64": 8}[arch], pre_handler=again))
        run(5)
        assert (r.nhit, r.nreturned, r.entry_nmissed) == (10, 10, 1)


def test_an_entry_handler_that_fails_and_diverts() -> None:
    """Its fault_handler sends the guest elsewhere: the call is not followed, and the probepoint is a breakpoint
    again."""
    def entry(ri: Any, regs: Any) -> None:
        if regs.arg(0) == 7:
            raise ValueError("seven")

    def handled(p: Any, regs: Any, number: int) -> int:
        regs.pc = m.symbols["probed"].address
        return 1

    with unicorn_machine("x86_64") as m, Kprobes(m) as k:
        k.register(r := Kretprobe(symbol_name="inc", handler=lambda ri, regs: None, entry_handler=entry,
                                  fault_handler=handled))
        assert [m.call("inc", n) for n in (1, 2, 7, 3)] == [2, 3, 10, 4]
        assert (r.nhit, r.nreturned, k._calls.pending, len(r._pool)) == (4, 3, 0, r._made)
        assert not r.optimized


def library_machine(host: str) -> tuple[UnicornMachine, dict[str, int]]:
    """A guest with the library of a host in it, and where that's functions and objects are."""
    m = UnicornMachine.from_code(bytes(0x40), arch="arm64" if host == "aarch64" else "x86_64")
    code, found = library(host, LIBRARY)
    m.map(LIBRARY, len(code), "rwx")
    m.write(LIBRARY, code)
    return m, found


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("guest", [0, 15])
@pytest.mark.parametrize(("asked", "given"), [(1, 1), (63, 63), (64, 64), (65, 64), (512, 64)])
def test_translate(host: str, guest: int, asked: int, given: int) -> None:
    """The translator of a guest gets a number that is lowered; the other arguments, and the stack, are as they were."""
    m, found = library_machine(host)
    target = 0x1000000
    m.map(target, 0x1000)
    m.write(found["translators"] + 16 * guest, struct.pack("<QQ", target, 64))
    for name, value in zip(("x0", "x1", "x2") if host == "aarch64" else ("rdi", "rsi", "rdx"), (0x1111, 0x2222, asked),
                           strict=True):
        m.regs[name] = value
    sp = m.regs.sp
    m.run(m.regs.word(found["translate"] + 8 * guest), until=target)
    assert [m.regs.arg(n) for n in range(3)] == [0x1111, 0x2222, given]
    assert m.regs.pc == target and m.regs.sp == sp


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("n", [0, 255])
@pytest.mark.parametrize("onward", [0, 0x1000000])
def test_take_note(host: str, n: int, onward: int) -> None:
    """It copies what the first of its words points at, and goes on at the second with the arguments as they were;
    without one it answers 0."""
    m, found = library_machine(host)
    source, words = m.alloc(8), found["notes"] + 24 * n
    m.map(0x1000000, 0x1000)
    m.write(source, struct.pack("<Q", 0x1122334455667788))
    m.write(words, struct.pack("<QQQ", source, onward, 0))
    function = m.regs.word(found["take_note"] + 8 * n)
    if onward:
        for name, value in zip(("x0", "x1") if host == "aarch64" else ("rdi", "rsi"), (0x1111, 0x2222), strict=True):
            m.regs[name] = value
        sp = m.regs.sp
        m.run(function, until=onward)
        assert ([m.regs.arg(n) for n in range(2)], m.regs.pc, m.regs.sp) == ([0x1111, 0x2222], onward, sp)
    else:
        assert m.call(function, 0x1111, 7) == 0
    assert struct.unpack("<QQQ", m.read(words, 24)) == (source, onward, 0x1122334455667788)
