"""A trace as Perfetto's protobuf: what ui.perfetto.dev and its trace processor open.

Messages are written some thousands at a time, in arrays of bytes: those of one event and phase have
one size, since numbers take as many bytes as the largest of their type does (protobuf's varints may
be longer than need be), and texts are numbers of interned ones. Each batch interns anew, so that a
file may be as long as it likes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from attrs import evolve

from ..events._styles import Value
from .batches import EventColumns
from .columns import need
from .info import EventInfo, Field
from .timeline import BEGIN, END, INSTANT, Marks, Spans, clean, task_name

if TYPE_CHECKING:
    from .trace import Trace

PID = 1
SEQUENCE = 1  #: of packets: there is one writer
TYPES = {BEGIN: 1, END: 2, INSTANT: 3}
CLEARED, NEEDED = 1, 2  #: sequence_flags: what was interned before is forgotten; is needed
FAULT = "(fault)"

# numbers of fields, as in the files of Perfetto's protos/perfetto/trace
PACKET = 1
TIMESTAMP = 8
SEQUENCE_ID = 10
TRACK_EVENT = 11
INTERNED = 12
FLAGS = 13
DESCRIPTOR = 60
UUID = 1
PROCESS = 3
THREAD = 4
PARENT = 5
PROCESS_PID = 1
PROCESS_NAME = 6
THREAD_PID = 1
THREAD_TID = 2
THREAD_NAME = 5
CATEGORY_ID = 3
ANNOTATION = 4
TYPE = 9
NAME_ID = 10
TRACK = 11
ANNOTATION_NAME = 1
BOOL = 2
UNSIGNED = 3
SIGNED = 4
DOUBLE = 5
ANNOTATION_TEXT = 6
POINTER = 7
MEMBER = 10
DICTIONARY = 11
ARRAY = 12
TEXT_ID = 17
CATEGORIES = 1
NAMES = 2
ANNOTATION_NAMES = 3
TEXTS = 29
IID, TEXT = 1, 2

#: bytes of messages of one size: of all alike, or an array with a row for each
Piece = Any


def write(trace: Trace, file: IO[bytes], format: str) -> None:
    """Write a trace to an open file as Perfetto's protobuf, with a track for each task. Calls that
    have not returned end with the last record.

    Args:
        trace: the records.
        file: open for bytes.
        format: not used: writers of all formats are called in one way.

    Raises:
        Unsupported: numpy is not installed (extra `perfetto`).
    """
    writer = _PacketWriter(trace)
    spans = Spans(trace)
    file.write(
        _message(
            PACKET,
            _message(
                DESCRIPTOR,
                _number(UUID, PID)
                + _message(PROCESS, _number(PROCESS_PID, PID) + _message(PROCESS_NAME, b"guest")),
            ),
        )
    )
    for n, task in enumerate(spans.tasks, 1):
        thread = (
            _number(THREAD_PID, PID)
            + _number(THREAD_TID, n)
            + _message(THREAD_NAME, task_name(task).encode(errors="backslashreplace"))
        )
        file.write(
            _message(
                PACKET,
                _message(
                    DESCRIPTOR,
                    _number(UUID, PID + n) + _number(PARENT, PID) + _message(THREAD, thread),
                ),
            )
        )
    for marks in spans:
        file.write(writer.packets(marks))
    for task in chain.from_iterable([task] * len(calls) for task, calls in enumerate(spans.open)):
        file.write(writer.end(spans.last, task))


# --- bytes of one message


def _varint(value: int) -> bytes:
    """Return a number as protobuf's varint: 7 bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    """Return the bytes of a field of a message: the field's number and type, then `value` as a
    varint.
    """
    return _varint(field << 3) + _varint(value)


def _message(field: int, data: bytes) -> bytes:
    """Return the bytes of a field of a message: the field's number and type, the length, then
    `data`: a message within it, or a text.
    """
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _annotation(value: Any) -> bytes:
    """Return a value as protobuf's fields of an annotation, for values that Python reads as a
    whole.

    Structures and tuples have their members within. None becomes the text "(fault)"; an integer of
    more than 64 bits becomes a text, too.
    """
    if isinstance(value, dict):
        members = [
            _message(MEMBER, name.encode(errors="backslashreplace")) + _annotation(each)
            for name, each in value.items()
        ]
        return b"".join([_message(DICTIONARY, member) for member in members])
    if isinstance(value, tuple):
        return b"".join([_message(ARRAY, _annotation(each)) for each in value])
    if isinstance(value, float):
        return _varint(DOUBLE << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, bool):
        return _number(BOOL, value)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
        return _number(SIGNED if value < 1 << 63 else UNSIGNED, value & (1 << 64) - 1)
    return _message(
        ANNOTATION_TEXT, (FAULT if value is None else str(value)).encode(errors="backslashreplace")
    )


class ReturnAddress(NamedTuple):
    """A return address of a stack, which has its caller's name; other addresses are ints."""

    address: int


