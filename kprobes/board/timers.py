"""Arm's dual timer, as boards with a PL011 have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .devices import KINDS, Device, DeviceSettings
from .wires import Wires

if TYPE_CHECKING:
    from typing_extensions import Unpack

LOAD, VALUE, CONTROL, CLEAR, RAW, MASKED, BACKGROUND = range(0x00, 0x1C, 4)
ONCE, WIDE, DIVIDE, INTERRUPT, PERIODIC, ENABLED = (
    1 << 0,
    1 << 1,
    3 << 2,
    1 << 5,
    1 << 6,
    1 << 7,
)  # of CONTROL
TIMERS = 0x40  #: bytes of both counters' registers
#: of PeriphID0 to 3 and PCellID0 to 3, at 0xFE0
IDENTITY = bytes.fromhex("041814000df005b1")


class _Counter:
    """One of the two timers: a count down to 0, then from the top or from the load register again.

    Attributes:
        raised: the count has reached 0 since the guest last cleared this, masked or not.
    """

    def __init__(self, divider: int, told: Callable[[], None]) -> None:
        """Make a counter as it is after a reset.

        Args:
            divider: instructions for a step, where its own divider is 1.
            told: called when `raised` changes as time goes by.
        """
        self._divider = divider
        self._told = told
        self._load = 0
        self._control = INTERRUPT
        # Where the count began, and at which instruction. 32 bits are kept while it stands, since
        # drivers load it before they set its width.
        self._base = 0xFFFFFFFF
        self._begun = 0
        self._halted = False  # at 0, after one shot, until it is loaded or is to be periodic
        self._cancel: Callable[[], None] = lambda: None
        self.raised = False

    @property
    def interrupting(self) -> bool:
        """True where the timer's interrupt is raised and enabled."""
        return self.raised and bool(self._control & INTERRUPT)

    @property
    def _top(self) -> int:
        """The greatest count of the counter's width, 32 or 16 bits."""
        return 0xFFFFFFFF if self._control & WIDE else 0xFFFF

    @property
    def _step(self) -> int:
        """Instructions for a step of the count."""
        # the fourth is reserved
        return self._divider * (1, 16, 256, 1)[(self._control & DIVIDE) >> 2]

    def value(self, now: int) -> int:
        """Return the count, in the counter's width.

        Args:
            now: the time, in instructions.
        """
        gone = (now - self._begun) // self._step if self._control & ENABLED else 0
        return max((self._base & self._top) - gone, 0)

    def read(self, register: int, now: int) -> int:
        """Return a register of this timer; 0 for any other offset.

        Args:
            register: its offset in this timer.
            now: the time, in instructions.
        """
        return {
            LOAD: self._load,
            BACKGROUND: self._load,
            VALUE: self.value(now),
            CONTROL: self._control,
            RAW: int(self.raised),
            MASKED: int(self.interrupting),
        }.get(register, 0)

    def write(self, register: int, value: int, wires: Wires) -> None:
        """Change a register: load a count (LOAD) or only what later ones begin from (BACKGROUND),
        start, stop, or clear `raised`. Other registers are left alone. The interrupt is not changed
        here.

        Args:
            register: its offset in this timer.
            value: 32 bits.
            wires: give the time, and call when the count reaches 0.
        """
        now = wires.interrupts.now
        if register in (LOAD, BACKGROUND):
            self._load = value
        if register == LOAD:
            self._halted = False
            self._count_from(value, wires)
        elif register == CONTROL:
            count = self.value(now) if self._control & ENABLED else self._base
            self._control = value & 0xFF
            self._halted = self._halted and bool(value & ONCE)
            self._count_from(count, wires)
        elif register == CLEAR:
            self.raised = False

    def _count_from(self, value: int, wires: Wires) -> None:
        """Begin to count down from a value now, where the timer is enabled and not halted; else
        only keep the value. An earlier count ends.

        Args:
            value: the count.
            wires: give the time, and call when the count reaches 0.
        """
        self._cancel()
        self._base = value
        self._begun = wires.interrupts.now
        if self._control & ENABLED and not self._halted:
            steps = max(value & self._top, 1)
            self._cancel = wires.interrupts.after(
                steps * self._step, lambda: self._reach_zero(wires)
            )

    def _reach_zero(self, wires: Wires) -> None:
        """Do what the timer does as its count reaches 0: set `raised`, count again from the load
        register or the top, or stand still at 0, and call `told`.
        """
        self.raised = True
        if self._control & ONCE:
            self._base = 0
            self._begun = wires.interrupts.now
            self._halted = True
        else:
            self._count_from(self._load if self._control & PERIODIC else self._top, wires)
        self._told()


class Sp804(Device):
    """Arm's SP804 (DDI 0271): two timers with one interrupt, raised while that of either is.

    Args:
        start: its address.
        divider: instructions for each step before the timers' own dividers.
        settings: of DeviceSettings.

    Attributes:
        divider: as the argument; a change has no effect.
    """

    def __init__(self, start: int, *, divider: int = 1, **settings: Unpack[DeviceSettings]) -> None:
        super().__init__(start, **settings)
        self.divider = divider
        self._counters = _Counter(divider, self._update), _Counter(divider, self._update)

    def _update(self) -> None:
        """Raise the interrupt, or end it, as the two timers say."""
        self.ask(any(counter.interrupting for counter in self._counters))

    def connect(self, wires: Wires) -> None:
        """Become part of a machine, with the interrupt as the counters say.

        Raises:
            Unsupported: the machine has no interrupts.
        """
        super().connect(wires)
        self._update()

    def read(self, offset: int, size: int) -> int:
        """Return the register at `offset` from the device's start, an identification byte from
        0xFE0 on, or 0 where no register is; `size` does not matter.
        """
        if offset >= 0xFE0:
            return IDENTITY[(offset - 0xFE0) // 4]
        if offset >= TIMERS:
            return 0
        return self._counters[offset // 0x20].read(offset % 0x20, self.wires.interrupts.now)

    def write(self, offset: int, size: int, value: int) -> None:
        """Write `value` to the register at `offset` from the device's start, and raise or end the
        interrupt accordingly; `size` does not matter.
        """
        if offset < TIMERS:
            self._counters[offset // 0x20].write(offset % 0x20, value, self.wires)
            self._update()


KINDS["sp804"] = Sp804
