"""Devices: accesses of every size reach Python functions, on every guest, as an instruction means them; probes change
nothing about that."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import unicorn
from arches import HERE, RUNNABLE
from unicorn import unicorn_const as const

from kprobes import (
    BadArgument,
    GuestFault,
    GuestStopped,
    Kprobe,
    KprobeError,
    Kprobes,
    MachineBusy,
    NoMemory,
    UnicornMachine,
)

pytestmark = pytest.mark.quick
CODE = dict(line.split() for line in (HERE / "data" / "device.txt").read_text().splitlines())
BASE, DEVICE = 0x10000, 0x900000


class Ram:
    """A device that is memory. log: its accesses."""

    def __init__(self, m: UnicornMachine, content: bytes) -> None:
        self.order, self.data, self.log = m.arch.order.value, bytearray(content), list[tuple[Any, ...]]()

    def read(self, offset: int, size: int) -> int:
        value = int.from_bytes(self.data[offset : offset + size], self.order)
        self.log.append(("read", offset, size, value))
        return value

    def write(self, offset: int, size: int, value: int) -> None:
        self.log.append(("write", offset, size, value))
        self.data[offset : offset + size] = value.to_bytes(size, self.order)


def machine(arch: str) -> tuple[UnicornMachine, Ram]:
    code = bytes.fromhex(CODE[arch])
    m = UnicornMachine.from_code(code, arch=arch, base=BASE, symbols={"copy": (BASE | (arch == "cortexm"), len(code))})
    ram = Ram(m, random.Random(arch).randbytes(16) + bytes(m.page_size - 16))
    m.mmio(DEVICE, m.page_size, ram.read, ram.write)
    return m, ram


def instructions(m: UnicornMachine, arch: str) -> list[int]:
    addr, out, mode = BASE, [], m.symbols["copy"].mode
    while addr < BASE + len(CODE[arch]) // 2:
        out.append(addr)
        addr = m.arch.decode(m.read(addr, m.arch.max_insn), addr | mode if False else addr).next
    return out


@pytest.mark.parametrize("arch", RUNNABLE)
def test_every_size(arch: str) -> None:
    """What a function does to memory it does to a device; sizes, order and offsets of the accesses are those of the
    instructions."""
    m, ram = machine(arch)
    memory = m.alloc(32)
    m.write(memory, ram.data[:16])
    expected = m.call("copy", memory)
    assert m.call("copy", DEVICE) == expected
    assert ram.data[:32] == m.read(memory, 32) and ram.data[16:17] == ram.data[:1] and ram.data[18:32] == ram.data[2:16]
    words = [(8, 8)] if ("read", 8, 8) in [entry[:3] for entry in ram.log] else [(8, 4), (12, 4)]
    halves = {(0, 1), (2, 2), (4, 4), *words}
    assert {entry[1:3] for entry in ram.log if entry[0] == "read"} == halves
    assert {entry[1:3] for entry in ram.log if entry[0] == "write"} == {(offset + 16, size) for offset, size in halves}
    ram.log.clear()
    assert (m.read(DEVICE + 2, 2) == ram.data[2:4] and ram.log
            == [("read", 2, 2, int.from_bytes(ram.data[2:4], ram.order))])
    ram.log.clear()
    m.write(DEVICE + 5, b"abcdefg")
    assert ram.data[5:12] == b"abcdefg" and [entry[1:3] for entry in ram.log] == [(5, 1), (6, 2), (8, 4)]


@pytest.mark.parametrize("optimize", (False, True))
@pytest.mark.parametrize("arch", RUNNABLE)
def test_probed(arch: str, optimize: bool) -> None:
    """Every instruction that can be probed is, with a post_handler or without: the same accesses, once each."""
    m, ram = machine(arch)
    before = bytes(ram.data)
    expected = m.call("copy", DEVICE)
    log, after = ram.log.copy(), bytes(ram.data)
    with Kprobes(m) as k:
        for post in None, lambda p, regs, flags: None:
            probes: list[Kprobe] = []
            for addr in instructions(m, arch):
                try:
                    probe = Kprobe(addr=addr, pre_handler=lambda p, regs: None, post_handler=post, optimize=optimize)
                    k.register(probe)
                    probes.append(probe)
                except KprobeError:
                    continue
            k.flush_optimizer()
            ram.data[:] = before
            ram.log.clear()
            assert m.call("copy", DEVICE) == expected and ram.log == log and bytes(ram.data) == after
            assert len(probes) >= 5 and all(p.nhit == 1 for p in probes)
            k.unregister_all(probes)


@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_device_that_is_gone_and_comes_again(arch: str) -> None:
    m, ram = machine(arch)
    memory = m.alloc(32)
    m.unmap(DEVICE, m.page_size)
    with pytest.raises(GuestFault):
        m.call("copy", DEVICE)
    if m.guest.blocks.fetch_fault_kills and m.parts.starts.dead:
        return
    m.mmio(DEVICE, m.page_size, ram.read, ram.write)
    m.call("copy", DEVICE)
    assert m.call("copy", memory) == 0


@pytest.mark.parametrize("arch", RUNNABLE)
def test_snapshots(arch: str) -> None:
    """A device that was there is there again, one that was not is gone."""
    m, ram = machine(arch)
    with_device = m.snapshot()
    m.unmap(DEVICE, m.page_size)
    without = m.snapshot()
    for _ in range(2):
        m.restore(with_device)
        ram.log.clear()
        m.call("copy", DEVICE)
        assert ram.log
        m.restore(without)
        with pytest.raises(GuestFault):
            m.read(DEVICE, 1)
        m.map(DEVICE, m.page_size)
        assert m.read(DEVICE, 4) == bytes(4)
    m.restore(with_device)


def test_by_another_segment() -> None:
    """MIPS: the same device through KSEG0 and KSEG1."""
    m, ram = machine("mips")
    expected = m.call("copy", DEVICE)
    for segment in 0x80000000, 0xA0000000:
        m.mmio(segment + 0xB00000, m.page_size, ram.read, ram.write)
        assert m.call("copy", segment + 0xB00000) == expected
        m.unmap(segment + 0xB00000, m.page_size)


def test_refusals() -> None:
    m, _ = machine("x86_64")
    page = m.page_size
    for act, error in ((lambda: m.mmio(DEVICE, page), NoMemory), (lambda: m.mmio(DEVICE + 1, page), NoMemory),
                       (lambda: m.mmio(BASE, page), NoMemory),
                       (lambda: m.mmio(0xA00000, page, read=5), BadArgument),
                       (lambda: m.protect(DEVICE, page, "r"), BadArgument)):
        with pytest.raises(error):
            act()  # type: ignore[no-untyped-call]
    m.mmio(0x9FF000, page)
    m.mmio(0xA00000, 2 * page)
    with pytest.raises(BadArgument, match="part of a device"):
        m.unmap(0xA00000, page)
    with pytest.raises(BadArgument, match="part of a device"):  # behind a whole one, which stays
        m.unmap(0x9FF000, 2 * page)
    with pytest.raises(BadArgument, match="permissions"):
        m.protect(0x9FF000, page, "r")
    assert m.call("copy", 0xA00000) == 0
    m.unmap(0x9FF000, 3 * page)
    busy: list[Callable[[], object]] = [lambda: m.call("copy", m.alloc(32)), m.snapshot, lambda: m.run("copy")]
    for act in busy:
        m.unmap(DEVICE, page)
        m.mmio(DEVICE, page, read=lambda offset, size, act=act: act() and 0)
        with pytest.raises(MachineBusy, match="device"):
            m.call("copy", DEVICE)
    m.unmap(DEVICE, page)
    m.mmio(DEVICE, page, read=lambda offset, size: "text")  # type: ignore[arg-type,return-value]
    with pytest.raises(BadArgument, match="returned 'text'"):
        m.call("copy", DEVICE)


def test_a_module_that_cannot_be_unloaded_now_stays() -> None:
    """unload_module() in a device's function is refused, and forgets nothing: the module is unloaded later."""
    code = bytes.fromhex(CODE["x86_64"])
    m = UnicornMachine.load_raw(code, arch="x86_64", base=BASE, name="firmware", symbols={"copy": BASE})
    m.mmio(DEVICE, m.page_size, read=lambda offset, size: m.unload_module("firmware") or 0)
    with pytest.raises(MachineBusy, match="device"):
        m.call("copy", DEVICE, m.alloc(32))
    assert "firmware" in m.modules
    m.unload_module("firmware")
    assert "firmware" not in m.modules


