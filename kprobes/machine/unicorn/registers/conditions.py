"""Condition codes and other registers that Unicorn's API lacks or gets wrong, read and written where the engine keeps
them.

The engine works condition codes out lazily: it keeps the last result and operand and a number that says what they are
of. Its own API reads them wrongly, or destroys them in a hook. Their words lie at fixed distances from the first
general register in the CPU's structure, wherever that is (_cpustate.py finds it). The self-test compares them with what
guest code sees.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ....errors import Unsupported
from ..engine import Engine
from .cells import find_cells

Access = tuple[Callable[[], int], Callable[[int], None]]


def _address(engine: Engine, first: int, bits: int) -> int:
    """Where register `first` (`bits` wide) lies in this process. Unsupported where it is not found."""
    cell = find_cells(engine, f"first of {bits} bits {first}", {"first": first}, bits).get("first")
    if cell is None:
        raise Unsupported("the engine's registers are not found in this process, and its API gets condition codes "
                          "wrong",
                          hint="run on Linux or another POSIX system")
    return cell.address


def word(first: int, bits: int, distance: int, size: int = 32) -> Callable[[Engine], Access]:
    """A register of `size` bits that is a plain word at that distance."""

    def make(engine: Engine) -> Access:
        cell = (ctypes.c_uint64 if size == 64
                else ctypes.c_uint32).from_address(_address(engine, first, bits) + distance)

        def write(value: int) -> None:
            cell.value = value

        return lambda: cell.value, write

    return make


# --- m68k: op, X, N, V, C, Z as words. op 1: N and V are sign bits, Z is zero where Z is set. Else N is the result and
# V the second operand, sign-extended; 2 to 4: of ADD.B, .W, .L (the carry is X); 5 to 7: of SUB; 8 to 10: of CMP (N is
# the first operand); 11: of what clears V and C.

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


# --- SPARC: two operands and the result of the last operation, and its kind. 1: the codes stand in PSR (and its like
# for 64-bit results) as the ISA has them; 2: of a division, overflow is a second operand; 3 to 6: of additions, 5 of a
# tagged one; 7 to 10: of subtractions, 9 of a tagged one; 11: of what clears V and C.


def sparc_codes(first: int, bits: int) -> Callable[[Engine], Access]:
    """ICC, and with 64 bits XCC above it, by the number of G1."""

    def make(engine: Engine) -> Access:
        base, size = _address(engine, first, bits) - bits // 8, bits // 8
        source = 13 if bits == 32 else 12  # G0 is word 0; pc, npc and Y precede it
        operands = ((ctypes.c_uint32 if bits == 32 else ctypes.c_uint64) * 3).from_address(base + source * size)
        kind = ctypes.c_uint32.from_address(base + (source + 3) * size)
        narrow = ctypes.c_uint32.from_address(base + (source + 5) * size)
        wide = ctypes.c_uint32.from_address(base + SPARC_XCC) if bits == 64 else ctypes.c_uint32()

        def read() -> int:
            if kind.value <= 1:
                return narrow.value >> 20 & 15 | (wide.value >> 16 & 0xF0)
            codes = _sparc(kind.value, *operands, top=31)
            return codes if bits == 32 else codes | _sparc(kind.value, *operands, top=63) << 4

        def write(value: int) -> None:
            kind.value = 1
            narrow.value = narrow.value & ~(15 << 20) | (value & 15) << 20
            wide.value = (value >> 4 & 15) << 20

        return read, write

    return make


SPARC_XCC = 7232  # bytes from G0 to the codes of 64-bit results


def _sparc(kind: int, one: int, two: int, result: int, *, top: int) -> int:
    carry = overflow = 0
    if 3 <= kind <= 6:
        carry, overflow = one & two | ~result & (one | two), (one ^ ~two) & (one ^ result)
    elif 7 <= kind <= 10:
        carry, overflow = ~one & two | result & (~one | two), (one ^ two) & (one ^ result)
    elif kind == 2:
        overflow = bool(two) << 31 if top == 31 else 0
    elif kind != 11:
        raise Unsupported(f"the engine keeps condition codes of an unknown kind {kind}", hint="install unicorn 2.1.4")
    if kind in (5, 9) and (one | two) & 3 and top == 31:
        overflow = 1 << 31
    zero = not result & (2 << top) - 1
    return (result >> top & 1) << 3 | zero << 2 | (overflow >> top & 1) << 1 | carry >> top & 1


def sparc_context(first: int) -> Callable[[Engine], tuple[Callable[[], bytes], Callable[[bytes], None]]]:
    """The CPU's state from G0 to the end of the register windows, and XCC, by the number of G1. For 64 bits."""

    def make(engine: Engine) -> tuple[Callable[[], bytes], Callable[[bytes], None]]:
        base = _address(engine, first, 64) - 8
        state = (ctypes.c_char * SPARC_STATE).from_address(base)
        codes = ctypes.c_uint32.from_address(base + SPARC_XCC)

        def read() -> bytes:
            return state.raw + codes.value.to_bytes(4, "little")

        def write(saved: bytes) -> None:
            state.raw = saved[:SPARC_STATE]
            codes.value = int.from_bytes(saved[SPARC_STATE:], "little")

        return read, write

    return make


# general registers, the pointer to the window, pc, npc, Y, codes, FSR, FPU; the windows
SPARC_STATE = 440 + 8 * (8 * 16 + 8)
