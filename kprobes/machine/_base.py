"""The contract between the core and an execution engine.

The core never runs the guest. Whoever runs it delivers reports to the Sink; at a report regs.pc is the address of the
site, whatever the engine's own idea of pc was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from ..arch._base import Arch
from ..errors import Unsupported
from ..regs import Regs
from ..symbols import Symbols
from ._blocks import BlockCounts


@frozen(kw_only=True)
class Fault:
    """A guest fault, as the engine saw it.

    Attributes:
        access: "read", "write", "fetch", "undefined", "trap", "interrupt", "arithmetic" or "engine".
        address: address accessed, or None where the engine does not say.
        trapnr: POSIX signal number that an operating system would send (4 SIGILL, 5 SIGTRAP, 8 SIGFPE, 11 SIGSEGV).
        number: the engine's interrupt number, where there is one.
        text: what the engine calls it.
    """

    access: str
    address: int | None = None
    trapnr: int = 11
    number: int | None = None
    text: str = ""


class Patched(Protocol):
    """Bytes of the core's in guest text, and what they cover."""

    @property
    def new(self) -> bytes: ...
    @property
    def old(self) -> bytes: ...


class Sink(Protocol):
    """Who receives reports: the core.

    Attributes:
        services: address in a call area -> what to call, in place, before the instruction there. Afterwards the guest
            goes to regs.target, if that is set.
    """

    services: dict[int, Callable[[Regs], None]]

    def close(self) -> None:
        """The machine is about to be closed."""

    def trap(self, regs: Regs) -> bool:
        """The guest is about to execute a site at regs.pc. False: not ours, deliver it to the guest."""

    def exact(self, on: bool) -> None:
        """A run that counts instructions begins, or has ended: each is executed at its own address or in a slot."""

    def starting(self, target: int) -> None:
        """Nothing runs, and the guest is about to, at `target`: a safe point."""

    def sent(self, target: int) -> None:
        """In the middle of a run the guest is sent to `target`, by others than handlers of hits, or by a nested run."""

    def ended(self) -> None:
        """The outermost run has ended, whatever it ended by: nothing runs."""

    def fault(self, regs: Regs, fault: Fault) -> bool:
        """The guest faulted at regs.pc. True: handled, go on at regs.pc. False: report it; regs.pc is then at home."""

    def abandon(self, regs: Regs, pc: int) -> None:
        """The guest leaves the displaced instruction at `pc`, which is not executed: that hit never ends."""

    def home(self, pc: int) -> int | None:
        """The original address of an instruction that runs in a slot at `pc`; None where `pc` is not in a slot."""

    def waits(self, regs: Regs) -> int | None:
        """Where the branch leads whose delay slot runs out of line at regs.pc, until fault(); None: none does."""

    def ours(self, pc: int) -> bool:
        """True where `pc` lies in one of the core's own pages."""

    def stops(self, pc: int) -> bool:
        """True where a breakpoint of the core's stands at `pc`."""

    def original(self, addr: int, data: bytes) -> bytes:
        """What is in memory at `addr`, without the core's own in it."""

    def copied(self, pc: int) -> str:
        """What of the core's the guest has copied with its text, and failed at `pc` for; "": nothing."""

    def in_turn(self) -> None:
        """The machine is `in_turn` from now on."""

    def unloading(self, start: int, end: int) -> None:
        """Guest memory [start, end) is about to be unmapped."""

    def protected(self, start: int, end: int) -> None:
        """What the guest may do in [start, end) has changed."""

    # For who puts the guest back to what it was once, between runs:

    @property
    def patched(self) -> int:
        """A number that is never the same for other patches(); not 0."""

    def patches(self) -> Mapping[int, Patched]:
        """What of the core's stands in guest text now, by address."""

    def under_way(self) -> Any | None:
        """The calls being followed now, for resume(), by task, and their `trampoline`; None: there are none."""

    def cannot_resume(self, calls: object | None) -> str:
        """Why resume() cannot be; "" where it can."""

    def resume(self, calls: object | None) -> None:
        """The guest is again what it was when under_way() said so: these calls, and no others, are being followed."""


class HostProgram(Protocol):
    """Code of this process's own machine that a call site may run.

    Attributes:
        address: of its environment, 64-bit words in host memory: the first is the address of the code, which is called
            with the environment's address by the host's C ABI; the second is the machine's while the program is at a
            call site. Nobody else has the same environment.
    """

    @property
    def address(self) -> int: ...
    @property
    def asks(self) -> bool:
        """True if it may call Python."""


