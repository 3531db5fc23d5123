"""PA-RISC on Linux."""

from __future__ import annotations

from .._linux import Linux, MemoryCalls

NOP = bytes.fromhex("08000240")
ROWS = {"parisc": Linux(
    memory=MemoryCalls(code=bytes.fromhex("e4008200"), number="r20",
                       args=("r26", "r25", "r24", "r23", "r22", "r21"),
                       result="r28", map=90, unmap=91, anonymous=0x10, delay=NOP),
    event_names=(*(f"gr{n}" for n in range(32)), *(f"sr{n}" for n in range(8)), "iaoq0", "cr27",
                 "sar", "ipsw"))}
