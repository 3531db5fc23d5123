"""The contract's words about blocks of guest code, and about what a machine does not do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..errors import Unsupported


class BlockCounts(Protocol):
    """Counts the blocks of guest code that are executed, and edges between them. found: addresses, in the order in
    which they were seen."""

    found: list[int]

    @property
    def edges(self) -> memoryview:
        """65,536 counters of a byte."""

    def rows(self, addresses: list[int]) -> list[tuple[int, int, int]]:
        """(address, bytes, how often) of blocks that were found."""

    def reset(self) -> None:
        """All counts are 0."""

    def forget_edges(self) -> None:
        """Those of edges are."""

    def close(self) -> None:
        """Count no more."""


def refuses(reason: str, hint: str) -> Callable[..., Any]:
    """What a machine that cannot has in the place of a method."""

    def refuse(*args: Any, **more: Any) -> Any:
        raise Unsupported(reason, hint=hint)

    return refuse