class BuiltIn(Protocol):
    """A program that a machine comes with."""

    def room(self, calls: int) -> None:
        """So many more calls that begin there may be followed: none, at first."""

    @property
    def returns(self) -> int:
        """How many of them have returned since it was put there, and only programs were run."""


#: The rest of a hit whose handler the machine has called, where it was not the usual one: (registers, the call's
#: instance or None, what the handler returned, what it raised or None).
Rest = Callable[[Regs, Any, Any, "BaseException | None"], None]


@frozen(kw_only=True)
class UsualHit:
    """A hit that one handler serves: the machine may call it.

    Attributes:
        address: what regs.pc shows meanwhile.
        probe: the first argument of `handler`.
        handler: handler(probe, regs); usually it returns something false, and changes no probe here.
        rest: what to do if it did otherwise.
    """

    address: int
    probe: Any
    handler: Callable[..., Any]
    rest: Rest


@frozen(kw_only=True)
class UsualEntry(UsualHit):
    """A function's entry whose handler is asked whether the call is followed: a false result says yes.

    Attributes:
        pool: instances that no call has; the last one becomes this call's, and the first argument of `handler`.
        held: instances of calls that the machine follows, the youngest last.
    """

    pool: list[Any]
    held: list[Any]


@frozen(kw_only=True)
class UsualReturn:
    """The return of a call that the machine follows. regs.pc shows where it returns to.

    Attributes:
        probe: whose turn it is.
        handler: handler(instance, regs); its result means nothing. None: returns are only counted.
        pool, held: as at the entry; where none is held the last of the pool becomes the call's.
        asked: True where the entry's handler is asked, and so an instance is held.
        rest: what to do if the handler has raised, or sent the guest elsewhere.
    """

    probe: Any
    handler: Callable[[Any, Regs], Any] | None
    pool: list[Any]
    held: list[Any]
    asked: bool
    rest: Rest


@frozen(kw_only=True)
class UsualTrap:
    """A breakpoint that stands for a lone probe, whose instruction is executed in a slot.

    Attributes:
        address: of the probed instruction.
        slot: where that is executed, mode bits included.
        slot_end: address of the breakpoint behind it; None: the slot goes back by itself.
        next: where the guest goes on, mode bits included.
        before: the pre-handler; None: there is none.
        after: the post-handler, called as handler(probe, regs, 0); its `address` is that of the next instruction.
        point, probes: what the control block shows while the slot runs.
    """

    address: int
    slot: int
    slot_end: int | None
    next: int
    before: UsualHit | None
    after: UsualHit | None
    point: object
    probes: tuple[Any, ...]


class ServedTrap(Protocol):
    """A breakpoint that the machine serves."""

    def take_hits(self) -> int:
        """How many hits it has served since this was asked last."""

    @property
    def hits(self) -> int:
        """The same, without their being taken."""

    def end(self) -> None:
        """Report the breakpoint to the core again."""


class Hits(Protocol):
    """The usual hits, served by the machine without the core.

    Attributes:
        paused: its first item is not 0 while all hits are left to the services.
        traps: True if breakpoints can be served.
    """

    paused: Sequence[int]
    traps: bool

    def begin(self, block: Any, idle: object, active: object, stepped: object, settled: object) -> None:
        """Serve hits for a control block.

        Args:
            block: made by kprobes.native.quick.
            idle: its state while no hit is under way.
            active: its state while a pre-handler or a return handler runs.
            stepped: its state while the instruction runs in its slot.
            settled: its state while a post-handler runs.
        """

    def trap(self, usual: UsualTrap) -> ServedTrap:
        """Serve a breakpoint. Only where `traps` is True."""

    def hit(self, usual: UsualHit) -> BuiltIn:
        """For a call site."""

    def pause(self, now: bool) -> None:
        """Leave every hit, and every call that is followed, to the services (True), or do so no more."""


