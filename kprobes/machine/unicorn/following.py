"""Hits and calls that call sites serve by themselves: usual hits, and calls followed to their
return.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly. The words are numbers of 64 bits in this process's memory, which host code
reads and writes. The core is the part of the library that serves probes (kprobes.core). A call site
is an address in memory of the library's, to which a jump in the guest's text leads; there a service
is called, a function of the core's, or host code does the same. The trampoline is the call site to
which followed calls return.

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
    """Serves the usual hits of a machine by host code: those at which nothing is done but to call a
    handler. Implements machine._base.Hits.

    Attributes:
        traps: True where hits at breakpoints can be served, too.
        paused: one byte; not 0 while services in Python serve hits.
    """

    def __init__(
        self,
        shared: SharedHits,
        services: Services,
        calls: FollowedCalls,
        traps: ServedBreakpoints | None,
    ) -> None:
        """Prepare; begin() comes before the first hit.

        Args:
            shared: the words that all hits of the CPU share.
            services: make what finishes unusual hits.
            calls: has the gate: while that is closed Python serves all hits.
            traps: the breakpoints that host code serves; None: it cannot.
        """
        self._shared = shared
        self._services = services
        self._calls = calls
        self._traps = traps
        self.traps = traps is not None
        self.paused: Sequence[int] = calls.gate[HIT : HIT + 1]

    def begin(
        self, block: object, idle: object, active: object, stepped: object, settled: object
    ) -> None:
        """Have host code keep the state of hits in a control block, which is the core's.

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
        """Serve a breakpoint by host code from now on, and return an object whose end() ends that.

        Only where `traps` is True: the engine reports breakpoints as interrupts.

        Args:
            usual: the core's description of the breakpoint.
        """
        assert self._traps is not None
        return self._traps.add(usual)

    def check_targets(self, now: bool) -> None:
        """Choose who finishes a hit at a breakpoint whose handler has sent the guest elsewhere.

        Args:
            now: True: the core, from now on; False: host code again.
        """
        if self._traps is not None:
            self._traps.check_targets(now)

    def pause(self) -> None:
        """Have the services in Python serve hits and followed calls from now on."""
        self._calls.close(HIT, True)

    def resume(self) -> None:
        """Have host code serve hits and followed calls again."""
        self._calls.close(HIT, False)

    def hit(self, usual: UsualHit) -> Hit:
        """Return what program_at() takes as `last` to have host code serve a usual hit at a call
        site.

        Args:
            usual: the core's description of the hit.
        """
        return Hit(self, usual)

    def made(self, usual: UsualHit | UsualReturn, site: int) -> Usual:
        """Make the words (Usual) by which host code does the work of a hit, an entry or a return:
        it calls the handler, and has the core finish what is unusual.

        Args:
            usual: the core's description of it.
            site: guest address of the call site.
        """
        finish = self._services.finishing(site, usual.rest)
        return Usual(self._shared, finish, usual)


class Hit:
    """The built-in program of a call site that serves a usual hit.

    Attributes:
        held: programs that it runs: none.
        returns: calls that have returned: none are followed.
    """

    held = ()

    def __init__(self, hits: HostHits, usual: UsualHit) -> None:
        """Keep a description; at() makes the words.

        Args:
            hits: makes the words.
            usual: the core's description of the hit.
        """
        self._hits = hits
        self._usual = usual

    def at(self, site: CallSite, address: int) -> int:
        """Write into a call site's words what the usual hit needs.

        Args:
            site: the call site's words.
            address: guest address of the call site.

        Returns:
            Address of the host function to call at the call site.
        """
        site.lead("usual", self._hits.made(self._usual, address))
        return hostcode.address("hit")

    def room(self, calls: int) -> None:
        """Do nothing: a usual hit follows no calls."""

    returns = 0


