"""Probes in all slots of a bundle on the model, one of them disabled: they come and go in every order, of every template.

One alone is a jump; two are breakpoints, each in its own bits.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest
from itanium import BASE, HOME, PAGE, TEMPLATES, ending, executions, insn_at, machine, slots, some, why_not

from kprobes import Kprobe, Kprobes
from kprobes.arch.ia64 import bundle
from kprobes.conformance import Conformance
from kprobes.machine.paper import PaperMachine

SHARE = 12  # of all orders, each template has one in so many; together they have all
Order = tuple[int, ...]


def orders(template: int, share: int) -> Iterator[tuple[Order, int | None, Order]]:
    """(order of coming, who is disabled and enabled again between, order of leaving)."""
    there = tuple(slots(template))
    every = itertools.product(itertools.permutations(there), (None, *there), itertools.permutations(there))
    return itertools.islice(every, share % SHARE, None, SHARE)


class Neighbours:
    """A bundle with probes, held against the same one without."""

    def __init__(self, code: bytes, k: Kprobes, m: PaperMachine) -> None:
        self.code, self.k, self.m, self.plain = code, k, m, machine(code)
        self.slots = slots(bundle.parts(code)[0])
        self.wanted = [ending(self.plain, seed) for seed in range(2)]
        self.hits = {slot: [executions(code, slot, seed, 0) for seed in range(2)] for slot in self.slots}
        self.probes = {slot: Kprobe(addr=HOME + slot, pre_handler=lambda p, regs: None) for slot in self.slots}

    def holds(self, active: set[int], *, flush: bool) -> bool:
        """As without probes, with hits of those who are active; True where one of them is a jump."""
        self.m.regs.pc = BASE  # no CPU stands in the bundle, where the last run may have ended by a fault
        if flush:
            self.k.flush_optimizer()
        for seed in range(2):
            before = {slot: probe.nhit for slot, probe in self.probes.items()}
            assert ending(self.m, seed) == self.wanted[seed]
            for slot, probe in self.probes.items():
                assert probe.nhit - before[slot] == (self.hits[slot][seed] if slot in active else 0), slot
        jumps = [slot for slot, probe in self.probes.items() if probe.optimized]
        alone = len(active) == 1 and not why_not(self.code, min(active))
        wanted = sorted(active) if alone and (flush or any(self.hits[min(active)])) else []
        assert jumps == wanted, [probe.why_not_optimized for probe in self.probes.values() if probe.registered]
        self.text(active, jumps)
        return bool(jumps)

    def text(self, active: set[int], jumps: list[int]) -> None:
        """Only the bits of who is there are other ones; before a jump there is nothing of ours."""
        (template, words), (now, there) = bundle.parts(self.code), bundle.parts(self.m.read(HOME, 16))
        if jumps:
            assert there[: jumps[0]] == words[: jumps[0]]
            assert bundle.units(now)[: jumps[0]] == bundle.units(template)[: jumps[0]]
            return
        changed = {min(n, self.slots[-1]) for n in range(3) if there[n] != words[n]}
        assert (now, changed) == (template, active)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: f"{bundle.units(template)}-{template:02x}")
def test_they_come_and_go(template: int, conformance: Conformance) -> None:
    seen = 0
    for number, (coming, disabled, leaving) in enumerate(orders(template, TEMPLATES.index(template))):
        rng = random.Random(template << 8 | number)
        words = some(template, rng)
        code = bundle.join(template, words)
        assert not any(insn_at(code, slot).reject for slot in slots(template))
        m, flush = machine(code), bool(number & 1)
        with Kprobes(m) as k:
            scene, active = Neighbours(code, k, m), set[int]()
            for slot in coming:
                k.register(scene.probes[slot])
                active.add(slot)
                seen += scene.holds(active, flush=flush)
            if disabled is not None:
                k.disable(scene.probes[disabled])
                scene.holds(active - {disabled}, flush=flush)
                if number & 2:
                    k.enable(scene.probes[disabled])
                    scene.holds(active, flush=flush)
                else:
                    active.discard(disabled)
            for slot in leaving:
                k.unregister(scene.probes[slot])
                active.discard(slot)
                seen += scene.holds(active, flush=flush)
        assert m.read(BASE, PAGE) == scene.plain.read(BASE, PAGE)
    assert seen
    conformance("ia64", "colocated", number + 1)
