"""PA-RISC's instructions, probed and displaced, as QEMU executes them by themselves: in registers, memory, the queue of
addresses, bit N of the status word, and faults. Each with several neighbours in its delay slot, and nullified itself."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from arches import cases_of, expected
from attrs import evolve
from qemu import USER_MODE, Seen, qemu_for

from kprobes import GuestFault, GuestTimeout, Kprobe, Kprobes, Kretprobe, QemuMachine
from kprobes import arch as architectures
from kprobes.conformance import Conformance
from kprobes.debug.registers import register
from kprobes.errors import OutOfReach
from kprobes.events import parse_event, program_of
from kprobes.testing import Case
from kprobes.testing._states import States

NOP = bytes.fromhex("08000240")
N = 1 << 21
#: in delay slots: nothing, what changes the link, loads through a pointer, adds, and what nullifies
SLOTS = [NOP, *map(bytes.fromhex, ("34420002", "0c60109c", "08610605", "08832885", "34030603", "d0645ffb"))]
GENERATED = 1  #: words made of each case
SHOWN = 20
MOVES = ("020008a4",)  # a clock's time


class Lab:
    """One process: a place for an instruction and its delay slot, data, and places for displaced code.

    faults: so many runs have ended in one.
    """

    def __init__(self, m: Any) -> None:
        self.faults = 0
        self.m, self.k = m, Kprobes(m)
        pages = sorted(m.map_code() for _ in range(7))  # branches from the middle do not lead into slots, which come later
        page, self.near, self.far = pages[3], pages[3] + 0xC00, pages[0]
        m.symbols.add(f"lab{page:x}", page, m.page_size)
        self.home = page + 0x400
        self.data = m.map_code(page + (1 << 26))
        self.fill = random.Random(1).randbytes(4096)
        kept = {"sr0", *(f"sr{n}" for n in range(1, 8)), "cr27", "fr0", "fr0r"}
        self.states = States(m.regs, (self.data, self.data + 4096), (self.data, self.data + 2048), {"psw": 0xFF00}, kept)

    def state(self, seed: str, nullified: bool = False) -> dict[str, int]:
        self.states.randomize(random.Random(seed))
        self.m.regs.sp = self.data + 2048
        state: dict[str, int] = self.m._threads.save()
        return {**state, "psw": state["psw"] & ~N | N * nullified}

    def run(self, state: dict[str, int], place: int, size: int) -> Seen:
        """Code at `place`, up to where it leaves its bytes."""
        m, fault = self.m, None
        m.write(self.data, self.fill)
        m._threads.restore(state)
        m._threads.move(place)
        at = place
        try:
            while place <= at < place + size:
                try:
                    m._control.run(None, None, 10, 1, call=True)
                except GuestTimeout as error:
                    assert "1 instructions" in str(error), f"{m.read(place, 8).hex()} at {place:#x}: {error}"
                at = m.regs.pc
        except GuestFault as error:
            fault, at = (error.access, error.address), m.regs.pc
            self.faults += 1
        regs = m._threads.save()
        del regs["iaoq_f"]
        return Seen(regs, at, m.read(self.data, 4096), fault)

    def probed(self, state: dict[str, int], **handlers: Any) -> Seen:
        probe = Kprobe(addr=self.home, **handlers)
        self.k.register(probe)
        try:
            seen = self.run(state, self.home, 8)
            assert probe.nhit == (not state["psw"] & N), "a nullified instruction is not hit"
        finally:
            self.k.unregister(probe)
        return seen

    def displaced(self, insn: Any, state: dict[str, int], place: int, failing: int) -> Seen | None:
        """None: it does not reach. failing: where it fails at home."""
        try:
            code = insn.displace(place)
        except OutOfReach:
            return None
        assert len(code) <= self.m.arch.out_of_line.max_displaced
        self.m.write(place, code)
        seen = self.run(state, place, len(code))
        if place <= seen.pc <= place + len(code):  # it is at its end, or has faulted there
            regs = {**seen.regs, "npc": insn.next + 4 | 3}
            return Seen(regs, failing if seen.fault else insn.next, seen.memory, seen.fault)
        return seen

    def check(self, code: bytes, slot: bytes, seed: str, nullified: bool = False, **registers: int) -> list[str]:
        """What is different. registers: what is in them."""
        self.m.write(self.home, code + slot)
        insn, state = self.m.arch.decode(code + slot, self.home), {**self.state(seed, nullified), **registers}
        if insn.reject:
            return []  # what is in its delay slot
        plain = self.run(state, self.home, 8)
        runs: dict[str, Seen | None] = {"boosted": self.probed(state)}
        runs["post"] = self.probed(state, post_handler=lambda p, regs, flags: None)
        if insn.displace is not None and not nullified:
            stays = plain if insn.delay_slot else self.run(state, self.home, 4)
            away = {how: self.displaced(insn, state, place, stays.pc)
                    for how, place in (("near", self.near), ("far", self.far))}
            problems = [f"{how}: {text}" for how, seen in away.items() if seen for text in at_home(insn, seen, stays)]
        else:
            problems = []
        problems += [f"{how}: {text}" for how, seen in runs.items() if seen for text in at_home(insn, seen, plain)]
        return [f"{code.hex()} {slot.hex()} {insn.name}, {seed}, {text}" for text in problems]


def at_home(insn: Any, seen: Seen, plain: Seen) -> list[str]:
    """What is different. Behind a fault in a delay slot the branch's target is no more next."""
    if plain.fault is not None and insn.delay_slot and seen.pc == plain.pc == insn.addr + 4:
        regs = {**plain.regs, "npc": seen.regs["npc"], "psw": seen.regs["psw"]}
        return seen.differs(evolve(plain, regs=regs))
    return seen.differs(plain)


