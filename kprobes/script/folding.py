"""Parameters and constants: what is known before a script runs becomes a literal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
from attrs import define, evolve, field

from . import tree
from .scanner import integer
from .settings import NAMES, Settings
from .source import Diagnostics
from .tree import Expression, Node

_FLOW: Final = "unable to fold literals due to overflow or underflow"
#: names of the record of all settings
_CONFIG: Final = ("config", "__builtin_config")
_LITERALS: Final = (tree.NumberLiteral, tree.StringLiteral, tree.BooleanLiteral)
_MOST: Final = (1 << 64) - 1
_LEAST: Final = -(1 << 63)


@define
class Parameters:
    """The parameters that were given behind a script.

    Attributes:
        positional: texts of `$1`, `$2` ...
        named: `--name=value`; True where no value was given.
        asked: names that the script asked for -> (default, description).
        used: numbers of positional parameters that the script asked for; 0 is their count, `$#`.
    """

    positional: Sequence[str] = ()
    named: Mapping[str, str | bool] = field(factory=dict)
    asked: dict[str, tuple[object, str]] = field(factory=dict)
    used: set[int] = field(factory=set)

    @property
    def unused(self) -> Sequence[str]:
        """The positional parameters that the script did not ask for; none where it counts them."""
        if 0 in self.used:
            return ()
        return [text for n, text in enumerate(self.positional, 1) if n not in self.used]

    def text(self, number: int) -> str | None:
        """Return the text of the positional parameter `number`, from 1; None: it was not given.

        The number is entered in `used`.
        """
        self.used.add(number)
        return self.positional[number - 1] if number <= len(self.positional) else None


def fold(
    script: tree.ParsedScript, parameters: Parameters, settings: Settings, found: Diagnostics
) -> tree.ParsedScript:
    """Return a script with literals in place of parameters, settings, and arithmetic on literals.

    Args:
        script: the tree.
        parameters: what was given behind the script; what the script asks for is entered in
            `asked` and `used`.
        settings: the script's.
        found: where errors and warnings go.
    """
    folder = _Folder(parameters, settings, found)
    probes = [
        evolve(
            probe,
            predicate=folder.fold(probe.predicate),
            body=folder.fold(probe.body),
            points=[folder.point(point) for point in probe.points],
        )
        for probe in script.probes
    ]
    return evolve(script, probes=probes)


def number_of(text: str) -> int | None:
    """Return the number that the text of a parameter is; None: it is no number."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    value = integer(digits) if digits else ""
    return sign * value if isinstance(value, int) else None


