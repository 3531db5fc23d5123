"""The syntax tree of a script.

Nodes are compared by identity, so that passes can keep what they find out in dictionaries by node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
from attrs import define

from .source import Span


@define(eq=False, kw_only=True)
class Node:
    """The base of all nodes.

    Attributes:
        span: where it stands in the text.
    """

    span: Span


# --- types as written


@define(eq=False, kw_only=True)
class TypeName(Node):
    """A type as written.

    Attributes:
        name: `uint64`, `struct foo`, `string`.
        pointers: how many asterisks stand behind it.
        sizes: what stands in brackets; None for empty ones.
        expression: for `typeof(EXPRESSION)`, whose type it is.
    """

    name: str = ""
    pointers: int = 0
    sizes: tuple[int | None, ...] = ()
    expression: Expression | None = None


# --- expressions


@define(eq=False, kw_only=True)
class Expression(Node):
    """The base of all expressions."""


@define(eq=False, kw_only=True)
class NumberLiteral(Expression):
    """An integer literal.

    Attributes:
        value: its number.
        text: the literal as written.
    """

    value: int
    text: str = ""


@define(eq=False, kw_only=True)
class StringLiteral(Expression):
    """A string literal."""

    value: bytes


@define(eq=False, kw_only=True)
class BooleanLiteral(Expression):
    """`true` or `false`."""

    value: bool


@define(eq=False, kw_only=True)
class Name(Expression):
    """An identifier: a builtin, an enum's member, a macro's parameter, or a function without
    parentheses.
    """

    name: str


@define(eq=False, kw_only=True)
class ScratchVariable(Expression):
    """A scratch variable. name: with its `$`."""

    name: str


@define(eq=False, kw_only=True)
class MapName(Expression):
    """A map, whole. name: with its `@`."""

    name: str


@define(eq=False, kw_only=True)
class MapAccess(Expression):
    """An entry of a map; several keys are a `TupleLiteral`."""

    map: MapName
    key: Expression


@define(eq=False, kw_only=True)
class Parameter(Expression):
    """A positional parameter, `$1`; 0 is their number, `$#`."""

    number: int


@define(eq=False, kw_only=True)
class FunctionCall(Expression):
    """A call of a function or macro.

    Attributes:
        name: the function's name.
        arguments: what it is given.
        expanded: where the macros that it comes from were called, innermost first; empty for the
            script's own.
    """

    name: str
    arguments: list[Expression]
    expanded: tuple[Span, ...] = ()


@define(eq=False, kw_only=True)
class TypeArgument(Expression):
    """A type as a call's argument: `typeof(...)`."""

    type: TypeName


@define(eq=False, kw_only=True)
class Unary(Expression):
    """`! ~ - * &` before an operand, or `++x x++ --x x--`."""

    operator: str
    operand: Expression


@define(eq=False, kw_only=True)
class Binary(Expression):
    """An operator between two operands."""

    operator: str
    left: Expression
    right: Expression


@define(eq=False, kw_only=True)
class Conditional(Expression):
    """`c ? a : b`, or `if c {a} else {b}`; `otherwise` is None where there is no else."""

    condition: Expression
    then: Expression
    otherwise: Expression | None


@define(eq=False, kw_only=True)
class FieldAccess(Expression):
    """`x.name` or `x->name`."""

    of: Expression
    name: str


@define(eq=False, kw_only=True)
class TupleAccess(Expression):
    """`x.0`."""

    of: Expression
    index: int


@define(eq=False, kw_only=True)
class Index(Expression):
    """`x[i]`."""

    of: Expression
    index: Expression


@define(eq=False, kw_only=True)
class Cast(Expression):
    """`(type)x`."""

    type: TypeName
    operand: Expression


@define(eq=False, kw_only=True)
class TupleLiteral(Expression):
    """`(a, b)`."""

    items: list[Expression]


@define(eq=False, kw_only=True)
class RecordLiteral(Expression):
    """`(a=1, b=2)`."""

    fields: list[tuple[str, Expression]]


@define(eq=False, kw_only=True)
class SizeOf(Expression):
    """`sizeof(type or expression)`."""

    type: TypeName


