"""Runs of a remote guest move between the phases of the table in runstate's docstring, by its events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from arches import expected
from test_time_limits import machine
from test_wrong_remote import dying, running

from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, QemuMachine, RemoteError, RemoteMachine
from kprobes.machine.remote import runstate
from kprobes.machine.remote.runstate import RemotePhase, RemoteRunState

pytestmark = pytest.mark.quick
Step = tuple[RemotePhase, str, RemotePhase]
#: (phase, event) -> phases that may follow, as the docstring has them
TABLE = {(RemotePhase[phase], event): tuple(RemotePhase[name] for name in after.split(" or "))
         for phase, event, after in re.findall(r"^\| (\w+) \| ([A-Z]+) \| ([A-Z]+(?: or [A-Z]+)*) \|$",
                                               str(runstate.__doc__), re.MULTILINE)}
METHODS = {"enter": "ENTER", "leave": "LEAVE", "resumed": "RESUME", "stopped": "REPLY", "ended": "END",
           "ask_to_stop": "ASK"}
FUNCTION = next(iter(expected()["tests"]))


def noting(found: list[Step], event: str, method: Callable[..., None]) -> Callable[..., None]:
    """Return a method that notes its event."""

    def noted(state: RemoteRunState, *args: Any, **named: Any) -> None:
        before = state.phase
        method(state, *args, **named)
        found.append((before, event, state.phase))

    return noted


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """Every event of runs, in order, with the phases before and after."""
    found: list[Step] = []
    for name, event in METHODS.items():
        monkeypatch.setattr(RemoteRunState, name, noting(found, event, getattr(RemoteRunState, name)))
    halted = RemoteRunState.halted

    @contextmanager
    def around(state: RemoteRunState) -> Iterator[None]:
        before = state.phase
        try:
            with halted(state):
                found.append((before, "HALT", state.phase))
                try:
                    yield
                finally:
                    before = state.phase
        finally:
            found.append((before, "HALTED", state.phase))

    monkeypatch.setattr(RemoteRunState, "halted", around)
    return found


def check(steps: list[Step], *wanted: tuple[RemotePhase, str]) -> None:
    """All steps are in the table, and those that are wanted were made."""
    assert [step for step in steps if step[2] not in TABLE.get(step[:2], ())] == []
    assert set(wanted) <= {step[:2] for step in steps}


P = RemotePhase


def fail(_m: RemoteMachine) -> None:
    raise ArithmeticError("a handler fails")


def call(m: RemoteMachine) -> None:
    m.call(FUNCTION, 1)


@pytest.mark.parametrize(("act", "event"), [(call, "ENTER"), (fail, "LEAVE"), (RemoteMachine.stop, "ASK")],
                         ids=["calls", "fails", "stops"])
def test_handlers(x86: QemuMachine, steps: list[Step], act: Callable[[RemoteMachine], object], event: str) -> None:
    with Kprobes(x86) as k:
        k.register(p := Kprobe(symbol_name=FUNCTION, pre_handler=lambda p, regs: act(x86) and None,
                               post_handler=lambda p, regs, flags: None))
        with suppress(ArithmeticError, GuestFault):
            x86.call(FUNCTION, 1)
        assert p.nhit == 1
    check(steps, (P.IDLE, "ENTER"), (P.STOPPED, "RESUME"), (P.RUNNING, "REPLY"), (P.STOPPED, event), (P.STOPPED, "LEAVE"))


def test_the_end_of_the_program(x86: QemuMachine, steps: list[Step]) -> None:
    """A run to it (these programs have none that they make themselves), and a stop that comes too late."""
    with pytest.raises(GuestFault, match="ended by signal 11"):
        x86.run()
    assert x86.exit_status == -11
    x86.stop()
    with pytest.raises(RemoteError, match="has ended"):
        x86.run()
    check(steps, (P.RUNNING, "END"), (P.ENDED, "LEAVE"), (P.ENDED, "ASK"))


def test_a_run_that_is_over_before_the_guest_stops(stub: Callable[..., str], steps: list[Step]) -> None:
    with machine(stub, running) as m:
        m.stop()
        with pytest.raises(GuestTimeout):
            m.run(timeout=0.1)
        assert m._state.phase is P.IDLE
    check(steps, (P.IDLE, "ASK"), (P.RUNNING, "HALT"), (P.HALTING, "REPLY"), (P.HALTING, "HALTED"))


def test_a_stub_that_is_gone(stub: Callable[..., str], steps: list[Step]) -> None:
    with machine(stub, dying) as m, suppress(RemoteError):
        with pytest.raises(RemoteError):
            m.run("f", until=0x1004, timeout=5)
        assert m._state.phase is P.ENDED
    check(steps)


def test_every_phase_is_reached() -> None:
    reached, new = {P.IDLE}, {P.IDLE}
    while new:
        new = {to for (phase, _), after in TABLE.items() if phase in new for to in after} - reached
        reached |= new
    assert reached == set(RemotePhase)
    assert all(after == (P.ENDED,) for (phase, _), after in TABLE.items() if phase is P.ENDED)
    assert {event for _, event in TABLE} == {*METHODS.values(), "HALT", "HALTED"}
