"""The contract between the core and an execution engine.

The core never runs the guest. The engine runs it, and delivers reports to the Sink, which is the
core; at a report regs.pc is the address of the site, whatever the engine's own idea of pc was.
`Machine` is what every engine has; `Powers` is what only some have, each a value or None. Begin
there.

A slot is memory of the core's where a probed instruction is executed out of its place. A call site
is an address in a call area to which the core's jumps lead: there the engine calls a service (a
function in Sink.services), or does the usual work of a hit without the core.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from ..arch._base import Arch
from ..errors import Unsupported
from ..regs import Regs
from ..stacks import Step
from ..symbols import Symbols
from ._blocks import BlockCounts
from ._views import GuestCodeView, HostCodeView


@frozen(kw_only=True)
class Fault:
    """A guest fault, as the engine saw it.

    Attributes:
        access: "read", "write", "fetch", "undefined", "trap", "interrupt", "arithmetic" or
            "engine".
        address: address accessed, or None where the engine does not say.
        trapnr: POSIX signal number that an operating system would send (4 SIGILL, 5 SIGTRAP, 8
            SIGFPE, 11 SIGSEGV).
        number: the engine's interrupt number, where there is one.
        text: what the engine calls it.
    """

    access: str
    address: int | None = None
    trapnr: int = 11
    number: int | None = None
    text: str = ""


class Patched(Protocol):
    """A patch in guest text: bytes of the core's (`new`), and the text that they cover (`old`)."""

    @property
    def new(self) -> bytes: ...
    @property
    def old(self) -> bytes: ...


class Sink(Protocol):
    """Receives an engine's reports: the core. The engine calls these methods.

    Attributes:
        services: address in a call area -> what to call, in place, before the instruction there.
            Afterwards the guest goes to regs.target, if that is set.
    """

    services: dict[int, Callable[[Regs], None]]

    def close(self) -> None:
        """Restore the guest, since the machine is about to be closed."""

    def trap(self, regs: Regs) -> bool:
        """Serve a breakpoint that the guest is about to execute at regs.pc.

        Returns:
            False where it is none of the core's: the engine delivers it to the guest.
        """

    def limit_jumps(self, on: bool) -> None:
        """Make jumps that cover several instructions breakpoints, while a run counts instructions.

        Each instruction is then executed once, at its own address or in a slot. Called, too, for a
        run that is to end at an address that a jump covers.

        Args:
            on: True where such a run begins, False where it has ended.
        """

    def run_begins(self, target: int) -> None:
        """Prepare for an outermost run. Called before it begins: nothing runs, text may be changed.

        Args:
            target: address where the run begins, mode bits included.
        """

    def guest_sent(self, target: int) -> None:
        """Note that the guest is sent elsewhere in the middle of a run, but not by a handler of a
        hit.

        A nested run does that as it begins.

        Args:
            target: address where the guest goes, mode bits included.
        """

    def run_ended(self) -> None:
        """Note that the outermost run has ended, for whatever reason: nothing runs."""

    def fault(self, regs: Regs, fault: Fault) -> bool:
        """Handle a fault of the guest's at regs.pc.

        Args:
            regs: the registers of the CPU.
            fault: what has failed.

        Returns:
            True where it is handled, and the guest goes on at regs.pc. False: the engine reports
            it; regs.pc is then the original address.
        """

    def displaced_left(self, regs: Regs, pc: int) -> None:
        """Note that the guest leaves a displaced instruction without executing it: that hit never
        ends.

        Args:
            regs: the registers of the CPU.
            pc: address of the displaced instruction.
        """

    def home_of(self, pc: int) -> int | None:
        """Return the original address of the instruction that runs in a slot.

        Args:
            pc: address in the slot.

        Returns:
            None: `pc` is in no slot.
        """

    def single_stepped(self, regs: Regs) -> bool:
        """Serve a single-step exception of the guest's CPU that comes in the core's own pages.

        Args:
            regs: the registers of the CPU; pc is where the exception comes.

        Returns:
            True where the guest has executed no instruction of its own since the last one: the
            exception is none of the guest's, which goes on at regs.pc. False: it is the guest's,
            or comes behind a return, which has been served: then at regs.pc.
        """

    def pending_target(self, regs: Regs) -> int | None:
        """Return the target of the branch whose delay slot runs out of line at regs.pc.

        It is known until fault() is called.

        Args:
            regs: the registers of the CPU.

        Returns:
            None: no delay slot runs there.
        """

    def owns(self, pc: int) -> bool:
        """Return True if `pc` lies in one of the core's own pages."""

    def has_breakpoint(self, pc: int) -> bool:
        """Return True if a breakpoint of the core's stands at `pc`."""

    def without_patches(self, addr: int, data: bytes) -> bytes:
        """Return memory as it would be without the core's patches.

        Args:
            addr: address that the data was read at.
            data: what was read.
        """

    def copied_patch(self, pc: int) -> str:
        """Say what of the core's the guest has copied with its text, if it has failed because of
        that.

        Args:
            pc: where the guest has failed.

        Returns:
            A sentence for the error; "": the failure has another cause.
        """

    def threads_take_turns(self) -> None:
        """Note that from now on threads stop one at a time, at the core's jumps alone.

        Reporting.in_turn is True then.
        """

    def about_to_unmap(self, start: int, end: int) -> None:
        """Make the probes in a range of guest memory GONE, as the range is about to be unmapped.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
        """

    def permissions_changed(self, start: int, end: int) -> None:
        """Note that the permissions of a range of guest memory have changed.

        Args:
            start: address of the first byte.
            end: address behind the last byte.
        """

    # for snapshots, which put the guest back between runs:

    @property
    def patched(self) -> int:
        """A number other than 0 that changes whenever patches() does."""

    def patches(self) -> Mapping[int, Patched]:
        """Return the core's patches in guest text now: address -> patch."""

    def under_way(self) -> Any | None:
        """Return the calls being followed now, for a snapshot; None: there are none.

        Returns:
            What resume() takes; it has `trampoline` and, by task, the calls.
        """

    def cannot_resume(self, calls: object | None) -> str:
        """Return why resume() would be refused for some calls; "": it would not.

        Args:
            calls: returned by under_way(); None: no call was followed.
        """

    def resume(self, calls: object | None) -> None:
        """Follow the calls of a snapshot, and no others.

        Called as the guest goes back to the snapshot.

        Args:
            calls: returned by under_way() as the snapshot was taken; None: no call was followed.
        """


