"""A trace: records of several events, to look at, to keep and to hand to other tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Protocol, overload

from ..arguments import checked, shown
from ..deprecation import FormerName
from ..errors import BadArgument, Unsupported
from ..events._record import Record
from ..names import readable
from ..newfile import NewFile
from ..stacks import INCOMPLETE, MARK, addresses_of, is_incomplete
from .batches import Batch, Row
from .clocks import COUNTER
from .info import EventInfo

if TYPE_CHECKING:
    import numpy
    import pandas
    import pyarrow

    from ..pictures.page import Picture

#: format of export() -> module of this package whose write(trace, file) writes it, and whether it
#: writes bytes
FORMATS: Mapping[str, tuple[str, bool]] = {
    "ftrace": ("text", False),
    "jsonl": ("text", False),
    "csv": ("text", False),
    "chrome": ("timeline", False),
    "perfetto": ("perfetto", True),
    "folded": ("profile", False),
    "speedscope": ("profile", False),
    "svg": ("profile", False),
    "html": ("html", False),
    "parquet": ("parquet", True),
    "otlp": ("spans", False),
    "perf": ("perfscript", False),
}


SHOWN = 20  #: records that a notebook shows


def ready(format: str) -> bool:
    """Return True where a format's files are binary, after the library for it was imported.

    Args:
        format: "arrow", or one of FORMATS.

    Raises:
        Unsupported: the library for the format is not installed.
    """
    from .columns import need

    if format in ("arrow", "parquet"):
        need("pyarrow", "arrow")
        return True
    if format == "perfetto":
        need("numpy", "perfetto")
    return FORMATS[format][1]


def write(trace: Trace, file: IO[Any], format: str, demangle: bool = True) -> None:
    """Write a trace to an open file.

    Args:
        trace: the records.
        file: open for text or for bytes, as ready() tells of the format.
        format: "arrow", or one of FORMATS.
        demangle: as export() takes it.

    Raises:
        Unsupported: the library for the format is not installed.
        OSError: the file cannot be written.
    """
    if format == "arrow":
        from .columns import save

        save(*trace.record_batches(), file)
    else:
        trace.export(file, format, demangle)


def _check_stack(stack: Sequence[int]) -> None:
    """Raise BadArgument for what is no stack of a record."""
    if not all(isinstance(address, int) for address in stack):
        raise BadArgument(f"stack is {shown(stack)}", hint="pass a record's stack: addresses")


class RecordSource(Protocol):
    """The origin of a Trace's records: a ring, or a file's table.

    row(n) gives the n-th oldest record; rows() and batches() give all, the oldest first, one by one
    or in columns. record_batches(names, lines, callers) gives a schema of Arrow and the records by
    it, as Trace.record_batches() does; its arguments are functions from a code address to its name,
    to its source line, and to its name where it is a return address in a stack.

    Attributes:
        infos: the events, by number.
        tasks: what the numbers of tasks in rows stand for, by number.
        lost: number of records that there was no room for.
        clock: the name of the clock that times are by.
        epoch: what is added to times to get nanoseconds since 1970; 0: they are of no host's
            clock, or it is not known.
    """

    infos: Sequence[EventInfo]
    clock: str
    epoch: int

    @property
    def tasks(self) -> Sequence[Any]: ...
    @property
    def lost(self) -> int: ...
    def __len__(self) -> int: ...
    def row(self, n: int) -> Row: ...
    def rows(self) -> Iterator[Row]: ...
    def batches(self) -> Iterator[Batch]: ...
    def record_batches(
        self,
        names: Callable[[int], str],
        lines: Callable[[int], str],
        callers: Callable[[int], str],
    ) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]: ...


@checked("__init__", "name")
class Trace:
    """The records of events, the oldest first: `t[0].args["len"]`, `len(t)`, iteration.

    While events are recorded it grows. When there is no more room the oldest records go: `lost`
    counts these.
    """

    def __init__(
        self,
        source: RecordSource,
        names: Callable[[int], str],
        missed: Callable[[], int] = lambda: 0,
        lines: Callable[[int], str] = lambda address: "",
        callers: Callable[[int], str] | None = None,
    ) -> None:
        """Make a trace of a source's records.

        Args:
            source: the records.
            names: a code address -> what to show for it.
            missed: gives the number of hits that could not be recorded.
            lines: a code address -> its source line, "" where none is known.
            callers: a return address in a stack -> what to show for it: the function that has the
                call before it, which may end there; None: as `names`.
        """
        self._source = source
        self._names = names
        self._callers = names if callers is None else callers
        self._missed = missed
        self._lines = lines
        self._cache: dict[int, str] = {}
        self._demangles = True  # readable() does
        self._caller_cache: dict[int, str] = {}

    # --- looking

    @property
    def events(self) -> tuple[EventInfo, ...]:
        """The events that were recorded."""
        return tuple(self._source.infos)

    @property
    def lost(self) -> int:
        """Number of records that there was no room for."""
        return self._source.lost

    @property
    def missed(self) -> int:
        """Number of hits that were not recorded because another probe was running, or a return
        probe had no instance left.
        """
        return self._missed()

    @property
    def clock(self) -> str:
        """Name of the clock that times are by: "counter" (records have no times), "host" (ns),
        "instructions" (that the guest has executed so far) or "own".
        """
        return self._source.clock

    @property
    def epoch(self) -> int:
        """Nanoseconds from 1970 to the zero of the records' times; 0 where the clock is not "host",
        or a file does not say it.
        """
        return self._source.epoch

    @property
    def timed(self) -> bool:
        """Whether records have a time."""
        return self.clock != COUNTER

    def __len__(self) -> int:
        return len(self._source)

    @overload
    def __getitem__(self, n: int) -> Record: ...
    @overload
    def __getitem__(self, n: slice) -> list[Record]: ...
    def __getitem__(self, n: int | slice) -> Record | list[Record]:
        """Return the n-th oldest record, from the end where n is negative; for a slice, a list of
        records.

        Raises:
            IndexError: there is no such record.
        """
        if isinstance(n, slice):
            return [self._record(self._source.row(i)) for i in range(*n.indices(len(self)))]
        if not -len(self) <= n < len(self):
            raise IndexError(f"there are {len(self)} records")
        return self._record(self._source.row(n % len(self)))

    def __iter__(self) -> Iterator[Record]:
        return map(self._record, self._source.rows())

    def _record(self, row: Row) -> Record:
        """Return the Record of a row of the source."""
        seq, event, cpu, task, time, caller, values, stack = row
        info = self._source.infos[event]
        args = dict(zip([field.name for field in info.fields], values, strict=True))
        return Record(
            info.name,
            seq,
            cpu,
            self._source.tasks[task],
            args,
            addresses_of(stack),
            info.address,
            caller,
            time if self.timed else None,
            is_incomplete(stack),
        )

    def rows(self) -> Iterator[tuple[EventInfo, Any, Row]]:
        """Yield each record as (its event, its task, the row of the source), for writers of
        formats.
        """
        infos, tasks = self._source.infos, self._source.tasks
        return ((infos[row[1]], tasks[row[3]], row) for row in self._source.rows())

    def batches(self) -> Iterator[Batch]:
        """Return an iterator of all records in batches of some thousands, as columns, the oldest
        first.
        """
        return self._source.batches()

    def readable(self, name: str) -> str:
        """Return a name as pictures, and files that other programs make pictures of, have it: C++
        and Rust names are demangled, unless export() was told not to.

        These are "chrome", "perfetto", "otlp", "perf", "folded", "speedscope", "svg" and "html".
        """
        return readable(name) if self._demangles else name

    def with_names(self, demangle: bool) -> Trace:
        """Return a Trace of the same records, whose readable() demangles names, or does not."""
        trace = copy(self)
        trace._demangles = demangle
        return trace

    def name(self, address: int) -> str:
        """Return `name+0xOFF/0xSIZE` of a code address in this trace; the bare address where it has
        no name.

        The last address of an incomplete stack stands for what is not known of it, and its name
        says so.
        """
        if address == INCOMPLETE:
            return MARK
        found = self._cache.get(address)
        if found is None:
            found = self._cache[address] = self._names(address)
        return found

    def caller_name(self, address: int) -> str:
        """Return what name() does for a return address of a stack: the function that has the call
        before it, which may end there.
        """
        if address == INCOMPLETE:
            return MARK
        found = self._caller_cache.get(address)
        if found is None:
            found = self._caller_cache[address] = self._callers(address)
        return found

    caller = FormerName("caller_name", goes="1.2")

    def names(self, stack: Sequence[int]) -> list[str]:
        """Return the name of each address of a record's stack.

        The first address is the place of the hit. The others are return addresses, and have the
        name of the function that called.

        Raises:
            BadArgument: it is no stack.
        """
        _check_stack(stack)
        return [
            self.caller_name(address) if n else self.name(address)
            for n, address in enumerate(stack)
        ]

    def lines(self, stack: Sequence[int]) -> list[str]:
        """Return the source line of each address of a record's stack, "" where none is known.

        The first address is the place of the hit. The others are return addresses, and have the
        line of the call before them.

        Raises:
            BadArgument: it is no stack.
        """
        _check_stack(stack)
        return [
            self._lines(address - bool(n)) if address != INCOMPLETE else ""
            for n, address in enumerate(stack)
        ]

    @property
    def source(self) -> RecordSource:
        """The source of the records."""
        return self._source

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(info.name for info in self.events))
        return f"<Trace of {len(self)} records, {self.lost} lost: {names}>"

    def _repr_html_(self) -> str:
        """Return the first SHOWN records as a table of HTML, for notebooks; a last row of dots
        stands for those that are left out.
        """
        from ..notebook import table

        rows: list[list[Any]] = []
        for info, task, (seq, _, cpu, _, _, caller, values, _) in islice(self.rows(), SHOWN):
            where = info.place(self.name(caller))
            rows.append([seq, info.name, cpu, task, where, info.arguments(values).strip()])
        rows += [["..."] * 6] * (len(self) > SHOWN)
        return table(
            f"{len(self)} records, {self.lost} lost",
            ("seq", "event", "cpu", "task", "place", "arguments"),
            rows,
        )

    def clear(self) -> None:
        """Forget the records so far, as between two runs; recording goes on, and `lost` counts
        anew, but for records that programs lost.

        Raises:
            Unsupported: the trace was loaded from a file.
        """
        ring = getattr(self._source, "ring", None)
        if ring is None:
            raise Unsupported("the records of a file stay", hint="record anew")
        ring.clear()

    # --- other tools

    def to_arrow(self) -> pyarrow.Table:
        """Return a table with a row for each record.

        The columns are seq, event, address (of the probe), cpu, task and one for each argument,
        null where an event has no such argument, or where guest memory could not be read. Only in
        some tables there are: definition (the event's index in `events`), if several events have
        one name and address; time, if there is a clock; caller, if there are return events; stack
        and incomplete, if stacks are recorded.

        Raises:
            Unsupported: pyarrow is not installed (extra `arrow`).
        """
        from .columns import need

        schema, batches = self.record_batches()
        return need("pyarrow", "arrow").Table.from_batches(batches, schema)

    def record_batches(self) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]:
        """Return the schema of to_arrow(), and an iterator of its rows in batches of some ten
        thousand, for a trace that is too large to be in memory twice.

        Raises:
            Unsupported: pyarrow is not installed (extra `arrow`).
        """
        return self._source.record_batches(self.name, self._lines, self.caller_name)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table of to_arrow() as a data frame; integers stay integers (UInt64 and such)
        where some are missing.

        Raises:
            Unsupported: pyarrow or pandas is not installed.
        """
        from .columns import frame

        return frame(self.to_arrow)

    def to_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """Return the columns of to_arrow() as arrays, by name; a column in which integers are
        missing is a masked array.

        Raises:
            Unsupported: numpy or pyarrow is not installed.
        """
        from .columns import arrays

        return arrays(self.to_arrow())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace as an Arrow file, which Trace.load() and every reader of Arrow reads.

        Args:
            path: of the file. Where writing fails, what was there before is still there.

        Raises:
            Unsupported: pyarrow is not installed.
            OSError: the file cannot be written.
        """
        from .columns import save

        schema, batches = self.record_batches()
        with NewFile(path, binary=True) as new:
            save(schema, batches, new.file)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read a file that save() wrote.

        Raises:
            ImageError: the file cannot be read, is damaged, or another program's.
            Unsupported: pyarrow is not installed.
        """
        from .columns import load

        source, names, lines, callers = load(path)

        def name_of(address: int) -> str:
            """Return the file's name of a code address, or the address."""
            return names.get(address, f"{address:#x}")

        return cls(
            source,
            name_of,
            lines=lambda address: lines.get(address, ""),
            callers=lambda address: callers.get(address) or name_of(address),
        )

    def picture(self, *pictures: str, before: Trace | None = None) -> Picture:
        """Return a page with pictures of the trace, which notebooks show and export() writes as
        html.

        Args:
            pictures: "flame", "timeline", "heat", "histogram" or "callgraph"; none: all that the
                trace has something for.
            before: another trace, which the flame graph compares with.

        Raises:
            BadArgument: there is no such picture, or `before` is no Trace.
        """
        from importlib import import_module

        if before is not None and not isinstance(before, Trace):
            raise BadArgument(f"before is {shown(before)}", hint="pass a Trace")
        from ..pictures.page import Picture

        return Picture(import_module("..tracing.html", __package__).page_of(self, pictures, before))

    def export(
        self, path: str | os.PathLike[str] | IO[Any], format: str, demangle: bool = True
    ) -> None:
        """Write the trace for other tools.

        Args:
            path: of the file, or an open file (for bytes with "perfetto" and "parquet", else for
                text). Where writing fails, what was at the path before is still there.
            format: "ftrace", "jsonl", "csv" (one table for all events), "chrome", "perfetto" (needs
                the extra `perfetto`), "parquet", "otlp", "perf", "folded", "speedscope", "svg" (a
                flame graph) or "html" (a page with all pictures).
            demangle: True: C++ and Rust names are as readable() has them; False: they are as in the
                symbol table.

        Raises:
            BadArgument: there is no such format.
            Unsupported: the library for the format is not installed.
            OSError: the file cannot be written.
        """
        if format not in FORMATS:
            raise BadArgument(f"no format {format!r}", hint=f"there are: {', '.join(FORMATS)}")
        from importlib import import_module

        module, binary = FORMATS[format]
        write = import_module(f"..tracing.{module}", __package__).write
        trace = self if demangle else self.with_names(False)
        if not isinstance(path, str | os.PathLike):
            write(trace, path, format)
            return
        with NewFile(path, binary=binary) as new:
            write(trace, new.file, format)
