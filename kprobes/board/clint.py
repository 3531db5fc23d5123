"""RISC-V's core-local interruptor, as SiFive's and QEMU's boards have it.

It has a timer and a software interrupt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .devices import KINDS, Device, DeviceSettings
from .wires import Wires

if TYPE_CHECKING:
    from typing_extensions import Unpack

MSIP, MTIMECMP, MTIME = 0x0, 0x4000, 0xBFF8


class Clint(Device):
    """The CLINT of one hart.

    Args:
        start: its address.
        divider: instructions for each step of mtime.
        settings: of DeviceSettings.

    Attributes:
        divider: instructions for each step of mtime.
    """

    SIZE = 0x10000

    def __init__(self, start: int, *, divider: int = 1, **settings: Unpack[DeviceSettings]) -> None:
        super().__init__(start, **settings)
        self.divider = divider
        self._software = 0
        self._compare = (1 << 64) - 1
        self._begun = 0  # mtime when the CPU's time began
        self._cancel: Callable[[], None] = lambda: None

    def connect(self, wires: Wires) -> None:
        """Become part of a machine, with the timer's interrupt low.

        Raises:
            Unsupported: the machine has no interrupts.
        """
        super().connect(wires)
        wires.interrupts.set_level("timer", False)

    def _time(self) -> int:
        """Return mtime now: steps since the CPU began, moved by what the guest has written to
        mtime.
        """
        return self.wires.interrupts.now // self.divider + self._begun & (1 << 64) - 1

    def read(self, offset: int, size: int) -> int:
        """Return the register at `offset` from the device's start, or the rest of it from there; 0
        where no register is.

        `size` does not matter: bytes beyond it are not cut off.
        """
        for start, value in (
            (MSIP, self._software),
            (MTIMECMP, self._compare),
            (MTIME, self._time()),
        ):
            if start <= offset < start + 8:
                return value >> 8 * (offset - start)
        return 0

    def write(self, offset: int, size: int, value: int) -> None:
        """Change a register or a part of it: raise or end the software interrupt, set mtimecmp or
        mtime, by which the timer's interrupt is raised or ended. Other offsets are ignored.

        Args:
            offset: from the device's start.
            size: bytes that are written.
            value: unsigned.
        """
        at = 8 * (offset & 7)
        part = (1 << 8 * size) - 1 << at
        if offset == MSIP:
            self._software = value & 1
            self.wires.interrupts.set_level("software", bool(value & 1))
        elif MTIMECMP <= offset < MTIMECMP + 8:
            self._compare = self._compare & ~part | value << at
            self._update()
        elif MTIME <= offset < MTIME + 8:
            now = self._time()
            self._begun += (now & ~part | value << at) - now
            self._update()

    def _update(self) -> None:
        """Raise the timer's interrupt where mtime has reached mtimecmp.

        Else end it, and arrange that this method is called again when mtime gets there, unless that
        is 2**48 steps away or more. An earlier such arrangement is cancelled.
        """
        self._cancel()
        interrupts = self.wires.interrupts
        left = self._compare - self._time()
        interrupts.set_level("timer", left <= 0)
        if 0 < left < 1 << 48:
            self._cancel = interrupts.after(
                left * self.divider - interrupts.now % self.divider, self._update
            )


KINDS["clint"] = Clint
