"""A trace as the text that `perf script` prints: what stackcollapse-perf.pl, inferno, Firefox's
profiler and speedscope read.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from ..stacks import INCOMPLETE
from .clocks import COUNTER
from .timeline import MOST_TEXTS, clean, task_name

if TYPE_CHECKING:
    from .trace import Trace

MODULE = "guest"


def write(trace: Trace, file: IO[str], format: str) -> None:
    """Write a paragraph for each record, as `perf script` prints it.

    The first line has the task and its number, cpu, seconds, event and arguments. A line for each
    address of the stack follows, or one for the probed place where the record has no stack. Without
    a clock a record is a microsecond behind the one before.

    Args:
        trace: the records.
        file: an open text file.
        format: not used; all writers of a trace have it.
    """
    places = dict[tuple[int, int], str]()  # (event, caller) -> what stands in parentheses
    stacks = dict[tuple[int, ...], str]()
    for batch in trace.batches():
        paragraphs = []
        for seq, event, cpu, task, time, caller, values, stack in batch.rows():
            info = trace.events[event]
            name = task_name(trace.source.tasks[task]).replace(" ", "_")
            now = 1000 * seq if trace.clock == COUNTER else time
            place = places.get((event, caller))
            if place is None:
                place = trace.readable(info.place(trace.name(caller)))
                places[event, caller] = place
            # no blanks in front, as perf has it with stacks: readers take such lines for frames
            head = (
                f"{name} {task + 1:5d} [{cpu:03d}] {now // 10**9:5d}.{now // 1000 % 10**6:06d}: "
                f"{info.group}:{info.name}: ({place}){info.arguments(values)}\n"
            )
            lines = stacks.get(stack)
            if lines is None:
                if len(stacks) > MOST_TEXTS:
                    stacks.clear()
                lines = stacks[stack] = _frames(trace, stack)
            if not lines:
                function = trace.readable(clean(info.function))
                lines = f"\t{info.address:16x} {function}+{info.offset:#x} ({MODULE})\n"
            paragraphs.append(f"{head}{lines}\n")
        file.write("".join(paragraphs))


def _frames(trace: Trace, stack: tuple[int, ...]) -> str:
    """Return a line for each address of a stack; "": it has none.

    Args:
        trace: names addresses.
        stack: addresses, innermost first.
    """
    frames = [address for address in stack if address != INCOMPLETE]
    return "".join(
        f"\t{address:16x} {trace.readable(clean(name).partition('/')[0])} ({MODULE})\n"
        for address, name in zip(frames, trace.names(frames), strict=True)
    )
