"""Attaching programs to probes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

from attrs import evolve, frozen

from .. import native
from ..clocknames import HOST_CLOCK, INSTRUCTION_CLOCK
from ..core.probe import (
    DIVERTED,
    Kprobe,
    Kretprobe,
    KretprobeInstance,
    Probe,
    missed_of,
    program_of,
    serve_by_program,
    why_never_optimized,
    why_without_room,
)
from ..debug.operands import Operand, Unfetchable, operand_of, resolved
from ..errors import BadArgument, GuestFault, MachineClosed, ProgramError, Unsupported
from ..machine._base import Machine
from ..machine._views import GuestCodeView
from ..regs import Regs
from .adapting import adapted
from .atprobe import AtProbe, ContextReader
from .code import Code, CodeLine, NotCompiled
from .context import RESULT, reader
from .engines import check
from .fitting import fits, words
from .host import HostCall
from .inguest import RETURNS, InGuest
from .keeping import Keeping
from .listed import ArgumentList, ListLayout, known_layout
from .maps import SESSION, Map, Programs
from .program import AtEntry, Program
from .sections import SectionTarget, target_of
from .site import SiteProgram
from .targets import aims

if TYPE_CHECKING:
    from ..debug.info import DebugInfo

#: lines of trace_printk that are kept
LINES: Final = 10_000
_ALONE: Final = "entry and return are one run of two, which Python puts together"
_RESULT_AT: Final = "the address of the result is kept in Python from the entry to the return"
_ENTRY_WORDS: Final = "the arguments of the entry are kept in Python until the return"
_LISTED: Final = (
    "the arguments are put together in Python where a program is at a return, or where one is in "
    "several registers or in memory"
)


class ProgramOwner(Protocol):
    """The Kprobes, as far as attached programs need it.

    Attributes:
        machine: the guest.
    """

    machine: Machine

    def register(self, probe: Probe) -> None:
        """Register a probe."""

    def unregister(self, probe: Probe) -> None:
        """Unregister a probe."""

    def stack_trace(self, regs: Regs, limit: int = 64) -> list[int]:
        """Return the pc and return addresses of a hit, innermost first, `limit` at most."""

    def is_entry(self, addr: int) -> bool:
        """Return True where an address is a function's entry."""

    def program_calls(self, begins: bool) -> None:
        """Record whether a compiled program is calling Python at the moment, so a hit goes on.

        Args:
            begins: True just before a helper in Python runs, False just after.
        """


@frozen
class Where:
    """The address or function that a program's probe is for.

    Attributes:
        symbol: a function's name, or a guest address.
        offset: bytes that are added to the symbol's address.
        retprobe: True where the program runs when the function returns.
        maxactive: calls that a return probe follows at once at most; 0: the default.
        session: True where it runs at the entry, and at the return unless it returned 1 at the
            entry.
        listed: True where its context is fentry's list, 64 bits each: the function's arguments,
            then its result.
        operands: arguments of a static tracepoint, as the compiler wrote them.
        semaphore: address of a static tracepoint's semaphore; 0: it has none.
    """

    symbol: str | int
    offset: int = 0
    retprobe: bool = False
    maxactive: int = 0
    session: bool = False
    listed: bool = False
    operands: tuple[str, ...] = ()
    semaphore: int = 0


def add_to_semaphore(machine: Machine, semaphore: int, step: int) -> None:
    """Add a step to the semaphore of a static tracepoint (USDT), in guest memory.

    A program may skip a tracepoint whose semaphore is 0: it counts the tracers that use it.

    Args:
        machine: the guest's machine.
        semaphore: address of the semaphore, a number of 16 bits.
        step: 1 to count one more tracer, -1 for one less.

    Raises:
        GuestFault: the semaphore is not mapped.
        MachineClosed: the machine is closed.
    """
    order: Any = machine.arch.order.value
    count = int.from_bytes(machine.read(semaphore, 2), order) + step
    machine.write(semaphore, (count & 0xFFFF).to_bytes(2, order))


