"""Breakpoints that the engine does not report: CODE hooks where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unicorn import unicorn_const as const

from ._engine import CALL

if TYPE_CHECKING:
    from .unicorn import UnicornMachine

LINE = 64  # bytes of the guest's code that share a hook, to begin with
MOST = 64  # hooks


class Stops:
    """Where the guest stops.

    At every instruction in a hook's range the engine calls it, which takes 200 ns, after walking its list of hooks, 5 ns each.
    So there are few, with small ranges: one for each page of the library's own, and one for each line of the guest's code with
    a breakpoint in it. Lines become longer when there are more.
    """

    def __init__(self, machine: UnicornMachine) -> None:
        self._machine = machine
        self._callback = CALL(self._on_instruction)
        self._line = LINE
        self._sites: dict[int, set[int]] = {}  # start of a range -> the stops in it
        self._hooks: dict[int, int] = {}  # and its hook
        self._range: dict[int, int] = {}  # stop -> start of its range

    def add(self, addr: int) -> None:
        """Report the guest's arrival at `addr`."""
        if addr not in self._range:
            self._place(addr)
            while len(self._hooks) > MOST and self._line < self._machine.page_size:
                self._widen()

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
        if not self._range:
            self._line = LINE

    def _place(self, addr: int) -> None:
        m = self._machine
        size = m.page_size if m._sink is not None and m._sink.ours(addr) else self._line
        start = self._range[addr] = addr & -size
        if start not in self._hooks:
            self._sites[start] = set()
            self._hooks[start] = m._engine.hook(const.UC_HOOK_CODE, self._callback, start, start + size - 1)
        self._sites[start].add(addr)
        m._engine.drop_translations(addr, addr + m.arch.insn_align)

    def _widen(self) -> None:
        self._line *= 4
        stops = [*self._range]
        for hook in self._hooks.values():
            self._machine._engine.unhook(hook)
        self._hooks.clear()
        self._sites.clear()
        for addr in stops:
            self._place(addr)

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
