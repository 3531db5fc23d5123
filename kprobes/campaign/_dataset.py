"""Records of many workers as one data set of Arrow: a file for each worker, and of these what
counts.

A worker appends to a stream of its own, which can be read up to where a kill has cut it. An item's
outcome says which rows of which stream are its; rows of an attempt that never came home are in no
outcome, and are left out when the streams become files.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import KprobeError
from ..events._place import counts_of
from ..tracing.columns import need
from ..tracing.recorder import RECORDS

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

    from ..kprobes import Kprobes

STREAM, FILE = ".arrows", ".arrow"
Rows = list[int]  # the first, and how many


class DatasetError(KprobeError):
    """A folder that cannot be written, or holds something else."""


class WorkerStream:
    """A worker's stream: a file of Arrow's that it appends records to.

    Rows are announced as items end, and written when a batch of items does.

    Attributes:
        name: name of the stream's file, without its ending.
        rows: how many rows were announced so far.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Create a new stream's file.

        Args:
            folder: the folder for it, which is made where it does not exist.

        Raises:
            DatasetError: the file cannot be created.
            Unsupported: pyarrow is not installed.
        """
        need("pyarrow", "arrow")
        self.name = f"part-{uuid.uuid4().hex[:12]}"
        self.rows = 0
        self._path = Path(folder, self.name + STREAM)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("xb")
        except OSError as error:
            raise DatasetError(
                f"{self._path}: {error.strerror}", hint="give a folder that workers can write to"
            ) from None
        self._writer: Any = None
        self._facts: Any = None
        self._items: list[tuple[str, int]] = []

    @property
    def exists(self) -> bool:
        """Whether the stream's file still exists.

        The file is gone where gather() has made another one of it, or where it was removed: then a
        new stream is to be begun.
        """
        return self._path.exists()

    def announce(self, item: str, count: int) -> Rows:
        """Reserve the stream's next rows for the records of an item; write() writes them later.

        Args:
            item: the item's name.
            count: number of its records.

        Returns:
            [first row, number of rows].
        """
        self._items.append((item, count))
        self.rows += count
        return [self.rows - count, count]

    def write(self, table: pyarrow.Table) -> None:
        """Append the records of all items that were announced since the last call. The items are
        forgotten, also where the file cannot be written.

        Args:
            table: their records in order; a column with the items' names is added.

        Raises:
            DatasetError: the file cannot be written.
        """
        import pyarrow

        items, self._items = self._items, []
        names = pyarrow.array(
            [item for item, count in items for _ in range(count)], pyarrow.string()
        )
        table = table.add_column(0, "item", names)
        try:
            if self._writer is None:
                self._writer = pyarrow.ipc.new_stream(self._file, table.schema)
                self._facts = table.schema.metadata  # a stream has one schema
            self._writer.write_table(table.replace_schema_metadata(self._facts))
            self._file.flush()
        except (OSError, pyarrow.ArrowException) as error:
            raise DatasetError(
                f"{self._path}: {error}", hint="is there room on the disk?"
            ) from None

    def close(self) -> None:
        """Close the stream's file."""
        self._file.close()


class Recorded:
    """Events of a worker's machine that are recorded to a data set, item by item.

    begin() and end() are called around each item, flush() after a batch of items.

    Attributes:
        counts: event's name -> (hits, missed) so far.
    """

    def __init__(self, k: Kprobes, events: tuple[str, ...], folder: str) -> None:
        """Begin to trace the events, and create the worker's stream.

        Args:
            k: the Kprobes of the worker's machine.
            events: the events' definitions.
            folder: folder of the data set.

        Raises:
            EventError: a definition is wrong.
            DatasetError: the stream's file cannot be created.
            Unsupported: pyarrow is not installed.
        """
        self._folder = folder
        self._recording = k.trace(*events, records=RECORDS)
        self._trace = self._recording.__enter__()
        self._part = WorkerStream(folder)
        # rows that are announced, and not written; records that were lost, all told
        self._pending = self._lost = 0
        self._failed: DatasetError | None = None

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """The hits and misses of each event since it was armed: name -> (hits, missed).

        Probes of one event's name are counted together.
        """
        found: dict[str, tuple[int, int]] = {}
        for name, probe in self._recording.armed:
            hits, missed = found.get(name, (0, 0))
            more, more_missed = counts_of(probe)
            found[name] = hits + more, missed + more_missed
        return found

    def begin(self) -> None:
        """Make room for the records of an item: write those of earlier items where they take more
        than half of the trace's room. Where that fails, flush() raises later.

        If the stream's file is gone (gather() has taken it, or somebody has removed it), a new
        stream is begun, and records that are not written yet are dropped.

        Raises:
            DatasetError: the new stream's file cannot be created.
        """
        if self._pending > RECORDS // 2:
            self._write()
        if not self._part.exists:
            self._start_anew()

    def end(self, item: str) -> dict[str, Any]:
        """End an item: reserve the stream's next rows for the records made since begin().

        Nothing is written here: the records stay in the trace until flush() or a later begin()
        writes them. The reserved rows then have the item's name.

        Args:
            item: the item's name.

        Returns:
            {"part": name of the stream, "rows": [first row, number of rows]}. The item's result
            must have this, for gather().
        """
        rows = self._part.announce(item, len(self._trace) - self._pending)
        self._pending += rows[1]
        return {"part": self._part.name, "rows": rows}

    def flush(self) -> None:
        """Write the records of all items that were announced since the last call.

        Raises:
            DatasetError: the disk was full meanwhile, or records were lost; all items since the
                last call are to be done again, and a new stream is begun for them.
        """
        self._write()
        if self._failed is not None:
            failed, self._failed = self._failed, None
            self._start_anew()
            raise failed

    def _write(self) -> None:
        """Write the announced records to the stream, and drop all records from the trace, written
        or not.

        A failure (too many records, or a full disk) is kept as `_failed`, for flush(). Where there
        is one already, nothing is written.
        """
        if self._failed is None and (
            self._trace.lost != self._lost or len(self._trace) != self._pending
        ):
            self._failed = DatasetError(
                f"an item has made more than {RECORDS // 2:,} records", hint="record fewer events"
            )
        if self._failed is None and self._pending:
            try:
                self._part.write(self._trace.to_arrow())
            except DatasetError as error:
                self._failed = error
        self._clear()

    def _clear(self) -> None:
        """Drop the trace's records, which are written or given up."""
        self._trace.clear()
        self._pending = 0
        self._lost = self._trace.lost

    def _start_anew(self) -> None:
        """Close the stream, begin another one, and drop the trace's records.

        Raises:
            DatasetError: the new stream's file cannot be created.
        """
        self._part.close()
        self._part = WorkerStream(self._folder)
        self._clear()


