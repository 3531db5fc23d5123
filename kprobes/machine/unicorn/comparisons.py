"""Comparisons of guest code, on engines that do not report them.

Each instruction is looked at once; those that compare are looked up when they are executed.

Host code (kprobes/native/edges.c, `compares`) does that; where there is none, Python does the same.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from unicorn import unicorn_const as const

from ...arch._base import Arch
from ...errors import GuestFault
from .engine import CODE, address_of
from .host import hostcode
from .memory import GuestMemory
from .registers.cells import Cell

if TYPE_CHECKING:
    from ...arch._comparing import Comparing, OperandComparison, Value

#: words of struct instructions
_EDGES, _FACTOR, _MASK, _TABLE, _FRESH, _WIDE, _SWAPPED, _BLOCKS = range(8)
_ROW = 10  #: words of struct instruction: address, bits, and four of each value
_EMPTY = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  #: 2**64 by the golden ratio
_FIRST = 1 << 12  #: rows at first

#: (address of the instruction, one value, the other, bits of both)
Counted = Callable[[int, int, int, int], None]


class InstructionComparisons:
    """Counts the equal bytes of comparisons that the guest executes, until close()."""

    def __init__(
        self,
        memory: GuestMemory,
        cells: Mapping[str, Cell],
        comparing: Comparing,
        edges: int,
        count: Counted,
    ) -> None:
        """Look at each instruction that the guest executes from now on.

        Args:
            memory: the guest's.
            cells: register -> its word in the engine; values in other registers are not seen.
            comparing: says which instructions compare.
            edges: address of the map's words, for host code.
            count: (address of the instruction, one value, the other, bits of both) counts equal
                bytes, where there is no host code.
        """
        self._memory = memory
        self._arch: Arch = memory.arch
        self._cells = cells
        self._comparing = comparing
        self._count = count
        self._known: dict[int, OperandComparison | None] = {}
        self._words = (ctypes.c_uint64 * 8)()
        self._fresh = CODE(self._seen)
        widths = {cell.view.itemsize for cell in cells.values()}
        self._words[_EDGES], self._words[_FACTOR] = edges, _GOLDEN
        self._words[_FRESH] = address_of(self._fresh)
        self._words[_WIDE] = int(widths == {8})
        self._words[_SWAPPED] = int(self._arch.order.value != sys.byteorder)
        self._words[_BLOCKS] = memory.block_table.address
        for kept in (self._words, self._fresh):
            memory.engine.keep(kept)
        self._make_room(_FIRST)
        called = hostcode.address("compares") if hostcode.available() else CODE(self._executed)
        self._hook: int | None = memory.engine.hook(
            const.UC_HOOK_CODE, called, data=ctypes.addressof(self._words)
        )

    def close(self) -> None:
        """Remove the hook: no comparison is counted any more."""
        if self._hook is not None:
            self._memory.engine.unhook(self._hook)
            self._hook = None

    # --- instructions that are new

    def _found(self, address: int) -> OperandComparison | None:
        """Return what an instruction compares, where host code can look at it.

        Args:
            address: of the instruction.

        Returns:
            None: the instruction is no comparison, or one of fewer than 16 bits, or with a register
            that has no cell; or its bytes cannot be read.
        """
        for size in (self._arch.max_insn, self._arch.insn_align):
            try:
                code = self._memory.read(address, size)
            except GuestFault:  # the last one before a page that is not mapped
                continue
            found = self._comparing.find(code, address)
            sides = () if found is None else (found.one, found.other)
            parts = [part for side in sides for part in (side.base, side.index) if part is not None]
            known = all(self._arch.regs.names[part] in self._cells for part in parts)
            return found if known and found is not None and found.bits >= 16 else None
        return None

    def _seen(self, _uc: int, address: int, _size: int, _user: int) -> None:
        """Look at an instruction that is executed for the first time, and note for host code
        whether it compares, and what. The engine's callback, or called by host code.

        Args:
            _uc: not used.
            address: of the instruction.
            _size: not used.
            _user: not used.
        """
        if address not in self._known:
            self._known[address] = self._found(address)
            if 2 * len(self._known) > self._rows:
                self._make_room(2 * self._rows)
            else:
                self._put(address)

    # --- the table of host code

    def _make_room(self, rows: int) -> None:
        """Make a larger table for host code, with all instructions that are known.

        The table before stays in memory, for a hook that is looking at it.

        Args:
            rows: of the table, a power of two.
        """
        table = (ctypes.c_uint64 * (_ROW * rows))()
        ctypes.memset(table, 0xFF, ctypes.sizeof(table))
        self._memory.engine.keep(table)
        self._table = memoryview(table).cast("B").cast("Q")
        self._rows = rows
        for address in self._known:
            self._put(address)
        self._words[_TABLE], self._words[_MASK] = ctypes.addressof(table), rows - 1

    def _put(self, address: int) -> None:
        """Add an instruction to the table, in the first free row of those where host code looks for
        it. The row of one that is no comparison has zeros behind its address.

        Args:
            address: of the instruction, a key of `_known`.
        """
        place = (address * _GOLDEN & _EMPTY) >> 32 & self._rows - 1
        while self._table[_ROW * place] != _EMPTY:
            place = place + 1 & self._rows - 1
        found = self._known[address]
        words = [0] * (_ROW - 1)
        if found is not None:
            words = [found.bits, *self._parts(found.one), *self._parts(found.other)]
        for n, word in enumerate(words, _ROW * place + 1):
            self._table[n] = word
        self._table[_ROW * place] = address

    def _parts(self, value: Value) -> tuple[int, int, int, int]:
        """Return one side of a comparison as host code has it.

        Args:
            value: where the side is.

        Returns:
            (address of the base register's word or 0, of the index register's or 0, constant, 1
            where the sum is an address in memory).
        """
        base, index = (
            0 if part is None else self._cells[self._arch.regs.names[part]].address
            for part in (value.base, value.index)
        )
        return base, index, value.constant & _EMPTY, int(value.memory)

    # --- what host code does, where there is none

    def _executed(self, uc: int, address: int, size: int, user: int) -> None:
        """Look at an instruction, and count the equal bytes if it compares: the engine's callback,
        where there is no host code.

        Args:
            uc: not used.
            address: of the instruction.
            size: not used.
            user: not used.
        """
        self._seen(uc, address, size, user)
        found = self._known[address]
        if found is not None:
            one, other = self._value(found.one, found.bits), self._value(found.other, found.bits)
            if one is not None and other is not None:
                self._count(address, one, other, found.bits)

    def _value(self, value: Value, bits: int) -> int | None:
        """Return one side of a comparison, cut to its width; None: it is in memory that the library
        has not mapped.

        Args:
            value: where the side is; its registers are in `cells`.
            bits: of the comparison.
        """
        names = self._arch.regs.names
        parts = [self._cells[names[part]] for part in (value.base, value.index) if part is not None]
        found = sum(cell.view[cell.index] for cell in parts) + value.constant
        if not value.memory:
            return found & (1 << bits) - 1
        address, size = found & self._arch.mask, bits // 8
        block = self._memory.blocks.find(address, size)
        if block is None:
            return None
        at = address - block.start
        return int.from_bytes(block.view[at : at + size], self._arch.order.value)
