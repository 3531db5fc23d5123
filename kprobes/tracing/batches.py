"""Records some thousands at a time, in columns: what writers of large files read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

#: records of a batch
BATCH = 1 << 13
#: number, event, cpu, task, time, caller, values, stack (as kprobes.stacks.Stack.kept() has it)
Row = tuple[int, int, int, int, int, int, "tuple[Any, ...]", "tuple[int, ...]"]


@frozen
class EventColumns:
    """The columns that only records of one event have.

    Attributes:
        event: the event's number.
        places: indices of the event's records in the batch, ascending; the other columns have a
            value for each of these.
        callers: addresses that returns go to, or that have accessed watched memory; 0 of others.
        values: a column for each argument.
        stacks: addresses of each record's stack, innermost first; empty where the trace has none.
    """

    event: int
    places: Sequence[int]
    callers: Sequence[int]
    values: Sequence[Sequence[Any]]
    stacks: Sequence[tuple[int, ...]]


@frozen
class Batch:
    """Records that follow each other: columns of what all have, in their order, and a part for each
    event that occurs.

    Attributes:
        seqs: numbers of the records.
        events: numbers of their events.
        cpus: numbers of processors.
        tasks: numbers of tasks: indices in the trace's `source.tasks`.
        times: by the trace's clock; 0 where there is none.
        parts: for each event that occurs, what only its records have.
    """

    seqs: Sequence[int]
    events: Sequence[int]
    cpus: Sequence[int]
    tasks: Sequence[int]
    times: Sequence[int]
    parts: Sequence[EventColumns]

    def __len__(self) -> int:
        return len(self.seqs)

    def rows(self) -> list[Row]:
        """Return the records of the batch one by one, as tuples (number, event, cpu, task, time,
        caller, values, stack), in their order.
        """
        out: list[Any] = [None] * len(self)
        for part in self.parts:
            many = len(part.places)
            values = zip(*part.values, strict=True) if part.values else iter([()] * many)
            rest = zip(part.places, part.callers, values, part.stacks or [()] * many, strict=True)
            for place, caller, arguments, stack in rest:
                out[place] = (
                    self.seqs[place],
                    part.event,
                    self.cpus[place],
                    self.tasks[place],
                    self.times[place],
                    caller,
                    arguments,
                    stack,
                )
        return out
