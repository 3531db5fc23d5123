"""Source frames of a code address: the function, and the calls that the compiler has
inlined there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from ..symbols import CONTROLS
from .file import text
from .lines import source_path
from .units import Function, named


@frozen
class SourceFrame:
    """A function that an address is part of.

    Attributes:
        function: its name.
        path: source file of the address, or of the call that was inlined; "": not known.
        line: its line; 0: not known.
        inlined: True: its code stands within that of the next frame's function.
    """

    function: str
    path: str
    line: int
    inlined: bool

    def __str__(self) -> str:
        """Return `FUNCTION (inlined) PATH:LINE`, without the parts that do not apply."""
        return (
            self.function
            + " (inlined)" * self.inlined
            + (f" {self.path}:{self.line}" if self.line else "")
        )


def told(frames: Sequence[SourceFrame]) -> str:
    """Return source frames as text: `a.c:12 in f, inlined at a.c:30 in g`, or `a.c:12` for a single
    one.

    Files are named without their folder; frames without a line are left out.

    Args:
        frames: innermost first.

    Returns:
        "" where no frame has a line.
    """
    known = []
    for frame in frames:
        if frame.line:
            where = f"{frame.path.rpartition('/')[2] or '?'}:{frame.line}"
            known.append(f"{where} in {frame.function}" if len(frames) > 1 else where)
    return ", inlined at ".join(known).translate(CONTROLS)


def frames(function: Function, address: int, path: str, line: int) -> list[SourceFrame]:
    """Return the source frames of an address: the inlined calls around it, then the function.

    Args:
        function: has code at the address.
        address: link address.
        path: source file of the address.
        line: its line.

    Returns:
        The frames, innermost first.

    Raises:
        errors in DAMAGE: the debug information is damaged.
    """
    found: list[SourceFrame] = []
    for die in [*inlined_around(function, address)][::-1]:
        found.append(SourceFrame(text(named(die), "DW_AT_name") or "?", path, line, True))
        path, line = _called_at(function, die)
    return [*found, SourceFrame(function.name, path, line, False)]


def inlined_around(function: Function, address: int) -> Iterator[Any]:
    """Yield the entries of the inlined calls that an address is part of, outermost first.

    Args:
        function: has code at the address.
        address: link address.
    """
    todo = function.scopes_in(function.die)[:]
    while todo:
        die, ranges = todo.pop()
        if any(start <= address < end for start, end in ranges):
            todo = function.scopes_in(die)[:]
            if die.tag == "DW_TAG_inlined_subroutine":
                yield die


def _called_at(function: Function, die: Any) -> tuple[str, int]:
    """Return the (path, line) from which an inlined call was made; ("", 0): it is not told.

    Args:
        function: has the inlined code.
        die: entry of the inlined call.

    Raises:
        errors in DAMAGE: the unit's table of files is damaged.
    """
    line, file = (die.attributes.get(f"DW_AT_call_{what}") for what in ("line", "file"))
    if line is None or file is None:
        return "", 0
    return source_path(function.unit, file.value), int(line.value)
