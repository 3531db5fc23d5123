"""The common part of all maps; the package's docstring says what maps are."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from itertools import islice
from operator import index
from typing import Any, Final, Protocol

from attrs import field, frozen

from ...arguments import SORTS, checked, look, shown
from ...errors import BadArgument, ProgramError
from ...hostmemory import zeroed

ENOENT: Final = -2
E2BIG: Final = -7
EAGAIN: Final = -11
EEXIST: Final = -17
EINVAL: Final = -22
# flags of map_update_elem, and of map_push_elem
ANY: Final = 0
NOEXIST: Final = 1
EXIST: Final = 2
#: the most bytes that the memory of one map may take
LIMIT: Final = 1 << 30
#: entries that repr() shows
SHOWN: Final = 16


class MapType(IntEnum):
    """Linux's numbers of the map types that there are here."""

    HASH = 1
    ARRAY = 2
    PROG_ARRAY = 3
    PERF_EVENT_ARRAY = 4
    PERCPU_HASH = 5
    PERCPU_ARRAY = 6
    STACK_TRACE = 7
    CGROUP_ARRAY = 8
    LRU_HASH = 9
    LRU_PERCPU_HASH = 10
    LPM_TRIE = 11
    ARRAY_OF_MAPS = 12
    HASH_OF_MAPS = 13
    QUEUE = 22
    STACK = 23
    RINGBUF = 27
    TASK_STORAGE = 29
    BLOOM_FILTER = 30
    USER_RINGBUF = 31


class PinnedMemory:
    """Zeroed host memory at an address that does not move.

    Attributes:
        address: address of its first byte; a multiple of the host's page size.
        size: bytes.
        view: the same memory, for Python.
    """

    def __init__(self, size: int, filled: bool = False) -> None:
        """Allocate memory.

        Args:
            size: bytes; at least 8 are allocated.
            filled: True where its pages are allocated at once; False: each when it is first
                touched.
        """
        self.size = max(size, 8)
        self._memory = zeroed(self.size, filled)
        self._pin = (ctypes.c_char * self.size).from_buffer(self._memory)
        self.address = ctypes.addressof(self._pin)
        self.view = memoryview(self._memory)


class Codec(Protocol):
    """Translates between the bytes of a key or value and what Python shows."""

    def load(self, raw: bytes) -> Any:
        """Return the Python value that bytes mean."""

    def store(self, value: Any) -> bytes:
        """Return the bytes of a Python value. May raise any error where it does not fit."""


class Plain:
    """A codec: 1, 2, 4 and 8 bytes are unsigned integers in the program's byte order, all else is
    bytes.
    """

    def __init__(self, size: int, order: str = "little") -> None:
        """Prepare for values of one size: those of 1, 2, 4 or 8 bytes are shown as unsigned
        integers, others as bytes.

        Args:
            size: bytes of each value.
            order: "little" or "big".
        """
        self.size = size
        self._order = "<" if order == "little" else ">"
        self._code = {1: "B", 2: "H", 4: "I", 8: "Q"}.get(size)

    def load(self, raw: bytes) -> Any:
        """Return the integer that bytes mean; the bytes themselves if they are not 1, 2, 4 or 8."""
        return struct.unpack(self._order + self._code, raw)[0] if self._code else raw

    def store(self, value: Any) -> bytes:
        """Return the bytes of an integer (negative: two's complement), or of a bytes-like object.

        Raises:
            BadArgument: `value` is something else, does not have `size` bytes, or is an integer
                that does not fit into them.
        """
        if hasattr(type(value), "__index__"):
            return self._integer(index(value))
        try:
            raw = bytes(value)
        except (TypeError, ValueError):
            raise BadArgument(
                f"{shown(value)} is neither", hint="pass an integer, or bytes"
            ) from None
        if len(raw) != self.size:
            raise BadArgument(
                f"{len(raw)} bytes where {self.size} are needed", hint=f"pass {self.size} bytes"
            )
        return raw

    def _integer(self, value: int) -> bytes:
        """Return the bytes of an integer; a negative one as two's complement.

        Raises:
            BadArgument: `value` does not fit into `size` bytes.
        """
        bits = 8 * self.size
        if bits and not -(1 << bits - 1) <= value < 1 << bits:
            raise BadArgument(
                f"{shown(value)} does not fit into {self.size} bytes", hint="pass a smaller number"
            )
        return (value & (1 << bits) - 1).to_bytes(
            self.size, "little" if self._order == "<" else "big"
        )


