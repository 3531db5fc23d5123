"""Jobs that campaigns are made for: a call with each input, a check of each file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ..arguments import SORTS, checked, look, shown
from ..errors import BadArgument, Unsupported
from ._dataset import Recorded

if TYPE_CHECKING:
    from ..kprobes import Kprobes

_MACHINES = 4  # that a process keeps


def _texts(words: Iterable[str]) -> tuple[str, ...]:
    """Check that an argument is a list of texts, and return it as a tuple.

    Raises:
        BadArgument: the argument is no list, or one of its items is no text.
    """
    look("a list of texts", words, SORTS["Sequence"])
    if isinstance(words, str):
        raise BadArgument(f"{shown(words)} is no list of texts", hint="pass (text,)")
    for word in (found := tuple(words)):
        look("a text", word, SORTS["str"])
    return found


@checked()
@frozen
class Calls:
    """Call one function of an image with each item, from the same state every time.

    The item is bytes, or the path of a file with them. The machine is loaded once in each process,
    and restored before each item.

    Attributes:
        image: an ELF file.
        call: the call as text, as the command's --call has it: `f(@input, len)`. `@input` is the
            guest address of the item's bytes (a NUL follows), `len` their number.
        events: definitions of events that are counted.
        before: calls, as text, that make the state which every item starts from.
        arch: name of the architecture; None: the file tells it.
        timeout, max_insns: bounds of each run of the guest: seconds, instructions; None: no bound.
        coverage: True to have results say which blocks are executed.
        dataset: a folder that the events' hits are recorded to, for gather(); None: hits are only
            counted.

    Called: {"result": int, "hits": {event: n}, "missed": {event: n}}; with `coverage` also
    {"blocks": addresses, those that this process has not seen before}; with `dataset` also "part"
    and "rows": where gather() finds the records.

    Raises, called: GuestFault, GuestTimeout as `UnicornMachine.call`; EventError for the call or an
    event; ImageError; DatasetError, Unsupported (`dataset` takes the extra `arrow`).
    """

    image: str | os.PathLike[str]
    call: str
    events: tuple[str, ...] = field(default=(), converter=_texts)
    before: tuple[str, ...] = field(default=(), converter=_texts)
    arch: str | None = None
    timeout: float | None = None
    max_insns: int | None = None
    coverage: bool = False
    dataset: str | os.PathLike[str] | None = None

    def __call__(self, item: bytes | str | os.PathLike[str]) -> dict[str, Any]:
        if not isinstance(item, (bytes, bytearray, memoryview, str, os.PathLike)):
            raise BadArgument(f"an input is bytes or a file's path, not {type(item).__name__}")
        content = Path(item).read_bytes() if isinstance(item, (str, os.PathLike)) else bytes(item)
        return _bench(self).run(content, str(item))

    def flush(self) -> None:
        """Write the records of the items so far to the data set; run() does so after each batch.

        Raises:
            DatasetError: the records cannot be written, or were too many; the items since the last
                call are to be done again.
        """
        if self.dataset:
            _bench(self).flush()


class _Bench:
    """A worker process's machine for one Calls: loaded, probed, ready to be called again."""

    def __init__(self, job: Calls) -> None:
        """Load the image, make the calls of `before`, arm the events, and take a snapshot.

        Where the library can, the guest becomes a process with the image's path as its argument.

        Args:
            job: what is to be called.

        Raises:
            EventError: the call, one of `before` or an event is wrong.
            ImageError: the image cannot be loaded.
            GuestFault, GuestTimeout: a call of `before` has failed.
            DatasetError, Unsupported: the data set cannot be begun.
        """
        from ..calltext import parse_call
        from ..kprobes import Kprobes
        from ..machine.unicorn.machine import UnicornMachine

        self._job = job
        call = parse_call(job.call, inputs=True)
        self._machine = UnicornMachine.load(job.image, arch=job.arch)
        with suppress(Unsupported):  # where there are processes, their thread-local storage
            self._machine.process((os.fspath(job.image),))
        self._call = call.resolved(self._machine)
        for text in job.before:
            first = parse_call(text).resolved(self._machine)
            self._machine.call(
                first.function, *first.with_input(), timeout=job.timeout, max_insns=job.max_insns
            )
        self._kprobes = Kprobes(self._machine)
        self._events = (
            Recorded(self._kprobes, job.events, os.fspath(job.dataset))
            if job.dataset
            else _Counted(self._kprobes, job.events)
        )
        self._coverage = self._kprobes.coverage() if job.coverage else None
        self._start = self._machine.snapshot()
        self.flush = self._events.flush

    def run(self, content: bytes, name: str) -> dict[str, Any]:
        """Call the function once with an input, from the machine's first state.

        The events' records are assigned to the item even where the call fails.

        Args:
            content: bytes of the input.
            name: name of the item, which its records in a data set get.

        Returns:
            {"result": what the call has returned, "hits" and "missed": event -> number}; with
            coverage also "blocks": addresses of blocks that no call before has executed; with a
            data set also "part" and "rows", as Recorded.end() returns them.

        Raises:
            KprobeError: the call has failed.
        """
        job, events = self._job, self._events
        self._machine.restore(self._start)
        events.begin()
        before = events.counts
        try:
            result = self._machine.call(
                self._call.function,
                *self._call.with_input(content),
                timeout=job.timeout,
                max_insns=job.max_insns,
            )
        finally:
            where = events.end(name)
        counted = {
            event: (hits - before[event][0], missed - before[event][1])
            for event, (hits, missed) in events.counts.items()
        }
        said: dict[str, Any] = {
            "result": result,
            "hits": {event: hits for event, (hits, _) in counted.items()},
            "missed": {event: missed for event, (_, missed) in counted.items()},
            **where,
        }
        if self._coverage is not None:
            said["blocks"] = sorted(block.address for block in self._coverage.new())
        return said


