"""Probepoint: everything at one address. Every address that has a probe has one, from its first probe to its last."""

from __future__ import annotations

from typing import Any

from ...arch._base import Insn
from ...errors import OutOfReach
from ..probe import Jprobe, Kprobe, Probe
from .arming import Arming, Change, after
from .bits import Patch
from .detour import Detour
from .rooms import Rooms
from .sites import Kind, Site


class Probepoint:
    """An address and all that lives there.

    Attributes:
        address: mode bits stripped. where: `name+0xOFF`. module: image name. insn: the original instruction.
        probes: all, newest first (jprobes last). active: those whose handlers may run. state, patch: what is in memory.
        next: target after the instruction. slot: address of the out-of-line copy, None where nothing runs out of line.
        slot_target: what a hit executes out of line, with mode bits: the slot, or the detour's buffer. boosted: the
        slot ends in a jump back. native: what stands at slot_target does all the rest. detour: where the jump leads
        while there is one. failure: why the optimizer gave up. refusal: why it need not try.
    """

    __slots__ = ("_owns_slot", "_rooms", "active", "address", "boosted", "counted", "detour", "failure", "has_post",
                 "insn", "module", "native", "next", "offset", "patch", "probes", "refusal", "slot", "slot_end",
                 "slot_target", "state", "symbol", "where")

    def __init__(self, rooms: Rooms, insn: Insn, symbol: str, offset: int, module: str) -> None:
        self._rooms = rooms
        self.insn = insn
        self.address = insn.addr
        self._name(symbol, offset, module)
        self.probes: tuple[Probe, ...] = ()
        self.active: tuple[Probe, ...] = ()
        self.has_post = False
        self.boosted = self.native = False
        self.state = Arming.DISARMED
        self.patch: Patch | None = None
        self.detour: Detour | None = None
        self.failure = self.refusal = ""
        self.counted = 0
        self.next = insn.next | insn.mode
        self.slot: int | None = None
        self._owns_slot = False
        self.slot_end = self.slot_target = 0
        if insn.body:
            self._take_slot()

    def _name(self, symbol: str, offset: int, module: str) -> None:
        self.symbol, self.offset, self.module = symbol, offset, module
        self.where = f"{symbol}+{offset:#x}" if symbol else f"{self.address:#x}"

    # --- probes

    def add(self, probe: Probe) -> None:
        """The newest probe comes first; a jprobe comes last (its mirror sees what the others did)."""
        self.probes = (*self.probes, probe) if isinstance(probe, Jprobe) else (probe, *self.probes)
        self.refresh()

    def remove(self, probe: Probe) -> None:
        """Forget a probe."""
        self.probes = tuple(p for p in self.probes if p is not probe)
        self.refresh()

    def refresh(self) -> None:
        """Probes or their handlers have changed: work out afresh what a hit does."""
        self.settle_count()
        for p in self.probes:
            if isinstance(p, Kprobe):
                p._pre, p._post = p.pre_handler, p.post_handler
        self.active = tuple(sorted((p for p in self.probes if p._active), key=lambda p: p._late))
        self.has_post = any(p._post is not None for p in self.active)
        if self._owns_slot and self.active:  # else it stays as it is, for who is inside
            self._write_tail()

    @property
    def programs(self) -> list[Any]:
        """What runs at a hit, where that is programs alone; else none."""
        programs = [p._host for p in self.active if p._host is not None and isinstance(p, Kprobe)]
        return programs if len(programs) == len(self.active) else []

    @property
    def may_jump(self) -> bool:
        """True if the machine serves what a hit does from a call site; nobody's hit does nothing."""
        programs = self.programs
        alone = bool(programs) and (self.insn.simulate is None or self.insn.displace is not None)
        if self.barred:
            return False
        return not self.active or self._rooms.machine.jumps(programs if alone else None, self.insn.mode)

    @property
    def barred(self) -> str:
        """Why no jump leads from here to programs in the guest, ever; "" where one may."""
        insn, view = self.insn, self._rooms.machine.guest_view
        if view is None:
            return ""
        if insn.lands or (insn.sends and not view.reads):
            return insn.lands or insn.sends
        if insn.mode:
            return "no detours are written for code of this mode"
        return f"{insn.name} is simulated" if insn.simulate is not None and insn.displace is None else ""

    def missed(self) -> None:
        """A hit whose handlers do not run counts on every probe, disabled ones included."""
        for p in self.probes:
            p._missed += 1

    @property
    def uncounted(self) -> int:
        """Hits that the machine has counted and the probes do not know of yet."""
        return 0 if self.detour is None else self._rooms.machine.count(self.detour.call) - self.counted

    def settle_count(self) -> None:
        """Tell the probes of the hits that the machine has counted."""
        hits = self.uncounted
        if hits:
            self.counted += hits
            for p in self.active:
                p._nhit += hits

    # --- memory

    def arm(self) -> None:
        """Put the breakpoint in memory."""
        armed = after(self.state, Change.ARM)
        place, trap, mask = self._rooms.arch.trap_for(self.insn)
        self.patch = self._rooms.text.apply(place, trap, self._behind - place, mask)
        self.state = armed
        self._rooms.machine.stop_at(self.address)

    @property
    def _behind(self) -> int:
        """Where the text ends that the breakpoint stands for: with the instruction, or with its bundle."""
        arch = self._rooms.arch
        return self.insn.next if arch.bundles is None else arch.last_of(self.address) + 1

    def disarm(self) -> None:
        """Put the original bytes back."""
        self.state = after(self.state, Change.DISARM)
        self._rooms.machine.release(self.address)
        assert self.patch is not None
        self._rooms.text.revert(self.patch)
        self.patch = None

    def unload(self) -> None:
        """The text goes away with whatever is in it."""
        self.state = after(self.state, Change.UNLOAD)
        if self.patch is not None:
            self._rooms.machine.release(self.address)
            self._rooms.text.forget(self.patch)
            self.patch = None

    def reload(self, insn: Insn, symbol: str, offset: int, module: str) -> None:
        """A new probe is registered where text was unloaded: take what is there now."""
        self.state = after(self.state, Change.RELOAD)
        self._name(symbol, offset, module)
        self.insn = insn
        self.next = insn.next | insn.mode
        self.boosted = self.native = False
        self.slot = None
        if insn.body:
            self._take_slot()

    # --- the jump; only the optimizer calls these

    def queue(self) -> None:
        """It may be optimized at the next safe point."""
        self.state = after(self.state, Change.QUEUE)
        self.failure = ""

    def dequeue(self) -> None:
        """It stays a breakpoint."""
        self.state = after(self.state, Change.DEQUEUE)

    def unqueue(self) -> None:
        """The jump may go at the next safe point."""
        self.state = after(self.state, Change.UNQUEUE)

    def rescue(self) -> None:
        """The jump stays."""
        self.state = after(self.state, Change.RESCUE)

    def jump(self, detour: Detour) -> None:
        """Replace the breakpoint by the jump."""
        self.state = after(self.state, Change.JUMP)
        self.detour = detour
        self.counted = self._rooms.machine.count(detour.call)
        assert self.patch is not None
        start = self._rooms.arch.text_of(self.address)
        self.patch = self._rooms.text.replace(self.patch, start, detour.jump, detour.size)
        self._rooms.machine.release(self.address)
        if detour.buffer is not None:  # the slot would jump back into the middle of the jump
            self.slot_target = detour.buffer | self.insn.mode
            self.native = True

    def restore(self) -> None:
        """Replace the jump by the breakpoint."""
        self.state = after(self.state, Change.RESTORE)
        assert self.patch is not None
        place, trap, mask = self._rooms.arch.trap_for(self.insn)
        self.patch = self._rooms.text.replace(self.patch, place, trap, self._behind - place, mask)
        self._rooms.machine.stop_at(self.address)
        self.native = self.boosted
        if self.slot is not None:
            self.slot_target = self.slot | self.insn.mode

    @property
    def optimized(self) -> bool:
        """True while the jump is in memory, or none is needed."""
        return self.detour is not None

    # --- the out-of-line copy

    def _take_slot(self) -> None:
        rooms, insn, jump = self._rooms, self.insn, self._rooms.arch.jump_in(self.insn.mode)

        def fill(slot: int) -> int:
            body = rooms.arch.out_of_line.relocate(insn, slot)
            rooms.machine.patch(slot, body + rooms.arch.end_bytes(insn.mode))
            return slot + len(body)

        def fill_near(slot: int) -> int:
            end = fill(slot)
            if jump is not None and insn.boostable and insn.simulate is None:
                jump.back(end, insn)  # OutOfReach: it could not be boosted from here
            return end

        try:
            self.slot, self.slot_end = rooms.slots.take(self.address, fill_near)
        except OutOfReach:
            self.slot, self.slot_end = rooms.slots.take(self.address, fill)
        self.slot_target = self.slot | insn.mode
        self._owns_slot = True
        rooms.sites[self.slot] = Site(Kind.SLOT, self)
        rooms.sites[self.slot_end] = Site(Kind.SLOT_END, self)

    def _write_tail(self) -> None:
        """A jump back, or the trap that reports the slot's end."""
        boost = self._back_jump() if self._may_boost() else None
        tail = boost or self._rooms.arch.end_bytes(self.insn.mode)
        if self._rooms.machine.read(self.slot_end, len(tail)) != tail:
            self._rooms.machine.patch(self.slot_end, tail)
        (self._rooms.machine.release if boost else self._rooms.machine.stop_at)(self.slot_end)
        self.boosted = boost is not None
        self.native = self.boosted or (self.detour is not None and self.detour.buffer is not None)

    def _may_boost(self) -> bool:
        return (self.insn.boostable and self.insn.simulate is None and not self.has_post
                and self._rooms.arch.jump_in(self.insn.mode) is not None
                and all(p.optimize for p in self.active) and (self.insn.onward is None or not self._followed()))

    def _followed(self) -> bool:
        """True where a breakpoint stands behind it in its bundle: the rest of that may not go along."""
        behind = self._rooms.sites.between(self.insn.next, self._behind)
        return any(point.state not in (Arming.DISARMED, Arming.GONE) for point in behind)

    def may_boost(self) -> bool:
        """True where the slot may end in a jump back, and one reaches."""
        return self.slot is not None and self._may_boost() and self._back_jump() is not None

    def _back_jump(self) -> bytes | None:
        jump = self._rooms.arch.jump_in(self.insn.mode)
        assert jump is not None
        try:
            return jump.back(self.slot_end, self.insn)
        except OutOfReach:
            return None

    def give_back_slot(self) -> None:
        """Let the slot go once nobody can be inside."""
        if not self._owns_slot:
            return
        # and it stays: a hit under way, of a probe that unregistered itself, executes there
        assert self.slot is not None
        self._owns_slot = False
        rooms, slot, end = self._rooms, self.slot, self.slot_end

        def finish() -> None:
            rooms.machine.release(end)
            del rooms.sites[slot], rooms.sites[end]

        rooms.slots.give_back(slot, finish)
