"""Where an interrupt was raised, on guests whose pc is another one afterwards."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Mapping

import pytest
import unicorn

from kprobes import GuestFault, Kprobe, Kprobes, Regs, UnicornMachine
from kprobes.arch import get
from kprobes.machine.unicorn import raised
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.machine.unicorn.host import hostcode, noting
from kprobes.machine.unicorn.selftest import raised_verdict

pytestmark = pytest.mark.quick

#: a branch to 0x10010, and a load through the first argument in its delay slot; there: a return
JUMPS = {**dict.fromkeys(("sparc", "sparc64"), "10800004 d0020000 01000000 01000000 81c3e008 01000000"),
         **dict.fromkeys(("mips", "mips64"), "10000003 8c820000 00000000 00000000 03e00008 00000000")}
#: the same with what an interrupt handler can mend: TEQ a0, zero on MIPS, and what is loaded in the return's
MENDED = {**JUMPS, **dict.fromkeys(("mips", "mips64"), "10000003 00800034 00000000 00000000 03e00008 8c820000")}
LOST = [name for name, guest in GUESTS.items() if guest.interrupts.lost_pc]
each = pytest.mark.parametrize("arch", JUMPS)
ways = pytest.mark.parametrize("host", [True, False], ids=["host", "python"])


def machine(arch: str, codes: Mapping[str, str] = JUMPS) -> UnicornMachine:
    return UnicornMachine.from_code(bytes.fromhex(codes[arch]), arch=arch, symbols={"f": (0x10000, 24)})


def place(m: UnicornMachine) -> int:
    """Whom the engine asks."""
    return ctypes.c_uint64.from_address((m.parts.memory.engine.handle.value or 0) + raised.ASKS).value


def without_host_code(monkeypatch: pytest.MonkeyPatch, host: bool) -> None:
    if not host:
        monkeypatch.setattr(hostcode, "available", lambda: False)


def test_who_needs_it() -> None:
    assert set(JUMPS) <= set(LOST)
    assert {name.rstrip("el").rstrip("r6") for name in LOST} == {"sparc", "sparc64", "mips", "mips32", "mips64"}


@each
@ways
def test_the_fault_is_in_the_slot(arch: str, host: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    without_host_code(monkeypatch, host)
    m = machine(arch)
    for _ in range(2):
        with pytest.raises(GuestFault, match=r"^unaligned access") as fault:
            m.call("f", m.regs.sp - 255)
        assert (fault.value.pc, m.regs.pc, fault.value.access) == (0x10004, 0x10004, "read")


@each
@ways
def test_an_interrupt_handler_that_mends_it_has_the_branch_taken(arch: str, host: bool,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees the instruction, which is executed once more in its delay slot."""
    without_host_code(monkeypatch, host)
    m, seen = machine(arch, MENDED), []
    there = m.alloc(16)
    m.write(there, bytes(3) + b"\x07" + bytes(12))

    def mend(regs: Regs, number: int) -> bool:
        seen.append(regs.pc)
        regs.set_arg(0, there)
        return True

    m.interrupt_handler = mend
    assert [m.call("f", there + 1 if arch.startswith("sparc") else 0) for _ in range(2)] == [7, 7]
    assert seen == [0x10004, 0x10004]


@pytest.mark.parametrize(("arch", "code"), [("mips", "00800034 03e00008 00000000"), ("mips64", "00800034 03e00008 00000000"),
                                            ("sparc", "90720008 81c3e008 01000000")])
def test_a_fault_while_the_engine_still_shows_the_end(arch: str, code: str) -> None:
    """The guest has run into the end of runs, as into a trap, and on."""
    m = machine(arch, {arch: code})
    m.regs.set_arg(0, 1)
    with pytest.raises(GuestFault) as caught:
        m.run("f", until=0x10FF0)
    assert caught.value.pc == m.parts.state.exit
    m.run("f")
    m.regs.set_arg(0, 0)
    with pytest.raises(GuestFault) as caught:
        m.run("f")
    assert (caught.value.access, caught.value.pc) == ("arithmetic", 0x10000)


@each
def test_an_engine_of_somebody_elses_is_left_as_it_was(arch: str) -> None:
    uc = GUESTS[arch].cpu.fresh().uc
    uc.mem_map(0x10000, 0x2000, unicorn.UC_PROT_ALL)
    uc.mem_write(0x10000, bytes.fromhex(JUMPS[arch]))
    m = UnicornMachine.attach(uc, arch=arch)
    before = place(m)
    with Kprobes(m) as k:
        assert place(m) != before
        k.register(Kprobe(addr=0x10000))
    assert place(m) == before


@each
def test_a_machines_function_is_used_again(arch: str) -> None:
    if not hostcode.available():
        pytest.skip("there is none without host code")
    machine(arch).close()
    gc.collect()
    free = len(noting._free())
    closed, forgotten = machine(arch), machine(arch)
    assert len(noting._free()) == (free - 2) % noting.AT_ONCE
    closed.close()
    closed.close()
    del forgotten
    gc.collect()
    assert len(noting._free()) % noting.AT_ONCE == free % noting.AT_ONCE


def test_an_engine_that_asks_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert raised_verdict(GUESTS["sparc"], get("sparc")) == ""
    monkeypatch.setattr(raised, "ASKS", 0x70)
    assert "does not ask" in raised_verdict(GUESTS["sparc"], get("sparc"))
