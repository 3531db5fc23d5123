"""Expressions, types as written, and blocks: from text to tree."""

from __future__ import annotations

from typing import Final

from . import tree
from .scanner import DIGITS, Scanner
from .source import ScriptError
from .tree import Expression, TypeName

#: operators by rank, the weakest first
_RANKS: Final = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<=", ">=", "<", ">"),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_RANK: Final = {operator: rank for rank, group in enumerate(_RANKS) for operator in group}
_OPERATORS: Final = sorted(_RANK, key=len, reverse=True)
#: what looks like an operator and is none: assignments, increments, arrows
_OTHERS: Final = ("<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "++", "--", "->")
COMPOUND: Final = ("<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=")
_BUILTINS: Final = frozenset({"args", "ctx", "kstack", "nsecs", "pid", "tid", "ustack"})
PLAIN_TYPES: Final = frozenset(
    {
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "string",
        "void",
        "buffer",
        "int8_t",
        "int16_t",
        "int32_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint32_t",
        "uint64_t",
        "char",
        "short",
        "int",
        "long",
        "size_t",
        "ssize_t",
        "uintptr_t",
        "u8",
        "u16",
        "u32",
        "u64",
        "s8",
        "s16",
        "s32",
        "s64",
        "min_t",
        "max_t",
        "sum_t",
        "avg_t",
        "count_t",
        "stats_t",
        "umin_t",
        "umax_t",
        "usum_t",
        "uavg_t",
        "ustats_t",
        "inet",
        "timestamp",
        "username_t",
        "ksym_t",
        "usym_t",
        "kstack_t",
        "ustack_t",
        "macaddr_t",
        "cgroup_path_t",
        "unsigned",
        "signed",
        "float",
        "double",
    }
)


def is_builtin(name: str) -> bool:
    """Return True for a builtin's name that is never read as a type: `args`, `pid`, `arg0`, `sarg1`
    and a few others.
    """
    return name in _BUILTINS or (
        name.startswith(("arg", "sarg")) and name.lstrip("sarg").isdecimal()
    )


class ExpressionParser(Scanner):
    """The parser of expressions. Methods read from the present position on, and return a node.

    They raise ScriptError where the text is wrong.
    """

    def expression(self) -> Expression:
        """Read an expression; its weakest operator is `?:`."""
        start = self.beyond(self.at)
        condition = self._binary(0, self.unary())
        return self._conditional(condition, start)

    def continued(self, left: Expression) -> Expression:
        """Read operators and operands that follow an operand; return the whole expression.

        Args:
            left: the operand, which was read already.
        """
        start = self._start(left)
        return self._conditional(self._binary(0, left), start)

    def _conditional(self, condition: Expression, start: int) -> Expression:
        """Read `? b : c` behind a condition; return the condition alone where none follows.

        In `a ?: c` the condition is also the value where it holds.

        Args:
            condition: the condition.
            start: index where it begins.
        """
        behind = self.at
        if not self.take("?"):
            self.at = behind
            return condition
        then = condition if self.text[self.beyond(self.at) :][:1] == ":" else self.expression()
        self.expect(":")
        otherwise = self.expression()
        return tree.Conditional(
            span=self.since(start), condition=condition, then=then, otherwise=otherwise
        )

    def _start(self, node: tree.Node) -> int:
        """Return the offset in the text where a node begins."""
        return self._starts[node.span.line - 1] + node.span.column - 1

    def _operator(self) -> str:
        """Return the binary operator at this position, without moving on; "": there is none.

        An assignment (`+=`) is none, nor is a `/` before `{`, which ends a predicate.
        """
        at = self.beyond(self.at)
        if self.text.startswith(_OTHERS, at):
            return ""
        operator = next((one for one in _OPERATORS if self.text.startswith(one, at)), "")
        if operator == "/" and self.text[self.beyond(at + 1) :][:1] == "{":
            return ""  # the end of a predicate
        return operator

    def _binary(self, least: int, left: Expression) -> Expression:
        """Read operators of some ranks and their right operands, and return the whole expression:
        `left` where none follows.

        Args:
            least: operators of this rank and above are read; a greater rank binds closer.
            left: the operand in front of them, which was read already.
        """
        start = self._start(left)
        while (operator := self._operator()) and _RANK[operator] >= least:
            self.at = self.beyond(self.at) + len(operator)
            right = self._binary(_RANK[operator] + 1, self.unary())
            left = tree.Binary(span=self.since(start), operator=operator, left=left, right=right)
        return left

    def unary(self) -> Expression:
        """Read an operand with its prefixes (`!x`, `-x`, `++x`, `&x`) and suffixes (`x.y`, `x[i]`,
        `x++`).
        """
        self.skip()
        start = self.at
        for operator in ("++", "--"):
            if self.take(operator):
                operand = self.unary()
                self._countable(operand)
                return tree.Unary(span=self.since(start), operator=f"{operator}x", operand=operand)
        if self.take("&"):
            self.skip()
            here = self.at
            if self.peek() not in ("$", "@"):
                raise self.fail("address-of operator (&) can only be used on a map or variable")
            name = self.sigil()
            kind = tree.ScratchVariable if name[0] == "$" else tree.MapName
            return tree.Unary(
                span=self.since(start), operator="&", operand=kind(span=self.since(here), name=name)
            )
        for operator in ("*", "!", "~", "-"):
            if self.peek() == operator and not (operator == "!" and self.peek(1) == "="):
                self.at += 1
                operand = self.unary()
                return tree.Unary(span=self.since(start), operator=operator, operand=operand)
        return self.postfix(self.primary())

    def _countable(self, operand: Expression) -> None:
        """Check that `++` or `--` is applied to a variable or a map.

        Raises:
            ScriptError: it is not.
        """
        if not isinstance(operand, tree.ScratchVariable | tree.MapName | tree.MapAccess):
            raise self.fail("increment/decrement requires a variable or map", operand.span)

    def postfix(self, operand: Expression) -> Expression:
        """Read fields, indexes and increments behind an operand, and return the whole expression.

        Args:
            operand: the operand, which was read already; it is returned itself where none follow.
        """
        start = self._start(operand)
        while True:
            behind = self.at
            self.skip()
            if self.peek() == "." and self.peek(1) != ".":
                self.at += 1
                self.skip()
                if self.peek().isdecimal():
                    number = self.word_digits()
                    operand = tree.TupleAccess(span=self.since(start), of=operand, index=number)
                else:
                    name = self.identifier("expected field name after '.'")
                    operand = tree.FieldAccess(span=self.since(start), of=operand, name=name)
            elif self.text.startswith("->", self.at):
                self.at += 2
                name = self.identifier("expected field name after '->'")
                operand = tree.FieldAccess(span=self.since(start), of=operand, name=name)
            elif self.peek() == "[":
                self.at += 1
                index = self.expression()
                self.expect("]")
                operand = tree.Index(span=self.since(start), of=operand, index=index)
            elif self.text.startswith(("++", "--"), self.at):
                operator = self.text[self.at : self.at + 2]
                if not isinstance(operand, tree.ScratchVariable | tree.MapName | tree.MapAccess):
                    raise self.fail(
                        "increment/decrement requires a variable or map",
                        self.between(self.at, self.at + 2),
                    )
                self.at += 2
                operand = tree.Unary(
                    span=self.since(start), operator=f"x{operator}", operand=operand
                )
            else:
                self.at = behind
                return operand

    def word_digits(self) -> int:
        """Move on behind decimal digits, of which the first is here, and return the number: a
        tuple's index, or a positional parameter's number.

        Raises:
            ScriptError: it has more digits than numbers of 64 bits.
        """
        start = self.at
        while self.peek().isdecimal():
            self.at += 1
        if self.at - start > DIGITS:
            raise self.fail("the number is too large", self.between(start, self.at))
        return int(self.text[start : self.at])

    def primary(self) -> Expression:
        """Read an operand without operators before or behind it (-x, x.y, x[i], x++).

        A literal, a name, a variable, a map, a call, a block, or what is in parentheses.
        """
        self.skip()
        start = self.at
        char = self.peek()
        if char == "(":
            return self._parentheses()
        if char == "{":
            return self.block(True)
        if char == "@":
            return self.map()
        if char == "$":
            return self._dollar()
        if char == '"':
            value = self.string()
            return tree.StringLiteral(span=self.since(start), value=value)
        if char.isdecimal():
            number, text = self.number()
            return tree.NumberLiteral(span=self.since(start), value=number, text=text)
        word = self.word_at(start)
        if not word:
            raise self.fail("expected expression")
        if word in ("if", "sizeof", "offsetof", "typeinfo", "comptime"):
            self.at += len(word)
            return self._keyword(word, start)
        self.at += len(word)
        span = self.since(start)
        if word in ("true", "false"):
            return tree.BooleanLiteral(span=span, value=word == "true")
        if self.text[self.beyond(self.at) :][:1] == "(":
            return self._call(word, start)
        return tree.Name(span=span, name=word)

    def _keyword(self, word: str, start: int) -> Expression:
        """Read an expression that begins with a keyword, which was read already.

        Args:
            word: the keyword.
            start: index where it begins.
        """
        if word == "if":
            return self._if(start)
        if word == "comptime":
            operand = self.unary()
            return tree.CompileTime(span=self.since(start), operand=operand)
        self.expect("(")
        of = self.type_or_expression()
        if word == "offsetof":
            self.expect(",")
            fields = [self.identifier("expected field name")]
            while self.take("."):
                fields.append(self.identifier("expected field name"))
            self.expect(")")
            return tree.OffsetOf(span=self.since(start), type=of, fields=fields)
        self.expect(")")
        kind = tree.SizeOf if word == "sizeof" else tree.TypeInfo
        return kind(span=self.since(start), type=of)

    def condition(self) -> Expression:
        """Read the expression behind `if`, `while` or `unroll`, in parentheses or not."""
        if self.take("("):
            condition = self.expression()
            self.expect(")")
            return condition
        return self.unary()

    def _if(self, start: int) -> Expression:
        """Read what follows `if`.

        Args:
            start: index where the `if` begins.
        """
        condition = self.condition()
        then = self.block(True)
        behind = self.at
        otherwise: Expression | None = None
        if self.take("else"):
            self.skip()
            if self.peek() == "{":
                otherwise = self.block(True)
            elif self.word_ahead() == "if":
                otherwise = self.primary()
            else:
                raise self.fail("expected '{' or 'if' after 'else'")
        else:
            self.at = behind
        return tree.Conditional(
            span=self.since(start), condition=condition, then=then, otherwise=otherwise
        )

    def map(self) -> Expression:
        """Read a map, or an entry of one; several keys, `@x[a, b]`, become one tuple."""
        start = self.at
        name = self.sigil()
        whole = tree.MapName(span=self.since(start), name=name)
        behind = self.at
        if not self.take("["):
            self.at = behind
            return whole
        keys = [self.expression()]
        while self.take(","):
            keys.append(self.expression())
        self.expect("]")
        span = self.since(start)
        key = keys[0] if len(keys) == 1 else tree.TupleLiteral(span=span, items=keys)
        return tree.MapAccess(span=span, map=whole, key=key)

    def _dollar(self) -> Expression:
        """Read a variable `$name`, a positional parameter `$1`, or `$#`, the number of these
        parameters, which becomes a Parameter with number 0.
        """
        start = self.at
        if self.peek(1) == "#":
            self.at += 2
            return tree.Parameter(span=self.since(start), number=0)
        if self.peek(1).isdecimal():
            self.at += 1
            number = self.word_digits()
            if not 1 <= number < 1 << 63:
                raise self.fail(
                    f"param ${number} is out of integer range [1, {(1 << 63) - 1}]",
                    self.since(start),
                )
            return tree.Parameter(span=self.since(start), number=number)
        name = self.sigil()
        return tree.ScratchVariable(span=self.since(start), name=name)

    def _call(self, name: str, start: int) -> Expression:
        """Read a call's arguments, behind its name.

        Args:
            name: the function's name.
            start: index where the name begins.
        """
        self.expect("(")
        arguments: list[Expression] = []
        if not self.take(")"):
            arguments.append(self._argument())
            while self.take(","):
                arguments.append(self._argument())
            self.expect(")")
        return tree.FunctionCall(span=self.since(start), name=name, arguments=arguments)

    def _argument(self) -> Expression:
        """Read an argument: an expression, or `typeof(...)`."""
        start = self.beyond(self.at)
        if self.word_ahead() == "typeof":
            of = self.type_or_expression()
            return tree.TypeArgument(span=self.since(start), type=of)
        return self.expression()

    # --- what stands in parentheses

    def _parentheses(self) -> Expression:
        """Read what begins with a parenthesis: a tuple, a record, a cast, or an expression."""
        start = self.at
        self.at += 1
        if self.take(")"):
            return tree.TupleLiteral(span=self.since(start), items=[])
        return self._record(start) or self._cast(start) or self._group(start)

    def _record(self, start: int) -> Expression | None:
        """Read a record, `(name=value, ...)`.

        Args:
            start: index of its opening parenthesis, which was read already.

        Returns:
            The record; None, without moving on: no `name =` follows.
        """
        at = self.beyond(self.at)
        word = self.word_at(at)
        behind = self.beyond(at + len(word))
        if (
            not word
            or is_builtin(word)
            or self.text[behind : behind + 1] != "="
            or self.text[behind + 1 : behind + 2] == "="
        ):
            return None
        fields: list[tuple[str, Expression]] = []
        while True:
            here = self.beyond(self.at)
            name = self.identifier("expected identifier")
            self.expect("=")
            value = self.expression()
            if name in dict(fields):
                raise self.fail(
                    f"Named argument list already contains name: {name}", self.since(here)
                )
            fields.append((name, value))
            if not self.take(","):
                break
        self.expect(")")
        return tree.RecordLiteral(span=self.since(start), fields=fields)

    def _cast(self, start: int) -> Expression | None:
        """Read a cast, `(type)operand`.

        Args:
            start: index of its opening parenthesis, which was read already.

        Returns:
            The cast; None, without moving on: no type follows, or no operand behind it.
        """
        behind = self.at
        type_name = self._type_before(")")
        if type_name is None:
            self.at = behind
            return None
        self.expect(")")
        span = self.since(start)
        ahead = self.text[self.beyond(self.at) :][:1]
        if not (ahead and (ahead.isalnum() or ahead in '_$@"(-!~*&')):
            self.at = behind
            return None
        operand = self.unary()
        return tree.Cast(span=span, type=type_name, operand=operand)

    def _group(self, start: int) -> Expression:
        """Read an expression in parentheses, or a tuple; the opening parenthesis was read already.

        Args:
            start: index of that parenthesis.
        """
        first = self.expression()
        if not self.take(","):
            self.expect(")")
            return first
        items = [first]
        while not self.take(")"):
            items.append(self.expression())
            if not self.take(","):
                self.expect(")")
                break
        return tree.TupleLiteral(span=self.since(start), items=items)

    # --- types

    def type_name(self) -> TypeName:
        """Read a type, such as `struct x *`, `unsigned long` or `uint8[4]`; brackets without a
        number give None in its `sizes`. Whether there is such a type is not looked at.
        """
        start = self.beyond(self.at)
        name = self.identifier("expected type name")
        if name in ("struct", "union", "enum"):
            name += " " + self.identifier("expected identifier")
        elif name in ("unsigned", "signed", "long"):
            while self.word_ahead() in ("long", "int", "char", "short", "unsigned"):
                name += " " + self.identifier("expected type name")
        pointers = 0
        sizes = list[int | None]()
        while True:
            behind = self.at
            if self.take("*"):
                pointers += 1
            elif self.take("["):
                if self.take("]"):
                    sizes.append(None)
                else:
                    sizes.append(self.number()[0])
                    self.expect("]")
            else:
                self.at = behind
                return TypeName(
                    span=self.since(start), name=name, pointers=pointers, sizes=tuple(sizes)
                )

    def _type_before(self, ends: str) -> TypeName | None:
        """Read a type that one of some characters must follow; behind `typeof(...)` any may.

        Args:
            ends: the characters, such as ";)".

        Returns:
            The type; None, without moving on: something else is written there.
        """
        behind = self.at
        word = self.word_ahead()
        if word == "typeof":
            return self.type_or_expression()
        if (
            not word
            or is_builtin(word)
            or word in ("sizeof", "offsetof", "typeinfo", "comptime", "if")
        ):
            return None
        failures = len(self.found.messages)
        try:
            name = self.type_name()
        except ScriptError:
            del self.found.messages[failures:]
            self.at = behind
            return None
        following = self.text[self.beyond(self.at) :][:1]
        if not following or following not in ends:
            self.at = behind
            return None
        return name

    def type_or_expression(self) -> TypeName:
        """Read `typeof(...)`, a type, or an expression whose type is meant.

        A single word that is no type of the language may be either: it is read as an expression,
        and is also the result's `name`.
        """
        start = self.beyond(self.at)
        if self.take("typeof"):
            self.expect("(")
            inner = self.type_or_expression()
            self.expect(")")
            return inner
        behind = self.at
        name = self._type_before(";,=){}")
        if name is not None and (
            name.name in PLAIN_TYPES or " " in name.name or name.pointers or name.sizes
        ):
            return name
        self.at = behind
        expression = self.expression()
        word = expression.name if isinstance(expression, tree.Name) else ""
        return TypeName(span=self.since(start), name=word, expression=expression)

    # --- blocks

    def block(self, gives: bool) -> tree.BlockExpression:
        """Read statements in braces. The subclass that parses statements has this method.

        Args:
            gives: True where the last expression may be the block's value.
        """
        raise NotImplementedError
