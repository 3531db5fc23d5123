"""Windows: segments of the guest's addresses that show the same memory, from 0 on, as the addresses
that the engine's functions take.
"""

from __future__ import annotations

from attrs import evolve

from ...regs import Regs
from .blocks import HostBlock, HostBlocks

# what is put beside code in a window lies below half of this power of two, which all windows have
SEGMENT = 30


class Windows:
    """The windows of a guest: segments of its addresses that show the same memory. Most guests have
    none.

    An address within a window has a place: the address that the engine's functions take for it. A
    block is known by its place, and by its address in every window through which something was
    mapped.

    Attributes:
        home: start of the window that the guest's code is in, or 0.
    """

    def __init__(self, segments: tuple[tuple[int, int], ...], blocks: HostBlocks) -> None:
        """Prepare; nothing is mapped.

        Args:
            segments: (start, bytes) of each segment of guest addresses that shows memory from 0 on.
            blocks: the guest's host memory; blocks are added to it at each of their addresses.
        """
        self._segments = segments
        self._blocks = blocks
        self._used: list[int] = []
        self.home = 0

    def place(self, addr: int) -> int:
        """Return the address that the engine's functions take for what the guest sees at `addr`:
        its place.
        """
        for start, size in self._segments:
            if start <= addr < start + size:
                return addr - start
        return addr

    def aliases(self, addr: int) -> list[int]:
        """Return `addr`, and behind it all other addresses by which the guest sees the same
        memory.
        """
        place = self.place(addr)
        return [addr, *({place, *(start + place for start in self._used)} - {addr})]

    def shown(self, place: int, regs: Regs) -> int:
        """Return the guest address by which an instruction has most likely accessed some memory:
        of all its addresses, the one that is nearest to the value of a register other than pc.

        Args:
            place: the engine's address of the memory.
            regs: the registers at the instruction.
        """
        if not self._segments:
            return place
        values = [regs[name] for name in regs.arch.regs.names if name != regs.arch.regs.pc]
        shown = [place, *(start + place for start, size in self._segments if place < size)]
        return min(shown, key=lambda address: min(abs(address - value) for value in values))

    def add(self, block: HostBlock, addr: int) -> None:
        """Add a block of host memory to the guest's blocks: at its own address, and at its address
        in every window through which something was mapped.

        Args:
            block: the block, at its address for the engine.
            addr: guest address by which it was mapped. A window that is new shows all other blocks,
                too.
        """
        window = addr - block.start
        if window and window not in self._used:
            known = [b for b in self._blocks.held if self.place(b.start) == b.start]
            self._used.append(window)
            for other in known:
                self._blocks.add(evolve(other, start=window + other.start, end=window + other.end))
        for start in (0, *self._used):
            self._blocks.add(evolve(block, start=start + block.start, end=start + block.end))

    def remove(self, start: int, end: int) -> None:
        """Forget the blocks in [start, end), in all windows.

        Args:
            start: address of the first byte, as the engine has it.
            end: address behind the last byte.
        """
        for window in (0, *self._used):
            self._blocks.remove(window + start, window + end)

    def mark(self, start: int, end: int, code: bool) -> None:
        """Mark the blocks in [start, end) as code, or as data, in all windows.

        Args:
            start: address of the first byte, as the engine has it.
            end: address behind the last byte.
            code: True for code.
        """
        for window in (0, *self._used):
            self._blocks.mark(window + start, window + end, code)
