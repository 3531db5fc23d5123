"""Interrupts: taken by the architecture's rules between any two instructions, and probes change nothing about that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from kprobes import (
    BadArgument,
    GuestFault,
    GuestHalted,
    GuestTimeout,
    Kprobe,
    Kprobes,
    Kretprobe,
    UnicornMachine,
    Unsupported,
)

DATA = Path(__file__).resolve().parent.parent / "data" / "interrupts.txt"
LINES = {"cortexm": "systick", "arm": "irq", "arm64": "irq", "riscv32": "timer", "riscv64": "timer", "mips": 7,
         "mipsel": "ip7", "mips32r6el": 6, "arm64be": "irq", "ppc": "decrementer", "i386": 32, "x86_64": 32}
RAM = {"cortexm": 0x20000000, "mips": 0x80020000, "mipsel": 0x80020000, "mips32r6el": 0x80020000}
TICKS, RESULT = 0x100, 0x104  # in RAM


@frozen
class Program:
    """A guest of interrupts.txt."""

    arch: str
    base: int
    code: bytes
    symbols: dict[str, int]


def _programs() -> Iterator[Program]:
    for line in DATA.read_text().splitlines():
        arch, base, code, *symbols = line.split()
        pairs = (each.split("=") for each in symbols)
        yield Program(arch, int(base, 16), bytes.fromhex(code), {name: int(value, 16) for name, value in pairs})


PROGRAMS = {program.arch: program for program in _programs()}
ARCHES = pytest.mark.parametrize("arch", [*PROGRAMS])
GUESTS = pytest.mark.parametrize("name", [*LINES])


@contextmanager
def loaded(arch: str) -> Iterator[UnicornMachine]:
    """A machine at its program's start, that counts its time from now on."""
    program = PROGRAMS[arch]
    mode = int(arch == "cortexm")
    with UnicornMachine.load_raw(program.code, arch=arch, base=program.base, entry=program.symbols["start"] | mode,
                                 symbols={name: value | mode for name, value in program.symbols.items()}) as m:
        m.map(ram(arch), 0x2000, "rw")
        m.protect(program.base, m.page_size, "rx")
        if arch == "cortexm":
            m.regs.sp = 0x20001000
        yield m


def ram(arch: str) -> int:
    return RAM.get(arch, 0x20000)


def word(m: UnicornMachine, offset: int) -> int:
    return int.from_bytes(m.read(ram(m.arch.name) + offset, 4), m.arch.order.value)


def outcome(m: UnicornMachine) -> tuple[int, ...]:
    """What the guest has computed, and where and when it stands."""
    return word(m, RESULT), word(m, TICKS), m.interrupts.now, m.regs.pc, m.regs.sp


def instructions(arch: str) -> list[int]:
    """Where instructions of the loop, the function and the handler begin, mode bit included."""
    symbols, mode, out = PROGRAMS[arch].symbols, int(arch == "cortexm"), []
    with loaded(arch) as m:
        for start, end in (("loop", "done"), ("step", "step_end"), ("handler", "handler_end")):
            pc = symbols[start]
            while pc < symbols[end]:
                out.append(pc | mode)
                pc = m.arch.decode(m.read(pc, 16), pc | mode).next & ~mode
    return out


