"""Guest calls and runs, by the architecture's calling convention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from ...errors import GuestStopped, GuestTimeout, Unsupported
from .._ends import ending_at
from .._passing import Argument, Passing, are_numbers, check_bounds, code_pointer, room_maker
from .._typed import TypedPassing, needs_types
from .cpu import UnicornCpu
from .delayslots import DelaySlots
from .functions import Functions
from .hostcalls import HostCalls
from .runner import Runner
from .runstate import RunState
from .stackandexit import StackAndExit
from .stubs import Stubs


class FunctionCalls:
    """Calls and runs of one guest: what is behind the machine's call(), run() and invoke()."""

    def __init__(
        self,
        cpu: UnicornCpu,
        state: RunState,
        runner: Runner,
        functions: Functions,
        stubs: Stubs,
        delay_slots: DelaySlots,
        stack_and_exit: StackAndExit,
        debug: Callable[[], Any],
    ) -> None:
        """Prepare; nothing is called.

        Args:
            cpu: whose registers are set and put back.
            state: of the guest's runs.
            runner: runs the guest.
            functions: finds and enters functions.
            stubs: knows which function an ifunc stands for.
            delay_slots: settles branches that wait when the guest is sent elsewhere.
            stack_and_exit: maps the page that calls return to.
            debug: () -> the machine's DebugInfo, which knows functions' types.
        """
        self._cpu = cpu
        self._state = state
        self._runner = runner
        self._functions = functions
        self._stubs = stubs
        self._delay_slots = delay_slots
        self._stack_and_exit = stack_and_exit
        self._debug = debug
        self._abandoned: Any = None  # the registers before a call that failed
        self._nothing = Passing(cpu.memory, ())
        self._mask = cpu.arch.mask
        self._pointers: dict[str, int] = {}  # name -> pointer, of the functions called so far
        self._pointers_at = -1  # Symbols.changes when they were looked up
        self._make_room = room_maker(cpu.memory, cpu.regs)
        abi, linkage = cpu.arch.abi, cpu.arch.linkage
        self._callable = abi is not None and linkage is not None
        self._settles = cpu.pair is not None or cpu.guest.runs.settle
        self._introduces = abi is not None and abi.enter is not None
        self._host = HostCalls(cpu) if HostCalls.possible(cpu) else None
        #: of the registers that have arguments
        self._writers = [] if abi is None else [cpu.regs.accessors(name)[1] for name in abi.args]
        self._in_registers = len(self._writers)

    def call(
        self,
        function: str | int,
        args: tuple[Argument | float, ...],
        timeout: float | None,
        max_insns: int | None,
        prototype: str | Literal[True] | None = None,
    ) -> Any:
        """Call a function, and return its result; registers are put back afterwards.

        If an outermost call fails, the registers stay as they are where the guest has stopped,
        until the next call.

        Args:
            function: address, as pointers have it, or symbol.
            args: integers, None (0), and bytes, bytearray or str, which are copied into guest
                memory and passed as pointers; by the function's types also floats, complex numbers
                and structures.
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.
            prototype: the function's types, as C writes them; True: those of debug information;
                None: these, but only where an argument needs them (needs_types()). Where types are
                used the result is of its C type, else an integer.

        Raises:
            GuestFault: the guest has failed, and no handler has handled that.
            GuestTimeout: a bound has come.
            GuestStopped: stop() has ended the call.
            BadArgument, UnknownSymbol, AmbiguousSymbol: there is no such function, or there are
                several, or an argument cannot be passed.
            Unsupported: the architecture has no calling convention, or there are more pointers
                than it passes in registers.
            NoMemory: there is no room for the copies.
            MachineBusy: another thread runs this machine or changes its probes, or a device's
                function calls.
            ReentryError: too many runs are nested.
            BaseException: a hook, or a handler of a probe or of a signal, has raised it.
        """
        if timeout is not None or max_insns is not None:
            check_bounds(timeout, max_insns)
        passing = self._nothing
        numbers: tuple[Any, ...] = args
        if prototype is not None:
            passing = self._passing_by_types(function, args, prototype)
            numbers = ()
        elif args and (len(args) > self._in_registers or not are_numbers(args, self._mask)):
            if needs_types(args):
                passing = self._passing_by_types(function, args, True)
            else:
                passing = Passing(self._cpu.memory, cast("tuple[Argument, ...]", args))
            numbers = ()
        runner = self._runner
        if not runner.take_cpu():
            return self._call(function, passing, numbers, timeout, max_insns)
        try:
            if self._host is None or passing is not self._nothing:
                return self._call(function, passing, numbers, timeout, max_insns)
            return self._call_by_host(self._host, function, numbers, timeout, max_insns)
        finally:
            runner.give_cpu_back()

    def _passing_by_types(
        self, function: str | int, args: tuple[Any, ...], prototype: str | Literal[True]
    ) -> Passing:
        """Return the arguments of a call, to be passed by the function's types.

        Args:
            function: address, as pointers have it, or symbol.
            args: of the call.
            prototype: the function's types, as C writes them; True: those of debug information.

        Raises:
            BadArgument: the types are not known, or `prototype` or an argument is wrong.
            UnknownSymbol, AmbiguousSymbol: there is no such function, or there are several.
            Unsupported: how the architecture, or the file, passes a type is not known.
        """
        return TypedPassing(
            self._cpu.memory,
            args,
            prototype,
            self._debug(),
            lambda: (
                self._functions.target(self._pointer(function)) & ~self._cpu.arch.pointers.mode_bits
            ),
        )

    def _target(self, pointer: int) -> int:
        """Prepare a call of a function, and return the address where the function starts, mode bits
        included.

        The page that calls return to is mapped if there is none yet, and the registers of before a
        call that has failed are put back (forget_failure()).

        Args:
            pointer: the function's address, as pointers have it.

        Raises:
            Unsupported: the architecture has no calling convention.
            GuestFault: the function's descriptor is not mapped.
            NoMemory: there is no room for the page.
        """
        target = self._functions.target(pointer)
        if not self._callable:
            raise Unsupported(
                f"{self._cpu.arch.name} has no calling convention",
                python="set registers and use run()",
            )
        if not self._state.exit:
            self._stack_and_exit.make_exit()
        if self._abandoned is not None:
            self.forget_failure()
        return target

    def _call_by_host(
        self,
        host: HostCalls,
        function: str | int,
        numbers: tuple[Any, ...],
        timeout: float | None,
        max_insns: int | None,
    ) -> Any:
        """Call a function inside no run, return its integer result, and put the registers back.

        Host code sets the registers and puts them back; where it cannot, _call() is called. If the
        call fails, the registers stay as they are where the guest has stopped, and those of before
        it are kept for forget_failure().

        Args:
            host: what sets them.
            function: address, as pointers have it, or symbol.
            numbers: arguments that go into registers as they are.
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.

        Raises:
            GuestStopped: stop() has ended the call.
            Unsupported: the architecture has no calling convention.
            BaseException: what Runner.run() raises, for instance GuestFault.
        """
        state, regs = self._state, self._cpu.regs
        pointer = self._pointer(function)
        target = pointer
        if self._abandoned is not None or not state.exit or not self._functions.plain:
            target = self._target(pointer)
        reported, sent = regs.reported, regs.target
        pair = self._cpu.pair
        if self._settles and pair is None and self._delay_slots.waits(reported):
            return self._call(function, self._nothing, numbers, timeout, max_insns)
        if not host.set_up(state.exit, numbers):
            return self._call(function, self._nothing, numbers, timeout, max_insns)
        if pair is not None:
            self._cpu.write_pc(pair[0])  # a branch that is pending is dropped
        regs.reported = regs.target = None
        failed = True
        try:
            if self._introduces:
                self._functions.introduce(pointer)
            if self._runner.run(target, state.exit, timeout, max_insns):
                raise GuestStopped(pc=self._cpu.read_pc())
            result: int = host.end()
            failed = False
            return result
        finally:
            if failed:
                self._abandoned = host.give_up()
            else:
                regs.reported = reported
                regs.target = sent

    def _call(
        self,
        function: str | int,
        passing: Passing,
        numbers: Sequence[Any],
        timeout: float | None,
        max_insns: int | None,
    ) -> Any:
        """Call a function while this thread has the CPU, return its result, and put the registers
        back.

        If an outermost call fails, the registers stay as they are where the guest has stopped, and
        those of before the call are kept for forget_failure().

        Args:
            function: address, as pointers have it, or symbol.
            passing: the arguments, where one of them is copied, goes on the stack, or has to be
                converted; else `self._nothing`, which has no arguments.
            numbers: arguments that go into registers as they are; empty unless `passing` is
                `self._nothing`.
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.

        Raises:
            GuestStopped: stop() has ended the call.
            Unsupported: the architecture has no calling convention.
            NoMemory: there is no room for the copies.
            BaseException: what Runner.run() raises, for instance GuestFault.
        """
        cpu, state = self._cpu, self._state
        regs, engine = cpu.regs, cpu.engine
        pointer = self._pointer(function)
        target = self._target(pointer)
        reported, sent = regs.reported, regs.target
        saved = engine.save()
        regs.reported = regs.target = None
        failed = True
        try:
            if self._settles:
                self._delay_slots.finish_branch(reported)
            if passing is self._nothing:
                self._make_room()
            else:
                passing.set_up(regs)
            if numbers:
                for write, number in zip(self._writers, numbers, strict=False):
                    write(number)
            self._functions.return_to_exit()
            if self._introduces:
                self._functions.introduce(pointer)
            if self._runner.run(target, state.exit, timeout, max_insns):
                raise GuestStopped(pc=cpu.read_pc())
            result = passing.result(regs)
            failed = False
            return result
        finally:
            if passing is not self._nothing:
                passing.finish()
            if failed and state.depth == 0:
                self._abandoned = saved
            else:
                engine.restore(saved)
                engine.discard(saved)
                regs.reported = reported
                regs.target = sent

    def close(self) -> None:
        """Free the engine's context in which calls have kept registers. Called when the machine is
        closed.
        """
        kept = None if self._host is None else self._host.give_up()
        if kept is not None:
            self._cpu.engine.discard(kept)

    def forget_failure(self) -> None:
        """Put back the registers of before an outermost call that failed. Until now they were as
        where the call stopped.

        Nothing is done inside a run, or where no call has failed.
        """
        cpu, state = self._cpu, self._state
        if state.depth == 0 and self._abandoned is not None:
            cpu.engine.restore(self._abandoned)
            cpu.engine.discard(self._abandoned)
            self._abandoned = None

    @property
    def has_failed(self) -> bool:
        """Whether the registers of before a call that failed are kept, for forget_failure() or
        drop_failure().
        """
        return self._abandoned is not None

    def drop_failure(self) -> None:
        """Forget the registers of before a call that failed, without putting them back: the guest
        is given others.
        """
        if self._abandoned is not None:
            self._cpu.engine.discard(self._abandoned)
            self._abandoned = None

    def run(
        self,
        start: int | str | None,
        until: int | str | None,
        timeout: float | None,
        max_insns: int | None,
    ) -> None:
        """Run the guest to an address, a stop(), or the return of the function that it starts in.

        The registers are not put back. A stop() ends the run without an error.

        Args:
            start: address or symbol; None: where the guest stands.
            until: address or symbol; None: nowhere but where functions return to.
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.

        Raises:
            GuestFault: the guest has failed, and no handler has handled that.
            GuestTimeout: a bound has come.
            BadArgument, UnknownSymbol, AmbiguousSymbol: an address or a bound is of a wrong kind,
                or there is no such symbol, or there are several.
            MachineBusy: another thread runs this machine or changes its probes, or a device's
                function calls.
            ReentryError: too many runs are nested.
        """
        check_bounds(timeout, max_insns)
        outermost = self._runner.take_cpu()
        try:
            self._run_from(start, until, timeout, max_insns)
        finally:
            if outermost:
                self._runner.give_cpu_back()

    def _run_from(
        self,
        start: int | str | None,
        until: int | str | None,
        timeout: float | None,
        max_insns: int | None,
    ) -> None:
        """Run the guest to an address, a stop() or a return, while this thread has the CPU. What
        Runner.run() raises is raised.

        Where `start` is given, the return address is set to the page where runs end; where it is a
        symbol, the registers by which the function finds its data (TOC, gp) are set, too. If the
        guest does not go on where it stands, a branch that waits for its delay slot is finished
        first (DelaySlots.finish_branch()).

        Args:
            start: address or symbol; None: where the guest stands.
            until: address or symbol; None: nowhere but where calls and runs return to.
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.

        Raises:
            GuestTimeout: a bound has come; with 0 instructions pc is set to `start` all the same.
        """
        cpu, state = self._cpu, self._state
        end = state.exit if until is None else self._functions.target(self._pointer(until))
        if until is not None:  # code translated before does not stop there
            stop = end & ~cpu.arch.pointers.mode_bits
            cpu.engine.drop_translations(stop, stop + cpu.arch.insn_align)
        if start is None:
            target = (
                cpu.regs.target
                if cpu.regs.target is not None
                else cpu.arch.pointers.same_mode(cpu.regs, cpu.regs.pc)
            )
        else:
            target = self._functions.target(self._pointer(start))
            if isinstance(start, str):
                self._functions.introduce(self._pointer(start))
            if cpu.arch.linkage is not None and state.exit:
                self._functions.return_to_exit()
        if start is not None or cpu.regs.target is not None:
            self._delay_slots.finish_branch(cpu.regs.reported)
        cpu.regs.at(None)
        if max_insns == 0:
            cpu.write_pc(target)
            raise GuestTimeout("max_insns is 0", pc=target & ~cpu.arch.pointers.mode_bits)
        with ending_at(
            state.sink, cpu.arch, None if until is None else end & ~cpu.arch.pointers.mode_bits
        ):
            self._runner.run(target, end, timeout, max_insns)

    def invoke(self, target: int) -> None:
        """Run the function at `target` with the registers as they are until it returns, and put all
        registers back.

        For probes whose handler is a function of the guest: called within a hit.

        Args:
            target: address, as pointers have it.

        Raises:
            GuestStopped: stop() has ended it.
            GuestFault, GuestTimeout: as of any run.
            MachineBusy: another thread has the CPU, or a device's function calls.
        """
        outermost = self._runner.take_cpu()
        try:
            self._invoke(target)
        finally:
            if outermost:
                self._runner.give_cpu_back()

    def _invoke(self, target: int) -> None:
        """Run a function with the registers as they are, then put all registers back. What
        Runner.run() raises is raised.

        Args:
            target: address, as pointers have it.

        Raises:
            GuestStopped: stop() has ended it.
        """
        cpu, state = self._cpu, self._state
        assert cpu.arch.linkage is not None
        start = self._functions.target(target)
        outer = cpu.regs.reported, cpu.regs.target
        saved = cpu.engine.save()
        cpu.regs.at(None)
        try:
            self._functions.return_to_exit()
            self._functions.introduce(target)
            if self._runner.run(start, state.exit, None, None):
                raise GuestStopped(pc=cpu.read_pc())
        finally:
            cpu.engine.restore(saved)
            cpu.engine.discard(saved)
            cpu.regs.reported, cpu.regs.target = outer

    def _pointer(self, function: str | int) -> int:
        """Return a function's address as pointers have it, mode bits included.

        For the symbol of an ifunc it is the function that its resolver chooses; the resolver runs
        in the guest the first time, and what that call raises is raised. Other symbols' addresses
        are kept until symbols change.

        Args:
            function: address, as pointers have it, or symbol.

        Raises:
            BadArgument: it is no address.
            UnknownSymbol: there is no such symbol.
            AmbiguousSymbol: several addresses have that name.
        """
        if not isinstance(function, str):
            return code_pointer(function, self._cpu.arch.bits)
        symbols = self._functions.symbols
        if self._pointers_at != symbols.changes:
            self._pointers = {}
            self._pointers_at = symbols.changes
        known = self._pointers.get(function)
        if known is not None:
            return known
        symbol = symbols[function]
        pointer = self._stubs.resolved(symbol)
        if symbol.kind != "ifunc":
            self._pointers[function] = pointer
        return pointer
