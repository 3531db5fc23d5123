"""Registers of a window: words behind a pointer that lies in the engine's CPU structure and moves
with the window.

They are found like the others (cells.py), on an engine made for that: a pointer near the
general registers behind which all of them follow the API in both directions, in every window that
the guest's code can move to. On each other engine the first and the last are seen to do so before
any is used; where that fails, they stay with the API.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import field, frozen
from unicorn import unicorn_const as const

from ..engine import Engine
from ..guests.guest import Guest
from .cells import Cell, agrees, find_cells, offset, peek

REACH = 0x1000  # bytes searched for the pointer on either side of a general register
WINDOW = 0x100  # bytes searched for registers behind it
CODE = 0x10000
Numbers = dict[str, int]
SHARED = 16  # registers of a window that are no other's: those behind them are the next one's


@frozen
class WindowLayout:
    """Where the register windows are in an engine's CPU structure.

    Attributes:
        pointer: bytes from the first general register to the pointer to the present window.
        indexes: name of a register -> index of its word behind where that points.
        first: bytes from the first general register to the first window.
        count: of windows; 0: it is not known.
    """

    pointer: int = 0
    indexes: Numbers = field(factory=dict)
    first: int = 0
    count: int = 0


#: (engine version, layout) -> where they are
_layouts: dict[tuple[str, str], WindowLayout] = {}


@frozen(kw_only=True)
class Windowed:
    """A register of a window: window[index] is its value.

    Attributes:
        window: a ctypes pointer to words, which is read anew at each access.
        index: which word.
        address: where the pointer lies in this process.
    """

    window: Any  #: a ctypes pointer, which is read anew at each access
    index: int
    address: int

    def reader(self) -> Callable[[], int]:
        """Return a function that reads the register."""
        return partial(self.window.__getitem__, self.index)

    def writer(self) -> Callable[[int], None]:
        """Return a function that writes the register; the value is cut to its width."""
        return partial(self.window.__setitem__, self.index)


def find_windowed(
    engine: Engine,
    guest: Guest,
    layout: str,
    cells: dict[str, Cell],
    general: Numbers,
    windowed: Numbers,
    bits: int,
) -> dict[str, Windowed]:
    """Find where the registers of a window are in the engine.

    Args:
        engine: the engine.
        guest: the engine's row of the architecture.
        layout: name of the engine's build of this guest, as in find_cells().
        cells: places of the registers in `general`, which do not move.
        general: name -> engine's number, of registers that are in no window.
        windowed: name -> engine's number, of the registers to find.
        bits: width of a register.

    Returns:
        Name -> place; {} where they are not found, or `windowed` is empty. Registers are written to
        try this, and have their values again afterwards.
    """
    key, first = (engine.version, layout), next(iter(general))
    if not windowed or first not in cells:
        return {}
    if key not in _layouts:
        _layouts[key] = _search(guest, layout, general, windowed, bits)
    found = _places(cells[first].address + _layouts[key].pointer, _layouts[key].indexes, bits)
    return (
        found
        if all(
            agrees(engine, windowed[name], bits, found[name])
            for name in [*found][:: max(len(found) - 1, 1)]
        )
        else {}
    )


def callers(
    engine: Engine, layout: str, anchor: Cell, bits: int
) -> Callable[[int], tuple[int, ...] | None] | None:
    """Make a function that reads the register windows of callers, for Regs.callers_window.

    The engine keeps the windows in a ring: behind the window of a function is that of the function
    that has called it, and behind the last window of the ring the first one. The in registers of a
    window are also the out registers of the window behind it, and are kept in the latter. Only the
    present window's in registers may be kept elsewhere, so it is not read here.

    Args:
        engine: the engine.
        layout: name of the engine's build of this guest.
        anchor: the word of the first general register; the windows' places are relative to it.
        bits: width of a register.

    Returns:
        (n) -> the local and in registers of the n-th caller, from 1 on; None: n is less than 1, or
        the ring has too few windows to still have all registers of that caller. In place of the
        function None: it is not known that this engine's windows move, or where they are.
    """
    found = _layouts.get((engine.version, layout), WindowLayout())
    if found.count < 2:
        return None
    kind = ctypes.c_uint64 if bits == 64 else ctypes.c_uint32
    size, first, local = SHARED * found.count, anchor.address + found.first, found.indexes["l0"]
    words = (kind * size).from_address(first)
    pointer = ctypes.c_uint64.from_address(anchor.address + found.pointer)

    def window(n: int) -> tuple[int, ...] | None:
        """Return the local and in registers of the n-th caller, from 1 on; None: it is in no
        window.
        """
        # what the last one has in common with the present one is that one's by now
        if not 0 < n < found.count - 1:
            return None
        start = (pointer.value - first) // (bits // 8) + SHARED * n + local
        return tuple(words[(start + k) % size] for k in range(SHARED))

    return window


def _places(address: int, indexes: Numbers, bits: int) -> dict[str, Windowed]:
    """Return the registers behind a pointer: name -> place.

    Args:
        address: of the pointer, in this process.
        indexes: name -> index of the register's word behind it.
        bits: width of a register.
    """
    window = ctypes.POINTER(ctypes.c_uint64 if bits == 64 else ctypes.c_uint32).from_address(
        address
    )
    return {
        name: Windowed(window=window, index=index, address=address)
        for name, index in indexes.items()
    }


def _search(
    guest: Guest, layout: str, general: Numbers, windowed: Numbers, bits: int
) -> WindowLayout:
    """Search a new engine for the pointer to a window, and return how the windows lie.

    The result has no register where none was found.

    Args:
        guest: the engine's row of the architecture.
        layout: name of the engine's build of this guest.
        general: name -> engine's number, of registers that are in no window.
        windowed: name -> engine's number, of those in a window.
        bits: width of a register.
    """
    engine = guest.cpu.fresh()
    engine.uc.mem_map(CODE, 0x4000, const.UC_PROT_ALL)
    anchor = find_cells(engine, layout, general, bits)[next(iter(general))].address
    for distance in sorted(range(-REACH - anchor % 8, REACH, 8), key=abs):
        pointer = _word(anchor + distance)
        if 0x10000 <= pointer < 1 << 47 and pointer % (bits // 8) == 0:
            found = {
                name: offset(engine, number, bits, pointer, WINDOW)
                for name, number in windowed.items()
            }
            indexes = {
                name: place * 8 // bits for name, place in found.items() if place is not None
            }
            moved = (
                _follow(engine, guest, anchor + distance, windowed, indexes, bits)
                if len(indexes) == len(windowed)
                else set()
            )
            if moved:
                start, step = min(moved), SHARED * bits // 8
                whole = (
                    moved == {*range(start, start + len(moved) * step, step)} and pointer == start
                )
                return WindowLayout(distance, indexes, start - anchor, len(moved) if whole else 0)
    return WindowLayout()


def _follow(
    engine: Engine, guest: Guest, pointer: int, windowed: Numbers, indexes: Numbers, bits: int
) -> set[int]:
    """Execute guest code that moves the window, and check the registers in each window.

    Args:
        engine: a new engine.
        guest: the engine's row of the architecture, with code that moves the window.
        pointer: address of the pointer to the window, in this process.
        windowed: name -> engine's number, of registers in a window.
        indexes: name -> index of the register's word behind the pointer.
        bits: width of a register.

    Returns:
        The addresses to which the pointer has pointed; empty where a register is not found in a
        window, or code has not moved the pointer.
    """
    places, before, seen = _places(pointer, indexes, bits), 0, set()
    for move in ("", *guest.checks.moves):
        engine.write(CODE, bytes.fromhex(move) + bytes(8))
        engine.drop_translations(CODE, CODE + 16)
        engine.start(CODE, 0)  # to the zeros, which end it
        if _word(pointer) == before or not all(
            agrees(engine, windowed[name], bits, place) for name, place in places.items()
        ):
            return set()
        before = _word(pointer)
        seen.add(before)
    return seen


def _word(address: int) -> int:
    """Return the word of 64 bits at an address of this process; 0 where it is not mapped."""
    return int.from_bytes(peek(address, 8), "little")
