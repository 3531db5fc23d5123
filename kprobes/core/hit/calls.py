"""Calls that are followed to their return: a table of them, and which one returns.

The machine is the engine that runs the guest; the core is this package, which serves probes.

A return probe follows a call: at the function's entry the return address is replaced by that of the
trampoline, and an instance (KretprobeInstance) remembers the call until it returns there.

A call is known by its frame, the stack pointer at entry. A call whose frame lies below the stack
pointer (above, where stacks grow upwards) looks abandoned: longjmp or unwinding has left it, or it
belongs to another stack and machine.cpu_task was not set. Such a call is set aside, not forgotten:
its probe gets another instance in its place, and if it returns after all, it goes to the right
address.

The machine may follow calls by itself. Everything here that looks at calls takes those over first
(catch_up). Where a probe has an entry handler the instance of such a call is taken at entry and
held (Kretprobe's `held`); otherwise it is taken from the pool by catch_up().
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from attrs import frozen

from ...arch._base import Linkage
from ...errors import GuestFault, KprobeError, ReentryError
from ...machine._base import HostProgram, Machine, UsualEntry, UsualReturn
from ...native import quick
from ...regs import Regs
from ..probe import Followers, Kretprobe, KretprobeInstance, begin_call
from .link import Link

Instances = list[KretprobeInstance]
SET_ASIDE = 1024  # abandoned calls that are remembered for each task


@frozen
class Followed:
    """A call that is followed to its return.

    Attributes:
        link: the true return address.
        frame: stack pointer at entry.
        entries: addresses of the functions that share the frame: the one that was called, and those
            that it has jumped to (tail calls). Functions whose probes are gone are left out.
    """

    link: int
    frame: int
    entries: Sequence[int]


class CallsUnderWay:
    """Every followed call of the guest. A call is a KretprobeInstance in the list of its task.

    Attributes:
        own: the calls of CPU 0 while there is no machine.cpu_task: those set aside, then the others
            from the oldest on. Calls that the machine follows are younger than all of them.
        tasks: task -> its calls, in that order. Each CPU number is a task that is never removed.
        trampoline: address to which followed calls return, mode bits included; 0: none yet.
        following: call site (the address in a detour where the machine calls or runs something) ->
            the return probes whose calls the machine follows from there.
        programs: the machine's power to follow calls; None: it has none.
        idle: (sequence, number): while the machine follows no call, sequence[0] == number.
    """

    def __init__(self, machine: Machine) -> None:
        """Begin with no calls.

        Args:
            machine: runs the guest.
        """
        self._machine = machine
        # may be None: then no return probe is registered, and no call is followed
        self._linkage: Linkage = machine.arch.linkage  # type: ignore[assignment]
        self.tasks: dict[Any, Instances] = {cpu: [] for cpu in range(machine.cpus)}
        self.own = self.tasks[0]
        self._way = machine.arch.callers
        self.trampoline = 0
        self.following: dict[int, Followers] = {}
        self.programs = machine.following if machine.cpus == 1 else None
        self.idle = ((0,), 0) if self.programs is None else self.programs.idle

    @cached_property
    def _links(self) -> list[Link]:
        """How the return address is reached at the trampoline, for each CPU by its number."""
        return [Link.of(regs, self._linkage, returning=True) for regs in self._machine.cpu_regs]

    # --- calls that the machine follows

    def follow(
        self,
        probes: Sequence[Kretprobe],
        call: int,
        returned: UsualReturn | Sequence[HostProgram],
        entered: UsualEntry | None = None,
        programs: Sequence[HostProgram] = (),
    ) -> None:
        """Have the machine follow the calls of a function by itself while instances are free.

        The call site is programmed: from then on its service, a function of the core's, is called
        only where a hit is out of the ordinary. The probes are noted in `following` (and in each
        probe what follows it, `_follow`), and the machine is told how many calls it may follow (see
        allow_more()).

        Args:
            probes: the function's return probes, in the order in which they run at the entry.
            call: address of the call site in the detour at the function's entry.
            returned: what the machine does at a return: call this handler, or run these programs.
            entered: the handler that the machine asks at the entry whether to follow the call;
                None: it follows every call.
            programs: programs that run at the entry, before the call is followed.
        """
        assert self.programs is not None
        followers = Followers(probes, self.programs.enter(returned, entered))
        assert self._machine.call_sites is not None
        self._machine.call_sites.program_at(call, programs, followers.program)
        self.following[call] = followers
        for rp in probes:
            rp._follow = followers
        followers.make_room()

    def allow_more(self, rp: Kretprobe) -> None:
        """Tell the machine how many more calls of a probe's function it may follow.

        As many as each of the return probes there has free instances for. Nothing happens where the
        machine does not follow the function's calls.

        Args:
            rp: one of the function's return probes; its pool has changed.
        """
        if rp._follow is not None:
            rp._follow.make_room()

    def follow_no_more(self, call: int) -> None:
        """End the machine's following of calls from a call site; its calls under way join `own`.

        The probes' nreturned is brought up to date, and `following` loses the call site. Nothing
        happens where the machine follows no calls from there.

        Args:
            call: address of the call site.
        """
        followers = self.following.get(call)
        if followers is not None:
            self.catch_up()
            for rp in followers.probes:
                rp._nreturned = rp.nreturned
                rp._follow = None
            del self.following[call]

    @property
    def is_empty(self) -> bool:
        """True where surely no call is followed: by the machine, on CPU 0 or of another task."""
        return not self.own and len(self.tasks) == 1 and self.idle[0][0] == self.idle[1]

    def catch_up(self) -> None:
        """Move the calls that the machine follows to the end of `own`: they are the youngest.

        An instance is taken for each call and each of the function's return probes. Afterwards the
        machine follows none of these calls.
        """
        if self.programs is None or not self.following or self.idle[0][0] == self.idle[1]:
            return
        for slot, (call, frame, link) in enumerate(self.programs.take()):
            self.own += self.following[call].take(frame, link, self.trampoline, slot)

    # --- entry

    def add(self, ri: KretprobeInstance, frame: int, link: int) -> None:
        """Append a new call to `own`, where the core and not the machine follows it.

        Used where there is one CPU and no machine.cpu_task. Calls that the machine follows are
        taken over first, since they are older. The machine is then told how many instances are
        left.

        Args:
            ri: the call's instance, taken from its pool.
            frame: stack pointer at entry.
            link: return address found at entry.
        """
        begin_call(ri, frame, link)
        self.catch_up()
        self.own.append(ri)
        self.allow_more(ri.rp)

    def of(self, task: Any) -> Instances:
        """Return the list of a task's calls itself, not a copy; an unknown task gets an empty one.

        Args:
            task: a CPU number, or what machine.cpu_task returns.
        """
        calls = self.tasks.get(task)
        if calls is None:
            calls = self.tasks[task] = []
        return calls

    def true_return(self, regs: Regs, address: int) -> int:
        """Return where code goes that has `address` as its return address.

        The calls that the machine follows are moved to `own` first, if `address` is the
        trampoline's.

        Args:
            regs: registers of the CPU that runs the code.
            address: a return address.

        Returns:
            `address`; for the trampoline's, the true return address of the task's youngest live
                call, or `address` itself where there is no such call.
        """
        return next(self.above(regs), address) if address == self.trampoline else address

    def send(self, calls: Instances, begins: KretprobeInstance) -> None:
        """Change the return address of all calls that share a frame, as an entry handler has asked.

        Called where the trampoline was the return address at entry, so that the frame has other
        followed calls (tail calls, or several probes), and the entry handler of the youngest has
        written another address over it.

        Args:
            calls: the task's calls, without the youngest; from its end on each live one gets
                `begins.ret_addr`, up to the first whose `link` is not the trampoline (the oldest of
                the frame): its `link` becomes that address, too.
            begins: the youngest; its ret_addr is the address that the handler has set. Its `link`
                becomes the trampoline.
        """
        begins.link = trampoline = self.trampoline
        for ri in reversed(calls):
            if not self._gone(ri, begins.frame):
                ri.ret_addr = begins.ret_addr
                if ri.link != trampoline:
                    ri.link = begins.ret_addr
                    return

    def true_link(self, calls: Instances, link: int, sp: int) -> int:
        """Return the true return address of a call that begins.

        Args:
            calls: the task's calls under way, without the one that begins.
            link: return address as it is found, which may be the trampoline's: then the call shares
                the frame of one of `calls`, whose return address is its own.
            sp: stack pointer at the call's entry.

        Returns:
            `link`, where it is not the trampoline's; else the true return address of the youngest
                live call that has one, and the trampoline's where there is none.
        """
        trampoline = self.trampoline
        if link == trampoline:
            for ri in reversed(calls):
                if ri.link != trampoline and not self._gone(ri, sp):
                    return ri.link
        return link

    def above(self, regs: Regs) -> Iterator[int]:
        """Yield the true return addresses of the live calls of a CPU's task, the youngest first.

        The calls that the machine follows are moved to `own` first.

        Args:
            regs: registers of the CPU: they say which task runs, and its stack pointer.
        """
        return (call.link for call in self.followed(regs))

    def followed(self, regs: Regs) -> Iterator[Followed]:
        """Yield the live calls of a CPU's task, the youngest first; calls that share a frame as
        one.

        The calls that the machine follows are moved to `own` first.

        Args:
            regs: registers of the CPU: they say which task runs, and its stack pointer.
        """
        self.catch_up()
        return self._followed(self.tasks.get(regs.task, []), regs.sp)

    def _followed(self, calls: Instances, sp: int) -> Iterator[Followed]:
        """Yield the followed calls of a task that are still under way, the youngest first.

        Calls that share a frame (several return probes, tail calls) are one item.

        Args:
            calls: the task's calls: those set aside, then the others from the oldest on.
            sp: the stack pointer. Calls whose frames it has left behind are over, and are left out.
        """
        sharing = list[KretprobeInstance]()
        for ri in reversed(calls):
            if not self._gone(ri, sp):
                sharing.append(ri)
                if ri.link != self.trampoline:
                    yield Followed(
                        ri.link,
                        ri.frame,
                        [one.rp.address for one in sharing if one.rp.address is not None],
                    )
                    sharing = []

    def _gone(self, ri: KretprobeInstance, sp: int) -> bool:
        """Return True if the stack pointer has passed a call's frame, so that the call is over.

        Args:
            ri: the call.
            sp: the stack pointer.
        """
        return (ri.frame - sp) * self._way < 0

    # --- return

    def pop(self, regs: Regs, sp: int) -> Instances:
        """Take the instances of the frame that returns, and let the guest return to its caller.

        The true return address is put where the trampoline's stood, and pc becomes that address.
        Calls that the machine follows are moved to `own` before.

        Args:
            regs: registers of the CPU, which stands at the trampoline.
            sp: stack pointer there.

        Returns:
            The instances, youngest first. They are not recycled.

        Raises:
            ReentryError: no followed call returns there.
        """
        if self.idle[0][0] != self.idle[1]:
            self.catch_up()
        calls = self.of(regs.task)
        frame = sp - self._linkage.pushed
        instances = self._sharing(calls, frame) or self._search(calls, frame)
        frame, target = instances[-1].frame, instances[-1].link
        self._put_back(regs, frame, target)
        regs.go(target)
        return instances

    def _sharing(self, calls: Instances, frame: int) -> Instances | None:
        """Remove the youngest calls from a task's calls, if they all have the given frame.

        The last one removed is the oldest of the frame: its `link` is the true return address.

        Args:
            calls: the task's calls: those set aside, then the others from the oldest on.
            frame: the stack pointer at the entry of the calls.

        Returns:
            The calls removed, youngest first. None: the youngest calls are not the frame's, or none
            of them has the true return address; nothing was removed.
        """
        trampoline, instances = self.trampoline, []
        while calls and calls[-1].frame == frame and not calls[-1].aside:
            ri = calls.pop()
            instances.append(ri)
            if ri.link != trampoline:
                return instances
        calls += reversed(instances)
        return None

    def _search(self, calls: Instances, sp: int) -> Instances:
        """Remove the instances of the returning frame from a task's calls, wherever in the list
        they are.

        Younger calls that share the frame or whose frames are gone are set aside, unless the frame
        itself was set aside. The instances removed are no longer marked as set aside.

        Args:
            calls: the task's calls; it is changed.
            sp: the stack pointer at entry of the call that returns, unless the call has popped
                arguments of its own.

        Returns:
            The instances, youngest first; `link` of the last one is the true return address.

        Raises:
            ReentryError: no followed call returns there.
        """
        at = self._returning(calls, sp)
        frame, known, instances = calls[at].frame, not calls[at].aside, [calls.pop(at)]
        while instances[-1].link == self.trampoline:
            shared = next((i for i in reversed(range(at)) if calls[i].frame == frame), None)
            if shared is None:
                break
            at = shared
            instances.append(calls.pop(at))
        for ri in instances:
            ri.aside = False
        if known and at < len(calls):
            self._set_aside(
                calls, lambda i, ri: i >= at and (ri.frame == frame or self._gone(ri, frame))
            )
        return instances

    def _put_back(self, regs: Regs, frame: int, target: int) -> None:
        """Write a true return address over the trampoline's, in the stack or the link register.

        The link register is left alone where it no longer has the trampoline's address.

        Args:
            regs: the registers of the CPU that returns.
            frame: the call's frame: the stack pointer at its entry.
            target: the true return address, mode bits included.
        """
        restore, link = self._linkage.returning.restore, self._links[regs.cpu]
        if restore is not None:
            restore(regs, frame, target)
        elif link.store is not None:
            link.store(frame, target)
        elif link.get() == self.trampoline:
            link.put(target)

    def goes_back(self, regs: Regs, sp: int, frame: int, target: int) -> bool:
        """Return True if the code at the trampoline returns to `target` by itself.

        It does not where a return handler has changed the stack pointer or the link register that
        the code returns by.

        Args:
            regs: registers of the CPU.
            sp: stack pointer when the trampoline was reached.
            frame: stack pointer at the call's entry.
            target: where the call returns to.
        """
        link, pushed = self._links[regs.cpu], self._linkage.pushed
        return link.get_sp() == sp == frame + pushed if pushed else link.get() == target

    def _returning(self, calls: Instances, sp: int) -> int:
        """Return the index in `calls` of the youngest instance of the frame that returns.

        The frame is `sp` or, where a callee may pop its own arguments (x86 `ret n`), below that by
        their size. A call that longjmp has left may have the same frame. (Where calls do not push
        the return address, it counts as being in memory.) Chosen is the first of these that exists:

        1. the youngest call with such a frame where the trampoline's address, which the return has
           popped, still lies in memory;
        2. of the calls whose frames are gone, without those set aside, the one with the outermost
           frame where that address lies in memory;
        3. the youngest call with such a frame that was not set aside;
        4. of the calls whose frames are gone, without those set aside, the one with the outermost
           frame.

        Args:
            calls: the task's calls: those set aside, then the others from the oldest on.
            sp: the stack pointer at entry of the call that returns, unless the call has popped
                arguments of its own.

        Raises:
            ReentryError: no followed call returns there.
        """
        frames = {sp, *(sp - size for size in self._linkage.returning.may_pop)}
        exact = [i for i, ri in enumerate(calls) if ri.frame in frames]
        below = [i for i, ri in enumerate(calls) if self._gone(ri, sp) and not ri.aside]
        popped = [i for i in exact if self._popped(calls[i].frame)]
        if popped:
            return popped[-1]
        popped = [i for i in below if self._popped(calls[i].frame)]
        if popped:
            return self._nearest(calls, popped)
        # something has been written over what was popped
        known = [i for i in exact if not calls[i].aside]
        if known:
            return known[-1]
        if not below:
            raise ReentryError(
                "a return through the trampoline belongs to no followed call",
                address=sp,
                hint="functions that return twice cannot be followed",
                python="where guest stacks are switched, set machine.cpu_task",
            )
        return self._nearest(calls, below)

    def _nearest(self, calls: Instances, found: Sequence[int]) -> int:
        """Return the index of the youngest call of those with the outermost frame.

        Args:
            calls: the task's calls.
            found: indices of the calls to choose from.
        """
        frames = [calls[i].frame for i in found]
        frame = max(frames) if self._way > 0 else min(frames)
        return max(i for i in found if calls[i].frame == frame)

    def _popped(self, frame: int) -> bool:
        """Return True if a return may have popped the trampoline's address at `frame`.

        It may not where something else lies at `frame` by now, or nothing can be read there. Always
        True where calls do not push the return address.

        Args:
            frame: address of a call's frame.
        """
        size = self._linkage.pushed
        if not size:
            return True
        try:
            there = self._machine.read(frame, size)
        except GuestFault:  # of another stack, which is gone
            return False
        return int.from_bytes(there, self._machine.arch.order.value) == self.trampoline

    # --- calls that will not return

    def reap(self, calls: Instances, regs: Regs) -> None:
        """Set aside the calls whose frames are gone, so that their probes get instances again.

        Called as a call begins for which no instance is free. A frame is gone below the stack
        pointer, and also at it: the call that begins has that frame now. The exception is a tail
        call, whose caller shares the frame; there the return address is the trampoline's. Where the
        architecture lets calls share frames (Returning.shares_frames), a frame at the stack pointer
        is not gone either.

        Args:
            calls: the calls of the task that runs; those that are set aside are moved to their
                front.
            regs: the registers at the entry of the call that begins.
        """
        jumped = self._linkage.get(regs) == self.trampoline
        alive = regs.sp if jumped or self._linkage.returning.shares_frames else regs.sp + self._way
        self._set_aside(calls, lambda i, ri: self._gone(ri, alive))

    def set_gone_aside(self) -> None:
        """Set aside the calls whose frames are gone, of every task that is on a CPU now.

        Called where no call is about to begin: as a probe is unregistered or the Kprobes is closed.

        A frame at the stack pointer counts as gone, too, unless a followed function may be running
        that has used no stack yet. Calls that the machine follows are moved to `own` before.
        """
        self.catch_up()
        for regs in self._machine.cpu_regs:
            calls = self.of(regs.task)
            if calls:
                sp, shown = regs.sp, self._may_be_at_entry(regs)
                self._set_aside(
                    calls,
                    lambda i, ri, sp=sp, shown=shown: (  # type: ignore[misc]
                        self._gone(ri, sp) or (ri.frame == sp and not shown)
                    ),
                )

    def _may_be_at_entry(self, regs: Regs) -> bool:
        """Return True if a followed function may be running that has used no stack yet.

        Its frame is then at the stack pointer, and yet not gone. The trampoline's address, or one
        very near to it, is in a register; where calls push the return address, on top of the stack.
        Always True where the architecture lets calls share frames; False where the stack cannot be
        read.

        Args:
            regs: registers of the CPU.
        """
        if self._linkage.returning.shares_frames:
            return True
        if self._linkage.pushed:
            try:
                return self._linkage.get(regs) == self.trampoline
            except KprobeError:  # there is no stack, or the guest has ended
                return False
        near = range(self.trampoline - 16, self.trampoline + 16)
        return any(regs[name] in near for name in regs.names)

    def _set_aside(self, calls: Instances, gone: Callable[[int, KretprobeInstance], bool]) -> None:
        """Set calls aside as abandoned; each one's probe gets a new instance in its place.

        Args:
            calls: the task's calls. Those set aside are moved to the front; of more than SET_ASIDE
                the oldest are forgotten.
            gone: (index in `calls`, call) -> True if the call is to be set aside.
        """
        left = [ri for i, ri in enumerate(calls) if not ri.aside and gone(i, ri)]
        if not left:
            return
        for ri in left:
            ri.aside = True
            ri.pool.append(quick(KretprobeInstance, "instance")(rp=ri.rp, pool=ri.pool))
        old = [ri for ri in calls if ri.aside and ri not in left]
        calls[:] = [*[*old, *left][-SET_ASIDE:], *(ri for ri in calls if not ri.aside)]

    @property
    def pending(self) -> int:
        """Number of calls whose return is still expected at the trampoline.

        Those that were set aside do not count. Calls that the machine follows are moved to `own`
        before.
        """
        self.catch_up()
        return sum(not ri.aside for calls in self.tasks.values() for ri in calls)

    def recycle(self, instances: Iterable[KretprobeInstance]) -> None:
        """Clear instances' data, and return the instances to their pools.

        Those that are set aside are not returned: their pools have others in their place.
        """
        for ri in instances:
            ri._data = ri.args = None
            if not ri.aside:
                ri.pool.append(ri)

    def missed(self, instances: Instances) -> None:
        """Count a missed return for each instance's probe, and return the instances to their pools.

        Called for returns whose handlers do not run because another probe is running.

        Args:
            instances: of the frame that returns.
        """
        for ri in instances:
            ri.rp._missed += 1
        self.recycle(instances)

    def flush(self, task: Any) -> None:
        """Recycle the instances of a guest task that has ended, without calling handlers.

        Calls that the machine follows are moved to `own` before. The task is removed from `tasks`,
        unless it is a CPU number. Nothing happens for an unknown task.

        Args:
            task: a CPU number, or what machine.cpu_task has returned for the task.
        """
        self.catch_up()
        calls = self.tasks.get(task)
        if calls is None:
            return
        self.recycle(calls)
        calls.clear()
        if task not in range(self._machine.cpus):
            del self.tasks[task]
