"""Runs an instruction's displaced code by itself: no jump leads there, and no handler runs."""

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
    """Put an instruction's displaced code into a buffer for as long as the `with` lasts.

    The buffer is one of the optimizer's, so that a fault in it is reported at the original address,
    as in the region of a jump.

    Args:
        point: the probepoint whose instruction is displaced.
        optimizer: makes the code and knows the buffer.
        shift: bytes in front of the displaced code.

    Yields:
        Address of the displaced code; None where it does not reach all it needs.

    Raises:
        AssertionError: the code is longer than the architecture says (OutOfLine.max_displaced).
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
