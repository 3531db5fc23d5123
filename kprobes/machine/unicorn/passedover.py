"""System calls that the engine passes over without a word (SystemCalls.decoded): stops where code has their bytes.

Code is looked through where it enters the machine. What only looks like a system call, as data or the end of another
instruction, is never arrived at. What a guest writes itself is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from ...regs import Regs
from .bounds import Bounds
from .cpu import Cpu
from .guests.guest import Decoded
from .runstate import RunState
from .stops import HookedStops

MOST = 256  # hooks: the engine looks at each of them where it translates, and on arrival


class PassedOver:
    """Those of a machine."""

    def __init__(self, cpu: Cpu, state: RunState, bounds: Bounds, decoded: Decoded,
                 report: Callable[[int, int], None]) -> None:
        """report: is told the number of a system call and its address."""
        self._cpu, self._decoded, self._report = cpu, decoded, report
        self._stops = HookedStops(cpu, state, bounds, self, MOST)
        self._found: set[int] = set()

    def look(self, addr: int, size: int) -> None:
        """Code has changed there."""
        length, align = self._decoded.size, self._cpu.arch.insn_align
        first = addr - length + 1
        block = self._cpu.memory.blocks.find(addr, size)
        if block is None:
            return
        low, high = max(first, block.start), min(addr + size + length - 1, block.end)
        code = bytes(block.view[low - block.start : high - block.start])
        now = {low + seen.start() for seen in self._decoded.pattern.finditer(code) if (low + seen.start()) % align == 0}
        for gone in [at for at in self._found if first <= at < addr + size and at not in now]:
            self._found.discard(gone)
            self._stops.remove(gone)
        for new in now - self._found:
            self._found.add(new)
            self._stops.add(new)

    def trap(self, regs: Regs) -> bool:
        """The guest has arrived at one, if it still is: the guest's own stores are not looked at."""
        addr = regs.pc
        code = self._cpu.engine.read(addr, self._decoded.size) or b""
        if self._decoded.pattern.match(code):
            self._report(self._decoded.number(code), addr)
            self._cpu.leave_for(self._cpu.arch.pointers.same_mode(regs, self._cpu.read_pc()))  # where that has sent it
        return False
