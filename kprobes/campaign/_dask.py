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
    """Lets a dask worker tell the campaign which item of a batch it works at.

    Attributes:
        topic: topic of dask's events, one for each campaign.
        number: number of the batch.
    """

    topic: str
    number: int

    @contextmanager
    def sent(self) -> Iterator[Callable[[int], None]]:
        """Send signs from a thread of the worker while a with block runs: the first at once, then
        one every SIGNS seconds.

        A sign is an event of dask's with `topic`: (`number`, index of the item that is worked at,
        the worker's address).

        Yields:
            A function to call before each item, with the item's index in the batch.
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
    """An Executor over a dask client, which knows the state of each task.

    Futures are resolved by poll() alone, in the thread that calls it.

    Attributes:
        happened: when a worker was heard of last, by time.monotonic().
    """

    def __init__(self, client: Any, options: dict[str, Any]) -> None:
        """Subscribe to the signs of the client's workers; with a client too old for that, go
        without.

        Args:
            client: a `distributed.Client`.
            options: keyword arguments for its submit(), as get_executor() was given them.
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
        """Take a worker's sign: note which item it works at. Called in dask's thread.

        Args:
            event: (time, (number of the batch, index of the item in it, the worker's address)).
        """
        number, index, address = event[1]
        if self._begun.get(number, (-1, 0.0))[0] != index:
            self._begun[number] = index, time.monotonic()
            self.happened = time.monotonic()
        self._where[number] = address

    def sign_of(self, number: int) -> Sign:
        """Return the Sign that is sent to the worker with batch `number`."""
        return Sign(self._topic, number)

    def begun(self, number: int) -> tuple[int, float] | None:
        """Return which item of a batch is worked at.

        Args:
            number: number of the batch.

        Returns:
            (index of the item in the batch, time.monotonic() of the first sign of it); None: no
            sign of the batch has come.
        """
        return self._begun.get(number)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit fn(*args, **kwargs) as a task.

        The future says at once that it is running, since dask does not tell when it really is.
        """
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self._tasks[future] = self._client.submit(fn, *args, **kwargs, **self._options)
        return future

    def give_up(self, future: Future[Any], number: int) -> None:
        """Give up a batch's task: cancel it, and have its worker's process restarted.

        A worker without a nanny cannot be restarted: its task is not cancelled but kept, since the
        worker would be given other tasks, which would have to wait behind it. The same is done
        where dask does not say where the batch runs. Where the task has ended, nothing is done.

        Args:
            future: what submit() returned for the batch; it is not resolved any more.
            number: number of the batch.
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
        """Have dask restart a worker's process, which takes seconds; errors are ignored.

        Args:
            address: dask's address of the worker.
        """
        with suppress(Exception):  # the cluster may be closed meanwhile
            self._client.restart_workers([address], raise_for_error=False)

    def poll(self) -> None:
        """Ask dask for the state of all tasks, and resolve the futures of those that have ended.

        Such a task is forgotten, `happened` becomes now, and its future has its result or its
        error. A task whose finished result does not come within _FETCH seconds, since its worker
        has died, is asked for again by the next call.
        """
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
        """Forget the task of a future, resolve the future with an error, and set
        `happened` to now.
        """
        del self._tasks[future]
        self.happened = time.monotonic()
        future.set_exception(error)


def by_states(executor: Executor) -> Executor:
    """Replace dask's own executor by a DaskStates over its client; return any other as it is.

    Tasks of the DaskStates are submitted with `pure=False` and what options the executor had.
    """
    kind = type(executor)
    if kind.__module__ == "distributed.cfexecutor" and kind.__name__ == "ClientExecutor":
        given: Any = executor
        return DaskStates(given._client, {"pure": False, **given._kwargs})
    return executor
