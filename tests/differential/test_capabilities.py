"""What every architecture must be able to do, on compiled code. A power that an architecture lacks is a blank with its
reason."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from arch_rows import SAVINGS
from arches import ARCHES, NO_ENGINE, RUNNABLE, programs_of
from portion import portion
from qemu import RUN_HERE, USER_MODE, arch_of, process

from kprobes import (
    DIVERTED,
    GuestFault,
    GuestTimeout,
    Jprobe,
    Kprobe,
    Kprobes,
    Kretprobe,
    Program,
    UnicornMachine,
    Unsupported,
)
from kprobes.arch._base import Atomic, Insn
from kprobes.conformance import Conformance
from kprobes.core.probe import Probe
from kprobes.testing import Recorder, functions, instructions, kprobes_everywhere
from kprobes.testing._difference import registers

HERE = [pytest.param(path, False, id=path.stem, marks=pytest.mark.quick) for arch in RUNNABLE
        for path in programs_of(arch) if path.stem.endswith("-O2")]
REMOTE = [pytest.param(path, True, id=f"{path.stem}-qemu") for arch in ARCHES for path in programs_of(arch)
          if path.stem in RUN_HERE]
ARGS = tuple(3 + 1000 * n for n in range(12))
SUM = sum((n + 1) * value for n, value in enumerate(ARGS))
MASK = 0xFFFFFFFF
NOWHERE = 0x6660  # nothing is mapped there
SHORTEST_PROMISE = 16  # instructions for which every architecture promises that an exclusive sequence makes progress


class Guest:
    """A program, probed: in Unicorn, or a process in QEMU."""

    def __init__(self, machine: Any, remote: bool, conformance: Conformance) -> None:
        self.machine, self.remote = machine, remote
        self.kprobes = Kprobes(machine)
        self.name, self.arch = machine.arch.name, machine.arch
        self._conformance = conformance.under(USER_MODE) if remote else conformance

    def sum(self) -> int:
        """sum_of_12(3, 1003, ...): a + 2b + 3c + ..., most of its arguments on the stack."""
        return self.machine.call("sum_of_12", *ARGS) & MASK

    def proves(self, capability: str, count: int = 1) -> None:
        self._conformance(self.name, capability, count)

    def lacks(self, power: Any, capability: str, reason: str) -> None:
        """Skip where a power is None."""
        if power is None:
            self._conformance.blank(self.name, capability, reason)
            pytest.skip(reason)

    def entry(self) -> int:
        symbol = self.machine.symbols["sum_of_12"]
        return self.arch.pointers.code_address(symbol.address | symbol.mode, self.machine.read).addr

    def places(self, name: str) -> list[int]:
        return instructions(self.kprobes, self.machine.symbols[name])


@pytest.fixture(scope="module")
def processes() -> Iterator[dict[str, Any]]:
    """By program: a process serves all tests until one spoils it."""
    running: dict[str, Any] = {}
    yield running
    for machine in running.values():
        machine.close()


@pytest.fixture
def guest(path: Path, remote: bool, processes: dict[str, Any], conformance: Conformance) -> Iterator[Guest]:
    if remote:
        machine = processes.pop(path.stem, None) or process(path)
    else:
        machine = UnicornMachine.load(path)
    made = Guest(machine, remote, conformance)
    made.lacks(made.arch.abi, "kprobe", "no Abi: functions cannot be called")
    made.lacks(made.arch.linkage, "kprobe", "no Linkage: functions cannot be called")
    yield made
    made.kprobes.close()
    assert made.sum() == SUM, "the guest is not as it was"
    if remote:
        processes[path.stem] = machine
    else:
        machine.close()


each_program = pytest.mark.parametrize(("path", "remote"), HERE + REMOTE, scope="module")


def each_company(guest: Guest) -> Iterator[str]:
    """While the probe under test is alone, beside another, beside one with a post_handler: each takes another way
    through a hit."""
    neighbours = {"alone": [], "beside another": [Kprobe(symbol_name="sum_of_12", pre_handler=lambda p, regs: None)],
                  "beside a post_handler": [Kprobe(symbol_name="sum_of_12", post_handler=lambda p, regs, flags: None)]}
    for name, probes in neighbours.items():
        for probe in probes:
            guest.kprobes.register_kprobe(probe)
        yield name
        for probe in probes:
            guest.kprobes.unregister_kprobe(probe)


@each_program
def test_kprobe(guest: Guest) -> None:
    log = Recorder("pc")
    with guest.kprobes.kprobe("sum_of_12", pre_handler=log.pre("a")) as p:
        assert guest.sum() == SUM
        assert guest.sum() == SUM
        assert (p.nhit, p.nmissed) == (2, 0)
    assert log.take() == [f"pre a pc={guest.entry():#x}"] * 2
    assert guest.sum() == SUM
    assert not log.lines
    guest.proves("kprobe")


@each_program
def test_colocated(guest: Guest) -> None:
    log = Recorder()
    probes = [log.both(name, symbol_name="sum_of_12") for name in "abc"]
    guest.kprobes.register_kprobes(probes)
    assert guest.sum() == SUM
    assert log.take() == ["pre c", "pre b", "pre a", "post c", "post b", "post a"]
    guest.kprobes.disable_kprobe(probes[1])
    guest.kprobes.unregister_kprobe(probes[2])
    assert guest.sum() == SUM
    assert log.take() == ["pre a", "post a"]
    guest.proves("colocated")


@each_program
def test_post(guest: Guest) -> None:
    """On every instruction of the function: each post-handler stands where the next pre-handler is going to."""
    log = Recorder("pc")
    probes = [log.both("x", addr=address) for address in guest.places("sum_of_12")]
    guest.kprobes.register_kprobes(probes)
    assert guest.sum() == SUM
    pres = [line.rpartition("=")[2] for line in log.lines if line.startswith("pre")]
    posts = [line.rpartition("=")[2] for line in log.lines if line.startswith("post")]
    assert len(pres) == len(posts) >= 3
    known = {hex(p.address or 0) for p in probes}
    assert [a for a in posts[:-1] if a in known] == [b for a, b in zip(posts, pres[1:], strict=False) if a in known]
    guest.proves("post", len(posts))


@each_program
def test_nested(guest: Guest) -> None:
    """A handler calls guest code: the probe there is missed, the result and the outer call are right."""
    inner, results = Kprobe(symbol_name="sum_of_12", pre_handler=lambda p, regs: None), []
    guest.kprobes.register_kprobe(inner)
    with guest.kprobes.kprobe("fib", pre_handler=lambda p, regs: results.append(guest.sum())) as outer:
        assert guest.machine.call("fib", 1) == 1
    assert (results, inner.nhit, inner.nmissed, outer.nhit) == ([SUM], 0, 1, 1)
    assert guest.sum() == SUM
    assert inner.nhit == 1
    guest.proves("nested")


@each_program
def test_return_probe(guest: Guest) -> None:
    seen: list[tuple[int, int]] = []

    def entry(ri: Any, regs: Any) -> None:
        ri.data["first"] = regs.arg(0) & MASK

    r = Kretprobe(symbol_name="sum_of_12", entry_handler=entry,
                  handler=lambda ri, regs: seen.append((ri.data["first"], regs.return_value & MASK)))
    guest.kprobes.register_kretprobe(r)
    assert guest.sum() == SUM
    assert (seen, r.nmissed, r.nreturned) == ([(ARGS[0], SUM)], 0, 1)
    guest.proves("return probe")


@each_program
def test_return_value_can_be_replaced(guest: Guest) -> None:
    def replace(ri: Any, regs: Any) -> None:
        regs.return_value = 77

    with guest.kprobes.kretprobe("sum_of_12", handler=replace):
        assert guest.sum() == 77
    guest.proves("return probe")


@each_program
def test_return_address(guest: Guest) -> None:
    """The true caller is seen through a return probe on the same function."""
    plain: list[int] = []
    with guest.kprobes.kprobe("sum_of_12", pre_handler=lambda p, regs: plain.append(regs.return_address)):
        guest.machine.call("test_many_args", 1)
        with guest.kprobes.kretprobe("sum_of_12", handler=lambda ri, regs: None):
            guest.machine.call("test_many_args", 1)
    assert len(plain) % 2 == 0
    assert plain[: len(plain) // 2] == plain[len(plain) // 2 :] != []
    caller = guest.machine.symbols.at(plain[0] & ~guest.arch.pointers.mode_bits)[0].name
    assert caller.removeprefix(".") == "test_many_args"  # where f is a function descriptor, .f is the code
    guest.proves("return probe")


@each_program
def test_arguments(guest: Guest) -> None:
    """Those in registers, and those on the stack: read, and replaced one by one."""
    assert guest.arch.abi is not None
    count, seen = len(guest.arch.abi.args), []
    with guest.kprobes.kprobe("sum_of_12",
                              pre_handler=lambda p, regs: seen.append([regs.arg(n) & MASK for n in range(12)])):
        assert guest.sum() == SUM
    assert seen == [list(ARGS)]
    for n in range(12):
        with guest.kprobes.kprobe("sum_of_12", pre_handler=lambda p, regs, n=n: regs.set_arg(n, ARGS[n] + 1)):
            assert guest.sum() == SUM + n + 1
    if count:
        guest.proves("arguments", min(count, 12))
    else:
        guest._conformance.blank(guest.name, "arguments", "this calling convention passes every argument on the stack")
    guest.proves("stack arguments", 12 - count)


@each_program
def test_jprobe(guest: Guest) -> None:
    log = Recorder()
    seen: list[tuple[int, ...]] = []

    def mirror(a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int, i: int, j: int, k: int,
               last: int) -> None:
        seen.append(tuple(v & MASK for v in (a, b, c, d, e, f, g, h, i, j, k, last)))

    guest.kprobes.register_jprobe(Jprobe(symbol_name="sum_of_12", entry=mirror))
    guest.kprobes.register_kprobe(Kprobe(symbol_name="sum_of_12", pre_handler=log.pre("a")))
    assert guest.sum() == SUM
    assert (seen, log.lines) == ([ARGS], ["pre a"])
    guest.proves("jprobe")


@each_program
def test_guest_jprobe(guest: Guest) -> None:
    """The mirror is guest code: it runs on a copy, the target's arguments stay."""
    mirrored: list[int] = []
    guest.kprobes.register_jprobe(Jprobe(symbol_name="sum_of_12", entry="fib"))
    with guest.kprobes.kprobe("fib", pre_handler=lambda p, regs: mirrored.append(1)) as p:
        assert guest.sum() == SUM
        assert (mirrored, p.nmissed > 0) == ([], True)
    guest.proves("jprobe")


