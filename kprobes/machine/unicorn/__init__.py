"""Guest code in the Unicorn engine."""

from .guests.guest import (
    Blocks,
    Breakpoint,
    Checks,
    Contexts,
    Cpu,
    Faults,
    Guest,
    Interrupts,
    Mapped,
    Pc,
    RegisterFile,
    Runs,
    SystemCalls,
)
from .guests.rows import GUESTS
from .machine import UnicornMachine

__all__ = ["GUESTS", "Blocks", "Breakpoint", "Checks", "Contexts", "Cpu", "Faults", "Guest", "Interrupts", "Mapped", "Pc", "RegisterFile",
           "Runs", "SystemCalls", "UnicornMachine"]
