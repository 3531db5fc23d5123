"""Stacks of a function that ends in a call: the return address is the next function's, the frame is not."""

from __future__ import annotations

from typing import Any

import pytest

from kprobes import Kprobe, Kprobes, UnicornMachine
from kprobes.cli._render import stack_lines

pytestmark = pytest.mark.quick
BASE = 0x10000
#: outer's last instruction calls inner, which drops the return address, and returns to outer's caller
CODE = bytes.fromhex("90" "e801000000" "c3" "58" "c3")
SYMBOLS: Any = {"outer": (BASE, 6), "next": (BASE + 6, 1), "inner": (BASE + 7, 2)}


def machine() -> UnicornMachine:
    return UnicornMachine.from_code(CODE, arch="x86_64", base=BASE, symbols=SYMBOLS)


def test_a_script_s_stack() -> None:
    m = machine()
    with Kprobes(m) as k, k.script("kprobe:inner { print(ustack(2)); }") as script:
        m.call("outer")
    assert [line.split() for line in script.output.splitlines() if line.strip()][-2:] == [["inner+0"], ["outer+6"]]


def test_a_stack_of_the_command() -> None:
    m = machine()
    stacks: list[list[int]] = []
    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="inner", pre_handler=lambda p, regs: stacks.append(k.stack_trace(regs, 2))))
        m.call("outer")
    assert stack_lines(m, stacks[0]).splitlines() == [" => inner+0x0/0x2", " => outer+0x6/0x6"]


def test_the_place_of_a_hit_is_its_own_function() -> None:
    m = machine()
    assert stack_lines(m, [BASE + 6]) == " => next+0x0/0x1\n"
