"""Watches a single instruction's run: handlers that note what they see, and a clock."""

from __future__ import annotations

import threading
import time
from typing import Any

from ..machine.unicorn.machine import UnicornMachine
from ..regs import Regs
from ._difference import registers

PATIENCE = 2.0  # seconds of the processor's until an instruction that never ends is stopped


class Watcher:
    """Handlers of the probe under test, which note where they ran.

    Attributes:
        pres: pc at each run of the pre_handler.
        posts: pc at each run of the post_handler.
        values: register name -> value, as the pre_handler read them last; None: clear() did not ask
            for them.
    """

    def __init__(self) -> None:
        self.clear(values=False)

    def clear(self, *, values: bool) -> None:
        """Forget what was noted.

        Args:
            values: True: note the registers, too, from now on.
        """
        self.pres: list[int] = []
        self.posts: list[int] = []
        self.values: dict[str, int] | None = None
        self._want = values

    def pre(self, p: Any, regs: Regs) -> None:
        """Be the pre_handler: note pc, and the registers where they are wanted."""
        self.pres.append(regs.pc)
        if self._want:
            self.values = registers(regs)

    def post(self, p: Any, regs: Regs, flags: int) -> None:
        """Be the post_handler: note pc."""
        self.posts.append(regs.pc)


class Watchdog:
    """Stops a run that does not end within PATIENCE seconds of CPU time.

    Write `with watchdog:` around each run.

    Args:
        machine: the machine that runs.
    """

    def __init__(self, machine: UnicornMachine) -> None:
        self._machine = machine
        self._runs = 0
        self._running = False
        self._done = threading.Event()
        threading.Thread(target=self._watch, daemon=True, name="kprobes-bench").start()

    def __enter__(self) -> None:
        self._runs += 1
        self._running = True

    def __exit__(self, *exc: object) -> None:
        self._running = False

    def close(self) -> None:
        """End the thread that watches."""
        self._done.set()

    def _watch(self) -> None:
        """Stop the machine once a run has taken PATIENCE seconds of CPU time; runs in a thread of
        its own.

        A run is timed from when this thread first sees it: most end before, and the processor's
        time is dear to ask for where a process has many threads.
        """
        seen, since = 0, 0.0
        while not self._done.wait(PATIENCE / 4):
            now = time.process_time()
            if self._runs != seen or not self._running:
                seen, since = self._runs, now
            elif now - since > PATIENCE:
                self._machine.stop()
