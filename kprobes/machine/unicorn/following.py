"""Hits and calls that call sites serve by themselves: usual hits, and calls followed to their
return.

Implements machine._base.Hits and machine._base.Following.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._base import HostProgram, UsualEntry, UsualHit, UsualReturn, UsualTrap
from .blocks import HostBlocks
from .host import hostcode
from .host.callsites import CallSite, FollowedCalls
from .host.hostcode import HIT
from .host.usual import SharedHits, Usual
from .programs import chain
from .services import Services
from .traps import HostServedTrap, ServedBreakpoints


class HostHits:
    """Serves the usual hits of a machine by host code. Implements machine._base.Hits."""

    def __init__(
        self,
        shared: SharedHits,
        services: Services,
        calls: FollowedCalls,
        traps: ServedBreakpoints | None,
    ) -> None:
        self._shared = shared
        self._services = services
        self._calls = calls
        self._traps = traps
        self.traps = traps is not None
        self.paused: Sequence[int] = calls.gate[HIT : HIT + 1]

    def begin(
        self, block: object, idle: object, active: object, stepped: object, settled: object
    ) -> None:
        """Serve hits for a control block, by host code that reads and writes its state.

        Args:
            block: the control block.
            idle: its state while there is no hit.
            active: while handlers run.
            stepped: while the instruction is executed in a slot.
            settled: while post-handlers run.
        """
        self._shared.begin(block, idle, active)
        if self._traps is not None:
            self._traps.begin(stepped, settled)

    def trap(self, usual: UsualTrap) -> HostServedTrap:
        """Serve a breakpoint by host code from now on, and return the object that ends that.

        Only where `traps` is True: the engine reports breakpoints as interrupts.

        Args:
            usual: the core's description of the breakpoint.
        """
        assert self._traps is not None
        return self._traps.add(usual)

    def check_targets(self, now: bool) -> None:
        """Choose who serves a breakpoint's hit whose handler sends the guest elsewhere.

        Args:
            now: True: the core, from now on; False: host code again.
        """
        if self._traps is not None:
            self._traps.check_targets(now)

    def pause(self, now: bool) -> None:
        """Choose who serves hits and followed calls.

        Args:
            now: True: the services in Python, from now on; False: host code again.
        """
        self._calls.close(HIT, now)

    def hit(self, usual: UsualHit) -> Hit:
        """Return a program that serves this usual hit at a call site."""
        return Hit(self, usual)

    def made(self, usual: UsualHit | UsualReturn, site: int) -> Usual:
        """Return the words by which host code serves a hit.

        Args:
            usual: the core's description of the hit, the entry or the return.
            site: guest address of the call site.
        """
        finish = self._services.finishing(site, usual.rest)
        if isinstance(usual, UsualReturn):
            return Usual(
                self._shared,
                finish,
                usual.probe,
                usual.handler,
                pool=usual.pool,
                held=usual.held,
                asked=usual.asked,
            )
        if isinstance(usual, UsualEntry):
            return Usual(
                self._shared,
                finish,
                usual.probe,
                usual.handler,
                usual.address,
                usual.pool,
                usual.held,
            )
        return Usual(self._shared, finish, usual.probe, usual.handler, usual.address)


class Hit:
    """The built-in program of a call site that serves a usual hit."""

    held = ()

    def __init__(self, hits: HostHits, usual: UsualHit) -> None:
        self._hits = hits
        self._usual = usual

    def at(self, site: CallSite, address: int) -> int:
        """Have host code serve a call site from now on.

        Args:
            site: the call site's words.
            address: guest address of the call site.

        Returns:
            Address of the host function that serves it.
        """
        site.lead("usual", self._hits.made(self._usual, address))
        return hostcode.address("hit")

    def room(self, calls: int) -> None:
        """Follow no calls."""

    returns = 0


class HostFollowing:
    """Makes what follows calls, for one machine. What is shared is in FollowedCalls."""

    def __init__(
        self, calls: FollowedCalls, hits: HostHits, services: Services, blocks: HostBlocks
    ) -> None:
        self._calls = calls
        self._hits = hits
        self._services = services
        self._blocks = blocks
        self.idle = calls.idle

    def enter(
        self, returned: UsualReturn | Sequence[HostProgram], entered: UsualEntry | None = None
    ) -> Enter:
        """Return a program for a call site at which a function begins: it makes the function's
        calls return to leave()'s call site.

        Args:
            returned: the return handler that is called when such a call returns, or the programs
                that run then.
            entered: the entry handler that is asked first whether the call is followed; None: every
                call is.
        """
        return Enter(self._calls, self._hits, self._services, self._blocks, returned, entered)

    def leave(self, target: int) -> Leave:
        """Return a program for the call site to which followed calls return.

        Args:
            target: address to which calls return, mode bits included.
        """
        return Leave(self._calls, self._services, target)

    def take(self) -> list[tuple[int, int, int]]:
        """Return the calls that are followed, oldest first: (call site, frame, return address).
        They are followed no more.
        """
        return [(self._calls.places[site], frame, link) for site, frame, link in self._calls.take()]


class Enter:
    """The built-in program of a call site at which a function begins, whose calls are followed."""

    def __init__(
        self,
        calls: FollowedCalls,
        hits: HostHits,
        services: Services,
        blocks: HostBlocks,
        returned: UsualReturn | Sequence[HostProgram],
        entered: UsualEntry | None,
    ) -> None:
        self._calls = calls
        self._hits = hits
        self._services = services
        self._blocks = blocks
        self._returned = returned
        self._entered = entered
        self._site: CallSite

    def at(self, site: CallSite, address: int) -> int:
        """Have host code serve a call site from now on: follow calls of its function.

        Args:
            site: the call site's words.
            address: guest address of the call site.

        Returns:
            Address of the host function that serves it.
        """
        self._site = site
        self._before = site["returns"]
        if isinstance(self._returned, UsualReturn):
            site["returned"] = hostcode.address("returned")
            site.lead("at_return", self._hits.made(self._returned, self._services.trampoline))
        else:
            site["returned"] = hostcode.address("back")
            site["back"] = chain(self._returned)
        if self._entered is None:
            return self._calls.enter
        site["entered"] = hostcode.address("entered")
        site.lead("usual", self._hits.made(self._entered, address))
        return self._calls.ask

    @property
    def held(self) -> tuple[HostProgram, ...]:
        """Programs that it runs."""
        return () if isinstance(self._returned, UsualReturn) else tuple(self._returned)

    def room(self, calls: int) -> None:
        """Follow so many more calls that begin there; where host code does not find the stack, have
        Python serve the call site instead.
        """
        self._site["spare"] = calls
        if not self._calls.find_stack(self._blocks.find):
            self._site["function"] = self._site["python"]

    @property
    def returns(self) -> int:
        """How many calls have returned without the core's doing."""
        return self._site["returns"] - self._before


class Leave:
    """The built-in program of the call site to which followed calls return."""

    held = ()

    def __init__(self, calls: FollowedCalls, services: Services, target: int) -> None:
        self._calls = calls
        self._services = services
        self._target = target

    def at(self, site: CallSite, address: int) -> int:
        """Have host code serve, from now on, the call site to which followed calls return.

        Args:
            site: the call site's words.
            address: guest address of the call site.

        Returns:
            Address of the host function that serves it.
        """
        self._calls.returns_to(self._target)
        self._services.trampoline = address
        return self._calls.leave

    def room(self, calls: int) -> None:
        """Follow no calls: none begins there."""

    returns = 0
