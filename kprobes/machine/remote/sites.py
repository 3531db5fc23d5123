"""Call sites that run programs in the guest, without a stop.

A jump at the call site leads to a detour, which saves registers, runs the programs, and jumps on to
the displaced instructions. Detours are never freed while there is a guest: a thread may be in one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
    """Callbacks of a run about detours that lead to programs in the guest.

    Attributes:
        inside: (address) -> True in code of the library's that detours lead through.
        going: called before the guest runs.
        ending: called before the program ends, where the stub reports that.
        asks: (pc) -> True where a program asks the host to read memory.
        answer: (registers) reads for it; returns the address where the guest goes on.
    """

    inside: Callable[[int], bool] = lambda pc: False
    going: Callable[[], None] = lambda: None
    ending: Callable[[], None] = lambda: None
    asks: Callable[[int], bool] = lambda pc: False
    answer: Callable[[Regs], int] = lambda regs: regs.pc


class MapCopies(Protocol):
    """Maps of programs, of which the guest has copies."""

    def push(self) -> None:
        """Bring the guest's copies up to date: it is about to run."""

    def pull(self) -> None:
        """Read the guest's copies: it has run."""


class RemoteView:
    """The guest, as the compiler of GuestPrograms needs it.

    Attributes:
        arch: its architecture.
        saving: how a detour saves registers.
        reads: whether programs may read memory.
        copies: the maps that the guest has copies of; None: it has none.
        code: (start, end) of programs.
        asking: (asks, answer) as of DetourHooks.
        read: (address, size) -> guest memory, the machine's method.
        write: (address, bytes) writes it, the machine's method.
        alloc: (size) -> address of new memory, the machine's method.
    """

    def __init__(
        self,
        machine: Any,
        saving: Saving,
        there: Callable[[], bool],
        fresh: Callable[[int], int],
        spans: Callable[[], list[tuple[int, int]]],
        kernel: bool,
        several: Callable[[], bool],
        asking: HostReads,
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
            asking: serves reads of programs.
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
        self.asking = asking.stands, asking.answer
        self.read = machine.read
        self.write = machine.write
        self.alloc = machine.alloc
        self.code: list[tuple[int, int]] = []
        self._locks = kernel and machine.cpus > 1
        self._lock = 0  # address of the lock that programs hold; 0: there is none yet

    def take_turns(self, lock: int) -> None:
        """Have programs hold the lock at address `lock` from now on."""
        self._lock = lock

    def detour(self, calls: list[Call], also: Iterable[str] = (), draft: bool = False) -> bytes:
        """Return the code of a detour, which runs on one of a kernel's processors at a time.

        Args:
            calls: (environment, entry, text) of each program.
            also: registers that are saved besides.
            draft: the code is not going to run, only its size is wanted.
        """
        if self._locks and not self._lock and not draft:
            self._lock = self.fresh(16)
        calls = bodies(self.arch, self.saving.returns, calls)
        return self.saving.code(calls, also, self._lock or self._locks)

    def fresh(self, size: int) -> int:
        """Map pages of zeros that are never taken back, and return their address. NoMemory."""
        at = self._fresh(size)
        if not self.reads:  # a kernel gives what others have used
            self.write(at, bytes(size))
        return at

    def asked(self, function: bytes) -> int:
        """Put a function into the guest by which programs have the host read memory for them
        (hostreads.py), and return its address.

        Args:
            function: machine code of a function that does nothing; the stub stops at it.
        """
        start, end = self._asking.place(function, self.fresh)
        self.code.append((start, end))
        return start

    @property
    def several(self) -> bool:
        """Return True while there are several threads, or CPUs: a program is not told which one it
        runs on.
        """
        return self._several()

    @property
    def there(self) -> bool:
        """True while there is a guest."""
        return self._there()

    def readable(self) -> list[tuple[int, int]]:
        """Return (start, bytes) of memory that is mapped."""
        return [
            (start, end - start)
            for start, end in self._spans()
            if start < end and self._has(start) and self._has(end - 1)
        ]

    def _has(self, addr: int) -> bool:
        """Return True where guest memory can be read at an address."""
        try:
            return bool(self.read(addr, 1))
        except GuestFault:
            return False

    def push(self) -> None:
        """Bring maps up to date: the guest is about to run."""
        if self.copies is not None:
            self.copies.push()

    def pull(self) -> None:
        """Read maps: the guest has run, or is about to end."""
        if self.copies is not None and self.there:
            self.copies.pull()


def view_of(
    machine: Any,
    target: RemoteTarget,
    there: Callable[[], bool],
    fresh: Callable[[int], int],
    loads: Loads,
    kernel: bool,
) -> RemoteView | None:
    """Return the view of a process, or of a kernel; None where no detour is written for the
    architecture.

    Args:
        machine: the guest's.
        target: the stub.
        there: () -> True while there is a guest.
        fresh: (size) -> address of new pages, which are never taken back.
        loads: knows where files are loaded, and so what is mapped.
        kernel: the guest is a whole machine.
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
        there,
        fresh,
        spans,
        kernel,
        lambda: len(target.threads()) > 1,
        HostReads(machine, target),
    )


class CallSites:
    """The call sites of one machine: the power of machine._base.CallsInPlace.

    Attributes:
        call_area: bytes of an area; 0: the machine has none.
        delays_in_calls: True: in an area an instruction may have a delay slot.
        can_run: True: the machine has these only where programs run in the guest.
        unmap_calls: takes an area away.
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
            map_page: address -> a new page near it.
            patch: (address, code) writes there.
            page: bytes.
            unmap_page: takes a page of map_page() away.
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
        """The guest. Unsupported where it runs no programs."""
        if self._given is None:
            raise Unsupported(
                "this remote machine runs no programs in the guest",
                hint="probes work by breakpoints",
            )
        return self._given

    @contextmanager
    def running(self, depth: int) -> Iterator[None]:
        """Read the maps of programs when an outermost run has ended, which is the with block.

        Args:
            depth: number of runs that were under way before; not 0: nothing is read.
        """
        try:
            yield
        finally:
            if self._given is not None and not depth:
                self._given.pull()

    def jumps(self, programs: Sequence[GuestProgram] | None, mode: int) -> bool:
        """Return True where a jump would be better than a breakpoint.

        It is for programs that run in the guest, if their detour is small enough for a call area;
        and for a handler of Python's once threads take turns, as they stop by jumps then.

        Args:
            programs: what would run there; None: a handler of Python's, which needs a stop.
            mode: mode bits of the text; not 0: no detour leads there.
        """
        if self._given is None or mode or not programs:
            return programs is None and not mode and self._lead is not None
        return (
            len(self._given.detour([(0, 0, b"")] * len(programs), draft=True)) + 32
            < self.call_area // 2
        )

    def map_calls(self, near: int) -> int:
        """Map a page for call sites near an address.

        Raises:
            NoMemory: there is none.
            Unsupported: this machine runs no programs in the guest.
        """
        return self._map_page(near) if self._view else 0

    def ran(self, addr: int) -> bool:
        """Return False: a call site that runs programs calls nobody."""
        return False

    def serve_here(self, addr: int, programs: Sequence[object]) -> None:
        """Return None: no instruction of the text can be a call site itself."""

    def program_at(
        self, addr: int, programs: Sequence[GuestProgram], last: BuiltIn | None = None
    ) -> None:
        """Run programs at a call site from now on.

        Args:
            addr: the call site.
            programs: compiled for this guest.
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
        place = self.take(addr, len(code) + jump.size)
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
        """Run no program at a call site any more, and put back the code that was there before.

        Where threads take turns, a jump to the code that takes their lock is written there instead:
        they stop, and handlers are called.
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
        """Have threads take turns at call sites from now on. Called before the second thread runs.

        Programs that run at call sites get a new detour, which takes the lock.

        Args:
            lock: address of the lock that programs hold, too.
            lead: (call site, its mode) -> the jump into the lock.
        """
        self._view.take_turns(lock)
        self._lead = lead
        for addr, (programs, _) in list(self._running.items()):
            self.program_at(addr, programs)

    @property
    def runs_programs(self) -> bool:
        """Return True while programs run at some call site."""
        return bool(self._running)

    @property
    def calls(self) -> bool:
        """Return True where threads may stop at some call site."""
        return any(addr not in self._running for addr in self._onward)

    def onward(self, addr: int) -> int:
        """Return where a call site leads, mode bits included."""
        return self._onward[addr]

    def _leads_to(self, addr: int) -> tuple[int, int]:
        """Return (address, mode bits) of the code that a call site leads to.

        Called before a jump to the lock is written there. A call site has a jump to displaced
        instructions; the trampoline's has instructions that return, which are copied elsewhere.
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
        copy = self.take(addr, len(returns))
        self._patch(copy, returns)
        return copy, linkage.mode

    def count(self, addr: int) -> int:
        """Return how often programs have run at a call site."""
        before = self._counted.get(addr, 0)
        if addr not in self._running:
            return before
        programs, elsewhere = self._running[addr]
        return before + programs[0].runs - elsewhere

    def inside(self, addr: int) -> bool:
        """Return True for an address in code of the library's that a detour leads through."""
        return any(
            start <= addr < end
            for start, end in (*self._code, *(self._given.code if self._given else ()))
        )

    def take(self, near: int, size: int) -> int:
        """Take executable memory, within jumps' reach of a call site if there is such a page, and
        return its address. It is never given back.

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
