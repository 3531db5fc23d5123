"""Names of the clocks that tell the times of hits, as users write them, and when the host's
begins.
"""

from __future__ import annotations

import time
from typing import Final

#: the host's, in nanoseconds
HOST_CLOCK: Final = "host"
#: the guest's instructions so far; see Clock in machine/_base.py
INSTRUCTION_CLOCK: Final = "instructions"


def host_epoch() -> int:
    """Return nanoseconds from 1970 to the beginning of the host's clock, which is the boot.

    The system's time of day may be set while a program runs: what is returned is by the present
    one.
    """
    return time.time_ns() - time.monotonic_ns()
