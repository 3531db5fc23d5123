"""Probepoint: an address that has probes, its patch in memory, its slot and its detour.

The machine is the engine that runs the guest; the core is this package, which serves probes. A call
site is where the machine calls the core without a trap.

An address has one from the registration of its first probe to the end of its last. The patch is a
breakpoint or a jump. The slot is executable memory of the library's with a copy of the instruction,
for hits by the breakpoint; the detour is the code that the jump leads to.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter
from typing import Any

from ...arch._base import Insn
from ...errors import OutOfReach
from ...machine._base import ServedTrap
from ...statetable import after
from ..probe import Jprobe, Kprobe, Kretprobe, Probe
from .arming import TABLE, Arming, Change
from .bits import Patch
from .detour import Detour
from .rooms import Rooms
from .sites import Site, SiteKind

_late = attrgetter("_late")


def _without(probes: tuple[Probe, ...], probe: Probe) -> tuple[Probe, ...]:
    """Return `probes` without `probe`, which need not be among them."""
    try:
        at = probes.index(probe)
    except ValueError:
        return probes
    return probes[:at] + probes[at + 1 :]


class Wanting:
    """The needs of the active probes of an address: a set of probes for each need.

    Probes are added and discarded one by one.

    Attributes:
        post: probes that have a post-handler.
        reluctant: probes that want no jump (optimize=False).
        hosted: kprobes that a program serves.
        returning: return probes.
        python: probes that have a handler that no program serves.
    """

    __slots__ = ("hosted", "post", "python", "reluctant", "returning")

    def __init__(self, active: tuple[Probe, ...]) -> None:
        """Sort probes into the sets.

        Args:
            active: the active probes of the address.
        """
        self.post: set[Probe] = set()
        self.reluctant: set[Probe] = set()
        self.hosted: set[Probe] = set()
        self.returning: set[Probe] = set()
        self.python: set[Probe] = set()
        for probe in active:
            self.add(probe)

    def add(self, probe: Probe) -> None:
        """Put a probe into the sets whose descriptions it meets now."""
        if probe._post is not None:
            self.post.add(probe)
        if not probe.optimize:
            self.reluctant.add(probe)
        if probe._host is not None and isinstance(probe, Kprobe):
            self.hosted.add(probe)
        if isinstance(probe, Kretprobe):
            self.returning.add(probe)
        if probe._host is None and probe._pre is not None:
            self.python.add(probe)

    def discard(self, probe: Probe) -> None:
        """Take a probe out of all sets, whatever its handlers are now."""
        for those in (self.post, self.reluctant, self.hosted, self.returning, self.python):
            those.discard(probe)


class Probepoint:
    """An address that has probes, and what the library has in guest memory for it.

    Attributes:
        address: mode bits stripped.
        symbol: name of the function; "" where unknown.
        offset: bytes from its start.
        module: name of the image that it is in; "" where unknown.
        where: `symbol+0xOFFSET`, or the address where the symbol is unknown.
        insn: the original instruction.
        probes: all probes, newest first (jprobes last).
        active: those whose handlers may run, in the order in which they run.
        has_post: an active probe has a post-handler.
        state: which patch is in memory.
        patch: that patch; None: none is.
        next: address behind the instruction, mode bits included.
        slot: address of the out-of-line copy of the instruction's body; None: it has none.
        slot_end: address behind that copy: of a trap, or of the jump back.
        slot_target: address that a hit sends the guest to, mode bits included: the slot's, or the
            detour's buffer's.
        boosted: the slot ends in a jump back, not in a trap.
        native: the code at slot_target does all that is left of a hit, and goes back by itself.
        detour: where the jump leads while there is one.
        failure: why the optimizer has given up making a jump; "": it has not.
        refusal: why the optimizer is not to try at all; "": it may.
        served: the machine's handle of the breakpoint while the machine serves its hits by itself;
            None: the core serves them.
        counted: of the hits that the machine has counted at the detour's call site, those that the
            probes know of.
    """

    __slots__ = (
        "_owns_slot",
        "_rooms",
        "_wanting",
        "active",
        "address",
        "boosted",
        "counted",
        "detour",
        "failure",
        "has_post",
        "insn",
        "module",
        "native",
        "next",
        "offset",
        "patch",
        "probes",
        "refusal",
        "served",
        "slot",
        "slot_end",
        "slot_target",
        "state",
        "symbol",
        "where",
    )

    def __init__(self, rooms: Rooms, insn: Insn, symbol: str, offset: int, module: str) -> None:
        """Make a probepoint that is not armed, and write the slot of its instruction if it needs
        one.

        Args:
            rooms: the parts of the Kprobes.
            insn: the original instruction.
            symbol: name of the function; "" where unknown.
            offset: bytes from its start.
            module: name of the image; "" where unknown.

        Raises:
            OutOfReach, NoMemory: there is no room for the slot.
        """
        self._rooms = rooms
        self.insn = insn
        self.address = insn.addr
        self._name(symbol, offset, module)
        self.probes: tuple[Probe, ...] = ()
        self.active: tuple[Probe, ...] = ()
        self._wanting = Wanting(())
        self.has_post = False
        self.boosted = self.native = False
        self.state = Arming.DISARMED
        self.patch: Patch | None = None
        self.detour: Detour | None = None
        self.failure = self.refusal = ""
        self.counted = 0
        self.served: ServedTrap | None = None
        self.next = insn.next | insn.mode
        self.slot: int | None = None
        self._owns_slot = False
        self.slot_end = self.slot_target = 0
        if insn.body:
            self._take_slot()

    def _name(self, symbol: str, offset: int, module: str) -> None:
        """Set the attributes that say where the probepoint is: symbol, offset, module, where.

        Args:
            symbol: name of the function; "" where unknown.
            offset: bytes from its start.
            module: name of the image; "" where unknown.
        """
        self.symbol = symbol
        self.offset = offset
        self.module = module
        self.where = f"{symbol}+{offset:#x}" if symbol else f"{self.address:#x}"

    # --- probes

    def add(self, probe: Probe) -> None:
        """Add a probe. The newest runs first; a jprobe last: its mirror sees what the others did.

        Thousands of probes may be at one address, so neither this nor remove() looks at the others
        one by one. No breakpoint is written here; for an active probe the slot's end is written
        anew. A kprobe's handlers are copied into `_pre` and `_post`, which hits use; the hits
        counted by the machine are added to nhit first.

        Args:
            probe: its `_active` says whether it joins `active`.
        """
        self.settle_count()
        self.probes = (*self.probes, probe) if isinstance(probe, Jprobe) else (probe, *self.probes)
        if isinstance(probe, Kprobe):
            probe._pre = probe.pre_handler
            probe._post = probe.post_handler
        if probe._active:
            at = bisect_left(self.active, probe._late, key=_late)
            self.active = (*self.active[:at], probe, *self.active[at:])
            self._wanting.add(probe)
            self._rewrite_tail()

    def remove(self, probe: Probe) -> None:
        """Remove a probe from `probes` and `active`.

        Memory is not disarmed here. The hits counted by the machine are added to nhit first. Hits
        are reported to the core again.
        """
        self.settle_count()
        self.probes = _without(self.probes, probe)
        self.active = _without(self.active, probe)
        self._wanting.discard(probe)
        self._rewrite_tail()

    def refresh(self) -> None:
        """Work out anew which probes are active and what a hit does, after probes have changed.

        Called when a probe was enabled or disabled or its handlers were replaced.

        The kprobes' handlers are copied into `_pre` and `_post`, which hits use; the hits counted
        by the machine are added to nhit first. Hits are reported to the core again.
        """
        self.settle_count()
        for p in self.probes:
            if isinstance(p, Kprobe):
                p._pre = p.pre_handler
                p._post = p.post_handler
        self.active = tuple(sorted((p for p in self.probes if p._active), key=_late))
        self._wanting = Wanting(self.active)
        self._rewrite_tail()

    def _rewrite_tail(self) -> None:
        """Write the slot's end anew, as handlers have changed, and have hits reported to the core
        again. `has_post` is set.
        """
        self.serve_no_more()
        self.has_post = bool(self._wanting.post)
        if self._owns_slot and self.active:  # without probes a CPU that is inside still needs it
            self._write_tail()

    @property
    def programs(self) -> list[Any]:
        """The programs (compiled handlers) that run at a hit, one for each active probe.

        [] where an active probe has none, or is a return probe.
        """
        if len(self._wanting.hosted) < len(self.active):
            return []
        return [p._host for p in self.active]

    @property
    def reluctant(self) -> bool:
        """True where an active probe has optimize=False."""
        return bool(self._wanting.reluctant)

    @property
    def returning(self) -> tuple[Kretprobe, ...]:
        """The active return probes, in the order in which they run at the entry."""
        if not self._wanting.returning:
            return ()
        return tuple(p for p in self.active if isinstance(p, Kretprobe))

    @property
    def in_python(self) -> bool:
        """True where an active probe has a handler that no program can stand in for."""
        return bool(self._wanting.python)

    @property
    def may_jump(self) -> bool:
        """True if the machine can serve the active probes at a call site that a jump leads to.

        False where `barred` has a reason. Else True where no probe is active.
        """
        programs = self.programs
        alone = bool(programs) and (self.insn.simulate is None or self.insn.displace is not None)
        if self.barred:
            return False
        sites = self._rooms.call_sites
        return not self.active or (
            sites is not None and sites.jumps(programs if alone else None, self.insn.mode)
        )

    @property
    def barred(self) -> str:
        """Why the instruction allows no jump to programs that run in the guest; "": it allows one.

        It allows none where pages may be guarded and the instruction must stay where it is
        (Insn.lands, Insn.sends), where its code has another mode than 0, and where it is simulated
        and cannot be displaced. "" also for a machine whose programs do not run in the guest.
        """
        insn = self.insn
        view = self._rooms.machine.guest_view
        if view is None:
            return ""
        if insn.lands or (insn.sends and not view.reads):
            return insn.lands or insn.sends
        if insn.mode:
            return "no detours are written for code of this mode"
        return (
            f"{insn.name} is simulated"
            if insn.simulate is not None and insn.displace is None
            else ""
        )

    def _change(self, change: Change) -> None:
        """Go to the next `state` by arming.py's table, and have hits reported to the core again.

        Args:
            change: the event. Memory is changed by the caller.

        Raises:
            ValueError: `change` is not possible in the present state.
        """
        self.serve_no_more()
        self.state = after(TABLE, self.state, change)

    def serve_no_more(self) -> None:
        """Have the machine report hits of the breakpoint to the core again, if it serves them by
        itself.

        The hits that it has counted are added to the probes' nhit.
        """
        if self.served is not None:
            self.settle_count()
            self.served.end()
            self.served = None

    def missed(self) -> None:
        """Add 1 to the missed hits of every probe, disabled ones included, for a hit without
        handlers.
        """
        for p in self.probes:
            p._missed += 1

    @property
    def uncounted(self) -> int:
        """Number of hits that the machine has counted and that are not in the probes' nhit yet."""
        hits = 0
        if self.detour is not None:
            hits = self._rooms.sites_in_place.count(self.detour.call) - self.counted
        if self.served is not None:
            hits += self.served.hits
        return hits

    def settle_count(self) -> None:
        """Add the hits that the machine has counted to the nhit of the active probes.

        `uncounted` is 0 afterwards.
        """
        hits = self.uncounted
        if self.served is not None:
            self.counted -= self.served.take_hits()
        if hits:
            self.counted += hits
            for p in self.active:
                p._nhit += hits

    # --- memory

    def arm(self) -> None:
        """Write the breakpoint into memory, and have the machine report it; `state` becomes ARMED.

        Raises:
            ValueError: `state` is not DISARMED.
        """
        armed = after(TABLE, self.state, Change.ARM)
        place, trap, mask = self._rooms.arch.trap_for(self.insn)
        self.patch = self._rooms.text.apply(place, trap, self._behind - place, mask)
        self._rooms.breakpoint_forms.add((place - self.address, trap))
        self.state = armed
        self._rooms.machine.stop_at(self.address)

    @property
    def _behind(self) -> int:
        """Address behind the text that the breakpoint stands for: the instruction, or its
        bundle.
        """
        arch = self._rooms.arch
        return self.insn.next if arch.bundles is None else arch.last_of(self.address) + 1

    def disarm(self) -> None:
        """Put the original bytes back in the place of the breakpoint, which the machine reports no
        more.

        `state` becomes DISARMED, and `patch` None.

        Raises:
            ValueError: `state` is not ARMED.
        """
        self._change(Change.DISARM)
        self._rooms.machine.release(self.address)
        assert self.patch is not None
        self._rooms.text.revert(self.patch)
        self.patch = None

    def unload(self) -> None:
        """Become GONE (`state`), and forget the patch without writing memory, since the text is
        gone.

        The machine no longer reports a breakpoint there. Slot and detour stay.

        Raises:
            ValueError: `state` is GONE already.
        """
        self._change(Change.UNLOAD)
        if self.patch is not None:
            self._rooms.machine.release(self.address)
            self._rooms.text.forget(self.patch)
            self.patch = None

    def reload(self, insn: Insn, symbol: str, offset: int, module: str) -> None:
        """Begin anew with the instruction that is there now, after the former text was unloaded.

        `state` becomes DISARMED. A slot is taken for the instruction if it needs one.

        Args:
            insn: the instruction.
            symbol: name of the function; "" where unknown.
            offset: bytes from its start.
            module: name of the image; "" where unknown.

        Raises:
            ValueError: `state` is not GONE.
        """
        self._change(Change.RELOAD)
        self._name(symbol, offset, module)
        self.insn = insn
        self.next = insn.next | insn.mode
        self.boosted = self.native = False
        self.slot = None
        if insn.body:
            self._take_slot()

    # --- the jump; only the optimizer calls these

    def queue(self) -> None:
        """Go to OPTIMIZING: the breakpoint may become a jump at the next safe point.

        `failure` becomes "".
        """
        self._change(Change.QUEUE)
        self.failure = ""

    def dequeue(self) -> None:
        """Go back from OPTIMIZING to ARMED: the breakpoint stays one."""
        self._change(Change.DEQUEUE)

    def unqueue(self) -> None:
        """Go to UNOPTIMIZING: the jump may be taken out at the next safe point."""
        self._change(Change.UNQUEUE)

    def rescue(self) -> None:
        """Go back from UNOPTIMIZING to OPTIMIZED: the jump stays after all."""
        self._change(Change.RESCUE)

    def jump(self, detour: Detour) -> None:
        """Write the jump to a detour over the breakpoint, which is not reported any more; `state`
        becomes OPTIMIZED, `patch` the jump, and `detour` is set.

        Where the detour has a buffer, late hits of the breakpoint go on in that, not in the slot
        (`slot_target`, `native`). `counted` becomes what the machine has counted at the call site
        so far.

        Args:
            detour: where the jump leads; it is written already.

        Raises:
            ValueError: `state` is not OPTIMIZING.
        """
        self._change(Change.JUMP)
        self.detour = detour
        self.counted = self._rooms.sites_in_place.count(detour.call)
        assert self.patch is not None
        start = self._rooms.arch.text_of(self.address)
        self.patch = self._rooms.text.replace(self.patch, start, detour.jump, detour.size)
        self._rooms.machine.release(self.address)
        if detour.buffer is not None:  # the slot's jump back would lead into the middle of the jump
            self.slot_target = detour.buffer | self.insn.mode
            self.native = True

    def restore(self) -> None:
        """Write the breakpoint over the jump; `state` becomes ARMED, and `patch` the breakpoint.

        The machine reports the breakpoint again, and hits use the slot. The detour stays allocated;
        the caller gives it back.

        Raises:
            ValueError: `state` is neither OPTIMIZED nor UNOPTIMIZING.
        """
        self._change(Change.RESTORE)
        assert self.patch is not None
        place, trap, mask = self._rooms.arch.trap_for(self.insn)
        self.patch = self._rooms.text.replace(self.patch, place, trap, self._behind - place, mask)
        self._rooms.machine.stop_at(self.address)
        self.native = self.boosted
        if self.slot is not None:
            self.slot_target = self.slot | self.insn.mode

    @property
    def optimized(self) -> bool:
        """True while the jump is in memory, or the instruction is its own call site."""
        return self.detour is not None

    # --- the out-of-line copy

    def _take_slot(self) -> None:
        """Take a slot near the text, and write the instruction's body and a trap behind it into the
        slot.

        A slot from which a jump back reaches the text is preferred. The slot is entered in the site
        table, and `slot`, `slot_end` and `slot_target` are set.

        Raises:
            NoMemory, OutOfReach: there is no room near enough.
        """
        rooms = self._rooms
        insn = self.insn
        jump = rooms.arch.jump_in(insn.mode)

        def fill(slot: int) -> int:
            """Write the body and a trap to the slot at an address; return the trap's address."""
            body = rooms.arch.out_of_line.relocate(insn, slot)
            rooms.machine.patch(slot, body + rooms.arch.end_bytes(insn.mode))
            return slot + len(body)

        def fill_near(slot: int) -> int:
            """Write the body and a trap to a slot as fill() does; raise OutOfReach where no jump
            back reaches.
            """
            end = fill(slot)
            if jump is not None and insn.boostable and insn.simulate is None:
                jump.back(end, insn)
            return end

        try:
            self.slot, self.slot_end = rooms.slots.take(self.address, fill_near)
        except OutOfReach:
            self.slot, self.slot_end = rooms.slots.take(self.address, fill)
        self.slot_target = self.slot | insn.mode
        self._owns_slot = True
        rooms.sites[self.slot] = Site(SiteKind.SLOT, self)
        rooms.sites[self.slot_end] = Site(SiteKind.SLOT_END, self)

    def _write_tail(self) -> None:
        """Write the slot's end: a jump back to the text (boost), or a trap that is reported.

        A trap is written where an active probe has a post-handler or optimize=False, the
        instruction forbids a jump, another breakpoint stands behind it in its bundle, or no jump
        reaches. `boosted` and `native` are set, and the machine reports the trap from now on, or no
        longer.
        """
        machine = self._rooms.machine
        boost = self._back_jump() if self._may_boost() else None
        tail = boost or self._rooms.arch.end_bytes(self.insn.mode)
        if machine.read(self.slot_end, len(tail)) != tail:
            machine.patch(self.slot_end, tail)
        if boost:
            machine.release(self.slot_end)
        else:
            machine.stop_at(self.slot_end)
        self.boosted = boost is not None
        self.native = self.boosted or (self.detour is not None and self.detour.buffer is not None)

    def _may_boost(self) -> bool:
        """Return True if the slot may end in a jump back, as the instruction and its probes allow
        it.

        Whether the jump reaches is not looked at.
        """
        return (
            self.insn.boostable
            and self.insn.simulate is None
            and not self.has_post
            and self._rooms.arch.jump_in(self.insn.mode) is not None
            and not self.reluctant
            and (self.insn.onward is None or not self._followed())
        )

    def _followed(self) -> bool:
        """Return True if another breakpoint stands behind the instruction in its bundle.

        If so, the slot may not execute the rest of the bundle as well.
        """
        behind = self._rooms.sites.between(self.insn.next, self._behind)
        return any(point.state not in (Arming.DISARMED, Arming.GONE) for point in behind)

    def may_boost(self) -> bool:
        """Return True if the slot may end in a jump back, and one reaches."""
        return self.slot is not None and self._may_boost() and self._back_jump() is not None

    def _back_jump(self) -> bytes | None:
        """Return the jump from the slot's end back to the text; None: it does not reach."""
        jump = self._rooms.arch.jump_in(self.insn.mode)
        assert jump is not None
        try:
            return jump.back(self.slot_end, self.insn)
        except OutOfReach:
            return None

    def give_back_slot(self) -> None:
        """Give the slot back, to be freed when no CPU can be inside any more.

        `slot` keeps its value. Nothing happens where the slot was given back before, or there is
        none.
        """
        if not self._owns_slot:
            return
        # self.slot keeps its value: the hit of a probe that unregisters itself still executes there
        assert self.slot is not None
        self._owns_slot = False
        rooms, slot, end = self._rooms, self.slot, self.slot_end

        def finish() -> None:
            """Have the machine report the slot's end no more, and take the slot out of the site
            table.
            """
            rooms.machine.release(end)
            del rooms.sites[slot], rooms.sites[end]

        rooms.slots.give_back(slot, finish)
