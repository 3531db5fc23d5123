"""Interrupts of the guest's that a displaced instruction raises: who serves them sees the guest as without the probe, and
the guest goes on as without it. And who sends the guest into a jump of ours."""

from __future__ import annotations

import signal
from typing import Any, NamedTuple

import pytest

from kprobes import GuestFault, Kprobe, Kprobes, Regs, UnicornMachine

pytestmark = pytest.mark.quick
BASE = 0x10000


class Case(NamedTuple):
    """Four NOPs, what raises an interrupt, two that add one to the result, and a return."""

    nop: str
    raises: str
    add: str
    ret: str
    result: str
    mended: dict[str, int]  #: registers with which it raises none
    wrong: dict[str, int]  #: with which it does


X86 = Case("90", "f7f1", "83c001", "c3", "eax", {"ecx": 1, "edx": 0, "eax": 40}, {"ecx": 0, "eax": 0})
MIPS = Case("00000000", "00800034", "24420001", "03e00008 00000000", "v0", {"a0": 1, "v0": 40}, {"a0": 0, "v0": 0})
LOAD = Case("00000000", "8c850000", "24420001", "03e00008 00000000", "v0", {"a0": BASE, "v0": 40}, {"a0": BASE + 1, "v0": 0})
SPARC = Case("01000000", "d2020000", "9402a001", "81c3e008 9010000a", "o0", {"o0": BASE, "o2": 40},
             {"o0": BASE + 1, "o2": 0})
#: TEQ a0, zero; an unaligned load; DIV. DIVU on m68k
CASES = {"x86_64": X86._replace(result="rax", mended={"rcx": 1, "rdx": 0, "rax": 40}, wrong={"rcx": 0, "rax": 0}),
         "i386": X86, **{f"{name} trap": MIPS for name in ("mips", "mips64")},
         **{f"{name} load": LOAD for name in ("mips", "mips64")}, "sparc": SPARC, "sparc64": SPARC,
         "m68k": Case("4e71", "82c2", "5280", "4e75", "d0", {"d1": 3, "d2": 1, "d0": 40}, {"d1": 3, "d2": 0, "d0": 0}),
         "s390x": Case("1800", "1d24", "a70a0001", "07fe", "r0", {"r2": 0, "r3": 5, "r4": 1, "r0": 40},
                       {"r2": 0, "r3": 5, "r4": 0, "r0": 0})}
KINDS = ["none", "boosted", "stepped", "jump", "jump from before"]


def machine(case: Case, arch: str) -> tuple[UnicornMachine, int, int]:
    """And where the interrupt is raised, and what is behind."""
    code = bytes.fromhex(4 * case.nop + case.raises + 2 * case.add + case.ret)
    m = UnicornMachine.from_code(code, arch=arch, base=BASE, symbols={"f": (BASE, len(code))})
    at = BASE + 4 * len(bytes.fromhex(case.nop))
    return m, at, at + len(bytes.fromhex(case.raises))


def probed(k: Kprobes, kind: str, at: int, nop: str) -> list[Kprobe]:
    """A probe of this kind, the last one where the interrupt's instruction is the second that a jump covers."""
    if kind == "none":
        return []
    addr = at - len(bytes.fromhex(nop)) if kind == "jump from before" else at
    k.register(p := Kprobe(addr=addr, pre_handler=lambda p, regs: None, optimize=kind.startswith("jump"),
                           post_handler=(lambda p, regs, flags: None) if kind == "stepped" else None))
    return [p]


def put(regs: Regs, values: dict[str, int]) -> None:
    for name, value in values.items():
        regs[name] = value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["again", "behind", "further", "not"])