class HostProgram(Protocol):
    """A compiled program in this process's own machine code that a call site may run.

    Attributes:
        address: of its environment, 64-bit words in host memory: the first is the address of the
            code, which is called with the environment's address by the host's C ABI; the second is
            the machine's while the program is at a call site. No other program has the same
            environment.
    """

    @property
    def address(self) -> int: ...
    @property
    def asks(self) -> bool:
        """True if the program may call Python."""

    @property
    def brief(self) -> bool:
        """True if it surely takes some microseconds at most, and calls no Python."""


class BuiltIn(Protocol):
    """A program of the machine's own that serves hits or follows calls at a call site without the
    core.

    CallsInPlace.program_at() takes it as `last`.
    """

    def room(self, calls: int) -> None:
        """Set how many more calls the program may follow; at first it may follow none.

        Args:
            calls: how many, of the calls that begin at its call site from now on.
        """

    @property
    def returns(self) -> int:
        """Number of calls that have returned without the core, since the program was put at a call
        site.

        Only calls count whose returns run programs.
        """


#: The rest of a hit whose handler the machine has called, where it was not the usual one:
#: (registers, the call's instance or None, what the handler returned, what it raised or None).
Rest = Callable[[Regs, Any, Any, "BaseException | None"], None]


@frozen(kw_only=True)
class UsualHit:
    """A hit that one handler serves: the machine may call that handler by itself, without the core.

    Attributes:
        address: what regs.pc shows meanwhile.
        probe: the first argument of `handler`.
        handler: (probe, registers); usually it returns a false value, and changes no probe at this
            address.
        rest: called where the handler did otherwise: finishes the hit.
    """

    address: int
    probe: Any
    handler: Callable[..., Any]
    rest: Rest


