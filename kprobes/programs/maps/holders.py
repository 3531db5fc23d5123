"""Maps that hold other things than values: maps, programs, and sets that tell what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

from ...arguments import look
from ...errors import BadArgument
from ._base import E2BIG, EINVAL, ENOENT, Map, MapType, Spec
from .hash import Hash


class Maps(Map, MutableMapping[Any, Map]):
    """ARRAY_OF_MAPS and HASH_OF_MAPS: maps of one kind, by a key. In Python a mapping key -> map.

    Programs look maps up; only Python puts them in.

    Attributes:
        inner: a map like those that it holds: the verifier takes what is looked up for it.
    """

    def __init__(self, spec: Spec) -> None:
        """Make a map that holds no maps yet.

        Args:
            spec: the definition: keys of at least one byte (of 4 for an array), at least one entry,
                and in `inner` what the held maps are like.

        Raises:
            ProgramError: the definition is not so.
        """
        super().__init__(spec)
        if not self.key_size or not self.max_entries or spec.inner is None:
            raise self.refuse(
                "a map of maps has keys, at least one entry, and says what its maps are like",
                "__array(values, struct inner_map)",
            )
        if self.type is MapType.ARRAY_OF_MAPS and self.key_size != 4:
            raise self.refuse("an array of maps has 4-byte keys")
        self.inner = spec.inner
        self.block = self._block(8)
        self.address = self.block.address
        self._held: dict[bytes, Map] = {}

    def lookup_elem(self, key: bytes, cpu: int = 0) -> int:
        """Return the address of the map at a key, given by its bytes; 0: there is none."""
        held = self._held.get(key)
        return 0 if held is None else held.address

    def delete_elem(self, key: bytes) -> int:
        """Remove the map at a key, given by its bytes; return 0, or ENOENT."""
        return ENOENT if self._held.pop(key, None) is None else 0

    def held(self) -> Iterable[Map]:
        """Return the maps that this map holds at the moment."""
        return self._held.values()

    # ---- Python's side

    def __getitem__(self, key: Any) -> Map:
        raw = self._raw("key", self.key_codec, key)
        if raw not in self._held:
            raise KeyError(key)
        return self._held[raw]

    def __setitem__(self, key: Any, value: Map) -> None:
        raw = self._raw("key", self.key_codec, key)
        if not isinstance(value, Map):
            raise BadArgument(
                f"map {self.name}: {value!r} is no map", hint="pass prog.maps['name']"
            )
        if self.type is MapType.ARRAY_OF_MAPS:
            index = self.key_codec.load(raw)
            if not 0 <= index < self.max_entries:
                raise BadArgument(
                    f"map {self.name}: index {index}", hint=f"it has {self.max_entries} entries"
                )
        if raw not in self._held and len(self._held) >= self.max_entries:
            raise BadArgument(
                f"map {self.name}: all {self.max_entries} entries are in use",
                hint="delete some, or make max_entries larger",
            )
        theirs = (value.type, value.key_size, value.value_size)
        if theirs != (self.inner.type, self.inner.key_size, self.inner.value_size):
            raise BadArgument(
                f"map {self.name}: {value!r} is not like {self.inner!r}",
                hint="its maps are of one type, with keys and values of one size",
            )
        self._held[raw] = value

    def __delitem__(self, key: Any) -> None:
        if self.delete_elem(self._raw("key", self.key_codec, key)):
            raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter([self.key_codec.load(raw) for raw in self._held])

    def __len__(self) -> int:
        return len(self._held)


class Programs(Map, MutableMapping[int, Any]):
    """PROG_ARRAY: programs that others continue with (bpf_tail_call), by index. In Python index ->
    Program.
    """

    def __init__(self, spec: Spec) -> None:
        """Make an array that holds no programs yet.

        Args:
            spec: the definition: keys of 4 bytes, at least one entry.

        Raises:
            ProgramError: the definition is not so.
        """
        super().__init__(spec)
        if self.key_size != 4 or not self.max_entries:
            raise self.refuse("a program array has 4-byte keys and values, and at least one entry")
        self.block = self._block(8)
        self.address = self.block.address
        self._held: dict[int, Any] = {}
        self._ready: dict[int, Any] = {}

    def delete_elem(self, key: bytes) -> int:
        """Remove the program at an index, given by its 4 bytes; return 0, or ENOENT."""
        number = int.from_bytes(key, self.spec.order)  # type: ignore[arg-type]
        self._ready.pop(number, None)
        return ENOENT if self._held.pop(number, None) is None else 0

    def prepare(self, make: Callable[[Any], Any]) -> None:
        """Make an engine for each program that the array holds, before they are needed at a hit.

        Args:
            make: (Program) -> engine that runs it; kept for ready().
        """
        for number, program in self._held.items():
            self._ready[number] = make(program)

    def ready(self, number: int) -> Any:
        """Return the engine of the program at an index: prepare()'s, or an interpreter.

        The interpreter is made at the first call, and kept.

        Args:
            number: the index.

        Returns:
            None: the array holds no program there.
        """
        if number not in self._ready and number in self._held:
            self._ready[number] = self._held[number].engine("interpreter")
        return self._ready.get(number)

    # ---- Python's side

    def __getitem__(self, index: int) -> Any:
        look(f"map {self.name}: index", index)
        return self._held[index]

    def __setitem__(self, index: int, value: Any) -> None:
        look(f"map {self.name}: index", index)
        if not 0 <= index < self.max_entries:
            raise BadArgument(
                f"map {self.name}: index {index}", hint=f"it has {self.max_entries} entries"
            )
        if not hasattr(value, "engine"):
            raise BadArgument(f"map {self.name}: {value!r} is no program", hint="pass prog['name']")
        self._held[index] = value
        self._ready.pop(index, None)

    def __delitem__(self, index: int) -> None:
        look(f"map {self.name}: index", index)
        del self._held[index]
        self._ready.pop(index, None)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._held))

    def __len__(self) -> int:
        return len(self._held)


class Bloom(Map):
    """BLOOM_FILTER: a set of values.

    Unlike Linux's it keeps the values, so it has no false positives.
    """

    def __init__(self, spec: Spec) -> None:
        """Make an empty set.

        Args:
            spec: the definition: no keys, values of at least one byte, at least one entry.

        Raises:
            ProgramError: the definition is not so.
        """
        super().__init__(spec)
        if self.key_size or not self.value_size or not self.max_entries:
            raise self.refuse(
                "a bloom filter has no keys, values of at least one byte, and at least one entry"
            )
        self.block = self._block(8)
        self.address = self.block.address
        self._items: set[bytes] = set()

    def push_elem(self, value: bytes, flags: int = 0) -> int:
        """Add a value to the set.

        Args:
            value: the value's bytes.
            flags: must be 0.

        Returns:
            0; E2BIG: the set is full; EINVAL: there are flags.
        """
        if flags:
            return EINVAL
        if len(self._items) >= self.max_entries and value not in self._items:
            return E2BIG
        self._items.add(value)
        return 0

    def has(self, value: bytes) -> bool:
        """Return True where a value is in the set, given by its bytes."""
        return value in self._items

    # ---- Python's side

    def push(self, value: Any) -> None:
        """Add a value to the set.

        Args:
            value: the value, as Python shows values of this map.

        Raises:
            BadArgument: the set is full, or the value does not fit the type of the map's values.
        """
        if self.push_elem(self._raw("value", self.value_codec, value)):
            raise BadArgument(
                f"map {self.name}: all {self.max_entries} entries are in use",
                hint="make max_entries larger",
            )

    def __contains__(self, value: Any) -> bool:
        return self.has(self._raw("value", self.value_codec, value))

    def __len__(self) -> int:
        return len(self._items)


class TaskStorage(Hash):
    """TASK_STORAGE: a value for each of the guest's tasks. In Python a mapping task -> value."""

    def __init__(self, spec: Spec) -> None:
        """Make an empty map.

        Args:
            spec: the definition: as of a hash table, with keys of 4 bytes.

        Raises:
            ProgramError: the definition is not so, or the table takes more than LIMIT bytes.
        """
        super().__init__(spec)
        if self.key_size != 4:
            raise self.refuse("task storage has 4-byte keys")


class Nothing(Map):
    """CGROUP_ARRAY: a map for control groups, which guests do not have.

    An object may define one; a program that uses it is refused.
    """

    def __init__(self, spec: Spec) -> None:
        """Make a map that cannot be used; it has 8 bytes of memory, so that it has an address."""
        super().__init__(spec)
        self.block = self._block(8)
        self.address = self.block.address
