"""A place of an event: its probe, and what a hit there left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ..clocknames import HOST_CLOCK
from ..core.probe import Kprobe, Kretprobe, Probe
from ..errors import GuestFault, MachineClosed
from ..machine._base import Machine
from ..regs import Regs
from ..stacks import addresses_of, is_incomplete
from ._event import Event
from ._handler import Handler
from ._record import Record
from ._recording import saver
from ._watchpoint import WatchHandler, Watchpoint

if TYPE_CHECKING:
    from ..programs.program import Program
    from ._buffer import Buffer, Row
    from ._program import EventProgram, RecordReader


class Attached(Protocol):
    """The result of attach()."""

    probes: dict[str, Probe]
    why_python: dict[str, str]

    def detach(self) -> None: ...


class Owner(Protocol):
    """The Kprobes."""

    machine: Machine

    def register(self, probe: Probe) -> None: ...
    def unregister(self, probe: Probe) -> None: ...
    def enable(self, probe: Probe) -> None: ...
    def disable(self, probe: Probe) -> None: ...
    def watchpoint(self, where: str | int, size: int, access: str = "w",
                   handler: WatchHandler | None = None) -> Watchpoint: ...
    @property
    def kept_stack(self) -> Callable[[Regs], tuple[int, ...]]: ...
    def original(self, addr: int, size: int) -> bytes: ...
    def attach(self, program: Program, where: str | int | None = None, offset: int = 0, retprobe: bool = False,
               *, cookie: int = 0, clock: Callable[[], int] | str = "host", engine: str | None = None,
               maxactive: int = 0, printed: Callable[[str], None] | None = None) -> Attached: ...


class Place:
    """A probe of an event, and what its hits leave (a buffer's Member).

    Attributes:
        definition: of this place.
        cookie: its number in the buffer.
        probe: what is registered; None: nothing now.
        looks: its marker's semaphore counts it.
        compiled: it runs a program.
        reader: reads records that a program or the machine has made of its hits.
        why: of a place of a remote guest that a program cannot be reached from without a
            stop: why.
        hits, missed: of probes that are gone.
    """

    def __init__(self, definition: Event, buffer: Buffer) -> None:
        self.definition, self.cookie = definition, buffer.admit(self)
        self.probe: Probe | Watchpoint | None = None
        self.reader: RecordReader | None = None
        self.compiled = self.looks = False
        self.hits = self.missed = 0
        self.why = ""

    def attach(self, owner: Owner, program: EventProgram) -> bool:
        """Register the probe that runs the program; False, and a reason: a remote guest would stop here at every hit,
        as it does for Python."""
        self.reader, made = program, attached(owner, program, self.definition, self.cookie)
        self.why = next(iter(made.why_python.values())) if owner.machine.guest_view is not None else ""
        self.compiled = not self.why
        if self.why:
            made.detach()
        else:
            self.probe = probe_at(made)
        return self.compiled

    def look(self, owner: Owner, on: bool) -> None:
        """Have the program know whether somebody looks at its marker."""
        if self.looks is not on:
            look(owner, self.definition, on)
            self.looks = on

    def unlook(self, owner: Owner) -> None:
        """Take back look(): nobody looks at the marker any more."""
        if self.looks:
            self.looks = False
            unlook(owner, self.definition)

    def counts(self) -> tuple[int, int]:
        """(hits, missed), of all its probes."""
        hits, missed = counts_of(self.probe)
        return self.hits + hits, self.missed + missed

    def wrote(self, data: bytes) -> bool:
        """Return True where the place's program may have written a record."""
        return self.reader is not None and len(data) == self.reader.size

    def record(self, row: Row) -> Record:
        """Return the record of what a handler or a program has left."""
        number, _, values, *rest = row
        if rest:
            cpu, task, caller, stack = rest
        else:
            assert self.reader is not None
            values, caller = self.reader.decode(values)
            cpu, task, stack = 0, 0, ()
        args = {arg.name: value for arg, value in zip(self.definition.args, values, strict=True)}
        return Record(self.definition.name, number, cpu, task, args, addresses_of(stack), self.definition.address,
                      caller, incomplete=is_incomplete(stack))


def look(owner: Owner, event: Event, on: bool) -> None:
    """Raise the semaphore of an event's marker, or lower it again. GuestFault: its semaphore is not there."""
    if event.semaphore:
        machine = owner.machine
        order: Any = machine.arch.order.value
        count = int.from_bytes(machine.read(event.semaphore, 2), order) + (1 if on else -1)
        machine.write(event.semaphore, (count & 0xFFFF).to_bytes(2, order))


def unlook(owner: Owner, event: Event) -> None:
    """Lower the semaphore; of no effect where the guest has unmapped the semaphore, or the machine is closed."""
    with suppress(GuestFault, MachineClosed):
        look(owner, event, False)


def probe_of(event: Event, machine: Machine, hit: Handler, disabled: bool = False) -> Probe:
    """The probe that calls an event's handler; what is to be fetched at the function's entry is saved there."""
    place: dict[str, Any] = ({"symbol_name": event.symbol, "offset": event.offset} if event.symbol
                             else {"addr": event.target})
    if event.kind == "p":
        return Kprobe(pre_handler=hit, disabled=disabled, **place)

    def entered(ri: Any, regs: Regs) -> None:
        ri.data["saved"] = event.enter(regs)

    made = Kretprobe(handler=hit, entry_handler=saver(event, machine, entered) if event.saves else None,
                     maxactive=event.maxactive, disabled=disabled, **place)
    made._late = 1
    return made


def attached(owner: Owner, made: EventProgram, event: Event, cookie: int, clock: str = HOST_CLOCK) -> Attached:
    """An event's program, at its place. clock: what its records' times are of, if they have any."""
    where = event.symbol or event.target
    return owner.attach(made.program, where, event.offset, event.kind == "r", cookie=cookie, clock=clock,
                        maxactive=event.maxactive)


def probe_at(attachment: Attached) -> Probe:
    """The registered probe that runs it."""
    return next(iter(attachment.probes.values()))


def counts_of(probe: Any) -> tuple[int, int]:
    """(hits, missed) of a probe; a return probe's hits are its returns."""
    if probe is None:
        return 0, 0
    if isinstance(probe, Watchpoint):
        return probe.nhit, probe.nmissed
    return ((probe.nreturned, probe.nmissed + probe.entry_nmissed) if probe.family == "r"
            else (probe.nhit, probe.nmissed))
