"""Pending branches: the guest stops in a delay slot, and its branch is not taken yet.

On MIPS and SuperH QEMU's stub does not show a pending branch, and setting pc does not cancel it:
the guest would execute one instruction where it is sent, and take the branch then. So a guest is
never left in a delay slot. A step that would end in one is followed by another; if the instruction
in the slot has failed, a NOP is executed in its place. On PA-RISC and SPARC the stub shows pending
branches in a register (npc), and nothing need be done.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from ...arch._base import Arch
from ...errors import GuestFault, RemoteError
from .layouts import facts_of
from .target import RemoteTarget


class PendingBranches:
    """Finds pending branches, and has them taken.

    Attributes:
        nop: an instruction that does nothing; b"": the stub shows pending branches.
    """

    def __init__(self, target: RemoteTarget, arch: Arch) -> None:
        """Prepare; nothing is executed.

        Args:
            target: the stub.
            arch: the guest's architecture, whose row says whether its stubs hide pending branches.
        """
        self._target = target
        self._arch = arch
        self.nop = facts_of(arch).nop

    def at(self, pc: int, before: int | None = None) -> bool:
        """Return True if the instruction at `pc` is in a delay slot, so that a branch is pending;
        False as well where the stub shows pending branches, or the code cannot be read.

        Args:
            pc: where the guest has stopped.
            before: pc before the last step: only a step from the branch leads into its slot. None:
                it is not known.
        """
        size = len(self.nop)
        if not size or before not in (None, pc - size):
            return False
        try:
            return self._arch.decode(self._target.read(pc - size, 2 * size), pc - size).delay_slot
        except GuestFault:
            return False

    def leave(self, pc: int, step: Callable[[], object]) -> bool:
        """Have the thread take a pending branch, with a NOP in place of the instruction in the
        delay slot, which has failed.

        The NOP is written to guest memory for the step, and the instruction is put back.

        Args:
            pc: address of that instruction.
            step: () has the thread make one step.

        Returns:
            False where no branch is pending, and nothing was done. True: pc is now where the branch
            leads.
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
