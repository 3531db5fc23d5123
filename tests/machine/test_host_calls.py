"""m.call() whose registers host code sets (kprobes/native/calls.c): functions find what Python's way gives them."""

from __future__ import annotations

from typing import Any

import pytest
from scenes import subject_machine
from subjects import SUBJECTS

from kprobes import Kprobes, UnicornMachine
from kprobes.native import available

AROUND = 256  # bytes of the stack that are looked at, on both sides


def entered(m: UnicornMachine, k: Kprobes, calls: list[tuple[int, ...]]) -> list[object]:
    """What a function finds at each call: arguments, stack pointer, return address, the stack; and what is left."""
    found: list[object] = []

    def note(p: object, regs: Any) -> None:
        sp = regs.sp
        found.append(([regs.arg(n) for n in range(3)], sp, regs.return_address, m.read(sp - AROUND, 2 * AROUND)))

    with k.kprobe("tiny", pre_handler=note):
        for arguments in calls:
            sp = m.regs.sp
            m.write(sp - 4096, b"\xaa" * 4096)
            before = {name: m.regs[name] for name in m.arch.regs.names}
            found.append(m.call("tiny", *arguments))
            found += [{name: m.regs[name] for name in before}, m.regs.pc]
            assert m.regs.sp == sp
    return found


@pytest.mark.host_code
@pytest.mark.parametrize("arch", SUBJECTS)
def test_functions_find_the_same(arch: str) -> None:
    assert available()
    seen = []
    for by_host in True, False:
        with subject_machine(arch) as m, Kprobes(m) as k:
            assert m.parts.calls._host is not None
            if not by_host:
                m.parts.calls._host = None
            high = m.arch.mask
            seen.append(entered(m, k, [(), (1,), (high, 2, 3), (high, high - 1, 7), (4, 5, 6)]))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("by_host", [True, False])
def test_flags_that_the_engines_contexts_lack_are_put_back(by_host: bool) -> None:
    code = bytes.fromhex("73d01100 67800000")  # csrwi fflags, 3; ret
    with UnicornMachine.from_code(code, arch="riscv64", base=0x10000) as m:
        if not by_host:
            m.parts.calls._host = None
        m.regs["fflags"] = 16
        m.call(0x10000)
        assert m.regs["fflags"] == 16
        m.run(0x10000)
        assert m.regs["fflags"] == 3
