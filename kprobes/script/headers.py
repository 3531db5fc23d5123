"""The preprocessor of a script's C definitions: conditions, headers, and what is defined."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final

from attrs import define, field, frozen

#: what scripts ask for to leave out headers where types are known without
_HAVE_TYPES: Final = "BPFTRACE_HAVE_BTF"
#: headers whose types scripts know by themselves
_KNOWN: Final = ("stdint.h", "stdbool.h", "stddef.h", "inttypes.h", "linux/types.h", "sys/types.h")
_DEEPEST: Final = 32  #: headers that include each other
_NAME: Final = re.compile(r"\b[A-Za-z_]\w*")
_DEFINED: Final = re.compile(r"\bdefined\s*(?:\(\s*([A-Za-z_]\w*)\s*\)|([A-Za-z_]\w*))")


class HeaderError(Exception):
    """A line of the preprocessor is wrong, or its header cannot be read.

    Attributes:
        hints: what to do.
    """

    def __init__(self, reason: str, *hints: str) -> None:
        """Make an exception.

        Args:
            reason: what is wrong, as a clause.
            hints: what to do.
        """
        super().__init__(reason)
        self.hints = hints


@frozen
class Headers:
    """Headers that were named on the command line.

    Attributes:
        folders: where headers are looked for (-I), in order.
        files: headers that stand in front of the script (--include).
        beside: the script's own folder; "": the current one.
    """

    folders: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    beside: str = ""


@define
class _OpenConditional:
    """An #if and what follows it, up to its #endif.

    Attributes:
        outer: True where what is around it is read.
        taken: True once one of its branches was read.
        read: True in a branch that is read.
    """

    outer: bool
    taken: bool
    read: bool


@define
class Preprocessor:
    """Reads text line by line, and hands on what conditions leave of it.

    Attributes:
        headers: where headers are.
        known: (name) -> the number that a constant has, None for another name that is defined;
            raises KeyError for one that is not.
        directive: takes a line that is a #define, #undef or of another word.
        declarations: takes the text between such lines, and whether it is from a header.
        evaluate: (expression without names) -> its number; raises HeaderError.
    """

    headers: Headers
    known: Callable[[str], int | None]
    directive: Callable[[str], None]
    declarations: Callable[[str, bool], None]
    evaluate: Callable[[str], int]
    _conditions: list[_OpenConditional] = field(factory=list)
    _once: set[str] = field(factory=set)

    @property
    def reading(self) -> bool:
        """Whether the text here is read, and not left out by a condition."""
        return not self._conditions or self._conditions[-1].read

    @property
    def unfinished(self) -> bool:
        """Whether an #endif is missing."""
        return bool(self._conditions)

    def take(self, text: str, path: str = "", depth: int = 0) -> None:
        """Read text without comments.

        Args:
            text: lines of the preprocessor, and declarations.
            path: of the header that it is from; "": it is the script's.
            depth: how many headers it is in.

        Raises:
            HeaderError: a line is wrong, or its header cannot be read.
        """
        kept = ""
        for line in text.replace("\\\n", " ").split("\n"):
            if not line.lstrip().startswith("#"):
                if self.reading:
                    kept += f"{line}\n"
                continue
            if kept.strip() and kept.count("{") == kept.count("}"):
                self.declarations(kept, bool(path))
                kept = ""
            self._line(line.strip(), path, depth)
        if kept.strip():
            self.declarations(kept, bool(path))

    def _line(self, line: str, path: str, depth: int) -> None:
        """Do what a line of the preprocessor says.

        Args:
            line: the line, which begins with `#`.
            path: of the header that it is in; "": it is the script's.
            depth: how many headers it is in.

        Raises:
            HeaderError: it is wrong, or its header cannot be read.
        """
        match = re.match(r"#\s*(\w*)\s*(.*)", line, re.DOTALL)
        assert match is not None
        word, rest = match[1], match[2].strip()
        if word in ("if", "ifdef", "ifndef"):
            outer = self.reading
            holds = outer and self._holds(word, rest)
            self._conditions.append(_OpenConditional(outer, holds, holds))
        elif word in ("elif", "else", "endif"):
            if not self._conditions:
                raise HeaderError(f"#{word} without #if")
            self._branch(word, rest)
        elif not self.reading:
            return
        elif word == "include":
            self._include(rest, path, depth)
        elif word == "error":
            raise HeaderError(f"#error {rest}")
        elif word == "pragma" and rest == "once":
            self._once.add(path)
        else:
            self.directive(line)

    def _branch(self, word: str, rest: str) -> None:
        """Go on behind an #elif, #else or #endif.

        Args:
            word: which of them.
            rest: the condition of an #elif.

        Raises:
            HeaderError: the condition of an #elif that is looked at is no expression of constants.
        """
        if word == "endif":
            self._conditions.pop()
            return
        here = self._conditions[-1]
        wanted = here.outer and not here.taken
        here.read = wanted and (word == "else" or self._holds("if", rest))
        here.taken = here.taken or here.read

    def _is_defined(self, name: str) -> bool:
        """Return True for a name that a #define or an enumeration has given, and for
        BPFTRACE_HAVE_BTF.
        """
        try:
            self.known(name)
        except KeyError:
            return name == _HAVE_TYPES
        return True

    def _holds(self, word: str, rest: str) -> bool:
        """Return whether a condition holds.

        Args:
            word: `if`, `ifdef` or `ifndef`.
            rest: the expression or the name.

        Raises:
            HeaderError: it is no expression of constants, or the name is missing.
        """
        if word != "if":
            name = _NAME.match(rest)
            if name is None:
                raise HeaderError(f"#{word} {rest}: a name is missing")
            return self._is_defined(name[0]) == (word == "ifdef")
        text = _DEFINED.sub(lambda m: str(int(self._is_defined(m[1] or m[2]))), rest)
        return bool(self.evaluate(_NAME.sub(lambda m: str(self._number(m[0])), text)))

    def _number(self, name: str) -> int:
        """Return the number that a name has in a condition: 0 where it is no constant."""
        try:
            return self.known(name) or 0
        except KeyError:
            return 0

    def _include(self, rest: str, path: str, depth: int) -> None:
        """Find a header and read it: the first file of its name in the folders.

        For a name in quotes, these are the folder of what includes it, the current folder, and
        those of -I; in angle brackets, those of -I only. Standard headers that are in none of them,
        such as stdint.h, are passed over.

        Args:
            rest: its name in quotes or angle brackets.
            path: of the header that includes it; "": the script does.
            depth: how many headers that is in.

        Raises:
            HeaderError: it is not found, cannot be read, or has what is not understood.
        """
        match = re.fullmatch(r'"([^"]+)"|<([^>]+)>', rest)
        if match is None:
            raise HeaderError(f"#include {rest}: a file's name is missing")
        if depth >= _DEEPEST:
            raise HeaderError(f"#include {rest}: headers include each other")
        name = match[1] or match[2]
        beside = [os.path.dirname(path) if path else self.headers.beside, ""] if match[1] else []
        for folder in (*beside, *self.headers.folders):
            found = os.path.join(folder, name)
            if os.path.isfile(found):
                self._file(found, depth + 1)
                return
        if name not in _KNOWN:
            raise HeaderError(
                f"'{name}' file not found",
                "-I FOLDER says where it is; types of the guest come from its debug information",
            )

    def _file(self, path: str, depth: int) -> None:
        """Read the header at a path; one with `#pragma once` only the first time.

        Args:
            path: of the file.
            depth: how many headers are being read, with this one.

        Raises:
            HeaderError: it cannot be read, or has what is not understood.
        """
        if path in self._once:
            return
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        except OSError as error:
            raise HeaderError(f"{path}: {error.strerror}") from None
        self.take(without_comments(text), path, depth)


def without_comments(text: str) -> str:
    """Return C without its comments; a blank stands for each."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
