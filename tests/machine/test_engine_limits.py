"""What the engine is known to execute wrongly: if one of these passes, the engine has been mended, and docs/engine.md
is to forget it."""

from __future__ import annotations

import pytest

from kprobes import UnicornMachine

pytestmark = pytest.mark.quick

LOW, HIGH = 0x51, 0x5D
HALF = (1 << 32) - 1


def inserted(op: int, into: int, what: int, first: int, last: int, zero: bool, left: int) -> int:
    """RISBLG and RISBHG by the Principles of Operation: bits first to last of a half (0: its leftmost; they may wrap
    around)."""
    rotated = what << left | what >> 64 - left
    bits = sum(1 << 31 - n for n in range(32) if (first <= n <= last if first <= last else n >= first or n <= last))
    shift = 0 if op == LOW else 32
    old, new = into >> shift & HALF, rotated >> shift & HALF
    half = (0 if zero else old & ~bits) | new & bits
    return into & ~(HALF << shift) | half << shift


WRAPS, ZERO, KEPT, WHOLE = (28, 3, False), (4, 9, True), (4, 9, False), (0, 31, True)
WRONG = pytest.mark.xfail(strict=True, reason="Unicorn 2.1.4: s390x's RISBLG and RISBHG insert into the other half")


@pytest.mark.parametrize("op", [LOW, HIGH])
@pytest.mark.parametrize("bits", [WRAPS, ZERO, pytest.param(KEPT, marks=WRONG), pytest.param(WHOLE, marks=WRONG)])
def test_s390x_inserts_into_halves(op: int, bits: tuple[int, int, bool]) -> None:
    first, last, zero = bits
    for left in (0, 5, 32):
        m = UnicornMachine.from_code(bytes((0xEC, 0x50, first, last | zero << 7, left, op)), arch="s390x")
        into, what = 0x1122334455667788, 0x99AABBCCDDEEFF01
        m.regs["r5"], m.regs["r0"] = into, what
        m.run(0x10000, until=0x10006)
        assert m.regs["r5"] == inserted(op, into, what, first, last, zero, left), left
