"""TriCore's SYSCALL, which the engine passes over: found by its bytes, wherever they come from."""

from __future__ import annotations

from typing import Any

import pytest

from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, UnicornMachine
from kprobes.machine.unicorn.host import marks

pytestmark = pytest.mark.quick
BASE = 0x10000
NOP, RET, CALL5 = bytes.fromhex("0000"), bytes.fromhex("0090"), bytes.fromhex("ad508000")
INCREMENT = bytes.fromhex("c212")  # add d2, 1


@pytest.fixture(params=["host", "python"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks arrivals up."""
    if request.param == "python":
        monkeypatch.setattr("kprobes.machine.unicorn.stops.host_function", lambda: None)
    assert marks.host_function


def machine(code: bytes) -> tuple[UnicornMachine, list[tuple[int, int]]]:
    """With a handler that notes (number, pc - base) and serves."""
    m = UnicornMachine.from_code(code, arch="tricore", base=BASE)
    seen: list[tuple[int, int]] = []

    def serve(regs: Any, number: int) -> bool:
        seen.append((number, regs.pc - BASE))
        return True

    m.interrupt_handler = serve
    return m, seen


@pytest.mark.parametrize("constant", [0, 5, 0xFF, 0x100, 0x1FF])
def test_its_number_is_that_of_the_trap(constant: int) -> None:
    """Class 6; TIN is the low byte."""
    m, seen = machine((0xAD | constant << 12 | 4 << 21).to_bytes(4, "little") + RET)
    m.call(BASE)
    assert seen == [(0x600 | constant & 0xFF, 4)]


def test_code_that_comes_later() -> None:
    """Written whole and in pieces, overwritten, put back, mapped anew, made executable."""
    m, seen = machine(NOP * 8 + RET + bytes(64))
    m.call(BASE)
    assert not seen
    m.write(BASE + 4, CALL5[:2])
    m.write(BASE + 6, CALL5[2:])
    m.call(BASE)
    assert [seen.pop()] == [(0x605, 8)]
    saved = m.snapshot()
    m.write(BASE + 6, b"\0")
    m.write(BASE + 4, NOP * 2)
    m.call(BASE)
    assert not seen
    m.restore(saved)
    m.call(BASE)
    assert [seen.pop()] == [(0x605, 8)]
    m.map(0x80000, 0x4000, "rw")
    m.write(0x80000, CALL5 + RET)
    m.protect(0x80000, 0x4000, "rx")
    m.call(0x80000)
    assert [seen.pop()] == [(0x605, 0x80004 - BASE)]
    m.unmap(0x80000, 0x4000)
    m.map(0x80000, 0x4000, "rwx")
    m.write(0x80002, RET)
    m.call(0x80000)
    assert not seen


def test_what_only_looks_like_one() -> None:
    """Bytes amid an instruction and behind the code."""
    m, seen = machine(bytes.fromhex("3b00ad20 8210") + RET + CALL5 * 100)  # mov d2, 0xAD0; mov d0, 1
    assert m.call(BASE) == 0xAD0
    assert not seen


def test_what_the_guest_has_written_over() -> None:
    """st.w [a4], d4 puts other code where it was: nothing is said."""
    m, seen = machine(bytes.fromhex("6044") + bytes.fromhex("7445") + CALL5 + RET)
    m.protect(BASE, 0x4000, "rwx")
    m.call(BASE, BASE + 4, int.from_bytes(NOP * 2, "little"))
    assert not seen


@pytest.mark.parametrize("count", [1, 20, 300])
def test_many(count: int) -> None:
    m, seen = machine(CALL5 * count + RET)
    m.call(BASE)
    m.call(BASE)
    assert seen == [(0x605, 4 * n + 4) for n in range(count)] * 2


@pytest.mark.parametrize("bound", range(5))
def test_a_bounded_run_hears_of_it_once(bound: int) -> None:
    m, seen = machine(INCREMENT * 2 + CALL5 + INCREMENT + RET)
    m.regs["d2"] = 0
    with pytest.raises(GuestTimeout):
        m.run(BASE, until=BASE + 0x100, max_insns=bound)
    assert len(seen) == (bound > 2)
    m.run(m.regs.pc, until=BASE + 10)
    assert (len(seen), m.regs["d2"]) == (1, 3)


def test_probes_around_it_and_calls_within() -> None:
    m, _ = machine(INCREMENT + CALL5 + INCREMENT + RET + INCREMENT + RET)
    results: list[int] = []

    def serve(regs: Any, number: int) -> bool:
        results.append(m.call(BASE + 10))
        return True

    m.interrupt_handler = serve
    m.regs["d2"] = 0
    with Kprobes(m) as k:
        probes = [Kprobe(addr=BASE + at) for at in (0, 6, 10)]
        k.register_kprobes(probes)
        for n in (1, 2):
            m.call(BASE)
            assert [p.nhit for p in probes] == [n] * 3
    assert len(results) == 2


def test_nobody_serves_it() -> None:
    m, _ = machine(NOP + CALL5 + RET)
    m.interrupt_handler = None
    with pytest.raises(GuestFault) as caught:
        m.call(BASE)
    assert (caught.value.access, caught.value.pc, caught.value.number) == ("interrupt", BASE + 2, 0x605)
