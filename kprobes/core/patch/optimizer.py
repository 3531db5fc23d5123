"""Breakpoints into jumps, and back.

An optimized probepoint is a jump to a call site, where the machine calls the handlers in place, and
which jumps on to the displaced instructions.

When this happens is deterministic. A probepoint that may be optimized is queued; work is done only
at safe points: a flush, an unregistration outside of a hit, and the hit of a queued probepoint. So
the first hit makes a probepoint a jump, and probes that are never hit cost nothing. The steps at a
safe point:

1. take out the jumps that are not needed any more;
2. leave a probepoint queued while a CPU stands inside the text that its jump would replace;
3. put in the other jumps;
4. free the detours of jumps that were taken out.
"""

from __future__ import annotations

from functools import partial

from ...arch._base import Insn
from ...errors import KprobeError, NoMemory, OutOfReach
from .arming import Arming
from .detour import Detour
from .inplace import InPlace
from .probepoint import Probepoint
from .region import NotOptimizable, Region, region_of
from .rooms import Rooms

OFF = "optimization is switched off"
IN_PLACE = "this machine services nothing in place"


def _text_of(reason: Exception) -> str:
    """Return the reason that an exception gives, without the place that a KprobeError names."""
    return reason.reason if isinstance(reason, KprobeError) else str(reason)


