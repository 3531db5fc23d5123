"""The place of a program that runs at an access to memory: in some function, at any instruction."""

from __future__ import annotations

from ..programs.atprobe import AtProbe


class AtAccess(AtProbe):
    """The place of a watchpoint's program, whose function is the one that the pc is in."""

    def func_ip(self) -> int:
        """Return the address of the function that has accessed the memory; 0: it is not known."""
        pc = self.regs.pc
        found = self.symbol(pc)
        if found is None:
            return 0
        _, offset, _, _ = found
        return pc - offset