@frozen(kw_only=True)
class UsualEntry(UsualHit):
    """A function's entry at which the machine asks a handler whether it follows the call.

    A false result says yes.

    Attributes:
        pool: instances that no call has; the last one becomes this call's, and the first argument
            of `handler`.
        held: instances of calls that the machine follows, the youngest last.
    """

    pool: list[Any]
    held: list[Any]


@frozen(kw_only=True)
class UsualReturn:
    """The return of a call that the machine follows. regs.pc shows where the call returns to.

    Attributes:
        probe: whose handler it is.
        handler: (instance, registers); its result means nothing. None: returns are only counted.
        pool: instances that no call has.
        held: instances of calls that the machine follows, the youngest last. Where none is held the
            last of the pool becomes the call's.
        asked: True where the entry's handler is asked, and so an instance is held.
        rest: called where the handler has raised or sent the guest elsewhere: finishes the return.
    """

    probe: Any
    handler: Callable[[Any, Regs], Any] | None
    pool: list[Any]
    held: list[Any]
    asked: bool
    rest: Rest


@frozen(kw_only=True)
class UsualTrap:
    """A breakpoint of a lone probe whose hits the machine may serve by itself, without the core.

    Attributes:
        address: of the probed instruction.
        slot: where the instruction is executed, mode bits included; None: nowhere. Then `before` is
            not None, and its `rest` serves a hit whose handler does not send the guest elsewhere.
        slot_end: address of the breakpoint behind the instruction in the slot; None: the slot leads
            back by itself.
        next: where the guest goes on, mode bits included.
        before: the pre-handler; None: there is none.
        after: the post-handler, called with (probe, registers, 0); its `address` is that of the
            next instruction.
        point, probes: what the control block shows while the slot runs.
    """

    address: int
    slot: int | None
    slot_end: int | None
    next: int
    before: UsualHit | None
    after: UsualHit | None
    point: object
    probes: tuple[Any, ...]


class ServedTrap(Protocol):
    """A breakpoint whose hits the machine serves by itself."""

    def take_hits(self) -> int:
        """Return the number of hits served since the last call of this method."""

    @property
    def hits(self) -> int:
        """Number of hits served since take_hits() was last called."""

    def end(self) -> None:
        """Have hits of the breakpoint reported to the core again."""


class Hits(Protocol):
    """The machine's power to serve usual hits without the core.

    Attributes:
        paused: its first item is not 0 while all hits are left to the services.
        traps: True if hits of breakpoints can be served.
    """

    paused: Sequence[int]
    traps: bool

    def begin(
        self, block: Any, idle: object, active: object, stepped: object, settled: object
    ) -> None:
        """Remember the control block, whose state the machine is to change while it serves hits.

        Called as a Kprobes begins.

        Args:
            block: made by kprobes.native.quick.
            idle: its state while no hit is under way.
            active: its state while a pre-handler or a return handler runs.
            stepped: its state while the instruction runs in its slot.
            settled: its state while a post-handler runs.
        """

    def trap(self, usual: UsualTrap) -> ServedTrap:
        """Serve the hits of a breakpoint from now on. Only where `traps` is True.

        Args:
            usual: the breakpoint.

        Returns:
            An object that counts the hits, and by which the core ends the service.
        """

    def hit(self, usual: UsualHit) -> BuiltIn:
        """Make a program that serves a usual hit at a call site.

        Args:
            usual: the hit.

        Returns:
            The program: CallsInPlace.program_at() takes it as `last`.
        """

    def check_targets(self, now: bool) -> None:
        """Choose what happens at a hit whose handler sends the guest elsewhere.

        Args:
            now: True: `rest` finishes it; False: the guest goes there at once, as no jump can cover
                that place.
        """

    def pause(self) -> None:
        """Serve no hits and follow no calls until resume(): the services do it."""

    def resume(self) -> None:
        """Serve hits and follow calls again."""


