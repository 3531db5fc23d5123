"""Filters in ftrace's language: tests of fields, joined by `&&`, `||` and `!`.

    len > 3 && (name ~ "crc*" || !(flags & 0x10))

`&&` binds closer than `||`, `!` negates what stands behind it. Numbers are compared as the field's type has them: with
its width, and signed for s8 to s64. A test of what could not be read is false.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

from attrs import frozen

from ..regs import Regs
from ..symbols import Symbols
from ._event import Event, Value
from ._messages import make_error
from ._plans import comm, pid

# (fetched values, registers, return address, probed address) -> keep it
Predicate = Callable[[tuple[Value, ...], Regs, int, int], bool]

MAX_TESTS: Final = 256
MAX_DEPTH: Final = 64
NUMERIC: Final = ("==", "!=", "<=", "<", ">=", ">", "&")
TEXTUAL: Final = ("==", "!=", "~")
_TOKEN: Final = re.compile(r'\s*(?:(?P<quoted>"[^"]*"|\'[^\']*\')|(?P<open>["\'])'
                           r"|(?P<number>-?[0-9]\w*)|(?P<word>CPUS\{[^}]*\}|[A-Za-z_][\w.]*)"
                           r"|(?P<op>&&|\|\||==|!=|<=|>=|[<>&~!()])|(?P<bad>\S))", re.ASCII)
#: what every event has: name -> (Python for its value, text or not)
COMMON: Final = {"common_pid": ("pid(regs)", False), "common_cpu": ("regs.cpu", False), "cpu": ("regs.cpu", False),
                 "CPU": ("regs.cpu", False),
                 "comm": ("comm(regs)", True), "COMM": ("comm(regs)", True), "common_comm": ("comm(regs)", True)}


@frozen
class Field:
    """A field of an event.

    Attributes:
        name: as written.
        number: of the argument; -1: none, `python` says what it is.
        text: it is text.
        bits: its width.
        signed: or not.
    """

    name: str
    number: int
    python: str
    text: bool
    bits: int = 64
    signed: bool = False

    def wrap(self, value: int) -> int:
        """A constant as the field's type has it."""
        value &= (1 << self.bits) - 1
        return value - (1 << self.bits) if self.signed and value >> self.bits - 1 else value


@frozen
class Test:
    """field op value; ends: for `.function`, the values from `value` up to there are equal."""

    field: Field
    op: str
    value: int | str
    ends: int = 0


@frozen
class Not:
    of: Node


@frozen
class Join:
    """`&&`, or with `either`, `||`."""

    parts: tuple[Node, ...]
    either: bool


Node = Test | Not | Join


@frozen
class Filter:
    """A parsed filter.

    Attributes:
        text: as written.
        tree: what it says.
        python: the same, as an expression of ours in v, regs, back and func (see
            Predicate), and constants, which has what was written.
        keep: whether a hit passes.
    """

    text: str
    tree: Node
    python: str
    constants: dict[str, Any]
    keep: Predicate

    @property
    def compilable(self) -> bool:
        """True if programs can ask it: only numbers among the arguments are looked at."""
        return all(test.field.number >= 0 and not test.field.text for test in tests(self.tree))


def parse_filter(text: str, event: Event, symbols: Symbols) -> Filter | None:
    """A filter for an event; None for "0", "none" and nothing at all, which clear it. EventError where it is wrong."""
    if text.strip() in ("", "0", "none"):
        return None
    tree = _Parser(text, fields(event), symbols).whole()
    constants: dict[str, Any] = {"comm": comm, "pid": pid}
    code = _python(tree, constants)
    return Filter(text.strip(), tree, code, constants, eval(f"lambda v, regs, back, func: {code}", dict(constants)))


def tests(tree: Node) -> Iterator[Test]:
    """All tests of a filter, from left to right."""
    if isinstance(tree, Test):
        yield tree
    else:
        for part in (tree.of,) if isinstance(tree, Not) else tree.parts:
            yield from tests(part)