@pytest.mark.parametrize("name", CASES)
def test_who_serves_it(name: str, how: str, kind: str) -> None:
    case, seen = CASES[name], list[tuple[int, int]]()
    m, at, behind = machine(case, name.split(maxsplit=1)[0])

    def served(regs: Regs, number: int) -> bool:
        seen.append((number, regs.pc))
        put(regs, case.mended)
        if how in ("behind", "further"):
            regs.pc = behind + (len(bytes.fromhex(case.add)) if how == "further" else 0)
        return how != "not"

    m.interrupt_handler = served
    with Kprobes(m) as k:
        probes = probed(k, kind, at, case.nop)
        for n in range(1, 4):
            put(m.regs, case.wrong)
            if how == "not":
                with pytest.raises(GuestFault) as caught:
                    m.run("f")
                assert caught.value.pc == m.regs.pc == at
            else:
                m.run("f")
                assert m.regs[case.result] == 41 + (how != "further")
            assert [pc for _, pc in seen] == [at] * n
            assert len({number for number, _ in seen}) == 1
            assert all((p.nhit, p.nmissed) == (n, 0) for p in probes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_a_handler_that_raises(name: str, kind: str) -> None:
    """The guest is at home."""
    case = CASES[name]
    m, at, _ = machine(case, name.split(maxsplit=1)[0])

    def raising(regs: Regs, number: int) -> bool:
        raise ZeroDivisionError

    m.interrupt_handler = raising
    with Kprobes(m) as k:
        probed(k, kind, at, case.nop)
        for _ in range(2):
            put(m.regs, case.wrong)
            with pytest.raises(ZeroDivisionError):
                m.run("f")
            assert m.regs.pc == at
            put(m.regs, case.mended)
            m.run()
            assert m.regs[case.result] == 42


@pytest.mark.parametrize("how", ["call", "run"])
@pytest.mark.parametrize("name", CASES)
def test_into_the_middle_of_a_jump(name: str, how: str) -> None:
    """It gives way to a handler's run that begins there."""
    case = CASES[name]
    m, at, behind = machine(case, name.split(maxsplit=1)[0])
    middle = BASE + len(bytes.fromhex(case.nop))

    def pre(p: Kprobe, regs: Regs) -> None:
        put(regs, case.mended)
        if p.nhit > 1:
            return
        if how == "call":
            m.call(middle)
        else:
            m.run(middle, until=at)

    with Kprobes(m) as k:
        k.register(first := Kprobe(addr=BASE, pre_handler=lambda p, regs: None))
        for n in range(3):
            put(m.regs, case.mended)
            m.run("f")
            assert first.optimized
            second = Kprobe(addr=behind, pre_handler=pre, optimize=False)
            k.register(second)
            put(m.regs, case.mended)
            m.run("f")
            k.unregister(second)
            assert m.regs[case.result] == 42, n


@pytest.mark.parametrize("arch", ["x86_64", "i386"])
def test_a_signal_into_the_middle_of_a_jump(arch: str) -> None:
    m = UnicornMachine.from_code("nop; nop; nop; nop; nop; mov eax, 42; ret; spin: jmp spin", arch=arch, base=BASE,
                                 symbols={"f": (BASE, 11), "spin": (BASE + 11, 2)})

    def move(number: int, frame: Any) -> None:
        if m.regs.pc == BASE + 11:
            m.regs.pc = BASE + 2

    before = signal.signal(signal.SIGALRM, move)
    try:
        for _ in range(3):
            with Kprobes(m) as k:
                k.register(p := Kprobe(symbol_name="f", pre_handler=lambda p, regs: None))
                assert (m.call("f"), p.nhit, p.optimized) == (42, 1, True)
                signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
                assert m.call("spin", timeout=60) == 42
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


#: a branch to +16 with what raises in its delay slot; there: a return that adds one. At +24: two that add ten, a return
SLOTS = {"mips trap": "10000003 00800034 24420064 00000000 03e00008 24420001 2442000a 2442000a 03e00008 00000000",
         "mips load": "10000003 8c850000 24420064 00000000 03e00008 24420001 2442000a 2442000a 03e00008 00000000",
         "sparc load": "10800004 d2020000 01000000 01000000 81c3e008 9402a001 9402a00a 9402a00a 81c3e008 9010000a"}


@pytest.mark.parametrize("where", [None, 0, 16, 24])
@pytest.mark.parametrize("how", ["elsewhere", "call"])
@pytest.mark.parametrize("name", SLOTS)
def test_in_a_delay_slot(name: str, how: str, where: int | None) -> None:
    """The branch is not taken by who is sent elsewhere, nor in a call of the handler's; else it is taken."""
    m = UnicornMachine.from_code(bytes.fromhex(SLOTS[name]), arch=name.split(maxsplit=1)[0], base=BASE,
                                 symbols={"f": (BASE, 24), "g": (BASE + 24, 16)})
    result, seen = "v0" if name.startswith("mips") else "o2", list[int]()
    called = list[int]()

    def served(regs: Regs, number: int) -> bool:
        seen.append(regs.pc)
        regs.set_arg(0, BASE)
        if how == "elsewhere":
            regs.pc = BASE + 24
        else:
            before, regs[result] = regs[result], 5
            called.append(m.call("g"))
            regs[result] = before
        return True

    m.interrupt_handler = served
    with Kprobes(m) as k:
        if where is not None:
            k.register(Kprobe(addr=BASE + where, pre_handler=lambda p, regs: None))
        for n in range(1, 4):
            m.regs[result] = 0
            m.regs.set_arg(0, 0 if name.endswith("trap") else BASE + 1)
            m.run("f", timeout=20)
            assert (m.regs[result], seen) == (20 if how == "elsewhere" else 1, [BASE + 4] * n)
        assert called == ([25] * 3 if how == "call" else [])
