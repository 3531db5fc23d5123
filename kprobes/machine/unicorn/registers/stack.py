"""Registers of guests that pass all their arguments on the stack: what handlers read most is words
of it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ....regs import Memory, Regs, RegsMachine
from ..blocks import HostBlocks
from .cells import Cell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ....regs import Reader, Writer

READY = 8  # arguments that arg() finds at once


class StackRegs(Regs):
    """Registers of a guest whose calls have their arguments on the stack: those are read as words
    of the block of host memory that the stack was in last.
    """

    __slots__ = ("_blocks", "_distances", "_outside", "_shift", "_sp", "_sp_at", "_words")

    _words: Any

    def __init__(
        self,
        machine: RegsMachine,
        readers: Mapping[str, Reader],
        writers: Mapping[str, Writer],
        memory: Memory,
        blocks: HostBlocks,
        sp: Cell,
        cells: Mapping[str, tuple[memoryview, int]],
    ) -> None:
        """Prepare; the stack is found at the first argument that is read.

        Args:
            machine: the machine whose CPU it is.
            readers: name -> function that reads the register.
            writers: name -> function that writes it.
            memory: the guest's.
            blocks: its blocks, by which the stack is found.
            sp: the stack pointer's word in the engine.
            cells: register -> (words of the engine, index of the register's).
        """
        super().__init__(machine, readers, writers, memory=memory, cells=cells)
        self._sp = sp.view
        self._sp_at = sp.index
        self._blocks = blocks
        self._shift = self._word.bit_length() - 1
        # number -> what to add to the stack pointer, for the place among the words
        self._distances: dict[int, int] = {}
        self._outside = 0
        blocks.on_remove(self._forget)

    def arg(self, n: int) -> int:
        """Return argument `n` (from 0) of a call, from the stack, as at the function's entry.

        Written for speed: one call, and one test for everything unusual about the address.
        """
        try:
            at = self._sp[self._sp_at] + self._distances[n]
        except KeyError:
            return self._arg_elsewhere(n)
        if at & self._outside:
            return self._arg_elsewhere(n)
        return self._words[at >> self._shift]  # type: ignore[no-any-return]

    def argument(self, n: int) -> Callable[[], int]:
        """Make a function that returns argument `n` (from 0) of a call: as arg(n), but quicker."""
        sp = self._sp
        sp_at = self._sp_at
        shift = self._shift
        elsewhere = partial(self._arg_elsewhere, n)

        def read() -> int:
            """Return the argument: a word of the block that the stack was in last, or found as
            usual.
            """
            try:
                at = sp[sp_at] + self._distances[n]
            except KeyError:
                return elsewhere()
            return elsewhere() if at & self._outside else self._words[at >> shift]

        return read

    def _arg_elsewhere(self, n: int) -> int:
        """Return argument `n` (from 0) where arg() cannot, and make ready for more in the block
        where the stack is now.
        """
        found = self._blocks.window(self.sp)
        if found is not None:
            self._words, start, self._outside = found
            first = self._bias + self.arch.abi.stack_args - start
            self._distances = {n: first + n * self._word for n in range(READY)}
        return int(self._abi().argument(self, n))

    def _forget(self) -> None:
        """Forget where the stack is in this process. Called when a block of guest memory is
        removed.
        """
        self._distances = {}
        self._words = ()
