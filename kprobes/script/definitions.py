"""C definitions of a script: structures, unions, enumerations, typedefs, and constants by
`#define`.

A small reader of declarations; `headers` has the preprocessor. Types of the guest are in its debug
information.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from attrs import evolve

from . import layout, types, world
from .headers import HeaderError, Headers, Preprocessor, without_comments
from .printing import divide
from .scanner import Scanner, integer
from .source import Diagnostics, ScriptError, ScriptSource, Span
from .types import ValueType

#: operator of a constant expression -> the function of its two values; a divisor is not 0, and a
#: shift is of 0 to 63 bits (_Constant looks before)
_OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "/": divide,
    "%": lambda value, by: value - by * divide(value, by),
    "||": lambda value, other: int(bool(value or other)),
    "&&": lambda value, other: int(bool(value and other)),
    "==": lambda value, other: int(value == other),
    "!=": lambda value, other: int(value != other),
    "<": lambda value, other: int(value < other),
    ">": lambda value, other: int(value > other),
    "<=": lambda value, other: int(value <= other),
    ">=": lambda value, other: int(value >= other),
}

_TOKEN: Final = re.compile(
    r"[A-Za-z_]\w*|0[xX][0-9a-fA-F]+\w*|\d+\w*|<<|>>|[{}()\[\];:,*=+\-|&~^%/.!<>]|\"[^\"]*\""
    r"|'(?:[^'\\]|\\(?:[abfnrtv'\"\\]|[0-3]?[0-7]{1,2}|x[0-9a-fA-F]{1,2}))'"
)
#: letter of an escape -> number of the character
_ESCAPES: Final = dict(zip("abfnrtv'\"\\", b"\a\b\f\n\r\t\v'\"\\", strict=True))
_OF_CONDITIONS: Final = re.compile(
    r"0[xX][0-9a-fA-F]+\w*|\d+\w*|&&|\|\||[=!<>]=|<<|>>|[()+\-*/%~!<>&|^]|\S"
)
_WORDS: Final = frozenset(
    {
        "unsigned",
        "signed",
        "long",
        "short",
        "int",
        "char",
        "_Bool",
        "bool",
        "void",
        "float",
        "double",
    }
)
_QUALIFIERS: Final = frozenset({"const", "volatile", "static", "inline", "__restrict", "restrict"})


class Definitions:
    """The C definitions of a script.

    Attributes:
        constants: names of `#define` and of enumerators -> their numbers.
        enumerators: names of enumerators -> the enumeration's type.
        texts: names of `#define` -> string literals.
        macros: names of `#define` -> the text that stands for them, for those that are neither.
        functions: names of `#define` with parameters: conditions ask for them, and no more.
    """

    def __init__(self, bits: int = 64) -> None:
        """Begin without definitions.

        Args:
            bits: bits of the guest's addresses.
        """
        self._bits = bits
        self._types: dict[str, ValueType] = {}
        self.constants: dict[str, int] = {}
        self.enumerators: dict[str, types.EnumType] = {}
        self.texts: dict[str, bytes] = {}
        self.macros: dict[str, str] = {}
        self.functions: set[str] = set()

    def type(self, name: str) -> ValueType | None:
        """Return a type that the script defines, or a C integer type.

        Args:
            name: `struct foo`, a typedef, `unsigned int`.

        Returns:
            None: the script defines none of this name.
        """
        return self._types.get(name) or world.integer(name, self._bits)

    def constant(self, name: str) -> int | None:
        """Return the number of a constant; None: the name is defined, and stands for no number.

        Raises:
            KeyError: the name is not defined.
        """
        if name in self.texts or name in self.macros or name in self.functions:
            return None
        return self.constants[name]

    def forget(self, name: str) -> None:
        """Take back what a #define has given, as #undef says."""
        for known in (self.constants, self.texts, self.macros):
            known.pop(name, None)
        self.functions.discard(name)

    def names(self) -> Sequence[str]:
        """Return the names of types, for suggestions."""
        return [*self._types, *world.INTEGERS]

    def add(self, name: str, type: ValueType) -> None:
        """Enter a type under a name, such as `struct foo` or a typedef's."""
        self._types[name] = type


