"""The record of one hit of an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field, frozen

from ._styles import Value


@frozen
class Record:
    """A hit of an event.

    Attributes:
        event: the event's name, without its group.
        seq: number of the hit among all events of its Kprobes, from 1; lost hits leave gaps.
        cpu: number of the CPU.
        task: the guest task (machine.cpu_task), an integer in records of compiled events.
        args: fetched values by name: integers, texts, tuples of these for arrays; None where guest
            memory was unreadable.
        stack: pc and return addresses, innermost first; empty where the event takes none.
        address: of the probepoint.
        caller: where a return event returns to; of an access to watched memory the instruction; 0
            in other events.
        time: by the trace's clock, in ns or instructions; None where it has none.
        incomplete: True where the stack ends before the outermost caller.
    """

    event: str
    seq: int
    cpu: int
    task: Any
    args: Mapping[str, Value]
    stack: Sequence[int] = ()
    address: int = field(default=0, repr=hex)
    caller: int = field(default=0, repr=hex)
    time: int | None = None
    incomplete: bool = False


def task_text(task: Any) -> str:
    """Return a task as text that any file can hold; what is no Unicode in its name, as escapes."""
    return str(task).encode("utf-8", "backslashreplace").decode()
