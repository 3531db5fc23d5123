"""Watchpoints of execution: probes that write nothing to guest memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from arches import NO_PROGRAMS, RUNNABLE, expected, integer, programs_of, results

from kprobes import BadArgument, GuestStopped, Kprobe, Kprobes, MachineBusy, UnicornMachine, Unsupported
from kprobes.testing import Comparison, kprobes_everywhere

pytestmark = pytest.mark.quick
PROGRAMS = [arch for arch in RUNNABLE if arch not in NO_PROGRAMS]
BASE = 0x10000
SEEDS = expected()["seeds"]
#: x86_64 f(_, to, _, from): copies its first 16 bytes, and returns their sum: xor eax, eax; xor r8d, r8d; 1: movzx edx,
#: byte [rcx + r8]; mov [rsi + r8], dl; add eax, edx; inc r8; cmp r8, 16; jne 1b; ret
SUMS = bytes.fromhex("31c04531c0420fb614014288140601d049ffc04983f81075ecc3")


def program(arch: str) -> tuple[UnicornMachine, list[str]]:
    """The smallest optimized program of an architecture, and its functions."""
    path = min((p for p in programs_of(arch) if p.stem.endswith("-O2")), key=lambda path: path.stat().st_size)
    m = UnicornMachine.load(path)
    names = [name for name in results(path.stem, m) if name != "run_all"]
    return m, sorted(names, key=lambda name: (m.symbols[name].size, name))[1:4]


@pytest.mark.parametrize("path", [path for arch in PROGRAMS for path in programs_of(arch) if path.stem.endswith("-O2")],
                         ids=lambda path: path.stem)
def test_a_functions_name_is_its_code(path: Path) -> None:
    """Also where the symbol is its descriptor's. What a handler raises leaves pc there, and the next call is whole."""

    def fail(w: Any, regs: Any) -> None:
        raise ValueError("mine")

    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        right = results(path.stem, m)
        name = next(name for name in right if name != "run_all")
        value = integer(m.arch, SEEDS[0])
        with k.kprobe(name) as p:
            place = p.address
        with k.watchpoint(name, 1, "x", fail) as w:
            with pytest.raises(ValueError, match="mine"):
                m.call(name, value)
            assert w.nhit == 1 and m.regs.pc == place
        assert m.call(name, value) & 0xFFFFFFFF == right[name][0]


@pytest.mark.parametrize("arch", PROGRAMS)
def test_every_instruction_of_a_function(arch: str) -> None:
    """Registers, memory, results and text are as without; each instruction that a probe counts is reported as often."""
    m, names = program(arch)
    with m:
        for name in names:
            symbol = m.symbols[name]
            comparison = Comparison(m, lambda machine, name=name: machine.call(name, integer(machine.arch, 0x9E3779B9)))
            k = comparison.kprobes
            text = m.read(symbol.address, symbol.size)
            seen: list[int] = []

            def note(w: Any, regs: Any, seen: list[int] = seen) -> None:
                seen.append(regs.pc)

            mask = ~m.arch.pointers.mode_bits
            probes = kprobes_everywhere(k, [symbol])
            places = {p.addr & mask for p in probes if p.addr is not None}
            with k.watchpoint(symbol.address, symbol.size, "x", note) as w:
                assert not (found := comparison.again(name)), found[:4]
                assert m.read(symbol.address, symbol.size) == text
                assert w.nhit == len(seen) > 1 and not w.nmissed
                alone = {at: n for at, n in Counter(at & mask for at in seen).items() if at in places}
                seen.clear()
                with comparison.probed(probes):
                    assert not (found := comparison.again(name)), found[:4]
                    assert {p.addr & mask: p.nhit for p in probes if p.addr is not None and p.nhit} == alone
                # but of delay slots, which are executed with their branches
                assert {at: n for at, n in Counter(at & mask for at in seen).items() if at in places} == alone
            comparison.close()


