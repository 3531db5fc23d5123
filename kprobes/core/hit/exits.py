"""Returns of followed calls: at the trampoline, in place or by trap, and where the machine has followed the call."""

from __future__ import annotations

from collections.abc import Callable

from ...regs import Regs
from ..patch.rooms import Rooms
from ..probe import Kretprobe, KretprobeInstance
from .calls import Instances
from .ctlblk import ControlBlock, State
from .handlers import Handlers
from .returns import Returns

# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_ACTIVE = State.IDLE, State.HIT_ACTIVE


class Exits:
    """Makes what the trampoline calls, and runs return handlers."""

    def __init__(self, rooms: Rooms, handlers: Handlers, returns: Returns) -> None:
        self._rooms, self._handlers, self._returns, self._calls = rooms, handlers, returns, returns.calls

    def service(self) -> Callable[[Regs], None]:
        """What the trampoline in a call area calls; its code then returns as the function did, unless a handler has
        other ideas."""
        return self._serve_rare if len(self._handlers.blocks) > 1 else self._service_of_one()

    def _service_of_one(self) -> Callable[[Regs], None]:
        """The same on the only CPU. The usual return, of the youngest call, alone in its frame, is written out."""
        machine, bits, several = self._rooms.machine, self._rooms.arch.pointers.mode_bits, self._service_of_several()
        cb, handlers, followed, rare = self._handlers.blocks[0], self._handlers, self._calls, self._serve_rare
        own, following, trampoline, link, pushed, restore = self._returns.usual()
        get_sp, get, put, tasks, (top, bottom) = link.get_sp, link.get, link.put, followed.tasks, followed.idle

        def serve(regs: Regs) -> None:
            if following and top[0] != bottom:
                followed.catch_up()
            calls = own if (chooser := machine.cpu_task) is None else tasks.get(chooser(regs))
            if not calls or cb.state is not IDLE:
                return rare(regs)
            ri = calls[-1]
            target, sp, rp = ri.link, get_sp(), ri.rp
            if target == trampoline or ri.frame != sp - pushed or ri.aside or ri.pool is not rp._pool:
                return several(regs, calls, sp)
            del calls[-1]
            if restore is not None:
                restore(ri.frame, target)
            elif get() == trampoline:
                put(target)
            regs.target = target
            regs.reported = target & ~bits if bits else target
            rp._nreturned += 1
            try:
                if rp._handler is not None:
                    cb.state, cb.child = HIT_ACTIVE, rp
                    rp._handler(ri, regs)
            except Exception as error:
                handlers.ask_about_exception(rp, regs, error)
            finally:
                cb.state, ri._data, ri.args = IDLE, None, None
                ri.pool.append(ri)
            if regs.target is target and (get_sp() == sp if pushed else get() == target):
                regs.target = None
            else:
                handlers.land(regs)

        return serve

    def _service_of_several(self) -> Callable[[Regs, Instances, int], None]:
        """The same for calls that share the youngest one's frame: (registers, calls of the task, stack pointer)."""
        bits, cb, followed, handlers = (self._rooms.arch.pointers.mode_bits, self._handlers.blocks[0], self._calls,
            self._handlers)
        _, _, trampoline, link, pushed, restore = self._returns.usual()
        get_sp, get, put, read, bias = link.get_sp, link.get, link.put, link.read, link.bias
        run_handlers, displaced = self.run_handlers, self._rooms.displaced

        def several(regs: Regs, calls: Instances, sp: int) -> None:
            instances, frame = [], sp - pushed
            for ri in reversed(calls):
                if ri.frame != frame or ri.aside:
                    return self._finish(regs, sp, followed.pop_of(calls, regs, sp))
                instances.append(ri)
                target = ri.link
                if target != trampoline:
                    break
            else:
                return self._finish(regs, sp, followed.pop_of(calls, regs, sp))
            del calls[-len(instances):]
            if restore is not None:
                restore(frame, target)
            elif get() == trampoline:
                put(target)
            regs.target = target
            regs.reported = target & ~bits if bits else target
            run_handlers(cb, instances, regs)
            if regs.target is target and (get_sp() == sp if pushed else read() + bias == target):
                regs.target = None
            elif displaced:
                handlers.land(regs)

        return several

    def returned(self, rp: Kretprobe) -> Callable[[Regs, int, int], None]:
        """The end of a return that the machine has followed, of the call that is held last, if any is: it goes to the
        right place already. The handler runs, and the guest goes on by itself, unless it was moved."""
        cb, bits, pool, held = self._handlers.blocks[0], self._rooms.arch.pointers.mode_bits, rp._pool, rp._held
        _, _, _, link, pushed, _ = self._returns.usual()
        get_sp, get = link.get_sp, link.get

        def returned(regs: Regs, frame: int, target: int) -> None:
            if held:
                ri = held.pop()
            else:
                ri = pool.pop()
                ri.task, ri.frame = 0, frame  # begin(), written out
                ri.link = ri.ret_addr = target
            regs.target = target
            regs.reported = target & ~bits if bits else target
            rp._nreturned += 1
            try:
                if rp._handler is not None:
                    cb.state, cb.child = HIT_ACTIVE, rp
                    rp._handler(ri, regs)
            except Exception as error:
                self._handlers.ask_about_exception(rp, regs, error)
            finally:
                cb.state = IDLE
                ri._data = ri.args = None
                ri.pool.append(ri)
            if regs.target is target and (get_sp() == frame + pushed if pushed else get() == target):
                regs.target = None
            else:
                self._handlers.land(regs)

        return returned

    def _serve_rare(self, regs: Regs) -> None:
        """service() for every other case."""
        sp = regs.sp
        self._finish(regs, sp, self._calls.pop(regs, sp))

    def _finish(self, regs: Regs, sp: int, instances: list[KretprobeInstance]) -> None:
        """The end of any return in place, whose true target regs knows."""
        frame, target = instances[0].frame, regs.target
        self.run_handlers(self._handlers.blocks[regs.cpu], instances, regs)
        if target is not None and regs.target == target and self._calls.goes_back(regs, sp, frame, target):
            regs.target = None
        else:
            self._handlers.land(regs)

    def by_trap(self, cb: ControlBlock, regs: Regs) -> None:
        """The trampoline by trap."""
        self.run_handlers(cb, self._calls.pop(regs, regs.sp), regs)

    def run_handlers(self, cb: ControlBlock, instances: list[KretprobeInstance], regs: Regs) -> None:
        if cb.state is not IDLE:
            self._calls.missed(instances)
            return
        cb.state, cb.point = HIT_ACTIVE, None  # begin(), written out
        try:
            for ri in instances:
                rp = ri.rp
                if ri.pool is not rp._pool or rp._point is None:
                    continue  # unregistered meanwhile
                cb.child = rp
                rp._nreturned += 1
                handler = rp._handler
                if handler is not None:
                    try:
                        handler(ri, regs)
                    except Exception as error:
                        self._handlers.ask_about_exception(rp, regs, error)
        finally:
            cb.state = IDLE
            for ri in instances:  # recycle(), written out
                ri._data = ri.args = None
                if not ri.aside:
                    ri.pool.append(ri)
