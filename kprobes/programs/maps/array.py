"""Arrays: values by a 4-byte index, all of them there from the beginning, zeroed."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from ...arguments import look
from ...errors import BadArgument, ProgramError
from ._base import E2BIG, EEXIST, EINVAL, EXIST, NOEXIST, Map, MapType, Spec


class Array(Map, MutableMapping[int, Any]):
    """ARRAY and PERCPU_ARRAY. In Python a mapping index -> value (per-CPU: a list with one for each
    CPU).
    """

    def __init__(self, spec: Spec) -> None:
        """Make an array of zeros.

        Args:
            spec: the definition: keys of 4 bytes, values of at least 1, at least one entry.

        Raises:
            ProgramError: the definition is not so, or the array takes more than LIMIT bytes.
        """
        super().__init__(spec)
        self.percpu = self.type is MapType.PERCPU_ARRAY
        if not self.percpu:
            self.cpus = 1
        if self.key_size != 4 or not self.value_size or not self.max_entries:
            raise self.refuse(
                "an array has 4-byte keys, values of at least one byte, and at least one entry"
            )
        block = self.block = self._block(self.stride * self.cpus * self.max_entries)
        self.address = block.address
        self.span = block.address, self.stride * self.cpus * self.max_entries
        self._order = "little" if spec.order == "little" else "big"

    def lookup_elem(self, key: bytes, cpu: int = 0) -> int:
        """Return the address of an index's value, in this process; 0: the index is beyond the end.

        Args:
            key: the index, 4 bytes.
            cpu: number of the CPU whose value it is, in a per-CPU array.
        """
        at = self._index(key)
        return self.address + self._at(at, cpu) if at < self.max_entries else 0

    def update_elem(self, key: bytes, value: bytes, flags: int = 0, cpu: int = 0) -> int:
        """Set the value of an index, for one CPU in a per-CPU array.

        Args:
            key: the index, 4 bytes.
            value: the value's bytes.
            flags: ANY or EXIST; NOEXIST fails, as every index is there.
            cpu: number of the CPU.

        Returns:
            0; E2BIG: there is no such index; EEXIST: with NOEXIST; EINVAL: other flags.
        """
        at = self._index(key)
        if flags > EXIST:
            return EINVAL
        if at >= self.max_entries:
            return E2BIG
        if flags == NOEXIST:
            return EEXIST
        self._put(at, cpu, value)
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

    def _index(self, key: bytes) -> int:
        """Return the index that a key's 4 bytes mean, in the program's byte order."""
        return int.from_bytes(key, self._order)  # type: ignore[arg-type]

    def _at(self, index: int, cpu: int) -> int:
        """Return the offset in bytes of a value in the array's memory.

        Args:
            index: the value's index.
            cpu: number of the CPU whose value it is; not used unless the array is per-CPU.
        """
        return (index * self.cpus + (cpu if self.percpu else 0)) * self.stride

    def _put(self, index: int, cpu: int, value: bytes) -> None:
        """Write the bytes of the value at an index, in a per-CPU array that of one CPU."""
        at = self._at(index, cpu)
        self.block.view[at : at + self.value_size] = value

    def _get(self, index: int, cpu: int) -> Any:
        """Return the value at an index, in a per-CPU array that of one CPU, as Python shows it."""
        at = self._at(index, cpu)
        return self.value_codec.load(bytes(self.block.view[at : at + self.value_size]))

    # ---- Python's side

    def __getitem__(self, index: int) -> Any:
        self._check(index)
        return (
            [self._get(index, cpu) for cpu in range(self.cpus)]
            if self.percpu
            else self._get(index, 0)
        )

    def __setitem__(self, index: int, value: Any) -> None:
        self._check(index)
        if self.frozen:
            raise ProgramError(
                f"map {self.name} is constant, and a program has been verified with its value",
                hint="set it before, or load the program again",
            )
        for cpu, raw in enumerate(self._values(value)):
            self._put(index, cpu, raw)

    def __delitem__(self, index: int) -> None:
        raise BadArgument(
            f"map {self.name}: entries of an array cannot be deleted", hint="set them to 0"
        )

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.max_entries))

    def __len__(self) -> int:
        return self.max_entries

    def _check(self, index: int) -> None:
        """Check an index that Python gives.

        Raises:
            KeyError: the array has no such index.
            BadArgument: the index is no integer.
        """
        look(f"map {self.name}: index", index)
        if not 0 <= index < self.max_entries:
            raise KeyError(index)
