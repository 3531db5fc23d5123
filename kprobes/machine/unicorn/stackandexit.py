"""Sets up a bare guest before anything runs: a stack, the page where runs end, a thread pointer."""

from __future__ import annotations

from .cpu import UnicornCpu
from .runstate import RunState

STACK_SIZE = 1 << 20  # bytes
SAVED_CONTEXTS = 1 << 16  # bytes
NEAR = 0x10000  # bytes from the thread pointer, either way, that count as thread-local


class StackAndExit:
    """The stack, the exit page (where runs end) and the thread pointer of one guest.

    Attributes:
        thread_local: an image uses thread-local storage, which is not set up.
        stack_top: address where the stack ends; 0: there is none yet.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState) -> None:
        """Prepare; nothing is mapped until bring().

        Args:
            cpu: registers and memory.
            state: gets the address of the exit page.
        """
        self._cpu = cpu
        self._state = state
        self._thread_pointer = 0
        self.thread_local = False
        self.stack_top = 0

    def bring(self) -> None:
        """Map the stack, the exit page and, where the calling convention has a thread pointer, a
        page for that, whose first word is its own address; set the registers that point there.
        `stack_top` and RunState.exit are set; the stack pointer is 4,096 bytes below the former. A
        CPU that saves contexts in memory, or that needs tables there, gets memory for these, too.

        Raises:
            NoMemory: there is no room.
        """
        cpu = self._cpu
        self.stack_top = cpu.memory.map_anywhere(STACK_SIZE) + STACK_SIZE
        cpu.regs.sp = self.stack_top - 4096
        self.make_exit()
        if cpu.guest.contexts.furnish is not None:
            cpu.guest.contexts.furnish(
                cpu.engine,
                cpu.regs,
                cpu.memory.map_anywhere(SAVED_CONTEXTS, cpu.guest.contexts.near),
                SAVED_CONTEXTS,
            )
        if cpu.arch.abi is not None and cpu.arch.abi.thread:
            # One page with its own address first (the psABI's tcbhead) serves stack protectors.
            # Variables lie below it, where nothing is mapped: using them is a fault that says so.
            self._thread_pointer = cpu.memory.map_anywhere(cpu.memory.page_size)
            cpu.regs[cpu.arch.abi.thread] = self._thread_pointer
            cpu.regs.set_word(self._thread_pointer, self._thread_pointer)

    def make_exit(self) -> None:
        """Map the exit page, where runs end, full of traps; RunState.exit becomes its address.

        The library maps nothing in front of it: that page is reserved. After each run the engine
        drops its translation of the end, and makes another one in the next run (2 us), unless the
        end is the first address of a page and the page before is not mapped.

        Raises:
            NoMemory: there is no room.
        """
        memory = self._cpu.memory
        self._state.exit = memory.map_code()
        memory.fill(self._state.exit, memory.page_size)
        memory.reserve([(max(self._state.exit - memory.page_size, 0), memory.page_size)])

    def near_thread_pointer(self, addr: int) -> bool:
        """Return True for an address within 64 KiB of the thread pointer, where thread-local
        storage may be. Where the thread pointer is 0, null pointers are near it, too: the result is
        then True only if an image uses such storage.
        """
        if not self._thread_pointer and not self.thread_local:
            return False
        mask = self._cpu.arch.mask
        distance = addr - self._thread_pointer & mask
        return min(distance, mask + 1 - distance) < NEAR