@pytest.fixture(scope="module")
def guest(programs: Callable[[str], Path]) -> Iterator[QemuMachine]:
    qemu_for("parisc-O2")
    with QemuMachine.user([programs("parisc-O2")], env={}, timeout=20, stdout=subprocess.DEVNULL) as m:
        yield m


@pytest.fixture
def lab(guest: QemuMachine) -> Iterator[Lab]:
    lab = Lab(guest)
    saved = guest._threads.save()
    yield lab
    guest._threads.restore(saved)
    lab.k.close()


def probeable() -> list[Case]:
    return [case for case in cases_of("parisc").cases if case.outcome != "reject" and case.code.hex() not in MOVES]


def test_probed_is_unprobed(lab: Lab, conformance: Conformance) -> None:
    problems, done, rng = [], {"step": 0, "simulate": 0}, random.Random(2)
    for case in probeable():
        for slot in (NOP, *([rng.choice(SLOTS[1:])] if case.outcome == "simulate" else [])):
            problems += [f"{case}: {text}" for text in lab.check(case.code, slot, f"{case.code.hex()}")]
            done[case.outcome] += 1
    assert not problems, "\n".join(problems[:SHOWN])
    for outcome, count in done.items():
        conformance.under(USER_MODE)("parisc", outcome, count)


def test_a_nullified_instruction_is_no_hit(lab: Lab) -> None:
    problems = []
    for case in probeable()[::7]:
        problems += lab.check(case.code, NOP, f"{case.code.hex()} nullified", nullified=True)
    assert not problems, "\n".join(problems[:SHOWN])


def generated() -> Iterator[bytes]:
    """Words that begin as a case's does, and are of the same row: other registers, conditions and offsets."""
    rng, decode = random.Random(7), cases_of("parisc")
    for case in decode.cases:
        if case.outcome == "simulate":
            for _ in range(GENERATED):
                yield (int.from_bytes(case.code, "big") ^ rng.getrandbits(32) & rng.getrandbits(32) & 0x03FFFFFF).to_bytes(4, "big")


def test_generated_words(lab: Lab) -> None:
    """Whatever is simulated."""
    problems: list[str] = []
    count, rng = 0, random.Random(3)
    for code in generated():
        insn = lab.m.arch.decode(code + NOP, lab.home)
        inside = insn.target is not None and lab.home <= insn.target < lab.home + 8
        if insn.simulate is not None and not inside:
            problems += lab.check(code, rng.choice(SLOTS), f"{code.hex()} generated")
            count += 1
    assert count > 100
    assert not problems, "\n".join(problems[:SHOWN])


#: in delay slots: loads and stores through r3, which the branches below use, and r20; into r3, and such as change r20
FAILING = [bytes.fromhex(word) for word in ("487c0000", "68640000", "4a9c0000", "6a830000", "4a830000", "4e9c0008",
                                            "6e9c0008")]