class Loud(Exception):
    """What a device raises."""


def ending_at(m: UnicornMachine, ram: Ram, count: int, how: Callable[[], object]) -> None:
    """Put `ram` into memory so that `how` is called at its access number `count`."""
    def read(offset: int, size: int) -> int:
        value = ram.read(offset, size)
        if len(ram.log) == count:
            how()
        return value

    def write(offset: int, size: int, value: int) -> None:
        ram.write(offset, size, value)
        if len(ram.log) == count:
            how()

    m.unmap(DEVICE, m.page_size)
    m.mmio(DEVICE, m.page_size, read, write)


def go_on(m: UnicornMachine) -> None:
    """Go on where a call of copy() was ended."""
    assert m.arch.linkage is not None
    if m.regs.pc != m.parts.state.exit:
        m.run(m.arch.pointers.same_mode(m.regs, m.regs.pc), until=m.parts.state.exit | m.arch.linkage.mode)


BOUNDS = pytest.mark.parametrize("bound", [{}, {"max_insns": 100}])


@BOUNDS
@pytest.mark.parametrize("arch", RUNNABLE)
def test_an_access_that_stops_the_run_happens_once(arch: str, bound: dict[str, int]) -> None:
    """Stopped at each of its accesses, a function that goes on then does what it does without."""
    m, ram = machine(arch)
    if bound and not m.guest.blocks.hooked_delay_slots:
        pytest.skip("the engine counts no instructions beyond a jump")
    before = bytes(ram.data)
    expected = m.call("copy", DEVICE)
    log, after = ram.log.copy(), bytes(ram.data)
    for count in range(1, len(log) + 1):
        ram.data[:] = before
        ram.log.clear()
        ending_at(m, ram, count, m.stop)
        with pytest.raises(GuestStopped):
            m.call("copy", DEVICE, **bound)  # type: ignore[arg-type]
        if bound and count < 5:  # stopped in front of the next instruction; pairs are one
            assert len(ram.log) in (count, count + 1)
        go_on(m)
        assert m.regs.return_value == expected
        assert ram.log == log and bytes(ram.data) == after


