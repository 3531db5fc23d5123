"""Call sites that run programs in the guest, without a stop.

A jump at the call site leads to a detour, which saves registers, runs the programs, and jumps on to
the displaced instructions. Detours are never freed while there is a guest: a thread may be in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol

from attrs import frozen

from ...arch._detours import Call, DetourCode, Saving
from ...arch._rows import row
from ...errors import GuestFault, NoMemory, OutOfReach, Unsupported
from ...regs import Regs
from .._base import BuiltIn
from .._jumps import GuestProgram
from ..detours.inlined import bodies
from .files import AT_RANDOM, Loads
from .hostreads import HostReads
from .target import RemoteTarget

STACK = 4 << 20  #: bytes below a process's first stack frame that certainly belong to its stack


@frozen
class DetourHooks:
    """Calls by which a run learns of detours, the code that leads to programs in the guest.

    Attributes:
        inside: (address) -> True in code of the library's that detours lead through.
        going: () is called before the guest runs.
        ending: () is called before the program ends, where the stub reports that.
        asks: (pc) -> True where a program asks the host for something.
        answer: (registers) makes the read that was asked for; returns the address where the guest
            goes on.
        answered: () is called when the guest has been sent there: calls Python where a program has
            asked for that.
    """

    inside: Callable[[int], bool] = lambda pc: False
    going: Callable[[], None] = lambda: None
    ending: Callable[[], None] = lambda: None
    asks: Callable[[int], bool] = lambda pc: False
    answer: Callable[[Regs], int] = lambda regs: regs.pc
    answered: Callable[[], None] = lambda: None


class MapCopies(Protocol):
    """The guest's copies of programs' maps."""

    def push(self) -> None:
        """Write the maps to the guest's copies: the guest is about to run."""

    def stopped(self) -> None:
        """Read the maps from the guest's copies: the guest has run. Large ones are read later."""

    def pull(self) -> None:
        """Read all maps from the guest's copies, before the guest's memory goes."""

    def threads_begin(self) -> None:
        """Tell programs that they may run in several threads from now on."""


