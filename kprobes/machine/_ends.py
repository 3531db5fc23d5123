"""Runs that end at an address that somebody has named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..arch._base import Arch
from ._base import Sink


@contextmanager
def ending_at(sink: Sink | None, arch: Arch, end: int | None) -> Iterator[None]:
    """A run ends at `end` (None: elsewhere): no probe before it is a jump over that meanwhile."""
    jumps = () if arch.jump is None else (arch.jump, *arch.jump.modes.values())
    size = max((jump.size for jump in jumps), default=0)
    if sink is None or end is None or not any(0 < end - addr < size for addr in sink.patches()):
        yield
        return
    sink.exact(True)
    try:
        yield
    finally:
        sink.exact(False)
