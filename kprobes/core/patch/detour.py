"""The code that an optimized probepoint jumps to."""

from __future__ import annotations

from attrs import define


@define(eq=False, kw_only=True)
class Detour:
    """A call site, then the displaced instructions. `buffer` holds these; None: the slot does, or
    nothing. An instruction that is its own call site (inplace.py) has itself for a jump.
    """

    call: int
    buffer: int | None
    jump: bytes
    size: int
    #: it was taken out: nothing leads there any more, though a hit that came by it may still run
    left: bool = False
    #: flush() made it, not a first hit: a diverting handler is an error, not a reason to undo it
    demanded: bool = False
