"""Busy waiting for an answer that is about to come, as long as no other process wants the
processor.

To sleep, and to be woken by another processor, can take as long as the answer: under a hypervisor
an idle processor has to be started.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

LONGEST = 250e-6  #: the longest busy wait in seconds: twice what QEMU takes for a stop
#: A call of LEND that takes longer, in seconds, has let another process run: the wait is given up.
OTHERS = 20e-6
#: Busy waits in a row without an answer (given up, or too long) until there are none for a while.
TRIALS = 3
#: Seconds without busy waits then. Another process that gets the processor has it for some 3 ms.
REST = 3.0
#: Offers the processor to other processes; None: the system has no such call.
LEND: Callable[[], None] | None = getattr(os, "sched_yield", None)


class Polling:
    """Reads from a file descriptor in non-blocking mode, with a short busy wait.

    Busy waits that come to nothing several times in a row are left out for 3 seconds (REST).
    """

    def __init__(self, lend: Callable[[], None] | None = LEND) -> None:
        """Prepare; nothing is read.

        Args:
            lend: () offers the processor to other processes; None: there are no busy waits.
        """
        self._lend = lend
        self._failed = 0  # busy waits in a row without an answer
        self._asleep = 0.0  # time of the next busy wait, by the performance counter

    def read(self, channel: int, size: int, seconds: float) -> bytes | None:
        """Read what comes within a busy wait of at most 250 us.

        Args:
            channel: the file descriptor.
            size: the most bytes to read.
            seconds: how long to wait at most.

        Returns:
            The bytes; b"" at the end of the stream. None: nothing has come, or no busy wait is made
            at present; the caller should wait in a system call.

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