def shout() -> None:
    raise Loud("no such register")


@BOUNDS
@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("arch", RUNNABLE)
def test_an_access_that_raises_happens_once(arch: str, probed: bool, bound: dict[str, int]) -> None:
    """What a device's function raises comes out behind the instruction, a read of 0 made: a run that goes on then
    makes the accesses that it makes without, once each."""
    m, ram = machine(arch)
    if bound and not m.guest.blocks.hooked_delay_slots:
        pytest.skip("the engine counts no instructions beyond a jump")
    before = bytes(ram.data)
    expected = m.call("copy", DEVICE)
    log = ram.log.copy()
    kinds = [access[:3] for access in log]
    k = Kprobes(m)
    for addr in instructions(m, arch) if probed else ():
        try:
            k.register(Kprobe(addr=addr, pre_handler=lambda p, regs: None))
        except KprobeError:
            continue
    for count in range(1, len(log) + 1):
        ram.data[:] = before
        ram.log.clear()
        ending_at(m, ram, count, shout)
        with pytest.raises(Loud):
            m.call("copy", DEVICE, **bound)  # type: ignore[arg-type]
        if bound and count < 5:
            assert len(ram.log) in (count, count + 1)
        go_on(m)
        # what was read there is 0; else the function does what it does
        assert [access[:3] for access in ram.log] == kinds
        if log[count - 1][0] == "write":
            assert ram.log == log and m.regs.return_value == expected
    ram.data[:] = before
    assert m.call("copy", m.alloc(32)) == 0
    k.close()


def test_what_a_device_raises_counts_more_than_the_fault_that_comes_of_it() -> None:
    m = UnicornMachine.from_code("mov rax, [rdi]; mov rax, [rax]; ret", arch="x86_64", base=BASE, symbols={"follow": BASE})
    m.mmio(DEVICE, m.page_size, lambda offset, size: shout())  # type: ignore[arg-type, return-value]
    with pytest.raises(Loud) as caught:
        m.call("follow", DEVICE)
    assert isinstance(caught.value.__context__, GuestFault)
    assert m.regs.pc == BASE + 3
    word = m.alloc(8)
    m.write(word, word.to_bytes(8, "little"))
    assert m.call("follow", word) == word  # it is not raised again


