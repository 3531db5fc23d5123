"""Portions: whole where asked for, never empty, together everything."""

from __future__ import annotations

import pytest
from arches import ARCHES
from portion import portion

pytestmark = pytest.mark.quick


def test_all_architectures_together_try_everything() -> None:
    things = [*range(10)]
    parts = [portion(things, False, arch, 3) for arch in ARCHES]
    assert {*map(len, parts)} <= {3, 4} and {thing for part in parts for thing in part} == {*things}
    assert parts == [portion(things, False, arch, 3) for arch in ARCHES]


def test_it_is_never_empty_and_whole_where_asked_for() -> None:
    assert all(portion([1], False, arch, 7) == [1] for arch in ARCHES)
    assert portion(range(5), True, "x86_64", 3) == [0, 1, 2, 3, 4] and portion([], False, "x86_64", 3) == []
