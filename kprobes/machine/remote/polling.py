"""Busy waiting for an answer that is about to come, as long as no other process wants the
processor.

To sleep, and to be woken by another processor, can take as long as the answer: under a hypervisor
an idle processor has to be started.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

LONGEST = 250e-6  #: seconds awake in one wait: twice what QEMU takes for a stop
OTHERS = 20e-6  #: seconds for which the processor is lent where another process takes it
#: waits in a row in which another process takes it, or that last longer; then all are asleep
TRIALS = 3
REST = 3.0  #: seconds of that. A process that takes the processor has it for some 3 ms
#: gives the processor to others that want it; None: the system has no such call
LEND: Callable[[], None] | None = getattr(os, "sched_yield", None)


class Polling:
    """Reads from one file descriptor, which does not block."""

    def __init__(self, lend: Callable[[], None] | None = LEND) -> None:
        """Prepare.

        Args:
            lend: gives the processor to other processes; None: all waits are asleep.
        """
        self._lend = lend
        self._failed = 0  # waits in a row that came to nothing
        self._asleep = 0.0  # when the next busy one may be, by the performance counter

    def read(self, channel: int, size: int, seconds: float) -> bytes | None:
        """Return what comes soon.

        Args:
            channel: the file descriptor.
            size: bytes at most.
            seconds: of the wait at most.

        Returns:
            Bytes, b"" at the end; None where the caller is to sleep until something comes.

        Raises:
            OSError: as os.read() does.
        """
        lend = self._lend
        now = time.perf_counter()
        if lend is None or now < self._asleep:
            return None
        end = now + min(seconds, LONGEST)
        waited = False
        while now < end:
            try:
                data = os.read(channel, size)
            except BlockingIOError:
                lend()
            else:
                self._failed *= not waited
                return data
            before = now
            now = time.perf_counter()
            waited = True
            if now - before > OTHERS:
                break
        self._failed += 1
        if self._failed >= TRIALS:
            self._failed = 0
            self._asleep = now + REST
        return None
