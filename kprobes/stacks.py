"""Stacks that may end before the outermost caller, and how that is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Behind a stack's addresses where callers are missing. No code address is negative.
INCOMPLETE = -1
MARK = "[incomplete]"  #: how texts and pictures show it


class Stack(list[int]):
    """Code addresses, innermost first: pc, then return addresses.

    Attributes:
        incomplete: True where the outermost caller was not reached: there is no unwind information for
            the last address, guest memory was unreadable, or more callers than were asked for.
    """

    def __init__(self, addresses: Iterable[int] = (), incomplete: bool = False) -> None:
        super().__init__(addresses)
        self.incomplete = incomplete

    def __repr__(self) -> str:
        return f"[{', '.join([*map(hex, self), *([MARK] if self.incomplete else [])])}]"

    def kept(self) -> tuple[int, ...]:
        """Return the stack as records keep it: hashable, INCOMPLETE behind one that is."""
        return (*self, INCOMPLETE) if self.incomplete else tuple(self)


def is_incomplete(kept: Sequence[int]) -> bool:
    """Whether a stack of a record ends before the outermost caller."""
    return bool(kept) and kept[-1] == INCOMPLETE


def addresses_of(kept: tuple[int, ...]) -> tuple[int, ...]:
    """Return the code addresses of a stack of a record."""
    return kept[:-1] if is_incomplete(kept) else kept
