"""Itanium on the model: whole functions, every slot, alone and with its neighbours, boosted, stepped and as a jump."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kprobes import GuestFault, Kprobe, Kprobes, Kretprobe, NotAnInstruction, Unprobeable
from kprobes.arch.ia64 import bundle
from kprobes.arch.ia64.displace import word_of
from kprobes.arch.ia64.rows import ALWAYS
from kprobes.arch.ia64.simulate import holds
from kprobes.conformance import Conformance
from kprobes.machine.ia64 import model
from kprobes.machine.paper import PaperMachine
from kprobes.testing import check_machine, functions, kretprobes_everywhere, transparency
from kprobes.testing._transparency import instructions

HERE = Path(__file__).resolve().parent.parent
BASE, DATA = 0x1000, 0xC800
ONES = (1 << 64) - 1


@cache
def image() -> tuple[bytes, dict[str, int | tuple[int, int]]]:
    """The text of tests/data/ia64.s, and its functions."""
    lines = (HERE / "data" / "ia64.txt").read_text().splitlines()
    named = [(name, BASE + int(at, 16)) for at, name in (line.split() for line in lines if " " in line)]
    code = bytes.fromhex("".join(line for line in lines if " " not in line))
    return code, {name: (at, end - at) for (name, at), (_, end) in itertools.pairwise(named)}


def machine() -> PaperMachine:
    code, symbols = image()
    m = model(code, symbols=symbols)
    m.write(DATA, b"hello, Itanium\0")
    m.write(DATA + 0x80, m.symbols["fact"].address.to_bytes(8, "little") + (0x777).to_bytes(8, "little"))
    m.write(DATA + 0x100, b"".join(n.to_bytes(8, "little") for n in (3, 5, 7, 11, 13)))
    return m


CHOICES = [(1, 2, 3, 3, 8, 5, 6, 7, 9), (2, 1, 3, 3, 8, 5, 6, 7, 9), (1, 2, 3, 4, 8, 5, 6, 7, 9),
           (1, 2, 3, 4, 0, 5, 6, 7, 9), (1, 2, 3, 3, 8, ONES - 4, 6, 7, 9)]


#: What is done with the guest, by the function that is called.
RUNS: dict[str, Callable[[PaperMachine], Any]] = {
    "sum": lambda m: m.call("sum", 4),
    "fact": lambda m: m.call("fact", 6),
    "copy": lambda m: (m.call("copy", DATA + 0x200, DATA + 0x100, 5), m.read(DATA + 0x200, 48)),
    "length": lambda m: m.call("length", DATA),
    "fill": lambda m: (m.call("fill", DATA + 0x40, 5, 0xAB), m.read(DATA + 0x3F, 8)),
    "through": lambda m: m.call("through", DATA + 0x80, 5),
    "deep": lambda m: m.call("deep", 2),
    "swap": lambda m: (m.call("swap", DATA + 0x300, 0x1234, 77), m.read(DATA + 0x300, 8)),
    "choose": lambda m: [m.call("choose", *arguments) for arguments in CHOICES],
}


def run(m: PaperMachine, *names: str) -> list[Any]:
    """Call these functions, or every one; the results."""
    return [RUNS[name](m) for name in names or RUNS]


@pytest.mark.quick
def test_what_its_numbers_are_of(conformance: Conformance) -> None:
    said = "on a model of ours, kprobes.machine.ia64, but for decode: that is held against GNU as and objdump"
    conformance.note("ia64", said)


@pytest.mark.quick
def test_the_machine_keeps_its_contract(conformance: Conformance) -> None:
    assert check_machine(machine) == []
    conformance("ia64", "engine")


@pytest.mark.quick
def test_the_functions_do_what_they_are_written_to() -> None:
    words = b"".join(n.to_bytes(8, "little") for n in (3, 5, 7, 11, 13))
    filled = DATA + 0x40, b"\0" + b"\xab" * 5 + b"\0\0"
    assert run(machine())[:7] == [10, 720, (39, words + bytes(8)), 14, filled, 120 + 15, 3]


@cache
def executed(name: str) -> Counter[int]:
    """How often each instruction is executed with a true predicate, or with any, where it has an effect then."""
    counts: Counter[int] = Counter()

    def look(m: PaperMachine, cpu: int) -> None:
        pc = m.regs.pc
        if BASE <= pc < BASE + len(image()[0]):
            insn = m.arch.decode(m.read(pc & -16, 16), pc)
            counts[pc] += insn.name in ALWAYS or holds(m.regs, word_of(insn) & 63)

    m = machine()
    m.before = look
    run(m, name)
    return counts


def everywhere() -> list[int]:
    with Kprobes(machine()) as k:
        return [addr for symbol in functions(k.machine) for addr in instructions(k, symbol)]


KINDS: dict[str, dict[str, Any]] = {
    "a jump": {}, "boosted": {}, "stepped": {"optimize": False},
    "with a post_handler": {"post_handler": lambda p, regs, flags: None}}


@pytest.mark.long
@pytest.mark.whole  # each kind proves another capability
@pytest.mark.parametrize("kind", KINDS)
def test_every_slot_alone(kind: str, conformance: Conformance) -> None:
    """What the guest does is what it does without the probe; hits are executions with a true predicate."""
    plain, how = {name: run(machine(), name) for name in RUNS}, Counter[str]()
    for addr in everywhere():
        m = machine()
        name = m.symbols.covering(addr).name
        with Kprobes(m) as k:
            k.optimization = kind == "a jump"
            k.register(probe := Kprobe(addr=addr, pre_handler=lambda p, regs: None, **KINDS[kind]))
            assert run(m, name) == plain[name], hex(addr)
            assert probe.nhit == executed(name)[addr], hex(addr)
            how["optimize" if probe.optimized else "boost" if k.check(addr).boostable else "kprobe"] += 1
        assert m.read(BASE, len(image()[0])) == image()[0], hex(addr)
    if kind == "stepped":
        conformance("ia64", "real program", sum(how.values()))
    elif kind == "boosted":
        assert min(how["boost"], how["kprobe"]) > 20
        conformance("ia64", "boost", how["boost"])
    elif kind == "a jump":
        assert how["optimize"] > 150
        conformance("ia64", "optimize", how["optimize"])
    else:
        conformance("ia64", "post", sum(how.values()))


@pytest.mark.quick
def test_all_slots_at_once() -> None:
    assert transparency(machine, run, lambda m: [Kprobe(addr=addr) for addr in everywhere()]) == []


# --- slots and their neighbours


LOOP = 0x1010  # of sum: three instructions that are boosted


def bits(m: PaperMachine, addr: int) -> tuple[int, list[int]]:
    return bundle.parts(m.read(addr & -16, 16))


@pytest.mark.quick
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("leaving", list(itertools.permutations(range(3))), ids=str)
def test_slots_of_a_bundle_come_and_go_in_any_order(order: tuple[int, ...], leaving: tuple[int, ...]) -> None:
    """Each has its own bits; who is boosted takes none along that has a probe, and takes it along again afterwards."""
    m = machine()
    template, words = bits(m, LOOP)
    with Kprobes(m) as k:
        probes = [Kprobe(addr=LOOP + slot) for slot in range(3)]
        armed: set[int] = set()

        def check(calls: int = 1) -> None:
            now, there = bits(m, LOOP)
            before = [probe.nhit for probe in probes]
            assert now == template
            assert [n for n in range(3) if there[n] != words[n]] == sorted(armed)
            for _ in range(calls):
                assert m.call("sum", 4) == 10
            assert [p.nhit - was for p, was in zip(probes, before, strict=True)] == [4 * (n in armed) for n in range(3)]
            for n in armed:
                point = probes[n]._point
                assert point is not None
                assert (point.boosted or point.optimized) == (not any(n < other for other in armed))

        for slot in order:
            k.register(probes[slot])
            armed.add(slot)
            if len(armed) > 1 or slot:
                check()
        for slot in leaving:
            k.unregister(probes[slot])
            armed.remove(slot)
            check()
    assert m.read(BASE, len(image()[0])) == image()[0]


@pytest.mark.quick
@pytest.mark.parametrize("slot", [0, 1, 2])
@pytest.mark.parametrize("other", [0, 1, 2])
@pytest.mark.parametrize("leaves", [False, True])
def test_a_handler_brings_a_neighbour(slot: int, other: int, leaves: bool) -> None:
    """The jump it was called from goes; who is behind it in the bundle is hit in the same round already."""
    m = machine()
    second = Kprobe(addr=LOOP + other, pre_handler=lambda p, regs: None)
    with Kprobes(m) as k:
        def handler(p: Any, regs: Any) -> None:
            if p.nhit == 3:
                assert p.optimized
                k.register(second)
            elif leaves and p.nhit == 4:
                k.unregister(second)

        k.register(first := Kprobe(addr=LOOP + slot, pre_handler=handler))
        assert m.call("sum", 4) == 10
        assert first.nhit == 4
        assert second.nhit == (slot < other) + (other <= slot or not leaves)  # in the third round, in the fourth
        assert m.call("sum", 4) == 10
        assert first.optimized == (leaves or slot == other)
    assert m.read(BASE, len(image()[0])) == image()[0]


@pytest.mark.quick
def test_a_disabled_neighbour_goes_along() -> None:
    m = machine()
    with Kprobes(m) as k:
        k.register(first := Kprobe(addr=LOOP + 1))
        k.register(second := Kprobe(addr=LOOP + 2))
        assert first._point is not None
        assert not first._point.boosted
        k.disable(second)
        assert first._point.boosted
        k.enable(second)
        assert not first._point.boosted
        assert m.call("sum", 4) == 10
        assert (first.nhit, second.nhit) == (4, 4)


@pytest.mark.quick
def test_a_neighbour_takes_the_jump_out(conformance: Conformance) -> None:
    m = machine()
    with Kprobes(m) as k:
        k.register(first := Kprobe(addr=LOOP))
        m.call("sum", 4)
        assert first.optimized
        assert bundle.units(bits(m, LOOP)[0]) == "BBB"
        k.register(second := Kprobe(addr=LOOP + 2))
        assert not first.optimized
        assert bits(m, LOOP)[0] == 0x11
        assert m.call("sum", 4) == 10
        assert (first.nhit, second.nhit) == (8, 4)
        k.unregister(second)
        m.call("sum", 4)
        m.call("sum", 4)
        assert first.optimized
        assert first.nhit == 16
    conformance("ia64", "kprobe", 3)


def small(*slots: str, template: int = 0x09) -> PaperMachine:
    """One bundle and a return; a slot is 11 hex digits."""
    code = bundle.join(template, [int(slot, 16) for slot in slots])
    back = bundle.join(0x11, (bundle.NOP["M"], bundle.NOP["I"], 0x00108001100))
    return model(code + back, symbols={"f": (BASE, 32)})


# cmp.eq.unc p6,p7=r14,r15; nop.m and nop.i; ld8 r8=[r32], by GNU as
UNC, NOP, LOAD = 0x1C038F1D180, 1 << 27, 0x080C2000200


@pytest.mark.quick
@pytest.mark.parametrize("slot", [0, 1])
@pytest.mark.parametrize("predicate", [0, 1, 2, 3, 8, 63])
def test_breakpoints_keep_the_predicate_and_leave_the_neighbours(slot: int, predicate: int) -> None:
    """But for what does something when it is false. That Linux refuses in slot 1, as it writes the upper half only."""
    for word, kept in ((UNC | predicate, 0), (LOAD | predicate, predicate)):
        slots = [NOP | 63, NOP | 63, NOP | 63]
        slots[slot] = word
        m = small(*(f"{n:011x}" for n in slots))
        with Kprobes(m) as k:
            k.register(Kprobe(addr=BASE + slot))
            template, there = bits(m, BASE)
            assert template == 0x09
            assert there[slot] == 0x81000 << 6 | kept
            assert [n for at, n in enumerate(there) if at != slot] == [NOP | 63] * 2


@pytest.mark.quick
@pytest.mark.parametrize("slot", [0, 1])
@pytest.mark.parametrize("true", [False, True])
def test_what_linux_refuses_in_slot_1(slot: int, true: bool) -> None:
    """(p8) cmp.eq.unc p6,p7=r14,r15: hit whatever p8 is, and both its predicates are 0 where that is false."""
    slots = [NOP] * 3
    slots[slot] = UNC | 8
    for equal in (False, True):
        m = small(*(f"{n:011x}" for n in slots))
        with Kprobes(m) as k:
            k.register(probe := Kprobe(addr=BASE + slot, optimize=False))
            m.regs["pr"], m.regs["r15"] = 0xC1 | true << 8, not equal
            m.run(BASE, until=BASE + 16)
            assert probe.nhit == 1
            assert m.regs["pr"] >> 6 & 3 == (0 if not true else 1 if m.regs["r14"] == m.regs["r15"] else 2)


@pytest.mark.quick
@pytest.mark.parametrize("probed", [0, 1, 2])
@pytest.mark.parametrize("optimize", [False, True])
def test_a_fault_behind_the_probe_is_at_home(probed: int, optimize: bool, conformance: Conformance) -> None:
    """The load in slot 1 faults: in its copy, in what goes along with slot 0, or where a jump has moved it."""
    m = small(f"{NOP:011x}", f"{LOAD:011x}", f"{NOP:011x}")
    asked: list[int] = []
    with Kprobes(m) as k:
        k.register(probe := Kprobe(addr=BASE + probed, optimize=optimize, pre_handler=lambda p, regs: None,
                                   fault_handler=lambda p, regs, trap: asked.append(regs.pc)))
        for _ in range(3):
            with pytest.raises(GuestFault, match="not mapped") as caught:
                m.call("f", 0x123450)
            assert (caught.value.pc, caught.value.address) == (BASE + 1, 0x123450)
        assert probe.optimized == (optimize and probed < 2)
        m.write(DATA, (77).to_bytes(8, "little"))
        assert m.call("f", DATA) == 77
    assert asked == [BASE + 1] * (3 if probed == 1 or (optimize and probed == 0) else 0)
    conformance("ia64", "fault")


@pytest.mark.quick
@pytest.mark.parametrize("probed", [0, 1, 2])
@pytest.mark.parametrize("how", ["stepped", "boosted", "a jump where it may be one"])
def test_a_fault_in_slot_2_is_at_home(probed: int, how: str) -> None:
    """mux1, which the model does not know: in its copy, in the rest of a bundle that goes along, and displaced."""
    m = small(f"{NOP:011x}", f"{NOP:011x}", "0eca0b12200")
    with Kprobes(m) as k:
        k.optimization = how != "boosted"
        k.register(probe := Kprobe(addr=BASE + probed, optimize=how != "stepped"))
        point = probe._point
        assert point is not None
        assert point.boosted == (how != "stepped")
        for _ in range(3):
            with pytest.raises(GuestFault, match="does not know") as caught:
                m.call("f", 1)
            assert caught.value.pc == BASE + 2


@pytest.mark.quick
def test_addresses_that_are_no_instructions() -> None:
    m = machine()
    long = m.symbols["through"].address + 0x30  # mov; movl
    with Kprobes(m) as k:
        assert k.check(long + 1).size == 15
        for addr in (long + 2, LOOP + 3, LOOP + 15):
            with pytest.raises(NotAnInstruction):
                k.register(Kprobe(addr=addr))
        assert not k.check(long + 2).probeable
    with Kprobes(small("0", "0", "0", template=0x06)) as k, pytest.raises(Unprobeable, match="0x6 is reserved"):
        k.register(Kprobe(addr=BASE))


# --- calls


@pytest.mark.quick
@pytest.mark.parametrize("optimize", [False, True])
def test_return_probes_everywhere(optimize: bool, conformance: Conformance) -> None:
    """Every function, recursive ones too: the caller's frame is back, the result and the return address are right."""
    seen: list[tuple[int, int]] = []

    def returned(ri: Any, regs: Any) -> None:
        seen.append((regs.return_value, ri.ret_addr))
        assert regs.pc == ri.ret_addr

    def probes(m: PaperMachine) -> list[Any]:
        with Kprobes(machine()) as k:
            found = kretprobes_everywhere(k, functions(k.machine), handler=returned)
        assert len(found) == len(RUNS)
        return found

    assert transparency(machine, run, probes) == []
    assert len(seen) > 20
    m = machine()
    seen.clear()
    with Kprobes(m) as k:
        k.optimization = optimize
        k.register_kretprobe(Kretprobe(symbol_name="fact", handler=returned))
        for _ in range(2):
            seen.clear()
            assert run(m, "fact") == [720]
            assert [value for value, _ in seen] == [1, 1, 2, 6, 24, 120, 720]
    conformance("ia64", "return probe", len(RUNS))


