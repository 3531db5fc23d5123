"""The lock of threads that take turns moves between the states of lockstate.TABLE, and no others."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from test_threads_in_turn import CALLS, process

from kprobes import GuestTimeout, Kprobe, Kprobes
from kprobes.machine.remote.lockstate import TABLE, LockEvent, LockState, LockStatus
from kprobes.statetable import after

S, E = LockState, LockEvent


@pytest.mark.quick
@pytest.mark.parametrize(("state", "event"), list(itertools.product(LockState, LockEvent)), ids=lambda x: x.name)
def test_what_is_not_in_the_table_is_refused(state: LockState, event: LockEvent) -> None:
    if (state, event) in TABLE:
        assert after(TABLE, state, event) is TABLE[state, event]
    else:
        with pytest.raises(ValueError, match=f"{event.name} in {state.name}"):
            after(TABLE, state, event)


@pytest.mark.quick
def test_every_state_is_reached_and_no_thread_ever_loses_its_turn() -> None:
    """From ALONE; and once threads take turns, they do so until the end."""
    reached, new = {S.ALONE}, {S.ALONE}
    while new:
        new = {to for (state, _), to in TABLE.items() if state in new} - reached
        reached |= new
    assert reached == set(LockState)
    before = {S.ALONE, S.CLONING}
    assert all(to not in before for (state, _), to in TABLE.items() if state not in before)
    assert all((state, E.SECOND) not in TABLE for state in set(LockState) - before)


@pytest.mark.parametrize("arch", ["arm64", "mips"])
def test_a_process_goes_through_them(arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hits with and without a slot, the end of a run by time, and a stop()."""
    steps: list[tuple[LockState, LockEvent]] = []
    change = LockStatus.change

    def noted(status: LockStatus, event: LockEvent) -> None:
        steps.append((status.state, event))
        change(status, event)

    monkeypatch.setattr(LockStatus, "change", noted)
    hits: list[int] = []

    def enter(p: Kprobe, regs: Any) -> None:
        hits.append(regs.cpu)
        if len(hits) == len(CALLS) // 2:
            m.stop()

    with process(arch, tmp_path) as m, Kprobes(m) as k:
        after_it = (lambda p, regs, flags: None) if arch == "arm64" else None  # on MIPS no jump fits then
        k.register(Kprobe(symbol_name="work", pre_handler=enter, post_handler=after_it))
        for _ in range(3):
            try:
                m.run(timeout=0.3 if len(hits) < 9 else 60)
            except GuestTimeout:
                continue
            if m.exit_status is not None:
                break
        assert m.exit_status == 7 and len(hits) == len(CALLS)
    assert {S.ALONE, S.UNLOCKED, S.HELD} <= {state for state, _ in steps}
    assert ((S.HELD, E.GO_ON_IN_SLOT) in steps) == (arch == "arm64"), "only there is a slot"
    assert ((S.CLONING, E.SECOND) in steps) == (arch == "arm64")