def stored(what: str, codec: Codec, value: Any) -> bytes:
    """Return the bytes of a Python value, whose errors all become BadArgument.

    Args:
        what: names the value in the error: "map counts: key".
        codec: translates the value.
        value: the value, as Python shows it.

    Raises:
        BadArgument: the codec raises an error, of any class: the value does not fit the type.
    """
    try:
        return codec.store(value)
    except Exception as error:
        raise BadArgument(
            f"{what} is {shown(value)}: {getattr(error, 'reason', error)}",
            hint=getattr(error, "hint", ""),
        ) from None


@checked()
@frozen(kw_only=True)
class Spec:
    """The definition of a map.

    Attributes:
        type: Linux's number of the map's type.
        name: the map's name in the object.
        key_size: bytes of a key.
        value_size: bytes of a value.
        max_entries: how many entries it has at most; of RINGBUF, bytes.
        flags: Linux's map_flags.
        cpus: how many values each entry of a per-CPU map has.
        key: how Python shows keys; None: Plain.
        value: how Python shows values; None: Plain.
        readonly: True where programs may not write its values (.rodata).
        inner: a map like those that a map of maps holds; None: it is no map of maps.
        order: byte order of the program's memory: "little" or "big".
    """

    type: int
    name: str = ""
    key_size: int = 0
    value_size: int = 0
    max_entries: int = 0
    flags: int = 0
    cpus: int = 1
    key: Codec | None = None
    value: Codec | None = None
    readonly: bool = False
    inner: Map | None = field(default=None, eq=id)
    order: str = "little"


