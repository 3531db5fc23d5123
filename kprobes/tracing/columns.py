"""A trace as columns: Arrow tables, and files of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from ..clocknames import HOST_CLOCK
from ..errors import ImageError, Unsupported
from ..events._record import task_text
from ..stacks import INCOMPLETE, addresses_of, is_incomplete
from ..symbols import CONTROLS
from . import nested
from .batches import BATCH, Batch, EventColumns, Row
from .clocks import COUNTER
from .info import EventInfo, Field
from .ring import Layout, RecordRing

if TYPE_CHECKING:
    import numpy
    import pandas
    import pyarrow

KEY = b"kprobes"  #: of the schema's metadata
ROWS = 1 << 16  #: of a batch in files
GROUP = 8  #: batches of a row group in Parquet's: small groups are not compressed as well
VERSION = 2
#: version of a file -> names of columns that are no arguments
HEADS: Mapping[int, tuple[str, ...]] = {
    1: ("seq", "event", "address", "cpu", "task", "time", "caller", "stack"),
    2: (
        "seq",
        "event",
        "definition",
        "address",
        "cpu",
        "task",
        "time",
        "caller",
        "stack",
        "incomplete",
    ),
}


def need(name: str, extra: str) -> ModuleType:
    """Import a library that an extra of kprobes installs, and return the module.

    Args:
        name: the module's name.
        extra: the extra that installs it.

    Raises:
        Unsupported: the library is not installed.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise Unsupported(
            f"{name.partition('.')[0]} is not installed", hint=f"pip install 'kprobes[{extra}]'"
        ) from error


def names_of(infos: Sequence[EventInfo], version: int = VERSION) -> list[list[str]]:
    """Return for each event the names of the columns that hold its arguments.

    A column has the argument's name. The column of an argument is called `event.name` where that
    name is taken: by a column that is no argument (HEADS), or by an earlier event's argument of
    another type. Arguments of one name and type share a column.

    Args:
        infos: the events.
        version: of the file that has the columns, a key of HEADS.

    Returns:
        In the order of `infos`, for each event a list in the order of its fields.
    """
    types: dict[str, Any] = dict.fromkeys(HEADS[version])
    out = []
    for info in infos:
        row = []
        for field in info.fields:
            whole = field.type.name if field.type.is_whole else ""
            kind = (
                field.text,
                field.type.is_signed,
                field.type.size,
                field.type.count,
                field.type.is_float,
                whole,
            )
            name = (
                field.name if types.get(field.name, kind) == kind else f"{info.name}.{field.name}"
            )
            types.setdefault(name, kind)
            row.append(name)
        out.append(row)
    return out


# --- of a ring


def batches_of_ring(
    infos: Sequence[EventInfo],
    ring: RecordRing,
    clock: str,
    epoch: int,
    names: Callable[[int], str],
    lines: Callable[[int], str],
    callers: Callable[[int], str],
) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]:
    """Return the schema of a ring's records, and an iterator of them in batches of at most ROWS.

    Names and source lines are looked up now; the records are read from the ring as the iterator
    comes to them.

    Args:
        infos: the events.
        ring: the records.
        clock: the name of the clock that their times are by.
        epoch: what is added to their times to get nanoseconds since 1970; 0: it is not known.
        names: a code address -> its name.
        lines: a code address -> its source line, "" where none is known.
        callers: a return address in a stack -> its name.

    Raises:
        Unsupported: pyarrow is not installed.
    """
    pa = need("pyarrow", "arrow")
    many = len(ring)
    wholes = _whole_columns(infos, ring)
    stacks = {*ring.stacks[:many]} if ring.stacked else set()
    seen = {addresses_of(stack) for stack in stacks}
    looked_up = {address - bool(n) for stack in seen for n, address in enumerate(stack)}
    addresses = {address for stack in seen for address in stack}
    returns = {address for stack in seen for address in stack[1:]}
    for first in range(0, many, ROWS):
        addresses |= _Columns(infos, ring, first, min(ROWS, many - first)).callers()
    facts = {
        "version": VERSION,
        "events": [info.as_json() for info in infos],
        "lost": ring.lost,
        "clock": clock,
        "epoch": epoch,
        "names": {str(address): names(address) for address in addresses},
        "lines": {str(address): line for address in looked_up if (line := lines(address))},
        "callers": {
            str(address): name
            for address in returns
            if (name := callers(address)) != names(address)
        },
    }
    columns = _Columns(infos, ring, 0, 0).columns(
        {name: array[:0] for name, (_, array) in wholes.items()}
    )
    fields = [
        wholes[name][0] if name in wholes else pa.field(name, column.type)
        for name, column in columns.items()
    ]
    schema = pa.schema(fields, {KEY: json.dumps(facts).encode()})

    def batches() -> Iterator[pyarrow.RecordBatch]:
        """Yield the batches, the oldest records first."""
        for first in range(0, many, ROWS):
            part = _Columns(infos, ring, first, min(ROWS, many - first))
            slices = {name: array[first : first + ROWS] for name, (_, array) in wholes.items()}
            yield pa.RecordBatch.from_arrays([*part.columns(slices).values()], schema=schema)

    return schema, batches()


