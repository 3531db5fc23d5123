"""An instruction whose interrupt is handled is executed once more, and that is one of the run's instructions: every bound
ends such a loop where it ends it without the probe, and the guest goes on as without it. Guests x probes x bounds, each
beside the same guest without a probe."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import unicorn
from arches import RUNNABLE

from kprobes import GuestTimeout, Kprobe, Kprobes, Kretprobe, Program, Regs, UnicornMachine
from kprobes.core.probe import Probe
from kprobes.machine.unicorn.guests.rows import GUESTS
from kprobes.programs import isa
from kprobes.programs.isa import Instruction

BASE = 0x10000
ENOUGH = 30_000  #: interrupts after which a run that nothing ends is given up


class Case(NamedTuple):
    """Four instructions `nop`, one that raises an interrupt whatever it finds or in these `registers`, and four `nop`. With
    a `branch`, it stands before the one that raises, which is its delay slot, and leads behind the first `nop`."""

    arch: str
    nop: str
    raises: str
    registers: dict[str, int]
    what: str = ""
    branch: str = ""
    mended: Mapping[str, int] = MappingProxyType({})  #: with these registers it raises none

    @property
    def probed(self) -> int:
        """Where a probe can be."""
        return BASE + 2 * len(self.nop)

    @property
    def at(self) -> int:
        """Where the interrupt is raised."""
        return self.probed + len(self.branch) // 2

    @property
    def behind(self) -> int:
        """Where the next instruction is."""
        return self.at + len(self.raises) // 2

    @property
    def code(self) -> bytes:
        return bytes.fromhex(4 * self.nop + self.branch + self.raises + 4 * self.nop)


def swapped(word: str) -> str:
    return bytes.fromhex(word)[::-1].hex()


def mips() -> Iterator[Case]:
    """TEQ a0, zero; LW a1, 1(a0), which release 6 does; MADD of a reserved function."""
    for arch in (name for name in RUNNABLE if name.startswith("mips")):
        for what, word in ("", "00800034"), ("unaligned", "8c850001"), ("undefined", "7000003e"):
            if not ("r6" in arch and what == "unaligned"):
                yield Case(arch, "00000000", swapped(word) if arch.endswith("el") else word, {"a0": 0}, what,
                           mended={"a0": BASE + 3})


#: what raises an interrupt: a division by zero, an undefined instruction, a trap, an unaligned access
CASES = [
    Case("x86_64", "90", "f7f1", {"rcx": 0}), Case("i386", "90", "f7f1", {"ecx": 0}),
    *(Case(arch, "1f2003d5", "c71250e3", {}) for arch in ("arm64", "arm64be")),
    *(Case(arch, "60000000", "4e16f5a6", {}) for arch in ("ppc", "ppc64")), Case("ppc64le", "00000060", "a6f5164e", {}),
    Case("riscv32", "0100", "1b600c36", {}), Case("riscv64", "0100", "5772187d", {}),
    Case("s390x", "1800", "1d24", {"r2": 0, "r3": 0, "r4": 0}), Case("s390x", "1800", "3bcb", {}, "undefined"),
    Case("m68k", "4e71", "82c2", {"d2": 0}),
    *mips(),
    *(Case(arch, "01000000", code, {"o0": 0x10001, "o1": 0, "o2": 0}, what, mended={"o0": BASE, "o2": 1}) for arch in ("sparc", "sparc64")
      for what, code in (("", "9072000a"), ("unaligned", "d2020000"))),
]
#: B, BEQL, BGEZAL; BA, CALL to the second instruction behind the delay slot
BRANCHES = {"mips": ("10000002", "50000002", "04110002"), "sparc": ("10800003", "40000003")}
DELAYED = [case._replace(branch=swapped(branch) if case.arch.endswith("el") else branch, what=f"{case.what} {branch}")
           for case in CASES if case.arch.startswith(tuple(BRANCHES)) and case.what != "undefined"
           for branch in BRANCHES[case.arch.rstrip("elr6432")] if not ("r6" in case.arch and branch == "50000002")]
#: An architecture without such an instruction, with the reason.
NONE = {
    "tricore": "what traps goes to the guest's vector, in the guest",
    **dict.fromkeys(("arm", "armeb", "cortexm"), "undefined instructions end the run with an error"),
}


def nothing(*_: object) -> None:
    """A handler."""


def where(case: Case) -> dict[str, Callable[[Kprobes], list[Probe]]]:
    """Kind of probe -> registers one, or two, so that the instruction that raises runs out of line."""
    before = case.probed - len(case.nop) // 2

    def kprobe(addr: int = case.probed, **fields: Any) -> Callable[[Kprobes], list[Probe]]:
        return lambda k: registered(k, Kprobe(addr=addr, **fields))

    def program(k: Kprobes) -> list[Probe]:
        code = [Instruction(isa.MOV | isa.ALU64), Instruction(isa.EXIT | isa.JMP)]
        return [*k.attach(Program.from_instructions(code), case.probed).probes.values()]

    return {
        "counted": kprobe(), "boosted": kprobe(pre_handler=nothing, optimize=False), "stepped": kprobe(post_handler=nothing),
        "jump": kprobe(pre_handler=nothing), "jump from before": kprobe(before, pre_handler=nothing),
        "return": lambda k: registered(k, Kretprobe(symbol_name="g", handler=nothing)), "program": program,
        "two": lambda k: [*kprobe(post_handler=nothing)(k), *kprobe(before, pre_handler=nothing)(k)],
    }


def registered(k: Kprobes, probe: Probe) -> list[Probe]:
    k.register(probe)
    return [probe]


class Interrupts:
    """The guest's interrupts, all of which are handled. After `last` of them the guest is sent behind."""

    def __init__(self, m: UnicornMachine, case: Case) -> None:
        self.m, self.case, self.seen, self.places = m, case, 0, set[int]()
        self.act: Callable[[int], object] = nothing  #: called with how many there were
        self.behind = False  #: the next one sends the guest on
        m.interrupt_handler = self

    def __call__(self, regs: Regs, number: int) -> bool:
        self.seen += 1
        self.places.add(regs.pc)
        if self.seen > ENOUGH or (self.behind and not self.case.branch):
            regs.pc = self.case.behind
        elif self.behind:
            for name, value in self.case.mended.items():
                regs[name] = value
        else:
            self.act(self.seen)
        return True