@each_program
@pytest.mark.parametrize("post", [False, True], ids=["fast", "post"])
def test_fault_is_at_home(guest: Guest, post: bool) -> None:
    """A displaced instruction faults as it does in its place; its fault_handler may repair the cause and try again."""
    machine = guest.machine
    with pytest.raises(GuestFault) as plain:
        machine.call("strlen", NOWHERE)
    log = Recorder("pc")
    probes = [Kprobe(addr=address, pre_handler=lambda p, regs: None, fault_handler=log.fault("x"),
                     post_handler=log.post("x") if post else None)
              for address in guest.places("strlen")]
    guest.kprobes.register_kprobes(probes)
    for _ in range(2):
        log.take()
        with pytest.raises(GuestFault) as probed:
            machine.call("strlen", NOWHERE)
        facts = [(e.value.access, e.value.address, e.value.pc, e.value.symbol) for e in (plain, probed)]
        assert facts[0] == facts[1]
        assert next(line for line in log.lines if line.startswith("fault")).endswith(f" pc={plain.value.pc:#x}")
    assert machine.call("strlen", b"seven..") == 7
    guest.proves("fault", 2)


@each_program
def test_bounded_runs_stop_where_they_do_without_probes(guest: Guest, thorough: bool) -> None:
    """max_insns counts the guest's instructions, not what a probe adds; a stop is never inside a slot."""
    bounds = portion(range(1, 25), thorough, guest.name, 3)

    if guest.arch.name.startswith("sparc") and not guest.remote:
        # its CODE hooks destroy jumps, see Blocks.hooked_delay_slots
        with pytest.raises(Unsupported, match="cannot count"):
            guest.machine.call("test_crc", 1, max_insns=24)
        return

    def stops() -> list[int]:
        out = []
        for bound in bounds:
            with pytest.raises(GuestTimeout) as stopped:
                guest.machine.call("test_crc", 1, max_insns=bound)
            out.append(stopped.value.pc)
        return out

    plain = stops()
    assert len(set(plain)) > len(bounds) // 5
    addresses = guest.places("test_crc")
    for post in (None, lambda p, regs, flags: None):
        probes = [Kprobe(addr=address, post_handler=post) for address in addresses]
        guest.kprobes.register_kprobes(probes)
        assert stops() == plain
        guest.kprobes.unregister_kprobes(probes)
    guest.proves("kprobe")


