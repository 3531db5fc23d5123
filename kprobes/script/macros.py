"""Macros: calls of them become blocks, in which parameters are what was passed.

A macro's own scratch variables get names that no other block has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs
from attrs import define, evolve, field

from . import tree
from .names import KNOWN
from .source import Diagnostics, Span, did_you_mean
from .tree import Expression, Macro, Node

#: how deep macros may call macros
DEEPEST: Final = 64


def expand(script: tree.ParsedScript, found: Diagnostics) -> tree.ParsedScript:
    """Return a script in which calls of macros are replaced by blocks, and which has no macros.

    Two macros of one name must differ in their parameters.

    Args:
        script: the script.
        found: where errors go.
    """
    macros: dict[str, list[Macro]] = {}
    for macro in script.macros:
        signatures = [_signature(other.parameters) for other in macros.get(macro.name, [])]
        if _signature(macro.parameters) in signatures:
            found.error(f"Redefinition of macro: {macro.name}", macro.span)
        macros.setdefault(macro.name, []).append(macro)
    expansion = _Expansion(macros, found)
    probes = [
        evolve(
            probe,
            predicate=expansion.copy(probe.predicate, {}, ()),
            body=expansion.copy(probe.body, {}, ()),
        )
        for probe in script.probes
    ]
    return evolve(script, probes=probes, macros=[])


def _signature(parameters: Sequence[Expression]) -> tuple[type, ...]:
    """Return the kinds of a macro's parameters (classes of `tree`): macros of one name differ in
    these.
    """
    return tuple(type(parameter) for parameter in parameters)


Bindings = dict[str, Expression]


@define
class _Expansion:
    """Copies trees, with parameters replaced.

    Attributes:
        macros: macros by name.
        found: where errors go.
        count: macros expanded so far, for fresh names.
        calls: where the macros that are being expanded were called, outermost first.
    """

    macros: dict[str, list[Macro]]
    found: Diagnostics
    count: int = 0
    calls: list[Span] = field(factory=list)

    def copy(self, value: Any, bindings: Bindings, inside: tuple[str, ...]) -> Any:
        """Return a copy of a node, or of a list of nodes, with calls of macros expanded.

        In a macro's body, parameters are replaced by the arguments, and own variables get fresh
        names. In `expanded`, a call gets the places where the macros around it were called,
        innermost first.

        Args:
            value: what to copy; what is no node is returned as it is.
            bindings: parameter -> what stands for it; `$x` of a macro's own -> its fresh name;
                filled.
            inside: names of the macros that are being expanded; (): the script's own text.
        """
        if isinstance(value, list):
            return [self.copy(one, bindings, inside) for one in value]
        if isinstance(value, tuple):
            return tuple(self.copy(one, bindings, inside) for one in value)
        if not isinstance(value, Node):
            return value
        if isinstance(value, tree.ScratchVariable | tree.MapName) and inside:
            return self._sigil(value, bindings)
        if isinstance(value, tree.Name):
            if value.name in bindings:
                return bindings[value.name]
            return self._called(value, value.name, [], inside)
        if isinstance(value, tree.FunctionCall):
            arguments = self.copy(value.arguments, bindings, inside)
            made = evolve(value, arguments=arguments, expanded=tuple(reversed(self.calls)))
            return self._called(made, value.name, arguments, inside)
        if isinstance(value, tree.TypeName):
            return self._type(value, bindings, inside)
        changes = {
            field.name: self.copy(getattr(value, field.name), bindings, inside)
            for field in attrs.fields(type(value))
            if field.name != "span"
        }
        return evolve(value, **changes)

    def _type(
        self, value: tree.TypeName, bindings: Bindings, inside: tuple[str, ...]
    ) -> tree.TypeName:
        """Return a copy of a type in a macro's body, with the macro's parameters replaced.

        Where the type's name is a parameter, an argument that is a type takes its place, and keeps
        its own asterisks and brackets before the written ones; an argument that is an expression
        makes the type that of the expression, unless asterisks or brackets are written. Parameters
        inside `typeof(...)` are replaced, too.

        Args:
            value: the type as written.
            bindings: parameter -> argument.
            inside: names of the macros that are being expanded.
        """
        bound = bindings.get(value.name)
        if isinstance(bound, tree.TypeArgument):
            inner = bound.type
            return evolve(
                inner, pointers=inner.pointers + value.pointers, sizes=(*inner.sizes, *value.sizes)
            )
        if bound is not None and not value.pointers and not value.sizes:
            return evolve(value, name="", expression=bound)
        return evolve(value, expression=self.copy(value.expression, bindings, inside))

    def _sigil(self, value: tree.ScratchVariable | tree.MapName, bindings: Bindings) -> Expression:
        """Return what stands for a variable or map in the macro's body.

        That is the argument, for a parameter. A variable of the macro's own gets a fresh name,
        which is entered in `bindings`. Other maps are an error.

        Args:
            value: the variable or map.
            bindings: name -> what stands for it; changed.
        """
        if value.name in bindings:
            return bindings[value.name]
        if isinstance(value, tree.MapName):
            self.found.error(
                f"Unhygienic access to map: {value.name}. Maps must be passed into the macro as "
                "arguments.",
                value.span,
            )
            return value
        self.count += 1
        fresh = evolve(value, name=f"{value.name}#{self.count}")
        bindings[value.name] = fresh
        return fresh

    def _called(
        self,
        value: Expression,
        name: str,
        arguments: list[Expression],
        inside: tuple[str, ...],
    ) -> Expression:
        """Return the block that a call of a macro becomes: its body, with the arguments in it.

        A call of another function is returned as it is, and so is a wrong call, which is noted as
        an error. A name alone, or a call of a function of the language, is no error where no macro
        fits. Where several macros fit, that with the most variables and maps as parameters is
        taken. A body of one literal becomes that literal. `container_of()` becomes arithmetic,
        unless it is a macro.

        Args:
            value: the call.
            name: name of what is called.
            arguments: of the call.
            inside: names of the macros that are being expanded.
        """
        candidates = self.macros.get(name)
        if not candidates:
            return _container(value) if name == "container_of" else value
        if name in inside or len(inside) >= DEEPEST:
            self.found.error(
                f"Recursive macro call detected. Call chain: {' > '.join([*inside, name])}",
                value.span,
            )
            return value
        fitting = [macro for macro in candidates if self._fits(macro, arguments)]
        if not fitting:
            if isinstance(value, tree.Name) or name in KNOWN:
                return value
            self._refuse(name, candidates, arguments, value)
            return value
        macro = max(
            fitting, key=lambda one: sum(not isinstance(p, tree.Name) for p in one.parameters)
        )
        self.count += 1
        own: Bindings = {}
        for parameter, argument in zip(macro.parameters, arguments, strict=True):
            assert isinstance(parameter, tree.Name | tree.ScratchVariable | tree.MapName)
            own[parameter.name] = argument
        self.calls.append(value.span)
        body: tree.BlockExpression = self.copy(macro.body, own, (*inside, name))
        self.calls.pop()
        if not body.statements and isinstance(
            body.value, tree.NumberLiteral | tree.StringLiteral | tree.BooleanLiteral
        ):
            return evolve(body.value, span=value.span)
        return evolve(body, span=value.span)

    @staticmethod
    def _fits(macro: Macro, arguments: list[Expression]) -> bool:
        """Return True where there are as many arguments as parameters, and each is of its
        parameter's kind: a variable for a variable, a map for a map, anything for a name.
        """
        if len(macro.parameters) != len(arguments):
            return False
        return all(
            isinstance(parameter, tree.Name) or type(parameter) is type(argument)
            for parameter, argument in zip(macro.parameters, arguments, strict=True)
        )

    def _refuse(
        self, name: str, candidates: list[Macro], arguments: list[Expression], at: Expression
    ) -> None:
        """Note the error of a call that no macro of its name takes.

        Args:
            name: the macro's name.
            candidates: the macros of that name.
            arguments: the call's arguments.
            at: the call.
        """
        counts = sorted({len(macro.parameters) for macro in candidates})
        if len(arguments) not in counts:
            expected = " or ".join(map(str, counts))
            self.found.error(
                f"Call to macro has wrong number arguments. Expected: {expected} but got "
                f"{len(arguments)}",
                at.span,
                *did_you_mean(name, ()),
            )
            return
        macro = next(one for one in candidates if len(one.parameters) == len(arguments))
        for parameter, argument in zip(macro.parameters, arguments, strict=True):
            if isinstance(parameter, tree.ScratchVariable) and not isinstance(
                argument, tree.ScratchVariable
            ):
                self.found.error(
                    "Mismatched arg to macro call. Macro expects a variable for arg "
                    f"{parameter.name} but got something else.",
                    argument.span,
                )
            elif isinstance(parameter, tree.MapName) and not isinstance(argument, tree.MapName):
                self.found.error(
                    f"Mismatched arg to macro call. Macro expects a map for arg {parameter.name} "
                    "but got something else.",
                    argument.span,
                )


def _container(value: Expression) -> Expression:
    """Return the pointer that `container_of(pointer, typeof(TYPE), member)` is.

    It is the pointer less the member's offset. Calls with other arguments stay as they are:
    inference refuses them.
    """
    if not isinstance(value, tree.FunctionCall) or len(value.arguments) != 3:
        return value
    pointer, kind, member = value.arguments
    fields = list[str]()
    while isinstance(member, tree.FieldAccess):
        fields.insert(0, member.name)
        member = member.of
    if not isinstance(kind, tree.TypeArgument) or not isinstance(member, tree.Name):
        return value
    at = value.span
    anything = tree.TypeName(span=at, name="void", pointers=1)
    untyped = tree.Cast(span=at, type=anything, operand=pointer)
    offset = tree.OffsetOf(span=at, type=kind.type, fields=[member.name, *fields])
    start = tree.Binary(span=at, operator="-", left=untyped, right=offset)
    return tree.Cast(
        span=at, type=evolve(kind.type, pointers=kind.type.pointers + 1), operand=start
    )
