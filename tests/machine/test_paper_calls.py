"""Calls on the toy engine: their bounds and arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from scenes import paper_machine

from kprobes import BadArgument, GuestTimeout
from kprobes.machine.paper import PaperMachine

pytestmark = pytest.mark.quick


@pytest.fixture
def m() -> Iterator[PaperMachine]:
    yield paper_machine()


def test_a_bound_on_instructions(m: PaperMachine) -> None:
    steps = next(n for n in range(1, 100) if ends(m, n))
    assert steps > 1
    with pytest.raises(GuestTimeout, match=f"{steps - 1} steps"):
        m.call("inc", 4, max_insns=steps - 1)
    assert m.call("inc", 4, max_insns=steps) == 5


def ends(m: PaperMachine, bound: int) -> bool:
    """Whether a call of inc ends within so many instructions."""
    try:
        return m.call("inc", 4, max_insns=bound) == 5
    except GuestTimeout:
        return False


def test_a_bound_on_time(m: PaperMachine) -> None:
    with pytest.raises(GuestTimeout, match="0 s are over"):
        m.call("inc", 4, timeout=0)
    assert m.call("inc", 4, timeout=60) == 5


@pytest.mark.parametrize("bounds", [{"timeout": -1}, {"max_insns": -1}, {"max_insns": "x"}])
def test_bounds_that_are_none(m: PaperMachine, bounds: Any) -> None:
    with pytest.raises(BadArgument):
        m.call("inc", 4, **bounds)


@pytest.mark.parametrize("wrong", [1 << 64, -(1 << 64), 2.5, "text", b"text", object()])
def test_arguments_that_no_register_holds(m: PaperMachine, wrong: Any) -> None:
    with pytest.raises(BadArgument, match="argument 1"):
        m.call("inc", wrong)


def test_negative_numbers_and_none(m: PaperMachine) -> None:
    assert m.call("inc", -1) == 0
    assert m.call("inc", None) == 1  # type: ignore[arg-type]
