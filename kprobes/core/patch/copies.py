"""Copies that the guest has made of text with patches in it.

A breakpoint there is in no table, and a jump leads elsewhere by as much as the text was moved. They
are recognized when the guest has run into one.
"""

from __future__ import annotations

from ...errors import GuestFault
from .probepoint import Probepoint
from .rooms import Rooms
from .sites import SiteKind

AROUND = 24  # bytes that are compared before a patch, and behind it
# of them are the same: others may have been relocated, or are patches that have come since
ALIKE = 0.75


def copied_patch(rooms: Rooms, pc: int) -> str:
    """Find out whether a fault comes of a copy of a patch.

    Args:
        pc: where the guest has failed: at a breakpoint, or where a jump has led.

    Returns:
        What is copied, and whose it is; "" where nothing of the kind is found.
    """
    if pc in rooms.sites:  # a probe's own place, whose surroundings may look like another's
        return ""
    points: list[Probepoint] = [
        site.owner for site in list(rooms.sites.values()) if site.kind is SiteKind.PROBEPOINT
    ]
    found = [
        (alike, point.where, what)
        for point in points
        if point.patch is not None
        for what, alike in (
            ("breakpoint", _trap_at(rooms, point, pc)),
            ("jump", _jumped(rooms, point, pc)),
        )
        if alike >= ALIKE
    ]
    if not found:
        return ""
    _, where, what = max(found, key=lambda one: one[0])
    return f"a copy of the {what} of the probe at {where}, in text that the guest has copied"


def _trap_at(rooms: Rooms, point: Probepoint, pc: int) -> float:
    """Return how alike the text at `pc` and around the probepoint is, from 0 to 1, if its
    breakpoint stands at `pc`; else 0.
    """
    place, trap, mask = rooms.arch.trap_for(point.insn)
    if pc == point.address or mask or _read(rooms, pc + place - point.address, len(trap)) != trap:
        return 0.0
    return _alike(rooms, point.address, pc, len(trap))


def _jumped(rooms: Rooms, point: Probepoint, pc: int) -> float:
    """Return how alike the text is around the jump of a probepoint and around a copy of it that
    leads to `pc`; 0.0: there is none.
    """
    if point.detour is None or point.patch is None or pc == point.detour.call or point.patch.mask:
        return 0.0
    start, jump = point.patch.addr, point.patch.new
    place = start + pc - point.detour.call & rooms.arch.mask
    return _alike(rooms, start, place, len(jump)) if _read(rooms, place, len(jump)) == jump else 0.0


def _alike(rooms: Rooms, start: int, copy: int, size: int) -> float:
    """Compare the bytes around a patch of `size` bytes at `start` with those around `copy`.

    Returns:
        From 0 to 1: how many are the same, as they are or without patches.
    """
    same = compared = 0
    for offset in (*range(-AROUND, 0), *range(size, size + AROUND)):
        there, here = _read(rooms, copy + offset, 1), _read(rooms, start + offset, 1)
        if there and here:
            compared += 1
            same += there == here or there == rooms.text.original(start + offset, here)
    return same / compared if compared >= AROUND // 2 else 0.0


def _read(rooms: Rooms, addr: int, size: int) -> bytes:
    try:
        return rooms.machine.read(addr & rooms.arch.mask, size)
    except GuestFault:
        return b""
