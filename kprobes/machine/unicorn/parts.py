"""Makes the parts of a machine, each with those that it needs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any

import unicorn

from ...arch._base import Arch
from ...errors import MachineBusy
from ...regs import RegsMachine
from ...symbols import Symbols
from .areas import CallAreas
from .blockcounts import HookedBlockCounts
from .bounds import Bounds
from .calls import FunctionCalls
from .clock import InstructionClock
from .cpu import UnicornCpu
from .delayslots import DelaySlots
from .edgemap import EdgeMap, LastBlocks, Spans
from .faults import FaultReports
from .following import HostFollowing, HostHits
from .functions import Functions
from .guests.guest import Guest
from .host import hostcode
from .host.callsites import FollowedCalls
from .host.recording import HostHitRecording
from .host.stackwalk import HostStackWalking
from .host.usual import SharedHits
from .inplace import HookedInstructions
from .interrupted import InterruptedRunner
from .interrupts import InterruptDelivery
from .layout import whole
from .loader import Loader
from .markedmemory import HookedMarkedMemory
from .memory import GuestMemory
from .owner import EngineOwner
from .passedover import PassedOver
from .process import LinuxProcess
from .programs import HostView
from .reports import Reports
from .runstate import RunState
from .selftest import hear
from .services import Services
from .snapshot import Snapshots, StandardInput
from .stackandexit import StackAndExit
from .starts import Starts
from .stops import HookedStops
from .stubs import Stubs
from .syscalls import ServedSystemCalls
from .watches import Watches


class Parts:
    """The parts of one machine, which owns them. Each part is made with the other parts that it
    needs, and knows no others.
    """

    def __init__(
        self,
        uc: unicorn.Uc,
        arch: Arch,
        guest: Guest,
        machine: RegsMachine,
        symbols: Symbols,
        call: Callable[..., int],
        owned: bool,
    ) -> None:
        """Make the parts of a machine, each with the other parts that it needs.

        Args:
            uc: the engine.
            arch: the guest's architecture.
            guest: the engine's row of that architecture.
            machine: the machine whose parts these are.
            symbols: the machine's.
            call: (address, arguments ...) -> result: calls a function of the guest.
            owned: True where the library has made the engine; False: its owner runs it, too.
        """
        self.memory = GuestMemory(uc, arch, guest, shared=not owned)
        self.cpu = cpu = UnicornCpu(self.memory, machine)
        if owned:
            hear(cpu.engine, guest, arch)
        self.followed = FollowedCalls(cpu)
        self.state = state = RunState(cpu, self.followed)
        self.clock = InstructionClock(self.memory, state)
        services = Services(cpu, state)
        shared = SharedHits(cpu.regs, self.followed.skip) if hostcode.available() else None
        functions = Functions(cpu, state, symbols)
        self.stack_and_exit = StackAndExit(cpu, state)
        self.starts = Starts(cpu, state)
        self.stubs = Stubs(cpu, functions, call)
        delay_slots = DelaySlots(cpu, state, self.starts)
        self.bounds = Bounds(cpu, state, delay_slots, owned)
        self.process = LinuxProcess(cpu, state, functions, self.stubs, self.stack_and_exit)
        self.here = HookedInstructions(cpu, state, services, self.followed, owned)
        self.areas = CallAreas(cpu, services, self.followed, self.here)
        faults = FaultReports(
            cpu,
            state,
            starts=self.starts,
            bounds=self.bounds,
            delay_slots=delay_slots,
            stubs=self.stubs,
            symbols=symbols,
            stack_and_exit=self.stack_and_exit,
            process=self.process,
        )
        self.interrupts = InterruptDelivery(cpu, state, self.starts, self.bounds)
        self.runner = InterruptedRunner(
            cpu, state, services, self.starts, self.bounds, faults, self.interrupts
        )
        described: Any = machine
        self.calls = FunctionCalls(
            cpu,
            state,
            self.runner,
            functions,
            self.stubs,
            delay_slots,
            self.stack_and_exit,
            lambda: described.debug,
        )
        self.loader = Loader(self.memory, functions, self.stubs, self.stack_and_exit, self.process)
        self.watches = Watches(cpu, state, owned)
        self.owner = None if owned else EngineOwner(cpu, state, self.starts, self.runner, faults)
        self.system_calls = ServedSystemCalls(cpu, state, self.process)
        owners = (
            self.memory.heap,
            delay_slots,
            self.process,
            self.loader,
            self.interrupts,
            StandardInput(machine),
            self.system_calls,
        )
        self.snapshots = Snapshots(cpu, state, self.runner, self.calls, owned, owners)
        self.marked_memory = HookedMarkedMemory(self.memory, self.watches, self.snapshots)
        self.stops = HookedStops(cpu, state, self.bounds, state)
        self.reports = Reports(
            cpu,
            state,
            services=services,
            starts=self.starts,
            stubs=self.stubs,
            stops=self.stops,
            owner=self.owner,
            clock=self.clock,
            delay_slots=delay_slots,
            followed=self.followed,
            shared=shared,
            interrupts=self.interrupts,
        )
        self.hits = (
            None
            if shared is None
            else HostHits(shared, services, self.followed, self.reports.traps)
        )
        self.following = (
            HostFollowing(self.followed, self.hits, services, self.memory.blocks)
            if self.hits is not None and self.followed.possible
            else None
        )
        self.stack_walking = (
            HostStackWalking(cpu, self.followed, state) if cpu.view_address else None
        )
        self.hit_recording = (
            HostHitRecording(cpu, self.followed, self.clock) if cpu.view_address else None
        )
        if owned and guest.calls.decoded is not None:
            passed_over = PassedOver(
                cpu, state, self.bounds, guest.calls.decoded, self.reports.unclaimed
            )
            self.memory.on_code_change(passed_over.hook_calls)

    def protect(self, addr: int, size: int, perms: str) -> None:
        """Change what the guest may do in mapped memory, and report that to the core, for each
        address by which the guest sees the memory.

        Args:
            addr: the first byte, at the beginning of a page.
            size: in bytes, rounded up to whole pages.
            perms: what the guest may do there, of "r", "w" and "x".

        Raises:
            GuestFault: the memory is not mapped.
            BadArgument: these are no address, size or permissions, or the memory is the library's
                own, or a device's.
            MachineBusy: the engine is in the middle of an instruction.
        """
        self.memory.protect(addr, size, perms)
        if self.state.sink is not None:
            for alias in self.memory.windows.aliases(addr):
                self.state.sink.permissions_changed(
                    alias, alias + whole(size, self.memory.page_size)
                )

    def count_blocks(
        self, wanted: Callable[[int], bool] | None = None, arcs: bool = False
    ) -> HookedBlockCounts:
        """Count the blocks of guest code that are executed from now on.

        Args:
            wanted: (address) -> True where that block is to be counted; None: all are counted.
            arcs: True: count each edge by itself as well.
        """
        return HookedBlockCounts(self.memory, self.state, wanted, arcs)

    def map_edges(
        self, counters: ctypes.Array[ctypes.c_uint8], spans: Spans, comparisons: bool
    ) -> EdgeMap:
        """Count the edges between blocks into a fuzzer's map, until the result is closed.

        Args:
            counters: the map, of a power of two bytes.
            spans: (start, end) of guest code that is counted; empty: all.
            comparisons: True: count equal bytes of comparisons as well.
        """
        return EdgeMap(self.memory, self.cpu.cells, counters, spans, comparisons)

    def last_blocks(self, most: int) -> LastBlocks:
        """Note the blocks that the guest executes from now on, until the result is closed.

        Args:
            most: blocks that are kept: the last ones.
        """
        return LastBlocks(self.memory, most)

    @cached_property
    def host_view(self) -> HostView | None:
        """Facts about the guest for a compiler of programs for the host: where its registers,
        memory and clock are; None: no programs run in place.
        """
        return (
            HostView(self.cpu, self.followed, self.clock, self.state.park)
            if self.areas.can_run
            else None
        )

    def close(self) -> None:
        """Have the core (the sink) take all probes out, remove hooks, and free what the library has
        allocated for the engine.

        Raises:
            MachineBusy: the guest is in a run.
        """
        if self.state.depth:
            raise MachineBusy(
                "the guest is in a run",
                hint="stop() it, and close the machine when the run has ended",
            )
        if self.state.sink is not None:
            self.state.sink.close()
        self.reports.remove_hooks()
        self.bounds.close()
        self.calls.close()
        self.memory.engine.close()
        self.state.listen(None)