class Attachment:
    """Programs that run at probes, until detach(). A context manager.

    Attributes:
        program: what was attached.
        maps: its maps, by name.
        probes: program name -> the probe that runs it; where a program runs at several,
            "name@function" for each of them.
        printed: lines of trace_printk, the last 10,000.
        why_python: program name -> why each of its hits goes through Python, as one clause; ""
            where compiled code runs it without Python once its probe is optimized.
        why_lines: program name -> source lines that `why_python` is about; none where it is not
            about lines.
        print: called with each line of trace_printk.
    """

    def __init__(
        self, owner: ProgramOwner, program: Program, printed: Callable[[str], None] | None = None
    ) -> None:
        """Make an attachment without probes; attach() makes and registers these.

        Args:
            owner: the Kprobes.
            program: what is attached.
            printed: called with each line of trace_printk; None: the last 10,000 lines are kept
                in the attribute `printed`.
        """
        self._owner = owner
        self.program = program
        self.probes: dict[str, Probe] = {}
        self.why_python: dict[str, str] = {}
        self.why_lines: dict[str, tuple[CodeLine, ...]] = {}
        self.printed: deque[str] = deque(maxlen=LINES)
        self._stop_counting: Callable[[], None] | None = None
        self._semaphores: list[int] = []
        self.print = printed or self.printed.append

    @cached_property
    def debug(self) -> DebugInfo:
        """The guest's debug information, loaded at the first use."""
        from ..debug.info import DebugInfo  # many modules, which most programs do not need

        return DebugInfo(self._owner.machine)

    @property
    def maps(self) -> dict[str, Map]:
        """The program's maps by name; what programs in a guest have written is copied at each
        access.
        """
        for probe in self.probes.values():
            program = program_of(probe)
            if isinstance(program, InGuest):
                program.fetch_maps()
        return self.program.maps

    @property
    def compiled(self) -> str:
        """The kind of a program without a reason in `why_python`: "guest code" or "host code"."""
        return "host code" if self._owner.machine.guest_view is None else "guest code"

    @property
    def runs(self) -> int:
        """How often the programs have run, all together."""
        return sum(
            p.nreturned if isinstance(p, Kretprobe) else p.nhit for p in self.probes.values()
        )

    @property
    def missed(self) -> int:
        """How often a hit did not run its program.

        Another probe's handler was running, or too many calls of the function were being followed.
        """
        return sum(
            missed_of(p) + (p.nmissed if isinstance(p, Kretprobe) else 0)
            for p in self.probes.values()
        )

    def _start(self, ticks: Ticks) -> None:
        """Start counting the guest's instructions, where the programs' clock goes by them; else do
        nothing.

        detach() stops counting.

        Args:
            ticks: the clock of ktime_get_ns.
        """
        clock = self._owner.machine.clock
        if ticks.name == INSTRUCTION_CLOCK and clock is not None:
            self._stop_counting = clock.start()

    def _add_to_semaphores(self, semaphores: Iterable[int]) -> None:
        """Add 1 to semaphores of static tracepoints in guest memory; detach() takes it off again.

        Args:
            semaphores: address of each semaphore.
        """
        for semaphore in semaphores:
            add_to_semaphore(self._owner.machine, semaphore, 1)
            self._semaphores.append(semaphore)

    def detach(self) -> None:
        """Unregister the programs' probes, take 1 off the semaphores, and stop counting
        instructions.

        Maps and counters stay. The second time nothing happens.

        Raises:
            MachineBusy: another thread runs the machine; the probes that are left stay, until this
                is called again.
        """
        for probe in self.probes.values():
            if probe.registered:
                self._owner.unregister(probe)
        while self._semaphores:
            with suppress(GuestFault, MachineClosed):  # the guest has ended, or unmapped it
                add_to_semaphore(self._owner.machine, self._semaphores.pop(), -1)
        if self._stop_counting is not None:
            self._stop_counting()

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, *exc: object) -> None:
        self.detach()

    def __iter__(self) -> Iterator[Probe]:
        return iter(self.probes.values())

    def __repr__(self) -> str:
        places = ", ".join(f"{name} at {p.symbol or p.place()}" for name, p in self.probes.items())
        slow = sorted({why for why in self.why_python.values() if why})
        reasons = "".join(f"; in Python: {why}" for why in slow)
        return f"<Attachment {places}: {self.runs} runs, {self.missed} missed{reasons}>"


