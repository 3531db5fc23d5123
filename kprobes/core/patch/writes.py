"""The guest's own writes to text that patches of ours stand in, noticed before they happen.

Only text that the guest may write is watched, and only where the engine reports accesses without
changing what the guest does. A watch is on a line of text; lines become longer when there are many,
as the engine asks each watch about each store.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import Unsupported
from ...machine._base import Machine, watching_of
from ...regs import Regs

SHORTEST = 16  # bytes of a line
MOST = 8  # watches

Told = Callable[[list[int], int], None]  # (addresses of patches, pc of who writes)


class Writes:
    """Watches the bytes that patches stand for."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._watching = machine.watching
        self._kept: dict[int, int] = {}  # address of a patch -> the end of what it stands for
        self._lines: dict[int, set[int]] = {}  # start of a line -> patches in it
        self._ends: dict[int, Callable[[], None]] = {}  # start of a line -> what ends its watch
        self._line = SHORTEST
        self._writable: dict[int, bool] = {}  # page -> may the guest write it
        self._watchable = True
        self.changes = 0  #: how often what the guest may write was another thing
        self.told: Told | None = None  #: called before the guest writes there

    def keep(self, addr: int, end: int) -> None:
        """Watch the text beneath a patch, from `addr` up to `end`, where the guest may write it."""
        if self._kept.get(addr) != end:
            self.drop(addr)
            self._kept[addr] = end
            if self._watchable and self.may_write(addr, end):
                self._watch(addr)

    def drop(self, addr: int) -> None:
        """Stop watching the text kept at `addr`."""
        end = self._kept.pop(addr, None)
        for line in () if end is None else self._lines_of(addr, end):
            here = self._lines.get(line, set())
            here.discard(addr)
            if not here and self._lines.pop(line, None) is not None:
                self._ends.pop(line)()
        if not self._lines:
            self._line = SHORTEST

    def protected(self, start: int, end: int) -> None:
        """Look again at [start, end), whose permissions have changed."""
        self._writable.clear()
        self.changes += 1
        for addr, behind in [(a, e) for a, e in self._kept.items() if a < end and start < e]:
            self.drop(addr)
            self.keep(addr, behind)

    def _lines_of(self, addr: int, end: int) -> range:
        return range(addr & -self._line, end, self._line)

    @property
    def watched(self) -> bool:
        """False where the guest's stores are not reported, as far as is known."""
        return self._watchable

    def may_write(self, addr: int, end: int) -> bool:
        """Return True where the guest may write some of [addr, end)."""
        size = self._machine.page_size
        for page in range(addr & -size, end, size):
            if page not in self._writable:
                self._writable[page] = self._watching is not None and self._watching.writable(page)
        return any(self._writable[page] for page in range(addr & -size, end, size))

    def _watch(self, addr: int) -> None:
        for line in self._lines_of(addr, self._kept[addr]):
            self._lines.setdefault(line, set()).add(addr)
            if line not in self._ends and self._watchable:
                try:
                    self._ends[line] = watching_of(self._machine).watch_at(
                        line, self._line, "w", self._written
                    )
                except Unsupported:
                    self._watchable = False
        if not self._watchable:
            self._lines.clear()
        while len(self._ends) > MOST:
            self._cut(self._line * 4)

    def _cut(self, line: int) -> None:
        """Change the length of lines."""
        addrs = set().union(*self._lines.values())
        for end in self._ends.values():
            end()
        self._lines = {}
        self._ends = {}
        self._line = line
        for addr in addrs:
            for start in self._lines_of(addr, self._kept[addr]):
                self._lines.setdefault(start, set()).add(addr)
        watch = watching_of(self._machine).watch_at
        self._ends = {start: watch(start, line, "w", self._written) for start in self._lines}

    def _written(self, regs: Regs, address: int, size: int, _data: bytes | None) -> None:
        """The guest is about to write."""
        near = set().union(
            *(self._lines.get(line, ()) for line in self._lines_of(address, address + size))
        )
        touched = sorted(
            addr for addr in near if addr < address + size and address < self._kept[addr]
        )
        if touched and self.told is not None:
            self.told(touched, regs.pc)