class HostFollowing:
    """Makes what follows calls to their return, for one machine. The words that are shared are in
    FollowedCalls.
    """

    def __init__(
        self, calls: FollowedCalls, hits: HostHits, services: Services, blocks: HostBlocks
    ) -> None:
        """Prepare; no call is followed.

        Args:
            calls: the words of followed calls.
            hits: makes the words of handlers at entries and returns.
            services: finish unusual hits.
            blocks: host memory of the guest, where the stack is found.
        """
        self._calls = calls
        self._hits = hits
        self._services = services
        self._blocks = blocks
        self.idle = calls.idle

    def enter(
        self, returned: UsualReturn | Sequence[HostProgram], entered: UsualEntry | None = None
    ) -> Enter:
        """Return what program_at() takes as `last` for the call site at a function's entry: it
        makes the function's calls return to leave()'s call site.

        Args:
            returned: the return handler that is called when such a call returns, or the programs
                that run then.
            entered: the entry handler that is asked first whether the call is followed; None: every
                call is.
        """
        return Enter(self._calls, self._hits, self._services, self._blocks, returned, entered)

    def leave(self, target: int) -> Leave:
        """Return what program_at() takes as `last` for the call site to which followed calls
        return.

        Args:
            target: address to which calls return, mode bits included.
        """
        return Leave(self._calls, self._services, target)

    def take(self) -> list[tuple[int, int, int]]:
        """Return the calls that host code follows, and have it follow them no more: they are
        Python's now.

        Returns:
            (guest address of the call site, stack pointer at entry, return address) of each, oldest
            first.
        """
        return [(self._calls.places[site], frame, link) for site, frame, link in self._calls.take()]


class Enter:
    """The built-in program of a call site at a function's entry, whose calls are followed to their
    return.
    """

    def __init__(
        self,
        calls: FollowedCalls,
        hits: HostHits,
        services: Services,
        blocks: HostBlocks,
        returned: UsualReturn | Sequence[HostProgram],
        entered: UsualEntry | None,
    ) -> None:
        """Keep what is to be done; at() has host code do it.

        Args:
            calls: the words of followed calls.
            hits: makes the words of handlers at entries and returns.
            services: finish unusual hits.
            blocks: host memory of the guest, where the stack is found.
            returned: the return handler that is called when such a call returns, or the programs
                that run then.
            entered: the entry handler that is asked first whether the call is followed; None: every
                call is.
        """
        self._calls = calls
        self._hits = hits
        self._services = services
        self._blocks = blocks
        self._returned = returned
        self._entered = entered
        self._site: CallSite

    def at(self, site: CallSite, address: int) -> int:
        """Write into a call site's words what following the function's calls needs.

        `returns` counts from now on.

        Args:
            site: the call site's words.
            address: guest address of the call site.

        Returns:
            Address of the host function to call at the call site.
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
        """Programs that run when such a call returns; () where a handler is called."""
        return () if isinstance(self._returned, UsualReturn) else tuple(self._returned)

    def room(self, calls: int) -> None:
        """Let host code follow `calls` more calls that begin there. Where host code does not find
        the stack, Python serves the call site instead.
        """
        self._site["spare"] = calls
        if not self._calls.find_stack(self._blocks.find):
            self._site["function"] = self._site["python"]

    @property
    def returns(self) -> int:
        """How many of the calls followed here have returned, since at(), served by host code
        alone.
        """
        return self._site["returns"] - self._before


class Leave:
    """The built-in program of the call site to which followed calls return.

    Attributes:
        held: programs that it runs: none.
        returns: calls that begin there and have returned: none.
    """

    held = ()

    def __init__(self, calls: FollowedCalls, services: Services, target: int) -> None:
        """Keep what is to be done; at() has host code do it.

        Args:
            calls: the words of followed calls.
            services: are told which call site is the trampoline.
            target: address to which calls return, mode bits included.
        """
        self._calls = calls
        self._services = services
        self._target = target

    def at(self, site: CallSite, address: int) -> int:
        """Write into the shared words what serving returns needs: where calls return to, and which
        call site that is.

        Args:
            site: the call site's words.
            address: guest address of the call site.

        Returns:
            Address of the host function to call at the call site.
        """
        self._calls.returns_to(self._target)
        self._services.trampoline = address
        return self._calls.leave

    def room(self, calls: int) -> None:
        """Do nothing: no call begins at this call site."""

    returns = 0