class Alarm(Exception):
    """What a handler raises."""


@contextmanager
def alarm(handler: Callable[..., object]) -> Iterator[Callable[[], object]]:
    """Python's handler of a signal that comes every so often, from when what this gives is called."""
    before = signal.signal(signal.SIGALRM, handler)
    try:
        yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.004, 0.004)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def raise_alarm(*_: object) -> None:
    raise Alarm


def raises_now_and_then() -> Callable[..., object]:
    """A handler that raises once, and again after a second: Python loses what is raised in finalizers. One that raises at
    each signal does so behind the run, too, where the machine is slow."""
    due = 0.0

    def handler(*_: object) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + 1
            raise Alarm

    return handler


def at(count: int, action: Callable[[], object]) -> Callable[[int], object]:
    return lambda seen: action() if seen == count else None


class Run:
    """One guest, run by one bound after the other."""

    def __init__(self, case: Case) -> None:
        self.case, self.end = case, BASE + len(case.code)
        self.m = UnicornMachine.from_code(case.code, arch=case.arch, base=BASE,
                                           symbols={"f": (BASE, case.probed - BASE), "g": (case.probed, self.end - case.probed)})
        self.interrupts = Interrupts(self.m, case)

    def by(self, bound: str) -> tuple[str, int]:
        """How a run with this bound ends, and after how many interrupts."""
        name, _, number = bound.partition(" ")
        return getattr(self, name)(int(number)) if number else getattr(self, name)()

    def run(self, **bounds: Any) -> tuple[str, int]:
        interrupts = self.interrupts
        interrupts.seen, interrupts.behind = 0, False
        for name, value in self.case.registers.items():
            self.m.regs[name] = value
        try:
            self.m.run(BASE, self.end, **bounds)
            how = "ended"
        except (GuestTimeout, Alarm) as error:
            how = type(error).__name__
        finally:
            interrupts.act = nothing
        return how, interrupts.seen

    def insns(self, count: int) -> tuple[str, int]:
        return self.run(max_insns=count)

    def stop(self, count: int) -> tuple[str, int]:
        self.interrupts.act = at(count, self.m.stop)
        return self.run(timeout=30)

    def bounded_stop(self, count: int) -> tuple[str, int]:
        self.interrupts.act = at(count, self.m.stop)
        return self.run(max_insns=ENOUGH)

    def raised(self, count: int) -> tuple[str, int]:
        self.interrupts.act = at(count, raise_alarm)
        return self.run()

    def call(self, count: int) -> tuple[str, int]:
        """An interrupt handler calls guest code, bounded itself."""

        def call() -> None:
            with pytest.raises(GuestTimeout):
                self.m.run(BASE, self.end, max_insns=3)

        self.interrupts.act = at(count, call)
        return self.run(max_insns=count + 10)

    # with time, of which nobody knows how many interrupts it is: it begins with the first one

    def timeout(self) -> tuple[str, int]:
        seconds = 0.01
        while True:
            how, seen = self.run(timeout=seconds)
            if seen:
                return how, 0
            seconds *= 2

    def thread(self, **bounds: Any) -> tuple[str, int]:
        timer = threading.Timer(0.01, self.m.stop)
        self.interrupts.act = at(1, timer.start)
        how, _ = self.run(**(bounds or {"timeout": 30}))
        timer.join()
        return how, 0

    def thread_within_insns(self) -> tuple[str, int]:
        return self.thread(max_insns=10**9)

    def signal(self, handler: Callable[..., object] | None = None) -> tuple[str, int]:
        with alarm(handler or raises_now_and_then()) as begin:
            self.interrupts.act = at(1, begin)
            return self.run(timeout=30)[0], 0

    def signal_stops(self) -> tuple[str, int]:
        return self.signal(lambda *_: self.m.stop())

    def signal_passes(self) -> tuple[str, int]:
        """Its handler sees the guest at home, and does nothing."""
        places = list[int]()

        def look(*_: object) -> None:
            places.append(self.m.regs.pc)
            self.interrupts.behind = len(places) > 3

        how = self.signal(look)
        assert {*places} <= {self.case.at, *range(BASE, self.end + 1)}
        return how

    def state(self) -> tuple[object, ...]:
        """Where the guest stands, and with what: but its stack pointer and return address, which a bound call of an
        interrupt handler's may have changed, and a return probe has."""
        regs, linkage = self.m.regs, self.m.arch.linkage
        but = {regs.arch.regs.sp, *([] if linkage is None else [linkage.register])}
        return regs.pc, [regs[name] for name in regs.arch.regs.names if name not in but]

    def on(self) -> tuple[object, ...]:
        """The guest goes on: the next interrupt sends it behind."""
        self.interrupts.behind = True
        try:
            self.m.run(until=self.end, timeout=30)
        except GuestTimeout as error:
            return error, self.interrupts.seen
        return self.state()


