"""Guest code in the Unicorn engine.

Begin with `parts`, which makes the parts of a machine and hands each what it needs, then `reports`,
where the engine's hooks arrive, and `runner`. What a row of facts consists of is in
guests/guest.py. The core is the part of the library that serves probes (kprobes.core); it receives
the engine's reports, as the sink.
"""

from .guests.guest import Guest
from .guests.rows import GUESTS
from .machine import UnicornMachine

__all__ = ["GUESTS", "Guest", "UnicornMachine"]
