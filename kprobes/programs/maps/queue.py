"""Queues and stacks of values: QUEUE and STACK. Programs reach them through helpers only."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from ...errors import BadArgument
from ._base import E2BIG, EINVAL, EXIST, Map, MapType, Spec


class Queue(Map):
    """QUEUE (first in, first out) and STACK (last in, first out).

    Iterating gives values in the order of pop, and keeps them.
    """

    def __init__(self, spec: Spec) -> None:
        """Make an empty queue or stack.

        Args:
            spec: the definition: no keys, values of at least one byte, at least one entry.

        Raises:
            ProgramError: the definition is not so.
        """
        super().__init__(spec)
        if self.key_size or not self.value_size or not self.max_entries:
            raise self.refuse(
                "a queue or stack has no keys, values of at least one byte, and at least one entry"
            )
        self._items: deque[bytes] = deque()  # the right end is popped
        self.block = self._block(8)
        self.address = self.block.address

    def push_elem(self, value: bytes, flags: int = 0) -> int:
        """Add a value.

        Args:
            value: the value's bytes.
            flags: ANY; EXIST: where the map is full, the oldest value is dropped.

        Returns:
            0; EINVAL: other flags; E2BIG: the map is full.
        """
        if flags not in (0, EXIST):
            return EINVAL
        full = len(self._items) >= self.max_entries
        if full and flags != EXIST:
            return E2BIG
        if self.type is MapType.STACK:
            if full:
                self._items.popleft()
            self._items.append(value)
        else:
            if full:
                self._items.pop()
            self._items.appendleft(value)
        return 0

    def pop_elem(self) -> bytes | None:
        """Remove the next value and return its bytes; None: the map is empty."""
        return self._items.pop() if self._items else None

    def peek_elem(self) -> bytes | None:
        """Return the bytes of the next value, which stays; None: the map is empty."""
        return self._items[-1] if self._items else None

    # ---- Python's side

    def push(self, value: Any) -> None:
        """Add a value.

        Args:
            value: the value, as Python shows values of this map.

        Raises:
            BadArgument: the map is full, or the value does not fit the type of the map's values.
        """
        if self.push_elem(self._raw("value", self.value_codec, value)):
            raise BadArgument(
                f"map {self.name}: all {self.max_entries} entries are in use",
                hint="pop some, or make max_entries larger",
            )

    def pop(self) -> Any:
        """Remove the next value and return it as Python shows it.

        Raises:
            IndexError: the map is empty.
        """
        return self.value_codec.load(self._items.pop())

    def __iter__(self) -> Iterator[Any]:
        return iter([self.value_codec.load(raw) for raw in reversed(self._items)])

    def __len__(self) -> int:
        return len(self._items)
