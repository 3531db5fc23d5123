"""Decides whether a probe may be registered at a place."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from ...arch._base import Insn
from ...errors import BadLocation, Blacklisted, JprobeExists, NotFunctionEntry, NotText, TooBig
from ..patch.rooms import Rooms
from ..probe import Jprobe, Kprobe, Kretprobe, Probe
from .blacklist import RETURNS_TWICE, Blacklist
from .locate import Location, extent

P = TypeVar("P", bound=Probe)
MAX_DATA_SIZE = 4096


class Admission:
    """Refuses places and kinds.

    Attributes:
        blacklist: places that the user forbids, and our own.
    """

    def __init__(self, rooms: Rooms) -> None:
        self._machine = rooms.machine
        self._survey = rooms.survey
        code = partial(extent, rooms.machine, rooms.text)
        self.blacklist = Blacklist(rooms.machine.symbols, code, rooms.ours, rooms.ranges)

    def admit(self, place: Location) -> Insn:
        """Return the instruction at the place; raises where no probe may be."""
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
            raise NotText("is not executable guest text", address=place.address, symbol=symbol,
                          hint="kprobes sit on instructions")
        return self._survey.at(place.address, place.mode, place.symbol)

    def check_kind(self, probe: Probe, place: Location, beside: tuple[Probe, ...]) -> None:
        """Check the conditions that return probes and jprobes add.

        Args:
            beside: probes that are registered there already.
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
            raise JprobeExists("has a jprobe already", address=place.address, symbol=probe.place(),
                               hint="unregister that one first")
        if isinstance(probe, Kretprobe) and not 0 <= probe.data_size <= MAX_DATA_SIZE:
            raise TooBig(
                f"data_size {probe.data_size} is not in 0..{MAX_DATA_SIZE}",
                symbol=probe.place(),
                hint="keep big data outside, keyed by ri",
            )
        if (
            isinstance(probe, Kretprobe)
            and place.symbol is not None
            and place.symbol.name in RETURNS_TWICE
        ):
            raise Blacklisted(
                "returns twice, so its return cannot be followed",
                address=place.address,
                symbol=place.symbol.name,
                hint="use a kprobe",
            )


def typed(probe: P, kind: type[P]) -> P:
    """Return the probe, if it is one of this kind; BadLocation."""
    if not isinstance(probe, kind):
        raise BadLocation(f"{probe!r} is not a {kind.__name__}", hint=f"pass a {kind.__name__}")
    return probe
