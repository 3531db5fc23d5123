"""Guest code in the Unicorn engine."""

from .guests.rows import GUESTS, Guest
from .machine import UnicornMachine

__all__ = ["GUESTS", "Guest", "UnicornMachine"]