class Following(Protocol):
    """Built-in programs that follow calls from a function's entry to its return, and the calls that they share."""

    idle: tuple[Sequence[int], int]  # a number, and what it is while no call is followed: looked at on every hit

    def enter(self, returned: UsualReturn | Sequence[HostProgram], entered: UsualEntry | None = None) -> BuiltIn:
        """For a call site at which a function begins: its calls are made to return to leave()'s call site.

        Args:
            returned: served at the return, or the programs that run there; the return address is back where it was.
            entered: asked first whether the call is followed; None: every call is.

        What is out of the ordinary is left to the service.
        """

    def leave(self, target: int) -> BuiltIn:
        """For the call site where followed calls return, `target` with mode bits. Its service gets the rest."""

    def take(self) -> list[tuple[int, int, int]]:
        """The calls being followed, oldest first: (call site, stack pointer at entry, return address); nobody's now."""


class Clock(Protocol):
    """A number that grows by one with each instruction of the guest's own, from a start() to as many stop()."""

    @property
    def address(self) -> int:
        """Where the number is, for HostPrograms."""

    def __call__(self) -> int: ...
    def start(self) -> None:
        """Raises Unsupported."""

    def stop(self) -> None: ...


def watches_nothing(start: int, size: int, access: str, report: Watched) -> Callable[[], None]:
    """watch_at() of a machine that cannot."""
    raise Unsupported("this machine does not report accesses to memory",
                      hint="put a probe where it is written, or use a UnicornMachine")


def watches_no_text(addr: int) -> bool:
    """writable() of such a machine."""
    return False


def notes_nothing() -> Collection[int] | None:
    """rewritten() of a machine that does not know who writes its memory."""
    return None


#: (registers, address, bytes, what is written; None: a read). Memory is still as it was before.
Watched = Callable[[Regs, int, int, bytes | None], None]


class Books(Protocol):
    """What a user of the machine knows of guest memory, and what goes back with it.

    Attributes:
        books: everything that it knows, as a value of its own; set again when the guest goes back to a snapshot. None:
            the snapshot was taken when the books were not kept yet.
    """

    books: Any


#: Bits of a byte's mark in memory that is watched by marks: accesses are reported where any is set. UNWRITTEN goes by
#: itself with the first write.
UNWRITTEN = 0x80


class MarkedMemory(Protocol):
    """Guest memory of which each byte has a mark, and accesses to marked bytes.

    Attributes:
        unwatchable: why accesses cannot be reported; "": they can.
    """

    unwatchable: str

    def map(self, size: int) -> int:
        """Map zeroed memory that the guest may read and write, and return its address. Raises NoMemory."""

    def watch(self, start: int, marks: memoryview, report: Watched) -> Callable[[], None]:
        """Report each access of the guest's that touches a byte whose mark is not 0, before it happens.

        A write of bytes that are marked as UNWRITTEN only is not reported; it takes these marks away.

        Args:
            start: address of the first byte that has a mark.
            marks: a byte for each of the guest's; the caller may change them at any time.
            report: as in Machine.watch_at().

        Returns:
            What ends it.

        Raises:
            Unsupported: `unwatchable` says why.
        """

    def keep_books(self, books: Books) -> Callable[[], None]:
        """Have books go back with the guest, when it goes back to a snapshot. Returns what ends it."""


class Busy(Protocol):
    """A reentrant lock."""

    def acquire(self, blocking: bool = True) -> bool: ...
    def release(self) -> None: ...


