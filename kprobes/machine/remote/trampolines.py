"""Trampolines of a process whose threads take turns: into the lock, to a stop, and out of the lock
again.

A jump at a probed address leads to an entry trampoline, which saves all registers, takes the lock,
puts the registers back, and ends in a trap. The thread goes on by an exit trampoline, which gives
the lock back and jumps to its target.
"""

from __future__ import annotations

from collections.abc import Callable

from ...arch._base import Arch
from ...arch._detours import Saving

ROOM = 16  #: bytes of a jump, at most


class LockTrampolines:
    """The trampolines of one process.

    Attributes:
        trap: bytes of the instruction that stops a thread with the lock.
        stops: pc of a thread that has stopped with the lock -> the address that it had come to.
    """

    def __init__(
        self, arch: Arch, take: Callable[[int, int], int], patch: Callable[[int, bytes], None]
    ) -> None:
        """Prepare; use_lock() comes before the first trampoline.

        Args:
            arch: the guest's architecture.
            take: (near, bytes) -> address of executable memory near an address.
            patch: (address, code) writes code there.
        """
        self._arch = arch
        self._take = take
        self._patch = patch
        self.trap = arch.end_bytes(min(arch.traps.end))
        self.stops: dict[int, int] = {}
        self._entries: dict[int, int] = {}  # address -> its entry trampoline
        self._exits: dict[int, int] = {}  # target -> its exit trampoline

    def use_lock(self, saving: Saving, lock: int) -> None:
        """Set the lock and the code that new trampolines use. Called before the first one is made.

        Args:
            saving: saves and restores the architecture's registers.
            lock: address of the lock, a word.
        """
        self._saving = saving
        self._lock = lock

    def jump_in(self, addr: int, mode: int = 0) -> bytes:
        """Return the jump that is to stand at a probed address, to the entry trampoline of that
        address.

        The trampoline is written to guest memory if there is none, and its trap noted in `stops`;
        the jump is not written.

        Args:
            addr: the address.
            mode: mode bits of the code there; not 0: Thumb.

        Raises:
            NoMemory: there is no room for the trampoline.
            OutOfReach: it is farther away than a jump leads.
        """
        ahead = self._saving.ahead.get(mode, b"")
        jump = self._arch.jump
        assert jump is not None
        if addr not in self._entries:
            code = self._saving.around(self._saving.turn(self._lock)[0])
            place = self._take(addr, len(code) + len(self.trap))
            self._entries[addr] = place
            self._patch(place, code + self.trap)
            self.add_stop(place + len(code), addr)
        return ahead + jump.encode(addr + len(ahead), self._entries[addr])

    def add_stop(self, place: int, addr: int) -> None:
        """Note in `stops` that a trap stops threads that have come to a probed address.

        A stub may show the pc of the trap or behind it: both are noted.

        Args:
            place: address of the trap.
            addr: the probed address.
        """
        self.stops[place] = addr
        self.stops[place + len(self.trap)] = addr

    def way_out(self, target: int) -> int:
        """Return the address of the exit trampoline that gives the lock back and leads to `target`.
        The trampoline is written to guest memory if there is none.

        Args:
            target: address, mode bits included.

        Raises:
            NoMemory: there is no room for the trampoline.
            OutOfReach: no jump leads to `target` from memory that is free.
        """
        if target not in self._exits:
            code = self._saving.around(self._saving.turn(self._lock)[1])
            place = self._take(target, len(code) + ROOM)
            self._patch(place, code + self._jump(place + len(code), target))
            self._exits[target] = place
        return self._exits[target]

    def _jump(self, place: int, target: int) -> bytes:
        """Return the bytes of a jump from `place` to `target`; a far one where the architecture has
        such.
        """
        if self._saving.far is not None:
            return self._saving.far(target)
        assert self._arch.jump is not None
        return self._arch.jump.encode(place, target)
