"""Call sites that run programs in the guest: what stands there leads to code that saves registers, runs the programs,
and jumps on to the displaced instructions. Nothing of it stops.

A page of call sites, and pages for that code, are beside each other. Code is never taken back while there is a guest: a
thread may stand in it.
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
from .asking import Asking
from .files import AT_RANDOM, Loads
from .target import Target

STACK = 4 << 20  #: bytes below a process's first stack frame that are its stack in any case


@frozen
class Detours:
    """What a run is told of them.

    inside: whether an address lies in code of ours that they lead through. going: called before the guest runs.
    ending: before the program ends, where the stub tells of that. asks, answer: see Asking.
    """

    inside: Callable[[int], bool] = lambda pc: False
    going: Callable[[], None] = lambda: None
    ending: Callable[[], None] = lambda: None
    asks: Callable[[int], bool] = lambda pc: False
    answer: Callable[[Regs], int] = lambda regs: regs.pc


class Copies(Protocol):
    """What the guest has copies of."""

    def push(self) -> None:
        """Before the guest runs."""

    def pull(self) -> None:
        """After it has."""


class View:
    """The guest, for who compiles GuestPrograms.

    Attributes:
        arch, saving: how a detour saves registers. copies: told when the guest runs and has run; None: nobody. code:
        (start, end) of programs. spans: (start, end) of what the system has mapped for certain. reads: whether programs
        may read memory. asking: the same as of Detours.
    """

    def __init__(self, machine: Any, saving: Saving, there: Callable[[], bool], fresh: Callable[[int], int],
                 spans: Callable[[], list[tuple[int, int]]], kernel: bool, several: Callable[[], bool],
                 asking: Asking) -> None:
        self.arch, self.saving, self.reads = machine.arch, saving, not kernel
        self.copies: Copies | None = None
        self._there, self._fresh, self._spans, self._several = there, fresh, spans, several
        self._asking, self.asking = asking, (asking.stands, asking.answer)
        self.read, self.write, self.alloc = machine.read, machine.write, machine.alloc
        self.code: list[tuple[int, int]] = []
        self._locks, self._lock = kernel and machine.cpus > 1, 0

    def take_turns(self, lock: int) -> None:
        """Programs hold this one from now on."""
        self._lock = lock

    def detour(self, calls: list[Call], also: Iterable[str] = (), draft: bool = False) -> bytes:
        """What runs programs, on one of a kernel's processors at a time. draft: it is not going to run."""
        if self._locks and not self._lock and not draft:
            self._lock = self.fresh(16)
        calls = bodies(self.arch, self.saving.returns, calls)
        return self.saving.code(calls, also, self._lock or self._locks)

    def fresh(self, size: int) -> int:
        """Memory of zeros, pages of its own, that is never taken back. NoMemory."""
        at = self._fresh(size)
        if not self.reads:  # a kernel gives what others have used
            self.write(at, bytes(size))
        return at

    def asked(self, function: bytes) -> int:
        """Address of a function by which programs have the host read; see Asking."""
        start, end = self._asking.place(function, self.fresh)
        self.code.append((start, end))
        return start

    @property
    def several(self) -> bool:
        """True while there are several threads, or CPUs: nothing in the guest says to a program which it is."""
        return self._several()

    @property
    def there(self) -> bool:
        """True while there is a guest."""
        return self._there()

    def readable(self) -> list[tuple[int, int]]:
        """(start, bytes) of memory that is there."""
        return [(start, end - start) for start, end in self._spans() if start < end and self._has(start)
                and self._has(end - 1)]

    def _has(self, addr: int) -> bool:
        try:
            return bool(self.read(addr, 1))
        except GuestFault:
            return False

    def push(self) -> None:
        """The guest is about to run."""
        if self.copies is not None:
            self.copies.push()

    def pull(self) -> None:
        """The guest has run, or is about to end."""
        if self.copies is not None and self.there:
            self.copies.pull()


def view_of(machine: Any, target: Target, there: Callable[[], bool], fresh: Callable[[int], int], loads: Loads,
            kernel: bool) -> View | None:
    """The view of a process, or of a kernel: who knows what is mapped there? None where nobody has said how its
    registers are saved."""
    known = row(machine.arch, DetourCode) or DetourCode()
    saving = known.kernel if kernel else known.process
    if saving is None or machine.arch.jump is None:
        return None

    def spans() -> list[tuple[int, int]]:
        top = loads.vector.get(AT_RANDOM, 0) & -machine.page_size
        return [*loads.spans, *([(top - STACK, top + machine.page_size)] if top > STACK else [])]

    return View(machine, saving, there, fresh, spans, kernel, lambda: len(target.threads()) > 1,
                Asking(machine, target))


