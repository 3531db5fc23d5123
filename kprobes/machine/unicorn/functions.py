"""Functions: where they start, and what the code there expects."""

from __future__ import annotations

from ...arch._base import plain_address
from ...symbols import Symbols
from .cpu import UnicornCpu
from .runstate import RunState


class Functions:
    """The guest's functions, by their pointers.

    Attributes:
        symbols: the machine's symbol table.
        regs: its CPU's registers.
        plain: target() is a function's pointer itself.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState, symbols: Symbols) -> None:
        self._cpu = cpu
        self._state = state
        self.symbols = symbols
        self.regs = cpu.regs
        self.plain = cpu.arch.pointers.direct or cpu.arch.pointers.code_address is plain_address

    def target(self, pointer: int) -> int:
        """Return where the function of a pointer starts, mode bits included."""
        if self.plain:
            return pointer
        entry = self._cpu.arch.pointers.code_address(pointer, self._cpu.memory.read)
        return entry.addr | entry.mode

    def introduce(self, pointer: int) -> None:
        """Set the registers that a function finds its data by."""
        abi = self._cpu.arch.abi
        if abi is not None and abi.enter is not None:
            abi.enter(self._cpu.regs, pointer)

    def return_to_exit(self) -> None:
        """Have the function that is entered next return to the page where runs end."""
        linkage = self._cpu.arch.linkage
        assert linkage is not None
        linkage.set(self._cpu.regs, self._state.exit | linkage.mode)

    def stand_at(self, entry: int) -> None:
        """Have the guest stand at a program's entry, which returns to the page where runs end."""
        linkage = self._cpu.arch.linkage
        if linkage is not None:
            self._cpu.regs.sp -= linkage.pushed
            self.return_to_exit()
        self.introduce(entry)
        self._cpu.write_pc(self.target(entry))
