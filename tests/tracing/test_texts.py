"""Texts of large traces, written by columns: byte by byte those that are written record by record."""

from __future__ import annotations

import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plain_texts
import pytest
from attrs import evolve

from kprobes import Trace
from kprobes.debug.whole import Members
from kprobes.events._styles import Type
from kprobes.stacks import INCOMPLETE
from kprobes.tracing import batches
from kprobes.tracing.info import EventInfo, Field
from kprobes.tracing.recorder import Live
from kprobes.tracing.ring import RecordRing

pytestmark = pytest.mark.quick
HARD = ("", "plain", "comma, quote \" and 100% %d", "two\nlines\r", " blank", "\ud800", "é", "(fault)", "-", "{a;b}")
TYPES = {
    key: Type(name=name, style=style, bits=bits, size=bits // 8, count=count)
    for key, name, style, bits, count in (
        ("u", "u64", "u", 64, 0), ("s", "s32", "s", 32, 0), ("x", "x64", "x", 64, 0), ("us", "u8", "u", 8, 3),
        ("xs", "x16", "x", 16, 70), ("text", "string", "string", 64, 0), ("texts", "string", "string", 64, 2),
        ("char", "char", "char", 8, 0), ("symbol", "symbol", "symbol", 64, 0), ("f", "double", "f", 64, 0),
        ("f32", "float", "f", 32, 0), ("value", "struct a, b", "value", 64, 0))
}


def value(random: random.Random, type: Type) -> Any:
    """A value of a type, or None."""
    if random.random() < 0.1:
        return None
    if type.count:
        return tuple([value(random, evolve(type, count=0)) for _ in range(type.count)])
    if type.style in ("u", "x"):
        return random.choice([0, 1, (1 << type.bits) - 1, random.getrandbits(type.bits)])
    if type.style == "s":
        return random.choice([0, -1, -(1 << type.bits - 1), random.getrandbits(type.bits - 1)])
    if type.style == "f":
        return random.choice([0.0, -0.0, 1.0, float("nan"), float("inf"), 0.1, 1e300 if type.bits == 64 else 3.5])
    if type.style == "value":
        return random.choice([1, True, 1.0, -0.0, 0.0, Members(a=1, b=(True, None)), (), (0.0, "x,y"), 1 << 80, *HARD])
    return random.choice(HARD)


def event(number: int, kind: str, fields: Sequence[str], name: str) -> EventInfo:
    """An event of some types. kind: "p", "r" or "w"."""
    return EventInfo(name=name, group="kprobes", kind=kind, symbol="f", offset=0, address=0x1000 + number,
                     where="f%d+0x0/0x10", text=name,
                     fields=tuple([Field(name=f"{each}_{number % 2} %s,", type=TYPES[each]) for each in fields]))


def made(seed: int, clock: str, stacks: int) -> Trace:
    """A trace of random records, some of them overwritten. stacks: 0: none, 1: some records have one, 2: all."""
    rolls = random.Random(seed)
    infos = [event(n, kind, rolls.sample([*TYPES], n), ("plain", "50% of it, all")[n % 2])
             for n, kind in enumerate(("p", "r", "w", "p", "r"))]
    if seed % 3 == 0:
        infos = infos[-1:]  # one event: batches are not taken apart
    ring = RecordRing(infos, 300, None if clock == "counter" else lambda: rolls.getrandbits(50), stacks > 0)
    puts = [ring.writer(n) for n in range(len(infos))]
    tasks = [0, 7, -1, 1 << 70, "a, b", None, "\ud800"]
    for seq in range(1, 401):
        n = rolls.randrange(len(infos))
        stack = rolls.choice([(0x1000, 0x2000 + seq % 3, INCOMPLETE), (0x1000,), () if stacks == 1 else (5,)])
        puts[n](seq, seq % 3, rolls.choice(tasks), [value(rolls, field.type) for field in infos[n].fields],
                0x3000 + seq % 4, stack if stacks else ())
    return Trace(Live(infos, ring, clock, lambda: None), lambda address: f"sym, 10%+{address:#x}",
                 lines=lambda address: f"a.c:{address}" if address % 2 else "")


@pytest.mark.parametrize(("seed", "clock", "stacks"), [
    (0, "host", 0), (1, "counter", 1), (2, "instructions", 2), (3, "counter", 1), (4, "host", 0), (5, "host", 1)])
def test_quick_texts_are_the_plain_ones(seed: int, clock: str, stacks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from kprobes.tracing import ring

    for size in (batches.BATCH, 7):
        monkeypatch.setattr(ring, "BATCH", size)
        t = made(seed, clock, stacks)
        assert len(t) == 300 and t.lost == 100
        assert [row for batch in t.batches() for row in batch.rows()].__repr__() == [*t.source.rows()].__repr__()
        for format in ("ftrace", "jsonl", "csv"):
            t.export(file := io.StringIO(), format)
            assert file.getvalue() == plain_texts.text(t, format), format


def test_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without halves of characters, which arguments never have and no file can hold."""
    monkeypatch.setattr("test_texts.HARD", [text for text in HARD if text != "\ud800"])
    t = made(1, "host", 1)
    t.save(tmp_path / "x.arrow")
    loaded = Trace.load(tmp_path / "x.arrow")
    for format in ("ftrace", "jsonl", "csv"):
        loaded.export(file := io.StringIO(), format)
        assert file.getvalue() == plain_texts.text(loaded, format), format


def test_no_records() -> None:
    infos = [event(2, "p", ("u", "text"), "none")]
    t = Trace(Live(infos, RecordRing(infos, 10, None, False), "counter", lambda: None), hex)
    for format in ("ftrace", "jsonl", "csv"):
        t.export(file := io.StringIO(), format)
        assert file.getvalue() == plain_texts.text(t, format)
