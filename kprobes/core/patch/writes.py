"""Watches for the guest's own writes to text that has patches, before they happen.

Only text that the guest may write is watched, and only where the engine can report accesses. The
engine asks each watch about each store, so there should be few: a watch is on a line of text (a
power of two bytes), and lines become longer when there are many.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import Unsupported
from ...machine._base import Machine, watching_of
from ...regs import Regs

SHORTEST = 16  # bytes of the shortest line
MOST = 8  # watches; for more, lines become longer

#: (addresses of the patches, address of the instruction that writes)
OnOverwrite = Callable[[list[int], int], None]


class Writes:
    """Watches the text that patches stand for.

    Attributes:
        changes: how often the permissions of guest memory have changed.
    """

    def __init__(self, machine: Machine) -> None:
        """Begin without watches.

        Args:
            machine: runs the guest; it reports accesses if it can.
        """
        self._machine = machine
        self._watching = machine.watching
        self.changes = 0
        self._on_overwrite: OnOverwrite | None = None
        self._kept: dict[int, int] = {}  # address of a patch -> the end of what it stands for
        self._line = SHORTEST  # bytes of a line
        self._lines: dict[int, set[int]] = {}  # start of a line -> addresses of patches in it
        self._ends: dict[int, Callable[[], None]] = {}  # start of a line -> what ends its watch
        self._writable: dict[int, bool] = {}  # page -> the guest may write it
        self._watchable = True

    def report_to(self, on_overwrite: OnOverwrite) -> None:
        """Have a function called before the guest writes over patches, from now on.

        Called once by each Kprobes of the machine, as it begins; until then nothing is reported.

        Args:
            on_overwrite: (addresses of the patches, address of the instruction that writes).
        """
        self._on_overwrite = on_overwrite

    def keep(self, addr: int, end: int) -> None:
        """Watch the text that a patch stands for, if the guest may write it and the machine can
        watch.

        If another end was given for this patch before, that watch ends; if it was the same, nothing
        happens.

        Args:
            addr: address of the patch, where its text begins.
            end: address behind the text.
        """
        if self._kept.get(addr) != end:
            self.drop(addr)
            self._kept[addr] = end
            if self._watchable and self.may_write(addr, end):
                self._watch(addr)

    def drop(self, addr: int) -> None:
        """Stop watching the text of the patch at an address.

        A watch ends with the last patch on its line; after the last watch, lines are as short as at
        first. Nothing happens where there is no patch.
        """
        end = self._kept.pop(addr, None)
        for line in () if end is None else self._lines_of(addr, end):
            here = self._lines.get(line, set())
            here.discard(addr)
            if not here and self._lines.pop(line, None) is not None:
                self._ends.pop(line)()
        if not self._lines:
            self._line = SHORTEST

    def protected(self, start: int, end: int) -> None:
        """Begin or end the watches of patches in a range whose permissions have changed, and add 1
        to `changes`.

        Args:
            start: address of the first byte of the range.
            end: address behind the last byte.
        """
        self._writable.clear()
        self.changes += 1
        for addr, behind in [(a, e) for a, e in self._kept.items() if a < end and start < e]:
            self.drop(addr)
            self.keep(addr, behind)

    def _lines_of(self, addr: int, end: int) -> range:
        """Return the starts of the lines that have a byte of [addr, end)."""
        return range(addr & -self._line, end, self._line)

    @property
    def watched(self) -> bool:
        """False once the machine has refused to watch: the guest's stores are not reported."""
        return self._watchable

    def may_write(self, addr: int, end: int) -> bool:
        """Return True where the guest may write a byte of [addr, end), as the machine knows.

        False also where the machine cannot watch memory: nothing can be said of its permissions
        then. The machine's answer is remembered for each page until the permissions change.

        Args:
            addr: address of the first byte.
            end: address behind the last byte.
        """
        size = self._machine.page_size
        for page in range(addr & -size, end, size):
            if page not in self._writable:
                self._writable[page] = self._watching is not None and self._watching.writable(page)
        return any(self._writable[page] for page in range(addr & -size, end, size))

    def _watch(self, addr: int) -> None:
        """Watch the lines of text that a patch lies on.

        Where there are more than MOST watches then, all lines become longer. Where the machine
        refuses a watch, `watched` becomes False for good, and writes are not looked at any more.

        Args:
            addr: address of the patch.
        """
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
            self._lengthen_lines(self._line * 4)

    def _lengthen_lines(self, line: int) -> None:
        """Replace all watches by watches of longer lines.

        Args:
            line: bytes of a line, a power of two.
        """
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
        """Find the patches that the guest is about to write over, and call the function of
        report_to() with them.

        The machine calls this before each store to a watched line.

        Args:
            regs: the registers at the store.
            address: address of the first byte that is stored.
            size: bytes that are stored.
            _data: what is stored, or None; it is not used.
        """
        near = set().union(
            *(self._lines.get(line, ()) for line in self._lines_of(address, address + size))
        )
        touched = sorted(
            addr for addr in near if addr < address + size and address < self._kept[addr]
        )
        if touched and self._on_overwrite is not None:
            self._on_overwrite(touched, regs.pc)
