"""The calls that were being followed at some time, for a guest that goes back there.

A guest that goes back to the middle of a call will return through the trampoline that its stack, or
a register, shows: the call has to be followed again. Those that begin after that time have never
been.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from attrs import evolve, frozen

from ..probe import KretprobeInstance
from .calls import CallsUnderWay


@frozen
class UnderWay:
    """Calls by task, oldest first, and through where they return."""

    calls: CallsUnderWay
    trampoline: int
    tasks: dict[Any, list[KretprobeInstance]]


def _copies(instances: list[KretprobeInstance]) -> list[KretprobeInstance]:
    return [evolve(ri, data=copy(ri._data)) for ri in instances]


def under_way(calls: CallsUnderWay) -> UnderWay | None:
    """Return a copy of the calls being followed now; None: there are none."""
    calls.catch_up()
    tasks = {task: _copies(instances) for task, instances in calls.tasks.items() if instances}
    return UnderWay(calls, calls.trampoline, tasks) if tasks else None


def cannot_resume(calls: CallsUnderWay, then: object | None) -> str:
    """Return why the calls of a snapshot cannot be followed again; "": they can."""
    if not isinstance(then, UnderWay) or (
        then.calls is calls and then.trampoline == calls.trampoline
    ):
        return ""
    return "calls were under way, and they return through the memory of a Kprobes that is gone"


def resume(calls: CallsUnderWay, then: object | None) -> None:
    """Follow the calls of a snapshot again, and no others.

    Args:
        then: returned by under_way(); None: no call was followed then.
    """
    calls.catch_up()
    for instances in calls.tasks.values():
        if instances:
            calls.recycle(instances)
            instances.clear()
    if not isinstance(then, UnderWay):
        return
    for task, instances in then.tasks.items():
        for ri in instances:
            if ri.pool and not ri.aside:
                ri.pool.pop()  # the copy takes its place
        calls.of(task).extend(_copies(instances))
    for followers in calls.following.values():
        followers.make_room()
