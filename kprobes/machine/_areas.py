"""Areas of guest code whose execution is noticed without a trap: call sites, served in place, and counters."""

from __future__ import annotations

from collections.abc import Callable

import unicorn
from unicorn import unicorn_const as const

from ..arch._base import Arch
from ..regs import Regs
from ._counters import Counters, host_function
from ._engine import CALL, DIRECT
from ._guests import Guest
from ._layout import find_gap
from ._processor import Processor

DIRECT_CALLS = 128  # bytes at the start of a call area whose call sites have their own hooks
#: Memory that a hook of an area that is no more may still write to.
_retired: list[Counters] = []


class Areas(Processor):
    """A processor with such areas. See machine._base.Machine."""

    call_area = 1 << 16

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest) -> None:
        super().__init__(uc, arch, guest)
        self._services: dict[int, Callable[[Regs], None]] = {}  # the sink's
        self._failed_at: int | None = None  # where a service that raised sent the guest, if the engine may not have noticed
        self._sent: int | None = None  # the same of the last one that did not
        self._skip = -1  # address in a call area that was served already
        self._call_hooks: dict[int, list[int]] = {}
        self._direct: dict[int, dict[int, int]] = {}  # area -> call site -> its own hook
        self._counters: dict[int, Counters] = {}

    def map_calls(self, near: int) -> int:
        """An area in which every instruction executed is reported to Sink.services first: one CODE hook over most of it.

        The first call sites have a hook of their own, which costs half: see call_at().
        """
        area = self._map_area(near)
        callback = CALL(self._call_callback())
        self._call_hooks[area] = [self._engine.hook(const.UC_HOOK_CODE, callback, area + DIRECT_CALLS, area + self.call_area - 1)]
        self._direct[area] = {}
        return area

    def call_at(self, addr: int) -> None:
        """A service is there from now on."""
        direct = self._direct[addr & -self.call_area]
        if addr & self.call_area - 1 < DIRECT_CALLS and addr not in direct:
            direct[addr] = self._engine.hook(const.UC_HOOK_CODE, DIRECT(self._direct_callback(addr)), addr, addr)

    def unmap_calls(self, area: int) -> None:
        """Unmap an area from map_calls()."""
        for hook in [*self._call_hooks.pop(area), *self._direct.pop(area, {}).values()]:
            self._engine.unhook(hook)
        self._unmap(area, self.call_area)

    def map_counts(self, near: int) -> int:
        """An area in which executions are counted by host code."""
        area = self._map_area(near)
        counters = self._counters[area] = Counters(area, self.call_area)
        self._call_hooks[area] = [self._engine.hook(const.UC_HOOK_CODE, host_function(), area, area + self.call_area - 1, counters.data)]
        return area

    def unmap_counts(self, area: int) -> None:
        """Unmap an area from map_counts()."""
        self.unmap_calls(area)
        _retired.append(self._counters.pop(area))  # a deleted hook may be called once more

    @property
    def can_count(self) -> bool:
        """True if executions in map_counts() areas are counted without Python."""
        return host_function() != 0

    def count(self, addr: int) -> int:
        """How often the instruction at `addr` in a map_counts() area was executed."""
        return self._counters[addr & -self.call_area].read(addr)

    def _map_area(self, near: int) -> int:
        area = find_gap(self._regions(), self.call_area, near, self.arch.bits, self.call_area)
        self._map(area, self.call_area, const.UC_PROT_ALL)
        return area

    def _call_callback(self) -> Callable[[int, int], None]:
        """The hook of the call areas. It does without a pc write unless the sink moves the guest."""

        def on_call(_uc: int, address: int) -> None:
            self._serve_call(address)

        return on_call

    def _direct_callback(self, address: int) -> Callable[[], None]:
        """The hook of one call site: the engine need not say which. As short as it can be; see _serve_call()."""
        regs, services, write_pc = self._regs, self._services, self._send if self._guest.loses_pc else self._write_pc

        def on_direct() -> None:
            if self._disturbed or services is not self._services:
                self._serve_call(address)
                return
            try:
                services[address](regs)
                if regs._target is not None:
                    write_pc(regs._target)
                    regs._target = None
                elif self._disturbed:
                    self._settle_call(address)
            except BaseException as error:
                self._failed_call(address, error)
            regs._pc = None

        return on_direct

    def _serve_call(self, address: int) -> None:
        regs = self._regs
        try:
            if self._skip == address:  # it was served when its own service stopped the guest, and is now resumed
                self._skip, self._disturbed = -1, False
                return
            self._disturbed = False
            service = self._services.get(address)
            if service is None:
                return  # not the first instruction of a call site
            service(regs)
            if regs._target is not None:
                self._send(regs._target)
                regs._target = None
            elif self._disturbed:
                self._settle_call(address)
        except BaseException as error:
            self._failed_call(address, error)
        regs._pc = None

    def _settle_call(self, address: int) -> None:
        """The service has stopped the run, or run other guest code: the engine executes the call site again."""
        self._skip = address
        if not self._why_stopped:
            self._write_pc(self.arch.same_mode(self._regs, address))  # the nested run has left the engine elsewhere

    def _send(self, target: int) -> None:
        """Write pc in a CODE hook, and remember it where the engine may lose that: see Guest.loses_pc."""
        self._write_pc(target)
        if self._guest.loses_pc:
            self._sent = target

    def _send_again(self) -> bool:
        """True, and the guest sent on, where it is only here because the last pc write was lost."""
        target, self._sent = self._sent, None
        if target is None:
            return False
        self._write_pc(target)
        return True

    def _failed_call(self, address: int, error: BaseException) -> None:
        if self._services.get(address) is None:
            return
        if self._regs._target is not None:
            self._send(self._regs._target)
            self._failed_at, self._sent = self._sent, None
            self._regs._target = None
        self._park(error)
