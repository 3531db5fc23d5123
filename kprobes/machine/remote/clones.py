"""The second thread of a process under QEMU's user mode, noticed where the first asks Linux for it, whoever does that:
clone() with CLONE_VM (clone(2)).

At the stop before a call no other code can be executed: QEMU goes on with the call. So the caller and the new thread
wait behind it, in a jump to itself; a step of that stops the caller alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arch._linux import Linux
from ...arch._rows import row
from ...errors import RemoteError
from .linux import told_clone, told_ends
from .reasons import Stop
from .target import Target
from .threads import Threads

VM, VFORK = 0x100, 0x4000  #: QEMU makes a process of what has both
STEPS = 64  #: stops until the call is over: signals


class Clones:
    """Of one process that has a single thread."""

    def __init__(self, guest: Any, target: Target, threads: Threads) -> None:
        self._arch, self._target, self._threads = guest.arch, target, threads

    def watch(self) -> bool:
        """Stop before such calls from now on; False where nobody tells of them."""
        clone = told_clone(self._arch)
        if clone is None or not self._target.tells_calls:
            return False
        self._target.report_calls((*told_ends(self._arch), clone))
        return True

    def made_by(self, call: int | None) -> bool:
        """Whether the system call that the thread stands before gives the process another thread."""
        linux = row(self._arch, Linux)
        if linux is None or linux.memory is None or linux.clone is None or call != linux.clone:
            return False
        flags: int = self._regs[linux.memory.args[linux.clone_flags]]
        return flags & (VM | VFORK) == VM

    def let(self, step: Callable[[str], Stop], other: Callable[[Stop], bool]) -> tuple[int, int, bytes]:
        """The call is made; both threads stay behind it, and the caller stands there: (address, its mode, what belongs
        there). step: has a thread make one; other: whether a stop is something else, which it keeps. RemoteError."""
        at, thread = self._regs.pc, self._threads.name
        jump, pointers = self._arch.jump, self._arch.pointers
        assert jump is not None
        mode = pointers.same_mode(self._regs, at) & pointers.mode_bits
        stay = bytes(jump.modes.get(mode, jump).encode(at, at))
        was = self._target.read(at, len(stay))
        self._target.write(at, stay)
        for _ in range(STEPS):
            stop = step(thread)
            if not other(stop) and self._regs.pc == at:
                return at, mode, was
        raise RemoteError("the process makes its second thread without end", hint="the machine is gone: start another")

    @property
    def _regs(self) -> Any:
        return self._threads.regs[self._threads.current]
