"""Registers of CPUs that are not the current one: what is set is carried out, or refused with a reason."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from test_qemu_system import BOARDS, FIRMWARE, needs

from kprobes import GuestTimeout, Kprobe, Kprobes, MachineBusy, QemuMachine, RemoteError

#: a branch to itself, and an instruction without effect
SPIN = {"arm": "feffffea", "arm64": "00000014", "riscv32": "6f000000", "riscv64": "6f000000"}
NOP = {"arm": "00f020e3", "arm64": "1f2003d5", "riscv32": "13000000", "riscv64": "13000000"}
FREE = 0x90000  #: bytes from the firmware's start to memory that nobody uses


def board(name: str) -> QemuMachine:
    """Two processors, which have not begun; both would spin."""
    needs(name)
    start, arguments = BOARDS[name]
    image = FIRMWARE / f"{name}.elf"
    m = QemuMachine.system(["-M", "virt", "-smp", "2", "-m", "32", "-nic", "none", "-display", "none", "-serial",
                            "none", "-monitor", "none", *arguments, "-kernel", str(image)], arch=name, symbols=image,
                           scratch=(start + 0xA0000, 0x10000))
    for n in range(4):
        m.write(start + FREE + 0x100 * n, bytes.fromhex(NOP[name]) * 4 + bytes.fromhex(SPIN[name]))
    return m


def turn(m: Any, **bounds: Any) -> None:
    with suppress(GuestTimeout):
        m.run(**(bounds or {"timeout": 0.2}))


def code(name: str, n: int) -> int:
    """Where code n begins."""
    return BOARDS[name][0] + FREE + 0x100 * n


def rests(name: str, n: int, cpu: int) -> int:
    """Where it comes to rest: at its end. Arm's second processor is off, and stays where it is put."""
    return code(name, n) + 16 * (cpu == 0 or name.startswith("riscv"))


@pytest.mark.parametrize("by_name", [True, False], ids=["name", "property"])
@pytest.mark.parametrize("name", BOARDS)
def test_pc_of_any_cpu_is_carried_out(name: str, by_name: bool) -> None:
    """At rest, of one and of both, and in a handler of the other one's hit."""
    def put(cpu: int, n: int) -> None:
        if by_name:
            m.cpu_regs[cpu][m.arch.regs.pc] = code(name, n)
        else:
            m.cpu_regs[cpu].pc = code(name, n)

    with board(name) as m:
        put(0, 0)
        put(1, 1)
        assert [regs.pc for regs in m.cpu_regs] == [code(name, n) for n in range(2)]
        turn(m)
        assert [regs.live_pc() for regs in m.cpu_regs] == [rests(name, n, n) for n in range(2)]
        put(1, 2)  # without the current one
        assert m.regs.cpu == 0
        turn(m)
        assert [regs.live_pc() for regs in m.cpu_regs] == [rests(name, 0, 0), rests(name, 2, 1)]
        m.symbols.add("three", code(name, 3), 20)
        with Kprobes(m) as k:
            k.register(p := Kprobe(symbol_name="three", offset=4, pre_handler=lambda p, regs: put(1 - regs.cpu, 1)))
            put(0, 3)
            turn(m)
            assert p.nhit == 1 and [regs.live_pc() for regs in m.cpu_regs] == [rests(name, 3, 0), rests(name, 1, 1)]


@pytest.mark.parametrize("name", BOARDS)
def test_pc_of_one_in_a_hit_is_refused(name: str) -> None:
    """It stays in the instruction that is under way, and everything can go on."""
    with board(name) as m, Kprobes(m) as k:
        for cpu in range(2):
            m.cpu_regs[cpu][m.arch.regs.pc] = code(name, cpu)
        turn(m)
        m.symbols.add("two", code(name, 2), 20)
        k.register(Kprobe(symbol_name="two", offset=4, post_handler=lambda p, regs, flags: None))
        slot = k._points[code(name, 2) + 4].slot
        m.cpu_regs[1][m.arch.regs.pc] = slot
        turn(m, max_insns=1)  # of CPU 0
        assert m.regs.cpu == 0 and m.cpu_regs[1].pc == slot
        m.cpu_regs[1][m.arch.regs.pc] = code(name, 3)
        with pytest.raises(MachineBusy, match="CPU 1 is in a hit"):
            m.run(timeout=0.2)
        assert m.cpu_regs[1].pc == slot
        turn(m, max_insns=1)
        assert m.cpu_regs[0].pc == rests(name, 0, 0)


def test_a_cpu_without_a_thread_has_no_registers(m: Any) -> None:
    """What is set would be lost: it is refused, and nothing has changed."""
    before, free, pc = m.regs.pc, m.cpu_regs[1], m.arch.regs.pc
    for name in (m.arch.abi.args or m.arch.regs.names)[0], m.arch.regs.sp:
        with pytest.raises(RemoteError, match="no thread of the guest"):
            free[name] = 5
        assert free[name] == 0
    for put in (lambda: setattr(free, "pc", 0x1000), lambda: free.__setitem__(pc, 0x1000)):
        put()
        with pytest.raises(RemoteError, match="no thread of the guest"):
            m.run(timeout=5, until="test_crc")
        assert free[pc] == 0 and m.regs.pc == before
    assert m.call("test_crc", 1, timeout=20) == m.call("test_crc", 1, timeout=20)
