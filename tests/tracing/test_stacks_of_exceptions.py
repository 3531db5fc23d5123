"""Stacks in exception handlers of the M profile go on with the code that the exception has interrupted."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from debug_guests import load

from kprobes import Kprobe, Kprobes, Kretprobe, UnicornMachine
from kprobes.regs import Regs
from kprobes.stacks import Stack

pytestmark = pytest.mark.quick

FILES = pytest.mark.parametrize("name", ["cortexm-eh", "cortexm-df"])
VECTORS, HANDLER, PROCESS_STACK = 0x800000, 0x800200, 0x802000
FPCA, SPSEL = 4, 2
IN_HANDLER = ["leaf", "walk", "walk", "outer"]  # the handler goes on in outer(1)
INTERRUPTED = ["leaf", "walk", "walk", "walk", "outer"]


@contextmanager
def guest(name: str) -> Iterator[tuple[UnicornMachine, Kprobes]]:
    """A guest each of whose exceptions is handled by outer(1)."""
    with load(name) as m, Kprobes(m) as k:
        m.map(VECTORS, 0x3000, "rwx")
        m.write(VECTORS, struct.pack("<I", HANDLER | 1) * 32)
        # movs r0, 1; nop; ldr pc, =outer
        m.write(HANDLER, struct.pack("<4HI", 0x2001, 0xBF00, 0xF8DF, 0xF000, m.symbols["outer"].address | 1))
        m.symbols.add("handler", HANDLER, 12)
        m.interrupts.vectors = VECTORS
        yield m, k


def interrupt_leaf(m: UnicornMachine, k: Kprobes, control: int, at: Callable[[Regs], None]) -> None:
    """Run outer(2), of which an instruction inside leaf() is interrupted; call `at` at hits of leaf() in the handler.

    Args:
        m: the guest's machine.
        k: of the machine.
        control: bits set in CONTROL while the guest is interrupted.
        at: called at each instruction but the first of leaf(), in the handler.
    """
    leaf = m.symbols["leaf"].address
    second = leaf + k.check(leaf | 1).size

    def hit(_: object, regs: Regs) -> None:
        if regs["xpsr"] & 0x1FF:
            at(regs)
        elif not m.interrupts.controller.active:  # type: ignore[attr-defined]
            m.interrupts.pend("systick")

    k.register(Kprobe(addr=second | 1, pre_handler=hit))
    cpu = m.interrupts.controller._cpu  # type: ignore[attr-defined]
    cpu.set_system("control", cpu.system("control") | control)
    if control & SPSEL:
        m.regs.sp = PROCESS_STACK
    m.call("outer", 2)


def names(m: UnicornMachine, stack: Stack) -> list[str]:
    return [re.split(r"\+", m.symbols.describe(address))[0] for address in stack]


@FILES
@pytest.mark.parametrize("control", [0, FPCA, SPSEL, SPSEL | FPCA])
def test_callers_of_a_handler_are_those_of_the_interrupted_code(name: str, control: int) -> None:
    """With a frame of 8 words and of 26 (FPCA), on the main stack and on that of the process (SPSEL)."""
    seen: list[Stack] = []
    with guest(name) as (m, k):
        interrupt_leaf(m, k, control, lambda regs: seen.append(k.stack_trace(regs)))
        assert seen
        for stack in seen:
            assert names(m, stack)[:9] == IN_HANDLER + INTERRUPTED
            assert not stack.incomplete
            assert stack[-1] == m.exit_address & ~1


@FILES
@pytest.mark.parametrize("control", [0, FPCA])
def test_limits_and_records_agree(name: str, control: int) -> None:
    """Records keep what stack_trace() gives, whatever the limit: the value is never a caller."""
    with guest(name) as (m, k):
        checked = 0

        def compare(regs: Regs) -> None:
            nonlocal checked
            whole = k.stack_trace(regs)
            for limit in range(1, len(whole) + 1):
                stack = k._stacks.of(regs, limit)
                assert [*stack] == whole[:limit]
                assert stack.incomplete == (limit < len(whole))
            assert k.kept_stack(regs) == whole.kept()
            checked += 1

        interrupt_leaf(m, k, control, compare)
        assert checked


def test_a_process_stack_that_cannot_be_read() -> None:
    """As on a machine in another process: the stack ends in the handler, and is incomplete."""
    seen: list[Stack] = []
    with guest("cortexm-df") as (m, k):
        m.regs.system_register = None
        interrupt_leaf(m, k, SPSEL, lambda regs: seen.append(k.stack_trace(regs)))
        assert seen
        assert all(names(m, stack) == IN_HANDLER and stack.incomplete for stack in seen)


def test_at_the_entry_of_a_handler_without_frame_information() -> None:
    seen: list[Stack] = []
    with guest("cortexm-df") as (m, k):
        k.register(Kprobe(addr=HANDLER | 1, pre_handler=lambda p, regs: seen.append(k.stack_trace(regs))))
        interrupt_leaf(m, k, 0, lambda regs: None)
        assert seen
        assert [names(m, stack)[:6] for stack in seen] == [["handler", *INTERRUPTED]] * len(seen)
        assert not any(stack.incomplete for stack in seen)


def test_where_a_handler_has_returned() -> None:
    """pc is then the value itself; the interrupted code comes next, and also where the call is followed."""
    inside: list[Stack] = []
    seen: list[Stack] = []
    with guest("cortexm-df") as (m, k):
        k.register(Kretprobe(symbol_name="outer", handler=lambda ri, regs: seen.append(k.stack_trace(regs))))
        interrupt_leaf(m, k, 0, lambda regs: inside.append(k.stack_trace(regs)))
        returned = [stack for stack in seen if stack[0] >> 8 == 0xFFFFFF]
        assert returned
        assert inside
        assert all(names(m, stack)[1:6] == INTERRUPTED for stack in returned)
        assert all(names(m, stack)[:9] == IN_HANDLER + INTERRUPTED for stack in inside)


def test_the_value_of_lr_after_a_reset_is_no_exception_return() -> None:
    """0xFFFFFFFF: the outermost caller has no other."""
    seen: list[Stack] = []
    with guest("cortexm-df") as (m, k):
        def after_reset(_: object, regs: Regs) -> None:
            regs["lr"] = 0xFFFFFFFF
            seen.append(k.stack_trace(regs))

        k.register(Kprobe(symbol_name="outer", pre_handler=after_reset))
        m.run(m.symbols["outer"].address | 1, until=m.symbols["leaf"].address | 1)
    assert [stack[1:] for stack in seen] == [[0xFFFFFFFE]]
