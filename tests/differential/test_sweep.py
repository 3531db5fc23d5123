"""Random encodings: cases with a few bits changed, and plain random bytes; probed == unprobed for all that may be
probed. Without --thorough an eighth of them.

KPROBES_SWEEP_SEED and KPROBES_SWEEP_COUNT (instructions per architecture) make it a longer search.
"""

from __future__ import annotations

import os
import random

import pytest
from arches import RUNNABLE, cases_of

from kprobes import KprobeError
from kprobes.conformance import Conformance
from kprobes.testing import Bench, encodings

SEED = int(os.environ.get("KPROBES_SWEEP_SEED", "1"))
COUNT = int(os.environ.get("KPROBES_SWEEP_COUNT", "800"))
PARTS = 2
LEAST = 0.2  # of the instructions tried must have been compared: a sweep that refuses everything proves nothing


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("arch", [arch for arch in RUNNABLE if cases_of(arch).cases])
def test_random_encodings(arch: str, part: int, benches: dict[str, Bench], conformance: Conformance,
                          thorough: bool) -> None:
    bench, rng, problems = benches[arch], random.Random(f"{SEED} {part}"), []
    tried = COUNT // PARTS if thorough else COUNT // PARTS // 8
    before, compared = bench.tally.runs, 0
    for (random_code, mode), _ in zip(encodings(rng, bench.machine.arch, bench.file), range(tried), strict=False):
        insn = bench.decode(random_code, mode)
        if bench.file.skip(insn.raw):
            continue
        code = insn.raw + (rng.choice(bench.file.slots) if insn.delay_slot else b"")
        try:
            problems += bench.check(code, mode, 2, f"{code.hex()} ({insn.name})", all_flags=False)
            compared += 1
        except KprobeError as error:
            assert insn.reject or insn.delay_slot or insn.atomic or insn.operand is not None, f"{code.hex()} ({insn.name}) decodes well, but: {error}"
    assert not problems, "\n".join(map(str, problems[:20]))
    assert compared >= LEAST * tried
    conformance(arch, "step", bench.tally.runs - before)
