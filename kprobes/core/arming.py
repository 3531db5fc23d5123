"""What a probepoint has in guest memory, and how that changes.

Rules. `wanted` is decided by the aggregate (somebody enabled there, the global switch on); the patch in memory follows.
An illegal (state, event) pair raises and changes nothing. GONE text is never written again.
"""

from __future__ import annotations

import enum


class Arming(enum.Enum):
    """State of a probepoint; the value names the patch in memory."""

    DISARMED = "none"
    ARMED = "breakpoint"
    GONE = "none, the text was unloaded"


class Change(enum.Enum):
    """What happens to a probepoint."""

    ARM = "somebody wants to be hit"
    DISARM = "nobody wants to be hit"
    UNLOAD = "the text goes away"
    RELOAD = "a new probe is registered where text was unloaded"


_A, _C = Arming, Change

TABLE: dict[tuple[Arming, Change], Arming] = {
    (_A.DISARMED, _C.ARM): _A.ARMED,
    (_A.DISARMED, _C.UNLOAD): _A.GONE,
    (_A.ARMED, _C.DISARM): _A.DISARMED,
    (_A.ARMED, _C.UNLOAD): _A.GONE,
    (_A.GONE, _C.RELOAD): _A.DISARMED,
}


def after(state: Arming, change: Change) -> Arming:
    """The next state; ValueError for a pair that is not in the table."""
    try:
        return TABLE[state, change]
    except KeyError:
        raise ValueError(f"{change.name} in {state.name}") from None
