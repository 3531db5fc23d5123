"""UnicornMachine: guest code in the Unicorn engine. What that does, and what each rule here guards
against: docs/engine.md.

The core is the part of the library that serves probes (kprobes.core); it receives the engine's
reports, as the sink.
"""

from __future__ import annotations

import ctypes
import io
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

import unicorn
from attrs import evolve

from ... import arch as architectures
from ...arch._base import Arch
from ...arguments import checked, shown
from ...debug.described import Described
from ...errors import BadArgument
from ...image import in_order, raw_bytes
from ...regs import Regs, read_cstr
from ...symbols import Symbols
from .._base import (
    BlockCounting,
    CallsInPlace,
    Clock,
    Following,
    HitRecording,
    Hits,
    MarkedMemory,
    Sink,
    StackWalking,
    StateOwner,
    Watching,
)
from .._blocks import BlockCounts
from .._listed import SymbolList
from .._passing import Argument
from ..closed import close
from .areas import CallAreas
from .assembler import assemble
from .edgemap import EdgeMap, LastBlocks
from .guests.guest import Guest
from .guests.rows import GUESTS, arch_of, guest_of
from .host.hostcode import TASKS
from .interrupts import InterruptDelivery
from .loader import read
from .memory import GuestMemory
from .mmio import Read, Write
from .parts import Parts
from .process import Text
from .programs import HostView
from .reports import Reports
from .selftest import self_test
from .snapshot import Snapshot
from .syscalls import ServedSystemCalls
from .version import check_version

__all__ = ["GUESTS", "Guest", "UnicornMachine"]


#: What of a closed machine can be used: what it was, and its end.
KNOWN = frozenset({"arch", "busy", "close", "cpus", "guest", "page_size", "symbols"})


