"""An engine that belongs to somebody else, who goes on calling uc.emu_start()."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING

import unicorn

from .._base import Fault
from .engine import ERRORS, INTR
from .host.hostcode import NESTED

if TYPE_CHECKING:
    from .machine import UnicornMachine

_INTERRUPT_CALLBACK = getattr(unicorn.unicorn_py3.unicorn, "HOOK_INTR_CFUNC", INTR)


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
            m._depth += 1
            m._followed.close(NESTED, m._depth > 1)
            outer = m._regs._pc, m._regs._target
            m._regs.at(None)
            m._executable.clear()  # the owner maps memory as he likes
            if m._depth == 1:
                m._take_stop()
                m._runner = get_ident()
                if m._sink is not None:
                    m._sink.starting(begin)
            try:
                while True:
                    begin = self._run(start, begin, until, timeout, count)
                    if begin < 0:
                        return
            finally:
                m._regs._pc, m._regs._target = outer
                m._depth -= 1
                m._followed.close(NESTED, m._depth > 1)
                if m._depth == 0 and m._sink is not None:
                    m._sink.ended()

        m.uc.__dict__["emu_start"] = emu_start

    def unshadow(self) -> None:
        """The owner has his own emu_start() again."""
        self._machine.uc.__dict__.pop("emu_start", None)

    def _run(self, start: Callable[..., None], begin: int, until: int, timeout: int, count: int) -> int:
        """One stretch of the owner's run; returns where to go on, or -1."""
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
                target = self._report(error)
                if target is None:
                    raise
                return target
        if m._parked is not None:
            m._raise_parked()
        if m._engine.stopped and not m._why_stopped:  # by the end of an inner run
            return m.arch.same_mode(m._regs, m._read_pc())
        m._take_stop()
        return -1

    def _report(self, error: unicorn.UcError) -> int | None:
        """Ask the sink about a fault; where to go on, if that has handled it."""
        m = self._machine
        access, signal = ERRORS.get(error.errno, ("engine", 11))
        m._dead = m._guest.fetch_fault_kills and access == "fetch"
        regs = m._regs
        regs.at(m._read_pc())
        try:
            handled = m._sink is not None and m._sink.fault(regs, Fault(access=access, trapnr=signal, text=str(error)))
            target = regs.target
        finally:
            regs.at(None)
        if target is not None:
            m._write_pc(target)
        return target if handled else None
