"""Comparison puts a machine back to where it was, with what its registers' names do not show."""

from __future__ import annotations

from typing import Any

import pytest
from arches import RUNNABLE, cases_of

from kprobes import KprobeError, UnicornMachine
from kprobes.testing import Comparison

pytestmark = pytest.mark.quick

#: (arch, code, register of the result): each run adds to a register that has no name, or depends on one
HIDDEN = [
    ("m68k", "f23c44223f800000f2006000", "d0"),  # fadd.s #1,fp0; fmove.l fp0,d0
    ("m68k", "f23c4422000000004e71f200a800", "d0"),  # fadd.s; nop; fmove.l fpsr,d0
    ("x86_64", "d9e8d9e8d8c1d8c9dfe0", "rax"),  # fld1; fld1; fadd; fmul; fnstsw ax: the stack's top
    # fldcw [sp] of single precision; 1/pi
    ("x86_64", "68" "7f000000" "d92c24" "58" "d9eb" "d9e8" "d8f1" "4883ec10" "db3c24" "58" "59", "rax"),
    ("i386", "68" "7f000000" "d92c24" "58" "d9eb" "d9e8" "d8f1" "83ec0c" "db3c24" "58" "5a" "59", "eax"),
]


@pytest.mark.parametrize(("arch", "code", "result"), HIDDEN)
def test_two_plain_runs_of_what_has_no_name(arch: str, code: str, result: str) -> None:
    m = UnicornMachine.from_code(bytes.fromhex(code), arch=arch, base=0x10000)
    end = 0x10000 + len(code) // 2

    def run(m: Any) -> int:
        m.run(0x10000, until=end)
        return int(m.regs[result])

    comparison = Comparison(m, run)
    for n in range(6):
        assert comparison.again(str(n)) == []
    comparison.close()


CLOCKS = {"0f31", "0f01f9", "732500c0", "f32520c0"}  # RDTSC, RDTSCP; RDCYCLE, RDINSTRET


@pytest.mark.parametrize("arch", RUNNABLE)
def test_two_plain_runs_of_every_instruction(arch: str) -> None:
    """One after the other, as far as they run."""
    m = UnicornMachine.from_code(bytes(0x1000), arch=arch, base=0x10000)
    cases = [case for case in cases_of(arch).cases if case.outcome == "step" and case.code.hex() not in CLOCKS]
    for case in cases[:: max(len(cases) // 40, 1)]:
        mode = case.mode

        def run(m: Any, code: bytes = case.code, mode: int = mode) -> None:
            m.write(0x10000, code + m.arch.end_bytes(mode) * 4)
            try:
                m.run(0x10000 | mode, until=0x10000 + len(code), max_insns=2)
            except KprobeError as error:
                if m.parts.starts.dead:
                    pytest.skip(f"the engine has died: {error}")

        comparison = Comparison(m, run)
        for n in range(3):
            assert comparison.again(f"{case.code.hex()} {n}") == []
        comparison.close()
