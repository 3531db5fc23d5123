"""General registers of which the first is always zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..regs import Regs


def zero_first(
    names: Sequence[str],
) -> tuple[Callable[[Regs, int], int], Callable[[Regs, int, int], None]]:
    """Make functions that access general registers of which number 0 is always zero.

    Args:
        names: of the registers, by number.

    Returns:
        (read(regs, number) -> value, write(regs, number, value)); a write to number 0 is dropped.
    """

    def read(regs: Regs, n: int) -> int:
        return regs[names[n]] if n else 0

    def write(regs: Regs, n: int, value: int) -> None:
        if n:
            regs[names[n]] = value

    return read, write
