"""Itanium's cases on the model: every instruction in its slot, in many states, with a probe of each kind and without."""

from __future__ import annotations

import random
from typing import Any

import pytest
from itanium import ARCH, BASE, FILE, HOME, PAGE, ending, machine, state, words

from kprobes import Kprobe, Kprobes, Unprobeable
from kprobes.arch.ia64 import bundle
from kprobes.arch.ia64.displace import word_of
from kprobes.arch.ia64.rows import ALWAYS
from kprobes.arch.ia64.simulate import holds
from kprobes.conformance import Conformance
from kprobes.machine.paper import PaperMachine
from kprobes.testing import Case

STATES = 8
KINDS: dict[str, dict[str, Any]] = {
    "a jump": {}, "boosted": {}, "stepped": {"optimize": False},
    "with a post_handler": {"post_handler": lambda p, regs, flags: None}}
PROBED = [case for case in FILE.cases if case.outcome != "reject"]


@pytest.mark.parametrize("case", PROBED, ids=lambda case: f"{case.line} {case.asm}")
def test_as_without_a_probe(case: Case, conformance: Conformance) -> None:
    addr = HOME | case.mode
    insn = ARCH.decode(case.code, addr)
    plain = machine(case.code)
    wanted = [ending(plain, seed, addr) for seed in range(STATES)]
    for kind, fields in KINDS.items():
        m = machine(case.code)
        with Kprobes(m) as k:
            k.optimization = kind == "a jump"
            k.register(probe := Kprobe(addr=addr, pre_handler=lambda p, regs: None, **fields))
            k.flush_optimizer()
            may = not insn.links or insn.next == HOME + 16  # a call goes on with the next bundle
            assert probe.optimized == (kind == "a jump" and may), probe.why_not_optimized
            for seed in range(STATES):
                hits, executed = probe.nhit, insn.name in ALWAYS or _holds(plain, insn, seed)
                assert ending(m, seed, addr) == wanted[seed], f"{kind}, state {seed}"
                assert probe.nhit - hits == executed, f"{kind}, state {seed}"
        assert m.read(BASE, PAGE) == plain.read(BASE, PAGE), kind
    if not wanted[0][0].startswith("the model does not know"):
        conformance("ia64", case.outcome, STATES)


def _holds(m: PaperMachine, insn: Any, seed: int) -> bool:
    m.cpu_regs[0]["pr"] = state(seed)["pr"]
    return holds(m.cpu_regs[0], word_of(insn) & 63)


@pytest.mark.quick
@pytest.mark.parametrize("case", [case for case in FILE.cases if case.outcome == "reject"],
                         ids=lambda case: f"{case.line} {case.asm}")
def test_what_is_refused(case: Case) -> None:
    with Kprobes(machine(case.code)) as k, pytest.raises(Unprobeable):
        k.register(Kprobe(addr=HOME | case.mode))


# --- several at once

LENGTH = 6  # bundles


def random_text(rng: random.Random) -> bytes:
    """Bundles of words from the cases, with other predicates; the last branches back, or goes on, as ar.lc says."""
    pool = words()
    kinds = [template for template, units in bundle.UNITS.items() if "X" not in units]
    made = []
    for _ in range(LENGTH):
        template = rng.choice(kinds)
        slots = [rng.choice(pool[unit]) for unit in bundle.units(template << 1)]
        made.append(bundle.join(template << 1 | 1, [word & ~63 | rng.choice((0, 0, word & 63, 6, 16)) for word in slots]))
    loop = bundle.near(5 << 6 | 4 << 37, HOME + 16 * LENGTH, HOME, bundle.BRANCH)  # br.cloop
    return b"".join(made) + bundle.join(0x11, (bundle.NOP["M"], bundle.NOP["I"], loop))


def probes(rng: random.Random) -> list[Kprobe]:
    """In some slots, of all kinds, in any order."""
    places = [HOME + 16 * n + slot for n in range(LENGTH + 1) for slot in range(3)]
    chosen = rng.sample(places, rng.choice((1, 3, 8, len(places))))
    return [Kprobe(addr=addr, pre_handler=lambda p, regs: None, **rng.choice(list(KINDS.values()))) for addr in chosen]


@pytest.mark.parametrize("seed", range(60))
def test_random_bundles(seed: int, conformance: Conformance) -> None:
    """Six bundles that are executed up to eight times, with probes in any slots that come and go, and without."""
    rng = random.Random(seed)
    text = random_text(rng)
    plain, m = machine(text), machine(text)
    with Kprobes(m) as k:
        for state_seed in range(4):
            wanted = ending(plain, state_seed)
            registered = probes(rng)
            k.register_all(registered)
            if rng.random() < 0.5:
                k.flush_optimizer()
            assert ending(m, state_seed) == wanted
            for probe in rng.sample(registered, len(registered) // 2):
                k.unregister(probe)
            assert ending(m, state_seed) == wanted
            k.unregister_all([probe for probe in registered if probe.registered])
    assert m.read(BASE, PAGE) == plain.read(BASE, PAGE)
    conformance("ia64", "real program", LENGTH)