@each_program
def test_exception_leaves_a_consistent_guest(guest: Guest) -> None:
    """What a handler raises leaves through call(), with pc at the probepoint wherever the handler had sent it; all goes
    on working."""
    machine, armed = guest.machine, Kprobe(symbol_name="fib", pre_handler=lambda p, regs: None)
    guest.kprobes.register_kprobe(armed)

    def fail(p: Any, regs: Any) -> None:
        regs.go(regs.return_address)
        raise LookupError("mine")

    for others in each_company(guest):
        with guest.kprobes.kprobe("sum_of_12", pre_handler=fail) as p:
            for _ in range(2):
                with pytest.raises(LookupError, match="mine") as raised:
                    guest.sum()
                assert "fail" in [entry.name for entry in raised.traceback]
                if not guest.remote:  # a remote machine's registers are put back
                    assert machine.regs.pc == guest.entry() == p.address
                assert guest.kprobes.idle
        before = armed.nhit
        assert (machine.call("fib", 1), armed.nhit - before, guest.sum()) == (1, 1, SUM), others
    guest.proves("kprobe")


def ways_to_a_store(insns: dict[int, Insn], frm: Insn, steps: int) -> Iterator[tuple[int, ...]]:
    """Every way of at most so many instructions from one to a store-exclusive, as addresses; without calls."""
    targets = {frm.next} if frm.falls_through else set()
    for at in targets | ({frm.target} if frm.target is not None else set()):
        insn = insns.get(at)
        if insn is not None and insn.atomic is Atomic.CLOSES:
            yield frm.addr, at
        elif insn is not None and insn.atomic is None and steps and not insn.links:
            yield from ((frm.addr, *way) for way in ways_to_a_store(insns, insn, steps - 1))


