"""The per-CPU control block: which probepoint is running, and in which phase.

Rules. One hit runs at a time. A hit that arrives meanwhile takes the block's place, and what the
block said is kept in `previous`; the new hit is counted as missed on every probe there, and its
instruction executed without handlers (REENTER). Only one hit can be kept: a third level is a
ReentryError. A pair (state, event) that TABLE lacks raises and changes nothing.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import ReentryError

if TYPE_CHECKING:
    from ..patch.probepoint import Probepoint


class HitState(enum.Enum):
    """Phase of a hit."""

    __hash__ = object.__hash__  # Enum's own is a Python function, and every hit looks up the table

    IDLE = "no probe is running"
    HIT_ACTIVE = "pre-handlers (or return handlers) run"
    HIT_SS = "the displaced instruction executes in its slot"
    HIT_SSDONE = "post-handlers run"
    REENTER = "a missed hit's instruction executes in its slot"


class HitEvent(enum.Enum):
    """Events that change the state of a CPU's control block."""

    __hash__ = object.__hash__

    PROBEPOINT = "the guest reaches a probepoint (or a return trampoline)"
    STEP = "pre-handlers are done and there is a body to execute"
    SLOT_END = "the guest reaches the end of the slot"
    NO_STEP = "pre-handlers are done and there is no body"
    DONE = (
        "the hit is over: post-handlers done, path diverted, slot boosted, or unwound by a fault "
        "or an exception"
    )


class Pop(enum.Enum):
    """Marks the table entries that return to what was interrupted."""

    POP = "back to the interrupted hit, or idle"


_S, _E = HitState, HitEvent

TABLE: dict[tuple[HitState, HitEvent], HitState | Pop] = {
    (_S.IDLE, _E.PROBEPOINT): _S.HIT_ACTIVE,
    (_S.HIT_ACTIVE, _E.PROBEPOINT): _S.REENTER,
    (_S.HIT_ACTIVE, _E.STEP): _S.HIT_SS,
    (_S.HIT_ACTIVE, _E.NO_STEP): _S.HIT_SSDONE,
    (_S.HIT_ACTIVE, _E.DONE): Pop.POP,
    (_S.HIT_SS, _E.PROBEPOINT): _S.REENTER,
    (_S.HIT_SS, _E.SLOT_END): _S.HIT_SSDONE,
    (_S.HIT_SS, _E.DONE): Pop.POP,
    (_S.HIT_SSDONE, _E.PROBEPOINT): _S.REENTER,
    (_S.HIT_SSDONE, _E.DONE): Pop.POP,
    (_S.REENTER, _E.SLOT_END): Pop.POP,
    (_S.REENTER, _E.DONE): Pop.POP,
}

# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, REENTER, POP, PROBEPOINT = HitState.IDLE, HitState.REENTER, Pop.POP, HitEvent.PROBEPOINT


class OuterHit(NamedTuple):
    """State of a hit that another one has interrupted, kept by a ControlBlock."""

    state: HitState
    point: Probepoint | None
    resume: int
    probes: tuple[Any, ...]
    child: Any


class ControlBlock:
    """State of one CPU's hit.

    Attributes:
        state: the phase.
        point: the probepoint that is hit; None when idle, and at the return trampoline.
        resume: address where the guest continues after the slot.
        probes: the probes whose pre-handlers ran in this hit.
        child: the probe whose handler runs now.
        previous: the hit that this one has interrupted; None: it has interrupted none.
    """

    __slots__ = ("child", "point", "previous", "probes", "resume", "state")

    def __init__(self) -> None:
        self.state = HitState.IDLE
        self.point: Probepoint | None = None
        self.resume = 0
        self.probes: tuple[Any, ...] = ()
        self.child: Any = None
        self.previous: OuterHit | None = None

    def begin(self, point: Probepoint | None) -> None:
        """Begin a hit: the PROBEPOINT event. A hit that is under way is kept in `previous`.

        `probes`, `child` and `resume` are left as they are.

        Args:
            point: the probepoint; None for the return trampoline.

        Raises:
            ReentryError: two hits are under way already; nothing was changed.
        """
        state = self.state
        new = TABLE.get((state, PROBEPOINT))
        if new is REENTER:
            self.previous = OuterHit(state, self.point, self.resume, self.probes, self.child)
        elif new is None:
            raise self._illegal(PROBEPOINT, point)
        self.point = point
        self.state = new  # type: ignore[assignment]

    def step(self, event: HitEvent) -> None:
        """Change the state by an event other than PROBEPOINT, as TABLE says.

        The event that ends a hit within a hit brings the outer one back, all attributes of it. The
        event that ends an outermost hit makes the block IDLE, without a point; `probes` and `child`
        stay.

        Args:
            event: what has happened.

        Raises:
            ReentryError: the table has no such event in this state; nothing was changed.
        """
        new = TABLE.get((self.state, event))
        if new is POP:
            if self.previous is None:
                self.state = IDLE
                self.point = None
            else:
                outer = self.previous
                self.state = outer.state
                self.point = outer.point
                self.resume = outer.resume
                self.probes = outer.probes
                self.child = outer.child
                self.previous = None
        elif new is None:
            raise self._illegal(event, self.point)
        else:
            self.state = new

    def _illegal(self, event: HitEvent, point: Probepoint | None) -> ReentryError:
        """Return the error for an event that may not happen in the present state.

        Args:
            event: what has happened.
            point: the probepoint where it has happened; None: none is known.
        """
        return ReentryError(
            f"{event.name} while {self.state.name} ({self.state.value})",
            address=point.address if point else None,
            hint="a handler's guest call went three probes deep; disable one of them",
        )

    def let_go(self) -> None:
        """Drop the references to the probes of the last hit, so that they can be collected."""
        self.probes = ()
        self.child = None

    def reset(self) -> None:
        """Go back to IDLE, and forget the hits that were under way: their handlers do not run.

        `probes`, `child` and `resume` are left as they are.
        """
        self.state = IDLE
        self.point = None
        self.previous = None
