"""The time that a verification may take: a program whose shape or paths need more is refused."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from ..code import Code

HINT: Final = "make loops shorter, or keep less in variables that differ from path to path"
#: rounds of a loop between two looks at the clock: a look costs as much as half a round
_ROUNDS: Final = 256

T = TypeVar("T")


class Budget:
    """The processor time of this thread that one verification may take."""

    def __init__(self, code: Code, seconds: float) -> None:
        """Begin to count this thread's processor time.

        Args:
            code: the program, for the error.
            seconds: processor time that may be spent from now on, in seconds.
        """
        self._code = code
        self._until = time.thread_time() + seconds

    @property
    def spent(self) -> bool:
        """True when the time is used up."""
        return time.thread_time() > self._until

    def rounds(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, and check the time at every 256th.

        Args:
            items: what is yielded.

        Raises:
            ProgramError: the time is over.
        """
        for number, item in enumerate(items, 1):
            yield item
            if not number % _ROUNDS:
                self.check()

    def check(self) -> None:
        """Check the time.

        Raises:
            ProgramError: the time is over.
        """
        if self.spent:
            raise self._code.error(
                "verification takes too long: too many loops, jumps and functions to tell how "
                "they lie in each other",
                hint="split the program, or make its loops fewer",
            )
