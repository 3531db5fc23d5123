"""Executable guest memory cut into slots: for displaced instructions, trampolines, detours.

A CPU may still be executing a slot that is given back (a handler has unregistered its own probe).
So the slot becomes garbage first; it is reused when the caller says that no CPU can be inside.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from typing import TypeVar

from ...errors import NoMemory, OutOfReach
from ...machine._base import Machine

T = TypeVar("T")


#: A new area has one unit for every EACH units that there are already, and at most MOST: so there
#: are few areas, and none is much too large.
MOST = 256
EACH = 4


class Areas:
    """Maps and unmaps the memory of a SlotCache, in areas of one or more units.

    Attributes:
        size: bytes of a unit.
        take: (near, count) -> address of a new area of `count` units.
        give_back: (address of an area, count) unmaps it.
        several: an area may have more than one unit.
    """

    def __init__(
        self,
        size: int,
        take: Callable[[int, int], int],
        give_back: Callable[[int, int], None],
        *,
        several: bool = False,
    ) -> None:
        self.size = size
        self.take = take
        self.give_back = give_back
        self.several = several


class _Area:
    """One area of slots.

    Attributes:
        count: units.
        end: address behind it.
        free: slots that were used and are free again.
        fresh: address of the first slot that was never used; so are all behind it.
        used: how many slots are in use.
    """

    __slots__ = ("count", "end", "free", "fresh", "used")

    def __init__(self, start: int, count: int, size: int) -> None:
        """
        Args:
            start: address of the area.
            count: units that it has.
            size: bytes of a unit.
        """
        self.count = count
        self.end = start + count * size
        self.free: list[int] = []
        self.fresh = start
        self.used = 0


class SlotCache:
    """Slots of one size, in areas mapped near the probed text. Unused slots hold traps.

    A slot is taken, given back (then it is garbage), and freed by collect().
    """

    def __init__(self, machine: Machine, areas: Areas, size: int, pad: bytes) -> None:
        """Begin without areas: the first slot taken maps one.

        Args:
            machine: its memory is used.
            areas: map that memory.
            size: bytes of a slot.
            pad: a trap instruction, for unused slots.
        """
        self._machine = machine
        self._source = areas
        self.size = size
        self._padding = (pad * (size // len(pad) + 1))[:size]
        self._areas: dict[int, _Area] = {}
        self._open: dict[int, _Area] = {}  # those with room
        self._starts: list[int] = []  # sorted
        self._garbage: list[tuple[int, Callable[[], None]]] = []

    def take(self, near: int, fill: Callable[[int], T]) -> tuple[int, T]:
        """Take a slot and fill it.

        Args:
            near: a new area is mapped near this address.
            fill: called with the slot's address; writes the slot. It raises OutOfReach where the
                slot is too far away: then another area is tried, at last a new one.

        Returns:
            (the slot's address, what fill() has returned).

        Raises:
            NoMemory: there is no room for a new area.
            OutOfReach: a new area is too far away as well.
        """
        for start, area in reversed(self._open.items()):
            slot = area.free[-1] if area.free else area.fresh
            try:
                made = fill(slot)
            except OutOfReach:
                continue
            return self._taken(start, area, slot, made)
        return self._take_new(near, fill)

    def _take_new(self, near: int, fill: Callable[[int], T]) -> tuple[int, T]:
        """Map a new area, and take its first slot.

        The area has a unit for every EACH units that are mapped, at most MOST; one unit where the
        source has no larger areas, or a larger one has no room or is out of reach.

        Args:
            near: address that the slot is to be near to.
            fill: (slot's address) -> anything: writes the slot. It raises OutOfReach where it
                cannot.

        Returns:
            (the slot's address, what `fill` has returned).

        Raises:
            NoMemory, OutOfReach: there is no room near enough.
        """
        count = 1
        if self._source.several:
            count = min(sum(area.count for area in self._areas.values()) // EACH, MOST)
        if count > 1:
            try:
                return self._take_at(self._new_area(near, count), fill)
            except (NoMemory, OutOfReach):
                pass
        return self._take_at(self._new_area(near, 1), fill)

    def _take_at(self, start: int, fill: Callable[[int], T]) -> tuple[int, T]:
        """Take the first slot of a new area; give the area back if it is out of reach.

        Args:
            start: address of the area.
            fill: (slot's address) -> anything: writes the slot.

        Returns:
            (the slot's address, what `fill` has returned).

        Raises:
            OutOfReach: `fill` has raised it.
        """
        try:
            return self._taken(start, self._areas[start], start, fill(start))
        except OutOfReach:
            self._drop(start)
            raise

    def _taken(self, start: int, area: _Area, slot: int, made: T) -> tuple[int, T]:
        """Note that a slot is in use, and return (the slot, `made`).

        Where it was the last one, the area is no longer open.

        Args:
            start: address of the slot's area.
            area: the area.
            slot: address of the slot, which was the next free one.
            made: what has been written to it.
        """
        if area.free:
            area.free.pop()
        else:
            area.fresh += self.size
        area.used += 1
        if not area.free and area.fresh + self.size > area.end:
            del self._open[start]
        return slot, made

    def give_back(self, slot: int, finish: Callable[[], None]) -> None:
        """Make a slot garbage: collect() frees it later.

        Args:
            slot: its address.
            finish: called when the slot is freed, before the slot is filled with traps; also at
                close().
        """
        self._garbage.append((slot, finish))

    def collect(self, pc: int) -> None:
        """Free the slots that were given back: call their finish functions and fill them with
        traps.

        Unmap empty areas but for one. No CPU may be in a hit.

        Args:
            pc: where the CPU stands; a slot that contains it is kept until the next call.
        """
        if not self._garbage:
            return
        keep = []
        for slot, finish in self._garbage:
            if slot <= pc < slot + self.size:
                keep.append((slot, finish))
                continue
            finish()
            start = self._area_of(slot)
            area = self._open[start] = self._areas[start]
            self._machine.patch(slot, self._padding)
            area.free.append(slot)
            area.used -= 1
        self._garbage = keep
        # one empty area stays: the next probe will need it
        for start in [start for start, area in self._areas.items() if area.used == 0][1:]:
            self._drop(start)

    def close(self) -> None:
        """Call the finish functions of slots that were given back, and unmap all areas.

        No patch may lead to a slot any more.
        """
        for _, finish in self._garbage:
            finish()
        self._garbage.clear()
        for start in list(self._areas):
            self._drop(start)

    def _area_of(self, addr: int) -> int:
        """Return the start of the area that an address is in; -1: it is in none."""
        at = bisect_right(self._starts, addr) - 1
        return self._starts[at] if at >= 0 and addr < self._areas[self._starts[at]].end else -1

    def __contains__(self, addr: int) -> bool:
        """Return True if an address is in one of the areas, whether its slot is used or not."""
        return self._area_of(addr) >= 0

    def slot_of(self, addr: int) -> int | None:
        """Return the start of the slot, used or not, that an address is in; None: it is in no
        area.
        """
        start = self._area_of(addr)
        return start + (addr - start) // self.size * self.size if start >= 0 else None

    def in_use(self, addr: int) -> bool:
        """Return True if an address is in a slot that was taken and is not freed yet."""
        area = self._areas.get(self._area_of(addr))
        return area is not None and addr < area.fresh and self.slot_of(addr) not in area.free

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """(start, end) of each area, sorted."""
        return [(start, self._areas[start].end) for start in self._starts]

    def _new_area(self, near: int, count: int) -> int:
        """Map an area of `count` units, fill it with traps, add it to the areas, and return its
        address.

        Args:
            near: address that it is to be near to.
            count: units of the source's size.

        Raises:
            NoMemory, OutOfReach: there is no room near enough.
        """
        try:
            start = self._source.take(near, count)
        except NoMemory as error:
            raise NoMemory(
                "no room for slots", address=near, hint="unmap something or probe less"
            ) from error
        area = self._areas[start] = self._open[start] = _Area(start, count, self._source.size)
        self._machine.patch(
            start, (self._padding * ((area.end - start) // self.size + 1))[: area.end - start]
        )
        insort(self._starts, start)
        return start

    def _drop(self, start: int) -> None:
        """Unmap an area of slots, and forget it.

        Args:
            start: address of the area.
        """
        count = self._areas.pop(start).count
        self._open.pop(start, None)
        self._starts.remove(start)
        self._source.give_back(start, count)