def gather(folder: str | os.PathLike[str], results: Iterable[Any]) -> pyarrow.dataset.Dataset:
    """Turn the streams of a campaign's workers into files of Arrow, and return them as a data set:
    `gather("out", (o.result for o in outcomes))`.

    Call it when the campaign has ended. The columns are `item` and those of Trace.to_arrow(); every
    reader of Arrow opens the folder. Rows that no result names are dropped.

    Args:
        folder: the folder that the jobs have recorded to (Calls.dataset).
        results: the results of all items whose records count, those of a resumed campaign's first
            part included; results that are no mapping, or have no "part" and "rows", are passed
            over.

    Raises:
        DatasetError: the folder cannot be read or written, or rows that results name are not there.
        Unsupported: pyarrow is not installed (extra `arrow`).
    """
    need("pyarrow", "arrow")
    import pyarrow
    import pyarrow.dataset

    kept: dict[str, list[Rows]] = {}
    for result in results:
        if isinstance(result, Mapping) and "part" in result and "rows" in result:
            kept.setdefault(result["part"], []).append(result["rows"])
    there = {path.stem for path in Path(folder).glob("part-*")}
    if gone := sorted(
        part for part, rows in kept.items() if part not in there and any(count for _, count in rows)
    ):
        raise DatasetError(
            f"{os.fspath(folder)}: {gone[0]} is not there, which outcomes name",
            hint="give the folder that the campaign wrote",
        )
    try:
        for stream in sorted(Path(folder).glob(f"*{STREAM}")):
            _to_file(stream, sorted(kept.get(stream.stem, [])))
        files = sorted(str(path) for path in Path(folder).glob(f"*{FILE}"))
        return pyarrow.dataset.dataset(files, format="ipc")
    except (OSError, pyarrow.ArrowException) as error:
        raise DatasetError(
            f"{os.fspath(folder)}: {error}", hint="give the folder that the campaign wrote"
        ) from None


def _to_file(stream: Path, kept: list[Rows]) -> None:
    """Replace a worker's stream by a file that has only the rows that count.

    Where none counts, the stream is deleted.

    Args:
        stream: the worker's stream of record batches.
        kept: [first row, number of rows] of each item, ascending.

    Raises:
        DatasetError: rows that count are not there; then the stream stays, and no file is made.
    """
    import pyarrow

    unfinished, made = stream.with_suffix(".unfinished"), 0
    with stream.open("rb") as source, unfinished.open("wb") as target:
        for schema, tables in _tables(source):
            with pyarrow.ipc.new_file(target, schema) as writer:
                first = 0
                for table in tables:
                    for start, count in _within(kept, first, len(table)):
                        writer.write_table(table.slice(start, count))
                        made += count
                    first += len(table)
    missing = sum(count for _, count in kept) - made
    if missing:
        unfinished.unlink()
        raise DatasetError(
            f"{stream}: {missing} rows are not there that outcomes name",
            hint="it was cut: do its items anew",
        )
    if made:
        unfinished.replace(stream.with_suffix(FILE))
    else:
        unfinished.unlink()
    stream.unlink()


def _tables(source: Any) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Read a stream of Arrow that may have been cut by a kill.

    Args:
        source: a binary file, open for reading.

    Yields:
        Once, (schema, iterator of the tables up to where the stream was cut); nothing where not
        even the schema was written.
    """
    import pyarrow

    try:
        reader = pyarrow.ipc.open_stream(source)
    except (pyarrow.ArrowException, EOFError):
        return

    def whole() -> Iterator[Any]:
        """Yield the tables up to the end of the stream, or to where it was cut."""
        while True:
            try:
                batch = reader.read_next_batch()
            except (StopIteration, pyarrow.ArrowException, OSError):  # the end, or where it was cut
                return
            yield pyarrow.Table.from_batches([batch])

    yield reader.schema, whole()


def _within(kept: list[Rows], first: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield which rows of a table count, as (first row in the table, number of rows).

    Neighbouring ranges are joined.

    Args:
        kept: rows of the whole stream that count: [first row, number of rows], in order.
        first: number in the stream of the table's first row.
        length: how many rows the table has.
    """
    start = end = 0
    for row, count in kept:
        low, high = max(row - first, 0), min(row + count - first, length)
        if low >= high:
            continue
        if low != end or start == end:
            if end > start:
                yield start, end - start
            start = low
        end = high
    if end > start:
        yield start, end - start
