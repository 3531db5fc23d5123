"""Where things go in guest memory: gaps between mappings, and a small heap."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import GuestFault, NoMemory

PAGE = 0x1000
LOWEST = 0x1000  # page 0 stays unmapped: null pointers fault
ARENA = 0x10000


def find_gap(regions: list[tuple[int, int]], size: int, near: int, bits: int, align: int = PAGE) -> int:
    """Address of `size` free bytes as close to `near` as possible, aligned to whole pages or to `align`.

    regions: sorted (start, end) of what is mapped. Addresses stay in the lower half of a 64-bit space and below 2 GiB in
    a 32-bit one (kernel halves are special on x86, MIPS and SPARC), unless `near` is above. NoMemory where there is no gap.
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


class Heap:
    """16-byte aligned blocks for arguments and scratch; arenas of 64 KiB, larger blocks mapped on their own."""

    def __init__(self, map_pages: Callable[[int], int], unmap: Callable[[int, int], None]) -> None:
        self._map, self._unmap = map_pages, unmap
        self._free: dict[int, list[int]] = {}  # rounded size -> blocks
        self._used: dict[int, int] = {}
        self._next = self._end = 0

    def alloc(self, size: int) -> int:
        """Address of a new block of `size` bytes."""
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
        """Give a block back."""
        size = self._used.pop(block, None)
        if size is None:
            raise GuestFault("was not allocated here", address=block)
        if size > ARENA // 2:
            self._unmap(block, size)
        else:
            self._free.setdefault(size, []).append(block)
