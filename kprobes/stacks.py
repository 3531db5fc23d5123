"""Stacks that may end before the outermost caller, how that is told, and the way from a function to
its caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: Behind a stack's addresses where callers are missing. No code address is negative.
INCOMPLETE = -1
MARK = "[incomplete]"  #: how texts and pictures show it


class Stack(list[int]):
    """Code addresses, innermost first: pc, then return addresses.

    Attributes:
        incomplete: True where the outermost caller was not reached: there is no unwind information
            for the last address, guest memory was unreadable, or more callers than were asked for.
    """

    def __init__(self, addresses: Iterable[int] = (), incomplete: bool = False) -> None:
        super().__init__(addresses)
        self.incomplete = incomplete

    def __repr__(self) -> str:
        return f"[{', '.join([*map(hex, self), *([MARK] if self.incomplete else [])])}]"

    def kept(self) -> tuple[int, ...]:
        """Return the stack as records keep it: a tuple of the addresses.

        INCOMPLETE (-1) stands behind the last one where callers are missing.
        """
        return (*self, INCOMPLETE) if self.incomplete else tuple(self)


class Step(NamedTuple):
    """The way from a function to its caller, of the usual kind: what unwind information says at one
    pc.

    The caller's registers are those of the function, or saved in its frame.

    Attributes:
        base: name of the register that the canonical frame address counts from.
        offset: bytes from that register to the canonical frame address.
        link: bytes from the canonical frame address to the return address; None: that is in a
            register.
        link_register: its name, where link is None.
        saved: (register, bytes from the canonical frame address to where it is saved) of the
            others; None: it is not kept.
    """

    base: str
    offset: int
    link: int | None
    link_register: str
    saved: tuple[tuple[str, int | None], ...]


def is_incomplete(kept: Sequence[int]) -> bool:
    """Return True if a stack as records keep it ends before the outermost caller.

    Args:
        kept: what Stack.kept() gives.
    """
    return bool(kept) and kept[-1] == INCOMPLETE


def addresses_of(kept: tuple[int, ...]) -> tuple[int, ...]:
    """Return the code addresses of a stack as records keep it, without INCOMPLETE at its end.

    Args:
        kept: what Stack.kept() gives, innermost first.
    """
    return kept[:-1] if is_incomplete(kept) else kept