def attach(
    owner: ProgramOwner,
    program: Program,
    where: str | int | None = None,
    offset: int = 0,
    retprobe: bool = False,
    *,
    cookie: int = 0,
    clock: Callable[[], int] | str = HOST_CLOCK,
    engine: str | None = None,
    maxactive: int = 0,
    printed: Callable[[str], None] | None = None,
    only: Sequence[str] | None = None,
) -> Attachment:
    """Attach a program's entry functions to probes: verify them, prepare engines, register probes.

    The arguments are those of Kprobes.attach(), but for `owner` and `only`. Where one probe cannot
    be registered, those that are registered already are taken out again.

    Args:
        owner: the Kprobes.
        program: the program, whose entry functions are attached.
        where: a symbol's name or an address; None: each function's section says where.
        offset: bytes that are added to the address of `where`.
        retprobe: True to run the program when the function at `where` returns.
        cookie: a number that the program gets from the helper get_attach_cookie.
        clock: what ktime_get_ns returns: "host", "instructions", or a function that gives ns.
        engine: name of the engine that runs the program; None: the best.
        maxactive: calls that are followed at once at most, of a return probe; 0: the default.
        printed: called with each line of trace_printk; None: Attachment.printed keeps the lines.
        only: names of the entry functions that are attached; None: all.

    Returns:
        The attachment, whose probes are registered.

    Raises:
        ProgramError: `program` is no Program, it is not safe, or nothing says where it goes.
        BadArgument: `clock` is no clock.
        Unsupported: the clock counts instructions, and the machine does not.
        KprobeError: a probe cannot be registered; none is then.
    """
    if not isinstance(program, Program):
        raise ProgramError(
            f"a {type(program).__name__} is no Program",
            hint="make one with Program.from_c(), from_elf() or from_instructions()",
        )
    ticks = clock_of(owner.machine, clock)
    with program.unless_refused():
        attachment = Attachment(owner, program, printed)
        given = None if where is None else Where(where, offset, retprobe, maxactive)
        places = list(_places(owner, program, given, maxactive, attachment, only))
        settings = _RunSettings(cookie, ticks, engine)
        sites = {
            key: _Site(owner, program[name], place, attachment, settings, key)
            for key, name, place in places
        }
        try:
            attachment._start(ticks)
            attachment._add_to_semaphores(
                place.semaphore for _, _, place in places if place.semaphore
            )
            for name, site in sites.items():
                owner.register(site.probe)
                attachment.probes[name] = site.probe
                site.placed()
                attachment.why_python[name] = site.why_python
                attachment.why_lines[name] = site.why_lines
        except BaseException:
            attachment.detach()
            raise
    return attachment


