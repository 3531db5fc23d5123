"""Instructions that are call sites themselves: a hook on each calls host code, and no jump leads
away and back.

That takes a third of the time. The engine walks its list of hooks at each of them and at every call
site, so there are few, and only while nothing else is served. What a jump gives by itself is seen
to here: an instruction that is executed again, as a run rests in front of it or to find out where
it failed, is no hit. Where that cannot be, as somebody else may stop the engine in a hook of his
own on the same instruction, there are none.

Other call sites are addresses in memory of the library's, to which jumps in the guest's text lead.
At a call site a service is called, a function of the core's (kprobes.core), or host code does the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from unicorn import unicorn_const as const

from .._base import HostProgram
from .cpu import UnicornCpu
from .engine import DIRECT
from .host import hostcode
from .host.callsites import CallSite, FollowedCalls
from .runstate import RunState
from .services import Services

MOST = 4  # hooks: 6 ns a hit with one of them, 9 with four


class HookedInstructions:
    """The instructions of one CPU's guest that are call sites themselves: a hook on each calls host
    code.

    Attributes:
        sites: address -> the words of its call site, also of those whose hook has been removed: a
            callback must not go while it runs.
    """

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        services: Services,
        followed: FollowedCalls,
        owned: bool,
    ) -> None:
        """Prepare; nothing is hooked.

        Args:
            cpu: whose instructions are hooked.
            state: of its runs.
            services: serve what host code does not.
            followed: the calls that host code follows.
            owned: True where the library has made the engine; else nothing is hooked.
        """
        self._engine = cpu.engine
        self._state = state
        self._services = services
        self._followed = followed
        self._possible = owned and cpu.guest.blocks.served_in_place and hostcode.available()
        self._hooks = state.in_place
        self.sites: dict[int, CallSite] = {}

    def add(self, addr: int, programs: Sequence[HostProgram]) -> Callable[[], None] | None:
        """Make an instruction of the guest's text a call site, if that is possible: a CODE hook on
        the instruction calls host code from now on. The site's words are noted in `sites`.

        At first that host code calls the site's service, in Python; CallAreas.program_at() has it
        run programs.

        Args:
            addr: of the instruction.
            programs: that are to run there; here it is only looked at whether one calls Python.

        Returns:
            A function that removes the hook. None: there are too many hooks, a program calls back
            into Python (HostProgram.asks), or the engine does not allow it; nothing was done.
        """
        if (
            not self._possible
            or len(self._hooks) >= MOST
            or any(program.asks for program in programs)
        ):
            return None
        if addr not in self.sites:
            site = self.sites[addr] = CallSite(self._followed.address, DIRECT(self._on_hit(addr)))
            site.serve_by_python()
            self._engine.keep(site)
        self._hooks[addr] = self._engine.hook(
            const.UC_HOOK_CODE, hostcode.address("here"), addr, addr, self.sites[addr].address
        )
        return partial(self._remove, addr)

    def _remove(self, addr: int) -> None:
        """Remove the hook on the instruction at `addr`."""
        self._engine.unhook(self._hooks.pop(addr))

    def share(self) -> None:
        """Add no hooks from now on, and have the core replace those that there are: another user
        has the engine, too.
        """
        self._possible = False
        if self._hooks and self._state.sink is not None:
            self._state.sink.limit_jumps(True)
            self._state.sink.limit_jumps(False)

    def _on_hit(self, addr: int) -> Callable[[], None]:
        """Make the function that calls the service of an instruction of the guest's text that is a
        call site itself.

        The function does nothing where the library itself has the instruction executed, to its end
        or once more (RunState.resting): that is no hit.

        Args:
            addr: address of the instruction.
        """
        state, serve = self._state, self._services.direct(addr)[0]

        def on_hit() -> None:
            """Call the service of the instruction, unless the library itself has the instruction
            executed.
            """
            if state.resting != state.depth:
                serve()

        return on_hit
