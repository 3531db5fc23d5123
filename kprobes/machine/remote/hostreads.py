"""Requests of programs in a guest to the host: reads of memory that may not be mapped, numbers that
only the host knows, and calls of Python.

Such a program calls a function of the library's with the address of four u64: where to read, where
to put it, the number of bytes, and the result: 0, or not 0 where there is no such memory. With WAKE
or TELL in the place of the number the first word says which of Python's functions is called; with
TELL that word gets the function's result.

The library's function has two copies: at the first one the guest stops, and the host does what is
asked; from the second one it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...errors import GuestFault
from ...regs import Regs
from .target import RemoteTarget

_U64: Final = (1 << 64) - 1

MOST: Final = 1 << 16  #: bytes of one read
WAKE: Final = 1 << 32  #: in the place of a size: Python is called. See kprobes/native/support.c
TELL: Final = 2 << 32  #: and: Python tells a number


class HostReads:
    """Does what one machine's programs ask the host for."""

    def __init__(self, machine: Any, target: RemoteTarget) -> None:
        """Prepare; place() puts the function into the guest.

        Args:
            machine: the guest's; its memory is read and written.
            target: the stub, which stops the guest at the function.
        """
        self._machine = machine
        self._target = target
        self._wakers: list[Callable[[], None]] = []
        self._tellers: list[Callable[[Regs], int]] = []
        self._due = -1  # the number of the function that call_python() calls; -1: none
        self._at = -1  # address of the first copy; -1: there is none yet
        self._onward = -1  # of the second

    def place(self, function: bytes, fresh: Callable[[int], int]) -> tuple[int, int]:
        """Write the two copies of the function into new pages, with a breakpoint of the stub's at
        the first copy.

        Args:
            function: machine code of a function that does nothing.
            fresh: (bytes) -> address of new pages.

        Returns:
            (start, end) of both copies.
        """
        step = -(-len(function) // 16) * 16
        start = fresh(2 * step)
        self._machine.write(start, function.ljust(step, b"\0") + function)
        self._target.stops.add(start)
        self._at = start
        self._onward = start + step
        return start, start + 2 * step

    def waker(self, call: Callable[[], None]) -> int:
        """Register a function of Python's that programs can have called, and return its number,
        which they pass.

        Args:
            call: the function; call_python() calls it. What it returns is not used.
        """
        self._wakers.append(call)
        return len(self._wakers) - 1

    def teller(self, tell: Callable[[Regs], int]) -> int:
        """Return the number by which programs have the host tell them a number.

        Args:
            tell: (registers of the thread that asks) -> the number, 64 bits.
        """
        self._tellers.append(tell)
        return len(self._tellers) - 1

    def stands(self, pc: int) -> bool:
        """Return True where `pc` is the first copy of the function: a program asks the host."""
        return pc == self._at

    def answer(self, regs: Regs) -> int:
        """Make the read that a program asks for, or give it the number that it asks for, and return
        the address of the second copy, where the guest goes on.

        The bytes are written to guest memory, with 0 as the result. Where memory is not mapped, or
        more than 64 KiB are asked for, nothing is written: the result stays not 0. A number that
        only the host knows is written over the request's first u64; not where there is no function
        that tells it. Where the program wants Python to be called, the function's number is noted
        for call_python(). The guest's pc is not set here.

        Args:
            regs: registers at the function; the first argument is the address of the request.
        """
        machine, order = self._machine, self._machine.arch.order.value
        try:
            block = regs.arg(0)
            raw = machine.read(block, 24)
            at, to, size = (int.from_bytes(raw[n : n + 8], order) for n in (0, 8, 16))
            if size == WAKE:
                self._due = at
            elif size == TELL:
                if at < len(self._tellers):  # a guest may write any number
                    machine.write(block, (self._tellers[at](regs) & _U64).to_bytes(8, order))
            elif size <= MOST:
                machine.write(to, machine.read(at, size))
                machine.write(block + 24, bytes(8))
        except GuestFault:
            pass  # the result stays as it is: a fault
        return self._onward

    def call_python(self) -> None:
        """Call the function of Python's that the last answered request was for, if it was for one.

        Called when the guest's pc is at the address that answer() has returned, so the function may
        read the guest, and end the run. What the function raises goes to the caller.
        """
        due = self._due
        self._due = -1
        if 0 <= due < len(self._wakers):  # a guest may write any number
            self._wakers[due]()
