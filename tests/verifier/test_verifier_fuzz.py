"""Random programs with fixed seeds, and mutations of them and of what clang makes: those that are accepted keep the
verifier's word."""

from __future__ import annotations

import random

import pytest
from verifier.fuzz import mutated, tried, written
from verifier.test_verifier_c import NAMES, built

BLOCK = 10


@pytest.mark.quick
@pytest.mark.parametrize("block", range(6))
def test_random_programs(block: int) -> None:
    assert sum(tried(written(seed), seed) for seed in range(block * BLOCK, block * BLOCK + BLOCK))


@pytest.mark.parametrize("block", range(12))
def test_more_random_programs(block: int) -> None:
    accepted = 0
    for seed in range(1000 + block * 25, 1025 + block * 25):
        code = written(seed)
        accepted += tried(code, seed) + tried(mutated(code, random.Random(seed)), seed)
    assert accepted


@pytest.mark.parametrize("name", NAMES)
def test_mutations_of_sensible_c(name: str) -> None:
    code, r = built("bpfel", "-O2", "v3")[name].code, random.Random(name)
    assert sum(tried(mutated(code, r), seed, 6) for seed in range(12))
