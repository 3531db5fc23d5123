"""Code of a whole block: what `blocks` writes, with functions and aggregates."""

from __future__ import annotations

from . import aggregates, functions, tree
from .blocks import BlockWriter
from .inference import MapFacts
from .storage import Area
from .tree import Expression
from .types import ValueType


class Generator(BlockWriter):
    """Writes one program; see `BlockWriter`."""

    def function_effect(self, node: tree.Call | tree.Name, used: bool) -> None:
        functions.effect(self, node, used)

    def function_number(self, node: tree.Call | tree.Name) -> None:
        functions.number(self, node)

    def function_store(self, node: tree.Call | tree.Name, kind: ValueType, area: Area) -> None:
        functions.store(self, node, kind, area)

    def comparison(self, node: tree.Binary, label: str) -> None:
        functions.compare(self, node, label)

    def argument(self, node: tree.FieldAccess) -> None:
        functions.argument(self, node)

    def argument_store(self, node: tree.FieldAccess, area: Area) -> None:
        functions.argument_store(self, node, area)

    def aggregate_update(self, target: tree.MapName | tree.MapAccess, facts: MapFacts, value: Expression) -> None:
        aggregates.update(self, target, facts, value)

    def aggregate_read(self, kind: ValueType) -> None:
        aggregates.read(self, kind)
