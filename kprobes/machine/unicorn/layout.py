"""Chooses addresses in guest memory: gaps between mappings, and a small heap.

A place is an address "as the engine has it": the one that the engine's functions take, which
differs from the guest's where guest addresses have segments (windows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from unicorn import unicorn_const as const

from ...errors import BadArgument, GuestFault, KprobeError, NoMemory

PAGE = 0x1000
LOWEST = 0x1000  # page 0 stays unmapped: null pointers fault
ARENA = 0x10000


def find_gap(
    regions: list[tuple[int, int]], size: int, near: int, bits: int, align: int = PAGE
) -> int:
    """Return the address of free memory as close to an address as possible.

    Addresses stay in the lower half of a 64-bit space and below 2 GiB in a 32-bit one (kernel
    halves are special on x86, MIPS and SPARC), unless `near` is above.

    Args:
        regions: sorted (start, end) of what is mapped.
        size: bytes.
        near: the address.
        bits: of an address.
        align: bytes, a multiple of a page's.

    Raises:
        NoMemory: there is no gap.
    """
    half = 1 << min(bits - 1, 46)
    limit = half if near < half else 1 << bits
    size = -(-size // PAGE) * PAGE
    best = None
    start = LOWEST
    for low, high in [*regions, (limit, limit)]:
        start = -(-start // align) * align
        if low - start >= size:
            at = min(max(near & -align, start), (low - size) & -align)
            if at >= start and (best is None or abs(at - near) < abs(best - near)):
                best = at
        start = max(start, -(-high // PAGE) * PAGE)
    if best is None:
        raise NoMemory(f"no gap of {size:#x} bytes", address=near, hint="unmap something")
    return best


def whole(size: int, page: int) -> int:
    """Return a number of bytes rounded up to whole pages.

    Args:
        size: bytes.
        page: bytes of a page.
    """
    return -(-size // page) * page


def pages_end(addr: int, size: int, page: int, error: type[KprobeError] = BadArgument) -> int:
    """Check that a range begins at a page, and return the address behind its last page.

    Args:
        addr: of the first page.
        size: bytes, which are rounded up to whole pages.
        page: bytes of a page.
        error: class of the exception that is raised where `addr` is no page's, or `size` not above
            0.

    Raises:
        BadArgument: they are no integers.
    """
    if not isinstance(addr, int) or not isinstance(size, int):
        raise BadArgument(f"{size!r} bytes at {addr!r} are no pages", hint="pass integers")
    if size <= 0 or addr < 0 or addr % page:
        raise error(
            f"{size:#x} bytes at {addr:#x} are no pages", hint=f"pages have {page:#x} bytes here"
        )
    return addr + whole(size, page)


def permissions(perms: str) -> int:
    """Return the engine's permission bits for some of the letters r, w and x, as "rx" or "r-x"; ""
    and "-" stand for none. BadArgument: there are other letters.
    """
    bits = {"r": const.UC_PROT_READ, "w": const.UC_PROT_WRITE, "x": const.UC_PROT_EXEC, "-": 0}
    if not set(perms) <= set(bits):
        raise BadArgument(f"no permissions: {perms!r}", hint="pass some of r, w and x")
    return sum(bits[c] for c in set(perms))


class OwnPages(dict[int, int]):
    """Ranges of guest memory that only the library may unmap: its own code, and what alloc() hands
    out.

    Start -> end, each as the engine has it.
    """

    def add(self, place: int, size: int) -> None:
        """Add the range [place, place + size)."""
        self[place] = place + size

    def has(self, place: int) -> bool:
        """Return True for an address, as the engine has it, in one of the ranges."""
        return any(start <= place < end for start, end in self.items())

    def check(self, place: int, size: int) -> None:
        """Check that [place, place + size) touches none of the ranges.

        Args:
            place: address of the first byte, as the engine has it.
            size: bytes.

        Raises:
            BadArgument: it touches one.
        """
        for start, end in self.items():
            if start < place + size and place < end:
                raise BadArgument(
                    f"[{start:#x}, {end:#x}) is the library's own memory",
                    hint="leave it out; it goes with the probes that need it",
                )

    def only(self, ranges: Iterable[tuple[int, int]], code: Callable[[int], bool]) -> None:
        """Replace all ranges but those of code by others.

        Args:
            ranges: (start, end) of the new ones.
            code: (start of a range) -> True where the range is code.
        """
        left = {start: end for start, end in self.items() if code(start)}
        self.clear()
        self.update(left)
        self.update(ranges)


class Heap:
    """Hands out blocks of guest memory, aligned to 16 bytes, for arguments and scratch.

    Small blocks are pieces of arenas of 64 KiB; those above 32 KiB are mapped on their own.
    """

    def __init__(self, map_pages: Callable[[int], int], unmap: Callable[[int, int], None]) -> None:
        """Prepare; nothing is mapped.

        Args:
            map_pages: (bytes) -> address of new memory.
            unmap: (address, bytes) unmaps it.
        """
        self._map = map_pages
        self._unmap = unmap
        self._free: dict[int, list[int]] = {}  # rounded size -> blocks
        self._used: dict[int, int] = {}
        self._next = self._end = 0

    @property
    def snapshot_state(self) -> tuple[dict[int, list[int]], dict[int, int], int, int]:
        """The used and free blocks, as a copy for a snapshot; setting it goes back to such a
        copy.
        """
        return (
            {size: blocks.copy() for size, blocks in self._free.items()},
            self._used.copy(),
            self._next,
            self._end,
        )

    @snapshot_state.setter
    def snapshot_state(self, then: tuple[dict[int, list[int]], dict[int, int], int, int]) -> None:
        """Set the used and free blocks to what a snapshot has kept; guest memory is not touched."""
        if self._free != then[0]:
            self._free = {size: blocks.copy() for size, blocks in then[0].items()}
        if self._used != then[1]:
            self._used = then[1].copy()
        self._next = then[2]
        self._end = then[3]

    def alloc(self, size: int) -> int:
        """Return the address of a new block of `size` bytes. It is not cleared.

        Raises:
            NoMemory: there is no room, or `size` is negative.
        """
        if size < 0:
            raise NoMemory(f"size {size} is negative", hint="ask for 0 bytes or more")
        rounded = -(-max(size, 1) // 16) * 16
        if rounded > ARENA // 2:
            rounded = -(-rounded // PAGE) * PAGE
            block = self._map(rounded)
        elif self._free.get(rounded):
            block = self._free[rounded].pop()
        else:
            if self._end - self._next < rounded:
                self._next = self._map(ARENA)
                self._end = self._next + ARENA
            block = self._next
            self._next += rounded
        self._used[block] = rounded
        return block

    def free(self, block: int) -> None:
        """Take a block back, which alloc() may hand out again; one that was mapped on its own is
        unmapped.

        Args:
            block: its address.

        Raises:
            GuestFault: alloc() has not returned this address, or it was given back already.
        """
        size = self._used.pop(block, None)
        if size is None:
            raise GuestFault("was not allocated here", address=block, by_python=True)
        if size > ARENA // 2:
            self._unmap(block, size)
        else:
            self._free.setdefault(size, []).append(block)


class OwnCode:
    """Ranges of guest memory that hold code of the library's."""

    def __init__(self) -> None:
        """Prepare; there are no ranges."""
        self._sizes: dict[int, int] = {}
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, changed: Callable[[], None]) -> None:
        """Have a function called, without arguments, whenever ranges come or go, until ignore()."""
        self._listeners.append(changed)

    def ignore(self, changed: Callable[[], None]) -> None:
        """Stop calling a function that was given to on_change(). Others are left as they are."""
        if changed in self._listeners:
            self._listeners.remove(changed)

    def add(self, addr: int, size: int) -> None:
        """Add the range [addr, addr + size), and call the listeners."""
        self._sizes[addr] = size
        self._tell()

    def remove(self, addr: int) -> None:
        """Remove the range that begins at `addr`, if there is one, and call the listeners."""
        if self._sizes.pop(addr, 0):
            self._tell()

    def _tell(self) -> None:
        """Call the functions given to on_change()."""
        for changed in [*self._listeners]:
            changed()

    def ranges(self) -> list[tuple[int, int]]:
        """Return (start, end) of all ranges, by address; neighbours are joined."""
        out: list[tuple[int, int]] = []
        for start, size in sorted(self._sizes.items()):
            if out and out[-1][1] == start:
                out[-1] = out[-1][0], start + size
            else:
                out.append((start, start + size))
        return out
