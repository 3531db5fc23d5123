"""A program at a probe: the guest as its helpers see it, and its context."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ..arch._base import Arch
from ..errors import ProgramError, Unsupported
from ..regs import Regs, override_function_with_return
from .context import ARGUMENT, RESULT, WORDS, reader

_PACK = struct.Struct(f"={WORDS}Q").pack
_ARGUMENTS = WORDS - ARGUMENT


class MarkerOperand(Protocol):
    """An operand of a static tracepoint."""

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
    """The place of a program that runs at a hit (a call.RunPlace).

    Attributes:
        regs: of the hit that is going on.
        overridden: the program has had the function skipped.
        function: address of the function whose entry or return is probed, 0 for a probe inside a
            function.
        returns: the probe is on the return.
        operands: of a static tracepoint.
    """

    regs: Regs
    operands: tuple[MarkerOperand, ...] = ()

    def __init__(
        self, kprobes: Traced, returns: bool, cookie: int, clock: Callable[[], int]
    ) -> None:
        """Prepare.

        Args:
            kprobes: the Kprobes that the probe is registered with.
            returns: the probe is on a function's return.
            cookie: the number that the program was attached with.
            clock: gives the time in ns.
        """
        self._kprobes = kprobes
        self.returns = returns
        self._cookie = cookie
        self.clock = clock
        self.function = 0
        self.overridden = False

    @property
    def cpu(self) -> int:
        """The number of the CPU that was hit."""
        return self.regs.cpu

    def read(self, addr: int, size: int) -> bytes:
        """Return guest memory. Raises GuestFault where it is not mapped."""
        return self.regs.read(addr, size)

    def pid_tgid(self) -> int:
        """Return the guest task's number in both halves; made of its identity where that is no
        number.
        """
        task = self.regs.task
        number = task if isinstance(task, int) else zlib.crc32(repr(task).encode())
        return (number & 0xFFFF_FFFF) << 32 | number & 0xFFFF_FFFF

    def comm(self) -> bytes:
        """Return the name of the guest's task, at most 15 bytes; "guest" where it has none."""
        task = self.regs.task
        return task.encode()[:15] if isinstance(task, str) else b"guest"

    def stack(self, skip: int, depth: int) -> list[int]:
        """Return `depth` return addresses from the probed address on, after leaving out `skip`.

        Only the probed address is known where the guest has no frame pointers.
        """
        try:
            trace = self._kprobes.stack_trace(self.regs, skip + depth)
        except Unsupported:  # no frame pointers there
            trace = [self.regs.pc]
        return trace[skip:]

    def override(self, value: int) -> None:
        """Have the probed function skipped, and `value` returned.

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
        """Return the static tracepoint's argument of a number from 0; None: it has not so many."""
        if number >= len(self.operands):
            return None
        return self.operands[number].value(self.regs)

    def at_return(self) -> bool:
        """Return True where the function has returned."""
        return self.returns

    def symbol(self, addr: int) -> tuple[str, int, int, str] | None:
        """Return (name, bytes behind it, size or 0, module or "") of the symbol at an address;
        None: none is.
        """
        symbols = self._kprobes.machine.symbols
        found = symbols.covering(addr)
        if found is None:
            return None
        offset = (addr & ~found.mode) - found.address
        return found.name, offset, max(0, symbols.extent(found) - found.address), found.module


class ContextReader:
    """Makes contexts: the words that a program reads, and zeros for all others."""

    def __init__(self, arch: Arch, words: Iterable[int]) -> None:
        """Prepare. words: numbers of the context's words that are read."""
        self._readers: list[tuple[int, Callable[[Regs], int]]] = [
            (word, reader(arch, word)) for word in words
        ]

    def of(self, regs: Regs) -> bytes:
        """Return the context of a hit, in the host's byte order."""
        out: list[Any] = [0] * WORDS
        for word, read in self._readers:
            out[word] = read(regs)
        return _PACK(*out)


class ArgumentList:
    """Makes contexts that are lists of arguments, as fentry's are; at a return the result stands
    last.

    Attributes:
        count: number of arguments that the function has.
    """

    def __init__(self, arch: Arch) -> None:
        """Prepare, for a function without arguments."""
        self._readers = [reader(arch, ARGUMENT + n) for n in range(_ARGUMENTS)]
        self._result = reader(arch, RESULT)
        self.count = 0

    def arguments(self, regs: Regs) -> list[int]:
        """Read the arguments at the function's entry."""
        return [read(regs) for read in self._readers[:self.count]]

    def of_call(self, arguments: Sequence[int], regs: Regs | None) -> bytes:
        """Return the context of a call, in the host's byte order.

        Args:
            arguments: as they were at the entry.
            regs: at the return; None: it has not returned.
        """
        words = [*arguments, self._result(regs)] if regs is not None else [*arguments, 0]
        return struct.pack(f"={len(words)}Q", *words)
