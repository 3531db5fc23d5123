"""The transparency kit on Linux processes under QEMU; and the same programs in Unicorn have the same hits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from arches import PROGRAMS, RUNNABLE, expected, integer
from qemu import RUN_HERE, USER_MODE, arch_of, process

from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes.conformance import Conformance
from kprobes.testing import Comparison, functions, kprobes_everywhere, kretprobes_everywhere

#: short ones: a hit is a stop or two. Without --thorough the first two, which are half as much as the third
NAMES = ("test_tail_calls", "test_spinlock", "test_structs")
MASK = 0xFFFFFFFF
Run = Callable[[Any], dict[str, int]]


@pytest.fixture
def run(thorough: bool) -> Run:
    """Calls the functions."""
    def call(m: Any) -> dict[str, int]:
        names = [name for name in NAMES if name in m.symbols]
        return {name: m.call(name, integer(m.arch, expected()["seeds"][1])) & MASK
                for name in (names if thorough else names[:2])}
    return call


@pytest.fixture(params=RUN_HERE)
def stem(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def comparison(stem: str, run: Run) -> Iterator[Comparison]:
    with process(PROGRAMS / "bin" / f"{stem}.elf") as m:
        made = Comparison(m, run)
        assert len(made.plain.result) > 1
        assert made.plain.result == {name: expected()["tests"][name][1] for name in made.plain.result}
        yield made
        made.close()


def reached(k: Kprobes, run: Run) -> list[Any]:
    """The functions that run: the others need no probes."""
    probes = {symbol: Kprobe(addr=symbol.address | symbol.mode) for symbol in functions(k.machine)
              if k.check(symbol.address | symbol.mode).probeable}
    k.register_kprobes([*probes.values()])
    run(k.machine)
    k.unregister_kprobes([*probes.values()])
    return [symbol for symbol, probe in probes.items() if probe.nhit]


def test_every_instruction_and_every_return(stem: str, comparison: Comparison, run: Run,
                                            conformance: Conformance) -> None:
    """Registers, memory, results: with probes boosted where they can be, with post-handlers, with return probes."""
    symbols, hits, posts = reached(comparison.kprobes, run), [], []
    probes: Any = kprobes_everywhere(comparison.kprobes, symbols, pre_handler=lambda p, regs: hits.append(regs.pc))
    with comparison.probed(probes):
        assert not (found := comparison.again("all")), found
        there = len(hits)
        boosted = sum(p.boosted and p.nhit > 0 for p in probes)
        for probe in probes:
            probe.post_handler = lambda p, regs, flags: posts.append(p.address)
        assert not (found := comparison.again("all, with post_handlers")), found
        assert hits[:there] == hits[there:] == posts and not any(p.nmissed for p in probes)
    assert sum(p.nhit > 0 for p in probes) > len(probes) / 2 > 20
    returns: Any = kretprobes_everywhere(comparison.kprobes, symbols, handler=lambda ri, regs: None)
    with comparison.probed(returns):
        assert not (found := comparison.again("return probes")), found
        assert not any(p.nmissed for p in returns) and all(p.nreturned == p.nhit > 0 for p in returns)
    assert not (found := comparison.text_changed()), found
    if arch_of(stem) in RUNNABLE:
        assert in_unicorn(stem, symbols, run) == hits[:there]
    for capability, count in {"real program": len(probes), "boost": boosted, "post": len(posts),
                              "return probe": len(returns)}.items():
        if count:
            conformance.under(USER_MODE)(arch_of(stem), capability, count)


def in_unicorn(stem: str, symbols: list[Any], run: Run) -> list[int]:
    """Where the same probes are hit."""
    hits: list[int] = []
    with UnicornMachine.load(PROGRAMS / "bin" / f"{stem}.elf") as m, Kprobes(m) as k:
        k.register_all(kprobes_everywhere(k, symbols, pre_handler=lambda p, regs: hits.append(regs.pc)))
        run(m)
    return hits
