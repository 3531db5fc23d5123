"""SuperH on Linux."""

from __future__ import annotations

from .._base import Order
from .._linux import Linux, MemoryCalls

TRAPA = 0xC316


def _row(order: Order) -> Linux:
    """Make the row of a byte order."""
    return Linux(
        memory=MemoryCalls(
            code=TRAPA.to_bytes(2, order.value),
            number="r3",
            args=("r4", "r5", "r6", "r7", "r0", "r1"),
            result="r0",
            map=192,
            unmap=91,
        ),
        event_names=(*(f"r{n}" for n in range(16)), "pc", "pr", "sr", "gbr", "mach", "macl"),
    )


ROWS = {"sh4": _row(Order.LITTLE), "sh4eb": _row(Order.BIG)}