def _places(
    owner: ProgramOwner,
    program: Program,
    given: Where | None,
    maxactive: int,
    attachment: Attachment,
    only: Sequence[str] | None,
) -> Iterator[tuple[str, str, Where]]:
    """Yield (key, name of the entry function, where it goes) for each probe to be made.

    Args:
        owner: the Kprobes.
        program: the program.
        given: where its one entry function goes; None: the sections say it.
        maxactive: calls that are followed at once at most, of a return probe; 0: the default.
        attachment: has the guest's debug information, which names static tracepoints.
        only: names of the entry functions that are attached; None: all.

    Yields:
        The key names the probe in Attachment.probes: "name", or "name@function" where a section's
        pattern means several functions.

    Raises:
        ProgramError: `given` is a place, and there are several programs; or no section says where
            its function belongs, or one of them cannot be attached.
    """
    if given is not None:
        code = program.code
        said = _section_target(code)
        yield code.name, code.name, evolve(given, listed=said is not None and said.listed)
        return
    if only is None and program.broken:
        raise next(iter(program.broken.values()))
    targets = {
        name: found
        for name, code in program.codes.items()
        if (only is None or name in only) and (found := target_of(code)) is not None
    }
    if not targets:
        raise ProgramError(
            "its section does not say where to attach it",
            program=program.name,
            hint="say where: k.attach(prog, 'function')",
        )
    for name, target in targets.items():
        code, symbols = program.codes[name], owner.machine.symbols
        for aim in aims(code, target, symbols, attachment.debug.markers):
            place = Where(
                aim.symbol,
                target.offset,
                target.on in ("return", "sysreturn"),
                maxactive,
                target.on == "session",
                target.listed,
                aim.operands,
                aim.semaphore,
            )
            yield f"{name}@{aim.name}" if aim.name else name, name, place


def _section_target(code: Code) -> SectionTarget | None:
    """Return where a program's section says that the program belongs.

    Called for a program whose place the caller of attach() gives: then only the kind of context is
    taken from the section.

    Args:
        code: the program.

    Returns:
        None: the section says nothing, or names something that guests do not have, such as xdp.
    """
    try:
        return target_of(code)
    except ProgramError:
        return None


@frozen
class Ticks:
    """The clock of ktime_get_ns.

    Attributes:
        name: HOST_CLOCK or INSTRUCTION_CLOCK, which compiled programs read by themselves; "": they
            call Python.
        now: returns the time: in ns, or in instructions.
    """

    name: str
    now: Callable[[], int]


def clock_of(machine: Machine, clock: Callable[[], int] | str) -> Ticks:
    """Return the clock that a caller of attach() named, or gave as a function.

    Args:
        machine: the guest's machine, which may count instructions.
        clock: "host", "instructions", or a function that returns ns.

    Raises:
        BadArgument: `clock` is none of them.
        Unsupported: `clock` is "instructions", and the machine does not count them.
    """
    if clock == HOST_CLOCK or clock is time.monotonic_ns:
        return Ticks(HOST_CLOCK, time.monotonic_ns)
    if clock == INSTRUCTION_CLOCK:
        if machine.clock is None:
            raise Unsupported(
                "this machine does not count instructions",
                hint='use clock="host", or a function that gives ns',
            )
        return Ticks(INSTRUCTION_CLOCK, machine.clock)
    if not callable(clock):
        raise BadArgument(
            f"{clock!r} is no clock",
            hint=f'use "{HOST_CLOCK}", "{INSTRUCTION_CLOCK}", or a function that gives ns',
        )
    return Ticks("", clock)


def _no_layout(where: Where) -> ProgramError:
    """Return the error of a program at a return whose list of arguments is not known.

    Args:
        where: the function.
    """
    return ProgramError(
        "its section has the arguments and the result in one list, and debug information does not "
        "say how many arguments the function has",
        program=str(where.symbol),
        hint='use SEC("kretprobe/function"), or a guest with debug information',
    )


def _operand(code: Code, written: str, machine: Machine) -> Operand:
    """Return an object that reads an operand of a static tracepoint from registers and memory.

    Args:
        code: the program, for the error.
        written: the operand in the compiler's words: `-4@%eax`.
        machine: the guest's machine.

    Raises:
        ProgramError: the operand cannot be read.
    """
    try:
        return resolved(operand_of(written, machine.arch, machine.symbols), machine.symbols)
    except Unfetchable as error:
        raise code.error(
            f"the tracepoint has an argument {written!r}, and {error}",
            hint="read registers: KPROBES_REG(ctx, <arch>_<name>)",
        ) from None