def delayed() -> Iterator[bytes]:
    """Every conditional branch with a delay slot: each condition, forwards and backwards, nullifying backwards; and
    those that are always taken. Of what they compare or change is r3, the other one r4, a number, or r3, too."""
    for opcode in (*range(0x20, 0x24), *range(0x28, 0x2C), *range(0x30, 0x34)):
        for condition in range(8):
            for end in (0x0010, 0x1FD5, 0x1FD7):
                other = 3 + (condition + opcode) % 2
                yield (opcode << 26 | 3 << 21 | other << 16 | condition << 13 | end).to_bytes(4, "big")
    for word in ("e8000010", "e8600010", "e8400010", "e8830000", "e840c000", "e860c000", "e860d000", "e860f000",
                 "e0400008", "e4400008"):
        yield bytes.fromhex(word)


@pytest.mark.long
def test_delay_slots_that_fault(lab: Lab) -> None:
    """What the branch has done is done once, and the fault is where it is without the probe."""
    problems: list[str] = []
    count, rng = 0, random.Random(11)
    for code in delayed():
        insn = lab.m.arch.decode(code + NOP, lab.home)
        if not insn.delay_slot or insn.simulate is None:
            continue
        slot = rng.choice(FAILING)  # all of them behind each were tried, too: 3,500
        problems += lab.check(code, slot, f"{code.hex()} failing", r20=0x10, r3=rng.choice((0x10, 0x11, 0x7FFFFFF8)))
        count += 1
    assert count > 200 and lab.faults > 2 * count
    assert not problems, f"{len(problems)}\n" + "\n".join(problems[:SHOWN])


def test_delay_slots_whose_fault_is_repaired(lab: Lab) -> None:
    """They go on in the slot: what the branch has done is not done again."""
    repaired, problems = 0, list[str]()

    def repair(p: Kprobe, regs: Any, trapnr: int) -> bool:
        nonlocal repaired
        repaired += 1
        regs["r20"] = lab.data
        return True

    for n, code in enumerate(list(delayed())[::5]):
        slot = FAILING[2 + n % 5]  # through r20
        insn, state = lab.m.arch.decode(code + slot, lab.home), lab.state(f"{code.hex()} repaired")
        if insn.delay_slot and insn.simulate is not None:
            lab.m.write(lab.home, code + slot)
            plain = lab.run({**state, "r20": lab.data}, lab.home, 8)
            for fields in ({}, {"post_handler": lambda p, regs, flags: None}):
                before = repaired
                seen = lab.probed({**state, "r20": 0x10}, fault_handler=repair, **fields)
                if before == repaired:
                    seen.regs["r20"] = lab.data  # the slot was nullified
                problems += [f"{code.hex()} {slot.hex()} {insn.name}: {text}" for text in seen.differs(plain)]
    assert repaired > 50 and not problems, "\n".join(problems[:SHOWN])


#: calls through pointers and of millicode, longjmp out of functions, computed jumps, what nullifies, floating point
FUNCTIONS = ("test_tail_calls", "test_setjmp", "test_float", "test_pointers", "test_structs", "test_varargs",
             "test_switch", "test_shifts", "test_args64", "test_convert", "test_threaded", "test_arith32")
THEIRS = ("$$divU", "$$remU", "$$divI", "$$remI", "$$dyncall", "fold", "dispatch", "attempt", "threaded", "choose")


def test_every_instruction_of_functions(guest: QemuMachine, conformance: Conformance) -> None:
    """Each with probes on all its instructions, and on those of what it calls; the results are what they were."""
    m, wanted, hit = guest, expected(), set[int]()
    for name in FUNCTIONS:
        with Kprobes(m) as k:
            symbols = [m.symbols[each] for each in (name, *THEIRS)]
            probes = [Kprobe(addr=place) for symbol in symbols
                      for place in range(symbol.address, symbol.address + symbol.size, 4) if k.check(place).probeable]
            k.register_kprobes(probes)
            assert m.call(name, wanted["seeds"][0], timeout=300) & 0xFFFFFFFF == wanted["tests"][name][0], name
            hit |= {probe.addr for probe in probes if probe.nhit and probe.addr is not None}
    assert len(hit) > 700
    conformance.under(USER_MODE)("parisc", "real program", len(hit))


def test_returns_of_every_function(guest: QemuMachine) -> None:
    """Frames grow upwards: recursion, tail calls, longjmp out of followed calls, calls through pointers."""
    m, wanted = guest, expected()
    with Kprobes(m) as k:
        names = [name for name in wanted["tests"] if name in m.symbols] + ["fib", "ackermann", "quicksort", "swap"]
        backs = {name: Kretprobe(symbol_name=name, handler=lambda ri, regs: None) for name in names}
        for back in backs.values():
            k.register_kretprobe(back)
        for seed, result in zip(wanted["seeds"][:2], wanted["run_all"]["parisc"], strict=False):
            assert m.call("run_all", seed, timeout=300) & 0xFFFFFFFF == result
        assert all(back.nreturned >= 2 and not back.nmissed for back in backs.values())


