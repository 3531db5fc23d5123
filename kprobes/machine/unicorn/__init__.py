"""Guest code in the Unicorn engine."""

from .guests.guest import Guest
from .guests.rows import GUESTS
from .machine import UnicornMachine

__all__ = ["GUESTS", "Guest", "UnicornMachine"]
