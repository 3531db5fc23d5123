"""Condition codes and other registers that Unicorn's API lacks or gets wrong, read and written where the engine keeps them.

The engine works condition codes out lazily: it keeps the last result and operand and a number that says what they are of. Its
own API reads them wrongly, or destroys them in a hook. Their words lie at fixed distances from the first general register in
the CPU's structure, wherever that is (_cpustate.py finds it). The self-test compares them with what guest code sees.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ..errors import Unsupported
from ._cpustate import find_cells
from ._engine import Engine

Access = tuple[Callable[[], int], Callable[[int], None]]


def _address(engine: Engine, first: int, bits: int) -> int:
    """Where register `first` (`bits` wide) lies in this process. Unsupported where it is not found."""
    cell = find_cells(engine, f"first of {bits} bits {first}", {"first": first}, bits).get("first")
    if cell is None:
        raise Unsupported("the engine's registers are not found in this process, and its API gets condition codes wrong",
                          hint="run on Linux with /proc/self/mem readable")
    return cell.address


def word(first: int, bits: int, distance: int, size: int = 32) -> Callable[[Engine], Access]:
    """A register of `size` bits that is a plain word at that distance."""

    def make(engine: Engine) -> Access:
        cell = (ctypes.c_uint64 if size == 64 else ctypes.c_uint32).from_address(_address(engine, first, bits) + distance)

        def write(value: int) -> None:
            cell.value = value

        return lambda: cell.value, write

    return make


# --- m68k: op, X, N, V, C, Z as words. op 1: N and V are sign bits, Z is zero where Z is set. Else N is the result and V the
# second operand, sign-extended; 2 to 4: of ADD.B, .W, .L (the carry is X); 5 to 7: of SUB; 8 to 10: of CMP (N is the first
# operand); 11: of what clears V and C.

_X, _N, _Z, _V, _C = 16, 8, 4, 2, 1


def m68k_ccr(first: int) -> Callable[[Engine], Access]:
    """The CCR, by the number of D0."""

    def make(engine: Engine) -> Access:
        words = (ctypes.c_uint32 * 6).from_address(_address(engine, first, 32) + 22 * 4)

        def write(value: int) -> None:
            words[:] = [1, value >> 4 & 1, -(value >> 3 & 1), -(value >> 1 & 1), value & 1, ~value >> 2 & 1]

        return lambda: _m68k(*words), write

    return make


def _m68k(op: int, x: int, n: int, v: int, c: int, z: int) -> int:
    extend = _X if x & 1 else 0
    if op == 1:
        return extend | n >> 31 << 3 | (0 if z else _Z) | v >> 31 << 1 | c & 1
    if op == 11:
        return extend | n >> 31 << 3 | (0 if n else _Z)
    if not op:
        return 0  # the CPU is fresh
    if not 2 <= op <= 10:
        raise Unsupported(f"the engine keeps condition codes of an unknown kind {op}", hint="install unicorn 2.1.4")
    top = (7, 15, 31)[(op - 2) % 3]
    mask = (2 << top) - 1
    if op < 5:
        first = n - v
        carry, overflow = x & 1, (n ^ first) & ~(first ^ v)
    elif op < 8:
        first = n + v
        carry, overflow = x & 1, (n ^ first) & (first ^ v)
    else:
        first, n = n, n - v
        carry, overflow = int(first & mask < v & mask), (first ^ v) & (first ^ n)
    return extend | (n >> top & 1) << 3 | (0 if n & mask else _Z) | (overflow >> top & 1) << 1 | carry
