"""General registers of which the first is always zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..regs import Regs


def zero_first(
    names: Sequence[str],
) -> tuple[Callable[[Regs, int], int], Callable[[Regs, int, int], None]]:
    """Return (read, write) of a general register by its number: register 0 reads as zero, and what
    is written to it is dropped.

    read(regs, number) returns a value; write(regs, number, value) returns nothing.
    """

    def read(regs: Regs, n: int) -> int:
        return regs[names[n]] if n else 0

    def write(regs: Regs, n: int, value: int) -> None:
        if n:
            regs[names[n]] = value

    return read, write
