"""Functions: where they start, and what the code there expects."""

from __future__ import annotations

from ...arch._base import plain_address
from ...symbols import Symbols
from .cpu import UnicornCpu
from .runstate import RunState


class Functions:
    """The guest's functions: where a pointer to one leads, and how one is entered and left.

    Attributes:
        symbols: the machine's symbol table.
        regs: its CPU's registers.
        plain: target() is a function's pointer itself.
    """

    def __init__(self, cpu: UnicornCpu, state: RunState, symbols: Symbols) -> None:
        """Prepare; nothing is changed.

        Args:
            cpu: registers and memory.
            state: knows the page where runs end.
            symbols: the machine's symbol table.
        """
        self._cpu = cpu
        self._state = state
        self.symbols = symbols
        self.regs = cpu.regs
        self.plain = cpu.arch.pointers.direct or cpu.arch.pointers.code_address is plain_address

    def target(self, pointer: int) -> int:
        """Return the address of a function's code, mode bits included; function descriptors are
        read from guest memory.

        Args:
            pointer: the function's address, as pointers have it.

        Raises:
            GuestFault: the descriptor's memory is not mapped.
        """
        if self.plain:
            return pointer
        entry = self._cpu.arch.pointers.code_address(pointer, self._cpu.memory.read)
        return entry.addr | entry.mode

    def introduce(self, pointer: int) -> None:
        """Set the registers by which a function finds its data (TOC, gp), as a call of it does. On
        TriCore the upper context is saved in guest memory, which a call does there. Most ABIs have
        no such thing (Abi.enter), and nothing is done.

        Args:
            pointer: the function's address, as pointers have it.
        """
        abi = self._cpu.arch.abi
        if abi is not None and abi.enter is not None:
            abi.enter(self._cpu.regs, pointer)

    def return_to_exit(self) -> None:
        """Set the return address (link register or stack) to the page where runs end, for the
        function that is entered next.
        """
        linkage = self._cpu.arch.linkage
        assert linkage is not None
        linkage.set(self._cpu.regs, self._state.exit | linkage.mode)

    def stand_at(self, entry: int) -> None:
        """Set pc to a program's entry, and the return address there to the page where runs end.

        A pushed return address moves sp. The registers by which code finds its data (TOC, gp) are
        set, too.

        Args:
            entry: its address, as pointers have it.

        Raises:
            GuestFault: the entry's descriptor, or a stack that gets the return address, is not
                mapped.
        """
        linkage = self._cpu.arch.linkage
        if linkage is not None:
            self._cpu.regs.sp -= linkage.pushed
            self.return_to_exit()
        self.introduce(entry)
        self._cpu.write_pc(self.target(entry))
