"""Who serves a call site, and the handlers of return probes whose calls the machine follows."""

from __future__ import annotations

from collections.abc import Callable

from ...regs import Regs
from ..patch.probepoint import Probepoint
from ..probe import Kretprobe
from .ctlblk import State
from .inplace import InPlace

# A member looked up through its class costs a descriptor call; these are on every hit.
IDLE, HIT_ACTIVE = State.IDLE, State.HIT_ACTIVE


class Following(InPlace):
    """A driver that leaves to the machine what that can do alone."""

    def serve(self, point: Probepoint) -> None:
        """Have the call site of a detour served: by the machine where it counts or follows calls and nobody else wants to know."""
        assert point.detour is not None
        call, machine = point.detour.call, self._rooms.machine
        self.unserve(point, call)
        self._rooms.services[call] = self.service(point)
        if not point.active or (point.insn.simulate is not None and not point.native):
            return
        first = point.active[0]
        if machine.can_run and all(p._host is not None for p in point.active) and self._run(point, call):
            return
        if machine.can_count and all(p._pre is None for p in point.active):
            machine.count_at(call)
        elif len(point.active) == 1 and isinstance(first, Kretprobe) and self._calls.can_follow:
            entered = None if first._entry_handler is None else self._entered(point, first)
            self._calls.follow(first, call, entered, self._returned(first))

    def _run(self, point: Probepoint, call: int) -> bool:
        """Every probe there is a program: the machine runs them, and follows calls where one is to run at the return. False: not these.

        A return that does not lead by itself where the caller wants it is the core's.
        """
        machine, linkage = self._rooms.machine, self._rooms.arch.linkage
        programs = [p._host for p in point.active if p._host is not None and not isinstance(p, Kretprobe)]
        probes = [p for p in point.active if isinstance(p, Kretprobe)]
        if not probes:
            machine.program_at(call, programs)
            return True
        plain = linkage is not None and linkage.skips is None and not linkage.reloaded
        if len(probes) > 1 or probes[0]._entry_handler is not None or not plain or not self._calls.can_follow:
            return False
        if programs:
            self._rooms.services[call] = self._service_after_programs(point, probes[0], call)
        self._calls.follow(probes[0], call, None, self._returned(probes[0]), programs)
        return True

    def _service_after_programs(self, point: Probepoint, rp: Kretprobe, call: int) -> Callable[[Regs], None]:
        """service() where the programs of a hit may have run already, and only its call was not to be followed."""
        whole, rest, ran = self.service(point), self._service_of_one(point, rp), self._rooms.machine.ran

        def serve(regs: Regs) -> None:
            if not ran(call):
                whole(regs)
                return
            for p in point.active:
                p._nhit += p is not rp
            rest(regs)

        return serve

    def unserve(self, point: Probepoint, call: int) -> None:
        """Whoever still executes the call site is served by its service."""
        self._calls.follow_no_more(call)
        self._rooms.machine.call_at(call)

    def _entered(self, point: Probepoint, rp: Kretprobe) -> Callable[[Regs, int, int], bool]:
        """Asks the entry handler about a call that the machine may follow; what service() does, for this case."""
        cb, address, pool, held, handler = self.blocks[0], point.address, rp._pool, rp._held, rp._entry_handler
        detour = point.detour
        link_now, trampoline = self._returns.link(), self._calls.trampoline
        get_sp, get, put, load, store = link_now.get_sp, link_now.get, link_now.put, link_now.load, link_now.store
        assert handler is not None

        def entered(regs: Regs, frame: int, link: int) -> bool:
            ri = pool.pop()
            ri.task, ri.frame = 0, frame  # begin(), written out
            ri.link = ri.ret_addr = link
            regs._pc = address
            cb.state = HIT_ACTIVE
            declined, diverted, refill = True, False, rp._refill
            try:
                declined = handler(ri, regs)
            except Exception as error:
                diverted = self._failed_in_place(rp, point, regs, error)
            except BaseException:
                regs.go(address | point.insn.mode)
                raise
            finally:
                cb.state = IDLE
                if declined:
                    ri._data = None
                    ri.pool.append(ri)
            if diverted:
                self._divert_in_place(point, regs)
                return False
            regs._target = None
            if declined:
                if point.detour is not detour:
                    self._taken_apart(cb, (rp,), point, regs, detour)
                return False
            sp = get_sp()
            now = load(sp) if load is not None else get()
            if store is not None:
                store(sp, trampoline)
            else:
                put(trampoline)
            if rp._refill is not refill or now != link or sp != frame:  # the handler has changed who serves this, or where it returns to
                ri.begin(sp, now)
                self._calls.add(ri)
                if point.detour is not detour:
                    self._taken_apart(cb, (rp,), point, regs, detour)
                return False
            held.append(ri)
            return True

        return entered

    def _returned(self, rp: Kretprobe) -> Callable[[Regs, int, int], None]:
        """What is left to do when a call returns that the machine has followed: it goes to the right place already."""
        cb, bits, pool, held = self.blocks[0], self._rooms.arch.mode_bits, rp._pool, rp._held
        _, _, _, link, pushed, _ = self._returns.usual()
        get_sp, get = link.get_sp, link.get

        def returned(regs: Regs, frame: int, target: int) -> None:
            if held:
                ri = held.pop()
            else:
                ri = pool.pop()
                ri.task, ri.frame = 0, frame  # begin(), written out
                ri.link = ri.ret_addr = target
            regs._target = target
            regs._pc = target & ~bits if bits else target
            rp._nreturned += 1
            try:
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
            if regs._target is target and (get_sp() == frame + pushed if pushed else get() == target):
                regs._target = None
            else:
                self._land(regs)

        return returned