def read(
    parts: Sequence[tuple[str, Span]],
    bits: int,
    found: Diagnostics,
    headers: Headers | None = None,
) -> Definitions:
    """Read C definitions. Errors are noted in `found`; what stands before one in its part stays
    defined.

    Args:
        parts: (text, where it stands in the script) of each preprocessor line and C definition.
        bits: bits of the guest's addresses.
        found: where errors go.
        headers: headers that stand in front, and where others are; None: there are none.
    """
    out = Definitions(bits)
    headers = headers or Headers()
    reader = Preprocessor(
        headers,
        out.constant,
        lambda line: _directive(line, out),
        lambda text, header: _Reader(text, out, bits).all(header),
        _condition,
    )
    for path in headers.files:
        try:
            reader.take(f'#include "{path}"')
        except (HeaderError, _DefinitionError) as wrong:
            found.error(f"--include {path}: {wrong}", None, *wrong.hints)
    for text, span in parts:
        try:
            reader.take(without_comments(text))
        except (HeaderError, _DefinitionError) as wrong:
            found.error(f"C definition: {wrong}", span, *wrong.hints)
    if reader.unfinished:
        found.error("C definition: an #endif is missing", parts[-1][1] if parts else None)
    return out


def _condition(text: str) -> int:
    """Return the value of an #if's expression, in which numbers stand for all names.

    Raises:
        HeaderError: it is none.
    """
    parser = _ConditionExpression(_OF_CONDITIONS.findall(text), {})
    try:
        value = parser.expression(0)
    except _DefinitionError as wrong:
        raise HeaderError(f"#if {text}: {wrong}") from None
    if parser.peek():
        raise HeaderError(f"#if {text}: '{parser.peek()}' is not expected")
    return value


class _DefinitionError(Exception):
    """A definition is not understood. Caught by read(), which notes it as an error of the
    script.
    """

    def __init__(self, reason: str, *hints: str) -> None:
        """Make an exception.

        Args:
            reason: what is wrong, as a clause.
            hints: what to do.
        """
        super().__init__(reason)
        self.hints = hints


def _directive(text: str, out: Definitions) -> None:
    """Read a preprocessor line, and keep what a #define gives its name in `out`.

    A quoted text goes into `out.texts`, a constant expression into `out.constants`, and anything
    else as it is written into `out.macros`; of a #define with parameters only the name is kept, in
    `out.functions`. An #undef takes a name out of all of them. Lines of other words (#line, #error)
    are ignored.

    Args:
        text: the line, which begins with `#`; comments are blanks.
        out: what is defined so far; changed.

    Raises:
        _DefinitionError: the line is a #pragma, or a #define without a name, or of a text with a
            wrong escape sequence.
    """
    text = text.replace("\\\n", " ")
    match = re.match(r"#\s*(\w+)\s*(.*)", text, re.DOTALL)
    if match is None:
        return
    word = match.group(1)
    rest = match.group(2).strip()
    if word == "undef":
        out.forget(rest)
    if word == "pragma":
        raise _DefinitionError(f"#pragma {rest}: layouts by pragmas are not supported")
    if word != "define":
        return
    named = re.match(r"([A-Za-z_]\w*)(\()?\s*(.*)", rest, re.DOTALL)
    if named is None:
        raise _DefinitionError(f"#define {rest}: a name is missing")
    if named.group(2):  # bpftrace gives no parameters either
        out.functions.add(named.group(1))
        return
    name = named.group(1)
    value = named.group(3).strip()
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        scanner = Scanner(value, Diagnostics(ScriptSource("", value)))
        try:
            out.texts[name] = scanner.string()
        except ScriptError as wrong:
            raise _DefinitionError(f"#define {name}: {wrong.messages[0].text}") from None
        return
    number = constant(value, out.constants)
    if number is None:
        out.macros[name] = value
    else:
        out.constants[name] = number


def constant(text: str, known: dict[str, int]) -> int | None:
    """Return the value of a constant expression in C; None: it is none.

    Args:
        text: the expression.
        known: constants by name.
    """
    tokens = _TOKEN.findall(text)
    if _TOKEN.sub("", text).strip():
        return None
    parser = _Constant(tokens, known)
    try:
        value = parser.expression(0)
    except _DefinitionError:
        return None
    return value if parser.at == len(tokens) else None


