"""TriCore: a program assembled by hand, in place of compiled ones, with probes on all of it."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from typing import Any

import capstone as cs
import pytest
from arches import PROGRAMS
from flips import Flips

from kprobes import DIVERTED, GuestFault, GuestTimeout, Jprobe, Kprobe, Kprobes, Kretprobe, UnicornMachine, Unsupported
from kprobes.conformance import Conformance
from kprobes.machine.unicorn.host import hostcode
from kprobes.machine.unicorn.stops import FEW
from kprobes.testing import Comparison, Recorder, functions, instructions, kprobes_everywhere, kretprobes_everywhere

pytestmark = pytest.mark.filterwarnings("ignore::kprobes.ReturnMissed")  # what is missed is counted here

BASE, MASK = 0x80000000, 0xFFFFFFFF
SEEDS = (0, 1, 7, 0xDEADBEEE)
LISTING = [line for line in (PROGRAMS / "tricore.txt").read_text().splitlines() if not line.startswith("#")]
WORDS = [line.split(maxsplit=1) for line in LISTING if not line.endswith(":")]
CODE = b"".join(bytes.fromhex(code) for code, _ in WORDS)
NOWHERE = 0x6660  # nothing is mapped there


def symbols() -> dict[str, tuple[int, int]]:
    """name -> address, size of the listing's functions."""
    starts, at = [], BASE
    for line in LISTING:
        if re.match(r"\w+:", line):
            starts.append((line[:-1], at))
        elif not line.endswith(":"):
            at += len(line.split()[0]) // 2
    ends = [start for _, start in starts[1:]] + [at]
    return {name: (start, end - start) for (name, start), end in zip(starts, ends, strict=True)}


FUNCTIONS = symbols()


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def run_all(n: int) -> int:
    """What the program's run_all returns."""
    low, result = n & 15, 0
    for value in (low * (low + 1) // 2, math.factorial(low), fib(low), (100, n, -1, 7)[n & 3], 4 * n, n + 6,
                  n.bit_count()):
        result = result * 31 + value
    return result + low * (low + 1) // 2 + 1 & MASK


def machine() -> UnicornMachine:
    return UnicornMachine.from_code(CODE, arch="tricore", base=BASE, symbols=FUNCTIONS)


def run(guest: UnicornMachine) -> list[int]:
    return [guest.call("run_all", seed) for seed in SEEDS] + [guest.call("sum_of_6", *range(1, 7)),
                                                              guest.call("length", b"seven..")]


WANTED = [*map(run_all, SEEDS), 91, 7]


@pytest.fixture
def kprobes() -> Iterator[Kprobes]:
    guest = machine()
    with Kprobes(guest) as k:
        yield k
    assert run(guest) == WANTED, "the guest is not as it was"
    guest.close()


def text(differences: list[Any]) -> str:
    return "\n".join(map(str, differences[:10]))


def test_listing_is_what_it_says() -> None:
    disassembler = cs.Cs(cs.CS_ARCH_TRICORE, cs.CS_MODE_TRICORE_162)
    assert [i.mnemonic for i in disassembler.disasm(CODE, BASE)] == [asm.split()[0] for _, asm in WORDS]


def test_results_without_probes() -> None:
    with machine() as guest:
        assert run(guest) == WANTED
        assert [guest.call("fib", n) for n in range(12)] == [*map(fib, range(12))]
        assert guest.call("sum", 1000) == 500500


def test_every_instruction_at_once(conformance: Conformance) -> None:
    comparison = Comparison(machine(), run)
    assert comparison.plain.result == WANTED
    probes = kprobes_everywhere(comparison.kprobes, functions(comparison.machine), pre_handler=lambda p, regs: None)
    assert len(probes) == len(WORDS), "nothing here need be refused"
    with comparison.probed(probes):
        assert not (found := comparison.again("all")), text(found)
        before, posts = [p.nhit for p in probes], Recorder()
        assert all(before), "the program does not run all of itself"
        conformance("tricore", "real program", len(probes))
        conformance("tricore", "boost", sum(p.boosted for p in probes))
        conformance("tricore", "optimize", sum(p.optimized for p in probes))
        assert sum(p.boosted for p in probes) > 20
        assert sum(p.optimized for p in probes) > 10
        for probe in probes:
            probe.post_handler = posts.post("p")
        assert not (found := comparison.again("all, with post_handlers")), text(found)
        assert sum(p.nhit for p in probes) - sum(before) == len(posts.lines) == sum(before)
        assert not any(p.nmissed for p in probes)
        conformance("tricore", "post", len(posts.lines))
    assert not (found := comparison.text_changed()), text(found)


