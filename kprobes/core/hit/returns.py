"""Return probes: their instances, the entry hook, the trampoline.

The machine is the engine that runs the guest; the core is this package, which serves probes.

At entry an instance (KretprobeInstance) remembers the return address and the stack pointer, and the
function is made to return to the trampoline, code of the library's. There the frame that returns is
recognised by the stack pointer (calls.py). Several instances of one frame (several return probes,
or tail calls) are handled together, youngest first, and all know the true return address.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

from ...arch._base import Arch, Linkage
from ...errors import Unsupported
from ...regs import Regs
from ..patch.rooms import Rooms
from ..patch.sites import Site, SiteKind
from ..probe import (
    Kretprobe,
    chooses_maxactive,
    close_pool,
    grow_pool,
    instances_made,
    open_pool,
)
from .calls import CallsUnderWay, Instances
from .link import Link

#: Instances of a probe without maxactive, after which a call that jumps to its own entry again and
#: again (each time with the same frame) gets no more.
LOOPS = 256
CEILING = 1 << 16  # the most instances of a probe without maxactive


class ReturnMissed(RuntimeWarning):
    """A call was not followed to its return, since too many were being followed already."""


class Returns:
    """The entries of return probes, and the trampoline that their calls return to.

    Attributes:
        calls: the calls being followed.
        ceiling: the most instances of a probe whose maxactive is not set.
        short: probes that had no instance, of which warn() has yet to warn.
    """

    def __init__(self, rooms: Rooms) -> None:
        """Begin without a trampoline and without calls.

        Args:
            rooms: the parts of the Kprobes.
        """
        self._rooms = rooms
        self._machine = rooms.machine
        self.calls = CallsUnderWay(rooms.machine)
        self.ceiling = CEILING
        self._stops = range(0)  # breakpoints of the trampoline, where it is no call site
        self.short: list[Kretprobe] = []

    # --- registration

    def prepare(self, rp: Kretprobe, near: int) -> None:
        """Make a probe's pool of instances, and the trampoline if there is none yet.

        The most instances that it may have are set: its maxactive, or `ceiling`. The caller has the
        trampoline served (Serving.serve_returns).

        Args:
            rp: the probe, which is being registered.
            near: address that the trampoline is to be near to.

        Raises:
            Unsupported: the architecture has no linkage.
        """
        arch: Arch = self._machine.arch
        if arch.linkage is None:
            raise Unsupported(
                f"{arch.name} has no linkage, so no return probes",
                symbol=rp.place(),
                hint="probe the return instructions",
            )
        if not self.calls.trampoline:
            self._make_trampoline(arch.linkage, near)
        open_pool(rp, self.ceiling)

    def warn(self) -> None:
        """Warn, once for each probe, that calls were not followed (ReturnMissed).

        Called after a run. `short` is empty afterwards.
        """
        while self.short:
            rp = self.short.pop()
            most = rp.maxactive
            own = chooses_maxactive(rp)
            how = (
                "maxactive (in an event: r10:NAME), or set 0 (r:NAME) for as many as are needed"
                if own
                else "the ceiling, Kprobes.instances"
            )
            warnings.warn(
                f"{rp.place()}: {most} call{'s are' if most > 1 else ' is'} followed at a time, "
                f"and more were active: their returns are missed; raise {how}",
                ReturnMissed,
                stacklevel=2,
            )

    def _make_trampoline(self, linkage: Linkage, near: int) -> None:
        """Make the trampoline, to which followed calls return, and store its address in `calls`.

        It is a call site where the machine can call the core in place: the machine calls the core
        there from now on, and serves returns of the calls that it follows itself. Else it is one or
        two breakpoints, which the machine reports from now on.

        Args:
            linkage: how the architecture calls and returns.
            near: address that the trampoline is to be near to.
        """
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
            # a return that skips instructions at the caller comes to the second trap
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
        """Write the code at the trampoline that returns to the caller (Linkage.back).

        Where the machine allows no delay slot in a call area the code stands in a slot, and two
        jumps at the trampoline lead there: a return that skips instructions at the caller comes to
        the second.

        Args:
            linkage: the architecture's.
            call: address of the trampoline.
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
        """Drop the pool of a probe that is being unregistered.

        Calls whose frames are gone are set aside first. Calls being followed keep their instances,
        which are recycled to the old pool.

        Args:
            rp: the probe; its pool becomes an empty list, and the most instances it may have become
                0.
        """
        self.calls.set_gone_aside()
        close_pool(rp)

    def close(self) -> None:
        """Forget the trampoline: drop its service and have its breakpoints taken out; nothing
        happens where there is none. No call may be about to return to it.
        """
        if self.calls.trampoline:
            address = self.calls.trampoline & ~self._rooms.arch.pointers.mode_bits
            self._rooms.services.pop(address, None)
            for stop in self._stops:
                if self._rooms.sites.pop(stop, None) is not None:
                    self._machine.release(stop)
            self.calls.trampoline = 0

    # --- entry

    def hook(self, rp: Kretprobe) -> Callable[[Kretprobe, Regs], int]:
        """Return the entry hook of a probe, which runs as its pre-handler.

        The hook makes the call return to the trampoline and notes it in `calls`, if an instance is
        free and the entry handler agrees (returns a false value).

        Args:
            rp: the probe.

        Returns:
            (probe, registers at the function's entry) -> 0: the guest goes on in the function.
        """
        hooks = [
            self._hook(rp, Link.of(regs, self._linkage), regs.cpu)
            for regs in self._machine.cpu_regs
        ]
        return hooks[0] if len(hooks) == 1 else lambda rp, regs: hooks[regs.cpu](rp, regs)

    @property
    def _linkage(self) -> Linkage:
        """How the architecture calls and returns; it has a linkage, since a return probe is
        registered.
        """
        linkage = self._rooms.arch.linkage
        assert linkage is not None
        return linkage

    def _hook(self, rp: Kretprobe, link: Link, cpu: int) -> Callable[[Kretprobe, Regs], int]:
        """Return the entry hook for one CPU, with all that never changes looked up beforehand.

        The hook makes the call return to the trampoline and notes it in `calls`, if an instance is
        free and the entry handler agrees.

        Args:
            rp: the probe; its pool stays the same while it is registered.
            link: reaches the return address at function entry.
            cpu: the CPU's number, which is its task while there is no machine.cpu_task.

        Returns:
            (probe, registers at the function's entry) -> 0.
        """
        followed = self.calls
        machine = self._machine
        pool = rp._pool
        own = followed.tasks[cpu]
        trampoline = followed.trampoline
        following = followed.following
        top, bottom = followed.idle
        get_sp = link.get_sp
        get = link.get
        put = link.put
        load = link.load
        swap = link.swap
        skip = link.skip

        def enter(rp: Kretprobe, regs: Regs) -> int:
            """Serve the entry of a probed function: have the call return to the trampoline.

            The call is not followed where no instance is free (it is counted as missed) or the
            entry handler returns a true value. The entry handler's exceptions are raised. Else the
            call becomes the youngest of its task. Where the entry handler has changed the return
            address, the call returns to that, and with it the older calls that share its frame.

            Args:
                rp: the probe.
                regs: the registers at the function's entry.

            Returns:
                0: the guest goes on in the function.
            """
            if following and top[0] != bottom:
                followed.catch_up()
            task = cpu
            chooser = machine.cpu_task
            calls = own if chooser is None else followed.of(task := chooser(regs))
            if not pool and not self.find_room(rp, calls, regs):
                return 0
            ri = pool.pop()
            frame = get_sp()
            shown = -1  # the return address that the entry handler was shown
            ri.task = task
            ri.frame = frame
            handler = rp._entry_handler
            if handler is not None:
                shown = get() if load is None else load(frame)
                ri.link = shown if skip is None or shown == trampoline else skip(shown)
                ri.ret_addr = (
                    ri.link if shown != trampoline else followed.true_link(calls, shown, frame)
                )
                declined = True
                try:
                    declined = handler(ri, regs)
                finally:
                    if declined:
                        followed.recycle((ri,))
                if declined:
                    return 0
            # the handler may have changed the return address; Linux, too, reads it afterwards
            if swap is None:
                found = get()
                put(trampoline)
            else:
                found = swap(frame, trampoline)
            if found != shown:
                ri.link = found if skip is None or found == trampoline else skip(found)
                ri.ret_addr = (
                    ri.link if found != trampoline else followed.true_link(calls, found, frame)
                )
                if shown == trampoline:
                    followed.send(calls, ri)
            calls.append(ri)
            # where there are tasks, the machine follows no calls
            if rp._follow is not None and chooser is None:
                followed.allow_more(rp)
            return 0

        return enter

    def find_room(self, rp: Kretprobe, calls: Instances, regs: Regs) -> bool:
        """Free or make instances for a call that begins while none is free.

        Calls whose frames are gone are set aside; where that frees none, more instances are made.
        None are made where the guest seems to jump to the entry for ever: the return address is the
        trampoline's already, there are LOOPS instances, and maxactive is not set. At the first call
        that is missed, the probe is added to `short`, for warn().

        Args:
            rp: the probe.
            calls: the calls of the task that runs (CallsUnderWay.tasks); it is changed.
            regs: the CPU's registers, at the function's entry.

        Returns:
            True if the pool has an instance now. False: it has none, and the call was counted as
            missed.
        """
        self.calls.reap(calls, regs)
        # a guest that jumps to the entry for ever makes endless calls that share one frame
        loops = (
            not chooses_maxactive(rp)
            and instances_made(rp) >= LOOPS
            and self._linkage.get(regs) == self.calls.trampoline
        )
        if rp._pool or (not loops and grow_pool(rp)):
            return True
        if not rp.nmissed:
            self.short.append(rp)
        rp.nmissed += 1
        return False

    def link(self) -> Link:
        """Return the functions that read and replace the return address at a function's entry, on
        CPU 0.
        """
        return Link.of(self._machine.cpu_regs[0], self._linkage)
