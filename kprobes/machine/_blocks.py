"""A part of the contract with engines: counts of blocks of guest code, and powers that a machine
lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..errors import Unsupported


class BlockCounts(Protocol):
    """Counts of the blocks of guest code that are executed, and of edges between them.

    Attributes:
        found: addresses of blocks, in the order in which they were seen.
    """

    found: list[int]

    @property
    def edges(self) -> memoryview:
        """65,536 counters of a byte: a bitmap of edges between blocks, as fuzzers have it."""

    def arcs(self) -> list[tuple[int, int, int]]:
        """Return (address of the block left, of the block entered, how often) of each edge.

        [] where edges are not counted one by one.
        """

    def rows(self, addresses: list[int]) -> list[tuple[int, int, int]]:
        """Return (address, bytes, how often it was executed) of blocks.

        Args:
            addresses: of blocks, from `found`.
        """

    def reset(self) -> None:
        """Set all counts back to zero."""

    def forget_edges(self) -> None:
        """Set the counts of edges back to zero."""

    def close(self) -> None:
        """Stop counting, and remove the engine's hooks."""


def refuses(reason: str, hint: str) -> Callable[..., Any]:
    """Return a stand-in for a method of a power that a machine lacks: each call raises Unsupported.

    Args:
        reason: text of the error.
        hint: what to do instead; the error has it.

    Returns:
        A function that takes any arguments.
    """

    def refuse(*args: Any, **more: Any) -> Any:
        """Raise Unsupported, whatever the arguments are."""
        raise Unsupported(reason, hint=hint)

    return refuse