@checked("__init__", "read", "write", "call")
class UnicornMachine(Described):
    """A CPU, its memory and its symbols. Make one with load(), from_code() or attach(); a context
    manager.

    Attributes:
        arch: the architecture.
        symbols: its symbol table.
        regs: the CPU's registers, live.
        stdin: what process() was given, for an interrupt_handler that serves read().
        uc: the unicorn.Uc beneath, for what this class does not offer.
        guest: how that is used.
        board: devices around it, once a kprobes.board.Board was fitted.
        parts: what does the work.
    """

    maps_runs, in_turn, _is_closed = True, False, False
    guest_view = process_identity = None
    counts_from_executed = False  # docs/engine.md

    def __init__(self, uc: unicorn.Uc, arch: Arch, guest: Guest, *, owned: bool = True) -> None:
        """Take an engine over. Programs use load(), from_code(), load_raw() or attach() instead.

        Args:
            uc: the engine.
            arch: the guest's architecture.
            guest: the engine's row of that architecture.
            owned: True where the library has made the engine; False: its owner runs it, too.

        Raises:
            Unsupported: the engine differs from what is known of it.
        """
        self._uc = uc
        self.guest = guest
        self.arch = (
            arch if guest.breakpoint.traps is None else evolve(arch, traps=guest.breakpoint.traps)
        )
        self.page_size = guest.memory.page_size
        self.cpus = 1
        self.stdin = io.BytesIO()
        self._serving: Callable[[Regs, int], bool] | None = None  # serve_system_calls()'s handler
        self._cpu_task: Callable[[Regs], Any] | None = None
        self.board: Any = None
        self.symbols = Symbols()
        self.symbols.mode_bits = arch.pointers.mode_bits
        self.parts = parts = Parts(uc, self.arch, guest, self, self.symbols, self.call, owned)
        self.regs = parts.cpu.regs
        self.cpu_regs = [parts.cpu.regs]
        self._expose_parts(parts.memory, parts.areas, parts.reports)
        self_test(guest, self.arch)
        if owned:
            guest.cpu.start(parts.memory.engine)
            parts.reports.add_hooks()

    def _expose_parts(self, memory: GuestMemory, areas: CallAreas, reports: Reports) -> None:
        """Set, on this machine, the methods and powers of its parts that the core uses.

        Together with the methods below they make the contract that machine._base.Machine describes.

        Args:
            memory: its methods write and map the code of probes.
            areas: calls services in place.
            reports: its methods deliver hits to the core.
        """
        self.patch = memory.patch
        self.map_code = memory.map_code
        self.unmap_code = memory.unmap_code
        self.call_sites: CallsInPlace | None = areas
        self.watching: Watching | None = self.parts.watches
        self.blocks: BlockCounting | None = self.parts
        self.marked_memory: MarkedMemory | None = self.parts.marked_memory
        self.invoke = self.parts.calls.invoke
        self.clock: Clock | None = self.parts.clock
        self.busy = self.parts.runner.changing
        self.hits: Hits | None = self.parts.hits
        self.following: Following | None = self.parts.following
        self.stack_walking: StackWalking | None = self.parts.stack_walking
        self.hit_recording: HitRecording | None = self.parts.hit_recording
        self.stop_at = reports.stop_at
        self.release = reports.release
        self.report_to = reports.report_to

    @property
    def uc(self) -> unicorn.Uc:
        """The engine beneath. Whoever asks for it may add hooks and write memory: from then on no
        program is run in place, by a hook on the probed instruction itself, and it is not known
        which code the user has written (`watching.rewritten()`).
        """
        self.parts.here.share()
        self.parts.memory.share()
        return self._uc

    # --- making one

    @classmethod
    def load(
        cls,
        file: str | os.PathLike[str] | bytes,
        *,
        base: int | None = None,
        name: str | None = None,
        arch: str | None = None,
        reserve: Iterable[tuple[int, int]] = (),
    ) -> UnicornMachine:
        """Return a machine with an ELF file in it: an executable, a shared object, or an object
        file.

        Args:
            file: its path or its bytes. A name without a slash that is no file here is looked up
                among the system's libraries.
            base: address of the image; an executable that is linked for its place has its own.
                None: where there is room, or where it is linked for.
            name: of the image; None: the file's.
            arch: name of the architecture, where the file does not tell which of those that run its
                header it is for ("cortexm" for firmware without build attributes); None: the file
                tells.
            reserve: (start, bytes) of addresses where memory and devices will be mapped later:
                nothing of the library's is put there.

        Raises:
            ImageError: the file cannot be read, or is none that can be loaded.
            Unsupported: the engine does not run this architecture.
            NoMemory: there is no room.
            BadArgument: `reserve` has something else than such pairs.
        """
        image = read(file, name)
        machine = cls._open(
            architectures.of_elf(
                image.machine, image.bits, image.order, image.flags, image.profile, arch
            )
        )
        machine.parts.memory.reserve(reserve)
        machine.parts.loader.place(image, base, main=True)
        return machine

    @classmethod
    def from_code(
        cls, code: bytes | str, *, arch: str, base: int = 0x10000, symbols: SymbolList | None = None
    ) -> UnicornMachine:
        """Return a machine with raw code at `base`, where the guest stands.

        The guest may write there, as raw bytes may have data in them; probes cost more in such
        text. Where it is all code, call protect(base, size, "rx").

        Args:
            code: bytes, or assembly text where an assembler knows the ISA.
            arch: name of the architecture.
            base: address of the first byte.
            symbols: name -> address or (address, size in bytes); or a file that symbols.load()
                takes; None: none are added.

        Raises:
            Unsupported: the engine does not run this architecture, or nothing assembles for it.
            ImageError: the file of symbols cannot be read, or the assembly text does not parse.
            NoMemory: the code cannot be mapped there.
            BadArgument: `symbols` is neither.
        """
        machine = cls._open(architectures.get(arch))
        machine.parts.loader.place_code(
            assemble(code, arch, base) if isinstance(code, str) else code, base
        )
        machine.parts.loader.add_symbols(symbols)
        return machine

    @classmethod
    def load_raw(
        cls,
        file: str | os.PathLike[str] | bytes,
        *,
        arch: str,
        base: int,
        entry: int | None = None,
        symbols: SymbolList | None = None,
        name: str | None = None,
        reserve: Iterable[tuple[int, int]] = (),
    ) -> UnicornMachine:
        """Return a machine with a raw image (firmware, a memory dump) at `base`, standing at
        `entry`. `interrupts.vectors` is `base`.

        Args:
            file: its path or its bytes.
            arch: name of the architecture.
            base: address of the first byte.
            entry: address, mode bits included; None: what the image's vector table says where the
                architecture has one there (Armv7-M: stack pointer, then reset), else `base`.
            symbols: name -> address or (address, size in bytes); or a file that symbols.load()
                takes; None: none are added.
            name: of the image, in m.modules and in files of coverage; None: the file's base name.
            reserve: (start, bytes) of addresses where memory and devices will be mapped later:
                nothing of the library's is put there.

        Raises:
            ImageError: the file cannot be read, or is empty; or the file of symbols cannot be read.
            Unsupported: the engine does not run this architecture.
            NoMemory: the image cannot be mapped there.
            BadArgument: `reserve` has something else than such pairs, or `symbols` is neither.
        """
        code, name = raw_bytes(file, name)
        machine = cls._open(architectures.get(arch))
        machine.parts.memory.reserve(reserve)
        machine.parts.loader.place_code(code, base, name)
        machine.parts.loader.add_symbols(symbols)
        if entry is None and machine.arch.files.vectors is not None and len(code) >= 8:
            machine.regs.sp, entry = machine.arch.files.vectors(code)
        machine.interrupts.vectors = base
        machine.regs.go(
            machine.arch.pointers.same_mode(machine.regs, base if entry is None else entry)
        )
        return machine

    @classmethod
    def attach(
        cls, uc: unicorn.Uc, *, arch: str | None = None, symbols: SymbolList | None = None
    ) -> UnicornMachine:
        """Return a machine around an engine made elsewhere, whose owner goes on calling
        uc.emu_start().

        Args:
            uc: the engine.
            arch: name of its architecture, where the engine's mode does not tell; None: it does.
            symbols: name -> address or (address, size in bytes); or a file that symbols.load()
                takes; None: none are added.

        Raises:
            Unsupported: the engine's architecture is not known, or the engine is too old, or
                differs from what is known of it.
            ImageError: the file of symbols cannot be read.
            BadArgument: `symbols` is neither.
        """
        check_version()
        name = arch or arch_of(uc)
        machine = cls(uc, architectures.get(name), guest_of(name), owned=False)
        machine.parts.loader.add_symbols(symbols)
        return machine

    @classmethod
    def _open(cls, arch: Arch) -> UnicornMachine:
        """Return a machine of an architecture with a new engine and no memory."""
        check_version()
        guest = guest_of(arch.name)
        return cls(guest.cpu.open(), arch, guest)

    # --- memory

    def read(self, addr: int, size: int) -> bytes:
        """Return guest memory as it is, breakpoints included; protection does not matter. Of a
        device the device's function gives the bytes.

        Args:
            addr: guest address of the first byte, without mode bits.
            size: how many bytes; 0 gives b"".

        Returns:
            `size` bytes, in the order of their addresses.

        Raises:
            GuestFault: a byte of them is not mapped; `address` is the first such one.
            BadArgument: `addr` or `size` is no integer, or `size` is negative.
        """
        return self.parts.memory.read(addr, size)

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory, whatever its protection.

        Args:
            addr: guest address of the first byte, without mode bits.
            data: bytes, bytearray or memoryview, for the addresses from there on. They may
                overwrite breakpoints and jumps of probes.

        Raises:
            GuestFault: a byte of them is not mapped; nothing is written.
            BadArgument: `addr` is no integer, or `data` no bytes.
        """
        self.parts.memory.write(addr, data)

    def read_cstr(self, addr: int, limit: int = 4096) -> bytes:
        """Return the bytes from `addr` up to the first NUL, which is left out, at most `limit`."""
        return read_cstr(self.parts.memory, addr, limit)

    def alloc(self, size: int) -> int:
        """Return the address of `size` bytes of new guest memory: zeroed, aligned to 16 bytes.

        Raises:
            NoMemory: there is no room.
        """
        return self.parts.memory.alloc(size)

    def free(self, addr: int) -> None:
        """Give memory of alloc() back.

        Args:
            addr: the address that alloc() has returned.

        Raises:
            GuestFault: alloc() has not given this address.
        """
        self.parts.memory.free(addr)

    def executable(self, addr: int) -> bool:
        """Return True where the guest may execute the byte at `addr`."""
        return self.parts.memory.executable(addr)

    def map(self, addr: int, size: int, perms: str = "rwx") -> None:
        """Map zeroed guest memory.

        Args:
            addr: the first byte, at the beginning of a page.
            size: in bytes, rounded up to whole pages.
            perms: what the guest may do there, of "r", "w" and "x".

        Raises:
            NoMemory: it cannot be mapped there.
            BadArgument: `addr` or `size` is no integer, or `perms` has other letters.
            MachineBusy: a device's or a watchpoint's function is called now.
        """
        self.parts.memory.map(addr, size, perms)

    def protect(self, addr: int, size: int, perms: str) -> None:
        """Change what the guest may do in mapped memory. The library itself still reads and writes
        it.

        Args:
            addr: the first byte, at the beginning of a page.
            size: in bytes, rounded up to whole pages.
            perms: what the guest may do there, of "r", "w" and "x".

        Raises:
            GuestFault: the memory is not mapped.
            BadArgument: this is no address, size or permission, or the memory is a device's, or the
                library's own (slots, call areas, what alloc() hands out).
            MachineBusy: a device's or a watchpoint's function is called now.
        """
        self.parts.protect(addr, size, perms)

    def unmap(self, addr: int, size: int) -> None:
        """Unmap guest memory, in whole pages. Probes in it become GONE.

        Args:
            addr: the first byte, at the beginning of a page.
            size: in bytes, rounded up to whole pages.

        Raises:
            GuestFault: the memory is not mapped.
            BadArgument: this is no address or size, or the memory is a part of a device, or the
                library's own (slots, call areas, what alloc() hands out).
            MachineBusy: a device's or a watchpoint's function is called now.
        """
        self.parts.memory.unmap(addr, size)

    # --- the CPU, and who is told what it does
    def _choose_task(self, task: Callable[[Regs], Any] | None) -> None:
        """Set `cpu_task`; host code follows no calls while the guest has tasks.

        Args:
            task: (registers) -> identity of the guest task that runs; None: one task per CPU.
        """
        self._cpu_task = task
        self.parts.followed.close(TASKS, task is not None)

    # entries and returns read it: no call of Python
    cpu_task = property(
        attrgetter("_cpu_task"),
        _choose_task,
        doc="regs -> identity of the running guest task; None: one task per CPU.",
    )

    @property
    def interrupt_handler(self) -> Callable[[Regs, int], bool] | None:
        """(regs, number) -> True if it served an interrupt of the guest's (a system call, say); the
        guest goes on at regs.pc. None: such an interrupt is a GuestFault.
        """
        return self.parts.reports.interrupt_handler

    @interrupt_handler.setter
    def interrupt_handler(self, handler: Callable[[Regs, int], bool] | None) -> None:
        """Have a function serve the guest's own interrupts from now on; None: each is a
        GuestFault.
        """
        self.parts.reports.interrupt_handler = handler

    @property
    def interrupts(self) -> InterruptDelivery:
        """The interrupts that the CPU takes, and timers: interrupts.pend(n),
        interrupts.every(instructions, n).
        """
        return self.parts.interrupts

    @property
    def before_run(self) -> Callable[[], object] | None:
        """Function without arguments that is called before each run that is inside no other, while
        there is no sink; None: none is.
        """
        return self.parts.runner.before_run

    @before_run.setter
    def before_run(self, told: Callable[[], object] | None) -> None:
        """Have a function called before each run that is inside no other, while there is no sink;
        None: none is.
        """
        self.parts.runner.before_run = told

    @property
    def sink(self) -> Sink | None:
        """Receiver of reports; None while there are no probes."""
        return self.parts.state.sink

    @property
    def can_run(self) -> bool:
        """True if programs run where they are probed, in host code, without Python."""
        return self.parts.areas.can_run

    @property
    def host_view(self) -> HostView | None:
        """Facts about the guest for a compiler of programs for the host: where its registers,
        memory and clock are; None: no programs run in place.
        """
        return self.parts.host_view

    def is_breakpoint(self, number: int | None = None) -> bool:
        """Return True where the guest stands at a breakpoint of the library's own.

        If the owner of an engine hooks interrupts or invalid instructions, the hook has to ask
        this, and leave such a hit alone. The hook has to be added before Kprobes is made: then the
        engine calls it before the library's hook, and pc is still at the breakpoint.

        Args:
            number: of the interrupt that is hooked; None: the hook is for invalid instructions.
        """
        return self.parts.reports.is_breakpoint(number)

    def count_blocks(
        self, wanted: Callable[[int], bool] | None = None, arcs: bool = False
    ) -> BlockCounts:
        """Count the blocks of guest code that are executed from now on.

        Args:
            wanted: (address) -> True where that block is to be counted; asked once about each
                block. None: all are counted.
            arcs: True: count each edge, a pair of blocks executed one after the other, by itself as
                well; the result's arcs() lists them. False: arcs() is empty.
        """
        return self.parts.count_blocks(wanted, arcs)

    def map_edges(
        self,
        counters: ctypes.Array[ctypes.c_uint8],
        spans: Sequence[tuple[int, int]] = (),
        *,
        comparisons: bool = False,
    ) -> EdgeMap:
        """Count the edges between blocks of guest code into a fuzzer's map, until the result is
        closed.

        Args:
            counters: the map, of a power of two bytes; it may be shared memory.
            spans: (start, end) of guest code that is counted; empty: all.
            comparisons: count equal bytes of comparisons as well.

        Raises:
            BadArgument: the map has another size.
            Unsupported: comparisons of this architecture's code cannot be seen.
        """
        return self.parts.map_edges(counters, spans, comparisons)

    def last_blocks(self, most: int = 64) -> LastBlocks:
        """Note the last blocks that the guest has executed, until the result is closed. This is
        slow: Python is called for each block.

        Args:
            most: how many are kept.

        Raises:
            BadArgument: `most` is no number of blocks.
        """
        return self.parts.last_blocks(most)

    @property
    def modules(self) -> dict[str, tuple[int, int]]:
        """Loaded images that have mapped memory: name -> (start of the lowest part, end of the
        highest).
        """
        return {
            name: (min(start for start, _ in parts), max(start + size for start, size in parts))
            for name, parts in self.parts.loader.modules.items()
            if parts
        }

    def regions(self) -> list[tuple[int, int]]:
        """Return what is mapped in guest memory, the library's own included: (start, end), by
        address.
        """
        return self.parts.memory.regions()

    # --- running it
    def stop(self) -> None:
        """Stop the run, from a handler or another thread: the guest comes to rest before an
        instruction, and run() returns. While nothing runs it does nothing: the next run is not
        stopped.
        """
        self.parts.state.stop_for("stop")

    @property
    def exit_address(self) -> int:
        """Address to which the outermost function of a guest call or a run returns; 0 before there
        is one.
        """
        return self.parts.state.exit

    def call(
        self,
        function: str | int,
        *args: Argument | float,
        timeout: float | None = None,
        max_insns: int | None = None,
        prototype: str | Literal[True] | None = None,
    ) -> Any:
        """Call a guest function by the architecture's calling convention and return its result.

        Registers are put back afterwards. If an outermost call fails, they stay as they are where
        the guest stopped, until the next call. In a handler the call is a run inside the run under
        way, and probes that it hits are missed.

        Args:
            function: symbol or address.
            args: integers, None (0); bytes, bytearray and str, which are copied into guest memory,
                NUL-terminated, and passed as pointers; a bytearray is copied back afterwards. By
                the function's types also floats, complex numbers, and structures: a mapping of
                the members, where those left out are 0, a View, or all bytes.
            timeout: seconds; None: no bound.
            max_insns: the most instructions; None: no bound.
            prototype: the function's types, as C writes them: "double pow(double, double)"; True:
                those of debug information, which are also looked up where an argument is a float
                or a structure. The result is of its C type then: a float, a signed integer, a dict
                of a structure's members, None for void.

        Returns:
            What the function has left in the return register, an integer; with types, its value.

        Raises:
            GuestFault: the guest has failed, and no handler has handled that.
            GuestTimeout: a bound was reached.
            GuestStopped: stop() has ended the call.
            UnknownSymbol, AmbiguousSymbol: there is no such symbol, or there are several.
            BadArgument: an argument or a bound is of a wrong kind, or too large; or the function's
                types are needed and not known.
            Unsupported: the architecture has no calling convention, or passes fewer pointers in
                registers, or it is not known how it passes a type;
                or the engine cannot count instructions beyond a jump, or cannot run any
                more.
            NoMemory: there is no room for the copies.
            MachineBusy: another thread runs this machine or changes its probes, or a device's
                function calls.
            ReentryError: too many runs are nested.
        """
        return self.parts.calls.call(function, args, timeout, max_insns, prototype)

    def run(
        self,
        start: int | str | None = None,
        until: int | str | None = None,
        *,
        timeout: float | None = None,
        max_insns: int | None = None,
    ) -> None:
        """Run the guest until an address, until stop(), or until the function that it starts in
        returns.

        With a start, the link register or the stack gets a return address that ends the run.
        Without one, the guest goes on where it stands.

        Args:
            start: address or symbol; None: where the guest stands.
            until: address or symbol where the run ends, before the instruction there; None: the run
                ends at no other address than the return address.
            timeout: seconds; None: no bound.
            max_insns: the most instructions; None: no bound.

        Raises:
            GuestFault: the guest has failed, and no handler has handled that.
            GuestTimeout: a bound was reached.
            UnknownSymbol, AmbiguousSymbol: there is no such symbol, or there are several.
            BadArgument: an address or a bound is of a wrong kind, or too large.
            Unsupported: the engine cannot count instructions beyond a jump, or cannot run any more.
            MachineBusy: another thread runs this machine or changes its probes, or a device's
                function calls.
            ReentryError: too many runs are nested.
        """
        if start is None:
            self.parts.process.begin_run()
        self.parts.calls.run(start, until, timeout, max_insns)

    # --- going back, and devices

    def snapshot(self) -> Snapshot:
        """Copy registers, memory, mappings and devices as they are now, for restore().

        Before that, imports whose function is known get a jump in place of their trap.

        Returns:
            The snapshot. Only this machine can restore it.

        Raises:
            MachineBusy: the guest is in a run, or another thread uses the machine.
            NoMemory: there is no room for the copy.
        """
        self.parts.stubs.lay_jumps()
        return self.parts.snapshots.take()

    def restore(self, snapshot: Snapshot) -> None:
        """Set the guest back to a snapshot: registers, memory, mappings, devices, what a board's
        devices hold, what alloc() had handed out, and how far stdin was read.

        Probes stay as they are now, with their counters. Calls that return probes followed when the
        snapshot was taken are followed again. Where it raises, it has changed nothing, unless
        NoMemory says otherwise.

        Args:
            snapshot: made by snapshot() of this machine; it can be restored any number of times.

        Raises:
            BadArgument: the snapshot is another machine's.
            MachineBusy: the guest is in a run, or another thread uses the machine.
            Unsupported: return probes followed calls at the time, and their Kprobes is closed.
            NoMemory: the library's own pages lie where the snapshot has memory, or the system has
                no more memory for the guest. Where it has none in place of alloc()'s, or a device
                cannot be mapped again, some mappings are the snapshot's by then.
        """
        parts = self.parts
        parts.snapshots.restore(snapshot)
        if parts.stubs.stale:
            parts.stubs.after_restore()

    def keep_snapshot_state(self, owner: StateOwner) -> Callable[[], None]:
        """Have the state of an object, as of a device's model, kept in snapshots from now on.

        Args:
            owner: has the state, as its attribute `snapshot_state`: a value of its own, which
                restore() sets again. None is set where the snapshot is older than this call.

        Returns:
            A function that ends that.

        Raises:
            BadArgument: the object has no such attribute.
        """
        if not hasattr(owner, "snapshot_state"):
            raise BadArgument(
                f"{owner!r} has no snapshot_state",
                hint="give an object with this attribute, which is saved and set again",
            )
        return self.parts.snapshots.keep_snapshot_state(owner)

    def mmio(
        self, start: int, size: int, read: Read | None = None, write: Write | None = None
    ) -> None:
        """Map a device: whole pages of guest memory where each access calls a Python function.

        The machine's read() and write(), and instructions that the library simulates, access the
        device, too. unmap() takes it away. On an attached engine uc.emu_start() is replaced from
        then on, for as long as the engine lives.

        A function sees registers, but pc is not exact. It may stop() the run; it may not run guest
        code (MachineBusy). What it raises comes out of call() or run(), and a read that has raised
        gives 0. In both cases the run ends behind the instruction, where the next block of code
        begins (with max_insns, at the next instruction).

        Args:
            start: address of the first byte, at the beginning of a page.
            size: bytes, rounded up to whole pages.
            read: (offset in the device, bytes of the access) -> value, an integer as the guest's
                register gets it; None: reads give 0.
            write: (offset in the device, bytes of the access, value): serves a write; None: writes
                are lost.

        Raises:
            NoMemory: something else is mapped there, `start` is no page's address, or `size` is not
                above 0.
            BadArgument: `start` or `size` is of a wrong kind, or `read` or `write` is no function.
        """
        if self.parts.owner is not None:
            self.parts.owner.shadow_for_good()
        self.parts.state.stop_in_front_of_blocks()
        self.parts.memory.devices.add(self.parts.state, start, size, read, write)

    # --- images
    def load_module(
        self,
        file: str | os.PathLike[str] | bytes,
        *,
        base: int | None = None,
        name: str | None = None,
    ) -> str:
        """Load another image beside the main one.

        Its imports are bound to the symbols that are there by then.

        Args:
            file: its path or its bytes. A name without a slash that is no file here is looked up
                among the system's libraries.
            base: address of the image; None: where there is room.
            name: of the module; None: the file's.

        Returns:
            The module's name.

        Raises:
            AlreadyRegistered: a module of that name is loaded.
            ImageError: the file cannot be read, or is none that can be loaded.
            NoMemory: there is no room.
            Unsupported: process() was called, and its thread-local storage has no room for the
                image's. In all these cases nothing of the image stays.
        """
        return self.parts.loader.add(read(file, name), base)

    def load_libraries(self, files: Sequence[str | os.PathLike[str]]) -> None:
        """Load libraries with load_module(), those first whose variables others of them take: a C
        library takes its dynamic linker's.

        All files are read before the first is loaded. Where one cannot be loaded, those before it
        stay.

        Args:
            files: their paths.

        Raises:
            BadArgument: these are no paths.
            ImageError: a file cannot be read, or is none that can be loaded.
            AlreadyRegistered: a module of that name is loaded.
            NoMemory: there is no room.
            Unsupported: process() was called, and its thread-local storage has no room for one
                more image's.
        """
        paths = [*files]
        if isinstance(files, str) or not all(isinstance(one, str | os.PathLike) for one in paths):
            raise BadArgument(f"files is {shown(files)}", hint="pass a list of paths")
        images = [read(path, None) for path in paths]
        for n in in_order(images):
            self.parts.loader.add(images[n], None)

    def bind(self, name: str, function: Callable[[Regs], int | None]) -> None:
        """Have a Python function serve an import.

        Until then an import leads to a loaded module's symbol of that name, or is a fault.

        Args:
            name: of the import.
            function: gets Regs as at function entry; its result goes back to the caller, None
                leaves the return register as it is.
        """
        self.parts.stubs.bind(name, function)

    def process(
        self,
        argv: Sequence[Text] = ("program",),
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> None:
        """Make what is loaded a process as Linux starts one: run() then executes it from its entry.

        The initial stack gets an auxiliary vector, too; the thread pointer is set, and the
        thread-local storage of every image that is loaded is laid out and filled, so that calls of
        functions of a library find it. System calls are left to serve_system_calls(), or to an
        interrupt_handler. Registers of before a call that has failed are put back first.

        Args:
            argv: arguments of the program, its name first.
            env: the environment; None: empty.
            stdin: what `m.stdin` reads: that becomes a new stream.

        Raises:
            Unsupported: Linux has no processes on this architecture, or a library was loaded since
                an earlier call, and its thread-local storage has no room.
            BadArgument: an argument is no text, or all are too long for the stack.
            NoMemory: there is no room for the thread-local storage.
        """
        self.parts.calls.forget_failure()
        self.parts.process.start(argv, env or {}, argv[0] if argv else "")
        self.stdin = io.BytesIO(stdin)

    def serve_system_calls(self, seed: int = 0) -> ServedSystemCalls:
        """Serve the system calls that library code makes: memory, random bytes, time, output,
        locks, exit.

        They reach nothing of the host's. Any other call is a GuestFault that names it, and so is
        every call until this is called. `interrupt_handler` becomes a function that serves them;
        interrupts that are no system calls go to the handler that was there before.

        Args:
            seed: of the random bytes.

        Returns:
            `m.system_calls`: what the guest has written, and how own functions serve calls.

        Raises:
            Unsupported: Linux has no such processes, or the `system_calls` package is not
                installed.
        """
        reports, calls = self.parts.reports, self.parts.system_calls
        before = reports.interrupt_handler
        if self._serving is not None and before == self._serving:
            before = None
        self._serving = calls.serve(seed, self._read_stdin, before)
        reports.interrupt_handler = self._serving
        return calls

    def _read_stdin(self, size: int) -> bytes:
        """Return at most `size` bytes of the standard input that process() was given."""
        return self.stdin.read(size)

    @property
    def system_calls(self) -> ServedSystemCalls:
        """The system calls that serve_system_calls() serves: name -> function(regs, argument,
        ...).
        """
        return self.parts.system_calls

    def set_thread_pointer(self, value: int) -> None:
        """Set the thread pointer, in the register or memory where the architecture has it.

        Args:
            value: address.

        Raises:
            Unsupported: the architecture has none.
        """
        self.parts.process.set_pointer(value)

    def unload_module(self, name: str) -> None:
        """Unmap a module and remove its symbols; probes in it are GONE.

        Args:
            name: of the module.

        Raises:
            Unsupported: there is no such module.
        """
        self.parts.loader.unload(name)

    # --- the end

    def close(self) -> None:
        """Unregister the probes and take the hooks away; an engine of our own is closed with its
        last reference. A second call does nothing.

        From then on everything but what is known of the guest (`arch`, `symbols`) is MachineClosed,
        in registers that were kept as well.

        Raises:
            MachineBusy: the guest runs.
        """
        if not self._is_closed:
            self.parts.close()
            self._is_closed = True
            close(self.regs)
            close(self, KNOWN)

    def __enter__(self) -> UnicornMachine:
        """Return the machine, for a with block."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the machine at the end of a with block."""
        self.close()
