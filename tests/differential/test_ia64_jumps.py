"""Itanium's jumps on the model: every template, every slot, with a predicate and without, entered everywhere."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from itanium import (
    BASE,
    CALL,
    HOME,
    MOV_PR,
    PAGE,
    TEMPLATES,
    executions,
    insn_at,
    machine,
    outcome,
    slots,
    some,
    why_not,
)

from kprobes import Kprobe, Kprobes, OutOfReach
from kprobes.arch.ia64 import bundle, jumps
from kprobes.arch.ia64.displace import word_of
from kprobes.conformance import Conformance

TO, PLACES = 0x4000, (0x5000, 0x5010)
ADD = 0x10008040200
CASES = [(template, slot) for template in TEMPLATES for slot in slots(template)]


def named(value: Any) -> str:
    return f"{bundle.units(value[0])}-{value[0]:02x}-slot {value[1]}"


# --- the bundle


@pytest.mark.quick
@pytest.mark.parametrize("case", CASES, ids=named)
@pytest.mark.parametrize("predicate", [0, 6, 63])
def test_what_stands_before_it_stays(case: tuple[int, int], predicate: int) -> None:
    """Units, words and stops of the slots before the jump; its own predicate; the rest leads to where it is displaced."""
    template, slot = case
    rng = random.Random(template)
    for _ in range(20):
        made = some(template, rng)
        at = 2 if bundle.units(template)[slot] == "X" else slot
        made[at] = made[at] & ~63 | predicate
        code = bundle.join(template, made)
        probed = insn_at(code, slot)
        places = PLACES[: len(slots(template)) - slot - 1]
        there = jumps.home(probed, TO, places)
        now, after = bundle.parts(there)
        assert after[:slot] == made[:slot]
        assert bundle.units(now)[:slot] == bundle.units(template)[:slot]
        assert now & 1 == template & 1
        branch = insn_at(there, slot)
        assert (branch.target, word_of(branch) & 63) == (TO, predicate if probed.conditional else 0)
        behind = [insn_at(there, n).target for n in slots(now)[slot + 1 :]]
        assert behind == [*places, *places[-1:]][: len(behind)]


@pytest.mark.quick
@pytest.mark.parametrize("case", CASES, ids=named)
def test_far_away(case: tuple[int, int]) -> None:
    """BRL goes everywhere; it has no slot 2, nor a template that has B before it, nor what goes on behind it."""
    template, slot = case
    units = bundle.units(template)
    far, rng = 1 << 40, random.Random(template)
    made = some(template, rng)
    for predicate in (0, 6):
        at = 2 if units[slot] == "X" else slot
        made[at] = made[at] & ~63 | predicate
        probed = insn_at(bundle.join(template, made), slot)
        reaches = units[slot] == "X" or (not probed.conditional and (slot == 0 or (slot == 1 and units[0] == "M")))
        if not reaches:
            with pytest.raises(OutOfReach):
                jumps.home(probed, far, PLACES)
            continue
        there = jumps.home(probed, far, PLACES)
        assert bundle.parts(there)[0] == bundle.MLX & ~1 | template & 1
        assert bundle.parts(there)[1][0] == (made[0] if slot else bundle.NOP["M"])
        assert insn_at(there, 1).target == far


# --- on the model


@pytest.mark.parametrize("case", CASES, ids=named)
def test_as_without_a_jump(case: tuple[int, int], conformance: Conformance) -> None:
    """Entered at each slot, in states of all predicates: registers, memory, the place of a fault, and hits."""
    template, slot = case
    seen: Counter[str] = Counter()
    for seed in range(8):
        rng = random.Random(seed << 8 | template << 2 | slot)
        made = some(template, rng)
        at = 2 if bundle.units(template)[slot] == "X" else slot
        made[at] = made[at] & ~63 | (0, 6)[seed & 1]
        code = bundle.join(template, made)
        probed = insn_at(code, slot)
        if probed.reject:
            continue
        plain, m = machine(code), machine(code)
        with Kprobes(m) as k:
            k.register(probe := Kprobe(addr=HOME + slot, pre_handler=lambda p, regs: None))
            k.flush_optimizer()
            why = why_not(code, slot)
            assert probe.optimized == (not why), (code.hex(), probe.why_not_optimized)
            assert why in probe.why_not_optimized
            seen[why or "a jump"] += 1
            for entry in slots(template):
                for state in (seed, seed + 100):
                    before, wanted = probe.nhit, outcome(plain, state, entry)
                    assert outcome(m, state, entry) == wanted, (code.hex(), entry, state)
                    assert probe.nhit - before == executions(code, slot, state, entry), (code.hex(), entry, state)
            assert probe.optimized == (not why)
        assert m.read(BASE, PAGE) == plain.read(BASE, PAGE)
    assert seen
    if slot < 2 or template >> 1 != 5:
        assert seen["a jump"] > 1
        conformance("ia64", "optimize", seen["a jump"])


@pytest.mark.quick
@pytest.mark.parametrize("slot", [0, 1, 2])
@pytest.mark.parametrize("what", ["chk.s.m", "chk.a"])
def test_checks_behind_it_go_along(slot: int, what: str) -> None:
    """They must not be probed, as nobody knows where they go on; which the guest does by itself, elsewhere too."""
    check = {"chk.s.m": 1 << 37 | 1 << 33, "chk.a": 4 << 33}[what] | 9 << 6
    code = bundle.join(0x18, (ADD if slot == 0 else bundle.NOP["M"], check, bundle.NOP["B"]))
    with Kprobes(machine(code)) as k:
        assert insn_at(code, 1).name == what
        assert k.check(HOME + slot).optimizable == (slot != 1)


@pytest.mark.quick
def test_what_check_says() -> None:
    """Where there is no jump, it has a reason."""
    for code, slot in ((bundle.join(0x0A, (ADD, ADD, ADD)), 2), (bundle.join(0x02, (ADD, MOV_PR, ADD | 6)), 2),
                       (bundle.join(0x16, (CALL, bundle.NOP["B"], bundle.NOP["B"])), 0),
                       (bundle.join(0x12, (ADD, bundle.NOP["B"], CALL)), 1)):
        with Kprobes(machine(code)) as k:
            verdict = k.check(HOME + slot)
            assert not verdict.optimizable
            assert why_not(code, slot)
            assert why_not(code, slot) in verdict.why_not_optimized