def fields(event: Event) -> dict[str, Field]:
    """The fields of an event by name; arrays, floating-point numbers and structures are none."""
    out = {name: Field(name, -1, python, text) for name, (python, text) in COMMON.items()}
    ours = {"__probe_func": "func", "__probe_ret_ip": "back"} if event.kind == "r" else {"__probe_ip": "regs.pc"}
    out |= {name: Field(name, -1, python, False) for name, python in ours.items()}
    for number, arg in enumerate(event.args):
        kind = arg.type
        text = kind.style in ("string", "symbol", "symstr")
        if not kind.count and kind.style not in ("f", "value"):
            python = f"v[{number}]" if kind.style != "char" else f"ord(v[{number}])"
            out[arg.name] = Field(arg.name, number, python, text, kind.bits, kind.style == "s")
    return out


class _Parser:
    """The parser of a filter. Tokens are (kind, text, column)."""

    def __init__(self, text: str, known: dict[str, Field], symbols: Symbols) -> None:
        self.text = text
        self.known = known
        self.symbols = symbols
        self.tokens = [(str(m.lastgroup), m[str(m.lastgroup)], m.start(str(m.lastgroup)))
                       for m in _TOKEN.finditer(text)]
        self.tokens.append(("end", "", len(text)))
        self.at = self.count = 0

    def fail(self, kind: str, at: int, *facts: object) -> NoReturn:
        raise make_error(kind, at, self.text, *facts)

    def take(self) -> tuple[str, str, int]:
        token = self.tokens[self.at]
        self.at += token[0] != "end"
        return token

    def next_is(self, text: str) -> bool:
        return self.tokens[self.at][:2] == ("op", text)

    def whole(self) -> Node:
        tree = self.either(0)
        kind, text, at = self.take()
        if text == ")":
            self.fail("TOO_MANY_CLOSE", at)
        if kind != "end":
            self.fail("INVALID_FILTER", at, text)
        return tree

    def either(self, depth: int) -> Node:
        return self.joined("||", depth)

    def joined(self, op: str, depth: int) -> Node:
        parts = [self.joined("&&", depth) if op == "||" else self.one(depth)]
        while self.next_is(op):
            self.take()
            parts.append(self.joined("&&", depth) if op == "||" else self.one(depth))
        return parts[0] if len(parts) == 1 else Join(tuple(parts), op == "||")

    def one(self, depth: int) -> Node:
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
        self.count += 1
        if self.count > MAX_TESTS:
            self.fail("TOO_MANY_PREDS", at)
        if kind == "end":
            self.fail("NO_FILTER", at)
        plain, dot, function = name.partition(".")
        if kind != "word" or plain not in self.known or (dot and function not in ("function", "ustring")):
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

    def within(self, field: Field, op: str, kind: str, text: str, at: int) -> Test:
        """`field.function == name`: an address in that function."""
        if field.text or op not in ("==", "!="):
            self.fail("IP_FIELD_ONLY", at)
        symbol = self.symbols.find(text) if kind == "word" else self.symbols.covering(_number(text) or 0)
        if symbol is None:
            self.fail("NO_FUNCTION", at, text)
        return Test(field, op, symbol.address, max(self.symbols.extent(symbol), symbol.address + 1))

    def value(self, field: Field, kind: str, text: str, at: int) -> int | str:
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
    """A number as C writes it, 64 bits at most, or None."""
    if not re.fullmatch(r"-?(0x[0-9a-f]{1,16}|0[0-7]{0,22}|[1-9][0-9]{0,19})", text, re.ASCII | re.IGNORECASE):
        return None
    value = int(re.sub("^(-?)0(?=[0-7])", r"\g<1>0o", text), 0)
    return value if -1 << 63 <= value < 1 << 64 else None


# --- Python

def _python(node: Node, constants: dict[str, Any]) -> str:
    if isinstance(node, Not):
        return f"(not {_python(node.of, constants)})"
    if isinstance(node, Join):
        return f"({(' or ' if node.either else ' and ').join(_python(part, constants) for part in node.parts)})"
    return _test(node, constants)


def _test(test: Test, constants: dict[str, Any]) -> str:
    field, op, name = test.field, test.op, f"c{len(constants)}"
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
    """ftrace's glob: `*`, `?` and `[..]`, with `!` for "not in"."""
    return re.compile(fnmatch.translate(pattern)).match
