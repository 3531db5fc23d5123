"""Executable guest memory cut into slots: displaced instructions, trampolines, detours.

A slot that is given back may still be executing (its probe was unregistered from its own handler), so it becomes
garbage first and is reused only when the caller says that no CPU can be inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...errors import NoMemory, OutOfReach
from ...machine._base import Machine

T = TypeVar("T")


class Areas:
    """Where a SlotCache gets its memory: `take(near)` gives an aligned area of `size` bytes, `give_back(area)` takes it."""

    def __init__(self, size: int, take: Callable[[int], int], give_back: Callable[[int], None]) -> None:
        self.size, self.take, self.give_back = size, take, give_back


class _Area:
    """Slots of one area: those given back, and those never used, from `fresh` on."""

    __slots__ = ("free", "fresh", "used")

    def __init__(self, start: int) -> None:
        self.free: list[int] = []
        self.fresh = start
        self.used = 0


class SlotCache:
    """Slots of one size, in areas taken near the probed text. Unused slots hold traps."""

    def __init__(self, machine: Machine, areas: Areas, size: int, pad: bytes) -> None:
        self._machine, self._source = machine, areas
        self.size = size
        self._padding = (pad * (size // len(pad) + 1))[:size]
        self._areas: dict[int, _Area] = {}
        self._garbage: list[tuple[int, Callable[[], None]]] = []

    def take(self, near: int, fill: Callable[[int], T]) -> tuple[int, T]:
        """A slot for which `fill(address)` succeeds, and what it returned.

        fill raises OutOfReach for an address that is too far away; then another area is tried, at last a new one.
        """
        for start, area in reversed(self._areas.items()):
            slot = self._next(start, area)
            if slot is not None:
                try:
                    return self._taken(area, slot, fill(slot))
                except OutOfReach:
                    continue
        start = self._new_area(near)
        area = self._areas[start]
        try:
            return self._taken(area, start, fill(start))
        except OutOfReach:
            self._drop(start)
            raise

    def _next(self, start: int, area: _Area) -> int | None:
        if area.free:
            return area.free[-1]
        return area.fresh if area.fresh + self.size <= start + self._source.size else None

    def _taken(self, area: _Area, slot: int, made: T) -> tuple[int, T]:
        if area.free:
            area.free.pop()
        else:
            area.fresh += self.size
        area.used += 1
        return slot, made

    def give_back(self, slot: int, finish: Callable[[], None]) -> None:
        """The slot's owner is gone. `finish` runs when no CPU can be inside any more."""
        self._garbage.append((slot, finish))

    def collect(self, busy: Callable[[int], bool]) -> None:
        """Free the garbage for which busy(slot) is False; spare areas go back to the machine."""
        if not self._garbage:
            return
        keep = []
        for slot, finish in self._garbage:
            if busy(slot):
                keep.append((slot, finish))
                continue
            finish()
            area = self._areas[slot & -self._source.size]
            self._machine.patch(slot, self._padding)
            area.free.append(slot)
            area.used -= 1
        self._garbage = keep
        for start in [start for start, area in self._areas.items() if area.used == 0][1:]:  # one stays: the next probe wants it
            self._drop(start)

    def close(self) -> None:
        """Give every area back to the machine. Slots still taken are lost: the caller has reverted all patches."""
        for _, finish in self._garbage:
            finish()
        self._garbage.clear()
        for start in list(self._areas):
            self._drop(start)

    def __contains__(self, addr: int) -> bool:
        return addr & -self._source.size in self._areas

    def slot_of(self, addr: int) -> int | None:
        """The slot that an address lies in; None outside our areas."""
        start = addr & -self._source.size
        return start + (addr - start) // self.size * self.size if start in self._areas else None

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """(start, end) of the areas, sorted."""
        return sorted((start, start + self._source.size) for start in self._areas)

    def _new_area(self, near: int) -> int:
        try:
            start = self._source.take(near)
        except NoMemory as error:
            raise NoMemory("no room for slots", address=near, hint="unmap something or probe less") from error
        self._machine.patch(start, self._padding * (self._source.size // self.size))
        self._areas[start] = _Area(start)
        return start

    def _drop(self, start: int) -> None:
        del self._areas[start]
        self._source.give_back(start)
