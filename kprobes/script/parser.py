"""A whole script: from text to tree."""

from __future__ import annotations

import re
from typing import Final

from . import tree
from .expressions import COMPOUND, ExpressionParser
from .source import Diagnostics, ScriptSource, Span
from .tree import Expression, Statement

#: a probe's own name
_NAMED: Final = re.compile(r"\s*[A-Za-z_]\w*=(?!=)")
_DEFINITIONS: Final = ("struct", "union", "enum", "typedef")


def parse(source: ScriptSource, found: Diagnostics) -> tree.ParsedScript:
    """Return the tree of a script.

    Args:
        source: the text.
        found: where errors go.

    Raises:
        ScriptError: it does not follow the grammar.
    """
    return _Parser(source.text, found).script()


def parse_expression(source: ScriptSource, found: Diagnostics) -> Expression:
    """Return the tree of one expression.

    Args:
        source: the text.
        found: where errors go.

    Raises:
        ScriptError: the text is no expression, or more follows behind it.
    """
    parser = _Parser(source.text, found)
    expression = parser.expression()
    parser.skip()
    if not parser.ended:
        raise parser.fail("unexpected input")
    return expression


class _Parser(ExpressionParser):
    """The parser of statements, and of what is outside of blocks.

    Methods read from the present position on, and return a node. They raise ScriptError where the
    text is wrong.
    """

    def script(self) -> tree.ParsedScript:
        """Read the whole script, and return it.

        Raises:
            ScriptError: the text is wrong.
        """
        if self.text.startswith("#!"):
            self.at = self.text.find("\n") if "\n" in self.text else len(self.text)
        script = tree.ParsedScript(
            span=self.between(0, len(self.text)),
            definitions=[],
            settings=[],
            imports=[],
            macros=[],
            maps=[],
            probes=[],
        )
        self.skip()
        while not self.ended and self._definition(script):
            self.skip()
        configured = False
        while (word := self.word_ahead()) in ("config", "import"):
            if word == "import":
                script.imports.append(self._import())
            elif configured:
                raise self.fail("only one config block is allowed")
            else:
                configured = True
                self._config(script)
        self.skip()
        while not self.ended:
            self._item(script)
            self.skip()
        return script

    # --- before the probes

    def _definition(self, script: tree.ParsedScript) -> bool:
        """Read a preprocessor line or a C definition into the script.

        Returns:
            False, with nothing read: none is here.
        """
        start = self.at
        if self.peek() == "#":
            end = self.text.find("\n", start)
            self.at = len(self.text) if end < 0 else end
            while self.text[start : self.at].endswith("\\") and not self.ended:
                end = self.text.find("\n", self.at + 1)
                self.at = len(self.text) if end < 0 else end
        elif self.word_at(self.at) in _DEFINITIONS:
            self._braces()
        else:
            return False
        script.definitions.append((self.text[start : self.at], self.since(start)))
        return True

    def _braces(self) -> None:
        """Move on to behind a C definition, which is read later: its braces and its semicolon."""
        depth = 0
        while not self.ended:
            self.at = self.beyond(self.at)
            char = self.peek()
            depth += (char == "{") - (char == "}")
            self.at += 1
            if depth == 0 and char == ";":
                return
            if depth == 0 and char == "}":
                self._behind_braces()
                return
        raise self.fail("expected '}' to close a definition")

    def _behind_braces(self) -> None:
        """Move on to behind what may follow a C definition's braces: attributes, names, and a
        semicolon.
        """
        while self.word_ahead() == "__attribute__":
            self.expect("__attribute__")
            self.expect("(")
            depth = 1
            while depth and not self.ended:
                depth += (self.peek() == "(") - (self.peek() == ")")
                self.at += 1
        named = re.compile(r"[\w\s*,\[\]]*;").match(self.text, self.beyond(self.at))
        if named is not None:
            self.at = named.end()

    def _import(self) -> tree.ImportDirective:
        """Read `import "PATH";`, and return it; nothing is imported."""
        self.skip()
        start = self.at
        self.expect("import")
        self.skip()
        if self.peek() != '"':
            raise self.fail("expected string after 'import'")
        path = self.string().decode("utf-8", "surrogateescape")
        if not self.take(";"):
            raise self.fail("expected ';' after import")
        return tree.ImportDirective(span=self.since(start), path=path)

    def _config(self, script: tree.ParsedScript) -> None:
        """Read a config block into the script's settings: each value is a text in quotes, an
        integer, `true`, `false` or a name.
        """
        for word in ("config", "=", "{"):
            self.expect(word)
        while not self.take("}"):
            start = self.beyond(self.at)
            name = self.identifier("expected config key")
            self.expect("=")
            self.skip()
            value: str | int | bool
            if self.peek() == '"':
                value = self.string().decode("utf-8", "replace")
            elif self.peek().isdecimal():
                value = self.number()[0]
            else:
                value = self.identifier("expected string, int, boolean, or ident")
                if value in ("true", "false"):
                    value = value == "true"
            script.settings.append(
                tree.ConfigSetting(span=self.since(start), name=name, value=value)
            )
            if self.text[self.beyond(self.at) :][:1] != "}":
                self.expect(";")

    # --- probes and macros

    def _item(self, script: tree.ParsedScript) -> None:
        """Read a macro, a map declaration or a probe into the script.

        Functions of a script's own (`fn`) are an error; so are a config block and an import, which
        would have to stand before.
        """
        word = self.word_ahead()
        if word == "macro":
            script.macros.append(self._macro())
        elif word == "let":
            script.maps.append(self._declaration())
        elif word == "fn":
            raise self.fail(
                "functions of a script's own (fn) are not supported", None, "write a macro"
            )
        elif word == "config":
            raise self.fail("a config block stands before all probes, macros and map declarations")
        elif word == "import":
            raise self.fail("imports stand before all probes, macros and map declarations")
        else:
            script.probes.append(self._probe())

    def _macro(self) -> tree.Macro:
        """Read a macro: its name, its parameters (`$x`, `@x` or names), and its block."""
        start = self.at
        self.expect("macro")
        name = self.identifier("expected macro name")
        parameters: list[Expression] = []
        self.expect("(")
        if not self.take(")"):
            while True:
                self.skip()
                here = self.at
                if self.peek() == "$":
                    sigil = self.sigil()
                    parameters.append(tree.ScratchVariable(span=self.since(here), name=sigil))
                elif self.peek() == "@":
                    sigil = self.sigil()
                    parameters.append(tree.MapName(span=self.since(here), name=sigil))
                else:
                    word = self.identifier("expected macro argument ($var, @map, or identifier)")
                    parameters.append(tree.Name(span=self.since(here), name=word))
                if not self.take(","):
                    break
            self.expect(")")
        span = self.since(start)
        return tree.Macro(span=span, name=name, parameters=parameters, body=self.block(True))

    def _declaration(self) -> tree.MapDeclaration:
        """Read a map declaration: `let @x = KIND(ENTRIES);`, whose semicolon may be missing.

        Whether there is such a kind is not looked at.
        """
        start = self.at
        self.expect("let")
        self.skip()
        if self.peek() != "@":
            raise self.fail(
                "root-level let statements need to be map declarations, e.g. let @a = hash(2);"
            )
        name = self.sigil()
        self.expect("=")
        kind = self.identifier("expected map type name")
        self.expect("(")
        self.skip()
        if not self.peek().isdecimal():
            raise self.fail("expected positive integer for map declaration max entries")
        entries = self.number()[0]
        self.expect(")")
        self.take(";")
        return tree.MapDeclaration(span=self.since(start), name=name, kind=kind, entries=entries)

    def _probe(self) -> tree.ProbeDefinition:
        """Read attach points, a predicate, if there is one, and a block.

        A name in front, `name=`, is passed over, and so is a comma behind the last attach point.
        The probe's span is that of its attach points.
        """
        named = _NAMED.match(self.text, self.at)
        if named is not None:
            self.at = named.end()
        start = self.at
        points = [self._point()]
        while self.take(","):
            if self.text[self.beyond(self.at) :][:1] in ("/", "{"):
                break
            points.append(self._point())
        last = points[-1].span
        begin = self.between(start, start)
        span = Span(begin.line, begin.column, last.end_line, last.end_column)
        predicate = None
        if self.take("/"):
            predicate = self.expression()
            if not self.take("/"):
                raise self.fail("expected '/' to close predicate")
        return tree.ProbeDefinition(
            span=span, points=points, predicate=predicate, body=self.block(False)
        )

    def _point(self) -> tree.AttachPoint:
        """Read an attach point, as it is written.

        Outside of quotes it ends before a brace, a comma or a blank, and before a `/` where no
        colon was read yet.
        """
        self.skip()
        start = self.at
        quoted = False
        while not self.ended:
            char = self.peek()
            if char == '"':
                quoted = not quoted
            elif char == "\\" and quoted:
                self.at += 1
            elif not quoted:
                path = ":" in self.text[start : self.at]
                ends = char == "/" and not path and self.peek(1) not in ("/", "*")
                if char in "{," or char.isspace() or ends:
                    break
            self.at += 1
        raw = self.text[start : self.at]
        if not raw:
            raise self.fail("expected attach point")
        return tree.AttachPoint(span=self.since(start), text=raw)

    # --- statements

    def block(self, gives: bool) -> tree.BlockExpression:
        """Read statements in braces.

        Args:
            gives: True where the last expression, if it has no semicolon, is the block's value.
                False: it is a statement like others.
        """
        start = self.beyond(self.at)
        self.expect("{")
        statements: list[Statement] = []
        while not self.take("}"):
            if self.ended:
                raise self.fail("expected '}'")
            statement = self._statement()
            if isinstance(statement, Statement):
                statements.append(statement)
            else:
                self.expect("}")
                if gives:
                    return tree.BlockExpression(
                        span=self.since(start), statements=statements, value=statement
                    )
                statements.append(tree.Evaluate(span=statement.span, expression=statement))
                break
        return tree.BlockExpression(span=self.since(start), statements=statements)

    def _statement(self) -> Statement | Expression:
        """Read a statement, or an expression without a semicolon that ends its block."""
        self.skip()
        start = self.at
        word = self.word_at(start)
        if word in ("while", "unroll"):
            self.at += len(word)
            of = self.condition()
            body = self.block(False)
            if word == "while":
                return tree.While(span=self.since(start), condition=of, body=body)
            return tree.Unroll(span=self.since(start), count=of, body=body)
        if word == "for":
            return self._for(start)
        if word in ("break", "continue", "return"):
            return self._jump(word, start)
        if word == "let":
            return self._let(start)
        if word == "import":
            raise self.fail(
                "imports inside of probes are not supported", None, "put it before all probes"
            )
        if self.peek() == "@" or (self.peek() == "$" and self.word_at(self.at + 1)):
            return self._assignment(start)
        if word == "_" and self.text[self.beyond(start + 1) :][:1] == "=":
            self.at = self.beyond(start + 1) + 1
            expression = self.expression()
            span = self.since(start)
            self._end()
            return tree.Evaluate(span=span, expression=expression, discarded=True)
        return self._evaluated(self.expression(), start)

    def _jump(self, word: str, start: int) -> Statement:
        """Read `break`, `continue` or `return`.

        Args:
            word: which of them begins here.
            start: index where it begins.
        """
        self.at += len(word)
        value = None
        if word == "return" and self.text[self.beyond(self.at) :][:1] not in (";", "}"):
            value = self.expression()
        self._end()
        return tree.JumpStatement(
            span=self.between(start, start + len(word)), kind=word, value=value
        )

    def _end(self) -> None:
        """Move on behind a semicolon; before a closing brace it may be missing.

        Raises ScriptError where neither comes next.
        """
        if self.text[self.beyond(self.at) :][:1] != "}":
            self.expect(";")
        else:
            self.take(";")

    def _evaluated(self, expression: Expression, start: int) -> Statement | Expression:
        """Make a statement of an expression that was just read; read its `;`, too.

        Args:
            expression: the expression.
            start: offset in the text where it begins.

        Returns:
            The statement; the expression itself, where a `}` follows: it is the block's value.
        """
        span = self.since(start)
        braces = isinstance(expression, tree.BlockExpression) or (
            isinstance(expression, tree.Conditional) and self.text[self.at - 1] == "}"
        )
        if self.take(";"):
            return tree.Evaluate(span=span, expression=expression)
        if self.text[self.beyond(self.at) :][:1] == "}":
            return expression
        if not braces:
            raise self.fail("expected ';'")
        return tree.Evaluate(span=span, expression=expression)

    def _let(self, start: int) -> Statement:
        """Read a declaration of a variable.

        Args:
            start: index where it begins.
        """
        self.at += len("let")
        self.skip()
        if self.peek() != "$":
            raise self.fail("expected variable after 'let'")
        here = self.at
        name = self.sigil()
        variable = tree.ScratchVariable(span=self.since(here), name=name)
        written = None
        if self.take(":"):
            written = (
                self.type_or_expression() if self.word_ahead() == "typeof" else self.type_name()
            )
        behind = self.at
        value = None
        if self.take("="):
            value = self.expression()
        else:
            self.at = behind
        span = self.since(start)
        self._end()
        return tree.Declare(span=span, variable=variable, type=written, value=value)

    def _assignment(self, start: int) -> Statement | Expression:
        """Read an assignment, or an expression, that begins with a variable or map.

        `$x += 1` becomes an assignment of `$x + 1`. An expression at the end of its block is
        returned itself.

        Args:
            start: index where it begins.
        """
        target: Expression
        if self.peek() == "@":
            target = self.map()
        else:
            name = self.sigil()
            target = tree.ScratchVariable(span=self.since(start), name=name)
        assert isinstance(target, tree.ScratchVariable | tree.MapName | tree.MapAccess)
        behind = self.at
        self.skip()
        compound = next((one for one in COMPOUND if self.text.startswith(one, self.at)), "")
        if compound:
            here = self.at
            self.at += len(compound)
            right = self.expression()
            value: Expression = tree.Binary(
                span=self.since(here), operator=compound[:-1], left=target, right=right
            )
            span = self.since(start)
            self._end()
            return tree.Assign(span=span, target=target, value=value, compound=True)
        if self.peek() == "=" and self.peek(1) != "=":
            self.at += 1
            value = self.expression()
            span = self.since(start)
            self._end()
            return tree.Assign(span=span, target=target, value=value)
        self.at = behind
        expression = self.postfix(target)
        self.skip()
        if self.peek() == "=" and self.peek(1) != "=":
            span = self.since(start)
            if isinstance(expression, tree.TupleAccess | tree.FieldAccess):
                raise self.fail(
                    "Tuples and records are immutable once created. Consider creating a new value "
                    "and assigning it instead.",
                    span,
                )
            raise self.fail("invalid assignment target", span)
        if isinstance(expression, tree.Unary):
            span = self.since(start)
            if self.take(";"):
                return tree.Evaluate(span=span, expression=expression)
        return self._evaluated(self.continued(expression), start)

    def _for(self, start: int) -> Statement:
        """Read a for loop, over a map's entries or over a range of numbers.

        Args:
            start: index where it begins.
        """
        self.at += len("for")
        parentheses = self.take("(")
        self.skip()
        if self.peek() != "$":
            raise self.fail("expected variable in for loop")
        here = self.at
        name = self.sigil()
        variable = tree.ScratchVariable(span=self.since(here), name=name)
        self.expect(":")
        first = self.primary()
        if self.take(".."):
            last = self.primary()
            if parentheses:
                self.expect(")")
            body = self.block(False)
            return tree.ForRange(
                span=self.since(start), variable=variable, first=first, last=last, body=body
            )
        if parentheses:
            self.expect(")")
        if not isinstance(first, tree.MapName):
            raise self.fail("expected map or range in for loop", first.span)
        body = self.block(False)
        return tree.ForMap(span=self.since(start), variable=variable, map=first, body=body)
