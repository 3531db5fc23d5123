"""A place of an event: its probe, and the records of its hits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ..attacher import Attacher
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
    from ..programs.attach import Attachment
    from ._buffer import Buffer, Row
    from ._program import EventProgram, RecordReader


class EventOwner(Attacher, Protocol):
    """The Kprobes, as events need them.

    Attributes:
        machine: the guest.
    """

    machine: Machine

    def register(self, probe: Probe) -> None:
        """Register a probe."""

    def unregister(self, probe: Probe) -> None:
        """Unregister a probe."""

    def enable(self, probe: Probe) -> None:
        """Have hits of a registered probe served."""

    def disable(self, probe: Probe) -> None:
        """Have hits of a registered probe cost nothing, and call no handler; it stays
        registered.
        """

    def watchpoint(
        self, where: str | int, size: int, access: str = "w", handler: WatchHandler | None = None
    ) -> Watchpoint:
        """Watch guest memory, and return the watchpoint.

        Args:
            where: a symbol's name, or an address.
            size: bytes.
            access: "r", "w" or "rw": which accesses are reported.
            handler: called at each hit with the watchpoint and the registers; None: they are
                counted.
        """

    @property
    def kept_stack(self) -> Callable[[Regs], tuple[int, ...]]:
        """The function from the registers at a hit to the call stack, a tuple of addresses."""

    def original(self, addr: int, size: int) -> bytes:
        """Return `size` bytes of guest code at the address `addr`, as they are without probes."""


class EventPlace:
    """A place of an event: its probe, and what its hits leave (a BufferMember).

    Attributes:
        definition: the event, at this place.
        cookie: the place's number in the buffer.
        probe: what is registered; None: nothing now.
        raised: True while this place has added 1 to the semaphore of its marker.
        compiled: it runs a program.
        reader: decodes records that a program or the machine has made of its hits.
        why: why a guest under a debugger would stop at each hit, which a program is to avoid; "":
            it does not.
        hits: of probes that are gone.
        missed: hits of probes that are gone at which no handler ran.
    """

    def __init__(self, definition: Event, buffer: Buffer) -> None:
        """Add the place to the buffer's members, which gives it its `cookie`; nothing is
        registered.
        """
        self.definition = definition
        self.cookie = buffer.admit(self)
        self.probe: Probe | Watchpoint | None = None
        self.reader: RecordReader | None = None
        self.compiled = False
        self.raised = False
        self.hits = 0
        self.missed = 0
        self.why = ""

    def attach(self, owner: EventOwner, program: EventProgram) -> bool:
        """Register a probe that runs the event's program.

        Where the program cannot run in a remote guest, each hit would stop the guest all the same:
        then the program is taken off again, and no probe is registered. Sets `reader`, `why` and
        `compiled`, and `probe` where it stays.

        Args:
            owner: registers the probe.
            program: the program.

        Returns:
            True: the probe is registered. False: nothing is; `why` has the reason.

        Raises:
            KprobeError: the probe cannot be registered.
        """
        self.reader = program
        made = attached(owner, program, self.definition, self.cookie)
        self.why = ""
        if owner.machine.guest_view is not None:
            self.why = next(iter(made.why_python.values()))
        self.compiled = not self.why
        if self.why:
            made.detach()
        else:
            self.probe = probe_at(made)
        return self.compiled

    def set_semaphore(self, owner: EventOwner, on: bool) -> None:
        """Add 1 to the semaphore of the place's marker, or take this 1 off: so the guest sees that
        the marker is traced. `raised` says which was done last.

        Nothing is done where this place has done so already, or the marker has no semaphore.

        Args:
            owner: has the machine.
            on: True: add; False: subtract.

        Raises:
            GuestFault: the semaphore is not mapped.
        """
        if self.raised is not on:
            add_to_semaphore(owner, self.definition, 1 if on else -1)
            self.raised = on

    def lower_semaphore(self, owner: EventOwner) -> None:
        """Take 1 off the semaphore of the place's marker if set_semaphore() has added it. Nothing
        is raised.
        """
        if self.raised:
            self.raised = False
            lower_semaphore(owner, self.definition)

    def counts(self) -> tuple[int, int]:
        """Return (hits, hits at which no handler ran), of all probes that it has had."""
        hits, missed = counts_of(self.probe)
        return self.hits + hits, self.missed + missed

    def wrote(self, data: bytes) -> bool:
        """Return True where bytes from the ring may be a record of this place."""
        return self.reader is not None and len(data) == self.reader.size

    def record(self, row: Row) -> Record:
        """Return the record that a row of the buffer stands for, without a time. One that a program
        has written has CPU and task 0, and no stack; its values and return address are in its
        bytes.

        Args:
            row: (number, cookie, values, cpu, task, return address, stack), as a handler in Python
                makes it; or (number, cookie, bytes) of a record that a program has written.
        """
        number, _, values, *rest = row
        if rest:
            cpu, task, caller, stack = rest
        else:
            assert self.reader is not None
            values, caller = self.reader.decode(values)
            cpu = 0
            task = 0
            stack = ()
        args = {arg.name: value for arg, value in zip(self.definition.args, values, strict=True)}
        return Record(
            self.definition.name,
            number,
            cpu,
            task,
            args,
            addresses_of(stack),
            self.definition.address,
            caller,
            incomplete=is_incomplete(stack),
        )


def add_to_semaphore(owner: EventOwner, event: Event, by: int) -> None:
    """Add a number to the semaphore of an event's marker in guest memory.

    The guest reads the semaphore to see whether the marker is traced. Nothing is done for an event
    without a semaphore.

    Args:
        owner: has the machine.
        event: the event.
        by: the number: 1, or -1.

    Raises:
        GuestFault: the semaphore is not mapped.
    """
    if event.semaphore:
        machine = owner.machine
        order: Any = machine.arch.order.value
        count = int.from_bytes(machine.read(event.semaphore, 2), order) + by
        machine.write(event.semaphore, (count & 0xFFFF).to_bytes(2, order))


def lower_semaphore(owner: EventOwner, event: Event) -> None:
    """Subtract 1 from the semaphore of an event's marker, if it still can be written.

    Nothing is done, and nothing raised, if the guest has unmapped it or the machine is closed.

    Args:
        owner: has the machine.
        event: the event.
    """
    with suppress(GuestFault, MachineClosed):
        add_to_semaphore(owner, event, -1)


def probe_of(event: Event, machine: Machine, hit: Handler, disabled: bool = False) -> Probe:
    """Make the probe of an event's place, which is not registered yet.

    A return probe fetches at the function's entry what the event keeps.

    Args:
        event: the event, at the place.
        machine: the guest.
        hit: the handler.
        disabled: register it so that hits call nothing.
    """
    place: dict[str, Any] = (
        {"symbol_name": event.symbol, "offset": event.offset}
        if event.symbol
        else {"addr": event.target}
    )
    if event.kind == "p":
        return Kprobe(pre_handler=hit, disabled=disabled, **place)

    def entered(ri: Any, regs: Regs) -> None:
        ri.data["saved"] = event.enter(regs)

    made = Kretprobe(
        handler=hit,
        entry_handler=saver(event, machine, entered) if event.saves else None,
        maxactive=event.maxactive,
        disabled=disabled,
        **place,
    )
    made._late = 1
    return made


def attached(
    owner: EventOwner, made: EventProgram, event: Event, cookie: int, clock: str = HOST_CLOCK
) -> Attachment:
    """Attach an event's program to a probe at the event's place, and return the attachment.

    Args:
        owner: registers the probe.
        made: the program.
        event: the event, at the place.
        cookie: the place's number in the buffer.
        clock: name of the clock that the program reads for its records' times.

    Raises:
        KprobeError: the probe cannot be registered, or the program does not fit the guest.
    """
    where = event.symbol or event.target
    return owner.attach(
        made.program,
        where,
        event.offset,
        event.kind == "r",
        cookie=cookie,
        clock=clock,
        maxactive=event.maxactive,
    )


def probe_at(attachment: Attachment) -> Probe:
    """Return the one probe of an attachment."""
    return next(iter(attachment.probes.values()))


def counts_of(probe: Any) -> tuple[int, int]:
    """Return (hits, hits at which no handler ran).

    A return probe's hits are its returns; entries at which no handler ran, or that were not
    followed, are among the others.

    Args:
        probe: a probe or a watchpoint; None: (0, 0).
    """
    if probe is None:
        return 0, 0
    if isinstance(probe, Watchpoint):
        return probe.nhit, probe.nmissed
    return (
        (probe.nreturned, probe.nmissed + probe.entry_nmissed)
        if probe.family == "r"
        else (probe.nhit, probe.nmissed)
    )
