"""Flags behind an instruction that fails, in a run with a bound on instructions as in one without: whatever has set them,
whatever fails, probed or not."""

from __future__ import annotations

import pytest
from attrs import evolve

from kprobes import GuestFault, Kprobe, Kprobes, Regs, UnicornMachine
from kprobes import arch as architectures
from kprobes.machine.unicorn import selftest
from kprobes.machine.unicorn.guests.rows import GUESTS

pytestmark = pytest.mark.quick
BASE, NOWHERE = 0x10000, 0x50000015
#: CMP, SUB, ADD, AND, SHL, ADC, ROL, SHR, NEG, SAHF, CLC, XCHG; nothing, NOP, STC between
SETS = ("3c4f", "2c4f", "044f", "24f0", "d0e0", "1423", "c0c803", "c0e803", "f6d8", "9e", "f8", "86c0")
BETWEEN = ("", "90", "f9")
#: what touches [eax], or divides by ecx: SUB, MOV, PUSH, MOV imm, CMPXCHG, XADD, DIV; FXSAVE, of what is not aligned (#GP)
FAILS = ("2868da", "8b10", "ff30", "c60000", "0fb108", "0fc108", "0fae00", "f7f1", "0fae00", "f7f1")


def outcome(m: UnicornMachine, bound: int | None) -> tuple[int, int]:
    """(pc, flags) of the fault."""
    m.regs[m.arch.regs.names[0]], m.regs["ecx" if m.arch.bits == 32 else "rcx"] = NOWHERE, 0
    m.regs.flags = 2
    with pytest.raises(GuestFault):
        m.run(BASE, max_insns=bound)
    return m.regs.pc, m.regs.flags


@pytest.mark.long
@pytest.mark.parametrize("arch", ["x86_64", "i386"])
def test_a_bound_changes_no_flags(arch: str) -> None:
    assert GUESTS[arch].faults.hooked_flags is not None
    for sets in SETS:
        m = UnicornMachine.from_code(bytes(32), arch=arch, base=BASE, symbols={"f": (BASE, 32)})
        for n, fails in enumerate(FAILS):
            between = BETWEEN[n % len(BETWEEN)]
            m.write(BASE, bytes.fromhex("90" + sets + between + fails) + bytes(8))
            plain = outcome(m, None)
            assert outcome(m, 20) == plain == outcome(m, None), (sets, between, fails)
            for addr in (BASE, plain[0]):
                with Kprobes(m) as k:
                    k.register(Kprobe(addr=addr, pre_handler=lambda p, regs: None))
                    assert [outcome(m, bound) for bound in (None, 20, None)] == [plain] * 3, (sets, between, fails)
        m.close()


@pytest.mark.parametrize("arch", ["x86_64", "i386"])
def test_an_interrupt_handler_sees_them(arch: str) -> None:
    m, seen = UnicornMachine.from_code(bytes.fromhex("3c4ff7f190"), arch=arch, base=BASE), list[int]()

    def served(regs: Regs, number: int) -> bool:
        seen.append(regs.flags)
        regs.pc = BASE + 4
        return True

    m.interrupt_handler = served
    for bound in (None, 20):
        m.regs[m.arch.regs.names[0]], m.regs["ecx" if m.arch.bits == 32 else "rcx"] = 0x15, 0
        m.run(BASE, BASE + 5, max_insns=bound)
        seen.append(m.regs.flags)
    assert seen == [seen[0]] * 4


@pytest.mark.parametrize("arch", ["x86_64", "i386"])
def test_a_difference_is_seen(arch: str) -> None:
    """Where the engine keeps them elsewhere, the guest is refused."""
    guest, description = GUESTS[arch], architectures.get(arch)
    assert selftest.hooked_flags_verdict(guest, description) == ""
    hooked = guest.faults.hooked_flags
    assert hooked is not None
    elsewhere = evolve(hooked, find=lambda engine: (lambda: 0, lambda value: None))
    changed = evolve(guest, faults=evolve(guest.faults, hooked_flags=elsewhere))
    assert "with a hook the flags are" in selftest.hooked_flags_verdict(changed, description)
