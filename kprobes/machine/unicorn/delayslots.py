"""Branches that wait for their delay slot when a run stops. See Runs.settle."""

from __future__ import annotations

from unicorn import unicorn_const as const

from .cpu import Cpu
from .engine import CODE
from .runstate import RunState
from .starts import Starts


class DelaySlots:
    """What is to be done about them before the guest is sent elsewhere.

    Attributes:
        pending: the guest may have stopped in one.
    """

    def __init__(self, cpu: Cpu, state: RunState, starts: Starts) -> None:
        self._cpu, self._state, self._starts = cpu, state, starts
        self.pending = False
        self._stopping = CODE(lambda *_: cpu.engine.stop())

    @property
    def books(self) -> bool:
        """For a guest that goes back: `pending`."""
        return self.pending

    @books.setter
    def books(self, then: bool) -> None:
        self.pending = then

    def settle(self) -> None:
        """The guest is sent elsewhere: let go of a branch that waits."""
        m, state = self._cpu, self._state
        if m.guest.runs.settle and state.depth == 0 and state.exit and (self.pending or self.holds(m.read_pc())):
            self.pending = False
            self.leave()

    def leave(self) -> None:
        """Execute a NOP in the delay slot's stead, which takes the branch, and stop: before its target is fetched."""
        m, state, nop = self._cpu, self._state, self._cpu.guest.runs.settle
        place = state.exit + m.memory.page_size - 2 * len(nop)
        trap = m.engine.read(place, len(nop)) or b""
        m.memory.patch(place, nop)
        hook = m.engine.hook(const.UC_HOOK_CODE, self._stopping, place, place)
        self._starts.again = True  # a target that cannot be fetched is nobody's fault: the guest does not go there
        try:
            self._starts.start(place, 0)
        finally:
            self._starts.again = False
            m.engine.unhook(hook)
            m.memory.patch(place, trap)

    def holds(self, pc: int) -> bool:
        """True where the instruction at `pc` is in one."""
        m, size = self._cpu, len(self._cpu.guest.runs.settle)
        return m.arch.decode(m.engine.read(pc - size, 2 * size) or b"", pc - size).delay_slot
