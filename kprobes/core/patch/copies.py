"""Copies that the guest has made of its text while patches stood in it.

A probepoint is an address that has probes (patch/probepoint.py).

A copied breakpoint is in no table; a copied jump leads to an address that is off by as much as the
text was moved. They are recognized when the guest has failed because of one.
"""

from __future__ import annotations

from ...errors import GuestFault
from .probepoint import Probepoint
from .rooms import Rooms
from .sites import SiteKind

AROUND = 24  # bytes that are compared before a patch, and as many behind it
#: The share of them that must be equal. The others may have been relocated by the guest, or patched
#: since.
ALIKE = 0.75


def copied_patch(rooms: Rooms, pc: int) -> str:
    """Find out whether the guest has failed because of a copied patch.

    Args:
        rooms: have the patches.
        pc: where the guest has failed: at a breakpoint, or where a jump has led.

    Returns:
        A part of a sentence that says what was copied, and which probe's it is; "" where no copy is
        found, or a breakpoint of the library's own is at `pc`. Where several patches may be the
        original, the one with the most equal text around it is named.
    """
    if pc in rooms.sites:  # our own breakpoint, not a copy, even if the text around looks alike
        return ""
    # a fault must not cost the more the more probes there are
    trapped = any(
        _read(rooms, pc + offset, len(trap)) == trap for offset, trap in rooms.breakpoint_forms
    )
    points: list[Probepoint]
    if trapped:
        points = [
            site.owner for site in list(rooms.sites.values()) if site.kind is SiteKind.PROBEPOINT
        ]
    else:
        points = list(rooms.called.values())
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
    """Return how alike the text around `pc` and around a probepoint is, from 0 to 1.

    0 where the bytes at `pc` are not the probepoint's breakpoint, `pc` is the probepoint itself, or
    the breakpoint replaces only some bits of its bytes.

    Args:
        rooms: the parts of the Kprobes.
        point: a probepoint with a breakpoint.
        pc: where the guest has trapped.
    """
    place, trap, mask = rooms.arch.trap_for(point.insn)
    if pc == point.address or mask or _read(rooms, pc + place - point.address, len(trap)) != trap:
        return 0.0
    return _alike(rooms, point.address, pc, len(trap))


def _jumped(rooms: Rooms, point: Probepoint, pc: int) -> float:
    """Return how alike the text around a probepoint's jump and around a copy of it is, 0 to 1.

    The copy is the one that leads to `pc`. 0 where there is none, the probepoint is no jump, or the
    jump itself leads to `pc`.

    Args:
        rooms: the parts of the Kprobes.
        point: the probepoint.
        pc: where the guest has failed.
    """
    if point.detour is None or point.patch is None or pc == point.detour.call or point.patch.mask:
        return 0.0
    start = point.patch.addr
    jump = point.patch.new
    place = start + pc - point.detour.call & rooms.arch.mask
    return _alike(rooms, start, place, len(jump)) if _read(rooms, place, len(jump)) == jump else 0.0


def _alike(rooms: Rooms, start: int, copy: int, size: int) -> float:
    """Compare the text around a patch with the text around a supposed copy of it.

    Args:
        rooms: the parts of the Kprobes.
        start: address of the patch.
        copy: address of the supposed copy.
        size: bytes of the patch, which are not compared; AROUND bytes on each side are.

    Returns:
        The share of equal bytes, from 0 to 1; 0 where too few can be read. A byte of the copy may
        equal the byte in memory or the original one beneath a patch.
    """
    same = compared = 0
    for offset in (-AROUND, size):
        here = _bytes(rooms, start + offset, AROUND)
        there = _bytes(rooms, copy + offset, AROUND)
        beneath = _originals(rooms, start + offset, here)
        for one, original, other in zip(here, beneath, there, strict=True):
            if one is not None and other is not None:
                compared += 1
                same += other in (one, original)
    return same / compared if compared >= AROUND // 2 else 0.0


def _bytes(rooms: Rooms, addr: int, size: int) -> list[int | None]:
    """Return the bytes of guest memory as it is, patches included; None for each that is not
    mapped.

    Args:
        rooms: the parts of the Kprobes.
        addr: address of the first one.
        size: how many.
    """
    whole = _read(rooms, addr, size)
    if whole:
        return list(whole)
    single = [_read(rooms, addr + n, 1) for n in range(size)]
    return [one[0] if one else None for one in single]


def _originals(rooms: Rooms, addr: int, data: list[int | None]) -> list[int | None]:
    """Return what bytes would be without the library's patches.

    Args:
        rooms: the parts of the Kprobes.
        addr: address of the first one.
        data: the bytes as they are; None where there is none, which stays so.
    """
    known = bytes(one or 0 for one in data)
    whole = rooms.text.original(addr, known)
    return [None if one is None else byte for one, byte in zip(data, whole, strict=True)]


def _read(rooms: Rooms, addr: int, size: int) -> bytes:
    """Return guest memory as it is, patches included; b"" where it is not mapped.

    Args:
        rooms: the parts of the Kprobes.
        addr: address; it is cut to the architecture's width.
        size: bytes.
    """
    try:
        return rooms.machine.read(addr & rooms.arch.mask, size)
    except GuestFault:
        return b""
