"""Runs of a remote guest that end at an address, and calls of its functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...arch._base import Arch
from ...arguments import place
from ...errors import BadArgument, Unsupported
from ...symbols import Symbols
from .._ends import ending_at
from .._passing import Passing, check_bounds, code_pointer
from .control import LONGEST, Control
from .target import Target
from .threads import Threads


def check_limits(timeout: float, threads: int = 1) -> None:
    """What a machine is made with: seconds that an answer may take, and CPUs. BadArgument."""
    if not 0 < timeout < LONGEST:
        raise BadArgument(f"timeout is {timeout!r}", hint="pass seconds, more than 0")
    if not place("threads", threads):
        raise BadArgument("threads is 0", hint="pass 1 or more")


class GuestCalls:
    """What a machine's run(), call() and invoke() do."""

    def __init__(self, target: Target, control: Control, threads: Threads, arch: Arch, symbols: Symbols) -> None:
        self._target, self._control, self._threads, self._arch, self._symbols = target, control, threads, arch, symbols

    def run(self, start: int | str | None, until: int | str | None, timeout: float | None,
            max_insns: int | None) -> None:
        """See RemoteMachine.run()."""
        check_bounds(timeout, max_insns)
        with self._control.alone():
            self._run(start, until, timeout, max_insns)

    def _run(self, start: int | str | None, until: int | str | None, timeout: float | None,
             max_insns: int | None) -> None:
        regs = self._threads.regs[self._threads.current]
        end = None if until is None else self._address(self._pointer(until)) & ~self._arch.pointers.mode_bits
        first = regs.target if start is None else self._address(self._pointer(start))
        regs.at(None)
        with ending_at(self._control.sink, self._arch, end), self._stopping_at(end):
            self._control.run(first, end, timeout, max_insns)

    def call(self, function: str | int, passing: Passing | None, exit_at: int, timeout: float | None,
             max_insns: int | None) -> int:
        """Run a function in the current thread to its return, by way of `exit_at`; its result. passing: None: registers
        are what they are. Registers are put back."""
        arch, threads = self._arch, self._threads
        if arch.linkage is None or arch.abi is None:
            raise Unsupported(f"{arch.name} has no calling convention", python="set registers and use run()")
        check_bounds(timeout, max_insns)
        pointer, regs = self._pointer(function), threads.regs[threads.current]
        saved, shown = threads.save(), (regs.reported, regs.target)
        regs.at(None)
        try:
            if passing is not None:
                passing.set_up(regs)
            arch.linkage.set(regs, exit_at | arch.linkage.mode)
            if arch.abi.enter is not None:
                arch.abi.enter(regs, pointer)
            with self._stopping_at(exit_at):
                self._control.run(self._address(pointer), exit_at, timeout, max_insns, call=True)
                return regs.return_value
        finally:
            if self._there:
                if passing is not None:
                    passing.finish()
                threads.restore(saved)
            regs.reported, regs.target = shown

    @contextmanager
    def _stopping_at(self, end: int | None) -> Iterator[None]:
        """The stub stops there meanwhile."""
        if end is None:
            yield
            return
        turns = self._control.turns
        turns.end_at(end)
        try:
            yield
        finally:
            if self._there:
                turns.end_at_no_more(end)

    @property
    def _there(self) -> bool:
        return self._control.exit_status is None and not self._target.link.closed

    def _pointer(self, function: str | int) -> int:
        """A function's address as its pointers have it."""
        if not isinstance(function, str):
            return code_pointer(function, self._arch.bits)
        symbol = self._symbols[function]
        return symbol.address | symbol.mode

    def _address(self, pointer: int) -> int:
        """Where it starts, mode bits included."""
        entry = self._arch.pointers.code_address(pointer, self._target.read)
        return entry.addr | entry.mode
