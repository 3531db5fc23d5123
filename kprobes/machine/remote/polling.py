"""Waiting for an answer that is about to come: awake, as long as nobody else wants the processor.

To sleep, and to be woken by another processor, can take as long as the answer: under a hypervisor an idle processor has
to be started.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

LONGEST = 250e-6  #: seconds awake in one wait: twice what QEMU takes for a stop
OTHERS = 20e-6  #: seconds for which the processor is lent where somebody takes it
TRIALS = 3  #: waits one after the other that somebody takes it in, or that last longer; then all are asleep
REST = 3.0  #: seconds of that. Who takes the processor has it for some 3 ms
#: gives the processor to others that want it; None: nobody can
LEND: Callable[[], None] | None = getattr(os, "sched_yield", None)


class Polling:
    """Reads from one channel, which is not blocking."""

    def __init__(self, lend: Callable[[], None] | None = LEND) -> None:
        """lend: None: all waits are asleep."""
        self._lend, self._failed, self._asleep = lend, 0, 0.0

    def read(self, channel: int, size: int, seconds: float) -> bytes | None:
        """What comes, b"" at the end; None: sleep until something does. Raises OSError."""
        lend, now = self._lend, time.perf_counter()
        if lend is None or now < self._asleep:
            return None
        end, waited = now + min(seconds, LONGEST), False
        while now < end:
            try:
                data = os.read(channel, size)
            except BlockingIOError:
                lend()
            else:
                self._failed *= not waited
                return data
            before, now, waited = now, time.perf_counter(), True
            if now - before > OTHERS:
                break
        self._failed += 1
        if self._failed >= TRIALS:
            self._failed, self._asleep = 0, now + REST
        return None
