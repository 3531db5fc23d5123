"""Engines say which powers they have. That they are Machines is what type checkers see in kprobes.testing."""

from __future__ import annotations

import pytest

from kprobes import UnicornMachine
from kprobes.machine._base import CallsInPlace, Powers
from kprobes.machine.paper import PaperMachine
from kprobes.machine.remote.sites import CallSites

pytestmark = pytest.mark.quick
POWERS = [name for name in vars(Powers) if isinstance(vars(Powers)[name], property)]


def test_powers_are_values_or_none() -> None:
    paper = PaperMachine(b"")
    assert len(POWERS) == 12
    assert [name for name in POWERS if getattr(paper, name) is not None] == ["call_sites"]
    with UnicornMachine.from_code(b"\xc3", arch="x86_64") as m:
        missing = {name for name in POWERS if getattr(m, name) is None}
        assert "guest_view" in missing and not missing & {"call_sites", "watching", "blocks", "clock"}


def test_calls_in_place_are_complete() -> None:
    wanted = {name for name in {*vars(CallsInPlace), *CallsInPlace.__annotations__} if not name.startswith("_")}
    with UnicornMachine.from_code(b"\xc3", arch="x86_64") as m:
        for found in (m.call_sites, PaperMachine(b"").call_sites, CallSites(None, int, print, 4096, print, int)):
            assert {name for name in wanted if not hasattr(found, name)} == set(), found
