"""Ctrl-C while the guest runs.

Python runs its signal handlers between bytecodes, and a running guest executes none; inside a callback a
KeyboardInterrupt could strike between any two steps of the core. So for the length of a run SIGINT only sets a flag and
stops the engine; the run raises KeyboardInterrupt when the guest has come to rest. A second Ctrl-C is raised at once.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class _Watcher:
    """A thread that calls `stop` when the C-level signal handler writes to the wake-up pipe."""

    def __init__(self) -> None:
        self._read, self.write = os.pipe()
        os.set_blocking(self.write, False)
        self.stop: Callable[[], None] | None = None
        self.lock = threading.Lock()  # held while stop runs: it must not reach beyond its own run
        threading.Thread(target=self._watch, daemon=True, name="kprobes-sigint").start()

    def _watch(self) -> None:
        while os.read(self._read, 1):
            with self.lock:
                if self.stop is not None:
                    self.stop()


_watcher: _Watcher | None = None
_pid = 0


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """While inside, Ctrl-C calls stop(); the value tells whether it did. Elsewhere than in the main thread: no effect."""
    global _watcher, _pid
    hit = False
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield lambda: False
        return

    def on_sigint(number: int, frame: Any) -> None:
        nonlocal hit
        if hit:
            usual(number, frame)
        hit = True
        stop()

    if _watcher is None or _pid != os.getpid():
        _watcher, _pid = _Watcher(), os.getpid()
    _watcher.stop = stop
    old = signal.set_wakeup_fd(_watcher.write, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, on_sigint)
    try:
        yield lambda: hit
    finally:
        signal.signal(signal.SIGINT, usual)
        signal.set_wakeup_fd(old)
        with _watcher.lock:
            _watcher.stop = None
