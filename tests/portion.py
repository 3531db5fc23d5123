"""What a test tries where nobody asked for everything: a portion that is another one in each of its cases."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

Thing = TypeVar("Thing")


def portion(things: Sequence[Thing], thorough: bool, case: str, one_of: int) -> list[Thing]:
    """Choose what to try.

    Args:
        things: all that there is.
        thorough: True for all of it; the fixture of this name.
        case: the case's name, an architecture say. Each begins elsewhere, so that all cases together try everything.
        one_of: else one of so many is chosen. No factor of what `things` repeat themselves after.
    """
    if thorough:
        return [*things]
    return [*things[zlib.crc32(case.encode()) % min(one_of, len(things) or 1)::one_of]]