class _ReturnAddresses(dict[int, ReturnAddress]):
    """The address as a number -> the ReturnAddress, made at its first look-up."""

    def __missing__(self, address: int) -> ReturnAddress:
        """Make the ReturnAddress."""
        found = self[address] = ReturnAddress(address)
        return found


class _Interned(dict[Any, int]):
    """Numbers, from 1 on, of the texts that a batch interns: text, address or None -> number."""

    def __missing__(self, key: Any) -> int:
        """Give a new key the next number, counted from 1."""
        number = self[key] = len(self) + 1
        return number

    def data(self, field: int, text: Callable[[Any], str]) -> bytes:
        """Return the fields that tell readers of what was interned.

        Args:
            field: number of the field that such an entry is.
            text: gives the text of a key.
        """
        texts = [
            (number, text(key).encode(errors="backslashreplace")) for key, number in self.items()
        ]
        return b"".join(
            [_message(field, _number(IID, number) + _message(TEXT, raw)) for number, raw in texts]
        )


# --- bytes of many messages


class _PacketWriter:
    """Makes the packets of a trace, a batch at a time.

    A packet is built of pieces beside each other. A piece is an array with one row of bytes for
    each record, or plain bytes, which are the same for all records.
    """

    def __init__(self, trace: Trace) -> None:
        """Prepare. trace: the records. Raises Unsupported where numpy is not installed."""
        self._np = need("numpy", "perfetto")
        self._trace = trace
        self._begin_batch()

    def _begin_batch(self) -> None:
        """Forget what was interned: each batch interns anew."""
        self._names = _Interned()
        self._arguments = _Interned()
        self._texts = _Interned()
        self._returns = _ReturnAddresses()

    def packets(self, marks: Marks) -> bytes:
        """Return the packets of a batch as bytes: first the packet with the texts that the batch
        interns, then one for each record and for each span that ends without a return, in order.
        """
        np = self._np
        self._begin_batch()
        count = len(marks.batch)
        times = np.array(marks.times, np.uint64)
        tasks = np.array(marks.batch.tasks, np.uint64)
        before: Any = np.array([place for place, _ in marks.left], np.int64)
        #: of each record, its place among the packets
        placed = np.arange(count) + np.searchsorted(before, np.arange(count), side="right")
        groups = [
            (placed[at], rows)
            for phase, part, which in marks.parts()
            for at, rows in self._part(times, tasks, phase, part, which)
        ]
        if len(before):
            ends = [
                self._packet(END, times[[place]], np.array([task], np.uint64), [])
                for place, task in marks.left
            ]
            groups.append((before + np.arange(len(before)), np.concatenate(ends)))
        return self._interned() + self._merged(count + len(before), groups)

    def end(self, time: int, task: int) -> bytes:
        """Return a packet that ends the youngest open span of a task.

        Args:
            time: of the end, by the trace's clock.
            task: number of the task, from 0.
        """
        np = self._np
        return bytes(
            self._packet(
                END, np.array([time], np.uint64), np.array([task], np.uint64), []
            ).tobytes()
        )

    def _interned(self) -> bytes:
        """Return the packet that tells readers of all that the batch has interned."""
        data = (
            _message(CATEGORIES, _number(IID, 1) + _message(TEXT, b"kprobes"))
            + self._names.data(NAMES, str)
            + self._arguments.data(ANNOTATION_NAMES, str)
            + self._texts.data(TEXTS, self._shown)
        )
        return _message(
            PACKET,
            _number(SEQUENCE_ID, SEQUENCE) + _number(FLAGS, CLEARED) + _message(INTERNED, data),
        )

    def _shown(self, value: Any) -> str:
        """Return the text of an interned value.

        Args:
            value: a text; or a code address, whose name is returned; or a ReturnAddress of a
                stack, the same; or None, for memory that could not be read: "(fault)".
        """
        if isinstance(value, ReturnAddress):
            return self._trace.readable(self._trace.caller_name(value.address))
        if isinstance(value, int):
            return self._trace.readable(self._trace.name(value))
        return FAULT if value is None else str(clean(value))

    def _merged(self, count: int, groups: Sequence[tuple[Any, Any]]) -> bytes:
        """Return the bytes of the packets of all groups, in their order in the file.

        Args:
            count: number of packets of all groups.
            groups: (indices of packets among the `count`, an array with a row of bytes for each).
                A group's packets have one size; together the groups have each index once.
        """
        np = self._np
        sizes: Any = np.zeros(count, np.int64)
        for places, rows in groups:
            sizes[places] = rows.shape[1]
        ends = np.cumsum(sizes)
        out: Any = np.empty(int(ends[-1]) if count else 0, np.uint8)
        for places, rows in groups:
            out[(ends - sizes)[places][:, None] + np.arange(rows.shape[1])] = rows
        return bytes(out.tobytes())

    def _part(
        self, times: Any, tasks: Any, phase: str, part: EventColumns, which: Sequence[int]
    ) -> Iterable[tuple[Any, Any]]:
        """Yield the packets of a part's records, in groups whose packets have one size.

        Args:
            times: of the records of the batch.
            tasks: numbers of their tasks, from 0.
            phase: BEGIN, END or INSTANT, the same for all these records.
            part: the records of one event in the batch.
            which: indices into `part` of the records that are written.

        Yields:
            (indices of the group's records in the batch, rows of bytes).
        """
        np, info = self._np, self._trace.events[part.event]
        part = evolve(
            part,
            values=[
                [_annotation(clean(value)) for value in values] if field.type.is_whole else values
                for field, values in zip(info.fields, part.values, strict=True)
            ],
        )
        for same in _alike(info, part, which):
            places: Any = np.array(_at(part.places, same), np.int64)
            pieces = self._annotations(info, part, same)
            if phase == END:
                inner = [piece for each in pieces for piece in self._wrapped(DICTIONARY, each)]
                pieces = [[_number(ANNOTATION_NAME, self._arguments["return"]), *inner]]
            shown = info.name if phase == INSTANT else self._trace.readable(info.function)
            name = [] if phase == END else [_number(NAME_ID, self._names[shown])]
            annotations = [piece for each in pieces for piece in self._wrapped(ANNOTATION, each)]
            yield places, self._packet(phase, times[places], tasks[places], [*name, *annotations])

    def _packet(self, phase: str, times: Any, tasks: Any, more: Sequence[Piece]) -> Any:
        """Return rows of bytes: for each record a packet with an event of a track.

        Args:
            phase: BEGIN, END or INSTANT.
            times: of the records.
            tasks: numbers of their tasks.
            more: further fields of the event.
        """
        np = self._np
        event = [
            _number(CATEGORY_ID, 1),
            _number(TYPE, TYPES[phase]),
            _varint(TRACK << 3),
            self._varints(tasks + np.uint64(PID + 1), 5),
            *more,
        ]
        head = _number(SEQUENCE_ID, SEQUENCE) + _number(FLAGS, NEEDED)
        packet = [
            _varint(TIMESTAMP << 3),
            self._varints(times, 10),
            head,
            *self._wrapped(TRACK_EVENT, event),
        ]
        return self._joined(self._wrapped(PACKET, packet), len(times))

    def _annotations(
        self, info: EventInfo, part: EventColumns, which: Sequence[int]
    ) -> list[list[Piece]]:
        """Return the pieces of each annotation: one for each argument, one for the caller of an
        event that is no plain probe, and one for the stack where the records have stacks.

        Args:
            info: the event.
            part: its records in the batch.
            which: indices in `part` of records whose packets have one size.
        """
        out = []
        for field, values in zip(info.fields, part.values, strict=True):
            out.append([self._name(field.name), *self._value(field, _at(values, which))])
        if info.kind != "p":
            out.append([self._name("caller"), *self._text(_at(part.callers, which))])
        if part.stacks and part.stacks[which[0]]:
            place, *callers = zip(*[part.stacks[n] for n in which], strict=True)
            frames = [
                place,
                *([self._returns[address] for address in column] for column in callers),
            ]
            elements = [self._wrapped(ARRAY, self._text(column)) for column in frames]
            out.append([self._name("stack"), *chain.from_iterable(elements)])
        return out

    def _name(self, name: str) -> bytes:
        """Return the field that names an annotation, by the name's interned number."""
        return _number(ANNOTATION_NAME, self._arguments[name])

    def _value(self, field: Field, values: Sequence[Value]) -> list[Piece]:
        """Return the fields of an annotation that tell one argument's value, for many records.

        The fields are pieces with a row for each record. The annotation's name is not among them:
        callers put it in front, and wrap the whole. All values have one shape: none of them is
        None (unreadable), or all are; in arrays the same elements are.

        Args:
            field: the argument.
            values: the argument's value in each record. A value that is bytes consists of complete
                fields, and is taken as it is.
        """
        rows: Any = values
        first: Any = values[0]
        if first is None:
            return self._text([None])
        if isinstance(first, bytes):
            return [
                self._np.frombuffer(b"".join(rows), self._np.uint8).reshape(len(values), len(first))
            ]
        if isinstance(first, float):
            return [
                _varint(DOUBLE << 3 | 1),
                self._np.array(values, "<f8")[:, None].view(self._np.uint8),
            ]
        if not isinstance(first, tuple):
            return self._text(values) if field.text else self._integers(field, values)
        elements = [self._value(field, column) for column in zip(*rows, strict=True)]
        return [piece for element in elements for piece in self._wrapped(ARRAY, element)]

    def _text(self, texts: Sequence[Any]) -> list[Piece]:
        """Return the pieces that have texts or names of addresses, by their interned numbers.

        Args:
            texts: for each record a text, an address, a ReturnAddress, or None for a fault; or a
                single one that all records have.
        """
        np = self._np
        numbers = list(map(self._texts.__getitem__, texts))
        return [_varint(TEXT_ID << 3), self._varints(np.array(numbers, np.uint64), 5)]

    def _integers(self, field: Field, values: Sequence[Any]) -> list[Piece]:
        """Return the pieces that tell integers as signed numbers, unsigned numbers or pointers.

        Args:
            field: the argument, whose type says how it is shown.
            values: an integer for each record.
        """
        np, kind = self._np, field.type
        if kind.is_signed:
            return [
                _varint(SIGNED << 3),
                self._varints(np.array(values, np.int64).view(np.uint64), 10),
            ]
        numbers = np.array(values, np.uint64)
        width = (8 * kind.size + 6) // 7
        if kind.is_hexadecimal:
            return [_varint(POINTER << 3), self._varints(numbers, width)]
        signed: Any = np.where(numbers >> np.uint64(63), UNSIGNED << 3, SIGNED << 3)
        return [signed.astype(np.uint8)[:, None], self._varints(numbers, width)]

    def _varints(self, values: Any, width: int) -> Any:
        """Return numbers as protobuf's varints of one width.

        Args:
            values: an array of unsigned numbers, each of which fits.
            width: bytes of each varint.

        Returns:
            An array with a row of `width` bytes for each number.
        """
        np = self._np
        shifts = np.arange(0, 7 * width, 7, dtype=np.uint64)
        out = (values[:, None] >> shifts & np.uint64(0x7F)).astype(np.uint8)
        out[:, :-1] |= 0x80
        return out

    def _wrapped(self, field: int, pieces: Sequence[Piece]) -> list[Piece]:
        """Return the pieces of a field whose value is the message that `pieces` make."""
        size = sum(len(piece) if isinstance(piece, bytes) else piece.shape[1] for piece in pieces)
        return [_varint(field << 3 | 2) + _varint(size), *pieces]

    def _joined(self, pieces: Sequence[Piece], count: int) -> Any:
        """Return the pieces beside each other, as an array with a row of bytes for each of `count`
        records.
        """
        np = self._np
        size = sum(len(piece) if isinstance(piece, bytes) else piece.shape[1] for piece in pieces)
        out: Any = np.empty((count, size), np.uint8)
        at = 0
        for piece in pieces:
            wide = len(piece) if isinstance(piece, bytes) else piece.shape[1]
            out[:, at : at + wide] = (
                np.frombuffer(piece, np.uint8) if isinstance(piece, bytes) else piece
            )
            at += wide
        return out


