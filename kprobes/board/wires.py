"""The services that a device may ask of the machine around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class InterruptInputs(Protocol):
    """The interrupts of the machine's CPU, and its time: UnicornMachine.interrupts."""

    @property
    def now(self) -> int:
        """Instructions that the CPU has executed."""

    @property
    def controller(self) -> Any:
        """The CPU's own interrupt controller."""

    def look(self) -> None:
        """Take what is pending at the guest's next instruction: the controller's registers have
        changed.
        """

    def pend(self, line: int | str) -> None:
        """Make an interrupt pending once."""

    def set_level(self, line: int | str, on: bool) -> None:
        """Say whether a device asks for an interrupt now."""

    def after(self, instructions: int, function: Callable[[], object]) -> Callable[[], None]:
        """Call a function when so many more instructions have been executed. Returns what cancels
        that.
        """


class Wires(Protocol):
    """A machine, as its devices see it."""

    @property
    def regs(self) -> Any:
        """The CPU's registers."""

    @property
    def interrupts(self) -> InterruptInputs:
        """The interrupts of its CPU."""

    def stop(self) -> None:
        """Stop the run."""
