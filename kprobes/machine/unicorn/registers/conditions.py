"""Condition codes and other registers that Unicorn's API lacks or gets wrong, read and written
where the engine keeps them.

The engine works condition codes out lazily: it keeps the last result and operand and a number that
says what they are of. Its own API reads them wrongly, or destroys them in a hook. Their words lie
at fixed distances from the first general register in the CPU's structure, wherever that is
(cells.py finds it). The self-test compares them with what guest code sees.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from attrs import frozen

from ....errors import Unsupported
from ..engine import Engine
from .cells import find_cells

Access = tuple[Callable[[], int], Callable[[int], None]]


def _address(engine: Engine, first: int, bits: int) -> int:
    """Return the address of a general register's word in this process.

    Args:
        engine: the engine.
        first: the engine's number of the register.
        bits: its width.

    Raises:
        Unsupported: the register is not found.
    """
    cell = find_cells(engine, f"first of {bits} bits {first}", {"first": first}, bits).get("first")
    if cell is None:
        raise Unsupported(
            "the engine's registers are not found in this process, and its API gets condition "
            "codes wrong",
            hint="run on Linux or another POSIX system",
        )
    return cell.address


def word(first: int, bits: int, distance: int, size: int = 32) -> Callable[[Engine], Access]:
    """Return a function that finds a register which is a plain word of the CPU's structure.

    Args:
        first: the engine's number of the first general register.
        bits: its width.
        distance: bytes from it to the word.
        size: bits of the word.

    Returns:
        (engine) -> (function that reads the register, function that writes it). It raises
        Unsupported where the engine's registers are not found in this process.
    """

    def make(engine: Engine) -> Access:
        """Return (read, write) of the register of an engine. Unsupported: its registers are not
        found.
        """
        cell = (ctypes.c_uint64 if size == 64 else ctypes.c_uint32).from_address(
            _address(engine, first, bits) + distance
        )

        def write(value: int) -> None:
            """Write a value into the word, cut to its size."""
            cell.value = value

        return lambda: cell.value, write

    return make


@frozen
class CpuMode:
    """A field of a control register that the engine's arithmetic keeps a second time, as a byte.

    Attributes:
        shift: of the field's lowest bit.
        values: the byte for each value of the field; None: there is no such mode.
        distance: bytes from the first general register to the byte.
    """

    shift: int
    values: tuple[int | None, ...]
    distance: int

    @property
    def last(self) -> int:
        """The field's highest value."""
        return len(self.values) - 1


#: how the engine's arithmetic rounds: to nearest, down, up, towards zero, to odd
NEAREST, DOWN, UP, ZERO, ODD = 0, 1, 2, 3, 5


def control(
    first: int, bits: int, distance: int, *modes: CpuMode, size: int = 32
) -> Callable[[Engine], Access]:
    """Return a function that finds a floating-point control register whose word does not rule the
    arithmetic.

    What is written is obeyed, and what is read is what the arithmetic goes by.

    Args:
        first: the engine's number of the first general register.
        bits: its width.
        distance: bytes from it to the register's word.
        modes: bytes that rule the arithmetic, and the register's bits that stand for them. A byte
            stays where the value that is written stands for no mode.
        size: bits of the word.

    Returns:
        (engine) -> (function that reads the register, function that writes it). It raises
        Unsupported where the engine's registers are not found in this process.
    """

    def make(engine: Engine) -> Access:
        """Return (read, write) of the register of an engine. Unsupported: its registers are not
        found.
        """
        plain, put = word(first, bits, distance, size)(engine)
        base = _address(engine, first, bits)
        cells = [(mode, ctypes.c_uint8.from_address(base + mode.distance)) for mode in modes]

        def read() -> int:
            """Return the register, with the modes that the arithmetic goes by."""
            value = plain()
            for mode, cell in cells:
                if cell.value in mode.values:
                    value = (
                        value & ~(mode.last << mode.shift)
                        | mode.values.index(cell.value) << mode.shift
                    )
            return value

        def write(value: int) -> None:
            """Write the register, and the modes that the arithmetic goes by."""
            put(value)
            for mode, cell in cells:
                new = mode.values[value >> mode.shift & mode.last]
                cell.value = cell.value if new is None else new

        return read, write

    return make


