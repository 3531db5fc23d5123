"""Breakpoints that the engine does not report: CODE hooks where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unicorn import unicorn_const as const

from ._engine import CALL

if TYPE_CHECKING:
    from .unicorn import UnicornMachine

LINE = 64  # bytes of the guest's code that share a hook


class Stops:
    """Where the guest stops.

    The engine walks its list of hooks at every hit, and calls one for each instruction in its range: 5 ns a hook, 200 ns an
    instruction. So a page of the library's own has one hook, and the guest's code one in each LINE with a breakpoint.
    """

    def __init__(self, machine: UnicornMachine) -> None:
        self._machine = machine
        self._sites: dict[int, set[int]] = {}  # start of a range -> the stops in it
        self._hooks: dict[int, int] = {}  # and its hook
        self._range: dict[int, int] = {}  # stop -> start of its range

    def add(self, addr: int) -> None:
        """Report the guest's arrival at `addr`."""
        if addr in self._range:
            return
        m = self._machine
        size = m.page_size if m._sink is not None and m._sink.ours(addr) else LINE
        start = self._range[addr] = addr & -size
        if start not in self._hooks:
            self._sites[start] = set()
            self._hooks[start] = m._engine.hook(const.UC_HOOK_CODE, CALL(self._on_instruction), start, start + size - 1)
        self._sites[start].add(addr)
        m._engine.drop_translations(addr, addr + m.arch.insn_align)

    def remove(self, addr: int) -> None:
        """Do so no more."""
        start = self._range.pop(addr, None)
        if start is None:
            return
        self._sites[start].discard(addr)
        if not self._sites[start]:
            del self._sites[start]
            self._machine._engine.unhook(self._hooks.pop(start))
            self._machine._engine.drop_translations(start, start + self._machine.page_size)

    def _on_instruction(self, _uc: int, address: int) -> None:
        m, regs = self._machine, self._machine._regs
        if address not in self._range or m._bounds.stops(address):  # whose hook is called later
            return
        try:
            regs._pc = address
            if m._trap is not None and m._trap(regs):
                m._write_pc(address if regs._target is None else regs._target)
        except BaseException as error:
            if regs._target is not None:
                m._write_pc(regs._target)
            m._park(error)
        regs._pc = regs._target = None
