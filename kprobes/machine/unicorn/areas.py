"""Areas of guest code whose execution is noticed without a trap: call sites, served in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import unicorn
from unicorn import unicorn_const as const

from ...arch._base import Arch
from .._base import BuiltIn, HostProgram
from .cpu import Processor
from .engine import CALL, DIRECT
from .following import Enter, Following, Leave
from .guests.guest import Guest
from .host import hostcode
from .host.callsites import CallSite, SiteTable
from .programs import HostView, chain

DIRECT_CALLS = 128  # bytes at the start of a call area whose call sites have their own hooks, where there is no host code
IDLE_TABLES = 4  # tables that no area uses, before one is used again


class Areas(Processor):
    """A processor with such areas. See machine._base.Machine."""

    call_area = 1 << 16

    @property
    def delays_in_calls(self) -> bool:
        """True if in a call area an instruction may have a delay slot: all there is under a hook."""
        return self.guest.blocks.hooked_delay_slots

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest) -> None:
        super().__init__(uc, arch, guest)
        self.failed_at: int | None = None  # where a service that raised sent the guest, if the engine may not have noticed
        self._sent: int | None = None  # the same of the last one that did not
        self.skip = -1  # address in a call area that was served already
        self._call_hooks: dict[int, list[int]] = {}
        self._on_call: object = None  # the areas' hook, without host code
        self._on_direct: dict[int, tuple[object, Callable[[], None]]] = {}  # call site -> its hook, and what makes that the next sink's
        self._direct: dict[int, int] = {}  # call site -> its own hook
        self._tables: dict[int, SiteTable] = {}  # area -> its call sites, for host code
        self._idle_tables: list[SiteTable] = []
        self._places: dict[int, int] = {}  # address of a call site's words -> where it is
        self.trampoline = 0  # call site where followed calls return

    def map_calls(self, near: int) -> int:
        """An area in which every instruction executed is reported to Sink.services first, by one hook over all of it."""
        area = self.gap(self.call_area, near, self.call_area)
        self.map_own(area, self.call_area, hooked=True)
        end = area + self.call_area - 1
        if hostcode.available():
            table = self._tables[area] = self._table(area)
            serve = hostcode.address("serve")
            self._call_hooks[area] = [self.engine.hook(const.UC_HOOK_CODE, serve, area, end, table.data)]
        else:
            self._on_call = self._on_call or CALL(lambda _uc, address: self._serve_call(address))  # the engine keeps it
            self._call_hooks[area] = [self.engine.hook(const.UC_HOOK_CODE, self._on_call, area + DIRECT_CALLS, end)]
        return area

    def unmap_calls(self, area: int) -> None:
        """Unmap an area from map_calls()."""
        for addr in [addr for addr in self._direct if addr & -self.call_area == area]:
            self._call_hooks[area].append(self._direct.pop(addr))
        for hook in self._call_hooks.pop(area):
            self.engine.unhook(hook)
        if area in self._tables:
            table = self._tables.pop(area)
            for site in table.sites.values():
                del self._places[site.address]
            table.end()
            self._idle_tables.append(table)
        self.unmap_pages(area, self.call_area)

    def call_at(self, addr: int) -> None:
        """A service is there from now on."""
        if addr & -self.call_area in self._tables:
            site = self._site(addr)
            site["function"] = site["python"]
        elif addr & self.call_area - 1 < DIRECT_CALLS and addr not in self._direct:
            if addr not in self._on_direct:
                on_direct, renew = self._direct_callback(addr)
                self._on_direct[addr] = DIRECT(on_direct), renew
            callback, renew = self._on_direct[addr]
            renew()
            self._direct[addr] = self.engine.hook(const.UC_HOOK_CODE, callback, addr, addr)

    # --- call sites that host code serves

    @property
    def can_run(self) -> bool:
        """True if program_at() works."""
        return hostcode.available()

    @cached_property
    def host_view(self) -> HostView | None:
        """The guest, for who compiles programs for the host."""
        return HostView(self) if self.can_run else None

    @cached_property
    def following(self) -> Following | None:
        """The programs that follow calls."""
        return Following(self) if self.followed.possible else None

    def program_at(self, addr: int, programs: Sequence[HostProgram], last: BuiltIn | None = None) -> None:
        """Programs run at a call site. See machine._base.Machine."""
        site = self._site(addr)
        assert last is None or isinstance(last, Enter | Leave)
        # As long as they are called: a helper in Python may have changed what is here, and then the program that called it goes on.
        site.programs = (*(site.programs if self.followed.serving else ()), *programs, *(last.held if last else ()))
        site["program"], site["after"] = chain(programs), last.at(site, addr) if last else 0
        site["function"] = hostcode.address("program") if programs else site["after"] or hostcode.address("count")

    def count(self, addr: int) -> int:
        """How often the call site was executed without its service being called."""
        return self._site(addr)["hits"] if addr & -self.call_area in self._tables else 0

    def ran(self, addr: int) -> bool:
        """True while the service is called though programs have run."""
        return bool(self._site(addr)["ran"])

    def place_of(self, site: int) -> int:
        """Where the call site is that has its words at `site`."""
        return self._places[site]

    def _table(self, area: int) -> SiteTable:
        """An empty table. Those that were ended last are left alone: a callback of theirs may be the one that runs now."""
        if len(self._idle_tables) > IDLE_TABLES:
            table = self._idle_tables.pop(0)
        else:
            table = SiteTable(self.call_area)
            self.engine.keep(table)
        table.begin(area)
        return table

    def _site(self, addr: int) -> CallSite:
        table = self._tables[addr & -self.call_area]
        site = table.sites.get(addr)
        if site is None:
            site = CallSite(self.followed.address)
            site.callback("python", DIRECT(self._direct_callback(addr)[0]))
            table.add(addr, site)
            self._places[site.address] = addr
        return site

    def _direct_callback(self, address: int) -> tuple[Callable[[], None], Callable[[], None]]:
        """The hook of one call site: the engine need not say which. As short as it can be; see _serve_call(). And what makes it the next sink's."""
        regs, services, write_pc = self._regs, self.services, self._send if self.guest.pc.written_again else self.write_pc

        def on_direct() -> None:
            if self.disturbed or services is not self.services:
                self._serve_call(address)
                return
            try:
                services[address](regs)
                if regs.target is not None:
                    write_pc(regs.target)
                    regs.target = None
                elif self.disturbed:
                    self._settle_call(address)
            except BaseException as error:
                self._failed_call(address, error)
            regs.reported = None

        def renew() -> None:
            nonlocal services
            services = self.services

        return on_direct, renew

    def entered_callback(self, site: CallSite, address: int) -> Callable[[], int]:
        """What host code asks at a function entry: whether the call is followed. As short as it can be."""
        regs, write_pc = self._regs, self._send if self.guest.pc.written_again else self.write_pc
        view, frame, target = self.followed.view, hostcode.CALLS["frame"] // 8, hostcode.CALLS["target"] // 8

        def on_entered() -> int:
            follows = False
            try:
                follows = site.entered(regs, view[frame], view[target])
                if regs.target is not None:
                    write_pc(regs.target)
                    regs.target = None
                elif self.disturbed:
                    self._settle_call(address)
            except BaseException as error:
                self._failed_call(address, error)
            regs.reported = None
            return follows

        return on_entered

    def returned_callback(self, site: CallSite) -> Callable[[], None]:
        """What host code calls at the trampoline when it has put the return address right. As short as it can be."""
        regs, write_pc = self._regs, self._send if self.guest.pc.written_again else self.write_pc
        view, frame, target = self.followed.view, hostcode.CALLS["frame"] // 8, hostcode.CALLS["target"] // 8

        def on_returned() -> None:
            try:
                site.returned(regs, view[frame], view[target])
                if regs.target is not None:
                    write_pc(regs.target)
                    regs.target = None
                elif self.disturbed:
                    self._settle_call(self.trampoline)
            except BaseException as error:
                self._failed_call(self.trampoline, error)
            regs.reported = None

        return on_returned

    def _serve_call(self, address: int) -> None:
        regs = self._regs
        try:
            self.disturb(False)
            if self.why_stopped and self.depth:  # meanwhile, by another thread: here, as the call site is executed again
                self.disturb(True)
                self.engine.stop()
                return
            if self.skip == address:  # it was served when its own service stopped the guest, and is now resumed
                self.skip = -1
                return
            service = self.services.get(address)
            if service is None:
                return  # not the first instruction of a call site
            service(regs)
            if regs.target is not None:
                self._send(regs.target)
                regs.target = None
            elif self.disturbed:
                self._settle_call(address)
        except BaseException as error:
            self._failed_call(address, error)
        regs.reported = None

    def _settle_call(self, address: int) -> None:
        """The service has stopped the run, or run other guest code: the engine executes the call site again."""
        self.skip = address
        if self.why_stopped and self.depth:
            self.engine.stop()  # now: whoever asked for it may not have told the engine yet
        else:
            self.write_pc(self.arch.pointers.same_mode(self._regs, address))  # the nested run has left the engine elsewhere

    def _send(self, target: int) -> None:
        """Write pc in a CODE hook, and remember it where the engine may lose that: see Pc.written_again."""
        self.write_pc(target)
        if self.guest.pc.written_again:
            self._sent = target

    def send_again(self) -> bool:
        """True, and the guest sent on, where it is only here because the last pc write was lost."""
        target, self._sent = self._sent, None
        if target is None:
            return False
        self.write_pc(target)
        return True

    def _failed_call(self, address: int, error: BaseException) -> None:
        if isinstance(error, KeyError) and error.__traceback__ is not None and error.__traceback__.tb_next is None:
            return  # there is no service; not an error of the service's, which may have taken itself away
        if self._regs.target is not None:
            self._send(self._regs.target)
            self.failed_at, self._sent = self._sent, None
            self._regs.target = None
        self.park(error)
