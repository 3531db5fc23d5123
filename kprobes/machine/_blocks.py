"""The contract's words about blocks of guest code, and about what a machine does not do."""

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
        """65,536 counters of a byte."""

    def arcs(self) -> list[tuple[int, int, int]]:
        """(block left, block entered, how often) of edges; none where edges are not counted one by
        one.
        """

    def rows(self, addresses: list[int]) -> list[tuple[int, int, int]]:
        """(address, bytes, how often) of blocks that were found."""

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
        hint: what to do instead.
    """

    def refuse(*args: Any, **more: Any) -> Any:
        raise Unsupported(reason, hint=hint)

    return refuse