@pytest.mark.parametrize("arch", ["sparc", "sparc64"])
def test_delay_slots_that_cannot_be_hooked(arch: str) -> None:
    """The engine destroys a jump whose slot has a hook; the rest of the function is watched."""
    m, names = program(arch)
    with m, Kprobes(m) as k:
        symbol = m.symbols[names[0]]
        slots = [a for a in range(symbol.address, symbol.address + symbol.size - 4, 4)
                 if m.arch.decode(m.read(a, 4) + bytes(4), a).delay_slot]
        assert slots
        plain = m.call(names[0], 5)
        with pytest.raises(Unsupported, match="delay slot"):
            k.watchpoint(slots[0] + 4, 4, "x")
        with k.kprobe(addr=slots[0]), pytest.raises(Unsupported, match="delay slot"):
            k.watchpoint(slots[0] + 4, 4, "x")
        with k.watchpoint(slots[0], 8, "x") as w:
            assert m.call(names[0], 5) == plain and w.nhit


@pytest.fixture
def sums() -> Any:
    """A machine whose f copies its own text and adds up the copy, and a place to copy to."""
    m = UnicornMachine.from_code(SUMS, arch="x86_64", base=BASE, symbols={"f": (BASE, len(SUMS))})
    m.map(0x50000, 0x1000)
    with m, Kprobes(m) as k:
        yield m, k


def call(m: UnicornMachine) -> tuple[int, bytes]:
    """What f's text adds up to, and its copy."""
    return m.call("f", 0, 0x50000, 0, BASE), m.read(0x50000, 16)


def test_code_that_checksums_itself(sums: Any) -> None:
    m, k = sums
    plain = call(m)
    assert plain[1] == m.read(BASE, 16)
    with k.kprobe("f", pre_handler=lambda p, regs: None):
        assert call(m) != plain, "a breakpoint is seen"
    with k.watchpoint("f", 1, "x") as w:
        assert call(m) == plain and w.nhit == 1 and w.access == "x" and w.accessed == BASE and w.accessed_size == 2
    assert call(m) == plain and w.nhit == 1 and not w.registered


def test_handlers_change_registers_stop_and_raise(sums: Any) -> None:
    m, k = sums
    m.write(BASE, bytes.fromhex("8d4701ffc0c3"))  # lea eax, [rdi + 1]; inc eax; ret

    def change(w: Any, regs: Any) -> None:
        regs["rdi"] = 40

    with k.watchpoint("f", 1, "x", change):
        assert m.call("f", 1) == 42
    with k.watchpoint("f", 1, "x", lambda w, regs: m.stop()) as w:
        with pytest.raises(GuestStopped):
            m.call("f", 1)
        assert m.regs["rax"] == 3 and w.nhit == 1, "the instruction is executed once"

    def fail(w: Any, regs: Any) -> None:
        raise ValueError("mine")

    with k.watchpoint("f", 1, "x", fail), pytest.raises(ValueError, match="mine"):
        m.call("f", 1)
    assert m.call("f", 1) == 3


def test_what_is_refused(sums: Any) -> None:
    m, k = sums
    m.write(BASE, bytes.fromhex("8d4701c3"))
    refused: list[Exception] = []

    def late(p: Any, regs: Any) -> None:
        try:
            k.watchpoint("f", 1, "x")
        except MachineBusy as error:
            refused.append(error)

    with k.kprobe("f", pre_handler=late):
        assert m.call("f", 1) == 2
    assert len(refused) == 1
    with pytest.raises(BadArgument, match='"x"'):
        k.watchpoint("f", 1, "rx")


def test_jumps_go_while_instructions_are_watched(sums: Any) -> None:
    """An optimized probe would have the watched instruction executed elsewhere."""
    m, k = sums
    m.write(BASE, bytes.fromhex("8d4701ffc0ffc8c3"))
    with k.kprobe("f", pre_handler=lambda p, regs: None) as p:
        k.flush_optimizer()
        assert p.optimized and isinstance(p, Kprobe)
        with k.watchpoint(BASE + 3, 1, "x") as w:
            assert m.call("f", 1) == 2 and w.nhit == 1 and not p.optimized
        k.flush_optimizer()
        assert p.optimized and m.call("f", 1) == 2 and p.nhit == 2
