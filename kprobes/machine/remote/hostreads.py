"""Programs in a guest that read memory of which nobody knows for certain that it is there: they stop, and the host
reads.

They call a function of ours with the address of four u64: where to read, where to put it, bytes, and what it gives: not
0, no such memory. It has two copies: at the first the guest stops, and from the second it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...errors import GuestFault
from ...regs import Regs
from .target import RemoteTarget

MOST: Final = 1 << 16  #: bytes of one read


class HostReads:
    """Answers what programs of one machine ask."""

    def __init__(self, machine: Any, target: RemoteTarget) -> None:
        self._machine, self._target = machine, target
        self._at = self._onward = -1

    def place(self, function: bytes, fresh: Callable[[int], int]) -> tuple[int, int]:
        """(start, end) of the function, an empty one, in memory of its own."""
        step = -(-len(function) // 16) * 16
        start = fresh(2 * step)
        self._machine.write(start, function.ljust(step, b"\0") + function)
        self._target.stops.add(start)
        self._at, self._onward = start, start + step
        return start, start + 2 * step

    def stands(self, pc: int) -> bool:
        """True where a program asks."""
        return pc == self._at

    def answer(self, regs: Regs) -> int:
        """Do what is asked; where the guest goes on."""
        machine, order = self._machine, self._machine.arch.order.value
        try:
            block = regs.arg(0)
            raw = machine.read(block, 24)
            at, to, size = (int.from_bytes(raw[n:n + 8], order) for n in (0, 8, 16))
            if size <= MOST:
                machine.write(to, machine.read(at, size))
                machine.write(block + 24, bytes(8))
        except GuestFault:
            pass  # what it gives stays as it is: a fault
        return self._onward
