"""Tells which task of an operating system is running, by a pointer to its control block."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import frozen

from ..errors import BadArgument, GuestFault

if TYPE_CHECKING:
    from ..machine.unicorn.machine import UnicornMachine
    from ..regs import Regs

NAME = 15  #: bytes of a task's name, at most
BEFORE = "none"  #: the name while no task runs


@frozen
class TaskPointer:
    """Where an operating system keeps a pointer to the running task.

    Attributes:
        pointer: symbol or address of the pointer to the control block (FreeRTOS: "pxCurrentTCB").
        name: offset of the task's name in its control block (FreeRTOS on a 32-bit CPU: 52); None:
            it has none.
    """

    pointer: str | int
    name: int | None = None

    @classmethod
    def parse(cls, text: str) -> TaskPointer:
        """Parse "POINTER" or "POINTER:OFFSET", as --task takes it: a symbol or an address, and an
        offset. Raises BadArgument where the text is neither.
        """
        pointer, colon, offset = text.partition(":")
        try:
            place: str | int = int(pointer, 0)
        except ValueError:
            place = pointer
        try:
            if place == "" or (isinstance(place, int) and place < 0):
                raise ValueError
            return cls(place, int(offset, 0) if colon else None)
        except ValueError:
            raise BadArgument(
                f"{text!r} names no task", hint="write POINTER:OFFSET, as in pxCurrentTCB:52"
            ) from None

    def follow(self, machine: UnicornMachine) -> Callable[[Regs], str]:
        """Make the function for machine.cpu_task, which names the running task.

        A control block has the same name each time. A name that another task has already, or none,
        is followed by the block's address.

        Args:
            machine: has the operating system.

        Returns:
            (regs) -> name of the running task; "none" (BEFORE) while the pointer is 0. It raises
            GuestFault where the pointer cannot be read.

        Raises:
            UnknownSymbol: there is no such pointer.
        """
        place = (
            self.pointer if isinstance(self.pointer, int) else machine.symbols[self.pointer].address
        )
        size, order = machine.arch.bits // 8, machine.arch.order
        known: dict[tuple[int, str], str] = {}
        taken: dict[str, int] = {}

        def task(regs: Regs) -> str:
            """Return the running task's name; BEFORE while the pointer is 0."""
            block = int.from_bytes(machine.read(place, size), order.value)
            if not block:
                return BEFORE
            name = self._name(machine, block)
            if (block, name) not in known:
                alone = bool(name) and taken.setdefault(name, block) == block
                known[block, name] = name if alone else f"{name}@{block:x}"
            return known[block, name]

        return task

    def _name(self, machine: UnicornMachine, block: int) -> str:
        """Read a task's name from its control block.

        Args:
            machine: has the memory.
            block: address of the control block.

        Returns:
            "" where it has no name or it cannot be read.
        """
        if self.name is None:
            return ""
        try:
            return machine.read_cstr(block + self.name, NAME).decode(errors="backslashreplace")
        except GuestFault:
            return ""