EXACT = ["insns 1", "insns 4", "insns 5", "insns 6", "insns 50", "stop 1", "stop 7", "bounded_stop 3", "raised 1", "raised 4",
         "call 2"]
COUNT = ("insns", "bounded_stop", "call", "thread_within")  #: those that count instructions
TIMED = ["timeout", "thread", "thread_within_insns", "signal", "signal_stops", "signal_passes"]


def beside(case: Case, bounds: list[str], *but: str) -> None:
    """Probe the guest in every way, but in these ways, and compare."""
    run = Run(case)
    counts = run.m.guest.blocks.hooked_delay_slots
    bounds = [bound for bound in bounds if bound == "insns 1" or counts or not bound.startswith(COUNT)]
    plain = {bound: (run.by(bound), run.state(), run.on()) for bound in bounds}
    for bound, (ended, (pc, _), _) in plain.items():
        assert ended[1] <= ENOUGH
        assert pc == case.at or bound in ("insns 1", "signal_passes") or (case.branch and bound[:5] == "insns"), bound
    assert run.interrupts.places == {case.at}
    for kind, register in where(case).items():
        if kind in but:
            continue
        with Kprobes(run.m) as k:
            probes = register(k)
            for bound in bounds:
                assert (run.by(bound), run.state(), run.on()) == plain[bound], (kind, bound)
                assert k.idle, (kind, bound)
                assert not any(p.nmissed for p in probes), (kind, bound)
        assert run.interrupts.places == {case.at}, kind
    run.m.close()


