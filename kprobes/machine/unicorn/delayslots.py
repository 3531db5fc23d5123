"""Branches that wait for their delay slot when a run stops. See Guest.settle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unicorn import unicorn_const as const

from .engine import CODE

if TYPE_CHECKING:
    from .machine import UnicornMachine


class DelaySlots:
    """What is to be done about them before the guest is sent elsewhere.

    Attributes:
        pending: the guest may have stopped in one.
    """

    def __init__(self, machine: UnicornMachine) -> None:
        self._machine = machine
        self.pending = False
        self._stopping = CODE(lambda *_: machine._engine.stop())

    def settle(self) -> None:
        """The guest is sent elsewhere: let go of a branch that waits."""
        m = self._machine
        if m._guest.settle and m._depth == 0 and m._exit and (self.pending or self.holds(m._read_pc())):
            self.pending = False
            self.leave()

    def leave(self) -> None:
        """Execute a NOP in the delay slot's stead, which takes the branch, and stop: before its target is fetched."""
        m, nop = self._machine, self._machine._guest.settle
        place = m._exit + m.page_size - 2 * len(nop)
        trap = m._engine.read(place, len(nop)) or b""
        m.patch(place, nop)
        hook = m._engine.hook(const.UC_HOOK_CODE, self._stopping, place, place)
        try:
            m._start(place, 0)
        finally:
            m._engine.unhook(hook)
            m.patch(place, trap)

    def holds(self, pc: int) -> bool:
        """True where the instruction at `pc` is in one."""
        m, size = self._machine, len(self._machine._guest.settle)
        return m.arch.decode(m._engine.read(pc - size, 2 * size) or b"", pc - size).delay_slot
