"""Under QEMU's user mode the traps in memory stop a process: the stub has no breakpoint where a probe is, which would
slow down all that is in its page."""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod
from pathlib import Path

import pytest
from arch_rows import STOPPING
from qemu import RUN_HERE, arch_of, start
from test_qemu_user import noting

from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, Kretprobe, QemuMachine, TextOverwritten
from kprobes.machine.remote.packets import Connection

Programs = Callable[[str], Path]
STEMS = sorted({arch_of(stem): stem for stem in RUN_HERE if arch_of(stem) in STOPPING}.values())
#: one whose instructions are a byte long -> getpid(), and three NOPs
CALLING = {"x86_64": "b827000000 0f05 909090", "i386": "b814000000 cd80 909090"}


@pytest.mark.parametrize("stem", STEMS)
def test_where_a_trap_stops(stem: str, programs: Programs) -> None:
    """Each of the architecture's, tried alone."""
    with start(stem, programs) as m:
        page, traps = m.map_code(), m.arch.traps
        for code in {*traps.end.values(), *traps.probe.values()}:
            m.patch(page, 4 * code)
            m._threads.start(page)
            m._threads.flush()
            m._target.resume()
            stop = m._control._note(m._target.wait(20, lambda data: None))
            assert (stop.kind, stop.code, m.regs.pc - page) == ("signal", *STOPPING[m.arch.name]), code


@pytest.mark.parametrize("stem", STEMS)
def test_no_breakpoint_of_the_stubs(stem: str, programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where a probe is, its slot ends or its function returns, whatever stops the guest meanwhile."""
    with start(stem, programs) as m, Kprobes(m) as k:
        plain, sent = m.call("fib", 9), list[bytes]()
        monkeypatch.setattr(Connection, "send", partialmethod(noting, sent, Connection.send))
        probe = Kprobe(symbol_name="fib", post_handler=lambda p, regs, flags: None)
        back = Kretprobe(symbol_name="fib", handler=lambda ri, regs: None)
        k.register(probe), k.register(back)
        for _ in range(3):
            with pytest.raises(GuestTimeout):
                m.call("fib", 40, timeout=0.03)
        assert m.call("fib", 9) == plain and probe.nhit > 30 and back.nreturned > 30
        there = {b"Z0,%x" % at for at in m._control.breakpoints}
        assert len(there) > 2 and not there & {packet.rpartition(b",")[0] for packet in sent}


@pytest.fixture(params=CALLING)
def byte_wise(request: pytest.FixtureRequest, programs: Programs) -> QemuMachine:
    return start(f"{request.param}-O2", programs)


def probed(m: QemuMachine, k: Kprobes, code: str, at: int) -> tuple[int, Kprobe]:
    """Code on a page of its own, with a probe."""
    page = m.map_code()
    m.patch(page, bytes.fromhex(code))
    k.register(probe := Kprobe(addr=page + at))
    return page, probe


def test_pc_comes_behind_a_trap_in_other_ways(byte_wise: QemuMachine) -> None:
    """By an interrupt, a breakpoint of the stub's, and a step: none of these is a hit."""
    with byte_wise as m, Kprobes(m) as k:
        page, probe = probed(m, k, "90 ebfe", 0)  # nop; 1: jmp 1b
        for first in (page, None):
            with pytest.raises(GuestTimeout):
                m.run(first, timeout=0.05)
            assert (m.regs.pc, probe.nhit) == (page + 1, 1)
        m.run(page, until=page + 1, timeout=20)
        assert (m.regs.pc, probe.nhit) == (page + 1, 2)
        page, probe = probed(m, k, "eb01 90 9090", 2)  # jmp 1f; nop; 1:
        for steps in (1, 2):
            with pytest.raises(GuestTimeout):
                m.run(page, max_insns=steps)
            assert (m.regs.pc, probe.nhit) == (page + 2 + steps, 0)


def test_what_fails_behind_a_probe(byte_wise: QemuMachine) -> None:
    """pc is there, too."""
    with byte_wise as m, Kprobes(m) as k:
        page, probe = probed(m, k, "90 0f0b", 0)  # nop; ud2
        with pytest.raises(GuestFault) as caught:
            m.call(page, timeout=20)
        assert (caught.value.access, caught.value.pc, probe.nhit) == ("undefined", page + 1, 1)


def test_what_the_guest_writes_over_a_probe(byte_wise: QemuMachine) -> None:
    """It is executed, and nothing else is reported there."""
    with byte_wise as m, Kprobes(m) as k:
        place = m.map_code() + 64
        written = "b805000000 b907000000 ba" + place.to_bytes(4, "little").hex() + "c60291 e9"  # mov byte [place], XCHG
        code = bytes.fromhex(written) + (64 - 23).to_bytes(4, "little")
        m.patch(place - 64, code.ljust(64, b"\x90") + bytes.fromhex("90c3"))
        k.register(probe := Kprobe(addr=place))
        assert m.call(place, timeout=20) is not None and probe.nhit == 1
        assert m.call(place - 64, timeout=20) == 7 and probe.nhit == 1
        with pytest.warns(TextOverwritten):
            k.unregister(probe)
        assert m.read(place, 2).hex() == "91c3"


def test_a_step_that_comes_to_a_trap(byte_wise: QemuMachine) -> None:
    """A system call's goes on to the next instruction."""
    with byte_wise as m, Kprobes(m) as k:
        seen: list[int] = []
        page, probe = probed(m, k, CALLING[m.arch.name], 7)
        probe.pre_handler = lambda p, regs: seen.append(regs.pc)
        with pytest.raises(GuestTimeout):
            m.run(page, max_insns=4)
        assert probe.nhit == 1 and seen == [page + 7] and m.regs.pc == page + 9
