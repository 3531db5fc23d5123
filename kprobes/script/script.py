"""A script that runs: its programs at their places, and what they have Python do."""

from __future__ import annotations

import contextlib
import html
import io
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..clocknames import host_epoch
from ..errors import BadArgument, GuestFault, MachineClosed, ProgramError, Unsupported
from ..programs.isa import MAP, steps
from ..programs.maps import Hash
from . import compiler, values
from .folding import Parameters
from .headers import Headers
from .inference import TypedProbe
from .output import JsonOutput, ScriptOutput, TextOutput
from .performing import Performer
from .placing import Probed, attach, placed
from .points import OUTSIDE, Point
from .source import Message, ScriptError, ScriptSource, span_of
from .storage import DUE, TICK
from .times import strftime
from .world import NoGuest, World

if TYPE_CHECKING:
    from ..events._watchpoint import Watchpoint
    from ..programs.attach import Attachment
    from ..programs.program import Program
    from .guest import GuestWorld

#: how long a run without a guest sleeps at most between looks at its timers, in seconds
_NAP: Final = 0.05
#: seconds between two looks of programs in the guest at their timers, at least
_LEAST: Final = 0.001


def guest_of(kprobes: Probed | None, world: World | None) -> GuestWorld | None:
    """Return the guest of a script; it is made of `kprobes` where `world` is not given.

    Args:
        kprobes: the Kprobes of the guest; None: there is none.
        world: what the script can know of the guest, where that is given; None: it is not.

    Returns:
        None: there is no guest, or `world` stands for none.
    """
    if kprobes is None and world is None:
        return None
    from .guest import GuestWorld  # debug information is not loaded for a script without a guest

    if world is not None:
        return world if isinstance(world, GuestWorld) else None
    assert kprobes is not None
    return GuestWorld(kprobes.machine)


class Outside:
    """The place where begin, end and interval probes run, which is not in the guest (a
    call.RunPlace).

    Helpers of such a program call these methods.

    Attributes:
        cpu: always 0.
    """

    cpu = 0

    def __init__(self, read: Callable[[int, int], bytes] | None, clock: Callable[[], int]) -> None:
        """Prepare.

        Args:
            read: reads guest memory; None: there is no guest.
            clock: returns what nsecs is.
        """
        self._read = read
        self.clock = clock

    def read(self, addr: int, size: int) -> bytes:
        """Return `size` bytes of guest memory at an address. Raises ProgramError where there is no
        guest.
        """
        if self._read is None:
            raise ProgramError("there is no guest whose memory could be read")
        return self._read(addr, size)

    def pid_tgid(self) -> int:
        """Return this process's number as process and as thread: in the upper and the lower 32
        bits.
        """
        return os.getpid() << 32 | os.getpid()

    def comm(self) -> bytes:
        """Return b"bpftrace", the name that scripts expect of the process that runs them."""
        return b"bpftrace"

    def stack(self, skip: int, depth: int) -> list[int]:
        """Return []: there is no call stack.

        Args:
            skip: not used.
            depth: not used.
        """
        return []

    def override(self, value: int) -> None:
        """Raise ProgramError: no function is probed that could return `value` at once."""
        raise ProgramError("there is no function to skip outside of the guest")

    def func_ip(self) -> int:
        """Return 0: there is no function."""
        return 0

    def cookie(self) -> int:
        """Return 0: no attach point has given the program a number."""
        return 0

    def marker_argument(self, number: int) -> None:
        """Return None: there is no static tracepoint."""

    def at_return(self) -> bool:
        """Return False: no function has returned."""
        return False

    def symbol(self, addr: int) -> None:
        """Return None: scripts look up the names of addresses in Python."""


class Pace:
    """A thread that sets a byte to 1 at intervals, so that programs in the guest then call
    Python.
    """

    def __init__(self, tick: memoryview, seconds: float) -> None:
        """Start the thread.

        Args:
            tick: the byte.
            seconds: the interval.
        """
        self._tick = tick
        self._seconds = seconds
        self._over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        """Set the byte at intervals until end() is called."""
        while not self._over.wait(self._seconds):
            self._tick[0] = 1

    def end(self) -> None:
        """Have the thread end; does not wait for it."""
        self._over.set()