def _character(text: str) -> int:
    """Return the number of a character of C, as it stands between the apostrophes.

    Args:
        text: the character, or an escape that _TOKEN knows.
    """
    if text[0] != "\\":
        return ord(text)
    if text[1] == "x":
        return int(text[2:], 16)
    return _ESCAPES[text[1]] if text[1] in _ESCAPES else int(text[1:], 8)


class _Constant:
    """A parser of constant expressions, by the precedence of operators.

    Attributes:
        tokens: tokens of the text.
        known: constants by name.
        at: index of the next token.
    """

    RANKS: ClassVar[dict[str, int]] = {
        "|": 1,
        "^": 2,
        "&": 3,
        "<<": 4,
        ">>": 4,
        "+": 5,
        "-": 5,
        "*": 6,
        "/": 6,
        "%": 6,
    }

    def __init__(self, tokens: Sequence[str], known: dict[str, int]) -> None:
        """Begin at the first token.

        Args:
            tokens: tokens of the text.
            known: constants by name.
        """
        self.tokens = tokens
        self.known = known
        self.at = 0

    def peek(self) -> str:
        """Return the next token; "" at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def expression(self, least: int) -> int:
        """Read an expression, and return its value.

        Args:
            least: an operator of this rank or below ends it.

        Raises:
            _DefinitionError: it is no constant expression, divides by zero, or shifts by other than
                0 to 63 bits.
        """
        value = self.operand()
        while (rank := self.RANKS.get(self.peek(), -1)) > least:
            sign = self.peek()
            self.at += 1
            other = self.expression(rank)
            if sign in "/%" and not other:
                raise _DefinitionError("a division by zero")
            if sign in ("<<", ">>") and not 0 <= other < 64:
                raise _DefinitionError("a shift too far")
            value = _OPERATIONS[sign](value, other)
        return value

    def operand(self) -> int:
        """Read an operand, and return its value.

        That is a number, a character, a known name, or an expression in parentheses; `-`, `~` and
        `+` may stand before it.

        Raises:
            _DefinitionError: it is something else, a parenthesis is not closed, or the character is
                none of ASCII, whose number depends on whether `char` has a sign.
        """
        token = self.peek()
        self.at += 1
        if token == "(":
            value = self.expression(0)
            if self.peek() != ")":
                raise _DefinitionError("expected ')'")
            self.at += 1
            return value
        if token in ("-", "~", "+"):
            value = self.operand()
            return {"-": -value, "~": ~value, "+": value}[token]
        if token in self.known:
            return self.known[token]
        if token[:1] == "'":
            code = _character(token[1:-1])
            if code > 127:
                raise _DefinitionError(f"{token} is not in ASCII")
            return code
        number = integer(token) if token[:1].isdecimal() else ""
        if not isinstance(number, int):
            raise _DefinitionError(f"{token or 'nothing'} is no number")
        return number


class _ConditionExpression(_Constant):
    """A parser of the expressions of #if, in which there are comparisons."""

    RANKS: ClassVar[dict[str, int]] = {
        "||": 1,
        "&&": 2,
        "|": 3,
        "^": 4,
        "&": 5,
        "==": 6,
        "!=": 6,
        "<": 7,
        ">": 7,
        "<=": 7,
        ">=": 7,
        "<<": 8,
        ">>": 8,
        "+": 9,
        "-": 9,
        "*": 10,
        "/": 10,
        "%": 10,
    }

    def operand(self) -> int:
        """Read an operand, and return its value; `!` may stand before it, too.

        Raises:
            _DefinitionError: it is something else, or a parenthesis is not closed.
        """
        if self.peek() != "!":
            return super().operand()
        self.at += 1
        return int(not self.operand())


