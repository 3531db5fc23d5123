"""Guest memory whose bytes have marks: what a heap check hands out."""

from __future__ import annotations

from collections.abc import Callable

from .._base import StateOwner, Watched
from .memory import GuestMemory
from .snapshot import Snapshots
from .watches import Watches


class HookedMarkedMemory:
    """Guest memory of which each byte has a mark; accesses to marked bytes are reported."""

    def __init__(self, memory: GuestMemory, watches: Watches, snapshots: Snapshots) -> None:
        """Prepare; nothing is marked.

        Args:
            memory: the guest's.
            watches: report accesses to it.
            snapshots: keep the knowledge of users of the machine, which goes back with the guest.
        """
        self._memory = memory
        self._watches = watches
        self._snapshots = snapshots

    @property
    def unwatchable(self) -> str:
        """Why accesses cannot be reported; "": they can."""
        return self._watches.unwatchable

    def map(self, size: int) -> int:
        """Hand out `size` bytes of zeroed guest memory, and return their address. NoMemory: there
        is no room.
        """
        return self._memory.alloc(size)

    def watch(self, start: int, marks: memoryview, report: Watched) -> Callable[[], None]:
        """Report accesses to bytes whose mark is not 0, each before it happens.

        A write of bytes that are marked UNWRITTEN only is not reported: it takes these marks away.

        Args:
            start: guest address of the first byte.
            marks: a mark for each byte from there.
            report: (registers, address, bytes, what is written or None) is called.

        Returns:
            A function that ends the reports.

        Raises:
            Unsupported: the engine cannot report accesses.
        """
        return self._watches.add_marked(start, marks, report)

    def keep_snapshot_state(self, owner: StateOwner) -> Callable[[], None]:
        """Have snapshots keep further state, which goes back with the guest.

        Args:
            owner: has the state, as its attribute `snapshot_state`.

        Returns:
            A function that ends that.
        """
        return self._snapshots.keep_snapshot_state(owner)
