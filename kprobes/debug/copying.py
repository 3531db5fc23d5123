"""Whether C++ copies a class by a function of its own, and so passes its address in calls.

The Itanium C++ ABI (3.1.2.3) calls such classes non-trivial for the purposes of calls. Clang writes
whether a class is one; of GCC's it follows from the functions that the class declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from .file import children, is_same, text
from .signatures import type_entry
from .types import TRANSPARENT, CType, constant

#: of GCC's versions these write DW_AT_defaulted and DW_AT_deleted, but in strict DWARF 4
_FIRST: Final = 8
_GNU: Final = re.compile(r"GNU C\+\+\d* (\d+)\.")
_IN_CLASS: Final = 1  #: DW_DEFAULTED_in_class
_TEMPLATE: Final = "DW_TAG_template_"
_DEEPEST: Final = 32


class NotTold(Exception):
    """Raised where debug information does not say whether a class is copied by a function."""


def tells_copying(producer: str) -> bool:
    """Return True for a compiler whose debug information says what copies a class.

    Args:
        producer: the compiler's name and options, as the unit has them.
    """
    found = _GNU.match(producer)
    return found is not None and int(found[1]) >= _FIRST and "-gstrict-dwarf" not in producer


def is_copied_by_function(type: CType, depth: int = 0) -> bool:
    """Return True for a class with a copy or move constructor or destructor that does something.

    That is one that the program has written; one of a member or base; that of a class with virtual
    functions or bases, which sets a pointer. A class that cannot be copied or moved is one, too.

    Args:
        type: a structure, class or union of C++.
        depth: classes around it.

    Raises:
        NotTold: its definition is not there, or it is not clear whether it can be copied.
    """
    definition = type.definition
    if definition is None or "DW_AT_declaration" in definition.attributes or depth > _DEEPEST:
        raise NotTold
    copies = list[Any]()
    may_copy = False  # a constructor with further parameters, which may have defaults
    moves = False
    for child in children(definition):
        if child.tag == "DW_TAG_inheritance" and constant(child, "DW_AT_virtuality"):
            return True
        if child.tag == "DW_TAG_member" and text(child, "DW_AT_name").startswith("_vptr"):
            return True
        if child.tag != "DW_TAG_subprogram":
            continue
        if constant(child, "DW_AT_virtuality"):
            return True
        name = text(child, "DW_AT_name")
        if name.startswith("~") and _is_written(child):
            return True
        if name == type.base_name.partition("<")[0] and _takes_its_class(child, type):
            if len(_parameters(child)) == 1:
                copies.append(child)
            else:
                may_copy = True
        moves = moves or (name == "operator=" and _is_move(child) and _takes_its_class(child, type))
    if any(_is_written(each) for each in copies):
        return True
    if copies and all("DW_AT_deleted" in each.attributes for each in copies):
        return True
    if moves and not copies:
        raise NotTold
    if any(is_copied_by_function(each, depth + 1) for each in _classes_in(type)):
        return True
    if may_copy and not copies:
        raise NotTold
    return False


def _classes_in(type: CType) -> Iterator[CType]:
    """Yield the classes that the members and bases of a class are of, and elements of arrays."""
    for field in type.fields:
        inner = field.type.element if field.type.kind == "array" else field.type
        if inner.kind in ("struct", "union"):
            yield inner


def _is_written(function: Any) -> bool:
    """Return True for a function that the program has written, and no compiler; False as well for
    one that is deleted, or defaulted within the class.

    Args:
        function: entry of a constructor or destructor.
    """
    return not (
        "DW_AT_artificial" in function.attributes
        or "DW_AT_deleted" in function.attributes
        or constant(function, "DW_AT_defaulted") == _IN_CLASS
    )


def _parameters(function: Any) -> list[Any]:
    """Return the entries of a method's parameters behind `this`.

    Args:
        function: the method's entry.

    Returns:
        [] also for an instance of a template, which copies no class.
    """
    inside = children(function)
    if any(str(child.tag).startswith((_TEMPLATE, "DW_TAG_GNU_template")) for child in inside):
        return []
    return [
        child
        for child in inside
        if child.tag == "DW_TAG_formal_parameter" and "DW_AT_artificial" not in child.attributes
    ]


def _first(function: Any) -> Any:
    """Return the entry of the type of a method's first parameter behind `this`; None: it has none.

    Args:
        function: the method's entry.
    """
    given = _parameters(function)
    if not given or "DW_AT_type" not in given[0].attributes:
        return None
    return type_entry(given[0])


def _is_move(function: Any) -> bool:
    """Return True for a method whose first parameter is a reference to what may be moved."""
    first = _first(function)
    return first is not None and first.tag == "DW_TAG_rvalue_reference_type"


def _takes_its_class(function: Any, type: CType) -> bool:
    """Return True for a method whose first parameter is a reference to its class, or to a
    declaration of the class's name or of no name.

    Args:
        function: the method's entry.
        type: the class.
    """
    first = _first(function)
    if first is None or first.tag not in (
        "DW_TAG_reference_type",
        "DW_TAG_rvalue_reference_type",
    ):
        return False
    qualified = {f"DW_TAG_{name}" for name in TRANSPARENT}
    steps = 0
    while first is not None and steps < _DEEPEST:
        if first.tag not in qualified and steps:
            break
        first = type_entry(first) if "DW_AT_type" in first.attributes else None
        steps += 1
    if first is None:
        return False
    if is_same(first, type.definition) or is_same(first, type.die):
        return True
    is_elsewhere = {"DW_AT_declaration", "DW_AT_signature"} & first.attributes.keys()
    return bool(is_elsewhere) and text(first, "DW_AT_name") in ("", type.base_name)
