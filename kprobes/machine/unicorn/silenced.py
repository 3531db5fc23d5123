"""Accesses that the engine no longer reports, once a block of the guest's has changed itself.

A row is what is known of the engine for one architecture (guests/guest.py).

A store that the engine makes byte by byte (unaligned, to a page with code in it) calls the hooks of
accesses once. So the engine notes the store's size in its handle, and calls none while a size is
there. A byte that changes the block which is executed leaves the store by a jump, and the note
stays until the engine comes out of its loop: no access is reported until then. The block is
translated anew in any case, which the engine tells; and there is no store under way when it
translates.
"""

from __future__ import annotations

import ctypes
from typing import Any
from weakref import WeakKeyDictionary

from unicorn import unicorn_const as const

from .engine import CALL, Engine
from .guests.guest import Guest, Silenced

BASE = 0x10000
_tried: dict[Silenced, bool] = {}
TRANSLATED = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def hear_again(engine: Engine, guest: Guest) -> int:
    """Add a hook by which accesses are reported behind blocks that change themselves, too.

    Args:
        engine: the engine.
        guest: the engine's row of the architecture.

    Returns:
        The handle of the hook that does it, to be deleted with the hooks of accesses. 0: there is
        none, as this guest's engine does no such thing, or keeps its note elsewhere than is known.
    """
    silenced = guest.memory.silenced
    if silenced is None:
        return 0
    if silenced not in _tried:
        _tried[silenced] = _known(guest, silenced)
    return _hook(engine, silenced.note) if _tried[silenced] else 0


#: engine -> its callback: the engine keeps each that it ever had
_callbacks: WeakKeyDictionary[Engine, Any] = WeakKeyDictionary()


def _hook(engine: Engine, offset: int) -> int:
    """Add a hook on each translation that clears the engine's note, and return the hook's handle.

    Args:
        engine: the engine.
        offset: bytes from the engine's handle to the note.
    """
    if engine not in _callbacks:
        note = _note(engine, offset)

        def on_translation(_uc: int) -> None:
            """Clear the engine's note, as a block is translated."""
            note.value = 0

        _callbacks[engine] = TRANSLATED(on_translation)
    return engine.hook(const.UC_HOOK_EDGE_GENERATED, _callbacks[engine])


def _note(engine: Engine, offset: int) -> ctypes.c_uint32:
    """Return the note, a word of 32 bits of the engine's, `offset` bytes behind the start of its
    handle.
    """
    return ctypes.c_uint32.from_address((engine.handle.value or 0) + offset)


def _known(guest: Guest, silenced: Silenced) -> bool:
    """Return True where the note is where the row says, as a new engine shows: code that changes
    itself is executed there.

    The note stays behind a block that changes itself, and is gone with the next start.

    Args:
        guest: the engine's row of the architecture.
        silenced: where the note is, and code that changes itself.
    """
    engine = guest.cpu.fresh()
    engine.uc.mem_map(BASE, 0x1000)
    engine.write(BASE, silenced.code + bytes.fromhex("90") * 16)
    engine.hook(const.UC_HOOK_MEM_WRITE, CALL(lambda *_: None))
    note, seen = _note(engine, silenced.note), []
    end = BASE + len(silenced.code)
    for start, until in (end, end + 8), (BASE, end), (end, end + 8):
        engine.start(start, until)
        seen.append(note.value)
    return seen == [0, 4, 0]
