"""Stops by another thread: a signal, a timeout, m.stop().

The engine looks whether its run is to stop where a block begins, behind each hook and behind each
access to memory. At the last of these an instruction is half done: its access is made, pc still
stands in front of it, and it is made once more when the run goes on. One that adds to memory adds
twice; one that loads the register that it loads through goes astray. And uc_emu_stop() has hooks
left out, so that another thread must not call it either.

So another thread asks. Two functions of ours stand where the library looks for two of its own
(library.py): that which leaves a block, and that which executes blocks until there is something
else to do. A look that finds nothing but that somebody asked goes on; where the next block begins
the engine comes out, and is stopped there by its own thread. A look that finds more, a hook's stop
or an access that failed, leaves the block as ever.

Words of an engine (ROW): its handle, or FREE; its CPU, from its first run on; whether somebody
asks; whether it is deaf to that, which waits. Rows are never freed, and used again. Behind the last
of a piece there is 0, and the address of the next piece.

Host code is compiled code of the library's (kprobes/native), which does in this process what Python
would do more slowly.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import cache

from . import hostcode
from .known import known
from .library import GUESTS, WORD, address, called

ROW = ("engine", "cpu", "asked", "deaf")
AT_ONCE, FREE = 64, 1
_SIZE = len(ROW) * WORD
_KNOWN = 7  # words of engine.c's struct about: what the two functions know of a guest
_ASKED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class OutsideStops:
    """How other threads stop one engine, which nobody else runs: they ask it to stop itself. Where
    the engine's library is made otherwise, or without host code, that is impossible (`known`).
    """

    def __init__(self, handle: int, owner: object) -> None:
        """Take a row of words for the engine. The first engine of the process has the library's
        functions put between the engine's library and two of its own, for all engines
        (_standing()).

        Args:
            handle: the engine's.
            owner: an object that lives as long as the engine; the row is given back with it.
        """
        self._row = _take(handle) if hostcode.available() and _standing() else None
        self._end = None if self._row is None else weakref.finalize(owner, _give_back, self._row)

    @property
    def known(self) -> bool:
        """Whether another thread may ask(): the engine has a row."""
        return self._end is not None and self._end.alive

    def ask(self) -> None:
        """Ask the engine to stop: its own thread stops it where the next block begins, in this run
        or the next one. Any thread may call this.
        """
        assert self._row is not None
        _asking()(ctypes.addressof(self._row), address("cpu_exit"))

    def forget(self) -> None:
        """Take back the request to stop."""
        if self._row is not None:
            self._row[2] = 0

    def turn(self, deaf: int) -> int:
        """Make the engine deaf to requests to stop, or let them through again.

        Args:
            deaf: 1: requests wait from now on; 0: they stop runs again, and a waiting one does so
                now.

        Returns:
            The value before: 1 or 0.
        """
        assert self._row is not None
        before, self._row[3] = self._row[3], deaf
        if self._row[2] and not deaf:
            self.ask()
        return int(before)

    def end(self) -> None:
        """Give the engine's row back: the engine heeds no requests any more, since another user may
        run it.
        """
        if self._end is not None:
            self._end()


_Row = ctypes.Array[ctypes.c_uint64]
_free: list[_Row] = []
_users: dict[int, int] = {}  #: handle of an engine -> how many OutsideStops share its row
_rows: dict[int, _Row] = {}  #: handle of an engine -> its row
_pieces: list[_Row] = []


def _take(handle: int) -> _Row:
    """Return the row of an engine: a free one, which asks for no stop, or the one that it has;
    count one user more.

    Host code heeds the first row that it finds for an engine: two machines of one engine, its
    owner's and one that was attached to it, share a row.

    Args:
        handle: of the engine.
    """
    # first: the collector may end another of its OutsideStops on the way
    _users[handle] = _users.get(handle, 0) + 1
    row = _rows.get(handle)
    if row is None:
        if not _free:
            _free.extend(_piece())
        row = _rows[handle] = _free.pop()
        row[2], row[3] = 0, 0
    # also of a shared row: the engine before may have had this handle, too, and another CPU
    row[1] = 0
    row[0] = handle  # last: it is found from here on
    return row


def _give_back(row: _Row) -> None:
    """Give back the row of words (ROW) that an OutsideStops has used. The row becomes free, for
    another engine, when no other OutsideStops of the same engine shares it.

    Called once for each OutsideStops: at end(), or when the engine's owner has gone. A free row's
    memory stays.
    """
    handle = row[0]
    _users[handle] -= 1
    if _users[handle]:
        return
    del _users[handle], _rows[handle]
    row[0], row[1] = FREE, 0
    _free.append(row)


def _piece() -> list[_Row]:
    """Make more rows, and return them; host code finds them behind those before."""
    words = (ctypes.c_uint64 * (len(ROW) * AT_ONCE + 2))()
    rows = [(ctypes.c_uint64 * len(ROW)).from_buffer(words, n * _SIZE) for n in range(AT_ONCE)]
    for row in rows:
        row[0] = FREE
    if _pieces:
        _pieces[-1][len(ROW) * AT_ONCE + 1] = ctypes.addressof(words)
    _pieces.append(words)
    return rows


@cache
def _asking() -> ctypes._CFunctionType:
    """Return the host function that asks an engine to stop: (address of the row, address of the
    engine's cpu_exit()).
    """
    return _ASKED(hostcode.address("stop_soon"))


@cache
def _standing() -> bool:
    """Put the library's functions where the engine's library looks for two of its own
    (cpu_loop_exit_restore and cpu_exec), if that has not been done in this process. Only where
    there is host code.

    Returns:
        True: they are there. False: they cannot be put there, as the engine's library is made
        otherwise than expected; nothing was changed.
    """
    try:
        functions, guests = called(), [known(guest) for guest in GUESTS]
        leaving, running = (
            functions.places([f"{name}_{guest}" for guest in GUESTS])
            for name in ("cpu_loop_exit_restore", "cpu_exec")
        )
    except (AttributeError, ValueError, OSError):
        return False
    _free.extend(_piece())
    first, exit_, stop = ctypes.addressof(_pieces[0]), address("cpu_exit"), address("uc_emu_stop")
    rows = ctypes.c_uint64.from_address(hostcode.address("leaving")).value
    executing = hostcode.address("executing")
    for places, words, ours in (
        (leaving, rows, "leave_block"),
        (running, executing, "execute_blocks"),
    ):
        entries = (ctypes.c_uint64 * len(GUESTS)).from_address(hostcode.address(ours))
        for n, (place, guest) in enumerate(zip(places, guests, strict=True)):
            about = (ctypes.c_uint64 * _KNOWN).from_address(words + _KNOWN * WORD * n)
            about[:] = [
                functions.originals[place],
                guest.look,
                first,
                exit_,
                stop,
                guest.block,
                guest.code,
            ]
            functions.put(place, entries[n])
    return True