class _Reader:
    """A reader of declarations, which moves on token by token."""

    def __init__(self, text: str, out: Definitions, bits: int) -> None:
        """Split the text into tokens.

        Args:
            text: the declarations.
            out: where definitions go.
            bits: bits of the guest's addresses.
        """
        self._tokens = _TOKEN.findall(text)
        self._at = 0
        self._out = out
        self._bits = bits

    def all(self, header: bool = False) -> None:
        """Read all declarations, and enter the structures, unions, enumerations and typedefs that
        they define. Lines that begin with `#` are read elsewhere (`_directive`).

        Args:
            header: True where functions and variables may be declared too; they are passed over.

        Raises:
            _DefinitionError: one of them is wrong, or has what is not supported.
        """
        while self._peek():
            if self._take(";"):
                continue
            if header and self._peek() not in ("typedef", "struct", "union", "enum"):
                self._pass_over()
                continue
            if self._take("typedef"):
                base, packed = self._specifier()
                for name, kind, _ in self._declarators(base):
                    self._out.add(name, kind)
                del packed
            else:
                self._specifier()
            self._attributes()
            if header and self._peek() != ";":
                self._pass_over()  # a function or variable of the type
            elif self._peek():
                self._expect(";")

    def _pass_over(self) -> None:
        """Move on behind a declaration, which ends with a semicolon or a function's body."""
        depth = 0
        while token := self._peek():
            self._at += 1
            depth += (token in "({[") - (token in ")}]")
            if not depth and token in (";", "}"):
                return

    # --- tokens

    def _peek(self, ahead: int = 0) -> str:
        """Return the next token, or one that is `ahead` of it; "" behind the end."""
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def _take(self, token: str) -> bool:
        """Move on if the next token is this one; return whether it was."""
        if self._peek() == token:
            self._at += 1
            return True
        return False

    def _expect(self, token: str) -> None:
        """Move on behind the next token, which must be this one.

        Raises:
            _DefinitionError: it is another one.
        """
        if not self._take(token):
            raise _DefinitionError(f"expected '{token}' where '{self._peek() or 'the end'}' stands")

    def _attributes(self) -> tuple[bool, int]:
        """Read `__attribute__((packed, aligned(4)))`; return (packed, alignment or 0)."""
        packed, aligned = False, 0
        while self._take("__attribute__"):
            depth = 0
            while self._peek():
                token = self._peek()
                packed = packed or token in ("packed", "__packed__")
                if token in ("aligned", "__aligned__") and self._peek(1) == "(":
                    number = integer(self._peek(2))
                    aligned = number if isinstance(number, int) else 0
                depth += (token == "(") - (token == ")")
                self._at += 1
                if not depth:
                    break
        return packed, aligned

    # --- types

    def _specifier(self) -> tuple[ValueType, bool]:
        """Read the type before declarators; return (the type, True where it was defined here).

        Raises:
            _DefinitionError: there is no such type.
        """
        while self._peek() in _QUALIFIERS:
            self._at += 1
        word = self._peek()
        if word in ("struct", "union", "enum"):
            self._at += 1
            return self._tagged(word)
        words = []
        while self._peek() in _WORDS or self._peek() in _QUALIFIERS:
            if self._peek() not in _QUALIFIERS:
                words.append(self._peek())
            self._at += 1
        if not words:
            self._at += 1
            words = [word]
        name = _normal(words)
        found = self._out.type(name)
        if found is None:
            raise _DefinitionError(f"there is no type {name or 'of nothing'}")
        return found, False

    def _tagged(self, kind: str) -> tuple[ValueType, bool]:
        """Read what follows struct, union or enum; return (type, True where it was defined here).

        A type with members in braces is defined and, if it has a name, entered; an enumeration by
        its name alone, too. A structure or union that is not known is returned without members and
        size.

        Args:
            kind: which of them.

        Raises:
            _DefinitionError: there is no such enumeration, or the members are not written well.
        """
        packed, _ = self._attributes()
        name = ""
        if self._peek() not in ("{", ""):
            name = self._peek()
            self._at += 1
        label = f"{kind} {name}" if name else f"{kind} (anonymous)"
        if not self._take("{"):
            known = self._out.type(label)
            if known is None and kind == "enum":
                raise _DefinitionError(f"there is no {label}")
            return known or types.StructType(label, 0, ()), False
        if kind == "enum":
            made: ValueType = self._enumeration(name)
        else:
            made = self._structure(kind, label, packed)
        if name:
            self._out.add(label, made)
            if kind == "enum":
                self._out.add(name, made)
        return made, True

    def _enumeration(self, name: str) -> ValueType:
        """Read enumerators up to the closing brace, and return the enumeration's type.

        Each enumerator is entered in `constants` and in `enumerators`; the type itself is not. The
        type has 32 bits, or 64 where a number is below -2**31 or above 2**32 - 1; it is signed
        where a number is negative.

        Args:
            name: the enumeration's name; "": it has none.

        Raises:
            _DefinitionError: they are not written well.
        """
        members = dict[int, str]()  # of names with the same number the first is printed
        names = list[str]()
        value = 0
        while not self._take("}"):
            member = self._peek()
            self._at += 1
            if self._take("="):
                parser = _Constant(self._tokens[self._at :], self._out.constants)
                value = parser.expression(0)
                self._at += parser.at
            members.setdefault(value, member)
            names.append(member)
            self._out.constants[member] = value
            value += 1
            if not self._take(","):
                self._expect("}")
                break
        low = min(members, default=0)
        high = max(members, default=0)
        wide = high >= 1 << (31 if low < 0 else 32) or low < -(1 << 31)
        made = types.EnumType(name, 64 if wide else 32, low < 0, members)
        self._out.enumerators |= dict.fromkeys(names, made)
        return made

    def _structure(self, kind: str, label: str, packed: bool) -> ValueType:
        """Read the members of a structure or union up to the closing brace, and return its type.

        Args:
            kind: "struct" or "union".
            label: its name.
            packed: True where an attribute in front of it says that it has no padding.

        Raises:
            _DefinitionError: it is not written well, or has what is not supported.
        """
        parts: list[tuple[str, ValueType, int | None]] = []
        while not self._take("}"):
            if not self._peek():
                raise _DefinitionError("expected '}'")
            base, defined = self._specifier()
            declared = self._declarators(base)
            if not declared and defined:
                declared = [("", base, None)]
            for name, member, width in declared:
                self._check_member(name, member, width)
            parts.extend(declared)
            self._attributes()
            if self._peek() != "}":
                self._expect(";")
        behind, aligned = self._attributes()
        return placed(kind, label, parts, self._bits, packed or behind, aligned)

    def _check_member(self, name: str, type: ValueType, width: int | None) -> None:
        """Raise a _DefinitionError for a member whose size is not known or whose bits are too many.

        Args:
            name: the member's; "": it has none.
            type: its type.
            width: bits of a bit field; None: it is none.
        """
        whole = type
        while isinstance(whole, types.ArrayType):
            whole = whole.element
        unknown = isinstance(whole, types.VoidType) or (
            isinstance(whole, types.StructType)
            and not whole.size
            and not whole.fields
            and not whole.name.endswith("(anonymous)")
            and self._out.type(whole.name) is None
        )
        if unknown:
            what = "field" if whole is type else "array"
            element = "" if whole is type else "element "
            shown = whole.name if isinstance(whole, types.StructType) else "void"
            raise _DefinitionError(
                f"{what} '{name}' has incomplete {element}type '{shown}'", "define it before"
            )
        bits = 8 * layout.size_in_guest(type, self._bits // 8)
        if width is not None and width > bits:
            raise _DefinitionError(
                f"width of bit-field '{name}' ({width} bits) exceeds the width of its type "
                f"({bits} bits)"
            )

    def _declarators(self, base: ValueType) -> list[tuple[str, ValueType, int | None]]:
        """Read declarators such as `*a, b[4], c : 3`, up to the semicolon, which is not read.

        An array of char becomes a StringType, with room for a NUL; `[]` has no elements; a pointer
        to a function is `void *`.

        Args:
            base: the type in front of them.

        Returns:
            (name, type, bits of a bit field or None) of each.

        Raises:
            _DefinitionError: they are not written well.
        """
        out: list[tuple[str, ValueType, int | None]] = []
        while self._peek() not in (";", ""):
            kind = base
            while self._peek() in ("*", *_QUALIFIERS):
                kind = types.PointerType(kind) if self._take("*") else kind
                while self._peek() in _QUALIFIERS:
                    self._at += 1
            if self._peek() == "(":
                name, kind = self._function()
            else:
                name = self._peek()
                self._at += 1
            sizes = []
            while self._take("["):
                if self._take("]"):
                    sizes.append(0)
                    continue
                parser = _Constant(self._tokens[self._at :], self._out.constants)
                sizes.append(parser.expression(0))
                self._at += parser.at
                self._expect("]")
            for size in reversed(sizes):
                text = kind == types.IntegerType(8, True)
                kind = types.StringType(size + 1) if text else types.ArrayType(kind, size)
            bits = None
            if self._take(":"):
                parser = _Constant(self._tokens[self._at :], self._out.constants)
                bits = parser.expression(0)
                self._at += parser.at
            self._attributes()
            out.append((name, kind, bits))
            if not self._take(","):
                break
        return out

    def _function(self) -> tuple[str, ValueType]:
        """Read `(*name)(...)`; return the name, and the type of a pointer to a function: `void *`.

        Raises:
            _DefinitionError: a parenthesis is not closed.
        """
        name, depth = "", 0
        while self._peek() not in (";", ","):
            token = self._peek()
            if not token:
                raise _DefinitionError("expected ')'")
            depth += (token == "(") - (token == ")")
            if not name and token.isidentifier():
                name = token
            self._at += 1
            if not depth and self._peek() != "(":
                break
        return name, types.PointerType(types.VoidType())


def _normal(words: Sequence[str]) -> str:
    """Return C's name of an integer type, its words in one order: "unsigned long" for "long int
    unsigned". A single word is returned as it is.
    """
    if len(words) == 1:
        return words[0]
    unsigned = "unsigned " if "unsigned" in words else ""
    rest = [word for word in words if word not in ("unsigned", "signed")]
    if "char" in rest:
        if unsigned:
            return "unsigned char"
        return "signed char" if "signed" in words else "char"
    if "double" in rest:
        return "double"
    rest = [word for word in rest if word != "int"] or ["int"]
    return unsigned + " ".join(rest)


def placed(
    kind: str,
    label: str,
    parts: Sequence[tuple[str, ValueType, int | None]],
    bits: int,
    packed: bool,
    aligned: int,
) -> types.StructType:
    """Return a structure or union with its members where C puts them.

    The members of an anonymous structure or union in it become its own.

    Args:
        kind: "struct" or "union".
        label: its name.
        parts: (name, type, bits of a bit field or None) of each member; the name of an anonymous
            structure or union is "".
        bits: bits of an address.
        packed: True where there is no padding.
        aligned: the least alignment that is asked for, or 0.
    """
    fields = list[types.RecordField]()
    at = 0
    size = 0
    most = max(aligned, 1)
    bit = 0
    for name, type, width in parts:
        unit = layout.size_in_guest(type, bits // 8)
        align = 1 if packed else alignment(type, bits)
        most = max(most, align)
        if kind == "union":
            at = bit = 0
        if width is not None:
            if width == 0 or bit // (8 * unit) != (bit + width - 1) // (8 * unit):
                bit = -(-bit // (8 * unit)) * 8 * unit
            start = bit // (8 * unit) * unit
            if width:
                fields.append(types.RecordField(name, type, start, bit - 8 * start, width))
            bit += width
            at = -(-bit // 8)
        else:
            at = -(-at // align) * align
            if not name and isinstance(type, types.StructType):
                fields += [evolve(part, offset=part.offset + at) for part in type.fields]
            else:
                fields.append(types.RecordField(name, type, at))
            at += unit
            bit = 8 * at
        size = max(size, at)
    return types.StructType(label, -(-size // most) * most, tuple(fields))


def alignment(type: ValueType, bits: int) -> int:
    """Return C's alignment of a type in bytes.

    Args:
        type: the type.
        bits: bits of an address.
    """
    if isinstance(type, types.ArrayType):
        return alignment(type.element, bits)
    if isinstance(type, types.StringType):
        return 1
    if isinstance(type, types.StructType):
        return max((alignment(field.type, bits) for field in type.fields), default=1)
    return max(1, layout.size_of(type, bits // 8))
