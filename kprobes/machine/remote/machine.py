"""RemoteMachine: a guest behind a stub that speaks the GDB remote protocol.

A stop is a trap: the stub stops at a breakpoint of its own (Z0) wherever one of the core's stands, whatever the guest
makes of those. Under QEMU's user mode the core's alone stop most architectures: see traps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any

from ...arch._base import Arch
from ...arguments import checked
from ...debug.described import Described
from ...errors import AlreadyRegistered, GuestFault, RemoteError, Unsupported
from ...image import Image, read_elf
from ...regs import Regs, read_cstr
from ...symbols import Symbols
from .._base import Sink
from .._blocks import refuses
from .._listed import Where, add_symbols
from .._passing import Argument, Passing
from ..closed import close
from .calls import GuestCalls, check_limits
from .children import Children
from .control import Control
from .errands import Errands
from .files import AT_BASE, AT_ENTRY, AT_PAGESZ, Loads, arch_of, auxiliary
from .flash import unwritable
from .halting import Interrupt
from .leaving import Leaving
from .linux import among_all, told_ends
from .local import interrupt_of
from .memory import Memory
from .packets import Connection
from .registers import slots_of
from .scratch import Area, Kernel, Pages, Process
from .sites import CallSites, Detours, View, view_of
from .target import Target
from .threads import Threads
from .turns import Turns

PAGE = 4096
#: once it is closed
KNOWN = frozenset({"arch", "busy", "close", "cpus", "exit_status", "page_size", "symbols"})


@checked("__init__")
class RemoteMachine(Described):
    """A guest behind a stub: QEMU's, gdbserver's, OpenOCD's, a simulator's. Make one with connect(); a context manager.

    Attributes:
        arch, symbols, cpu_task, regs: as of every machine.
        cpus: threads that may stand in a hit at once. exit_status:
        once it has ended (less than 0: the signal), else None. regions(): (start, end) of what is
            loaded, and a stack.
    """

    _is_closed, maps_runs = False, False
    host_view = clock = hits = following = watching = blocks = marked_memory = None  # powers of engines in this process
    modules: Mapping[str, tuple[int, int]] = MappingProxyType({})
    snapshot = restore = staticmethod(refuses("a remote guest's state cannot all be read and put back",
                                              "start it anew, or use a UnicornMachine"))
    mmio = staticmethod(refuses("a remote guest's accesses to memory are not reported", "use a UnicornMachine"))
    watch_at = staticmethod(refuses("this machine does not report accesses to memory",
                                    "put a probe where it is written, or use a UnicornMachine"))
    count_blocks = staticmethod(refuses("this machine does not tell which blocks of code are executed",
                                        "use a UnicornMachine, or probes"))

    def __init__(self, target: Target, arch: Arch, *, image: Image | None = None,
                 symbols: str | os.PathLike[str] | Where | None = None,
                 scratch: tuple[int, int] | None = None, threads: int = 16, sysroot: str | None = None,
                 interrupt: Interrupt | None = None, system: bool = False,
                 status: Callable[[], int | None] = lambda: None,
                 console: Callable[[bytes], None] = lambda data: None) -> None:
        """Use connect(), or QemuMachine.user() and .system()."""
        system = system or scratch is not None
        self.arch, self.symbols, self.sysroot, self._target = arch, Symbols(), sysroot, target
        self.symbols.mode_bits = arch.pointers.mode_bits
        self.cpu_task: Callable[[Regs], Any] | None = None
        self.before_run: Callable[[], object] | None = None  # not called: a stub's memory is the stub's
        self._threads = Threads(target, self, arch, slots_of(target, arch), threads, system)
        self._threads.stopped(target.why().thread)
        raw = target.transfer("auxv") if "qXfer:auxv:read" in target.features else b""
        self._vector = auxiliary(raw, arch.bits // 8, arch.order.value)
        self._control = Control(target, self._threads, arch, self.symbols,
                                interrupt or interrupt_of(target, self._threads.name, raw), console, system, status)
        self.page_size, self.cpus = self._vector.get(AT_PAGESZ) or PAGE, len(self._threads.regs)
        self._loads = Loads(self.symbols, self._vector, arch, sysroot)
        target.stops.of(arch, self.symbols, scratch, lambda: unwritable(target) if system else ())
        self._system = system
        self._exit, self.busy, self.regions = 0, self._control.busy, self._loads.regions
        self._calls = GuestCalls(target, self._control, self._threads, arch, self.symbols)
        self._leaving = Leaving(target, self._control, self._threads, arch)
        self._errands = Errands(self, target, self._control, self._threads)
        self._pages = Pages(self._source(scratch, system), self.page_size, arch)
        self._memory = Memory(target, self._threads, arch, self._pages.has, system, self._loads.executable)
        view = None if scratch else view_of(self, target, lambda: self._there, self._pages.fresh, self._loads, system)
        self._sites = CallSites(view, self.map_code, self.patch, self.page_size, self.unmap_code)
        self._control.turns = self._turns = turns = Turns(self, target, self._threads, self._memory, self._sites,
                                                          self._control.breakpoints, lambda: self._there,
                                                          view.pull if view is not None else lambda: None)
        self.stop_at, self.release, self.watch_threads = turns.add, turns.drop, turns.watch
        self.watch_children = Children(target, self._threads, arch, self._memory, lambda: self._control.sink).watch
        self.guest_view, self.can_run = view, view is not None
        self.call_sites = self._sites if view is not None else None
        if view is not None:
            self._control.detours(Detours(self._sites.inside, partial(self._going, view), view.pull, *view.asking))
            target.report_calls(() if system else told_ends(arch))
        self._loads.program(image)
        add_symbols(self.symbols, symbols)

    def _source(self, scratch: tuple[int, int] | None, system: bool) -> Process | Area | Kernel:
        """Where executable memory comes from."""
        if scratch is not None:
            return Area(*scratch, self.page_size, self._target.read, self._target.write)
        return (Kernel(self.symbols, self.page_size, self._errands) if system
                else Process(self.arch, self._errands.execute))

    @classmethod
    def connect(cls, address: str, *, arch: str | None = None, symbols: str | os.PathLike[str] | Where | None = None,
                image: str | os.PathLike[str] | None = None, scratch: tuple[int, int] | None = None, threads: int = 16,
                sysroot: str | None = None, timeout: float = 10.0) -> RemoteMachine:
        """A machine around a stub that listens at "host:port" or at a Unix socket's path. The guest stands still from
        now on.

        arch: its name, where neither the stub nor a file tells. image: the ELF file that runs there. symbols: name ->
        address or (address, size), or a file as symbols.load() takes it. scratch: (start, size) of executable guest
        memory that nobody uses, for guests that are no Linux process. threads: how many may stand in a hit at once.
        system: it is a whole machine, with a Linux kernel whose own allocator gives such memory. sysroot: where a
        process's libraries are. timeout: seconds that the stub may take for an answer. Raises RemoteError, ImageError,
        Unsupported.
        """
        check_limits(timeout, threads)
        target = Target(Connection.open(address, timeout))
        try:
            file = None if image is None else read_elf(image)
            machine = cls(target, arch_of(target, file, arch), image=file, symbols=symbols, scratch=scratch,
                          threads=threads, sysroot=sysroot)
            machine.watch_children()
            return machine
        except BaseException:
            target.link.close()
            raise

    # --- what is loaded

    def load_libraries(self) -> tuple[str, ...]:
        """Enter the symbols of the shared libraries that the process has loaded by now; names of those that are new."""
        return self._loads.libraries(self.read)

    def unload_module(self, name: str) -> None:
        """The guest has unloaded a library, or a module of its kernel: probes in it are GONE. Unsupported where its
        symbols are not known."""
        for page in self._loads.unload(name, self.page_size):
            if self._control.sink is not None:
                self._control.sink.unloading(page, page + self.page_size)
            self._memory.forget(page, self.page_size)

    def _going(self, view: View) -> None:
        """Prepare programs in the guest for a run: their maps, and the stop at which those are read for the last time,
        before the process ends."""
        view.push()
        calls = among_all(self.arch)
        if calls and not self._system and not self._turns.several:
            self._target.report_calls(calls if self._sites.runs_programs else (), among_all=True)

    @property
    def in_turn(self) -> bool:
        """True in a process of several threads that run on while one is looked at."""
        return self._turns.several

    def to_entry(self) -> None:
        """A program that is linked dynamically runs its linker, to its own first instruction; then its libraries are
        known."""
        if self._vector.get(AT_BASE) and AT_ENTRY in self._vector:
            self.run(until=self._vector[AT_ENTRY])
            self.load_libraries()

    # --- registers and memory

    @property
    def regs(self) -> Regs:
        """Registers of the thread that stopped last."""
        return self._threads.regs[self._threads.current]

    @property
    def cpu_regs(self) -> list[Regs]:
        """Registers of every CPU: of every thread that has stopped in a hit."""
        return self._threads.regs

    @property
    def exit_status(self) -> int | None:
        """What the program has ended with: its status, or less than 0: the signal; None while it has not."""
        return self._control.exit_status

    def read(self, addr: int, size: int) -> bytes:
        """Guest memory. Raises GuestFault where there is none."""
        self._check(addr, size, "read")
        return self._memory.read(addr, size)

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory, read-only parts too. Raises GuestFault where there is none."""
        self._check(addr, len(data), "write")
        self._memory.write(addr, bytes(data))

    def patch(self, addr: int, code: bytes) -> None:
        """Replace code while nothing runs; nothing where the guest is gone."""
        if self._there:
            self._check(addr, len(code), "write")
            self._memory.patch(addr, code)

    def read_cstr(self, addr: int, limit: int = 4096) -> bytes:
        """Bytes up to the first NUL, at most `limit`; GuestFault."""
        return read_cstr(self, addr, limit)

    @property
    def _there(self) -> bool:
        """True while there is a guest."""
        return self.exit_status is None and not self._target.link.closed

    def _check(self, addr: int, size: int, access: str) -> None:
        if self.exit_status is not None:
            raise GuestFault("the program has ended", address=addr, access=access)
        if not 0 <= addr <= addr + size <= 1 << self.arch.bits or size > 1 << 30:
            raise GuestFault("no such memory", address=addr, access=access)

    def executable(self, addr: int) -> bool:
        """True in code of what is loaded, and in pages of ours; where nothing is known to be loaded, in memory that can
        be read."""
        if self._pages.has(addr) or self._loads.executable(addr):
            return True
        try:
            return self._loads.nothing and bool(self.read(addr, 1))
        except GuestFault:
            return False

    def map_code(self, near: int | None = None, pages: int = 1) -> int:
        """A page of executable guest memory, as near as there is room. Raises NoMemory."""
        if pages != 1:
            raise Unsupported(f"{pages} pages at a time", hint="take one")
        self._exit_address()  # first: what is unmapped later is nobody's
        return self._map_near(self.regs.pc if near is None else near)

    def _map_near(self, near: int) -> int:
        return self._pages.map_near(near, max(near, self._loads.end(near)), self._loads.start(near))

    def unmap_code(self, page: int, pages: int = 1) -> None:
        """Give it back."""
        self._pages.unmap(page, there=self._there)

    def alloc(self, size: int) -> int:
        """Guest memory of `size` bytes; its address. Raises NoMemory."""
        return self._pages.alloc(size)

    def free(self, addr: int) -> None:
        """Give memory from alloc() back."""
        self._pages.free(addr)

    # --- what the core asks for

    def report_to(self, sink: Sink | None) -> None:
        """Deliver reports to `sink`; None: to nobody. Raises AlreadyRegistered."""
        if sink is not None and self._control.sink is not None:
            raise AlreadyRegistered("this machine has a Kprobes already", hint="close it first")
        self._control.sink = sink

    # --- running

    def run(self, start: int | str | None = None, until: int | str | None = None, *, timeout: float | None = None,
            max_insns: int | None = None) -> None:
        """Run the guest from `start` (default: where it stands) until `until`, stop(), or the program's end.

        timeout: seconds; max_insns: instructions of the current thread, step by step. Signals that the guest's own
        instructions cause, and that no fault_handler handles, are the program's. Raises GuestFault (it was ended by
        one), GuestTimeout, RemoteError.
        """
        with self._sites.running(self._control.depth):
            self._calls.run(start, until, timeout, max_insns)

    def call(self, function: str | int, *args: Argument, timeout: float | None = None,
             max_insns: int | None = None) -> int:
        """Call guest code in the current thread and return its integer result; registers are put back afterwards.

        Arguments, bounds and errors: as UnicornMachine.call(). Other threads stand still meanwhile.
        """
        with self._control.alone(), self._sites.running(self._control.depth):
            return self._calls.call(function, Passing(self, args), self._exit_address(), timeout, max_insns)

    def invoke(self, target: int) -> None:
        """Run guest code with the registers as they are until it returns; then put all registers back."""
        with self._sites.running(self._control.depth):
            self._calls.call(target, None, self._exit_address(), None, None)

    def stop(self) -> None:
        """End the run after the report that is being served."""
        self._control.stop()

    @property
    def exit_address(self) -> int:
        """Where the outermost function of a guest call returns to; 0: there has been none."""
        return self._exit

    def _exit_address(self) -> int:
        """Where calls return to: memory of ours that nobody executes."""
        self._exit = self._exit or self._map_near(self.regs.pc)
        return self._exit

    def close(self) -> None:
        """Unregister the probes, and let go of the guest: it runs on. See UnicornMachine.close()."""
        if self._is_closed:
            return
        self._control.check_idle()
        with suppress(RemoteError):
            if self._control.sink is not None:
                self._control.sink.close()
        self._let_go()
        self._is_closed = True
        for regs in self._threads.regs:
            close(regs)
        close(self, KNOWN)

    def _let_go(self) -> None:
        self._leaving.detach()

    def __enter__(self) -> RemoteMachine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
