"""The effects of the model's instructions, carried out on a CPU's registers and memory
("Instruction Reference", volume 3).

A function is called where the instruction's predicate holds. Its arguments are the CPU's registers
and the fields of the encoding (encodings.py), by letter; most are numbers of registers: `d` gets
the result, `s` and `t` are sources, `q` is the qualifying predicate, `u` and `v` are predicates
that are written; `i` is an immediate, `z` log2 of the bytes that are accessed. `**_` are fields
that the instruction does not use.
"""

from __future__ import annotations

from collections.abc import Callable

from ...arch._base import signed
from ...arch.ia64 import frames
from ...arch.ia64.simulate import holds
from ...errors import GuestFault
from ...regs import Regs

ONES = (1 << 64) - 1
INTEGER = 0x1003E << 64  # exponent of a floating-point register that holds an integer
ARS = {
    16: "ar_rsc",
    17: "ar_bsp",
    32: "ar_ccv",
    36: "ar_unat",
    40: "ar_fpsr",
    64: "ar_pfs",
    65: "ar_lc",
    66: "ar_ec",
}
BSP = 17
Value = Callable[[int, int], int]

# --- registers


def g(regs: Regs, n: int) -> int:
    """Return general register `n`: 64 bits, unsigned; register 0 is always 0."""
    return regs[f"r{n}"] if n else 0


def set_g(regs: Regs, n: int, value: int) -> None:
    """Set general register `n` to the low 64 bits of a value; nothing for register 0."""
    if n:
        regs[f"r{n}"] = value & ONES


def f(regs: Regs, n: int) -> int:
    """Return the significand of floating-point register `n`: 64 bits.

    Registers 0 and 1 are 0.0 and 1.0.
    """
    return regs[f"f{n}"] & ONES if n > 1 else n << 63


def set_f(regs: Regs, n: int, value: int) -> None:
    """Set floating-point register `n` to an integer: its significand is the low 64 bits of the
    value.
    """
    regs[f"f{n}"] = INTEGER | value & ONES


def set_p(regs: Regs, values: dict[int, bool]) -> None:
    """Set predicate registers.

    Args:
        regs: the CPU's registers.
        values: number of the predicate -> its value. Predicate 0 stays true.
    """
    pr = regs["pr"]
    for n, value in values.items():
        pr = pr & ~(1 << n) | value << n
    regs["pr"] = pr | 1


# --- arithmetic


def of_two(value: Value, regs: Regs, d: int, s: int, t: int, **_: int) -> None:
    """Execute an operation on registers `s` and `t`.

    Args:
        value: (s, t) -> the result, put into register `d`.
        regs: the CPU's registers.
        d, s, t: numbers of registers.
    """
    set_g(regs, d, value(g(regs, s), g(regs, t)))


def of_imm(value: Value, bits: int, regs: Regs, d: int, i: int, t: int, **_: int) -> None:
    """Execute an operation on an immediate and register `t`.

    Args:
        value: (the immediate, t) -> the result, put into register `d`.
        bits: of the immediate, which is signed.
        regs: the CPU's registers.
        d, t: numbers of registers.
        i: the immediate.
    """
    set_g(regs, d, value(signed(i, bits), g(regs, t)))


def shladd(regs: Regs, d: int, s: int, t: int, n: int, **_: int) -> None:
    """Execute shladd: d = (s << n + 1) + t."""
    set_g(regs, d, (g(regs, s) << n + 1) + g(regs, t))


def addl(regs: Regs, d: int, i: int, j: int, k: int, m: int, t: int, **_: int) -> None:
    """Execute addl: d = t + a signed immediate of 22 bits, whose pieces are i, k, j, m, highest
    first.
    """
    set_g(regs, d, signed(i << 21 | k << 16 | j << 7 | m, 22) + g(regs, t))


def movl(regs: Regs, d: int, i: int, j: int, k: int, c: int, m: int, upper: int, **_: int) -> None:
    """Execute movl: d = an immediate of 64 bits, whose pieces are i, upper, c, k, j, m, highest
    first.
    """
    set_g(regs, d, i << 63 | upper << 22 | c << 21 | k << 16 | j << 7 | m)


Relation = Callable[[int, int], bool]
RELATIONS: tuple[Relation, ...] = (
    lambda a, b: signed(a, 64) < signed(b, 64),
    lambda a, b: a < b,
    lambda a, b: a == b,
)
#: By the bits `a` and `c`: of zero and a register.
TO_ZERO: tuple[Relation, ...] = (
    lambda a, b: a > b,
    lambda a, b: a <= b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
)