def test_a_load_of_its_own_address_may_stop_the_run() -> None:
    m = UnicornMachine.from_code(bytes.fromhex("000040b9" "c0035fd6"), arch="arm64", base=BASE, symbols={"load": BASE})
    m.mmio(DEVICE, m.page_size, lambda offset, size: m.stop() or 7)
    with pytest.raises(GuestStopped):
        m.call("load", DEVICE)  # ldr w0, [x0]
    if m.regs.pc != m.parts.state.exit:
        m.run(until=m.parts.state.exit)
    assert m.regs["x0"] == 7


def test_a_load_of_its_own_address_may_raise() -> None:
    m = UnicornMachine.from_code(bytes.fromhex("000040b9" "c0035fd6"), arch="arm64", base=BASE, symbols={"load": BASE})
    reads: list[int] = []
    m.mmio(DEVICE, m.page_size, lambda offset, size: reads.append(offset) or shout() or 7)
    with pytest.raises(Loud):
        m.call("load", DEVICE)
    go_on(m)
    assert m.regs["x0"] == 0 and reads == [0]


def test_a_watchpoint_s_handler_stops_behind_an_instruction_that_adds() -> None:
    m = UnicornMachine.from_code("add dword ptr [rdi], 1; ret", arch="x86_64", base=BASE, symbols={"add": BASE})
    word = m.alloc(4)
    with Kprobes(m) as k, k.watchpoint(word, 4, "w", lambda wp, regs: m.stop()):
        with pytest.raises(GuestStopped):
            m.call("add", word)
        if m.regs.pc != m.parts.state.exit:
            m.run(until=m.parts.state.exit)
        assert m.read(word, 4) == b"\1\0\0\0"


def test_a_watchpoint_s_handler_raises_behind_an_instruction_that_adds() -> None:
    m = UnicornMachine.from_code("add dword ptr [rdi], 1; ret", arch="x86_64", base=BASE, symbols={"add": BASE})
    word = m.alloc(4)
    with Kprobes(m) as k, k.watchpoint(word, 4, "w", lambda wp, regs: shout()):
        with pytest.raises(Loud):
            m.call("add", word)
        go_on(m)
        assert m.read(word, 4) == b"\1\0\0\0"


def test_registers_can_be_read_where_a_device_stops_the_run() -> None:
    m, _ = machine("x86_64")
    seen: list[int] = []
    m.unmap(DEVICE, m.page_size)
    m.mmio(DEVICE, m.page_size, read=lambda offset, size: seen.append(m.regs["rdi"]) or m.stop() or 7)
    m.regs["rdi"] = DEVICE
    m.run("copy")
    assert set(seen) == {DEVICE}


def test_attached() -> None:
    """Under an owner's run, with a Kprobes and without; his own devices are left alone by snapshots."""
    uc = unicorn.Uc(const.UC_ARCH_X86, const.UC_MODE_64)
    uc.mem_map(BASE, 0x1000)
    uc.mem_write(BASE, bytes.fromhex(CODE["x86_64"]))
    touched: list[int] = []
    uc.mmio_map(0xA00000, 0x1000, lambda uc, offset, size, data: touched.append(offset) or 0, None, lambda *_: None,
                None)
    m = UnicornMachine.attach(uc, symbols={"copy": (BASE, len(CODE["x86_64"]) // 2)})
    ram = Ram(m, bytes(range(16)) + bytes(4080))
    m.mmio(DEVICE, 0x1000, ram.read, ram.write)
    end = BASE + len(CODE["x86_64"]) // 2 - 1
    for probed in False, True, False:
        if probed:
            k = Kprobes(m)
            k.register(Kprobe(addr=BASE))
        ram.log.clear()
        s = m.snapshot()
        m.regs["rdi"] = DEVICE
        uc.emu_start(BASE, end)
        assert m.regs["rax"] == 0x0302 and len(ram.log) >= 9
        m.restore(s)
        m.unmap(DEVICE, 0x1000)
        m.mmio(DEVICE, 0x1000, lambda offset, size: 1 // 0, ram.write)
        m.regs["rdi"] = DEVICE
        with pytest.raises(ZeroDivisionError):
            uc.emu_start(BASE, end)
        m.restore(s)
        if probed:
            k.close()
    assert not touched


def test_what_is_in_a_device_s_place_is_named() -> None:
    m = UnicornMachine.from_code(bytes.fromhex("c0035fd6"), arch="arm64", base=0x10000)
    with m, pytest.raises(NoMemory, match=r"memory or another device is at 0x10000 to 0x10fff"):
        m.mmio(0xF000, 0x3000)
