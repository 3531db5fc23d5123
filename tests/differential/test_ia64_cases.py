"""Itanium's cases on the model: every instruction in its slot, in many states, with a probe of each kind and without."""

from __future__ import annotations

import random
from typing import Any

import pytest
from arches import cases_of

from kprobes import GuestFault, Kprobe, Kprobes, Unprobeable
from kprobes import arch as architectures
from kprobes.arch.ia64 import bundle, frames
from kprobes.arch.ia64.displace import word_of
from kprobes.arch.ia64.rows import ALWAYS
from kprobes.arch.ia64.simulate import holds
from kprobes.conformance import Conformance
from kprobes.machine.ia64 import model
from kprobes.machine.paper import PaperMachine
from kprobes.testing import Case

ARCH, FILE = architectures.get("ia64"), cases_of("ia64")
BASE, HOME, PAGE, DATA, BSP = 0x1000, 0x1800, 0x1000, 0xC800, 0xC400
STOP = bundle.join(0x09, (0x55 << 6, bundle.NOP["M"], bundle.NOP["I"]))  # a breakpoint of the guest's own
STATES = 8
KINDS: dict[str, dict[str, Any]] = {
    "boosted or a jump": {}, "stepped": {"optimize": False},
    "with a post_handler": {"post_handler": lambda p, regs, flags: None}}
PROBED = [case for case in FILE.cases if case.outcome != "reject"]


def machine(case: Case) -> PaperMachine:
    """The bundle, and breakpoints wherever it may lead."""
    text = bytearray(STOP * (PAGE // 16))
    text[HOME - BASE : HOME - BASE + 16] = case.code
    return model(bytes(text), base=BASE, symbols={"here": (HOME, 16)})


def frame(rng: random.Random) -> int:
    """A CFM that can be."""
    sor = rng.choice((0, 0, 1, 2, 12))
    sof = rng.randint(sor * 8, 96)
    gr = rng.randrange(sor * 8) if sor else 0
    return sof | rng.randint(0, sof) << 7 | sor << 14 | gr << 18 | rng.randrange(96) << 25 | rng.randrange(48) << 32


def state(seed: int) -> dict[str, int]:
    """Registers: addresses where there may be some, numbers of all sizes elsewhere."""
    rng = random.Random(seed)
    numbers = (0, 1, 2, (1 << 64) - 1, 1 << 63, 5, rng.getrandbits(64), rng.getrandbits(32), rng.getrandbits(8))
    regs = {name: rng.choice(numbers) for name in ARCH.regs.names if name != "pc"}
    regs |= {name: rng.getrandbits(82) if rng.random() < 0.5 else 0x1003E << 64 | rng.choice(numbers)
             for name in ARCH.regs.names if name[0] == "f"}
    regs |= {f"b{n}": rng.choice((HOME + 0x40, HOME - 0x20, HOME + 0x43, 0x9000, rng.getrandbits(64))) for n in range(8)}
    regs |= {"r0": 0, "r12": 0xCF00, "r14": DATA + 8 * rng.randrange(32), "pr": rng.getrandbits(64) | 1,
             "cfm": frame(rng), "ar_pfs": frame(rng) | rng.choice((0, 1, 2)) << 52, "ar_bsp": BSP + 8 * rng.randrange(63),
             "ar_lc": rng.choice((0, 1, 7)), "ar_ec": rng.choice((0, 1, 2, 63)),
             "ar_ccv": rng.choice((0, rng.getrandbits(64)))}
    if frames._is_collection(regs["ar_bsp"]):
        regs["ar_bsp"] += 8
    return regs


def ending(m: PaperMachine, case: Case, seed: int) -> tuple[Any, ...]:
    """Run the instruction in a state, to the breakpoint where it leads or to its fault: that, and what there is then."""
    regs, data = m.cpu_regs[0], random.Random(seed).randbytes(PAGE)
    m.write(0xC000, data)
    for name, value in state(seed).items():
        regs[name] = value
    with pytest.raises(GuestFault) as caught:
        m.run(HOME | case.mode, until=1, limit=5000)
    fault = caught.value
    left = {name: regs[name] for name in ARCH.regs.names if name != "pc"}
    return fault.reason, fault.address, fault.pc, left, m.read(0xC000, PAGE)


@pytest.mark.parametrize("case", PROBED, ids=lambda case: f"{case.line} {case.asm}")
def test_as_without_a_probe(case: Case, conformance: Conformance) -> None:
    addr = HOME | case.mode
    insn = ARCH.decode(case.code, addr)
    plain = machine(case)
    wanted = [ending(plain, case, seed) for seed in range(STATES)]
    for kind, fields in KINDS.items():
        m = machine(case)
        with Kprobes(m) as k:
            k.register(probe := Kprobe(addr=addr, pre_handler=lambda p, regs: None, **fields))
            k.flush_optimizer()
            assert not (probe.optimized and (insn.conditional or case.mode)), "a jump knows no predicate"
            for seed in range(STATES):
                hits, executed = probe.nhit, insn.name in ALWAYS or _holds(plain, insn, seed)
                assert ending(m, case, seed) == wanted[seed], f"{kind}, state {seed}"
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
    with Kprobes(machine(case)) as k, pytest.raises(Unprobeable):
        k.register(Kprobe(addr=HOME | case.mode))


# --- several at once

PLAIN = [case for case in PROBED if case.outcome == "step"]
LENGTH = 6  # bundles


def random_text(rng: random.Random) -> bytes:
    """Bundles of words from the cases, with other predicates; the last branches back, or goes on, as ar.lc says."""
    words: dict[str, list[int]] = {unit: [bundle.NOP[unit]] for unit in "MIFB"}
    for case in PLAIN:
        insn = ARCH.decode(case.code, HOME | case.mode)
        unit = bundle.units(bundle.parts(case.code)[0])[case.mode]
        if unit in words and insn.name not in ("alloc", "cover", "loadrs") and "mov.i ar.lc" not in case.asm:
            words[unit].append(word_of(insn))
    kinds = [template for template, units in bundle.UNITS.items() if "X" not in units]
    made = []
    for _ in range(LENGTH):
        template = rng.choice(kinds)
        slots = [rng.choice(words[unit]) for unit in bundle.units(template << 1)]
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
    case = Case(code=text, asm="", outcome="step", row="")

    def make() -> PaperMachine:
        m = machine(Case(code=STOP, asm="", outcome="", row=""))
        m.write(HOME, text)
        m.symbols.add("loop", HOME, len(text))
        return m

    plain, m = make(), make()
    with Kprobes(m) as k:
        for state_seed in range(4):
            wanted = ending(plain, case, state_seed)
            registered = probes(rng)
            k.register_all(registered)
            if rng.random() < 0.5:
                k.flush_optimizer()
            assert ending(m, case, state_seed) == wanted
            for probe in rng.sample(registered, len(registered) // 2):
                k.unregister(probe)
            assert ending(m, case, state_seed) == wanted
            k.unregister_all([probe for probe in registered if probe.registered])
    assert m.read(BASE, PAGE) == plain.read(BASE, PAGE)
    conformance("ia64", "real program", LENGTH)
