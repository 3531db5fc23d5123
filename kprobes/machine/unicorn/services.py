"""Services of the core, called where the guest executes a call site: in place, without a trap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import Rest
from .cpu import UnicornCpu
from .runstate import RunState


class Services:
    """Calls services, where host code does not serve the call site by itself, or leaves the rest of
    a hit to the core.

    Attributes:
        failed_at: where a service that raised has sent the guest, if the engine may not have
            noticed; None: nowhere.
        trampoline: call site where followed calls return; 0: there is none.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState) -> None:
        self._cpu = cpu
        self._state = state
        self._engine = cpu.engine
        self._regs = cpu.regs
        self.failed_at: int | None = None
        self.trampoline = 0
        # where the last service sent the guest that did not raise, if the engine may not have
        # noticed
        self._sent: int | None = None

    def direct(self, address: int) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return the callback of one call site, which the engine need not name.

        Returns:
            The callback; and a function that makes it the next sink's.
        """
        regs, state, services, send = self._regs, self._state, self._state.services, self._sender()

        def on_direct() -> None:
            if state.disturbed or services is not state.services:
                self.serve(address)
                return
            try:
                service = services[address]
            except KeyError:
                return  # it has taken itself away
            try:
                service(regs)
                # a thread that stops the run from now on waits until this call site is left
                regs.reported = None
                if regs.target is not None:
                    send(regs.target)
                    regs.target = None
                elif state.disturbed:
                    self._settle(address)
            except BaseException as error:
                self._failed(error)

        def renew() -> None:
            nonlocal services
            services = state.services

        return on_direct, renew

    def finishing(
        self, address: int, rest: Rest
    ) -> Callable[[Any, Any, BaseException | None], None]:
        """Return what host code calls for the rest of a hit that is not the usual one
        (kprobes/native/hits.c).

        Args:
            address: of the call site.
            rest: what is left to do.
        """
        regs, state, send = self._regs, self._state, self._sender()

        def finish(instance: Any, result: Any, error: BaseException | None) -> None:
            try:
                if error is None:
                    rest(regs, instance, result, None)
                else:
                    try:
                        raise error
                    except BaseException:  # it is the context of whatever is raised now
                        rest(regs, instance, result, error)
                regs.reported = None
                if regs.target is not None:
                    send(regs.target)
                    regs.target = None
                elif state.disturbed:
                    self._settle(address)
            except BaseException as raised:
                self._failed(raised)

        return finish

    def serve(self, address: int) -> None:
        """Serve a call site without haste: in the hook of a whole area, and where the run was
        disturbed.
        """
        state = self._state
        try:
            state.disturb(False)
            # stopped meanwhile by another thread: here, as the call site is executed again
            if state.why_stopped and state.depth:
                state.disturb(True)
                self._engine.stop()
                return
            # it was served when its own service stopped the guest, and is now resumed
            if state.skip == address:
                state.skip = -1
                return
            service = state.services.get(address)
            if service is None:
                return  # not the first instruction of a call site
            service(self._regs)
            self._regs.reported = None
            if self._regs.target is not None:
                self._send(self._regs.target)
                self._regs.target = None
            elif state.disturbed:
                self._settle(address)
        except BaseException as error:
            self._failed(error)

    def _settle(self, address: int) -> None:
        """Make sure that a call site is not served twice whose service has stopped the run, or run
        other guest code.

        The engine executes it once more.
        """
        self._state.skip = address
        if self._state.why_stopped and self._state.depth:
            self._engine.stop()  # now: what has asked for the stop may not have told the engine yet
        else:
            # the nested run has left the engine elsewhere
            self._cpu.leave_for(self._cpu.arch.pointers.same_mode(self._regs, address))

    def _failed(self, error: BaseException) -> None:
        """Have the run raise what a service has raised; the guest goes where it was sent all the
        same.
        """
        if self._regs.target is not None:
            self._send(self._regs.target)
            self.failed_at = self._sent
            self._sent = None
            self._regs.target = None
        self._state.park(error)
        self._regs.reported = None

    def _sender(self) -> Callable[[int], None]:
        """Return _send(), without its second half where the guest does not need it."""
        return self._send if self._cpu.guest.pc.written_again else self._cpu.leave_for

    def _send(self, target: int) -> None:
        """Write pc in a CODE hook, and remember it where the engine may lose that write
        (Pc.written_again).
        """
        self._cpu.leave_for(target)
        if self._cpu.guest.pc.written_again:
            self._sent = target

    def send_again(self) -> bool:
        """Send the guest on where it is only here because the last pc write was lost. Return True
        then.
        """
        target, self._sent = self._sent, None
        if target is None:
            return False
        self._cpu.write_pc(target)
        return True

