"""Boards behind OpenOCD, where that is on PATH: RISC-V by JTAG, 32 and 64 bits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from openocd import BOARDS, NAMES, board

from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, Kretprobe, RemoteMachine


@pytest.fixture(params=[f"{kind}-{name}" for kind in BOARDS for name in NAMES])
def m(request: pytest.FixtureRequest) -> Iterator[RemoteMachine]:
    """Where the firmware calls body()."""
    kind, _, name = str(request.param).partition("-")
    with board(kind, name) as machine:
        machine.run("_start", until="body", timeout=200)
        yield machine


def test_firmware(m: RemoteMachine) -> None:
    """Probes and return probes while it runs, calls into it, and an endless loop that is stopped."""
    with Kprobes(m) as k:
        arguments: list[int] = []
        results: list[int] = []
        after: list[int] = []
        probe = Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: arguments.append(regs.arg(0)))
        stepped = Kprobe(symbol_name="work", post_handler=lambda p, regs, flags: after.append(regs.pc))
        k.register_kprobes([probe, stepped])
        k.register_kretprobes([Kretprobe(symbol_name=symbol,
                                         handler=lambda ri, regs: results.append(regs.return_value))
                               for symbol in ("leaf", "work")])
        m.run(until="finished", timeout=300)
        assert (arguments, results) == (list(range(10)), [*range(1, 20, 2), 100])
        assert stepped.nhit == len(after) == 1 and probe.nmissed == 0
        assert m.call("work", 5, timeout=200) == 25 and probe.nhit == 15
        with pytest.raises(GuestTimeout):
            m.run(timeout=0.5)
        assert m.symbols.describe(m.regs.pc).startswith("finished")
        assert m.call("work", 5, timeout=200) == 25 and probe.nhit == 20
    assert m.call("work", 5, timeout=200) == 25 and probe.nhit == 20 and m.exit_status is None


def test_breakpoints_are_not_seen(m: RemoteMachine) -> None:
    """OpenOCD writes its traps into memory and shows them: not here, and what is written there is what is executed."""
    start = m.symbols["leaf"].address
    text, seen = m.read(start, 16), list[bytes]()
    stops = m._target.stops
    stops.add(start)
    assert m.read(start, 16) == text and m._target.link.ask(b"m%x,10" % start) != text.hex().encode()
    m.write(start, text)
    assert m.read(start, 16) == text and m._target.link.ask(b"m%x,10" % start) != text.hex().encode()
    stops.remove(start)
    assert m._target.link.ask(b"m%x,10" % start) == text.hex().encode()
    with Kprobes(m) as k:
        probe = Kprobe(symbol_name="leaf", pre_handler=lambda p, regs: seen.append(m.read(end, 16)))
        k.register(probe)
        end = m.symbols["finished"].address
        plain = m.read(end, 16)
        m.run(until="finished", timeout=300)
        assert seen == [plain] * 10


def test_every_instruction_of_a_function(m: RemoteMachine) -> None:
    """A probe on each one, as Python steps and as the slot jumps back: the same results, registers and memory."""
    start, size = m.symbols["work"].address, m.symbols["work"].size
    text = m.read(start, size)
    plain = m.call("work", 2, timeout=200)
    places, at = [], start
    while at < start + size:
        places.append(at)
        at += m.arch.decode(m.read(at, 8), at).size
    with Kprobes(m) as k:
        for optimize in (False, True):
            probes = [Kprobe(addr=place, optimize=optimize) for place in places]
            k.register_kprobes(probes)
            assert m.call("work", 2, timeout=300) == plain == 4
            assert probes[0].nhit == 1 and max(probe.nhit for probe in probes) == 2
            k.unregister_kprobes(probes)
            assert m.read(start, size) == text
    assert m.call("work", 2, timeout=200) == plain


def test_bounds(m: RemoteMachine) -> None:
    """Single steps: as many instructions as are asked for, probed or not."""
    start = m.regs.pc
    with Kprobes(m) as k:
        def after(count: int) -> int:
            m.regs.pc = start
            with pytest.raises(GuestTimeout):
                m.run(max_insns=count)
            return m.regs.pc

        plain = [after(count) for count in range(1, 6)]
        probes = [Kprobe(addr=place) for place in {start, plain[0], plain[2]}]
        k.register_kprobes(probes)
        assert [after(count) for count in range(1, 6)] == plain


def test_what_is_not_there(m: RemoteMachine) -> None:
    """Memory that the board lacks, and a call to nowhere: that is the guest's own affair, and the next call works."""
    for act in (lambda: m.read(0x40000000, 4), lambda: m.write(0x40000000, b"1234")):
        with pytest.raises(GuestFault):
            act()
    with Kprobes(m) as k:
        probe = Kprobe(symbol_name="leaf")
        k.register(probe)
        with pytest.raises(GuestTimeout):
            m.call(0x40000000, timeout=1)
        assert m.call("leaf", 20, timeout=200) == 41 and probe.nhit == 1
