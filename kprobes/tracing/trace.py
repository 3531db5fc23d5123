"""A trace: records of several events, to look at, to keep and to hand to other tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING, Any, Protocol, overload

from ..arguments import checked, shown
from ..errors import BadArgument, Unsupported
from ..events._record import Record
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

#: format of export() -> module of this package whose write(trace, file) writes it, and whether it writes bytes
FORMATS: Mapping[str, tuple[str, bool]] = {
    "ftrace": ("text", False), "jsonl": ("text", False), "csv": ("text", False), "chrome": ("timeline", False),
    "perfetto": ("perfetto", True),
    "folded": ("profile", False), "speedscope": ("profile", False), "svg": ("profile", False), "html": ("html", False),
    "parquet": ("parquet", True), "otlp": ("spans", False), "perf": ("perfscript", False),
}


SHOWN = 20  #: records that a notebook shows


def ready(format: str) -> bool:
    """Return True where a format ("arrow", or one of FORMATS) is binary. Raises Unsupported: the library for it is not
    installed."""
    from .columns import need

    if format in ("arrow", "parquet"):
        need("pyarrow", "arrow")
        return True
    if format == "perfetto":
        need("numpy", "perfetto")
    return FORMATS[format][1]


def write(trace: Trace, file: IO[Any], format: str) -> None:
    """Write a trace to an open file: "arrow", or one of FORMATS. Raises Unsupported, OSError."""
    if format == "arrow":
        from .columns import save

        save(*trace.record_batches(), file)
    else:
        trace.export(file, format)


class Source(Protocol):
    """The source of a trace's records: a ring, or a file's table.

    Attributes:
        infos: the events, by the numbers in rows.
        tasks: what the numbers of tasks in rows stand for.
        lost: records that there was no room for.
        clock: whose times rows have.
    """

    infos: Sequence[EventInfo]
    clock: str

    @property
    def tasks(self) -> Sequence[Any]: ...
    @property
    def lost(self) -> int: ...
    def __len__(self) -> int: ...
    def row(self, n: int) -> Row: ...
    def rows(self) -> Iterator[Row]: ...
    def batches(self) -> Iterator[Batch]: ...
    def record_batches(
        self, names: Callable[[int], str], lines: Callable[[int], str]
    ) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]: ...


@checked("__init__", "name")
class Trace:
    """Records, the oldest first: `t[0].args["len"]`, `len(t)`, iteration; and the same for other tools.

    While events are recorded it grows. Where there is no more room the oldest records go: `lost` says how many did.
    """

    def __init__(self, source: Source, names: Callable[[int], str], missed: Callable[[], int] = lambda: 0,
                 lines: Callable[[int], str] = lambda address: "") -> None:
        """names: a code address -> what to show for it. missed: hits that could not be recorded. lines: a code address
        -> its source line, "" where none is known."""
        self._source = source
        self._names = names
        self._missed = missed
        self._lines = lines
        self._cache: dict[int, str] = {}

    # --- looking

    @property
    def events(self) -> tuple[EventInfo, ...]:
        """The events that were recorded."""
        return tuple(self._source.infos)

    @property
    def lost(self) -> int:
        """Records that there was no room for."""
        return self._source.lost

    @property
    def missed(self) -> int:
        """Hits that were not recorded because another probe was running, or a return probe had no instance left."""
        return self._missed()

    @property
    def clock(self) -> str:
        """The clock whose times records have: "counter" (none), "host" (ns), "instructions" (of the guest,
        so far) or "own"."""
        return self._source.clock

    @property
    def timed(self) -> bool:
        """True where records have a time."""
        return self.clock != COUNTER

    def __len__(self) -> int:
        return len(self._source)

    @overload
    def __getitem__(self, n: int) -> Record: ...
    @overload
    def __getitem__(self, n: slice) -> list[Record]: ...
    def __getitem__(self, n: int | slice) -> Record | list[Record]:
        if isinstance(n, slice):
            return [self._record(self._source.row(i)) for i in range(*n.indices(len(self)))]
        if not -len(self) <= n < len(self):
            raise IndexError(f"there are {len(self)} records")
        return self._record(self._source.row(n % len(self)))

    def __iter__(self) -> Iterator[Record]:
        return map(self._record, self._source.rows())

    def _record(self, row: Row) -> Record:
        seq, event, cpu, task, time, caller, values, stack = row
        info = self._source.infos[event]
        args = dict(zip([field.name for field in info.fields], values, strict=True))
        return Record(info.name, seq, cpu, self._source.tasks[task], args, addresses_of(stack), info.address, caller,
                      time if self.timed else None, is_incomplete(stack))

    def rows(self) -> Iterator[tuple[EventInfo, Any, Row]]:
        """(event, task, row) of each record, for writers of formats."""
        infos, tasks = self._source.infos, self._source.tasks
        return ((infos[row[1]], tasks[row[3]], row) for row in self._source.rows())

    def batches(self) -> Iterator[Batch]:
        """All records, the oldest first, some thousands at a time and in columns."""
        return self._source.batches()

    def name(self, address: int) -> str:
        """`name+0xOFF/0xSIZE` of a code address in this trace, or the bare address; of what stands behind the addresses
        of an incomplete stack, its mark."""
        if address == INCOMPLETE:
            return MARK
        found = self._cache.get(address)
        if found is None:
            found = self._cache[address] = self._names(address)
        return found

    def lines(self, stack: Sequence[int]) -> list[str]:
        """The source line of each address of a record's stack, "" where none is known: of the first its own, of a
        return address that of the call before it. BadArgument: it is no stack."""
        if not all(isinstance(address, int) for address in stack):
            raise BadArgument(f"stack is {shown(stack)}", hint="pass a record's stack: addresses")
        return [self._lines(address - bool(n)) if address != INCOMPLETE else "" for n, address in enumerate(stack)]

    @property
    def source(self) -> Source:
        """The source of the records."""
        return self._source

    def __repr__(self) -> str:
        return f"<Trace of {len(self)} records, {self.lost} lost: {', '.join(info.name for info in self.events)}>"

    def _repr_html_(self) -> str:
        from ..notebook import table

        rows: list[list[Any]] = []
        for info, task, (seq, _, cpu, _, _, caller, values, _) in islice(self.rows(), SHOWN):
            where = info.place(self.name(caller))
            rows.append([seq, info.name, cpu, task, where, info.arguments(values).strip()])
        rows += [["..."] * 6] * (len(self) > SHOWN)
        return table(f"{len(self)} records, {self.lost} lost", ("seq", "event", "cpu", "task", "place", "arguments"),
                     rows)

    def clear(self) -> None:
        """Forget the records so far, between runs; recording goes on. Raises Unsupported: they are a file's."""
        ring = getattr(self._source, "ring", None)
        if ring is None:
            raise Unsupported("the records of a file stay", hint="record anew")
        ring.clear()

    # --- other tools

    def to_arrow(self) -> pyarrow.Table:
        """A table with a row for each record: seq, event, address (of the probe), cpu, task, time (ns, where there is a
        clock), caller (of return events), stack, and a column for each argument; null where an event has none, or guest
        memory was unreadable.

        Raises Unsupported: pyarrow is not installed (extra `arrow`).
        """
        from .columns import need

        schema, batches = self.record_batches()
        return need("pyarrow", "arrow").Table.from_batches(batches, schema)

    def record_batches(self) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]:
        """The schema of to_arrow(), and its rows some ten thousand at a time: for what is larger than memory has room
        for twice. Raises Unsupported: pyarrow is not installed (extra `arrow`)."""
        return self._source.record_batches(self.name, self._lines)

    def to_pandas(self) -> pandas.DataFrame:
        """to_arrow() as a data frame; integers stay integers (UInt64 ...) where some are missing.

        Raises Unsupported: pyarrow or pandas is not installed.
        """
        from .columns import frame

        return frame(self.to_arrow)

    def to_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """Column name -> array; where integers are missing, a masked one. Raises Unsupported: pyarrow is not
        installed."""
        from .columns import arrays

        return arrays(self.to_arrow())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an Arrow file, which Trace.load() and every reader of Arrow reads.

        Raises Unsupported, OSError: then what was at `path` before is still there.
        """
        from .columns import save

        schema, batches = self.record_batches()
        with NewFile(path, binary=True) as new:
            save(schema, batches, new.file)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Load what save() wrote. Raises ImageError: unreadable, damaged, another program's; Unsupported."""
        from .columns import load

        source, names, lines = load(path)
        return cls(source, lambda address: names.get(address, f"{address:#x}"),
                   lines=lambda address: lines.get(address, ""))

    def picture(self, *pictures: str, before: Trace | None = None) -> Picture:
        """A page that notebooks show, and that export() writes as html.

        Args:
            pictures: "flame", "timeline", "heat", "histogram" or "callgraph"; none: all that the trace has something
                for.
            before: another trace, which the flame graph compares with.

        Raises:
            BadArgument: there is no such picture.
        """
        from importlib import import_module

        if before is not None and not isinstance(before, Trace):
            raise BadArgument(f"before is {shown(before)}", hint="pass a Trace")
        from ..pictures.page import Picture

        return Picture(import_module("..tracing.html", __package__).page_of(self, pictures, before))

    def export(self, path: str | os.PathLike[str] | IO[Any], format: str) -> None:
        """Write a file for other tools, or to an open one: ftrace, jsonl, csv (one file for each event where there are
        several: x.NAME.csv), chrome, perfetto (extra `perfetto`), folded, speedscope, svg (a flame graph), html (a page
        with all pictures).

        Raises BadArgument: no such format; Unsupported: the library for it is not installed; OSError. Then what was at
        `path` before is still there.
        """
        if format not in FORMATS:
            raise BadArgument(f"no format {format!r}", hint=f"there are: {', '.join(FORMATS)}")
        from importlib import import_module

        module, binary = FORMATS[format]
        write = import_module(f"..tracing.{module}", __package__).write
        if not isinstance(path, str | os.PathLike):
            write(self, path, format)
            return
        with NewFile(path, binary=binary) as new:
            write(self, new.file, format)
