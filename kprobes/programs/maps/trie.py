"""Longest prefixes: LPM_TRIE.

A key is a u32, the number of bits that count, and the data; the longest prefix of it is found.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from ...errors import BadArgument
from ._base import E2BIG, EEXIST, EINVAL, ENOENT, EXIST, NOEXIST, Map, Spec

ENOSPC = -28


class Trie(Map, MutableMapping[Any, Any]):
    """LPM_TRIE: values by prefixes. In Python a mapping prefix -> value, for exactly that prefix.

    longest(key) finds the longest prefix of a key, as programs do.
    """

    def __init__(self, spec: Spec) -> None:
        """Make an empty trie.

        Args:
            spec: the definition: keys of 5 to 260 bytes, values of at least one, at least one
                entry.

        Raises:
            ProgramError: the definition is not so, or the trie takes more than LIMIT bytes.
        """
        super().__init__(spec)
        self.cpus = 1
        if not 5 <= self.key_size <= 260 or not self.value_size or not self.max_entries:
            raise self.refuse(
                "an LPM trie has keys of 4 bytes and 1 to 256 bytes of data, values of at least "
                "one byte, and at least one entry"
            )
        size = self.stride * self.max_entries
        self.block = self._block(size)
        self.address = self.block.address
        self.span = self.address, size
        self._order = "little" if spec.order == "little" else "big"
        # (bits, data's first bits as a number) -> entry
        self._places: dict[tuple[int, int], int] = {}
        self._keys: dict[int, bytes] = {}
        self._free = list(range(self.max_entries - 1, -1, -1))

    def _prefix(self, key: bytes) -> tuple[int, int] | None:
        """Split a key into its number of bits and its data.

        Args:
            key: u32 number of bits, then the data.

        Returns:
            (number of bits, so many first bits of the data as a number); None: the key asks for
            more bits than its data has.
        """
        bits = int.from_bytes(key[:4], self._order)  # type: ignore[arg-type]
        whole = 8 * (self.key_size - 4)
        return None if bits > whole else (bits, int.from_bytes(key[4:], "big") >> whole - bits)

    def lookup_elem(self, key: bytes, cpu: int = 0) -> int:
        """Return the address in this process of the value of a key's longest prefix; 0: none.

        Args:
            key: u32 number of bits, then the data.
            cpu: not used.
        """
        entry = self._longest(key)
        return 0 if entry is None else self.address + entry * self.stride

    def _longest(self, key: bytes) -> int | None:
        """Return the number of the entry that has a key's longest prefix; None: there is none, or
        the key has more bits than its data.

        Args:
            key: u32 number of bits, then the data.
        """
        found = self._prefix(key)
        if found is None:
            return None
        bits, data = found
        for length in range(bits, -1, -1):
            entry = self._places.get((length, data >> bits - length))
            if entry is not None:
                return entry
        return None

    def update_elem(self, key: bytes, value: bytes, flags: int = 0, cpu: int = 0) -> int:
        """Set the value of exactly this prefix; longer and shorter ones keep theirs.

        Args:
            key: u32 number of bits, then the data.
            value: the value's bytes.
            flags: ANY; NOEXIST: the prefix must be new; EXIST: it must be there.
            cpu: not used.

        Returns:
            0; EINVAL: other flags, or more bits than there are; EEXIST or ENOENT: it is, or is not,
            there; ENOSPC: the trie is full.
        """
        prefix = self._prefix(key)
        if prefix is None or flags > EXIST:
            return EINVAL
        entry = self._places.get(prefix)
        if entry is None:
            if flags == EXIST:
                return ENOENT
            if not self._free:
                return ENOSPC
            entry = self._places[prefix] = self._free.pop()
        elif flags == NOEXIST:
            return EEXIST
        self._keys[entry] = key
        at = entry * self.stride
        self.block.view[at : at + self.value_size] = value
        return 0

    def delete_elem(self, key: bytes) -> int:
        """Delete exactly this prefix.

        Args:
            key: u32 number of bits, then the data.

        Returns:
            0; ENOENT: there is none; EINVAL: it has more bits than a key's data.
        """
        prefix = self._prefix(key)
        if prefix is None:
            return EINVAL
        entry = self._places.pop(prefix, None)
        if entry is None:
            return ENOENT
        del self._keys[entry]
        self._free.append(entry)
        return 0

    def extent(self, address: int) -> tuple[int, int] | None:
        """Return (first address, address behind) of the value that an address lies in.

        Args:
            address: an address in this process, within `span`.

        Returns:
            None: the address lies in the padding behind a value.
        """
        start = address - (address - self.address) % self.stride
        return (start, start + self.value_size) if address < start + self.value_size else None

    # ---- Python's side

    def _load(self, entry: int) -> Any:
        """Return the value of an entry, given by its number, as Python shows it."""
        at = entry * self.stride
        return self.value_codec.load(bytes(self.block.view[at : at + self.value_size]))

    def longest(self, key: Any) -> Any:
        """Return the value of the longest prefix of a key, as programs find it.

        Args:
            key: the key, as Python shows keys of this map.

        Raises:
            KeyError: there is none.
        """
        entry = self._longest(self._raw("key", self.key_codec, key))
        if entry is None:
            raise KeyError(key)
        return self._load(entry)

    def __getitem__(self, key: Any) -> Any:
        prefix = self._prefix(self._raw("key", self.key_codec, key))
        if prefix is None or prefix not in self._places:
            raise KeyError(key)
        return self._load(self._places[prefix])

    def __setitem__(self, key: Any, value: Any) -> None:
        raw = self._raw("key", self.key_codec, key)
        error = self.update_elem(raw, self._values(value)[0])
        if error in (ENOSPC, E2BIG):
            raise BadArgument(
                f"map {self.name}: all {self.max_entries} entries are in use",
                hint="delete some, or make max_entries larger",
            )
        if error:
            raise BadArgument(
                f"map {self.name}: a prefix of more bits than its data has",
                hint=f"{8 * (self.key_size - 4)} are the most",
            )

    def __delitem__(self, key: Any) -> None:
        if self.delete_elem(self._raw("key", self.key_codec, key)):
            raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter([self.key_codec.load(key) for _, key in sorted(self._keys.items())])

    def __len__(self) -> int:
        return len(self._keys)
