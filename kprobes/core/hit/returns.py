"""Return probes: instances, the per-task stack of calls, the entry hook, the trampoline.

Rules. At entry an instance remembers the return address and the stack pointer, and the function is made to return to the
trampoline. At the trampoline the frame that returns is recognised by the stack pointer; younger instances whose frames
lie below it were left by longjmp or unwinding and are reaped. Several instances of one frame (several return probes, or
tail calls) are handled together, youngest first, and all know the true return address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from ...arch._base import Arch, Linkage
from ...errors import GuestFault, ReentryError, Unsupported
from ...regs import Regs
from ..patch.rooms import Rooms
from ..patch.sites import Kind, Site
from ..probe import Kretprobe, KretprobeInstance
from .followed import Followed, Instances
from .link import Link

FIRST_INSTANCES = 64  # made at registration; more when they are needed, up to maxactive


class Returns(Followed):
    """Every followed call of the guest."""

    def __init__(self, rooms: Rooms) -> None:
        super().__init__(rooms.machine)
        self._rooms = rooms
        self.service: Callable[[], Callable[[Regs], None]]  # makes the driver's, for a trampoline in a call area
        self._tasks: dict[Any, Instances] = {0: self._calls}  # task -> calls, oldest first
        self._trampoline = 0  # target, mode bits included; 0: none yet
        self._linkage: Linkage

    # --- registration

    def prepare(self, rp: Kretprobe, near: int) -> None:
        """Make the pool. Raises Unsupported where the architecture has no linkage."""
        arch: Arch = self._machine.arch
        if arch.linkage is None:
            raise Unsupported(f"{arch.name} has no linkage, so no return probes", symbol=rp.place(), hint="probe the return instructions")
        self._linkage = arch.linkage
        if not self._trampoline:
            self._make_trampoline(arch.linkage, near)
        rp._most = rp._maxactive if rp._maxactive > 0 else max(10, 2 * self._machine.cpus)
        rp._made, rp._pool = 0, []
        self._grow(rp)

    def _grow(self, rp: Kretprobe) -> bool:
        """More instances, up to maxactive: twice as many as there are. False: these are all."""
        pool, more = rp._pool, min(max(rp._made, FIRST_INSTANCES), rp._most - rp._made)
        pool.extend(KretprobeInstance(rp=rp, pool=pool) for _ in range(more))
        rp._made += more
        return more > 0

    def _make_trampoline(self, linkage: Linkage, near: int) -> None:
        rooms = self._rooms
        if linkage.back and rooms.can_call:
            address, _ = rooms.calls.take(near, partial(self._write_back, linkage))
            self._trampoline = address | linkage.mode
            rooms.services[address] = self.service()
            rooms.machine.call_at(address)
            if self.can_follow:
                rooms.machine.return_at(address, self._trampoline)
        else:
            trap = rooms.arch.end_bytes(linkage.mode)
            address, _ = rooms.slots.take(near, lambda slot: rooms.machine.patch(slot, trap))
            rooms.sites[address] = Site(Kind.TRAMPOLINE, None)
            self._trampoline = address | linkage.mode
            rooms.machine.stop_at(address)

    def _write_back(self, linkage: Linkage, call: int) -> None:
        """Linkage.back, at the trampoline or outside the call area."""
        patch, way, place = self._rooms.machine.patch, linkage.way, call
        if way is not None:
            place, _ = self._rooms.slots.take(call, lambda place: patch(call, way(call, place)))
        patch(place, linkage.back)

    def forget(self, rp: Kretprobe) -> None:
        """The probe is unregistered: calls being followed keep their instances, of a pool that nobody takes from."""
        self.catch_up()
        rp._pool, rp._most = [], 0

    def close(self) -> None:
        """Forget the trampoline; nobody may be about to return to it."""
        if self._trampoline:
            address = self._trampoline & ~self._linkage.mode
            self._rooms.services.pop(address, None)
            if self._rooms.sites.pop(address, None) is not None:
                self._machine.release(address)
            self._trampoline = 0

    @property
    def pending(self) -> int:
        """Calls whose return still goes through the trampoline."""
        self.catch_up()
        return sum(map(len, self._tasks.values()))

    # --- entry

    def hook(self, rp: Kretprobe) -> Callable[[Kretprobe, Regs], int]:
        """The entry hook, run as the probe's pre-handler: follow this call if an instance is free."""
        hooks = [self._hook(rp, Link.of(regs, self._linkage)) for regs in self._machine.cpu_regs]
        return hooks[0] if len(hooks) == 1 else lambda rp, regs: hooks[regs.cpu](rp, regs)

    def _hook(self, rp: Kretprobe, link: Link) -> Callable[[Kretprobe, Regs], int]:
        """hook() of one CPU, with what never changes looked up beforehand."""
        machine, trampoline, pool, recycle, following = self._machine, self._trampoline, rp._pool, self.recycle, self.following
        get_sp, get, put, load, store = link.get_sp, link.get, link.put, link.load, link.store
        many, own = machine.cpus > 1, self._calls

        def enter(rp: Kretprobe, regs: Regs) -> int:
            task, calls = 0, own
            if following:
                self.catch_up()
            if many or machine.cpu_task is not None:
                task, calls = self._calls_of(regs)
            if not pool:
                self._reap(calls, regs)
                if not pool and not self._grow(rp):
                    rp.nmissed += 1
                    return 0
            ri = pool.pop()
            ri.task = task
            frame = ri.frame = get_sp()
            found = ri.link = ri.ret_addr = load(frame) if load is not None else get()
            if found == trampoline:
                ri.ret_addr = self._true(calls, found, frame)
            if rp._entry_handler is not None:
                try:
                    declined = rp._entry_handler(ri, regs)
                except BaseException:
                    recycle((ri,))
                    raise
                if declined:
                    recycle((ri,))
                    return 0
            if store is not None:
                store(frame, trampoline)
            else:
                put(trampoline)
            calls.append(ri)
            if rp._refill is not None:
                rp._refill(len(pool))
            return 0

        return enter

    def _calls_of(self, regs: Regs) -> tuple[Any, Instances]:
        """The running task and its followed calls."""
        task = regs.cpu if self._machine.cpu_task is None else regs.task
        return task, self._tasks.setdefault(task, [])

    def true_return(self, regs: Regs, address: int) -> int:
        """The return address behind `address`, which may be the trampoline's."""
        self.catch_up()
        return self._true(self._tasks.get(regs.task, ()), address, regs.sp)

    def _true(self, calls: Iterable[KretprobeInstance], link: int, sp: int) -> int:
        """The true address behind `link`: of the youngest call that has one and whose frame is not gone."""
        if link != self._trampoline:
            return link
        return next((ri.link for ri in reversed(list(calls)) if ri.link != self._trampoline and ri.frame >= sp), link)

    def stack_trace(self, regs: Regs, limit: int, at_entry: bool) -> list[int]:
        """See Kprobes.stack_trace()."""
        self.catch_up()
        frame = self._machine.arch.frame
        if frame is None:
            raise Unsupported(f"{self._machine.arch.name} has no frame-pointer convention", hint="walk the stack by the guest's own means")
        sp = regs.sp
        calls = (ri.link for ri in reversed(self._tasks.get(regs.task, ())) if ri.link != self._trampoline and ri.frame >= sp)
        trace = [regs.pc]
        if at_entry and self._machine.arch.linkage is not None:
            trace.append(self._seen_through(self._machine.arch.linkage.get(regs), calls))
        base = regs[frame.register]
        while base and len(trace) < limit:
            try:
                above = regs.word(base + frame.next)
                address = regs.word((above if frame.above else base) + frame.address)
            except GuestFault:
                break
            if not address:
                break
            trace.append(self._seen_through(address, calls))
            if above <= base:
                break
            base = above
        return trace[:limit]

    def _seen_through(self, address: int, calls: Iterator[int]) -> int:
        """The true address behind one found in a frame: trampolines stand in the order of the followed calls."""
        return next(calls, address) if address == self._trampoline else address

    # --- return

    def usual(self) -> tuple[Instances, dict[int, Kretprobe], int, Link, int, Callable[[Regs, int, int], None] | None]:
        """What the usual return goes by: calls of the only task, call sites of those that the machine follows, trampoline, link, bytes
        popped, Linkage.restore()."""
        linkage = self._linkage
        link = Link.of(self._machine.cpu_regs[0], linkage, returning=True)
        return self._calls, self.following, self._trampoline, link, linkage.pushed, linkage.restore

    def trampoline_writer(self) -> Callable[[int], None]:
        """(stack pointer at entry): make a call return to the trampoline."""
        link, trampoline = Link.of(self._machine.cpu_regs[0], self._linkage), self._trampoline
        store, put = link.store, link.put
        return (lambda frame: put(trampoline)) if store is None else lambda frame: store(frame, trampoline)

    def pop(self, regs: Regs, sp: int) -> Instances:
        """At the trampoline: the instances of the frame that returns, youngest first; the guest goes to its true target."""
        self.catch_up()
        calls = self._tasks.get(regs.cpu if self._machine.cpu_task is None else regs.task, [])
        linkage = self._linkage
        top = self._returning(calls, sp - linkage.pushed)
        frame = calls[top].frame
        bottom = top
        while calls[bottom].link == self._trampoline and any(ri.frame == frame for ri in calls[:bottom]):
            bottom = max(i for i in range(bottom) if calls[i].frame == frame)
        taken = [ri for ri in calls[bottom : top + 1] if ri.frame == frame]
        self.recycle(ri for ri in calls[bottom:] if ri not in taken)  # below the returning frame: left by longjmp or unwinding
        del calls[bottom:]
        target = taken[0].link
        self._put_back(regs, frame, target)
        regs.go(target)
        return taken[::-1]

    def _put_back(self, regs: Regs, frame: int, target: int) -> None:
        """The true target wherever the trampoline still shows."""
        linkage, link = self._linkage, Link.of(regs, self._linkage, returning=True)
        if linkage.restore is not None:
            linkage.restore(regs, frame, target)
        elif linkage.pushed:
            regs.set_word(frame, target)
        elif link.get() == self._trampoline:
            link.put(target)

    def goes_back(self, regs: Regs, sp: int, frame: int, target: int) -> bool:
        """True if the trampoline's own code returns to `target`: nothing that it goes by has been changed."""
        linkage = self._linkage
        return regs.sp == sp == frame + linkage.pushed if linkage.pushed else Link.of(regs, linkage, returning=True).get() == target

    def _returning(self, calls: Instances, sp: int) -> int:
        """Index of the youngest instance of the frame that returns with stack pointer `sp`."""
        frames = {sp, *(sp - size for size in self._linkage.may_pop)}
        for i in reversed(range(len(calls))):
            if calls[i].frame in frames:
                return i
        # The callee popped its own arguments (x86 `ret n`): the outermost frame still below sp.
        below = [i for i, ri in enumerate(calls) if ri.frame < sp]
        if not below:
            raise ReentryError("a return through the trampoline belongs to no followed call", address=sp,
                               hint="functions that return twice cannot be followed",
                               python="where guest stacks are switched, set machine.cpu_task")
        frame = calls[below[0]].frame
        return max(i for i in below if calls[i].frame == frame)

    def _reap(self, calls: Instances, regs: Regs) -> None:
        """The pool is empty: recycle calls whose frames are gone.

        They lie below the stack pointer, or where this call's own begins: who is still there has jumped here, and then the
        trampoline is where this call returns to.
        """
        jumped = self._linkage.get(regs) == self._trampoline
        alive = regs.sp if jumped or self._linkage.shares_frames else regs.sp + 1
        stale = [ri for ri in calls if ri.frame < alive]
        calls[:] = [ri for ri in calls if ri.frame >= alive]
        self.recycle(stale)

    def recycle(self, instances: Iterable[KretprobeInstance]) -> None:
        """Return instances to their pools."""
        for ri in instances:
            ri._data = None
            ri.pool.append(ri)

    def missed(self, instances: Instances) -> None:
        """Returns whose handlers do not run because another probe is running."""
        for ri in instances:
            ri.rp._missed += 1
        self.recycle(instances)

    def flush(self, task: Any) -> None:
        """A guest task has ended: recycle its instances without calling handlers."""
        self.catch_up()
        calls = self._tasks.get(task)
        if calls is None:
            return
        self.recycle(calls)
        calls.clear()
        if calls is not self._calls:
            del self._tasks[task]