@pytest.mark.parametrize(("path", "remote"), [*HERE, *(pair for pair in REMOTE if arch_of(pair.id) in NO_ENGINE)],
                         scope="module")
def test_nothing_is_probed_inside_an_exclusive_sequence(guest: Guest) -> None:
    """Between a load-exclusive and its store a trap would break the sequence; before and behind it all is well."""
    inside = found = 0
    for symbol in functions(guest.machine):
        insns = {insn.addr: insn for insn in guest.kprobes._survey.instructions(symbol)}
        opening = [insn for insn in insns.values() if insn.atomic is Atomic.OPENS]
        if opening:
            found += len(opening)
            on_the_way = {at for insn in opening for at in chain(*ways_to_a_store(insns, insn, SHORTEST_PROMISE))}
            inside += len(on_the_way)
            accepted = {address & ~symbol.mode for address in instructions(guest.kprobes, symbol)}
            assert not on_the_way & accepted, symbol.name
    if not found:
        pytest.skip("no exclusive sequence in this program")
    assert inside


@each_program
def test_divert(guest: Guest) -> None:
    """A pre-handler sends the guest elsewhere: the function is replaced."""

    def replace(p: Any, regs: Any) -> int:
        regs.return_value = 4242
        regs.go(guest.arch.linkage.get(regs))
        if guest.arch.linkage.pushed:
            regs.sp += guest.arch.linkage.pushed
        return DIVERTED

    log = Recorder()
    with guest.kprobes.kprobe("sum_of_12", pre_handler=replace, post_handler=log.post("never")) as p:
        assert guest.sum() == 4242
        assert (p.nhit, log.lines) == (1, [])
    for others in each_company(guest):
        with guest.kprobes.kprobe("sum_of_12", pre_handler=replace) as p:
            assert [guest.sum(), guest.sum()] == [4242, 4242], others
            assert (p.nhit, p.nmissed, guest.kprobes.idle) == (2, 0, True), others
    guest.proves("divert")


@each_program
def test_divert_by_pc(guest: Guest) -> None:
    """regs.pc takes an address as it stands in a listing: the mode the CPU is in stays. Function for function."""
    fib = guest.kprobes.check("fib").addr

    def go_elsewhere(p: Any, regs: Any) -> int:
        regs.set_arg(0, 7)
        if "t9" in regs:
            regs["t9"] = fib  # where MIPS code finds its own address
        regs.pc = fib
        return DIVERTED

    with guest.kprobes.kprobe("sum_of_12", pre_handler=go_elsewhere):
        assert guest.sum() == 13
    guest.proves("divert")


@each_program
def test_a_changed_pc_alone_diverts_nothing(guest: Guest) -> None:
    """Without DIVERTED what a pre_handler writes into regs.pc is ignored."""

    def wander(p: Any, regs: Any) -> None:
        regs.pc = p.address + 0x40

    for others in each_company(guest):
        with guest.kprobes.kprobe("sum_of_12", pre_handler=wander):
            assert [guest.sum(), guest.sum()] == [SUM, SUM], others