def conclude(regs: Regs, kind: int, result: bool, u: int, v: int) -> None:
    """Write the predicates of a parallel compare: and, or, or.andcm.

    "and" makes both false where the result is false; "or" makes both true where the result is true;
    "or.andcm" then makes the first true and the second false. Otherwise they stay as they are.

    Args:
        regs: the CPU's registers.
        kind: 0 (and), 1 (or), 2 (or.andcm).
        result: of the comparison.
        u: number of the first predicate.
        v: number of the second one.
    """
    if kind == 0 and not result:
        set_p(regs, {u: False, v: False})
    elif kind == 1 and result:
        set_p(regs, {u: True, v: True})
    elif kind == 2 and result:
        set_p(regs, {u: True, v: False})


def plainly(regs: Regs, result: bool, unc: int, u: int, v: int, q: int) -> None:
    """Write the predicates of a plain compare, where its own predicate holds.

    Args:
        regs: the CPU's registers.
        result: of the comparison.
        unc: not 0: where predicate `q` does not hold, both predicates become false.
        u: number of the predicate that gets the result.
        v: number of the predicate that gets its opposite.
        q: number of the qualifying predicate.
    """
    if holds(regs, q):
        set_p(regs, {u: result, v: not result})
    elif unc:
        set_p(regs, {u: False, v: False})


def cmp(
    op: int,
    regs: Regs,
    b: int,
    x: int,
    a: int,
    v: int,
    t: int,
    s: int,
    c: int,
    u: int,
    q: int,
    **_: int,
) -> None:
    """Execute a compare of registers, or of a register and a number, of 32 or 64 bits.

    The fields are those of formats A6 to A8 (volume 3).

    Args:
        op: the relation, an index of RELATIONS; for a parallel compare, the kind that conclude()
            takes.
        regs: the CPU's registers.
        b: of a number, its sign; else 1: a parallel compare of zero with register `t`.
        x: 2 is set where a number is compared, 1 where 32 bits are.
        a: 1: a parallel compare for equality; in a compare with zero, a half of the relation.
        v: number of the second predicate.
        t: number of the right register.
        s: number of the left register, or the number's low seven bits.
        c: of a plain compare, 1: both predicates become false where `q` does not hold; of a
            parallel one, it turns the relation round.
        u: number of the first predicate.
        q: number of the qualifying predicate.
    """
    imm, bits = x >> 1, 32 if x & 1 else 64
    left = signed(b << 7 | s, 8) if imm else g(regs, s)
    left, right = left & (1 << bits) - 1, g(regs, t) & (1 << bits) - 1
    if b and not imm:
        return conclude(regs, op, TO_ZERO[a << 1 | c](0, signed(right, bits)), u, v)
    if a:
        return conclude(regs, op, (left == right) != bool(c), u, v)
    wide = (signed(left, bits) & ONES, signed(right, bits) & ONES) if op == 0 else (left, right)
    plainly(regs, RELATIONS[op](*wide), c, u, v, q)


def tbit(
    regs: Regs, b: int, a: int, v: int, t: int, p: int, c: int, u: int, q: int, **_: int
) -> None:
    """Execute a test of a bit: write two predicates.

    Args:
        regs: the CPU's registers.
        b: with `a`, the kind of test. Where both are 0, the test is plain.
        a: 1 alone is "or", with `b` it is "or.andcm"; `b` alone is "and".
        v: number of the second predicate; a plain test gives it the bit.
        t: number of the register.
        p: number of its bit.
        c: of a plain test, 1: both predicates become false where `q` does not hold; of a parallel
            one, the bit that is tested for.
        u: number of the first predicate; a plain test gives it the opposite of the bit.
        q: number of the qualifying predicate.
    """
    bit = bool(g(regs, t) >> p & 1)
    if not a and not b:
        plainly(regs, not bit, c, u, v, q)
    else:
        conclude(regs, 2 if a and b else a, bit == bool(c), u, v)


def extr(regs: Regs, d: int, t: int, p: int, y: int, n: int, **_: int) -> None:
    """Execute extr: d = the field of `n` + 1 bits at bit `p` of register `t`.

    `y` is not 0: the field is extended with its sign, else with zeros.
    """
    field = g(regs, t) >> p & (1 << n + 1) - 1
    set_g(regs, d, signed(field, min(n + 1, 64 - p)) if y else field)


def dep_z(regs: Regs, d: int, s: int, p: int, n: int, **_: int) -> None:
    """Execute dep.z: d = the low `n` + 1 bits of register `s` at bit 63 - `p`, all other bits 0."""
    set_g(regs, d, (g(regs, s) & (1 << n + 1) - 1) << 63 - p)