class RemoteView:
    """The guest, as the compiler of GuestPrograms needs it.

    Attributes:
        arch: its architecture.
        saving: the code by which a detour saves and restores registers.
        reads: whether programs may read memory.
        copies: the maps that the guest has copies of, set by the compiler; None: it has none.
        code: (start, end) of functions that asked() has put into the guest.
        asking: (asks, answer, answered) as of DetourHooks.
        read: (address, size) -> guest memory, the machine's method.
        write: (address, bytes) writes it, the machine's method.
        alloc: (size) -> address of new memory, the machine's method.
    """

    def __init__(
        self,
        machine: Any,
        saving: Saving,
        *,
        there: Callable[[], bool],
        fresh: Callable[[int], int],
        spans: Callable[[], list[tuple[int, int]]],
        kernel: bool,
        several: Callable[[], bool],
        asking: HostReads,
        clock: Callable[[], tuple[int, int] | None],
        watched: Callable[[], bool],
    ) -> None:
        """Prepare.

        Args:
            machine: the guest's.
            saving: how a detour saves registers.
            there: () -> True while there is a guest.
            fresh: (size) -> address of new pages, which are never taken back.
            spans: () -> (start, end) of all that is certainly mapped.
            kernel: the guest is a whole machine.
            several: () -> True while there are several threads, or CPUs.
            asking: serves requests of programs.
            clock: () -> (address, end) of the guest's clock_gettime(), which tells this computer's
                time; None: there is none.
            watched: () -> True while there is one thread, and the making of a second one is
                noticed.
        """
        self.arch = machine.arch
        self.saving = saving
        self.reads = not kernel
        self.copies: MapCopies | None = None
        self._there = there
        self._fresh = fresh
        self._spans = spans
        self._several = several
        self._asking = asking
        self._clock = clock
        self._watched = watched
        self.asking = asking.stands, asking.answer, self._answered
        self.read = machine.read
        self.write = machine.write
        self.alloc = machine.alloc
        self.code: list[tuple[int, int]] = []
        self._locks = kernel and machine.cpus > 1
        self._lock = 0  # address of the lock that programs hold; 0: there is none yet

    def take_turns(self, lock: int) -> None:
        """Have detours made from now on take the threads' lock while programs run, and tell
        programs that they may run in several threads.

        Args:
            lock: address of the lock.
        """
        self._lock = lock
        if self.copies is not None:
            self.copies.threads_begin()

    def detour(self, calls: list[Call], also: Iterable[str] = (), draft: bool = False) -> bytes:
        """Return the machine code of a detour, which saves registers, runs programs, and restores
        registers.

        In a kernel of several processors it takes a lock, for which guest memory may be mapped
        here. Nothing else is written to the guest.

        Args:
            calls: (address of the environment, address of the code, code that may be copied into
                the detour or b"") of each program.
            also: names of registers that are saved as well.
            draft: True: only the code's size is wanted; no lock is made.
        """
        if self._locks and not self._lock and not draft:
            self._lock = self.fresh(16)
        calls = bodies(self.arch, self.saving.returns, calls)
        return self.saving.code(calls, also, self._lock or self._locks)

    def fresh(self, size: int) -> int:
        """Map pages of zeros for `size` bytes, which are never unmapped, and return their address.
        NoMemory: there is none.
        """
        at = self._fresh(size)
        if not self.reads:  # a kernel gives what others have used
            self.write(at, bytes(size))
        return at

    def asked(self, function: bytes) -> int:
        """Put a function into the guest by which programs ask the host (hostreads.py).

        Args:
            function: machine code of a function that does nothing; the stub stops at it.

        Returns:
            Address of the function, which programs call.
        """
        start, end = self._asking.place(function, self.fresh)
        self.code.append((start, end))
        return start

    def waker(self, call: Callable[[], None]) -> int:
        """Register a function of Python's that programs can have called, and return its number,
        which they pass.

        Args:
            call: the function; what it returns is not used.
        """
        return self._asking.waker(call)

    def teller(self, tell: Callable[[Regs], int]) -> int:
        """Return the number by which programs have the host tell them a number.

        Args:
            tell: (registers of the thread that asks) -> the number, 64 bits.
        """
        return self._asking.teller(tell)

    @cached_property
    def gettime(self) -> int:
        """Address of the guest's clock_gettime(), which tells this computer's time; 0: there is
        none.

        HAZARD: a thread that is stopped there may be in a program's run, so it counts as code of
        programs: the first use adds it to `code`.
        """
        found = self._clock()
        if found is None:
            return 0
        self.code.append(found)
        return found[0]

    @property
    def watched(self) -> bool:
        """Whether there is one thread, and programs are told before there is a second one."""
        return self._watched()

    def _answered(self) -> None:
        """Call Python where a program has asked for that, and write the maps to the guest's copies,
        in any case. What Python raises goes to the caller.

        HAZARD: Python reads the maps' copies, and the program goes on: it needs what Python has
        written, also where it makes single steps.
        """
        try:
            self._asking.call_python()
        finally:
            self.push()

    @property
    def several(self) -> bool:
        """Whether the guest has several threads, or CPUs, now: a program is not told which one it
        runs on.
        """
        return self._several()

    @property
    def there(self) -> bool:
        """Whether the guest still exists."""
        return self._there()

    def readable(self) -> list[tuple[int, int]]:
        """Return (start, bytes) of guest memory that programs may read without a fault: loaded
        segments, and a process's stack, each only where its first and its last byte can be read
        now.
        """
        return [
            (start, end - start)
            for start, end in self._spans()
            if start < end and self._has(start) and self._has(end - 1)
        ]

    def _has(self, addr: int) -> bool:
        """Return True where guest memory can be read at `addr`."""
        try:
            return bool(self.read(addr, 1))
        except GuestFault:
            return False

    def push(self) -> None:
        """Write the maps of programs to the guest's copies: the guest is about to run."""
        if self.copies is not None:
            self.copies.push()

    def stopped(self) -> None:
        """Read the maps of programs that are not large from the guest's copies, if the guest still
        exists; the large ones are read when Python looks at them.
        """
        if self.copies is not None and self.there:
            self.copies.stopped()

    def pull(self) -> None:
        """Read all maps of programs from the guest's copies, if the guest still exists."""
        if self.copies is not None and self.there:
            self.copies.pull()


