"""dask's workers, asked for the state of each task.

The executor that dask has itself resolves a future in a callback. Where a worker dies while its
result is on the way, that callback raises, and the future is never resolved. Nor does dask tell
when a task begins: workers send signs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any, Final
from uuid import uuid4

from attrs import frozen

#: seconds that a finished result may take to come; it is asked for again then
_FETCH: Final = 10.0
#: seconds between signs of one batch
SIGNS: Final = 0.25


@frozen
class Sign:
    """A worker's way to announce the item of a batch that it works at.

    Attributes:
        topic: of dask's events, one for each campaign.
        number: of the batch.
    """

    topic: str
    number: int

    @contextmanager
    def sent(self) -> Iterator[Callable[[int], None]]:
        """Send signs from a thread of the worker while the body runs, the first at once.

        Yields a function to call before each item, with the item's index in the batch.
        """
        from distributed import get_worker

        worker, over, at = get_worker(), Event(), [0]

        def send() -> None:
            """Send a sign every SIGNS seconds until the batch is over."""
            while True:
                worker.log_event(self.topic, (self.number, at[0], worker.address))
                if over.wait(SIGNS):
                    return

        def begins(index: int) -> None:
            at[0] = index

        Thread(target=send, daemon=True).start()
        try:
            yield begins
        finally:
            over.set()


class DaskStates(Executor):
    """Tasks of a dask client. Futures are resolved by `look()` alone, in the thread that calls it.

    Attributes:
        happened: when a worker was heard of last, by time.monotonic().
    """

    def __init__(self, client: Any, options: dict[str, Any]) -> None:
        """
        Args:
            client: a `distributed.Client`.
            options: of its submit(), as get_executor() was given them.
        """
        self._client = client
        self._options = options
        self._tasks: dict[Future[Any], Any] = {}
        # kept: a worker whose task is forgotten is given others, which wait behind it
        self._hung: list[Any] = []
        self._topic = f"kprobes-{uuid4().hex}"
        self._begun: dict[int, tuple[int, float]] = {}
        self._where: dict[int, str] = {}
        self.happened = time.monotonic()
        with suppress(AttributeError):  # an old client: timeouts begin when a task is handed over
            client.subscribe_topic(self._topic, self._sign)

    def _sign(self, event: tuple[float, Any]) -> None:
        """Note which item a worker is at, from a sign. Called in dask's thread.

        Args:
            event: (time, (number of the batch, index of the item in it, the worker's address)).
        """
        number, index, address = event[1]
        if self._begun.get(number, (-1, 0.0))[0] != index:
            self._begun[number] = index, time.monotonic()
            self.happened = time.monotonic()
        self._where[number] = address

    def sign_of(self, number: int) -> Sign:
        """Return the values that the worker of batch `number` needs to send signs."""
        return Sign(self._topic, number)

    def begun(self, number: int) -> tuple[int, float] | None:
        """Return (index in batch `number` of the item that is worked at, when it was first heard
        of, by time.monotonic()); None: no worker has begun the batch.
        """
        return self._begun.get(number)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Begin a task. Its future says at once that it runs, since dask does not tell when it
        does.
        """
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self._tasks[future] = self._client.submit(fn, *args, **kwargs, **self._options)
        return future

    def give_up(self, future: Future[Any], number: int) -> None:
        """Wait for a batch's task no more: cancel it, and have its worker's process restarted.

        A worker without a nanny cannot be restarted: its task is not cancelled but kept, since the
        worker would be given other tasks, which had to wait behind it.

        Args:
            future: what submit() returned for the batch; it is not resolved.
            number: of the batch.
        """
        task = self._tasks.pop(future, None)
        if task is None:
            return
        address = self._where.get(number)
        with suppress(Exception):  # the scheduler may be gone
            known = self._client.scheduler_info(n_workers=-1)["workers"]
            if address is not None and known.get(address, {}).get("nanny"):
                task.cancel()
                Thread(target=self._restart, args=(address,), daemon=True).start()
                return
        self._hung.append(task)

    def _restart(self, address: str) -> None:
        """Have a worker's process killed and another one begun. In a thread of its own: it takes
        seconds.
        """
        with suppress(Exception):  # the cluster may be closed meanwhile
            self._client.restart_workers([address], raise_for_error=False)

    def look(self) -> None:
        """Resolve the futures of tasks that have ended since."""
        for future, task in [*self._tasks.items()]:
            status = task.status
            if status in ("pending", "lost"):  # lost: another worker does it again
                continue
            try:
                result = task.result(timeout=_FETCH)
            except (FutureTimeout, TimeoutError) as error:
                if status == "finished":  # its worker has died meanwhile
                    continue
                self._end(future, error)
            except (Exception, CancelledError) as error:
                self._end(future, error)
            else:
                del self._tasks[future]
                self.happened = time.monotonic()
                future.set_result(result)

    def _end(self, future: Future[Any], error: BaseException) -> None:
        """Forget a task, and let its future raise an error."""
        del self._tasks[future]
        self.happened = time.monotonic()
        future.set_exception(error)


def by_states(executor: Executor) -> Executor:
    """Return a DaskStates over the client of a dask executor; any other executor as it is."""
    kind = type(executor)
    if kind.__module__ == "distributed.cfexecutor" and kind.__name__ == "ClientExecutor":
        given: Any = executor
        return DaskStates(given._client, {"pure": False, **given._kwargs})
    return executor
