"""Triggers of the hart of jtag_board.py: "RISC-V External Debug Support" 0.13, chapter 5 (tselect, tdata1, tdata2,
tinfo; type 2 is mcontrol). Each stops before the instruction at one address."""

from __future__ import annotations

from collections.abc import Callable

from unicorn import UC_HOOK_CODE, Uc

TSELECT, TDATA1, TDATA2, TINFO = 0x7A0, 0x7A1, 0x7A2, 0x7A4
MCONTROL = 2
COUNT = 3  #: there are so many
#: bits of mcontrol; what else there is stays 0
TO_DEBUG, MACHINE, SUPERVISOR, USER, EXECUTE = 1 << 12, 1 << 6, 1 << 4, 1 << 3, 1 << 2


class Triggers:
    """All of them."""

    def __init__(self, uc: Uc, bits: int, fired: Callable[[], None]) -> None:
        """fired: called when the hart is before the instruction at a trigger's address, and stops."""
        self._uc, self._bits, self._fired = uc, bits, fired
        self._selected, self._data = 0, [[self._control(0), 0] for _ in range(COUNT)]
        self._hooks: list[int] = []

    def get(self, number: int) -> int | None:
        """A register; None: it is none of these."""
        if number == TSELECT:
            return self._selected
        if number == TINFO:
            return 1 << MCONTROL
        return self._data[self._selected][number - TDATA1] if number in (TDATA1, TDATA2) else None

    def put(self, number: int, value: int) -> bool:
        """False: it is none of these."""
        if number not in (TSELECT, TDATA1, TDATA2, TINFO):
            return False
        if number == TSELECT and value < COUNT:
            self._selected = value
        elif number == TDATA1:
            self._data[self._selected][0] = self._control(value)
        elif number == TDATA2:
            self._data[self._selected][1] = value
        self._set()
        return True

    def _control(self, value: int) -> int:
        """What mcontrol holds: its type, dmode, and the bits that there are."""
        return MCONTROL << self._bits - 4 | value & (
            1 << self._bits - 5 | TO_DEBUG | MACHINE | SUPERVISOR | USER | EXECUTE)

    def _set(self) -> None:
        for hook in self._hooks:
            self._uc.hook_del(hook)
        wanted = {addr for control, addr in self._data if control & EXECUTE and control & MACHINE and control & TO_DEBUG}
        self._hooks = [self._uc.hook_add(UC_HOOK_CODE, self._stop, begin=addr, end=addr) for addr in wanted]
        self._uc.ctl_flush_tb()

    def _stop(self, uc: Uc, addr: int, size: int, data: object) -> None:
        self._fired()
        uc.emu_stop()