def dep(regs: Regs, d: int, s: int, t: int, p: int, n: int, **_: int) -> None:
    """Execute dep: d = register `t` with its `n` + 1 bits at bit 63 - `p` replaced by the low ones
    of `s`.
    """
    field = (1 << n + 1) - 1 << 63 - p
    set_g(regs, d, g(regs, t) & ~field | g(regs, s) << 63 - p & field)


def extend(bits: int, sign: bool, regs: Regs, d: int, t: int, **_: int) -> None:
    """Execute sxt or zxt: d = the low bits of register `t`, extended to 64.

    Args:
        bits: how many are kept.
        sign: True: extended with their sign; False: with zeros.
        regs: the CPU's registers.
        d, t: numbers of registers.
    """
    low = g(regs, t) & (1 << bits) - 1
    set_g(regs, d, signed(low, bits) if sign else low)


def xma(high: bool, regs: Regs, d: int, s: int, t: int, r: int, **_: int) -> None:
    """Execute xma on significands: d = t * r + s.

    Args:
        high: True: the high 64 bits of the result; False: the low ones.
        regs: the CPU's registers.
        d, s, t, r: numbers of floating-point registers.
    """
    whole = f(regs, t) * f(regs, r) + f(regs, s)
    set_f(regs, d, whole >> 64 if high else whole)


# --- memory


def load(regs: Regs, z: int, t: int, d: int, **_: int) -> None:
    """Execute a load: d = the 2 ** `z` bytes at the address in register `t`, extended with
    zeros.
    """
    set_g(regs, d, regs.word(g(regs, t), 1 << z))


def load_step(
    regs: Regs, z: int, t: int, d: int, i: int | None = None, s: int = 0, **_: int
) -> None:
    """Execute a load that updates its base register, by a number or a register.

    Args:
        regs: the CPU's registers.
        z: log2 of the bytes that are loaded.
        t: number of the base register.
        d: number of the register that gets the value.
        i: what is added to the base, in 9 bits; None: a register is.
        s: number of that register.
    """
    step = g(regs, s) if i is None else signed(i, 9)
    value, base = regs.word(g(regs, t), 1 << z), g(regs, t) + step
    set_g(regs, d, value)
    set_g(regs, t, base)


def store(regs: Regs, z: int, t: int, s: int, i: int = 0, **_: int) -> None:
    """Execute a store of the low 2 ** `z` bytes of register `s` to the address in register `t`.

    Then `i`, a signed number of 9 bits, is added to register `t`.
    """
    regs.set_word(g(regs, t), g(regs, s), 1 << z)
    set_g(regs, t, g(regs, t) + signed(i, 9))


def cmpxchg(regs: Regs, z: int, t: int, s: int, d: int, **_: int) -> None:
    """Execute a compare and exchange: store register `s` if memory holds what ar_ccv does; else the
    old value is stored again.

    Args:
        regs: the CPU's registers.
        z: log2 of the bytes.
        t: number of the register with the address.
        s: number of the register with the new value.
        d: number of the register that gets the old value.
    """
    addr, size = g(regs, t), 1 << z
    old, new = regs.word(addr, size), g(regs, s)
    regs.set_word(addr, new if old == regs["ar_ccv"] else old, size)
    set_g(regs, d, old)


def xchg(regs: Regs, z: int, t: int, s: int, d: int, **_: int) -> None:
    """Execute xchg: exchange the 2 ** `z` bytes at the address in register `t` with register `s`.

    Register `d` gets the old value.
    """
    old = regs.word(g(regs, t), 1 << z)
    regs.set_word(g(regs, t), g(regs, s), 1 << z)
    set_g(regs, d, old)


def fetchadd(regs: Regs, z: int, t: int, s: int, i: int, d: int, **_: int) -> None:
    """Execute a fetch and add: add 1, 4, 8 or 16 to memory, or subtract it.

    Args:
        regs: the CPU's registers.
        z: 0: four bytes; 1: eight.
        t: number of the register with the address.
        s: 1: subtract.
        i: which number: 0 is 16, 1 is 8, 2 is 4, 3 is 1.
        d: number of the register that gets the old value.
    """
    by, size = (16, 8, 4, 1)[i], 4 << z
    old = regs.word(g(regs, t), size)
    regs.set_word(g(regs, t), old - by if s else old + by, size)
    set_g(regs, d, old)


# --- application registers, predicates, branch registers, frames


def to_ar(regs: Regs, a: int, s: int | None = None, i: int = 0, **_: int) -> None:
    """Execute a move to application register `a`: from register `s`; None: the signed number `i`.

    Raises:
        GuestFault: the model does not write that register.
    """
    if a not in ARS or a == BSP:
        raise GuestFault(f"the model does not write ar{a}", access="undefined")
    regs[ARS[a]] = signed(i, 8) & ONES if s is None else g(regs, s)