class Following(Protocol):
    """The machine's power to follow calls from a function's entry to its return without the core.

    The programs that do it share a list of the calls.

    Attributes:
        idle: (sequence, number): while no call is followed, sequence[0] == number.
    """

    # a number, and what it is while no call is followed: looked at on every hit
    idle: tuple[Sequence[int], int]

    def enter(
        self, returned: UsualReturn | Sequence[HostProgram], entered: UsualEntry | None = None
    ) -> BuiltIn:
        """Make a program for a call site at a function's entry: it has the function's calls
        followed.

        They return to leave()'s call site. A call that is out of the ordinary is left to the
        service.

        Args:
            returned: the return handler that is called when such a call returns, or the programs
                that run then; the return address is back where it was.
            entered: the entry handler that is asked first whether the call is followed; None: every
                call is.

        Returns:
            The program: CallsInPlace.program_at() takes it as `last`.
        """

    def leave(self, target: int) -> BuiltIn:
        """Make a program for the call site to which followed calls return: it sends them to their
        callers.

        It runs the return handler or programs first. A return that is out of the ordinary is left
        to the service.

        Args:
            target: address to which calls return, mode bits included.

        Returns:
            The program: CallsInPlace.program_at() takes it as `last`.
        """

    def take(self) -> list[tuple[int, int, int]]:
        """Hand over the calls being followed: afterwards the machine follows none of them.

        Returns:
            (call site, stack pointer at entry, true return address) of each, oldest first.
        """


class FollowedToReturn(Protocol):
    """The calls that one Kprobes follows to their return.

    Attributes:
        own: those that the machine does not follow by itself.
        trampoline: where all of them return to, mode bits included; 0: there is none yet.
    """

    own: list[Any]
    trampoline: int


class StackWalk(Protocol):
    """Walks the stacks of one CPU, by rows that it is given.

    A row says how the caller of the function at an address is found. Where the walk comes to an
    address without a row, it asks for one (StackWalking.begin, `look`).

    Attributes:
        walk: (regs, limit) -> pc and return addresses, as stacks.Stack.kept() gives them; None:
            something on the way is not usual, and nothing is known.
    """

    walk: Callable[[Regs, int], tuple[int, ...] | None]

    def keeper(self, plain: Callable[[Regs], tuple[int, ...]]) -> Callable[[Regs], tuple[int, ...]]:
        """Return a function that walks the stack, and calls another one where walk() gives None.

        Args:
            plain: (registers) -> the stack in the same form.

        Returns:
            (registers) -> pc and return addresses.
        """

    def forget(self, files: object, changes: int) -> None:
        """Forget all rows, as symbols have changed.

        Args:
            files, changes: what these attributes of the symbols are now: rows that are put from now
                on hold until the attributes change again.
        """

    def put(
        self, pc: int, step: Step | None, known: bool, outermost: bool, entry: bool | None
    ) -> None:
        """Say how the caller of the function at an address is found: give the address a row.

        Args:
            pc: the address.
            step: the way to the caller; None: it is none of the usual kind.
            known: True: there is call frame information.
            outermost: True: a function there has no caller.
            entry: True: a function begins there; None: it was not looked at. Where there is call
                frame information it does not matter.
        """


class StackWalking(Protocol):
    """The machine's power to walk stacks without the core."""

    def begin(
        self,
        calls: FollowedToReturn,
        symbols: Symbols,
        look: Callable[[int], None],
        above: int,
        points: Container[int],
    ) -> StackWalk:
        """Make a walk for the stacks of the guest.

        Args:
            calls: a return address that these have replaced is shown as it was.
            symbols: the machine's.
            look: called with an address that has no row, and before the first walk after the
                symbols' files or changes have become others: gives the address a row, by put().
            above: bytes from a canonical frame address to the caller's stack pointer register.
            points: addresses that are probed. Of these alone it is asked whether a function begins
                there.
        """


@frozen(kw_only=True)
class RecordedNumber:
    """A number that is fetched at a hit.

    Attributes:
        root: where a word comes from: "register", "sp", "pc", "value" or "saved".
        name: of the register.
        number: the value itself; which one of those that were saved at the function's entry.
        steps: added one after the other to the word, after each of which the word there is loaded.
        size: bytes of the number in memory, at the address to which the last step leads. 0 for a
            number that is the word itself.
        count: elements of an array, one behind the other in memory and in the record; of no array
            1.
        bits, shift, signed: what is kept of it.
        at: its place in the record, in words of 64 bits.
    """

    root: str
    name: str = ""
    number: int = 0
    steps: tuple[int, ...] = ()
    size: int = 0
    count: int = 1
    bits: int = 64
    shift: int = 0
    signed: bool = False
    at: int = 0


