"""Addresses of places in a program's source: lines, functions' lines, labels, inlined copies."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from .file import children, text
from .inlined import inlined_copies
from .lines import Line
from .pieces import ADDRESS_FORMS
from .places import inlined_around
from .quick import AddressScope, SourceCode
from .units import Function, Units, named


class SourcePlace(NamedTuple):
    """One address that a place in the source has.

    Attributes:
        address: a link address; DebugInfo adds the bias before it returns one.
        function: name of the function whose code it is; "": not known.
        inlined: name of the function that is inlined there; "": none is.
    """

    address: int
    function: str
    inlined: str = ""

    def moved(self, bias: int) -> SourcePlace:
        """Return the place in a guest, whose file has been loaded `bias` bytes behind its link
        addresses.
        """
        return SourcePlace(self.address + bias, self.function, self.inlined) if bias else self


_NOWHERE: Final = AddressScope(0, 1 << 64, "", 0, "")  #: of code that is in no function


def line_places(units: Units, wanted: str, number: int) -> list[SourcePlace]:
    """Return the address of a line's code in each function and in each inlined copy that has some.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
        number: of the line.
    """
    lines = [line for _, found in units.lines_of(wanted, number) for line in found]
    return _first_of_each(units, lines)


def line_statements(units: Units, wanted: str, number: int) -> list[SourcePlace]:
    """Return the address of each statement of a line that the line table has, in any function.
    Those in no function are left out where some are in one.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
        number: of the line.
    """
    lines = [line for _, found in units.lines_of(wanted, number) for line in found if line.is_stmt]
    places = dict[int, SourcePlace]()
    for start, at in scopes_at(units, {line.start for line in lines}).items():
        function, inlined = ("", "") if at is None else (at.function, at.inlined)
        places[start] = SourcePlace(start, function, inlined)
    return [place for place in places.values() if place.function] or [*places.values()]


def has_lines(units: Units, wanted: str) -> bool:
    """Return True where a source file has lines with code.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
    """
    return any(True for _ in units.lines_of(wanted))


def lines_near(units: Units, wanted: str, number: int) -> list[int] | None:
    """Return the numbers of the nearest lines with code before and behind a line.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
        number: of the line.

    Returns:
        At most two, the one before first; [] where only the line itself has code; None: no code is
        of such a source file.
    """
    numbers = {line.line for _, found in units.lines_of(wanted) for line in found}
    if not numbers:
        return None
    before, behind = [n for n in numbers if n < number], [n for n in numbers if n > number]
    return [*([max(before)] if before else []), *([min(behind)] if behind else [])]


def units_of_source(units: Units, wanted: str) -> Iterator[int]:
    """Yield the numbers of the units that have code of a source file.

    Args:
        units: of one file.
        wanted: the source file, or the end of its path.
    """
    return (n for n, _ in units.lines_of(wanted))


def _place_of(units: Units, address: int) -> AddressScope | None:
    """Return what a link address is in, from its entries; None: it is in no function.

    Args:
        units: of one file.
        address: the link address.
    """
    function = units.function_at(address)
    if function is None:
        return None
    blocks = [*inlined_around(function, address)]
    block = blocks[-1].offset if blocks else 0
    inlined = text(named(blocks[-1]), "DW_AT_name") if blocks else ""
    return AddressScope(function.start, function.end, function.name, block, inlined)


def scopes_at(units: Units, addresses: Collection[int]) -> dict[int, AddressScope | None]:
    """Return the function and inlined copy that each of some link addresses is in.

    Args:
        units: of one file.
        addresses: the link addresses, which have code.

    Returns:
        Link address -> what it is in, ascending; None: no function.
    """
    known = units.places_of(addresses)
    return {each: known.get(each) or _place_of(units, each) for each in sorted(set(addresses))}


def _first_of_each(units: Units, lines: Collection[SourceCode]) -> list[SourcePlace]:
    """Return the address to break at in each function and inlined copy that lines have code in.

    It is the lowest that begins a statement; code of the cold part of a function comes last.

    Args:
        units: of one file.
        lines: the lines.

    Returns:
        By address. Code of no function is left out if there is some of a function; and code that
        begins no statement if the same function has some that does.
    """
    known = units.places_of(line.start for line in lines)
    # (is cold, begins no statement, address, function, inlined): the least is the one
    found: dict[tuple[int, int], tuple[bool, bool, int, str, str]] = {}
    for start, _, is_stmt in lines:
        at = known.get(start) or _place_of(units, start) or _NOWHERE
        # the part that the function is entered in comes before its cold part, which may lie lower
        is_cold = not at.start <= start < at.end
        one = is_cold, not is_stmt, start, at.function, at.inlined
        key = at.start, at.block
        if key not in found or one < found[key]:
            found[key] = one
    begun = {function for (function, _), (_, no_stmt, *_) in found.items() if not no_stmt}
    places = sorted(
        SourcePlace(start, name, inlined)
        for (function, _), (_, no_stmt, start, name, inlined) in found.items()
        if function not in begun or not no_stmt
    )
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
