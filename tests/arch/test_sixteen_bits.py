"""A 16-bit instruction set that is not here, made by the guide alone: on the toy engine it has everything that others
have there."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msp430 import MSP430, execute, flags
from portion import portion

from kprobes import BadLocation, Kprobes, Unsupported
from kprobes.machine.paper import PaperMachine
from kprobes.testing import check_arch

pytestmark = pytest.mark.quick
WORDS = {
    # sum(n): MOV r12, r13; CLR r12; loop: ADD r13, r12; DEC r13; JNE loop; RET
    "sum": (0x4C0D, 0x430C, 0x5D0C, 0x831D, 0x23FD, 0x4130),
    # twice(n): PUSH r10; MOV r12, r10; CALL #sum; ADD r10, r12; ADD counted (symbolic), r12; INC &counted; POP r10; RET
    "twice": (0x120A, 0x4C0A, 0x12B0, 0x1000, 0x5A0C, 0x501C, 0xC100 - 0x1018, 0x5392, 0xC100, 0x413A, 0x4130),
    # chars(p): CLR r13; next: MOV.B @r12+, r14; TST.B r14; JEQ end; INC r13; JMP next; end: MOV r13, r12; RET
    "chars": (0x430D, 0x4C7E, 0x934E, 0x2402, 0x531D, 0x3FFB, 0x4D0C, 0x4130),
}
BASE = 0x1000
COUNTED, TEXT = 0xC100, 0xC200


def machine() -> PaperMachine:
    code, symbols = b"", {}
    for name, words in WORDS.items():
        symbols[name] = (BASE + len(code), 2 * len(words))
        code += b"".join(word.to_bytes(2, "little") for word in words)
    m = PaperMachine(code, base=BASE, symbols=symbols, arch=MSP430, execute=execute)
    m.write(COUNTED, (100).to_bytes(2, "little"))
    m.write(TEXT, b"sixteen bits\0")
    return m


def results(m: PaperMachine) -> list[int]:
    """What the functions return, and what they leave behind."""
    out = [m.call("sum", 10), m.call("sum", 400), m.call("twice", 3), m.call("twice", 3), m.call("chars", TEXT)]
    return [*out, m.regs.sp, int.from_bytes(m.read(COUNTED, 2), "little")]


WANTED = [55, 80200 & 0xFFFF, 6 + 3 + 100, 6 + 3 + 101, 12, 0xCF00, 102]


def test_the_contract_is_kept() -> None:
    assert check_arch(MSP430) == []


def test_it_runs() -> None:
    assert results(machine()) == WANTED


@pytest.mark.parametrize("optimize", [False, True])
def test_probes_everywhere_change_nothing(optimize: bool) -> None:
    m, seen = machine(), list[int]()
    with Kprobes(m) as k:
        probes = [k.kprobe(addr=insn.addr, optimize=optimize, pre_handler=lambda p, regs: seen.append(regs.pc)).probe
                  for name in WORDS for insn in k._survey.instructions(m.symbols[name])]
        for probe in probes:
            assert k.check(probe.addr).probeable, hex(probe.addr)
            k.register(probe)
        assert [results(m), results(m)] == [WANTED, [*WANTED[:2], 111, 112, *WANTED[4:6], 104]]
        assert len(probes) == 22 and {*seen} == {probe.address for probe in probes}
        assert sum(probe.nhit for probe in probes) == len(seen) and not any(probe.nmissed for probe in probes)
        assert any(probe.optimized for probe in probes) == optimize
    assert m.read(BASE, 12) == b"".join(word.to_bytes(2, "little") for word in WORDS["sum"])


@pytest.mark.long
def test_a_jump_takes_the_place_of_most_instructions(thorough: bool) -> None:
    """One probe at a time: branches, calls and symbolic operands are displaced, two instructions where one is short.
    Without --thorough at every third instruction."""
    why: dict[str, str] = {}
    for name in WORDS:
        with Kprobes(machine()) as k:
            insns = k._survey.instructions(k.machine.symbols[name])
        for insn in portion(insns, thorough, name, 3):
            m = machine()
            with Kprobes(m) as k, k.kprobe(addr=insn.addr) as probe:
                assert (results(m), results(m)[:2], probe.nmissed) == (WANTED, WANTED[:2], 0)
                why[f"{name}+{insn.addr - m.symbols[name].address}"] = probe.why_not_optimized
    refused = {place for place, reason in why.items() if reason}
    # two instructions are as long as the jump: not where a branch leads between them, nor at a function's end
    short = {"sum+2", "sum+10", "twice+20", "chars+0", "chars+10", "chars+14"}
    assert refused == short & why.keys() and len(why) > len(refused), why


def test_arguments_results_and_events() -> None:
    m = machine()
    with Kprobes(m) as k:
        returned: list[int] = []
        entered: list[int] = []

        def mirror(n: int) -> None:
            entered.append(n)

        with (k.kretprobe("twice", handler=lambda ri, regs: returned.append(regs.return_value)),
              k.jprobe("sum", entry=mirror),
              k.trace("p:e twice n=$arg1 there=@0xc100:u16 sp=%sp", "r:back sum value=$retval") as t):
            assert m.call("twice", 5) == 15 + 5 + 100
        assert (returned, entered) == ([120], [5])
        assert [(r.event, dict(r.args)) for r in t] == [
            ("e", {"n": 5, "there": 100, "sp": 0xCEFE}), ("back", {"value": 15})]


def test_handlers_change_the_guest() -> None:
    m = machine()
    with Kprobes(m) as k:
        def longer(p: Any, regs: Any) -> None:
            regs["r12"] += 1

        with k.kprobe("sum", pre_handler=longer):
            assert m.call("sum", 3) == 10
        with k.kretprobe("sum", handler=lambda ri, regs: setattr(regs, "return_value", 7)):
            assert m.call("twice", 1) == 7 + 1 + 100


def test_what_it_has_no_room_for_is_refused() -> None:
    m = machine()
    with Kprobes(m) as k:
        with pytest.raises(BadLocation):
            k.watchpoint(0x10000, 1, handler=lambda w, regs: None)
        with pytest.raises(Unsupported, match="does not report accesses"):
            k.watchpoint(COUNTED, 2, handler=lambda w, regs: None)
        with pytest.raises(Unsupported, match="which blocks"):
            k.coverage()
        breakpoint_of_its_own = BASE + 2 * sum(map(len, WORDS.values()))
        m.write(breakpoint_of_its_own, b"CC")
        assert "breakpoint" in k.check(breakpoint_of_its_own).reason


def test_symbolic_operands_move() -> None:
    """A word that counts from pc counts from where its copy is."""
    at = 0x1800
    for words in ((0x5010, 0x0100, 0x0200), (0x4090, 0x0100, 0x0200), (0x501C, 0xFFFE), (0x1290, 0x10), (0x1210, 0x40)):
        raw = b"".join(word.to_bytes(2, "little") for word in words)
        insn = MSP430.decode(raw + bytes(6), at)
        if insn.operand is None or insn.reject:
            assert insn.reject or insn.name == "CALL"
            continue
        there = MSP430.decode(MSP430.out_of_line.relocate(insn, 0x2000) + bytes(6), 0x2000)
        assert (there.operand, there.raw[:2]) == (insn.operand, insn.raw[:2])


def test_flags_of_sixteen_bits() -> None:
    """The model itself: sums of random words against Python's."""
    rng, regs = random.Random(1), machine().regs
    for _ in range(200):
        result = rng.getrandbits(16)
        flags(regs, result, bool(result & 1), False, 2)
        assert regs["sr"] == (result & 1) | 2 * (not result) | 4 * (result >> 15)