@frozen(kw_only=True)
class RecordedTest:
    """A comparison of a filter.

    Attributes:
        of: what is compared.
        how: "==", "<", "<=" or "&"; "in": from `constant` up to `end`, which is not in it.
        constant, end: numbers that it is compared with.
        yes, no: the next comparison, by its place in the filter; True, False: the hit is recorded,
            or is not.
    """

    of: RecordedNumber
    how: str
    constant: int
    end: int = 0
    yes: int | bool
    no: int | bool


@frozen(kw_only=True)
class RecordedHit:
    """The form that a hit of an event is recorded in: a record of a ring (programs/maps/ring.py).

    Attributes:
        numbers: what is fetched.
        tests: the filter. Empty, every hit is recorded.
        state: address of two words: records so far, which is the record's first word; whether any
            are made.
        ring: address of the ring.
        size: bytes of a record.
        cookie: its second word.
        time, returns: its words that are the time and the return address; 0: it has none.
        faults, data: its first word of fault bits, and the first one behind them.
        clock: gives the time; None: nothing does.
        kept: objects that are used.
    """

    numbers: tuple[RecordedNumber, ...]
    tests: tuple[RecordedTest, ...]
    state: int
    ring: int
    size: int
    cookie: int
    time: int
    returns: int
    faults: int
    data: int
    clock: Callable[[], int] | None
    kept: tuple[object, ...]


class HitRecording(Protocol):
    """The machine's power to record hits of events without calling Python functions."""

    def taker(
        self, hit: RecordedHit, plain: Callable[[Any, Regs], None]
    ) -> Callable[[Any, Regs], None] | None:
        """Make a handler that writes a record at each hit, or at each return.

        Args:
            hit: what the handler records, and where.
            plain: (probe or instance, registers): a handler that does the same, called where
                something is not usual: memory that cannot be read, guest tasks.

        Returns:
            (probe or instance, registers): the handler. None: nothing but `plain` can do it.
        """

    def saver(
        self, numbers: Sequence[RecordedNumber], plain: Callable[[Any, Regs], None]
    ) -> Callable[[Any, Regs], None] | None:
        """Make an entry handler of a return probe that fetches numbers for the record of the
        return.

        It keeps them as data["saved"] of the call, for "saved" numbers of a taker.

        Args:
            numbers: what is fetched at the entry.
            plain: (instance, registers): a handler that does the same, called where something is
                not usual.

        Returns:
            (instance, registers): the handler. None: nothing but `plain` can do it.
        """


class Clock(Protocol):
    """A count of the guest's own instructions; it grows between start() and stop().

    Calls of start() and stop() nest. Calling the clock returns the count. Where the sink (the core)
    leaves the machine, counting ends, however often start() was called.
    """

    @property
    def address(self) -> int:
        """Address of the count in this process, for HostPrograms."""

    def __call__(self) -> int: ...
    def start(self) -> Callable[[], None]:
        """Count from now on, until as many stop().

        Returns:
            A function that takes this start back, as one stop() does. Where it was taken back
            before, or the sink has left the machine since, it does nothing.

        Raises:
            Unsupported: this engine cannot count.
        """

    def stop(self) -> None: ...


#: (registers, address, bytes, what is written; None: a read). Memory is still as it was before.
Watched = Callable[[Regs, int, int, bytes | None], None]


class StateOwner(Protocol):
    """A user of the machine whose knowledge of guest memory goes back with a snapshot.

    Attributes:
        snapshot_state: the knowledge as a value of its own, set again when the guest goes back to a
            snapshot. None: the snapshot was taken when it was not kept yet.
    """

    snapshot_state: Any


#: Bits of a byte's mark in memory that is watched by marks: accesses are reported where any is set.
#: UNWRITTEN goes by itself with the first write.
UNWRITTEN = 0x80


