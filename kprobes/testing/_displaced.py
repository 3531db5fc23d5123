"""An instruction's displaced code by itself: no jump leads there, and no handler runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ..arch._base import Insn
from ..core.patch.optimizer import Optimizer
from ..core.patch.probepoint import Probepoint
from ..core.patch.region import Region
from ..errors import OutOfReach


@contextmanager
def displaced(point: Probepoint, optimizer: Optimizer, shift: int) -> Iterator[int | None]:
    """Put the displaced code into a buffer, `shift` bytes from its start; yield its address, or
    None where it does not reach all it needs.

    It is in a buffer of the optimizer's, as it would be behind others in the region of a jump, so
    that its faults are home's.
    """
    insn = point.insn
    buffers = point._rooms.buffers
    longest = point._rooms.arch.out_of_line.max_displaced
    before = Insn(addr=insn.addr, raw=b"", name="before", displace=lambda to: bytes(shift))
    region = Region((before, insn), insn.next - insn.addr, moved=True)
    try:
        buffer, _ = buffers.take(point.address, lambda to: optimizer._displace(point, region, to))
    except OutOfReach:
        yield None
        return
    try:
        assert insn.displace is not None
        size = len(insn.displace(buffer + shift))
        assert size <= longest, (
            f"{insn.name} is displaced as {size} bytes; OutOfLine.max_displaced is {longest}"
        )
        yield buffer + shift
    finally:
        buffers.give_back(buffer, partial(optimizer._forget_buffer, buffer))
