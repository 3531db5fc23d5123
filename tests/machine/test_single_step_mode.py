"""A guest that turns its CPU's single-step mode on (TF of x86's EFLAGS) gets the same exceptions with probes as without.

Linux passes a single step of somebody else's on in the same way (kprobes' debug handler). Programs do it to find out
whether a debugger looks at them.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import pytest

from kprobes import Kprobe, Kprobes, Kretprobe, UnicornMachine

BASE = 0x40000
TF, DEBUG = 0x100, 1
#: PUSHF; OR [sp], TF; POPF
BEGIN = {
    "i386": ("9c", "810c2400010000", "9d"),
    "x86_64": ("9c", "48810c2400010000", "9d"),
}
#: ADD, MOV, short JMP, CALL, JNZ, JZ, JNZ rel32, PUSH, POP, NOP, XOR, IMUL, SHL, a load; JRCXZ, LEA rip
POOL = {
    "i386": ("83c001", "89d8", "eb00", "e800000000", "7500", "7400", "0f8500000000", "50", "5b", "90", "31c9", "0fafc3",
             "c1e002", "8b0424"),
    "x86_64": ("4883c001", "4889d8", "eb00", "e800000000", "7500", "7400", "0f8500000000", "50", "5b", "90", "4831c9",
               "480fafc3", "e300", "488d0500000000"),
}
KEEP = {"i386": ("eax", "ebx", "ecx", "esp"), "x86_64": ("rax", "rbx", "rcx", "rsp")}


class Sort(NamedTuple):
    """What a probe at an address has."""

    address: int
    pre: bool
    post: bool
    optimize: bool

    def probe(self) -> Kprobe:
        """Return a new probe, not registered."""
        return Kprobe(addr=self.address, pre_handler=_handler if self.pre else None,
                      post_handler=_post if self.post else None, optimize=self.optimize)


def _handler(p: Any, regs: Any) -> None:
    pass


def _post(p: Any, regs: Any, flags: int) -> None:
    pass


def _run(arch: str, code: bytes, sorts: list[Sort], flush: bool, steps: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Run a program whose exceptions a handler notes; at the last of `steps` it turns the mode off.

    Returns:
        ([(pc, first register) at each exception], registers, pc and flags at the end).
    """
    end = BASE + len(code)
    m = UnicornMachine.from_code(code + b"\xf4" * 8, arch=arch, base=BASE, symbols={"f": (BASE, len(code))})
    k = Kprobes(m)
    seen: list[tuple[int, int]] = []

    def step(regs: Any, number: int) -> bool:
        seen.append((regs.pc, regs[KEEP[arch][0]]))
        if len(seen) >= steps:
            regs.flags &= ~TF
        return number == DEBUG

    m.interrupt_handler = step
    try:
        for sort in sorts:
            k.register_kprobe(sort.probe())
        if flush:
            k.flush_optimizer()
        m.run(BASE, until=end, max_insns=200)
        return seen, [*(m.regs[name] for name in KEEP[arch]), m.regs.pc, m.regs.flags]
    finally:
        k.close()
        m.close()


@pytest.mark.parametrize("arch", sorted(BEGIN))
def test_steps_are_the_same_with_probes(arch: str) -> None:
    rng = random.Random(arch)
    for _ in range(60):
        insns = [bytes.fromhex(one) for one in (*BEGIN[arch], *rng.choices(POOL[arch], k=rng.randrange(3, 9)))]
        addresses = [BASE + sum(map(len, insns[:i])) for i in range(len(insns))]
        steps = rng.randrange(1, 12)
        code = b"".join(insns)
        without = _run(arch, code, [], False, steps)
        assert without[0], code.hex()
        for _ in range(3):
            chosen = rng.sample(addresses, rng.randrange(1, len(addresses) + 1))
            sorts = [Sort(at, *(rng.random() < share for share in (0.5, 0.3, 0.7))) for at in chosen]
            assert _run(arch, code, sorts, rng.random() < 0.5, steps) == without, (code.hex(), sorts)


def test_a_return_probe_is_served_before_the_step_behind_the_return() -> None:
    """CALL f; the mode is turned on in f, which returns: the exception comes behind the return, at the caller."""
    inner = bytes.fromhex("".join(BEGIN["x86_64"]) + "c3")
    code = bytes.fromhex("e801000000" + "f4") + inner  # CALL f; HLT
    results = []
    for probed in (False, True):
        m = UnicornMachine.from_code(code, arch="x86_64", base=BASE, symbols={"f": (BASE + 6, len(inner))})
        seen: list[Any] = []

        def step(regs: Any, number: int, seen: list[Any] = seen) -> bool:
            seen.append((number, regs.pc, regs["rsp"]))
            regs.flags &= ~TF
            return True

        m.interrupt_handler = step
        k = Kprobes(m)
        returns: list[int] = []
        if probed:
            k.register_kretprobe(Kretprobe(symbol_name="f", handler=lambda ri, regs: returns.append(regs.pc)))  # noqa: B023
        m.run(BASE, until=BASE + 5)
        assert returns == ([BASE + 5] if probed else [])
        results.append((seen, m.regs["rsp"]))
        k.close()
        m.close()
    assert results[0] == results[1] and results[0][0]


def test_the_list_says_why_no_jump_is_there() -> None:
    code = bytes.fromhex("".join(BEGIN["i386"]) + "b801000000" + "f4")  # MOV eax, 1
    m = UnicornMachine.from_code(code, arch="i386", base=BASE, symbols={"f": (BASE, len(code))})
    m.interrupt_handler = lambda regs, number: number == DEBUG
    k = Kprobes(m)
    p = Kprobe(addr=BASE + 9, pre_handler=_handler)
    k.register_kprobe(p)
    k.flush_optimizer()
    assert p.optimized
    m.run(BASE, until=BASE + 14)
    assert (p.nhit, p.optimized) == (1, False)
    assert "single-step mode" in p.why_not_optimized
