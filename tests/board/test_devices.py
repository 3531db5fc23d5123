"""Models of devices: registers as their manuals have them, and the interrupts that they raise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kprobes import BadArgument, GuestHalted, GuestTimeout, UnicornMachine
from kprobes import arch as architectures
from kprobes.board import (
    Board,
    Clint,
    Device,
    Part,
    Pl011,
    RegisterBank,
    Sp804,
    Stm32F4Usart,
    Stm32L4Usart,
    Uart16550,
)
from kprobes.board.devices import make_device

pytestmark = pytest.mark.quick


class CpuRegisters(dict[str, int]):
    arch = architectures.get("x86_64")


class Wires:
    """A machine whose interrupts are noted. levels: line -> whether a device asks for it."""

    def __init__(self) -> None:
        self.levels: dict[int | str, bool] = {}
        self.interrupts = self
        self.now = 0
        self.timers: list[tuple[int, Callable[[], object]]] = []
        self.controller = None
        self.regs = CpuRegisters({"xpsr": 0})

    def set_level(self, line: int | str, on: bool) -> None:
        self.levels[line] = on

    def pend(self, line: int | str) -> None:
        self.levels[line] = True

    def look(self) -> None:
        """Nothing to look at."""

    def stop(self) -> None:
        """Nothing runs."""

    def after(self, instructions: int, function: Callable[[], object]) -> Callable[[], None]:
        timer = self.now + instructions, function
        self.timers.append(timer)
        return lambda: self.timers.remove(timer) if timer in self.timers else None

    def pass_time(self, instructions: int) -> None:
        end = self.now + instructions
        while self.timers and min(self.timers, key=lambda t: t[0])[0] <= end:
            timer = min(self.timers, key=lambda t: t[0])
            self.timers.remove(timer)
            self.now = timer[0]
            timer[1]()
        self.now = end


def connected(device: Device) -> Wires:
    wires = Wires()
    device.connect(wires)
    return wires


def test_a_pl011_receives_and_sends() -> None:
    uart = Pl011(0, line=5, received=b"ab")
    wires = connected(uart)
    assert uart.read(0x18, 4) == 0x80  # something to receive
    assert [uart.read(0xFE0 + 4 * n, 4) for n in range(8)] == [0x11, 0x10, 0x14, 0, 0x0D, 0xF0, 0x05, 0xB1]
    assert not wires.levels[5]
    uart.write(0x38, 4, 0x10)
    assert wires.levels[5] and uart.read(0x40, 4) == 0x10
    assert (uart.read(0, 4), uart.read(0, 4)) == (0x61, 0x62)
    assert not wires.levels[5] and uart.read(0x18, 4) == 0x90
    for byte in b"hi":
        uart.write(0, 4, byte)
    assert uart.sent == b"hi"
    uart.write(0x38, 4, 0x20)
    assert wires.levels[5]  # sent
    uart.write(0x44, 4, 0x20)
    assert not wires.levels[5]
    uart.write(0x24, 4, 13)
    assert uart.read(0x24, 4) == 13


@pytest.mark.parametrize("stride", [1, 4])
def test_a_16550_receives_and_sends(stride: int) -> None:
    uart = Uart16550(0, line=4, stride=stride, received=b"z")
    wires = connected(uart)
    uart.write(3 * stride, 1, 0x83)
    uart.write(0, 1, 12)
    assert (uart.read(0, 1), uart.read(stride, 1), uart.sent) == (12, 0, b"")
    uart.write(3 * stride, 1, 3)
    assert uart.read(5 * stride, 1) == 0x61
    uart.write(stride, 1, 1)
    assert wires.levels[4] and uart.read(2 * stride, 1) == 4
    assert uart.read(0, 1) == ord("z")
    assert not wires.levels[4] and uart.read(2 * stride, 1) == 1
    uart.write(0, 1, ord("y"))
    uart.write(stride, 1, 2)
    assert wires.levels[4] and uart.read(2 * stride, 1) == 2
    assert not wires.levels[4]  # that was its end
    uart.write(7 * stride, 1, 0x5A)
    assert (uart.sent, uart.read(7 * stride, 1)) == (b"y", 0x5A)


def test_an_stm32f4_receives_and_sends() -> None:
    uart = Stm32F4Usart(0, line=37, received=b"abc")
    wires = connected(uart)
    uart.write(0x08, 4, 0x683)
    assert (uart.read(0x08, 4), uart.read(0, 4)) == (0x683, 0xE0)  # empty, sent, received
    uart.write(0x0C, 4, 0x2C)
    assert not wires.levels[37]  # it is not enabled
    uart.write(0x0C, 4, 0x202C)
    assert wires.levels[37] and uart.read(4, 4) == ord("a")
    uart.write(0, 4, ~0x20)
    assert uart.read(4, 4) == ord("c")  # clearing what says that a byte came drops it
    assert not wires.levels[37] and uart.read(0, 4) == 0xC0
    uart.write(0, 4, ~0x40)
    assert uart.read(0, 4) == 0x80
    uart.write(0x0C, 4, 0x2040)
    assert not wires.levels[37]
    uart.write(4, 4, ord("y"))
    assert wires.levels[37] and (uart.sent, uart.read(0, 4)) == (b"y", 0xC0)
    uart.write(0x0C, 4, 0x2000)
    assert not wires.levels[37]


def test_an_stm32l4_receives_and_sends() -> None:
    uart = Stm32L4Usart(0, line=37, received=b"ab")
    wires = connected(uart)
    assert uart.read(0x1C, 4) == 0xE0
    uart.write(4, 4, 0x1000)
    assert uart.read(4, 4) == 0x1000  # of another generation's, the data register's place
    uart.write(0, 4, 0x9)
    assert uart.read(0x1C, 4) == 0x2000E0  # it sends, and does not receive
    uart.write(0, 4, 0x2D)
    assert uart.read(0x1C, 4) == 0x6000E0 and wires.levels[37]
    uart.write(0x18, 4, 8)
    assert uart.read(0x24, 4) == ord("b")
    assert not wires.levels[37]
    uart.write(0x20, 4, 0x40)
    assert uart.read(0x1C, 4) == 0x600080
    uart.write(0x28, 4, ord("y"))
    assert (uart.sent, uart.read(0x1C, 4), uart.read(0x28, 4)) == (b"y", 0x6000C0, 0)
    uart.write(0, 4, 0x4D)
    assert wires.levels[37]


def test_an_sp804_is_loaded_before_it_is_told_its_width() -> None:
    """The order of drivers: off, all 32 bits, then what it is to do."""
    timer = Sp804(0, line=4, divider=2)
    wires = connected(timer)
    timer.write(0x28, 4, 0)
    timer.write(0x20, 4, 0x12345678)
    assert timer.read(0x24, 4) == 0x5678  # of 16 bits until it is told
    timer.write(0x28, 4, 0xC2)
    wires.pass_time(16)
    assert (timer.read(0x24, 4), timer.divider) == (0x12345670, 2)


def test_an_sp804_that_has_fired_once_stays_at_0() -> None:
    timer = Sp804(0, line=4)
    wires = connected(timer)
    timer.write(0, 4, 5)
    timer.write(8, 4, 0xA3)
    wires.pass_time(5)
    timer.write(0xC, 4, 0)
    timer.write(8, 4, 0xA3)
    wires.pass_time(50)
    assert (timer.read(4, 4), timer.read(0x10, 4), wires.levels[4]) == (0, 0, False)
    timer.write(0, 4, 5)
    wires.pass_time(5)
    assert wires.levels[4]


def test_an_sp804_counts_down() -> None:
    timer = Sp804(0, line=4)
    wires = connected(timer)
    assert [timer.read(0xFE0 + 4 * n, 4) for n in range(8)] == [0x04, 0x18, 0x14, 0, 0x0D, 0xF0, 0x05, 0xB1]
    timer.write(0, 4, 10)
    wires.pass_time(5)
    assert timer.read(4, 4) == 10  # it does not count yet
    timer.write(8, 4, 0xE2)  # periodic, of 32 bits, with its interrupt
    wires.pass_time(9)
    assert (timer.read(4, 4), wires.levels[4]) == (1, False)
    wires.pass_time(1)
    assert (timer.read(4, 4), wires.levels[4], timer.read(0x14, 4)) == (10, True, 1)
    timer.write(0xC, 4, 0)
    assert not wires.levels[4]
    wires.pass_time(10)
    assert wires.levels[4]
    timer.write(8, 4, 0xC2)
    assert not wires.levels[4] and (timer.read(0x10, 4), timer.read(0x14, 4)) == (1, 0)
    timer.write(8, 4, 0)
    timer.write(0xC, 4, 0)
    timer.write(0x20, 4, 3)
    timer.write(0x28, 4, 0xA5)  # the other one, once, each 16 instructions
    wires.pass_time(47)
    assert (timer.read(0x24, 4), wires.levels[4]) == (1, False)
    wires.pass_time(1)
    assert wires.levels[4]
    timer.write(0x2C, 4, 0)
    wires.pass_time(1000)
    assert (timer.read(0x24, 4), wires.levels[4]) == (0, False)


def test_a_clint_compares() -> None:
    clint = Clint(0x2000000, divider=10)
    wires = connected(clint)
    clint.write(0x4000, 4, 5)
    clint.write(0x4004, 4, 0)
    wires.pass_time(49)
    assert (clint.read(0xBFF8, 8), wires.levels["timer"]) == (4, False)
    wires.pass_time(1)
    assert (clint.read(0xBFF8, 8), wires.levels["timer"]) == (5, True)
    clint.write(0x4000, 8, 7)
    assert not wires.levels["timer"]
    wires.pass_time(20)
    assert wires.levels["timer"]
    clint.write(0, 4, 1)
    assert wires.levels["software"] and clint.read(0, 4) == 1
    clint.write(0xBFF8, 8, 0)
    assert (clint.read(0xBFF8, 8), wires.levels["timer"]) == (0, False)


def cortexm() -> UnicornMachine:
    """movs r0, #0; loop: adds r0, #1; b loop. The vector of every exception leads to bx lr."""
    code = b"".join(word.to_bytes(4, "little") for word in (0x20001000, 0x08000081, *[0x08000101] * 30))
    code += bytes.fromhex("0020 0130 fde7").ljust(0x80, b"\0") + bytes.fromhex("7047")
    board = Board(arch="cortexm", base=0x08000000, ram=[(0x20000000, 0x1000)])
    return board.machine(code)