class Optimizer:
    """Decides which probepoints are jumps, and writes and frees the detours.

    The part that serves call sites calls take_left() for the call sites that no jump leads to any
    more.

    Attributes:
        allowed: the sysctl debug.kprobes-optimization.
    """

    def __init__(self, rooms: Rooms) -> None:
        """Begin with empty queues; jumps are allowed.

        Args:
            rooms: the parts of the Kprobes.
        """
        self._rooms = rooms
        self.allowed = True
        # runs under way that count instructions; meanwhile no jump may cover more than one
        self._exact = 0
        self._in_place = InPlace(rooms)
        # the keys are in the order in which they were queued
        self._queue: dict[Probepoint, None] = {}  # to become jumps
        self._unqueue: dict[Probepoint, None] = {}  # jumps to be taken out
        self._left: list[int] = []  # call sites of jumps that were taken out, for take_left()

    # --- requests

    def consider(self, point: Probepoint) -> None:
        """Queue a probepoint to become a jump, or to lose its jump, as its probes now want.

        Called when its probes have changed, or what prevented a jump there may be gone. The work is
        done at the next safe point. A jump is wanted where jumps are allowed, a probe is active,
        none has a post-handler or optimize=False, the machine can serve the probes at a call site,
        and there is no `refusal`.
        A jump whose probes are merely gone or disabled is queued to be taken out; if they come back
        before that, it stays. Where a queued breakpoint's probes no longer want a jump, it leaves
        the queue. A jump that may not stay (a post-handler, optimize=False, or handlers that the
        machine cannot serve there) becomes a breakpoint at once; so does a probepoint that is
        served in place and has a handler now that is no program.

        Args:
            point: the probepoint.
        """
        wants = (
            self.allowed
            and bool(point.active)
            and not point.has_post
            and not point.refusal
            and not point.reluctant
            and point.may_jump
        )
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
        elif (
            not wants
            and point.state is Arming.OPTIMIZED
            and (point.has_post or point.reluctant or not point.may_jump)
        ):
            self.force(point)
        elif not wants and point.state is Arming.OPTIMIZED:
            point.unqueue()
            self._unqueue[point] = None

    def refuse(self, point: Probepoint, reason: str) -> None:
        """Make a probepoint a breakpoint for good.

        Args:
            point: the probepoint.
            reason: why; explain() gives it from now on.
        """
        point.refusal = reason
        self.force(point)

    def force(self, point: Probepoint) -> None:
        """Make a probepoint a breakpoint now, and take it out of the queues.

        The detour of a jump that is taken out is given back. Nothing happens where it is a plain
        breakpoint already.
        """
        if point.state is Arming.OPTIMIZING:
            self._dequeue(point)
        elif point.state in (Arming.OPTIMIZED, Arming.UNOPTIMIZING):
            self._unqueue.pop(point, None)
            self._restore(point)

    def leave_as_breakpoint(self, point: Probepoint, reason: NoMemory) -> None:
        """Make a jump a breakpoint again, as nothing can serve its call site.

        Args:
            point: the probepoint; its `failure` says why from now on.
            reason: says what there is no room for.
        """
        self.force(point)
        point.failure = _text_of(reason)

    def forget(self, point: Probepoint) -> None:
        """Take a probepoint out of the queues and give its detour back, as its text is gone.

        The hits that the machine has counted are added to the probes' nhit first.
        """
        point.settle_count()
        self._queue.pop(point, None)
        self._unqueue.pop(point, None)
        self._give_back(point)

    def make_room(self, addr: int) -> None:
        """Make the jumps in whose midst `addr` lies breakpoints again.

        Called where the guest goes to `addr`, or a breakpoint is armed there. A jump that begins
        at `addr` stays.
        """
        for point in self._covering(addr):
            self.force(point)

    def left(self, addr: int) -> None:
        """Consider again the probepoints whose jump a breakpoint at an address may have prevented.

        Called when that breakpoint was disarmed. Those that want a jump are queued; whether the
        jump is possible now is found out at their next hit. Slots in the address's bundle are
        written anew, too.

        Args:
            addr: address of that breakpoint.
        """
        self.divide(addr)
        for point in self._near(addr):
            self.consider(point)

    def divide(self, addr: int) -> None:
        """Write the slots of earlier instructions in a bundle anew, as a breakpoint in it came or
        went.

        A slot executes the rest of its bundle too, unless a breakpoint stands in that. Nothing
        happens where the architecture has no bundles.

        Args:
            addr: address of that breakpoint.
        """
        bundles = self._rooms.arch.bundles
        if bundles is not None:
            for point in self._rooms.sites.between(bundles.start(addr), addr):
                point.refresh()

    def _near(self, addr: int) -> list[Probepoint]:
        """Return the probepoints whose jump may cover an address, and those in the address's
        bundle.

        No jump covers more bytes than a buffer has. [] where the architecture has no jump.
        """
        arch = self._rooms.arch
        if arch.jump is None:
            return []
        return self._rooms.sites.between(addr - self._rooms.buffers.size, arch.last_of(addr) + 1)

    def _covering(self, addr: int) -> list[Probepoint]:
        """Return the optimized probepoints whose jump covers `addr`, but does not begin there."""
        # without displaced regions no jump covers more than its own instruction
        if not self._rooms.displaced and self._rooms.arch.bundles is None:
            return []
        return [
            p
            for p in self._near(addr)
            if p.detour is not None and p.address < addr < p.address + p.detour.size
        ]

    def explain(self, point: Probepoint) -> str:
        """Return why a probepoint is not a jump; "": it is one.

        A probepoint whose jump is queued to be taken out counts as a jump. For one that is queued
        to become a jump the text says that.
        """
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
        """Return why the place of a probepoint allows no jump, whatever its probes are; "": it
        allows one.
        """
        try:
            region_of(point.insn, self._rooms)
        except NotOptimizable as reason:
            return str(reason)
        return point.barred

    # --- safe points

    @property
    def has_taken_out(self) -> bool:
        """True while drain() or take_left() has something to do."""
        return bool(self._unqueue or self._left)

    def drain(self) -> list[Probepoint]:
        """Take out the jumps that are not needed any more, and return their probepoints; [] where
        there are none.

        Their detours are given back.
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
        """The probepoints that may become jumps, in the order in which they were queued."""
        return list(self._queue)

    def take_left(self) -> list[int]:
        """Return the call sites of jumps that were taken out, and forget them: the next call
        returns later ones.

        Returns:
            Addresses of call sites; the caller ends what runs there.
        """
        left, self._left = self._left, []
        return left

    def optimize(self, point: Probepoint, *, demanded: bool = False) -> bool:
        """Make a queued probepoint a jump.

        The breakpoint in memory is replaced, and the call site noted in rooms.called. Where the new
        call site is another than the instruction, probes that are served in place become
        breakpoints.

        Where no jump is possible, the probepoint is taken out of the queue.

        Args:
            point: the probepoint.
            demanded: the user has asked for it (flush_optimizer), not a first hit.

        Returns:
            True if it has become one. False where it is not queued; where it stays queued, since a
            CPU stands inside the region or instructions are being counted; or where no jump is
            possible: `point.failure` says why.
        """
        if point not in self._queue:
            return False
        try:
            region = region_of(point.insn, self._rooms)
            if self._exact and len(region.insns) > 1:
                return False
            if any(self._inside(point, region, regs.pc) for regs in self._rooms.machine.cpu_regs):
                return False
            detour = None if self._exact else self._in_place.take(point)
            if detour is None:
                detour = self._build(point, region, demanded)
        except (NotOptimizable, OutOfReach, NoMemory) as reason:
            self._dequeue(point)
            point.failure = _text_of(reason)
            return False
        del self._queue[point]
        self._rooms.called[detour.call] = point
        point.jump(detour)
        if detour.call != point.address:
            self.move()
        return True

    def move(self) -> None:
        """Make the probes that are served in place breakpoints; they become jumps at their next
        hits.

        Called when another call site is made, or permissions of guest memory have changed.
        """
        self._requeue([*self._in_place.points])

    def _requeue(self, points: list[Probepoint]) -> None:
        """Make jumps breakpoints, and queue their probepoints to become jumps again if their probes
        want that.

        Args:
            points: probepoints that are jumps, or served in place.
        """
        for point in points:
            self.force(point)
            if point.probes:
                self.consider(point)

    def exact(self, on: bool) -> None:
        """Allow only jumps that cover one instruction, while a run counts instructions.

        As a run begins, breakpoints replace the jumps whose instructions are executed in a buffer,
        and the probepoints that are served in place; these are queued again. As it ends, nothing is
        made a jump here: the next hits do that. Calls may be nested.

        Args:
            on: True where a run that counts them begins, False where it has ended.
        """
        self._exact += 1 if on else -1
        if on:
            self._requeue(
                [*self._in_place.points, *(point for point, _ in self._rooms.displaced.values())]
            )

    def _inside(self, point: Probepoint, region: Region, pc: int) -> bool:
        """Return True if a CPU at `pc` would come to bytes in the middle of the jump.

        That is so inside the region, but not at its start, and in the probepoint's slot, which
        leads back behind the probed instruction.

        Args:
            point: the probepoint.
            region: the instructions that the jump would replace.
            pc: the address at which the CPU stands.
        """
        in_slot = point.slot is not None and self._rooms.slots.slot_of(pc) == point.slot
        return in_slot or point.address < pc < point.address + region.size

    def trial(self, insn: Insn) -> tuple[bool, str]:
        """Find out what a probepoint at an instruction would be, by making one that is not armed.

        Nothing of it is left after the next rooms.collect().

        Args:
            insn: the instruction.

        Returns:
            (whether it would be boosted, why it would not become a jump; "": it would).

        Raises:
            OutOfReach, NoMemory: registering a probe there would raise the same.
        """
        rooms = self._rooms
        point = Probepoint(rooms, insn, "", 0, "")
        point.boosted = point.may_boost()
        if not rooms.serves:
            point.give_back_slot()
            return point.boosted, IN_PLACE
        try:
            detour = self._build(point, region_of(insn, rooms), demanded=False)
        except (NotOptimizable, OutOfReach, NoMemory) as reason:
            return point.boosted, _text_of(reason)
        finally:
            point.give_back_slot()
        rooms.calls.give_back(detour.call, lambda: None)
        if detour.buffer is not None:
            rooms.buffers.give_back(detour.buffer, partial(self._forget_buffer, detour.buffer))
        return point.boosted, "" if self.allowed else OFF

    def _build(self, point: Probepoint, region: Region, demanded: bool) -> Detour:
        """Write the detour of a probepoint: a buffer if the region needs one, then the call site.

        The jump to the detour is not written here.

        Args:
            point: the probepoint.
            region: the instructions that the jump will replace.
            demanded: True where the user has asked for the jump (flush_optimizer).

        Returns:
            The detour, with the bytes of the jump that leads to it.

        Raises:
            NotOptimizable, OutOfReach, NoMemory: it cannot be written.
        """
        rooms = self._rooms
        jump = rooms.arch.jump_in(point.insn.mode)
        assert jump is not None
        if point.slot is not None and not point.boosted and not region.moved:
            raise NotOptimizable("no jump reaches back from its slot")
        buffer = self._move(point, region) if region.moved else None
        on = buffer if buffer is not None else point.slot

        def fill(call: int) -> bytes:
            """Write the jump from the call site at `call` to the displaced instructions, if there
            are any.

            Args:
                call: address of the call site.

            Returns:
                The bytes of the jump in guest text that leads to the call site.

            Raises:
                OutOfReach: no jump reaches.
            """
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
        """Displace a region into a new buffer, and return the buffer's address.

        Args:
            point: the probepoint at the region's start.
            region: the instructions.

        Returns:
            The address; None: the only instruction cannot reach its operands from a buffer, but it
            is simulated, so it needs none.

        Raises:
            NotOptimizable, OutOfReach, NoMemory: the region cannot be displaced.
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
        """Write a region's instructions to `to`, relocated, and a jump back behind them.

        The region is noted in rooms.displaced, and the machine is told that there is one.

        Args:
            point: the probepoint at the region's start.
            region: the instructions.
            to: address of the buffer.

        Raises:
            NotOptimizable: they cannot be displaced, or not with so little room.
            OutOfReach: they cannot reach their operands, or the text, from there.
        """
        rooms = self._rooms
        jump = rooms.arch.jump_in(point.insn.mode)
        assert jump is not None
        code = b""
        places = []  # (address of a displaced instruction, the instruction)
        block = 0  # instructions that still belong to a block (Insn.together)
        for insn in region.insns:
            place = to + len(code)
            places.append((place, insn))
            piece = rooms.copy_of(insn, place)
            if block and piece != insn.raw:
                raise NotOptimizable(
                    f"{insn.name} at {insn.addr:#x} would be other code elsewhere, which a block "
                    "does not take"
                )
            code += piece
            block = max(block - 1, insn.together)
        code += jump.encode(to + len(code), point.address + region.size)
        if len(code) > rooms.buffers.size:
            raise NotOptimizable("what the jump would cover takes too much room elsewhere")
        if rooms.arch.bundles is not None:
            rooms.arch.jump_for(point.insn, to, places)  # raises OutOfReach early
        rooms.machine.patch(to, code)
        rooms.displaced[to] = point, places
        rooms.displaced_changed()

    def _forget_buffer(self, buffer: int) -> None:
        """Forget which instructions are in a buffer, as it is freed."""
        self._rooms.displaced.pop(buffer, None)
        self._rooms.displaced_changed()

    def _dequeue(self, point: Probepoint) -> None:
        """Take a probepoint out of the queue: its breakpoint stays."""
        self._queue.pop(point, None)
        point.dequeue()

    def _restore(self, point: Probepoint) -> None:
        """Replace a jump by the breakpoint, and give its detour back.

        The hits that the machine has counted are added to the probes' nhit first.
        """
        point.settle_count()
        point.restore()
        self._give_back(point)

    def _give_back(self, point: Probepoint) -> None:
        """Give a probepoint's detour back, to be freed when no CPU can be in it any more.

        The detour is marked as `left`, its call site is added for take_left(), and `point.detour`
        becomes None. Of a probepoint that is served in place the call site is ended at once.
        Nothing happens without a detour.
        """
        detour, point.detour = point.detour, None
        if detour is None:
            return
        rooms = self._rooms
        detour.left = True
        self._left.append(detour.call)

        def finish() -> None:
            """Forget the call site and its service, as no CPU can be there any more."""
            rooms.services.pop(detour.call, None)
            del rooms.called[detour.call]

        if self._in_place.leave(point):
            finish()
            return
        rooms.calls.give_back(detour.call, finish)
        if detour.buffer is not None:
            rooms.buffers.give_back(detour.buffer, partial(self._forget_buffer, detour.buffer))