@each_program
def test_registers_at_return(guest: Guest) -> None:
    """A function leaves every register as it does without probes, the link register included."""
    machine = guest.machine
    assert guest.arch.abi is not None

    end = machine.map_code() if guest.remote else None

    def leave() -> dict[str, int]:
        saved = registers(machine.regs)
        for n in range(len(guest.arch.abi.args)):
            machine.regs.set_arg(n, ARGS[n % 12])
        if end is not None:
            guest.arch.linkage.set(machine.regs, end)
            if guest.arch.abi.enter is not None:
                guest.arch.abi.enter(machine.regs, machine.symbols["sum_of_12"].address)
        machine.run("sum_of_12", until=end)
        left = registers(machine.regs)
        for name, value in saved.items():
            if left[name] != value:
                machine.regs[name] = value
        return left

    plain = leave()
    assert leave() == plain, "not repeatable"
    everywhere = kprobes_everywhere(guest.kprobes, [machine.symbols["sum_of_12"]], pre_handler=lambda p, regs: None)
    posts: list[Probe] = [Kprobe(addr=p.addr, post_handler=lambda p, regs, flags: None) for p in everywhere]
    returns: list[Probe] = [Kretprobe(symbol_name="sum_of_12", handler=lambda ri, regs: None) for _ in range(2)]
    for probes in (everywhere, posts, returns[:1], returns, [*returns, *posts]):
        guest.kprobes.register_all(probes)
        assert [leave(), leave()] == [plain, plain]
        guest.kprobes.unregister_all(probes)
        assert leave() == plain


@each_program
def test_boost(guest: Guest) -> None:
    """Without a post_handler, a hit of a straight-line instruction takes one trap."""
    guest.lacks(guest.arch.jump, "boost", "no Jump: no instruction that changes nothing but pc")
    probes = [Kprobe(addr=a, pre_handler=lambda p, regs: None) for a in guest.places("sum_of_12")
              if guest.kprobes.check(a).boostable]
    assert probes
    guest.kprobes.optimization = False
    guest.kprobes.register_kprobes(probes)
    assert guest.sum() == SUM
    boosted = [p for p in probes if p.boosted]
    assert all(p.nhit == 1 for p in boosted)
    assert len(boosted) == len(probes)
    boosted[0].post_handler = lambda p, regs, flags: None
    assert not boosted[0].boosted
    guest.proves("boost", len(boosted))


@each_program
def test_optimize(guest: Guest) -> None:
    """A jump takes the breakpoint's place, and handlers run all the same; in a remote guest, programs do."""
    guest.lacks(guest.arch.jump, "optimize", "no Jump: no instruction that changes nothing but pc")
    if guest.remote:
        done, reason = programs_by_jumps(guest)
    else:
        done, reason = handlers_by_jumps(guest), "the jump does not fit over any instruction of the function tried"
    if not done and reason:
        guest._conformance.blank(guest.name, "optimize", reason)
        pytest.skip(reason)
    guest.proves("optimize", done)


def handlers_by_jumps(guest: Guest) -> int:
    """At how many instructions a jump takes the place of the breakpoint."""
    done = 0
    for address in guest.places("sum_of_12"):
        hits: list[int] = []
        with guest.kprobes.kprobe(addr=address, pre_handler=lambda p, regs, hits=hits: hits.append(regs.pc)) as p:
            guest.kprobes.flush_optimizer()
            jump = p.optimized
            assert bool(p.why_not_optimized) != jump
            assert [guest.sum(), guest.sum()] == [SUM, SUM]
            assert hits == [p.address] * 2
            assert p.optimized == jump
            done += jump
    return done


def programs_by_jumps(guest: Guest) -> tuple[int, str]:
    """At how many instructions programs ran by jumps, all attached at once; why there are none."""
    pytest.importorskip("llvmlite")
    if guest.name not in SAVINGS:
        return 0, "programs run by stops: there is no compiler of them for it"
    apart: list[int] = []
    for address in guest.places("sum_of_12"):
        if not apart or address >= apart[-1] + guest.arch.jump.size:
            apart.append(address)
    attached = [guest.kprobes.attach(Program.from_instructions(COUNTS), address) for address in apart]
    try:
        assert [guest.sum() for _ in range(4)] == [SUM] * 4
        assert {a.runs for a in attached} == {4}
        jumps = sum(probe.optimized for a in attached for probe in a)
        assert jumps or guest.machine.symbols["sum_of_12"].mode, "only Thumb code has none"
        return jumps, ""
    finally:
        for a in attached:
            a.detach()


#: r0 = 0; exit
COUNTS = bytes.fromhex("b700000000000000 9500000000000000")
