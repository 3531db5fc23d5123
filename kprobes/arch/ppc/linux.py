"""PowerPC on Linux."""

from __future__ import annotations

from .._base import Order
from .._linux import CallRules, KernelRegisters, Linux, MemoryCalls, ThreadStorage

SIGTRAP = 5
SC = 0x44000002


def _row(order: Order, pointer: str, table: str) -> Linux:
    """Make the row of one architecture.

    Args:
        order: byte order of code.
        pointer: the ABI's thread pointer register.
        table: what the list of system calls' numbers calls it.
    """
    return Linux(
        memory=MemoryCalls(
            code=SC.to_bytes(4, order.value),
            number="r0",
            args=("r3", "r4", "r5", "r6", "r7", "r8"),
            result="r3",
            map=90,
            unmap=91,
        ),
        calls=CallRules(table=table, failed="so"),
        exits=(1, 234),
        clone=120,
        trap=(SIGTRAP, 0),
        storage=ThreadStorage(register=pointer, first=-0x7000, bias=0x8000),
        kernel_registers=KernelRegisters(marks=("nip",), array="gpr", prefix="r"),
        event_names=(
            *(name for n in range(32) for name in (f"r{n}", f"gpr{n}")),
            "nip",
            "ctr",
            "link",
            "xer",
            "ccr",
        ),
    )


ROWS = {"ppc": _row(Order.BIG, "r2", "powerpc"), "ppc64": _row(Order.BIG, "r13", "powerpc64"),
        "ppc64le": _row(Order.LITTLE, "r13", "powerpc64")}
