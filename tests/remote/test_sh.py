"""SuperH's compiled programs under QEMU: a probe on every instruction that may have one, return probes on all
functions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from arches import expected
from portion import portion
from qemu import USER_MODE, qemu_for

from kprobes import Kprobe, Kprobes, Kretprobe, QemuMachine
from kprobes.conformance import Conformance
from kprobes.symbols import Symbol
from kprobes.testing import functions

#: program -> the tests whose functions are probed; (): all. These have constants in the text, jump tables, atomic
#: sequences, changes of FPSCR, division by steps
SOME = ("test_float", "test_convert", "test_switch", "test_atomics", "test_divide32")
STEMS = {"sh4-O2": (), "sh4-O0": SOME, "sh4eb-O2": SOME, "sh4eb-O0": SOME}


@pytest.fixture(params=STEMS)
def stem(request: pytest.FixtureRequest) -> str:
    qemu_for(request.param)
    return str(request.param)


def start(path: Path) -> QemuMachine:
    return QemuMachine.user([path], env={}, timeout=20, stdout=subprocess.DEVNULL)


def wanted(m: QemuMachine, names: Sequence[str] = ()) -> dict[str, int]:
    """Name -> result for the second seed."""
    return {name: values[1] for name, values in expected()["tests"].items()
            if name in m.symbols and (not names or name in names)}


def run(m: QemuMachine, name: str) -> int:
    return m.call(name, expected()["seeds"][1], timeout=300)


def reached(m: QemuMachine, k: Kprobes, name: str, left: list[Symbol]) -> list[Symbol]:
    """The functions that a test calls."""
    entries = [Kprobe(addr=symbol.address) for symbol in left if k.check(symbol.address).probeable]
    if not entries:
        return []
    k.register_kprobes(entries)
    run(m, name)
    hit = {entry.address for entry in entries if entry.nhit}
    k.unregister_kprobes(entries)
    return [symbol for symbol in left if symbol.address in hit]


def test_every_instruction(stem: str, programs: Callable[[str], Path], conformance: Conformance,
                           thorough: bool) -> None:
    """Whatever a test reaches, probed with all that surrounds it: its result, and most instructions are hit."""
    names = portion(STEMS[stem] if thorough else SOME, thorough, stem, 2)
    with start(programs(stem)) as m, Kprobes(m) as k:
        left, probed, done = functions(m), 0, 0

        def once(probe: Kprobe, regs: Any) -> None:
            k.disable_kprobe(probe)

        for name, result in wanted(m, names).items():
            now = reached(m, k, name, left)
            left = [symbol for symbol in left if symbol not in now]
            places = [at for symbol in now for at in range(symbol.address, symbol.address + symbol.size, 2)]
            probes = [Kprobe(addr=at, pre_handler=once) for at in places if k.check(at).probeable]
            if probes:
                k.register_kprobes(probes)
                assert run(m, name) == result, name
                probed, done = probed + len(probes), done + sum(probe.nhit > 0 for probe in probes)
                k.unregister_kprobes(probes)
            assert run(m, name) == result, name
        assert done > 0.85 * probed
        conformance.under(USER_MODE)(m.arch.name, "kprobe", done)
        conformance.under(USER_MODE)(m.arch.name, "real program", done)


def test_return_probes_on_all_functions(stem: str, programs: Callable[[str], Path], conformance: Conformance,
                                        thorough: bool) -> None:
    """Without --thorough a third of the tests run."""
    with start(programs(stem)) as m, Kprobes(m) as k:
        backs = [Kretprobe(addr=symbol.address, handler=lambda ri, regs: None) for symbol in functions(m)
                 if symbol.name not in ("_start", "run_all")]
        for back in backs:
            k.register_kretprobe(back)
        results = wanted(m)
        results = {name: results[name] for name in portion([*results], thorough, stem, 3)}
        assert {name: run(m, name) for name in results} == results
        done = [back for back in backs if back.nreturned]
        assert len(done) > (0.9 if thorough else 0.2) * len(backs)
        conformance.under(USER_MODE)(m.arch.name, "return probe", len(done))