def register(m: UnicornMachine, offset: int) -> int:
    return int.from_bytes(m.read(0xE000E000 + offset, 4), "little")


def set_register(m: UnicornMachine, offset: int, value: int) -> None:
    m.write(0xE000E000 + offset, value.to_bytes(4, "little"))


def test_systick_counts_instructions() -> None:
    with cortexm() as m:
        set_register(m, 0x14, 99)
        set_register(m, 0x18, 0)
        set_register(m, 0x10, 5)
        with pytest.raises(GuestTimeout):
            m.run(max_insns=40)
        assert register(m, 0x18) == 60
        assert not register(m, 0x10) & 1 << 16
        with pytest.raises(GuestTimeout):
            m.run(max_insns=61)
        assert register(m, 0x10) == 5 | 1 << 16
        assert register(m, 0x10) == 5  # which reading has cleared


def test_the_nvics_registers() -> None:
    with cortexm() as m:
        set_register(m, 0x100, 0x21)
        set_register(m, 0x104, 0x80000000)
        assert (register(m, 0x180), register(m, 0x104)) == (0x21, 0x80000000)
        set_register(m, 0x180, 1)
        assert register(m, 0x100) == 0x20
        m.write(0xE000E405, b"\xff")  # a priority: four bits of it are there
        assert (register(m, 0x404), m.read(0xE000E405, 1)) == (0xF000, b"\xf0")
        set_register(m, 0xD20, 0x40800000)
        assert register(m, 0xD20) == 0x40800000
        set_register(m, 0x200, 0x40)
        assert register(m, 0x200) == register(m, 0x280) == 0x40  # pending, and not enabled
        set_register(m, 0x280, 0x40)
        assert not register(m, 0x200)
        set_register(m, 0xD08, 0x20000080)
        set_register(m, 0xD0C, 0x05FA0300)
        set_register(m, 0xD0C, 0x12340700)  # without the key
        assert (register(m, 0xD08), register(m, 0xD0C)) == (0x20000080, 0xFA050300)
        set_register(m, 0xD04, 1 << 28)
        assert register(m, 0xD04) == 1 << 28 | 14 << 12 | 1 << 11
        set_register(m, 0xD04, 1 << 27)
        assert register(m, 0xD04) == 1 << 11


