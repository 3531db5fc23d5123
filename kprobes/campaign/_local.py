"""Processes of this machine, by pebble."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from ..arguments import looking
from ..errors import Unsupported

#: How processes begin: of those of a server, Python 3.14's own choice on Linux, pebble waits for
#: ever for one that dies
START = "fork" if sys.platform == "linux" else None


class Local(Executor):
    """An Executor over processes that die alone: what crashes or exceeds its time costs one task.

    Attributes:
        workers: how many.
        timeout: seconds a task may take, or None; its process is killed then.
    """

    def __init__(self, workers: int, timeout: float | None) -> None:
        try:
            from pebble import ProcessPool
        except ImportError:
            raise Unsupported(
                "processes of this machine need the package pebble",
                hint="pip install 'kprobes[campaign]'",
                python="or give an executor",
            ) from None
        self.workers = workers
        self.timeout = timeout
        self._pool = ProcessPool(max_workers=workers, context=multiprocessing.get_context(START))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run fn(*args, **kwargs) in a process. A future whose time is over raises TimeoutError."""
        future: Future[Any] = self._pool.schedule(
            fn, args=args, kwargs=kwargs, timeout=self.timeout
        )
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; no task can be submitted afterwards.

        Args:
            wait: return when all processes have ended.
            cancel_futures: True: processes that work are killed; False: they end their tasks first.
        """
        if cancel_futures:
            self._pool.stop()
        else:
            self._pool.close()
        if wait:
            self._pool.join()


@looking
def local(jobs: int | None = None, timeout: float | None = None) -> Local:
    """Make an executor over processes of this machine, which several run() may use in a row.

    Args:
        jobs: number of processes; None: one for each processor.
        timeout: seconds that a task may take; None: no limit.

    Raises:
        Unsupported: pebble is not installed.
    """
    return Local(jobs or os.cpu_count() or 1, timeout)
