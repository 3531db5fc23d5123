"""Items through an executor: a few at a time, in whatever order they finish, each with its own
fate.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack, nullcontext
from itertools import islice
from typing import Any, Generic, TypeVar
from uuid import uuid4

from attrs import define, field, frozen

from ..arguments import looking
from ..errors import BadArgument
from ._dask import SIGNS, DaskStates, Sign, by_states
from ._limits import check_limit, limited
from ._local import Local, local

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH_SECONDS = 0.05  # what a batch is to take: far more than handing it over does
LARGEST_BATCH = 256
# of others' workers: a scheduler takes milliseconds for each
CLUSTER_SECONDS, CLUSTER_BATCH = 1.0, 8192
# of what is left each worker has so many batches to come, at least: all end at about the same time
SHARES = 2
WINDOW = 3  # batches under way for each worker: one that runs, and some that wait for it
_TICK = 0.2  # seconds between looks at what is overdue
_LOOK = 0.02  # seconds between looks at the states of dask's tasks
# seconds, beyond the timeout, in which no worker of dask begins anything: all of them hang
_SILENCE = 60.0


@frozen
class Outcome(Generic[Item, Result]):
    """The result or the error of an item.

    Attributes:
        item: as given.
        result: what the job returned, or None.
        error: what it raised, or what ended its process, or None.
        seconds: how long it took; of an item that was given up, how long it was waited for; of one
            whose worker died, the timeout, or 0.0 without one.
    """

    item: Item
    result: Result | None
    error: BaseException | None
    seconds: float

    @property
    def ok(self) -> bool:
        """True where the job returned."""
        return self.error is None


@looking
def run(
    job: Callable[[Item], Result],
    items: Iterable[Item],
    executor: Executor | None = None,
    timeout: float | None = None,
    *,
    jobs: int | None = None,
    memory: int | None = None,
) -> Iterator[Outcome[Item, Result]]:
    """Call `job(item)` for every item in worker processes; yield outcomes as they are ready.

    Each item has one outcome; they come in no order.

    Items are taken from the iterable as workers become free: it may be endless. Short ones travel
    in batches; where a batch dies, each of its items is tried alone, so that a crash or a hang of
    the engine costs the item that caused it.

    Args:
        job: a function or object that can be pickled; so must its results. What it raises is that
            item's `error`. Where it has a method flush(), that is called in the worker after each
            batch, before outcomes go home.
        items: objects that can be pickled.
        executor: any `concurrent.futures.Executor`, for instance dask's `Client.get_executor()`; it
            is not shut down. None: processes of this machine, by pebble.
        timeout: seconds that an item may take. On this machine its process is killed then, and
            dask's worker begins anew where it has a nanny; another executor's worker is left to
            itself, as it cannot be stopped from here, and the item is given up.
        jobs: processes, or the executor's workers as far as they are known; None: one for each
            processor.
        memory: bytes of memory that an item may take beyond what its worker has before it. What
            asks for more gets a MemoryError, or ends its process where it cannot go on without; on
            Linux, and with a thread for each worker.

    Raises:
        BadArgument: a `timeout`, `memory` or number of `jobs` that is not positive.
        Unsupported: neither an executor nor pebble; `memory` on a system that has no such limit.
    """
    if timeout is not None and not timeout > 0:
        raise BadArgument(
            f"a timeout of {timeout} seconds leaves no time", hint="give a positive number, or None"
        )
    if jobs is not None and jobs < 1:
        raise BadArgument(f"{jobs} processes do no work", hint="give 1 or more")
    check_limit(memory)
    count = len(items) if isinstance(items, Sized) else None
    return _outcomes(job, iter(items), executor, timeout, jobs, memory, count)


def _outcomes(
    job: Callable[[Any], Any],
    items: Iterator[Any],
    executor: Executor | None,
    timeout: float | None,
    jobs: int | None,
    memory: int | None,
    left: int | None,
) -> Iterator[Outcome[Any, Any]]:
    """Yield an outcome for each item as it is ready: run() after its checks.

    Args:
        job: what is done for each item.
        items: the items.
        executor: runs batches; None: processes of this machine, which are ended at the end.
        timeout: seconds that an item may take; None: no limit.
        jobs: number of workers; None: one for each processor.
        memory: bytes that an item may take beyond what its worker has; None: no limit.
        left: number of items; None: it is not known.
    """
    with ExitStack() as stack:
        if executor is None:
            executor = own = local(jobs, timeout)
            stack.callback(own.shutdown, cancel_futures=True)
        workers = jobs or os.cpu_count() or 1
        yield from _Run(job, items, by_states(executor), timeout, workers, left, memory).outcomes()


@define(eq=False)
class _Batch:
    """Items that are handed to a worker together.

    Attributes:
        items: the items.
        alone: True where nothing else is under way: if a worker dies, these items are the cause.
        since: time.monotonic() when the items began to run, as far as can be told; None: not yet.
        number: number of the batch, from 1.
    """

    items: list[Any]
    alone: bool = False
    since: float | None = None
    number: int = 0


@frozen(eq=False)
class Work:
    """A batch as it is sent to a worker: one object, into which executors do not look.

    Attributes:
        job: called with each item.
        items: the items.
        memory: bytes that an item may take beyond what the worker has; None: no limit.
        sign: tells the campaign which item is worked at; None: it is not told.
    """

    job: Callable[[Any], Any]
    items: list[Any]
    memory: int | None = None
    sign: Sign | None = None

    def __dask_tokenize__(self) -> str:
        """Return a new text, by which dask takes this batch for unlike any other.

        Otherwise dask reads every item, to do batches with the same items only once.
        """
        return uuid4().hex


@frozen(eq=False)
class Fates:
    """The outcomes of a batch, as the worker sends them back: one object, as Work is.

    Attributes:
        of: (result or None, error or None, seconds) of each item, in their order.
    """

    of: list[tuple[Any, BaseException | None, float]]


@define
class _Run:
    """The loop that hands batches of items to an executor, and gathers their outcomes.

    Attributes:
        job: called with each item, in a worker.
        items: the items that were not handed over yet.
        executor: runs batches.
        timeout: seconds that an item may take; None: no limit.
        workers: how many workers there are.
        left: number of items that were not handed over; None: it is not known.
        memory: bytes that an item may take beyond what its worker has; None: no limit.
        batches: how many batches were handed over.
        size: how many items the next batch has.
        short: how many items a batch has at least where few are left.
        singly: items to be tried alone, since their batch died.
        suspects: items whose batch of one died while other batches were under way, so that another
            item may be the cause.
        under_way: future of a batch that was handed over -> the batch.
        killed_in_time: True where the executor itself ends items that take too long.
        batch_seconds: seconds that a batch is to take.
        largest: how many items a batch has at most.
    """

    job: Callable[[Any], Any]
    items: Iterator[Any]
    executor: Executor
    timeout: float | None
    workers: int
    left: int | None
    memory: int | None = None
    batches: int = 0
    size: int = 1
    short: int = 1
    singly: list[Any] = field(factory=list)
    suspects: list[Any] = field(factory=list)
    under_way: dict[Future[Any], _Batch] = field(factory=dict)
    killed_in_time: bool = field(init=False)  # the executor sees to the timeout
    batch_seconds: float = BATCH_SECONDS
    largest: int = LARGEST_BATCH

    def __attrs_post_init__(self) -> None:
        self.killed_in_time = isinstance(self.executor, Local)
        # else a large batch were late to be given up
        if not self.killed_in_time and self.timeout is None:
            self.batch_seconds = CLUSTER_SECONDS
            self.largest = CLUSTER_BATCH

    def outcomes(self) -> Iterator[Outcome[Any, Any]]:
        """Do all items: hand over batches, wait for them, and yield each item's outcome once known.

        Items whose batch has died are handed over again, each alone. Where the executor does not
        end late items itself, they are given up here. The loop ends when no item is left and no
        batch is under way.
        """
        while True:
            while len(self.under_way) < WINDOW * self.workers and (batch := self._next()):
                self._hand_over(batch)
            if not self.under_way:
                return
            for future in self._ended():
                yield from self._finished(future, self.under_way.pop(future))
            yield from self._overdue()

    def _hand_over(self, batch: _Batch) -> None:
        """Give a batch its number, submit it to the executor, and add it to `under_way`.

        With a DaskStates and a timeout its worker is told to send signs (Sign).
        """
        batch.number = self.batches = self.batches + 1
        by_signs = isinstance(self.executor, DaskStates) and self.timeout is not None
        sign = (
            self.executor.sign_of(batch.number)
            if by_signs and isinstance(self.executor, DaskStates)
            else None
        )
        self.under_way[
            self.executor.submit(attempt, Work(self.job, batch.items, self.memory, sign))
        ] = batch

    def _ended(self) -> set[Future[Any]]:
        """Wait until a batch has ended, or it is time to call _overdue().

        A DaskStates is polled once; if no batch has ended, _LOOK seconds are waited.

        Returns:
            The futures of batches that have ended; perhaps none.
        """
        if not isinstance(self.executor, DaskStates):
            patience = _TICK if self.timeout and not self.killed_in_time else None
            return wait(self.under_way, patience, FIRST_COMPLETED).done
        self.executor.poll()
        done = {future for future in self.under_way if future.done()}
        if not done:
            time.sleep(_LOOK)
        return done

    def _next(self) -> _Batch | None:
        """Take the items of the next batch from those that wait; return None where no batch can be
        handed over now, or no item is left.

        Items whose batch died come first, each alone. Items that died alone are tried again when
        nothing else is under way; while one of these is, no batch is handed over. Else the batch
        has `size` items, or fewer where few are `left`.
        """
        if any(batch.alone for batch in self.under_way.values()):
            return None
        if self.singly:
            return _Batch([self.singly.pop(0)])
        if self.suspects:
            return None if self.under_way else _Batch([self.suspects.pop(0)], alone=True)
        size = self.size
        if self.left is not None:
            size = min(size, max(self.short, self.left // (SHARES * self.workers)))
            self.left -= size
        items = [*islice(self.items, size)]
        return _Batch(items) if items else None

    def _finished(self, future: Future[Any], batch: _Batch) -> Iterator[Outcome[Any, Any]]:
        """Yield the outcomes of a batch that has ended, and adapt the size of further batches.

        Where a batch of several items has died, nothing is yielded: `size` becomes 1, and its items
        go to `singly`, to be tried alone. A batch of one item that has died has the error as
        outcome, if the executor is a Local or nothing else was under way; else another batch may be
        the cause, and the item goes to `suspects`, to be tried when nothing else is under way.

        Args:
            future: the batch's future, which is done.
            batch: the batch.
        """
        try:
            fates = future.result().of
        except (Exception, CancelledError) as error:
            if len(batch.items) > 1:
                self.size = 1
                self.singly += batch.items
            elif not self.killed_in_time and not batch.alone:
                self.suspects += batch.items
            else:
                yield Outcome(
                    batch.items[0], None, _outcome_error(error, self.timeout), self.timeout or 0.0
                )
            return
        spent = sum(seconds for _, _, seconds in fates)
        in_second = len(fates) / max(spent, 1e-9)
        self.size = max(1, min(self.largest, 2 * self.size, int(self.batch_seconds * in_second)))
        self.short = max(1, min(self.size, int(BATCH_SECONDS * in_second)))
        for item, fate in zip(batch.items, fates, strict=True):
            yield Outcome(item, *fate)

    def _overdue(self) -> Iterator[Outcome[Any, Any]]:
        """Give up items that take longer than `timeout`, and yield their outcomes.

        Nothing is done where the executor itself ends such items.

        The other items of their batches go to `singly`, to be tried alone; so do all items of a
        batch of which it is not known which one takes so long.
        """
        if self.timeout is None or self.killed_in_time:
            return
        now = time.monotonic()
        for place, (future, batch) in enumerate([*self.under_way.items()]):
            # A batch is made to take a moment, and what is given up with others is tried alone
            patience = self.timeout + (self.batch_seconds if len(batch.items) > 1 else 0)
            culprit = None if len(batch.items) > 1 else 0  # index of the item that takes so long
            if isinstance(self.executor, DaskStates):
                culprit, batch.since = self.executor.begun(batch.number) or (culprit, None)
                patience = self.timeout + SIGNS
                if batch.since is None and now - self.executor.happened > self.timeout + _SILENCE:
                    batch.since = self.executor.happened
            elif batch.since is None and (
                future.done() or (place < self.workers and future.running())
            ):
                batch.since = now
            if batch.since is not None and now - batch.since > patience and not future.done():
                del self.under_way[future]
                future.cancel()
                if isinstance(self.executor, DaskStates):
                    self.executor.give_up(future, batch.number)
                if len(batch.items) > 1:
                    self.size = 1
                self.singly += [item for n, item in enumerate(batch.items) if n != culprit]
                if culprit is not None:
                    late = TimeoutError(f"no result within {self.timeout:g} seconds")
                    yield Outcome(batch.items[culprit], None, late, now - batch.since)


def attempt(work: Work) -> Fates:
    """Do a batch of work: call the job with each item, then its flush(). Runs in a worker.

    Args:
        work: the batch.

    Returns:
        The outcome of each item, in their order; an Exception of the job is that item's error.

    Raises:
        Exception: flush() has failed; then there are no outcomes.
    """
    job = work.job
    fates: list[tuple[Any, BaseException | None, float]] = []
    with nullcontext(_silent) if work.sign is None else work.sign.sent() as begins:
        for index, item in enumerate(work.items):
            begins(index)
            start = time.perf_counter()
            try:
                with limited(work.memory):
                    result, error = job(item), None
            except Exception as raised:
                result, error = None, _portable(raised)
            fates.append((result, error, time.perf_counter() - start))
    if hasattr(job, "flush"):
        job.flush()  # where it fails the batch does: each of its items is tried alone
    return Fates(fates)


def _silent(index: int) -> None:
    """Do nothing. Called with an item's index as it begins, where nothing is to be announced."""


def _portable(error: Exception) -> Exception:
    """Return an error that can be pickled: the same, or a RuntimeError with its class and message.

    The error loses its traceback, cause and context.
    """
    import pickle

    error.__traceback__ = None
    error.__cause__ = None
    error.__context__ = None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _outcome_error(error: BaseException, timeout: float | None) -> BaseException:
    """Return the error that an outcome reports in place of a future's exception.

    Timeouts become a TimeoutError, dead workers and processes a ChildProcessError, each with a
    sentence; any other error is returned as it is.

    Args:
        error: what the future raised.
        timeout: seconds that an item may take; None: there is no limit.
    """
    if isinstance(error, (FutureTimeout, TimeoutError)):
        return TimeoutError(
            f"no result within {timeout:g} seconds"
            if timeout
            else str(error) or "no result in time"
        )
    if type(error).__name__ == "KilledWorker":  # dask's
        return ChildProcessError("its worker died")
    if type(error).__name__ == "ProcessExpired":
        import signal

        code = getattr(error, "exitcode", 0)
        died = f"of {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return ChildProcessError(f"its process died {died}")
    return error
