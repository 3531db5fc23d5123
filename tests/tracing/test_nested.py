"""Structures, arrays and floats stay what they are in a recording's file and in every export."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from nested_values import compare
from test_values_everywhere import FILES, load

from kprobes import Kprobes, Trace
from kprobes.debug.whole import Members

pytestmark = pytest.mark.quick

M = Members
VALUES: dict[str, list[Any]] = {
    "mixed": [M(n=1, f=1.5, text="ab", at=M(x=1, y=-8), rows=((1, 2), (3, 4)), points=(M(x=1), M(x=2)), none=None)],
    "missing": [M(a=M(x=None, f=None), b=None, c=(None, M(x=1), None), d=(None,)), None, M(a=None, b=2, c=(), d=None)],
    "addresses": [M(p=(1 << 64) - 1, q=1), M(p=1 << 63, q=1 << 62)],
    "signs": [M(a=-1), M(a=1 << 63)],
    "wide": [M(a=1 << 127, b=-(1 << 127)), M(a=0, b=None)],
    "variants": ["Idle", M(Busy=M(n=1)), M(Done=M(f=0.5)), None],
    "optional": [M(name="x", of=M(Some=M(v=7))), M(name="y", of="None"), M(name="z", of=None)],
    "empty": [M(marker=M(), n=()), M(marker=M(), n=(1,))],
    "nothing": [M(), M()],
    "equal": [M(a=1, b=0.0), M(a=True, b=-0.0), M(a=1.0, b=0.0), M(a=1, b=0.0)],
    "true": [M(a=True), M(a=False)],
    "not_finite": [M(a=math.inf, b=(math.nan, -math.inf)), M(a=None, b=())],
    "deep": [M(a=((M(b=((1,), (2, 3))),), ()))],
    "texts": [M(a="\ud800x", b="é\u20ac"), M(a=None, b="(fault)")],
    "arrays": [(1.5, None), (), None],
    "order": [M(a=1, b=2), M(b=2, a=1)],
    "none": [None, None],
}


def recorded(values: list[Any], monkeypatch: pytest.MonkeyPatch) -> Trace:
    """A trace of a structure that is read as one value after the other."""
    left = iter(values)
    monkeypatch.setattr("kprobes.events._named.whole", lambda value: next(left))
    with load("x86_64-5") as m, Kprobes(m) as k:
        with k.trace("p:a look it->at") as t:
            for _ in values:
                m.call("outer", 1)
        assert next(left, left) is left
    return t


@pytest.mark.parametrize("name", VALUES)
def test_values_that_are_hard_to_keep(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    t = recorded(VALUES[name], monkeypatch)
    assert [repr(record.args["at"]) for record in t] == [repr(value) for value in VALUES[name]]
    compare(t, tmp_path / "x.arrow")


def test_structures_are_nested_in_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no texts where Arrow has a type for them."""
    kinds = {name: str(recorded(VALUES[name], monkeypatch).to_arrow().schema.field("at").type)
             for name in ("addresses", "variants", "optional", "missing")}
    assert kinds == {"addresses": "struct<p: uint64, q: int64>", "variants": "string",
                     "optional": "struct<name: string, of: string>",
                     "missing": "struct<a: struct<x: null, f: null>, b: int64, c: list<item: struct<x: int64>>, "
                                "d: list<item: null>>"}


@pytest.mark.parametrize("name", FILES)
def test_on_every_architecture(name: str, tmp_path: Path) -> None:
    """Of real structures, by two events with the same argument; one cannot be read at all."""
    with load(name) as m, Kprobes(m) as k:
        with k.trace("p:one look it->pts it->at it->rows it->tight it->fl it->wide it->name", "p:two few the_item.at",
                     "p:three outer the_item") as t:
            m.call("outer", 1)
        assert {record.event for record in t} == {"one", "two", "three"}
        compare(t, tmp_path / "x.arrow")


def test_files_that_are_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that only claim to be JSON are shown as they are."""
    import pyarrow

    t = recorded(VALUES["variants"], monkeypatch)
    table = t.to_arrow()
    column = table.column_names.index("at")
    for text in ("{", "[" * 50_000, "[" * 100 + "]" * 100):
        field = table.schema.field("at")
        damaged = table.set_column(column, field, pyarrow.array([text, None, None, None], pyarrow.string()))
        with pyarrow.ipc.new_file(str(tmp_path / "x.arrow"), damaged.schema) as file:
            file.write_table(damaged)
        assert Trace.load(tmp_path / "x.arrow")[0].args["at"] == text