def test_a_more_urgent_interrupt_preempts() -> None:
    with cortexm() as m:
        set_register(m, 0x100, 0x3)
        m.write(0xE000E400, bytes([0x80, 0x40]))
        m.interrupts.pend(1)
        m.interrupts.pend(0)
        nvic = m.interrupts.controller
        assert nvic.take() == 0x08000101
        assert m.regs["xpsr"] & 0x1FF == 17  # the more urgent one first
        assert nvic.take() is None
        m.interrupts.pend(-1)  # SysTick, whose priority is 0
        assert nvic.take() == 0x08000101
        assert m.regs["xpsr"] & 0x1FF == 15
        assert m.regs["lr"] == 0xFFFFFFF1
        assert sorted(nvic.active) == [15, 17]  # type: ignore[attr-defined]
        assert nvic.leave(0xFFFFFFF1) is not None
        assert m.regs["xpsr"] & 0x1FF == 17
        assert nvic.leave(0xFFFFFFF9) is not None
        assert m.regs["xpsr"] & 0x1FF == 0
        assert nvic.take() == 0x08000101  # now the other one
        assert m.regs["xpsr"] & 0x1FF == 16
        assert nvic.leave(0x08000001) is None


def test_masks_of_priorities() -> None:
    with cortexm() as m:
        set_register(m, 0x100, 1)
        m.write(0xE000E400, b"\x80")
        m.interrupts.pend(0)
        nvic = m.interrupts.controller
        cpu = m.interrupts.cpu
        for name, masks, not_masks in (("basepri", 0x80, 0x90), ("primask", 1, 0), ("faultmask", 1, 0)):
            cpu.set_system(name, masks)
            assert not nvic.due()
            cpu.set_system(name, not_masks)
            assert nvic.due()
            cpu.set_system(name, 0)
        cpu.set_system("primask", 1)
        assert nvic.wakes()  # WFI goes on all the same


