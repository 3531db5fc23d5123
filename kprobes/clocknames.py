"""Names of the clocks that tell the times of hits, as users write them."""

from __future__ import annotations

from typing import Final

#: the host's, in nanoseconds
HOST_CLOCK: Final = "host"
#: the guest's instructions so far; see Clock in machine/_base.py
INSTRUCTION_CLOCK: Final = "instructions"
