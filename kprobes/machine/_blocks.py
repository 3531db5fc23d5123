"""A part of the contract with engines: counts of blocks of guest code."""

from __future__ import annotations

from typing import Protocol


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
