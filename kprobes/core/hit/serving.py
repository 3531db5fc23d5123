"""Decides who serves a detour's call site: the machine by itself, or a function of the core's.

The call site is the code that an optimized probepoint's jump leads to. When the guest comes there,
the machine calls a service (a Python function of the core's), or does the usual work by itself.
"""

from __future__ import annotations

from ...machine._base import Hits
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..probe import Kretprobe
from .calls import CallsUnderWay
from .entries import Entries
from .exits import Exits
from .handlers import Handlers


class Serving:
    """Decides who serves a call site.

    Asked whenever the probes of an optimized probepoint change.
    """

    def __init__(
        self, rooms: Rooms, handlers: Handlers, calls: CallsUnderWay, entries: Entries, exits: Exits
    ) -> None:
        """Prepare; no call site is served yet.

        Args:
            rooms: the parts of the Kprobes.
            handlers: has the machine's power to serve usual hits.
            calls: the followed calls.
            entries: describes hits, and makes services of detours' call sites.
            exits: describes returns, and makes the trampoline's service.
        """
        self._rooms = rooms
        self._handlers = handlers
        self._calls = calls
        self._entries = entries
        self._exits = exits

    def serve(self, point: Probepoint) -> None:
        """Choose anew who serves the call site of a probepoint's detour, and tell the machine.

        The machine counts hits, runs programs, follows calls or calls handlers, whichever it can;
        the core's service serves every hit that the machine leaves to it. What the machine did
        there before ends. Where no probe is active or the instruction has to be simulated, the
        core's service serves all hits.

        Args:
            point: the probepoint; it has a detour.
        """
        assert point.detour is not None
        call = point.detour.call
        sites = self._rooms.sites_in_place
        self._calls.follow_no_more(call)
        sites.call_at(call)
        self._rooms.services[call] = self._entries.service(point)
        if not point.active or (point.insn.simulate is not None and not point.native):
            return
        if sites.can_run and not point.in_python and self._run(point, call):
            return
        probes = point.returning
        if probes:
            self._follow(point, probes, call)
        elif self._handlers.hits is not None and point.in_python:
            self._call_handlers(point, call, self._handlers.hits)

    def _call_handlers(self, point: Probepoint, call: int, hits: Hits) -> None:
        """Have the machine call the pre-handlers of a probepoint without return probes at each hit.

        Args:
            point: the probepoint.
            call: address of its call site.
            hits: the machine's power to do so.
        """
        p = point.active[0]
        if len(point.active) > 1:
            usual = self._entries.describe_hits_of_several(point)
        else:
            assert p._pre is not None
            usual = self._entries.describe_hit(point, p, p._pre)
        self._rooms.sites_in_place.program_at(call, (), hits.hit(usual))

    def _follow(self, point: Probepoint, probes: tuple[Kretprobe, ...], call: int) -> None:
        """Have the machine follow the calls of return probes by itself, if it can; else change
        nothing.

        It can where all probes there are return probes, and only the first has an entry handler: a
        later one would see the return address as those before it have left it.

        Args:
            point: the probepoint at the function's entry.
            probes: its return probes, in the order in which they run there.
            call: address of its call site.
        """
        if self._calls.programs is None or len(probes) < len(point.active):
            return
        if any(rp.entry_handler for rp in probes[1:]):
            return
        entered = None if probes[0].entry_handler is None else self._entries.asked(point, probes)
        self._calls.follow(probes, call, self._exits.describe_returns(probes), entered)

    def _run(self, point: Probepoint, call: int) -> bool:
        """Have the machine run programs at each hit, and follow calls where one runs at the return.

        Args:
            point: a probepoint each of whose probes has a program, or only counts.
            call: address of its call site.

        Returns:
            True where the machine does. False where it cannot, and nothing was changed: there are
            several return probes, or an entry handler in Python, or the machine follows no calls,
            or the architecture's calls do not simply return where their caller wants
            (Returning.plain).
        """
        linkage = self._rooms.arch.linkage
        probes = point.returning
        programs = [
            program
            for p in point.active
            if (
                program := p._keeping and p._keeping.program
                if isinstance(p, Kretprobe)
                else p._host
            )
        ]
        if not probes:
            self._rooms.sites_in_place.program_at(call, programs)
            return True
        plain = linkage is not None and linkage.returning.plain
        asks = probes[0].entry_handler is not None and probes[0]._keeping is None
        if len(probes) > 1 or asks or not plain or self._calls.programs is None:
            return False
        if programs:
            self._rooms.services[call] = self._entries.after_programs(point, probes[0], call)
        assert probes[0]._host is not None
        self._calls.follow(probes, call, [probes[0]._host], programs=programs)
        return True

    def serve_returns(self) -> None:
        """Have the core serve the trampoline's call site; nothing where the trampoline is a
        breakpoint.
        """
        address = self._calls.trampoline & ~self._rooms.arch.pointers.mode_bits
        if address in self._rooms.calls:
            self._rooms.services[address] = self._exits.service()
