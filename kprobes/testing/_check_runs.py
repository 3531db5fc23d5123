"""Checks of check_machine() about runs: errors raised in them, runs within runs, who is told.

Each check takes the scene (a machine with a listener and a page of traps) and yields a sentence for
each breach of the Machine contract.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import GuestFault, KprobeError, ReentryError
from ..regs import Regs
from ._listener import ToldSink, TrapPage

_MANY = 1000
_DEEPEST = 64  # nested runs must be refused before this many


class _MarkError(Exception):
    """The error that a handler raises here."""


def exceptions(s: TrapPage) -> Iterator[str]:
    """Check that an exception in a handler ends the run with its own traceback, and that the next
    run works.
    """
    error = _MarkError("mine")

    def raise_it(regs: Regs) -> None:
        """Move the guest, and raise `error`."""
        regs.go(s.c | s.mode)
        raise error

    s.listener.at = {s.a: raise_it, s.b: s.return_to_caller, s.c: s.return_to_caller}
    for _ in range(2):
        try:
            s.run(s.a)
            yield "an exception in a report gets lost"
        except _MarkError as seen:
            names = []
            trace = seen.__traceback__
            while trace is not None:
                names.append(trace.tb_frame.f_code.co_name)
                trace = trace.tb_next
            if seen is not error or "raise_it" not in names:
                yield f"an exception arrives without its own traceback: {names}"
        s.listener.traps.clear()
        s.run(s.b)
        if s.listener.traps != [s.b]:
            yield f"after an exception a run visits {list(map(hex, s.listener.traps))}"


def nesting(s: TrapPage) -> Iterator[str]:
    """Check guest code that is run from within a report: the outer run goes on, with its own
    registers.
    """
    pcs: list[int] = []

    def nested(regs: Regs) -> None:
        """Run guest code, note pc, and end the run."""
        s.run(s.b)
        pcs.append(regs.pc)
        s.return_to_caller(regs)

    s.listener.at = {s.a: nested, s.b: s.return_to_caller}
    s.run(s.a)
    if s.listener.traps != [s.a, s.b] or pcs != [s.a]:
        yield (
            f"a nested run: traps {list(map(hex, s.listener.traps))}, pc afterwards "
            f"{list(map(hex, pcs))}"
        )
    s.listener.at[s.b] = lambda regs: (_ for _ in ()).throw(_MarkError("inner"))
    caught: list[bool] = []

    def survive(regs: Regs) -> None:
        """Catch the error of a nested run, and go on."""
        try:
            s.run(s.b)
        except _MarkError:
            caught.append(True)
        regs.go(s.c | s.mode)

    s.listener.at |= {s.a: survive, s.c: s.return_to_caller}
    s.listener.traps.clear()
    s.run(s.a)
    if not caught or s.listener.traps != [s.a, s.b, s.c]:
        yield f"an exception in a nested run, caught outside: {list(map(hex, s.listener.traps))}"


def run_ends(s: TrapPage) -> Iterator[str]:
    """Check that start and end of the outermost run are reported, and of no other, whatever it ends
    by.
    """

    def fail(regs: Regs) -> None:
        """Run guest code within the run, then raise an error."""
        s.run(s.b)
        raise _MarkError("outer")

    s.listener.at = {s.a: fail, s.b: s.return_to_caller}
    try:
        s.run(s.a)
    except _MarkError:
        pass
    s.run(s.b)
    if s.listener.runs != ["starting", "ended"] * 2:
        yield f"two runs, one with another inside: {s.listener.runs}"


def many_calls(s: TrapPage) -> Iterator[str]:
    """Check the number of traps that a thousand nested runs from one report make, none inside the
    other.
    """

    def often(regs: Regs) -> None:
        """Run guest code many times, one after the other, and end the run."""
        for _ in range(_MANY):
            s.run(s.b)
        s.return_to_caller(regs)

    s.listener.at = {s.a: often, s.b: s.return_to_caller}
    s.run(s.a)
    if len(s.listener.traps) != _MANY + 1:
        yield f"{_MANY} nested runs make {len(s.listener.traps) - 1} traps"


def depth(s: TrapPage) -> Iterator[str]:
    """Check that endless nesting is refused, and that the machine survives it."""
    deep = 0

    def deeper(regs: Regs) -> None:
        """Run the same trap again, as deep as _DEEPEST, and end the run."""
        nonlocal deep
        deep += 1
        if deep < _DEEPEST:
            s.run(s.a)
        s.return_to_caller(regs)

    s.listener.at = {s.a: deeper, s.b: s.return_to_caller}
    try:
        s.run(s.a)
        yield f"{_DEEPEST} runs nest: engines die of that"
    except ReentryError:
        pass
    s.listener.traps.clear()
    s.run(s.b)
    if s.listener.traps != [s.b]:
        yield "after nesting too deep a run does not work"


def one_listener(s: TrapPage) -> Iterator[str]:
    """Check that a second listener is refused, and that a trap without a listener raises
    GuestFault.
    """
    try:
        s.machine.report_to(ToldSink())
        yield "two listeners are accepted"
    except KprobeError:
        pass
    s.machine.report_to(None)
    try:
        s.run(s.a)
        yield "a trap without a listener is swallowed"
    except GuestFault:
        pass


RUNS = (exceptions, nesting, run_ends, many_calls, depth, one_listener)
