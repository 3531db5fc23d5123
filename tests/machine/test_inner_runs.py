"""What is done in the middle of a run, by handlers that call guest code and by who serves interrupts, leaves the run as it
was: where it ends, and where it says that an access was."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from arches import RUNNABLE, integer, limits, programs_of

from kprobes import GuestFault, GuestTimeout, Kprobe, KprobeError, Kprobes, Regs, UnicornMachine
from kprobes.arch._base import Insn
from kprobes.machine.paper import PaperMachine

BASE, NOWHERE = 0x1000, 0x50000000
TESTS = "test_mutual", "test_tail_calls", "test_quicksort"


def beginning(m: UnicornMachine, path: Path) -> tuple[str, int, Insn]:
    """A function of a compiled program that calls others: its name, where its code begins, and its first instruction."""
    test = next(t for t in TESTS if t not in limits(path.stem))
    symbol = m.symbols[test]
    start = m.arch.pointers.code_address(symbol.address | symbol.mode, m.read).place(0)
    return test, start, m.arch.decode(m.read(start & ~m.arch.pointers.mode_bits, m.arch.max_insn), start)


@pytest.mark.parametrize("path", [paths[-1] for arch in RUNNABLE if (paths := programs_of(arch))],
                         ids=lambda path: path.stem)
def test_a_run_ends_where_its_handlers_calls_pass(path: Path) -> None:
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        test, start, insn = beginning(m, path)
        three = integer(m.arch, 3)
        want, results = m.call(test, three), list[int]()
        k.register(probe := Kprobe(addr=start, pre_handler=lambda p, regs: results.append(m.call(test, three)),
                                   optimize=False))
        for n in range(1, 4):
            m.run(test, until=insn.next | insn.mode, timeout=20)
            assert m.regs.pc == insn.next
            assert (results, probe.nhit) == ([want] * n, n)


@pytest.mark.parametrize("path", [paths[-1] for arch in RUNNABLE if (paths := programs_of(arch))],
                         ids=lambda path: path.stem)
def test_a_run_ends_under_a_jump(path: Path) -> None:
    """Where one would stand, that stood before and stands again."""
    with UnicornMachine.load(path) as m, Kprobes(m) as k:
        test, start, insn = beginning(m, path)
        k.register(probe := Kprobe(addr=start, pre_handler=lambda p, regs: None))
        for n in range(1, 6, 2):
            m.run(test, until=insn.next | insn.mode, timeout=20)
            assert m.regs.pc == insn.next and probe.nhit == n
            m.call(test, integer(m.arch, 0))
            assert probe.nhit == n + 1


def test_a_models_run_ends_under_a_jump() -> None:
    m = PaperMachine(bytes.fromhex("0202020205"), base=BASE, symbols={"f": (BASE, 5)})
    with Kprobes(m) as k:
        k.register(probe := Kprobe(addr=BASE, pre_handler=lambda p, regs: None))
        for n in range(1, 6, 2):
            m.run(BASE, until=BASE + 1)
            assert (m.regs.pc, probe.nhit) == (BASE + 1, n)
            m.call("f")
            assert (probe.nhit, probe.optimized) == (n + 1, True)


#: what interrupts, two that do nothing, what accesses memory by the first argument, and returns
CODES = {"x86_64": "int 0x80; nop; nop; mov rax, [rdi]; ret", "arm64": "svc #0; nop; nop; ldr x1, [x0]; ret",
         "ppc": "sc; nop; nop; lwz %r4, 0(%r3); blr", "sparc": "ta 0x10; nop; nop; ld [%o0], %o1; retl; nop",
         "mips": ".set noreorder; syscall 5; nop; nop; lw $a1, ($a0); jr $ra; nop"}


@pytest.mark.parametrize("what", ["interrupt", "call"])
@pytest.mark.parametrize("arch", CODES)
def test_an_access_is_where_it_is(arch: str, what: str) -> None:
    """Behind an interrupt that was served, and a handler's call that has failed."""
    m = UnicornMachine.from_code(CODES[arch], arch=arch, base=BASE, symbols={"f": BASE})
    nop = BASE + (2 if arch == "x86_64" else 4)
    access = nop + 2 * (1 if arch == "x86_64" else 4)

    def served(regs: Regs, number: int) -> bool:
        regs.pc = nop
        return True

    def calling(p: Kprobe, regs: Regs) -> None:
        with pytest.raises(GuestFault):
            m.call(access, NOWHERE + 16)

    m.interrupt_handler = served
    there, seen = m.alloc(16), list[int]()
    with Kprobes(m) as k:
        if what == "call":
            k.register(Kprobe(addr=nop, pre_handler=calling, optimize=False))
        with suppress(KprobeError):  # where accesses cannot be watched
            k.watchpoint(there, 4, "r", lambda w, regs: seen.append(regs.pc))
        for _ in range(2):
            m.call("f", there)
            with pytest.raises(GuestFault) as caught:
                m.call("f", NOWHERE)
            assert (caught.value.pc, caught.value.address) == (access, NOWHERE)
        assert seen == [access, access]