@pytest.mark.parametrize("seed", range(4))
def test_everything_flips(seed: int) -> None:
    """While the program runs, handlers flip at random what decides between breakpoint, slot and jump."""
    comparison, rng = Comparison(machine(), run), random.Random(seed)
    flips = Flips(comparison.kprobes)
    flips.probes = kprobes_everywhere(comparison.kprobes, functions(comparison.machine),
                                      pre_handler=lambda p, regs: flips.tick(rng))
    with comparison.probed(flips.probes):
        for turn in range(3):
            assert not (found := comparison.again(f"flipping, {turn}")), text(found)
    assert not (found := comparison.text_changed()), text(found)
    assert flips.count > 5


@pytest.mark.parametrize("post", [False, True], ids=["fast", "post"])
def test_one_instruction_at_a_time(post: bool) -> None:
    comparison = Comparison(machine(), run)
    for symbol in functions(comparison.machine):
        for address in instructions(comparison.kprobes, symbol):
            probe = Kprobe(addr=address, pre_handler=lambda p, regs: None,
                           post_handler=(lambda p, regs, flags: None) if post else None)
            assert not (found := comparison.with_probes([probe],
                                                        f"{symbol.name}+{address - symbol.address:#x}")), text(found)


def test_return_probe_on_every_function(conformance: Conformance) -> None:
    """Whether it returns by RET, FRET or JI."""
    values: list[tuple[str, int]] = []
    comparison = Comparison(machine(), run)
    probes = kretprobes_everywhere(comparison.kprobes, functions(comparison.machine), maxactive=100,
                                   handler=lambda ri, regs: values.append((ri.rp.symbol_name, regs.return_value)))
    assert len(probes) == len(FUNCTIONS)
    with comparison.probed(probes):
        contexts = comparison.machine.regs["fcx"] >> 16 << 28 | (comparison.machine.regs["fcx"] & 0xFFFF) << 6
        free = f"memory {contexts >> 16:#x}"  # what calls have left there: A11 with the trampoline's address
        assert not (found := [d for d in comparison.again("return probes") if not d.what.startswith(free)]), text(found)
        assert all(p.nhit == p.nreturned > 0 and not p.nmissed for p in probes)
        values.clear()
        comparison.machine.call("factorial", 3)
        assert [value for _, value in values] == [1, 2, 6]
    conformance("tricore", "return probe", len(probes))


