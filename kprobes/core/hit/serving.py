"""Who serves the call site of a detour: the machine alone, where it can, or a service of ours."""

from __future__ import annotations

from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..probe import Kretprobe
from .calls import Calls
from .entries import Entries
from .exits import Exits
from .siblings import Siblings


class Serving:
    """Decides it, whenever the probes of an optimized probepoint have changed."""

    def __init__(self, rooms: Rooms, calls: Calls, entries: Entries, exits: Exits,
                 siblings: Siblings) -> None:
        self._rooms, self._calls = rooms, calls
        self._entries, self._exits, self._siblings = entries, exits, siblings

    def serve(self, point: Probepoint) -> None:
        """Have the call site of a detour served: by the machine where it counts or follows calls and nobody else wants
        to know."""
        assert point.detour is not None
        call, machine = point.detour.call, self._rooms.machine
        self._calls.follow_no_more(call)
        machine.call_at(call)
        self._rooms.services[call] = self._entries.service(point)
        if not point.active or (point.insn.simulate is not None and not point.native):
            return
        probes = tuple(p for p in point.active if isinstance(p, Kretprobe))
        asks = any(p._entry_handler is not None for p in probes)
        together = len(probes) == len(point.active) > 1 and machine.cpus == 1
        if together:
            self._rooms.services[call] = self._siblings.service(point, point.detour, probes, asks)
        if (machine.can_run and all(p._host is not None or p._pre is None for p in point.active)
            and self._run(point, call)):
            return
        if len(probes) < len(point.active) or self._calls.programs is None:
            return
        handler = probes[0]._entry_handler
        if together:
            entered = self._siblings.entered(point, point.detour, probes) if asks else None
            self._calls.follow(probes, call, self._siblings.returned(probes, asks), entered)
        else:
            entered = None if handler is None else self._entries.entered(point, point.detour, probes[0], handler)
            self._calls.follow(probes, call, self._exits.returned(probes[0]), entered)

    def _run(self, point: Probepoint, call: int) -> bool:
        """Every probe there is a program, or only counts: the machine does it, and follows calls where a program is to
        run at the return. False: not these.

        A return that does not lead by itself where the caller wants it is the core's.
        """
        machine, linkage = self._rooms.machine, self._rooms.arch.linkage
        programs = [p._host for p in point.active if p._host is not None and not isinstance(p, Kretprobe)]
        probes = tuple(p for p in point.active if isinstance(p, Kretprobe))
        if not probes:
            machine.program_at(call, programs)
            return True
        plain = linkage is not None and linkage.returning.plain
        if len(probes) > 1 or probes[0]._entry_handler is not None or not plain or self._calls.programs is None:
            return False
        if programs:
            self._rooms.services[call] = self._entries.service_after_programs(point, probes[0], call)
        assert probes[0]._host is not None
        self._calls.follow(probes, call, [probes[0]._host], programs=programs)
        return True

    def serve_returns(self) -> None:
        """Have the trampoline served, where that is a call site."""
        address = self._calls.trampoline & ~self._rooms.arch.pointers.mode_bits
        if address in self._rooms.calls:
            self._rooms.services[address] = self._exits.service()
