"""Code of a whole block: what `blocks` writes, with functions and aggregates."""

from __future__ import annotations

from . import aggregates, functions, tree
from .blocks import BlockWriter
from .inference import MapFacts
from .storage import Area
from .tree import Expression
from .types import ValueType


class Generator(BlockWriter):
    """Writes the program of one block, with functions and aggregates; see `BlockWriter`."""

    def function_effect(self, node: tree.FunctionCall | tree.Name, used: bool) -> None:
        """Write a call for what it does; see `functions`."""
        functions.effect(self, node, used)

    def function_number(self, node: tree.FunctionCall | tree.Name) -> None:
        """Compute a builtin or a function into r0; see `functions`."""
        functions.number(self, node)

    def function_store(
        self, node: tree.FunctionCall | tree.Name, kind: ValueType, area: Area
    ) -> None:
        """Store a builtin's or a function's value in an area; see `functions`."""
        functions.store(self, node, kind, area)

    def comparison(self, node: tree.Binary, label: str) -> None:
        """Write a jump to a label where `==` or `!=` of two values in memory does not hold.

        Args:
            node: the comparison.
            label: the label.
        """
        functions.compare(self, node, label)

    def argument(self, node: tree.FieldAccess) -> None:
        """Load `args.name` into r0; see `functions`."""
        functions.argument(self, node)

    def argument_store(self, node: tree.FieldAccess, area: Area) -> None:
        """Store `args.name`, which is no number, in an area; see `functions`."""
        functions.argument_store(self, node, area)

    def aggregate_update(
        self, target: tree.MapName | tree.MapAccess, facts: MapFacts, value: Expression
    ) -> None:
        """Write `@x[key] = count()` and its like: the update of an aggregate.

        Args:
            target: the map, or the map with a key.
            facts: the map's types.
            value: the call of count() or its like.
        """
        aggregates.update(self, target, facts, value)

    def aggregate_read(self, kind: ValueType) -> None:
        """Load the number that an aggregate at r7 counts as into r0; see `aggregates`."""
        aggregates.read(self, kind)
