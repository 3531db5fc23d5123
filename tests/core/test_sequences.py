"""Any sequence of registrations, switches, hits, returns and faults. After every step the guest's text is the original
one and the patches that the table lists, and every counter is what a simple model says; at the end nothing is left."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import unicorn
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from scenes import Scene

from kprobes import GuestFault, Jprobe, Kprobe, Kretprobe
from kprobes.errors import AlreadyRegistered, JprobeExists, NotRegistered
from kprobes.testing import Recorder

pytestmark = pytest.mark.filterwarnings("ignore::kprobes.ReturnMissed")  # what is missed is counted here

#: (function, number of the instruction): probes are spread over these. fetch's first instruction may fault.
PLACES = [("inc", 0), ("inc", 0), ("inc", 1), ("twice", 0), ("twice", 2), ("probed", 0), ("probed", 1), ("probed", 2),
          ("fetch", 0), ("hop", 0)]
CALLS = {"inc": 4, "twice": 4, "deep": 4, "probed": 4, "hop": 4, "down": 3}
RESULTS = {"inc": 5, "twice": 6, "deep": 6, "probed": 7, "hop": 5, "down": 3}
ENTRIES = ("inc", "twice", "probed", "hop", "down")
NESTED = "twice"  # what the nesting probe's handler calls


def executed(scene: Scene, function: str, *args: int) -> Counter[int]:
    """How often each instruction is executed in a call, found out before there is any probe."""
    seen: Counter[int] = Counter()
    if scene.name == "paper":
        scene.m.before = lambda m, cpu: seen.update([m._values[cpu]["pc"]])
        scene.m.call(function, *args)
        scene.m.before = None
    else:
        hook = scene.m.uc.hook_add(unicorn.UC_HOOK_CODE, lambda uc, address, size, user: seen.update([address]))
        scene.m.call(function, *args)
        scene.m.uc.hook_del(hook)
    return seen


class Model:
    """What a probe's counters should be, and whether its handlers may run."""

    def __init__(self, probe: Any, address: int) -> None:
        self.probe, self.address = probe, address
        self.registered = self.enabled = False
        self.nhit = self.missed = self.returned = 0

    def facts(self) -> tuple[Any, ...]:
        return self.registered, self.registered and self.enabled, self.nhit, self.missed, self.returned

    def seen(self) -> tuple[Any, ...]:
        p = self.probe
        missed = p.entry_nmissed if isinstance(p, Kretprobe) else p.nmissed
        return p.registered, p.enabled, p.nhit, missed, p.nreturned if isinstance(p, Kretprobe) else 0


