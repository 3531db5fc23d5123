"""Simulates TriCore's contexts: registers that calls save in guest memory and returns load.

Architecture Manual, volume 1, chapters 3 and 4. Areas of 64 bytes are linked: those in use from
PCXI on, the free ones from FCX on.
"""

from __future__ import annotations

from struct import pack, unpack

from ...errors import GuestFault
from ...regs import Regs
from .._base import Annul, Insn

MASK = 0xFFFFFFFF
D, A = tuple(f"d{n}" for n in range(16)), tuple(f"a{n}" for n in range(16))
UPPER = (*A[10:12], *D[8:12], *A[12:16], *D[12:16])  # behind PCXI and PSW, as they lie in memory
# PSW: calls are counted; PCXI and FCX: where the context lies; PCXI: it is an upper one
CDE, LINK, UL = 1 << 7, 0xFFFFF, 1 << 22


def area(link: int) -> int:
    """Return the address of the context save area that a link (PCXI, FCX) names."""
    return (link >> 16 & 15) << 28 | (link & 0xFFFF) << 6


def outermost(psw: int) -> bool:
    """Whether PSW says that calls are counted and none is under way.

    CDC is ones, a zero, and a counter in the bits left.
    """
    ones = next((n for n in range(7) if not psw >> 6 - n & 1), 7)
    return bool(psw & CDE) and ones < 7 and not psw & (1 << 6 - ones) - 1


def save_upper(regs: Regs, function: int) -> None:
    """Do what a call does besides setting A11: save the upper context (`Abi.enter`).

    The context goes into the first free area, which PCXI then names, and FCX the next free one.
    PSW.CDE is cleared, so the call is not counted, and neither is the return.

    Args:
        regs: the guest's registers.
        function: the function's address; not used.
    """
    free = regs["fcx"]
    psw = regs["psw"]
    place = area(free)
    link = regs.word(place)
    regs.write(place, pack("<16I", regs["pcxi"], psw, *map(regs.__getitem__, UPPER)))
    regs["pcxi"] = UL | free & LINK
    regs["fcx"] = free & ~LINK | link & LINK
    regs["psw"] = psw & ~CDE


def ret(regs: Regs, insn: Insn) -> int:
    """Simulate RET: load the caller's upper context, and free its memory.

    Where RET would trap nothing is changed, and its own address is returned: its body, RET itself,
    is executed then and traps.

    Args:
        regs: registers; they get the caller's values.
        insn: the RET.

    Returns:
        An `Annul` of the return address; or the RET's own address.
    """
    pcxi, target = regs["pcxi"], regs["a11"] & ~1
    if not pcxi & LINK or not pcxi & UL or outermost(regs["psw"]):
        return insn.addr
    place = area(pcxi)
    saved, psw, *upper = unpack("<16I", regs.read(place, 64))
    regs.set_word(place, regs["fcx"])
    for name, value in zip(UPPER, upper, strict=True):
        regs[name] = value
    regs["fcx"], regs["pcxi"], regs["psw"] = regs["fcx"] & ~LINK | pcxi & LINK, saved, psw
    return Annul(target)


def fret(regs: Regs, insn: Insn) -> int:
    """Simulate FRET: pop A11 from the stack; return its old value, the return address."""
    target, link = regs["a11"] & ~1, regs.word(regs["a10"])
    regs["a11"], regs["a10"] = link, regs["a10"] + 4 & MASK
    return target


def holds(regs: Regs, place: int) -> bool:
    """Whether the word at `place` in guest memory is pc, the trampoline's address."""
    try:
        return regs.word(place) == regs.pc
    except GuestFault:
        return False


def restore(regs: Regs, sp: int, target: int) -> None:
    """Put a call's real return address into A11 where that still has the trampoline's.

    JI A11 leaves the trampoline's there. RET and FRET have put the caller's A11 back, which may be
    the trampoline's address, too: then it stays.

    Args:
        regs: registers after the return; pc is at the trampoline.
        sp: the stack pointer; not used.
        target: the real return address.
    """
    if (
        regs["a11"] == regs.pc
        and not holds(regs, area(regs["fcx"]) + 12)
        and not holds(regs, regs["a10"] - 4 & MASK)
    ):
        regs["a11"] = target