@define
class _Folder:
    """The folding of one script: what is known at compile time becomes a literal.

    Methods return the literal, or the node as it was where it is known only when the script runs.

    Attributes:
        parameters: what was given behind the script.
        settings: the script's settings.
        found: where errors and warnings go.
    """

    parameters: Parameters
    settings: Settings
    found: Diagnostics

    def point(self, point: tree.AttachPoint) -> tree.AttachPoint:
        """Return an attach point with its `$1` and the like replaced; those that were not given
        stay.
        """

        def given(found: re.Match[str]) -> str:
            """Return a parameter's text, or as it stands what was not given."""
            text = self.parameters.text(int(found[1]))
            return found[0] if text is None else text

        return evolve(point, text=re.sub(r"\$([1-9][0-9]{0,18})", given, point.text))

    def fold(self, value: Any) -> Any:
        """Return a copy of a node in which all that is known at compile time is a literal.

        Args:
            value: a node, a list or tuple of nodes, or any other value, which is returned as it is.
        """
        if isinstance(value, (list, tuple)):
            return type(value)(self.fold(one) for one in value)
        if not isinstance(value, Node):
            return value
        if isinstance(value, tree.FunctionCall) and value.name == "str" and value.arguments:
            folded = self._string(value)
            if folded is not None:
                return folded
        if isinstance(value, tree.Parameter):
            return self._parameter(value)
        changes = {
            f.name: self.fold(getattr(value, f.name))
            for f in attrs.fields(type(value))
            if f.name != "span"
        }
        made = evolve(value, **changes) if changes else value
        rule = _RULES.get(type(made))
        return made if rule is None else rule(self, made)

    # --- parameters

    def _parameter(self, value: tree.Parameter) -> Expression:
        """Return the literal of a positional parameter: a number, or else a string.

        A parameter that was not given is 0, with a warning in `found`. `$#` is their number. The
        parameter is noted as used in `parameters`.
        """
        if value.number == 0:
            count = len(self.parameters.positional)
            self.parameters.used.add(0)
            return tree.NumberLiteral(span=value.span, value=count)
        text = self.parameters.text(value.number)
        if text is None:
            self.found.warn(
                f"Positional parameter ${value.number} is empty or not provided.", value.span
            )
            return tree.NumberLiteral(span=value.span, value=0)
        number = number_of(text)
        if number is None:
            return tree.StringLiteral(
                span=value.span, value=text.encode("utf-8", "surrogateescape")
            )
        return tree.NumberLiteral(span=value.span, value=number)

    def _string(self, call: tree.FunctionCall) -> Expression | None:
        """Return the text that `str($1)` or `str($1 + n, size)` is; None: the call is another.

        It is the parameter's text without its first n bytes, `size` bytes at most; "" for a
        parameter that was not given. An offset beyond the text is an error in `found`, and taken
        as 0.
        """
        of, skip = call.arguments[0], 0
        if isinstance(of, tree.Binary) and of.operator == "+":
            parts = (
                (of.left, of.right) if isinstance(of.left, tree.Parameter) else (of.right, of.left)
            )
            if isinstance(parts[0], tree.Parameter) and isinstance(parts[1], tree.NumberLiteral):
                of, skip = parts[0], parts[1].value
        if not isinstance(of, tree.Parameter) or of.number == 0:
            return None
        text = (self.parameters.text(of.number) or "").encode("utf-8", "surrogateescape")
        if skip > len(text):
            self.found.error(
                f"cannot use offset that exceeds string size ({skip} > {len(text)})", call.span
            )
            skip = 0
        text = text[skip:]
        size = call.arguments[1] if len(call.arguments) > 1 else None
        if isinstance(size, tree.NumberLiteral):
            text = text[: max(size.value, 0)]
        return tree.StringLiteral(span=call.span, value=text)

    def _option(self, call: tree.FunctionCall) -> Expression:
        """Return the literal of `getopt(name, default, description)`.

        That is the value given by that name, read as the default's type, or the default. Name,
        default and description are entered in `parameters.asked`. Errors are noted: where the value
        cannot be read, the default is returned; where the arguments are wrong, the call itself.
        """
        texts = [
            argument for argument in call.arguments if isinstance(argument, tree.StringLiteral)
        ]
        if not call.arguments or not isinstance(call.arguments[0], tree.StringLiteral):
            self.found.error("First argument to 'getopt' must be a string literal", call.span)
            return call
        name = call.arguments[0].value.decode("utf-8", "replace")
        default = (
            call.arguments[1]
            if len(call.arguments) > 1
            else tree.BooleanLiteral(span=call.span, value=False)
        )
        about = texts[-1].value.decode("utf-8", "replace") if len(call.arguments) == 3 else ""
        if not isinstance(default, tree.NumberLiteral | tree.StringLiteral | tree.BooleanLiteral):
            self.found.error(
                "Second argument to 'getopt' must be a string literal, integer literal, or a "
                "boolean literal.",
                default.span,
            )
            return call
        self.parameters.asked[name] = (default.value, about)
        given = self.parameters.named.get(name)
        if given is None:
            return evolve(default, span=call.span)
        if isinstance(default, tree.BooleanLiteral):
            if given is True or str(given).lower() in ("true", "1", "on", "yes"):
                return tree.BooleanLiteral(span=call.span, value=True)
            if str(given).lower() in ("false", "0", "off", "no"):
                return tree.BooleanLiteral(span=call.span, value=False)
            self.found.error(
                f"program command line option --{name} invalid boolean (value: {given})", None
            )
        elif isinstance(default, tree.NumberLiteral):
            number = number_of(str(given))
            if number is not None:
                return tree.NumberLiteral(span=call.span, value=number)
            self.found.error(
                f"program command line option --{name} invalid integer (value: {given})", None
            )
        elif given is True:
            self.found.error(f"Named parameter '{name}' needs a value: --{name}=...", call.span)
        else:
            return tree.StringLiteral(
                span=call.span, value=str(given).encode("utf-8", "surrogateescape")
            )
        return default

    # --- literals

    def _call(self, value: tree.FunctionCall) -> Expression:
        """Return the value of `config()` or `getopt()`; another call as it is."""
        if value.name in _CONFIG and not value.arguments:
            return self._config(value)
        return self._option(value) if value.name == "getopt" else value

    def _name(self, value: tree.Name) -> Expression:
        """Return the record of settings for the name `config`; another name as it is."""
        return self._config(value) if value.name in _CONFIG else value

    def _config(self, value: Expression) -> Expression:
        """Return a record with all settings, for `config()`.

        Args:
            value: the call or name that it replaces.
        """
        fields = [(name, self._literal(getattr(self.settings, name), value)) for name in NAMES]
        return tree.RecordLiteral(span=value.span, fields=fields)

    @staticmethod
    def _literal(value: bool | int | str, at: Expression) -> Expression:
        """Return a literal node for a value.

        Args:
            value: the value.
            at: the expression that it replaces, whose place in the script it gets.
        """
        if isinstance(value, bool):
            return tree.BooleanLiteral(span=at.span, value=value)
        if isinstance(value, int):
            return tree.NumberLiteral(span=at.span, value=value)
        return tree.StringLiteral(span=at.span, value=value.encode("utf-8", "surrogateescape"))

    def _field(self, value: tree.FieldAccess) -> Expression:
        """Return the member that `x.name` means of a record of literals; else the node itself."""
        parts = dict(value.of.fields) if isinstance(value.of, tree.RecordLiteral) else {}
        if value.name not in parts or not all(
            isinstance(part, _LITERALS) for part in parts.values()
        ):
            return value
        return evolve(parts[value.name], span=value.span)

    def _unary(self, value: tree.Unary) -> Expression:
        """Return the literal of an operator with a literal operand; else the node itself.

        A negative number of more than 64 bits is an error in `found`, and becomes 0.
        """
        of = value.operand
        if isinstance(of, tree.BooleanLiteral) and value.operator == "!":
            return tree.BooleanLiteral(span=value.span, value=not of.value)
        if not isinstance(of, tree.NumberLiteral):
            return value
        if value.operator == "!":
            return tree.BooleanLiteral(span=value.span, value=not of.value)
        if value.operator == "-":
            return self._number(value, -of.value)
        if value.operator == "~":
            result = ~of.value & _MOST if of.value >= 0 else ~of.value
            return tree.NumberLiteral(span=value.span, value=result)
        return value

    def _number(self, at: Expression, value: int) -> Expression:
        """Return a number as a literal; for one of more than 64 bits, note an error and return 0.

        Args:
            at: the expression that the literal replaces.
            value: the number.
        """
        if not _LEAST <= value <= _MOST:
            self.found.error(_FLOW, at.span)
            value = 0
        return tree.NumberLiteral(span=at.span, value=value)

    def _binary(self, value: tree.Binary) -> Expression:
        """Return the literal of an operator with two literal operands; else the node itself.

        A division by zero or a shift by too much is noted as an error, and the left operand
        returned. A result of more than 64 bits is an error, too, and becomes 0.
        """
        a, b = value.left, value.right
        if value.operator in ("&&", "||"):
            return self._logical(value, a, b)
        if (
            isinstance(a, tree.StringLiteral)
            and isinstance(b, tree.StringLiteral)
            and value.operator in ("==", "!=")
        ):
            same = a.value.partition(b"\0")[0] == b.value.partition(b"\0")[0]
            return tree.BooleanLiteral(span=value.span, value=same == (value.operator == "=="))
        if (
            isinstance(a, tree.BooleanLiteral)
            and isinstance(b, tree.BooleanLiteral)
            and value.operator in ("==", "!=")
        ):
            return tree.BooleanLiteral(
                span=value.span, value=(a.value == b.value) == (value.operator == "==")
            )
        if not isinstance(a, tree.NumberLiteral) or not isinstance(b, tree.NumberLiteral):
            return value
        compare = _COMPARISONS.get(value.operator)
        if compare is not None:
            return tree.BooleanLiteral(span=value.span, value=compare(a.value, b.value))
        if value.operator in ("/", "%") and not b.value:
            self.found.error(_FLOW, value.span)
            return a
        if value.operator in ("<<", ">>") and not 0 <= b.value < 64:
            self.found.error(_FLOW, value.span)
            return a
        result = _ARITHMETIC[value.operator](a.value, b.value)
        return self._number(value, result)

    def _logical(self, value: tree.Binary, a: Expression, b: Expression) -> Expression:
        """Return the literal that `&&` or `||` of two literals gives.

        Args:
            value: the expression.
            a: its left operand, folded.
            b: its right operand, folded.

        Returns:
            `value` itself, where an operand is no literal.
        """
        known = [
            bool(one.value) if isinstance(one, tree.NumberLiteral | tree.BooleanLiteral) else None
            for one in (a, b)
        ]
        if None in known:
            return value
        both = all(known) if value.operator == "&&" else any(known)
        return tree.BooleanLiteral(span=value.span, value=both)

    def _index(self, value: tree.Index) -> Expression:
        """Return the byte that `"text"[i]` is; the node itself where text or index are no literals.

        An index below 0 or behind the text's NUL is noted as an error.
        """
        if isinstance(value.of, tree.StringLiteral) and isinstance(value.index, tree.NumberLiteral):
            text = value.of.value + b"\0"
            if 0 <= value.index.value < len(text):
                return tree.NumberLiteral(span=value.span, value=text[value.index.value])
            self.found.error(
                f"the index {value.index.value} is out of bounds for array of size {len(text)}",
                value.span,
            )
        return value

    def _conditional(self, value: tree.Conditional) -> Expression:
        """Return the branch that is taken, where the condition is a literal; else the node itself.

        For a missing `else` that is an empty block.
        """
        known = value.condition
        if not isinstance(known, tree.NumberLiteral | tree.BooleanLiteral):
            return value
        chosen = value.then if known.value else value.otherwise
        return (
            chosen if chosen is not None else tree.BlockExpression(span=value.span, statements=[])
        )

    def _compile_time(self, value: tree.CompileTime) -> Expression:
        """Return the operand of comptime, where it is a literal; else the node itself."""
        known = isinstance(
            value.operand, tree.NumberLiteral | tree.BooleanLiteral | tree.StringLiteral
        )
        return value.operand if known else value


def _quotient(a: int, b: int) -> int:
    """Return a quotient, truncated toward zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": int.__eq__,
    "!=": int.__ne__,
    "<": int.__lt__,
    "<=": int.__le__,
    ">": int.__gt__,
    ">=": int.__ge__,
}
_ARITHMETIC: Final[dict[str, Callable[[int, int], int]]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "&": int.__and__,
    "|": int.__or__,
    "^": int.__xor__,
    "<<": int.__lshift__,
    ">>": int.__rshift__,
    "/": _quotient,
    "%": lambda a, b: a - _quotient(a, b) * b,
}
_RULES: Final[dict[type, Callable[..., Expression]]] = {
    tree.FunctionCall: _Folder._call,
    tree.Name: _Folder._name,
    tree.FieldAccess: _Folder._field,
    tree.Unary: _Folder._unary,
    tree.Binary: _Folder._binary,
    tree.Index: _Folder._index,
    tree.Conditional: _Folder._conditional,
    tree.CompileTime: _Folder._compile_time,
}
