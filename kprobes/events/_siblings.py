"""The rule for events of one name."""

from __future__ import annotations

from ._event import Event
from ._messages import make_error


def check_sibling(event: Event, other: Event) -> None:
    """Check that two events may have one name: kind and arguments agree, and they are not the same.

    Args:
        event: the new one, which errors point at.
        other: the one that is there.

    Raises:
        EventError: they do not agree, or are the same.
    """
    mine, theirs = ([(arg.name, arg.type) for arg in each.args] for each in (event, other))
    if (event.kind, event.written) != (other.kind, other.written):
        raise make_error("DIFF_PROBE_TYPE", 0, event.text, other)
    if mine != theirs:
        differing = (
            arg.position for i, arg in enumerate(event.args) if mine[i : i + 1] != theirs[i : i + 1]
        )
        raise make_error("DIFF_ARG_TYPE", next(differing, len(event.text)), event.text, other)
    if (event.address, [arg.text for arg in event.args]) == (
        other.address,
        [arg.text for arg in other.args],
    ):
        raise make_error("SAME_PROBE", 0, event.text, other)