@pytest.mark.quick
def test_arguments_at_entry(conformance: Conformance) -> None:
    m = machine()
    with Kprobes(m) as k:
        seen: list[list[int]] = []
        with k.kprobe("choose", pre_handler=lambda p, regs: seen.append([regs.arg(n) for n in range(9)])):
            m.call("choose", *CHOICES[0])
        assert seen == [list(CHOICES[0])]
        with k.kprobe("sum", pre_handler=lambda p, regs: regs.set_arg(0, 5)):
            assert m.call("sum", 4) == 15
    conformance("ia64", "arguments", 8)
    conformance("ia64", "stack arguments", 1)


@pytest.mark.quick
def test_a_handler_reads_and_moves(conformance: Conformance) -> None:
    """pc is the bundle and the slot; a pre_handler may send the guest to the middle of a bundle."""
    m = machine()
    with Kprobes(m) as k:
        def skip(p: Any, regs: Any) -> bool:
            assert regs.pc == LOOP + 1
            regs["r32"] -= 1
            regs.pc = LOOP + 2
            return True

        with k.kprobe(addr=LOOP + 1, pre_handler=skip) as probe:
            assert m.call("sum", 4) == 10
            assert probe.nhit == 4
    conformance("ia64", "divert")


@pytest.mark.quick
def test_together_nested_and_mirrored(conformance: Conformance) -> None:
    """Two probes in a place; a guest call from a handler, whose hits are missed; a jprobe that sees the arguments."""
    m, seen = machine(), list[Any]()
    with Kprobes(m) as k:
        def nested(p: Any, regs: Any) -> None:
            seen.append(m.call("sum", 3))

        with k.kprobe(addr=LOOP + 1, pre_handler=nested) as one, k.kprobe(addr=LOOP + 1) as two:
            assert m.call("sum", 2) == 3
            assert (one.nhit, two.nhit, one.nmissed, seen) == (2, 2, 6, [6, 6])

        def mirror(a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int, i: int) -> None:
            seen.append((a, b, c, d, e, f, g, h, i))

        with k.jprobe("choose", entry=mirror):
            m.call("choose", *CHOICES[1])
        assert seen[2:] == [CHOICES[1]]
    for capability in ("colocated", "nested", "jprobe"):
        conformance("ia64", capability)


