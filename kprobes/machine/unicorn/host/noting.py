"""Functions of the host's library that note a word and go on to another function, see
kprobes/native/engine.c.

Each engine that needs one has its own; when the engine has gone another one gets it. There is a
fixed number of them: an engine that comes too late has Python called instead (raised.py).

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.
"""

from __future__ import annotations

import ctypes
from functools import cache

from attrs import frozen

from . import hostcode

AT_ONCE = 256  # NOTES of engine.c


@frozen(eq=False)
class Noting:
    """A host function that copies a word before it goes on to the engine's own function.

    Attributes:
        function: its address.
        words: (address of the word to copy, address of the function to go on to or 0, the copy).
        note: the last of these: the copy.
    """

    function: int
    words: ctypes.Array[ctypes.c_uint64]
    note: ctypes.Array[ctypes.c_uint64]


def take(source: int, onward: int) -> Noting | None:
    """Take a free host function, and set what it does.

    Args:
        source: address of the word that it copies.
        onward: address of the function that it goes on to; 0: it returns 0.

    Returns:
        The function; None where there is no host code, or all functions are taken.
    """
    if not hostcode.available() or not _free():
        return None
    one = _free().pop()
    one.words[0] = source
    one.words[1] = onward
    return one


def give_back(one: Noting) -> None:
    """Let another engine take a function. Nothing may call it any more."""
    _free().append(one)


@cache
def _free() -> list[Noting]:
    """Return the list of the host functions that are free: no engine uses them now.

    The list is made at the first call, with all AT_ONCE functions. Later calls return the same
    list, from which take() removes functions, and to which give_back() adds them. Only called
    where there is host code.
    """
    functions = (ctypes.c_uint64 * AT_ONCE).from_address(hostcode.address("take_note"))
    found = []
    for n, function in enumerate(functions):
        words = (ctypes.c_uint64 * 3).from_address(hostcode.address("notes") + 24 * n)
        found.append(Noting(function, words, (ctypes.c_uint64 * 1).from_buffer(words, 16)))
    return found