# --- m68k: QEMU keeps six words, cc_op, cc_x, cc_n, cc_v, cc_c, cc_z. cc_op says what they mean:
#
#     1          N and V are sign bits; Z is 0 where the Z flag is set
#     2, 3, 4    of ADD.B, .W, .L: N is the result, V the second operand, both sign-extended; the
#                carry is X
#     5, 6, 7    of SUB.B, .W, .L: the same
#     8, 9, 10   of CMP.B, .W, .L: N is the first operand, V the second
#     11         of instructions that clear V and C: N is the result

_X, _N, _Z, _V, _C = 16, 8, 4, 2, 1


def m68k_ccr(first: int) -> Callable[[Engine], Access]:
    """Return a function that finds the condition codes CCR: (engine) -> (function that reads them,
    function that writes them).

    It raises Unsupported where the engine's registers are not found in this process, and so does
    the function that reads, where the engine's words are not understood.

    Args:
        first: the engine's number of D0.
    """

    def make(engine: Engine) -> Access:
        """Return (read, write) of the condition codes of an engine. Unsupported: its registers are
        not found.
        """
        words = (ctypes.c_uint32 * 6).from_address(_address(engine, first, 32) + 22 * 4)

        def write(value: int) -> None:
            """Write the condition codes X, N, Z, V, C: bits 4 to 0."""
            words[:] = [
                1,
                value >> 4 & 1,
                -(value >> 3 & 1),
                -(value >> 1 & 1),
                value & 1,
                ~value >> 2 & 1,
            ]

        return lambda: _m68k(*words), write

    return make


def _m68k(op: int, x: int, n: int, v: int, c: int, z: int) -> int:
    """Return the condition codes that the engine's words stand for: X, N, Z, V, C in bits 4 to 0.

    Args:
        op: what the codes are of: 1: plain flags; 2 to 10: an addition, a subtraction or a
            comparison of 8, 16 or 32 bits; 11: a logical operation; 0: nothing was executed yet.
        x: carry of the last addition or subtraction.
        n: its result, or the flag.
        v: its operand, or the flag.
        c: the carry, as a plain flag.
        z: not 0 where the plain flag Z is clear.

    Raises:
        Unsupported: `op` is none of these.
    """
    extend = _X if x & 1 else 0
    if op == 1:
        return extend | n >> 31 << 3 | (0 if z else _Z) | v >> 31 << 1 | c & 1
    if op == 11:
        return extend | n >> 31 << 3 | (0 if n else _Z)
    if not op:
        return 0  # the CPU is fresh
    if not 2 <= op <= 10:
        raise Unsupported(
            f"the engine keeps condition codes of an unknown kind {op}",
            hint="install unicorn 2.1.4",
        )
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
    return (
        extend | (n >> top & 1) << 3 | (0 if n & mask else _Z) | (overflow >> top & 1) << 1 | carry
    )


# --- SPARC: QEMU keeps two operands and the result of the last operation, and its kind:
#
#     1          the codes are in PSR (and in a like word for 64-bit results) as the ISA has them
#     2          a division: the second operand is not 0 where it overflowed
#     3 to 6     an addition; 5: a tagged one
#     7 to 10    a subtraction; 9: a tagged one
#     11         an operation that clears V and C


def sparc_codes(first: int, bits: int) -> Callable[[Engine], Access]:
    """Return a function that finds the condition codes: ICC in bits 3 to 0, of 64 bits XCC in bits
    7 to 4.

    Args:
        first: the engine's number of G1.
        bits: its width.

    Returns:
        (engine) -> (function that reads the codes, function that writes them). It raises
        Unsupported where the engine's registers are not found in this process, and so does the
        function that reads, where the engine's words are not understood.
    """

    def make(engine: Engine) -> Access:
        """Return (read, write) of the condition codes of an engine. Unsupported: its registers are
        not found.
        """
        base, size = _address(engine, first, bits) - bits // 8, bits // 8
        source = 13 if bits == 32 else 12  # G0 is word 0; pc, npc and Y precede it
        operands = ((ctypes.c_uint32 if bits == 32 else ctypes.c_uint64) * 3).from_address(
            base + source * size
        )
        kind = ctypes.c_uint32.from_address(base + (source + 3) * size)
        narrow = ctypes.c_uint32.from_address(base + (source + 5) * size)
        wide = ctypes.c_uint32.from_address(base + SPARC_XCC) if bits == 64 else ctypes.c_uint32()

        def read() -> int:
            """Return the condition codes, worked out where the engine has not done so yet."""
            if kind.value <= 1:
                return narrow.value >> 20 & 15 | (wide.value >> 16 & 0xF0)
            codes = _sparc(kind.value, *operands, top=31)
            return codes if bits == 32 else codes | _sparc(kind.value, *operands, top=63) << 4

        def write(value: int) -> None:
            """Write the condition codes, and have the engine take them as they are (kind 1)."""
            kind.value = 1
            narrow.value = narrow.value & ~(15 << 20) | (value & 15) << 20
            wide.value = (value >> 4 & 15) << 20

        return read, write

    return make


