"""Returns of followed calls, at the trampoline: the code that a followed call returns to instead of
to its caller.

A return is served by trap (Exits.by_trap) or at a call site (Exits.service), in the same way. Where
the machine follows a call and calls the return handler by itself, it needs only a function that
finishes an unusual return: Exits.describe_returns() describes the return to the machine, that
function (`rest`) included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...machine._base import UsualReturn
from ...regs import Regs
from ..probe import Kretprobe, KretprobeInstance, begin_call
from .ctlblk import ControlBlock, HitState
from .handlers import Handlers
from .returns import Returns


class Exits:
    """Makes the functions that the trampoline calls, and runs return handlers."""

    def __init__(self, handlers: Handlers, returns: Returns) -> None:
        """Prepare; no function is made yet.

        Args:
            handlers: runs handlers.
            returns: has the followed calls.
        """
        self._handlers = handlers
        self._calls = returns.calls

    def service(self) -> Callable[[Regs], None]:
        """Return a function that serves the trampoline's call site.

        The machine calls it as a guest function returns to the trampoline. It runs the return
        handlers; the code there (Linkage.back) then returns to the caller, unless a handler has
        chosen another target.

        Returns:
            A function of the registers at the trampoline.
        """
        handlers = self._handlers
        calls = self._calls

        def serve(regs: Regs) -> None:
            """Serve a return at the trampoline: run the return handlers of its calls, and send the
            guest on.

            Where another hit is under way on the CPU, no handler runs, and the return is counted as
            missed.

            Args:
                regs: the registers at the trampoline.

            Raises:
                ReentryError: no followed call returns there.
                Exception: a return handler has raised it, and the probe's fault_handler has not
                    handled it.
            """
            if handlers.paused[0] and handlers.blocks[regs.cpu].state is HitState.IDLE:
                handlers.resume_hits()
            sp = regs.sp
            instances = calls.pop(regs, sp)
            frame = instances[0].frame
            target = regs.target
            self._run(handlers.blocks[regs.cpu], instances, regs)
            self._go_on(regs, sp, frame, target)

        return serve

    def by_trap(self, cb: ControlBlock, regs: Regs) -> None:
        """Serve a return at the trampoline where that is a breakpoint: run the return handlers.

        Where another hit is under way on the CPU, no handler runs, and the return is counted as
        missed.

        Args:
            cb: the control block of the CPU.
            regs: the registers at the trampoline; afterwards pc is at the caller, or where a
                handler has sent the guest.

        Raises:
            ReentryError: no followed call returns there.
        """
        self._run(cb, self._calls.pop(regs, regs.sp), regs)

    def describe_returns(self, probes: tuple[Kretprobe, ...]) -> UsualReturn:
        """Return a description of a function's returns, for a machine that follows its calls.

        The machine calls the return handler in it by itself. The description also has a function,
        `rest`, by which the machine has an unusual return finished.

        Args:
            probes: the function's return probes, in the order in which they run at the entry.
        """
        first = probes[0]
        several = len(probes) > 1

        def rest(
            regs: Regs, ri: KretprobeInstance | None, _result: Any, error: BaseException | None
        ) -> None:
            """Finish a return whose handler has moved the guest or raised `error`.

            Args:
                regs: the registers at the trampoline; regs.target becomes None where the code there
                    returns to the right address by itself, else the guest goes to regs.pc.
                ri: the call's instance; None: no handler ran, but the caller has changed its return
                    address: the guest goes to regs.pc, and jumps that cover that place become
                    breakpoints.
                _result: not used.
                error: what the handler has raised; None: nothing. The handler of several probes has
                    asked the fault_handlers itself.

            Raises:
                BaseException: `error`, if it is no Exception, or no fault_handler has handled it.
            """
            if error is not None:
                if several or not isinstance(error, Exception):
                    raise error
                self._handlers.ask_about_exception(first, regs, error)
            if ri is None:  # no handler ran, but the caller has changed the return address
                self._handlers.land(regs)
            else:
                self._go_on(regs, regs.sp, ri.frame, ri.ret_addr)

        return UsualReturn(
            probe=first,
            handler=self._handler_of_several(probes) if several else first.handler,
            pool=first._pool,
            held=first._held,
            asked=first.entry_handler is not None,
            rest=rest,
        )

    def _handler_of_several(
        self, probes: tuple[Kretprobe, ...]
    ) -> Callable[[KretprobeInstance, Regs], None]:
        """Return a handler of returns that calls those of several return probes.

        Args:
            probes: the function's return probes, in the order in which they run at the entry.
        """
        cb = self._handlers.blocks[0]
        others = probes[1:]

        def handler(ri: KretprobeInstance, regs: Regs) -> None:
            """Run the handlers of all probes, the last one's first, and count a return for each.

            Instances are taken for the other probes, and recycled at the end. Probes that were
            unregistered meanwhile are left out.

            Args:
                ri: the first probe's instance, which the machine has taken.
                regs: the CPU's registers.

            Raises:
                Exception: a handler has raised it, and the probe's fault_handler has not handled
                    it. The handlers after it do not run.
            """
            instances = [ri]
            for rp in probes:
                # the machine has counted the return for each probe; _call() counts it again
                rp._nreturned -= 1
            for rp in others:
                own = rp._pool.pop()
                begin_call(own, ri.frame, ri.ret_addr)
                instances.append(own)
            try:
                self._call(cb, instances[::-1], regs)
            finally:
                self._calls.recycle(instances[1:])

        return handler

    def _go_on(self, regs: Regs, sp: int, frame: int, target: int | None) -> None:
        """Choose where the guest goes after the return handlers.

        regs.target becomes None, and the code at the trampoline returns to the caller, where no
        handler has changed regs.pc, and the stack pointer or link register is such that this code
        comes to `target` (CallsUnderWay.goes_back). Else the guest goes to regs.pc, and jumps that
        cover that place are taken out.

        Args:
            regs: the CPU's registers.
            sp: the stack pointer when the trampoline was reached.
            frame: the stack pointer when the function was entered.
            target: where the function returns to, if no handler changes that; None: not known.
        """
        if (
            target is not None
            and regs.target == target
            and self._calls.goes_back(regs, sp, frame, target)
        ):
            regs.target = None
        else:
            self._handlers.land(regs)

    def _run(self, cb: ControlBlock, instances: list[KretprobeInstance], regs: Regs) -> None:
        """Run the return handlers of one frame, or count a missed return for each of its instances
        where another hit is under way on the CPU.

        The instances go back to their pools in both cases, also where a handler raises.

        Args:
            cb: the CPU's control block; it is idle again afterwards if the handlers were run.
            instances: the frame's, the youngest first.
            regs: the CPU's registers.

        Raises:
            Exception: a handler has raised it, and the probe's fault_handler has not handled it.
        """
        if cb.state is not HitState.IDLE:
            self._calls.missed(instances)
            return
        cb.begin(None)
        try:
            self._call(cb, instances, regs)
        finally:
            cb.reset()
            self._calls.recycle(instances)

    def _call(self, cb: ControlBlock, instances: list[KretprobeInstance], regs: Regs) -> None:
        """Call the return handlers of one frame's instances, in order, and count the returns.

        An exception of a handler goes to its probe's fault_handler, and is raised if that has not
        handled it. Probes that were unregistered meanwhile are left out.

        Args:
            cb: the control block of the CPU; its `child` becomes the probe whose handler runs.
            instances: the calls that return, youngest first. They are not recycled here.
            regs: the registers as the function has returned.

        Raises:
            Exception: a handler has raised it, and the probe's fault_handler has not handled it.
                The handlers after it do not run.
        """
        for ri in instances:
            rp = ri.rp
            if ri.pool is not rp._pool or rp._point is None:
                continue  # unregistered meanwhile
            cb.child = rp
            rp._nreturned += 1
            if rp._handler is not None:
                try:
                    rp._handler(ri, regs)
                except Exception as error:
                    self._handlers.ask_about_exception(rp, regs, error)
