"""Stack traces, each kept once: STACK_TRACE. Programs get their numbers from get_stackid."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...arguments import look
from ._base import EEXIST, EINVAL, ENOENT, Map, Spec

FAST_COMPARE: Final = 1 << 9
REUSE: Final = 1 << 10


class StackTraces(Map, Mapping[int, tuple[int, ...]]):
    """STACK_TRACE: call stacks. In Python a mapping number -> addresses, innermost first.

    Attributes:
        depth: the most addresses of a trace.
    """

    def __init__(self, spec: Spec) -> None:
        """Make an empty map; `depth` becomes the number of frames in a value.

        Args:
            spec: the definition: keys of 4 bytes, values of 8 bytes for each of 1 to 127 frames, at
                least one entry.

        Raises:
            ProgramError: the definition is not so.
        """
        super().__init__(spec)
        self.depth = self.value_size // 8
        if (
            self.key_size != 4
            or self.value_size % 8
            or not 1 <= self.depth <= 127
            or not self.max_entries
        ):
            raise self.refuse(
                "a stack trace map has 4-byte keys, values of 8 to 1016 bytes (8 for each frame), "
                "and at least one entry"
            )
        self._traces: dict[int, tuple[int, ...]] = {}
        self._buckets = 1 << (self.max_entries - 1).bit_length()
        self.block = self._block(8)
        self.address = self.block.address

    def number(self, trace: Sequence[int], flags: int) -> int:
        """Keep a stack trace, and return its number, which is computed from its addresses.

        Args:
            trace: addresses, innermost first; those behind the first `depth` are dropped.
            flags: what to do where another trace has the same number: FAST_COMPARE: keep that one,
                REUSE: replace it, 0: fail.

        Returns:
            The number; EEXIST: another trace has it, and `flags` has none of both.
        """
        trace = tuple(trace[: self.depth])
        number = zlib.crc32(b"".join(a.to_bytes(8, "little") for a in trace)) % self._buckets
        there = self._traces.get(number)
        if there is not None and there != trace and not flags & (REUSE | FAST_COMPARE):
            return EEXIST
        if there is None or (there != trace and flags & REUSE):
            self._traces[number] = trace
        return number

    def delete_elem(self, key: bytes) -> int:
        """Remove the trace of a number, given by its 4 bytes; return 0, or ENOENT."""
        number = int.from_bytes(key, self.spec.order)  # type: ignore[arg-type]
        return 0 if self._traces.pop(number, None) is not None else ENOENT

    def lookup_elem(self, key: bytes, cpu: int = 0) -> int:
        """Return 0: programs cannot read traces."""
        return 0

    def update_elem(self, key: bytes, value: bytes, flags: int = 0, cpu: int = 0) -> int:
        """Return EINVAL: programs cannot write traces."""
        return EINVAL

    # ---- Python's side

    def __getitem__(self, number: int) -> tuple[int, ...]:
        look(f"map {self.name}: number", number)
        return self._traces[number]

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._traces))

    def __len__(self) -> int:
        return len(self._traces)
