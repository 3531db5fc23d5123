"""SPARC: registers of the window where the engine keeps them, and functions that do not return 8 bytes behind what o7
was at entry."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from attrs import evolve

from kprobes import GuestFault, Kprobe, Kprobes, Kretprobe, UnicornMachine
from kprobes.machine.unicorn import cpu
from kprobes.machine.unicorn.guests.guest import SelfTestCode
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.machine.unicorn.host import hostcode
from kprobes.machine.unicorn.registers import windows
from kprobes.machine.unicorn.registers.windows import find_windowed
from kprobes.regs import Regs

pytestmark = pytest.mark.quick
BASE = 0x10000
#: f(n): save %sp,-96,%sp; subcc %i0,1,%o0; bneg 1f; nop; call f; nop; add %o0,%i0,%i0; 1: ret; restore
DEEP = "9de3bfa0 90a62001 0c800005 01000000 7ffffffc 01000000 b0020018 81c7e008 81e80000"
#: mov %o7,%g5; call f; mov 2,%o0; add %o0,%o7,%o0; jmp %g5+8; nop; f: mov %o7,%g1; mov 7,%o7; jmp %g1+8; inc %o0
BY_ANOTHER = "8a10000f 40000005 90102002 9002000f 81c16008 01000000 8210000f 9e102007 81c06008 90022001"
#: mov %o7,%g5; call f; mov 2,%o0; unimp 8; inc %o0; jmp %g5+8; add %o0,%o7,%o0; f: add %o0,30,%o0; jmp %o7+12; nop
STRUCTURE = "8a10000f 40000006 90102002 00000008 90022001 81c16008 9002000f 9002201e 81c3e00c 01000000"
#: the same without UNIMP; f: retl; add %o0,30,%o0
PLAIN = "8a10000f 40000005 90102002 90022001 81c16008 9002000f 81c3e008 9002201e"
RETURNS = [("sparc", STRUCTURE, 0x1C, 16), *((arch, code, 0x18, 12)
                                             for arch, code in product(("sparc", "sparc64"), (BY_ANOTHER, PLAIN)))]
each_return = pytest.mark.parametrize(("arch", "code", "function", "back"), RETURNS,
                                      ids=("structure", "another", "plain", "another64", "plain64"))
WINDOWED = {f"{kind}{n}" for kind in "oli" for n in range(8)}


def machine(arch: str, code: str, function: int = 0) -> UnicornMachine:
    return UnicornMachine.from_code(bytes.fromhex(code), arch=arch, base=BASE,
                                    symbols={"main": BASE, "f": BASE + function})


@pytest.fixture(params=["host", "python", "api"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Who follows calls: host code; Python; Python that reads registers by the engine's API."""
    if request.param != "host":
        monkeypatch.setattr(hostcode, "available", lambda: False)
    if request.param == "api":
        monkeypatch.setattr(cpu, "find_windowed", lambda *_: {})
    return str(request.param)


@pytest.mark.parametrize("arch", ["sparc", "sparc64"])
def test_windows_are_found(arch: str) -> None:
    m = machine(arch, PLAIN)
    assert set(m.parts.cpu.windowed) == WINDOWED
    for n, (name, place) in enumerate(m.parts.cpu.windowed.items()):
        read, write = m.parts.cpu.access(name)
        m.regs[name] = 0x1000 + n
        assert read() == 0x1000 + n
        write(0x2000 + n)
        assert m.regs[name] == place.reader()() == 0x2000 + n
        m.regs[name] = -1
        assert m.regs[name] == read() == m.arch.mask


def test_windows_that_do_not_move_are_left_to_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "_layouts", {})
    m = machine("sparc", PLAIN)
    numbers = {name: m.parts.cpu.register(name) for name in m.arch.regs.names if name in WINDOWED}
    general = {name: m.parts.cpu.register(name) for name in m.arch.regs.names if name in m.parts.cpu.cells}
    for moves, found in ((GUESTS["sparc"].checks.moves, WINDOWED), (("01000000",), set())):  # NOP
        windows._layouts.clear()
        guest = evolve(GUESTS["sparc"], checks=SelfTestCode(moves=moves))
        assert set(find_windowed(m.parts.memory.engine, guest, "sparc", m.parts.cpu.cells, general, numbers,
                                 32)) == found


def test_windows_move_with_the_guest() -> None:
    """In each window a handler sees what the API sees, and what it writes is there when the guest comes back."""
    m = machine("sparc", DEEP)
    seen = []

    def deeper(p: Any, regs: Regs) -> None:
        assert [regs[name] for name in sorted(WINDOWED)] == [m.parts.cpu.access(name)[0]() for name in sorted(WINDOWED)]
        seen.append(regs["i0"])
        regs["l3"] = 100 + regs["i0"]

    def back(p: Any, regs: Regs) -> None:
        assert regs["l3"] == m.parts.cpu.access("l3")[0]() == 100 + seen.pop()

    assert m.call("f", 5) == 15
    with Kprobes(m) as k:
        k.register(Kprobe(addr=BASE + 4, pre_handler=deeper))
        k.register(Kprobe(addr=BASE + 0x1C, pre_handler=back))
        for _ in range(3):
            assert m.call("f", 5) == 15
            assert not seen