class MarkedMemory(Protocol):
    """Guest memory of which each byte has a mark, and accesses to marked bytes."""

    @property
    def unwatchable(self) -> str:
        """Why accesses cannot be reported; "": they can."""

    def map(self, size: int) -> int:
        """Map zeroed memory that the guest may read and write, and return its address.

        Args:
            size: bytes.

        Raises:
            NoMemory: there is no room.
        """

    def watch(self, start: int, marks: memoryview, report: Watched) -> Callable[[], None]:
        """Report each access of the guest's that touches a byte whose mark is not 0, before it
        happens.

        A write of bytes that are marked as UNWRITTEN only is not reported; it takes these marks
        away.

        Args:
            start: address of the first byte that has a mark.
            marks: a byte for each of the guest's; the caller may change them at any time.
            report: (registers, address, bytes, what is written; None: a read): called at an access.

        Returns:
            () ends the reports.

        Raises:
            Unsupported: `unwatchable` says why.
        """

    def keep_snapshot_state(self, owner: StateOwner) -> Callable[[], None]:
        """Have the knowledge of a user of the machine go back with the guest to a snapshot.

        Args:
            owner: an object whose `snapshot_state` is saved with each snapshot, and set again.

        Returns:
            () ends this.
        """


class Busy(Protocol):
    """A reentrant lock."""

    def acquire(self, blocking: bool = True) -> bool: ...
    def release(self) -> None: ...


class CallsInPlace(Protocol):
    """The power to call the core where an instruction is executed, in place: no trap, and no write
    of pc.

    Such instructions stand in call areas: memory of the library's own, to which jumps lead from
    text. Their addresses are call sites.

    Attributes:
        call_area: bytes of an area.
        delays_in_calls: True if in an area an instruction may have a delay slot.
    """

    call_area: int
    delays_in_calls: bool

    @property
    def can_run(self) -> bool:
        """True if program_at() works."""

    def jumps(self, programs: Sequence[Any] | None, mode: int) -> bool:
        """Return True if a jump in guest text may lead to a call site.

        Args:
            programs: what is to run there; None: the core is called.
            mode: mode bits of the text where the jump is to stand.
        """

    def map_calls(self, near: int) -> int:
        """Map an executable area for call sites, aligned to its size, and return its address.

        Before each instruction that is executed there the engine calls the address's function in
        Sink.services, which may move the guest.

        Args:
            near: address that the area is to be near to.

        Raises:
            NoMemory: there is no room.
        """

    def unmap_calls(self, area: int) -> None:
        """Unmap an area from map_calls()."""

    def call_at(self, addr: int) -> None:
        """Have the engine call the service of a call site (Sink.services), and run no programs
        there.

        Args:
            addr: the call site, a multiple of 8 in an area. Its service is in Sink.services, or
                will be before the guest comes there.
        """

    def program_at(self, addr: int, programs: Sequence[Any], last: BuiltIn | None = None) -> None:
        """Have programs run at a call site, in turn, instead of the service, until call_at().

        Executions are counted. Those in a run inside another one, and those that are out of the
        ordinary, are left to the service.

        Args:
            addr: the call site.
            programs: HostPrograms, or what else was compiled for the machine's view; empty:
                executions are only counted.
            last: a program of the machine's own, made by `Following` or `Hits`, which runs after
                them.
        """

    def count(self, addr: int) -> int:
        """Return how often a call site was executed without its service being called."""

    def ran(self, addr: int) -> bool:
        """Return True if programs have already run for the hit that a call site's service is called
        for.

        Then only the call is still to be followed, by the service. Called in the service.

        Args:
            addr: the call site.
        """

    def serve_here(self, addr: int, programs: Sequence[Any]) -> Callable[[], None] | None:
        """Make an instruction in guest text a call site itself, for programs: no jump leads there.

        Args:
            addr: the instruction, which the guest may not write.
            programs: what is to run there; program_at() has it run.

        Returns:
            () ends the call site. None: the instruction cannot be one, and a jump has to lead to
            one.
        """


