"""Return probes: their instances, the entry hook, the trampoline.

Rules. At entry an instance remembers the return address and the stack pointer, and the function is
made to return to the trampoline. At the trampoline the frame that returns is recognised by the
stack pointer (see calls). Several instances of one frame (several return probes, or tail calls) are
handled together, youngest first, and all know the true return address.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

from ...arch._base import Arch, Linkage
from ...errors import Unsupported
from ...native import quick
from ...regs import Regs
from ..patch.rooms import Rooms
from ..patch.sites import Site, SiteKind
from ..probe import Kretprobe, KretprobeInstance
from .calls import CallsUnderWay, Instances
from .link import Link

FIRST_INSTANCES = 16  # made at registration; more when they are needed, up to maxactive
LOOPS = 256  # that share a frame, of a probe whose maxactive is not set
CEILING = 1 << 16  # that there may be of a probe whose maxactive is not set


class ReturnMissed(RuntimeWarning):
    """A call was not followed to its return: as many as there may be were being followed already.
    """


class Returns:
    """The entries of return probes, and where their calls return to.

    Attributes:
        calls: those being followed.
        ceiling: of instances of a probe whose maxactive is not set.
    """

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._machine = rooms.machine
        self.calls = CallsUnderWay(rooms.machine)
        self.ceiling = CEILING
        self._stops = range(0)  # of the trampoline, where it is no code
        self._short: list[Kretprobe] = []  # that had no instance, and of which nothing was said yet

    # --- registration

    def prepare(self, rp: Kretprobe, near: int) -> None:
        """Make the pool, and the trampoline, which is yet to be served. Raises Unsupported where
        the architecture has no linkage.
        """
        arch: Arch = self._machine.arch
        if arch.linkage is None:
            raise Unsupported(f"{arch.name} has no linkage, so no return probes", symbol=rp.place(),
                              hint="probe the return instructions")
        if not self.calls.trampoline:
            self._make_trampoline(arch.linkage, near)
        rp._most = rp._maxactive if rp._maxactive > 0 else self.ceiling
        rp._made = 0
        rp._pool = []
        self._grow(rp)

    def _grow(self, rp: Kretprobe) -> bool:
        """More instances, up to maxactive: twice as many as there are. False: these are all."""
        pool, more = rp._pool, min(max(rp._made, FIRST_INSTANCES), rp._most - rp._made)
        instance = quick(KretprobeInstance, "instance")
        pool.extend(instance(rp=rp, pool=pool) for _ in range(more))
        rp._made += more
        return more > 0

    def warn(self) -> None:
        """Say once of each probe that calls were missed; nothing runs."""
        while self._short:
            rp = self._short.pop()
            most = rp._most or rp._maxactive
            own = rp._maxactive > 0
            how = (
                "maxactive (in an event: r10:NAME), or set 0 (r:NAME) for as many as are needed"
                if own
                else "the ceiling, Kprobes.instances"
            )
            warnings.warn(
                f"{rp.place()}: {most} call{'s are' if most > 1 else ' is'} followed at a time, and more "
                "were active: "
                f"their returns are missed; raise {how}",
                ReturnMissed,
                stacklevel=2,
            )

    def _make_trampoline(self, linkage: Linkage, near: int) -> None:
        rooms = self._rooms
        if linkage.back and rooms.serves:
            address, _ = rooms.calls.take(near, partial(self._write_back, linkage))
            self.calls.trampoline = address | linkage.mode
            rooms.sites_in_place.call_at(address)
            if self.calls.programs is not None:
                rooms.sites_in_place.program_at(
                    address, (), self.calls.programs.leave(self.calls.trampoline)
                )
        else:
            trap = rooms.arch.end_bytes(linkage.mode)
            # who skips something comes to the second
            traps = 1 if linkage.returning.skips is None else 2
            address, _ = rooms.slots.take(
                near, lambda slot: rooms.machine.patch(slot, traps * trap)
            )
            self.calls.trampoline = address | linkage.mode
            self._stops = range(address, address + traps * len(trap), len(trap))
            for stop in self._stops:
                rooms.sites[stop] = Site(SiteKind.TRAMPOLINE, None)
                rooms.machine.stop_at(stop)

    def _write_back(self, linkage: Linkage, call: int) -> None:
        """Linkage.back, at the trampoline; or outside the call area, where the machine wants no
        delay slot there: then jumps lead to it.

        Who skips something at the caller comes to the second jump.
        """
        machine, jump = self._rooms.machine, self._rooms.arch.jump_in(linkage.mode)
        if self._rooms.sites_in_place.delays_in_calls or jump is None:
            machine.patch(call, linkage.back)
            return
        again = jump.encode(call + jump.size, call)
        place, _ = self._rooms.slots.take(
            call, lambda place: machine.patch(call, jump.encode(call, place) + again)
        )
        machine.patch(place, linkage.back)

    def forget(self, rp: Kretprobe) -> None:
        """The probe is unregistered: calls being followed keep their instances, of a pool that
        nobody takes from.
        """
        self.calls.settle()
        rp._pool = []
        rp._most = 0

    def close(self) -> None:
        """Forget the trampoline; nobody may be about to return to it."""
        if self.calls.trampoline:
            address = self.calls.trampoline & ~self._rooms.arch.pointers.mode_bits
            self._rooms.services.pop(address, None)
            for stop in self._stops:
                if self._rooms.sites.pop(stop, None) is not None:
                    self._machine.release(stop)
            self.calls.trampoline = 0

    # --- entry

    def hook(self, rp: Kretprobe) -> Callable[[Kretprobe, Regs], int]:
        """Return the entry hook, run as the probe's pre-handler: follow this call if an instance is
        free.
        """
        hooks = [
            self._hook(rp, Link.of(regs, self._linkage), regs.cpu)
            for regs in self._machine.cpu_regs
        ]
        return hooks[0] if len(hooks) == 1 else lambda rp, regs: hooks[regs.cpu](rp, regs)

    @property
    def _linkage(self) -> Linkage:
        linkage = self._rooms.arch.linkage
        assert linkage is not None
        return linkage

    def _hook(self, rp: Kretprobe, link: Link, cpu: int) -> Callable[[Kretprobe, Regs], int]:
        """hook() of one CPU, with what never changes looked up beforehand."""
        followed, machine, pool, skip, (top, bottom) = (
            self.calls,
            self._machine,
            rp._pool,
            link.skip,
            self.calls.idle,
        )
        own, trampoline, following = followed.tasks[cpu], followed.trampoline, followed.following
        get_sp, get, put, load, swap = link.get_sp, link.get, link.put, link.load, link.swap

        def enter(rp: Kretprobe, regs: Regs) -> int:
            if following and top[0] != bottom:
                followed.catch_up()
            task, chooser = cpu, machine.cpu_task
            calls = own if chooser is None else followed.of(task := chooser(regs))
            if not pool and not self.room(rp, calls, regs):
                return 0
            ri, frame, shown = pool.pop(), get_sp(), -1
            ri.task = task
            ri.frame = frame
            if (handler := rp._entry_handler) is not None:  # it knows where the function returns to
                shown, declined = get() if load is None else load(frame), True
                ri.link = shown if skip is None or shown == trampoline else skip(shown)
                ri.ret_addr = ri.link if shown != trampoline else followed.true(calls, shown, frame)
                try:
                    declined = handler(ri, regs)
                finally:
                    if declined:
                        followed.recycle((ri,))
                if declined:
                    return 0
            # Linux, too, reads it after the handler
            found = get() if swap is None else swap(frame, trampoline)
            if swap is None:
                put(trampoline)
            if found != shown:
                ri.link = found if skip is None or found == trampoline else skip(found)
                ri.ret_addr = ri.link if found != trampoline else followed.true(calls, found, frame)
                if shown == trampoline:
                    followed.send(calls, ri)
            calls.append(ri)
            # with tasks the machine leaves every call to us
            if rp._follow is not None and chooser is None:
                followed.room(rp)
            return 0

        return enter

    def room(self, rp: Kretprobe, calls: Instances, regs: Regs) -> bool:
        """A call begins and no instance is free: True if one is now; else it is missed."""
        self.calls.reap(calls, regs)
        # who jumps to the entry without end has one frame for all these calls, and gets no more
        # than a few
        loops = (
            rp._maxactive <= 0
            and rp._made >= LOOPS
            and self._linkage.get(regs) == self.calls.trampoline
        )
        if rp._pool or (not loops and self._grow(rp)):
            return True
        if not rp.nmissed:
            self._short.append(rp)
        rp.nmissed += 1
        return False

    def link(self) -> Link:
        """Return the return address at function entry, as the only CPU reaches it."""
        return Link.of(self._machine.cpu_regs[0], self._linkage)