@pytest.mark.parametrize("names", [["fib"], ["twice", "four_times"], [*FUNCTIONS]], ids=len)
def test_calls_are_followed_the_same_way(names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """By host code, by Python in call sites, by breakpoints."""
    told = {}
    for way in ("host", "Python", "stepped"):
        if way == "Python":
            monkeypatch.setattr(hostcode, "available", lambda: False)
        with machine() as guest, Kprobes(guest) as k:
            assert (guest.following is not None) is (way == "host" and hostcode.available())
            told[way] = followed(k, names, optimize=way != "stepped")
    assert len(told["host"]) > 20
    assert told["host"] == told["Python"]
    assert told["host"] == told["stepped"]


def followed(k: Kprobes, names: list[str], optimize: bool) -> list[Any]:
    """What the handlers of return probes with small pools see, some of whose entry handlers decline."""
    log: list[Any] = []

    def declines(ri: Any, regs: Any) -> int:
        return int(len(log) % 7 == 3)

    def returned(ri: Any, regs: Any) -> None:
        log.append((ri.rp.symbol_name, regs.return_value, ri.ret_addr, regs["a11"], regs.pc))

    probes = [Kretprobe(symbol_name=name, maxactive=3 + n % 3, optimize=optimize,
                        entry_handler=declines if n % 3 == 1 else None, handler=returned)
              for n, name in enumerate(names)]
    k.register_kretprobes(probes)
    for _ in range(3):
        assert run(k.machine) == WANTED
        log.append([(p.nhit, p.nreturned, p.nmissed) for p in probes])
    return log


def test_return_address(kprobes: Kprobes) -> None:
    """The true caller is seen through a return probe on the same function, and A11 is true behind it."""
    seen: list[int] = []
    with (kprobes.kprobe("twice", pre_handler=lambda p, regs: seen.append(regs.return_address)),
          kprobes.kretprobe("twice", handler=lambda ri, regs: seen.append(regs["a11"]))):
        kprobes.machine.call("four_times", 5)
    start = FUNCTIONS["four_times"][0]
    assert seen == [start + 6, start + 6, start + 18, start + 18]


def test_return_value_can_be_replaced(kprobes: Kprobes) -> None:
    def replace(ri: Any, regs: Any) -> None:
        regs.return_value = 77

    with kprobes.kretprobe("fib", handler=replace):
        assert kprobes.machine.call("fib", 1) == 77


def test_handlers(kprobes: Kprobes, conformance: Conformance) -> None:
    log = Recorder("pc")
    probes = [log.both(name, symbol_name="sum") for name in "ab"]
    kprobes.register_kprobes(probes)
    assert kprobes.machine.call("sum", 4) == 10
    assert log.take() == [f"pre b pc={BASE:#x}", f"pre a pc={BASE:#x}", f"post b pc={BASE + 2:#x}",
                          f"post a pc={BASE + 2:#x}"]
    kprobes.unregister_kprobes(probes)
    conformance("tricore", "kprobe")
    conformance("tricore", "colocated")


def test_arguments(kprobes: Kprobes, conformance: Conformance) -> None:
    """Four in registers, then on the stack."""
    seen: list[list[int]] = []
    with kprobes.kprobe("sum_of_6", pre_handler=lambda p, regs: seen.append([regs.arg(n) for n in range(6)])):
        assert kprobes.machine.call("sum_of_6", *range(1, 7)) == 91
    assert seen == [[1, 2, 3, 4, 5, 6]]
    for n in range(6):
        with kprobes.kprobe("sum_of_6", pre_handler=lambda p, regs, n=n: regs.set_arg(n, 100)):
            assert kprobes.machine.call("sum_of_6", *range(1, 7)) == 91 + (n + 1) * (99 - n)
    conformance("tricore", "arguments", 4)
    conformance("tricore", "stack arguments", 2)


def test_jprobe(kprobes: Kprobes, conformance: Conformance) -> None:
    seen: list[tuple[int, ...]] = []
    kprobes.register_jprobe(Jprobe(symbol_name="sum_of_6",
                                   entry=lambda a, b, c, d, e, f: seen.append((a, b, c, d, e, f))))
    assert kprobes.machine.call("sum_of_6", *range(1, 7)) == 91
    assert seen == [(1, 2, 3, 4, 5, 6)]
    conformance("tricore", "jprobe")


def test_nested(kprobes: Kprobes, conformance: Conformance) -> None:
    results: list[int] = []
    inner = Kprobe(symbol_name="factorial", pre_handler=lambda p, regs: None)
    kprobes.register_kprobe(inner)
    with kprobes.kprobe("fib", pre_handler=lambda p, regs: results.append(kprobes.machine.call("factorial",
        4))) as outer:
        assert kprobes.machine.call("fib", 5) == 5
    assert (set(results), len(results), inner.nhit, inner.nmissed) == ({24}, outer.nhit, 0, 4 * outer.nhit)
    conformance("tricore", "nested")


def test_divert(kprobes: Kprobes, conformance: Conformance) -> None:
    """Into another function: the context of the call is that one's to restore."""

    def go_elsewhere(p: Any, regs: Any) -> int:
        regs.pc = FUNCTIONS["ones"][0]
        return DIVERTED

    with kprobes.kprobe("sum", pre_handler=go_elsewhere) as p:
        assert (kprobes.machine.call("sum", 0xFF), p.nhit) == (8, 1)
    conformance("tricore", "divert")


@pytest.mark.parametrize("post", [False, True], ids=["fast", "post"])
@pytest.mark.parametrize("code", ["0f00f00f", "5432"], ids=["undefined", "ld.w d2, [a3]"])
def test_fault_is_at_home(code: str, post: bool, conformance: Conformance) -> None:
    """Of a memory access, which ends the run, and of a trap that the guest's CPU takes itself: registers are as before
    it."""
    facts = []
    for probed in (False, True):
        guest = UnicornMachine.from_code(bytes.fromhex(f"8218{code}0090"), arch="tricore", base=BASE,
                                         symbols={"f": (BASE, 4 + len(code) // 2)})
        with guest, Kprobes(guest) as k:
            guest.regs["a3"] = NOWHERE
            log = Recorder("pc")
            if probed:
                k.register_kprobe(Kprobe(symbol_name="f", offset=2, pre_handler=lambda p, regs: None,
                                         fault_handler=log.fault("x"), post_handler=log.post("x") if post else None))
            for _ in range(2):
                with pytest.raises(GuestFault) as fault:
                    guest.call("f")
                registers = {name: guest.regs[name] for name in guest.arch.regs.names}
                facts.append((fault.value.access, fault.value.address, fault.value.pc, registers))
            assert log.take() == [f"fault x {11 if code == '5432' else 4} pc={BASE + 2:#x}"] * 2 * probed
    assert facts[0][0] == ("undefined" if code != "5432" else "read")
    assert facts[0][2] == BASE + 2
    assert all(fact == facts[0] for fact in facts)
    conformance("tricore", "fault", 2)


def test_calls_that_never_return_cost_no_context(kprobes: Kprobes) -> None:
    """A fault deep inside leaves contexts on the list of those in use; the next call finds all of them free."""
    guest = kprobes.machine
    before = guest.regs["fcx"]
    probe = Kprobe(symbol_name="factorial", offset=14)  # mov d2, 1: ten calls deep

    def fail(p: Any, regs: Any) -> None:
        raise LookupError("mine")

    probe.pre_handler = fail
    kprobes.register_kprobe(probe)
    for _ in range(300):  # there are 1024
        with pytest.raises(LookupError, match="mine"):
            guest.call("factorial", 10)
    kprobes.unregister_kprobe(probe)
    assert guest.call("factorial", 5) == 120
    assert guest.regs["fcx"] == before


@pytest.mark.parametrize("depth", [63, 200, 900])
def test_deep_recursion(depth: int) -> None:
    with machine() as guest, Kprobes(guest) as k, k.kretprobe("factorial", handler=lambda ri, regs: None,
                                                              maxactive=1000) as r:
        assert guest.call("factorial", depth) == math.factorial(depth) & MASK
        assert r.nreturned == depth


def test_contexts_run_out() -> None:
    """FCU, the one trap that saves nothing, is a fault as well."""
    with machine() as guest:
        with pytest.raises(GuestFault) as fault:
            guest.call("factorial", 2000)
        assert (fault.value.number, fault.value.pc) == (0x304, FUNCTIONS["factorial"][0] + 8)
        assert guest.call("factorial", 5) == 120


@pytest.mark.parametrize(("psw", "pcxi", "number"), [(0xB80, None, 0x303), (None, 0, 0x305), (None, 0x10000, 0x306)],
                         ids=["CDU", "CSU", "CTYP"])
def test_return_that_traps(psw: int | None, pcxi: int | None, number: int) -> None:
    """A RET with nothing to return to: the same trap, at home, from the same registers."""
    seen = []
    for probed in (False, True):
        with machine() as guest, Kprobes(guest) as k:
            end = FUNCTIONS["sum"][0] + FUNCTIONS["sum"][1] - 2
            if probed:
                k.register_kprobe(Kprobe(addr=end, pre_handler=lambda p, regs: None))
            if psw is not None:
                guest.regs["psw"] = psw
            if pcxi is not None:
                guest.regs["pcxi"] = pcxi
            with pytest.raises(GuestFault) as fault:
                guest.run(end)
            seen.append((fault.value.number, fault.value.pc,
                         {name: guest.regs[name] for name in guest.arch.regs.names}))
    assert seen[0][:2] == (number, end)
    assert seen[0] == seen[1]


def test_bounded_runs_stop_where_they_do_without_probes(kprobes: Kprobes) -> None:
    def stops() -> list[int]:
        out = []
        for bound in range(1, 50):
            with pytest.raises(GuestTimeout) as stopped:
                kprobes.machine.call("factorial", 10, max_insns=bound)
            out.append(stopped.value.pc)
        return out

    plain = stops()
    assert len(set(plain)) > 5
    for post in (None, lambda p, regs, flags: None):
        probes = [Kprobe(addr=address, post_handler=post)
                  for address in instructions(kprobes, kprobes.machine.symbols["factorial"])]
        kprobes.register_kprobes(probes)
        assert stops() == plain
        kprobes.unregister_kprobes(probes)


def test_the_guests_own_debug_is_its_own() -> None:
    """DEBUG does nothing in this engine, with a probe beside it as without; none can stand on it."""
    code = bytes.fromhex("8212 00a0 c212 0d000001 c212 0090")
    with UnicornMachine.from_code(code, arch="tricore", base=BASE,
                                  symbols={"f": (BASE, len(code))}) as guest, Kprobes(guest) as k:
        probes = kprobes_everywhere(k, functions(guest))
        k.register_kprobes(probes)
        assert [p.address - BASE for p in probes] == [0, 4, 10, 12]
        assert guest.call("f") == 3
        assert [p.nhit for p in probes] == [1, 1, 1, 1]


def test_attached() -> None:
    """An engine made elsewhere, whose owner runs it."""
    with machine() as made:
        uc, start = made.uc, FUNCTIONS["sum"][0]
        guest = UnicornMachine.attach(uc, symbols=FUNCTIONS)
        guest.regs["d4"] = 5
        with Kprobes(guest) as k, k.kprobe("sum", offset=8, pre_handler=lambda p, regs: None) as p:
            uc.emu_start(start, start + 14)
            assert (p.nhit, guest.regs["d2"]) == (5, 15)


def test_kretprobe_by_hand(kprobes: Kprobes) -> None:
    """A probe registered while the function runs misses that call and follows the next."""
    rp = Kretprobe(symbol_name="factorial", handler=lambda ri, regs: None)
    with kprobes.kprobe("factorial", offset=14, pre_handler=lambda p, regs: kprobes.register_kretprobe(rp)
                        if not rp.registered else None):
        assert kprobes.machine.call("factorial", 4) == 24
        assert kprobes.machine.call("factorial", 4) == 24
    assert rp.nreturned == 4


def test_calls_share_a_frame(kprobes: Kprobes) -> None:
    """Nested calls may have the same stack pointer: with the pool empty none of them is taken for one that is gone."""
    with kprobes.kretprobe("factorial", handler=lambda ri, regs: None, maxactive=2) as r:
        assert kprobes.machine.call("factorial", 6) == 720
        assert (r.nhit, r.nreturned, r.nmissed) == (6, 2, 4)


def test_pointers_have_registers_of_their_own(kprobes: Kprobes) -> None:
    seen: list[tuple[int, int, int]] = []
    guest = kprobes.machine
    with kprobes.kprobe("length", pre_handler=lambda p, regs: seen.append((regs.arg(0), regs.arg(1), regs["a4"]))):
        assert guest.call("length", 7, b"four", 8) == 4
    assert seen[0][:2] == (7, 8)
    with pytest.raises(Unsupported, match="pointer arguments"):
        guest.call("length", b"1", b"2", b"3", b"4", b"5")


def test_many_breakpoints_need_few_hooks() -> None:
    """The engine walks a list of hooks at every hit: those of neighbours become one when there are many."""
    functions = 300
    code = bytes.fromhex("821200900000").ljust(256, b"\0") * functions  # mov d2, 1; ret
    places = {f"f{n}": (BASE + 256 * n, 4) for n in range(functions)}
    with UnicornMachine.from_code(code, arch="tricore", base=BASE, symbols=places) as guest:
        with Kprobes(guest) as k:
            probes = [Kprobe(symbol_name=name, optimize=False, pre_handler=lambda p, regs: None) for name in places]
            k.register_kprobes(probes)
            assert len(guest.parts.stops._hooks) <= FEW
            assert [guest.call(name) for name in places] == [1] * functions
            assert [p.nhit for p in probes] == [1] * functions
            k.unregister_kprobes(probes[1:])
            assert [guest.call(name) for name in places] == [1] * functions
            assert [p.nhit for p in probes] == [2] + [1] * (functions - 1)
        assert not guest.parts.stops._hooks
