"""Maps: what programs and Python share.

`create(Spec(...))` makes one. Every map's memory is host memory that never moves while the map
lives, so that compiled code, the interpreter and Python work on the same bytes. All integers in
headers are u64 in the host's byte order unless said otherwise.

- `map.address` is the address of its header; LDDW of a map (src MAP) loads it, and helpers get it.
  Values that programs may read and (unless `readonly`) write lie in `map.span`;
  `map.extent(address)` says where one begins and ends.
- **ARRAY, PERCPU_ARRAY**: no header. Value `i` of CPU `c` is at `address + (i * cpus + c) *
  stride`; `stride` is value_size rounded up to 8; cpus is 1 for ARRAY.
- **HASH, LRU_HASH, PERCPU_HASH, LRU_PERCPU_HASH**: header, index, entries; see `maps.hash`.
- **RINGBUF, PERF_EVENT_ARRAY**: header, then records; see `maps.ring`.
- **QUEUE, STACK, BLOOM_FILTER**: only through helpers. **STACK_TRACE**: only through get_stackid.
- **USER_RINGBUF**: samples that Python pushes; see `maps.userring`.
- **LPM_TRIE**: values as of an array; which one belongs to a prefix Python knows.
- **ARRAY_OF_MAPS, HASH_OF_MAPS, PROG_ARRAY**: hold maps and programs, which Python puts in.

In Python arrays and hashes are mappings (key -> value); per-CPU ones give and take a list with a
value for each CPU; ring buffers and perf event arrays are iterables of bytes (a record is consumed
as it is given out); queues and stacks are iterables of values, with `push`. Keys and values go
through codecs: `Plain` shows integers and bytes; with BTF there are ctypes structures.
"""

from collections.abc import Iterable
from typing import Any, Final

from ...errors import ProgramError
from ._base import (
    ANY,
    ENOENT,
    EXIST,
    NOEXIST,
    Codec,
    Map,
    MapType,
    PinnedMemory,
    Plain,
    Spec,
    stored,
)
from .array import Array
from .hash import Hash
from .holders import Bloom, Maps, Nothing, Programs, TaskStorage
from .queue import Queue
from .ring import OVERWRITE, Ring
from .stacks import StackTraces
from .trie import Trie
from .userring import UserRing

_TYPES: dict[int, type[Map]] = {
    **dict.fromkeys((MapType.ARRAY, MapType.PERCPU_ARRAY), Array),
    **dict.fromkeys(
        (MapType.HASH, MapType.LRU_HASH, MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH), Hash
    ),
    **dict.fromkeys((MapType.RINGBUF, MapType.PERF_EVENT_ARRAY), Ring),
    **dict.fromkeys((MapType.QUEUE, MapType.STACK), Queue),
    MapType.STACK_TRACE: StackTraces,
    MapType.LPM_TRIE: Trie,
    **dict.fromkeys((MapType.ARRAY_OF_MAPS, MapType.HASH_OF_MAPS), Maps),
    MapType.PROG_ARRAY: Programs,
    MapType.BLOOM_FILTER: Bloom,
    MapType.USER_RINGBUF: UserRing,
    MapType.TASK_STORAGE: TaskStorage,
    MapType.CGROUP_ARRAY: Nothing,
}
_ARENA: Final = 33  #: BPF_MAP_TYPE_ARENA
#: name of the map that has the number which a session's entry leaves for its return
SESSION = ".session"
#: types with a value for each CPU
PER_CPU = frozenset({MapType.PERCPU_ARRAY, MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH})


class ByAddress(dict[int, Map]):
    """A mapping: address that LDDW loads -> map.

    Maps that are in maps of maps at the moment of the look-up are found, too.
    """

    def __init__(self, maps: Iterable[Map]) -> None:
        """Enter maps by their addresses.

        Args:
            maps: the program's maps.
        """
        super().__init__({m.address: m for m in maps})
        self.holders = [m for m in self.values() if isinstance(m, Maps)]

    def __missing__(self, address: int) -> Map:
        for holder in self.holders:
            for m in holder.held():
                if m.address == address:
                    return m
        raise KeyError(address)

    def get(self, address: int, default: Any = None) -> Any:
        """Return the map at an address; `default` where there is none."""
        try:
            return self[address]
        except KeyError:
            return default


def create(spec: Spec) -> Map:
    """Make a map, of the class for its type.

    Args:
        spec: the map's definition.

    Raises:
        ProgramError: there is no such type here, the type does not allow these sizes, or it is too
            large.
    """
    kind = _TYPES.get(spec.type)
    if spec.type == _ARENA:
        raise ProgramError(
            f"map {spec.name or '?'}: arenas are not supported: they hold addresses of a process "
            "that shares the arena, and a guest shares none",
            hint="keep the data in an array or a hash, and number its entries",
        )
    if kind is None:
        known = ", ".join(sorted(MapType(t).name for t in _TYPES))
        raise ProgramError(
            f"map {spec.name or '?'}: there are no maps of type {spec.type} here",
            hint=f"use one of {known}",
        )
    return kind(spec)


__all__ = [
    "ANY",
    "ENOENT",
    "EXIST",
    "NOEXIST",
    "OVERWRITE",
    "PER_CPU",
    "SESSION",
    "Array",
    "Bloom",
    "ByAddress",
    "Codec",
    "Hash",
    "Map",
    "MapType",
    "Maps",
    "PinnedMemory",
    "Plain",
    "Programs",
    "Queue",
    "Ring",
    "Spec",
    "StackTraces",
    "TaskStorage",
    "Trie",
    "UserRing",
    "create",
    "stored",
]
