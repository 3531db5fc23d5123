"""Executable guest pages cut into slots: displaced instructions, trampolines, detour buffers.

A slot that is given back may still be executing (its probe was unregistered from its own handler), so it becomes
garbage first and is reused only when the caller says that no CPU can be inside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..errors import NoMemory, OutOfReach
from ..machine._base import Machine

T = TypeVar("T")


class SlotCache:
    """Slots of one size. Pages are taken near the probed text and padded with traps."""

    def __init__(self, machine: Machine, size: int, pad: bytes) -> None:
        self._machine = machine
        self.size = size
        self._pad = pad
        self._free: dict[int, list[int]] = {}  # page -> free slots in it
        self._used: dict[int, int] = {}  # page -> slots taken
        self._garbage: list[tuple[int, Callable[[], None]]] = []

    def take(self, near: int, fill: Callable[[int], T]) -> tuple[int, T]:
        """A slot for which `fill(address)` succeeds, and what it returned.

        fill raises OutOfReach for an address that is too far away; then another page is tried, at last a new one.
        """
        for page in reversed(self._free):
            if self._free[page]:
                slot = self._free[page][-1]
                try:
                    made = fill(slot)
                except OutOfReach:
                    continue
                self._free[page].pop()
                self._used[page] += 1
                return slot, made
        page = self._new_page(near)
        try:
            made = fill(self._free[page][-1])
        except OutOfReach:
            self._drop(page)
            raise
        self._used[page] += 1
        return self._free[page].pop(), made

    def give_back(self, slot: int, finish: Callable[[], None]) -> None:
        """The slot's owner is gone. `finish` runs when no CPU can be inside any more."""
        self._garbage.append((slot, finish))

    def collect(self, busy: Callable[[int], bool]) -> None:
        """Free the garbage for which busy(slot) is False; spare pages go back to the machine."""
        keep = []
        for slot, finish in self._garbage:
            if busy(slot):
                keep.append((slot, finish))
                continue
            finish()
            page = slot & -self._machine.page_size
            self._machine.patch(slot, self._padding(self.size))
            self._free[page].append(slot)
            self._used[page] -= 1
        self._garbage = keep
        for page in [p for p, n in self._used.items() if n == 0][1:]:  # one empty page stays: the next probe wants it
            self._drop(page)

    def close(self) -> None:
        """Give every page back to the machine. Slots still taken are lost: the caller has reverted all patches."""
        for page in self.pages:
            self._drop(page)
        self._garbage.clear()

    def __contains__(self, addr: int) -> bool:
        return addr & -self._machine.page_size in self._used

    def slot_of(self, addr: int) -> int | None:
        """The slot that an address lies in; None outside our pages."""
        page = addr & -self._machine.page_size
        return page + (addr - page) // self.size * self.size if page in self._used else None

    @property
    def pages(self) -> list[int]:
        """Addresses of the pages, sorted."""
        return sorted(self._used)

    def _new_page(self, near: int) -> int:
        try:
            page = self._machine.map_code(near)
        except NoMemory as error:
            raise NoMemory("no room for a page of slots", address=near, hint="unmap something or probe less") from error
        length = self._machine.page_size
        self._machine.patch(page, self._padding(length))
        self._used[page] = 0
        self._free[page] = [page + i * self.size for i in reversed(range(length // self.size))]
        return page

    def _drop(self, page: int) -> None:
        del self._used[page], self._free[page]
        self._machine.unmap_code(page)

    def _padding(self, length: int) -> bytes:
        return (self._pad * (length // len(self._pad) + 1))[:length]