class Map:
    """A map: memory that programs and Python share. A class for each type of maps derives from it.

    Methods `*_elem` are called for programs' helpers and take bytes; Python uses the classes'
    mapping methods.

    Attributes:
        spec: its definition; the fields are attributes of the map, too.
        address: address of its memory in this process; LDDW of the map loads it.
        block: its memory.
        span: (first address, size) of the memory with the values that programs may access; size 0:
            there are none.
        frozen: True for read-only data that a program has been verified with: they stay as they
            are.
        copies: functions without arguments, one for each guest that has a copy of the map: each
            copies what the guest has written into Python's map.
    """

    address: int
    block: PinnedMemory
    span: tuple[int, int] = (0, 0)
    percpu = False  # a value for each CPU

    def __init__(self, spec: Spec) -> None:
        """Set the attributes; the class of a type allocates the memory.

        Args:
            spec: the definition.

        Raises:
            ProgramError: a number of the definition has more than 32 bits.
        """
        self.spec = spec
        for what in ("key_size", "value_size", "max_entries", "cpus"):
            if not 0 <= getattr(spec, what) < 1 << 32:
                raise self.refuse(f"{what} is {shown(getattr(spec, what))}", "it has 32 bits")
        self.type = MapType(spec.type)
        self.name = spec.name
        self.max_entries = spec.max_entries
        self.key_size = spec.key_size
        self.value_size = spec.value_size
        self.flags = spec.flags
        self.cpus = spec.cpus
        self.readonly = spec.readonly
        self.frozen = False
        self.copies = list[Callable[[], None]]()
        self.key_codec: Codec = spec.key or Plain(spec.key_size, spec.order)
        self.value_codec: Codec = spec.value or Plain(spec.value_size, spec.order)

    @property
    def stride(self) -> int:
        """Bytes from one value to the next: `value_size` rounded up to 8."""
        return self.value_size + 7 & ~7

    def extent(self, address: int) -> tuple[int, int] | None:
        """Return (first address, address behind) of the value in which an address lies.

        Args:
            address: an address in this process, within `span`.

        Returns:
            None: the address lies in no value. Maps whose values programs cannot access by address
            always return None.
        """
        return None

    def lookup_elem(self, key: bytes, cpu: int = 0) -> int:
        """Return the address of a key's value in this process; 0: the map does not have the key.

        Args:
            key: the key's bytes.
            cpu: number of the CPU whose value it is, in a per-CPU map.
        """
        return 0

    def update_elem(self, key: bytes, value: bytes, flags: int = ANY, cpu: int = 0) -> int:
        """Set a key's value.

        Args:
            key: the key's bytes.
            value: the value's bytes.
            flags: ANY; NOEXIST: the key must be new; EXIST: it must be there.
            cpu: number of the CPU whose value is set, in a per-CPU map.

        Returns:
            0, or a negative errno; EINVAL from maps that programs cannot update.
        """
        return EINVAL

    def delete_elem(self, key: bytes) -> int:
        """Delete a key, given by its bytes; return 0 or a negative errno."""
        return EINVAL

    def push_elem(self, value: bytes, flags: int = ANY) -> int:
        """Add a value.

        Args:
            value: the value's bytes.
            flags: ANY; EXIST: where the map is full, the oldest value is dropped.

        Returns:
            0, or a negative errno; EINVAL from maps that are no queues.
        """
        return EINVAL

    def pop_elem(self) -> bytes | None:
        """Remove the next value of a queue or stack and return its bytes; None: there is none."""
        return None

    def peek_elem(self) -> bytes | None:
        """Return the bytes of the next value of a queue or stack, which stays; None: none is."""
        return None

    # ---- Python's side

    def _raw(self, what: str, codec: Codec, value: Any) -> bytes:
        """Return the bytes of a key or value that Python gives.

        Args:
            what: "key" or "value", for the error.
            codec: translates the key or value.
            value: the key or value, as Python shows it.

        Raises:
            BadArgument: the key or value does not fit the type.
        """
        return stored(f"map {self.name}: {what}", codec, value)

    def _values(self, value: Any) -> list[bytes]:
        """Return the bytes of a value: a list with one, or of a per-CPU map with one for each CPU.

        Args:
            value: the value as Python shows it; of a per-CPU map, a sequence with one for each CPU.

        Raises:
            BadArgument: a value does not fit the type, or their number is another.
        """
        if not self.percpu:
            return [self._raw("value", self.value_codec, value)]
        look(f"map {self.name}: value", value, SORTS["Sequence"])
        values = [self._raw("value", self.value_codec, one) for one in value]
        if len(values) != self.cpus:
            raise BadArgument(
                f"map {self.name}: {len(values)} values for {self.cpus} CPUs",
                hint="pass a list with one for each CPU",
            )
        return values

    def fetch_from_guests(self) -> None:
        """Bring Python's map up to date: copy what programs in stopped guests have written to it.

        From then until a guest goes on, Python's map is valid, and the guest's copy is not used.
        """
        for bring in self.copies:
            bring()

    def refuse(self, reason: str, hint: str = "") -> ProgramError:
        """Return an error that says why this map cannot be made; the caller raises it.

        Args:
            reason: why, as a clause.
            hint: what to do instead; "": nothing is known.
        """
        return ProgramError(f"map {self.spec.name or '?'}: {reason}", hint=hint)

    def _block(self, size: int, filled: bool = False) -> PinnedMemory:
        """Allocate the map's memory.

        Args:
            size: bytes.
            filled: True where its pages are allocated at once, not when they are first touched.

        Raises:
            ProgramError: the memory would be larger than LIMIT.
        """
        if size > LIMIT:
            raise self.refuse(
                f"takes {size:,} bytes of memory where {LIMIT:,} are the most",
                "make max_entries smaller",
            )
        return PinnedMemory(size, filled)

    def __repr__(self) -> str:
        entries = ""
        if isinstance(self, Mapping):
            entries = ", ".join(f"{key!r}: {self[key]!r}" for key in islice(self, SHOWN))
            entries = f" {{{entries}{', ...' if len(self) > SHOWN else ''}}}"
        return f"<{self.type.name.lower()} map {self.name}{entries}>"
