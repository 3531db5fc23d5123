"""Places as source code has them.

FILE:LINE, FUNCTION:LINE, FUNCTION:LABEL, FUNCTION;PATTERN, FUNCTION%inlined.
"""

from __future__ import annotations

import fnmatch
import linecache
import re
from typing import Final, NoReturn

from ..debug.info import DebugInfo
from ..debug.sources import SourcePlace
from ..errors import AmbiguousSymbol, UnknownSymbol
from ..machine._base import Machine
from ..symbols import SourceLine
from ._clones import clones_of
from ._messages import make_error

_LINE: Final = re.compile(r"(.+):(\d{1,9})")
_LABEL: Final = re.compile(r"(.+):([A-Za-z_]\w*)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)*", re.ASCII)
INLINED: Final = "%inlined"


def source_places(place: str, machine: Machine, text: str, at: int) -> list[SourcePlace] | None:
    """Return the addresses that a place in the source stands for.

    Args:
        place: as written, without `%return`.
        machine: whose files have the debug information.
        text: the definition, for errors.
        at: the place's column.

    Returns:
        The places; None: it is no place in the source, it is a symbol's name, or no file of the
        guest is known.

    Raises:
        EventError: it is one, and no code is there.
    """
    if not machine.symbols.files or place in machine.symbols:
        return None
    return _Places(machine, text, at).of(place)


def fitting_statements(place: str, machine: Machine) -> list[SourceLine]:
    """Return the statements of the source lines whose text fits a glob.

    Args:
        place: FUNCTION;GLOB or FILE;GLOB.
        machine: whose files have the debug information.

    Raises:
        EventError: the source is not known or not here, or no line with code fits.
    """
    places = _Places(machine, f"p {place}", len("p "))
    path, found = places.fitting(*place.split(";", 1))
    return [SourceLine(path, number, each.address) for number, each in found]


