"""Finds the places that displaced instructions stand for, from where they run."""

from __future__ import annotations

from ...arch._base import Insn
from ...regs import Regs
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..patch.sites import SiteKind
from .ctlblk import ControlBlock, HitState


class Displaced:
    """Looks addresses up in slots, buffers and call sites."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms

    def ours(self, pc: int) -> bool:
        """Return True for an address in code of the library's."""
        return self._rooms.ours(pc)

    def home(self, pc: int) -> int | None:
        """Return the address in the guest's text that code of the library's at `pc` stands for;
        None for any other pc.
        """
        found = self.at(pc)
        if found is None:
            return None
        _, insn, home, _ = found
        return home + insn.size if self._delayed(pc, insn, home) else home

    def waits(self, cb: ControlBlock, regs: Regs) -> int | None:
        """Return the target of a branch whose delay slot runs out of line at regs.pc; None: none.
        """
        found = self.at(regs.pc)
        if found is None or not self._delayed(regs.pc, *found[1:3]):
            return None
        point, insn, _, _ = found
        if cb.point is point and cb.state in (HitState.HIT_SS, HitState.REENTER):
            return cb.resume
        # a detour: what it has read and written at home is as it was
        assert insn.simulate is not None
        return insn.simulate(regs)

    def _delayed(self, pc: int, insn: Insn, home: int) -> bool:
        """Return True where `pc` is at what is in the instruction's delay slot."""
        return (insn.delay_slot and home == insn.addr and bool(insn.body)
                and self._rooms.machine.read(pc, len(insn.body)) == insn.body)

    def stops(self, pc: int) -> bool:
        """Return True where a breakpoint of the core's stands at `pc`."""
        site = self._rooms.sites.get(pc)
        return site is not None and site.kind is not SiteKind.SLOT

    def at(self, pc: int) -> tuple[Probepoint, Insn, int, int] | None:
        """Return the probepoint whose displaced instruction is at `pc`, that instruction, the
        address it stands for, and where to execute it again; None elsewhere.
        """
        rooms = self._rooms
        slot = rooms.slots.slot_of(pc)
        site = None if slot is None else self._rooms.sites.get(slot)
        if site is not None and site.kind is SiteKind.SLOT:
            point: Probepoint = site.owner
            return (
                point,
                point.insn,
                point.address if pc < point.slot_end else self._behind(point, pc),
                pc,
            )
        buffer = rooms.buffers.slot_of(pc)
        if buffer is not None and buffer in rooms.displaced:
            point, places = rooms.displaced[buffer]
            start, insn = next((place, insn) for place, insn in reversed(places) if place <= pc)
            return point, insn, insn.addr, start
        point_of_call = rooms.calls.slot_of(pc)
        if point_of_call is not None and point_of_call in rooms.called:
            point = rooms.called[point_of_call]
            return point, point.insn, point.address, pc
        return None

    def _behind(self, point: Probepoint, pc: int) -> int:
        """Return the address that `pc` behind a body stands for: the next instruction; or the rest
        of its bundle, and what follows.
        """
        insn, bundles, behind = point.insn, self._rooms.arch.bundles, pc - point.slot_end
        if bundles is None or insn.onward is None:
            return insn.next + min(behind, insn.skips)
        start = bundles.start(insn.addr)
        return min(max(insn.next, start + behind), start + bundles.size)
