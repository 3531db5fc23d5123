"""State machines as tables: (state, event) -> the state that follows."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeVar

State = TypeVar("State", bound=enum.Enum)
Event = TypeVar("Event", bound=enum.Enum)


def after(table: Mapping[tuple[State, Event], State], state: State, event: Event) -> State:
    """Return the state that follows from an event.

    Args:
        table: (state, event) -> the state that follows.
        state: the present state.
        event: what has happened.

    Raises:
        ValueError: the event may not happen in that state: the table has no such pair.
    """
    try:
        return table[state, event]
    except KeyError:
        raise ValueError(f"{event.name} in {state.name}") from None
