"""Compiled programs with a probe on every instruction of every function: the results are the documented ones, and
memory and registers are as without probes.

All probes at once, in optimized programs with boosted and optimized hits first, in all with post-handlers; a sample of
them one at a time; a return probe on every function.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from arches import HERE, NO_PROGRAMS, PROGRAMS, RUNNABLE, expected, integer, limits, programs_of, results
from flips import Flips
from portion import portion

from kprobes import Kprobe, UnicornMachine
from kprobes.arch._base import Insn
from kprobes.conformance import CAPABILITIES, Conformance
from kprobes.core.probe import Probe
from kprobes.testing import Comparison, functions, instructions, kprobes_everywhere, kretprobes_everywhere

PAIRS = [pytest.param(arch, path, id=path.stem) for arch in RUNNABLE for path in programs_of(arch)]
OPTIMIZED = [pair for pair in PAIRS if pair.id.endswith("-O2")]
SEEDS = expected()["seeds"]
SAMPLE = 80  # instructions probed one at a time, per program
REFUSED = 0.06  # of a program's instructions may be refused: a library that refuses is transparent, too
MASK = 0xFFFFFFFF


class Program:
    """A loaded program and what its test functions must return."""

    def __init__(self, path: Path) -> None:
        self.machine = UnicornMachine.load(path)
        self.results = results(path.stem, self.machine)
        #: run_all calls every other function; where it cannot run, the others are called one by one
        self.names = ["run_all"] if "run_all" in self.results else list(self.results)

    def run(self, machine: UnicornMachine, which: int) -> dict[str, int]:
        """Results for one seed."""
        return {name: machine.call(name, integer(machine.arch, SEEDS[which])) & MASK for name in self.names}

    def wanted(self, which: int) -> dict[str, int]:
        return {name: self.results[name][which] for name in self.names}

    def compare(self, which: int) -> Comparison:
        comparison = Comparison(self.machine, lambda machine: self.run(machine, which))
        assert comparison.plain.result == self.wanted(which), "wrong even without probes"
        return comparison


@pytest.fixture
def program(path: Path) -> Iterator[Program]:
    with_machine = Program(path)
    yield with_machine
    with_machine.machine.close()


def text(differences: list[Any]) -> str:
    return "\n".join(map(str, differences[:10]))


def hits(probes: list[Probe]) -> int:
    return sum(p.nhit for p in probes)


@pytest.mark.parametrize(("arch", "path"), PAIRS)
def test_every_instruction_at_once(arch: str, path: Path, program: Program, conformance: Conformance,
                                   thorough: bool) -> None:
    """Without --thorough of every eighth function."""
    comparison = program.compare(1)
    symbols = portion(functions(program.machine), thorough, path.stem, 8)
    probes = kprobes_everywhere(comparison.kprobes, symbols)
    total = sum(map(probeable_places, map(comparison.kprobes._survey.instructions, symbols)))
    assert len(probes) >= (1 - REFUSED) * total, f"{total - len(probes)} of {total} instructions are refused"
    proved = {"real program": len(probes)}
    with comparison.probed(probes):
        if path.stem.endswith("-O2"):
            assert not (found := comparison.again("all")), text(found)
            proved |= {"boost": sum(p.boosted for p in probes), "optimize": sum(p.optimized for p in probes)}
        before, posts = hits(probes), Counter()
        for probe in probes:
            probe.post_handler = posts
        assert not (found := comparison.again("all, with post_handlers")), text(found)
        assert hits(probes) - before == posts.count == (before or posts.count), "not every hit ran its handlers"
        assert not any(p.nmissed for p in probes)
    assert not (found := comparison.text_changed()), text(found)
    assert posts.count > len(probes) / 2, "the program runs too little of itself"
    for capability, count in {**proved, "post": posts.count}.items():
        if count:
            conformance(arch, capability, count)


@pytest.mark.sweep
@pytest.mark.parametrize(("arch", "path"), OPTIMIZED)
def test_everything_flips(arch: str, path: Path, program: Program, conformance: Conformance, thorough: bool) -> None:
    """While the program runs, handlers flip at random what decides between breakpoint, slot and jump."""
    comparison = program.compare(4)
    rng, flips = random.Random(path.stem), Flips(comparison.kprobes)
    probes = kprobes_everywhere(comparison.kprobes, functions(program.machine),
                                pre_handler=lambda p, regs: flips.tick(rng))
    flips.probes = probes = rng.sample(probes, min(len(probes), 600 if thorough else 200))
    with comparison.probed(probes):
        for turn in range(2):
            assert not (found := comparison.again(f"flipping, {turn}")), text(found)
    assert not (found := comparison.text_changed()), text(found)
    assert flips.count > 5, "nothing was flipped"
    conformance(arch, "optimize", flips.count)


class Counter:
    """A post_handler that counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, p: Any, regs: Any, flags: int) -> None:
        self.count += 1


def probeable_places(insns: list[Insn]) -> int:
    """Instructions that are not in a delay slot."""
    return sum(not before.delay_slot for before in insns[:-1]) + 1 if insns else 0


