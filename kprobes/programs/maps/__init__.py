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
- **QUEUE, STACK**: only through helpers. **STACK_TRACE**: only through get_stackid.

In Python arrays and hashes are mappings (key -> value); per-CPU ones give and take a list with a
value for each CPU; ring buffers and perf event arrays are iterables of bytes (a record is consumed
as it is given out); queues and stacks are iterables of values, with `push`. Keys and values go
through codecs: `Plain` shows integers and bytes; with BTF there are ctypes structures.
"""

from ...errors import ProgramError
from ._base import ANY, ENOENT, EXIST, NOEXIST, Block, Codec, Map, MapType, Plain, Spec, stored
from .array import Array
from .hash import Hash
from .queue import Queue
from .ring import OVERWRITE, Ring
from .stacks import StackTraces

_TYPES: dict[int, type[Map]] = {
    **dict.fromkeys((MapType.ARRAY, MapType.PERCPU_ARRAY), Array),
    **dict.fromkeys(
        (MapType.HASH, MapType.LRU_HASH, MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH), Hash
    ),
    **dict.fromkeys((MapType.RINGBUF, MapType.PERF_EVENT_ARRAY), Ring),
    **dict.fromkeys((MapType.QUEUE, MapType.STACK), Queue),
    MapType.STACK_TRACE: StackTraces,
}
#: types with a value for each CPU
PER_CPU = frozenset({MapType.PERCPU_ARRAY, MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH})


def create(spec: Spec) -> Map:
    """The map of a specification.

    ProgramError: a type that there is not here, sizes that the type does not allow, too large.
    """
    kind = _TYPES.get(spec.type)
    if kind is None:
        known = ", ".join(sorted(MapType(t).name for t in _TYPES))
        raise ProgramError(f"map {spec.name or '?'}: there are no maps of type {spec.type} here",
                           hint=f"use one of {known}")
    return kind(spec)


__all__ = [
    "ANY",
    "ENOENT",
    "EXIST",
    "NOEXIST",
    "OVERWRITE",
    "PER_CPU",
    "Array",
    "Block",
    "Codec",
    "Hash",
    "Map",
    "MapType",
    "Plain",
    "Queue",
    "Ring",
    "Spec",
    "StackTraces",
    "create",
    "stored",
]
