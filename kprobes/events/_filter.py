"""Filters in ftrace's language: tests of fields, joined by `&&`, `||` and `!`.

    len > 3 && (name ~ "crc*" || !(flags & 0x10))

`&&` binds closer than `||`, `!` negates what stands behind it. Numbers are compared as the field's
type has them: with its width, and signed for s8 to s64. A test of what could not be read is false.

A filter is one tree of tests. Three targets walk it: python_of() for Python, and by steps(), in the
order in which tests are made, _writer for programs and _recording for what a machine records by
itself. What a comparison is in each of them is a row of COMPARISONS.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
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


@frozen(kw_only=True)
class ComparisonRow:
    """A way to compare a field with a constant, and what it is for each target of filters.

    Attributes:
        python: whether it holds, an expression of Python; of `{value}`, which is a number or a
            text, of `{constant}`, and of `{end}`, where the test has one.
        denied: the same for whether it does not hold.
        jump: the condition of a program's jump (programs/assembler.py); "": only Python compares
            so.
        by_sign: what holds depends on whether the numbers are signed.
        recorded: `how` of a machine's RecordedTest; "": no machine compares so.
        constant: the object that `{constant}` stands for, made of what was written.
    """

    python: str
    denied: str
    jump: str = ""
    by_sign: bool = False
    recorded: str = ""
    constant: Callable[[int | str], Any] = lambda written: written


def _glob(pattern: int | str) -> Callable[[str], Any]:
    """Return a function that gives a match where all of a text fits ftrace's glob, else None.

    Args:
        pattern: the glob: `*`, `?` and `[..]`, with `!` for "not in".
    """
    return re.compile(fnmatch.translate(str(pattern))).match


#: name -> comparison. `within` compares addresses: numbers without a sign, from the constant up to
#: the end, which is not in it
COMPARISONS: Final[Mapping[str, ComparisonRow]] = {
    "equal": ComparisonRow(
        python="{value} == {constant}",
        denied="{value} != {constant}",
        jump="==",
        recorded="==",
    ),
    "less": ComparisonRow(
        python="{value} < {constant}",
        denied="{value} >= {constant}",
        jump="<",
        by_sign=True,
        recorded="<",
    ),
    "at most": ComparisonRow(
        python="{value} <= {constant}",
        denied="{value} > {constant}",
        jump="<=",
        by_sign=True,
        recorded="<=",
    ),
    "common bits": ComparisonRow(
        python="{value} & {constant} != 0",
        denied="{value} & {constant} == 0",
        jump="&",
        recorded="&",
    ),
    "within": ComparisonRow(
        python="{constant} <= {value} < {end}",
        denied="not {constant} <= {value} < {end}",
        jump="<",
        recorded="in",
    ),
    "glob": ComparisonRow(
        python="{constant}({value}) is not None",
        denied="{constant}({value}) is None",
        constant=_glob,
    ),
}
#: operator of tests of numbers -> (key of COMPARISONS, the result of the comparison that is asked
#: for)
NUMERIC: Final = {
    "==": ("equal", True),
    "!=": ("equal", False),
    "<=": ("at most", True),
    "<": ("less", True),
    ">=": ("less", False),
    ">": ("at most", False),
    "&": ("common bits", True),
}
#: the same of tests of text
TEXTUAL: Final = {"==": ("equal", True), "!=": ("equal", False), "~": ("glob", True)}
#: the same of tests whether an address is a function's
WITHIN: Final = {"==": ("within", True), "!=": ("within", False)}


@frozen
class EventField:
    """A field of an event, which filters compare and histograms count.

    Attributes:
        name: as written.
        number: of the argument, from 0; -1: it is none.
        python: an expression for its value, of the names that the code of Filter.keep has; `{}`
            stands for the argument's value.
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


@frozen(kw_only=True)
class Test:
    """A comparison of a field with a constant. It is false where the field cannot be read.

    Attributes:
        field: what is compared.
        how: key of COMPARISONS.
        holds: the result of the comparison with which the test is true.
        constant: what the field is compared with, as written; of `within` the first address.
        end: of `within`, the address behind the last one; else 0.
    """

    field: EventField
    how: str
    holds: bool
    constant: int | str
    end: int = 0

    @property
    def comparison(self) -> ComparisonRow:
        """The row of COMPARISONS."""
        return COMPARISONS[self.how]

    @property
    def signed(self) -> bool:
        """Whether numbers are compared as signed ones; addresses are not."""
        return self.field.signed and self.how != "within"


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
class FilterStep:
    """A test of a filter, and what comes after it.

    Attributes:
        test: the test.
        yes: what comes next where it is true: an index among steps(), of the next test; True: the
            hit passes the filter; False: it does not. `is` tells an index of 0 or 1 from these.
        no: the same where it is false.
    """

    test: Test
    yes: int | bool
    no: int | bool


