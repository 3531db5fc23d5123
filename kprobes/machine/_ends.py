"""Runs that end at an address which the caller of the run has named.

The core (kprobes.core) puts jumps for probes into the guest's text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..arch._base import Arch
from ._base import Sink


@contextmanager
def ending_at(sink: Sink | None, arch: Arch, end: int | None) -> Iterator[None]:
    """Keep the address where a run ends free of jumps that cover it, inside a with block.

    A jump covers several instructions, so a run could pass its end inside one. Where a jump for a
    probe just before the end would cover the end, the core takes out all jumps that cover several
    instructions, and makes no new ones, while the block lasts (Sink.limit_jumps). Elsewhere the
    core is told nothing.

    Args:
        sink: the core; None: there are no probes.
        arch: the guest's architecture.
        end: address where the run ends; None: it ends at no address.
    """
    if sink is None or end is None or not _covered(sink, arch, end):
        yield
        return
    sink.limit_jumps(True)
    try:
        yield
    finally:
        sink.limit_jumps(False)


def _covered(sink: Sink, arch: Arch, addr: int) -> bool:
    """Return True if a probe's patch, a jump or a breakpoint, begins so shortly before an address
    that the architecture's longest jump there would cover that address.
    """
    jumps = () if arch.jump is None else (arch.jump, *arch.jump.modes.values())
    patches, size = sink.patches(), max((jump.size for jump in jumps), default=0)
    return any(addr - n in patches for n in range(1, size))
