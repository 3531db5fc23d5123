"""Letting go of a guest that runs on without the library.

Afterwards it executes none of the library's code, and waits for nothing of it. What is still there
when the probes are unregistered, in the order in which it is dealt with:

| left behind | what it would do | what is done |
|---|---|---|
| a thread in a slot, or at a trap of the core's | die of the slot's last trap | finish its hit |
| followed calls, which return to a trampoline | die of its trap | write their return addresses |
| an interrupt on its way | end the guest, or stop it | wait for it |
| signals of the guest's own, kept by the library | be lost | deliver them |
"""

from __future__ import annotations

from contextlib import suppress

from ...arch._base import Arch
from ...errors import GuestFault, RemoteError
from .returnaddresses import ReturnAddresses
from .runcontrol import RunControl
from .target import RemoteTarget
from .threads import RemoteThreads


class Detaching:
    """Detaches the library from one guest, which runs on."""

    def __init__(
        self, target: RemoteTarget, control: RunControl, threads: RemoteThreads, arch: Arch
    ) -> None:
        """Prepare; nothing is changed until detach().

        Args:
            target: the stub.
            control: runs the guest, to finish hits.
            threads: the guest's threads, and their registers.
            arch: the guest's architecture.
        """
        self._target = target
        self._control = control
        self._threads = threads
        self._returns = ReturnAddresses(arch, target.read)

    def detach(self) -> None:
        """Take back what hits and followed calls have left in the guest, let go of it, and close
        the connection.

        Called when all probes are unregistered. The guest may run for a moment (hits are finished,
        interrupts arrive). Where the stub is gone, only the connection is closed.
        """
        with suppress(RemoteError):
            if self._control.state.guest_exists():
                self._control.finish_hits()
                self._put_returns_back()
                self._threads.flush()
                self._control.take_back_interrupts()
            if self._control.state.guest_exists():
                self._threads.flush()
                self._target.detach(self._threads.name)
        self._target.link.close()

    def _put_returns_back(self) -> None:
        """Put the true return addresses of all followed calls on stacks and into registers, so that
        the calls return to their callers.

        Stacks are written at once, unless they are unmapped; registers are set, and the stub gets
        them when they are flushed. Nothing is done where no core receives reports.
        """
        sink = self._control.state.sink
        if sink is None:
            return
        for regs, found in list(self._returns.of_all(sink, self._threads.known)):
            for addr, data in found.memory:
                with suppress(GuestFault):
                    self._target.write(addr, data)
            for name, value in found.registers.items():
                if regs is not None:
                    regs[name] = value
