"""A program at a probe: the guest as its helpers see it, and its context."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from ..arch._base import Arch
from ..errors import ProgramError, Unsupported
from ..regs import Regs, override_function_with_return
from .context import WORDS, reader

_PACK = struct.Struct(f"={WORDS}Q").pack
_NONE: Mapping[int, int] = {}


class MarkerOperand(Protocol):
    """A way to read an operand of a static tracepoint."""

    def value(self, regs: Regs) -> int:
        """Read the operand at a hit. Raises KprobeError where its memory is not mapped."""


class Traced(Protocol):
    """The Kprobes that the probe is registered with, as far as programs need it."""

    @property
    def machine(self) -> Any:
        """The guest."""

    def stack_trace(self, regs: Regs, limit: int = 64) -> list[int]:
        """Return the pc and return addresses of a hit, innermost first, `limit` at most."""


class AtProbe:
    """The guest at a hit, as the helpers of the program that runs there see it (a call.RunPlace).

    Attributes:
        regs: registers of the present hit.
        overridden: True after override(): the function is skipped.
        function: address of the function whose entry or return is probed; 0 for a probe inside a
            function.
        returns: True where the probe is on the return.
        operands: readers of a static tracepoint's arguments; empty for other probes.
    """

    regs: Regs
    operands: tuple[MarkerOperand, ...] = ()

    def __init__(
        self, kprobes: Traced, returns: bool, cookie: int, clock: Callable[[], int]
    ) -> None:
        """Prepare for a probe, without a hit yet.

        Args:
            kprobes: the Kprobes that the probe is registered with.
            returns: True where the probe is on a function's return.
            cookie: the number that the program was attached with.
            clock: returns the time in ns.
        """
        self._kprobes = kprobes
        self.returns = returns
        self._cookie = cookie
        self.clock = clock
        self.function = 0
        self.overridden = False

    @property
    def is_process(self) -> bool:
        """True where the guest is a process, with a number and a name."""
        return self._kprobes.machine.process_identity is not None

    @property
    def stopped(self) -> Regs:
        """Registers of the guest's CPU that ran last, outside of hits."""
        regs: Regs = self._kprobes.machine.regs
        return regs

    @property
    def cpu(self) -> int:
        """The number of the CPU that was hit."""
        return self.regs.cpu

    def read(self, addr: int, size: int) -> bytes:
        """Return `size` bytes of guest memory. Raises GuestFault where it is not mapped."""
        return self.regs.read(addr, size)

    def pid_tgid(self) -> int:
        """Return the numbers of the guest's process and thread: in the upper and the lower 32 bits.

        Where the guest is no process, both are the number of its task; where tasks have no numbers,
        a checksum of what the machine calls the task.
        """
        process = self._kprobes.machine.process_identity
        if process is not None:
            pid: int = process.pid
            tid: int = process.tid(self.regs.cpu)
            return (pid & 0xFFFF_FFFF) << 32 | tid & 0xFFFF_FFFF
        task = self.regs.task
        number = task if isinstance(task, int) else zlib.crc32(repr(task).encode())
        return (number & 0xFFFF_FFFF) << 32 | number & 0xFFFF_FFFF

    def comm(self) -> bytes:
        """Return the name of the guest's process or task, at most 15 bytes; "guest" where it has
        none.
        """
        process = self._kprobes.machine.process_identity
        if process is not None and process.name:
            return bytes(process.name)
        task = self.regs.task
        return task.encode()[:15] if isinstance(task, str) else b"guest"

    def stack(self, skip: int, depth: int) -> list[int]:
        """Return up to `depth` addresses: the probed one, then return addresses, innermost first.

        Where the guest has no frame pointers, only the probed address is known.

        Args:
            skip: how many of the first are left out.
            depth: how many are returned at most.
        """
        try:
            trace = self._kprobes.stack_trace(self.regs, skip + depth)
        except Unsupported:  # no frame pointers there
            trace = [self.regs.pc]
        return trace[skip:]

    def override(self, value: int) -> None:
        """Return from the probed function at once, with a result, as if it had run.

        Sets the guest's registers, and `overridden`.

        Args:
            value: the result.

        Raises:
            ProgramError: the probe is not at a function's entry.
        """
        if self.returns or not self.function:
            raise ProgramError("there is no function to skip: the probe is not at a function entry")
        regs = self.regs
        override_function_with_return(regs)
        regs.return_value = value & (1 << regs.arch.bits) - 1
        self.overridden = True

    def func_ip(self) -> int:
        """Return the address of the probed function; 0 for a probe inside one."""
        return self.function

    def cookie(self) -> int:
        """Return the number that the program was attached with."""
        return self._cookie

    def marker_argument(self, number: int) -> int | None:
        """Return an argument of the static tracepoint that was hit.

        Args:
            number: number of the argument, from 0.

        Returns:
            None: the tracepoint has fewer, or the probe is at none.

        Raises:
            KprobeError: the argument is in memory that is not mapped.
        """
        if number >= len(self.operands):
            return None
        return self.operands[number].value(self.regs)

    def at_return(self) -> bool:
        """Return True where the probe is on a function's return."""
        return self.returns

    def symbol(self, addr: int) -> tuple[str, int, int, str] | None:
        """Return the symbol that covers a guest address.

        Returns:
            (name, bytes from the symbol to the address, size of the symbol or 0, module or "");
            None: no symbol covers it.
        """
        symbols = self._kprobes.machine.symbols
        found = symbols.covering(addr)
        if found is None:
            return None
        offset = (addr & ~found.mode) - found.address
        return found.name, offset, max(0, symbols.extent(found) - found.address), found.module


class ContextReader:
    """Makes contexts of hits: 128 words, of which only those are read that a program needs."""

    def __init__(self, arch: Arch, words: Iterable[int]) -> None:
        """Make a reader of each word.

        Args:
            arch: the guest's architecture.
            words: numbers of the context's words that the program reads; the others are 0.
        """
        self._readers: list[tuple[int, Callable[[Regs], int]]] = [
            (word, reader(arch, word)) for word in words
        ]

    def of(self, regs: Regs, kept: Mapping[int, int] = _NONE) -> bytes:
        """Return the context of a hit, in the host's byte order.

        Args:
            regs: registers of the hit.
            kept: number of a word -> its value, for words that are not read from `regs`.
        """
        out: list[Any] = [0] * WORDS
        for word, read in self._readers:
            out[word] = read(regs)
        for word, value in kept.items():
            out[word] = value
        return _PACK(*out)
