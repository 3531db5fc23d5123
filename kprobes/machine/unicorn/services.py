"""Services of the core, called where the guest executes a call site: in place, without a trap.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly. The sink is the core (kprobes.core), whose functions the services are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import Rest
from .cpu import UnicornCpu
from .runstate import RunState


class Services:
    """Calls the core's services of call sites, where host code does not serve a hit, or not all of
    it.

    A service is the core's function for a call site: it gets the registers, and may send the guest
    elsewhere by them.

    Attributes:
        failed_at: address that a service has sent the guest to before it raised, if the engine may
            have lost that; None: there is none.
        trampoline: call site where followed calls return; 0: there is none.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState) -> None:
        """Prepare; nothing is called.

        Args:
            cpu: whose registers services get.
            state: of its runs; has the services.
        """
        self._cpu = cpu
        self._state = state
        self._engine = cpu.engine
        self._regs = cpu.regs
        self.failed_at: int | None = None
        self.trampoline = 0
        # address that the last service has sent the guest to, if the engine may have lost that
        self._sent: int | None = None

    def direct(self, address: int) -> tuple[Callable[[], None], Callable[[], None]]:
        """Make the callback that serves one call site quickly.

        The callback raises nothing: what the service raises, the run raises. It leaves the hit to
        serve() where RunState.hits_to_python is set, or another sink is there by now.

        Args:
            address: the call site.

        Returns:
            (the callback, which takes no arguments; a function that makes it serve the present
            sink, when there is another one than before).
        """
        regs, state, services, send = self._regs, self._state, self._state.services, self._sender()

        def on_direct() -> None:
            """Call the service of the call site, and send the guest where it says. It never raises:
            what the service raises is kept for the run.

            serve() does it where RunState.hits_to_python is set, or another sink is there by now.
            Nothing is done where the service was removed.
            """
            if state.hits_to_python or services is not state.services:
                self.serve(address)
                return
            try:
                service = services[address]
            except KeyError:
                return  # the service has been removed
            try:
                service(regs)
                # a thread that stops the run from now on waits until this call site is left
                regs.reported = None
                if regs.target is not None:
                    send(regs.target)
                    regs.target = None
                elif state.hits_to_python:
                    self._note_served(address)
            except BaseException as error:
                self._failed(error)

        def renew() -> None:
            """Have the callback serve the call site for the sink that there is now."""
            nonlocal services
            services = state.services

        return on_direct, renew

    def finishing(
        self, address: int, rest: Rest
    ) -> Callable[[Any, Any, BaseException | None], None]:
        """Make the function that host code calls where a hit is unusual (native/hits.c).

        The function does what is left of the hit, sends the guest on, and never raises.

        Args:
            address: the call site.
            rest: the core's function that finishes the hit.

        Returns:
            (instance of a return probe or None, what the handler has returned, what it has raised
            or None) -> None.
        """
        regs, state, send = self._regs, self._state, self._sender()

        def finish(instance: Any, result: Any, error: BaseException | None) -> None:
            """Finish an unusual hit, and send the guest where it says. It never raises.

            Args:
                instance: the call's, of a return probe; None: it is another hit.
                result: what the handler has returned.
                error: what it has raised; None: nothing.
            """
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
                elif state.hits_to_python:
                    self._note_served(address)
            except BaseException as raised:
                self._failed(raised)

        return finish

    def serve(self, address: int) -> None:
        """Serve a call site in every case: also where the run was stopped, or others were nested.
        RunState.hits_to_python is cleared.

        Called by the hook on a whole area, and where RunState.hits_to_python is set. Nothing is
        done where the address is no call site's, or where the call site was served already and is
        only executed again (RunState.skip). Where the run is to stop, or a store before has failed
        (RunState.stop_behind_store()), the engine is stopped in front of the call site instead, and
        `hits_to_python` stays set. It never raises: what the service raises is kept, and the run
        raises it.

        Args:
            address: of the instruction that is about to be executed.
        """
        state = self._state
        try:
            state.leave_hits_to_python(on=False)
            # another thread stops the run: it stops here, as the call site is executed again
            if state.why_stopped and state.depth:
                state.leave_hits_to_python(on=True)
                self._engine.stop()
                return
            if state.failed_registers is not None and state.stop_behind_store():
                state.leave_hits_to_python(on=True)
                return
            # it was served already, when its own service stopped the run; the run goes on now
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
            elif state.hits_to_python:
                self._note_served(address)
        except BaseException as error:
            self._failed(error)

    def _note_served(self, address: int) -> None:
        """Note a call site as served (RunState.skip), so that serve() does nothing there next time.

        Its service has stopped the run, or run other guest code, so that the engine executes the
        call site once more. A run that is to stop is stopped now; else pc is set to the call site
        again.

        Args:
            address: the call site.
        """
        self._state.skip = address
        if self._state.why_stopped and self._state.depth:
            self._engine.stop()  # now: what has asked for the stop may not have told the engine yet
        else:
            # the nested run has left the engine elsewhere
            self._cpu.leave_for(self._cpu.arch.pointers.same_mode(self._regs, address))

    def _failed(self, error: BaseException) -> None:
        """Keep an exception that a service has raised for the run to raise, and stop the run. The
        guest still goes where it was sent; `failed_at` becomes that address, if the engine may lose
        the write.
        """
        if self._regs.target is not None:
            self._send(self._regs.target)
            self.failed_at = self._sent
            self._sent = None
            self._regs.target = None
        self._state.park(error)
        self._regs.reported = None

    def _sender(self) -> Callable[[int], None]:
        """Return the function that writes pc in a CODE hook: _send(), or the quicker one that does
        not remember the address, where the engine loses no write.
        """
        return self._send if self._cpu.guest.pc.written_again else self._cpu.leave_for

    def _send(self, target: int) -> None:
        """Write `target` to pc in a CODE hook, and remember it where the engine may lose that write
        (Pc.written_again).
        """
        self._cpu.leave_for(target)
        if self._cpu.guest.pc.written_again:
            self._sent = target

    def send_again(self) -> bool:
        """Write pc once more as the last service did, where the engine has lost that write.

        Called where the guest has trapped at a call site. The guest does not come there after a
        service has sent it elsewhere, unless the engine has lost the write
        (guests.guest.Pc.written_again). The address is then forgotten.

        Returns:
            True where pc was written again; False where no service has sent the guest anywhere.
        """
        target, self._sent = self._sent, None
        if target is None:
            return False
        self._cpu.write_pc(target)
        return True
