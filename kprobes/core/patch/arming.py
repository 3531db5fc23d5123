"""The states of a probepoint's patch in guest memory, and how they change.

The registry decides what is wanted (an enabled probe is there, the global switch is on); the patch
in memory follows. Only the optimizer puts a jump in and takes it out. An illegal (state, event)
pair raises and changes nothing. GONE text is never written again.
"""

from __future__ import annotations

import enum


class Arming(enum.Enum):
    """State of a probepoint; the value names the patch in memory."""

    DISARMED = "none"
    ARMED = "breakpoint"
    OPTIMIZING = "breakpoint, queued to become a jump"
    OPTIMIZED = "jump"
    UNOPTIMIZING = "jump, queued to become a breakpoint"
    GONE = "none, the text was unloaded"


class Change(enum.Enum):
    """Events that change a probepoint's patch."""

    ARM = "a probe there is to be hit"
    DISARM = "no probe there is to be hit"
    QUEUE = "the breakpoint may become a jump"
    DEQUEUE = "the breakpoint may not become a jump any more"
    JUMP = "the optimizer puts the jump in"
    UNQUEUE = "no probe needs the jump any more"
    RESCUE = "a probe needs the queued jump after all"
    RESTORE = "the breakpoint replaces the jump"
    UNLOAD = "the text goes away"
    RELOAD = "a new probe is registered where text was unloaded"


_A, _C = Arming, Change

TABLE: dict[tuple[Arming, Change], Arming] = {
    (_A.DISARMED, _C.ARM): _A.ARMED,
    (_A.DISARMED, _C.UNLOAD): _A.GONE,
    (_A.ARMED, _C.DISARM): _A.DISARMED,
    (_A.ARMED, _C.QUEUE): _A.OPTIMIZING,
    (_A.ARMED, _C.UNLOAD): _A.GONE,
    (_A.OPTIMIZING, _C.DEQUEUE): _A.ARMED,
    (_A.OPTIMIZING, _C.JUMP): _A.OPTIMIZED,
    (_A.OPTIMIZING, _C.UNLOAD): _A.GONE,
    (_A.OPTIMIZED, _C.UNQUEUE): _A.UNOPTIMIZING,
    (_A.OPTIMIZED, _C.RESTORE): _A.ARMED,
    (_A.OPTIMIZED, _C.UNLOAD): _A.GONE,
    (_A.UNOPTIMIZING, _C.RESCUE): _A.OPTIMIZED,
    (_A.UNOPTIMIZING, _C.RESTORE): _A.ARMED,
    (_A.UNOPTIMIZING, _C.UNLOAD): _A.GONE,
    (_A.GONE, _C.RELOAD): _A.DISARMED,
}
