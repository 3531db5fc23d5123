"""The System Control Space of an Armv7-M CPU: NVIC, SysTick and the registers about exceptions.

Armv7-M Architecture Reference Manual, B3.2 to B3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..arch.arm.nvic import Nvic
from ..errors import BadArgument
from .devices import Device, DeviceSettings
from .wires import Wires

if TYPE_CHECKING:
    from typing_extensions import Unpack

START = 0xE000E000
PEND_SV, SYS_TICK, FIRST = 14, 15, 16  #: numbers of exceptions
ENABLE, TICKINT, COUNTFLAG = 1, 2, 1 << 16  #: bits of SYST_CSR
CPUID, ICSR, VTOR, AIRCR, SCR, CCR, CPACR = 0xD00, 0xD04, 0xD08, 0xD0C, 0xD10, 0xD14, 0xD88
KEY, RESET = 0x05FA0000, 1 << 2  #: of AIRCR
CORTEX_M3 = 0x412FC231


class SystemControl(Device):
    """The registers of an Armv7-M CPU's interrupt controller and system timer, as a device.

    SysTick counts one for each instruction. The first access makes the machine look at interrupts.

    Args:
        start: its address.
        settings: of DeviceSettings.
    """

    def __init__(self, start: int = START, **settings: Unpack[DeviceSettings]) -> None:
        settings.setdefault("name", "SCS")
        super().__init__(start, **settings)
        self._kept = {SCR: 0, CCR: 0x200, CPACR: 0, 0xD24: 0, 0xD28: 0, 0xD2C: 0, 0xF34: 0}
        self._control = 0
        self._reload = 0
        self._due = 0  # when SysTick's counter reaches 0
        self._counted = False  # COUNTFLAG
        self._cancel: Callable[[], None] = lambda: None

    def connect(self, wires: Wires) -> None:
        """Become part of a machine; interrupts are not asked for yet."""
        self._wires = wires

    @property
    def nvic(self) -> Nvic:
        """The machine's interrupt controller. Raises BadArgument: the CPU is no Cortex-M."""
        controller = self.wires.interrupts.controller
        if not isinstance(controller, Nvic):
            raise BadArgument(
                "only Cortex-M has a System Control Space", hint="take that device off the board"
            )
        return controller

    # --- registers of 32 bits, and parts of them

    def read(self, offset: int, size: int) -> int:
        """Return the register at `offset` from the device's start, or the rest of it from there.
        Reading SYST_CSR clears its COUNTFLAG. Registers that are not modelled read as 0.
        """
        return self._read(offset & ~3) >> 8 * (offset & 3)

    def write(self, offset: int, size: int, value: int) -> None:
        """Change a register or a part of it; registers that are not modelled are left alone.

        Args:
            offset: from the device's start.
            size: bytes that are written.
            value: unsigned.
        """
        for first, last in ((0x400, 0x4EF), (0xD18, 0xD23)):  # priorities, a byte each
            if first <= offset <= last:
                for n in range(size):
                    self._set_priority(offset + n, value >> 8 * n & 0xFF)
                return
        if size == 4:
            self._write(offset, value)
        else:
            at = 8 * (offset & 3)
            part = (1 << 8 * size) - 1 << at
            self._write(offset & ~3, self._read(offset & ~3) & ~part | value << at)

    def _read(self, offset: int) -> int:
        """Return the 32-bit register at an offset, a multiple of 4; 0 where none is modelled.
        Reading SYST_CSR clears COUNTFLAG.
        """
        if 0x10 <= offset < 0x20:
            return self._read_timer(offset)
        if offset in (CPUID, 0x4):
            return CORTEX_M3 if offset == CPUID else 7  # ICTR: 8 times 32 interrupts
        if offset in self._kept:
            return self._kept[offset]
        return self._read_nvic(offset, self.nvic)

    def _read_nvic(self, offset: int, nvic: Nvic) -> int:
        """Return a 32-bit register of interrupts, priorities or exceptions; 0 where there is none.

        Args:
            offset: of the register.
            nvic: the interrupt controller.
        """
        bits = {0x100: "enabled", 0x180: "enabled", 0x200: "ready", 0x280: "ready", 0x300: "active"}
        if (kind := bits.get(offset & ~0x1F)) is not None or offset & ~0x7F in bits:
            numbers = getattr(nvic, kind or bits[offset & ~0x7F])
            first = FIRST + 8 * (offset & 0x7F)
            return sum(1 << n for n in range(32) if first + n in numbers)
        if 0x400 <= offset < 0x4F0 or 0xD18 <= offset < 0xD24:
            return sum(nvic.priority.get(self._exception(offset + n), 0) << 8 * n for n in range(4))
        if offset == ICSR:
            return self._state_of(nvic)
        if offset == VTOR:
            return int(nvic.vectors)
        if offset == AIRCR:
            return 0xFA050000 | nvic.group_bits << 8
        return 0

    def _state_of(self, nvic: Nvic) -> int:
        """Return the register ICSR: VECTACTIVE (of xPSR), RETTOBASE, VECTPENDING, ISRPENDING,
        PENDSTSET and PENDSVSET; its other bits are 0.
        """
        ready, active, first = nvic.ready, nvic.active, nvic.first()
        current = self.wires.regs["xpsr"] & 0x1FF
        return int(
            current
            | (1 << 11 if len(active) <= 1 else 0)
            | (first or 0) << 12
            | (1 << 22 if any(n >= FIRST for n in ready) else 0)
            | (1 << 26 if SYS_TICK in ready else 0)
            | (1 << 28 if PEND_SV in ready else 0)
        )

    def _exception(self, offset: int) -> int:
        """Return the number of the exception whose priority is the byte at `offset`."""
        return offset - 0x400 + FIRST if offset < 0xD00 else offset - 0xD18 + 4

    def _set_priority(self, offset: int, value: int) -> None:
        """Write the priority of the exception whose byte is at `offset`; `value`: eight bits."""
        self.nvic.set_priority(self._exception(offset), value)

    def _write(self, offset: int, value: int) -> None:
        """Write a 32-bit register; it may start or stop SysTick, enable, disable, pend or withdraw
        exceptions (ICSR, STIR and the interrupts' bits), move the vector table (VTOR), group
        priorities, or stop the run (a reset by AIRCR, which needs its key).

        Registers without an effect of their own keep the value (`_kept`); those that are not
        modelled are left alone.

        Args:
            offset: of the register, a multiple of 4.
            value: 32 bits.
        """
        nvic = self.nvic
        if 0x10 <= offset < 0x20:
            self._write_timer(offset, value)
        elif 0x100 <= offset < 0x300:
            self._write_bits(offset, value)
        elif offset == ICSR:
            for bit, line, on in (
                (31, -14, True),
                (28, -2, True),
                (27, -2, False),
                (26, -1, True),
                (25, -1, False),
            ):
                if value >> bit & 1 and on:
                    self.wires.interrupts.pend(line)
                elif value >> bit & 1:
                    nvic.withdraw(line)
        elif offset == VTOR:
            nvic.vectors = value & ~0x7F
        elif offset == AIRCR and value & 0xFFFF0000 == KEY:
            nvic.group_bits = value >> 8 & 7
            if value & RESET:
                self.wires.stop()
        elif offset == 0xF00:
            self.wires.interrupts.pend(value & 0x1FF)
        elif offset in self._kept:
            self._kept[offset] = value

    def _write_bits(self, offset: int, value: int) -> None:
        """Enable, disable, pend or withdraw the interrupts whose bits are set; then look for one to
        take.

        The registers are ISER, ICER, ISPR and ICPR.

        Args:
            offset: of a 32-bit register: 0x100 to 0x2FF.
            value: a bit for each of 32 interrupts.
        """
        nvic, kind = self.nvic, offset & ~0x7F
        for n in range(32):
            if value >> n & 1:
                line = 8 * (offset & 0x7F) + n
                if kind == 0x100:
                    nvic.enabled.add(line + FIRST)
                elif kind == 0x180:
                    nvic.enabled.discard(line + FIRST)
                elif kind == 0x200:
                    self.wires.interrupts.pend(line)
                else:
                    nvic.withdraw(line)
        self.wires.interrupts.look()

    # --- SysTick

    def _read_timer(self, offset: int) -> int:
        """Return a register of SysTick; reading the control register clears COUNTFLAG. The counter
        is 0 while SysTick is stopped.

        Args:
            offset: of the register, 0x10 to 0x1F.
        """
        if offset == 0x10:
            value = self._control | (COUNTFLAG if self._counted else 0)
            self._counted = False
            return value
        if offset == 0x14:
            return self._reload
        if offset == 0x18 and self._control & ENABLE:
            return max(self._due - self.wires.interrupts.now, 0) & 0xFFFFFF
        return 0

    def _write_timer(self, offset: int, value: int) -> None:
        """Write a register of SysTick: the control register starts or stops it, the next one has
        the reload value; any value written to the counter starts it again, and clears the flag that
        it has counted to 0. Writes to the fourth change nothing.

        Args:
            offset: of the register, 0x10 to 0x1F.
            value: 32 bits.
        """
        if offset == 0x10:
            started = value & ~self._control & ENABLE
            self._control = value & 7
            if started or not value & ENABLE:
                self._start()
        elif offset == 0x14:
            self._reload = value & 0xFFFFFF
        elif offset == 0x18:
            self._counted = False
            self._start()

    def _start(self) -> None:
        """Begin to count down from the reload value; stop counting where SysTick is not enabled or
        the reload value is 0.
        """
        self._cancel()
        if self._control & ENABLE and self._reload:
            self._due = self.wires.interrupts.now + self._reload + 1
            self._cancel = self.wires.interrupts.after(self._reload + 1, self._tick)

    def _tick(self) -> None:
        """Do what SysTick does as its counter reaches 0: set COUNTFLAG, pend its interrupt, count
        again.

        The interrupt is pended only where it is enabled.
        """
        self._counted = True
        if self._control & TICKINT:
            self.wires.interrupts.pend(SYS_TICK - FIRST)
        self._start()
