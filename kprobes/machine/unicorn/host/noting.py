"""Host code that notes a word and goes on to another function: one function for each engine, used again when that has
gone.

The function finds its three words through the address behind it: where the word is that it copies, where it goes on (0:
it answers 0 itself), and the copy. See raised.py.
"""

from __future__ import annotations

import ctypes
import platform

from attrs import frozen

from . import hostcode
from .ready import READY

AT_ONCE = 64  # functions
_WORD = 8
_free: list[Noting] = []


@frozen(eq=False)
class Noting:
    """One of them. function: its address. words: its three. note: the last of these."""

    function: int
    words: ctypes.Array[ctypes.c_uint64]
    note: ctypes.Array[ctypes.c_uint64]


def take(source: int, onward: int) -> Noting | None:
    """A function that copies the word at `source`, and goes on at `onward`; None where there is no host code."""
    if not hostcode.available():
        return None
    if not _free:
        _free.extend(_made())
    if not _free:
        return None
    one = _free.pop()
    one.words[0], one.words[1] = source, onward
    return one


def give_back(one: Noting) -> None:
    """Nobody calls it any more."""
    _free.append(one)


def _made() -> list[Noting]:
    code = bytes.fromhex(READY[platform.machine()]["note"])
    rows = [(ctypes.c_uint64 * 3)() for _ in range(AT_ONCE)]
    size = len(code) + _WORD
    start = hostcode.executable(b"".join(code + ctypes.addressof(row).to_bytes(_WORD, "little") for row in rows))
    return [Noting(start + n * size, row, (ctypes.c_uint64 * 1).from_buffer(row, 2 * _WORD))
            for n, row in enumerate(rows)] if start else []
