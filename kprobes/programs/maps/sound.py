"""Checks a hash table that was copied from a guest, which may have written over its copy.

`hash` says how it lies in memory.
"""

from __future__ import annotations

import struct
import sys
from typing import Final

from .hash import COUNT, FREE, FRESH, HAND, HEADER, SEEN, USED, Hash

_CHANGING: Final = (COUNT, FREE, FRESH, HAND)  # words of the header
Row = tuple[int, ...]  # an entry's home, state, and words of its key


def sound(m: Hash) -> bool:
    """Return True where the memory of a hash table is consistent, as programs leave it.

    A search finds each entry in use by its key then; all others that were ever used are on the list
    of free ones; and the header is as it was made, but for the words that programs change. False:
    the guest has written over it.

    Args:
        m: the table, into which a guest's copy was copied.
    """
    view = m.block.view
    head = struct.unpack_from("=8Q", view)
    old = struct.unpack_from("=8Q", m.made)
    fresh = head[FRESH]
    if (
        any(head[n] != old[n] for n in range(8) if n not in _CHANGING)
        or max(fresh, head[HAND] + 1) > m.max_entries
    ):
        return False
    row = struct.Struct(f"=II{(m.key_size + 7) // 8}Q{m.entry_size - m.value_at}x")
    rows = list(row.iter_unpack(view[m.entries : m.entries + fresh * m.entry_size]))
    used = [n for n, (_, state, *_) in enumerate(rows, 1) if state]
    slots = view[HEADER : HEADER + 4 * m.slots].cast("I")
    return (
        len(used) == head[COUNT]
        and sorted(filter(None, slots)) == used
        and _found(m, slots.tolist(), rows)
        and _free(head[FREE], rows) == fresh - len(used)
    )


def _found(m: Hash, slots: list[int], rows: list[Row]) -> bool:
    """Return True if a search finds every entry in use, and no two have the same key.

    Args:
        m: the table.
        slots: the words of the index: number of an entry plus 1, or 0; each is in `rows`.
        rows: (home, state, words of the key) of each entry that was ever used.
    """
    run = 0
    mask = m.slots - 1
    keys = list[Row]()
    empty = slots.index(0)
    padding = int.from_bytes(
        bytes(m.key_size % 8 or 8) + b"\xff" * (-m.key_size % 8), sys.byteorder
    )
    for at in range(empty, empty + len(slots)):
        if not (number := slots[at & mask]):
            run = 0
            continue
        home, state, *key = rows[number - 1]
        known = state == USED or (state == SEEN and m.lru)
        if not known or home != m.home(key) or at - home & mask > run or key[-1] & padding:
            return False
        run += 1
        keys.append(tuple(key))
    return len(set(keys)) == len(keys)


def _free(number: int, rows: list[Row]) -> int:
    """Return how many entries are on the list of free ones; -1: the list is damaged.

    Args:
        number: number of the first entry on the list plus 1; 0: the list is empty.
        rows: (home, state, words of the key) of each entry that was ever used.
    """
    seen = set[int]()
    while 0 < number <= len(rows) and number not in seen and not rows[number - 1][1]:
        seen.add(number)
        number = rows[number - 1][0]
    return -1 if number else len(seen)