class _Counted:
    """Events of a worker's machine that are only counted; used in place of a Recorded.

    Attributes:
        counts: event's name -> (hits, missed) so far.
    """

    def __init__(self, k: Kprobes, events: tuple[str, ...]) -> None:
        """Arm the events.

        Args:
            k: the Kprobes of the worker's machine.
            events: the events' definitions.
        """
        self._events = [k.event(text) for text in events]

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """The hits and misses of each event since it was armed: name -> (hits, missed)."""
        return {event.name: (event.hits, event.missed) for event in self._events}

    def begin(self) -> None:
        pass  # there are no records

    def end(self, item: str) -> dict[str, Any]:
        """Return {}: the item has no rows in a data set."""
        return {}

    def flush(self) -> None:
        pass  # there are no records


@lru_cache(_MACHINES)
def _bench(job: Calls) -> _Bench:
    """Return this process's machine for a job, which the first call loads and probes."""
    return _Bench(job)


@checked()
@frozen
class Checks:
    """Check every instruction of every function of a file, as `kprobes check` does; nothing runs.

    Called with a path: numbers by "files", "functions", "instructions", how these execute ("step",
    "simulate", "step+simulate", "refuse"; see Verdict), "boostable", "optimizable".

    Attributes:
        arch: name of the architecture; None: the files tell it.

    Raises, called: ImageError.
    """

    arch: str | None = None

    def __call__(self, item: str | os.PathLike[str]) -> dict[str, int]:
        if not isinstance(item, (str, os.PathLike)):
            raise BadArgument(f"item is {shown(item)}", hint="pass a file's path")
        from ..inventory import functions, instructions
        from ..kprobes import Kprobes
        from ..machine.unicorn.machine import UnicornMachine

        counts = dict.fromkeys(
            (
                "functions",
                "instructions",
                "step",
                "simulate",
                "step+simulate",
                "refuse",
                "boostable",
                "optimizable",
            ),
            0,
        )
        with UnicornMachine.load(os.fspath(item), arch=self.arch) as machine, Kprobes(machine) as k:
            for function in functions(machine):
                counts["functions"] += 1
                for address in instructions(machine, k, function):
                    verdict = k.check(address)
                    counts["instructions"] += 1
                    counts[verdict.how] += 1
                    counts["boostable"] += verdict.boostable
                    counts["optimizable"] += verdict.optimizable
        return {"files": 1, **counts}
