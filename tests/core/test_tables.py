"""Every (state, event) pair of the two state machines: the documented next state, or an error and no change."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from kprobes.core.hit import ctlblk
from kprobes.core.hit.ctlblk import ControlBlock, HitEvent, HitState, Pop
from kprobes.core.patch import arming
from kprobes.core.patch.arming import Arming, Change
from kprobes.errors import ReentryError
from kprobes.statetable import after

S, E, A, C = HitState, HitEvent, Arming, Change
POP = Pop.POP

#: docs/how-a-hit-works.md (the control block). A hit that arrives in any phase but REENTER is missed; nothing else may
#: happen in IDLE.
CONTROL_BLOCK: dict[tuple[HitState, HitEvent], HitState | Pop] = {
    (S.IDLE, E.PROBEPOINT): S.HIT_ACTIVE,
    (S.HIT_ACTIVE, E.PROBEPOINT): S.REENTER,
    (S.HIT_ACTIVE, E.STEP): S.HIT_SS,
    (S.HIT_ACTIVE, E.NO_STEP): S.HIT_SSDONE,
    (S.HIT_ACTIVE, E.DONE): POP,
    (S.HIT_SS, E.PROBEPOINT): S.REENTER,
    (S.HIT_SS, E.SLOT_END): S.HIT_SSDONE,
    (S.HIT_SS, E.DONE): POP,
    (S.HIT_SSDONE, E.PROBEPOINT): S.REENTER,
    (S.HIT_SSDONE, E.DONE): POP,
    (S.REENTER, E.SLOT_END): POP,
    (S.REENTER, E.DONE): POP,
}

#: docs/how-a-hit-works.md (what is in memory), and docs/linux.md D1, D2, B5.
PATCHES: dict[tuple[Arming, Change], Arming] = {
    (A.DISARMED, C.ARM): A.ARMED,
    (A.DISARMED, C.UNLOAD): A.GONE,
    (A.ARMED, C.DISARM): A.DISARMED,
    (A.ARMED, C.UNLOAD): A.GONE,
    (A.ARMED, C.QUEUE): A.OPTIMIZING,
    (A.OPTIMIZING, C.DEQUEUE): A.ARMED,
    (A.OPTIMIZING, C.JUMP): A.OPTIMIZED,
    (A.OPTIMIZING, C.UNLOAD): A.GONE,
    (A.OPTIMIZED, C.UNQUEUE): A.UNOPTIMIZING,
    (A.OPTIMIZED, C.RESTORE): A.ARMED,
    (A.OPTIMIZED, C.UNLOAD): A.GONE,
    (A.UNOPTIMIZING, C.RESCUE): A.OPTIMIZED,
    (A.UNOPTIMIZING, C.RESTORE): A.ARMED,
    (A.UNOPTIMIZING, C.UNLOAD): A.GONE,
    (A.GONE, C.RELOAD): A.DISARMED,
}


def point(address: int) -> Any:
    return SimpleNamespace(address=address)


def blocks(state: HitState) -> ControlBlock:
    """A control block in this state, reached through legal events only."""
    cb = ControlBlock()
    path = {S.IDLE: (), S.HIT_ACTIVE: (E.PROBEPOINT,), S.HIT_SS: (E.PROBEPOINT, E.STEP),
            S.HIT_SSDONE: (E.PROBEPOINT, E.NO_STEP), S.REENTER: (E.PROBEPOINT, E.STEP, E.PROBEPOINT)}[state]
    for n, event in enumerate(path):
        happen(cb, event, point(0x1000 + n))
    assert cb.state is state
    return cb


def happen(cb: ControlBlock, event: HitEvent, where: Any) -> None:
    if event is E.PROBEPOINT:
        cb.begin(where)
    else:
        cb.step(event)


def facts(cb: ControlBlock) -> tuple[Any, ...]:
    return cb.state, cb.point, cb.resume, cb.probes, cb.child, cb.previous


@pytest.mark.parametrize(("state", "event"), list(itertools.product(HitState, HitEvent)), ids=lambda x: x.name)
def test_control_block(state: HitState, event: HitEvent) -> None:
    cb = blocks(state)
    before, new = facts(cb), CONTROL_BLOCK.get((state, event))
    interrupted = cb.previous
    if new is None:
        with pytest.raises(ReentryError) as error:
            happen(cb, event, point(0x2000))
        assert state.name in str(error.value)
        assert facts(cb) == before
        return
    happen(cb, event, point(0x2000))
    if new is POP:
        assert cb.state is (S.HIT_SS if interrupted else S.IDLE)
        assert cb.previous is None
        assert cb.point is (interrupted[1] if interrupted else None)
    else:
        assert cb.state is new


def test_the_control_blocks_table_is_the_documented_one() -> None:
    assert ctlblk.TABLE == CONTROL_BLOCK


@pytest.mark.parametrize("phase", [S.HIT_ACTIVE, S.HIT_SS, S.HIT_SSDONE], ids=lambda x: x.name)
@pytest.mark.parametrize("end", [E.DONE, E.SLOT_END], ids=lambda x: x.name)
def test_a_missed_hit_restores_everything_it_interrupted(phase: HitState, end: HitEvent) -> None:
    cb = blocks(phase)
    cb.resume, cb.probes, cb.child = 0x1234, ("a", "b"), "a"
    before = facts(cb)
    cb.begin(point(0x5000))
    cb.resume, cb.probes, cb.child = 0, (), None
    cb.step(end)
    assert facts(cb) == before


@pytest.mark.parametrize("state", list(HitState), ids=lambda x: x.name)
def test_reset_gives_everything_up(state: HitState) -> None:
    cb = blocks(state)
    cb.reset()
    assert (cb.state, cb.point, cb.previous) == (S.IDLE, None, None)


@pytest.mark.parametrize(("state", "change"), list(itertools.product(Arming, Change)), ids=lambda x: x.name)
def test_arming(state: Arming, change: Change) -> None:
    new = PATCHES.get((state, change))
    if new is not None:
        assert after(arming.TABLE, state, change) is new
    else:
        with pytest.raises(ValueError, match=f"{change.name} in {state.name}"):
            after(arming.TABLE, state, change)


def test_each_state_names_its_patch() -> None:
    """docs/how-a-hit-works.md: none, breakpoint, breakpoint, jump, jump."""
    patch = [state.value.split(",")[0] for state in (A.DISARMED, A.ARMED, A.OPTIMIZING, A.OPTIMIZED, A.UNOPTIMIZING,
                                                     A.GONE)]
    assert patch == ["none", "breakpoint", "breakpoint", "jump", "jump", "none"]
