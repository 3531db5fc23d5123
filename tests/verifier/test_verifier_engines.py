"""What the verifier accepts means the same in every engine: results, maps, and padding that nobody wrote."""

from __future__ import annotations

import random

import pytest
from verifier.asm import code
from verifier.fuzz import Guest, contexts, mutated, written
from verifier.test_verifier_c import NAMES, built

from kprobes import ProgramError
from kprobes.programs.code import Code
from kprobes.programs.host import HostEngine
from kprobes.programs.interpreter import Interpreter
from kprobes.programs.verifier import Facts, verify

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.host_code


def same(program: Code, facts: Facts, seed: int, runs: int) -> None:
    """Runs a program in both engines, from the same state of its maps each time."""
    interpreter, host = Interpreter(program), HostEngine(program, facts)
    memory = [m.block.view for m in program.maps]
    for context in contexts(random.Random(seed), runs):
        before = [bytes(view) for view in memory]
        wanted = interpreter.run(context, Guest(), limit=facts.steps), [bytes(view) for view in memory]
        for view, old in zip(memory, before, strict=True):
            view[:] = old
        assert (host.run(context, Guest()), [bytes(view) for view in memory]) == wanted


@pytest.mark.parametrize("block", range(8))
def test_random_programs_are_the_same(block: int) -> None:
    tested = 0
    for seed in range(90_000 + block * 12, 90_012 + block * 12):
        for program in (written(seed), mutated(written(seed), random.Random(seed))):
            try:
                facts = verify(program, seconds=0.5)
            except ProgramError:
                continue
            same(program, facts, seed, 6)
            tested += 1
    assert tested


@pytest.mark.parametrize("name", [n for n in NAMES if n != "inject"])  # it asks for random numbers
def test_sensible_c_is_the_same(name: str) -> None:
    program = built("bpfel", "-O2", "v3")[name].code
    same(program, verify(program), 1, 6)


def test_padding_of_a_frame_is_zero_whoever_was_there_before() -> None:
    """A second function's frame is where the first one's was."""
    program = code("call local f; call local g; mov64 r0, 0; exit; f: stdw [r10-8], -1; mov64 r0, 0; exit; "
                   "g: stw [r10-8], 5; mov64 r2, r10; add64 r2, -8; lddw r3, map[3].value+0; mov64 r4, 0; lddw r1, "
                   "map[1]; call 2; exit")
    facts = verify(program)
    assert list(facts.cleared.values()) == [8]
    same(program, facts, 1, 2)
    assert list(program.maps[1]) == [5]