@ARCHES
def test_a_handler_runs_and_the_program_does_not_notice(arch: str) -> None:
    with loaded(arch) as m:
        m.run(until="done", timeout=10)
        plain = word(m, RESULT)
        assert word(m, TICKS) == 0
    with loaded(arch) as m:
        m.interrupts.every(40, LINES[arch])
        m.run(until="done", timeout=10)
        assert (word(m, RESULT), word(m, TICKS)) == (plain, m.interrupts.now // 40)


@ARCHES
def test_an_interrupt_at_every_instruction(arch: str) -> None:
    """One after each instruction of the program's. The result is the same without interrupts; and with a probe on every
    instruction, everything is."""
    def run(m: UnicornMachine) -> tuple[int, ...]:
        handler, end = PROGRAMS[arch].symbols["handler"], PROGRAMS[arch].symbols["handler_end"]
        inside = False

        def fire() -> None:
            nonlocal inside
            returned, inside = inside, handler <= m.regs.pc < end
            if not inside and not returned:  # else it would be taken before the program's next instruction
                m.interrupts.pend(LINES[arch])
            m.interrupts.after(1, fire)

        m.interrupts.after(1, fire)
        m.run(until="done", timeout=60, max_insns=100_000)
        return outcome(m)

    with loaded(arch) as m:
        m.run(until="done")
        plain = word(m, RESULT)
    with loaded(arch) as m:
        unprobed = run(m)
    assert unprobed[0] == plain
    assert unprobed[1] > 200  # between all instructions of the loop
    hits = 0

    def count(p: Kprobe, regs: object) -> None:
        nonlocal hits
        hits += 1

    with loaded(arch) as m, Kprobes(m) as k:
        for addr in instructions(arch):
            if k.check(addr).probeable:
                k.register(Kprobe(addr=addr, pre_handler=count))
        returns = Kretprobe(symbol_name="step", handler=count)
        k.register(returns)
        assert run(m) == unprobed
        assert returns.nreturned == 20
    assert hits > 300


@ARCHES
@pytest.mark.parametrize("period", [7, 11, 23, 40])
def test_probes_of_every_kind_change_nothing(arch: str, period: int) -> None:
    """Breakpoints with and without a post-handler, optimized ones, return probes: the guest's results, its time and the
    place of every interrupt are as without."""
    def run(m: UnicornMachine) -> tuple[int, ...]:
        m.interrupts.every(period + (30 if period < 20 else 0), LINES[arch])
        m.run(until="done", timeout=60)
        return outcome(m)

    with loaded(arch) as m:
        unprobed = run(m)
    with loaded(arch) as m, Kprobes(m) as k, ExitStack() as stack:
        calls = []
        stack.enter_context(k.kretprobe("step", handler=lambda ri, regs: calls.append(regs.return_value)))
        stack.enter_context(k.kprobe("step", pre_handler=lambda p, regs: None))
        stack.enter_context(k.kprobe("loop", post_handler=lambda p, regs, flags: None))
        ticks = stack.enter_context(k.kprobe("handler"))
        assert run(m) == unprobed
        assert (len(calls), ticks.nhit) == (20, unprobed[1])


@ARCHES
def test_a_handler_of_a_probe_pends_one(arch: str) -> None:
    """It is taken behind the probed instruction."""
    with loaded(arch) as m, Kprobes(m) as k:
        m.interrupts.controller  # noqa: B018
        seen = []
        probe = k.kprobe("step", pre_handler=lambda p, regs: m.interrupts.pend(LINES[arch]))
        with probe, k.kprobe("handler", pre_handler=lambda p, regs: seen.append(regs.pc)):
            m.run(until="done", timeout=10)
        assert (len(seen), word(m, TICKS)) == (20, 20)


@pytest.mark.parametrize("arch", [arch for arch in PROGRAMS if arch != "cortexm"])  # which allows them from the start
def test_an_interrupt_that_is_masked_waits(arch: str) -> None:
    """Before the program allows interrupts."""
    with loaded(arch) as m:
        m.interrupts.pend(LINES[arch])
        with pytest.raises(GuestTimeout):
            m.run(max_insns=1)
        assert word(m, TICKS) == 0
        m.run(until="done", timeout=10)
        assert word(m, TICKS) == 1


HALTS = pytest.mark.parametrize("arch", [arch for arch in PROGRAMS if arch != "ppc"])  # which has no such instruction


@HALTS
def test_a_guest_that_waits_for_nothing_has_halted(arch: str) -> None:
    with loaded(arch) as m:
        m.interrupts.controller  # noqa: B018
        m.run(until="done", timeout=10)
        with pytest.raises(GuestHalted) as caught:
            m.run(timeout=10)
        assert caught.value.access == "halt"
        assert "done" in str(caught.value)


@HALTS
def test_a_guest_that_waits_goes_on_with_the_next_timer(arch: str) -> None:
    """Its time passes at once."""
    with loaded(arch) as m:
        m.interrupts.every(1_000_000, LINES[arch])
        m.run(until="done", timeout=10)
        with pytest.raises(GuestTimeout):
            m.run(max_insns=100)
        assert word(m, TICKS) > 5
        assert m.interrupts.now > 5_000_000


def test_a_level_is_taken_until_it_ends() -> None:
    with loaded("arm64") as m, Kprobes(m) as k:
        m.interrupts.set_level("irq", True)
        served = 0

        def serve(p: Kprobe, regs: object) -> None:
            nonlocal served
            served += 1
            if served == 3:
                m.interrupts.set_level("irq", False)

        with k.kprobe("handler", pre_handler=serve):
            m.run(until="done", timeout=10)
        assert (served, word(m, TICKS)) == (3, 3)


def test_a_guest_call_in_a_handler_is_not_interrupted() -> None:
    with loaded("arm64") as m, Kprobes(m) as k:
        m.interrupts.every(25, "irq")
        results = []
        ticks = []

        def call(p: Kprobe, regs: object) -> None:
            before = word(m, TICKS)
            results.append(m.call("step", 2, 3))
            ticks.append(word(m, TICKS) - before)

        with k.kprobe("loop", pre_handler=call):
            m.run(until="done", timeout=10)
        assert (set(results), set(ticks), len(results)) == ({13}, {0}, 20)
        assert word(m, TICKS) > 5


def test_bounds_count_the_handlers_instructions() -> None:
    with loaded("riscv64") as m:
        m.interrupts.every(40, "timer")
        with pytest.raises(GuestTimeout):
            m.run(max_insns=100)
        assert m.interrupts.now == 100
        with pytest.raises(GuestTimeout):
            m.run(max_insns=1)
        assert m.interrupts.now == 101


def test_a_snapshot_keeps_timers_and_what_is_pending() -> None:
    with loaded("cortexm") as m:
        m.interrupts.every(40, "systick")
        with pytest.raises(GuestTimeout):
            m.run(max_insns=101)
        s = m.snapshot()
        m.run(until="done")
        first = outcome(m)
        m.restore(s)
        assert m.interrupts.now == 101
        m.run(until="done")
        assert outcome(m) == first


def test_a_call_is_interrupted_as_well() -> None:
    with loaded("cortexm") as m:
        m.interrupts.after(2, lambda: m.interrupts.pend("systick"))
        assert m.call("step", 2, 3) == 13
        assert word(m, TICKS) == 1


@pytest.mark.parametrize(("vectors", "sp"), [(0x90000000, 0x20001000), (0x08000000, 0x90000000)])
def test_a_guest_without_vectors_or_stack(vectors: int, sp: int) -> None:
    """It stands in front of the next instruction, and nothing is lost: it goes on once there are some."""
    with loaded("cortexm") as m:
        m.interrupts.vectors = vectors
        m.regs.sp = sp
        m.interrupts.pend("systick")
        for _ in range(2):
            with pytest.raises(GuestFault, match="cannot take an interrupt: memory is not mapped at 0x") as caught:
                m.run(until="done")
            assert caught.value.pc == m.symbols["start"].address == m.regs.pc
        m.interrupts.controller.vectors = 0x08000000  # type: ignore[attr-defined]
        m.regs.sp = 0x20001000
        m.run(until="done")
        assert word(m, TICKS) == 1


@pytest.mark.parametrize("frame", [0x90000000, 0x20000100])
def test_a_return_from_no_exception(frame: int) -> None:
    """EXC_RETURN outside of a handler, and inside with a stack that is none."""
    with loaded("cortexm") as m:
        m.interrupts.pend("systick")
        handler = m.symbols["handler"].address
        m.run(until=handler | 1)
        m.regs.sp = frame
        if frame == 0x90000000:
            with pytest.raises(GuestFault, match="cannot take"):
                m.run(until="done")
        else:
            m.interrupts.controller.state = (*m.interrupts.controller.state[:3], frozenset(),
                                             *m.interrupts.controller.state[4:])
            with pytest.raises(GuestFault):
                m.run(until="done")


@pytest.mark.parametrize(("arch", "line"), [("arm64", 2), ("arm64", "irk"), ("mips", 8), ("cortexm", 240),
                                            ("x86_64", 3), ("riscv64", True), ("ppc", None)])
def test_interrupts_that_are_none(arch: str, line: object) -> None:
    with loaded(arch) as m:
        with pytest.raises(BadArgument):
            m.interrupts.pend(line)  # type: ignore[arg-type]
        with pytest.raises(BadArgument):
            m.interrupts.every(0, LINES[arch])


def test_an_architecture_without_rules() -> None:
    with UnicornMachine.from_code(bytes(16), arch="s390x") as m, pytest.raises(Unsupported):
        m.interrupts.pend(0)