name = "{0.arch} {0.what}".format


@pytest.mark.parametrize("case", CASES, ids=name)
def test_every_bound_ends_them_where_it_does_without_the_probe(case: Case) -> None:
    beside(case, EXACT)


@pytest.mark.parametrize("case", DELAYED, ids=name)
def test_in_a_delay_slot(case: Case) -> None:
    beside(case, EXACT)


@pytest.mark.parametrize("case", [case for case in CASES if not case.what] + DELAYED[:1] + DELAYED[-1:], ids=name)
def test_time_and_signals_end_them(case: Case) -> None:
    beside(case, TIMED, "counted", "jump", "return", "program", "two")


# --- what else ends a displaced instruction

@pytest.mark.parametrize("case", [case for case in CASES if not case.what], ids=name)
def test_a_handler_that_sends_the_guest_on_ends_the_hit(case: Case) -> None:
    """Probes that are hit behind are not missed."""
    run = Run(case)
    run.interrupts.behind = True
    with Kprobes(run.m) as k:
        k.register(first := Kprobe(addr=case.at, post_handler=nothing))
        k.register(second := Kprobe(addr=case.behind, post_handler=nothing))
        for n in range(1, 3):
            for name, value in case.registers.items():
                run.m.regs[name] = value
            run.m.run(BASE, run.end, timeout=30)
            assert [(p.nhit, p.nmissed) for p in (first, second)] == [(n, 0)] * 2
            assert k.idle


@pytest.mark.parametrize("how", ["raise", "stop", "insns", "aside"])
@pytest.mark.parametrize("case", [case for case in CASES if not case.what and not case.arch.startswith("sparc")], ids=name)
def test_in_a_handlers_own_run(case: Case, how: str) -> None:
    """The hit of the handler goes on as if nothing had been."""
    run, seen = Run(case), list[str]()

    def pre(p: Kprobe, regs: Regs) -> None:
        if how == "aside":
            run.interrupts.behind = True
            run.m.run("g", run.end)
        elif how == "raise":
            run.interrupts.act = raise_alarm
            with pytest.raises(Alarm):
                run.m.run("g", run.end)
        elif how == "insns":
            with pytest.raises(GuestTimeout):
                run.m.run("g", run.end, max_insns=9)
        regs.pc = run.end
        seen.append("pre")

    def stopping(p: Kprobe, regs: Regs) -> int:
        pre(p, regs)
        return 1

    with Kprobes(run.m) as k:
        k.register(inner := Kprobe(addr=case.at, post_handler=nothing))
        k.register(outer := Kprobe(addr=BASE, pre_handler=stopping))
        for n in range(1, 3):
            for register, value in case.registers.items():
                run.m.regs[register] = value
            run.m.run(BASE, run.end, timeout=30)
            assert (outer.nhit, outer.nmissed, inner.nhit, inner.nmissed) == (n, 0, 0, n * (how != "stop"))
            assert k.idle


