"""Guest code in the Unicorn engine. What a row of it consists of is in guests/guest.py."""

from .guests.guest import Guest
from .guests.rows import GUESTS
from .machine import UnicornMachine

__all__ = ["GUESTS", "Guest", "UnicornMachine"]
