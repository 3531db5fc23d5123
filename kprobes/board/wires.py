"""Requests that a device may make of the machine around it: registers, interrupts, time, a stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class InterruptInputs(Protocol):
    """The interrupts of the machine's CPU, and its time, as UnicornMachine.interrupts has them."""

    @property
    def now(self) -> int:
        """Instructions that the CPU has executed."""

    @property
    def controller(self) -> Any:
        """The CPU's own interrupt controller."""

    def look(self) -> None:
        """Have the machine take what is pending at the guest's next instruction.

        Called where the controller's registers have changed.
        """

    def pend(self, line: int | str) -> None:
        """Make an interrupt pending once.

        Args:
            line: its name or number.
        """

    def set_level(self, line: int | str, on: bool) -> None:
        """Set whether a device asks for an interrupt now; the interrupt is pending as long as the
        device does.

        Args:
            line: its name or number.
            on: True: the device asks for it.
        """

    def after(self, instructions: int, function: Callable[[], object]) -> Callable[[], None]:
        """Have a function called once, later: when so many more instructions have been executed.

        Args:
            instructions: how many, counted from now.
            function: () is called then; its result is not used.

        Returns:
            A function that cancels this.
        """


class Wires(Protocol):
    """A machine, as its devices see it: registers, interrupts and a way to stop."""

    @property
    def regs(self) -> Any:
        """The CPU's registers."""

    @property
    def interrupts(self) -> InterruptInputs:
        """The interrupts of its CPU."""

    def stop(self) -> None:
        """Stop the run."""
