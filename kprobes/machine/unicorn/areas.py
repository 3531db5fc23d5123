"""Areas of guest code whose execution is noticed without a trap: call sites, served in place.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly. A service is a function of the core's (kprobes.core) for a call site.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unicorn import unicorn_const as const

from .._base import BuiltIn, HostProgram
from .cpu import UnicornCpu
from .engine import CALL, DIRECT
from .following import Enter, Hit, Leave
from .host import hostcode
from .host.callsites import CallSite, CallSiteTable, FollowedCalls
from .inplace import HookedInstructions
from .programs import chain
from .services import Services

# bytes at the start of a call area whose call sites have their own hooks, where there is no host
# code
DIRECT_CALLS = 128
CALL_AREA = 1 << 16  # bytes
IDLE_TABLES = 4  # tables that no area uses, before one is used again


class CallAreas:
    """The call areas of a CPU, which hold call sites: the power of machine._base.CallsInPlace.

    An area is a range of guest memory in which the engine calls a hook at each instruction. A call
    site is an address there; the hook calls its service.

    Attributes:
        call_area: bytes of an area.
        delays_in_calls: True if in an area an instruction may have a delay slot.
        serve_here: makes an instruction in the guest's text a call site (HookedInstructions.add).
    """

    def __init__(
        self, cpu: UnicornCpu, services: Services, followed: FollowedCalls, here: HookedInstructions
    ) -> None:
        """Prepare; nothing is mapped.

        Args:
            cpu: whose guest has the areas.
            services: call the core's services at call sites.
            followed: the calls that host code follows.
            here: instructions of the guest's text that are call sites themselves.
        """
        self.call_area = CALL_AREA
        self.delays_in_calls = cpu.guest.blocks.hooked_delay_slots
        self.serve_here = here.add
        self._here = here
        self._services = services
        self._followed = followed
        self._memory = cpu.memory
        self._engine = cpu.engine
        self._call_hooks: dict[int, list[int]] = {}
        self._on_call: object = None  # the areas' hook, without host code
        # call site -> its hook, and what makes that the next sink's
        self._on_direct: dict[int, tuple[object, Callable[[], None]]] = {}
        self._direct: dict[int, int] = {}  # call site -> its own hook
        self._tables: dict[int, CallSiteTable] = {}  # area -> its call sites, for host code
        self._idle_tables: list[CallSiteTable] = []

    def jumps(self, programs: Sequence[object] | None, mode: int) -> bool:
        """Return True: a jump to a call site is always better than a breakpoint. Both arguments are
        ignored.
        """
        return True

    def map_calls(self, near: int) -> int:
        """Map an area of guest memory in which a hook calls the service of a call site
        (Sink.services), or runs its programs, before the instruction there is executed.

        Without host code, call sites in the first 128 bytes are hooked one by one, by call_at().

        Args:
            near: address that the area is to be near to.

        Returns:
            Its address, a multiple of its size.

        Raises:
            NoMemory: there is no room.
            MachineBusy: the engine is in the middle of an instruction.
        """
        area = self._memory.gap(CALL_AREA, near, CALL_AREA)
        self._memory.map_own(area, CALL_AREA, hooked=True)
        end = area + CALL_AREA - 1
        if hostcode.available():
            table = self._tables[area] = self._table(area)
            serve = hostcode.address("serve")
            self._call_hooks[area] = [
                self._engine.hook(const.UC_HOOK_CODE, serve, area, end, table.data)
            ]
        else:
            # the engine keeps it
            self._on_call = self._on_call or CALL(
                lambda _uc, address: self._services.serve(address)
            )
            self._call_hooks[area] = [
                self._engine.hook(const.UC_HOOK_CODE, self._on_call, area + DIRECT_CALLS, end)
            ]
        return area

    def unmap_calls(self, area: int) -> None:
        """Unmap an area: services and programs of its call sites are called no more.

        Args:
            area: address that map_calls() has returned.
        """
        for addr in [addr for addr in self._direct if addr & -CALL_AREA == area]:
            self._call_hooks[area].append(self._direct.pop(addr))
        for hook in self._call_hooks.pop(area):
            self._engine.unhook(hook)
        if area in self._tables:
            table = self._tables.pop(area)
            for site in table.sites.values():
                site.serve_by_python()
                del self._followed.places[site.address]
            table.end()
            self._idle_tables.append(table)
        self._memory.unmap_pages(area, CALL_AREA)

    def call_at(self, addr: int) -> None:
        """Have the Python service of a call site called at each execution from now on, in place of
        programs.

        Nothing is to be done for most call sites of an area that no host code serves: their service
        is always called.

        Args:
            addr: the call site.
        """
        if addr in self._here.sites or addr & -CALL_AREA in self._tables:
            self._site(addr).serve_by_python()
        elif addr & CALL_AREA - 1 < DIRECT_CALLS and addr not in self._direct:
            if addr not in self._on_direct:
                on_direct, renew = self._services.direct(addr)
                self._on_direct[addr] = DIRECT(on_direct), renew
            callback, renew = self._on_direct[addr]
            renew()
            self._direct[addr] = self._engine.hook(const.UC_HOOK_CODE, callback, addr, addr)

    # --- call sites that host code serves

    @property
    def can_run(self) -> bool:
        """Whether program_at() works: there is host code."""
        return hostcode.available()

    def program_at(
        self, addr: int, programs: Sequence[HostProgram], last: BuiltIn | None = None
    ) -> None:
        """Have host code run programs at a call site, in place of its service, from now on.

        The programs are kept alive while they are there.

        Args:
            addr: the call site.
            programs: programs of the host's, in the order in which they run.
            last: what is done behind them, by host code: a usual hit, the entry or the return of a
                followed call; None: nothing. Without programs and `last`, executions are only
                counted.
        """
        site = self._site(addr)
        assert last is None or isinstance(last, Enter | Hit | Leave)
        # As long as they are called: a helper in Python may have changed what is here, and then the
        # program that called it goes on.
        site.programs = (
            *(site.programs if self._followed.serving else ()),
            *programs,
            *(last.held if last else ()),
        )
        site["quick"] = 0
        site["program"] = chain(programs)
        site["after"] = last.at(site, addr) if last else 0
        site["function"] = (
            hostcode.address("program") if programs else site["after"] or hostcode.address("count")
        )
        if len(programs) == 1 and last is None and programs[0].brief:
            site["quick"] = site["program"]

    def count(self, addr: int) -> int:
        """Return how often the call site at `addr` was executed without its service being called.

        0 where no host code serves call sites.
        """
        served = addr in self._here.sites or addr & -CALL_AREA in self._tables
        return self._site(addr)["hits"] if served else 0

    def ran(self, addr: int) -> bool:
        """Return True if the service of a call site, which is called now, is called for a hit whose
        programs have run already.
        """
        return bool(self._site(addr)["ran"])

    def _table(self, area: int) -> CallSiteTable:
        """Return a table for the call sites of an area, which has none yet.

        Tables that ended last are not used again yet: a callback of theirs may be running now.

        Args:
            area: address of the area.
        """
        if len(self._idle_tables) > IDLE_TABLES:
            table = self._idle_tables.pop(0)
        else:
            table = CallSiteTable(CALL_AREA)
            self._engine.keep(table)
        table.begin(area)
        return table

    def _site(self, addr: int) -> CallSite:
        """Return the words of a call site; make them if there are none.

        Args:
            addr: the call site: an instruction of the guest's text, or one in an area.
        """
        if addr in self._here.sites:
            return self._here.sites[addr]
        table = self._tables[addr & -CALL_AREA]
        site = table.sites.get(addr)
        if site is None:
            site = CallSite(self._followed.address, DIRECT(self._services.direct(addr)[0]))
            table.add(addr, site)
            self._followed.places[site.address] = addr
        return site
