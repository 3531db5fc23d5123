"""The followed calls in a snapshot, for a guest that goes back to it.

A guest that goes back to the middle of a call will return through the trampoline, whose address is
on its stack or in a register: the call has to be followed again. Calls that have begun after the
snapshot are forgotten.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from attrs import evolve, frozen

from ..probe import KretprobeInstance
from .calls import CallsUnderWay


@frozen
class UnderWay:
    """The calls being followed when a snapshot was taken.

    Attributes:
        calls: the table that they were in.
        trampoline: the address that they return to, mode bits included.
        tasks: task -> copies of its calls' instances, oldest first.
    """

    calls: CallsUnderWay
    trampoline: int
    tasks: dict[Any, list[KretprobeInstance]]


def _copies(instances: list[KretprobeInstance]) -> list[KretprobeInstance]:
    """Return copies of instances, with copies of their data."""
    return [evolve(ri, data=copy(ri._data)) for ri in instances]


def under_way(calls: CallsUnderWay) -> UnderWay | None:
    """Return a copy of the calls being followed now; None: there are none."""
    calls.catch_up()
    tasks = {task: _copies(instances) for task, instances in calls.tasks.items() if instances}
    return UnderWay(calls, calls.trampoline, tasks) if tasks else None


def cannot_resume(calls: CallsUnderWay, then: object | None) -> str:
    """Return why the calls of a snapshot cannot be followed again; "": they can.

    Args:
        calls: the calls of the present Kprobes.
        then: what the snapshot has kept of calls; None: there were none.
    """
    if not isinstance(then, UnderWay) or (
        then.calls is calls and then.trampoline == calls.trampoline
    ):
        return ""
    return "calls were under way, and they return through the memory of a Kprobes that is gone"


def resume(calls: CallsUnderWay, then: object | None) -> None:
    """Follow the calls of a snapshot again, and no others. Called as the guest goes back to it.

    Copies of the kept instances are used, so that the guest can go back again.

    Args:
        calls: the calls of the present Kprobes; those that are followed now are forgotten, and
            their instances recycled.
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