class Watching(Protocol):
    """The power to report accesses to memory."""

    def watch_at(self, start: int, size: int, access: str, report: Watched) -> Callable[[], None]:
        """Report each access of the guest's to some bytes, before it happens.

        Args:
            start: address of the first byte.
            size: bytes.
            access: "r", "w" or "rw"; "x": the guest executes instructions that begin there.
            report: (registers, address, bytes, what is written; None: a read or execution): called
                at an access; for "x" with the instruction's address and size.

        Returns:
            () ends the reports.

        Raises:
            Unsupported: the engine cannot.
        """

    def reaches_device(self, start: int, size: int) -> bool:
        """Return True if a byte of a range is a device's, which reading may change.

        Args:
            start: address of the first byte.
            size: bytes.

        Raises:
            GuestFault: it is a device's, and the range is not mapped to its end.
        """

    def writable(self, addr: int) -> bool:
        """Return True if the guest may write at an address, and watch_at() works there."""

    def rewritten(self) -> Collection[int] | None:
        """Return the pages of text that the machine's user has written since this method was last
        called.

        What the guest writes, and patch(), does not count. None: others may write memory, too, and
        it is not known.
        """


class BlockCounting(Protocol):
    """The machine's power to count the blocks of guest code that are executed."""

    def count_blocks(
        self, wanted: Callable[[int], bool] | None = None, arcs: bool = False
    ) -> BlockCounts:
        """Count the blocks that are executed from now on.

        Args:
            wanted: (address of a block) -> True where it is counted; asked once about each block.
                None: all are counted.
            arcs: True: edges between blocks are counted one by one, too.
        """


class GuestText(Protocol):
    """Guest memory, and the library's own pages in it.

    Attributes:
        page_size: bytes of a page.
        maps_runs: True if map_code() gives more than one page at a time.
    """

    page_size: int
    maps_runs: bool

    def read(self, addr: int, size: int) -> bytes:
        """Return guest memory as it is, breakpoints included; protection does not matter.

        Args:
            addr: guest address of the first byte, without mode bits.
            size: how many bytes; 0 gives b"".

        Returns:
            `size` bytes, in the order of their addresses.

        Raises:
            GuestFault: a byte of them is not mapped; `address` is the first such one.
            BadArgument: `addr` or `size` is no integer, or `size` is negative.
        """

    def write(self, addr: int, data: bytes) -> None:
        """Write guest memory, whatever its protection.

        Args:
            addr: guest address of the first byte, without mode bits.
            data: bytes, bytearray or memoryview, for the addresses from there on.

        Raises:
            GuestFault: a byte of them is not mapped; nothing is written.
            BadArgument: `addr` is no integer, or `data` no bytes.
        """

    def patch(self, addr: int, code: bytes) -> None:
        """Replace code, atomically for the guest; stale translations are dropped."""

    def executable(self, addr: int) -> bool:
        """Return True if the guest may execute at an address."""

    def map_code(self, near: int | None = None, pages: int = 1) -> int:
        """Map executable pages of the library's own, one behind the other, and return their
        address.

        Args:
            near: address that they are to be as close to as there is room; None: anywhere.
            pages: how many.

        Raises:
            NoMemory: there is no room.
        """

    def unmap_code(self, page: int, pages: int = 1) -> None:
        """Unmap pages from map_code()."""

    @property
    def modules(self) -> Mapping[str, tuple[int, int]]:
        """Loaded images: name -> (start, end)."""

    def regions(self) -> list[tuple[int, int]]:
        """Return the guest memory that is mapped, as far as is known: (start, end), by address."""


class Processors(Protocol):
    """The guest's CPUs.

    Attributes:
        cpus: how many there are.
        cpu_task: registers -> identity of the task that runs; None: there is one task a CPU.
        counts_from_executed: True where an instruction that another executes in its own place
            (z/Architecture's EXECUTE) counts its relative address from itself, as the architecture
            has it. False where it counts from the other, or that is not known.
    """

    cpus: int
    cpu_task: Callable[[Regs], Any] | None
    counts_from_executed: bool

    @property
    def regs(self) -> Regs:
        """Registers of the CPU that ran last."""

    @property
    def cpu_regs(self) -> list[Regs]:
        """Registers of every CPU."""


