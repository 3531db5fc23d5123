"""Events whose hits the machine records by itself, without a program: descriptions for the machine.

The records are those that a program would write; see _program.py. (tracing.Recording is something
else: the records of a `with k.trace(...)`, whoever writes them.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from ..arch._base import Arch
from ..machine._base import Machine, RecordedHit, RecordedNumber, RecordedTest
from ..regs import Regs
from ._event import Argument, Event
from ._filter import EventField, Filter, FilterStep, steps
from ._handler import Handler, RecordedPlace
from ._layout import RecordLayout
from ._plans import Word

if TYPE_CHECKING:
    from ._buffer import Buffer

#: what filters ask besides arguments, while there is one CPU and nobody says which task runs ->
#: root
_COMMON: Final = {
    "regs.cpu": "value",
    "pid(regs)": "value",
    "regs.pc": "pc",
    "back": "pc",
    "func": "func",
}


class _Refused(Exception):
    """The machine cannot record this by itself."""


def machine_handler(
    place: RecordedPlace,
    machine: Machine,
    buffer: Buffer,
    layout: RecordLayout,
    clock: Callable[[], int] | None,
    plain: Handler,
) -> Handler:
    """Return the handler by which the machine itself records an event's hits at one place.

    Args:
        place: the event, at this place, and which hits are recorded; its cookie is the second word
            of records.
        machine: whose hits they are.
        buffer: where records go.
        layout: of the records.
        clock: gives the time; None: records have none.
        plain: the handler in Python that does the same; the machine calls it for a hit that it
            cannot record, and it is returned where the machine records no such events.
    """
    recording = machine.hit_recording
    found = described(place.event, machine, place.filter, layout)
    if recording is None or found is None:
        return plain
    numbers, tests = found
    hit = RecordedHit(
        numbers=tuple(numbers),
        tests=tuple(tests),
        state=buffer.state.block.address,
        ring=buffer.ring.address,
        size=layout.size,
        cookie=place.cookie,
        time=layout.head.time // 8,
        returns=layout.head.caller // 8,
        faults=layout.head.faults // 8,
        data=layout.head.data // 8,
        clock=clock,
        kept=(buffer,),
    )
    return recording.taker(hit, plain) or plain


def described(
    event: Event, machine: Machine, filter: Filter | None, layout: RecordLayout | None = None
) -> tuple[list[RecordedNumber], list[RecordedTest]] | None:
    """Describe to the machine what a hit fetches, and the filter.

    Args:
        event: the event.
        machine: whose hits they are.
        filter: which hits are recorded; None: all.
        layout: of the records; None: it does not matter.

    Returns:
        (numbers, comparisons); None: only Python can record its hits: the machine records none by
        itself, the guest has several CPUs or tasks, the event is a watchpoint's, or an argument or
        a test is not one of numbers.
    """
    if (
        machine.hit_recording is None
        or machine.cpus > 1
        or machine.cpu_task is not None
        or event.kind == "w"
    ):
        return None
    places = (layout or RecordLayout(event)).places
    tests: list[RecordedTest] = []
    try:
        numbers = [
            _number(arg, machine.arch, at // 8)
            for arg, (_, at) in zip(event.args, places, strict=True)
            if arg.source.literal is None
        ]
        if filter is not None:
            tests = [_test(event, machine.arch, step) for step in steps(filter.tree)]
    except _Refused:
        return None
    return numbers, tests


def saver(
    event: Event, machine: Machine, plain: Callable[[Any, Regs], None]
) -> Callable[[Any, Regs], None]:
    """Return an entry handler that keeps what a return event wants of its function's entry:
    arguments, and values that debug information tells (event.saves).

    Args:
        event: the event.
        machine: the guest.
        plain: does it in Python.

    Returns:
        The machine's handler; `plain` where it has none, the guest has several CPUs, or something
        is kept that only Python can fetch.
    """
    recording = machine.hit_recording
    if recording is None or machine.cpus > 1:
        return plain
    numbers = []
    for n in event.saves:
        if not isinstance(n, int):
            return plain
        root = _root(Word("argument", n), machine.arch)
        if root is None:
            return plain
        numbers.append(root)
    return recording.saver(numbers, plain) or plain


def _number(arg: Argument, arch: Arch, at: int = 0) -> RecordedNumber:
    """Describe to the machine how it fetches an argument that is a number.

    Args:
        arg: the argument.
        arch: the guest's.
        at: index of the argument's first word in a record, behind the fault bits.

    Raises:
        _Refused: it is no number, or not fetched as one.
    """
    kind, source = arg.type, arg.source
    if not kind.is_word or source.value is not None or source.text is not None:
        raise _Refused
    steps: list[int] = []
    tree = source.tree
    while tree.kind == "memory":
        steps.insert(0, tree.number)
        assert tree.base is not None
        tree = tree.base
    root = _root(tree, arch)
    if root is None or (kind.count and not source.in_memory):
        raise _Refused
    return RecordedNumber(
        root=root.root,
        name=root.name,
        number=root.number,
        steps=(*root.steps, *steps),
        size=kind.size if source.in_memory else 0,
        count=max(kind.count, 1),
        bits=kind.bits,
        shift=kind.shift,
        signed=kind.is_signed,
        at=at,
    )


def _root(tree: Word, arch: Arch) -> RecordedNumber | None:
    """Describe a word that is read without following a pointer: a register, an argument, the stack,
    a constant, or what was kept at the entry.

    Args:
        tree: the word's source.
        arch: the guest's architecture.

    Returns:
        The description; None: only Python can read the word.
    """
    abi = arch.abi
    word = arch.bits // 8
    kind = tree.kind
    name = tree.name
    number = tree.number
    if kind == "register":
        name = arch.regs.aliases.get(name, name)
        return (
            RecordedNumber(root="pc")
            if name == arch.regs.pc
            else RecordedNumber(root="register", name=name)
        )
    if kind == "result" and abi is not None:
        return RecordedNumber(root="register", name=abi.returns[0])
    if kind == "argument" and abi is not None:
        if number < len(abi.args):
            return RecordedNumber(root="register", name=abi.args[number])
        offset = abi.stack_args + (number - len(abi.args)) * word
        return RecordedNumber(root="sp", steps=(offset * arch.callers,))
    if kind == "stack":
        return RecordedNumber(root="sp", steps=(number * word * arch.callers,))
    if kind == "sp":
        return RecordedNumber(root="sp")
    if kind == "value":
        return RecordedNumber(root="value", number=number)
    if kind == "saved":
        return RecordedNumber(root="saved", number=tree.place)
    return None


def _test(event: Event, arch: Arch, step: FilterStep) -> RecordedTest:
    """Describe a test of a filter to the machine.

    Args:
        event: the event that is filtered.
        arch: the guest's.
        step: the test, and what comes after it.

    Raises:
        _Refused: it is not one of numbers.
    """
    test = step.test
    how = test.comparison.recorded
    if test.field.text or not how or not isinstance(test.constant, int):
        raise _Refused
    return RecordedTest(
        of=evolve(_compared(event, arch, test.field), signed=test.signed),
        how=how,
        constant=test.constant,
        end=test.end,
        yes=step.yes if test.holds else step.no,
        no=step.no if test.holds else step.yes,
    )


def _compared(event: Event, arch: Arch, field: EventField) -> RecordedNumber:
    """Describe the number that a filter's test compares.

    Args:
        event: the event.
        arch: the guest's architecture.
        field: an argument of the event; or its place (`__probe_ip` ...) or CPU, process or the
            like (_filter.COMMON).

    Raises:
        _Refused: the field is no number that a machine can record.
    """
    if field.number >= 0:
        return _number(event.args[field.number], arch)
    root = _COMMON.get(field.python)
    if root is None:
        raise _Refused
    if root == "func":
        return RecordedNumber(root="value", number=event.address)
    return RecordedNumber(root=root)