def _whole_columns(
    infos: Sequence[EventInfo], ring: RecordRing
) -> dict[str, tuple[pyarrow.Field, pyarrow.Array]]:
    """Return the columns of structures and arrays that Python reads as a whole, over all records.

    A column's Arrow type follows from all its values together, so these columns are not made by
    batch.

    Args:
        infos: the events.
        ring: the records.

    Returns:
        Name of the column -> (its field in the schema, its values in the order of the records).
    """
    values: dict[str, list[Any]] = {}
    for event, names in enumerate(names_of(infos)):
        for n, name in enumerate(names):
            if not infos[event].fields[n].type.is_whole:
                continue
            column = values.setdefault(name, [None] * len(ring))
            for row, place in enumerate(ring.order()):
                if ring.event(place) == event:
                    column[row] = ring.texts[place][n]
    return {name: nested.column(name, column) for name, column in values.items()}


class _Columns:
    """The Arrow columns of some records of a ring, in their order.

    Attributes:
        raw: an array of u64 with a row for each record, as the ring has it.
        places: indices of the records in the ring.
        head: an array of u16: event, processor and the two halves of the task's number.
        event: the number of each record's event.
        which: for each event the indices of its records among these records.

    Args:
        infos: the events.
        ring: the records.
        first: the number of the first record, from the oldest.
        many: how many.
    """

    def __init__(self, infos: Sequence[EventInfo], ring: RecordRing, first: int, many: int) -> None:
        import numpy
        import pyarrow

        self.np = numpy
        self.pa = pyarrow
        self.infos = infos
        self.ring = ring
        self.raw = numpy.frombuffer(ring.raw(first, many), numpy.uint64).reshape(-1, ring.size // 8)
        self.places = ring.order(first, many)
        self.head = self.raw[:, 1].copy().view(numpy.uint16).reshape(-1, 4)
        self.event = self.head[:, 0]
        self.which: list[Any] = [
            slice(None) if len(infos) == 1 else numpy.flatnonzero(self.event == n)
            for n in range(len(infos))
        ]

    def callers(self) -> set[int]:
        """Return the addresses in the records' field `caller`: where return events return to, and
        the code that has accessed watched memory.
        """
        found: set[int] = set()
        for layout, which in zip(self.ring.layouts, self.which, strict=True):
            if layout.has_caller:
                found |= {*self.np.unique(self.raw[which, 2 + layout.clock]).tolist()}
        return found

    def columns(self, wholes: Mapping[str, pyarrow.Array]) -> dict[str, pyarrow.Array]:
        """Return the columns of these records by name.

        Args:
            wholes: name -> column of structures or arrays that Python reads as a whole, already cut
                to these records; it is put in as it is.
        """
        pa, ring = self.pa, self.ring
        columns: dict[str, Any] = {
            "seq": pa.array(self.raw[:, 0].copy()),
            "event": self._dictionary(self.event, [i.name for i in self.infos]),
        }
        if len(_places(self.infos)) < len(self.infos):
            columns["definition"] = pa.array(self.event.copy())
        columns |= {
            "address": pa.array(
                self.np.array([i.address for i in self.infos], self.np.uint64)[self.event]
            ),
            "cpu": pa.array(self.head[:, 1].copy()),
            "task": self._task(),
        }
        if ring.clock is not None:
            columns["time"] = pa.array(self.raw[:, 2].copy())
        if any(layout.has_caller for layout in ring.layouts):
            columns["caller"] = self._callers()
        if ring.stacked:
            stacks = [ring.stacks[place] for place in self.places]
            columns["stack"] = pa.array(map(addresses_of, stacks), pa.list_(pa.uint64()))
            columns["incomplete"] = pa.array(map(is_incomplete, stacks), pa.bool_())
        for event, row in enumerate(names_of(self.infos)):
            for n, name in enumerate(row):
                if name in wholes:
                    columns[name] = wholes[name]
                else:
                    self._argument(columns, event, n, name)
        return columns

    def _dictionary(self, indices: numpy.ndarray[Any, Any], values: Sequence[str]) -> pyarrow.Array:
        """Return a column of texts as categories; each text is one category, however often it
        stands in `values`.

        Args:
            indices: for each record the index of its text in `values`.
            values: texts, which may repeat.
        """
        categories = {value: n for n, value in enumerate(dict.fromkeys(values))}
        numbers: Any = self.np.array([categories[value] for value in values], self.np.int32)
        return self.pa.DictionaryArray.from_arrays(
            self.pa.array(numbers[indices]), self.pa.array([*categories], self.pa.string())
        )

    def _task(self) -> pyarrow.Array:
        """Return the Arrow column of tasks: integers where all tasks are, else their texts as
        categories.
        """
        np = self.np
        tasks = self.ring.tasks
        numbers = self.head[:, 2:].copy().view(self.np.uint32).reshape(-1)
        if all(isinstance(task, int) and -(1 << 63) <= task < 1 << 63 for task in tasks):
            return self.pa.array(np.array(tasks or [0], np.int64)[numbers])
        return self._dictionary(numbers, [task_text(task) for task in tasks])

    def _callers(self) -> pyarrow.Array:
        """Return the column `caller`: addresses that return events return to, or that have accessed
        watched memory; null for plain probes.
        """
        out: Any = self.np.zeros(len(self.raw), self.np.uint64)
        none: Any = self.np.ones(len(self.raw), bool)
        for layout, which in zip(self.ring.layouts, self.which, strict=True):
            if layout.has_caller:
                out[which], none[which] = self.raw[which, 2 + layout.clock], False
        return self.pa.array(out, mask=none)

    def _argument(self, columns: dict[str, Any], event: int, n: int, name: str) -> None:
        """Add the column of an event's argument to `columns`, or merge it into that of its name.

        Rows of other events are null.

        Args:
            columns: name -> column; is changed.
            event: the event's number.
            n: the argument's number, from 0.
            name: the column's name.
        """
        field, which = self.infos[event].fields[n], self.which[event]
        column = (
            self._text(event, n)
            if field.text
            else self._number(self.ring.layouts[event], n, field, which)
        )
        if len(self.infos) > 1:
            wide: Any = self.np.full(len(self.raw), -1, self.np.int64)
            wide[which] = self.np.arange(len(column))
            column = column.take(self.pa.array(wide, mask=wide < 0))
        if name in columns:  # two events with the same argument
            column = self.pa.compute.coalesce(columns[name], column)
        columns[name] = column

    def _number(self, layout: Layout, n: int, field: Field, which: Any) -> pyarrow.Array:
        """Return the column of an argument that is a number or an array of numbers.

        What could not be read is null: a number, an array, or an element of an array.

        Args:
            layout: where a record of the event has its numbers and fault bits.
            n: the argument's number, from 0.
            field: the argument.
            which: indices of the event's records among these records.
        """
        np = self.np
        at = layout.numbers.index(n)
        first = layout.head.faults // 8
        column = layout.head.data // 8 + sum(max(c, 1) for c in layout.counts[:at])
        many = max(layout.counts[at], 1)
        kind = np.dtype(f"{'i' if field.type.is_signed else 'u'}{field.type.size}")
        values = self.raw[which, column : column + many].astype(kind)
        bad = [
            (self.raw[which, first + bit // 64] >> np.uint64(bit % 64) & np.uint64(1)).astype(bool)
            for bit in range(layout.head.bits[at], layout.head.bits[at] + 1 + layout.counts[at])
        ]
        if not layout.counts[at]:
            return self.pa.array(values[:, 0], mask=bad[0] if bad[0].any() else None)
        flat = self.pa.array(values.reshape(-1), mask=np.stack(bad[1:], axis=1).reshape(-1))
        offsets = np.arange(0, len(flat) + 1, many, dtype=np.int32)
        return self.pa.ListArray.from_arrays(
            self.pa.array(offsets, mask=np.append(bad[0], False)), flat
        )

    def _text(self, event: int, n: int) -> pyarrow.Array:
        """Return the column of an argument that is text, floating point, or an array of these.

        What could not be read is null.

        Args:
            event: the event's number.
            n: the argument's number, from 0.
        """
        texts, count = self.ring.texts, self.infos[event].fields[n].type.count
        places = (
            self.places if len(self.infos) == 1 else [self.places[i] for i in self.which[event]]
        )
        found = [texts[place][n] for place in places]
        if self.infos[event].fields[n].type.is_float:
            return self.pa.array(
                found, self.pa.list_(self.pa.float64()) if count else self.pa.float64()
            )
        return self.pa.array(found, self.pa.list_(self.pa.string()) if count else self.pa.string())


def _places(infos: Sequence[EventInfo]) -> dict[tuple[str, int], int]:
    """Return the index of each event in `infos` by its name and address.

    Events of several groups may share both, and so may definitions that fetch something else: then
    the last one's index stands, and the mapping is shorter than `infos`.

    Args:
        infos: the events.

    Returns:
        (name, address) -> index.
    """
    return {(info.name, info.address): n for n, info in enumerate(infos)}


# --- of others' kinds


def frame(make: Callable[[], pyarrow.Table]) -> pandas.DataFrame:
    """Return a table as a data frame whose integers stay integers where some are missing.

    A float has too few bits for an address.

    Args:
        make: returns the table; it is called once, after pandas and pyarrow were imported.

    Raises:
        Unsupported: pandas or pyarrow is not installed.
    """
    pandas = need("pandas", "arrow")
    pa = need("pyarrow", "arrow")
    kinds = {
        getattr(pa, name)(): getattr(pandas, name.replace("ui", "UI").replace("i", "I") + "Dtype")()
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    }
    table = make()
    gaps = {column.type for column in table.columns if column.null_count}
    return table.to_pandas(types_mapper=lambda kind: kinds.get(kind) if kind in gaps else None)


def arrays(table: pyarrow.Table) -> dict[str, numpy.ndarray[Any, Any]]:
    """Return the table's columns as arrays, by name; a column in which integers are missing is a
    masked array.

    Raises:
        Unsupported: numpy or pyarrow is not installed.
    """
    numpy = need("numpy", "arrow")
    pa = need("pyarrow", "arrow")
    out: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count and pa.types.is_integer(column.type):
            out[name] = numpy.ma.masked_array(
                column.fill_null(0).to_numpy(), mask=column.is_null().to_numpy()
            )
        else:
            out[name] = column.to_numpy()
    return out


# --- files


def save(schema: pyarrow.Schema, batches: Iterator[pyarrow.RecordBatch], file: IO[bytes]) -> None:
    """Write batches of records to an open file as an Arrow file.

    Args:
        schema: of the batches.
        batches: the records, the oldest first.
        file: open for bytes.

    Raises:
        OSError: the file cannot be written.
    """
    import pyarrow

    with pyarrow.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def save_parquet(
    schema: pyarrow.Schema, batches: Iterator[pyarrow.RecordBatch], file: IO[bytes]
) -> None:
    """Write batches of records to an open file as a Parquet file.

    Args:
        schema: of the batches.
        batches: the records, the oldest first; GROUP of them become one row group.
        file: open for bytes.

    Raises:
        Unsupported: pyarrow is not installed.
        OSError: the file cannot be written.
    """
    parquet = need("pyarrow.parquet", "arrow")
    table = need("pyarrow", "arrow").Table
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := [*islice(batches, GROUP)]:
            writer.write_table(table.from_batches(group, schema))


def load(
    path: str | os.PathLike[str],
) -> tuple[TableSource, Mapping[int, str], Mapping[int, str], Mapping[int, str]]:
    """Read a file that Trace.save() wrote.

    Returns:
        Its table as a source of records; address -> name; address -> source line; return address ->
        name, for those that have another one as callers of a stack.

    Raises:
        ImageError: the file cannot be read, is damaged, or another program's.
        Unsupported: pyarrow is not installed.
    """
    need("pyarrow", "arrow")
    import pyarrow

    try:
        with open(path, "rb") as file:
            table = pyarrow.ipc.open_file(file.read()).read_all()
        table.validate(full=True)
        return TableSource.of(table)
    except (
        pyarrow.ArrowException,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OSError,
    ) as error:
        reason = (
            error.strerror
            if isinstance(error, OSError) and error.strerror
            else "is no trace of kprobes, or damaged"
        )
        hint = "give a file that Trace.save() or `kprobes record` wrote"
        if os.fspath(path).endswith(".parquet"):
            hint = "Parquet is for other programs; of traces only .arrow is read back"
        raise ImageError(f"{os.fspath(path)}: {reason}", hint=hint) from error


def _one_category_each(table: pyarrow.Table) -> pyarrow.Table:
    """Return the table with each name once among the categories of each column that has categories;
    the same table where that is so already.

    Files before version 2 have a category for each place instead.
    """
    import pyarrow

    for n, column in enumerate(table.columns):
        if pyarrow.types.is_dictionary(column.type):
            categories = [chunk.dictionary.to_pylist() for chunk in column.chunks]
            if any(len({*names}) < len(names) for names in categories):
                unified = column.cast(pyarrow.string()).dictionary_encode()
                table = table.set_column(n, table.column_names[n], unified)
    return table


class _Lists:
    """The columns of a part of a table as lists, each made once, when it is first asked for."""

    def __init__(self, table: pyarrow.Table) -> None:
        self._table = table
        self._made: dict[str, Any] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._table.column_names

    def of(self, name: str, places: Any = None) -> list[Any]:
        """Return the values of a column as a list; Arrow's lists in it become tuples, missing
        integers None. The list may be the kept one: it is not to be changed.

        Args:
            name: of the column.
            places: an array of the indices of the records that are wanted; None: all.
        """
        values = self._made.get(name)
        if values is None:
            values = self._made[name] = self._values(name)
        if not isinstance(values, list):
            return list((values if places is None else values[places]).tolist())
        return (
            values
            if places is None or len(places) == len(values)
            else [values[place] for place in places]
        )

    def _values(self, name: str) -> Any:
        """Return the values of a column: an array where they are integers, else a list.

        Missing integers are None in the array; Arrow's lists become tuples.

        Args:
            name: of the column.
        """
        import pyarrow

        column = self._table.column(name)
        if pyarrow.types.is_integer(column.type):
            if not column.null_count:
                return column.to_numpy()
            gaps = column.is_null().to_numpy()
            values = column.fill_null(0).to_numpy().astype(object)
            values[gaps] = None
            return values
        field = self._table.schema.field(name)
        values = column.to_pylist()
        return nested.kept(values, field) if nested.is_nested(field) else list(values)


class TableSource:
    """The records of an Arrow table, as a source that a Trace reads.

    It has the attributes and methods of a trace.RecordSource.
    """

    def __init__(
        self,
        table: pyarrow.Table,
        infos: Sequence[EventInfo],
        lost: int,
        clock: str,
        version: int = VERSION,
        epoch: int = 0,
    ) -> None:
        """Make a source of the records of a table.

        Args:
            table: the records.
            infos: the events that they are of.
            lost: number of records that there was no room for.
            clock: the name of the clock that their times are by.
            version: of the file.
            epoch: what is added to times to get nanoseconds since 1970; 0: it is not known.

        Raises:
            KeyError, TypeError, ValueError: the table is none that Trace.save() wrote, or damaged.
        """
        import pyarrow

        self.infos = infos
        self._table = _one_category_each(table)
        self._lost = lost
        self.clock = clock if "time" in table.column_names else COUNTER
        self._version = version
        self.epoch = epoch
        for name in ("seq", "cpu", "address", *(["time"] if self.clock != COUNTER else ()), "task"):
            column = table.column(name)
            if column.null_count or (name != "task" and not pyarrow.types.is_integer(column.type)):
                raise ValueError(f"column {name} is damaged")
        self._events = self._definitions()
        self.tasks: Sequence[Any] = table.column("task").unique().to_pylist()
        self._numbers = {task: n for n, task in enumerate(self.tasks)}
        self._arguments = names_of(infos, version)
        self._near = lru_cache(1)(self._rows_of)

    def _definitions(self) -> Any:
        """Return an array that has for each record the index of its event in `infos`.

        Raises:
            KeyError, ValueError: a record's event is not in the file.
        """
        import numpy

        places = _places(self.infos)
        small = numpy.min_scalar_type(max(len(self.infos) - 1, 0))
        parts: list[Any] = [numpy.zeros(0, small)]
        for batch in self._table.to_batches(ROWS):
            part = self._definitions_of(batch, places)
            if len(part) and not 0 <= part.min() <= part.max() < len(self.infos):
                raise ValueError("an event that is not in the file")
            parts.append(part.astype(small))
        return numpy.concatenate(parts)

    def _definitions_of(
        self, batch: pyarrow.RecordBatch, places: Mapping[tuple[str, int], int]
    ) -> Any:
        """Return an array of integers: for each record of a batch its event's index in `infos`.

        Indices of the column `definition` are returned as the file has them, unchecked.

        Args:
            batch: records of the file.
            places: (name, address) of an event -> its index in `infos`.

        Raises:
            KeyError: `infos` has no event of a record's name and address.
            ValueError: a record has no event.
        """
        import numpy
        import pyarrow

        if "definition" in HEADS[self._version] and "definition" in batch.schema.names:
            return batch.column("definition").cast(pyarrow.int64()).to_numpy(zero_copy_only=False)
        names = batch.column("event")
        if not pyarrow.types.is_dictionary(names.type):
            names = names.dictionary_encode()
        addresses = batch.column("address").dictionary_encode()
        if names.null_count:
            raise ValueError("a record without an event")
        wide = len(addresses.dictionary)
        pairs = names.indices.to_numpy().astype(numpy.int64) * wide + addresses.indices.to_numpy()
        which: Any = numpy.unique(pairs)
        texts = names.dictionary.to_pylist()
        where = addresses.dictionary.to_pylist()
        found: Any = numpy.array(
            [
                places[texts[pair // wide].translate(CONTROLS), where[pair % wide]]
                for pair in which.tolist()
            ],
            numpy.int64,
        )
        return found[numpy.searchsorted(which, pairs)]

    @classmethod
    def of(
        cls, table: pyarrow.Table
    ) -> tuple[TableSource, Mapping[int, str], Mapping[int, str], Mapping[int, str]]:
        """Return the source of a trace that was saved as a table, and its names.

        Args:
            table: as Trace.save() wrote it, its facts in the schema's metadata.

        Returns:
            The source; address -> name; address -> source line (empty for older files); return
            address -> name, for those that have another one as callers of a stack.

        Raises:
            KeyError: a column or a fact is missing.
            TypeError: the table has no metadata, or a fact is of a wrong type.
            ValueError: it is of another version, or damaged.
        """
        facts = json.loads(table.schema.metadata[KEY])
        version = facts["version"]
        if version not in HEADS:
            raise ValueError("another version")
        infos = [EventInfo.from_json(info) for info in facts["events"]]
        missing = {
            "seq",
            "event",
            "address",
            "cpu",
            "task",
            *(name for row in names_of(infos, version) for name in row),
        } - {*table.column_names}
        if missing:
            raise KeyError(*missing)
        clock = str(facts.get("clock", HOST_CLOCK))  # older files do not say
        names, lines, callers = (
            {int(address): str(text).translate(CONTROLS) for address, text in found.items()}
            # older files have no lines, and no names of their own for callers
            for found in (facts["names"], facts.get("lines", {}), facts.get("callers", {}))
        )
        epoch = int(facts.get("epoch", 0))  # older files do not say
        source = cls(table, infos, int(facts["lost"]), clock, version, epoch)
        return source, names, lines, callers

    @property
    def lost(self) -> int:
        """Number of records that there was no room for when the trace was recorded."""
        return self._lost

    def __len__(self) -> int:
        return len(self._events)

    def row(self, n: int) -> Row:
        """Return the n-th oldest record. Its batch is kept for the next call."""
        return self._near(n // BATCH)[n % BATCH]

    def rows(self) -> Iterator[Row]:
        """Yield all records, the oldest first."""
        for batch in self.batches():
            yield from batch.rows()

    def _rows_of(self, number: int) -> list[Row]:
        """Return the records of the batch with a number, counted from 0."""
        return self._batch(number * BATCH).rows()

    def batches(self) -> Iterator[Batch]:
        """Yield all records in batches, the oldest first."""
        for first in range(0, len(self), BATCH):
            yield self._batch(first)

    def _batch(self, first: int) -> Batch:
        """Return a batch of at most BATCH records.

        Args:
            first: index of its first record, counted from the oldest.
        """
        columns = _Lists(self._table.slice(first, BATCH))
        events = self._events[first : first + BATCH]
        numbers = self._numbers
        order = events.tolist()
        times = columns.of("time") if self.clock != COUNTER else [0] * len(order)
        return Batch(
            columns.of("seq"),
            order,
            columns.of("cpu"),
            [numbers[task] for task in columns.of("task")],
            times,
            [
                self._part(columns, event, (events == event).nonzero()[0])
                for event in dict.fromkeys(order)
            ],
        )

    def _part(self, columns: _Lists, event: int, places: Any) -> EventColumns:
        """Return what the records of one event have in a batch.

        Args:
            columns: of the batch.
            event: the event's number.
            places: an array of the indices of its records in the batch.
        """
        callers = (
            [caller or 0 for caller in columns.of("caller", places)]
            if self.infos[event].kind != "p" and "caller" in columns
            else [0] * len(places)
        )
        stacks = (
            [tuple(stack or ()) for stack in columns.of("stack", places)]
            if "stack" in columns
            else []
        )
        if stacks and "incomplete" in HEADS[self._version] and "incomplete" in columns:
            stacks = [
                (*stack, INCOMPLETE) if incomplete else stack
                for stack, incomplete in zip(stacks, columns.of("incomplete", places), strict=True)
            ]
        return EventColumns(
            event,
            places.tolist(),
            callers,
            [columns.of(name, places) for name in self._arguments[event]],
            stacks,
        )

    def record_batches(
        self,
        names: Callable[[int], str],
        lines: Callable[[int], str],
        callers: Callable[[int], str],
    ) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]:
        """Return the table's schema and its records in batches.

        Args:
            names: not used: the file has its own names of addresses.
            lines: not used, as `names`.
            callers: not used, as `names`.
        """
        return self._table.schema, iter(self._table.to_batches(ROWS))
