"""Code in the guest that takes the lock of threads and stops, and code that gives it back and goes on."""

from __future__ import annotations

from collections.abc import Callable

from ...arch._base import Arch
from ...arch._detours import Saving

ROOM = 16  #: bytes of a jump, at most


class Locked:
    """Of one process.

    Attributes:
        trap: what stops threads. stands: where they stop with the lock -> for what.
    """

    def __init__(self, arch: Arch, take: Callable[[int, int], int], patch: Callable[[int, bytes], None]) -> None:
        """take: memory for code: (near, size)."""
        self._arch, self._take, self._patch = arch, take, patch
        self.trap = arch.end_bytes(min(arch.traps.end))
        self.stands: dict[int, int] = {}
        self._leads: dict[int, int] = {}  # for what -> code that takes the lock
        self._ways: dict[int, int] = {}  # target -> code that gives it back and goes there

    def by(self, saving: Saving, lock: int) -> None:
        """How registers are saved, and where the lock is."""
        self._saving, self._lock = saving, lock

    def lead(self, addr: int, mode: int = 0) -> bytes:
        """The jump that stands at an address, to where threads take the lock and stop. NoMemory, OutOfReach."""
        ahead, jump = self._saving.ahead.get(mode, b""), self._arch.jump
        assert jump is not None
        if addr not in self._leads:
            code = self._saving.around(self._saving.turn(self._lock)[0])
            place = self._leads[addr] = self._take(addr, len(code) + len(self.trap))
            self._patch(place, code + self.trap)
            self.stop_at(place + len(code), addr)
        return ahead + jump.encode(addr + len(ahead), self._leads[addr])

    def stop_at(self, place: int, addr: int) -> None:
        """There is a trap, for an address: pc is on it or behind it then."""
        self.stands.update((place + n, addr) for n in (0, len(self.trap)))

    def way(self, target: int) -> int:
        """Code that gives the lock back and goes to `target`, mode bits included."""
        if target not in self._ways:
            code = self._saving.around(self._saving.turn(self._lock)[1])
            place = self._take(target, len(code) + ROOM)
            self._patch(place, code + self._jump(place + len(code), target))
            self._ways[target] = place
        return self._ways[target]

    def _jump(self, place: int, target: int) -> bytes:
        if self._saving.far is not None:
            return self._saving.far(target)
        assert self._arch.jump is not None
        return self._arch.jump.encode(place, target)
