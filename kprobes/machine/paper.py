"""PaperMachine: a deterministic toy engine, for tests of the core and for reading. PAPER, its
instruction set, is in _paper_isa.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import RLock
from time import monotonic
from typing import Any

from ..arch._base import Annul, Arch, Decoded, Insn
from ..arguments import kind_of
from ..errors import (
    AlreadyRegistered,
    BadArgument,
    GuestFault,
    GuestTimeout,
    NoMemory,
    ReentryError,
)
from ..regs import Regs
from ..symbols import Symbols
from ._base import BuiltIn, Fault, HostProgram, Sink
from ._ends import ending_at
from ._paper_isa import LENGTHS, PAPER, execute
from ._passing import check_bounds, register_value

PAGE = 0x1000
EXIT = 0xE000
STEPS = 100_000  #: the most that a run makes, unless its caller says otherwise


class PaperCalls:
    """The toy engine's power to call the core in place (machine._base.CallsInPlace).

    A call site is an address in a page of map_calls(). Before an instruction there is executed the
    engine calls the address's service, a function of the core's in Sink.services.

    Attributes:
        call_area: bytes of an area: a page.
        delays_in_calls: True: in an area an instruction may have a delay slot.
        can_run: True: executions can be counted. There is nothing that a program of the host's
            could see here.
        areas: pages in which each instruction is reported to Sink.services first.
    """

    call_area = PAGE
    delays_in_calls = can_run = True

    def __init__(self, map_page: Callable[[int], int], unmap_page: Callable[[int], None]) -> None:
        """
        Args:
            map_page: (near) -> address of a new executable page.
            unmap_page: (page): unmaps one.
        """
        self._map_page = map_page
        self._unmap_page = unmap_page
        self.areas: set[int] = set()
        self._counts: dict[int, int] = {}  # call site -> executions that were only counted
        self._counting: set[int] = set()  # where that is so now

    def jumps(self, programs: Sequence[object] | None, mode: int) -> bool:
        """Return True: a jump may lead to any call site. The arguments are not used."""
        return True

    def map_calls(self, near: int) -> int:
        """Map a page for call sites, and return its address.

        Args:
            near: address that the page is to be near to.

        Raises:
            NoMemory: there is no room.
        """
        page = self._map_page(near)
        self.areas.add(page)
        return page

    def unmap_calls(self, area: int) -> None:
        """Unmap a page from map_calls()."""
        self.areas.discard(area)
        self._counting.difference_update(range(area, area + PAGE))
        self._unmap_page(area)

    def call_at(self, addr: int) -> None:
        """Have the service of a call site called again at each execution, after program_at().

        Args:
            addr: the call site; its service is looked up when the guest comes there.
        """
        self._counting.discard(addr)

    def program_at(
        self, addr: int, programs: Sequence[HostProgram], last: BuiltIn | None = None
    ) -> None:
        """Only count a call site's executions from now on, and do not call its service.

        Args:
            addr: the call site.
            programs: must be empty: the toy engine runs none.
            last: must be None.
        """
        assert not programs and last is None
        self._counting.add(addr)

    def counts_at(self, pc: int) -> bool:
        """Count an execution, if the address is a call site where executions are only counted.

        Args:
            pc: address of the instruction that is about to be executed.

        Returns:
            True where it was counted.
        """
        if pc not in self._counting:
            return False
        self._counts[pc] = self._counts.get(pc, 0) + 1
        return True

    def count(self, addr: int) -> int:
        """Return how often a call site was executed without its service being called."""
        return self._counts.get(addr, 0)

    def ran(self, addr: int) -> bool:
        """Return False: no programs run on this engine."""
        return False

    def serve_here(self, addr: int, programs: Sequence[object]) -> None:
        """Return None: an instruction in guest text cannot be a call site itself."""


class PaperMachine:
    """The toy engine: executes PAPER, or an instruction set that no other engine has, in Python.

    Attributes:
        before: called with (machine, number of the CPU) before each instruction; may change
            registers (an interrupt, say).
        steps: instructions executed.
    """

    page_size = PAGE
    maps_runs = in_turn = counts_from_executed = False
    # powers of other engines
    hits = None
    following = None
    stack_walking = None
    hit_recording = None
    host_view = None
    guest_view = None
    watching = None
    blocks = None
    marked_memory = None
    clock = None
    process_identity = None

    def __init__(
        self,
        code: bytes,
        *,
        base: int = 0x1000,
        symbols: dict[str, int | tuple[int, int]] | None = None,
        cpus: int = 1,
        arch: Arch = PAPER,
        execute: Callable[[Regs, Insn], object] | None = None,
        breaks: Callable[[Regs, Insn], bool] | None = None,
    ) -> None:
        """Make a machine with code at `base`, a page of stack and the page where calls return to.

        Args:
            code: the guest's code.
            base: address of its first byte.
            symbols: name -> address, or (address, size in bytes); None: there are none.
            cpus: number of CPUs.
            arch: the instruction set.
            execute: (regs, instruction): carries out an instruction that has no simulation, of
                another set than PAPER; None: such an instruction is a fault.
            breaks: (regs, instruction) -> True where the instruction is a breakpoint, and is
                executed; None: the bytes of the architecture's breakpoints say it.
        """
        self.arch = arch
        self.cpus = cpus
        self._effect = execute
        self._pc = arch.regs.pc
        self._breaks = breaks
        self._traps = arch.traps.every()
        self.symbols = Symbols()
        self.before: Callable[[PaperMachine, int], None] | None = None
        self.cpu_task: Callable[[Regs], Any] | None = None
        self.steps = 0
        self._pages = dict[int, bytearray]()
        self._code = set[int]()
        self.call_sites = self._calls = PaperCalls(self.map_code, self.unmap_code)
        self.sink: Sink | None = None
        self.before_run: Callable[[], object] | None = None
        self.busy = RLock()
        self._values = [dict.fromkeys(arch.regs.names, 0) for _ in range(cpus)]
        self._regs = [self._view(cpu) for cpu in range(cpus)]
        self._cpu = self._depth = 0
        # CPU -> registers before a call that failed
        self._abandoned: dict[int, dict[str, int]] = {}
        for page in range(base & -PAGE, base + max(len(code), 1), PAGE):
            self._map(page, executable=True)
        self._map(EXIT, executable=True)
        self._map(0xC000, executable=False)
        for values in self._values:
            values[arch.regs.sp] = 0xCF00
        self.write(base, code)
        for name, where in (symbols or {}).items():
            addr, size = where if isinstance(where, tuple) else (where, 0)
            self.symbols.add(name, addr, size)

    def _view(self, cpu: int) -> Regs:
        """Return the registers of a CPU, as handlers get them."""
        values = self._values[cpu]
        readers = {name: partial(values.__getitem__, name) for name in values}
        writers = {
            name: partial(
                self._set, values, name, (1 << self.arch.regs.widths.get(name, self.arch.bits)) - 1
            )
            for name in values
        }
        return Regs(self, readers, writers, cpu)

    def _set(self, values: dict[str, int], name: str, mask: int, value: int) -> None:
        """Set a register to a value, cut by `mask` to the register's width.

        Args:
            values: the CPU's registers, name -> value.
            name: of the register.
            mask: its greatest value.
            value: the new value.
        """
        values[name] = value & mask

    @property
    def regs(self) -> Regs:
        """Registers of the CPU that ran last."""
        return self._regs[self._cpu]

    @property
    def cpu_regs(self) -> list[Regs]:
        """Registers of every CPU."""
        return self._regs

    # --- memory

    def _map(self, page: int, *, executable: bool) -> None:
        """Map a page of zeros.

        Args:
            page: address of the page.
            executable: True: the guest may execute there.
        """
        self._pages[page] = bytearray(PAGE)
        if executable:
            self._code.add(page)

    def _access(self, addr: int, access: str) -> bytearray:
        """Return the page of guest memory that an address is in.

        Args:
            addr: the address.
            access: what the guest does there, for the error: "read", "write".

        Raises:
            GuestFault: memory is not mapped there.
        """
        page = self._pages.get(addr & -PAGE)
        if page is None:
            raise GuestFault("memory is not mapped", address=addr, access=access)
        return page

    def _views(self, addr: int, size: int, access: str) -> Iterator[memoryview]:
        """Yield views of guest memory, one of each page that a range touches, by address.

        Args:
            addr: address of the first byte.
            size: bytes.
            access: what is done there, for the error: "read", "write".

        Raises:
            GuestFault: a page is not mapped.
        """
        end = addr + size
        while addr < end:
            page, at = self._access(addr, access), addr % PAGE
            yield memoryview(page)[at : at + end - addr]
            addr += PAGE - at

    def read(self, addr: int, size: int) -> bytes:
        """Return guest memory.

        Args:
            addr: address of the first byte.
            size: bytes.

        Raises:
            GuestFault: it is not mapped; `address` is the first such byte.
            BadArgument: `addr` or `size` is no integer, or `size` is negative.
        """
        try:
            if size >= 0:
                return b"".join(self._views(addr, size, "read"))
        except TypeError:
            pass
        raise BadArgument(f"cannot read {size!r} bytes at {addr!r}", hint="pass integers")

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory.

        Args:
            addr: address of the first byte.
            data: what to write.

        Raises:
            GuestFault: a page is not mapped. Nothing was written.
            BadArgument: `addr` is no integer, or `data` no bytes.
        """
        at = 0
        try:
            for view in list(self._views(addr, len(data), "write")):
                view[:] = data[at : at + len(view)]
                at += len(view)
        except (TypeError, ValueError):
            raise BadArgument(
                f"cannot write {type(data).__name__} at {addr!r}", hint="pass an integer and bytes"
            ) from None

    patch = write

    def executable(self, addr: int) -> bool:
        """Return True where the guest may execute."""
        return addr & -PAGE in self._code

    @property
    def modules(self) -> dict[str, tuple[int, int]]:
        """{}: no images are loaded here."""
        return {}

    def regions(self) -> list[tuple[int, int]]:
        """List the pages that are mapped: (start, end), by address."""
        return [(page, page + PAGE) for page in sorted(self._pages)]

    def map_code(self, near: int | None = None, pages: int = 1) -> int:
        """Map an executable page between 0x4000 and 0xC000, and return its address.

        Args:
            near: not used: every page is near enough.
            pages: must be 1.

        Raises:
            NoMemory: all of these pages are mapped.
        """
        assert pages == 1
        for page in range(0x4000, 0xC000, PAGE):
            if page not in self._pages:
                self._map(page, executable=True)
                return page
        raise NoMemory("no free page", hint="unmap one")

    def unmap_code(self, page: int, pages: int = 1) -> None:
        """Unmap a page.

        Args:
            page: address of the page.
            pages: not used.
        """
        del self._pages[page]
        self._code.discard(page)

    def unload(self, page: int) -> None:
        """Tell the core that a page of guest text goes, then unmap it, as a module is unloaded.

        Args:
            page: address of its first byte.
        """
        if self.sink is not None:
            self.sink.about_to_unmap(page, page + PAGE)
        self.unmap_code(page)

    def snapshot(self) -> dict[int, bytes]:
        """Return a copy of memory: address of a page -> its bytes."""
        return {page: bytes(data) for page, data in self._pages.items()}

    # --- reports

    def report_to(self, sink: Sink | None) -> None:
        """Deliver reports to `sink` from now on; None: deliver none.

        Raises:
            AlreadyRegistered: another sink gets them.
        """
        if sink is not None and self.sink is not None:
            raise AlreadyRegistered("this machine has a Kprobes already", hint="close it first")
        self.sink = sink

    def stop_at(self, addr: int) -> None:
        """Do nothing: this engine reports every breakpoint in memory."""

    def release(self, addr: int) -> None:
        """Do nothing: this engine reports only breakpoints that are in memory."""

    exit_address = EXIT  #: where guest calls return to

    # --- running

    def call(
        self,
        function: str | int,
        *args: int,
        cpu: int | None = None,
        timeout: float | None = None,
        max_insns: int | None = None,
    ) -> int:
        """Call a guest function and return its integer result.

        Registers are put back afterwards. Where `cpu` ran the outermost call, it is the CPU that
        ran last (regs). If an outermost call fails, the registers stay as they are where it has
        failed, until the next call.

        Args:
            function: symbol or address.
            args: integers; negative ones become their two's complement.
            cpu: number of the CPU that runs it; None: the one that ran last.
            timeout: seconds; None: no bound.
            max_insns: the most steps; None: 100,000.

        Raises:
            UnknownSymbol: there is no such symbol.
            BadArgument: an argument is no integer that a register holds, or a bound is none.
            GuestFault: the guest has failed, and no handler has handled that.
            GuestTimeout: a bound was reached.
            ReentryError: 16 runs are nested.
            BaseException: a handler has raised it.
        """
        check_bounds(timeout, max_insns)
        words = [self._word(place, value) for place, value in enumerate(args, 1)]
        target = self.symbols[function].address if isinstance(function, str) else function
        cpu = self._cpu if cpu is None else cpu
        regs, values = self._regs[cpu], self._values[cpu]
        if self._depth == 0:
            values.update(self._abandoned.pop(cpu, {}))
        saved, outer = dict(values), (regs.reported, regs.target)
        regs.at(None)
        failed = True
        try:
            assert self.arch.abi is not None
            for n, value in enumerate(words):
                self.arch.abi.set_argument(regs, n, value)
            self._return_to_exit(regs)
            limit = STEPS if max_insns is None else max_insns
            self.run(target, EXIT, cpu=cpu, limit=limit, timeout=timeout)
            failed = False
            return values[self.arch.abi.returns[0]]
        finally:
            if failed and self._depth == 0:
                self._abandoned[cpu] = saved
            else:
                values.update(saved)
            regs.reported, regs.target = outer

    def _word(self, place: int, value: int) -> int:
        """Return an argument as a register holds it.

        Args:
            place: the argument's number, from 1 on, for the error.
            value: the argument.

        Raises:
            BadArgument: it is no integer, or does not fit.
        """
        word = register_value(self.arch, place, value)
        if isinstance(word, int):
            return word
        raise BadArgument(
            f"argument {place} is {kind_of(value)}",
            hint="pass an integer: this engine finds no memory for buffers; write() one",
        )

    def _return_to_exit(self, regs: Regs) -> None:
        """Set the return address at a function's entry so that the function returns to EXIT; sp
        moves down where the return address is pushed.
        """
        assert self.arch.linkage is not None
        regs.sp -= self.arch.linkage.pushed
        self.arch.linkage.set(regs, EXIT)

    def invoke(self, target: int) -> None:
        """Run a guest function with the registers as they are, then put all registers back.

        Args:
            target: its address.

        Raises:
            GuestFault: the guest has failed, and no handler has handled that.
            GuestTimeout: 100,000 steps are made.
            ReentryError: 16 runs are nested.
            BaseException: a handler has raised it. Registers are put back in all these cases.
        """
        regs, values = self._regs[self._cpu], self._values[self._cpu]
        saved, outer = dict(values), (regs.reported, regs.target)
        regs.at(None)
        self._return_to_exit(regs)
        try:
            self.run(target, EXIT, cpu=self._cpu)
        finally:
            values.update(saved)
            regs.reported, regs.target = outer

    def run(
        self,
        start: int | None = None,
        until: int = EXIT,
        *,
        cpu: int = 0,
        limit: int = STEPS,
        timeout: float | None = None,
    ) -> None:
        """Run the guest on one CPU until it comes to an address.

        The core is told before it begins and, where the run is in no other, when it has ended;
        without a core, `before_run` is called before an outermost run. An outermost run makes `cpu`
        the CPU that ran last (regs); after a run in another one that is the former CPU again.

        Args:
            start: address where it starts; None: where the CPU stands.
            until: address where the run ends, before the instruction there.
            cpu: number of the CPU.
            limit: the most steps; an instruction or a report is one.
            timeout: seconds; None: no bound.

        Raises:
            GuestFault: the guest has failed, and no handler has handled that.
            GuestTimeout: `limit` steps are made, or the time is over.
            ReentryError: 16 runs are nested.
            BaseException: a handler has raised it.
        """
        if self._depth >= 16:
            raise ReentryError(
                "16 guest runs are nested", hint="a handler's guest call leads back to that handler"
            )
        before, self._cpu = self._cpu, cpu
        values = self._values[cpu]
        self._moved(cpu)
        if start is not None:
            values[self._pc] = start
        if self.sink is not None:
            (self.sink.guest_sent if self._depth else self.sink.run_begins)(values[self._pc])
        elif self._depth == 0 and self.before_run is not None:
            self.before_run()
        self._depth += 1
        try:
            with ending_at(self.sink, self.arch, until):
                deadline = None if timeout is None else monotonic() + timeout
                for _ in range(limit):
                    if values[self._pc] == until:
                        return
                    if deadline is not None and monotonic() >= deadline:
                        raise GuestTimeout(f"{timeout} s are over", pc=values[self._pc])
                    self.step(cpu)
                if values[self._pc] == until:
                    return
            raise GuestTimeout(f"{limit} steps are made", pc=values[self._pc])
        finally:
            self._depth -= 1
            self._cpu = before if self._depth else cpu
            if self._depth == 0 and self.sink is not None:
                self.sink.run_ended()

    def step(self, cpu: int = 0) -> None:
        """Execute one instruction of a CPU, or deliver one report; set the CPU's pc.

        `before` is called first. At a call site the service is called, and the instruction there
        executed where that has not sent the guest elsewhere; at a site where executions are only
        counted, and in no nested run, it is counted instead. What `before`, services and handlers
        raise is raised.

        Args:
            cpu: number of the CPU.

        Raises:
            GuestFault: the guest has failed, and no handler has handled that.
        """
        values = self._values[cpu]
        if self.before is not None:
            self.before(self, cpu)
            self._moved(cpu)
        pc = values[self._pc]
        if self._depth <= 1 and self._calls.counts_at(pc):
            pass  # the service is not called
        elif pc & -PAGE in self._calls.areas and self.sink is not None and self._serve(cpu, pc):
            return
        self.steps += 1
        try:
            op = self._fetch(pc)
            if not self._stops(cpu, pc, op):
                values[self._pc] = (
                    self._perform(cpu, pc, op)
                    if self.arch is not PAPER
                    else execute(self._regs[cpu], values, self._fetch, pc, op)
                )
                return
        except GuestFault as error:
            self._faulted(cpu, error)
            return
        if not self._report(cpu, pc):  # what handlers raise is no fault of the guest's
            self._faulted(
                cpu,
                GuestFault(
                    "breakpoint instruction of the guest's own", address=pc, pc=pc, access="trap"
                ),
            )

    def _moved(self, cpu: int) -> None:
        """Set a CPU's pc to where its registers were sent outside of any report (Regs.target).

        Args:
            cpu: number of the CPU.
        """
        if (target := self._regs[cpu].target) is not None:
            self._values[cpu][self._pc] = target
            self._regs[cpu].at(None)

    def _fetch(self, pc: int) -> bytes:
        """Return the bytes of the instruction at `pc`; of another set than PAPER, bytes that begin
        with it.

        Args:
            pc: address.

        Raises:
            GuestFault: the page is not executable, or the bytes are no instruction of PAPER.
        """
        if pc & -PAGE not in self._code:
            raise GuestFault("not executable", address=pc, pc=pc, access="fetch")
        if self.arch is not PAPER:
            start = self.arch.text_of(pc)
            return self.read(start, min(2 * self.arch.max_insn, PAGE - start % PAGE))
        length = LENGTHS.get(self.read(pc, 1)[0])
        if length is None:
            raise GuestFault("undefined instruction", address=pc, pc=pc, access="undefined")
        return self.read(pc, length)

    def _stops(self, cpu: int, pc: int, code: bytes) -> bool:
        """Return True where a breakpoint is about to be executed, as the function `breaks` of the
        constructor says; without one, where the code begins with the architecture's breakpoint.

        Args:
            cpu: number of the CPU.
            pc: address of the instruction.
            code: bytes that begin with it.
        """
        if self._breaks is not None:
            return self._breaks(self._regs[cpu], self.arch.decode(code, pc))
        return any(code.startswith(trap) for trap in self._traps)

    def _perform(self, cpu: int, pc: int, code: bytes) -> int:
        """Execute an instruction of another instruction set than PAPER, with the one in its delay
        slot if it has one, and return the next pc.

        Args:
            cpu: number of the CPU.
            pc: address of the instruction.
            code: bytes that begin with it.

        Raises:
            GuestFault: it faults, or nothing says what it does.
        """
        regs, insn = self._regs[cpu], self.arch.decode(code, pc)
        if insn.decoded is not Decoded.WHOLE:
            raise GuestFault(insn.reject, address=pc, pc=pc, access="undefined")
        target = insn.next if insn.simulate is None else insn.simulate(regs)
        body = b"" if isinstance(target, Annul) else insn.body
        if body and self._effect is not None:
            self._effect(regs, self.arch.decode(body, pc + insn.size if insn.delay_slot else pc))
        elif insn.reject and self._effect is not None:
            self._effect(regs, insn)
        elif body:
            raise GuestFault(
                f"the paper machine does not know what {insn.name} does",
                address=pc,
                pc=pc,
                access="undefined",
            )
        return int(target)

    @contextmanager
    def _reporting(self, cpu: int, pc: int) -> Iterator[Regs]:
        """Let a report at `pc` see a CPU's registers, inside a with block; then send the CPU on.

        It goes where the report has sent it; it stays at its pc otherwise.

        Args:
            cpu: number of the CPU.
            pc: address that the registers show.
        """
        regs = self._regs[cpu]
        outer = regs.reported, regs.target
        regs.at(pc)
        try:
            yield regs
        finally:
            if regs.target is not None:
                self._values[cpu][self._pc] = regs.target
            regs.reported, regs.target = outer

    def _serve(self, cpu: int, pc: int) -> bool:
        """Call the service of a call site. What it raises is raised.

        Args:
            cpu: number of the CPU.
            pc: address of the call site.

        Returns:
            True where the service has sent the guest elsewhere; False: the instruction at `pc` is
            to be executed. It is False, too, for an instruction of a bundle that has no service.

        Raises:
            KeyError: there is no service, and the architecture has no bundles.
        """
        assert self.sink is not None
        service = self.sink.services.get(pc)
        if service is None and self.arch.bundles is not None:
            return False  # the rest of a bundle
        with self._reporting(cpu, pc) as regs:
            self.sink.services[pc](regs)
            return regs.target is not None

    def _report(self, cpu: int, pc: int) -> bool:
        """Report a breakpoint to the core.

        Args:
            cpu: number of the CPU.
            pc: address of the breakpoint.

        Returns:
            False where it is none of the core's.
        """
        with self._reporting(cpu, pc) as regs:
            return self.sink is not None and self.sink.trap(regs)

    def _faulted(self, cpu: int, error: GuestFault) -> None:
        """Report a guest's fault to the core, and raise it if the core has not handled it.

        The error that is raised names the original address of the instruction, also where the
        instruction was executed in a slot.

        Args:
            cpu: number of the CPU.
            error: the fault, as the engine has found it.

        Raises:
            GuestFault: no handler has handled the fault.
        """
        values = self._values[cpu]
        number = {"arithmetic": 8, "undefined": 4, "trap": 5, "interrupt": 5}.get(error.access, 11)
        fault = Fault(access=error.access, address=error.address, trapnr=number, text=error.reason)
        with self._reporting(cpu, values[self._pc]) as regs:
            handled = self.sink is not None and self.sink.fault(regs, fault)
        if not handled:
            raise GuestFault(
                error.reason,
                address=error.address,
                pc=values[self._pc],
                access=error.access,
                symbol=self.symbols.describe(values[self._pc]),
            ) from None