@pytest.mark.parametrize("bound", ["insns", "timeout", "stop", "raise"])
@pytest.mark.parametrize("kind", ["boosted", "stepped", "jump"])
@pytest.mark.parametrize(("arch", "code", "register"), [
    ("x86_64", "90 90 90 90 488b00 90 90 90 90", "rax"), ("arm64", "1f2003d5 1f2003d5 000040f9 1f2003d5", "x0"),
    ("mips", "00000000 00000000 8c850000 00000000", "a0"), ("riscv64", "0100 0100 03350500 0100 0100", "a0")])
def test_a_fault_handler_that_never_mends(arch: str, code: str, register: str, kind: str, bound: str) -> None:
    """It says that the fault is handled, for ever."""
    text, calls = bytes.fromhex(code), 0
    m = UnicornMachine.from_code(text, arch=arch, base=BASE, symbols={"f": (BASE, len(text))})
    at = BASE + {"x86_64": 4, "riscv64": 4}.get(arch, 8)

    def handled(p: Kprobe, regs: Regs, number: int) -> bool:
        nonlocal calls
        calls += 1
        assert regs.pc == at
        if calls == 3 and bound == "stop":
            m.stop()
        if calls == 3 and bound == "raise":
            raise Alarm
        return calls < ENOUGH

    fields = {"boosted": {"optimize": False}, "stepped": {"post_handler": nothing}, "jump": {}}[kind]
    with Kprobes(m) as k:
        k.register(Kprobe(addr=at, pre_handler=nothing, fault_handler=handled, **fields))
        for _ in range(2):
            calls, m.regs[register] = 0, 0x50000000
            try:
                m.run(BASE, BASE + len(text), timeout=0.1 if bound == "timeout" else 30,
                      max_insns=20 if bound == "insns" else None)
                ended: type[Exception] | None = None
            except (GuestTimeout, Alarm) as error:
                ended = type(error)
            assert ended is {"insns": GuestTimeout, "timeout": GuestTimeout, "stop": None, "raise": Alarm}[bound]
            assert m.regs.pc == at
            assert k.idle
            assert calls <= {"insns": 20, "stop": 3, "raise": 3}.get(bound, ENOUGH)


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("kind", ["boosted", "stepped", "jump"])
@pytest.mark.parametrize("case", [case for case in CASES if not case.what], ids=name)
def test_an_owners_guest(case: Case, kind: str, hooked: bool) -> None:
    """Whoever serves the interrupt: he does, by a hook of his own, or the machine's handler."""
    uc, calls = GUESTS[case.arch].cpu.fresh().uc, 0
    uc.mem_map(BASE, 0x4000)
    uc.mem_write(BASE, case.code)
    m = UnicornMachine.attach(uc, arch=case.arch, symbols={"g": (case.probed, 4)})
    end = BASE + len(case.code)

    def count(regs: Any, number: int, user: Any = None) -> bool:
        nonlocal calls
        if not m.is_breakpoint(number):
            calls += 1
            if calls % 100 == 3:
                m.stop()
            if calls > ENOUGH:
                uc.emu_stop()
        return True

    if hooked and not GUESTS[case.arch].interrupts.bias.get(0) and not GUESTS[case.arch].interrupts.lost_pc:
        uc.hook_add(unicorn.UC_HOOK_INTR, count)
    else:
        m.interrupt_handler = count
    with Kprobes(m) as k:
        where(case)[kind](k)
        for run in (lambda: m.run(BASE, end), lambda: uc.emu_start(BASE, end), lambda: m.run(BASE, end, timeout=10)):
            calls = 0
            for name, value in case.registers.items():
                m.regs[name] = value
            run()
            assert (m.regs.pc, calls <= 4) == (case.at, True)
            assert k.idle


def test_every_architecture() -> None:
    assert {case.arch for case in CASES} | set(NONE) == set(RUNNABLE)
