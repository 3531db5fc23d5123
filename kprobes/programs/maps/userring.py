"""Samples from Python for programs: USER_RINGBUF, which bpf_user_ringbuf_drain() empties.

A program uses one sample at a time. While it does, the sample lies in the map's memory, behind 16
bytes of a dynptr of it; what it writes there is lost afterwards. Those that wait are Python's.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ...arguments import SORTS, look
from ...errors import BadArgument
from ._base import Map, Spec

_DYNPTR: Final = 16


class UserRing(Map):
    """USER_RINGBUF: a ring buffer that Python fills by push(), and programs empty.

    Iterating gives the samples that wait as bytes, oldest first, and keeps them.

    Attributes:
        size: bytes that samples may take, each with 8 more and rounded up to 8: max_entries rounded
            up to a power of two, at least a page.
        busy: True while a program uses a sample.
        dynptr: address of that sample's dynptr.
        sample: address of that sample.
    """

    def __init__(self, spec: Spec) -> None:
        """Make an empty ring of `max_entries` bytes, at least a page, rounded up to a power of two.

        Args:
            spec: the definition: neither keys nor values, at least one entry.

        Raises:
            ProgramError: the definition is not so, or the ring takes more than LIMIT bytes.
        """
        super().__init__(spec)
        if self.key_size or self.value_size or not self.max_entries:
            raise self.refuse(
                "a user ring buffer has neither keys nor values; max_entries is its size in bytes"
            )
        self.size = 1 << (max(self.max_entries, mmap.PAGESIZE) - 1).bit_length()
        self.busy = False
        self._fenced = False
        self._used = 0
        self._samples: deque[bytes] = deque()
        self.block = self._block(_DYNPTR + self.size)
        self.address = self.dynptr = self.block.address
        self.sample = self.address + _DYNPTR

    # ---- programs' side

    def take(self) -> bytes | None:
        """Move the oldest sample into the map's memory for a program, which uses it until commit():
        so long `busy` is True.

        Returns:
            The sample's bytes; None: no sample waits, or a program uses one already.
        """
        if not self._samples or self.busy:
            return None
        data = self._samples.popleft()
        self.block.view[_DYNPTR : _DYNPTR + len(data)] = data
        self._used -= _room(data)
        self.busy = True
        return data

    def holds(self, address: int) -> bool:
        """Return True where an address lies in this map's memory."""
        return self.address <= address < self.address + self.block.size

    def commit(self, address: int, discard: bool = False) -> None:
        """End a program's use of the sample that take() gave.

        Args:
            address: address of the sample or of its dynptr; not used.
            discard: not used: the sample is gone in any case.
        """
        self.busy = False

    def abandon(self) -> None:
        """End the use of a sample by a program whose run has failed; one within fenced() stays."""
        self.busy = self._fenced

    @contextmanager
    def fenced(self) -> Iterator[None]:
        """Protect the sample that is in use from abandon(): a context manager.

        Used around a helper, within which other programs may run and fail.
        """
        outer = self._fenced
        self._fenced = self.busy
        try:
            yield
        finally:
            self._fenced = outer

    # ---- Python's side

    def push(self, sample: bytes) -> None:
        """Add a sample for programs.

        Args:
            sample: its bytes.

        Raises:
            BadArgument: there is no room for it, or it is no bytes.
        """
        look(f"map {self.name}: sample", sample, SORTS["bytes"])
        data = bytes(sample)
        if self._used + _room(data) > self.size:
            raise BadArgument(
                f"map {self.name}: no room for {len(data)} bytes",
                hint="have a program drain it, or make max_entries larger",
            )
        self._used += _room(data)
        self._samples.append(data)

    def __iter__(self) -> Iterator[bytes]:
        return iter(list(self._samples))

    def __len__(self) -> int:
        return len(self._samples)


def _room(data: bytes) -> int:
    """Return how many bytes a sample takes in a ring: 8 more than it has, rounded up to 8."""
    return len(data) + 15 & ~7
