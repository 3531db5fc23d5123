"""How often each block of guest code is executed, and each edge between two: counted by host code,
in a table of its own.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.

A block is what the engine translates at a time: it ends where code branches, at the end of a page,
and where something of the library's stands. Python is called once for each, when it is seen first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from unicorn import unicorn_const as const

from .engine import CODE, address_of
from .host import hostcode
from .memory import GuestMemory
from .runstate import RunState

EDGES = 1 << 16  # bytes of the map of edges, as AFL has it
# for host code
_TABLE, _FACTOR, _MASK, _BEFORE, _EDGES, _END, _NEW, _ARCS, _ARCS_MASK, _LAST, _NEW_ARC = range(11)
_ADDRESS, _COUNT, _PLACE, _SIZE = range(4)  # words of a row
_EMPTY = _NOT_COUNTED = (1 << 64) - 1
_ARC = 3  # words of an edge: from, to, count
_NEW_EDGE = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint64)
# 2**64 by the golden ratio: what it is multiplied by is spread over the higher half
_GOLDEN = 0x9E3779B97F4A7C15


class HookedBlockCounts:
    """Counts the blocks outside of the library's own code that are executed, until close().

    Attributes:
        found: addresses of these blocks, in the order in which they were seen first.
        edges: AFL's map of 64 KiB: a byte for each edge's number, which counts to 255 and starts
            again.
    """

    def __init__(
        self, memory: GuestMemory, state: RunState, wanted: Callable[[int], bool] | None, arcs: bool
    ) -> None:
        """Count the blocks that are executed from now on. Blocks that are translated already count,
        too.

        Args:
            memory: the guest's.
            state: of its runs.
            wanted: (address) -> True where that block is to be counted; asked once about each
                block. None: all are counted.
            arcs: True: count each edge by itself as well, for arcs().
        """
        self._memory = memory
        self._state = state
        self._wanted = wanted
        self.found: list[int] = []
        self._rows: dict[int, int] = {}  # address -> first word of its row
        self._table = memoryview(b"").cast("B").cast("Q")
        self._own: list[int] = []  # blocks of the library's
        edges = (ctypes.c_uint8 * EDGES)()
        self.edges = memoryview(edges).cast("B")
        self._words = (ctypes.c_uint64 * 11)()
        self._words[_LAST] = _EMPTY
        self._arcs: dict[tuple[int, int], int] = {}  # edge -> first word of its row
        self._arc_table = memoryview(b"").cast("B").cast("Q")
        self._new_arc = _NEW_EDGE(self._arc_seen)
        self._words[_NEW_ARC] = address_of(self._new_arc)
        self._words[_FACTOR], self._words[_EDGES] = _GOLDEN, ctypes.addressof(edges)
        self._new = CODE(self._seen)
        self._words[_NEW] = address_of(self._new)
        for kept in (self._words, edges, self._new, self._new_arc):
            memory.engine.keep(kept)
        self._room(1 << 12)
        if arcs:
            self._arc_room(1 << 12)
        memory.blocks.on_change(self._look)
        function = hostcode.address("block") if hostcode.available() else CODE(self._count)
        self._hook: int | None = memory.engine.hook(
            const.UC_HOOK_BLOCK, function, data=ctypes.addressof(self._words)
        )
        memory.engine.retranslate()

    def close(self) -> None:
        """Remove the hook: nothing is counted any more. What was counted stays."""
        if self._hook is not None:
            self._memory.blocks.ignore(self._look)
            self._memory.engine.unhook(self._hook)
            self._memory.engine.retranslate()
            self._hook = None

    def rows(self, addresses: list[int]) -> list[tuple[int, int, int]]:
        """Return (address, bytes, how often executed) of blocks, in the order given.

        Args:
            addresses: of blocks in `found`.
        """
        rows, words = self._rows, self._table
        return [(addr, words[rows[addr] + _SIZE], words[rows[addr] + _COUNT]) for addr in addresses]

    def reset(self) -> None:
        """Set all counts to 0, of blocks and edges, and let the next block have no block before
        it. Blocks that were found stay in `found`, and edges in arcs().
        """
        for row in self._rows.values():
            self._table[row + _COUNT] = 0
        for row in self._arcs.values():
            self._arc_table[row + 2] = 0
        self.forget_edges()

    def arcs(self) -> list[tuple[int, int, int]]:
        """Return (block left, block entered, how often followed) of each edge, in the order in
        which they were seen first.

        The result is [] where edges are not counted one by one.
        """
        table = self._arc_table
        return [(edge[0], edge[1], table[row + 2]) for edge, row in self._arcs.items()]

    def forget_edges(self) -> None:
        """Set the counters of `edges` to 0, and let the next block have no block before it. Counts
        of blocks, and those that arcs() returns, stay.
        """
        ctypes.memset(self._words[_EDGES], 0, EDGES)
        self._words[_BEFORE], self._words[_LAST] = 0, _EMPTY

    # --- the table of edges

    def _arc_room(self, rows: int) -> None:
        """Replace the table of edges by a larger one, with the edges and counts so far.

        The table before stays in memory, for a hook that is looking at it.

        Args:
            rows: of the table, a power of two.
        """
        old, edges = self._arc_table, list(self._arcs.items())
        table = (ctypes.c_uint64 * (_ARC * rows))()
        ctypes.memset(table, 0xFF, ctypes.sizeof(table))
        self._memory.engine.keep(table)
        self._arc_table = memoryview(table).cast("B").cast("Q")
        self._arc_size = rows
        self._arcs = {}
        for edge, before in edges:
            self._put_arc(edge, old[before + 2])
        self._words[_ARCS], self._words[_ARCS_MASK] = ctypes.addressof(table), rows - 1

    def _put_arc(self, edge: tuple[int, int], count: int) -> None:
        """Add an edge to the table, in the first free row of those where host code looks for it.

        Args:
            edge: (block left, block entered).
            count: how often it was followed.
        """
        start, target = edge
        at = ((start * _GOLDEN ^ target) * _GOLDEN & _EMPTY) >> 32 & self._arc_size - 1
        while self._arc_table[_ARC * at] != _EMPTY:
            at = at + 1 & self._arc_size - 1
        row = self._arcs[edge] = _ARC * at
        for n, word in enumerate((start, target, count)):
            self._arc_table[row + n] = word

    def _arc_seen(self, start: int, target: int) -> None:
        """Add an edge that is followed for the first time, with a count of 1; the table is made
        larger where half of it is in use.

        Host code calls it; it never raises: an error is kept, and the run raises it.

        Args:
            start: address of the block that is left.
            target: address of the block that is entered.
        """
        try:
            if 2 * len(self._arcs) >= self._arc_size:
                self._arc_room(4 * self._arc_size)
            self._put_arc((start, target), 1)
        except BaseException as error:
            self._state.park(error)

    def _follow_arc(self, addr: int) -> None:
        """Count the edge from the block before to the block at `addr` in the table that arcs()
        returns, which has a row for each pair of blocks; nothing where there was no block before.
        The block at `addr` becomes the block before.

        Host code does that where there is some, but for blocks that are new.
        """
        start, self._words[_LAST] = self._words[_LAST], addr
        if start == _EMPTY:
            return
        row = self._arcs.get((start, addr))
        if row is None:
            self._arc_seen(start, addr)
        else:
            self._arc_table[row + 2] += 1

    # --- the table

    def _room(self, rows: int) -> None:
        """Replace the table of blocks by a larger one, with the blocks and counts so far.

        The table before stays in memory, for a hook that is looking at it.

        Args:
            rows: of the table, a power of two.
        """
        old, addresses = (self._table, list(self._rows)) if self._rows else (None, [])
        table = (ctypes.c_uint64 * (4 * rows))()
        ctypes.memset(table, 0xFF, ctypes.sizeof(table))
        self._memory.engine.keep(table)
        self._table = memoryview(table).cast("B").cast("Q")
        self._size = rows
        self._mask = rows - 1
        moved: dict[int, int] = {}
        for addr in addresses:
            before, row = self._rows[addr], self._free(addr)
            assert old is not None
            self._table[row : row + 4] = old[before : before + 4]
            moved[addr] = row
        self._rows = moved
        self._words[_TABLE], self._words[_MASK] = ctypes.addressof(table), self._mask
        self._words[_END] = ctypes.addressof(table) + ctypes.sizeof(table)

    def _free(self, addr: int) -> int:
        """Return the place of a free row in the table of blocks: the first one where host code
        looks for the block at `addr`.

        The place is the index of the row's first word.
        """
        at = (addr * _GOLDEN & _EMPTY) >> 32 & self._mask
        while self._table[4 * at + _ADDRESS] != _EMPTY:
            at = (at + 1) % self._size
        return 4 * at

    def _seen(self, _uc: int, addr: int, size: int, _user: int) -> None:
        """Add a block that is about to be executed for the first time, and count it and the edge to
        it; the table is made larger where half of it is in use.

        It is added without being counted where it is the library's own, or is not wanted (`wanted`
        is asked here). This is the engine's callback, or is called by host code; it never raises:
        an error is kept, and the run raises it.

        Args:
            _uc: not used.
            addr: address of the block.
            size: its bytes.
            _user: not used.
        """
        try:
            if 2 * len(self._rows) >= self._size:
                self._room(4 * self._size)
            row = self._rows[addr] = self._free(addr)
            own = self._memory.own.has(self._memory.windows.place(addr))
            left_out = not own and self._wanted is not None and not self._wanted(addr)
            for n, word in enumerate(
                (addr, 1, _NOT_COUNTED if own or left_out else _place(addr), size)
            ):
                self._table[row + n] = word
            if own:
                self._own.append(addr)
            elif not left_out:
                self.found.append(addr)
                self._edge(addr, _place(addr))
        except BaseException as error:
            self._state.park(error)

    def _count(self, uc: int, addr: int, size: int, user: int) -> None:
        """Count a block and the edge to it; at a block's first time _seen() does it. A block that
        is the library's own, or is not wanted, has no edge and is not in `found`.

        The engine calls this for each block where there is no host code.

        Args:
            uc: the engine's handle, not used.
            addr: address of the block.
            size: its bytes.
            user: not used.
        """
        row = self._rows.get(addr)
        if row is None:
            self._seen(uc, addr, size, user)
            return
        self._table[row + _COUNT] += 1
        if self._table[row + _PLACE] != _NOT_COUNTED:
            self._edge(addr, self._table[row + _PLACE])

    def _edge(self, addr: int, place: int) -> None:
        """Count the edge from the block before to this one, in `edges` and, if asked for, one by
        one.

        Args:
            addr: address of this block.
            place: this block's number in the map of edges (_place()).
        """
        number = self._words[_BEFORE] ^ place
        self.edges[number] = self.edges[number] + 1 & 0xFF
        self._words[_BEFORE] = place >> 1
        if self._words[_ARCS]:
            self._follow_arc(addr)

    def _look(self) -> None:
        """Count blocks from now on that were the library's code when they were seen, and are the
        guest's now, if they are wanted. Called when mappings have changed; does nothing after
        close().
        """
        if self._hook is None:
            return
        own, place = self._memory.own, self._memory.windows.place
        for addr in [addr for addr in self._own if not own.has(place(addr))]:
            self._own.remove(addr)
            if self._wanted is not None and not self._wanted(addr):
                continue
            self.found.append(addr)
            row = self._rows[addr]
            self._table[row + _COUNT], self._table[row + _PLACE] = 0, _place(addr)


def _place(addr: int) -> int:
    """Return the number of the block at `addr` in the map of edges, as AFL's QEMU has it:
    neighbouring addresses get numbers far from each other.
    """
    return (addr >> 4 ^ addr << 8) & EDGES - 1
