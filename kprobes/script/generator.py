"""Code of a whole block: what `blocks` writes, with functions and aggregates."""

from __future__ import annotations

from . import aggregates, functions, texts, tree
from .blocks import BlockWriter
from .inference import MapFacts
from .storage import Area
from .tree import Expression
from .types import ValueType


class Generator(BlockWriter):
    """Writer of the program of one block: a BlockWriter with functions and aggregates.

    Methods write code; "load into r0" and "store" are what that code does when the script runs.
    """

    def function_effect(self, node: tree.FunctionCall | tree.Name, used: bool) -> None:
        """Write code for a call whose value is not needed.

        Args:
            node: the call, or the name of a function without parentheses.
            used: matters for delete() only. False: the code warns Python where the key is missing;
                True: it does not.
        """
        with self.made_of(node.span):
            functions.effect(self, node, used)

    def function_number(self, node: tree.FunctionCall | tree.Name) -> None:
        """Write code that loads into r0 the number that a builtin or function gives.

        Raises:
            ProgramError: `node` gives no number.
        """
        with self.made_of(node.span):
            functions.number(self, node)

    def function_store(
        self, node: tree.FunctionCall | tree.Name, kind: ValueType, area: Area
    ) -> None:
        """Write code that stores a builtin's or function's value in an area.

        Args:
            node: the builtin or the call.
            kind: the type that the value is stored as.
            area: where it is stored.

        Raises:
            ProgramError: `node` gives no value that can be stored.
        """
        with self.made_of(node.span):
            functions.store(self, node, kind, area)

    def comparison(self, node: tree.Binary, label: str) -> None:
        """Write code that jumps to a label where `==` or `!=` of two values in memory does not
        hold.

        Args:
            node: the comparison.
            label: the label.
        """
        functions.compare(self, node, label)

    def zero_behind_nul(self, area: Area, size: int) -> None:
        """Write code that clears what is behind a string's NUL, so that it can be compared.

        Args:
            area: the string.
            size: bytes of it, its NUL included.
        """
        texts.length(self, area, size)
        texts.clear_from(self, area, size)

    def argument(self, node: tree.FieldAccess) -> None:
        """Write code that loads `args.name`, a number, into r0."""
        with self.made_of(node.span):
            functions.argument(self, node)

    def argument_store(self, node: tree.FieldAccess, area: Area) -> None:
        """Write code that stores `args.name`, which is no number, in an area of its type."""
        with self.made_of(node.span):
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
        """Write code that loads into r0 the number that an aggregate counts as, from the address in
        r7.

        Args:
            kind: the aggregate's type.
        """
        aggregates.read(self, kind)
