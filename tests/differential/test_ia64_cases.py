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
        m.run(HOME | case.mode, until=1, limit=50)
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