def chosen(points: list[list[Point]], probe_filter: str, mode: str | None) -> list[list[Point]]:
    """Return the attach points in which a regular expression is found, and those of begin and end.

    Args:
        points: the attach points of each block.
        probe_filter: the expression.
        mode: `test` or `bench`: probes of the other kind are left out; None: probes of both kinds
            are.

    Returns:
        The attach points of each block, in the same order; an empty list for a block with none
        left.

    Raises:
        BadArgument: `probe_filter` is no regular expression.
    """
    try:
        pattern = re.compile(probe_filter)
    except re.error as error:
        raise BadArgument(
            f"Invalid --probe-filter regex: {error}", hint="give a regular expression"
        ) from None
    left_out = {"test", "bench"} - {mode}
    return [
        [
            point
            for point in of_block
            if point.kind not in left_out
            and (point.kind in ("begin", "end") or pattern.search(point.text))
        ]
        for of_block in points
    ]


def _tables(program: Program) -> set[str]:
    """Return the names of the maps with keys that a program uses."""
    code = program.code
    used = {i.imm for _, i in steps(code.instructions) if i.wide and i.src == MAP}
    return {code.maps[n].name for n in used if isinstance(code.maps[n], Hash)}


class Script:
    """A script at the probes of a guest, or alone.

    A context manager: entering attaches its probes and runs `begin`, leaving detaches them, runs
    `end` and prints the maps.

    Attributes:
        source: its text.
        settings: settings from its config block and the environment.
        warnings: the warnings, as bpftrace writes them.
        status: the status that exit() was given; 0.
        ended: True once exit() was called.
        attachments: attachments and watchpoints of its programs in the guest.
        attaching: the attach point that could not be attached; None: there is none.
    """

    def __init__(
        self,
        text: str,
        *,
        kprobes: Probed | None = None,
        world: World | None = None,
        name: str = "stdin",
        parameters: Parameters | None = None,
        output: ScriptOutput | None = None,
        unsafe: bool = False,
        clock: Callable[[], int] | str = "host",
        engine: str | None = None,
        quiet: bool = False,
        environment: Mapping[str, str] = os.environ,
        probe_filter: str = "",
        mode: str | None = None,
        wary: bool = False,
        headers: Headers | None = None,
    ) -> None:
        """Compile a script; nothing is attached yet.

        Args:
            text: the script.
            kprobes: the Kprobes of the guest; None: there is none.
            world: what the script can know of the guest; None: what `kprobes` has.
            name: what messages call it: `stdin`, a file's path.
            parameters: what was given behind it.
            output: takes what it prints; None: it is kept for `output`.
            unsafe: True where it may change the guest, or run programs of the host.
            clock: what nsecs is: "host", "instructions", or a function that gives ns.
            engine: name of the engine that runs its programs; None: the best.
            quiet: True does not print how many probes there are.
            environment: the process's.
            probe_filter: a regular expression; probes whose name it is not found in are left out,
                but for begin and end.
            mode: `test` or `bench`, whose probes are there only then.
            wary: True warns of keys that a map has not, and of guest memory that cannot be read.
            headers: headers that stand in front of it, and where others are; None: others are
                looked for beside it.

        Raises:
            ScriptError: it is wrong.
            ProgramError: it cannot be made into programs.
            BadArgument: `probe_filter` is no regular expression.
            Unsupported: `clock` is "instructions", and the machine does not count them.
        """
        self._kprobes = kprobes
        self._engine = engine
        self._quiet = quiet
        self._ticks = clock
        self._guest = guest_of(kprobes, world)
        self._world: World = world or self._guest or NoGuest()
        self._kept, self._errors = io.StringIO(), io.StringIO()
        self._output = output or TextOutput(self._kept.write, self._errors.write)
        self._begun = 0
        self.attachments: list[Attachment | Watchpoint] = []
        self.attaching: Point | None = None
        self.source = ScriptSource(name, text)
        front = compiler.read(
            self.source,
            parameters or Parameters(),
            environment,
            self._world.bits,
            headers or Headers(beside=os.path.dirname(name)),
        )
        self.settings = front.settings
        front.points = chosen(front.points, probe_filter, mode)
        probes = placed(front, self._guest, unsafe)
        front.found.check()
        machine = kprobes.machine if kprobes is not None else None
        self._place = Outside(machine.read if machine is not None else None, self._clock())
        self._compiled = compiler.translate(
            front,
            probes,
            self._world,
            unsafe,
            machine is not None and machine.guest_view is not None,
            wary,
        )
        self.warnings = [message.shown(self.source) for message in front.found.warnings]
        self._performer = Performer(
            self.source, self.settings, self._compiled, self._decoder(), self._output
        )
        self._drained = False
        self._placed = False
        self._timers = [
            (point, program)
            for probe, program in self._compiled.programs
            for point in probe.points
            if point.kind in ("interval", "profile")
        ]
        self._due: list[int] = []
        self._pace: Pace | None = None
        self._traced: list[Point] = []

    # --- making it

    def _clock(self) -> Callable[[], int]:
        """Return the function that returns the script's time in ns, or in instructions.

        A function that was given is returned itself. Without a guest, "instructions" means the
        host's monotonic clock, too.

        Raises:
            Unsupported: instructions are asked for, and the machine does not count them.
        """
        if callable(self._ticks):
            return self._ticks
        if self._ticks != "instructions" or self._kprobes is None:
            return time.monotonic_ns
        counted: Callable[[], int] | None = self._kprobes.machine.clock
        if counted is None:
            raise Unsupported(
                "this machine does not count instructions",
                hint='use clock="host", or a function that gives ns',
            )
        return counted

    def _decoder(self) -> values.Decoder:
        """Make the decoder of the script's values.

        It takes symbols and source lines from the guest, if there is one; times count from 1970
        only by the host's clock.
        """
        guest = self._guest
        symbols = values.nowhere
        if guest is not None:
            demangles = self.settings.cpp_demangle
            symbols = guest.describe_as_written if demangles else guest.describe
        sources = guest.sources if guest is not None else values.unknown
        since = host_epoch() if self._clock() is time.monotonic_ns else 0
        return values.Decoder(
            self.settings,
            self._world.bits,
            self._world.order,
            symbols,
            self._compiled.storage.texts,
            strftime,
            since,
            sources,
        )

    # --- running it

    @property
    def status(self) -> int:
        """The status that exit() was given."""
        return self._performer.status

    @property
    def ended(self) -> bool:
        """Whether exit() was called."""
        return self._performer.ended

    def __enter__(self) -> Script:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.finish()

    def attach(self) -> None:
        """Attach the probes. No effect the second time.

        `attachments` gets the attachments and watchpoints. The present time is written to memory,
        for `elapsed`; semaphores of USDT markers are raised.

        Raises:
            KprobeError: a probe cannot be attached, which `attaching` says; then nothing is.
        """
        if self._placed:
            return
        self._begun = self._clock()()
        self._compiled.variables.block.view[:8] = self._begun.to_bytes(8, sys.byteorder)
        every = [point for probe, _ in self._compiled.programs for point in probe.points]
        try:
            if self._kprobes is not None:
                for probe, program in self._in_order():
                    for number, point in enumerate(probe.points):
                        if point.kind not in OUTSIDE:
                            self.attaching = point
                            self.attachments.append(self._attach(point, number, program))
                self.attaching = None
                self._add_to_semaphores(every)
        except BaseException:
            self._detach()
            raise
        self._placed = True

    def _attach(self, point: Point, number: int, program: Program) -> Attachment | Watchpoint:
        """Attach a program to one attach point in the guest.

        Where no engine was asked for, an entry's program that shares a table with one at the
        function's return runs in the interpreter, and the attachment's `why_python` says so.

        Args:
            point: the attach point.
            number: its number in its block.
            program: the block's program.

        Raises:
            KprobeError: it cannot be attached there.
        """
        assert self._kprobes is not None
        shared = self._shared_with_return(point, program)
        engine = "interpreter" if shared and self._engine is None else self._engine
        with self._explained(program):
            made = attach(self._kprobes, point, number, program, self._ticks, engine, self.woken)
        from ..programs.attach import Attachment

        if shared and self._engine is None and isinstance(made, Attachment):
            for name in made.why_python:
                made.why_python[name] = (
                    f"the guest stops at the function's return anyway, for what reads {shared}"
                )
        return made

    def _shared_with_return(self, point: Point, program: Program) -> str:
        """Return the name of a table that a program at a function's entry in a process shares with
        one at the function's return; of several, the first by name.

        Programs at returns are Python's in a process under QEMU, which copies its tables to and fro
        for them: that takes longer than one more stop, at the entry.

        Args:
            point: the attach point.
            program: its block's program.

        Returns:
            "": there is no such table, it is no entry, or programs run elsewhere.
        """
        assert self._kprobes is not None
        if self._kprobes.machine.guest_view is None or point.returns:
            return ""
        tables = _tables(program)
        for probe, other in self._compiled.programs:
            if any(one.returns and one.address == point.address for one in probe.points):
                shared = tables & _tables(other)
                if shared:
                    return min(shared)
        return ""

    def start(self) -> None:
        """Attach the probes, print how many there are unless the script is quiet, run `begin`, and
        start the timers.

        Raises:
            KprobeError: a probe cannot be attached; then nothing is.
        """
        self.attach()
        self._set_timers()
        if not self._quiet:
            self._output.attached_probes(self._attached())
        self._fire("begin")
        self._wind_timers()  # the first period begins behind `begin`, however long that took

    def _attached(self) -> int:
        """Return the number of attached probes, those outside the guest (begin, timers) included.

        A USDT marker at several addresses counts once.
        """
        markers = {
            (probe.probe.span, point.text)
            for probe, _ in self._compiled.programs
            for point in probe.points
            if point.kind == "usdt"
        }
        others = [
            point
            for probe, _ in self._compiled.programs
            for point in probe.points
            if point.kind != "usdt"
        ]
        return len(markers) + len(others)

    def _in_order(self) -> list[tuple[TypedProbe, Program]]:
        """Return the programs in the order in which they are attached.

        Of the programs at one instruction the one that was attached last runs first, and the
        script's first block is to run first: so entries come in reverse. At returns the first
        attached runs first.
        """
        entries: list[tuple[TypedProbe, Program]] = []
        others: list[tuple[TypedProbe, Program]] = []
        for one in self._compiled.programs:
            first = one[0].points[0]
            (entries if first.at_code and not first.returns else others).append(one)
        return [*reversed(entries), *others]

    def _add_to_semaphores(self, points: list[Point]) -> None:
        """Add 1 to the semaphores of USDT markers in guest memory, which _detach() takes off again.

        Args:
            points: attach points; those of other kinds have no semaphore, and are passed over.
        """
        from ..programs.attach import add_to_semaphore

        assert self._kprobes is not None
        for point in points:
            if point.semaphore:
                add_to_semaphore(self._kprobes.machine, point.semaphore, 1)
                self._traced.append(point)

    def _detach(self) -> None:
        """Detach all programs, and take 1 off the markers' semaphores; no error where the guest is
        gone.
        """
        if not self.attachments and not self._traced:
            return
        from ..programs.attach import Attachment, add_to_semaphore

        for one in self.attachments:
            if isinstance(one, Attachment):
                one.detach()
            else:
                one.remove()
        while self._traced:
            assert self._kprobes is not None
            # the guest has ended, or unmapped it
            with contextlib.suppress(GuestFault, MachineClosed):
                add_to_semaphore(self._kprobes.machine, self._traced.pop().semaphore, -1)

    def _fire(self, kind: str) -> None:
        """Run the programs of all probes of a kind outside of the guest, such as `begin`.

        After exit() only those of `end` run.

        Args:
            kind: "begin", "end", ...
        """
        for probe, program in self._compiled.programs:
            for point in probe.points:
                if point.kind == kind and (kind == "end" or not self.ended):
                    self.run(program)

    def run(self, program: Program) -> int:
        """Run one program without a hit, then do what it asks for (print, exit and the like).

        Args:
            program: one of the script's.

        Returns:
            The number that the program returns: what a test's block returns.
        """
        for table in self._compiled.maps.values():
            table.fetch_from_guests()
        with self._explained(program):
            engine = program.engine(self._engine)
        result = engine.run(b"", self._place, lambda text: self.poll())
        self.poll()
        return result

    def verify(self) -> None:
        """Verify all programs, as attach() and run() do.

        Raises:
            ScriptError: one is not safe, or that could not be shown.
        """
        for program in self.programs:
            with self._explained(program):
                program.verify()

    @contextlib.contextmanager
    def _explained(self, program: Program) -> Iterator[None]:
        """Turn a refusal of a program's instruction into an error about a part of the script.

        Any other exception of the with block is passed on.

        Args:
            program: what the with block verifies or attaches.

        Raises:
            ScriptError: the with block has raised a ProgramError about one instruction.
        """
        try:
            yield
        except ProgramError as error:
            line = None if error.instruction is None else program.code.line(error.instruction)
            if line is None:
                raise
            hints = (error.hint,) if error.hint else ()
            said = f"the verifier refuses what is made of this: {error.reason}"
            raise ScriptError(
                [Message("ERROR", said, span_of(line), hints)], self.source
            ) from error

    def named(self, kind: str) -> list[tuple[str, Program]]:
        """Return the `test:` or `bench:` probes.

        Args:
            kind: `test` or `bench`.

        Returns:
            (the probe's name, its program) of each.
        """
        return [
            (point.function, program)
            for probe, program in self._compiled.programs
            for point in probe.points
            if point.kind == kind
        ]

    def poll(self) -> None:
        """Read what programs have put into the ring so far, and do it: print, call exit() and the
        like.
        """
        self._performer.drain()

    def woken(self, text: str) -> None:
        """Do what programs have asked for, run timers that are due, and stop the machine after
        exit().

        After exit() it also sets the byte by which programs in the guest end at once.

        A program in the guest calls it by printing a line, when Python is to read the ring.

        Args:
            text: the line; not used.
        """
        tick = self._compiled.variables.block.view[TICK : TICK + 1]
        if self._pace is not None:
            tick[0] = 0
        self.poll()
        self._fire_due()
        if self.ended and self._kprobes is not None:
            self._compiled.variables.block.view[TICK + 1] = 1
            machine: Any = self._kprobes.machine
            machine.stop()

    @property
    def alone(self) -> bool:
        """Whether the script has only begin, end and self probes, so nothing in the guest and no
        timers.
        """
        return all(
            point.kind in ("begin", "end", "self")
            for probe, _ in self._compiled.programs
            for point in probe.points
        )

    def _fire_due(self) -> None:
        """Run the programs of timers whose time has come by the script's clock, once each.

        Periods that were missed are dropped. After exit() nothing runs.
        """
        now = self._place.clock()
        for number, (point, program) in enumerate(self._timers):
            if now >= self._due[number] and not self.ended:
                missed = (now - self._due[number]) // point.period
                self._due[number] += (missed + 1) * point.period
                self.run(program)
        self._tell_due()

    def _wind_timers(self) -> None:
        """Set the next time of each timer to a period from now, by the script's clock."""
        now = self._place.clock()
        self._due = [now + point.period for point, _ in self._timers]
        self._tell_due()

    def _tell_due(self) -> None:
        """Write the next time of any timer where programs in the guest compare the time with it."""
        if self._timers:
            soonest = min(self._due).to_bytes(8, sys.byteorder)
            self._compiled.variables.block.view[DUE : DUE + 8] = soonest

    def _set_timers(self) -> None:
        """Set each timer's next time, and have programs in the guest call Python at intervals if
        needed.

        That is needed where there is a guest, and the script prints or has timers, unless each
        record wakes Python at once. By the host's clock, a thread is started that sets the byte
        that programs look at; by another clock the byte stays set, for timers only.
        """
        self._wind_timers()
        if (
            self._kprobes is None
            or self._compiled.storage.at_once
            or not compiler.speaks([probe for probe, _ in self._compiled.programs])
        ):
            return
        tick = self._compiled.variables.block.view[TICK : TICK + 1]
        if self._clock() is not time.monotonic_ns:  # another clock: only a look at it tells
            tick[0] = bool(self._timers)
            return
        periods = [point.period / 1e9 for point, _ in self._timers]
        self._pace = Pace(tick, max(_LEAST, min([_NAP, *periods])))

    def wait(self, until: Callable[[], bool] = lambda: False) -> None:
        """Sleep, and run timers, until exit() was called or `until` returns True.

        Returns at once where the script has neither timers nor `self` probes.

        Args:
            until: asked between timers.
        """
        listens = any(
            point.kind == "self" for probe, _ in self._compiled.programs for point in probe.points
        )
        while (self._timers or listens) and not self.ended and not until():
            self._fire_due()
            soonest = min(self._due, default=self._place.clock() + int(_NAP * 1e9))
            time.sleep(min(_NAP, max(0, soonest - self._place.clock()) / 1e9))

    @contextlib.contextmanager
    def told_by_signals(self) -> Iterator[None]:
        """Run `self:signal` probes when this process gets SIGUSR1 inside a with block. At its end
        the handler that was set before is set again. Without such probes, and on Windows, nothing
        is done.
        """
        if not any(
            point.kind == "self" for probe, _ in self._compiled.programs for point in probe.points
        ):
            yield
            return
        if not hasattr(signal, "SIGUSR1"):  # Windows: nobody can send it
            yield
            return
        before = signal.signal(signal.SIGUSR1, lambda number, frame: self._fire("self"))
        try:
            yield
        finally:
            # None: a library in C has set the handler, which Python cannot set again
            signal.signal(signal.SIGUSR1, signal.SIG_DFL if before is None else before)

    def finish(self) -> None:
        """Detach the probes, run `end`, and print the maps unless the settings say no; stop the
        timers.

        No effect the second time.

        Raises:
            MachineBusy: another thread runs the machine; the probes that are left stay, until this
                is called again.
        """
        if self._drained:
            return
        if self._pace is not None:
            self._pace.end()
        self._detach()
        self._drained = True
        self.poll()
        self._fire("end")
        self.poll()
        self._output.end()
        if self.settings.print_maps_on_exit:
            for name in self._performer.names():
                self._performer.show(name, final=True)

    # --- what came out

    @property
    def output(self) -> str:
        """The text that the script has printed so far, where no other output was given.

        Before finish(), what programs have asked for is done first, as by poll().
        """
        if not self._drained:
            self.poll()
        return self._kept.getvalue()

    @property
    def errors(self) -> str:
        """The text that the script has written to standard error, where no other output was
        given.
        """
        return self._errors.getvalue()

    @property
    def maps(self) -> Mapping[str, Any]:
        """The maps, by name: of one with keys a mapping, of one without its value.

        Before finish(), what programs have asked for is done first, as by poll().
        """
        return self._shown_maps()

    def _shown_maps(self) -> ScriptMaps:
        """Do what programs have asked for, unless finish() has, and return the maps."""
        if not self._drained:
            self.poll()
        return ScriptMaps(self._performer)

    def json(self) -> str:
        """Return all maps as bpftrace writes them with `-f json`."""
        return self._shown_maps().shown(JsonOutput)

    @property
    def programs(self) -> list[Program]:
        """The script's programs, in the order of the text."""
        return [program for _, program in self._compiled.programs]

    def __repr__(self) -> str:
        count = len(self._compiled.programs)
        return f"<Script {self.source.name}: {count} program{'s' * (count != 1)}>"


class ScriptMaps(Mapping[str, Any]):
    """A script's maps by name, with or without `@`; shown as bpftrace prints them."""

    def __init__(self, performer: Performer) -> None:
        self._performer = performer

    def __getitem__(self, name: str) -> Any:
        name = name if name.startswith("@") else f"@{name}"
        return self._performer.contents(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._performer.names())

    def __len__(self) -> int:
        return len(self._performer.names())

    def shown(self, form: type[TextOutput] | type[JsonOutput]) -> str:
        """Return all maps that have a value, as they are printed at the end of a run.

        Args:
            form: writes them: as text, or as JSON.
        """
        out = io.StringIO()
        output = form(out.write, out.write)
        for name in self._performer.names():
            self._performer.show(name, final=True, output=output)
        return out.getvalue()

    def __repr__(self) -> str:
        return self.shown(TextOutput).rstrip("\n") or "<no maps>"

    def _repr_html_(self) -> str:
        """Return the text for notebooks."""
        return f"<pre>{html.escape(repr(self))}</pre>"


__all__ = ["Script", "ScriptMaps"]
