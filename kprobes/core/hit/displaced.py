"""Displaced instructions: from the address where one runs to the address it stands for.

A displaced instruction is a copy of a probed one that is executed out of its place: in a slot
(behind a breakpoint), in a detour's buffer (behind a jump) or simulated at a call site.
"""

from __future__ import annotations

from ...arch._base import Insn
from ...regs import Regs
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..patch.sites import SiteKind
from .ctlblk import ControlBlock, HitState


class Displaced:
    """Looks addresses up in the library's slots, buffers and call sites."""

    def __init__(self, rooms: Rooms) -> None:
        """Keep the parts of the Kprobes, whose tables are looked up."""
        self._rooms = rooms

    def ours(self, pc: int) -> bool:
        """Return True if an address is in memory that the library has mapped for its own code."""
        return self._rooms.ours(pc)

    def home(self, pc: int) -> int | None:
        """Return the address in guest text of the instruction whose copy runs at `pc`.

        For the copy of an instruction in a delay slot, the delay slot's address.

        Args:
            pc: an address.

        Returns:
            None: `pc` is in no slot, buffer or call site of the library's.
        """
        found = self.at(pc)
        if found is None:
            return None
        _, insn, home, _ = found
        return home + insn.size if self._delayed(pc, insn, home) else home

    def waiting_target(self, cb: ControlBlock, regs: Regs) -> int | None:
        """Return the target of the branch whose delay slot is executed out of line at regs.pc.

        The branch has not been taken yet: it waits for its delay slot.

        Args:
            cb: the control block of the CPU: it knows the target of a branch that was simulated.
            regs: the registers of the CPU; not changed, but the branch may be simulated again on
                them.

        Returns:
            The target; None: no instruction in a branch's delay slot is executed out of line there.
        """
        found = self.at(regs.pc)
        if found is None or not self._delayed(regs.pc, *found[1:3]):
            return None
        point, insn, _, _ = found
        if cb.point is point and cb.state in (HitState.HIT_SS, HitState.REENTER):
            return cb.resume
        # in a detour the branch has changed nothing yet: simulating it again gives its target
        assert insn.simulate is not None
        return insn.simulate(regs)

    def _delayed(self, pc: int, insn: Insn, home: int) -> bool:
        """Return True if at `pc` is a copy of the instruction in a branch's delay slot.

        Args:
            pc: where the copy may be.
            insn: a displaced instruction, perhaps a branch with a delay slot.
            home: the address in guest text that `pc` stands for.
        """
        return (
            insn.delay_slot
            and home == insn.addr
            and bool(insn.body)
            and self._rooms.machine.read(pc, len(insn.body)) == insn.body
        )

    def stops(self, pc: int) -> bool:
        """Return True if a breakpoint of the core's stands at `pc`.

        It may be a probe's, one behind a slot, or the trampoline's.
        """
        site = self._rooms.sites.get(pc)
        return site is not None and site.kind is not SiteKind.SLOT

    def at(self, pc: int) -> tuple[Probepoint, Insn, int, int] | None:
        """Find the displaced instruction whose copy is at an address of the library's code.

        Args:
            pc: an address in a slot, a buffer or a call site.

        Returns:
            (the probepoint, the instruction, the address in guest text that `pc` stands for, the
                address where to execute the instruction again: in a detour's buffer the start of
                the copy, in a slot or at a call site `pc` itself); None: `pc` is in none of these.
        """
        rooms = self._rooms
        point = self._point_of_slot(pc)
        if point is not None:
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

    def _point_of_slot(self, pc: int) -> Probepoint | None:
        """Return the probepoint whose slot an address is in; None: it is in no slot."""
        slot = self._rooms.slots.slot_of(pc)
        site = None if slot is None else self._rooms.sites.get(slot)
        if site is None or site.kind is not SiteKind.SLOT:
            return None
        owner: Probepoint = site.owner
        return owner

    def progress(self, pc: int) -> tuple[bool, int | None]:
        """Tell how far the guest has come that has reached an address in a slot or a buffer.

        Args:
            pc: the address, between two instructions there.

        Returns:
            (True where it is within the code that stands for one instruction of the guest's, or
                before the first one; where all of them are executed: the address in guest text,
                mode bits included, else None). (False, None) also where `pc` is elsewhere.
        """
        rooms = self._rooms
        point = self._point_of_slot(pc)
        if point is not None:
            if pc < point.slot_end:
                return True, None
            return False, self._behind(point, pc) | point.insn.mode
        buffer = rooms.buffers.slot_of(pc)
        if buffer is None or buffer not in rooms.displaced:
            return False, None
        _, places = rooms.displaced[buffer]
        place, insn = places[-1]
        if pc == place + len(rooms.copy_of(insn, place)):
            return False, insn.next | insn.mode
        return all(pc != place for place, _ in places[1:]), None

    def _behind(self, point: Probepoint, pc: int) -> int:
        """Return the address in guest text that `pc` stands for, behind the body in a slot.

        That is the next instruction's, or that of one which the displaced instruction skips. Where
        the slot has the rest of a bundle, too, it is the address in the bundle, at most the
        bundle's end.

        Args:
            point: the probepoint that the slot belongs to.
            pc: an address at or behind the slot's end.
        """
        insn, bundles, behind = point.insn, self._rooms.arch.bundles, pc - point.slot_end
        if bundles is None or insn.onward is None:
            return insn.next + min(behind, insn.skips)
        start = bundles.start(insn.addr)
        return min(max(insn.next, start + behind), start + bundles.size)
