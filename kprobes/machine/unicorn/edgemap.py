"""A fuzzer's map: how often each edge between two blocks of guest code is taken, counted into
memory of the caller's.

The map is AFL's: the number of an edge is the place of the block it leads to, exclusive or half the
place of the block it comes from, and at that number a counter of 8 bits. Host code fills it
(kprobes/native/edges.c); where there is none, Python counts the same. Comparisons are the engine's
reports, or what an architecture's package knows of (comparisons.py). Unlike BlockCounts this keeps
no table of blocks: a place is worked out of the address alone, so that every process finds the same
number for the same edge.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from operator import index

from unicorn import unicorn_const as const

from ...arch._rows import row
from ...arguments import shown
from ...errors import BadArgument, Unsupported
from .comparisons import InstructionComparisons
from .engine import CODE
from .guests.guest import Compares
from .host import hostcode
from .memory import GuestMemory
from .registers.cells import Cell

#: bytes of a map; the largest that AFL++'s old handshake can name
SMALLEST, LARGEST = 1 << 8, 1 << 23
#: words of struct edges
_MAP, _MASK, _BEFORE, _OWN, _OURS, _CHOSEN, _THEIRS, _BLOCK, _ORDER = range(9)
_NUMBERED = 48  #: the bit of a place's address at which a subtraction's number begins
_ALL = (1 << 64) - 1
_COMPARED = ctypes.CFUNCTYPE(
    None,
    ctypes.c_void_p,
    ctypes.c_uint64,
    ctypes.c_uint64,
    ctypes.c_uint64,
    ctypes.c_uint32,
    ctypes.c_void_p,
)

Spans = Sequence[tuple[int, int]]  #: (start, end) of guest addresses


def mixed(address: int) -> int:
    """Return a block's place in the map, before it is cut to the map's size: the finalizer of
    MurmurHash3 of its address.
    """
    address = (address ^ address >> 33) * 0xFF51AFD7ED558CCD & _ALL
    address = (address ^ address >> 33) * 0xC4CEB9FE1A85EC53 & _ALL
    return address ^ address >> 33


class EdgeMap:
    """Counts edges, and bytes that comparisons find equal, until close().

    A counter goes from 255 to 1. The library's own code is not counted.
    """

    def __init__(
        self,
        memory: GuestMemory,
        cells: Mapping[str, Cell],
        counters: ctypes.Array[ctypes.c_uint8],
        spans: Spans,
        comparisons: bool,
    ) -> None:
        """Count from now on.

        Args:
            memory: the guest's.
            cells: register -> its word in the engine.
            counters: the map, of a power of two bytes; the caller clears it.
            spans: (start, end) of guest code that is counted; empty: all of it.
            comparisons: True where equal bytes of comparisons are counted as well.

        Raises:
            BadArgument: the map is no array of bytes, or its size no power of two, or too small or
                too large; or spans are none.
            Unsupported: this architecture's comparisons cannot be seen.
        """
        if not isinstance(counters, ctypes.Array) or ctypes.sizeof(counters) != len(counters):
            raise BadArgument(
                f"counters is {shown(counters)}", hint="pass an array of ctypes.c_uint8"
            )
        comparing = None
        if comparisons:
            from ...arch._comparing import Comparing

            comparing = row(memory.arch, Comparing)
        if comparisons and memory.guest.blocks.compares is None and comparing is None:
            raise Unsupported(
                f"comparisons of {memory.arch.name} code cannot be seen on this engine",
                hint="leave them out, and give AFL++ a dictionary (-x)",
            )
        size = len(counters)
        if size & size - 1 or not SMALLEST <= size <= LARGEST:
            raise BadArgument(
                f"a map of {size} bytes", hint=f"take a power of two, {SMALLEST} to {LARGEST}"
            )
        self._memory = memory
        self._counters = memoryview(counters).cast("B")
        self._own: list[tuple[int, int]] = []
        self._spans = _checked(spans)
        self._tables: list[object] = []
        self._words = (ctypes.c_uint64 * 9)()
        self._words[_MAP], self._words[_MASK] = ctypes.addressof(counters), size - 1
        chosen = _table(self._spans)
        self._words[_CHOSEN], self._words[_THEIRS] = len(self._spans), ctypes.addressof(chosen)
        for kept in (self._words, counters, chosen):
            memory.engine.keep(kept)
        memory.own_code.on_change(self._look)
        self._look()
        self._hooks = self._added(comparisons and comparing is None)
        self._instructions = None
        if comparing is not None:
            self._instructions = InstructionComparisons(
                memory, cells, comparing, ctypes.addressof(self._words), self._compare
            )
        memory.engine.retranslate()

    def _added(self, comparisons: bool) -> list[int]:
        """Add the engine's hooks, and return their handles: one on each block, for edges, and one
        on comparisons if they are asked for.

        Args:
            comparisons: True: a hook on the comparisons that the engine reports is added as well.
        """
        engine, words = self._memory.engine, ctypes.addressof(self._words)
        host = hostcode.available()
        hooks = [
            engine.hook(
                const.UC_HOOK_BLOCK,
                hostcode.address("edge") if host else CODE(self._edge),
                data=words,
            )
        ]
        if comparisons:
            numbered = self._memory.guest.blocks.compares is Compares.SUBTRACTIONS
            name = "subtracted" if numbered else "compared"
            in_python = self._subtracted if numbered else self._compared
            called = hostcode.address(name) if host else _COMPARED(in_python)
            hooks.append(
                engine.hook(
                    const.UC_HOOK_TCG_OPCODE,
                    called,
                    data=words,
                    insn=const.UC_TCG_OP_SUB,
                    flags=0 if numbered else const.UC_TCG_OP_FLAG_CMP,
                )
            )
        return hooks

    def begin(self) -> None:
        """Let the next block have no block before it: a run begins."""
        self._words[_BEFORE] = 0

    def close(self) -> None:
        """Remove the hooks: nothing is counted any more. What was counted stays."""
        if self._instructions is not None:
            self._instructions.close()
        for hook in self._hooks:
            self._memory.engine.unhook(hook)
        if self._hooks:
            self._hooks = []
            self._memory.own_code.ignore(self._look)
            self._memory.engine.retranslate()

    def _look(self) -> None:
        """Read where the library's own code is now, which is not counted. Called when that changes.

        The table before stays in memory, for host code that is looking at it.
        """
        self._own = self._memory.own_code.ranges()
        table = _table(self._own)
        self._tables = [*self._tables[-1:], table]
        self._words[_OWN] = 0
        self._words[_OURS] = ctypes.addressof(table)
        self._words[_OWN] = len(self._own)

    # --- what host code does, where there is none

    def _counts(self, address: int) -> bool:
        """Return True for a guest address whose block or comparison is counted."""
        if any(start <= address < end for start, end in self._own):
            return False
        return not self._spans or any(start <= address < end for start, end in self._spans)

    def _add(self, number: int) -> None:
        """Count up a counter of the map; 255 is followed by 1.

        Args:
            number: of the counter.
        """
        self._counters[number] = self._counters[number] % 255 + 1

    def _edge(self, _uc: int, address: int, _size: int, _user: int) -> None:
        """Count the edge from the block before to the block at `address` in the map: the engine's
        callback, where there is no host code. The other arguments are not used.

        A block of the library's own code, or outside of the spans, is passed over: it is counted
        neither as the target of an edge nor as the block before.
        """
        self._words[_BLOCK], self._words[_ORDER] = address, 0
        if self._counts(address):
            place = mixed(address) & self._words[_MASK]
            self._add(self._words[_BEFORE] ^ place)
            self._words[_BEFORE] = place >> 1

    def _compared(
        self, _uc: int, address: int, one: int, other: int, bits: int, _user: int
    ) -> None:
        """Count the equal bytes of a comparison that the engine reports with its address: the
        engine's callback, where there is no host code.

        Args:
            _uc: not used.
            address: of the instruction.
            one: a value.
            other: the value that it is compared with.
            bits: of each; others than 16 to 64 are left out.
            _user: not used.
        """
        if 16 <= bits <= 64:
            self._compare(address, one, other, bits)

    def _subtracted(
        self, _uc: int, _address: int, one: int, other: int, bits: int, _user: int
    ) -> None:
        """Count the equal bytes of a subtraction of 16 to 64 bits: the engine's callback, where
        there is no host code.

        This engine does not tell the subtraction's address. Its block and its number in that stand
        for it.

        Args:
            _uc: not used.
            _address: not used.
            one: the first operand.
            other: the second operand.
            bits: of each.
            _user: not used.
        """
        self._words[_ORDER] += 1
        block = self._words[_BLOCK]
        if 16 <= bits <= 64 and self._counts(block):
            place = block ^ (self._words[_ORDER] << _NUMBERED & _ALL)
            self._count_equal(place, one, other, bits)

    def _compare(self, address: int, one: int, other: int, bits: int) -> None:
        """Count the equal bytes of a comparison's two values, if its address is one that is
        counted.

        Args:
            address: of the comparison.
            one: a value.
            other: the value that it is compared with.
            bits: of each.
        """
        if self._counts(address):
            self._count_equal(address, one, other, bits)

    def _count_equal(self, address: int, one: int, other: int, bits: int) -> None:
        """Count the leading bytes in which two values are equal, each in a counter of its own.

        It stops at the first byte that differs, and leaves the last byte out.

        Args:
            address: of the comparison, or another number that stands for it.
            one: a value.
            other: the value that it is compared with.
            bits: of each.
        """
        differs = (one ^ other) & (1 << bits) - 1
        place = mixed(~address & _ALL)
        for left in range(bits - 8, 0, -8):
            if differs >> left:
                return
            place += 1
            self._add(place & self._words[_MASK])


class LastBlocks:
    """Notes the blocks that the guest executes, until close().

    Attributes:
        addresses: of the blocks, the latest last; at most twice as many as asked for, after close()
            as many.
    """

    def __init__(self, memory: GuestMemory, most: int) -> None:
        """Note the blocks that are executed from now on, the last ones of them.

        Args:
            memory: the guest's.
            most: blocks that are kept.

        Raises:
            BadArgument: `most` is not positive.
        """
        if most < 1:
            raise BadArgument(f"most is {most}", hint="pass 1 or more")
        self._memory = memory
        self._most = most
        self.addresses: list[int] = []
        self._hook: int | None = memory.engine.hook(const.UC_HOOK_BLOCK, CODE(self._executed))
        memory.engine.retranslate()

    def _executed(self, _uc: int, address: int, _size: int, _user: int) -> None:
        """Note a block that is about to be executed, and forget the oldest ones where twice as many
        are noted as asked for: the engine's callback. Blocks of the library's own code are noted,
        too; close() leaves them out.
        """
        self.addresses.append(address)
        if len(self.addresses) > 2 * self._most:
            del self.addresses[: -self._most]

    def close(self) -> None:
        """Remove the hook, and cut `addresses` to the last ones that are outside of the library's
        own code.
        """
        if self._hook is not None:
            self._memory.engine.unhook(self._hook)
            self._memory.engine.retranslate()
            self._hook = None
            own = self._memory.own_code.ranges()
            kept = [at for at in self.addresses if not any(start <= at < end for start, end in own)]
            self.addresses = kept[-self._most :]


def _checked(spans: Spans) -> list[tuple[int, int]]:
    """Return the spans as pairs of integers.

    Raises:
        BadArgument: one of them is no range of guest addresses.
    """
    try:
        found = [(index(start), index(end)) for start, end in spans]
    except (TypeError, ValueError):
        found = [(1, 0)]
    if any(not 0 <= start <= end <= _ALL for start, end in found):
        raise BadArgument(
            f"spans is {shown(spans)}", hint="pass (start, end) of guest addresses, each an integer"
        )
    return found


def _table(spans: Spans) -> ctypes.Array[ctypes.c_uint64]:
    """Return spans as host code has them: words of 64 bits, (first address, bytes) of each.

    Args:
        spans: (start, end) of each.
    """
    words = [word for start, end in spans for word in (start, end - start)]
    return (ctypes.c_uint64 * (len(words) + 1))(*words)
