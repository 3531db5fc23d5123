"""Short blocks where the engine dies of long ones (Blocks.ends): the translator of a block reserves
too little room for them. Used only where blocks cannot be bounded as they are translated
(host/translator.py).

A hook on an instruction takes room of another kind in its block, so that the block ends in time. It
makes the instruction ten times as slow, so hooks are only on stretches that are long: found where
code enters the machine, or nothing but zeros so far. What a guest writes into such zeros is hooked
already. A guest that makes a long stretch of code that had branches is not noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from unicorn import unicorn_const as const

from .engine import NOTHING, Engine

LONG = 256  # instructions; the engine dies of 378, and writes where it should not from 342 on
WORD = 4


class LongBlocks:
    """The stretches of code whose instructions are hooked, so that the blocks translated there end
    in time.
    """

    def __init__(self, engine: Engine, ends: Callable[[int], bool], windows: list[int]) -> None:
        """Prepare; nothing is hooked.

        Args:
            engine: the engine.
            ends: (instruction, as a number of the host's) -> True where it ends a block.
            windows: starts of further segments of addresses in which the guest sees all memory.
        """
        self._engine = engine
        self._ends = ends
        self._windows = (0, *windows)
        self._hooks: dict[tuple[int, int], list[int]] = {}

    def new(self, start: int, end: int) -> None:
        """Hook [start, end), where zeros or unknown bytes may be executed.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
        """
        self.forget(start, end)
        self._add(start, end)

    def forget(self, start: int, end: int) -> None:
        """Remove the hooks in [start, end): nothing is executed there any more. The rest of a
        hooked stretch that reaches beyond stays hooked.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
        """
        for low, high in [place for place in self._hooks if place[0] < end and start < place[1]]:
            for hook in self._hooks.pop((low, high)):
                self._engine.unhook(hook)
            for at, to in (low, start), (end, high):
                if at < to:
                    self._add(at, to)

    def changed(self, first: int, code: Any, start: int, end: int) -> None:
        """Hook the long stretches in which no instruction ends a block, in and around code that has
        changed, and remove hooks that are not needed any more.

        Args:
            first: address of the mapping that the code is in.
            code: the words of that whole mapping, as numbers of the host's.
            start: address of the first byte that has changed.
            end: address behind the last one.
        """
        start, end = self._stretch(first, code, start, end)
        self.forget(start, end)
        for at, to in self._long(code[(start - first) // WORD : (end - first) // WORD]):
            self._add(start + at * WORD, start + to * WORD)

    def _stretch(self, first: int, code: Any, start: int, end: int) -> tuple[int, int]:
        """Widen [start, end) to the ends of the stretches without a branch that it touches, and
        return (start, end) of that.

        Args:
            first: address of the mapping.
            code: the words of that whole mapping.
            start: address of the first byte.
            end: address behind the last byte.
        """
        low, high = (start - first) // WORD, -(-(end - first) // WORD)
        known = [((at - first) // WORD, (to - first) // WORD) for at, to in self._hooks]
        low = min([low, *(at for at, to in known if at <= low <= to)])
        high = max([high, *(to for at, to in known if at <= high <= to)])
        low = next((n for n in range(min(low, len(code)), 0, -1) if self._ends(code[n - 1])), 0)
        high = next(
            (n for n in range(min(high, len(code)), len(code)) if self._ends(code[n])), len(code)
        )
        return first + low * WORD, first + high * WORD

    def _long(self, code: Any) -> Iterator[tuple[int, int]]:
        """Yield (first, end) of the stretches of 256 and more words (LONG) in which no instruction
        ends a block, as indexes in `code`.

        Seldom are more than a few words in a hundred looked at.

        Args:
            code: the words of the code.
        """
        start, ends = 0, self._ends
        while start + LONG <= len(code):
            last = next((n for n in range(start + LONG - 1, start - 1, -1) if ends(code[n])), -1)
            if last >= 0:
                start = last + 1
                continue
            end = next((n for n in range(start + LONG, len(code)) if ends(code[n])), len(code))
            yield start, end
            start = end + 1

    def _add(self, start: int, end: int) -> None:
        """Hook each instruction of [start, end), in every window.

        Args:
            start: address of the first one.
            end: address behind the last one.
        """
        self._hooks[start, end] = [
            self._engine.hook(const.UC_HOOK_CODE, NOTHING, at + start, at + end - 1)
            for at in self._windows
        ]