def test_a_frame_is_aligned_and_restored() -> None:
    with cortexm() as m:
        m.interrupts.pend(-2)
        m.regs.sp = 0x20000804
        values = {f"r{n}": 0x1000 + n for n in (0, 1, 2, 3, 12)}
        for name, value in values.items():
            m.regs[name] = value
        m.regs["xpsr"] = 0xA1000000
        nvic = m.interrupts.controller
        assert nvic.take() is not None
        assert m.regs.sp == 0x200007E0
        assert m.regs["xpsr"] >> 28 == 0xA
        for name in values:
            m.regs[name] = 0
        assert nvic.leave(m.regs["lr"]) == 0x08000081
        assert {name: m.regs[name] for name in values} == values
        assert (m.regs.sp, m.regs["xpsr"] >> 28) == (0x20000804, 0xA)


def test_devices_share_a_page() -> None:
    """Loads of two devices and of what lies between them."""
    seen: list[tuple[str, int]] = []

    class Noted(Device):
        def read(self, offset: int, size: int) -> int:
            seen.append((self.name, offset))
            return 7

    board = Board(devices=[Part(Noted, 0x40000400, {"size": 0x400, "name": "two"}),
                           Part(Noted, 0x40000000, {"size": 0x100, "name": "one"})])
    with UnicornMachine.from_code("ldr w1, [x0, 4]; ldr w2, [x0, 0x404]; ldr w3, [x0, 0x800]; ret", arch="arm64",
                                  symbols={"f": 0x10000}) as m:
        fitted = board.fit(m)
        m.call("f", 0x40000000)
        assert seen == [("one", 4), ("two", 4)]
        assert fitted.accesses() == [("one", 1, 0), ("two", 1, 0)]
        assert fitted.bus.between == {0x40000800: 1}


