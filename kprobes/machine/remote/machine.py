"""RemoteMachine: a guest behind a stub that speaks the GDB remote protocol.

A stop is a trap: the stub stops at a breakpoint of its own (Z0) wherever one of the core's stands,
whatever the guest makes of those. Under QEMU's user mode the core's alone stop most architectures:
see traps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

from ...arch._base import Arch
from ...arguments import checked
from ...debug.described import Described
from ...errors import BadArgument, GuestFault, RemoteError, Unsupported
from ...image import Image, read_elf
from ...regs import Regs, read_cstr
from ...symbols import Symbols
from .._base import ProcessIdentity, Sink, Watched
from .._listed import Where, add_symbols
from .._passing import Argument, Passing
from .._typed import TypedPassing, needs_types
from ..closed import close
from .calls import GuestCalls, check_limits
from .children import Children
from .deferred import DeferredText
from .detaching import Detaching
from .files import AT_BASE, AT_ENTRY, AT_PAGESZ, Loads, arch_of, auxiliary
from .flash import unwritable
from .identity import RemoteProcess
from .injected import InjectedCode
from .interrupts import Interrupt, RunningGuest, interrupt_of
from .linux import among_all, told_ends
from .lockstate import LockStatus
from .memory import RemoteMemory
from .packets import Connection
from .registers import slots_of
from .runcontrol import RunControl
from .runstate import RemoteRunState
from .scratch import AreaPages, KernelPages, ProcessPages, RemotePages
from .sites import CallSites, DetourHooks, RemoteView, view_of
from .target import RemoteTarget
from .threadlock import ThreadLock
from .threads import RemoteThreads
from .vdso import Vdso

if TYPE_CHECKING:
    from ..unicorn.mmio import Read, Write
    from ..unicorn.snapshot import Snapshot

PAGE = 4096
NO_SNAPSHOT = "a remote guest's state cannot all be read and put back"
#: once it is closed
KNOWN = frozenset({"arch", "busy", "close", "cpus", "exit_status", "page_size", "symbols"})


def _nothing() -> None:
    """Do nothing: no program runs in the guest."""


@checked("__init__")
class RemoteMachine(Described):
    """A guest behind a stub: QEMU's, gdbserver's, OpenOCD's, a simulator's. Make one with
    connect(); a context manager.

    Attributes:
        arch: the architecture.
        symbols: its symbol table.
        regs: registers of the thread that stopped last, live.
        cpu_task: regs -> identity of the guest task that runs; None: one task a thread.
        cpus: number of living threads that may come to probes; each that has stopped is a CPU.
        page_size: bytes.
        regions: returns (start, end) of what is loaded, and of a stack.
        sysroot: folder of a process's libraries.
        counts_from_executed: True under a QEMU of version 9 or newer that the library has started:
            what EXECUTE executes counts its relative address from itself. False: not known.
    """

    _is_closed = False
    maps_runs = False
    # powers of engines in this process
    host_view = None
    clock = None
    hits = None
    following = None
    stack_walking = None
    hit_recording = None
    watching = None
    blocks = None
    marked_memory = None
    modules: Mapping[str, tuple[int, int]] = MappingProxyType({})

    def __init__(
        self,
        target: RemoteTarget,
        arch: Arch,
        *,
        image: Image | None = None,
        symbols: str | os.PathLike[str] | Where | None = None,
        scratch: tuple[int, int] | None = None,
        threads: int = 16,
        sysroot: str | None = None,
        interrupt: Interrupt | None = None,
        system: bool = False,
        here: bool = False,
        status: Callable[[], int | None] = lambda: None,
        console: Callable[[bytes], None] = lambda data: None,
        counts_from_executed: bool = False,
    ) -> None:
        """Make a machine of a stub. Programs use connect(), QemuMachine.user() or
        QemuMachine.system() instead.

        Each part is made here with the other parts that it needs. The guest stands still.

        Args:
            target: the stub.
            arch: the guest's architecture.
            image: the ELF file that runs there; None: it is not known.
            symbols: name -> address or (address, size), or a file as symbols.load() takes it.
            scratch: (start, bytes) of executable memory that nothing uses; the guest counts as a
                whole machine then.
            threads: number of living threads that may come to probes.
            sysroot: folder of a process's libraries.
            interrupt: how a running guest is stopped; None: as the stub's target is.
            system: the guest is a whole machine.
            here: the guest is a process on this computer, whose clock is this one's.
            status: () -> the exit status of a process whose stub has gone with it; None: it has
                none.
            console: (bytes) gets what the guest prints by the stub.
            counts_from_executed: True where relative addresses of executed instructions are known
                to count from these.
        """
        system = system or scratch is not None
        self.arch = arch
        self.symbols = Symbols()
        self.symbols.mode_bits = arch.pointers.mode_bits
        self.sysroot = sysroot
        self.counts_from_executed = counts_from_executed
        self.cpu_task: Callable[[Regs], Any] | None = None
        # not called: a stub's memory is the stub's
        self.before_run: Callable[[], object] | None = None
        self._target = target
        self._system = system
        self._exit = 0
        self._state = state = RemoteRunState(target.link)
        self._threads = RemoteThreads(target, self, arch, slots_of(target, arch), threads, system)
        self._threads.stopped(target.why().thread)
        raw = target.transfer("auxv") if "qXfer:auxv:read" in target.features else b""
        interrupt = interrupt or interrupt_of(target, self._threads.name, raw)
        self._vector = auxiliary(raw, arch.bits // 8, arch.order.value)
        self.page_size = self._vector.get(AT_PAGESZ) or PAGE
        self.cpus = self._threads.cpus
        self._loads = Loads(self.symbols, self._vector, arch, sysroot)
        self.regions = self._loads.regions
        vdso = Vdso(self.read, self._vector, arch)
        # code that leads to programs, and where threads stop: what stands in the guest
        lock_status = LockStatus()
        view = None
        if not scratch:
            view = view_of(
                self,
                target,
                there=state.guest_exists,
                fresh=self._fresh,
                loads=self._loads,
                kernel=system,
                clock=vdso.gettime if here else lambda: None,
                watched=lock_status.is_watched,
            )
        self._sites = CallSites(
            view,
            self.map_code,
            self.patch,
            self.page_size,
            self.unmap_code,
            self._reaches,
        )
        deferred = DeferredText()
        breakpoints: set[int] = set()
        pull = _nothing if view is None else view.pull
        self._lock = lock = ThreadLock(
            lock_status,
            self,
            target,
            self._threads,
            deferred=deferred,
            sites=self._sites,
            breakpoints=breakpoints,
            is_own=self._is_own,
            there=state.guest_exists,
            ending=pull,
        )
        # running it
        detours = DetourHooks()
        if view is not None:
            detours = DetourHooks(
                self._sites.inside, partial(self._going, view), pull, *view.asking
            )
        self._control = RunControl(
            state,
            target,
            self._threads,
            arch=arch,
            symbols=self.symbols,
            lock=lock,
            breakpoints=breakpoints,
            detours=detours,
            running=RunningGuest(interrupt=interrupt, console=console, system=system),
            status=status,
        )
        self.busy = self._control.busy
        target.stops.of(arch, self.symbols, scratch, lambda: unwritable(target) if system else ())
        self._calls = GuestCalls(target, self._control, lock, self._threads, arch, self.symbols)
        self._detaching = Detaching(target, self._control, self._threads, arch)
        self._injected = InjectedCode(self, target, self._control, lock, self._threads)
        # its memory
        self._pages = RemotePages(self._source(scratch, system), self.page_size, arch)
        self._memory = RemoteMemory(
            target, self._threads, arch, self._pages.has, system, self._loads.executable, deferred
        )
        children = Children(target, self._threads, arch, self._memory, state)
        self._expose_parts(lock, children, view)
        if view is not None:
            target.report_calls(() if system else told_ends(arch))
        self._loads.program(image)
        add_symbols(self.symbols, symbols)

    def _expose_parts(self, lock: ThreadLock, children: Children, view: RemoteView | None) -> None:
        """Set, on this machine, the methods and powers of its parts that the core uses.

        Together with the methods below they make the contract that machine._base.Machine describes.

        Args:
            lock: adds and drops breakpoints; by it threads take turns.
            children: follows processes that the guest forks.
            view: the guest, for programs that are compiled into it; None: it runs no programs.
        """
        self.stop_at = lock.add
        self.release = lock.drop
        self.watch_threads = lock.watch
        self.leave_threads = lock.leave_out
        self.watch_children = children.watch
        self.guest_view = view
        self.can_run = view is not None
        self.call_sites = self._sites if view is not None else None

    def _source(
        self, scratch: tuple[int, int] | None, system: bool
    ) -> ProcessPages | AreaPages | KernelPages:
        """Make the source of executable guest memory for the library, which fits the guest.

        Args:
            scratch: (start, bytes) of memory that the user has set aside; None: there is none.
            system: the guest is a whole machine: its kernel is asked. False: a process is.
        """
        if scratch is not None:
            return AreaPages(*scratch, self.page_size, self._target.read, self._target.write)
        if system:
            return KernelPages(self.symbols, self.page_size, self._injected)
        return ProcessPages(self.arch, self._injected.execute)

    def _fresh(self, size: int) -> int:
        """Map new pages for `size` bytes, which are never unmapped, and return their address."""
        return self._pages.fresh(size)

    def _is_own(self, addr: int) -> bool:
        """Return True for a guest address in a page of code that the library has mapped."""
        return self._pages.has(addr)

    @classmethod
    def connect(
        cls,
        address: str,
        *,
        arch: str | None = None,
        symbols: str | os.PathLike[str] | Where | None = None,
        image: str | os.PathLike[str] | None = None,
        scratch: tuple[int, int] | None = None,
        threads: int = 16,
        sysroot: str | None = None,
        timeout: float = 10.0,
    ) -> RemoteMachine:
        """Connect to a stub. The guest stands still from now on; children that it forks in a run
        will run on without the library.

        Args:
            address: "host:port", or a Unix socket's path.
            arch: name of the architecture; None: the stub or the file tells.
            symbols: name -> address or (address, size), or a file as symbols.load() takes it; None:
                those of the file alone.
            image: the ELF file that runs there; None: it is not known.
            scratch: (start, bytes) of executable guest memory that nothing uses, for guests that
                are no Linux process; None: the guest is one, and maps memory itself.
            threads: number of living threads that may come to probes; where one more does,
                RemoteError ends the run, and its hit comes again in the next one.
            sysroot: folder that stands for the guest's root, with a process's libraries; None:
                there is none.
            timeout: seconds that the stub may take for an answer.

        Raises:
            BadArgument: `timeout` or `threads` is out of range.
            ImageError: the file cannot be read, or nothing tells the architecture.
            RemoteError: no stub listens, or it cannot be used.
            Unsupported: the architecture is not known.
        """
        check_limits(timeout, threads)
        target = RemoteTarget(Connection.open(address, timeout))
        try:
            file = None if image is None else read_elf(image)
            machine = cls(
                target,
                arch_of(target, file, arch),
                image=file,
                symbols=symbols,
                scratch=scratch,
                threads=threads,
                sysroot=sysroot,
            )
            machine.watch_children()
            return machine
        except BaseException:
            target.link.close()
            raise

    # --- what is loaded

    def load_libraries(self) -> tuple[str, ...]:
        """Find the shared libraries that the process has loaded by now, and add their symbols to
        the table.

        Returns:
            Names of those that are new.
        """
        return self._loads.libraries(self.read)

    def unload_module(self, name: str) -> None:
        """Forget a library, or a module of a kernel, that the guest has unloaded: its symbols are
        removed, probes in it are GONE, and reads no longer show patches there.

        Args:
            name: of the library or module.

        Raises:
            Unsupported: its symbols are not known.
        """
        for page in self._loads.unload(name, self.page_size):
            if self._state.sink is not None:
                self._state.sink.about_to_unmap(page, page + self.page_size)
            self._memory.forget(page, self.page_size)

    def _going(self, view: RemoteView) -> None:
        """Prepare programs in the guest for a run, just before the guest goes on.

        Their maps are written to the guest. Where QEMU can only report all system calls, it is told
        to do so while programs run, so that maps can be read before the process ends.

        Args:
            view: the guest, which knows the maps.
        """
        view.push()
        calls = among_all(self.arch)
        if calls and not self._system and not self._lock.several:
            self._target.report_calls(calls if self._sites.runs_programs else (), among_all=True)

    @property
    def process_identity(self) -> ProcessIdentity | None:
        """Number and name of the process; None: the guest is a whole machine, or the stub does not
        number processes.
        """
        if self._system or not self._threads.process:
            return None
        return RemoteProcess(self._threads, self._target, self.symbols)

    @property
    def in_turn(self) -> bool:
        """Whether the guest is a process whose threads take turns at probes: the others run on
        while one has stopped.
        """
        return self._lock.several

    def to_entry(self) -> None:
        """Run the program's dynamic linker to its end, and add the symbols of the libraries that it
        has loaded.

        The guest then stands at the program's first instruction. Without a dynamic linker nothing
        is done.
        """
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
        """Registers of every CPU, as many as `cpus`. A CPU is a thread that has stopped; the
        registers of one that has no thread yet read as 0.
        """
        return self._threads.regs[: self.cpus]

    @property
    def exit_status(self) -> int | None:
        """The status that the program ended with, or minus the signal's number; None while it has
        not ended.
        """
        return self._state.exit_status

    def read(self, addr: int, size: int) -> bytes:
        """Return guest memory as it is, breakpoints included.

        Args:
            addr: guest address of the first byte, without mode bits.
            size: how many bytes, 1 GiB at most; 0 gives b"".

        Returns:
            `size` bytes, in the order of their addresses.

        Raises:
            GuestFault: a byte of them is not mapped: `address` is the first such one; or the
                program has ended.
            BadArgument: `addr` or `size` is no integer, or `size` is negative.
        """
        if size < 0:
            raise BadArgument(f"cannot read {size} bytes", hint="pass 0 or more")
        self._check(addr, size, "read")
        return self._memory.read(addr, size)

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory, read-only parts too.

        Args:
            addr: guest address of the first byte, without mode bits.
            data: bytes for the addresses from there on, 1 GiB at most.

        Raises:
            GuestFault: a byte of them is not mapped, or the stub may not write there, or the
                program has ended; nothing is written.
            BadArgument: `addr` is no integer, or `data` no bytes.
        """
        self._check(addr, len(data), "write")
        self._memory.write(addr, bytes(data))

    def patch(self, addr: int, code: bytes) -> None:
        """Replace guest code at `addr` by `code`; do nothing where the guest no longer exists.

        In a whole machine reads only show the new code, and nothing is written, but for jumps to
        the library's own pages. While threads take turns, the guest's text is written when the
        guest goes on.

        Raises:
            GuestFault: there is no such memory.
        """
        if self._state.guest_exists():
            self._check(addr, len(code), "write")
            self._memory.patch(addr, code)

    def read_cstr(self, addr: int, limit: int = 4096) -> bytes:
        """Return the bytes from `addr` up to the first NUL, which is left out, at most `limit`.

        Raises:
            GuestFault: there is no such memory.
        """
        return read_cstr(self, addr, limit)

    def _check(self, addr: int, size: int, access: str) -> None:
        """Refuse an access once the program has ended, or one beyond the address space.

        Args:
            addr: address of the first byte.
            size: bytes, 1 GiB at most.
            access: "read" or "write", for the error.

        Raises:
            GuestFault: the access is refused.
        """
        if self.exit_status is not None:
            raise GuestFault("the program has ended", address=addr, access=access, by_python=True)
        if not 0 <= addr <= addr + size <= 1 << self.arch.bits or size > 1 << 30:
            raise GuestFault("no such memory", address=addr, access=access)

    def executable(self, addr: int) -> bool:
        """Return True for an address in code of loaded files, and in pages of code that this
        machine has added.

        Where no file is known to be loaded: True where memory can be read.

        Args:
            addr: a guest address.
        """
        if self._pages.has(addr) or self._loads.executable(addr):
            return True
        try:
            return self._loads.nothing and bool(self.read(addr, 1))
        except GuestFault:
            return False

    def map_code(self, near: int | None = None, pages: int = 1) -> int:
        """Map a page of executable guest memory, and return its address. The first call maps the
        page of `exit_address` as well.

        Args:
            near: address that jumps are to reach, where there is such a page; None: the current pc.
            pages: 1.

        Raises:
            NoMemory: there is none.
            Unsupported: `pages` is not 1.
        """
        if pages != 1:
            raise Unsupported(f"{pages} pages at a time", hint="take one")
        self._exit_address()  # first: it is never unmapped
        return self._map_near(self.regs.pc if near is None else near)

    def _map_near(self, near: int) -> int:
        """Map a page of code, near to the file that has code at `near`, and return its address."""
        return self._pages.map_near(near, max(near, self._loads.end(near)), self._loads.start(near))

    def _reaches(self, near: int, page: int) -> bool:
        """Return True where jumps lead from address `near` to all of the page at address `page`,
        and back.
        """
        return self._pages.reaches(near, page)

    def unmap_code(self, page: int, pages: int = 1) -> None:
        """Give a page of map_code() back.

        Args:
            page: its address.
            pages: not used: map_code() gives one.
        """
        self._pages.unmap(page, there=self._state.guest_exists())

    def alloc(self, size: int) -> int:
        """Hand out `size` bytes of guest memory, and return their address. They are not cleared.

        Raises:
            NoMemory: there is none.
        """
        return self._pages.alloc(size)

    def free(self, addr: int) -> None:
        """Give the memory at `addr` back, which alloc() has handed out. Other addresses are
        ignored.
        """
        self._pages.free(addr)

    # --- what the core asks for

    def report_to(self, sink: Sink | None) -> None:
        """Deliver reports of stops to `sink`, the core, from now on; None: to none.

        Raises:
            AlreadyRegistered: another sink receives them.
        """
        self._state.listen(sink)

    # --- what only engines in this process can do

    def snapshot(self) -> NoReturn:
        """Refuse: a remote guest's state cannot all be read and put back.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(NO_SNAPSHOT, hint="start it anew, or use a UnicornMachine")

    def restore(self, snapshot: Snapshot) -> NoReturn:
        """Refuse: a remote guest's state cannot all be read and put back.

        Args:
            snapshot: of another machine.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(NO_SNAPSHOT, hint="start it anew, or use a UnicornMachine")

    def mmio(
        self, start: int, size: int, read: Read | None = None, write: Write | None = None
    ) -> NoReturn:
        """Refuse: a remote guest's accesses to memory are not reported.

        Args:
            start, size, read, write: as of UnicornMachine.mmio().

        Raises:
            Unsupported: always.
        """
        raise Unsupported(
            "a remote guest's accesses to memory are not reported", hint="use a UnicornMachine"
        )

    def watch_at(self, start: int, size: int, access: str, report: Watched) -> NoReturn:
        """Refuse: a remote guest's accesses to memory are not reported.

        Args:
            start, size, access, report: as of a machine that has `watching`.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(
            "this machine does not report accesses to memory",
            hint="put a probe where it is written, or use a UnicornMachine",
        )

    def count_blocks(
        self, wanted: Callable[[int], bool] | None = None, arcs: bool = False
    ) -> NoReturn:
        """Refuse: a stub does not tell which blocks of code are executed.

        Args:
            wanted, arcs: as of UnicornMachine.count_blocks().

        Raises:
            Unsupported: always.
        """
        raise Unsupported(
            "this machine does not tell which blocks of code are executed",
            hint="use a UnicornMachine, or probes",
        )

    # --- running

    def run(
        self,
        start: int | str | None = None,
        until: int | str | None = None,
        *,
        timeout: float | None = None,
        max_insns: int | None = None,
    ) -> None:
        """Run the guest from `start` (default: where it stands) until `until`, stop(), or the
        program's end.

        Signals that the guest's own instructions cause, and that no fault_handler handles, are the
        program's.

        Args:
            start: address or symbol; None: where the guest stands.
            until: address or symbol; None: nowhere.
            timeout: seconds; None: no bound.
            max_insns: instructions of the current thread, step by step; None: no bound.

        Raises:
            GuestFault: the program was ended by a signal.
            GuestTimeout: a bound has come.
            RemoteError: the stub is gone, or the program had ended.
        """
        with self._sites.running(self._state.depth):
            self._calls.run(start, until, timeout, max_insns)

    def call(
        self,
        function: str | int,
        *args: Argument | float,
        timeout: float | None = None,
        max_insns: int | None = None,
        prototype: str | Literal[True] | None = None,
    ) -> Any:
        """Call guest code in the current thread and return its result; registers are put back
        afterwards.

        Other threads stand still meanwhile.

        Args:
            function: symbol or address.
            args: integers, None (0); bytes, bytearray and str, which are copied into guest memory,
                NUL-terminated, and passed as pointers; a bytearray is copied back afterwards. By
                the function's types also floats, complex numbers, and structures: a mapping of
                the members, where those left out are 0, a View, or all bytes.
            timeout: seconds; None: no bound.
            max_insns: instructions; None: no bound.
            prototype: the function's types, as C writes them: "double pow(double, double)"; True:
                those of debug information, which are also looked up where an argument is a float
                or a structure. The result is of its C type then: a float, a signed integer, a dict
                of a structure's members, None for void.

        Raises:
            GuestFault: the guest has failed, or ended.
            GuestTimeout: a bound has come.
            BadArgument: an argument is of another type, or a bound is out of range.
            UnknownSymbol, AmbiguousSymbol: there is no such function, or several.
            MachineBusy: another thread runs the machine, or changes its probes.
            NoMemory: there is no room for a copy of an argument.
            ReentryError: too many runs are nested.
            RemoteError: the program had ended, or the stub is gone.
            Unsupported: the architecture has no calling convention, there are more pointers than
                it passes in registers, or `max_insns` is given and there are several threads.
        """
        self._control.check_running()
        with self._control.alone(), self._sites.running(self._state.depth):
            if prototype is None and not needs_types(args):
                passing = Passing(self, cast("tuple[Argument, ...]", args))
            else:
                passing = TypedPassing(
                    self,
                    args,
                    True if prototype is None else prototype,
                    self.debug,
                    lambda: self._calls.entry(function),
                )
            return self._calls.call(function, passing, self._exit_address(), timeout, max_insns)

    def invoke(self, target: int) -> None:
        """Run a function of the guest with the registers as they are until it returns; then put all
        registers back.

        Args:
            target: the function's address, as pointers have it.
        """
        with self._sites.running(self._state.depth):
            self._calls.call(target, None, self._exit_address(), None, None)

    def stop(self) -> None:
        """End the run after the report that is being served. A handler or another thread may call
        this.
        """
        self._control.stop()

    @property
    def exit_address(self) -> int:
        """The address to which the outermost function of a guest call returns; 0 before the first
        call.
        """
        return self._exit

    def _exit_address(self) -> int:
        """Return the address that calls return to, in a page of the library's that no thread
        executes. The first call maps the page, and notes the address for `exit_address`.
        """
        self._exit = self._exit or self._map_near(self.regs.pc)
        return self._exit

    def close(self) -> None:
        """Unregister the probes, and let go of the guest: it runs on. A QEMU that the library has
        started is ended, and its guest with it. A second call does nothing.

        From then on every use of the machine or of its registers raises MachineClosed, but for what
        is known of the guest (KNOWN).

        Raises:
            MachineBusy: a run is under way.
        """
        if self._is_closed:
            return
        self._control.check_idle()
        with suppress(RemoteError):
            if self._state.sink is not None:
                self._state.sink.close()
            if self.guest_view is not None:
                self.guest_view.pull()
        self._let_go()
        self._is_closed = True
        for regs in self._threads.regs:
            close(regs)
        close(self, KNOWN)

    def _let_go(self) -> None:
        """Detach from the guest, which runs on, and close the connection. Called by close()."""
        self._detaching.detach()

    def __enter__(self) -> RemoteMachine:
        """Return the machine, for a with block."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the machine at the end of a with block."""
        self.close()
