"""Guest memory whose bytes have marks: what a heap check hands out."""

from __future__ import annotations

from collections.abc import Callable

from .._base import Books, Watched
from .memory import GuestMemory
from .snapshot import Snapshots
from .watches import Watches


class HookedMarkedMemory:
    """Mark bytes of guest memory, and report accesses to marked ones."""

    def __init__(self, memory: GuestMemory, watches: Watches, snapshots: Snapshots) -> None:
        """
        Args:
            memory: the guest's.
            watches: report accesses to it.
            snapshots: keep books.
        """
        self._memory = memory
        self._watches = watches
        self._snapshots = snapshots

    @property
    def unwatchable(self) -> str:
        """Why accesses cannot be reported; "": they can."""
        return self._watches.unwatchable

    def map(self, size: int) -> int:
        """Map zeroed memory, and return its address. Raises NoMemory."""
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

    def keep_books(self, books: Books) -> Callable[[], None]:
        """Have books go back with the guest; returns what ends it."""
        return self._snapshots.keep_books(books)
