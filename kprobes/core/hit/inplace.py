"""Hits without a trap: call sites of detours, and the return trampoline."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import BadLocation, GuestFault
from ...regs import Regs
from ..patch.arming import Arming
from ..patch.optimizer import Detour
from ..patch.probepoint import Probepoint
from ..probe import Kretprobe, KretprobeInstance, Probe
from .ctlblk import ControlBlock, Event, State
from .handlers import Handlers

# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_ACTIVE, DONE = State.IDLE, State.HIT_ACTIVE, Event.DONE
BREAKPOINTS = (Arming.ARMED, Arming.OPTIMIZING)


class InPlace(Handlers):
    """Services of call sites, and returns through the trampoline, in place or by trap."""

    def service(self, point: Probepoint) -> Callable[[Regs], None]:
        """What a detour's call site calls: the pre-handlers, without trap or slot.

        Made anew whenever the probes there change. begin() and step() are written out: this is the shortest hit there is.
        """
        simulated = point.insn.simulate is not None and not point.native
        if len(point.active) == 1 and not simulated and len(self.blocks) == 1:
            return self._service_of_one(point, point.active[0])
        blocks, address, detour = self.blocks, point.address, point.detour

        def serve(regs: Regs) -> None:
            cb = blocks[regs.cpu]
            if cb.state is IDLE:
                regs._pc = address
                cb.state, cb.point, cb.probes = HIT_ACTIVE, point, point.active
                try:
                    diverted = self._pre(cb, regs)
                except BaseException:
                    regs.go(address | point.insn.mode)
                    raise
                finally:
                    cb.state = IDLE
                if diverted:
                    self._divert_in_place(point, regs)
                    return
            else:
                point.missed()
            regs._target = None  # only DIVERTED moves the guest
            if point.detour is not detour and self._taken_apart(cb, cb.probes, point, regs, detour):
                return
            if simulated:
                self._simulate_in_place(cb, point, regs)

        return serve

    def _service_of_one(self, point: Probepoint, p: Probe) -> Callable[[Regs], None]:
        cb, address, handler, detour = self.blocks[0], point.address, p._pre, point.detour
        follows = isinstance(p, Kretprobe)

        def serve(regs: Regs) -> None:
            if cb.state is not IDLE:
                point.missed()
                return
            p._nhit += 1
            if handler is None:
                return
            if follows and p._entry_handler is None:  # type: ignore[attr-defined]  # no handler of the user's runs here
                handler(p, regs)
                return
            regs._pc = address
            cb.state = HIT_ACTIVE
            try:
                diverted = handler(p, regs)
            except Exception as error:
                diverted = self._failed_in_place(p, point, regs, error)
            except BaseException:
                regs.go(address | point.insn.mode)
                raise
            finally:
                cb.state = IDLE
            if diverted:
                self._divert_in_place(point, regs)
                return
            regs._target = None  # only DIVERTED moves the guest
            if point.detour is not detour:
                self._taken_apart(cb, (p,), point, regs, detour)

        return serve

    def _taken_apart(self, cb: ControlBlock, probes: tuple[Probe, ...], point: Probepoint, regs: Regs, detour: Detour | None) -> bool:
        """A handler has had the jump taken out. Where a probe stands in what it covered, the hit goes on as a breakpoint's: True."""
        inside = self._sites.between(point.address + 1, point.address + (0 if detour is None else detour.size))
        if cb.state is not IDLE or not any(other.state in BREAKPOINTS for other in inside):
            return False
        cb.state, cb.point, cb.probes = HIT_ACTIVE, point, probes
        self._execute(cb, point, regs)
        return True

    def _failed_in_place(self, p: Probe, point: Probepoint, regs: Regs, error: Exception) -> bool:
        """An exception of the handler's: True if its fault_handler has handled it by setting pc; raises it if it has not."""
        try:
            self._ask_about_exception(p, regs, error)
        except BaseException:
            regs.go(point.address | point.insn.mode)
            raise
        return regs.pc != point.address

    def _divert_in_place(self, point: Probepoint, regs: Regs) -> None:
        """A pre_handler has set pc itself: the probepoint becomes a breakpoint again, unless a jump was demanded."""
        if point.detour is not None and point.detour.demanded:
            regs.go(point.address | point.insn.mode)
            raise BadLocation("a pre_handler asked to divert, but the probepoint is optimized", address=point.address, symbol=point.where,
                              hint="give the probe a post_handler or optimize=False")
        self._owner.optimizer.refuse(point, "its pre_handler diverts the guest")
        self._check_diverted(point, regs)

    def _simulate_in_place(self, cb: ControlBlock, point: Probepoint, regs: Regs) -> None:
        assert point.insn.simulate is not None
        try:
            regs.go(point.insn.simulate(regs))
        except GuestFault as error:
            cb.begin(point)
            cb.probes = point.active
            target = self._simulate(cb, point, regs) if self._fault_at_home(cb, point, regs, error) else None
            if target is not None:
                regs.go(target)
                cb.step(DONE)

    def return_service(self) -> Callable[[Regs], None]:
        """What the trampoline in a call area calls; its code then returns as the function did, unless a handler has other ideas.

        The usual return is written out: one CPU, and the youngest calls.
        """
        if len(self.blocks) > 1:
            return self._serve_return
        machine, cb, rare, bits, followed = self._rooms.machine, self.blocks[0], self._serve_return, self._rooms.arch.mode_bits, self._calls
        own, following, trampoline, link, pushed, restore = self._returns.usual()
        get_sp, get, put, store, tasks = link.get_sp, link.get, link.put, link.store, followed.tasks

        def serve(regs: Regs) -> None:
            if following:
                followed.catch_up()
            chooser = machine.cpu_task
            calls = own if chooser is None else tasks.get(chooser(regs))
            if not calls or cb.state is not IDLE or self.closing:
                rare(regs)
                return
            ri = calls[-1]
            target, rp, sp, instances = ri.link, ri.rp, get_sp(), None
            if ri.frame != sp - pushed or ri.aside:
                rare(regs)
                return
            if target != trampoline:
                del calls[-1]
            else:
                instances = followed.sharing(calls, ri.frame)
                if instances is None:
                    rare(regs)
                    return
                target = instances[-1].link
            if store is not None:
                store(ri.frame, target)
            elif restore is not None:
                restore(regs, sp, target)
            elif get() == trampoline:
                put(target)
            regs._target = target
            regs._pc = target & ~bits if bits else target
            if instances is not None:
                self._run_return_handlers(cb, instances, regs)
            else:
                try:
                    if ri.pool is rp._pool:  # it is still registered
                        rp._nreturned += 1
                        if rp._handler is not None:
                            cb.state, cb.child = HIT_ACTIVE, rp
                            rp._handler(ri, regs)
                except Exception as error:
                    self._ask_about_exception(rp, regs, error)
                finally:
                    cb.state = IDLE
                    ri._data = None
                    ri.pool.append(ri)
                    if self.closing:
                        self._owner.finish_closing()
            if regs._target is target and (get_sp() == sp if store is not None else get() == target):
                regs._target = None
            else:
                self._land(regs)

        return serve

    def _serve_return(self, regs: Regs) -> None:
        """return_service() for every other case."""
        sp = regs.sp
        instances = self._calls.pop(regs, sp)
        frame, target = instances[0].frame, regs._target
        self._run_return_handlers(self.blocks[regs.cpu], instances, regs)
        if target is not None and regs._target == target and self._calls.goes_back(regs, sp, frame, target):
            regs._target = None
        else:
            self._land(regs)

    def _return(self, cb: ControlBlock, regs: Regs) -> None:
        """The trampoline by trap."""
        self._run_return_handlers(cb, self._calls.pop(regs, regs.sp), regs)

    def _run_return_handlers(self, cb: ControlBlock, instances: list[KretprobeInstance], regs: Regs) -> None:
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
                        self._ask_about_exception(rp, regs, error)
        finally:
            self._calls.recycle(instances)
            cb.state = IDLE