@pytest.mark.parametrize(("arch", "code"), [
    ("mips", ".set noreorder; nop; b there; addiu $v0, $a0, 1; nop; there: jr $ra; addiu $v0, $v0, 1"),
    *((arch, "nop; ba there; inc %o0; nop; there: retl; inc %o0") for arch in ("sparc", "sparc64"))],
    ids=["mips", "sparc", "sparc64"])
@pytest.mark.parametrize("bound", [1, 2])
def test_branches_behind_a_handlers_bounded_call(arch: str, code: str, bound: int) -> None:
    m = UnicornMachine.from_code(code, arch=arch, base=BASE, symbols={"f": BASE})
    stops = list[int | None]()

    def bounded(p: Kprobe, regs: Regs) -> None:
        with pytest.raises(GuestTimeout) as caught:
            m.call("f", max_insns=bound)
        stops.append(caught.value.pc)

    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="f", pre_handler=bounded, optimize=False))
        assert [m.call("f", n) for n in (1, 2)] == [3, 4]
        assert stops == [stops[0]] * 2


#: BEQZC a0, +8; ADDIU v0, a0, 1 in its forbidden slot; return. Then what begins with a branch, and returns 0x1234
FORBIDDEN = "d8800002 24820001 03e00009 00000000 10000001 00000000 03e00009 24021234"


@pytest.mark.parametrize("kind", ["boosted", "stepped", "jump", "none"])
@pytest.mark.parametrize("arch", [arch for arch in RUNNABLE if "r6" in arch])
def test_in_forbidden_slots(arch: str, kind: str) -> None:
    """Where a branch is reserved, a handler's call may begin with one; and no run ends in between."""
    words = (bytes.fromhex(word) for word in FORBIDDEN.split())
    m = UnicornMachine.from_code(b"".join(word[::-1] if arch.endswith("el") else word for word in words), arch=arch,
                                 base=BASE, symbols={"f": BASE, "g": BASE + 16})
    results, calls = list[int](), [True]
    with Kprobes(m) as k:
        if kind != "none":
            k.register(Kprobe(addr=BASE + 4, optimize=kind == "jump",
                              pre_handler=lambda p, regs: results.append(m.call("g")) if calls[0] else None,
                              post_handler=(lambda p, regs, flags: None) if kind == "stepped" else None))
        assert [m.call("f", n) for n in (5, 0, 7)] == [6, 0x1234, 8]
        assert results == ([] if kind == "none" else [0x1234] * 2)
        calls[0] = False
        for _ in range(2):
            with pytest.raises(GuestTimeout) as caught:
                m.call("f", 5, max_insns=1)  # BEQZC, and what goes along
            assert caught.value.pc == BASE + 8
            assert m.call("g") == 0x1234
        assert m.call("f", 5, max_insns=2) == 6
