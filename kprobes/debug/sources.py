"""Addresses of places in a program's source: lines, functions' lines, labels, inlined copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from attrs import frozen

from .file import children, text
from .inlined import inlined_copies
from .lines import Line
from .pieces import ADDRESS_FORMS
from .places import inlined_around
from .units import Function, Units, named


@frozen
class SourcePlace:
    """One address that a place in the source has.

    Attributes:
        address: a link address; DebugInfo adds the bias before it returns one.
        function: name of the function whose code it is; "": not known.
        inlined: name of the function that is inlined there; "": none is.
    """

    address: int
    function: str
    inlined: str = ""


def is_of(path: str, wanted: str) -> bool:
    """Whether a path ends in another, component by component: "src/a.c" ends in "a.c", not in ".c".

    Args:
        path: the source file's, as the compiler saw it.
        wanted: as a user wrote it.
    """
    given = wanted.split("/")
    return path.split("/")[-len(given) :] == given


def line_places(units: Units, wanted: str, number: int) -> list[SourcePlace]:
    """Return the address of a line's code in each function and in each inlined copy that has some.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
        number: of the line.
    """
    return _first_of_each(units, (line for line in _lines_of(units, wanted) if line.line == number))


def has_lines(units: Units, wanted: str) -> bool:
    """Return True where a source file has lines with code.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
    """
    return any(True for _ in _lines_of(units, wanted))


def lines_near(units: Units, wanted: str, number: int) -> list[int] | None:
    """Return the numbers of the nearest lines with code before and behind a line.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
        number: of the line.

    Returns:
        At most two; None: there is no such source file.
    """
    numbers = {line.line for line in _lines_of(units, wanted)}
    if not numbers:
        return None
    before, behind = [n for n in numbers if n < number], [n for n in numbers if n > number]
    return [*([max(before)] if before else []), *([min(behind)] if behind else [])]


def _units_naming(units: Units, wanted: str) -> Iterable[int]:
    """Return the numbers of the units that name a source file, by the last part of its path."""
    return units.units_naming(wanted.rpartition("/")[2].encode(errors="surrogateescape"))


def _lines_of(units: Units, wanted: str) -> Iterator[Line]:
    """Yield the lines with code of a source file, from all units.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
    """
    for n in _units_naming(units, wanted):
        for line in units.lines_of(n, partial(is_of, wanted=wanted)):
            if line.line and units.has_code(line.start):
                yield line


def units_of_source(units: Units, wanted: str) -> Iterator[int]:
    """Yield the numbers of the units that have code of a source file.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
    """
    for n in _units_naming(units, wanted):
        if any(True for _ in units.lines_of(n, partial(is_of, wanted=wanted))):
            yield n


def _first_of_each(units: Units, lines: Iterable[Line]) -> list[SourcePlace]:
    """Return the address to break at in each function and inlined copy that lines have code in.

    It is the lowest that begins a statement; code of the cold part of a function comes last.

    Args:
        units: of one file.
        lines: the lines.

    Returns:
        By address. Code of no function is left out if there is some of a function.
    """
    found: dict[tuple[int, ...], tuple[tuple[bool, bool, int], SourcePlace]] = {}
    for line in lines:
        function = units.function_at(line.start)
        blocks = [] if function is None else [*inlined_around(function, line.start)]
        key = (function.start if function is not None else 0, *(block.offset for block in blocks))
        # the part that the function is entered in comes before its cold part, which may lie lower
        is_cold = function is not None and not function.start <= line.start < function.end
        rank = is_cold, not line.is_stmt, line.start
        if key not in found or rank < found[key][0]:
            inlined = text(named(blocks[-1]), "DW_AT_name") if blocks else ""
            found[key] = (
                rank,
                SourcePlace(line.start, function.name if function is not None else "", inlined),
            )
    places = sorted((place for _, place in found.values()), key=lambda place: place.address)
    # what is in no function is padding behind one, if there are functions
    return [place for place in places if place.function] or places


def own_lines(units: Units, function: Function) -> list[Line]:
    """Return the lines that have code in a function, by address."""
    return [line for line in units.lines_in(function.start, function.end) if line.line]


def first_line(function: Function) -> int:
    """Return the line in which a function is declared; 0: it is not told."""
    for die in (function.die, named(function.die)):
        found = die.attributes.get("DW_AT_decl_line")
        if found is not None and isinstance(found.value, int):
            return found.value
    return 0


def labels(function: Function) -> dict[str, int]:
    """Return the C labels of a function, those in its blocks and in functions inlined there
    included: name -> link address.
    """
    found: dict[str, int] = {}
    todo = children(function.die)
    while todo:
        die = todo.pop()
        if die.tag == "DW_TAG_label":
            low = die.attributes.get("DW_AT_low_pc")
            name = text(named(die), "DW_AT_name")
            if low is not None and low.form in ADDRESS_FORMS and name:
                found[name] = low.value
        elif die.has_children and die.tag in ("DW_TAG_lexical_block", "DW_TAG_inlined_subroutine"):
            todo += children(die)
    return found


def copies(units: Units, name: str) -> list[SourcePlace]:
    """Return the first instruction of each inlined copy of a function, by address.

    Args:
        units: of a file.
        name: of the function.
    """
    # entries of several units may be of the one function that the linker has kept
    found = dict(inlined_copies(units, name))
    return [SourcePlace(address, found[address].name, name) for address in sorted(found)]
