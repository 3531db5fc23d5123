"""Where inlined copies of a function begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .file import DAMAGE, children, text
from .pieces import ADDRESS_FORMS, spans
from .quick import InlinedCopy, may_name_template
from .units import Function, Units, named, scopes_of


def inlined_copies(units: Units, name: str) -> Iterator[tuple[int, Function]]:
    """Find all inlined copies of a function.

    Args:
        units: of a file.
        name: of the function, or of a template; scopes before it count, "geo::twice".

    Yields:
        (link address at which a copy begins, the function that it stands in).

    Raises:
        errors in DAMAGE: the debug information is damaged.
    """
    bare = without_scopes(name)
    for n, copies in units.inlined_copies(bare):
        if copies is not None:
            yield from _wanted(units, n, copies, bare, name)
            continue
        for function in units.functions_of(n):
            try:
                yield from ((address, function) for address in _read_in(function, name))
            except DAMAGE:
                continue


def without_scopes(name: str) -> str:
    """Return a function's name without the namespaces and classes before it.

    Args:
        name: as C++ or Rust writes it: "geo::Map<a::b>::find<c::d>" gives "find<c::d>".
    """
    depth = 0
    start = 0
    for at, letter in enumerate(name):
        if at == start and name.startswith("operator", at):
            break  # what follows may be < or >
        depth += (letter == "<") - (letter == ">")
        if not depth and name.startswith("::", at):
            start = at + 2
    return name[start:]


def _wanted(
    units: Units, n: int, copies: list[InlinedCopy], bare: str, name: str
) -> Iterator[tuple[int, Function]]:
    """Yield those of a unit's copies whose function has the scopes of a name. Copies without code,
    and with damaged entries, are left out.

    Args:
        units: of the file.
        n: index of the unit.
        copies: of functions of the name without scopes.
        bare: that name.
        name: with the scopes that are wanted.

    Yields:
        (link address at which a copy begins, the function that it stands in).
    """
    for copy in copies:
        if not f"::{copy.scopes}{bare}".endswith(f"::{name}"):
            continue
        if copy.address is not None and not units.has_code(copy.address):
            continue
        function = units.function_of_entry(n, copy.function)
        if function is None:
            continue
        address = copy.address
        if address is None:
            try:
                unit = units.unit(n)
                address = _beginning(unit.get_DIE_from_refaddr(copy.offset), unit)
            except DAMAGE:
                continue
        if address is not None and units.has_code(address):
            yield address, function


def _read_in(function: Function, name: str) -> Iterator[int]:
    """Yield the link addresses at which inlined copies begin within a function, from its entries.

    Args:
        function: that has the copies.
        name: of the inlined function, with the scopes that are wanted.
    """
    todo = children(function.die)
    while todo:
        die = todo.pop()
        if die.tag == "DW_TAG_inlined_subroutine" and _is_called(named(die), name):
            address = _beginning(die, function.unit)
            if address is not None:
                yield address
        if die.has_children:
            todo += children(die)


def copies_at(function: Function, address: int, name: str) -> Iterator[Any]:
    """Yield the entries of the inlined copies of a function that begin at an address.

    Args:
        function: that has the copies.
        address: the link address.
        name: of the inlined function, with the scopes that are wanted.

    Raises:
        errors in DAMAGE: the debug information is damaged.
    """
    todo = children(function.die)
    while todo:
        die = todo.pop()
        is_copy = die.tag == "DW_TAG_inlined_subroutine" and _is_called(named(die), name)
        if is_copy and _beginning(die, function.unit) == address:
            yield die
        if die.has_children:
            todo += children(die)


def _is_called(die: Any, name: str) -> bool:
    """Whether a name is that of an entry, with none, some or all of the scopes around the entry.

    The name of a template, without arguments, is that of each instance.

    Args:
        die: the entry that has the name; a definition's declaration.
        name: "twice", "Shape::twice" or "geo::Shape::twice".
    """
    own = text(die, "DW_AT_name")
    if may_name_template(without_scopes(name)) and not own.startswith("operator"):
        own = own.partition("<")[0]
    if not own or own == name:
        return bool(own)
    return name.endswith(f"::{own}") and f"::{scopes_of(die)}{own}".endswith(f"::{name}")


def _beginning(die: Any, unit: Any) -> int | None:
    """Return the link address at which an inlined copy begins (DWARF 5, 2.18).

    Args:
        die: entry of the copy.
        unit: its unit.

    Returns:
        None: it has no code.

    Raises:
        errors in DAMAGE: the debug information is damaged.
    """
    entry = die.attributes.get("DW_AT_entry_pc")
    if entry is not None and entry.form in ADDRESS_FORMS:
        return int(entry.value)
    low = die.attributes.get("DW_AT_low_pc")
    first = next(spans(die, unit), None) if low is None else (low.value, 0)
    if first is None:
        return None
    return int(first[0]) + (0 if entry is None else int(entry.value))
