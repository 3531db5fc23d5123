"""Every case of every architecture: probed == unprobed, in registers, memory, target and fault.

Each runs in several random states - in every combination of the condition flags where the simulation reads them - with
a boosted probe and with one that has a post_handler. Displaced code is run by itself, too: for most of the instructions
that have such an optimized probe needs a region, which a case has not.

Without --thorough each runs in one random state, and one of eight in every combination of the flags; without --all a few
cases of each row run, others on architectures that are alike.
"""

from __future__ import annotations

import zlib

import pytest
from arches import RUNNABLE, cases_of
from portion import portion

from kprobes import NotAnInstruction, Unprobeable
from kprobes.conformance import Conformance
from kprobes.testing import Bench, Case

FEW = 3  #: cases of a row without --all
STATES = 4  #: random ones, of each case; 1 without --thorough
SOME = 8  #: one case of so many has all flags without --thorough


def rows() -> list[tuple[str, str]]:
    """(architecture, row name), in file order."""
    return [(arch, row) for arch in RUNNABLE for row in dict.fromkeys(case.row for case in cases_of(arch).cases)]


def cases(bench: Bench, arch: str, row: str, every: bool) -> list[Case]:
    """The cases of a row that run: all, or a few. All that are refused, which costs nothing."""
    known = [case for case in bench.file.cases if case.row == row and not bench.file.skip(case.code)]
    running = [case for case in known if case.outcome != "reject"]
    return [case for case in known if case.outcome == "reject"] + portion(
        running, every, f"{arch} {row}", -(-len(running) // FEW) or 1)


def prove(bench: Bench, case: Case, thorough: bool) -> list[str]:
    """What is wrong with one case: before its first delay slot in all states of the flags, before others in random
    ones.

    Args:
        bench: the architecture's.
        case: of its file.
        thorough: False for one random state, and all flags for some cases only.
    """
    states = STATES if thorough else 1
    flags = thorough or zlib.crc32(case.code) % SOME == 0
    slots = bench.file.slots if bench.decode(case.code, case.mode).delay_slot else [b""]
    assert slots, f"{case}: the case file has no %slot line for delay slots"
    return [str(d) for slot in slots
            for d in bench.check(case.code + slot, case.mode, states, str(case), all_flags=flags and slot is slots[0])]


@pytest.mark.whole
@pytest.mark.parametrize(("arch", "row"), rows())
def test_probed_is_unprobed(arch: str, row: str, benches: dict[str, Bench], conformance: Conformance,
                            every: bool, thorough: bool) -> None:
    bench, problems, before = benches[arch], [], benches[arch].tally.runs
    proved, displaced, displaceable = {"step": 0, "simulate": 0}, bench.tally.displaced, False
    if row == "truncated":
        return  # half an instruction is whole where memory goes on
    for case in cases(bench, arch, row, every):
        if case.outcome == "reject":
            with pytest.raises((Unprobeable, NotAnInstruction)):
                bench.check(case.code, case.mode)
            continue
        problems += prove(bench, case, thorough)
        insn = bench.decode(case.code, case.mode)
        displaceable |= insn.displace is not None and not insn.together
        proved[case.outcome] += bench.tally.runs - before
        before = bench.tally.runs
    if displaceable and bench.tally.displaced == displaced and not thorough:  # by chance: in one state each has faulted
        for case in cases(bench, arch, row, True):
            if case.outcome != "reject" and bench.tally.displaced == displaced:
                problems += prove(bench, case, True)
    assert not problems, "\n".join(problems[:20])
    assert bench.tally.displaced > displaced or not displaceable, "no displaced code was run"
    for outcome, count in proved.items():
        if count:
            conformance(arch, outcome, count)
