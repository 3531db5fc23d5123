"""System calls that the engine does not report (SystemCalls.decoded): stops where code has their
bytes.

Code is looked through where it enters the machine. What only looks like a system call, as data or
the end of another instruction, is never arrived at. What a guest writes itself is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from ...regs import Regs
from .bounds import Bounds
from .cpu import UnicornCpu
from .guests.guest import PassedOverCall
from .runstate import RunState
from .stops import HookedStops

MOST = 256  # hooks: the engine looks at each of them where it translates, and on arrival


class PassedOver:
    """Finds the system calls in one machine's code that the engine does not report, and reports
    them where they are executed.
    """

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        bounds: Bounds,
        decoded: PassedOverCall,
        report: Callable[[int, int], None],
    ) -> None:
        """Prepare; no code is looked at.

        Args:
            cpu: whose code it is.
            state: of its runs.
            bounds: of its runs.
            decoded: how the system call looks.
            report: called with (number of a system call, its address) when it is executed.
        """
        self._cpu = cpu
        self._decoded = decoded
        self._report = report
        self._stops = HookedStops(cpu, state, bounds, self, MOST)
        self._found: set[int] = set()

    def hook_calls(self, addr: int, size: int) -> None:
        """Find the system calls in code that has changed, and have them reported from now on; those
        that were there before are reported no more. Nothing is done for memory that the library has
        not mapped.

        Args:
            addr: address of the first byte that has changed.
            size: bytes.
        """
        length, align = self._decoded.size, self._cpu.arch.insn_align
        first = addr - length + 1
        block = self._cpu.memory.blocks.find(addr, size)
        if block is None:
            return
        low, high = max(first, block.start), min(addr + size + length - 1, block.end)
        code = bytes(block.view[low - block.start : high - block.start])
        now = {
            low + seen.start()
            for seen in self._decoded.pattern.finditer(code)
            if (low + seen.start()) % align == 0
        }
        for gone in [at for at in self._found if first <= at < addr + size and at not in now]:
            self._found.discard(gone)
            self._stops.remove(gone)
        for new in now - self._found:
            self._found.add(new)
            self._stops.add(new)

    def trap(self, regs: Regs) -> bool:
        """Report the system call at the registers' pc, if it still stands there: the guest's own
        stores are not looked at. Called where the guest arrives at a stop.

        Args:
            regs: the CPU's registers.

        Returns:
            False, always: the hook is to leave pc as it is. `report` may have set it.
        """
        addr = regs.pc
        code = self._cpu.engine.read(addr, self._decoded.size) or b""
        if self._decoded.pattern.match(code):
            self._report(self._decoded.number(code), addr)
            # where the report has sent it
            self._cpu.leave_for(self._cpu.arch.pointers.same_mode(regs, self._cpu.read_pc()))
        return False
