"""Parameters and results of any type are what the program itself keeps of them, on many architectures.

By hand: `CALLS=50 pytest tests/tracing/test_calls_everywhere.py -s` compares 50 programs for each architecture.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from call_programs import TARGETS, build

from kprobes import EventError, Kprobes, QemuMachine, UnicornMachine

COUNT = int(os.environ.get("CALLS", "1"))  #: programs for each architecture
#: the usual ones of those that Unicorn runs; the others by hand
FOREIGN = ("loongarch64",)  #: those that no Unicorn runs
USUAL = ("riscv64", "riscv64 soft", "riscv32", "s390x", "arm64", "x86_64")
KINDS = [target for target in TARGETS if target in USUAL or COUNT > 1]

pytestmark = pytest.mark.skipif(find_spec("ziglang") is None, reason="there is no clang of all targets: pip install ziglang")


def same(mine: Any, kept: Any) -> bool:
    """Whether two values are equal, but for members that are not kept; a NaN, of a union's bytes, is equal to another."""
    if mine is None:
        return True
    if isinstance(kept, dict):
        return mine.keys() == kept.keys() and all(same(mine[name], value) for name, value in kept.items())
    if isinstance(kept, tuple):
        return len(mine) == len(kept) and all(map(same, mine, kept))
    return mine == kept or (isinstance(kept, float) and math.isnan(kept) and math.isnan(mine))


def compared(target: str, seed: int, level: int, folder: Path, cpp: bool) -> tuple[Counter[str], list[Any]]:
    """Compare a program's parameters and results with what it keeps.

    Returns:
        (how many were "right", and how often each reason was given for a refusal; (where, ours, the program's) of others).
    """
    program = build(target, seed, level, folder, cpp)
    found: Counter[str] = Counter()
    wrong = []
    foreign = target in FOREIGN
    with QemuMachine.user([program.path], env={}, timeout=20) if foreign else UnicornMachine.load(program.path) as m, Kprobes(m) as k:
        events = {}
        for name, (count, returns) in program.functions.items():
            wanted = [(f"got_{name[1:]}_{n}", f"p:{name}_{n} {name} got=a{n}") for n in range(count)]
            if returns:
                wanted.append((f"got_{name[1:]}", f"r:{name}_r {name} got=$retval"))
            for kept, definition in wanted:
                try:
                    events[kept] = k.event(definition)
                except EventError as error:
                    found[error.reason] += 1
        keeping = {}
        for kept in events:
            keeping[kept] = k.event(f"p:k_{kept} after_all {kept}")
        if foreign:
            m.run(until=m.symbols["finished"].address)
        else:
            m.call("driver")
        for kept, event in events.items():
            (mine,), (theirs,) = [next(iter(each)).args.values() for each in (event, keeping[kept])]
            if same(mine, theirs):
                found["right"] += 1
            else:
                wrong.append((f"{target} {seed} -O{level} {kept} of {event}", mine, theirs))
    return found, wrong


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("cpp", [False, True])
def test_values_of_calls_are_what_the_program_keeps(target: str, cpp: bool, tmp_path: Path) -> None:
    total: Counter[str] = Counter()
    for seed in range(COUNT):
        for level in (0, 2):
            found, wrong = compared(target, seed, level, tmp_path, cpp)
            assert wrong == []
            total += found
    print(target, "C++" if cpp else "C", total.most_common())
    assert total["right"] > 40 * COUNT