def test_devices_that_are_none() -> None:
    with pytest.raises(BadArgument, match="pl011"):
        Part("pl012", 0).make()
    with pytest.raises(BadArgument, match="speed"):
        Part("pl011", 0, {"speed": 3}).make()
    with pytest.raises(BadArgument, match="overlap"):
        Board(devices=[Part("unknown", 0, {"name": "a"}), Part("unknown", 8, {"name": "b"})]).fit(cortexm())
    with pytest.raises(BadArgument, match="no interrupt"), UnicornMachine.from_code(b"\0" * 4, arch="arm64") as m:
        Board(devices=[Part("pl011", 0x9000000, {"line": 33})]).fit(m)
    with pytest.raises(BadArgument, match="no machine"):
        _ = Device(0).wires


def test_wfi_under_systick() -> None:
    """wfi; b . -2"""
    code = b"".join(word.to_bytes(4, "little") for word in (0x20001000, 0x08000081, *[0x08000101] * 30))
    code += bytes.fromhex("30bf fde7").ljust(0x80, b"\0") + bytes.fromhex("7047")
    with Board(arch="cortexm", base=0x08000000, ram=[(0x20000000, 0x1000)]).machine(code) as m:
        with pytest.raises(GuestHalted):
            m.run(timeout=5)
        set_register(m, 0x14, 999)
        set_register(m, 0x10, 7)
        with pytest.raises(GuestTimeout):
            m.run(max_insns=30)
        assert m.interrupts.now > 7000


def test_a_setting_that_a_model_lacks_is_named_alone() -> None:
    with pytest.raises(BadArgument, match=r"^pl011 takes no value or inptu; size, name and interrupt"):
        make_device("pl011", 0x1000, {"size": 0x1000, "value": 1, "received": b"", "inptu": 2})


def test_registers_that_are_described() -> None:
    """Fixed values, values one after the other, and registers that keep what the guest writes."""
    device = make_device("registers", 0, {"size": 0x20, "0x0": [0, 0, 0x12345678], "4": 0x83, "0x8": "1/2"})
    connected(device)
    assert [device.read(0, 4) for _ in range(4)] == [0, 0, 0x12345678, 0x12345678]
    assert (device.read(0, 1), device.read(1, 1), device.read(2, 2)) == (0x78, 0x56, 0x1234)
    device.write(4, 4, 0xFF)
    assert [device.read(4, 4), device.read(8, 4), device.read(8, 4), device.read(8, 4)] == [0x83, 1, 2, 2]
    assert device.read(0x10, 4) == 0
    device.write(0x10, 4, 0xAABBCCDD)
    device.write(0x11, 1, 0xEE)
    assert device.read(0x10, 4) == 0xAABBEEDD
    words = RegisterBank(0, width=2, values={0: 7, 2: (1, 2)})
    connected(words)
    assert (words.read(0, 2), words.read(2, 2), words.read(2, 2)) == (7, 1, 2)


def test_parts_of_registers_of_a_big_endian_guest() -> None:
    board = Board(devices=[Part("registers", 0x40000000, {"0x0": 0x11223344})])
    with UnicornMachine.from_code("lbz 3, 1(3); blr", arch="ppc", symbols={"f": 0x10000}) as m:
        board.fit(m)
        assert m.call("f", 0x40000000) == 0x22


@pytest.mark.parametrize(("settings", "said"), [
    ({"0x0": []}, "register 0x0 is"), ({"0x0": -1}, "register 0x0 is"), ({"0x0": "a/b"}, "register 0x0 is"), ({"0x0": [1, "2"]}, "register 0x0 is"),
    ({"0x2": 1}, "no register at 0x2"), ({"size": 8, "0x8": 1}, "no register at 0x8"), ({"width": 3}, "width is 3"), ({"colour": 1}, "takes no colour"),
])  # fmt: skip
def test_registers_that_are_none(settings: dict[str, object], said: str) -> None:
    with pytest.raises(BadArgument, match=said):
        make_device("registers", 0, settings)
