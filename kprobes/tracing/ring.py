"""The buffer that hits are recorded in: binary records of one size, the oldest overwritten when it
is full.

A record is `u64 number; u16 event; u16 cpu; u32 task`, then where the trace or the event has it
`u64 time`, `u64 caller`; then for events with numbers `u64 faults` (as many as it takes) and a u64
or s64 for each number. Fault bits: for each argument that is a number one, for an array one that
says that its address could not be had and one for each element. Text and stacks are not in the
record but in lists beside it, at the record's place.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, Protocol

from ..events._layout import RecordHead
from ..events._styles import Value
from ..hostmemory import zeroed
from .batches import BATCH, Batch, EventColumns, Row
from .info import EventInfo

FIRST_FIELDS = "=QHHI"  #: of the first two words, for `struct`
FIRST = 1024  #: records that there is room for at first
#: bytes that are mapped at first: more than the records that a trace keeps where nobody says
MAPPED = 1 << 28


Letter = Literal["q", "Q"]  #: struct's, of a word with a sign and of one without


class Put(Protocol):
    """A function that puts a record of one event into a ring, over the oldest one if the ring is
    full.

    Args:
        seq: number of the record.
        cpu: number of the processor.
        task: identity of the task, any hashable value.
        values: of the event's arguments; None: memory could not be read.
        caller: address that a return event returns to, or that has accessed watched memory; of a
            probe it is not used.
        stack: addresses, the innermost first.
        time: by the trace's clock; None: the clock is asked now.
    """

    def __call__(
        self,
        seq: int,
        cpu: int,
        task: Any,
        values: Sequence[Value],
        caller: int = 0,
        stack: Sequence[int] = (),
        time: int | None = None,
    ) -> None: ...


class Layout:
    """Tells where a record of an event has what.

    Attributes:
        format: of a record, for `struct`, without padding at its end.
        size: bytes of a record.
        head: layout of what is in front of the numbers.
        letters: of `struct`, one for each number in the record.
        numbers: indices of the event's fields that are in the record; the others are texts.
        plain: True where every field is one number.
        texted: True where a field is text, which is beside the record.
        counts: for each of `numbers` the number of its elements; 0: it is no array.
        clock: True where records have times.
        has_caller: True where records have a `caller`: those of return and watch events.
    """

    def __init__(self, info: EventInfo, clock: bool) -> None:
        """Lay out the records of an event.

        Args:
            info: the event.
            clock: records have times.
        """
        self.info = info
        self.clock = clock
        self.has_caller = info.kind != "p"
        self.numbers = [n for n, field in enumerate(info.fields) if not field.text]
        types = [info.fields[n].type for n in self.numbers]
        self.counts = [type.count for type in types]
        self.head = RecordHead.of(self.counts, clock, self.has_caller)
        # fields of `format`: the second word has three
        self._faults = self.head.faults // 8 + 2
        self._first_number = self.head.data // 8 + 2
        self.plain = len(self.numbers) == len(info.fields) and not any(self.counts)
        self.texted = len(self.numbers) < len(info.fields)
        self.letters: list[Letter] = []
        for type in types:
            self.letters += ["q" if type.is_signed else "Q"] * max(type.count, 1)
        self.format = FIRST_FIELDS + "Q" * (self._first_number - 4) + "".join(self.letters)
        self.size = struct.calcsize(self.format)

    def flat(self, values: Sequence[Value]) -> list[Any]:
        """Return the part of a record behind its head: words of fault bits, then the numbers.

        Args:
            values: of the event's arguments; None: memory could not be read, which sets a fault
                bit.
        """
        faults, out = 0, []
        for n, bit, elements in zip(self.numbers, self.head.bits, self.counts, strict=True):
            value = values[n]
            faults |= (value is None) << bit
            each = value if isinstance(value, tuple) else (value,) * max(elements, 1)
            if elements and value is not None:
                faults |= sum((element is None) << bit + 1 + i for i, element in enumerate(each))
            out += [element or 0 for element in each]
        return [*(faults >> 64 * word & (1 << 64) - 1 for word in range(self.head.words)), *out]

    def values(self, raw: Sequence[Any], texts: Sequence[Value] | None) -> tuple[Value, ...]:
        """Return the values of an event's arguments, as Event.fetch() gave them.

        Args:
            raw: all fields of the record, as `struct` unpacks them.
            texts: values of all arguments, which lie beside the record, and of which those that are
                text are used; None: nothing is beside it.
        """
        if self.plain and (not self.head.words or not raw[self._faults]):
            return tuple(raw[self._first_number :])
        out: list[Any] = (
            [None] * len(self.info.fields) if texts is None or not self.texted else list(texts)
        )
        faults = sum(raw[self._faults + word] << 64 * word for word in range(self.head.words))
        at = self._first_number
        for n, bit, elements in zip(self.numbers, self.head.bits, self.counts, strict=True):
            each = tuple(
                None if elements and faults >> bit + 1 + i & 1 else raw[at + i]
                for i in range(max(elements, 1))
            )
            at += len(each)
            if faults >> bit & 1:
                out[n] = None
            else:
                out[n] = each if elements else each[0]
        return tuple(out)

    def columns(
        self, column: Callable[[int, Letter], list[int]], texts: Sequence[Any]
    ) -> list[Sequence[Value]]:
        """Return the values of many records, a column for each field of the event.

        Args:
            column: (index of a word in the record, its letter) -> that word of each record.
            texts: for each record the values of all arguments, which lie beside it, and of which
                those that are text are used; None: nothing is beside it. Empty where no argument is
                text.
        """
        first = self.head.faults // 8
        faults = [column(first + word, "Q") for word in range(self.head.words)]
        faults = [words if any(words) else [] for words in faults]
        out: list[Sequence[Value]] = [()] * len(self.info.fields)
        for n, field in enumerate(self.info.fields):
            if field.text:
                out[n] = [None if beside is None else beside[n] for beside in texts]
        at = self.head.data // 8
        letters = iter(enumerate(self.letters, at))
        for n, bit, elements in zip(self.numbers, self.head.bits, self.counts, strict=True):
            each = [column(word, letter) for word, letter in islice(letters, max(elements, 1))]
            if not elements:
                out[n] = _readable(each[0], faults, bit)
                continue
            there = [_readable(values, faults, bit + 1 + i) for i, values in enumerate(each)]
            out[n] = _readable([*zip(*there, strict=True)], faults, bit)
        return out


def _readable(values: Sequence[Any], faults: Sequence[Sequence[int]], bit: int) -> Sequence[Any]:
    """Return values with None in place of each whose fault bit is set; `values` itself where none
    is.

    Args:
        values: one of each record.
        faults: for each word of fault bits that word of each record; empty where no bit is set in
            any.
        bit: number of the value's fault bit.
    """
    words = faults[bit // 64]
    mask = 1 << bit % 64
    return (
        [None if word & mask else value for value, word in zip(values, words, strict=True)]
        if words
        else values
    )


class RecordRing:
    """Keeps records of several events in memory; when it is full, a new record overwrites the
    oldest.

    Attributes:
        layouts: of the events, by number.
        size: bytes of a record, the same for all events.
        records: number of records that there is room for.
        at: offset in `buffer` where the next record goes.
        end: offset in `buffer` where there is no more room.
        laps: how often the ring has begun again at its start.
        tasks: what the numbers of tasks in records stand for, by number.
        known: task -> its number.
        texts: beside each record the values of an event with text; empty where no event has text.
        stacks: beside each record its stack; empty where stacks are not recorded.
        elsewhere: number of records that were lost before they came here.
    """

    def __init__(
        self, infos: Sequence[EventInfo], records: int, clock: Callable[[], int] | None, stack: bool
    ) -> None:
        """Make an empty ring.

        Args:
            infos: the events.
            records: number of records that there is room for at most.
            clock: the function that tells the time; None: records have no times.
            stack: records have stacks.
        """
        self.layouts = [Layout(info, clock is not None) for info in infos]
        self.size = max(layout.size for layout in self.layouts)
        self.records = records
        self.clock = clock
        self.stacked = stack
        self.at = 0
        self.end = 0
        self.laps = 0
        self.elsewhere = 0
        self.buffer = memoryview(b"")
        self._map()
        self.tasks: list[Any] = []
        self.known: dict[Any, int] = {}
        self.worded = any(field.text for info in infos for field in info.fields)
        self.texts: list[Any] = []
        self.stacks: list[tuple[int, ...]] = []
        self._same: dict[Any, Any] = {}
        # 1 equals 1.0 and True, 0.0 equals -0.0: such values are the same when they are written
        # alike
        self._mixed = any(field.type.is_ambiguous for info in infos for field in info.fields)
        self.formats = [
            struct.Struct(layout.format + f"{self.size - layout.size}x") for layout in self.layouts
        ]

    # --- writing

    def turn(self) -> int:
        """Make room for the next record, called when `at` has come to `end`.

        The room at the end is enlarged; where the ring has all the room that it may have, it begins
        again at its start, over the oldest records, and `laps` is counted up. `at` is not changed:
        that is the caller's to do.

        Returns:
            The offset in `buffer` where the next record goes.
        """
        have = self.end // self.size
        if have < self.records:
            more = min(max(have, FIRST), self.records - have)
            self.texts += [None] * (more if self.worded else 0)
            self.stacks += [()] * (more if self.stacked else 0)
            self.end += more * self.size
            if self.end > len(self.buffer):
                self._map()
            return self.at
        self.laps += 1
        return 0

    def _map(self) -> None:
        """Map a larger buffer, and copy what the present one has. The system gives memory only for
        the part that is used.
        """
        have = len(self.buffer)
        most = self.records * self.size
        new = memoryview(zeroed(min(max(MAPPED, 2 * have, self.end), most), filled=True))
        new[:have] = self.buffer
        self.buffer = new

    def task(self, task: Any) -> int:
        """Return the number that stands for a task; a new task takes the next one."""
        number = self.known.get(task)
        if number is None:
            number = self.known[task] = len(self.tasks)
            self.tasks.append(task)
        return number

    def same(self, value: Any, mixed: bool = False) -> Any:
        """Return the kept tuple that equals a value, so that equal texts and stacks are in memory
        once.

        A new value is kept, and returned itself. After 65,536 different values all are forgotten.

        Args:
            value: a tuple.
            mixed: True where values that are equal may differ in type (1 and 1.0), and are to be
                told apart.
        """
        if len(self._same) > 1 << 16:
            self._same.clear()
        return self._same.setdefault(repr(value) if mixed else value, value)

    def writer(self, event: int) -> Put:
        """Return the function that puts records of one event into the ring.

        Args:
            event: the event's number.
        """
        layout = self.layouts[event]
        pack = self.formats[event].pack_into
        size = self.size
        clock = self.clock
        known = self.known
        returns = layout.has_caller
        plain = layout.plain
        worded = self.worded
        stacked = self.stacked
        zeros = (0,) * layout.head.words
        beside = worded or stacked
        numbers = layout.numbers

        def put(
            seq: int,
            cpu: int,
            task: Any,
            values: Sequence[Value],
            caller: int = 0,
            stack: Sequence[int] = (),
            time: int | None = None,
        ) -> None:
            """Write a record, over the oldest one if the ring is full.

            Args:
                seq: number of the record.
                cpu: number of the processor.
                task: identity of the task, any hashable value.
                values: of the event's arguments; None: memory could not be read.
                caller: address that a return event returns to, or that has accessed watched memory;
                    of a probe it is not used.
                stack: addresses, the innermost first.
                time: by the trace's clock; None: the clock is asked now.
            """
            at = self.at if self.at < self.end else self.turn()
            index = known.get(task)
            if index is None:
                index = self.task(task)
            head = () if clock is None else (clock() if time is None else time,)
            if returns:
                head = (*head, caller)
            try:
                pack(
                    self.buffer,
                    at,
                    seq,
                    event,
                    cpu,
                    index,
                    *head,
                    *zeros,
                    *(values if plain else [values[n] for n in numbers]),
                )
            except struct.error:  # something else than numbers: an array, a fault
                pack(self.buffer, at, seq, event, cpu, index, *head, *layout.flat(values))
            if beside:
                self.aside(at // size, values, stack)
            self.at = at + size

        return put

    def extend(self, rows: bytes) -> None:
        """Append records that programs have written, as they are.

        Args:
            rows: bytes of the records, each of the ring's size; they have no texts or stacks.
        """
        rest = memoryview(rows)
        while rest:
            at = self.at if self.at < self.end else self.turn()
            many = min(len(rest), self.end - at)
            self.buffer[at : at + many] = rest[:many]
            self.at, rest = at + many, rest[many:]

    def aside(self, place: int, values: Sequence[Value], stack: Sequence[int]) -> None:
        """Keep a record's values in `texts` if any event has text, and its stack in `stacks` if
        stacks are recorded.

        Args:
            place: index of the record in the ring, counted from the buffer's start.
            values: of the event's arguments.
            stack: addresses, the innermost first.
        """
        if self.worded:
            self.texts[place] = self.same(tuple(values), self._mixed)
        if self.stacked:
            self.stacks[place] = self.same(tuple(stack))

    def clear(self) -> None:
        """Forget all records, and how many were overwritten. The memory is kept for the next ones;
        tasks keep their numbers, and `elsewhere` stays as it is.
        """
        self.at = self.laps = 0

    # --- reading

    @property
    def written(self) -> int:
        """Number of records that were put here since the last clear(), overwritten ones
        included.
        """
        return self.laps * self.records + self.at // self.size

    @property
    def lost(self) -> int:
        """Number of records that were overwritten, or lost before they came here."""
        return self.written - len(self) + self.elsewhere

    def __len__(self) -> int:
        return min(self.written, self.records)

    def place(self, n: int) -> int:
        """Return the place of the n-th oldest record: its number counted from the buffer's
        start.
        """
        first = self.at // self.size if self.laps else 0
        return (first + n) % max(len(self), 1)

    def row(self, n: int) -> Row:
        """Return the n-th oldest record, as a tuple (number, event, cpu, task, time, caller,
        values, stack).
        """
        return self.at_place(self.place(n))

    def at_place(self, place: int) -> Row:
        """Return the record at a place, as a tuple (number, event, cpu, task, time, caller, values,
        stack).

        Args:
            place: index of the record, counted from the buffer's start.
        """
        at = place * self.size
        event = self.event(place)
        raw = self.formats[event].unpack_from(self.buffer, at)
        layout = self.layouts[event]
        time = raw[4] if layout.clock else 0
        caller = raw[4 + layout.clock] if layout.has_caller else 0
        values = layout.values(raw, self.texts[place] if self.worded else None)
        return (
            raw[0],
            event,
            raw[2],
            raw[3],
            time,
            caller,
            values,
            self.stacks[place] if self.stacked else (),
        )

    def rows(self) -> Iterator[Row]:
        """Yield all records, the oldest first."""
        for n in range(len(self)):
            yield self.at_place(self.place(n))

    def batches(self) -> Iterator[Batch]:
        """Yield all records in batches, the oldest first."""
        first = self.place(0)
        many = len(self)
        for start, end in (first, many), (0, first):
            for place in range(start, end, BATCH):
                yield self._batch(place, min(place + BATCH, end))

    def _batch(self, start: int, end: int) -> Batch:
        """Return a batch of the records at the places from `start` up to, not including, `end`."""
        rows = self.buffer[start * self.size : end * self.size]
        wide = self.size // 8
        events = rows.cast("H")[4 :: 4 * wide].tolist()
        times = rows.cast("Q")[2::wide].tolist() if self.clock is not None else [0] * len(events)
        found: dict[int, list[int]] = {}
        for place, event in enumerate(events):
            found.setdefault(event, []).append(place)
        return Batch(
            rows.cast("Q")[::wide].tolist(),
            events,
            rows.cast("H")[5 :: 4 * wide].tolist(),
            rows.cast("I")[3 :: 2 * wide].tolist(),
            times,
            [self._part(event, places, start, rows) for event, places in found.items()],
        )

    def _part(
        self, event: int, places: Sequence[int], start: int, rows: memoryview
    ) -> EventColumns:
        """Return what the records of one event have in a batch.

        Args:
            event: the event's number.
            places: indices of its records in the batch.
            start: place of the batch's first record in the ring.
            rows: the batch's bytes.
        """
        layout = self.layouts[event]
        wide = self.size // 8

        def column(word: int, letter: Letter = "Q") -> list[int]:
            """Return one word of each of the event's records.

            Args:
                word: index of the word in a record.
                letter: of `struct`, for a word with or without a sign.
            """
            values = rows.cast(letter)[word::wide].tolist()
            return values if len(values) == len(places) else [values[place] for place in places]

        stacks = [self.stacks[start + place] for place in places] if self.stacked else ()
        callers = column(2 + layout.clock) if layout.has_caller else (0,) * len(places)
        texts = [self.texts[start + place] for place in places] if layout.texted else ()
        return EventColumns(event, places, callers, layout.columns(column, texts), stacks)

    def event(self, place: int) -> int:
        """Return the number of the event that the record at a place is of."""
        at = place * self.size
        return int.from_bytes(self.buffer[at + 8 : at + 10], sys.byteorder)

    def raw(self, first: int, many: int) -> bytes:
        """Return the bytes of records, the oldest first.

        Args:
            first: index of the first record, counted from the oldest.
            many: how many; there are as many from `first` on.
        """
        start = self.place(first)
        end = min(start + many, len(self))
        around = start + many - end  # those at the ring's beginning
        return bytes(self.buffer[start * self.size : end * self.size]) + bytes(
            self.buffer[: around * self.size]
        )

    def order(self, first: int = 0, many: int | None = None) -> list[int]:
        """Return the places of records (indices counted from the buffer's start), the oldest record
        first.

        Args:
            first: index of the first wanted record, counted from the oldest.
            many: how many; None: all.
        """
        start = self.place(first)
        there = len(self)
        end = start + (there if many is None else many)
        return [*range(start, min(end, there)), *range(end - there)]
