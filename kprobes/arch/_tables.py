"""Data in text that is read through a register: values, and jump tables. Part of the contract in
_base.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from attrs import frozen


@frozen(kw_only=True)
class Table:
    """A jump table in text, or a value that an instruction reads there."""

    start: int  #: its address
    size: int  #: bytes of an entry
    #: where the jump goes whose entry is 0; None: there is one entry, a value
    base: int | None = None
    signed: bool = False
    order: Literal["little", "big"] = "little"

    def targets(self, read: Callable[[int, int], bytes], start: int, end: int) -> list[int]:
        """Read a jump table; return the addresses that its entries lead to.

        It ends before the first entry that leads out of the function or to an odd address, and
        where code begins that another entry leads to. Of a value the only "target" is its own
        address.

        Args:
            read: (address, bytes) -> these bytes, fewer where memory ends.
            start: address of the function.
            end: address behind the function.
        """
        if self.base is None:
            return [self.start]
        found: list[int] = []
        at, stop = self.start, end
        while at + self.size <= stop and len(entry := read(at, self.size)) == self.size:
            target = self.base + int.from_bytes(entry, self.order, signed=self.signed)
            if not start <= target < end or target % 2:
                break
            found.append(target)
            at += self.size
            stop = target if at <= target < stop else stop
        return found
