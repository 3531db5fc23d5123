"""Built-in programs that follow calls from a function's entry to its return. See machine._base.Following."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .._base import Entered, HostProgram, Returned
from .blocks import Blocks
from .engine import ASKED, DIRECT
from .host import hostcode
from .host.callsites import CallSite, Followed, FollowedCalls
from .host.hostcode import HIT
from .programs import chain
from .services import Services


class Following:
    """Makes them for one machine. What they share is in FollowedCalls."""

    def __init__(self, calls: FollowedCalls, services: Services, blocks: Blocks) -> None:
        self._calls, self._services, self._blocks = calls, services, blocks
        self.idle = calls.idle

    def enter(self, returned: Returned | Sequence[HostProgram], entered: Entered | None = None) -> Enter:
        """For a function's entry."""
        return Enter(self._calls, self._services, self._blocks, returned, entered)

    def leave(self, target: int) -> Leave:
        """For where followed calls return."""
        return Leave(self._calls, self._services, target)

    def pause(self, now: bool) -> None:
        """Leave every call to the services, until told otherwise."""
        self._calls.close(HIT, now)

    def take(self) -> list[tuple[int, int, int]]:
        """The calls that are followed, oldest first: (call site, frame, return address). They are followed no more."""
        return [(self._calls.places[site], frame, link) for site, frame, link in self._calls.take()]


class Enter:
    """At a function's entry: see Following.enter()."""

    def __init__(self, calls: FollowedCalls, services: Services, blocks: Blocks,
                 returned: Returned | Sequence[HostProgram], entered: Entered | None) -> None:
        self._calls, self._services, self._blocks, self._returned, self._entered = (calls, services, blocks, returned,
            entered)
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
        skip = self._calls.skip
        if not site["entered"] or site["back"]:
            site["back"] = 0
            for name, kind, place in (("entered", ASKED, address), ("returned", DIRECT, None)):
                callback, site.tell[name] = self._services.followed(place)
                site.callback(name, kind(callback))
        site.tell["returned"](returned if skip is None else _skipping(returned, skip))
        if self._entered is not None:
            site.tell["entered"](self._entered)

    @property
    def held(self) -> tuple[HostProgram, ...]:
        """Programs that it runs."""
        return () if callable(self._returned) else tuple(self._returned)

    def room(self, calls: int) -> None:
        """So many more calls that begin there may be followed."""
        self._calls.close(HIT, False)
        self._site["spare"] = calls
        if not self._calls.find_stack(self._blocks.find):
            self._site["function"] = self._site["python"]

    @property
    def returns(self) -> int:
        """How many calls have returned and only programs were run."""
        return self._site["returns"] - self._before


class Leave:
    """Where followed calls return: see Following.leave()."""

    held = ()

    def __init__(self, calls: FollowedCalls, services: Services, target: int) -> None:
        self._calls, self._services, self._target = calls, services, target

    def at(self, site: CallSite, address: int) -> int:
        """It is at a call site from now on; the host function that does it."""
        self._calls.returns_to(self._target)
        self._services.trampoline = address
        return self._calls.leave

    def room(self, calls: int) -> None:
        """No call begins there."""

    returns = 0


def _skipping(handler: Followed, skip: Callable[[int], int]) -> Followed:
    """A handler that is told where its caller wants the function to return to. See Returning.skips."""
    return lambda regs, frame, link: handler(regs, frame, skip(link))
