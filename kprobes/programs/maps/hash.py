"""Hash tables with all entries allocated in advance: HASH, LRU_HASH, and their per-CPU forms.

At `address` there are eight u64 words, then the index, then the entries:

    word 0  entries in use
         1  the first entry on the list of free ones: its number plus 1; 0: none
         2  entries from this number on have never been used
         3  seed of the hash
         4  mask: slots of the index, less one
         5  hand: the entry where the search for one to evict goes on (LRU)
         6  bytes from the header to the index
         7  bytes from the header to the entries

The index is `u32[mask + 1]`: number of an entry plus 1, or 0 for an empty slot; an entry stands in
the first free slot from its *home* on, cyclically. An entry is `u32 home; u32 state`, its key,
zero-padded to words of 8 bytes, and a value for each CPU, `stride` bytes each. State: 0 free
(`home` is then the next free entry's number plus 1), 1 used, 3 used and looked up since the hand
was there last (LRU).

The home of a key: `h = seed; for each word w of the key: h = (h ^ w) * 0x9e3779b97f4a7c15 mod
2**64, h ^= h >> 29`; then `(h >> 32) & mask`. The index has at least twice as many slots as there
are entries.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, Final

from ...errors import BadArgument
from ._base import E2BIG, EEXIST, EINVAL, ENOENT, EXIST, NOEXIST, Map, MapType, Spec

HEADER: Final = 64
COUNT, FREE, FRESH, SEED, MASK, HAND = range(6)
USED, SEEN = 1, 3
_MULTIPLIER: Final = 0x9E3779B97F4A7C15
_U64: Final = (1 << 64) - 1


class Hash(Map, MutableMapping[Any, Any]):
    """A hash table. In Python a mapping key -> value (per-CPU: a list with one for each CPU).

    The order of its keys is that of the entries' memory.

    Attributes:
        lost: how often drop() was called: a guest had written over its copy of the table.
        made: bytes of the header as they were when the table was new.
        lru: True where a full table evicts the entry that was not looked up for longest.
        slots: slots of the index.
        entries: offset of the entries in the table's memory, in bytes.
        value_at: offset of an entry's first value from the entry's beginning, in bytes.
        entry_size: bytes of an entry.
    """

    def __init__(self, spec: Spec) -> None:
        """Make an empty table.

        Args:
            spec: the definition: keys and values of at least one byte, at least one entry.

        Raises:
            ProgramError: the definition is not so, or the table takes more than LIMIT bytes.
        """
        super().__init__(spec)
        self.percpu = self.type in (MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH)
        self.lru = self.type in (MapType.LRU_HASH, MapType.LRU_PERCPU_HASH)
        if not self.percpu:
            self.cpus = 1
        if not (self.key_size and self.value_size and self.max_entries):
            raise self.refuse(
                "a hash has keys and values of at least one byte, and at least one entry"
            )
        slots = self.slots = 1 << (2 * self.max_entries - 1).bit_length()  # of the index
        self.entries = HEADER + 4 * slots + 7 & ~7  # bytes from the header to the entries
        self.value_at = 8 + (self.key_size + 7 & ~7)  # bytes from an entry to its first value
        self.entry_size = self.value_at + self.stride * self.cpus
        size = self.entries + self.entry_size * self.max_entries
        self.block = self._block(size)
        self.address = self.block.address
        whole = self.block.view
        self._head = whole[:HEADER].cast("Q")
        self._index = whole[HEADER : HEADER + 4 * slots].cast("I")
        self._view = whole
        struct.pack_into(
            "8Q", whole, 0, 0, 0, 0, random.getrandbits(64), slots - 1, 0, HEADER, self.entries
        )
        self.lost = 0
        self.made = bytes(whole[:HEADER])
        self.span = self.address + self.entries, size - self.entries
        self._words = struct.Struct(f"{(self.key_size + 7) // 8}Q")
        self._pad = bytes(-self.key_size % 8)

    # ---- programs' side

    def lookup_elem(self, key: bytes, cpu: int = 0) -> int:
        """Return the address of a key's value in this process; 0: the table has no such key.

        In an LRU table the entry counts as used by that.

        Args:
            key: the key's bytes, key_size of them.
            cpu: number of the CPU whose value it is, in a per-CPU table.
        """
        _, entry = self._find(key)
        if entry < 0:
            return 0
        if self.lru:
            self._mark(entry, self._entry(entry)[0], SEEN)
        return self.address + self._value(entry, cpu)

    def update_elem(self, key: bytes, value: bytes, flags: int = 0, cpu: int = 0) -> int:
        """Set a key's value, for one CPU in a per-CPU table; a new key's other values are zero.

        Args:
            key: the key's bytes.
            value: the value's bytes.
            flags: ANY; NOEXIST: the key must be new; EXIST: it must be there.
            cpu: number of the CPU.

        Returns:
            0; EINVAL: other flags; EEXIST or ENOENT: it is, or is not, there; E2BIG: the table is
            full (an LRU table evicts an entry for a new key instead).
        """
        if flags > EXIST:
            return EINVAL
        slot, entry = self._find(key)
        if entry >= 0:
            if flags == NOEXIST:
                return EEXIST
        elif flags == EXIST:
            return ENOENT
        else:
            entry = self._insert(key, slot)
            if entry < 0:
                return E2BIG
        self._put(entry, cpu, value)
        return 0

    def delete_elem(self, key: bytes) -> int:
        """Delete a key; return 0, or ENOENT where the table has no such key."""
        slot, entry = self._find(key)
        if entry < 0:
            return ENOENT
        self._remove(slot, entry)
        return 0

    def extent(self, address: int) -> tuple[int, int] | None:
        """Return (first address, address behind) of the value that an address lies in.

        Args:
            address: an address in this process, within `span`.

        Returns:
            None: the address lies in none: in an entry's key, or in padding.
        """
        inside = (address - self.address - self.entries) % self.entry_size - self.value_at
        if inside < 0 or inside % self.stride >= self.value_size:
            return None
        start = address - inside % self.stride
        return start, start + self.value_size

    # ---- entries

    def _entry(self, entry: int) -> tuple[int, int]:
        """Return (home, state) of an entry, given by its number; the module says what they are."""
        home, state = struct.unpack_from("II", self._view, self.entries + entry * self.entry_size)
        return home, state

    def _mark(self, entry: int, home: int, state: int) -> None:
        """Write the home and the state of an entry, given by its number."""
        struct.pack_into("II", self._view, self.entries + entry * self.entry_size, home, state)

    def _key(self, entry: int) -> bytes:
        """Return the bytes of an entry's key, given by the entry's number."""
        at = self.entries + entry * self.entry_size + 8
        return bytes(self._view[at : at + self.key_size])

    def _value(self, entry: int, cpu: int) -> int:
        """Return the offset in the map's memory of an entry's value.

        Args:
            entry: the entry's number.
            cpu: number of the CPU whose value it is, in a per-CPU table.
        """
        return (
            self.entries
            + entry * self.entry_size
            + self.value_at
            + (cpu * self.stride if self.percpu else 0)
        )

    def _put(self, entry: int, cpu: int, value: bytes) -> None:
        """Write an entry's value.

        Args:
            entry: the entry's number.
            cpu: number of the CPU whose value it is, in a per-CPU table.
            value: the value's bytes.
        """
        at = self._value(entry, cpu)
        self._view[at : at + self.value_size] = value

    def _home(self, key: bytes) -> int:
        """Return the slot of the index where the search for a key begins: its home.

        Args:
            key: the key's bytes.
        """
        return self.home(self._words.unpack(key + self._pad))

    def home(self, words: Iterable[int]) -> int:
        """Return the slot of the index where the search for a key begins: its home.

        Args:
            words: the key as 64-bit words of the host's byte order, padded with zeros.
        """
        h = self._head[SEED]
        for word in words:
            h = (h ^ word) * _MULTIPLIER & _U64
            h ^= h >> 29
        return h >> 32 & self._head[MASK]

    def _find(self, key: bytes) -> tuple[int, int]:
        """Search the table for a key.

        Args:
            key: the key's bytes.

        Returns:
            (slot of the index, number of the entry); (the empty slot where the key would go, -1):
            the table does not have it.
        """
        mask, index = self._head[MASK], self._index
        slot = self._home(key)
        while number := index[slot]:
            if self._key(number - 1) == key:
                return slot, number - 1
            slot = slot + 1 & mask
        return slot, -1

    def _insert(self, key: bytes, slot: int) -> int:
        """Make a new entry for a key, its values zeroed; a full LRU table evicts another for it.

        Args:
            key: the bytes of a key that the table does not have.
            slot: the slot of the index that _find() gave for the key.

        Returns:
            The entry's number; -1: there is no room.
        """
        entry = self._take()
        if entry < 0 and self.lru:
            self._evict()
            slot, _ = self._find(key)  # what was evicted may have moved others
            entry = self._take()
        if entry < 0:
            return -1
        at = self.entries + entry * self.entry_size
        self._view[at : at + self.entry_size] = (
            bytes(8) + key + self._pad + bytes(self.stride * self.cpus)
        )
        self._mark(entry, self._home(key), USED)
        self._index[slot] = entry + 1
        self._head[COUNT] += 1
        return entry

    def _take(self) -> int:
        """Allocate an entry: one off the list of free ones, or else the next that was never used.

        Returns:
            The entry's number; -1: all entries are in use.
        """
        head = self._head
        if head[FREE]:
            entry: int = head[FREE] - 1
            head[FREE] = self._entry(entry)[0]
            return entry
        if head[FRESH] < self.max_entries:
            head[FRESH] += 1
            return head[FRESH] - 1
        return -1

    def _evict(self) -> None:
        """Remove one entry of a full LRU table, and its key.

        It is the first from the hand on that was not looked up since the hand was there last.
        Entries that were looked up are marked as not looked up, and passed over.
        """
        head = self._head
        while True:
            entry = head[HAND]
            head[HAND] = (entry + 1) % self.max_entries
            home, state = self._entry(entry)
            if state == USED:
                return self._remove(self._find(self._key(entry))[0], entry)
            if state == SEEN:
                self._mark(entry, home, USED)

    def _remove(self, slot: int, entry: int) -> None:
        """Free an entry and its slot; close the gap in the index, so that others are still found.

        Args:
            slot: the slot of the index that has the entry.
            entry: the entry's number.
        """
        head = self._head
        index = self._index
        mask = self._head[MASK]
        self._mark(entry, head[FREE], 0)
        head[FREE] = entry + 1
        head[COUNT] -= 1
        following = slot
        while True:  # close the gap: move back whatever is allowed to stand there
            following = following + 1 & mask
            if not index[following]:
                break
            home = self._entry(index[following] - 1)[0]
            if (following - home & mask) >= (following - slot & mask):
                index[slot] = index[following]
                slot = following
        index[slot] = 0

    def next_key(self, entry: int) -> tuple[int, bytes]:
        """Find the first entry in use from a number on.

        Args:
            entry: number of an entry; 0: the first.

        Returns:
            (the found entry's number plus 1, its key's bytes); (0, zeros): there are no more.
        """
        for number in range(entry, min(self._head[FRESH], self.max_entries)):
            if self._entry(number)[1]:
                return number + 1, bytes(self._key(number))
        return 0, bytes(self.key_size)

    def value_bytes(self, entry: int, cpu: int = 0) -> bytes:
        """Return the bytes of an entry's value.

        Args:
            entry: the entry's number.
            cpu: number of the CPU whose value it is, in a per-CPU table.
        """
        at = self._value(entry, cpu)
        return bytes(self._view[at : at + self.value_size])

    def drop(self) -> None:
        """Empty the table, and add 1 to `lost`.

        Called where a guest has written over its copy, so that nothing in it can be believed.
        """
        self._view[:HEADER] = self.made
        self._empty()
        self.lost += 1

    # ---- Python's side

    def __getitem__(self, key: Any) -> Any:
        self.fetch_from_guests()
        _, entry = self._find(self._raw("key", self.key_codec, key))
        if entry < 0:
            raise KeyError(key)
        values = [self._load(entry, cpu) for cpu in range(self.cpus)]
        return values if self.percpu else values[0]

    def _load(self, entry: int, cpu: int) -> Any:
        """Return an entry's value as Python shows it.

        Args:
            entry: the entry's number.
            cpu: number of the CPU whose value it is, in a per-CPU table.
        """
        at = self._value(entry, cpu)
        return self.value_codec.load(bytes(self._view[at : at + self.value_size]))

    def __setitem__(self, key: Any, value: Any) -> None:
        raw = self._raw("key", self.key_codec, key)
        values = self._values(value)
        self.fetch_from_guests()
        slot, entry = self._find(raw)
        if entry < 0:
            entry = self._insert(raw, slot)
        if entry < 0:
            raise BadArgument(
                f"map {self.name}: all {self.max_entries} entries are in use",
                hint="delete some, or make max_entries larger",
            )
        for cpu, one in enumerate(values):
            self._put(entry, cpu, one)

    def __delitem__(self, key: Any) -> None:
        self.fetch_from_guests()
        if self.delete_elem(self._raw("key", self.key_codec, key)):
            raise KeyError(key)

    def clear(self) -> None:
        """Remove all entries; new keys are put from the first entry on again."""
        self.fetch_from_guests()
        self._empty()

    def _empty(self) -> None:
        """Remove all entries from Python's memory of the table."""
        self._head[COUNT] = self._head[FREE] = self._head[FRESH] = self._head[HAND] = 0
        self._view[HEADER : HEADER + 4 * self.slots] = bytes(4 * self.slots)

    def __iter__(self) -> Iterator[Any]:
        self.fetch_from_guests()
        used = [entry for entry in range(self._head[FRESH]) if self._entry(entry)[1]]
        return iter([self.key_codec.load(self._key(entry)) for entry in used])

    def __len__(self) -> int:
        self.fetch_from_guests()
        return self._head[COUNT]