def _at(column: Sequence[Any], which: Sequence[int]) -> Sequence[Any]:
    """Return the values of a column at some indices, in ascending order.

    Args:
        column: a value for each record.
        which: indices into `column`.
    """
    return column if len(which) == len(column) else [column[n] for n in which]


def _sign(value: Any) -> Any:
    """Return a key of how many bytes a value takes in a packet; values with equal keys take as
    many.

    Args:
        value: None, a number, a tuple or bytes. Of bytes the key is the length; else which
            elements, or whether the value, could not be read.
    """
    if isinstance(value, bytes):
        return len(value)
    return tuple([each is None for each in value]) if isinstance(value, tuple) else value is None


def _alike(info: EventInfo, part: EventColumns, which: Sequence[int]) -> Iterable[Sequence[int]]:
    """Return groups of records whose packets have one size.

    Their values have one shape (the same ones are missing), and their stacks are equally deep.

    Args:
        info: the event.
        part: its records in a batch.
        which: indices into `part` of the records to be grouped.

    Returns:
        For each group the indices into `part`.
    """
    signs: list[Sequence[Any]] = [
        part.values[n]
        for n, field in enumerate(info.fields)
        if field.type.count
        or field.type.is_whole
        or ((not field.text or field.type.is_float) and None in part.values[n])
    ]
    if not signs and not any(part.stacks):
        return [which]
    found: dict[Any, list[int]] = {}
    for n in which:
        sign = [_sign(column[n]) for column in signs]
        found.setdefault((*sign, len(part.stacks[n]) if part.stacks else 0), []).append(n)
    return found.values()
