"""Translations that end in the middle, because an instruction cannot be fetched: the engine keeps a
note of them.

MIPS's translator notes in its context which temporary tells of a delay slot, and clears the note at
the end of a block. A fetch that fails leaves it there, and the next translation uses a temporary
that it does not have, which kills the process. So the note is cleared.
"""

from __future__ import annotations

import ctypes
from functools import cache

from unicorn import unicorn_const as const

from .engine import Engine
from .guests.guest import Cpu, Guest
from .registers.cells import peek

CONTEXT = 0x300  # bytes: the pointer to the context from the engine's handle
NOTES = range(0x80, 0x180, 8)  # where the note may be in that: hosts differ
TEMPORARIES = range(0x1000, 0x10000)  # a note is a temporary's place in the context
SCRATCH, NOWHERE = 0x10000, 0x80000


class Aborted:
    """The note that an engine's translator keeps of a delay slot, and that a failed fetch leaves
    behind.
    """

    def __init__(self, engine: Engine, guest: Guest) -> None:
        """Find the note's place. It is looked for once for each kind of CPU, and only where it does
        harm (Blocks.fetch_fault_kills).
        """
        self._engine = engine
        self._note = found(guest.cpu) if guest.blocks.fetch_fault_kills else 0

    @property
    def forgotten(self) -> bool:
        """Whether the note's place is known, so that forget() can clear it."""
        return self._note > 0

    def forget(self) -> bool:
        """Clear the note. Return True if the last translation has left one; False also where its
        place is not known.
        """
        if not self._note:
            return False
        context = ctypes.c_uint64.from_address((self._engine.handle.value or 0) + CONTEXT).value
        note = ctypes.c_uint64.from_address(context + self._note)
        there = bool(note.value)
        note.value = 0
        return there


@cache
def found(cpu: Cpu) -> int:
    """Find by trial where the note lies, in a new engine of this kind of CPU.

    There is 0 behind a block, and a temporary behind a fetch that failed.

    Args:
        cpu: how the engine is opened.

    Returns:
        Bytes from the translator's context to the note; 0: it is in no place, or several come into
        question.
    """
    engine = Engine(cpu.open())
    engine.uc.mem_map(SCRATCH, 0x1000, const.UC_PROT_ALL)
    engine.start(SCRATCH, SCRATCH + 8)
    before = _context(engine)
    engine.start(NOWHERE, NOWHERE + 8)
    after = _context(engine)
    places = [at for at in NOTES if before.get(at) == 0 and after.get(at, 0) in TEMPORARIES]
    return places[0] if len(places) == 1 else 0


def _context(engine: Engine) -> dict[int, int]:
    """Read the words of the translator's context among which the note may be.

    Returns:
        Bytes from the context's start -> word of 64 bits.
    """
    context = int.from_bytes(peek((engine.handle.value or 0) + CONTEXT, 8), "little")
    words = peek(context, NOTES.stop)
    return {
        at: int.from_bytes(words[at : at + 8], "little") for at in NOTES if at + 8 <= len(words)
    }