class Sequences(RuleBasedStateMachine):
    """Thirteen probes of all kinds on a few addresses, and the model of each."""

    machine = "paper"

    def __init__(self) -> None:
        super().__init__()
        self.scene = scene = Scene(self.machine)
        self.word = scene.word(7)
        self.executions = {f: executed(scene, f, arg)
                           for f, arg in CALLS.items()} | {"fetch": executed(scene, "fetch", self.word)}
        scene.k.close()
        scene = self.scene = Scene.on(scene)
        self.r = Recorder()
        self.models: list[Model] = []
        self.switch = True
        for n, (function, index) in enumerate(PLACES):
            address = scene.at(function, index)
            p = Kprobe(addr=address, pre_handler=self.r.pre(str(n)) if n % 3 else None,
                       post_handler=self.r.post(str(n)) if n % 2 else None)
            self.models.append(Model(p, address))
        for function in ENTRIES:
            self.models.append(Model(Kretprobe(symbol_name=function, handler=self.r.returns(function)),
                                     scene.at(function)))
        self.models.append(Model(Jprobe(symbol_name="inc", entry=self.r.mirror("inc", 1)), scene.at("inc")))
        self.models.append(Model(Jprobe(symbol_name="inc", entry=self.r.mirror("again", 1)), scene.at("inc")))
        self.nesting = Model(Kprobe(symbol_name="fetch", pre_handler=lambda p, regs: self.nest()), scene.at("fetch"))
        self.models.append(self.nesting)
        self.nested_results: list[int] = []

    def nest(self) -> None:
        self.nested_results.append(self.scene.m.call(NESTED, CALLS[NESTED]))

    # --- the model

    def at(self, address: int) -> list[Model]:
        return [m for m in self.models if m.registered and m.address == address]

    def armed(self, address: int) -> bool:
        return self.switch and any(m.enabled for m in self.at(address))

    def happened(self, executions: Counter[int], *, missed: bool = False, returned: bool = True) -> None:
        for address, times in executions.items():
            for m in self.at(address) if self.armed(address) else ():
                if missed:
                    m.missed += times
                elif m.enabled:
                    m.nhit += times
                    m.returned += times if isinstance(m.probe, Kretprobe) and returned else 0
                    if m is self.nesting:
                        self.happened(self.executions[NESTED], missed=True)

    # --- what may be done

    which = st.integers(0, len(PLACES) + len(ENTRIES) + 2)

    @initialize(choice=st.lists(st.sampled_from(["no", "yes", "disabled"]), min_size=17, max_size=17))
    def begin(self, choice: list[str]) -> None:
        for n, what in enumerate(choice):
            if what != "no":
                self.register(n, disabled=what == "disabled")

    @rule(n=which, disabled=st.booleans())
    def register(self, n: int, disabled: bool) -> None:
        m = self.models[n]
        if not m.registered:
            m.probe.disabled = disabled
        twin = isinstance(m.probe, Jprobe) and any(isinstance(o.probe, Jprobe) for o in self.at(m.address))
        if m.registered:
            with pytest.raises(AlreadyRegistered):
                self.scene.k.register(m.probe)
        elif twin:
            with pytest.raises(JprobeExists):
                self.scene.k.register(m.probe)
        else:
            self.scene.k.register(m.probe)
            m.registered, m.enabled = True, not disabled
            m.nhit = m.missed = m.returned = 0

    @rule(n=which)
    def unregister(self, n: int) -> None:
        m = self.models[n]
        if m.registered:
            self.scene.k.unregister(m.probe)
            m.registered = False
        else:
            with pytest.raises(NotRegistered):
                self.scene.k.unregister(m.probe)

    @rule(ns=st.lists(which, min_size=1, max_size=6, unique=True))
    def unregister_batch(self, ns: list[int]) -> None:
        models = [self.models[n] for n in ns]
        if all(m.registered for m in models):
            self.scene.k.unregister_kprobes([m.probe for m in models])
        else:
            with pytest.raises(NotRegistered):
                self.scene.k.unregister_kprobes([m.probe for m in models])
        for m in models:
            m.registered = False

    @rule(n=which, on=st.booleans())
    def enable(self, n: int, on: bool) -> None:
        m = self.models[n]
        change = self.scene.k.enable_kprobe if on else self.scene.k.disable_kprobe
        if m.registered:
            change(m.probe)
            m.enabled = on
        else:
            with pytest.raises(NotRegistered):
                change(m.probe)

    @rule(on=st.booleans())
    def flip(self, on: bool) -> None:
        self.scene.k.enabled = on
        self.switch = on

    @rule(on=st.booleans())
    def optimization(self, on: bool) -> None:
        self.scene.k.optimization = on

    @rule()
    def flush(self) -> None:
        self.scene.k.flush_optimizer()

    @rule(function=st.sampled_from(sorted(CALLS)))
    def call(self, function: str) -> None:
        assert self.scene.m.call(function, CALLS[function]) == RESULTS[function]
        self.happened(self.executions[function])

    @rule()
    def fetch(self) -> None:
        assert self.scene.m.call("fetch", self.word) == 7
        self.happened(self.executions["fetch"])

    @rule()
    def fault(self) -> None:
        with pytest.raises(GuestFault) as raised:
            self.scene.m.call("fetch", self.scene.unmapped)
        assert raised.value.pc == self.scene.at("fetch")
        self.happened(Counter([self.scene.at("fetch")]))

    @precondition(lambda self: any(m.registered for m in self.models))
    @rule()
    def refused_batch(self) -> None:
        """All or nothing: the last one is registered already."""
        new = Kprobe(symbol_name="deep")
        old = next(m.probe for m in self.models if m.registered)
        with pytest.raises(AlreadyRegistered):
            self.scene.k.register_kprobes([new, old])
        assert not new.registered

    # --- what must always hold

    @invariant()
    def the_text_is_the_original_and_the_patches(self) -> None:
        assert self.scene.text() == self.scene.patched()
        for m in self.models:
            patched = any(p.addr == m.address for p in self.scene.k._text.patches)
            assert patched or not self.armed(m.address)

    @invariant()
    def counters_are_the_models(self) -> None:
        assert [m.seen() for m in self.models] == [m.facts() for m in self.models]
        assert all(result == RESULTS[NESTED] for result in self.nested_results)

    @invariant()
    def the_list_is_the_models(self) -> None:
        listed = sorted((r.address, r.type, "DISABLED" in r.flags) for r in self.scene.k.list())
        assert listed == sorted((m.address, m.probe.family, not m.enabled) for m in self.models if m.registered)

    @invariant()
    def nothing_is_left_running(self) -> None:
        assert self.scene.k.idle
        assert self.scene.k._calls.pending == 0

    def teardown(self) -> None:
        self.scene.k.flush_optimizer()
        wanted = {m.address for m in self.models if self.armed(m.address)}
        assert {p.addr for p in self.scene.k._text.patches} == wanted
        self.scene.close()
        assert not any(m.probe.registered for m in self.models)


class OnEngine(Sequences):
    machine = "x86_64"


def play(sequences: type[Sequences], examples: int, steps: int) -> None:
    run_state_machine_as_test(sequences, settings=settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
        phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck)))


def test_on_paper(thorough: bool) -> None:
    play(Sequences, 100 if thorough else 30, 40)


def test_on_the_engine() -> None:
    play(OnEngine, 12, 30)
