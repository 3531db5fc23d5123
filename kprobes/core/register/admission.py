"""Decides whether a probe may be registered at a place."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from ...arch._base import Insn
from ...errors import BadLocation, Blacklisted, JprobeExists, NotFunctionEntry, NotText, TooBig
from ...symbols import Symbol
from ..patch.rooms import Rooms
from ..probe import Jprobe, Kprobe, Kretprobe, Probe
from .blacklist import PROGRAM_ENTRY, RETURNS_TWICE, Blacklist
from .locate import Location, extent

P = TypeVar("P", bound=Probe)
MAX_DATA_SIZE = 4096


class Admission:
    """Refuses places where no probe, or none of its kind, may be.

    Attributes:
        blacklist: places that the user forbids, and the library's own pages.
    """

    def __init__(self, rooms: Rooms) -> None:
        self._machine = rooms.machine
        self._survey = rooms.survey
        code = partial(extent, rooms.machine, rooms.text)
        self.blacklist = Blacklist(rooms.machine.symbols, code, rooms.ours, rooms.ranges)

    def admit(self, place: Location) -> Insn:
        """Check that a probe may be at a place, and return the instruction there.

        Args:
            place: the place.

        Raises:
            Blacklisted: the place is on the blacklist.
            NotText: it is not executable, or an object's.
            NotAnInstruction, Unprobeable: the instruction there, or its neighbours, forbid it.
        """
        symbol = place.symbol.name if place.symbol else None
        why = self.blacklist.why(place.address)
        if why:
            raise Blacklisted(
                why,
                address=place.address,
                symbol=symbol,
                hint="probe elsewhere",
                python="" if self.blacklist.ours(place.address) else "or k.blacklist.remove(...)",
            )
        if not self._machine.executable(place.address) or (
            place.symbol is not None and place.symbol.kind == "object"
        ):
            raise NotText(
                "is not executable guest text",
                address=place.address,
                symbol=symbol,
                hint="kprobes sit on instructions",
            )
        return self._survey.at(place.address, place.mode, place.symbol)

    def check_kind(self, probe: Probe, place: Location, beside: tuple[Probe, ...]) -> None:
        """Check what a return probe or jprobe needs of a place in addition. A kprobe needs nothing.

        Args:
            probe: the probe, of any kind.
            place: where it is to be.
            beside: probes that are registered there already.

        Raises:
            NotFunctionEntry: the place is no function's entry.
            JprobeExists: there is another jprobe.
            TooBig: data_size is too large, or negative.
            Blacklisted: the function returns twice, as setjmp does, or never, as _start.
        """
        if isinstance(probe, Kprobe):
            return
        if not place.entry:
            raise NotFunctionEntry(
                "is not a function entry",
                address=place.address,
                symbol=probe.place(),
                hint="use a kprobe, or the function's own symbol",
            )
        if isinstance(probe, Jprobe) and any(isinstance(p, Jprobe) for p in beside):
            raise JprobeExists(
                "has a jprobe already",
                address=place.address,
                symbol=probe.place(),
                hint="unregister that one first",
            )
        if isinstance(probe, Kretprobe) and not 0 <= probe.data_size <= MAX_DATA_SIZE:
            raise TooBig(
                f"data_size {probe.data_size} is not in 0..{MAX_DATA_SIZE}",
                symbol=probe.place(),
                hint="keep big data outside, keyed by ri",
            )
        why = ""
        if isinstance(probe, Kretprobe) and place.symbol is not None:
            if place.symbol.name in RETURNS_TWICE:
                why = "returns twice, so its return cannot be followed"
            elif place.symbol.name == PROGRAM_ENTRY and self._never_returns(place.symbol):
                why = "is a program's entry and has no caller, so it cannot return"
        if why:
            raise Blacklisted(why, address=place.address, symbol=probe.place(), hint="use a kprobe")

    def _never_returns(self, symbol: Symbol) -> bool:
        """Return True if a function has nothing to return by, where calls push the return address:
        each of its instructions goes on to the next one, or jumps within the function.

        A kernel begins a program with the number of its arguments in that place, which is not to be
        changed.

        Args:
            symbol: the function's.
        """
        linkage = self._machine.arch.linkage
        if linkage is None or not linkage.pushed:
            return False
        insns = self._survey.instructions(symbol)
        inside = {insn.addr for insn in insns}
        return all(insn.falls_through or insn.target in inside for insn in insns)


def typed(probe: P, kind: type[P]) -> P:
    """Return a probe, after a check that it is of a kind.

    Args:
        probe: what the user has passed.
        kind: the class that it must be of.

    Raises:
        BadLocation: it is not of that kind, or no probe at all.
    """
    if not isinstance(probe, kind):
        raise BadLocation(f"{probe!r} is not a {kind.__name__}", hint=f"pass a {kind.__name__}")
    return probe
