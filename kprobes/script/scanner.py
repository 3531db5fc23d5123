"""Characters and words of a script: where the parser is, literals, comments."""

from __future__ import annotations

import re
from typing import Final

from .source import Diagnostics, ScriptError, Span

_LAYOUT: Final = re.compile(r"(?:[ \t\r\n\f\v]+|//[^\n]*|/\*.*?(?:\*/|\Z))*", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_NUMBER: Final = re.compile(
    r"0[xX][0-9a-fA-F_]*|[0-9][0-9_]*(?:[eE][0-9_]*)?(?:[num]s|[smhd]|[uU][lL]?[lL]?|[lL][lL]?)?"
)
_PARTS: Final = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)(?:[eE]([0-9]+))?([a-zA-Z]*)")
_UNITS: Final = {
    "": 1,
    "ns": 1,
    "us": 1000,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_SUFFIXES: Final = {
    "u": (1 << 32) - 1,
    "ul": (1 << 64) - 1,
    "ull": (1 << 64) - 1,
    "l": (1 << 63) - 1,
    "ll": (1 << 63) - 1,
}
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", '"': b'"', "\\": b"\\"}
U64: Final = (1 << 64) - 1
DIGITS: Final = len(str(U64))


def integer(text: str) -> int | str:
    """Return the value of an integer literal, or the text of what is wrong with it.

    It may be written with 0x, 0b, or 0 for octal, with underscores, as 1e9, with C's suffixes (`u`,
    `l` ...) or with a unit of time (`ms`), which gives nanoseconds.
    """
    plain = text.replace("_", "")
    match = _PARTS.fullmatch(plain)
    if match is None:
        return f"invalid integer: {text}"
    digits, exponent, suffix = match.groups()
    suffix = suffix.lower()
    if digits[:2].lower() in ("0x", "0b"):
        value = int(digits, 0)
    elif len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567":
        if not set(digits) <= set("01234567"):
            return f"invalid trailing bytes: {text}"
        value = int(digits, 8)
    else:
        if len(digits) > 1 and digits[0] == "0":
            return f"invalid trailing bytes: {text}"
        if len(digits) > DIGITS:  # int() takes its time, or refuses
            return f"overflow error, maximum value is {U64}: {text}"
        value = int(digits)
    if exponent is not None:
        if not 1 <= value <= 9:
            return f"coefficient part of scientific literal must be 1-9: {text}"
        if len(exponent) > 3:
            return f"overflow error, maximum value is {U64}: {text}"
        value *= 10 ** int(exponent)
    unit = _UNITS.get(suffix)
    most = _SUFFIXES.get(suffix, U64)
    if unit is None and suffix not in _SUFFIXES:
        return f"invalid trailing bytes: {text}"
    value *= unit or 1
    return value if value <= most else f"overflow error, maximum value is {most}: {text}"


class Scanner:
    """A position in the text that moves forward.

    Attributes:
        text: the script.
        at: index of the next character.
        found: where errors go.
    """

    def __init__(self, text: str, found: Diagnostics) -> None:
        """Begin at the start of the text."""
        self.text = text
        self.at = 0
        self.found = found
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    # --- positions

    def _place(self, at: int) -> tuple[int, int]:
        """Return (line, column), from 1, of an index in the text."""
        import bisect

        line = bisect.bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1

    def since(self, start: int) -> Span:
        """Return the part of the text from an index up to the present position."""
        return self.between(start, self.at)

    def between(self, start: int, end: int) -> Span:
        """Return the part of the text from one index up to another.

        Args:
            start: index of its first character.
            end: index behind its last.
        """
        return Span(*self._place(start), *self._place(end))

    # --- errors

    def fail(self, text: str, span: Span | None = None, *hints: str) -> ScriptError:
        """Note a syntax error, and return the exception to raise.

        Args:
            text: what is wrong.
            span: where; None: at the next word.
            hints: what to do.
        """
        if span is None:
            self.skip()
            word = re.compile(r"[@$]?[A-Za-z_0-9]+|.", re.DOTALL).match(self.text, self.at)
            span = self.between(self.at, word.end() if word else self.at)
        self.found.error(f"syntax: {text}", span, *hints)
        return ScriptError([m for m in self.found.messages if m.kind == "ERROR"], self.found.source)

    # --- looking

    def skip(self) -> None:
        """Move on behind blanks and comments."""
        match = _LAYOUT.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def beyond(self, at: int) -> int:
        """Return the index of the first character from `at` on that is no blank and in no
        comment.
        """
        match = _LAYOUT.match(self.text, at)
        assert match is not None
        return match.end()

    def peek(self, ahead: int = 0) -> str:
        """Return the character `ahead` characters behind the present position; "" behind the
        end.
        """
        return self.text[self.at + ahead : self.at + ahead + 1]

    @property
    def ended(self) -> bool:
        """Whether the position is behind the last character."""
        return self.at >= len(self.text)

    def word_at(self, at: int) -> str:
        """Return the identifier that begins at an index; "": there is none."""
        match = _WORD.match(self.text, at)
        return match.group() if match else ""

    def word_ahead(self) -> str:
        """Return the next identifier; "" for none."""
        return self.word_at(self.beyond(self.at))

    # --- taking

    def take(self, symbol: str) -> bool:
        """Move on behind a symbol or whole word, if it comes next; blanks are skipped in any case.

        Returns:
            False: it does not come next.
        """
        self.skip()
        if not self.text.startswith(symbol, self.at):
            return False
        if symbol[0].isalpha() and self.word_at(self.at) != symbol:
            return False
        self.at += len(symbol)
        return True

    def expect(self, symbol: str) -> None:
        """Move on behind a symbol or word, which must come next.

        Raises:
            ScriptError: it does not.
        """
        if not self.take(symbol):
            raise self.fail(f"expected '{symbol}'")

    def identifier(self, error: str) -> str:
        """Pass an identifier, and return it.

        Args:
            error: the message where something else stands there.

        Raises:
            ScriptError: something else stands there.
        """
        self.skip()
        word = self.word_at(self.at)
        if not word:
            raise self.fail(error)
        self.at += len(word)
        return word

    def sigil(self) -> str:
        """Read `$name` or `@name`, whose sign is the next character, and return it; `@` alone is a
        name too.

        Raises:
            ScriptError: no name follows `$`.
        """
        word = self.word_at(self.at + 1)
        sign = self.peek()
        if not word and sign == "$":
            raise self.fail("expected identifier after '$'")
        self.at += 1 + len(word)
        return sign + word

    def number(self) -> tuple[int, str]:
        """Read an integer literal: as integer() has it, but without 0b.

        Returns:
            (its value, its text).

        Raises:
            ScriptError: there is none, it is too large, or its digits or suffix are wrong.
        """
        self.skip()
        start = self.at
        match = _NUMBER.match(self.text, start)
        if match is None:
            raise self.fail("expected integer")
        self.at = match.end()
        text = match.group()
        if re.search(r"_[a-zA-Z]*$", text):
            raise self.fail(
                "trailing underscore in integer literal", self.between(self.at - 1, self.at)
            )
        if bad := self.word_at(self.at):
            raise self.fail(
                f"invalid integer suffix '{bad}'", self.between(self.at, self.at + len(bad))
            )
        value = integer(text)
        if isinstance(value, str):
            raise self.fail(value, self.since(start))
        return value, text

    def string(self) -> bytes:
        """Read a string literal, whose opening quote is next, and return its bytes.

        Raises:
            ScriptError: it does not end in its line, or has a wrong escape sequence.
        """
        out = bytearray()
        self.at += 1
        while True:
            char = self.peek()
            if char in ("", "\n"):
                raise self.fail("unterminated string")
            self.at += 1
            if char == '"':
                return bytes(out)
            out += self._escape() if char == "\\" else char.encode("utf-8", "surrogateescape")

    def _escape(self) -> bytes:
        """Read what follows a backslash, and return the byte that it stands for.

        Raises:
            ScriptError: it is no escape sequence, or stands for more than 255.
        """
        start = self.at - 1
        char = self.peek()
        self.at += 1
        if char in _ESCAPES:
            return _ESCAPES[char]
        pattern, base = (
            (r"[0-7]{1,3}", 8) if char in "01234567" and char else (r"[0-9a-fA-F]{1,2}", 16)
        )
        if char and char in "01234567":
            self.at -= 1
        elif not char or char not in "xX":
            raise self.fail(f"invalid escape character '\\{char}'", self.since(start))
        match = re.compile(pattern).match(self.text, self.at)
        if match is None:
            raise self.fail("invalid hex escape sequence", self.since(start))
        self.at = match.end()
        value = int(match.group(), base)
        if value > 255:
            raise self.fail(
                f"octal escape sequence out of range '\\{match.group()}'", self.since(start)
            )
        return bytes([value])