class CallSites:
    """The call sites of one machine: the power of machine._base.CallsInPlace.

    Attributes:
        call_area: bytes of an area.
        delays_in_calls: True: in an area an instruction may have a delay slot.
        can_run: True: the machine has these only where programs run in the guest.
        unmap_calls: takes an area away.
    """

    delays_in_calls = can_run = True

    def __init__(self, view: View | None, map_page: Callable[[int], int], patch: Callable[[int, bytes], None],
                 page: int, unmap_page: Callable[[int], None]) -> None:
        self.unmap_calls = unmap_page
        self._given, self._map_page, self._patch, self.call_area = view, map_page, patch, page if view else 0
        self._plain: dict[int, bytes] = {}  # call site -> what stood there
        self._counted: dict[int, int] = {}  # executions before the program that runs there now
        self._running: dict[int, tuple[Sequence[GuestProgram], int]] = {}  # and how often it had run elsewhere
        self._room: list[tuple[int, int]] = []  # (start, end) of what is left in pages
        self._code: list[tuple[int, int]] = []
        self._lead: Callable[[int, int], bytes] | None = None  # the jump to where threads stop, that take turns
        self._onward: dict[int, int] = {}  # call site of theirs -> where it leads

    @property
    def _view(self) -> View:
        if self._given is None:
            raise Unsupported("this remote machine runs no programs in the guest", hint="probes work by breakpoints")
        return self._given

    @contextmanager
    def running(self, depth: int) -> Iterator[None]:
        """The guest runs: after an outermost run what it has copies of comes back."""
        try:
            yield
        finally:
            if self._given is not None and not depth:
                self._given.pull()

    def jumps(self, programs: Sequence[GuestProgram] | None, mode: int) -> bool:
        """True for programs that run in the guest: a stub tells of an instruction by stopping."""
        if self._given is None or mode or not programs:
            return programs is None and not mode and self._lead is not None
        return len(self._given.detour([(0, 0, b"")] * len(programs), draft=True)) + 32 < self.call_area // 2

    def map_calls(self, near: int) -> int:
        """Map a page for call sites near an address.

        Raises:
            NoMemory: there is no room.
            Unsupported: no programs run in this guest.
        """
        return self._map_page(near) if self._view else 0

    def ran(self, addr: int) -> bool:
        """Return False: a call site that runs programs calls nobody."""
        return False

    def serve_here(self, addr: int, programs: Sequence[object]) -> None:
        """Return None: a call site is where a jump leads to."""

    def program_at(self, addr: int, programs: Sequence[GuestProgram], last: BuiltIn | None = None) -> None:
        """Run these there from now on. NoMemory."""
        if not programs:
            return  # who only counts is called
        self.call_at(addr)
        view, arch = self._view, self._view.arch
        jump = arch.jump
        assert jump is not None
        plain = self._plain.get(addr) or view.read(addr, jump.size)
        onward = arch.decode(plain, addr).target
        assert onward is not None
        reads = frozenset[str]().union(*(program.reads for program in programs))
        code = view.detour([(program.environment, program.entry, program.text) for program in programs], reads)
        place = self.take(addr, len(code) + jump.size)
        try:
            self._patch(place, code + jump.encode(place + len(code), onward))
            leading = jump.encode(addr, place)
        except OutOfReach as error:
            raise NoMemory("no room within reach for the code of a detour", address=addr,
                           hint="unmap something, or give the probe optimize=False") from error
        self._running[addr], self._plain[addr] = (programs, programs[0].runs), plain
        self._patch(addr, leading)

    def call_at(self, addr: int) -> None:
        """Run none there any more."""
        if addr in self._running:
            self._counted[addr] = self.count(addr)
            del self._running[addr]
            self._patch(addr, self._plain.pop(addr) if self._lead is None else self._lead(addr, 0))
        if self._lead is not None and addr not in self._onward:
            target, mode = self._leads_to(addr)
            self._onward[addr] = target | mode
            self._patch(addr, self._lead(addr, mode))

    def take_turns(self, lock: int, lead: Callable[[int, int], bytes]) -> None:
        """There is going to be a second thread. lead: (call site, its mode) -> the jump to where threads stop, that
        have this lock."""
        self._view.take_turns(lock)
        self._lead = lead
        for addr, (programs, _) in list(self._running.items()):
            self.program_at(addr, programs)

    @property
    def runs_programs(self) -> bool:
        """True while programs run at some call site."""
        return bool(self._running)

    @property
    def calls(self) -> bool:
        """True where threads may stop at one."""
        return any(addr not in self._running for addr in self._onward)

    def onward(self, addr: int) -> int:
        """Where a call site leads."""
        return self._onward[addr]

    def _leads_to(self, addr: int) -> tuple[int, int]:
        """The same, and its mode, before anything of ours stands there: where its jump leads; a copy of what returns.
        """
        arch, jump, linkage = self._view.arch, self._view.arch.jump, self._view.arch.linkage
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
        """How often programs have run there."""
        before = self._counted.get(addr, 0)
        if addr not in self._running:
            return before
        programs, elsewhere = self._running[addr]
        return before + programs[0].runs - elsewhere

    def inside(self, addr: int) -> bool:
        """True in code of ours that a detour leads through."""
        return any(start <= addr < end for start, end in (*self._code, *(self._given.code if self._given else ())))

    def take(self, near: int, size: int) -> int:
        """Memory for code, near a call site."""
        size = -(-size // 16) * 16
        found = next((n for n, (start, end) in enumerate(self._room) if end - start >= size
                      and abs(start - near) < 1 << 19), None)
        if found is None:
            page = self._map_page(near)
            self._room.append((page, page + self.call_area))
            self._code.append((page, page + self.call_area))
            found = len(self._room) - 1
        start, end = self._room[found]
        self._room[found] = start + size, end
        return start
