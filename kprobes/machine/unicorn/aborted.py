"""Translations that end in the middle, because the instruction cannot be fetched: the engine does not forget them.

MIPS's translator notes in its context which temporary tells of a delay slot, and clears the note at the end of a block. A fetch that
fails leaves it there, and the next translation uses a temporary that it does not have, which kills the process. So the note is cleared.
"""

from __future__ import annotations

import ctypes
from functools import cache

from unicorn import unicorn_const as const

from .engine import Engine
from .guests.guest import Cpu, Guest
from .registers.cells import peek

CONTEXT, NOTE = 0x300, 0x100  # bytes: the pointer to the context from the engine's handle, the note from that
SCRATCH, NOWHERE = 0x10000, 0x80000


class Aborted:
    """Those of an engine."""

    def __init__(self, engine: Engine, guest: Guest) -> None:
        self._engine = engine
        self._found = guest.blocks.fetch_fault_kills and found(guest.cpu)

    @property
    def forgotten(self) -> bool:
        """True where they can be forgotten."""
        return self._found

    def forget(self) -> bool:
        """The last translation has not killed anything. True if it was one of those."""
        if not self._found:
            return False
        context = ctypes.c_uint64.from_address((self._engine.handle.value or 0) + CONTEXT).value
        note = ctypes.c_uint64.from_address(context + NOTE)
        there, note.value = bool(note.value), 0
        return there


@cache
def found(cpu: Cpu) -> bool:
    """True where a scratch engine's note is where it should be: none behind a block, and one behind a fetch that failed."""
    engine = Engine(cpu.open())
    engine.uc.mem_map(SCRATCH, 0x1000, const.UC_PROT_ALL)
    engine.start(SCRATCH, SCRATCH + 8)
    before = _note(engine)
    engine.start(NOWHERE, NOWHERE + 8)
    return before == 0 < _note(engine) < 1 << 16  # a temporary, by its place in the context


def _note(engine: Engine) -> int:
    context = int.from_bytes(peek((engine.handle.value or 0) + CONTEXT, 8), "little")
    word = peek(context + NOTE, 8)
    return int.from_bytes(word, "little") if len(word) == 8 else -1
