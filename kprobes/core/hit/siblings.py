"""Several return probes on one function, in place: their entry handlers run one behind the other while the call is as
the guest has made it, and then it is followed for all of them; at its return their handlers run.

The machine follows the call where it can: then all hold an instance for it, or, where none asks at entry, none does.
Hits of all probes are counted before; who is not reached is taken off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ...machine._base import Entered
from ...regs import Regs
from ..patch.detour import Detour
from ..patch.probepoint import Probepoint
from ..patch.rooms import Rooms
from ..probe import Kretprobe, KretprobeInstance
from .calls import Instances
from .ctlblk import State
from .entries import Entries
from .exits import Exits
from .handlers import Handlers
from .returns import Returns

# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_ACTIVE = State.IDLE, State.HIT_ACTIVE

#: How entry handlers have ended: a fault handler has sent the guest elsewhere, or what is to be raised
End = bool | BaseException
#: (registers, calls of the task, task, stack pointer, return address found): the instances of those who follow the
#: call, newest first
Ask = Callable[[Regs, Instances, object, int, int], tuple[Instances, End]]
#: (calls of the task, stack pointer, return address found before, instances): True if that is still there. From now on
#: the trampoline is
Show = Callable[[Instances, int, int, Instances], bool]


class Siblings:
    """Makes what call sites and the machine call, on the only CPU."""

    def __init__(self, rooms: Rooms, handlers: Handlers, returns: Returns, entries: Entries, exits: Exits) -> None:
        self._rooms, self._handlers, self._returns, self._calls = rooms, handlers, returns, returns.calls
        self._entries, self._exits = entries, exits

    @cached_property
    def _skip(self) -> Callable[[int], int] | None:
        return self._returns.link().skip

    def service(self, point: Probepoint, detour: Detour, probes: tuple[Kretprobe, ...],
                asks: bool) -> Callable[[Regs], None]:
        """Serves a call that the machine does not follow. asks: one of the probes has an entry handler."""
        cb, machine, followed, to = self._handlers.blocks[0], self._rooms.machine, self._calls, self._returns.link()
        own, tasks, following, (top, bottom) = followed.own, followed.tasks, followed.following, followed.idle
        get_sp, get, load = to.get_sp, to.get, to.load
        ask, show = self._asking(point, probes), self._showing(asks)

        def serve(regs: Regs) -> None:
            if cb.state is not IDLE:
                point.missed()
                return
            point.counted -= 1  # a hit of each
            if following and top[0] != bottom:
                followed.catch_up()
            task, chooser = 0, machine.cpu_task
            calls = own if chooser is None else tasks.get(task := chooser(regs))
            if calls is None:
                calls = followed.of(task)
            frame = get_sp()
            shown = get() if load is None else load(frame)
            begun, end = ask(regs, calls, task, frame, shown)
            if begun:
                show(calls, frame, shown, begun)
                calls += begun
            if chooser is None:  # with tasks the machine leaves every call to us
                followed.room(probes[0])
            if end is not False or detour.left:
                self._begun(point, detour, probes, regs, end)
            else:
                regs.target = None  # only DIVERTED moves the guest

        return serve

    def entered(self, point: Probepoint, detour: Detour, probes: tuple[Kretprobe, ...]) -> Entered:
        """Asks the entry handlers about a call that the machine may follow."""
        ask, show = self._asking(point, probes), self._showing(True)
        followed, first, count = self._calls, probes[0], len(probes)

        def entered(regs: Regs, frame: int, link: int) -> bool:
            follow, calls = first._follow, followed.own
            begun, end = ask(regs, calls, 0, frame, link)
            same = not begun or show(calls, frame, link, begun)
            if same and first._follow is follow and len(begun) == count:
                for ri in begun:
                    ri.rp._held.append(ri)
                regs.target = None  # only DIVERTED moves the guest
                return True
            if begun:
                followed.catch_up()
                calls += begun
                followed.room(first)
            self._begun(point, detour, probes, regs, end)
            return False

        return entered

    def _asking(self, point: Probepoint, probes: tuple[Kretprobe, ...]) -> Ask:
        cb, address, followed = self._handlers.blocks[0], point.address, self._calls
        room, skip = self._returns.room, self._skip
        trampoline = followed.trampoline

        def ask(regs: Regs, calls: Instances, task: object, frame: int, shown: int) -> tuple[Instances, End]:
            begun: Instances = []
            end: End = False
            returns_to = (followed.true(calls, shown, frame) if shown == trampoline else shown if skip is None else
                          skip(shown))
            regs.reported = address
            cb.state = HIT_ACTIVE
            for rp in probes:
                if not rp._active:  # an elder sibling's handler may have unregistered it
                    rp._nhit -= 1
                elif rp._pool or room(rp, calls, regs):
                    ri = rp._pool.pop()
                    ri.task, ri.frame, ri.link, ri.ret_addr = task, frame, trampoline, returns_to
                    begun.append(ri)
                    handler = rp._entry_handler
                    if handler is not None:
                        cb.child = rp
                        try:
                            declined = handler(ri, regs)
                        except BaseException as error:
                            declined, end = True, self._failed(point, probes, rp, regs, error)
                        if declined:
                            followed.recycle((begun.pop(),))
                            if end is not False:
                                break
            cb.state = IDLE
            if begun:
                begun[0].link = returns_to if shown != trampoline else trampoline
            return begun, end

        return ask

    def _true(self, calls: Instances, frame: int, found: int) -> int:
        """Where a function returns to that finds this return address."""
        skip = self._skip
        return self._calls.true(calls, found, frame) if found == self._calls.trampoline or skip is None else skip(found)

    def _showing(self, asks: bool) -> Show:
        followed, to = self._calls, self._returns.link()
        trampoline, get, put, swap = followed.trampoline, to.get, to.put, to.swap
        store: Callable[[int, int], object] = to.store or (lambda frame, target: put(target))

        def show(calls: Instances, frame: int, shown: int, begun: Instances) -> bool:
            if not asks:
                store(frame, trampoline)
                return True
            if swap is not None:
                found = swap(frame, trampoline)  # Linux, too, reads it after the handlers
            else:
                found = get()
                put(trampoline)
            if found == shown:
                return True
            returns_to = self._true(calls, frame, found)
            for ri in begun:
                ri.ret_addr = returns_to
            if shown != trampoline:
                begun[0].link = returns_to
            else:
                followed.send(calls, begun[0])
            return False

        return show

    def _failed(self, point: Probepoint, probes: tuple[Kretprobe, ...], rp: Kretprobe, regs: Regs,
                error: BaseException) -> End:
        """An entry handler has raised: True if its fault_handler has sent the guest elsewhere; what is to be raised if
        none handles it. Either way the rest is not asked."""
        try:
            end: End = self._entries.failed_in_place(rp, point, regs, error)
        except BaseException as raised:
            end = raised
        if end is not False:
            for other in probes[probes.index(rp) + 1:]:
                other._nhit -= 1
        return end

    def _begun(self, point: Probepoint, detour: Detour, probes: tuple[Kretprobe, ...], regs: Regs,
               end: End) -> None:
        """The end of an entry that the machine does not follow."""
        if isinstance(end, BaseException):
            raise end
        if end:
            self._entries.divert_in_place(point, regs)
            return
        regs.target = None  # only DIVERTED moves the guest
        if detour.left:
            self._entries.taken_apart(self._handlers.blocks[0], probes, point, regs, detour)

    def returned(self, probes: tuple[Kretprobe, ...], asked: bool) -> Callable[[Regs, int, int], None]:
        """The end of a return that the machine has followed: it goes to the right place already. asked: the probes hold
        instances of its call."""
        cb, bits, exits = self._handlers.blocks[0], self._rooms.arch.pointers.mode_bits, self._exits
        _, _, _, link, pushed, _ = self._returns.usual()
        get_sp, get = link.get_sp, link.get
        oldest_first = probes[::-1]

        def begun(rp: Kretprobe, frame: int, target: int) -> KretprobeInstance:
            ri = rp._pool.pop()
            ri.begin(frame, target)
            return ri

        def returned(regs: Regs, frame: int, target: int) -> None:
            regs.target = target
            regs.reported = target & ~bits if bits else target
            exits.run_handlers(cb, [rp._held.pop() for rp in oldest_first] if asked else
                               [begun(rp, frame, target) for rp in oldest_first], regs)
            if regs.target is target and (get_sp() == frame + pushed if pushed else get() == target):
                regs.target = None
            else:
                self._handlers.land(regs)

        return returned
