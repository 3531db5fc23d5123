"""Registry: register and unregister, one by one and in batches; wires the rooms together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ...arch._base import Insn
from ...errors import (
    AlreadyRegistered,
    BadLocation,
    Blacklisted,
    JprobeExists,
    NotFunctionEntry,
    NotText,
    TooBig,
)
from ...machine._base import Machine
from ..hit.ctlblk import IDLE
from ..hit.returns import Returns
from ..hit.trap import TrapDriver
from ..patch.arming import Arming
from ..patch.optimizer import Optimizer
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..patch.sites import Kind, Site
from ..probe import Jprobe, Kprobe, Kretprobe, Probe
from . import jprobe
from .blacklist import RETURNS_TWICE, Blacklist
from .locate import Location, locate

P = TypeVar("P", bound=Probe)
MAX_DATA_SIZE = 4096
#: by the machine's id: the one that is closed, but for calls that have yet to return. It lives as long as the machine reports to it.
_CLOSING: WeakValueDictionary[int, Registry] = WeakValueDictionary()


class Registry:
    """Registers and unregisters probes, one by one and in batches, and keeps memory as they want it."""

    def __init__(self, machine: Machine) -> None:
        before: Registry | None = _CLOSING.get(id(machine))
        self.machine = machine
        self._rooms: Rooms = Rooms(machine) if before is None else before._rooms
        rooms = self._rooms
        self._sites, self._text, self._survey = rooms.sites, rooms.text, rooms.survey
        self._returns = Returns(rooms) if before is None else before._hand_over()
        self._calls = self._returns.calls
        self._driver = TrapDriver(self, rooms, self._returns)
        self._returns.service = self._driver.return_service
        self._returns.serve_again()
        rooms.serve, rooms.unserve = self._driver.serve, self._driver.unserve
        self.optimizer = Optimizer(rooms, self._settle)
        self.rearmed = 0
        self._points: dict[int, Probepoint] = {}
        self._enabled, self._closed = True, False
        self.blacklist = Blacklist(machine.symbols, rooms.ours, rooms.ranges)
        machine.report_to(self._driver)
        machine.before_run = None
        for regs in machine.cpu_regs:
            regs.true_return = self._calls.true_return

    # --- registration

    def register(self, probe: Probe) -> None:
        """Register a probe of any kind. A refusal changes nothing.

        Raises BadLocation, UnknownSymbol, AmbiguousSymbol, AlreadyRegistered, NotText, Blacklisted, NotAnInstruction,
        Unprobeable, NotFunctionEntry, JprobeExists, TooBig, Unsupported, OutOfReach, NoMemory.
        """
        typed(probe, Probe)
        if self._driver.closing:
            raise BadLocation("this Kprobes is closed", symbol=probe.place(), hint="make another one for the machine")
        if probe._point is not None:
            raise AlreadyRegistered("this probe object is registered already", address=probe.address, symbol=probe.place(),
                                    hint="unregister it first, or make another one")
        place = locate(self.machine, self._text, probe.symbol_name, probe.addr, probe.offset)
        insn = self._admit(place)
        hook = self._entry_hook(probe, place)
        try:
            self._join(probe, self._point(place, insn), hook)
        except BaseException:
            self._leave(probe)
            raise

    def _admit(self, place: Location) -> Insn:
        """The instruction at the place; raises where no probe may be."""
        symbol = place.symbol.name if place.symbol else None
        why = self.blacklist.why(place.address)
        if why:
            raise Blacklisted(why, address=place.address, symbol=symbol, hint="probe elsewhere", python="or k.blacklist.remove(...)")
        if not self.machine.executable(place.address) or (place.symbol is not None and place.symbol.kind == "object"):
            raise NotText("is not executable guest text", address=place.address, symbol=symbol, hint="kprobes sit on instructions")
        return self._survey.at(place.address, place.mode, place.symbol)

    def _entry_hook(self, probe: Probe, place: Location) -> Callable[[Any, Any], Any] | None:
        """What a return probe or jprobe runs at entry; checks that belong to these kinds."""
        if isinstance(probe, Kprobe):
            return None
        if not place.entry:
            raise NotFunctionEntry("is not a function entry", address=place.address, symbol=probe.place(),
                                   hint="use a kprobe, or the function's own symbol")
        if isinstance(probe, Jprobe):
            point = self._points.get(place.address)
            if point is not None and any(isinstance(p, Jprobe) for p in point.probes):
                raise JprobeExists("has a jprobe already", address=place.address, symbol=probe.place(), hint="unregister that one first")
            return jprobe.entry_hook(probe, self.machine, self._text)
        assert isinstance(probe, Kretprobe)
        if probe.data_size > MAX_DATA_SIZE or probe.data_size < 0:
            raise TooBig(f"data_size {probe.data_size} is not in 0..{MAX_DATA_SIZE}", symbol=probe.place(), hint="keep big data outside, keyed by ri")
        if place.symbol is not None and place.symbol.name in RETURNS_TWICE:
            raise Blacklisted("returns twice, so its return cannot be followed", address=place.address, symbol=place.symbol.name, hint="use a kprobe")
        self._returns.prepare(probe, place.address)
        return self._returns.hook(probe)

    def _point(self, place: Location, insn: Insn) -> Probepoint:
        """The probepoint at a place, made with its first probe; unloaded text that was loaded again starts afresh."""
        point = self._points.get(place.address)
        symbol = place.symbol
        name, module = (symbol.name, symbol.module) if symbol else ("", "")
        if point is None:
            point = Probepoint(self._rooms, insn, name, place.offset, module)
            self._points[place.address] = point
            self._sites[place.address] = Site(Kind.PROBEPOINT, point)
        elif point.state is Arming.GONE:
            point.reload(insn, name, place.offset, module)
        return point

    def _join(self, probe: Probe, point: Probepoint, hook: Callable[[Any, Any], Any] | None) -> None:
        probe._owner, probe._point, probe._pre = self, point, hook
        probe._off, probe._gone = probe.disabled, False
        probe._active = not probe.disabled
        probe._nhit = probe._missed = 0
        if isinstance(probe, Kretprobe):
            probe.nmissed = probe._nreturned = 0
        point.add(probe)
        self._sync(point)

    def _sync(self, point: Probepoint) -> None:
        """Make memory say what is wanted: armed where somebody enabled is there and the switch is on."""
        if self._enabled and point.active:
            if point.state is Arming.DISARMED:
                self.optimizer.make_room(point.address)
                point.arm()
            self.optimizer.consider(point)
        elif point.state in (Arming.ARMED, Arming.OPTIMIZING):
            self.optimizer.force(point)
            point.disarm()
            self.optimizer.left(point.address)
        elif not self._enabled:
            self.optimizer.force(point)
            self._settle(point)
        else:
            self.optimizer.consider(point)  # a jump is taken out at the next safe point

    def _settle(self, point: Probepoint) -> None:
        """The optimizer has taken a jump out: disarm what is not wanted, drop what is not used."""
        if point.state is Arming.ARMED and not (self._enabled and point.active):
            point.disarm()
            self.optimizer.left(point.address)
        self._drop_unused(point)

    def _drop_unused(self, point: Probepoint) -> None:
        if not point.probes and point.state in (Arming.DISARMED, Arming.GONE) and self._points.get(point.address) is point:
            point.give_back_slot()
            del self._points[point.address], self._sites[point.address]

    def safe_point(self) -> None:
        """Nothing runs: let the optimizer work, and free what nobody uses."""
        self.rearmed += self._text.check()
        if self.idle:
            self.optimizer.drain()
            self.finish_closing()
        self._text.warn()

    def unregister(self, probe: Probe) -> None:
        """Unregister a probe of any kind; it is then as the user made it. Raises NotRegistered."""
        if typed(probe, Probe)._owner is not self or probe._point is None:
            raise probe.not_registered()
        self._leave(probe)
        self._collect()

    def _leave(self, probe: Probe) -> None:
        point = probe._point
        probe._owner = probe._point = None
        probe._active = probe._gone = probe._off = False
        if isinstance(probe, Kretprobe):
            self._returns.forget(probe)
        if point is None:
            return
        point.remove(probe)
        self._sync(point)
        self._drop_unused(point)

    def _collect(self) -> None:
        """Outside of a hit, unregistering is a safe point: no jump stays, and slots of probes that are gone are freed."""
        if self.idle:
            self.optimizer.drain()
            self._rooms.collect()
        self._text.warn()

    @property
    def idle(self) -> bool:
        """True while no CPU is in a hit."""
        return all(cb.state is IDLE for cb in self._driver.blocks)

    # --- what the driver reports

    def unload(self, start: int, end: int) -> None:
        """Guest memory [start, end) goes away: probes there are GONE; they stay listed until unregistered."""
        for point in [p for a, p in self._points.items() if start <= a < end]:
            if point.state is not Arming.GONE:
                self.optimizer.forget(point)
                point.unload()
                point.give_back_slot()
                for probe in point.probes:
                    probe._gone, probe._active = True, False
                point.refresh()
        self._collect()

    def finish_closing(self) -> None:
        """Give the memory back once no call is pending, and no CPU in a hit or in displaced instructions."""
        if not self._driver.closing or self._closed or not self._at_rest:
            return
        self._calls.settle()
        if self._calls.pending:
            return
        self._returns.close()
        self._rooms.close()
        self._let_go()

    @property
    def _at_rest(self) -> bool:
        return self.idle and all(self._driver.home(regs.pc) is None for regs in self.machine.cpu_regs)

    def _let_go(self) -> None:
        self._closed = True
        _CLOSING.pop(id(self.machine), None)
        self.machine.report_to(None)
        self.machine.before_run = self._text.check  # somebody may restore what was there while it was probed
        for regs in self.machine.cpu_regs:
            regs.true_return = None

    def _hand_over(self) -> Returns:
        """It is closed, but for calls that have yet to return: another one looks after them. Raises AlreadyRegistered within a hit."""
        if not self._at_rest:
            raise AlreadyRegistered("the Kprobes that this machine has is being closed", hint="make another one when the handler has returned")
        self._let_go()
        return self._returns


def typed(probe: P, kind: type[P]) -> P:
    if not isinstance(probe, kind):
        raise BadLocation(f"{probe!r} is not a {kind.__name__}", hint=f"pass a {kind.__name__}")
    return probe