@pytest.mark.quick
def test_events() -> None:
    """In any slot, with any register: also those that no program sees."""
    m = machine()
    with Kprobes(m) as k:
        event = k.event("p:mid sum+0x11 n=%r32 far=%r127 frame=%cfm")
        m.regs["r127"] = 99
        m.call("sum", 2)
        assert [record.args["n"] for record in event] == [2, 1]
        assert {(record.args["far"], record.args["frame"] & 127, record.address) for record in event} == {(99, 6, LOOP + 1)}


@pytest.mark.quick
def test_somebody_restores_the_text() -> None:
    """Breakpoints of all three slots, and a jump of each, are put back; what is taken away and written again goes."""
    m, code = machine(), image()[0]
    jumps = (LOOP + 0x10, LOOP + 0x21, LOOP + 0x32)
    probes = [*(Kprobe(addr=LOOP + slot) for slot in range(3)), *(Kprobe(addr=addr) for addr in jumps)]
    with Kprobes(m) as k:
        k.register_all(probes)
        m.call("sum", 4)
        patched = m.read(BASE, len(code))
        m.write(BASE, code)
        assert m.call("sum", 4) == 10
        assert [probe.nhit for probe in probes] == [8] * 4 + [2] * 2
        assert [probe.optimized for probe in probes] == [False] * 3 + [True] * 3
        assert m.read(BASE, len(code)) == patched
        k.unregister_all(probes)
        m.write(BASE, patched)
        assert m.call("sum", 4) == 10
        assert m.read(BASE, len(code)) == code
