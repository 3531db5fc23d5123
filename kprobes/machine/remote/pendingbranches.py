"""Branches that wait for their delay slot where a guest stops.

QEMU's stub shows no such branch on MIPS and SuperH, and a write of pc does not end it: the guest
would execute one instruction wherever it is sent, and take the branch then. So no run ends there: a
step that would is made longer, and what faults in a delay slot is left behind by a NOP in its
place. PA-RISC's and SPARC's stubs show them; there a bounded run counts as the others do, and as a
probed one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from ...arch._base import Arch
from ...errors import GuestFault, RemoteError
from .layouts import facts_of
from .target import RemoteTarget


class PendingBranches:
    """Finds branches that wait, and has them taken.

    Attributes:
        nop: an instruction that does nothing; b"": every branch that waits is seen in a register.
    """

    def __init__(self, target: RemoteTarget, arch: Arch) -> None:
        self._target = target
        self._arch = arch
        self.nop = facts_of(arch).nop

    def at(self, pc: int, before: int | None = None) -> bool:
        """Return True where the instruction at `pc` stands in a delay slot.

        Args:
            before: address that the last step was made from: only a step from the branch leads into
                the slot; None:
                not known.
        """
        size = len(self.nop)
        if not size or before not in (None, pc - size):
            return False
        try:
            return self._arch.decode(self._target.read(pc - size, 2 * size), pc - size).delay_slot
        except GuestFault:
            return False

    def leave(self, pc: int, step: Callable[[], object]) -> bool:
        """Have a branch taken that waits for the instruction at `pc`, which has failed and is not
        executed again.

        Args:
            step: has the thread make one step.

        Returns:
            False where no branch waits; else pc is elsewhere now.
        """
        if not self.at(pc):
            return False
        code = self._target.read(pc, len(self.nop))
        self._target.write(pc, self.nop)
        try:
            step()
        finally:
            with suppress(RemoteError):  # the guest is gone
                self._target.write(pc, code)
        return True
