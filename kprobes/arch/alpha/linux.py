"""Alpha on Linux."""

from __future__ import annotations

from .._linux import Linux, MemoryCalls

ROWS = {"alpha": Linux(memory=MemoryCalls(
    code=bytes.fromhex("83000000"), number="r0", args=("r16", "r17", "r18", "r19", "r20", "r21"),
    result="r0", map=71,
    unmap=73, anonymous=0x10))}
