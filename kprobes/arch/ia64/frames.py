"""Simulates Itanium's register stack: frames that calls rename, their backing store, rotation.

"Register Stack Engine", volume 2. Registers have their names in the current frame. What a call
saves is in the backing store as soon as the call is made; the engine may do that whenever it likes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...regs import Regs

STACKED = tuple(f"r{n}" for n in range(32, 128))
ROTATING_F = tuple(f"f{n}" for n in range(32, 128))
ROTATING_P = 48  # predicates, from p16 on
Values = list[int]

# --- CFM: sof, sol, sor (in eights), rrb.gr, rrb.fr, rrb.pr


def sof(cfm: int) -> int:
    """Return the size of a frame, in registers, from its CFM."""
    return cfm & 127


def sol(cfm: int) -> int:
    """Return how many registers of a frame are locals (not outputs), from its CFM."""
    return cfm >> 7 & 127


def sor(cfm: int) -> int:
    """Return how many registers of a frame rotate, from its CFM."""
    return (cfm >> 14 & 15) * 8


def rrb(cfm: int) -> tuple[int, int, int]:
    """Return (rotation of general, of floating-point, of predicate registers), from a CFM."""
    return cfm >> 18 & 127, cfm >> 25 & 127, cfm >> 32 & 63


def _turned(values: Sequence[int], by: int) -> Values:
    """Return a list rotated to the left by `by` places."""
    return [values[(n + by) % len(values)] for n in range(len(values))]


def physical(regs: Regs) -> Values:
    """Return the values of the stacked registers from the frame's bottom on, with rotation
    undone.
    """
    cfm, shown = regs["cfm"], [regs[name] for name in STACKED]
    return _turned(shown[: sor(cfm)], -rrb(cfm)[0]) + shown[sor(cfm) :]


def show(regs: Regs, cfm: int, stacked: Values) -> None:
    """Make another CFM the current one: rename the stacked registers, rotate f32 to f127 and
    predicates.

    Args:
        regs: the guest's registers, which are written.
        cfm: the current frame marker from now on.
        stacked: values of the stacked registers from the bottom of its frame on, without rotation.
    """
    before, now = rrb(regs["cfm"]), rrb(cfm)
    _write(regs, STACKED, _turned(stacked[: sor(cfm)], now[0]) + stacked[sor(cfm) :])
    if now[1] != before[1]:
        _write(regs, ROTATING_F, _turned([regs[name] for name in ROTATING_F], now[1] - before[1]))
    if now[2] != before[2]:
        pr, by = regs["pr"], now[2] - before[2]
        turned = sum((pr >> 16 + (n + by) % ROTATING_P & 1) << 16 + n for n in range(ROTATING_P))
        regs["pr"] = pr & 0xFFFF | turned
    regs["cfm"] = cfm


def _write(regs: Regs, names: Sequence[str], values: Values) -> None:
    """Write registers by their names; those that hold their value already are left alone."""
    for name, value in zip(names, values, strict=True):
        if regs[name] != value:
            regs[name] = value


def rotate(regs: Regs) -> None:
    """Rotate general, floating-point and predicate registers by one, as loop branches do.

    Each rotating register's value moves to the next higher number; the rotation counts in cfm
    change.
    """
    cfm, (gr, fr, pr) = regs["cfm"], rrb(regs["cfm"])
    stacked = physical(regs)
    gr = (gr - 1) % sor(cfm) if sor(cfm) else gr
    show(
        regs,
        cfm & 0x3FFFF | gr << 18 | (fr - 1) % len(ROTATING_F) << 25 | (pr - 1) % ROTATING_P << 32,
        stacked,
    )


# --- the backing store: each 64th word holds NaT bits


def _is_collection(addr: int) -> bool:
    """Whether a word of the backing store holds NaT bits, and no register: each 64th does."""
    return addr >> 3 & 63 == 63


def _above(bsp: int, count: int) -> tuple[list[int], int]:
    """Return ([address where each of `count` registers is saved, upwards from `bsp`], the address
    of the next one).

    Words of the backing store that hold NaT bits are skipped.
    """
    places: list[int] = []
    while True:
        if _is_collection(bsp):
            bsp += 8
        if len(places) == count:
            return places, bsp
        places.append(bsp)
        bsp += 8


def _below(bsp: int, count: int) -> list[int]:
    """Return the addresses where `count` registers are saved below `bsp`, the lowest first."""
    places: list[int] = []
    while len(places) < count:
        bsp -= 8
        if not _is_collection(bsp):
            places.insert(0, bsp)
    return places


def push(regs: Regs, count: int, cfm: int) -> None:
    """Write the frame's first registers to the backing store, and begin the next frame behind them.

    Args:
        regs: the guest's registers; ar.bsp moves up.
        count: how many registers are saved.
        cfm: the next frame's CFM, which becomes the current one.
    """
    stacked = physical(regs)
    places, bsp = _above(regs["ar_bsp"], count)
    for place, value in zip(places, stacked, strict=False):
        regs.set_word(place, value)
    regs["ar_bsp"] = bsp
    show(regs, cfm, stacked[count:] + [0] * count)


def call(regs: Regs) -> None:
    """Do a call's work on the register stack: the outputs become the callee's first registers.

    The caller's locals are written to the backing store, and its CFM and ar.ec to ar.pfs; the frame
    changes to the callee's. The branch register and pc are left to the caller of this function.
    """
    cfm = regs["cfm"]
    pfs = cfm & (1 << 38) - 1 | regs["ar_ec"] << 52
    push(regs, sol(cfm), sof(cfm) - sol(cfm) & 127)
    regs["ar_pfs"] = pfs


def ret(regs: Regs) -> None:
    """Do a return's work on the register stack: restore the frame that ar.pfs describes.

    Its locals are read from the backing store, ar.bsp moves down, and ar.ec gets the value in
    ar.pfs. pc is left to the caller of this function.
    """
    pfs, stacked = regs["ar_pfs"], physical(regs)
    places = _below(regs["ar_bsp"], sol(pfs))
    local = [regs.word(place) for place in places]
    if places:
        regs["ar_bsp"] = places[0]
    regs["ar_ec"] = pfs >> 52 & 63
    show(regs, pfs & (1 << 38) - 1, (local + stacked)[: len(STACKED)])
