"""Counts of histograms: Python's, and those in the memory of maps in which programs count.

In a map, a key is a row of u64: bits that say which columns could not be fetched, then a word for
each column: the bucket where it has buckets, sign-extended where its field is signed. A value is
the hit count, then the sums, which wrap at 64 bits.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterable, MutableSequence, Sequence
from typing import Any

from ..programs.isa import U64
from ..programs.maps import Array, Hash, MapType, Spec

PAUSED, HITS, DROPPED = range(3)  # words of the state
Wrap = Callable[[int], int]


class Words:
    """A codec of map keys and values that are rows of u64: bytes in a map, tuples in Python."""

    def __init__(self, count: int) -> None:
        """Make a codec of rows of `count` words."""
        self._struct = struct.Struct(f"={count}Q")

    def load(self, raw: bytes) -> tuple[int, ...]:
        """Return the words of a row's bytes."""
        return self._struct.unpack(raw)

    def store(self, value: Sequence[int]) -> bytes:
        """Return the bytes of a row's words."""
        return self._struct.pack(*value)


class Counted:
    """The counts of a histogram, which all histograms of one name share.

    Attributes:
        entries: key -> hit count and sums; empty while programs count.
        state: three words, PAUSED, HITS and DROPPED; of no meaning while programs count.
        table: the table of both while programs count; None: Python alone counts.
        borrowers: number of events whose programs count in the table.
    """

    def __init__(self, paused: bool) -> None:
        """Begin without entries.

        Args:
            paused: no hits are counted until it is continued.
        """
        self.entries: dict[tuple[Any, ...], list[int]] = {}
        self.state = [int(paused), 0, 0]
        self._table: CountTable | None = None
        self.borrowers = 0

    @property
    def table(self) -> CountTable | None:
        """The table in which programs count, brought up to date; None: Python alone counts."""
        if self._table is not None:
            self._table.fetch_from_guests()
        return self._table

    @table.setter
    def table(self, table: CountTable | None) -> None:
        """Set the table in which programs count; None: Python alone counts."""
        self._table = table

    @property
    def words(self) -> MutableSequence[int] | memoryview:
        """The words PAUSED, HITS and DROPPED, to be read and written: those of the programs' table
        while there is one, else Python's.
        """
        return self.state if (table := self.table) is None else table.words


class CountTable:
    """The maps in which programs count a histogram.

    Attributes:
        state: the map with the state.
        entries: the map from keys to hit counts and sums.
        words: the state's words (PAUSED, HITS, DROPPED), for Python.
    """

    def __init__(self, keys: Iterable[Wrap], values: int, size: int) -> None:
        """Make empty maps.

        Args:
            keys: for each column of the key, a function from the word in a map to the column's
                number.
            values: number of sums.
            size: entries at most.
        """
        self._keys = tuple(keys)
        self.state = Array(
            Spec(
                type=MapType.ARRAY,
                name="histogram",
                key_size=4,
                value_size=24,
                max_entries=1,
                order=sys.byteorder,
            )
        )
        self.words = self.state.block.view[:24].cast("Q")
        key = 1 + len(self._keys)
        value = 1 + values
        self.entries = Hash(
            Spec(
                type=MapType.HASH,
                name="entries",
                key_size=8 * key,
                value_size=8 * value,
                max_entries=size,
                key=Words(key),
                value=Words(value),
                order=sys.byteorder,
            )
        )

    def fetch_from_guests(self) -> None:
        """Copy what programs in a guest have counted into this process.

        Entries that the guest has written over are dropped, and counted as such.
        """
        self.state.fetch_from_guests()
        self.entries.fetch_from_guests()
        if lost := self.entries.lost:
            self.words[DROPPED] = self.words[DROPPED] + lost & U64
            self.entries.lost = 0

    def rows(self) -> dict[tuple[Any, ...], list[int]]:
        """Return the counts: key -> hit count and sums, as Histogram has them."""
        return {
            tuple(
                [
                    None if faults >> n & 1 else wrap(word)
                    for n, (wrap, word) in enumerate(zip(self._keys, words, strict=True))
                ]
            ): list(counts)
            for (faults, *words), counts in self.entries.items()
        }

    def add(self, key: tuple[Any, ...], counts: Iterable[int]) -> bool:
        """Add counts to a key's hit count and sums.

        Args:
            key: a number for each column; None for one that could not be fetched.
            counts: what is added to the hit count, then to each sum.

        Returns:
            False: there is no room for another key.
        """
        faults = sum(1 << n for n, part in enumerate(key) if part is None)
        words = (faults, *((part or 0) & U64 for part in key))
        before = self.entries.get(words)
        if before is None and len(self.entries) >= self.entries.max_entries:
            return False
        old = before or (0,) * (self.entries.value_size // 8)
        self.entries[words] = tuple([a + b & U64 for a, b in zip(old, counts, strict=True)])
        return True