class Machine(Protocol):
    """Guest memory, and where to stop in it."""

    arch: Arch
    symbols: Symbols
    page_size: int
    call_area: int
    cpus: int
    cpu_task: Callable[[Regs], Any] | None
    guest_view: Any  #: for who compiles programs that run in the guest: a programs.inguest.View; None: none do
    in_turn: bool  #: threads stop at jumps of the core's alone, one at a time, and nobody knows where the others are
    before_run: Callable[[], object] | None  #: called before each run that is inside no other, while nobody listens

    @property
    def busy(self) -> Busy:
        """Held by the thread that runs it, or changes its probes."""

    @property
    def delays_in_calls(self) -> bool:
        """True if in a call area an instruction may have a delay slot."""

    @property
    def regs(self) -> Regs: ...
    @property
    def cpu_regs(self) -> list[Regs]: ...
    def read(self, addr: int, size: int) -> bytes: ...
    def write(self, addr: int, data: bytes) -> None: ...
    def patch(self, addr: int, code: bytes) -> None:
        """Replace code, atomically for the guest; stale translations are dropped."""

    def executable(self, addr: int) -> bool:
        """True where the guest may execute."""

    def writable(self, addr: int) -> bool:
        """True where the guest may write, and somebody may want to watch_at() that."""

    def rewritten(self) -> Collection[int] | None:
        """The pages of text that its user has written since this was asked last.

        None: nobody knows, as others may write memory, too. What the guest writes, and patch(), does not count.
        """

    maps_runs: bool  #: map_code() gives more than one page at a time

    def map_code(self, near: int | None = None, pages: int = 1) -> int:
        """Map executable pages, one behind the other, as close to `near` as there is room, and return their address."""

    def unmap_code(self, page: int, pages: int = 1) -> None: ...
    def map_calls(self, near: int) -> int:
        """Map an executable area of `call_area` bytes, aligned to that, and return its address.

        Each instruction executed there is reported by Sink.services first, in place: no trap, and no pc write unless
        the sink moves the guest. Raises NoMemory; Unsupported where the engine has nothing of the kind.
        """

    def call_at(self, addr: int) -> None:
        """Sink.services has, or is about to have, an entry for this call site: 8-aligned, in a call area."""

    def unmap_calls(self, area: int) -> None: ...
    def serve_here(self, addr: int, programs: Sequence[HostProgram]) -> Callable[[], None] | None:
        """The instruction at `addr`, which is not the guest's to write, is a call site itself from now on, for these
        programs: no jump leads there. Returns what ends it; None: it is none."""

    def jumps(self, programs: Sequence[Any] | None, mode: int) -> bool:
        """True if a jump may stand where only these programs run; None: where others are called. mode: of the text."""

    @property
    def can_run(self) -> bool:
        """True if program_at() works."""

    @property
    def host_view(self) -> Any:
        """The guest, for who compiles HostPrograms: a programs.site.View. None: only built-in programs run here."""

    @property
    def clock(self) -> Clock | None:
        """Counts the guest's instructions; None: nobody does."""

    @property
    def hits(self) -> Hits | None:
        """Serves usual hits; None: here the core has to."""

    @property
    def following(self) -> Following | None:
        """The built-in programs that follow calls to their return; None: here the core has to."""

    def program_at(self, addr: int, programs: Sequence[HostProgram], last: BuiltIn | None = None) -> None:
        """The call site counts its executions and runs these programs in turn, without calling anybody, until
        call_at().

        Without any it only counts. `last` is one of `following`'s, and runs after them. Executions in a run inside
        another one, and those that are out of the ordinary, are left to the service.
        """

    def count(self, addr: int) -> int:
        """How often the call site at `addr` was executed without its service being called."""

    def ran(self, addr: int) -> bool:
        """True while the service of a call site is called for a hit whose programs have run already, as the call is not
        to be followed."""

    def stop_at(self, addr: int) -> None:
        """Report trap() when the guest is about to execute the breakpoint at `addr`, until release(): something else
        takes its place."""

    def release(self, addr: int) -> None:
        """Undo stop_at."""

    @property
    def modules(self) -> Mapping[str, tuple[int, int]]:
        """Where images are: name -> (start, end)."""

    def regions(self) -> list[tuple[int, int]]:
        """Guest memory that is mapped, as far as is known: (start, end), by address."""

    def count_blocks(self, wanted: Callable[[int], bool] | None = None, arcs: bool = False) -> BlockCounts:
        """Count the blocks of guest code executed from now on.

        Args:
            wanted: asked once about each block, by its address; None: all are counted.
            arcs: edges are counted one by one, too.

        Raises:
            Unsupported: the engine tells of no blocks.
        """

    def watch_at(self, start: int, size: int, access: str, report: Watched) -> Callable[[], None]:
        """Report each access of the guest's to these bytes, before it happens: reads ("r"), writes ("w") or both
        ("rw").

        Returns what ends it. Unsupported where the engine cannot.
        """

    @property
    def marked_memory(self) -> MarkedMemory | None:
        """Memory whose bytes have marks; None: the machine has no such thing."""

    def report_to(self, sink: Any) -> None:
        """Deliver reports to `sink` from now on; None: to nobody."""

    @property
    def exit_address(self) -> int:
        """Where the outermost function of a guest call or a run returns to, mode bits included; 0: there is no such
        place yet."""

    def invoke(self, target: int) -> None:
        """Run guest code at `target` with the registers as they are until it returns; then put all registers back."""
