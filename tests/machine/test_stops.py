"""Breakpoints that the engine does not report (TriCore's): marks, lines, and hooks that come and go while one is
served."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext

import pytest
from native_library import library

from kprobes import GuestTimeout, Kprobe, Kprobes, UnicornMachine
from kprobes.machine.unicorn import stops
from kprobes.machine.unicorn.engine import address_of
from kprobes.machine.unicorn.host.marks import MARKED, STAY, StopMarks, host_function
from kprobes.machine.unicorn.stops import FEW, LONGEST, MOST

BASE = 0x80000000
FUNCTION = bytes.fromhex("821200900000").ljust(16, b"\0")  # mov d2, 1; ret
COUNT = 4096


def machine() -> UnicornMachine:
    return UnicornMachine.from_code(FUNCTION * COUNT, arch="tricore", base=BASE,
                                    symbols={f"f{n}": (BASE + 16 * n, 4) for n in range(COUNT)})


@pytest.fixture(params=["host code", "Python"])
def guest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> UnicornMachine:
    if request.param == "Python":
        monkeypatch.setattr(stops, "host_function", lambda: 0)
    elif not host_function():
        pytest.skip("this host has no such function")
    return machine()


def probe(n: int, handler: object = lambda p, regs: None) -> Kprobe:
    return Kprobe(symbol_name=f"f{n}", optimize=False, pre_handler=handler)


def test_lines_grow_and_shrink(guest: UnicornMachine) -> None:
    with Kprobes(guest) as k:
        few = [probe(n) for n in range(3)]
        k.register_kprobes(few)
        assert guest.parts.stops._line == 2
        many = [probe(n) for n in range(3, COUNT)]
        k.register_kprobes(many)
        assert len(guest.parts.stops._hooks) <= FEW
        assert 2 < guest.parts.stops._line <= LONGEST
        assert all(guest.call(f"f{n}") == 1 for n in range(0, COUNT, 37))
        assert [p.nhit for p in (few + many)] == [int(n % 37 == 0) for n in range(COUNT)]
        k.unregister_kprobes(many)
        assert guest.parts.stops._line == 2
        assert len(guest.parts.stops._hooks) <= 6
        assert guest.call("f1") == 1
        assert few[1].nhit == 1
    assert not guest.parts.stops._hooks


def test_lines_of_pages_that_are_not_all_mapped(guest: UnicornMachine) -> None:
    """A long line starts where nothing is mapped."""
    size = guest.page_size
    for n in range(3 * MOST):
        guest.map(BASE + 0x200000 + (2 * n + 1) * size, size)
        guest.write(BASE + 0x200000 + (2 * n + 1) * size, FUNCTION)
        guest.symbols.add(f"g{n}", BASE + 0x200000 + (2 * n + 1) * size, 4)
    with Kprobes(guest) as k:
        probes = [Kprobe(symbol_name=f"g{n}", optimize=False, pre_handler=lambda p, regs: None)
                  for n in range(3 * MOST)]
        k.register_kprobes(probes)
        assert guest.parts.stops._line > size
        assert [guest.call(f"g{n}") for n in range(3 * MOST)] == [1] * 3 * MOST
        assert all(p.nhit == 1 for p in probes)
    assert [guest.call(f"g{n}") for n in range(3 * MOST)] == [1] * 3 * MOST
    assert all(p.nhit == 1 for p in probes)


def test_registered_again_by_its_handler_it_is_hit_once(guest: UnicornMachine) -> None:
    """The engine would call a hook that is added to the instruction it is at."""
    hits = 0

    def again(p: Kprobe, regs: object) -> None:
        nonlocal hits
        hits += 1
        k.disable(p)
        k.enable(p)

    with Kprobes(guest) as k:
        k.register(probe(0, again))
        assert [guest.call("f0") for _ in range(3)] == [1] * 3
        assert hits == 3


def test_a_handler_registers_many(guest: UnicornMachine) -> None:
    hits = 0
    others = [probe(n) for n in range(1, 200)]

    def register(p: Kprobe, regs: object) -> None:
        nonlocal hits
        hits += 1
        if hits == 1:
            k.register_kprobes(others)
        elif hits == 3:
            k.unregister_kprobes(others)

    with Kprobes(guest) as k:
        k.register(probe(0, register))
        assert guest.call("f0") == 1
        assert hits == 1
        assert guest.call("f7") == 1
        assert others[6].nhit == 1
        assert [guest.call("f0") for _ in range(3)] == [1] * 3
        assert hits == 4
        assert guest.call("f7") == 1
        assert others[6].nhit == 1
        k.register(extra := probe(7))
        assert len(guest.parts.stops._hooks) <= MOST
        assert guest.call("f7") == 1
        assert extra.nhit == 1
    assert not guest.parts.stops._hooks


def test_a_stop_that_is_younger_than_the_bound(guest: UnicornMachine) -> None:
    """It takes the last instruction of a bounded run, too, and none more."""
    with Kprobes(guest) as k:
        first, last = probe(0, lambda p, regs: None if last.registered else k.register(last)), Kprobe(addr=BASE + 2,
            optimize=False)
        for bound in (1, 2):
            k.register(first)
            with pytest.raises(GuestTimeout) if bound == 1 else nullcontext():
                assert guest.call("f0", max_insns=bound) == 1
            assert (first.nhit, last.nhit) == (1, bound - 1)
            k.unregister_kprobes([first, last])


CODE, DATA, LIBRARY = 0x10000, 0x20000, 0x100000
CALLED, WRITE = CODE, CODE + 16
GUESTS = {"x86_64": ("x86_64", ("rdi", "rsi", "rdx"), "rax", "c3"),
          "aarch64": ("arm64", ("x0", "x1", "x2"), "x0", "c0035fd6")}


@pytest.mark.parametrize("host", GUESTS)
@pytest.mark.parametrize("to", [0x1234, STAY])
def test_host_code(host: str, to: int) -> None:
    """What another host would run, run as a guest."""
    arch, arguments, result, back = GUESTS[host]
    text, found = library(host, LIBRARY)
    code = 2 * bytes.fromhex(back).ljust(16, b"\0")
    seen: list[tuple[int, ...]] = []
    with UnicornMachine.from_code(code, arch=arch, base=CODE,
                                  symbols={"hook": found["marked"], "called": CALLED, "write": WRITE}) as guest:
        marks = StopMarks(BASE, 64, CALLED, WRITE, 77)
        marks.put(BASE + 6, True)
        guest.map(DATA, guest.page_size * 4)
        guest.map(LIBRARY, len(text), "rwx")
        guest.write(LIBRARY, text)
        guest.write(DATA, bytes(marks._bytes))
        with Kprobes(guest) as k:
            def called(p: Kprobe, regs: object) -> None:
                seen.append(tuple(regs[name] for name in arguments[:2]))
                regs[result] = to

            def write(p: Kprobe, regs: object) -> None:
                seen.append((regs[arguments[0]], regs[arguments[1]] & 0xFFFFFFFF, regs.word(regs[arguments[2]])))

            k.register(Kprobe(symbol_name="called", pre_handler=called))
            k.register(Kprobe(symbol_name="write", pre_handler=write))
            guest.call("hook", 5, BASE + 4, 2, DATA)
            assert not seen
            guest.call("hook", 5, BASE + 6, 2, DATA)
            assert seen == [(5, BASE + 6)] if to == STAY else [(5, BASE + 6), (5, 77, to)]


def test_host_function() -> None:
    """What this host runs."""
    if not host_function():
        pytest.skip("this host has no such function")
    seen: list[tuple[int, ...]] = []
    write = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))(
        lambda uc, number, value: seen.append((uc, number, value[0])) or 0)
    called = MARKED(lambda uc, address: STAY if address == BASE else address + 2)
    marks = StopMarks(BASE, 16, address_of(called), address_of(write), 3)
    hook = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)(host_function())
    for address in (BASE, BASE + 8):
        marks.put(address, True)
    for address in range(BASE, BASE + 16):
        hook(9, address, 4, marks.data)
    assert seen == [(9, 3, BASE + 10)]
    marks.put(BASE + 8, False)
    marks.put(BASE + 8, False)
    hook(9, BASE + 8, 4, marks.data)
    assert len(seen) == 1
    assert marks
    marks.put(BASE, False)
    assert not marks
