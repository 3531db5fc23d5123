"""The code that an optimized probepoint jumps to.

A call site is an address at which the machine, the engine that runs the guest, calls the core
without a trap.
"""

from __future__ import annotations

from attrs import define


@define(eq=False, kw_only=True)
class Detour:
    """The code that an optimized probepoint jumps to: a call site, then the displaced instructions.

    At the call site the machine calls the core, or handlers, or runs programs. Then it leads on to
    the displaced instructions: relocated copies of those that the jump covers.

    Attributes:
        call: address of the call site.
        buffer: address of the displaced instructions; None: the slot has them, or the instruction
            is simulated.
        jump: the bytes in guest text that lead to the call site. An instruction that is its own
            call site (inplace.py) has its own bytes here.
        size: bytes of guest text that the displaced instructions stand for.
        left: the jump was taken out. A hit that came by it may still be under way.
        demanded: the user has asked for the jump (flush_optimizer); else a first hit has made it.
            Then a diverting handler is an error, not a reason to take the jump out.
    """

    call: int
    buffer: int | None
    jump: bytes
    size: int
    left: bool = False
    demanded: bool = False