@frozen
class _RunSettings:
    """Settings of a program's runs, the same at all its probes.

    Attributes:
        cookie: returned by get_attach_cookie.
        ticks: the clock of ktime_get_ns.
        engine: name of the engine that is to run it; None: the best.
    """

    cookie: int
    ticks: Ticks
    engine: str | None


class _Site:
    """A program at one address of the guest, with the probe that runs it.

    Attributes:
        probe: runs the program; not registered yet.
        why_python: why each hit runs the program from Python after a stop, as one clause; "":
            compiled code runs it without one.
    """

    def __init__(
        self,
        owner: ProgramOwner,
        program: Program,
        where: Where,
        attachment: Attachment,
        settings: _RunSettings,
        name: str,
    ) -> None:
        """Check that the program fits the guest, prepare what runs it, and make its probe.

        Args:
            owner: the Kprobes.
            program: the program.
            where: the address, or the function, that the probe is for.
            attachment: takes its printed lines; has the guest's debug information.
            settings: of its runs.
            name: the program's name in the attachment.

        Raises:
            ProgramError: it is not safe, or not for this guest.
            Unsupported: the engine cannot run it.
        """
        machine = owner.machine
        cookie = settings.cookie
        ticks = settings.ticks
        engine = settings.engine
        self._name = name
        check(engine, program.code)
        self._owner = owner
        self._attachment = attachment
        layout = self._layout(where) if where.listed else None
        at_entry = where.listed and not where.retprobe and not where.session
        if at_entry and layout is not None and not layout.is_plain:
            at_entry = False
        self._at_entry = at_entry
        program = adapted(
            program, machine.arch, lambda: attachment.debug, at_entry, layout if at_entry else None
        )
        fits(program.code, machine)
        self._place = AtProbe(owner, where.retprobe, cookie, ticks.now)
        self._place.operands = tuple(_operand(program.code, one, machine) for one in where.operands)
        self._where = where
        self._listed: ArgumentList | None = None
        followers = self._prepare(program.code, layout)
        if where.listed and not at_entry:
            if layout is None:
                raise _no_layout(where)
            layout.check(program.code, program.verify(), where.retprobe or where.session)
            self._listed = ArgumentList(layout)
            self._contexts = ContextReader(machine.arch, {*followers})
        else:
            self._contexts = ContextReader(machine.arch, {*words(program, machine), *followers})
        self._result_at = program.result_at if where.retprobe else ""
        self._entry_words = [
            (word, reader(machine.arch, word))
            for word in (program.entry_words if where.retprobe else ())
        ]
        self._session = next((m for m in program.code.maps if m.name == SESSION), None)
        self._print = attachment.print
        self._maps = program.code.maps
        self.why_lines: tuple[CodeLine, ...] = ()
        self.why_python = "" if engine != "interpreter" else "the interpreter was asked for"
        if where.session:
            self.why_python = self.why_python or _ALONE
        elif self._listed is not None:
            self.why_python = self.why_python or _LISTED
        elif self._result_at:
            self.why_python = self.why_python or _RESULT_AT
        elif self._entry_words:
            self.why_python = self.why_python or _ENTRY_WORDS
        self._host = self._guest = None
        if not self.why_python and machine.guest_view is not None:
            self._guest = self._in_guest(program, machine.guest_view, ticks.name)
        elif not self.why_python:
            self._host = self._compiled(program, ticks.name)
        if self._host is None:
            self._engine = program.engine(engine)
            why = program.why_interpreter
            # without host code nothing is compiled for this computer: it has been said
            if why and why not in self.why_python and native.available():
                self.why_python += f"; the interpreter runs it: {why}"
        entry = program.at_entry if where.retprobe else None
        self._keeping = None if entry is None else self._kept(entry, cookie, ticks)
        self.probe = self._probe(where)
        serve_by_program(
            self.probe,
            self._host or self._guest,
            late=where.retprobe,
            keeping=self._keeping,
        )
        if self._guest is not None:
            self._guest.probe = self.probe

    def _layout(self, where: Where) -> ListLayout | None:
        """Return the layout of the list of arguments at an address or function; None: debug
        information does not know the function.
        """
        machine = self._owner.machine
        address = where.symbol
        if isinstance(address, str):
            symbol = machine.symbols.find(address)
            if symbol is None:
                return None
            address = symbol.address
        return known_layout(self._attachment.debug, machine.arch, address + where.offset)

    def _prepare(self, code: Code, layout: ListLayout | None) -> Iterator[int]:
        """Make an engine for each program that the attached program can tail-call (bpf_tail_call).

        The engines go into the program arrays that the program uses, and into those of its
        followers. A generator: nothing is made before its first item is asked for.

        Args:
            code: the attached program's code.
            layout: of the list that the context is, of arguments or with the result; None: it is
                none, or nothing is known of the function.

        Yields:
            Numbers of the context's words that the followers read.

        Raises:
            ProgramError: a follower is not safe, or not for this guest.
        """
        machine = self._owner.machine
        done = list[Code]()

        def make(program: Program) -> Any:
            """Verify a program, note which words it reads, and return its interpreter. The programs
            in its program arrays are prepared likewise, each once.

            Raises ProgramError: it is not safe, or not for this guest.
            """
            ready = adapted(
                program,
                machine.arch,
                lambda: self._attachment.debug,
                self._at_entry,
                layout if self._at_entry else None,
            )
            fits(ready.code, machine)
            facts = ready.verify()
            if layout is not None and not self._at_entry:
                layout.check(ready.code, facts, self._where.retprobe or self._where.session)
            self._followers.extend(words(ready, machine))
            if ready.code not in done:
                done.append(ready.code)
                for m in ready.code.maps:
                    if isinstance(m, Programs) and m not in code.maps:
                        m.prepare(make)
            return ready.engine("interpreter")

        self._followers: list[int] = []
        for m in code.maps:
            if isinstance(m, Programs):
                m.prepare(make)
        yield from self._followers

    def _probe(self, where: Where) -> Probe:
        """Make the probe whose handlers run the program; it is not registered yet.

        It is a Kretprobe for a return or a session, else a Kprobe. Which handlers it has depends on
        what runs the program: an engine, host code, or code in the guest.

        Args:
            where: the address or function, and what of it is probed.
        """
        named = isinstance(where.symbol, str)
        place: dict[str, Any] = {
            "symbol_name" if named else "addr": where.symbol,
            "offset": where.offset,
        }
        if self._keeping is not None:
            return Kretprobe(
                **place,
                handler=self._return_kept,
                entry_handler=self._keep,
                maxactive=where.maxactive,
            )
        keeps = where.listed or self._result_at or self._entry_words
        if where.session or (where.retprobe and keeps):
            return Kretprobe(
                **place, handler=self._left, entry_handler=self._entered, maxactive=where.maxactive
            )
        if where.retprobe:
            return Kretprobe(
                **place,
                handler=self._compiled_hit if self._host else self._returned,
                maxactive=where.maxactive,
            )
        hit: Callable[[Any, Regs], Any] = self._hit
        if self._host:
            hit = self._compiled_hit
        elif self._guest:
            hit = self._hit_in_guest
        return Kprobe(**place, pre_handler=hit)

    def _in_guest(self, program: Program, view: GuestCodeView, clock: str) -> InGuest | None:
        """Put the program's machine code, environment and maps into the guest.

        Args:
            program: the program.
            view: the machine's access to guest memory and code.
            clock: name of the clock of ktime_get_ns.

        Returns:
            The program in the guest; None: Python runs it, and `why_python` is set to the reason.
        """
        try:
            if self._place.returns:
                raise Unsupported(RETURNS)
            return InGuest(program, view, self._place, clock, self._print)
        except Unsupported as error:
            self.why_python = error.reason
            if isinstance(error, NotCompiled):
                self.why_lines = error.lines
        return None

    def _compiled(self, program: Program, clock: str) -> SiteProgram | None:
        """Compile the program to host code that runs at the probe without Python.

        Args:
            program: the program.
            clock: name of the clock of ktime_get_ns.

        Returns:
            The compiled program; None: Python runs it, and `why_python` is set to the reason. Where
            the machine does not run it at returns by itself, `why_python` is set beside a result.
        """
        machine = self._owner.machine
        code = program.code
        place = self._place
        view = machine.host_view
        if view is None:
            self.why_python = "this machine runs no code of the host's at its call sites"
            return None
        place.regs = view.regs
        try:
            made = program.at_sites(view, clock)
        except Unsupported as error:
            self.why_python = error.reason
            if isinstance(error, NotCompiled):
                self.why_lines = error.lines
            return None
        linkage = machine.arch.linkage
        if place.returns and linkage is not None and not linkage.returning.plain:
            self.why_python = (
                f"a return on {machine.arch.name} does not always lead by itself where the caller "
                "wants it"
            )
        elif place.returns and machine.following is None:
            self.why_python = "this machine does not follow calls by itself"
        return SiteProgram(
            code,
            view,
            HostCall(code, place, self._print),
            place.returns,
            clock,
            made=made,
            called=self._owner.program_calls,
        )

    def _kept(self, entry: AtEntry, cookie: int, ticks: Ticks) -> Keeping:
        """Compile the program at the function's entry that keeps values for the one at the return.

        Args:
            entry: the program at the entry, and the map that it writes.
            cookie: returned by get_attach_cookie.
            ticks: the clock of ktime_get_ns.

        Raises:
            Unsupported: one of both programs is not compiled for this machine.
        """
        view = self._owner.machine.host_view
        if view is None or self._host is None:
            raise Unsupported(
                self.why_python or "this machine runs no code of the host's at its call sites"
            )
        code = entry.program.code
        place = AtProbe(self._owner, False, cookie, ticks.now)
        place.regs = view.regs
        program = SiteProgram(
            code,
            view,
            HostCall(code, place, self._print),
            clock=ticks.name,
            made=entry.program.at_sites(view, ticks.name),
            called=self._owner.program_calls,
        )
        return Keeping(program, entry.kept, view)

    def placed(self) -> None:
        """Tell the program its probe's address, once the probe is registered.

        Sets what get_func_ip returns. Updates `why_python` of a program in the guest.
        """
        place = self._place
        address = self.probe.address or 0
        place.function = address if place.returns or self._owner.is_entry(address) else 0
        if (made := self._host or self._guest) is not None:
            made.at(address, place.function, place.cookie())
        if self._keeping is not None:
            self._keeping.program.at(address, place.function, place.cookie())
        if self._guest is not None:
            self.why_python = why_never_optimized(self.probe)

    def _compiled_hit(self, _: object, regs: Regs) -> int:
        """Run the compiled program at a hit that Python serves, as the probe's handler; return
        0.
        """
        assert self._host is not None
        self._host.run(regs.pc)
        return 0

    def _keep(self, instance: Any, regs: Regs) -> None:
        """Run the program of the entry at a hit that Python serves, as an entry handler.

        Args:
            instance: the call that is to be followed; its `data` get what the program has written
                into its map, for _return_kept().
            regs: the guest's registers at the entry.
        """
        assert self._keeping is not None
        instance.data = self._keeping.begin(regs.pc)

    def _return_kept(self, instance: Any, regs: Regs) -> None:
        """Run the compiled program at a return, with the values that the entry's program has kept.

        Args:
            instance: the followed call; its `data` are the bytes that _keep() has put there.
            regs: the guest's registers at the return.
        """
        assert self._keeping is not None
        assert self._host is not None
        self._keeping.give(instance.data)
        self._host.run(regs.pc)

    def _hit_in_guest(self, probe: Probe, regs: Regs) -> int:
        """Run the program in its engine at a hit that has stopped the guest (a pre_handler).

        The program is in the guest, which usually does not stop. What it has written to maps there
        is copied first. Where the guest stops because the probe's jump cannot be made, the reason
        is put into the attachment's `why_python`.

        Args:
            probe: the probe.
            regs: the guest's registers.

        Returns:
            DIVERTED or 0, as of _hit().
        """
        assert self._guest is not None
        without_room = why_without_room(probe)
        if without_room:
            self._attachment.why_python[self._name] = without_room
        self._guest.fetch_maps()
        return self._hit(probe, regs)

    def _fetch_maps(self) -> None:
        """Copy what programs in guests have written to this program's maps into Python's maps."""
        for m in self._maps:
            m.fetch_from_guests()

    def _hit(self, probe: Probe, regs: Regs) -> int:
        """Run the program in its engine at a hit (a pre_handler), on maps that are brought up to
        date first.

        Args:
            probe: the probe, which is not used.
            regs: the guest's registers.

        Returns:
            DIVERTED where the program has overridden the function's result (bpf_override_return),
            else 0.
        """
        self._fetch_maps()
        place = self._place
        place.regs = regs
        place.overridden = False
        listed = self._listed
        if listed is None:
            context = self._contexts.of(regs)
        else:
            context = listed.of_call(listed.arguments(regs), None)
        self._engine.run(context, place, self._print)
        return DIVERTED if place.overridden else 0

    def _returned(self, instance: Any, regs: Regs) -> None:
        """Run the program in its engine at a return, as a return probe's handler, on maps that are
        brought up to date first.

        Args:
            instance: the followed call, which is not used.
            regs: the guest's registers at the return.
        """
        self._fetch_maps()
        self._place.regs = regs
        self._engine.run(self._contexts.of(regs), self._place, self._print)

    def _entered(self, instance: KretprobeInstance, regs: Regs) -> int:
        """Serve a function's entry as a return probe's entry handler.

        The arguments, where the context lists them, and the words that the context at the return
        has of the entry are stored in `instance.data`. A session's program runs now, too.

        Args:
            instance: the call that is to be followed; its data last until its return.
            regs: the guest's registers at the entry.

        Returns:
            1 where the session's program does not want to run at the return; else 0.
        """
        self._fetch_maps()
        place = self._place
        place.regs = regs
        place.returns = False
        if self._listed is not None:
            instance.data["arguments"] = self._listed.arguments(regs)
        kept = {word: read(regs) for word, read in self._entry_words}
        if self._result_at:
            kept[RESULT] = regs[self._result_at]
        instance.data["kept"] = kept
        if not self._where.session:
            return 0
        place.function = self.probe.address or 0
        return self._in_session(instance, regs) & 1

    def _left(self, instance: KretprobeInstance, regs: Regs) -> None:
        """Run the program at the return of a followed call, as a return probe's handler.

        Args:
            instance: the followed call; its data have what _entered() has put there.
            regs: the guest's registers at the return.
        """
        self._fetch_maps()
        place = self._place
        place.regs = regs
        place.returns = True
        self._in_session(instance, regs)

    def _in_session(self, instance: KretprobeInstance, regs: Regs) -> int:
        """Run the program in its engine at a call's entry or return, with the call's cookie.

        Where the program has a cookie (bpf_session_cookie), the cookie is loaded from
        `instance.data` before, and stored there after, even if the program fails.

        Args:
            instance: the followed call.
            regs: the guest's registers.

        Returns:
            The program's result.
        """
        session = self._session
        if self._listed is None:
            context = self._contexts.of(regs, instance.data["kept"])
        else:
            context = self._listed.of_call(
                instance.data["arguments"], regs if self._place.returns else None
            )
        if session is None:
            return self._engine.run(context, self._place, self._print)
        session.block.view[:8] = instance.data.get("cookie", bytes(8))
        try:
            return self._engine.run(context, self._place, self._print)
        finally:
            instance.data["cookie"] = bytes(session.block.view[:8])
