"""Guest memory as host code finds it.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.
"""

from __future__ import annotations

import ctypes

from .blocks import HostBlocks

MOST = 64  # blocks in the table, the largest: the engine answers for the others


class BlockTable:
    """A table of the blocks of a guest's memory, in words of 64 bits of this process's memory, by
    which host code finds guest memory.

    Two words at `address` say how many rows there are and where. A row is three words: first guest
    address, bytes, host address. Only the 64 largest blocks are in it. A table that was replaced
    stays until the next one is, for host code that is looking at it.

    Attributes:
        address: of the two words.
    """

    def __init__(self, blocks: HostBlocks) -> None:
        """Write the table, and write it anew whenever blocks change.

        Args:
            blocks: the guest's blocks.
        """
        self._blocks = blocks
        self._header = (ctypes.c_uint64 * 2)()
        self._tables: list[object] = []
        self.address = ctypes.addressof(self._header)
        self._write()
        blocks.on_change(self._write)

    def _write(self) -> None:
        """Write a new table, the largest blocks first, and have the two words lead to it."""
        blocks = sorted(self._blocks.held, key=lambda block: block.size, reverse=True)[:MOST]
        table = (ctypes.c_uint64 * (3 * len(blocks) + 1))()
        for n, block in enumerate(blocks):
            table[3 * n : 3 * n + 3] = [block.start, block.end - block.start, block.host]
        self._tables = [*self._tables[-1:], table]
        self._header[0] = 0
        self._header[1] = ctypes.addressof(table)
        self._header[0] = len(blocks)