@define(eq=False, kw_only=True)
class OffsetOf(Expression):
    """`offsetof(type or expression, field.field)`."""

    type: TypeName
    fields: list[str]


@define(eq=False, kw_only=True)
class TypeInfo(Expression):
    """`typeinfo(type or expression)`."""

    type: TypeName


@define(eq=False, kw_only=True)
class CompileTime(Expression):
    """`comptime x`."""

    operand: Expression


@define(eq=False, kw_only=True)
class BlockExpression(Expression):
    """Statements in braces; `value` is what a last expression without a semicolon gives."""

    statements: list[Statement]
    value: Expression | None = None


# --- statements


@define(eq=False, kw_only=True)
class Statement(Node):
    """The base of all statements."""


@define(eq=False, kw_only=True)
class Evaluate(Statement):
    """An expression for its effect.

    Attributes:
        expression: the expression.
        discarded: True where its value is thrown away on purpose, `_ = x`.
    """

    expression: Expression
    discarded: bool = False


@define(eq=False, kw_only=True)
class Declare(Statement):
    """`let $x: type = value`."""

    variable: ScratchVariable
    type: TypeName | None
    value: Expression | None


@define(eq=False, kw_only=True)
class Assign(Statement):
    """`target = value`; `$x += 1` is `$x = $x + 1`.

    Attributes:
        compound: True where an operator stood before the equals sign.
    """

    target: ScratchVariable | MapName | MapAccess
    value: Expression
    compound: bool = False


@define(eq=False, kw_only=True)
class While(Statement):
    """`while (c) {}`."""

    condition: Expression
    body: BlockExpression


@define(eq=False, kw_only=True)
class Unroll(Statement):
    """`unroll(n) {}`."""

    count: Expression
    body: BlockExpression


@define(eq=False, kw_only=True)
class ForRange(Statement):
    """`for $i : first..last {}`."""

    variable: ScratchVariable
    first: Expression
    last: Expression
    body: BlockExpression


@define(eq=False, kw_only=True)
class ForMap(Statement):
    """`for $kv : @map {}`."""

    variable: ScratchVariable
    map: MapName
    body: BlockExpression


@define(eq=False, kw_only=True)
class JumpStatement(Statement):
    """`break`, `continue` or `return`.

    Attributes:
        kind: the word.
        value: what stands behind `return`; None: nothing.
    """

    kind: str
    value: Expression | None = None


# --- the whole


@define(eq=False, kw_only=True)
class AttachPoint(Node):
    """The place of a probe, as written."""

    text: str


@define(eq=False, kw_only=True)
class ProbeDefinition(Node):
    """Attach points, a predicate and a block."""

    points: list[AttachPoint]
    predicate: Expression | None
    body: BlockExpression


@define(eq=False, kw_only=True)
class Macro(Node):
    """`macro name(parameters) {}`; parameters are ScratchVariable, MapName or Name."""

    name: str
    parameters: list[Expression]
    body: BlockExpression


@define(eq=False, kw_only=True)
class MapDeclaration(Node):
    """`let @m = hash(10);`."""

    name: str
    kind: str
    entries: int


@define(eq=False, kw_only=True)
class ConfigSetting(Node):
    """A line of the config block."""

    name: str
    value: str | int | bool


@define(eq=False, kw_only=True)
class ImportDirective(Node):
    """`import "path";`."""

    path: str


@define(eq=False, kw_only=True)
class ParsedScript(Node):
    """All of a script.

    Attributes:
        definitions: C definitions and preprocessor lines, as text with their spans.
    """

    definitions: list[tuple[str, Span]]
    settings: list[ConfigSetting]
    imports: list[ImportDirective]
    macros: list[Macro]
    maps: list[MapDeclaration]
    probes: list[ProbeDefinition]


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below one, in the order of the text."""
    for name in attrs.fields_dict(type(node)):
        yield from _nodes(getattr(node, name))


def _nodes(value: Any) -> Iterator[Node]:
    """Yield the nodes in an attribute's value: a node, or those in a list or tuple, at any
    depth.
    """
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _nodes(one)


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it."""
    yield node
    for child in children(node):
        yield from walk(child)
