"""Breakpoints into jumps, and back.

An optimized probepoint is a jump to a call site, where the machine calls the handlers in place, and
which jumps on to the displaced instructions. Deterministic: what may be optimized is queued, and
work is done at safe points only, in five steps: un-optimize what nobody needs; leave alone where a
CPU stands inside a region; optimize; free what was reaped; keep the rest queued. Safe points are a
flush, an unregistration outside of a hit, and the hit of a queued probepoint: it is the first hit
that makes a probepoint a jump, so that probes nobody hits cost nothing.
"""

from __future__ import annotations

from functools import partial

from ...arch._base import Insn
from ...errors import NoMemory, OutOfReach
from .arming import Arming
from .detour import Detour
from .inplace import InPlace
from .probepoint import Probepoint
from .region import NotOptimizable, Region, region_of
from .rooms import Rooms

OFF = "optimization is switched off"
IN_PLACE = "this machine services nothing in place"


class Optimizer:
    """Decides which probepoints are jumps. Whoever serves call sites asks take_left() for those
    that nothing leads to any more.

    Attributes:
        allowed: the sysctl debug.kprobes-optimization.
    """

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._left: list[int] = []
        self.allowed = True
        # runs that count instructions are under way: no jump may cover more than one
        self._exact = 0
        self._in_place = InPlace(rooms)
        self._queue: dict[Probepoint, None] = {}
        self._unqueue: dict[Probepoint, None] = {}

    # --- requests

    def consider(self, point: Probepoint) -> None:
        """Something changed at a probepoint: queue it, or take the jump out, as its probes now
        want.
        """
        wants = (self.allowed and bool(point.active) and not point.has_post and not point.refusal
                 and not point.reluctant and point.may_jump)
        if self._in_place.unfit(point):
            self.force(point)
        if wants and point.state is Arming.ARMED:
            point.queue()
            self._queue[point] = None
        elif wants and point.state is Arming.UNOPTIMIZING:
            point.rescue()
            del self._unqueue[point]
        elif not wants and point.state is Arming.OPTIMIZING:
            self._dequeue(point)
        elif (not wants and point.state is Arming.OPTIMIZED
              and (point.has_post or point.reluctant or not point.may_jump)):
            self.force(point)
        elif not wants and point.state is Arming.OPTIMIZED:
            point.unqueue()
            self._unqueue[point] = None

    def refuse(self, point: Probepoint, reason: str) -> None:
        """The probepoint becomes a breakpoint and stays one, for `reason`."""
        point.refusal = reason
        self.force(point)

    def force(self, point: Probepoint) -> None:
        """The breakpoint replaces the jump, or the place in the queue, now."""
        if point.state is Arming.OPTIMIZING:
            self._dequeue(point)
        elif point.state in (Arming.OPTIMIZED, Arming.UNOPTIMIZING):
            self._unqueue.pop(point, None)
            self._restore(point)

    def forget(self, point: Probepoint) -> None:
        """The text is gone: no queue, and the detour is garbage."""
        point.settle_count()
        self._queue.pop(point, None)
        self._unqueue.pop(point, None)
        self._give_back(point)

    def make_room(self, addr: int) -> None:
        """The guest goes to `addr`, or a breakpoint is about to be armed there: no jump may cover
        it.
        """
        for point in self._covering(addr):
            self.force(point)

    def left(self, addr: int) -> None:
        """A breakpoint was disarmed at `addr`: whom it kept from being optimized may be."""
        self.divide(addr)
        for point in self._near(addr):
            self.consider(point)

    def divide(self, addr: int) -> None:
        """A breakpoint came to `addr`, or went: its bundle's rest may not, or may, go along with
        who is before it.
        """
        bundles = self._rooms.arch.bundles
        for point in (
            [] if bundles is None else self._rooms.sites.between(bundles.start(addr), addr)
        ):
            point.refresh()

    def _near(self, addr: int) -> list[Probepoint]:
        """Return the probepoints whose region may cover `addr`, none is longer than a buffer; and
        those of its bundle.
        """
        arch, between = self._rooms.arch, self._rooms.sites.between
        return (
            []
            if arch.jump is None
            else between(addr - self._rooms.buffers.size, arch.last_of(addr) + 1)
        )

    def _covering(self, addr: int) -> list[Probepoint]:
        # none covers more than its own instruction
        if not self._rooms.displaced and self._rooms.arch.bundles is None:
            return []
        return [
            p
            for p in self._near(addr)
            if p.detour is not None and p.address < addr < p.address + p.detour.size
        ]

    def explain(self, point: Probepoint) -> str:
        """Why a probepoint is not a jump; "" where it is."""
        if point.state in (Arming.OPTIMIZED, Arming.UNOPTIMIZING):
            return ""
        if not self.allowed:
            return OFF
        if point.refusal:
            return point.refusal
        if not point.active or point.state is Arming.DISARMED:
            return "no probe there is armed"
        if point.has_post:
            return "a post_handler wants to run after the instruction"
        if point.reluctant:
            return "a probe there has optimize=False"
        if not point.may_jump:
            return point.barred or IN_PLACE
        return self.never(point) or point.failure or "queued: the next safe point optimizes it"

    def never(self, point: Probepoint) -> str:
        """Why a probepoint is never a jump, as its place is; "" where it may be one."""
        try:
            region_of(point.insn, self._rooms)
        except NotOptimizable as reason:
            return str(reason)
        return point.barred

    # --- safe points

    def drain(self) -> list[Probepoint]:
        """Take out every jump that is not needed any more; return the probepoints whose they were.
        """
        if not self._unqueue:
            return []
        points = list(self._unqueue)
        self._unqueue.clear()
        for point in points:
            self._restore(point)
        return points

    @property
    def queue(self) -> list[Probepoint]:
        """The probepoints that may become a jump."""
        return list(self._queue)

    def take_left(self) -> list[int]:
        """Return the call sites of detours that were taken out, once."""
        left, self._left = self._left, []
        return left

    def optimize(self, point: Probepoint, *, demanded: bool = False) -> bool:
        """Put the jump in, and return True; or note why not. Nothing is done while a CPU stands
        inside the region: the probepoint stays queued.
        """
        if point not in self._queue:
            return False
        try:
            region = region_of(point.insn, self._rooms)
            if self._exact and len(region.insns) > 1:
                return False
            if any(self._inside(point, region, regs.pc) for regs in self._rooms.machine.cpu_regs):
                return False
            detour = (None if self._exact else self._in_place.take(point)) or self._build(
                point, region, demanded
            )
        except (NotOptimizable, OutOfReach, NoMemory) as reason:
            self._dequeue(point)
            point.failure = (
                reason.reason if isinstance(reason, OutOfReach | NoMemory) else str(reason)
            )
            return False
        del self._queue[point]
        self._rooms.called[detour.call] = point
        point.jump(detour)
        if detour.call != point.address:
            self.move()
        return True

    def move(self) -> None:
        """Put breakpoints where probes are served in place; they may become jumps at their next
        hits.
        """
        self._again([*self._in_place.points])

    def _again(self, points: list[Probepoint]) -> None:
        """Put breakpoints in the place of jumps; they may become jumps again at their next hits."""
        for point in points:
            self.force(point)
            if point.probes:
                self.consider(point)

    def exact(self, on: bool) -> None:
        """A run that counts the guest's instructions begins or has ended: meanwhile each stands at
        its own address.
        """
        self._exact += 1 if on else -1
        if on:
            self._again(
                [*self._in_place.points, *(point for point, _ in self._rooms.displaced.values())]
            )

    def _inside(self, point: Probepoint, region: Region, pc: int) -> bool:
        """Return True if a CPU at `pc` has yet to execute bytes that the jump would replace."""
        in_slot = point.slot is not None and self._rooms.slots.slot_of(pc) == point.slot
        return in_slot or point.address < pc < point.address + region.size

    def trial(self, insn: Insn) -> tuple[bool, str]:
        """(Whether a probepoint at an instruction would be boosted, why it would not become a
        jump), found out by making one.

        Nothing of it stays after the next rooms.collect(). Raises what registering a probe there
        would: OutOfReach, NoMemory.
        """
        rooms, point = self._rooms, Probepoint(self._rooms, insn, "", 0, "")
        point.boosted = point.may_boost()
        if not rooms.serves:
            point.give_back_slot()
            return point.boosted, IN_PLACE
        try:
            detour = self._build(point, region_of(insn, rooms), demanded=False)
        except (NotOptimizable, OutOfReach, NoMemory) as reason:
            return point.boosted, reason.reason if isinstance(
                reason, OutOfReach | NoMemory
            ) else str(reason)
        finally:
            point.give_back_slot()
        rooms.calls.give_back(detour.call, lambda: None)
        if detour.buffer is not None:
            rooms.buffers.give_back(detour.buffer, partial(self._forget_buffer, detour.buffer))
        return point.boosted, "" if self.allowed else OFF

    def _build(self, point: Probepoint, region: Region, demanded: bool) -> Detour:
        """Write the detour: displaced instructions where they are not in the slot already, then the
        call site.
        """
        rooms, jump = self._rooms, self._rooms.arch.jump_in(point.insn.mode)
        assert jump is not None
        if point.slot is not None and not point.boosted and not region.moved:
            raise NotOptimizable("no jump reaches back from its slot")
        buffer = self._move(point, region) if region.moved else None
        on = buffer if buffer is not None else point.slot

        def fill(call: int) -> bytes:
            if on is not None:
                rooms.machine.patch(call, jump.encode(call, on))
            return rooms.arch.jump_for(
                point.insn, call, () if buffer is None else rooms.displaced[buffer][1]
            )

        try:
            call, patch = rooms.calls.take(point.address, fill)
        except (OutOfReach, NoMemory):
            if buffer is not None:
                rooms.buffers.give_back(buffer, partial(self._forget_buffer, buffer))
            raise
        return Detour(call=call, buffer=buffer, jump=patch, size=region.size, demanded=demanded)

    def _move(self, point: Probepoint, region: Region) -> int | None:
        """Displace the region into a buffer. None: the instruction does not reach from there what
        it needs, and is simulated.
        """
        try:
            return self._rooms.buffers.take(
                point.address, lambda to: self._displace(point, region, to)
            )[0]
        except OutOfReach:
            if len(region.insns) > 1 or point.insn.body:
                raise
            return None

    def _displace(self, point: Probepoint, region: Region, to: int) -> None:
        """Write the region's instructions to `to`, relocated, and a jump back."""
        rooms, jump = self._rooms, self._rooms.arch.jump_in(point.insn.mode)
        assert jump is not None
        code, places, block = b"", [], 0
        for insn in region.insns:
            place = to + len(code)
            places.append((place, insn))
            piece = (
                rooms.arch.out_of_line.relocate(insn, place)
                if insn.displace is None
                else insn.displace(place)
            )
            if block and piece != insn.raw:
                raise NotOptimizable(
                    f"{insn.name} at {insn.addr:#x} would be other code elsewhere, which a block "
                    "does not take"
                )
            code, block = code + piece, max(block - 1, insn.together)
        code += jump.encode(to + len(code), point.address + region.size)
        if len(code) > rooms.buffers.size:
            raise NotOptimizable("what the jump would cover takes too much room elsewhere")
        if rooms.arch.bundles is not None:  # OutOfReach: what is left of it could not lead there
            rooms.arch.jump_for(point.insn, to, places)
        rooms.machine.patch(to, code)
        rooms.displaced[to] = point, places

    def _forget_buffer(self, buffer: int) -> None:
        self._rooms.displaced.pop(buffer, None)

    def _dequeue(self, point: Probepoint) -> None:
        self._queue.pop(point, None)
        point.dequeue()

    def _restore(self, point: Probepoint) -> None:
        point.settle_count()
        point.restore()
        self._give_back(point)

    def _give_back(self, point: Probepoint) -> None:
        """The detour is garbage; a CPU may still be in it."""
        detour, point.detour = point.detour, None
        if detour is None:
            return
        rooms, detour.left = self._rooms, True
        self._left.append(detour.call)

        def finish() -> None:
            rooms.services.pop(detour.call, None)
            del rooms.called[detour.call]

        if self._in_place.leave(point):
            finish()
            return
        rooms.calls.give_back(detour.call, finish)
        if detour.buffer is not None:
            rooms.buffers.give_back(detour.buffer, partial(self._forget_buffer, detour.buffer))