def view_of(
    machine: Any,
    target: RemoteTarget,
    *,
    there: Callable[[], bool],
    fresh: Callable[[int], int],
    loads: Loads,
    kernel: bool,
    clock: Callable[[], tuple[int, int] | None],
    watched: Callable[[], bool],
) -> RemoteView | None:
    """Make the view of a guest for the compiler of programs; None where no detour is known for the
    architecture, or it has no jump.

    Args:
        machine: the guest's.
        target: the stub.
        there: () -> True while the guest exists.
        fresh: (size) -> address of new pages, which are never taken back.
        loads: knows where files are loaded, and so what is mapped.
        kernel: the guest is a whole machine.
        clock: () -> (address, end) of a clock_gettime() in the guest that tells this computer's
            time; None: there is none.
        watched: () -> True while there is one thread, and the making of a second one is noticed.
    """
    known = row(machine.arch, DetourCode) or DetourCode()
    saving = known.kernel if kernel else known.process
    if saving is None or machine.arch.jump is None:
        return None

    def spans() -> list[tuple[int, int]]:
        top = loads.vector.get(AT_RANDOM, 0) & -machine.page_size
        return [*loads.spans, *([(top - STACK, top + machine.page_size)] if top > STACK else [])]

    return RemoteView(
        machine,
        saving,
        there=there,
        fresh=fresh,
        spans=spans,
        kernel=kernel,
        several=lambda: len(target.threads()) > 1,
        asking=HostReads(machine, target),
        clock=clock,
        watched=watched,
    )


