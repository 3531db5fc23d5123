"""Filters in ftrace's language: tests of fields, joined by `&&`, `||` and `!`.

    len > 3 && (name ~ "crc*" || !(flags & 0x10))

`&&` binds closer than `||`, `!` negates what stands behind it. Numbers are compared as the field's
type has them: with its width, and signed for s8 to s64. A test of what could not be read is false.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from attrs import frozen

from ..regs import Regs
from ..symbols import Symbols
from ._event import Event
from ._messages import make_error
from ._plans import comm, pid
from ._styles import STYLES, Value

# (fetched values, registers, return address, probed address) -> keep it
Predicate = Callable[[tuple[Value, ...], Regs, int, int], bool]

MAX_TESTS: Final = 256
MAX_DEPTH: Final = 64
NUMERIC: Final = ("==", "!=", "<=", "<", ">=", ">", "&")
TEXTUAL: Final = ("==", "!=", "~")
_TOKEN: Final = re.compile(
    r'\s*(?:(?P<quoted>"[^"]*"|\'[^\']*\')|(?P<open>["\'])'
    r"|(?P<number>-?[0-9]\w*)|(?P<word>CPUS\{[^}]*\}|[A-Za-z_][\w.]*)"
    r"|(?P<op>&&|\|\||==|!=|<=|>=|[<>&~!()])|(?P<bad>\S))",
    re.ASCII,
)
#: what every event has: name -> (Python for its value, text or not)
COMMON: Final = {
    "common_pid": ("pid(regs)", False),
    "common_cpu": ("regs.cpu", False),
    "cpu": ("regs.cpu", False),
    "CPU": ("regs.cpu", False),
    "comm": ("comm(regs)", True),
    "COMM": ("comm(regs)", True),
    "common_comm": ("comm(regs)", True),
}


@frozen
class EventField:
    """A field of an event, which filters compare and histograms count.

    Attributes:
        name: as written.
        number: of the argument, from 0; -1: it is none.
        python: an expression for its value, in the names of a Predicate.
        text: it is text, else a number.
        bits: width of the number.
        signed: the number is signed.
    """

    name: str
    number: int
    python: str
    text: bool
    bits: int = 64
    signed: bool = False

    def wrap(self, value: int) -> int:
        """Return a constant as the field's type has it: cut to its width, and signed where the
        field is.
        """
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.signed and value >> self.bits - 1 else value


@frozen
class Test:
    """A comparison of a field with a constant.

    Attributes:
        field: what is compared.
        op: one of NUMERIC or TEXTUAL.
        value: the constant; of `field.function`, the function's address.
        ends: of `field.function`, the function's end: addresses from `value` up to it are equal;
            else 0.
    """

    field: EventField
    op: str
    value: int | str
    ends: int = 0


@frozen
class Not:
    """The negation of a part of a filter."""

    of: Node


@frozen
class Join:
    """Parts of a filter, joined by `&&`, or, with `either`, by `||`."""

    parts: tuple[Node, ...]
    either: bool


Node = Test | Not | Join


@frozen
class Filter:
    """A parsed filter.

    Attributes:
        text: as written.
        tree: its tests.
        python: the same as an expression of Python: v has the arguments' values, regs the
            registers, back the return address, func the probed address; other names are keys of
            `constants`.
        constants: names in the expression -> objects: constants that were written, and functions.
        keep: function of (v, regs, back, func) that tells whether a hit passes.
    """

    text: str
    tree: Node
    python: str
    constants: dict[str, Any]
    keep: Predicate

    @property
    def compilable(self) -> bool:
        """Whether programs can evaluate the filter: of the arguments it compares only numbers."""
        return all(test.field.number >= 0 and not test.field.text for test in tests(self.tree))


def parse_filter(text: str, event: Event, symbols: Symbols) -> Filter | None:
    """Parse a filter for an event.

    Args:
        text: the filter; "0", "none" and blanks mean none.
        event: whose fields it may name.
        symbols: give functions for `field.function`.

    Returns:
        The filter; None: there is none.

    Raises:
        EventError: the filter is wrong.
    """
    if text.strip() in ("", "0", "none"):
        return None
    tree = _FilterParser(text, fields(event), symbols).whole()
    constants: dict[str, Any] = {"comm": comm, "pid": pid}
    code = _python(tree, constants)
    return Filter(
        text.strip(),
        tree,
        code,
        constants,
        eval(f"lambda v, regs, back, func: {code}", dict(constants)),
    )


def tests(tree: Node) -> Iterator[Test]:
    """Yield all tests of a filter, from left to right."""
    if isinstance(tree, Test):
        yield tree
    else:
        for part in (tree.of,) if isinstance(tree, Not) else tree.parts:
            yield from tests(part)


def fields(event: Event) -> dict[str, EventField]:
    """Return the fields of an event by name, those that every event has (COMMON) and its place's
    among them; arrays, floating-point numbers and structures are none.
    """
    out = {name: EventField(name, -1, python, text) for name, (python, text) in COMMON.items()}
    ours = (
        {"__probe_func": "func", "__probe_ret_ip": "back"}
        if event.kind == "r"
        else {"__probe_ip": "regs.pc"}
    )
    out |= {name: EventField(name, -1, python, False) for name, python in ours.items()}
    for number, arg in enumerate(event.args):
        kind = arg.type
        style = STYLES[kind.style]
        if style.compared and not kind.count:
            python = style.compared.format(f"v[{number}]")
            out[arg.name] = EventField(
                arg.name, number, python, style.compared_as_text, kind.bits, style.signed
            )
    return out


class _FilterParser:
    """The parser of a filter, by recursive descent.

    Attributes:
        tokens: (kind, text, column) of each; the last one's kind is "end".
        at: index of the next token.
        count: tests so far.
    """

    def __init__(self, text: str, known: dict[str, EventField], symbols: Symbols) -> None:
        """Split a filter into tokens.

        Args:
            text: the filter.
            known: the fields by name.
            symbols: give functions for `field.function`.
        """
        self.text = text
        self.known = known
        self.symbols = symbols
        self.tokens = [
            (str(m.lastgroup), m[str(m.lastgroup)], m.start(str(m.lastgroup)))
            for m in _TOKEN.finditer(text)
        ]
        self.tokens.append(("end", "", len(text)))
        self.at = self.count = 0

    def fail(self, kind: str, at: int, *facts: object) -> NoReturn:
        """Raise the EventError of a kind at a column; facts fill its message."""
        raise make_error(kind, at, self.text, *facts)

    def take(self) -> tuple[str, str, int]:
        """Return the next token as (kind, text, column), and go on behind it; the end is never
        passed.
        """
        token = self.tokens[self.at]
        self.at += token[0] != "end"
        return token

    def next_is(self, text: str) -> bool:
        """Return True if the next token is this operator."""
        return self.tokens[self.at][:2] == ("op", text)

    def whole(self) -> Node:
        """Parse the whole filter.

        Raises:
            EventError: it is wrong, or more follows behind it.
        """
        tree = self.either(0)
        kind, text, at = self.take()
        if text == ")":
            self.fail("TOO_MANY_CLOSE", at)
        if kind != "end":
            self.fail("INVALID_FILTER", at, text)
        return tree

    def either(self, depth: int) -> Node:
        """Parse tests joined by `||`.

        Args:
            depth: number of brackets and negations around them.

        Raises:
            EventError: a part is wrong.
        """
        return self.joined("||", depth)

    def joined(self, op: str, depth: int) -> Node:
        """Parse parts joined by an operator; a single part is returned itself.

        Args:
            op: `||` or `&&`; parts of `||` are parts joined by `&&`.
            depth: number of brackets and negations around the parts.

        Raises:
            EventError: a part is wrong.
        """
        parts = [self.joined("&&", depth) if op == "||" else self.one(depth)]
        while self.next_is(op):
            self.take()
            parts.append(self.joined("&&", depth) if op == "||" else self.one(depth))
        return parts[0] if len(parts) == 1 else Join(tuple(parts), op == "||")

    def one(self, depth: int) -> Node:
        """Parse a test, a negation, or a filter in brackets.

        Args:
            depth: number of brackets and negations around it.

        Raises:
            EventError: it is wrong, or `depth` is beyond MAX_DEPTH.
        """
        kind, text, at = self.take()
        if depth > MAX_DEPTH:
            self.fail("TOO_MANY_PREDS", at)
        if text == "!" and kind == "op":
            return Not(self.one(depth + 1))
        if text == "(" and kind == "op":
            tree = self.either(depth + 1)
            if not self.next_is(")"):
                self.fail("TOO_MANY_OPEN", at)
            self.take()
            return tree
        return self.test(kind, text, at)

    def test(self, kind: str, name: str, at: int) -> Test:
        """Parse a test, FIELD OP VALUE, whose first token is taken already; counts it in `count`.

        Args:
            kind: of the first token.
            name: its text, the field: NAME, NAME.function or NAME.ustring.
            at: its column.

        Raises:
            EventError: the field, the operator or the value is wrong, or there are too many tests.
        """
        self.count += 1
        if self.count > MAX_TESTS:
            self.fail("TOO_MANY_PREDS", at)
        if kind == "end":
            self.fail("NO_FILTER", at)
        plain, dot, function = name.partition(".")
        if (
            kind != "word"
            or plain not in self.known
            or (dot and function not in ("function", "ustring"))
        ):
            self.fail("FIELD_NOT_FOUND", at, name, ", ".join(self.known))
        field = self.known[plain]
        kind, op, op_at = self.take()
        if kind != "op" or op not in (*NUMERIC, "~"):
            self.fail("INVALID_OP", op_at, op)
        if op not in (TEXTUAL if field.text else NUMERIC):
            self.fail("ILLEGAL_FIELD_OP", op_at, op, plain, "text" if field.text else "a number")
        if function == "function":
            return self.within(field, op, *self.take())
        return Test(field, op, self.value(field, *self.take()))

    def within(self, field: EventField, op: str, kind: str, text: str, at: int) -> Test:
        """Make the test `FIELD.function OP NAME`: whether the field is an address in that function.

        Args:
            field: the field.
            op: "==" or "!=".
            kind: of the token with the name, which is taken already.
            text: that token: a function's name, or an address in it.
            at: its column.

        Raises:
            EventError: the field is text, the operator is another one, or there is no such
                function.
        """
        if field.text or op not in ("==", "!="):
            self.fail("IP_FIELD_ONLY", at)
        symbol = (
            self.symbols.find(text) if kind == "word" else self.symbols.covering(_number(text) or 0)
        )
        if symbol is None:
            self.fail("NO_FUNCTION", at, text)
        return Test(field, op, symbol.address, max(self.symbols.extent(symbol), symbol.address + 1))

    def value(self, field: EventField, kind: str, text: str, at: int) -> int | str:
        """Return the constant of a test: a text, or a number, cut to the width of the field's type
        and signed where that is; of a character in quotes its number.

        Args:
            field: the field that is compared.
            kind: of the token with the value, which is taken already.
            text: that token.
            at: its column.

        Raises:
            EventError: it is no value for such a field.
        """
        if kind == "open":
            self.fail("MISSING_QUOTE", at)
        if field.text:
            if kind != "quoted":
                self.fail("INVALID_VALUE" if kind == "word" else "EXPECT_STRING", at, text)
            return text[1:-1]
        if kind == "quoted" and len(text) == 3:
            return ord(text[1])
        if kind == "quoted":
            self.fail("EXPECT_DIGIT", at, text)
        number = _number(text) if kind == "number" else None
        if number is None:
            self.fail("ILLEGAL_INTVAL" if kind == "number" else "INVALID_VALUE", at, text)
        return field.wrap(number)


def _number(text: str) -> int | None:
    """Return a number as C writes it, of 64 bits at most; None where the text is none."""
    if not re.fullmatch(
        r"-?(0x[0-9a-f]{1,16}|0[0-7]{0,22}|[1-9][0-9]{0,19})", text, re.ASCII | re.IGNORECASE
    ):
        return None
    value = int(re.sub("^(-?)0(?=[0-7])", r"\g<1>0o", text), 0)
    return value if -1 << 63 <= value < 1 << 64 else None


# --- Python


def _python(node: Node, constants: dict[str, Any]) -> str:
    """Return a part of a filter as an expression of Python in v, regs, back and func, for eval().

    Args:
        node: the part.
        constants: name -> object; what the expression names is added.
    """
    if isinstance(node, Not):
        return f"(not {_python(node.of, constants)})"
    if isinstance(node, Join):
        word = " or " if node.either else " and "
        return f"({word.join(_python(part, constants) for part in node.parts)})"
    return _test(node, constants)


def _test(test: Test, constants: dict[str, Any]) -> str:
    """Return a test as an expression of Python; it is false where the field's argument is None.

    Args:
        test: the test.
        constants: name -> object; the constant or function that the expression names is added. A
            mask, or the bounds of a function, stand in the expression itself.
    """
    field = test.field
    op = test.op
    name = f"c{len(constants)}"
    value = field.python
    if test.ends:
        code = f"({'' if op == '==' else 'not '}{test.value} <= {value} < {test.ends})"
    elif op == "~":
        constants[name] = _glob(str(test.value))
        code = f"{name}({value}) is not None"
    elif op == "&":
        code = f"{value} & {test.value} != 0"
    else:
        constants[name] = test.value
        code = f"{value} {op} {name}"
    return f"(v[{field.number}] is not None and {code})" if field.number >= 0 else f"({code})"


def _glob(pattern: str) -> Callable[[str], Any]:
    """Return a function that gives a match where all of a text fits ftrace's glob, else None.

    Args:
        pattern: the glob: `*`, `?` and `[..]`, with `!` for "not in".
    """
    return re.compile(fnmatch.translate(pattern)).match
