"""One bundle or a few on the model of an Itanium, in random states; and what there is when they are done."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

import pytest
from arches import cases_of

from kprobes import GuestFault
from kprobes import arch as architectures
from kprobes.arch._base import Insn
from kprobes.arch.ia64 import bundle, frames
from kprobes.arch.ia64.displace import word_of
from kprobes.arch.ia64.rows import ALWAYS
from kprobes.arch.ia64.simulate import holds
from kprobes.machine.ia64 import model
from kprobes.machine.paper import PaperMachine

ARCH, FILE = architectures.get("ia64"), cases_of("ia64")
BASE, HOME, PAGE, DATA, BSP = 0x1000, 0x1800, 0x1000, 0xC800, 0xC400
STOP = bundle.join(0x09, (0x55 << 6, bundle.NOP["M"], bundle.NOP["I"]))  # a breakpoint of the guest's own


def machine(code: bytes) -> PaperMachine:
    """Bundles, and breakpoints wherever they may lead."""
    text = bytearray(STOP * (PAGE // 16))
    text[HOME - BASE : HOME - BASE + len(code)] = code
    return model(bytes(text), base=BASE, symbols={"here": (HOME, len(code))})


def frame(rng: random.Random) -> int:
    """A CFM that can be."""
    sor = rng.choice((0, 0, 1, 2, 12))
    sof = rng.randint(sor * 8, 96)
    gr = rng.randrange(sor * 8) if sor else 0
    return sof | rng.randint(0, sof) << 7 | sor << 14 | gr << 18 | rng.randrange(96) << 25 | rng.randrange(48) << 32


@lru_cache(256)
def state(seed: int) -> Mapping[str, int]:
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


def ending(m: PaperMachine, seed: int, start: int = HOME) -> tuple[Any, ...]:
    """Run in a state, to the breakpoint where that leads or to a fault: that, and what there is then."""
    regs, data = m.cpu_regs[0], random.Random(seed).randbytes(PAGE)
    m.write(0xC000, data)
    for name, value in state(seed).items():
        regs[name] = value
    with pytest.raises(GuestFault) as caught:
        m.run(start, until=1, limit=5000)
    fault = caught.value
    left = {name: regs[name] for name in ARCH.regs.names if name != "pc"}
    return fault.reason, fault.address, fault.pc, left, m.read(0xC000, PAGE)


def words() -> dict[str, list[int]]:
    """Instructions of each unit, from the cases: nothing that needs a frame of its own, or a place of its own."""
    found: dict[str, list[int]] = {unit: [bundle.NOP[unit]] for unit in "MIFB"}
    for case in FILE.cases:
        insn = ARCH.decode(case.code, HOME | case.mode)
        unit = bundle.units(bundle.parts(case.code)[0])[case.mode]
        plain = case.outcome == "step" and insn.name not in ("alloc", "cover", "loadrs") and "ar.lc" not in case.asm
        if plain and unit in found:
            found[unit].append(word_of(insn))
    return found


# --- bundles of every template

TEMPLATES = [half << 1 | stop for half in bundle.UNITS for stop in (0, 1)]
MOV_PR, MOV_IP, CALL = 3 << 33 | 0x1FE << 6, 0x30 << 27 | 9 << 6, 5 << 37 | 2 << 13
#: br.cond .+64, br.cond b6, br.ret b3, br.cond .+0x7fff0 ...
BRANCHES = [4 << 37 | 4 << 13, 0x20 << 27 | 6 << 13, 0x21 << 27 | 4 << 6 | 3 << 13, 4 << 37 | 0x7FFF << 13]
LONG = [(0, 0xC << 37 | 4 << 13), (0, 0xD << 37 | 4 << 13), (0x123456789, 6 << 37 | 8 << 6)]  # brl.cond, brl.call, movl
LOOP = 4 << 37 | 5 << 6 | 4 << 13  # br.cloop .+64


@cache
def pool() -> dict[str, list[int]]:
    found = words()
    found["I"] += [MOV_IP, MOV_PR]
    found["B"] += BRANCHES + [CALL]
    return found


def some(template: int, rng: random.Random) -> list[int]:
    """Words for the slots of a bundle."""
    units = bundle.units(template)
    if "X" in units:
        return [rng.choice(pool()["M"]), *rng.choice(LONG)]
    return [rng.choice([*pool()[unit], LOOP] if unit == "B" and n == 2 else pool()[unit])
            for n, unit in enumerate(units)]


def slots(template: int) -> range:
    return range(len(bundle.units(template)))


def insn_at(code: bytes, slot: int) -> Insn:
    return ARCH.decode(code, HOME + slot)


def why_not(code: bytes, slot: int) -> str:
    """What check says, worked out from the manual's tables."""
    template, words_ = bundle.parts(code)
    behind = [insn_at(code, n) for n in slots(template)][slot + 1 :]
    probed = insn_at(code, slot)
    if probed.links and behind:
        return "followed by others in its bundle"
    if any(insn.links for insn in behind):
        return "must be simulated at its own address"
    if slot == 2 and template >> 1 == 5:
        return "no template has a stop behind slot 0 and"
    if slot == 2 and template >> 1 == 1 and probed.conditional and words_[1] & ~63 == MOV_PR:
        return "no template has a stop behind slot 1, which sets"
    return ""


# --- ways in


def entering(slot: int) -> Callable[[PaperMachine, int], None]:
    """An interruption returns to a slot, of which nobody tells."""
    come = [HOME + slot]

    def before(m: PaperMachine, cpu: int) -> None:
        if come:
            m.cpu_regs[cpu]["pc"] = come.pop()

    return before


def outcome(m: PaperMachine, seed: int, entry: int) -> tuple[Any, ...]:
    m.before = entering(entry)
    try:
        return ending(m, seed, BASE)
    finally:
        m.before = None


def executions(code: bytes, slot: int, seed: int, entry: int) -> int:
    """How often the instruction is executed where its breakpoint would be."""
    m, probed, found = machine(code), insn_at(code, slot), []
    enter = entering(entry)

    def look(m: PaperMachine, cpu: int) -> None:
        enter(m, cpu)
        if m.cpu_regs[cpu]["pc"] == HOME + slot:
            found.append(probed.name in ALWAYS or holds(m.cpu_regs[cpu], word_of(probed) & 63))

    m.before = look
    ending(m, seed, BASE)
    return sum(found)