class _Places:
    """The search for one place in the source."""

    def __init__(self, machine: Machine, text: str, at: int) -> None:
        """Prepare.

        Args:
            machine: whose files have the debug information.
            text: the definition, for errors.
            at: column of the place in the definition, for errors.
        """
        self._symbols = machine.symbols
        self._info = DebugInfo(machine)
        self._mode_bits = machine.arch.pointers.mode_bits
        self._text = text
        self._at = at

    def of(self, place: str) -> list[SourcePlace] | None:
        """Return the addresses that a place stands for.

        Args:
            place: as written: FILE:LINE, FUNCTION:LINE, FUNCTION:LABEL, FUNCTION;PATTERN,
                FUNCTION%inlined or the name of a function that is only inlined.

        Returns:
            The places; None: it is no place in the source.

        Raises:
            EventError: it is one, and no code is there.
        """
        if place.endswith(INLINED):
            return self._copies(place.removesuffix(INLINED), "stands inlined nowhere")
        if ";" in place:
            _, found = self.fitting(*place.split(";", 1))
            return [each for _, each in found]
        line = _LINE.fullmatch(place)
        label = _LABEL.fullmatch(place)
        if line is not None:
            return self._line(line[1], int(line[2]))
        if label is not None and label[1] in self._symbols:
            return self._label(label[1], label[2])
        return self._unnamed(place)

    def _fail(self, reason: str) -> NoReturn:
        """Raise the EventError of the place, with a reason."""
        raise make_error("BAD_PROBE_ADDR", self._at, self._text, reason)

    def _function(self, name: str) -> int:
        """Return the address of a function. Raises EventError where there is none, or several."""
        try:
            return self._symbols[name].address
        except (UnknownSymbol, AmbiguousSymbol) as error:
            self._fail(error.plain)

    def _line(self, name: str, number: int) -> list[SourcePlace] | None:
        """Return the places of the code of a line, counted in a function or in a source file.

        Args:
            name: a function: the line is counted from its first one, which is 0; or a source file.
            number: of the line.

        Returns:
            The places; None: no debug information has such a source, so that `name` may be a loaded
            file whose offset follows.

        Raises:
            EventError: the line has no code.
        """
        try:
            if name in self._symbols:
                return self._info.at_function_line(self._function(name), number)
            return self._info.at_line(name, number)
        except UnknownSymbol as error:
            if name not in self._symbols and not self._info.has_source(name):
                return None  # the offset of a file's code
            self._fail(error.plain)

    def _label(self, name: str, label: str) -> list[SourcePlace]:
        """Return the place of a label in a function, as a list of one.

        Args:
            name: the function.
            label: the label.

        Raises:
            EventError: the function has no label of this name.
        """
        found = self._info.labels(self._function(name))
        if label not in found:
            self._fail(f"{name} has no label {label}; it has {', '.join(found) or 'none'}")
        return [SourcePlace(found[label], name)]

    def _unnamed(self, place: str) -> list[SourcePlace] | None:
        """Return the inlined copies of a function of whose name there is no symbol, and its copies
        that are not inlined: as gdb's `break`.

        Args:
            place: the function's name, in C++ perhaps with scopes.

        Returns:
            The places, by address; None: there are no inlined copies, or it is no name.
        """
        if not _NAME.fullmatch(place):
            return None
        inlined = self._info.copies(place)
        if not inlined:
            return None
        whole = clones_of(self._symbols, place, parts=True)
        found = {symbol.address: SourcePlace(symbol.address, symbol.name) for symbol in whole}
        found |= {each.address: each for each in inlined}
        return [found[address] for address in sorted(found)]

    def _copies(self, name: str, otherwise: str) -> list[SourcePlace]:
        """Return the inlined copies of a function.

        Args:
            name: the function's.
            otherwise: what the error says behind the name where there are none, as a verb and so
                on.

        Raises:
            EventError: there are none.
        """
        found = self._info.copies(name)
        if not found:
            lacking = self._info.lacking()
            self._fail(f"{name} {otherwise}{f'; {lacking}' if lacking else ''}")
        return found

    def fitting(self, name: str, pattern: str) -> tuple[str, list[tuple[int, SourcePlace]]]:
        """Return the places of all statements of lines whose text fits a glob, blanks aside.

        Args:
            name: a source file, or a function, of which the lines from its declaration to its last
                one are looked at.
            pattern: the glob.

        Returns:
            (the source file, for each statement (the line's number, its place)).

        Raises:
            EventError: the source is not known or is no file of this computer, or no line with code
                fits.
        """
        if not name:
            self._fail("no function or source file is named before ';'")
        first = 1
        last = 1 << 30
        path = name
        inside = range(1 << 64)
        if name in self._symbols:
            address = self._function(name)
            path, first = self._info.source_of(address)
            found = self._info.function(address)
            if not path or found is None:
                self._fail(f"nothing is known of the source of {name}; build the guest with -g")
            inside = range(found[1].start + found[0].bias, found[1].end + found[0].bias)
            lines = self._info.lines(inside.start, inside.stop)
            last = max((line.line for line in lines if line.path == path), default=first)
        elif not self._info.has_source(path):
            self._fail(f"no source file of the guest is called {path}; build the guest with -g")
        where = self._info.source_file(path)
        if not where:
            self._fail(
                f"{path} is not here, and patterns are looked for in sources; give a line's "
                "number instead"
            )
        wanted = re.sub(r"\s", "", pattern)
        found_places: list[tuple[int, SourcePlace]] = []
        for number, line in enumerate(linecache.getlines(where), 1):
            if first <= number <= last and fnmatch.fnmatchcase(re.sub(r"\s", "", line), wanted):
                statements = self._info.statements(path, number)
                found_places += [(number, each) for each in statements if each.address in inside]
        if not found_places:
            self._fail(f"no line of {name} with code fits {pattern!r}")
        return path, found_places