def test_returns_through_windows(way: str) -> None:
    m, returned = machine("sparc", DEEP), []
    with Kprobes(m) as k:
        k.register(Kretprobe(symbol_name="f",
                             handler=lambda ri, regs: returned.append((regs.return_value, regs.pc, ri.ret_addr)),
                             maxactive=20))
        for _ in range(3):
            assert m.call("f", 4) == 10
            inner = BASE + 0x18
            assert [(value, pc) for value, pc, _ in returned[:4]] == [(0, inner), (1, inner), (3, inner), (6, inner)]
            assert all(pc == address for _, pc, address in returned)
            assert len(returned) == 5
            returned.clear()


@each_return
def test_a_return_changes_nothing(arch: str, code: str, function: int, back: int, way: str) -> None:
    """Registers are what they are without the probe, o7 above all, and the return address is where the caller goes
    on."""
    m, seen = machine(arch, code, function), []

    def run(until: int) -> dict[str, int]:
        m.run("main", until=until)
        # there the function keeps what it finds in o7
        return {name: m.regs[name] for name in m.arch.regs.names if name != "g1"}

    def entered(ri: Any, regs: Regs) -> None:
        seen.append((ri.ret_addr, regs.return_address))

    def returned(ri: Any, regs: Regs) -> None:
        seen.append((regs.pc, ri.ret_addr))

    m.call("main")
    ends = [BASE + back, BASE + function - 8]  # where it comes back to, and at the jump to main's caller
    plain = [run(end) for end in ends]
    for handlers in ({}, {"handler": returned}, {"entry_handler": entered, "handler": returned}):
        with Kprobes(m) as k:
            k.register(r := Kretprobe(symbol_name="f", **handlers))
            for _ in range(3):
                seen.clear()
                assert [run(end) for end in ends] == plain
                assert seen == [(BASE + back, BASE + back)] * (len(handlers) * len(ends))
            assert r.optimized
            assert r.nmissed == 0


@each_return
def test_return_handlers_have_their_say(arch: str, code: str, function: int, back: int, way: str) -> None:
    """They call guest functions, stop the run, send the guest elsewhere."""
    m, log = machine(arch, code, function), []
    plain = m.call("main")

    def call(ri: Any, regs: Regs) -> None:
        log.append((m.call("main"), regs.pc))

    def stop(ri: Any, regs: Regs) -> None:
        m.stop()

    def call_and_stop(ri: Any, regs: Regs) -> None:
        m.call("main")
        m.stop()

    def skip(ri: Any, regs: Regs) -> None:
        regs.pc += 4

    with Kprobes(m) as k:
        with k.kretprobe("f", handler=call):
            for _ in range(3):
                assert m.call("main") == plain
            assert log == [(plain, BASE + back)] * 3
        for handler in (stop, call_and_stop):
            with k.kretprobe("f", handler=handler):
                for _ in range(3):
                    m.run("main")
                    assert m.regs.pc == BASE + back
                    assert m.regs["o7"] == (7 if code == BY_ANOTHER else BASE + 4)
        with k.kretprobe("f", handler=skip):
            for _ in range(3):
                m.run("main", until=BASE + back + 4)
                assert m.regs["o0"] == (3 if code == BY_ANOTHER else 32)


#: mov %o7,%g5; call 1f; and in its delay slot the load; nop; nop; 1: jmp %g5+8; nop
SLOT = "8a10000f 40000004 {} 01000000 01000000 81c16008 01000000"
UNALIGNED, UNMAPPED = "c600a001", "c6008000"  # ld [%g2+1],%g3; ld [%g2],%g3


@pytest.mark.parametrize("post", [None, lambda *_: None])
@pytest.mark.parametrize("load", [UNALIGNED, UNMAPPED])
@pytest.mark.parametrize("arch", ["sparc", "sparc64"])
def test_pc_after_a_fault_in_a_delay_slot(arch: str, load: str, post: Any) -> None:
    """With a probe on the branch: pc is in the delay slot, in the error and in the registers."""
    m = machine(arch, SLOT.format(load))
    m.regs["g2"] = 0x5000000 if load == UNMAPPED else m.regs.sp - 256 & -16
    with Kprobes(m) as k:
        k.register_kprobe(p := Kprobe(addr=BASE + 4, post_handler=post))
        k.flush_optimizer()
        with pytest.raises(GuestFault) as fault:
            m.call("main")
        assert (p.nhit, fault.value.access, fault.value.pc, m.regs.pc) == (1, "read", BASE + 8, BASE + 8)


@pytest.mark.parametrize("probe", [None, "boosted", "post"])
@pytest.mark.parametrize("arch", ["sparc", "sparc64"])
def test_an_unaligned_access_in_the_delay_slot_of_the_return(arch: str, probe: str | None) -> None:
    """mov %o7,%g5; jmpl %o7+8,%sp; ld [%g2+1],%g3: the interrupt's pc is the call's end, and it is a fault all the
    same."""
    m = machine(arch, "8a10000f 9dc3e008 c600a001 01000000")
    m.regs["g2"] = m.regs.sp - 256 & -16
    with Kprobes(m) as k:
        if probe is not None:
            k.register_kprobe(Kprobe(addr=BASE + 4, post_handler=None if probe == "boosted" else lambda *_: None))
        with pytest.raises(GuestFault, match=r"^unaligned access") as fault:
            m.call("main")
        assert (fault.value.access, fault.value.pc, m.regs.pc) == ("read", BASE + 8, BASE + 8)
        assert m.regs["o6"] == BASE + 4