def test_recursion_deeper_than_maxactive(guest: QemuMachine) -> None:
    """Calls that are followed at a time are those whose frames are there: what has returned makes room."""
    m, depth = guest, 3
    with Kprobes(m) as k:
        back = Kretprobe(symbol_name="fib", maxactive=depth, handler=lambda ri, regs: None)
        k.register_kretprobe(back)
        with pytest.warns(RuntimeWarning, match="followed at a time"):
            m.call("test_fib", 5, timeout=300)
        assert back.nreturned and back.nmissed
        k.unregister_kretprobe(back)
        assert m.call("test_fib", 1) & 0xFFFFFFFF == expected()["tests"]["test_fib"][0]


def test_arguments_on_an_upward_stack(guest: QemuMachine) -> None:
    """Six arguments, of which two are in memory, as compiled code passes them and as m.call() does."""
    m = guest
    code = "4bdd3f994bdc3f910b9d061c0b9a061c0b99061c0b98061ce840c0000b97061c"
    page = m.map_code()
    m.symbols.add("six", page, m.page_size)
    m.patch(page, bytes.fromhex(code))
    seen: list[list[int]] = []
    with Kprobes(m) as k:
        k.register(Kprobe(addr=page, pre_handler=lambda p, regs: seen.append([regs.arg(n) for n in range(6)])))
        assert m.call(page, 1, 20, 300, 4000, 50000, 600000) == 654321
    assert seen == [[1, 20, 300, 4000, 50000, 600000]]


def test_a_system_call_and_a_descriptor(guest: QemuMachine) -> None:
    """The gateway's branch under a probe; a function pointer that is the address of a function's address."""
    m, page = guest, guest.map_code()
    m.symbols.add(f"calls{page:x}", page, m.page_size)
    # copy r2, r22; be,l 0x100(sr2, r0); ldi 64 (getppid), r20; bv r0(r22); nop; r19 + 1 is returned behind it
    m.patch(page, bytes.fromhex("08020256 e4008200 34140080 eac0c000 08000240 e840c000 367c0002"))
    plain = m.call(page)
    m.write(page + 0x100, (page + 0x14).to_bytes(4, "big") + (41).to_bytes(4, "big"))
    with Kprobes(m) as k:
        probes = [Kprobe(addr=page + 4), Kprobe(addr=page + 0x14)]
        k.register_kprobes(probes)
        assert m.call(page) == plain > 0
        assert m.call(page + 0x100 | 2) == 42
        assert [probe.nhit for probe in probes] == [1, 1]


@pytest.mark.long
def test_numbers_of_registers_in_debug_information() -> None:
    arch = architectures.get("parisc")
    assert [register(arch, number) for number in (0, 1, 26, 31, 32)] == [None, "r1", "r26", "r31", None]


def test_programs_read_the_stack_where_it_grows_upwards(programs: Callable[[str], Path]) -> None:
    """A program of an event fetches the stack's words, and arguments there, below the stack pointer, as Python does."""
    qemu_for("parisc-O2")
    with QemuMachine.user([programs("parisc-O2")], env={}, timeout=20, stdout=subprocess.DEVNULL) as m:
        k = Kprobes(m)
        event = parse_event("p reverse_bits first=$arg1 fifth=$arg5 sixth=$arg6 word=$stack13", m)
        program, fetched = program_of(event, m), []
        k.register(Kprobe(symbol_name="reverse_bits", pre_handler=lambda p, regs: fetched.append(event.fetch(regs))))
        with k.attach(program.program, "reverse_bits", engine="interpreter"):
            m.call("reverse_bits", *range(1, 7))
        assert fetched == [(1, 5, 6, 5)] == [program.decode(bytes(record))[0] for record in program.ring]


def test_scripts_read_arguments_where_the_stack_grows_upwards(programs: Callable[[str], Path]) -> None:
    """sargN is an argument on the stack: below the stack pointer, as argN is."""
    qemu_for("parisc-O2")
    with QemuMachine.user([programs("parisc-O2")], env={}, timeout=20, stdout=subprocess.DEVNULL) as m:
        k = Kprobes(m)
        with k.script('uprobe:reverse_bits { printf("%d %d %d %d\\n", sarg0, sarg1, arg4, arg5); }', quiet=True) as script:
            m.call("reverse_bits", *range(1, 7))
        assert script.output.strip() == "5 6 5 6"
