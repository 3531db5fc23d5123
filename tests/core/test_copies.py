"""Guests that copy their own text, probes and all, and run the copy: the fault says whose breakpoint or jump it is."""

from __future__ import annotations

import pytest
from arches import RUNNABLE
from scenes import subject_machine

from kprobes import GuestFault, Kprobe, Kprobes, UnicornMachine
from kprobes.core.patch.copies import copied_patch

#: J, JMP: jumps that lead to the same place from everywhere
ABSOLUTE = ("mips", "mipsel", "mips64", "mips64el", "m68k")
TEXT, COPY, SIZE = 0x10000, 0x200000, 0x200


def copied(arch: str) -> tuple[UnicornMachine, int]:
    """A machine, and where `tiny` will be in the copy."""
    m = subject_machine(arch)
    m.regs.sp = m.alloc(0x1000) + 0x800
    m.map(COPY, 0x1000)
    return m, m.symbols["tiny"].address - TEXT + COPY


@pytest.mark.parametrize("optimize", [False, True], ids=["breakpoint", "jump"])
@pytest.mark.parametrize("arch", RUNNABLE)
def test_the_message_says_whose_it_is(arch: str, optimize: bool) -> None:
    m, there = copied(arch)
    plain = m.call("tiny", 5, 7)
    with Kprobes(m) as k:
        k.register(p := Kprobe(symbol_name="tiny", pre_handler=lambda p, regs: None, optimize=optimize))
        k.register(Kprobe(symbol_name="stores", pre_handler=lambda p, regs: None, optimize=optimize))
        assert m.call("tiny", 5, 7) == plain
        m.write(COPY, m.read(TEXT, SIZE))
        what = "jump" if p.optimized else "breakpoint"
        if p.optimized and arch in ABSOLUTE:
            assert m.call(there, 5, 7) == plain
            assert p.nhit == 2
            return
        with pytest.raises(GuestFault, match=rf"a copy of the {what} of the probe at tiny\+0x0") as caught:
            m.call(there, 5, 7, timeout=20)
        assert "register probes when the guest has moved its text" in str(caught.value)
        assert k.idle
        assert m.call("tiny", 5, 7) == plain
        # as the message says
        m.write(COPY, k._text.read(TEXT, SIZE))
        k.register(q := Kprobe(addr=there & ~m.arch.pointers.mode_bits, pre_handler=lambda p, regs: None))
        assert (m.call(there, 5, 7), q.nhit) == (plain, 1)


@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_breakpoint_of_the_guests_own_is_none(arch: str) -> None:
    """The bytes alone are no copy, nor is what was copied without a probe."""
    m, there = copied(arch)
    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="tiny", optimize=False))
        start = m.symbols["tiny"].address & ~m.arch.pointers.mode_bits
        _, trap, _ = m.arch.trap_for(k._survey.decode(start, m.symbols["tiny"].address & m.arch.pointers.mode_bits))
        own = COPY + 0x800
        m.write(own, trap)
        assert copied_patch(k._listener.rooms, own) == ""
        m.write(COPY, k._text.read(TEXT, SIZE))
        assert copied_patch(k._listener.rooms, there & ~m.arch.pointers.mode_bits) == ""
