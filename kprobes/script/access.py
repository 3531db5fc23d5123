"""Programs that run at accesses to memory: their place, in some function at any instruction, and
their arguments, the memory before and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..programs.atprobe import AtProbe
from ..programs.context import ARGUMENT
from . import types
from .inference import ArgumentSource

OLD: Final = ARGUMENT  #: the context's word for the memory before an access
NEW: Final = ARGUMENT + 1  #: for the memory after it


def arguments_of(size: int, bits: int) -> tuple[types.StructType, dict[str, ArgumentSource]]:
    """Return `args` of a watchpoint: `old` and `new`, the watched bytes as numbers without a sign.

    Args:
        size: bytes that are watched: 1, 2, 4 or 8.
        bits: of the guest's words, in which larger numbers have no room.

    Returns:
        (the structure, name -> where it is, or why it is not known).
    """
    kind = types.IntegerType(8 * size, signed=False)
    sources = {"old": ArgumentSource(OLD), "new": ArgumentSource(NEW)}
    if 8 * size > bits:
        reason = f"{size} bytes are more than a word of the guest: watch its words one by one"
        sources = {name: ArgumentSource(0, reason=reason) for name in sources}
    fields = types.RecordField("old", kind, 0), types.RecordField("new", kind, 8)
    return types.StructType("args", 16, fields), sources


def words_of(watchpoint: Any) -> Mapping[int, int]:
    """Return the context's words with the memory before and after a hit; 0 for a device's, of which
    nothing is known.

    Args:
        watchpoint: the Watchpoint that was hit.
    """
    return {OLD: watchpoint.before or 0, NEW: watchpoint.value or 0}


class AtAccess(AtProbe):
    """The place of a watchpoint's program, whose function is the one that the pc is in."""

    def func_ip(self) -> int:
        """Return the address of the function that has accessed the memory; 0: it is not known."""
        pc = self.regs.pc
        found = self.symbol(pc)
        if found is None:
            return 0
        _, offset, _, _ = found
        return pc - offset
