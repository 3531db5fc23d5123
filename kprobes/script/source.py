"""A script's text, places in it, and messages about them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from attrs import define, field, frozen

from ..errors import KprobeError
from ..programs.code import CodeLine

TAB: Final = "    "


@frozen
class Span:
    """A part of the text.

    Attributes:
        line: line of its first character, from 1.
        column: column of its first character, from 1.
        end_line: line of the character behind it.
        end_column: column of the character behind it.
    """

    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, other: Span) -> Span:
        """Return the part from the beginning of this one to the end of another."""
        return Span(self.line, self.column, other.end_line, other.end_column)


NOWHERE: Final = Span(1, 1, 1, 1)


@frozen
class ScriptSource:
    """A script's text.

    Attributes:
        name: `stdin`, or the file's path.
        text: all of it.
    """

    name: str
    text: str

    def mark(self, span: Span) -> str:
        """Return a position as bpftrace writes it: `stdin:1:9-12`, the columns where it begins and
        behind it; `stdin:1-3`, the lines, where it has several.
        """
        if span.line != span.end_line:
            return f"{self.name}:{span.line}-{span.end_line}"
        return f"{self.name}:{span.line}:{span.column}-{span.end_column}"

    def quoted(self, span: Span) -> list[str]:
        """Return a position, then the source lines there with marks."""
        return [self.mark(span), *self.excerpt(span)]

    def excerpt(self, span: Span) -> list[str]:
        """Return the source lines of a part, with a line of `~` marks under a single one.

        Tabs are replaced by blanks. The list is empty where the text has no such line.
        """
        lines = self.text.split("\n")
        shown = lines[span.line - 1 : span.end_line]
        if span.line != span.end_line:
            return [line.replace("\t", TAB) for line in shown]
        if not shown:
            return []
        before = shown[0][: span.column - 1]
        inside = shown[0][span.column - 1 : span.end_column - 1]
        marks = " " * len(before.replace("\t", TAB)) + "~" * max(1, len(inside.replace("\t", TAB)))
        return [shown[0].replace("\t", TAB), marks]


def span_of(line: CodeLine) -> Span:
    """Return the part of a script that instructions are made of, which their line says."""
    return Span(line.number, line.column, line.number, line.end)


@frozen
class Message:
    """An error or a warning.

    Attributes:
        kind: "ERROR" or "WARNING".
        text: what is wrong.
        span: the part of the text that it is about; None: none in particular.
        hints: what to do, a line each.
        source: the text that `span` is of; None: the script's.
    """

    kind: str
    text: str
    span: Span | None
    hints: tuple[str, ...] = ()
    source: ScriptSource | None = None

    def shown(self, source: ScriptSource) -> str:
        """Return the message as bpftrace writes it, with source lines and marks, and its hints
        behind.

        Args:
            source: the script's text, for a message without a `source` of its own.
        """
        whose = self.source or source
        if self.span is None:
            lines = [f"{self.kind}: {self.text}"]
        else:
            lines = [
                f"{whose.mark(self.span)}: {self.kind}: {self.text}",
                *whose.excerpt(self.span),
            ]
        return "\n".join([*lines, *(f"HINT: {hint}" for hint in self.hints)])


class ScriptError(KprobeError):
    """A script is wrong, or asks for what does not exist.

    Attributes:
        messages: what is wrong, in the order found; errors and warnings.
        shown: the messages with source lines and marks, as the command prints them.
    """

    def __init__(self, messages: Iterable[Message], source: ScriptSource) -> None:
        """Make an exception of messages; it tells the first error of them with its place and hints,
        or all messages where none is an error.

        Args:
            messages: what is wrong.
            source: the script's text.
        """
        self.messages = tuple(messages)
        self.shown = "\n".join(message.shown(source) for message in self.messages)
        first = next((message for message in self.messages if message.kind == "ERROR"), None)
        reason, hint = self.shown, ""
        if first is not None:
            place = (
                f"{(first.source or source).mark(first.span)}: " if first.span is not None else ""
            )
            reason = f"{place}{first.text}"
            hint = "; ".join(first.hints)
        super().__init__(reason, hint=hint)


@define
class Diagnostics:
    """Collects messages about one script.

    Attributes:
        source: the script's text.
        messages: all so far.
    """

    source: ScriptSource
    messages: list[Message] = field(factory=list)

    def error(self, text: str, span: Span | None, *hints: str) -> None:
        """Note an error; the same one at the same place is kept once."""
        self._add(Message("ERROR", text, span, hints))

    def warn(self, text: str, span: Span | None, *hints: str) -> None:
        """Note a warning; the same one at the same place is kept once."""
        self._add(Message("WARNING", text, span, hints))

    def _add(self, message: Message) -> None:
        """Keep a message, unless it is there."""
        if message not in self.messages:
            self.messages.append(message)

    @property
    def failed(self) -> bool:
        """Whether there is an error among the messages."""
        return any(message.kind == "ERROR" for message in self.messages)

    @property
    def warnings(self) -> list[Message]:
        """The warnings alone."""
        return [message for message in self.messages if message.kind == "WARNING"]

    def check(self) -> None:
        """Raise the errors that were noted, if there are any, with the warnings behind them.

        Raises:
            ScriptError: there is an error.
        """
        if self.failed:
            errors = [message for message in self.messages if message.kind == "ERROR"]
            raise ScriptError([*errors, *self.warnings], self.source)


def did_you_mean(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return a hint with the known name that is nearest to `name`, in a tuple; an empty one: none
    is near.
    """
    near = difflib.get_close_matches(name, sorted(set(known)), n=1, cutoff=0.6)
    return (f"did you mean {near[0]}?",) if near else ()