class Reporting(Protocol):
    """The engine's reports, and when they come.

    Attributes:
        before_run: called before each run that is inside no other, while there is no sink.
    """

    before_run: Callable[[], object] | None

    @property
    def busy(self) -> Busy:
        """The machine's lock. A thread has it while it runs the machine, or changes its probes."""

    @property
    def in_turn(self) -> bool:
        """True where threads stop at jumps of the core's alone, one at a time, and it is not known
        where the others are.
        """

    def report_to(self, sink: Sink | None) -> None:
        """Deliver reports to `sink` from now on; None: deliver none."""

    def stop_at(self, addr: int) -> None:
        """Report the breakpoint at an address by Sink.trap(), when the guest is about to execute
        it.

        Until release(): then something else takes the breakpoint's place.

        Args:
            addr: the address; the core has written the breakpoint there.
        """

    def release(self, addr: int) -> None:
        """Stop reporting an address that stop_at() named."""


class Running(Protocol):
    """Guest code that the core runs inside a hit."""

    @property
    def exit_address(self) -> int:
        """Address to which the outermost function of a guest call or a run returns, mode bits
        included; 0 before there is one.
        """

    def invoke(self, target: int) -> None:
        """Run guest code until it returns, then put all registers back. Called inside a hit.

        Args:
            target: address of the code, which starts with the registers as they are.
        """


class Powers(Protocol):
    """Powers that only some engines have: a value that does the work, or None.

    An engine without any of them serves every probe by its breakpoint.
    """

    @property
    def call_sites(self) -> CallsInPlace | None:
        """Calls in place, to which jumps lead."""

    @property
    def hits(self) -> Hits | None:
        """Serves usual hits without the core."""

    @property
    def following(self) -> Following | None:
        """Follows calls to their return without the core."""

    @property
    def stack_walking(self) -> StackWalking | None:
        """Walks stacks without the core."""

    @property
    def hit_recording(self) -> HitRecording | None:
        """Records hits of events without Python."""

    @property
    def host_view(self) -> HostCodeView | None:
        """How this process's own code finds the guest's registers and memory.

        None: only built-in programs run at call sites.
        """

    @property
    def guest_view(self) -> GuestCodeView | None:
        """How code in the guest finds registers and memory; None: no programs run in the guest."""

    @property
    def watching(self) -> Watching | None:
        """Reports accesses to memory."""

    @property
    def marked_memory(self) -> MarkedMemory | None:
        """Memory whose bytes have marks."""

    @property
    def blocks(self) -> BlockCounting | None:
        """Tells of the blocks of code that are executed."""

    @property
    def clock(self) -> Clock | None:
        """Counts the guest's instructions."""

    @property
    def process_identity(self) -> ProcessIdentity | None:
        """Number and name of the process that the guest is; None: it is none."""


class ProcessIdentity(Protocol):
    """The process that a guest is, as its own programs know it.

    Attributes:
        pid: its number.
        name: the file name of its program, as Linux has it: at most 15 bytes.
    """

    @property
    def pid(self) -> int: ...
    @property
    def name(self) -> bytes: ...
    def tid(self, cpu: int) -> int:
        """Return the number of the thread that is a CPU to the core.

        Args:
            cpu: number of the CPU.
        """


class Machine(GuestText, Processors, Reporting, Running, Powers, Protocol):
    """An execution engine: guest memory, its processors, what is reported, and the powers that only
    some have.

    Attributes:
        arch: the guest's architecture.
        symbols: names of addresses.
    """

    arch: Arch
    symbols: Symbols


def watching_of(machine: Machine) -> Watching:
    """Return the machine's power to report accesses to memory.

    Raises:
        Unsupported: it has none.
    """
    if machine.watching is None:
        raise Unsupported(
            "this machine does not report accesses to memory",
            hint="put a probe where it is written, or use a UnicornMachine",
        )
    return machine.watching


def blocks_of(machine: Machine) -> BlockCounting:
    """Return the machine's power to count blocks of code.

    Raises:
        Unsupported: it has none.
    """
    if machine.blocks is None:
        raise Unsupported(
            "this machine does not tell which blocks of code are executed",
            hint="use a UnicornMachine, or probes",
        )
    return machine.blocks
