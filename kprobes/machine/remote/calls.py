"""Runs of a remote guest that end at an address, and calls of its functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...arch._base import Arch
from ...arguments import count_or_index
from ...errors import BadArgument, Unsupported
from ...symbols import Symbols
from .._ends import ending_at
from .._passing import Passing, check_bounds, code_pointer
from .runcontrol import LONGEST, RunControl
from .target import RemoteTarget
from .threadlock import ThreadLock
from .threads import RemoteThreads


def check_limits(timeout: float, threads: int = 1) -> None:
    """Check the limits that a machine is given when it is made.

    Args:
        timeout: seconds that the stub may take for an answer.
        threads: number of living threads that may come to probes.

    Raises:
        BadArgument: one of them is out of range.
    """
    if not 0 < timeout < LONGEST:
        raise BadArgument(f"timeout is {timeout!r}", hint="pass seconds, more than 0")
    if not count_or_index("threads", threads):
        raise BadArgument("threads is 0", hint="pass 1 or more")


class GuestCalls:
    """Runs of a machine's guest: what is behind the machine's run(), call() and invoke()."""

    def __init__(
        self,
        target: RemoteTarget,
        control: RunControl,
        lock: ThreadLock,
        threads: RemoteThreads,
        arch: Arch,
        symbols: Symbols,
    ) -> None:
        """Prepare; nothing runs.

        Args:
            target: the stub.
            control: runs the guest.
            lock: by which threads take turns; it makes the guest stop at a run's end.
            threads: the guest's threads, and their registers.
            arch: the guest's architecture.
            symbols: the machine's.
        """
        self._target = target
        self._control = control
        self._lock = lock
        self._threads = threads
        self._arch = arch
        self._symbols = symbols

    def run(
        self,
        start: int | str | None,
        until: int | str | None,
        timeout: float | None,
        max_insns: int | None,
    ) -> None:
        """Run the guest to an address, a stop() or the program's end.

        Args:
            start: address or symbol; None: where the guest stands.
            until: address or symbol; None: nowhere.
            timeout: seconds; None: no bound.
            max_insns: instructions of the current thread; None: no bound.

        Raises:
            BadArgument: a bound or an address is out of range.
            UnknownSymbol, AmbiguousSymbol: of `start` or `until`.
            MachineBusy: another thread runs the machine, or changes its probes.
            GuestTimeout: the time is over, or the instructions are executed.
            GuestFault: a signal has ended the program.
            ReentryError: too many runs are nested.
            RemoteError: the program had ended before, or the stub is gone.
            Unsupported: `max_insns` is given, and the guest has several threads.
        """
        check_bounds(timeout, max_insns)
        with self._control.alone():
            self._run(start, until, timeout, max_insns)

    def _run(
        self,
        start: int | str | None,
        until: int | str | None,
        timeout: float | None,
        max_insns: int | None,
    ) -> None:
        """Run the guest to an address, a stop() or the program's end. The calling thread holds the
        machine's lock.

        Args:
            start: address or symbol; None: where the guest stands.
            until: address or symbol; None: nowhere.
            timeout: seconds; None: no bound.
            max_insns: instructions of the current thread; None: no bound.

        Raises:
            BadArgument: an address is out of range.
            UnknownSymbol, AmbiguousSymbol: of `start` or `until`.
            GuestTimeout: the time is over, or the instructions are executed.
            GuestFault: a signal has ended the program.
            ReentryError: too many runs are nested.
            RemoteError: the program had ended before, or the stub is gone.
            Unsupported: `max_insns` is given, and the guest has several threads.
        """
        regs = self._threads.regs[self._threads.current]
        end = None
        if until is not None:
            end = self._address(self._pointer(until)) & ~self._arch.pointers.mode_bits
        first = regs.target if start is None else self._address(self._pointer(start))
        regs.at(None)
        with ending_at(self._control.state.sink, self._arch, end), self._stopping_at(end):
            self._control.run(first, end, timeout, max_insns)

    def entry(self, function: str | int) -> int:
        """Return the address of a function's first instruction, without mode bits.

        Args:
            function: address, as pointers have it, or symbol.

        Raises:
            UnknownSymbol, AmbiguousSymbol: there is no such function, or several.
        """
        return self._address(self._pointer(function)) & ~self._arch.pointers.mode_bits

    def call(
        self,
        function: str | int,
        passing: Passing | None,
        exit_at: int,
        timeout: float | None,
        max_insns: int | None,
    ) -> Any:
        """Run a function in the current thread until it returns, and put the thread's registers
        back, also where it fails; not where the guest is gone afterwards.

        A bytearray among the arguments gets back what the function has left in its copy. The
        calling thread holds the machine's lock.

        Args:
            function: address, as pointers have it, or symbol.
            passing: its arguments; None: the registers have them already.
            exit_at: address that the function is made to return to, where the call ends.
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.

        Returns:
            Its result, an integer, or of the type that `passing` knows.

        Raises:
            BadArgument: a bound or the address is out of range.
            UnknownSymbol, AmbiguousSymbol: of `function`.
            GuestFault: the function fails, or the program ends.
            GuestTimeout: a bound has come.
            NoMemory: there is no room for a copy of an argument.
            ReentryError: too many runs are nested.
            RemoteError: the program had ended before, or the stub is gone.
            Unsupported: the architecture has no calling convention, there are more pointers
                than it passes in registers, or `max_insns` is given and there are several threads.
        """
        arch = self._arch
        threads = self._threads
        if arch.linkage is None or arch.abi is None:
            raise Unsupported(
                f"{arch.name} has no calling convention", python="set registers and use run()"
            )
        check_bounds(timeout, max_insns)
        pointer = self._pointer(function)
        regs = threads.regs[threads.current]
        saved = threads.save()
        shown = regs.reported, regs.target
        regs.at(None)
        try:
            if passing is not None:
                passing.set_up(regs)
            arch.linkage.set(regs, exit_at | arch.linkage.mode)
            if arch.abi.enter is not None:
                arch.abi.enter(regs, pointer)
            with self._stopping_at(exit_at):
                self._control.run(self._address(pointer), exit_at, timeout, max_insns, call=True)
                return regs.return_value if passing is None else passing.result(regs)
        finally:
            if self._control.state.guest_exists():
                if passing is not None:
                    passing.finish()
                threads.restore(saved)
            regs.reported, regs.target = shown

    @contextmanager
    def _stopping_at(self, end: int | None) -> Iterator[None]:
        """Have the guest stop at an address inside a with block. At the block's end the stop is
        taken back, also after an exception; not where the guest is gone by then.

        Args:
            end: the address; None: nothing is done.
        """
        if end is None:
            yield
            return
        self._lock.end_at(end)
        try:
            yield
        finally:
            if self._control.state.guest_exists():
                self._lock.end_at_no_more(end)

    def _pointer(self, function: str | int) -> int:
        """Return a function's address as a function pointer of the guest would have it.

        Args:
            function: a symbol's name; or the address with its mode bits, which is returned as it
                is.

        Raises:
            BadArgument: the integer is less than 0, or beyond the highest address.
            UnknownSymbol: there is no symbol of that name.
            AmbiguousSymbol: several addresses have that name.
        """
        if not isinstance(function, str):
            return code_pointer(function, self._arch.bits)
        symbol = self._symbols[function]
        return symbol.address | symbol.mode

    def _address(self, pointer: int) -> int:
        """Return the address of a function's code, mode bits included; function descriptors are
        read from guest memory.

        Args:
            pointer: the function's address, as pointers have it.
        """
        entry = self._arch.pointers.code_address(pointer, self._target.read)
        return entry.addr | entry.mode