class CallSites:
    """The call sites of one machine, which run programs in the guest: the power of
    machine._base.CallsInPlace.

    A call site is a jump in a page of the library's (an area); it leads to a detour, or on to the
    displaced instructions.

    Attributes:
        call_area: bytes of an area; 0: the machine has none.
        delays_in_calls: True: in an area an instruction may have a delay slot.
        can_run: True: the machine has these only where programs run in the guest.
        unmap_calls: (address) unmaps an area.
    """

    delays_in_calls = can_run = True

    def __init__(
        self,
        view: RemoteView | None,
        map_page: Callable[[int], int],
        patch: Callable[[int, bytes], None],
        page: int,
        unmap_page: Callable[[int], None],
        reaches: Callable[[int, int], bool],
    ) -> None:
        """Prepare; nothing is mapped.

        Args:
            view: the guest; None: it runs no programs.
            map_page: (address) -> address of a new page of code near it.
            patch: (address, code) writes code.
            page: bytes of a page.
            unmap_page: (address) unmaps a page of map_page().
            reaches: (address, page) -> True where jumps lead from there to all of that page, and
                back.
        """
        self.unmap_calls = unmap_page
        self._given = view
        self._map_page = map_page
        self._patch = patch
        self._reaches = reaches
        self.call_area = page if view else 0
        self._plain: dict[int, bytes] = {}  # call site -> the bytes beneath the library's jump
        # call site -> executions before the programs that run there now
        self._counted: dict[int, int] = {}
        # call site -> (its programs, how often the first had run before it came there)
        self._running: dict[int, tuple[Sequence[GuestProgram], int]] = {}
        self._room: list[tuple[int, int]] = []  # (start, end) of free memory in pages of detours
        self._code: list[tuple[int, int]] = []  # (start, end) of these pages
        # (call site, mode) -> the jump to code that takes the threads' lock; None: threads do not
        # take turns
        self._lead: Callable[[int, int], bytes] | None = None
        self._onward: dict[int, int] = {}  # call site where threads stop -> address where it leads

    @property
    def _view(self) -> RemoteView:
        """The guest's view. Unsupported: the guest runs no programs."""
        if self._given is None:
            raise Unsupported(
                "this remote machine runs no programs in the guest",
                hint="probes work by breakpoints",
            )
        return self._given

    @contextmanager
    def running(self, depth: int) -> Iterator[None]:
        """Wrap a run in a with block: when an outermost one has ended, read the maps of programs.

        Args:
            depth: number of runs that were under way before; not 0: nothing is read.
        """
        try:
            yield
        finally:
            if self._given is not None and not depth:
                self._given.stopped()

    def jumps(self, programs: Sequence[GuestProgram] | None, mode: int) -> bool:
        """Return True where a jump to a call site is better than a breakpoint.

        That is so for programs that run in the guest, if their detour is small enough for a call
        area; and for a Python handler once threads take turns, as they stop by jumps then.

        Args:
            programs: what would run there; None: a Python handler, which needs a stop. No programs
                at all: the result is False.
            mode: mode bits of the text; not 0: the result is False.
        """
        if self._given is None or mode or not programs:
            return programs is None and not mode and self._lead is not None
        return (
            len(self._given.detour([(0, 0, b"")] * len(programs), draft=True)) + 32
            < self.call_area // 2
        )

    def map_calls(self, near: int) -> int:
        """Map a page for call sites near address `near`, and return its address.

        Raises:
            NoMemory: there is none.
            Unsupported: this machine runs no programs in the guest.
        """
        return self._map_page(near) if self._view else 0

    def ran(self, addr: int) -> bool:
        """Return False: on this machine programs have never run already when a call site's service
        is called.
        """
        return False

    def serve_here(self, addr: int, programs: Sequence[object]) -> None:
        """Do nothing, and return None: on this machine no instruction of the guest's text can be a
        call site itself, so a jump has to lead to one.
        """

    def program_at(
        self, addr: int, programs: Sequence[GuestProgram], last: BuiltIn | None = None
    ) -> None:
        """Have the guest run programs at a call site from now on: write their detour, and a jump to
        it. Programs that ran there before are replaced, and their executions stay in count().

        Args:
            addr: the call site.
            programs: compiled for this guest; where there are none, nothing is done.
            last: not used: a program of the host's.

        Raises:
            NoMemory: there is no room within reach for the detour.
        """
        if not programs:
            return  # a probe that only counts is called
        self.call_at(addr)
        view, arch = self._view, self._view.arch
        jump = arch.jump
        assert jump is not None
        plain = self._plain.get(addr) or view.read(addr, jump.size)
        onward = arch.decode(plain, addr).target
        assert onward is not None
        reads = frozenset[str]().union(*(program.reads for program in programs))
        code = view.detour(
            [(program.environment, program.entry, program.text) for program in programs], reads
        )
        place = self.take_memory(addr, len(code) + jump.size)
        try:
            self._patch(place, code + jump.encode(place + len(code), onward))
            leading = jump.encode(addr, place)
        except OutOfReach as error:
            raise NoMemory(
                "no room within reach for the code of a detour",
                address=addr,
                hint="unmap something, or give the probe optimize=False",
            ) from error
        self._running[addr], self._plain[addr] = (programs, programs[0].runs), plain
        self._patch(addr, leading)

    def call_at(self, addr: int) -> None:
        """Run no program at a call site any more, and put back the code that was there before. How
        often its programs have run stays in count().

        Where threads take turns, a jump to the code that takes their lock is written there instead:
        they stop, and handlers are called.

        Args:
            addr: the call site.
        """
        if addr in self._running:
            self._counted[addr] = self.count(addr)
            del self._running[addr]
            self._patch(addr, self._plain.pop(addr) if self._lead is None else self._lead(addr, 0))
        if self._lead is not None and addr not in self._onward:
            target, mode = self._leads_to(addr)
            self._onward[addr] = target | mode
            self._patch(addr, self._lead(addr, mode))

    def take_turns(self, lock: int, lead: Callable[[int, int], bytes]) -> None:
        """Have threads take the lock at call sites from now on. Called before the second thread
        runs.

        Programs that run at call sites get a new detour, which takes the lock.

        Args:
            lock: address of the lock.
            lead: (call site, mode) -> the jump to code that takes the lock and stops.

        Raises:
            NoMemory: there is no room within reach for a new detour.
        """
        self._view.take_turns(lock)
        self._lead = lead
        for addr, (programs, _) in list(self._running.items()):
            self.program_at(addr, programs)

    @property
    def runs_programs(self) -> bool:
        """Whether programs run at some call site."""
        return bool(self._running)

    @property
    def calls(self) -> bool:
        """Whether threads may stop at some call site."""
        return any(addr not in self._running for addr in self._onward)

    def onward(self, addr: int) -> int:
        """Return the address where the guest goes on behind a call site at which it has stopped,
        mode bits included.
        """
        return self._onward[addr]

    def _leads_to(self, addr: int) -> tuple[int, int]:
        """Return (address, mode bits) of the code that is behind a call site, and note the bytes at
        the call site.

        Called before these bytes are replaced by a jump to the code that takes the threads' lock;
        from there the guest goes on at the address that is returned here. At most call sites stands
        a jump to displaced instructions: the jump's target is returned. At the trampoline, to which
        followed calls return, stand instructions that return: they are copied to memory of the
        library's, and the copy's address is returned.

        Args:
            addr: address of the call site.
        """
        arch = self._view.arch
        jump = arch.jump
        linkage = arch.linkage
        assert jump is not None
        plain = self._plain[addr] = self._plain.get(addr) or self._view.read(addr, jump.size)
        returns = self._view.read(addr, len(linkage.back)) if linkage is not None else b""
        if linkage is None or not returns or returns != linkage.back:
            target = arch.decode(plain.ljust(2 * arch.max_insn, b"\0"), addr).target
            assert target is not None
            return target, 0
        copy = self.take_memory(addr, len(returns))
        self._patch(copy, returns)
        return copy, linkage.mode

    def count(self, addr: int) -> int:
        """Return how often programs have run at a call site, those included that run there no more;
        0 where none ever has. Several that run at one hit count once.
        """
        before = self._counted.get(addr, 0)
        if addr not in self._running:
            return before
        programs, elsewhere = self._running[addr]
        return before + programs[0].runs - elsewhere

    def inside(self, addr: int) -> bool:
        """Return True for an address in a detour, or in other code of the library's that programs
        use.
        """
        return any(
            start <= addr < end
            for start, end in (*self._code, *(self._given.code if self._given else ()))
        )

    def take_memory(self, near: int, size: int) -> int:
        """Take executable memory that is never given back, and return its address. A page is mapped
        where no room is left; inside() is True for all of it from then on.

        It is within reach of jumps from a call site if there is such a page.

        Args:
            near: address of the call site.
            size: bytes.

        Raises:
            NoMemory: a page is needed, and the guest has none.
        """
        size = -(-size // 16) * 16
        found = next(
            (
                n
                for n, (start, end) in enumerate(self._room)
                if end - start >= size and self._reaches(near, start & -self.call_area)
            ),
            None,
        )
        if found is None:
            page = self._map_page(near)
            self._room.append((page, page + self.call_area))
            self._code.append((page, page + self.call_area))
            found = len(self._room) - 1
        start, end = self._room[found]
        self._room[found] = start + size, end
        return start
