"""z/Architecture on Linux."""

from __future__ import annotations

from ...regs import Regs
from .._linux import CallRules, KernelRegisters, Linux, MemoryCalls, ThreadStorage

SIGILL = 4


def _pair(regs: Regs) -> int:
    """Return the address of the two words for __tls_get_offset(): r2 is an offset in the GOT, at
    r12.
    """
    return regs["r2"] + regs["r12"]


ROWS = {"s390x": Linux(
    memory=MemoryCalls(code=bytes.fromhex("0a"), number="",
                       args=("r2", "r3", "r4", "r5", "r6", "r7"), result="r2",
                       map=90, unmap=91, mapped_by_block=True),
    calls=CallRules(table="s390x", number="r1", mmap_by_block=True),
    exits=(1, 248), clone=120, clone_flags=1, trap=(SIGILL, 2),
    storage=ThreadStorage(register="a0", halves=("a0", "a1"), below=True, itself=True,
                          call="__tls_get_offset",
                          pair=_pair, from_pointer=True, leaves_in_link=True),
    kernel_registers=KernelRegisters(marks=("psw.addr",), names={"psw.addr": "pc"}, array="gprs",
                                     prefix="r"),
    event_names=tuple(f"r{n}" for n in range(16)))}