def from_ar(regs: Regs, a: int, d: int, **_: int) -> None:
    """Execute a move from application register `a` to register `d`.

    Raises:
        GuestFault: the model does not know that register.
    """
    if a not in ARS:
        raise GuestFault(f"the model does not know ar{a}", access="undefined")
    set_g(regs, d, regs[ARS[a]])


def to_pr(regs: Regs, i: int, s: int, j: int, **_: int) -> None:
    """Execute a move to predicates from register `s`, of those whose bits are set in a mask.

    The mask is the signed number of pieces `i` (high) and `j`, shifted left by one. Predicate 0
    stays true.
    """
    mask = (signed(i << 7 | j, 16) << 1) & ONES & ~1
    regs["pr"] = regs["pr"] & ~mask | g(regs, s) & mask | 1


def to_rotating(regs: Regs, i: int, **_: int) -> None:
    """Execute a move to the rotating predicates, 16 to 63: they become the bits of `i`, 28 bits,
    signed.
    """
    regs["pr"] = regs["pr"] & 0xFFFF | signed(i, 28) << 16 & ONES


def alloc(regs: Regs, r: int, m: int, n: int, d: int, **_: int) -> None:
    """Execute alloc: give the register stack's frame another shape.

    Args:
        regs: the CPU's registers.
        r: number of rotating registers, divided by 8.
        m: number of inputs and locals.
        n: number of registers of the frame.
        d: number of the register that gets the old ar_pfs.

    Raises:
        GuestFault: no frame has that shape: there are more locals or rotating registers than
            registers; or the number of rotating registers changes while registers are rotated.
    """
    before, pfs, stacked = regs["cfm"], regs["ar_pfs"], frames.physical(regs)
    if m > n or r * 8 > n or (r * 8 != frames.sor(before) and any(frames.rrb(before))):
        raise GuestFault("alloc of a frame that cannot be", access="undefined")
    frames.show(regs, before >> 18 << 18 | r << 14 | m << 7 | n, stacked)
    set_g(regs, d, pfs)


def cover(regs: Regs, **_: int) -> None:
    """Execute cover: end the register stack's frame, and begin an empty one."""
    frames.push(regs, frames.sof(regs["cfm"]), 0)


def clrrrb(all_of_them: bool, regs: Regs, **_: int) -> None:
    """Execute clrrrb: set the bases of register rotation back to 0.

    Args:
        all_of_them: False: that of predicates only (clrrrb.pr).
        regs: the CPU's registers.
    """
    cfm = regs["cfm"]
    frames.show(regs, cfm & (0x3FFFF if all_of_them else 0xFFFFFFFF), frames.physical(regs))


def nothing(regs: Regs, **_: int) -> None:
    """Execute an instruction that has no effect in the model: a nop, a hint, a fence."""


def setf(regs: Regs, d: int, s: int, **_: int) -> None:
    """Execute setf.sig: the significand of floating-point register `d` = register `s`."""
    set_f(regs, d, g(regs, s))


def getf(regs: Regs, d: int, s: int, **_: int) -> None:
    """Execute getf.sig: register `d` = the significand of floating-point register `s`."""
    set_g(regs, d, f(regs, s))


def loadf(regs: Regs, t: int, d: int, **_: int) -> None:
    """Execute ldf8: the significand of floating-point register `d` = 8 bytes at the address in
    `t`.
    """
    set_f(regs, d, regs.word(g(regs, t)))


def storef(regs: Regs, t: int, s: int, **_: int) -> None:
    """Execute stf8: store the significand of floating-point register `s` at the address in `t`."""
    regs.set_word(g(regs, t), f(regs, s))


def from_b(regs: Regs, d: int, b: int, **_: int) -> None:
    """Execute a move from branch register `b` to register `d`."""
    set_g(regs, d, regs[f"b{b}"])


def to_b(regs: Regs, s: int, b: int, **_: int) -> None:
    """Execute a move from register `s` to branch register `b`."""
    regs[f"b{b}"] = g(regs, s)


def from_pr(regs: Regs, d: int, **_: int) -> None:
    """Execute a move of all predicates, a bit each, to register `d`."""
    set_g(regs, d, regs["pr"])


def popcnt(regs: Regs, d: int, t: int, **_: int) -> None:
    """Execute popcnt: d = the number of bits that are set in register `t`."""
    set_g(regs, d, g(regs, t).bit_count())


def dep_z_imm(regs: Regs, d: int, i: int, p: int, n: int, **_: int) -> None:
    """Execute dep.z of a signed number `i` of 8 bits: d = its low `n` + 1 bits at bit 63 - `p`,
    else 0.
    """
    set_g(regs, d, (signed(i, 8) & (1 << n + 1) - 1) << 63 - p)
