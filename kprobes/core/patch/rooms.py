"""The rooms that share one machine, wired together."""

from __future__ import annotations

from collections.abc import Callable

from ...arch._base import Arch, Insn
from ...errors import Unsupported
from ...machine._base import CallsInPlace, Machine
from ...regs import Regs
from .sites import Point, SiteTable
from .slots import Areas, SlotCache
from .survey import Survey
from .text import Text


class Rooms:
    """The parts that a probepoint works with.

    Attributes:
        sites: address -> what a trap there means.
        text: original bytes and patches.
        survey: instructions and their neighbours.
        slots: out-of-line copies.
        calls: call sites of detours, in call areas.
        buffers: displaced regions of detours.
        call_sites: the machine's power to serve those; None: it has none.
        services: functions that the machine calls at addresses in call areas.
        displaced: buffer -> probepoint, and the instructions there by their places.
        called: call site -> probepoint.
    """

    def __init__(self, machine: Machine) -> None:
        arch = self.arch = machine.arch
        self.machine = machine
        self.sites = SiteTable()
        self.services: dict[int, Callable[[Regs], None]] = {}
        self.text = Text(machine)
        self.survey = Survey(arch, self.text, machine.symbols, machine.executable)
        pad = arch.end_bytes(min(arch.traps.end))
        pages = Areas(
            machine.page_size, machine.map_code, machine.unmap_code, several=machine.maps_runs
        )
        self.slots = SlotCache(machine, pages, _slot_size(arch), pad)
        self.call_sites = sites = machine.call_sites
        calls = Areas(
            sites.call_area if sites is not None else 0, self._map_calls, self._unmap_calls
        )
        self.calls = SlotCache(machine, calls, _call_size(arch, sites), pad)
        self.buffers = SlotCache(machine, pages, _buffer_size(arch), pad)
        self.displaced: dict[int, tuple[Point, list[tuple[int, Insn]]]] = {}
        self.called: dict[int, Point] = {}
        self.caches = (self.slots, self.calls, self.buffers)

    def _map_calls(self, near: int, _count: int) -> int:
        return self.sites_in_place.map_calls(near)

    def _unmap_calls(self, area: int, _count: int) -> None:
        self.sites_in_place.unmap_calls(area)

    @property
    def sites_in_place(self) -> CallsInPlace:
        """The machine's power to serve call sites.

        Raises:
            Unsupported: it has none.
        """
        if self.call_sites is None:
            raise Unsupported(
                "this machine services nothing in place", hint="probes work by breakpoints"
            )
        return self.call_sites

    @property
    def serves(self) -> bool:
        """True if the machine services call areas for whatever is called there, not for programs
        alone.
        """
        return self.call_sites is not None and self.call_sites.jumps(None, 0)

    @property
    def can_call(self) -> bool:
        """True if the machine services call areas."""
        return self.call_sites is not None

    def ours(self, addr: int) -> bool:
        """Return True in pages of the library's own."""
        return any(addr in cache for cache in self.caches)

    def ranges(self) -> list[tuple[int, int]]:
        """(start, end) of our pages."""
        return sorted(r for cache in self.caches for r in cache.ranges)

    def collect(self) -> None:
        """Free memory that is no longer used. Call it only while no CPU is in a hit."""
        if self.machine.in_turn:
            return
        pc = self.machine.regs.pc
        for cache in self.caches:
            cache.collect(lambda slot, size=cache.size: slot <= pc < slot + size)  # type: ignore[misc]

    def close(self) -> None:
        """Give all memory back."""
        for cache in self.caches:
            cache.close()


def _slot_size(arch: Arch) -> int:
    """Bytes of a body, then a trap or what goes back."""
    back = max(arch.jump.size, arch.out_of_line.max_onward) if arch.jump else 0
    return _eight(arch.max_body + max(back, *map(len, arch.traps.end.values())))


def _call_size(arch: Arch, sites: CallsInPlace | None) -> int:
    """Bytes of a detour's call site: a jump, or what returns from the trampoline, or two jumps that
    lead to it.
    """
    jumps = (arch.jump.size if arch.jump else 0) * (
        1 if sites is None or sites.delays_in_calls else 2
    )
    return _eight(max(jumps, len(arch.linkage.back) if arch.linkage else 0, 1))


def _buffer_size(arch: Arch) -> int:
    """Bytes for the displaced instructions of a detour, and the jump back. Rare ones need more:
    they stay where they are.
    """
    jump = arch.jump.size if arch.jump else 0
    return _eight(2 * max(arch.out_of_line.max_displaced, arch.max_body) + 2 * jump)


def _eight(size: int) -> int:
    return -(-size // 8) * 8

