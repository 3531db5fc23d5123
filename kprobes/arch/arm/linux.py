"""Arm's 32-bit processes on Linux."""

from __future__ import annotations

from .._linux import Linux, MemoryCalls, ThreadStorage

NAMES = (*(f"r{n}" for n in range(11)), "fp", "ip", "sp", "lr", "pc")
ARM = Linux(
    memory=MemoryCalls(code=bytes.fromhex("000000ef"), number="r7", args=("r0", "r1", "r2", "r3", "r4", "r5"),
                       result="r0", map=192, unmap=91),
    exits=(1, 248), clone=120,
    # HWCAP_TLS: no helper of the kernel's is needed
    storage=ThreadStorage(register="tpidruro", first=8, read="__aeabi_read_tp", platform=b"v7l", hwcap=1 << 15),
    event_names=NAMES)
ROWS = {"arm": ARM, "armeb": ARM}
