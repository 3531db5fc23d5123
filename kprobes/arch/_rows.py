"""Rows: what only some parts of the library need to know of an architecture.

Each kind of row is one class here in `arch`: `Linux`, `StubFacts`, `DetourCode`, `Compiling`,
`DwarfFacts`, `AssemblyText`, `Comparing`. An architecture's package has a module for each kind that
is known, named by the class's MODULE, whose ROWS maps names of architectures to their rows. Such a
module is imported when one of its rows is asked for first, so that loading an architecture loads
its tables of instructions and nothing else.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar

from ..errors import Unsupported
from ._base import Arch

__all__ = ["RowKind", "row"]


class RowKind(Protocol):
    """A class of rows.

    Attributes:
        MODULE: name of the module of an architecture's package that has its rows of this kind.
    """

    MODULE: ClassVar[str]


T = TypeVar("T", bound=RowKind)


def row(arch: Arch, kind: type[T]) -> T | None:
    """Return the row of one kind that an architecture's package has; import its module if need be.

    Args:
        arch: the architecture; `Arch.package` says where its rows are.
        kind: the class of the row, such as `Linux`.

    Returns:
        The row, or None where the architecture has none of this kind.

    Raises:
        Unsupported: what the package has under the architecture's name is of another class.
    """
    found = _rows(arch.package, kind.MODULE).get(arch.name) if arch.package else None
    if found is None or isinstance(found, kind):
        return found
    raise Unsupported(f"{arch.package}.{kind.MODULE} has no {kind.__name__} for {arch.name}",
                      hint=f"give ROWS[{arch.name!r}] as a {kind.__name__} of kprobes.arch")


@cache
def _rows(package: str, module: str) -> Mapping[str, Any]:
    """Import a module of rows and return its ROWS: name of an architecture -> row; {} where there
    is no such module. The result is remembered.

    Args:
        package: the architecture's package, such as "kprobes.arch.arm".
        module: name of the module in it, such as "linux".
    """
    name = f"{package}.{module}"
    try:
        rows: Mapping[str, Any] = importlib.import_module(name).ROWS
    except ModuleNotFoundError as error:
        if error.name != name:  # the module is there, and imports another that is not
            raise
        return {}
    return rows
