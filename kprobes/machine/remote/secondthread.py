"""The call by which a process under QEMU's user mode makes its second thread: clone() with CLONE_VM
(clone(2)).

QEMU stops the process before the call, whichever function makes it. No other code can be executed
at that stop: QEMU goes on with the call. So the caller and the new thread are caught behind it, in
a jump to itself; a step of that jump stops the caller alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arch._linux import Linux
from ...arch._rows import row
from ...errors import RemoteError
from .linux import told_clone, told_ends
from .stopreplies import StopReply
from .target import RemoteTarget
from .threads import RemoteThreads

VM, VFORK = 0x100, 0x4000  #: flags of clone(); QEMU makes a process of a call with both
STEPS = 64  #: stops until the call is over: signals


class SecondThread:
    """Notices and catches the system call by which a process of one thread makes its second one."""

    def __init__(self, guest: Any, target: RemoteTarget, threads: RemoteThreads) -> None:
        """Prepare; watch() begins.

        Args:
            guest: the process's machine.
            target: the stub.
            threads: the process's threads, and their registers.
        """
        self._arch = guest.arch
        self._target = target
        self._threads = threads

    def watch(self) -> bool:
        """Have the stub stop before the system calls clone(), exit() and exit_group() from now on.

        Returns:
            False where the stub cannot report single system calls, or not clone(): nothing was
            asked of it.
        """
        clone = told_clone(self._arch)
        if clone is None or not self._target.tells_calls:
            return False
        self._target.report_calls((*told_ends(self._arch), clone))
        return True

    def made_by(self, call: int | None) -> bool:
        """Return True where a system call makes a thread: clone() with the flag CLONE_VM, and not a
        vfork().

        Args:
            call: number of the call that the current thread is about to make; None: it makes none.
        """
        linux = row(self._arch, Linux)
        if linux is None or linux.memory is None or linux.clone is None or call != linux.clone:
            return False
        flags: int = self._regs[linux.memory.args[linux.clone_flags]]
        return flags & (VM | VFORK) == VM

    def catch(
        self, step: Callable[[str], StopReply], keep: Callable[[StopReply], bool]
    ) -> tuple[int, int, bytes]:
        """Have the current thread make the system call, and keep both threads at the instruction
        behind it.

        A jump to itself is written there. The caller of this method puts the bytes back.

        Args:
            step: (thread) has a thread make one step; returns the stop that ended it.
            keep: (stop) -> True for a stop that is something else, which it has dealt with or kept
                for later.

        Returns:
            (address where both threads are, its mode bits, the bytes that belong there).

        Raises:
            RemoteError: the call does not end.
        """
        at = self._regs.pc
        thread = self._threads.name
        jump = self._arch.jump
        pointers = self._arch.pointers
        assert jump is not None
        mode = pointers.same_mode(self._regs, at) & pointers.mode_bits
        to_itself = bytes(jump.modes.get(mode, jump).encode(at, at))
        was = self._target.read(at, len(to_itself))
        self._target.write(at, to_itself)
        for _ in range(STEPS):
            stop = step(thread)
            if not keep(stop) and self._regs.pc == at:
                return at, mode, was
        raise RemoteError(
            "the process makes its second thread without end",
            hint="the machine is gone: start another",
        )

    @property
    def _regs(self) -> Any:
        """Registers of the current thread."""
        return self._threads.regs[self._threads.current]
