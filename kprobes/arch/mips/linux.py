"""MIPS on Linux: the o32 and n64 ABIs."""

from __future__ import annotations

from .._base import Order
from .._linux import CallRules, Linux, MemoryCalls, ThreadStorage

SYSCALL = 0xC
STORAGE = ThreadStorage(register="userlocal", first=-0x7000, bias=0x8000)
NAMES = (*(f"r{n}" for n in range(32)), "hi", "lo")


def _o32(order: Order) -> Linux:
    """Make the row of the o32 ABI, for a byte order."""
    return Linux(
        memory=MemoryCalls(
            code=SYSCALL.to_bytes(4, order.value),
            number="v0",
            args=("a0", "a1", "a2", "a3"),
            result="v0",
            map=4090,
            unmap=4091,
            anonymous=0x800,
            on_stack=16,
        ),
        calls=CallRules(table="mipso32", failed="a3"),
        exits=(4001, 4246),
        clone=4120,
        storage=STORAGE,
        event_names=NAMES,
    )


def _n64(order: Order) -> Linux:
    """Make the row of the n64 ABI, for a byte order."""
    return Linux(
        memory=MemoryCalls(
            code=SYSCALL.to_bytes(4, order.value),
            number="v0",
            args=("a0", "a1", "a2", "a3", "a4", "a5"),
            result="v0",
            map=5009,
            unmap=5011,
            anonymous=0x800,
        ),
        calls=CallRules(table="mips64", failed="a3"),
        exits=(5058, 5205),
        clone=5055,
        storage=STORAGE,
        event_names=NAMES,
    )


ROWS = {
    **dict.fromkeys(("mips", "mips32r6"), _o32(Order.BIG)),
    **dict.fromkeys(("mipsel", "mips32r6el"), _o32(Order.LITTLE)),
    **dict.fromkeys(("mips64", "mips64r6"), _n64(Order.BIG)),
    **dict.fromkeys(("mips64el", "mips64r6el"), _n64(Order.LITTLE)),
}