@pytest.mark.parametrize(("arch", "path"), PAIRS)
def test_one_instruction_at_a_time(arch: str, path: Path, program: Program, thorough: bool) -> None:
    comparison = program.compare(2)
    rng = random.Random(path.stem)
    places = [(s, a) for s in functions(program.machine) for a in instructions(comparison.kprobes, s)]
    for number, (symbol, address) in enumerate(rng.sample(places, min(SAMPLE if thorough else SAMPLE // 4, len(places)))):
        post = (lambda p, regs, flags: None) if number % 2 else None
        where = f"{symbol.name}+{(address & ~symbol.mode) - symbol.address:#x}{' post' if post else ''}"
        probe = Kprobe(addr=address, post_handler=post, optimize=number % 4 < 2)
        assert not (found := comparison.with_probes([probe], where)), text(found)


@pytest.mark.parametrize(("arch", "path"), PAIRS)
def test_return_probe_on_every_function(arch: str, path: Path, program: Program, conformance: Conformance,
                                        thorough: bool) -> None:
    """The results stay, every call is followed to its return, and the return handler sees the value the caller gets.
    Without --thorough on every third function."""
    if program.machine.arch.linkage is None:
        conformance.blank(arch, "return probe",
                          "no Linkage: the architecture does not say where a call leaves its return address")
        pytest.skip("no linkage")
    comparison = program.compare(3)
    values: dict[int, list[int]] = defaultdict(list)
    skipped = NO_RETURN | SAVES_ITS_RETURN.get(arch, set())
    symbols = portion([s for s in functions(program.machine) if s.name not in skipped], thorough, path.stem, 3)
    probes = kretprobes_everywhere(comparison.kprobes, symbols, maxactive=4000,
                                   handler=lambda ri, regs: values[ri.rp.address].append(regs.return_value & MASK))
    assert len(probes) > 0.9 * len(symbols)
    probed = {probe.address for probe in probes}
    with comparison.probed(probes):
        assert not (found := comparison.again("return probes")), text(found)
        assert not any(p.nmissed or p.entry_nmissed for p in probes)
        assert sum(p.nhit for p in probes) > len(probes)
        lost = sum(p.nhit - p.nreturned for p in probes)
        assert not lost or "test_setjmp" in program.machine.symbols, "calls whose return was not seen"
        values.clear()
        for name, wanted in program.results.items():
            assert program.machine.call(name, integer(program.machine.arch, SEEDS[3])) & MASK == wanted[3], name
            if name in skipped:
                continue
            symbol = program.machine.symbols[name]
            start = program.machine.arch.pointers.code_address(symbol.address | symbol.mode,
                                                               program.machine.read).place(0)
            if thorough or start in probed:
                assert values[start][-1] == wanted[3], f"{name}: the handler saw another value"
    assert not (found := comparison.text_changed()), text(found)
    conformance(arch, "return probe", len(probes))


#: __builtin_setjmp there stores the function's own return address into the jmp_buf, where a return probe's trampoline
#: shows.
SAVES_ITS_RETURN = {"sparc": {"attempt"}, "sparc64": {"attempt"}}
#: Never return, or not where they were called.
NO_RETURN = {"_start", "my_longjmp", "longjmp"}


@pytest.mark.parametrize(("arch", "path"), OPTIMIZED)
def test_every_function_by_itself(arch: str, path: Path, program: Program, thorough: bool) -> None:
    """Each test function with probes on all its own instructions, for two seeds: jumps whose neighbours are not
    probed."""
    which = {0: SEEDS[0], 5: SEEDS[5]}
    comparison = program.compare(0)
    for name, wanted in portion([*program.results.items()], thorough, path.stem, 3):
        with comparison.probed(kprobes_everywhere(comparison.kprobes, [program.machine.symbols[name]])):
            got = {n: program.machine.call(name, integer(program.machine.arch, seed)) & MASK
                   for n, seed in which.items()}
        assert got == {n: wanted[n] for n in which}, name


@pytest.mark.parametrize("path", sorted((HERE.parent / "examples").glob("demo.*[!c]")), ids=lambda path: path.name)
def test_examples(path: Path) -> None:
    """The README's program checks itself: `_start` returns 0."""
    comparison = Comparison(UnicornMachine.load(path), lambda machine: machine.call("_start"))
    assert comparison.plain.result == 0
    probes = kprobes_everywhere(comparison.kprobes, functions(comparison.machine), pre_handler=lambda p, regs: None)
    assert not (found := comparison.with_probes(probes, "all")), text(found)
    assert hits(probes) > len(probes)
    returns = kretprobes_everywhere(comparison.kprobes, functions(comparison.machine), maxactive=1000,
                                    handler=lambda ri, regs: None)
    assert not (found := comparison.with_probes(returns, "return probes")), text(found)


@pytest.mark.parametrize("arch", NO_PROGRAMS)
def test_without_programs(arch: str, conformance: Conformance) -> None:
    """What only compiled programs prove is blank, with the reason."""
    assert not programs_of(arch)
    for capability in CAPABILITIES:
        conformance.blank(arch, capability, NO_PROGRAMS[arch])


def test_limits_are_of_programs() -> None:
    """engine_limits.json names programs and functions that there are."""
    for path in (PROGRAMS / "bin").glob("*.elf"):
        assert set(limits(path.stem)) <= {*expected()["tests"], "run_all"}
