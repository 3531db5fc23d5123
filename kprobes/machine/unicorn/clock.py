"""A clock that goes by the guest's instructions: it shows the same in every run, whatever the host
does meanwhile.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from unicorn import unicorn_const as const

from ...errors import Unsupported
from .engine import CODE
from .host import hostcode
from .memory import GuestMemory
from .runstate import RunState

# words for host code: instructions so far, own ranges, and where (first address, bytes) of each are
_COUNT, _RANGES, _TABLE = range(3)


class InstructionClock:
    """Counts the instructions that are executed outside of the library's own code, between start()
    and stop().

    A hook on every instruction makes the guest about ten times as slow. Calling the clock gives the
    number so far, which stands for nanoseconds: a CPU of 1 GHz.
    """

    def __init__(self, memory: GuestMemory, state: RunState) -> None:
        """Prepare; nothing is counted.

        Args:
            memory: the guest's.
            state: of its runs.
        """
        self._memory = memory
        self._state = state
        self._users = 0  # start()s less stop()s
        self._resets = 0  # how often they were dropped
        self._words = (ctypes.c_uint64 * 3)()
        memory.engine.keep(self._words)  # which may call a deleted hook once more
        self._own: list[tuple[int, int]] = []
        self._tables: list[object] = []
        self._hooks: list[int] = []

    def __call__(self) -> int:
        """Return the number of instructions so far."""
        return int(self._words[_COUNT])

    @property
    def runs(self) -> bool:
        """Whether instructions are counted now."""
        return self._users > 0

    @property
    def address(self) -> int:
        """Address of the number in this process, a word of 64 bits, for host code."""
        return ctypes.addressof(self._words)

    def start(self) -> Callable[[], None]:
        """Count instructions from now on, until stop() was called as often as start().

        The library's own code is not counted. Meanwhile the core allows only jumps that cover one
        instruction.

        Returns:
            A function that takes this start back, as one stop() does: once, and not after reset(),
            so that it takes back no other one.

        Raises:
            Unsupported: the engine cannot count.
        """
        if not self._memory.guest.blocks.hooked_delay_slots:
            raise Unsupported(
                f"this engine cannot count {self._memory.arch.name} instructions",
                hint="use another clock",
            )
        self._users += 1
        if self._users == 1:
            self._memory.own_code.on_change(self._look)
            self._look()
            self._hook()
            if self._state.sink is not None:
                self._state.sink.limit_jumps(True)
        resets = self._resets
        taken_back = False

        def take_back() -> None:
            """Take this start back, if it still counts."""
            nonlocal taken_back
            if not taken_back and resets == self._resets:
                self.stop()
            taken_back = True

        return take_back

    def stop(self) -> None:
        """Take back one start(); with the last one, counting ends.

        The number stays. Without a start() nothing happens.
        """
        if self._users:
            self._users -= 1
            if not self._users:
                self._end()
                if self._state.sink is not None:
                    self._state.sink.limit_jumps(False)

    def reset(self) -> None:
        """Stop counting at once, however often start() was called. The number so far stays.

        Functions that start() has returned before do nothing any more. The sink (the core) is not
        told that instructions are no longer counted: it is about to be detached.
        """
        self._users = 0
        self._resets += 1
        self._end()

    def _end(self) -> None:
        """Count no more."""
        self._memory.own_code.ignore(self._look)
        self._unhook()

    def _look(self) -> None:
        """Read where the library's own code is now, whose instructions are not counted. Called when
        that changes.

        The table before stays in memory, for host code that is looking at it.
        """
        self._own = self._memory.own_code.ranges()
        table = (ctypes.c_uint64 * (2 * len(self._own) + 1))(
            *(n for low, high in self._own for n in (low, high - low))
        )
        self._tables = [*self._tables[-1:], table]
        self._words[_RANGES] = 0
        self._words[_TABLE] = ctypes.addressof(table)
        self._words[_RANGES] = len(self._own)

    def _hook(self) -> None:
        """Add a hook on every instruction that counts: host code where there is any, else
        _tick().
        """
        engine = self._memory.engine
        if hostcode.available():
            self._hooks = [
                engine.hook(const.UC_HOOK_CODE, hostcode.address("tick"), data=self.address)
            ]
        else:
            self._hooks = [engine.hook(const.UC_HOOK_CODE, CODE(self._tick))]
        self._memory.engine.retranslate()

    def _unhook(self) -> None:
        """Remove the hook on every instruction."""
        for hook in self._hooks:
            self._memory.engine.unhook(hook)
        if self._hooks:
            self._hooks = []
            self._memory.engine.retranslate()

    def _tick(self, _uc: int, address: int, _size: int, _user: int) -> None:
        """Count an instruction, unless it is the library's own: the engine's callback, where there
        is no host code.
        """
        if not any(low <= address < high for low, high in self._own):
            self._words[_COUNT] += 1
