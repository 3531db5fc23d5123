"""Thumb: IT blocks, literals and branch tables in the regions of jumps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kprobes import GuestFault, Kprobes, UnicornMachine

pytestmark = pytest.mark.quick
BASE = 0x10000
EITHER = "0028 0cbf 0120 4ff00200 7047"  # cmp r0, #0; ite eq; moveq r0, #1; movne.w r0, #2; bx lr
RETURN = "0028 08bf 7047 0130 7047"  # cmp r0, #0; it eq; bxeq lr; adds r0, #1; bx lr
LOAD = "0028 18bf 0868 7047 78563412"  # cmp r0, #0; it ne; ldrne r0, [r1]; bx lr; data
# push {lr}; cmp r0, #0; it ne; blne 1f; pop {pc}; 1: adds r0, #2; bx lr
CALL = "00b5 0028 18bf 00f001f8 00bd 0230 7047"
LITERAL = "0048 7047 44332211"  # ldr r0, 1f; bx lr; 1: .word
#: cmp r0, #2; bhi 4f; tbb [pc, r0]; 1, 2, 3 and an aligning byte; 1: movs r0, #1; bx lr; 2: movs r0, #2; adds r0, #1;
#: bx lr 3: movs r0, #3; bx lr; 4: movs r0, #0; bx lr
SWITCH = "0228 0ad8 dfe800f0 02040700 0120 7047 0220 0130 7047 0320 7047 0020 7047"
Made = Callable[[str], tuple[UnicornMachine, Kprobes]]


@pytest.fixture(params=["arm", "cortexm"])
def made(request: pytest.FixtureRequest) -> Any:
    """A machine whose function f is T32 code."""
    machines = []

    def make(code: str) -> tuple[UnicornMachine, Kprobes]:
        text = bytes.fromhex(code)
        m = UnicornMachine.from_code(text, arch=request.param, base=BASE, symbols={"f": (BASE | 1, len(text))})
        machines.append((m, k := Kprobes(m)))
        return m, k

    yield make
    for m, k in machines:
        k.close()
        m.close()


@pytest.mark.parametrize(("code", "offsets"), [(EITHER, (0, 2)), (RETURN, (0, 2, 6)), (LOAD, (0, 2))])
@pytest.mark.parametrize("handler", [None, lambda p, regs: None], ids=["counted", "called"])
def test_a_block_moves_as_a_whole(made: Made, code: str, offsets: tuple[int, ...], handler: Any) -> None:
    m, k = made(code)
    plain = [m.call("f", n, BASE + 8) for n in range(4)]
    for offset in offsets:
        with k.kprobe("f", offset=offset, pre_handler=handler) as p:
            k.flush_optimizer()
            assert p.optimized, p.why_not_optimized
            assert [m.call("f", n, BASE + 8) for n in range(4)] == plain
            assert p.nhit == (4 if offset < 6 else 3)
    assert m.read(BASE, len(bytes.fromhex(code))) == bytes.fromhex(code)


@pytest.mark.parametrize(("code", "offset"), [(EITHER, 4), (EITHER, 6), (CALL, 4)])
def test_no_jump_within_a_block(made: Made, code: str, offset: int) -> None:
    """Nor over an instruction that would be several elsewhere."""
    m, k = made(code)
    plain = [m.call("f", n) for n in range(3)]
    with k.kprobe("f", offset=offset, pre_handler=lambda p, regs: None) as p:
        k.flush_optimizer()
        assert any(why in p.why_not_optimized for why in ("a block", "no jump may stand"))
        assert [m.call("f", n) for n in range(3)] == plain


def test_a_probe_in_a_displaced_block_takes_the_jump_back(made: Made) -> None:
    m, k = made(EITHER)
    with k.kprobe("f", pre_handler=lambda p, regs: None) as first:
        k.flush_optimizer()
        with k.kprobe("f", offset=6, pre_handler=lambda p, regs: None) as last:
            assert not first.optimized
            assert (m.call("f", 0), m.call("f", 1)) == (1, 2)
            assert (first.nhit, last.nhit) == (2, 2), "its breakpoint has no condition"
        k.flush_optimizer()
        assert first.optimized


def test_a_fault_in_a_displaced_block_is_at_home(made: Made) -> None:
    m, k = made(LOAD)
    with k.kprobe("f", pre_handler=lambda p, regs: None) as p:
        k.flush_optimizer()
        with pytest.raises(GuestFault) as caught:
            m.call("f", 1, 0x7FFF0000)
        assert (p.optimized, caught.value.pc, caught.value.address) == (True, BASE + 4, 0x7FFF0000)


def test_no_jump_over_a_literal(made: Made) -> None:
    m, k = made(LITERAL)
    with k.kprobe("f", offset=2, pre_handler=lambda p, regs: None) as p:
        k.flush_optimizer()
        assert "may be data" in p.why_not_optimized
        assert (m.call("f"), p.nhit) == (0x11223344, 1)


def test_a_branch_table_says_where_it_leads(made: Made) -> None:
    m, k = made(SWITCH)
    plain = [m.call("f", n) for n in range(4)]
    refused = []
    for offset in (*range(0, 8, 2), *range(12, 30, 2)):
        if offset != 6:
            with k.kprobe("f", offset=offset, pre_handler=lambda p, regs: None) as p:
                k.flush_optimizer()
                refused += [] if p.optimized else [offset]
                assert [m.call("f", n) for n in range(4)] == plain == [1, 3, 3, 0]
    assert refused == [2, 14, 20, 24, 28], "a jump would cover the branch itself, or what follows a return"