#: bytes from G0, of version 9: codes of 64-bit results, PSTATE, FPRS, GSR, and the rounding mode of
#: the engine's arithmetic
SPARC_XCC, SPARC_PSTATE, SPARC_FPRS, SPARC_GSR, SPARC_ROUNDING = 7232, 7240, 8040, 8080, 6969
PEF, FEF = 0x10, 4  # floating point is on: to the system, and to the program


def _sparc(kind: int, one: int, two: int, result: int, *, top: int) -> int:
    """Return the condition codes that the engine's words stand for: N, Z, V, C in bits 3 to 0.

    Args:
        kind: what the codes are of: 2: a division; 3 to 6: an addition; 7 to 10: a subtraction; 11:
            a logical operation.
        one: the first operand.
        two: the second operand.
        result: of the operation.
        top: number of the highest bit: 31 for ICC, 63 for XCC.

    Raises:
        Unsupported: `kind` is none of these.
    """
    carry = overflow = 0
    if 3 <= kind <= 6:
        carry, overflow = one & two | ~result & (one | two), (one ^ ~two) & (one ^ result)
    elif 7 <= kind <= 10:
        carry, overflow = ~one & two | result & (~one | two), (one ^ two) & (one ^ result)
    elif kind == 2:
        overflow = bool(two) << 31 if top == 31 else 0
    elif kind != 11:
        raise Unsupported(
            f"the engine keeps condition codes of an unknown kind {kind}",
            hint="install unicorn 2.1.4",
        )
    if kind in (5, 9) and (one | two) & 3 and top == 31:
        overflow = 1 << 31
    zero = not result & (2 << top) - 1
    return (result >> top & 1) << 3 | zero << 2 | (overflow >> top & 1) << 1 | carry >> top & 1


def sparc_floats(engine: Engine, first: int) -> None:
    """Turn floating point on in a 64-bit engine, by words of its CPU structure.

    A process of the guest may itself write FPRS, but not PSTATE.

    Args:
        engine: the engine.
        first: its number of G1.

    Raises:
        Unsupported: the engine's registers are not found in this process.
    """
    base = _address(engine, first, 64) - 8
    ctypes.c_uint32.from_address(base + SPARC_PSTATE).value |= PEF
    ctypes.c_uint64.from_address(base + SPARC_FPRS).value |= FEF


def sparc_context(
    first: int,
) -> Callable[[Engine], tuple[Callable[[], bytes], Callable[[bytes], None]]]:
    """Return a function that finds the part of a 64-bit CPU's state that the engine's contexts
    lack.

    It is the state from G0 to the end of the register windows, and what a process can set behind
    it.

    Args:
        first: the engine's number of G1.

    Returns:
        (engine) -> (() -> a copy of the state as bytes, (copy) puts it back). It raises Unsupported
        where the engine's registers are not found in this process.
    """

    def make(engine: Engine) -> tuple[Callable[[], bytes], Callable[[bytes], None]]:
        """Return (read, write) of the part of an engine's CPU state that its contexts lack, as
        bytes. Unsupported: its registers are not found.
        """
        base = _address(engine, first, 64) - 8
        parts = [(ctypes.c_char * size).from_address(base + at) for at, size in SPARC_STATE]

        def read() -> bytes:
            """Return a copy of the state, as bytes."""
            return b"".join(part.raw for part in parts)

        def write(saved: bytes) -> None:
            """Write the state that read() has returned."""
            at = 0
            for part in parts:
                part.raw = saved[at : at + len(part)]
                at += len(part)

        return read, write

    return make


#: (bytes from G0, bytes) of: general registers, the pointer to the window, pc, npc, Y, codes, FSR,
#: FPU, the windows; the rounding mode; XCC; FPRS; GSR
SPARC_STATE = (
    (0, 440 + 8 * (8 * 16 + 8)),
    (SPARC_ROUNDING, 1),
    (SPARC_XCC, 4),
    (SPARC_FPRS, 8),
    (SPARC_GSR, 8),
)
