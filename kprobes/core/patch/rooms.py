"""The parts of a Kprobes that share one machine, wired together.

The machine is the engine that runs the guest. A call site is an address at which the machine calls
the core, or runs programs, without a trap; jumps in guest text lead to call sites.
"""

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
    """The parts that a probepoint works with, and the library's own memory in the guest.

    Attributes:
        arch: the guest's architecture.
        machine: runs the guest.
        sites: address -> what a trap there means.
        text: original bytes and patches.
        survey: finds instructions, and what their neighbours forbid.
        slots: the memory of out-of-line copies.
        calls: the memory of call sites, in call areas.
        buffers: the memory of regions that detours execute.
        caches: slots, calls and buffers.
        call_sites: the machine's power to serve call sites; None: it has none.
        services: call site -> the function that the machine calls there.
        displaced: buffer -> (its probepoint, [(address in the buffer, the instruction there)]).
        called: call site -> its probepoint.
        breakpoint_forms: the kinds of breakpoints that there have been: (bytes from the probepoint
            to the breakpoint, its bytes).
    """

    def __init__(self, machine: Machine) -> None:
        arch = self.arch = machine.arch
        self.machine = machine
        self.sites = SiteTable()
        self.services: dict[int, Callable[[Regs], None]] = {}
        self.text = Text(machine)
        self.survey = Survey(
            arch, self.text, machine.symbols, machine.executable, machine.counts_from_executed
        )
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
        self.breakpoint_forms = set[tuple[int, bytes]]()
        self.caches = (self.slots, self.calls, self.buffers)

    def _map_calls(self, near: int, _count: int) -> int:
        """Map one area for call sites near an address, and return the area's address; _count is not
        used.
        """
        return self.sites_in_place.map_calls(near)

    def _unmap_calls(self, area: int, _count: int) -> None:
        """Unmap an area of call sites; _count is not used."""
        self.sites_in_place.unmap_calls(area)

    @property
    def sites_in_place(self) -> CallsInPlace:
        """The machine's power to serve call sites.

        Raises:
            Unsupported: the machine has none.
        """
        if self.call_sites is None:
            raise Unsupported(
                "this machine services nothing in place", hint="probes work by breakpoints"
            )
        return self.call_sites

    @property
    def serves(self) -> bool:
        """True if the machine calls services (Python functions of the core's) at call sites.

        Some machines run only programs there.
        """
        return self.call_sites is not None and self.call_sites.jumps(None, 0)

    @property
    def can_call(self) -> bool:
        """True if the machine serves call sites, by services or by programs."""
        return self.call_sites is not None

    def copy_of(self, insn: Insn, place: int) -> bytes:
        """Return the code that does in a detour's buffer what an instruction does.

        Args:
            insn: the instruction.
            place: address in the buffer where the code is to be.

        Raises:
            OutOfReach: the instruction's operands cannot be reached from there.
        """
        if insn.displace is None:
            return self.arch.out_of_line.relocate(insn, place)
        return insn.displace(place)

    def displaced_changed(self) -> None:
        """Tell the machine whether jumps may cover places that handlers send the guest to: whether
        `displaced` has an item.

        Where none does, the machine need not ask the core about such places. Called whenever
        `displaced` has changed.
        """
        if self.machine.hits is not None:
            self.machine.hits.check_targets(bool(self.displaced))

    def ours(self, addr: int) -> bool:
        """Return True if an address is in one of the library's own pages."""
        return any(addr in cache for cache in self.caches)

    def ranges(self) -> list[tuple[int, int]]:
        """Return (start, end) of each area of memory that the library has mapped, by address."""
        return sorted(r for cache in self.caches for r in cache.ranges)

    def collect(self) -> None:
        """Free the slots, call sites and buffers that were given back; none while threads take
        turns.

        A slot that the current CPU's pc is in is kept. Call it only while no CPU is in a hit.
        """
        if self.machine.in_turn:
            return
        pc = self.machine.regs.pc
        for cache in self.caches:
            cache.collect(pc)

    def close(self) -> None:
        """Unmap all slots, call sites and buffers. No patch may lead to them any more."""
        for cache in self.caches:
            cache.close()


def _slot_size(arch: Arch) -> int:
    """Return the bytes of a slot: for a body, then a trap or a jump back."""
    back = max(arch.jump.size, arch.out_of_line.max_onward) if arch.jump else 0
    return _eight(arch.max_body + max(back, *map(len, arch.traps.end.values())))


def _call_size(arch: Arch, sites: CallsInPlace | None) -> int:
    """Return the bytes of a call site, a multiple of 8.

    It has a jump to displaced instructions; the trampoline's has the code that returns to the
    caller, or two jumps to that code.

    Args:
        arch: the guest's architecture.
        sites: the machine's power to call services in place; None: it has none.
    """
    jumps = (arch.jump.size if arch.jump else 0) * (
        1 if sites is None or sites.delays_in_calls else 2
    )
    return _eight(max(jumps, len(arch.linkage.back) if arch.linkage else 0, 1))


def _buffer_size(arch: Arch) -> int:
    """Return the bytes of a buffer: for displaced instructions and a jump back.

    A few regions need more; their probepoints stay breakpoints.
    """
    jump = arch.jump.size if arch.jump else 0
    return _eight(2 * max(arch.out_of_line.max_displaced, arch.max_body) + 2 * jump)


def _eight(size: int) -> int:
    """Return a size rounded up to a multiple of 8."""
    return -(-size // 8) * 8