@frozen
class Filter:
    """A parsed filter.

    Attributes:
        text: as written.
        tree: its tests.
        keep: function of (v, regs, back, func) that tells whether a hit passes: the arguments'
            values, the registers, the return address, the probed address.
    """

    text: str
    tree: Node
    keep: Predicate

    @property
    def compilable(self) -> bool:
        """Whether programs can evaluate the filter: each test is of an argument of the event, and
        of a number.
        """
        return all(
            test.field.number >= 0 and not test.field.text and test.comparison.jump
            for test in tests(self.tree)
        )


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
    names: dict[str, Any] = {}
    code = python_of(tree, [f"v[{n}]" for n in range(len(event.args))], (), names)
    keep = eval(f"lambda v, regs, back, func: {code}", names)
    return Filter(text.strip(), tree, keep)


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
            out[arg.name] = EventField(
                arg.name, number, style.compared, style.compared_as_text, kind.bits, style.signed
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
        if kind != "op" or op not in (NUMERIC | TEXTUAL):
            self.fail("INVALID_OP", op_at, op)
        operators = TEXTUAL if field.text else NUMERIC
        if op not in operators:
            self.fail("ILLEGAL_FIELD_OP", op_at, op, plain, "text" if field.text else "a number")
        if function == "function":
            return self.within(field, op, *self.take())
        how, holds = operators[op]
        constant = self.value(field, *self.take())
        return Test(field=field, how=how, holds=holds, constant=constant)

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
        if field.text or op not in WITHIN:
            self.fail("IP_FIELD_ONLY", at)
        if kind == "word":
            symbol = self.symbols.find(text)
        else:
            address = _number(text)
            symbol = None if address is None else self.symbols.covering(address)
        if symbol is None:
            self.fail("NO_FUNCTION", at, text)
        how, holds = WITHIN[op]
        end = max(self.symbols.extent(symbol), symbol.address + 1)
        return Test(field=field, how=how, holds=holds, constant=symbol.address, end=end)

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


# --- walks


def tests(tree: Node) -> Iterator[Test]:
    """Yield all tests of a filter, from left to right."""
    if isinstance(tree, Test):
        yield tree
    else:
        for part in (tree.of,) if isinstance(tree, Not) else tree.parts:
            yield from tests(part)


def steps(tree: Node) -> list[FilterStep]:
    """Return the tests of a filter in the order in which they are made, and where each leads."""
    found: list[FilterStep] = []
    _append_steps(tree, True, False, found)
    return found


def _append_steps(node: Node, yes: int | bool, no: int | bool, found: list[FilterStep]) -> None:
    """Append the tests of a part of a filter.

    Args:
        node: the part.
        yes: what comes next where it holds: see FilterStep.
        no: the same where it does not hold.
        found: the list that is extended.
    """
    if isinstance(node, Test):
        found.append(FilterStep(node, yes, no))
    elif isinstance(node, Not):
        _append_steps(node.of, no, yes, found)
    else:
        for part in node.parts[:-1]:
            after = len(found) + sum(1 for _ in tests(part))
            if node.either:
                _append_steps(part, yes, after, found)
            else:
                _append_steps(part, after, no, found)
        _append_steps(node.parts[-1], yes, no, found)


def python_of(
    node: Node, values: Sequence[str], readable: Container[int], names: dict[str, Any]
) -> str:
    """Return a part of a filter as an expression of Python.

    What users wrote as text is no part of the expression: it stands there by name.

    Args:
        node: the part.
        values: for each argument of the event an expression for its value, which is None where it
            cannot be read.
        readable: numbers of arguments that can always be read.
        names: name -> object; what the expression names is added, but for `regs`, the registers,
            `back`, the return address, and `func`, the probed address.
    """
    if isinstance(node, Not):
        return f"(not {python_of(node.of, values, readable, names)})"
    if isinstance(node, Join):
        word = " or " if node.either else " and "
        return f"({word.join(python_of(part, values, readable, names) for part in node.parts)})"
    field = node.field
    names |= {"comm": comm, "pid": pid}
    argument = values[field.number] if field.number >= 0 else ""
    value = field.python.format(argument)
    if field.signed and not node.signed:
        value = f"({value} & {(1 << field.bits) - 1})"
    constant = node.comparison.constant(node.constant)
    name = str(constant)
    if not isinstance(constant, int):
        name = f"constant{len(names)}"
        names[name] = constant
    form = node.comparison.python if node.holds else node.comparison.denied
    code = form.format(value=value, constant=name, end=node.end)
    if not argument or field.number in readable:
        return f"({code})"
    return f"({argument} is not None and {code})"
