"""An engine that belongs to somebody else, who goes on calling uc.emu_start()."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

import unicorn

from .._base import Fault
from .engine import ERRORS, INTR

if TYPE_CHECKING:
    from .machine import UnicornMachine

_INTERRUPT_CALLBACK = getattr(sys.modules.get("unicorn.unicorn_py3.unicorn"), "HOOK_INTR_CFUNC", INTR)


class Owner:
    """Who made the engine."""

    def __init__(self, machine: UnicornMachine) -> None:
        self._machine = machine

    @property
    def hooks_interrupts(self) -> bool:
        """True where an interrupt of the guest's is the owner's business."""
        callbacks = self._machine.uc._callbacks.values()
        return any(type(c).__name__ == "HOOK_INTR_CFUNC" or isinstance(c, _INTERRUPT_CALLBACK) for c in callbacks)

    def shadow(self) -> None:
        """The owner's uc.emu_start() raises what handlers raise, and reports faults of displaced instructions at home."""
        m, start = self._machine, self._machine.uc.emu_start

        def emu_start(begin: int, until: int, timeout: int = 0, count: int = 0) -> None:
            outermost = m._begin()
            outer = m._regs._pc, m._regs._target
            try:
                m._regs.at(None)
                m._executable.clear()  # the owner maps memory as he likes
                m._signals.hasty = not count  # nobody knows how many instructions are left when a run goes on
                self._run(start, begin, until, timeout, count)
            finally:
                m._signals.hasty = True
                m._regs._pc, m._regs._target = outer
                if outermost:
                    m._finish()

        m.uc.__dict__["emu_start"] = emu_start

    def unshadow(self) -> None:
        """The owner has his own emu_start() again."""
        self._machine.uc.__dict__.pop("emu_start", None)

    def _run(self, start: Callable[..., None], begin: int, until: int, timeout: int, count: int) -> None:
        m, deadline = self._machine, monotonic() + timeout / 1e6
        seen = m._run_begins(begin)
        try:
            while (on := self._stretch(start, begin, until, timeout, count)) is not None:
                begin = on
                timeout = timeout and max(1, int((deadline - monotonic()) * 1e6))
        finally:
            m._run_ends(seen)

    def _stretch(self, start: Callable[..., None], begin: int, until: int, timeout: int, count: int) -> int | None:
        """One stretch of the owner's run; returns where to go on, or None."""
        m = self._machine
        m._check_alive()
        m._engine.starts()
        try:
            start(begin, until, timeout, count)
            m._engine.ended(0)
        except unicorn.UcError as error:
            if m._engine.ended(error.errno):
                m._engine.stopped = True  # it ended somewhere on its way
            elif m._parked is None:
                on = self._report(error)
                if on is None:
                    raise
                return on
        if m._parked is not None:
            m._raise_parked()
        reason = m._take_stop()
        if reason == "signal":
            m._signals.deliver()
        if m._engine.stopped and reason in ("", "signal"):  # by the end of an inner run, or for that alone
            return m.arch.same_mode(m._regs, m._read_pc())
        return None

    def _report(self, error: unicorn.UcError) -> int | None:
        """Ask the sink about a fault; where to go on, if that has handled it."""
        m = self._machine
        access, signal = ERRORS.get(error.errno, ("engine", 11))
        m._dead = m._guest.fetch_fault_kills and access == "fetch"
        return m._faults.ask(m._read_pc(), Fault(access=access, trapnr=signal, text=str(error)))[0]
