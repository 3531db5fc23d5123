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
    """An Executor over processes of this machine, each of which may die alone.

    A task that crashes its process, or takes too long, fails alone.

    Attributes:
        workers: how many processes there are.
        timeout: seconds that a task may take before its process is killed; None: no limit.
    """

    def __init__(self, workers: int, timeout: float | None) -> None:
        """Make the pool of processes.

        Args:
            workers: how many processes.
            timeout: seconds that a task may take; None: no limit.

        Raises:
            Unsupported: pebble is not installed.
        """
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
        """Have fn(*args, **kwargs) called in a process, and return a future of its result.

        The future raises TimeoutError where the task takes longer than `timeout`, and pebble's
        ProcessExpired where its process dies.
        """
        future: Future[Any] = self._pool.schedule(
            fn, args=args, kwargs=kwargs, timeout=self.timeout
        )
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; no task can be submitted afterwards.

        Args:
            wait: True: return when all processes have ended; False: return at once.
            cancel_futures: True: processes that work are killed; False: they end their tasks first.
        """
        if cancel_futures:
            self._pool.stop()
        else:
            self._pool.close()
        if wait:
            self._pool.join()


@looking
def local(jobs: int | None = None, timeout: float | None = None) -> Executor:
    """Make an executor over processes of this machine, which several run() may use in a row.

    Args:
        jobs: number of processes; None: one for each processor.
        timeout: seconds that a task may take; None: no limit.

    Raises:
        Unsupported: pebble is not installed.
    """
    return Local(jobs or os.cpu_count() or 1, timeout)
