"""Some mutated inputs for each parser; parsers.py goes on for as long as one likes (.ci/more: an hour)."""

from __future__ import annotations

import random

import parsers
import pytest

from kprobes import KprobeError

#: how many inputs: about a second of each
MANY = {"events": 400, "scripts": 120, "symbols": 150, "elf": 25, "debug information": 5, "objects": 60, "boards": 150,
        "svd": 200, "recordings": 80, "packets": 300, "replies": 200}
PARSERS = parsers.parsers()


def test_all_are_tried() -> None:
    assert {*MANY} == {*PARSERS}


@pytest.mark.parametrize("name", MANY)
def test_seeds_are_right(name: str) -> None:
    """Else mutations of them would test the first lines of a parser only."""
    parser = PARSERS[name]
    for seed in parser.seeds:
        (parser.sound or parser.parse)(seed)


@pytest.mark.parametrize("name", ["packets", "replies"])
@pytest.mark.parametrize("damage", ["first", "middle", "last"])
def test_a_seed_of_a_session_that_is_wrong_is_noticed(name: str, damage: str) -> None:
    """Errors end a session that is damaged; of a seed they are told."""
    parser = PARSERS[name]
    [seed] = parser.seeds
    separator = b"+$" if name == "packets" else b"\n"
    pieces = seed.split(separator)
    at = {"first": int(name == "packets"), "middle": len(pieces) // 2, "last": len(pieces) - 1}[damage]
    wrong = separator.join([*pieces[:at], *pieces[at + 1:]])
    parser.parse(wrong)
    assert parser.sound is not None
    with pytest.raises((KprobeError, IndexError)):
        parser.sound(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MANY)
def test_what_is_kept_is_an_error_of_ours_or_right(name: str) -> None:
    kept = parsers.corpus(name)
    assert kept, "python tests/fuzzers/parsers.py 60 --grow"
    assert next(parsers.defects(PARSERS[name], iter(kept)), None) is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MANY)
def test_damaged_input_is_an_error_of_ours(name: str) -> None:
    parser, chance = PARSERS[name], random.Random(name)
    begin = (*parser.seeds, *parsers.corpus(name))
    inputs = (parsers.mutated(begin, parser.words, chance) for _ in range(MANY[name]))
    assert next(parsers.defects(parser, inputs), None) is None
