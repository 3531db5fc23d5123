"""Built-in programs that follow calls from a function's entry to its return. See machine._base.Following."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._base import Entered, HostProgram, Returned
from .engine import ASKED, DIRECT
from .host import hostcode
from .host.callsites import CallSite
from .host.hostcode import HIT
from .programs import chain

if TYPE_CHECKING:
    from .areas import Areas


class Following:
    """Makes them for one machine. What they share is in FollowedCalls."""

    def __init__(self, areas: Areas) -> None:
        self._areas, self._calls = areas, areas.followed

    def enter(self, returned: Returned | Sequence[HostProgram], entered: Entered | None = None) -> Enter:
        """For a function's entry."""
        return Enter(self._areas, returned, entered)

    def leave(self, target: int) -> Leave:
        """For where followed calls return."""
        return Leave(self._areas, target)

    def pause(self, now: bool) -> None:
        """Leave every call to the services, until told otherwise."""
        self._calls.close(HIT, now)

    def take(self) -> list[tuple[int, int, int]]:
        """The calls that are followed, oldest first: (call site, frame, return address). They are followed no more."""
        return [(self._areas.place_of(site), frame, link) for site, frame, link in self._calls.take()]


class Enter:
    """At a function's entry: see Following.enter()."""

    def __init__(self, areas: Areas, returned: Returned | Sequence[HostProgram], entered: Entered | None) -> None:
        self._areas, self._calls, self._returned, self._entered = areas, areas.followed, returned, entered
        self._site: CallSite

    def at(self, site: CallSite, address: int) -> int:
        """It is at a call site from now on; the host function that does it."""
        self._site, self._before = site, site["returns"]
        if callable(self._returned):
            self._ask_python(site, address, self._returned)
        else:
            site["back"], site["returned"] = chain(self._returned), hostcode.address("back")
        return self._calls.enter if self._entered is None else self._calls.ask

    def _ask_python(self, site: CallSite, address: int, returned: Returned) -> None:
        entered, skip = self._entered, self._calls.skip
        if not site["entered"] or site["back"]:
            site["back"] = 0
            site.callback("entered", ASKED(self._areas.entered_callback(site, address)))
            site.callback("returned", DIRECT(self._areas.returned_callback(site)))
        site.returned = returned if skip is None else lambda regs, frame, link: returned(regs, frame, skip(link))
        if entered is not None:
            site.entered = entered

    @property
    def held(self) -> tuple[HostProgram, ...]:
        """Programs that it runs."""
        return () if callable(self._returned) else tuple(self._returned)

    def room(self, calls: int) -> None:
        """So many more calls that begin there may be followed."""
        self._calls.close(HIT, False)
        self._site["spare"] = calls
        if not self._calls.find_stack(self._areas.blocks.find):
            self._site["function"] = self._site["python"]

    @property
    def returns(self) -> int:
        """How many calls have returned and only programs were run."""
        return self._site["returns"] - self._before


class Leave:
    """Where followed calls return: see Following.leave()."""

    held = ()

    def __init__(self, areas: Areas, target: int) -> None:
        self._areas, self._target = areas, target

    def at(self, site: CallSite, address: int) -> int:
        """It is at a call site from now on; the host function that does it."""
        self._areas.followed.returns_to(self._target)
        self._areas.trampoline = address
        return self._areas.followed.leave

    def room(self, calls: int) -> None:
        """No call begins there."""

    returns = 0
