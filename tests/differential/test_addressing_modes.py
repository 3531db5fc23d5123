"""z/Architecture's other addressing modes, 24 and 31 bits: relative branches, and the return addresses they save."""

from __future__ import annotations

import pytest
from arches import cases_of

from kprobes.conformance import Conformance
from kprobes.testing import Bench

FILE = cases_of("s390x")
MODES = {"24 bits": 0, "31 bits": 1}  # PSW bits 31 and 32


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_relative_branches(mode: int, conformance: Conformance, thorough: bool) -> None:
    """To places that all modes reach; of branches to registers the engine leaves more bits in pc than the mode has."""
    machine = Bench.make_machine("s390x")
    machine.regs["pswm"] = machine.regs["pswm"] & ~(3 << 31) | mode << 31
    bench, problems, saving = Bench(machine, FILE), [], set()
    for case in FILE.cases:
        insn = bench.decode(case.code)
        if insn.target is not None and insn.target < 1 << 24:
            problems += bench.check(case.code, states=4 if thorough else 1, where=str(case), all_flags=thorough)
            saving |= {insn.name} if insn.links else set()
    bench.close()
    assert not problems, "\n".join(map(str, problems[:20]))
    assert saving == {"BRAS", "BRASL"}
    conformance("s390x", "simulate", bench.tally.runs)
